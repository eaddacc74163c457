//! Blocking HTTP client: hyper on a runtime with one worker thread.
//!
//! Proxy variables are ignored, since they are for the internet. Redirects are not followed, since the token would be
//! sent along. Connections are pooled.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Limit of concurrent requests and pooled connections. The service commits concurrent changes with one sync (group
/// commit); above a dozen requests there is no further gain.
pub const REQUESTS_AT_ONCE: usize = 16;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A streamed response without a byte for this long is lost. The stream of facts sends one every 15 s at least.
const IDLE_TIME_MAX: Duration = Duration::from_secs(45);
/// Limit of a buffered response body.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

pub struct Http {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// [`IDLE_TIME_MAX`], except in tests.
    idle_time_max: Duration,
}

/// Failure of a request.
#[derive(Debug)]
pub enum Failure {
    /// Timeout.
    Late(Duration),
    /// Connect or certificate error: the request was not sent.
    Unsent(Cause),
    /// Interrupted: the request may have been carried out.
    Broken(Cause),
    /// The response is longer than this.
    TooLong(usize),
}

type Cause = Box<dyn Error + Send + Sync>;

impl Http {
    /// A client without connections; `tls` verifies https servers.
    pub fn new(tls: ClientConfig) -> io::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIME_MAX));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_max_idle_per_host(REQUESTS_AT_ONCE);
        Ok(Self {
            runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build()?,
            client: client.build(https),
            idle_time_max: IDLE_TIME_MAX,
        })
    }

    /// Sends a request and reads the whole response, within a timeout.
    pub fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Bytes>, Failure> {
        self.exchange_limited(request, within, ANSWER_BYTES_MAX)
    }

    /// The same, for a response of at most `bytes_max`.
    pub fn exchange_limited(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Failure> {
        let exchange = async {
            let (head, body) = self.client.request(request).await?.into_parts();
            let body = Limited::new(body, bytes_max).collect().await;
            let body = body.map_err(|cause| match cause.is::<LengthLimitError>() {
                true => Failure::TooLong(bytes_max),
                false => Failure::Broken(cause),
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let exchanged = self.runtime.block_on(async { timeout(within, exchange).await });
        exchanged.unwrap_or(Err(Failure::Late(within)))
    }

    /// Sends a request and streams the response; the timeout covers only the response's head, [`IDLE_TIME_MAX`] the
    /// pauses in its body.
    pub fn open(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Reader<'_>>, Failure> {
        let opened = self.runtime.block_on(async { timeout(within, self.client.request(request)).await });
        let response = opened.map_err(|_| Failure::Late(within))??;
        Ok(response.map(|body| Reader { http: self, body, rest: Bytes::new(), limit: None }))
    }
}

/// A streamed response body.
pub struct Reader<'a> {
    http: &'a Http,
    body: Incoming,
    rest: Bytes,
    /// Limit of a read, if shorter than [`IDLE_TIME_MAX`]. A read that takes longer fails with `WouldBlock`.
    pub limit: Option<Duration>,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let idle = self.http.idle_time_max;
            let (within, kind) = match self.limit.filter(|limit| *limit < idle) {
                Some(limit) => (limit, io::ErrorKind::WouldBlock),
                None => (idle, io::ErrorKind::TimedOut),
            };
            let read = self.http.runtime.block_on(async { timeout(within, self.body.frame()).await });
            let silent = format!("no byte within {} s", within.as_secs());
            let read = read.map_err(|_| io::Error::new(kind, silent))?;
            let Some(frame) = read else { return Ok(0) };
            // The library's text is about its own parts.
            let lost = |_| io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was lost");
            self.rest = frame.map_err(lost)?.into_data().unwrap_or_default();
        }
        let taken = self.rest.split_to(out.len().min(self.rest.len()));
        out[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}

impl From<hyper_util::client::legacy::Error> for Failure {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        match error.is_connect() {
            true => Failure::Unsent(error.into()),
            false => Failure::Broken(error.into()),
        }
    }
}

impl Failure {
    /// The certificate error, if that is the cause.
    pub fn certificate_error(&self) -> Option<&rustls::Error> {
        let cause = match self {
            Failure::Late(_) | Failure::TooLong(_) => return None,
            Failure::Unsent(cause) | Failure::Broken(cause) => cause,
        };
        let tls = causes(&**cause).find_map(|error| error.downcast_ref::<rustls::Error>());
        tls.filter(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Late(within) => write!(f, "no answer within {} s", within.as_secs()),
            Failure::TooLong(bytes_max) => write!(f, "the answer is longer than {bytes_max} bytes"),
            // The innermost cause says what happened; hyper's outer errors do not help.
            Failure::Unsent(cause) | Failure::Broken(cause) => match causes(&**cause).last() {
                Some(last) => write!(f, "{last}"),
                None => write!(f, "{cause}"),
            },
        }
    }
}

// No source: the message already has the innermost cause.
impl Error for Failure {}

/// An error and its causes. `io::Error::source` skips the error it wraps, so that one is added.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread::JoinHandle;

    use super::*;
    use crate::trust::{Trust, tls};

    /// A server that answers one request with a chunk of one byte; its URL, and the open connection.
    fn server() -> (String, JoinHandle<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n").unwrap();
            stream
        });
        (url, server)
    }

    #[test]
    fn long_answers_and_broken_streams_are_reported_in_own_words() {
        let http = Http::new(tls(&Trust::Usual).unwrap()).unwrap();
        let within = Duration::from_secs(20);
        let request = |url: &str| Request::get(url).body(Full::default()).unwrap();
        let (url, server) = self::server();
        let failure = http.exchange_limited(request(&url), within, 0).unwrap_err();
        assert_eq!(failure.to_string(), "the answer is longer than 0 bytes");
        drop(server.join().unwrap());
        let (url, server) = self::server();
        let mut body = http.open(request(&url), within).unwrap().into_body();
        drop(server.join().unwrap());
        let error = body.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "the connection was lost");
    }

    #[test]
    fn silent_stream_is_lost() {
        let (url, server) = server();
        let http = Http {
            idle_time_max: Duration::from_millis(50),
            ..Http::new(tls(&Trust::Usual).unwrap()).unwrap()
        };
        let request = Request::get(&url).body(Full::default()).unwrap();
        let mut body = http.open(request, Duration::from_secs(20)).unwrap().into_body();
        let _open = server.join().unwrap();
        let mut text = Vec::new();
        let error = body.read_to_end(&mut text).unwrap_err();
        assert_eq!((text.as_slice(), error.kind()), (&b"a"[..], io::ErrorKind::TimedOut), "{error}");
    }
}
