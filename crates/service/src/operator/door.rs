//! The operator door's listener: connections, their limits, and closing them in good order.
//!
//! hyper does the talking. What it leaves to its user is done here: a limit on connections, no head that
//! takes for ever, and an end that lets requests under way finish, but not for ever.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many connections operators may have open; people, scripts and dashboards, not a fleet.
const CONNECTIONS_MAX: usize = 512;
/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way have to finish when the door closes.
const CLOSING_GRACE: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept, which usually means that there are no files left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves everyone who connects, until `shutdown` turns true.
pub async fn serve(listener: TcpListener, router: Router, mut shutdown: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let closing = shutdown.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = shutdown.wait_for(|closing| *closing) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok((stream, _)), Ok(place)) => {
                    let (router, closing) = (router.clone(), closing.clone());
                    connections.spawn(async move {
                        serve_connection(stream, router, closing).await;
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

async fn serve_connection(stream: TcpStream, router: Router, mut closing: watch::Receiver<bool>) {
    // A socket that refuses the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let service = TowerToHyperService::new(router);
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
