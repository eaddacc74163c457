//! The server of the signals: plain HTTP, few connections, short heads, no bodies.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use notbefore_wire::text::printable;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::{Answer, Board};

/// Open connections: a load balancer or two, Prometheus, a person. One more waits.
const CONNECTIONS_MAX: usize = 32;
/// The largest head of a request; hyper takes no less.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a head may take, or a connection be idle before it: so long at most are others kept out by the silent.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to rest when no connection can be accepted: the limit of open files, as a rule.
const ACCEPT_REST: Duration = Duration::from_millis(200);

/// Why there are no signals.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address} ({why}); name another address with --listen (listen = …), or \"none\"")]
pub struct ServeError {
    address: SocketAddr,
    /// It stands in the middle of the sentence, and is therefore no source that would be told once more.
    why: io::Error,
}

impl ServeError {
    /// Whether somebody else listens there.
    pub fn is_taken(&self) -> bool {
        self.why.kind() == io::ErrorKind::AddrInUse
    }
}

/// Whether the signals could be served at an address now.
pub fn look_over(address: SocketAddr) -> Result<(), ServeError> {
    std::net::TcpListener::bind(address).map(|_| ()).map_err(|why| ServeError { address, why })
}

/// Serves the signals until the runtime ends; answers where.
pub async fn serve(address: SocketAddr, board: Board) -> Result<SocketAddr, ServeError> {
    let failed = |why| ServeError { address, why };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tokio::spawn(accept(listener, board));
    Ok(bound)
}

async fn accept(listener: TcpListener, board: Board) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
                continue;
            }
        };
        let board = board.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request, &board);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever breaks the connection has heard enough.
            let _ = connection.await;
            drop(place);
        });
    }
}

fn answer<B>(request: &Request<B>, board: &Board) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "alive\n".to_owned()),
        "/readyz" => yes_or_no(board.ready()),
        "/drainz" => yes_or_no(board.in_service()),
        "/metrics" => typed(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            board.metrics(),
        ),
        "/events" => {
            let events = serde_json::to_string(&board.events()).unwrap_or_default();
            typed(StatusCode::OK, "application/json", events + "\n")
        }
        _ => {
            let there = "there are /healthz, /readyz, /drainz, /metrics and /events\n";
            text(StatusCode::NOT_FOUND, there.to_owned())
        }
    }
}

fn yes_or_no(answer: Answer) -> Response<Full<Bytes>> {
    let (status, words) = match answer {
        Answer::Yes(words) => (StatusCode::OK, words),
        Answer::No(words) => (StatusCode::SERVICE_UNAVAILABLE, words),
    };
    // The platform's words are among them, and people look at these with curl.
    text(status, printable(&words) + "\n")
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // A cache that answers "in service" for a VM that drains would undo all of this.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
