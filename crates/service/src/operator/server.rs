//! The server of the operator listener and the node listener: accepts connections, limits them, and closes them at
//! shutdown.
//!
//! hyper implements HTTP. This module adds a limit of connections, timeouts for heads and writes, and a graceful
//! shutdown with a time limit.
//!
//! A connection takes its slot before the TLS handshake. When all slots are taken, a new connection evicts the oldest
//! one without a valid token, of the source with the most connections ([`notbefore_listener::admission`]). `access`
//! marks a connection as authenticated.

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
use tokio_rustls::TlsAcceptor;

use super::access::ConnectionInfo;
use crate::clock::Stopwatch;
use crate::proxy::AddressPrefix;

/// Most open connections: enough for people, scripts and dashboards.
const CONNECTIONS_MAX: usize = 512;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that running requests get to finish at shutdown.
const CLOSING_GRACE: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which usually means that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorServerConfig {
    /// Reverse proxies. They are not limited as a source, because they call for many clients.
    pub proxies: Vec<AddressPrefix>,
    /// Accepted values of `Host` on loopback, besides the names of the certificate and of this machine.
    pub hosts: Vec<HostName>,
    pub limits: OperatorServerLimits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorServerLimits {
    pub connections_per_token_max: usize,
    pub streams_per_token_max: usize,
    pub streams_max: usize,
}

impl Default for OperatorServerLimits {
    fn default() -> Self {
        // Enough for a dashboard with a connection pool; streams get half of all slots.
        Self { connections_per_token_max: 64, streams_per_token_max: 64, streams_max: 256 }
    }
}

impl OperatorServerLimits {
    pub fn slots(&self) -> Arc<AdmissionSlots> {
        let connections = Limits { connections: CONNECTIONS_MAX, per_token: self.connections_per_token_max };
        let streams = TokenQuotaLimits { per_token: self.streams_per_token_max, total: self.streams_max };
        AdmissionSlots::new(connections, streams)
    }
}

/// The certificate of a listener.
pub trait TlsSource: Send + Sync {
    /// The acceptor for new connections.
    fn acceptor(&self) -> TlsAcceptor;
}

pub struct OperatorServer {
    /// The callers, for the log.
    pub callers: &'static str,
    pub router: Router,
    /// None without TLS.
    pub certificate: Option<Arc<dyn TlsSource>>,
    pub slots: Arc<AdmissionSlots>,
    /// Addresses of reverse proxies.
    pub proxies: Vec<AddressPrefix>,
}

impl OperatorServer {
    fn source(&self, from: SocketAddr) -> Source {
        Source::of(from.ip(), self.proxies.iter().any(|proxy| proxy.contains(from.ip())))
    }
}

/// Serves connections until `shutdown` becomes true.
pub async fn serve(listener: TcpListener, server: OperatorServer, mut shutdown: watch::Receiver<bool>) {
    let stopwatch = Stopwatch::start();
    let (mut full, mut failing) = (LogRateLimit::default(), LogRateLimit::default());
    let closing = shutdown.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = async { drop(shutdown.wait_for(|closing| *closing).await) } => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let (slot, has_closed_another) = server.slots.admit(server.source(from));
                    if has_closed_another && let Some(closed) = full.record(stopwatch.elapsed()) {
                        tracing::warn!(
                            %from,
                            closed,
                            limit = server.slots.connections_max(),
                            "too many connections of {}; closed the oldest one without a token, of the source with the most",
                            server.callers
                        );
                    }
                    let slot = Arc::new(slot);
                    // If the address is unknown, apply the stricter rule for loopback.
                    let is_loopback = stream.local_addr().map_or(true, |at| at.ip().to_canonical().is_loopback());
                    let connection_info = ConnectionInfo {
                        from,
                        is_loopback,
                        slot: Some(Arc::clone(&slot)),
                        sequence: Arc::default(),
                    };
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
                        tracing::warn!(%error, times, "cannot accept connections of {}; will retry", server.callers);
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
            "closing connections of {} that did not finish in time",
            server.callers
        );
        connections.shutdown().await;
    }
}

/// Does the TLS handshake if there is a certificate, and serves the connection.
async fn serve_stream(
    stream: TcpStream,
    connection_info: ConnectionInfo,
    router: Router,
    certificate: Option<Arc<dyn TlsSource>>,
    mut closing: watch::Receiver<bool>,
) {
    // An error only means more latency.
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
        Ok(Err(error)) => tracing::debug!(%error, %from, "TLS handshake failed"),
        Err(_) => tracing::debug!(%from, "TLS handshake timed out"),
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
        // Yield, so that a client that pipelines requests does not starve the others.
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
        tracing::debug!(%error, "connection failed");
    }
}
