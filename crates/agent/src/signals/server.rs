//! The server of the signals: plain HTTP, few connections, short heads, no bodies.
//!
//! A newcomer always gets in: when all slots are taken, the oldest connection of the source that has most goes
//! ([`notbefore_listener::admission`]). So a load balancer is answered, however many others are connected.

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

use super::{Readiness, StatusBoard};

/// Open connections: a load balancer or two, Prometheus, a person; and 16 of them are for loopback.
const CONNECTIONS_MAX: usize = 64;
/// The largest head of a request; hyper takes no less.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a head may take, or a connection be idle before it.
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
pub fn check_address(address: SocketAddr) -> Result<(), ServeError> {
    std::net::TcpListener::bind(address).map(|_| ()).map_err(|why| ServeError { address, why })
}

/// Serves the signals until the runtime ends; answers where.
pub async fn serve(address: SocketAddr, board: StatusBoard) -> Result<SocketAddr, ServeError> {
    let failed = |why| ServeError { address, why };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tokio::spawn(accept(listener, board));
    Ok(bound)
}

async fn accept(listener: TcpListener, board: StatusBoard) {
    // Nobody has a token here.
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
                "too many connections to the agent's listener; closed the oldest, of the source that has most"
            );
        }
        // One whose address cannot be told is judged as if it had come by loopback.
        let by_loopback = stream.local_addr().map_or(true, |at| at.ip().to_canonical().is_loopback());
        let (board, hosts) = (board.clone(), Arc::clone(&hosts));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (board, hosts) = (board.clone(), Arc::clone(&hosts));
                async move {
                    // Requests that are sent ahead must not keep the agent from its polls.
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
                // A client that breaks the connection needs no further answer.
                _ = connection => {}
                () = slot.evicted() => {}
            }
        });
    }
}

/// The answer to a request under a name that is not this machine's: a page in a browser sends its own name, wherever
/// the DNS has sent it (DNS rebinding).
fn wrong_host<B>(request: &Request<B>, hosts: &AllowedHosts) -> Option<Response<Full<Bytes>>> {
    let given = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut given = given.chain(request.uri().authority().map(|authority| authority.as_str()));
    let host = given.find(|host| !hosts.is_allowed(host, |_| false))?;
    let words =
        format!("the agent does not answer to the name {host:?}; call it by its address or as localhost\n");
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

fn readiness_response(answer: Readiness) -> Response<Full<Bytes>> {
    let (status, words) = match answer {
        Readiness::Yes(words) => (StatusCode::OK, words),
        Readiness::No(words) => (StatusCode::SERVICE_UNAVAILABLE, words),
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
