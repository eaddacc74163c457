//! The operator listener's listener: connections, their limits, and closing them in good order.
//!
//! hyper does the talking. What it leaves to its user is done here: a limit on connections, no head and no write that
//! takes for ever, and an end that lets requests under way finish, but not for ever.
//!
//! A connection has its slot before its handshake begins. When all slots are taken, a newcomer gets the slot of the
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
use notbefore_listener::log_limit::LogRateLimit;
use notbefore_listener::slots::AdmissionSlots;
use notbefore_listener::token_quotas::TokenQuotaLimits;
use notbefore_listener::write_timeout::WriteTimeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::access::ConnectionInfo;
use super::tls::Certificate;
use crate::clock::Stopwatch;
use crate::proxy::AddressPrefix;

/// How many connections operators may have open; people, scripts and dashboards, not a fleet.
const CONNECTIONS_MAX: usize = 512;
/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the handshake of an encrypted connection may take. A slot is taken before it begins, so that those who
/// never finish one are limited like everybody.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way have to finish when the server closes.
const CLOSING_GRACE: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept, which usually means that there are no files left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Whose connections the server takes, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorServerConfig {
    /// Reverse proxies: they have no share of the connections as a source, since they call for many.
    pub proxies: Vec<AddressPrefix>,
    /// Names that the server answers to on loopback, besides its certificate's and this machine's.
    pub hosts: Vec<HostName>,
    /// What one token may hold.
    pub limits: OperatorServerLimits,
}

/// What tokens may hold of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorServerLimits {
    /// Connections of one token.
    pub connections_per_token_max: usize,
    /// Streams of one token.
    pub streams_per_token_max: usize,
    /// Streams of all tokens together.
    pub streams_max: usize,
}

impl Default for OperatorServerLimits {
    fn default() -> Self {
        // A dashboard with a pool of connections, and half of all slots for streams.
        Self { connections_per_token_max: 64, streams_per_token_max: 64, streams_max: 256 }
    }
}

impl OperatorServerLimits {
    /// The slots of a server with these limits.
    pub fn slots(&self) -> Arc<AdmissionSlots> {
        let connections = Limits { connections: CONNECTIONS_MAX, per_token: self.connections_per_token_max };
        let streams = TokenQuotaLimits { per_token: self.streams_per_token_max, total: self.streams_max };
        AdmissionSlots::new(connections, streams)
    }
}

/// What the listener needs.
pub struct OperatorServer {
    /// Answers requests.
    pub router: Router,
    /// Connections are encrypted where there is one.
    pub certificate: Option<Arc<Certificate>>,
    /// Who is connected.
    pub slots: Arc<AdmissionSlots>,
    /// Where reverse proxies call from.
    pub proxies: Vec<AddressPrefix>,
}

impl OperatorServer {
    fn source(&self, from: SocketAddr) -> Source {
        Source::of(from.ip(), self.proxies.iter().any(|proxy| proxy.contains(from.ip())))
    }
}

/// Serves everyone who connects until `shutdown` turns true.
pub async fn serve(listener: TcpListener, server: OperatorServer, mut shutdown: watch::Receiver<bool>) {
    let stopwatch = Stopwatch::start();
    let (mut full, mut failing) = (LogRateLimit::default(), LogRateLimit::default());
    let closing = shutdown.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = shutdown.wait_for(|closing| *closing) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let (slot, has_closed_another) = server.slots.admit(server.source(from));
                    if has_closed_another && let Some(closed) = full.record(stopwatch.elapsed()) {
                        tracing::warn!(
                            %from,
                            closed,
                            limit = CONNECTIONS_MAX,
                            "too many connections of operators; closed the oldest without a token, of the source that has most"
                        );
                    }
                    let slot = Arc::new(slot);
                    // One whose address cannot be told is judged as if it had come by loopback.
                    let is_loopback = stream.local_addr().map_or(true, |at| at.ip().to_canonical().is_loopback());
                    let connection_info = ConnectionInfo { from, is_loopback, slot: Arc::clone(&slot) };
                    let (router, closing) = (server.router.clone(), closing.clone());
                    let certificate = server.certificate.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            () = serve_stream(stream, connection_info, router, certificate, closing) => {}
                            () = slot.evicted() => {}
                        }
                    });
                }
                Err(error) => {
                    if let Some(times) = failing.record(stopwatch.elapsed()) {
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
async fn serve_stream(
    stream: TcpStream,
    connection_info: ConnectionInfo,
    router: Router,
    certificate: Option<Arc<Certificate>>,
    mut closing: watch::Receiver<bool>,
) {
    // A socket that refuses the option is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream);
    let Some(certificate) = certificate else {
        return serve_connection(stream, connection_info, router, closing).await;
    };
    let from = connection_info.from;
    let handshake = timeout(HANDSHAKE_TIMEOUT, certificate.acceptor().accept(stream));
    let handshaken = tokio::select! {
        handshaken = handshake => handshaken,
        () = async { drop(closing.wait_for(|closing| *closing).await) } => return,
    };
    match handshaken {
        Ok(Ok(stream)) => serve_connection(stream, connection_info, router, closing).await,
        Ok(Err(error)) => tracing::debug!(%error, %from, "a handshake of an operator failed"),
        Err(_) => tracing::debug!(%from, "a handshake of an operator took too long"),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    connection_info: ConnectionInfo,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection_info.clone());
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
