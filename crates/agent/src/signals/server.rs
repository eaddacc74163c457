//! HTTP server of the agent's status: few connections, small request heads, no bodies.
//!
//! A new connection is always accepted: at the limit, the oldest connection of the source with most connections is
//! closed ([`notbefore_listener::admission`]). So a load balancer gets through, however many others are connected.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use notbefore_client::clock::Clock;
use notbefore_client::identity::host_name;
use notbefore_listener::admission::{Limits, Source};
use notbefore_listener::host::AllowedHosts;
use notbefore_listener::log_limit::LogRateLimit;
use notbefore_listener::slots::AdmissionSlots;
use notbefore_listener::token_quotas::TokenQuotaLimits;
use notbefore_listener::write_timeout::WriteTimeout;
use notbefore_wire::text::printable;
use tokio::net::TcpListener;

use super::StatusBoard;

/// Open connections: load balancers, Prometheus, a person; 16 of them are reserved for loopback.
const CONNECTIONS_MAX: usize = 64;
/// Largest request head; hyper's minimum.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Timeout for a request head, and for an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause when `accept` fails, usually at the limit of open files.
const ACCEPT_REST: Duration = Duration::from_millis(200);

/// Why the status server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address} ({why}); name another address with --listen (listen = …), or \"none\"")]
pub struct ServeError {
    address: SocketAddr,
    /// Part of the message, so it is no `source`.
    why: io::Error,
}

impl ServeError {
    /// Whether another process listens there.
    pub fn is_taken(&self) -> bool {
        self.why.kind() == io::ErrorKind::AddrInUse
    }
}

/// Checks whether the address can be bound now.
pub fn check_address(address: SocketAddr) -> Result<(), ServeError> {
    std::net::TcpListener::bind(address).map(|_| ()).map_err(|why| ServeError { address, why })
}

/// Starts the server; returns its address. It runs until the runtime ends.
pub async fn serve(address: SocketAddr, board: StatusBoard) -> Result<SocketAddr, ServeError> {
    let failed = |why| ServeError { address, why };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tokio::spawn(accept(listener, board));
    Ok(bound)
}

async fn accept(listener: TcpListener, board: StatusBoard) {
    // No per-token limit: this server has no tokens.
    let limits = Limits { connections: CONNECTIONS_MAX, per_token: 0 };
    let slots = AdmissionSlots::new(limits, TokenQuotaLimits { per_token: 0, total: 0 });
    let clock = Clock::start();
    let mut full = LogRateLimit::default();
    let hosts = Arc::new(AllowedHosts::new(&host_name(), &[]));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
                continue;
            }
        };
        let (slot, has_closed_another) = slots.admit(Source::of(from.ip(), false));
        if has_closed_another && let Some(closed) = full.record(clock.now().tick) {
            tracing::warn!(
                %from,
                closed,
                limit = CONNECTIONS_MAX,
                "too many connections to the status server; closed the oldest of the source with most connections"
            );
        }
        // A connection of unknown address counts as loopback.
        let by_loopback = stream.local_addr().map_or(true, |at| at.ip().to_canonical().is_loopback());
        let (board, hosts) = (board.clone(), Arc::clone(&hosts));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (board, hosts) = (board.clone(), Arc::clone(&hosts));
                async move {
                    // Pipelined requests must not starve the polls.
                    tokio::task::yield_now().await;
                    let refused = wrong_host(&request, &hosts).filter(|_| by_loopback);
                    Ok::<_, Infallible>(refused.unwrap_or_else(|| answer(&request, &board)))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service);
            tokio::select! {
                // A client that breaks the connection gets no response.
                _ = connection => {}
                () = slot.evicted() => {}
            }
        });
    }
}

/// Rejects a request whose Host header is not this machine's: protection against DNS rebinding from a browser.
fn wrong_host<B>(request: &Request<B>, hosts: &AllowedHosts) -> Option<Response<Full<Bytes>>> {
    let given = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut given = given.chain(request.uri().authority().map(|authority| authority.as_str()));
    let host = given.find(|host| !hosts.is_allowed(host, |_| false))?;
    let words =
        format!("the agent does not answer for the host name {host:?}; use its address or localhost\n");
    Some(text(StatusCode::MISDIRECTED_REQUEST, words))
}

fn answer<B>(request: &Request<B>, board: &StatusBoard) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "alive\n".to_owned()),
        "/readyz" => readiness_response(board.ready()),
        "/drainz" => readiness_response(board.in_service()),
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

fn readiness_response(answer: Result<String, String>) -> Response<Full<Bytes>> {
    let (status, words) = match answer {
        Ok(words) => (StatusCode::OK, words),
        Err(words) => (StatusCode::SERVICE_UNAVAILABLE, words),
    };
    // The text may contain platform data and is shown in terminals.
    text(status, printable(&words) + "\n")
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // A cached "in service" for a draining VM would be wrong.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
