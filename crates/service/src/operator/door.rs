//! The operator door's listener: connections, their limits, and closing them in good order.
//!
//! hyper does the talking. What it leaves to its user is done here: a limit on connections, no head and no write that
//! takes for ever, and an end that lets requests under way finish, but not for ever.
//!
//! A connection has its place before its handshake begins. When all places are taken, a newcomer gets the place of the
//! oldest connection without a valid token, of the source that has most ([`notbefore_listener::admission`]).
//! `access` says when a request of a connection has borne a valid token.

use std::net::SocketAddr;
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
use notbefore_listener::admission::{Limits, Source};
pub use notbefore_listener::host::HostName;
use notbefore_listener::log_pace::LogPace;
use notbefore_listener::places::Places;
use notbefore_listener::shares::ShareLimits;
use notbefore_listener::write_timeout::WriteTimeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::access::Arrival;
use super::tls::Certificate;
use crate::clock::Stopwatch;
use crate::proxy::AddressPrefix;

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

/// Whose connections the door takes, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorConfig {
    /// Reverse proxies: they have no share of the connections as a source, since they call for many.
    pub proxies: Vec<AddressPrefix>,
    /// Names that the door answers to on loopback, besides its certificate's and this machine's.
    pub hosts: Vec<HostName>,
    /// What one token may hold.
    pub limits: DoorLimits,
}

/// What tokens may hold of the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorLimits {
    /// Connections of one token.
    pub connections_per_token_max: usize,
    /// Streams of one token.
    pub streams_per_token_max: usize,
    /// Streams of all tokens together.
    pub streams_max: usize,
}

impl Default for DoorLimits {
    fn default() -> Self {
        // A dashboard with a pool of connections, and half of all places for streams.
        Self { connections_per_token_max: 64, streams_per_token_max: 64, streams_max: 256 }
    }
}

impl DoorLimits {
    /// The places of a door with these limits.
    pub fn places(&self) -> Arc<Places> {
        let connections = Limits { connections: CONNECTIONS_MAX, per_token: self.connections_per_token_max };
        let streams = ShareLimits { per_token: self.streams_per_token_max, in_all: self.streams_max };
        Places::new(connections, streams)
    }
}

/// What the listener needs.
pub struct Door {
    /// Answers requests.
    pub router: Router,
    /// Connections are encrypted where there is one.
    pub certificate: Option<Arc<Certificate>>,
    /// Who is connected.
    pub places: Arc<Places>,
    /// Where reverse proxies call from.
    pub proxies: Vec<AddressPrefix>,
}

impl Door {
    fn source(&self, from: SocketAddr) -> Source {
        Source::of(from.ip(), self.proxies.iter().any(|proxy| proxy.holds(from.ip())))
    }
}

/// Serves everyone who connects until `shutdown` turns true.
pub async fn serve(listener: TcpListener, door: Door, mut shutdown: watch::Receiver<bool>) {
    let stopwatch = Stopwatch::start();
    let (mut full, mut failing) = (LogPace::default(), LogPace::default());
    let closing = shutdown.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = shutdown.wait_for(|closing| *closing) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let (place, has_closed_another) = door.places.admit(door.source(from));
                    if has_closed_another && let Some(closed) = full.note(stopwatch.elapsed()) {
                        tracing::warn!(
                            %from,
                            closed,
                            limit = CONNECTIONS_MAX,
                            "too many connections of operators; closed the oldest without a token, of the source that has most"
                        );
                    }
                    let place = Arc::new(place);
                    // One whose address cannot be told is judged as if it had come by loopback.
                    let by_loopback = stream.local_addr().map_or(true, |at| at.ip().to_canonical().is_loopback());
                    let arrival = Arrival { from, by_loopback, place: Arc::clone(&place) };
                    let (router, closing) = (door.router.clone(), closing.clone());
                    let certificate = door.certificate.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            () = greet(stream, arrival, router, certificate, closing) => {}
                            () = place.taken() => {}
                        }
                    });
                }
                Err(error) => {
                    if let Some(times) = failing.note(stopwatch.elapsed()) {
                        tracing::warn!(%error, times, "cannot accept connections of operators; will keep trying");
                    }
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
    arrival: Arrival,
    router: Router,
    certificate: Option<Arc<Certificate>>,
    mut closing: watch::Receiver<bool>,
) {
    // A socket that refuses the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream);
    let Some(certificate) = certificate else {
        return serve_connection(stream, arrival, router, closing).await;
    };
    let from = arrival.from;
    let handshake = timeout(HANDSHAKE_TIMEOUT, certificate.acceptor().accept(stream));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = async { drop(closing.wait_for(|closing| *closing).await) } => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve_connection(stream, arrival, router, closing).await,
        Ok(Err(error)) => tracing::debug!(%error, %from, "a handshake of an operator failed"),
        Err(_) => tracing::debug!(%from, "a handshake of an operator took too long"),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    arrival: Arrival,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(arrival.clone());
        let (router, started) = (router.clone(), tokio::task::yield_now());
        // A client that sends requests ahead must not keep the others from their turn.
        async move {
            started.await;
            router.call(request).await
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = async { drop(closing.wait_for(|closing| *closing).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "an operator's connection ended");
    }
}
