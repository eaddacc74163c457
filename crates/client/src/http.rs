//! HTTP/1.1 transport with one kept connection.
//!
//! It connects directly, ignores proxy settings and follows no redirects: only the platform itself is trusted. A
//! connection closed while idle is reopened; one that breaks during a request is a failure, and the caller decides
//! about a retry. A request during another one opens its own connection.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::document::BODY_BYTES_MAX;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};

/// Connect timeout: the endpoint is at most one hop away, and a lost packet costs a second.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Largest response head. Platforms send about six headers; this is hyper's minimum.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Most headers in a response.
const HEADERS_MAX: usize = 64;
/// TCP keepalive: a long poll on a dead connection would miss the 30 seconds of a Preempt event.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(5))
    .with_interval(Duration::from_secs(2))
    .with_retries(3);
/// TCP user timeout: limit for unacknowledged data.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(10);

/// A request without the common headers.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// GET or POST.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Extra headers.
    pub headers: HeaderMap,
    /// The body; empty for a GET.
    pub body: Bytes,
}

impl HttpRequest {
    /// A GET request.
    pub fn get(target: String) -> Self {
        HttpRequest { method: Method::GET, target, headers: HeaderMap::new(), body: Bytes::new() }
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpResponse {
    /// A header's value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// An endpoint with its idle connection, if any.
#[derive(Debug)]
pub struct Transport {
    endpoint: Endpoint,
    host: HeaderValue,
    idle: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Transport {
    pub fn new(endpoint: Endpoint) -> Self {
        // A valid host contains only characters allowed in headers.
        let host =
            HeaderValue::from_str(&endpoint.authority()).unwrap_or(HeaderValue::from_static("invalid"));
        Transport { endpoint, host, idle: Mutex::new(None) }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and reads the response within a timeout; connecting has its own.
    pub async fn exchange(
        &self,
        sent: HttpRequest,
        answer_within: Duration,
    ) -> Result<HttpResponse, Failure> {
        let late = |_| self.failure(FailureKind::TimedOut, format!("no answer within {answer_within:?}"));
        let request = self.request(sent)?;
        let kept = self.idle().take().filter(|sender| !sender.is_closed());
        let answered = match kept {
            Some(sender) => timeout(answer_within, self.send(sender, request)).await.map_err(late)?,
            None => Err(SendError::Closed(Box::new(request))),
        };
        let (response, sender) = match answered {
            Ok(answered) => answered,
            Err(SendError::Closed(request)) => {
                let sender = self.connect().await?;
                let again = timeout(answer_within, self.send(sender, *request)).await.map_err(late)?;
                again.map_err(|unsent| unsent.failure(self))?
            }
            Err(SendError::Failed(failure)) => return Err(failure),
        };
        *self.idle() = Some(sender);
        Ok(response)
    }

    fn idle(&self) -> MutexGuard<'_, Option<SendRequest<Full<Bytes>>>> {
        // Only an allocation failure could panic while the lock is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self, kind: FailureKind, what: impl std::fmt::Display) -> Failure {
        Failure::new(kind, format!("{}: {what}", self.endpoint))
    }

    fn request(&self, sent: HttpRequest) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::new(Full::new(sent.body));
        *request.method_mut() = sent.method;
        *request.uri_mut() = sent.target.parse().map_err(|error| self.failure(FailureKind::Broken, error))?;
        let headers = request.headers_mut();
        *headers = sent.headers;
        headers.insert(hyper::header::HOST, self.host.clone());
        // Azure accepts only this spelling.
        headers.insert("metadata", HeaderValue::from_static("true"));
        headers.insert(
            hyper::header::USER_AGENT,
            HeaderValue::from_static(concat!("notbefore/", env!("CARGO_PKG_VERSION"))),
        );
        Ok(request)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let unreachable = |what: String| self.failure(FailureKind::Unreachable, what);
        let connecting = TcpStream::connect((self.endpoint.host(), self.endpoint.port()));
        let stream = timeout(CONNECT_TIME_MAX, connecting)
            .await
            .map_err(|_| unreachable(format!("no connection within {CONNECT_TIME_MAX:?}")))?
            .map_err(|error| unreachable(format!("cannot connect: {error}")))?;
        // Optional: without them, delays and failure detection are slower.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
        #[cfg(target_os = "linux")]
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIME_MAX));
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failure(FailureKind::Broken, error))?;
        // Ends with the sender. Errors reach the task that waits for the response.
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send(
        &self,
        mut sender: SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
    ) -> Result<(HttpResponse, SendRequest<Full<Bytes>>), SendError> {
        if sender.ready().await.is_err() {
            return Err(SendError::Closed(Box::new(request)));
        }
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                return Err(match error.take_message() {
                    Some(request) => SendError::Closed(Box::new(request)),
                    None => SendError::Failed(self.failure(FailureKind::Broken, reason(error.error()))),
                });
            }
        };
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|error| {
            let what = if error.is::<LengthLimitError>() {
                format!("the answer is larger than the limit of {BODY_BYTES_MAX} bytes")
            } else {
                format!("the answer broke off: {}", reason(error.as_ref()))
            };
            SendError::Failed(self.failure(FailureKind::Broken, what))
        })?;
        let received =
            HttpResponse { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes() };
        Ok((received, sender))
    }
}

/// An error with its causes; hyper's own message says little.
fn reason(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Why there is no response.
enum SendError {
    /// The connection closed before the request was sent.
    Closed(Box<Request<Full<Bytes>>>),
    /// Any other failure.
    Failed(Failure),
}

impl SendError {
    fn failure(self, transport: &Transport) -> Failure {
        match self {
            SendError::Closed(_) => {
                transport.failure(FailureKind::Broken, "the connection was closed at once")
            }
            SendError::Failed(failure) => failure,
        }
    }
}
