//! One HTTP/2 connection to one endpoint, and gRPC calls on it.
//!
//! The connection is hyper's, without a pool and without a layer that could send a request twice. A call that returns an
//! error after it was handed to the connection may have reached etcd.
//!
//! Keep-alive: etcd closes a connection that is pinged more often than every 5 s, or without an open stream
//! (`--grpc-keepalive-min-time`). So pings are sent every 6 s, and only while a call or a watch is open.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::uri::PathAndQuery;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Status, Streaming};
use tower_service::Service;

use crate::alert::{Alert, ShowsAlert};
use crate::codec::BytesCodec;
use crate::config::Endpoint;
use crate::errors::{describe, find_source, is_local};
use crate::proto::{Call, WATCH_PATH, WatchCreateRequest, WatchRequest, WatchResponse};
use crate::tls::TlsConfig;

/// Largest response. A page of 100 records of 512 KiB fits.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// See the module docs.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(6);
/// A member that does not answer a ping for this long is gone, or the network is.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A call may fail a moment before its connection does.
const FAILURE_WAIT: Duration = Duration::from_millis(100);

/// Bytes that etcd may send ahead on one stream. A page of 4 MiB then takes few round trips.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// A TCP or TLS stream. As a trait object, so that HTTP/2 is compiled once.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// A connection that was established. It closes when the last call on it ends.
pub(crate) struct Connection {
    pub(crate) id: u64,
    grpc: Grpc<Sender>,
    driver: AbortHandle,
    /// What ended the connection. Calls on it get an error that does not say it.
    failure: watch::Receiver<Option<String>>,
    /// How many calls were answered; a connection on which none is looks dead.
    answers: AtomicU64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A peer that does not read would keep it open.
        self.driver.abort();
    }
}

/// What is sent with a call beside its message.
#[derive(Clone, Default)]
pub(crate) struct CallMetadata {
    pub(crate) token: Option<AsciiMetadataValue>,
    /// etcd stops work on the call after this time.
    pub(crate) timeout: Option<Duration>,
}

impl Connection {
    /// Connects: TCP, TLS, and the begin of HTTP/2. Waits as long as the peer lets it.
    pub(crate) async fn open(endpoint: &Endpoint, tls: Option<&TlsConfig>, id: u64) -> Result<Self, String> {
        Self::begin(dial(endpoint).await?, endpoint, tls, id).await
    }

    /// The same over a connection of TCP.
    pub(crate) async fn begin(
        tcp: TcpStream,
        endpoint: &Endpoint,
        tls: Option<&TlsConfig>,
        id: u64,
    ) -> Result<Self, String> {
        let Endpoint { tls_name, origin, host: _, port: _, text: _ } = endpoint;
        match (tls, tls_name) {
            (Some(tls), Some(name)) => {
                let connector = TlsConnector::from(tls.current());
                let stream = connector.connect(name.clone(), tcp).await;
                let stream = stream.map_err(|error| match find_source(&error) {
                    Some(error) => tls_error(error),
                    // A port of etcd without TLS closes the connection.
                    None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                        "it ends the TLS handshake; write http instead of https if it has no TLS".to_owned()
                    }
                    None => error.to_string(),
                })?;
                let stream = ShowsAlert::new(stream);
                let alert = stream.alert();
                Self::over(Box::new(stream), origin.clone(), id, alert).await
            }
            (None, _) | (_, None) => Self::over(Box::new(tcp), origin.clone(), id, Alert::default()).await,
        }
    }

    async fn over(stream: Box<dyn Duplex>, origin: http::Uri, id: u64, alert: Alert) -> Result<Self, String> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(KEEP_ALIVE_EVERY)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(false)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| describe(&error))?;
        let (fail, failure) = watch::channel(None);
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                fail.send_replace(Some(alert.get().map_or_else(|| describe(&error), tls_error)));
            }
        });
        let grpc = Grpc::with_origin(Sender(sender), origin).max_decoding_message_size(RESPONSE_BYTES_MAX);
        Ok(Self { id, grpc, driver: driver.abort_handle(), failure, answers: AtomicU64::new(0) })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.driver.is_finished()
    }

    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Relaxed)
    }

    /// Why a call on this connection has failed on this side.
    pub(crate) async fn why_lost(&self, status: &Status) -> String {
        let mut failure = self.failure.clone();
        let known = match timeout(FAILURE_WAIT, failure.wait_for(Option::is_some)).await {
            Ok(Ok(known)) => known.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        known.unwrap_or_else(|| describe(status))
    }

    /// One call. After an error, etcd may have executed it.
    pub(crate) async fn call<C: Call>(
        &self,
        message: C,
        metadata: CallMetadata,
    ) -> Result<C::Response, Status> {
        let method = Method { path: C::PATH, needs_leader: C::NEEDS_LEADER };
        let response = self.call_bytes(method, message.encode_to_vec().into(), metadata).await?;
        decode(response)
    }

    async fn call_bytes(
        &self,
        method: Method,
        message: Bytes,
        metadata: CallMetadata,
    ) -> Result<Bytes, Status> {
        let mut request = tonic::Request::new(message);
        add_metadata(&mut request, metadata, method.needs_leader);
        let path = PathAndQuery::from_static(method.path);
        let result = self.grpc.clone().unary(request, path, BytesCodec).await;
        if !result.as_ref().is_err_and(is_local) {
            self.answers.fetch_add(1, Relaxed);
        }
        result.map(tonic::Response::into_inner)
    }

    /// Creates a watch. It stays open until the responses are dropped.
    pub(crate) async fn watch(
        &self,
        create: WatchCreateRequest,
        token: Option<AsciiMetadataValue>,
    ) -> Result<WatchResponses, Status> {
        let create = WatchRequest { create: Some(create) }.encode_to_vec();
        // The end of the requests would close the watch.
        let requests = stream::once(std::future::ready(Bytes::from(create))).chain(stream::pending());
        let mut request = tonic::Request::new(requests);
        add_metadata(&mut request, CallMetadata { token, timeout: None }, true);
        let path = PathAndQuery::from_static(WATCH_PATH);
        let response = self.grpc.clone().streaming(request, path, BytesCodec).await?;
        Ok(WatchResponses(response.into_inner()))
    }
}

struct Method {
    path: &'static str,
    needs_leader: bool,
}

pub(crate) struct WatchResponses(Streaming<Bytes>);

impl WatchResponses {
    /// None at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<WatchResponse>, Status> {
        self.0.message().await?.map(decode).transpose()
    }
}

/// The status of a response that is not one has no source: etcd has answered.
fn decode<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(format!("etcd's answer cannot be read: {error}")))
}

fn add_metadata<T>(request: &mut tonic::Request<T>, metadata: CallMetadata, needs_leader: bool) {
    let CallMetadata { token, timeout } = metadata;
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    if needs_leader {
        request.metadata_mut().insert("hasleader", AsciiMetadataValue::from_static("true"));
    }
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
}

/// The service that tonic calls. Each request is sent once.
#[derive(Clone)]
struct Sender(SendRequest<Body>);

impl Service<Request<Body>> for Sender {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// The first step of [`Connection::open`]: TCP. If it fails, nothing answers at the endpoint.
pub(crate) async fn dial(endpoint: &Endpoint) -> Result<TcpStream, String> {
    let address = (&*endpoint.host, endpoint.port);
    let tcp = TcpStream::connect(address).await.map_err(|error| tcp_error(&error))?;
    // An error only means more latency.
    let _ = tcp.set_nodelay(true);
    Ok(tcp)
}

fn tcp_error(error: &std::io::Error) -> String {
    match error.kind() == std::io::ErrorKind::ConnectionRefused {
        true => "nothing listens there; check the port, and that etcd runs".to_owned(),
        false => error.to_string(),
    }
}

/// What an error of TLS means, with its cure.
#[expect(clippy::wildcard_enum_match_arm, reason = "the errors are rustls's")]
fn tls_error(error: &rustls::Error) -> String {
    use rustls::{AlertDescription as Alert, CertificateError, Error};
    match error {
        Error::InvalidMessage(_) => "it does not speak TLS; write http instead of https".to_owned(),
        Error::NoApplicationProtocol => "it does not speak HTTP/2; name etcd's port for clients".to_owned(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is not signed by the given authority; name the authority of etcd's server certificates with --etcd-ca"
                .to_owned()
        }
        Error::InvalidCertificate(
            error @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
        ) => format!("its certificate has another name ({error}); use a name or address of the certificate"),
        Error::InvalidCertificate(error) => format!("its certificate cannot be used: {error}"),
        Error::AlertReceived(Alert::CertificateRequired | Alert::HandshakeFailure | Alert::BadCertificate) => {
            "it refuses the connection without a valid client certificate; set --etcd-cert and --etcd-key to a pair that its --trusted-ca-file signs"
                .to_owned()
        }
        Error::AlertReceived(Alert::UnknownCA) => {
            "it does not know the authority of the client certificate; set --etcd-cert and --etcd-key to a pair that its --trusted-ca-file signs".to_owned()
        }
        Error::AlertReceived(alert @ (Alert::CertificateExpired | Alert::CertificateUnknown | Alert::AccessDenied)) => {
            format!("it refuses the client certificate ({alert:?}); renew it, or set another with --etcd-cert and --etcd-key")
        }
        other => format!("TLS failed: {other}"),
    }
}
