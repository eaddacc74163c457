//! The hook: an HTTP server at which the handler reports markers by calls.
//!
//! `NOTBEFORE_HOOK` is its base URL, with a random path that only this handler knows. A call of `/drained` or
//! `/restored` below it is reported, then answered 204. Anything else is answered 404.

use std::convert::Infallible;
use std::net::TcpListener as StdTcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::recording::Marker;

/// Most connections at a time; others wait in the queue of the kernel. A handler calls once in an event.
const CONNECTIONS_MAX: usize = 16;
/// Time limit of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest head of a request; the smallest size that hyper supports.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Largest body; it is not used.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Pause after an error of accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves calls until it is dropped. `report` returns whether the handler's markers come from calls.
pub(super) async fn serve(
    listener: StdTcpListener,
    base_path: String,
    report: impl Fn(Marker) -> bool + Send + Sync + 'static,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let target = Arc::new((base_path, report));
    let mut calls = JoinSet::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        while calls.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let target = Arc::clone(&target);
                calls.spawn(async move {
                    let answered = answer(stream, &target.0, &target.1);
                    let _ = timeout(CALL_TIMEOUT, answered).await;
                    drop(slot);
                });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers one call.
async fn answer(stream: TcpStream, base_path: &str, report: &impl Fn(Marker) -> bool) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        let called = head.uri.path().strip_prefix(base_path).and_then(|path| path.strip_prefix('/'));
        let marker = Marker::ALL.into_iter().find(|marker| called == Some(marker.as_str()));
        // A client that is still sending might not read the answer.
        let _ = Limited::new(body, BODY_BYTES_MAX).collect().await;
        Ok::<_, Infallible>(match marker {
            Some(marker) if report(marker) => response(StatusCode::NO_CONTENT, String::new()),
            Some(marker) => {
                let marker = marker.as_str();
                let said =
                    format!("the rehearsal takes {marker:?} from another source; give it --{marker} call\n");
                response(StatusCode::NOT_FOUND, said)
            }
            None => response(
                StatusCode::NOT_FOUND,
                "call $NOTBEFORE_HOOK/drained or $NOTBEFORE_HOOK/restored\n".to_owned(),
            ),
        })
    });
    // A client that breaks the connection gets no response.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CALL_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn response(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
