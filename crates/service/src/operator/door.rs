//! The operator door's listener: connections, their limits, and closing them in good order.
//!
//! hyper does the talking. What it leaves to its user is done here: a limit on connections, no head that
//! takes for ever, and an end that lets requests under way finish, but not for ever.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::access::Source;
use super::tls::Certificate;

/// How many connections operators may have open; people, scripts and dashboards, not a fleet.
const CONNECTIONS_MAX: usize = 512;
/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the handshake of an encrypted connection may take. A place is taken before it begins, so that those who
/// never finish one are limited like everybody.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way have to finish when the door closes.
const CLOSING_GRACE: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept, which usually means that there are no files left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves everyone who connects, encrypted where there is a certificate, until `shutdown` turns true.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: Option<Arc<Certificate>>,
    mut shutdown: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let closing = shutdown.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = shutdown.wait_for(|closing| *closing) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok((stream, from)), Ok(place)) => {
                    let (router, closing) = (router.clone(), closing.clone());
                    let certificate = certificate.clone();
                    connections.spawn(async move {
                        greet(stream, Source(from), router, certificate, closing).await;
                        drop(place);
                    });
                }
                (Ok((stream, from)), Err(_)) => {
                    tracing::warn!(%from, limit = CONNECTIONS_MAX, "too many connections of operators; closed the newest");
                    drop(stream);
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept connections of operators; will keep trying");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let finished = timeout(CLOSING_GRACE, async { while connections.join_next().await.is_some() {} });
    if finished.await.is_err() {
        tracing::warn!(
            open = connections.len(),
            "closing operators' connections that did not finish in time"
        );
        connections.shutdown().await;
    }
}

/// Encrypts a connection where that is wanted, and serves it.
async fn greet(
    stream: TcpStream,
    source: Source,
    router: Router,
    certificate: Option<Arc<Certificate>>,
    mut closing: watch::Receiver<bool>,
) {
    // A socket that refuses the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let Some(certificate) = certificate else {
        return serve_connection(stream, source, router, closing).await;
    };
    let handshake = timeout(HANDSHAKE_TIMEOUT, certificate.acceptor().accept(stream));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = async { drop(closing.wait_for(|closing| *closing).await) } => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve_connection(stream, source, router, closing).await,
        Ok(Err(error)) => tracing::debug!(%error, from = %source.0, "a handshake of an operator failed"),
        Err(_) => tracing::debug!(from = %source.0, "a handshake of an operator took too long"),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    source: Source,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source);
        router.call(request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        outcome = connection.as_mut() => Some(outcome),
        () = async { drop(closing.wait_for(|closing| *closing).await) } => None,
    };
    let outcome = match ended {
        Some(outcome) => outcome,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "an operator's connection ended");
    }
}
