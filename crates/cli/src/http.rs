//! HTTP as commands use it: hyper, on a runtime with one thread, behind calls that wait.
//!
//! Requests go straight to the service, since a proxy that the environment names is for the internet, and redirects are
//! not followed, since a token would go with them. Connections are kept for the next request.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How many requests are sent at a time at most, and so how many connections are kept. The service commits what comes together with one sync, so more
/// of them make better use of each; past a dozen or so there is nothing left to gain.
pub const REQUESTS_AT_ONCE: usize = 16;

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How much of an answer is read whole.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Connections, and who is believed at their other ends.
pub struct Http {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// It did not come in time.
    Late(Duration),
    /// There was no connection, or the other end was not believed: nothing was sent.
    Unsent(Cause),
    /// It broke off; what was asked for may have been done.
    Broken(Cause),
}

type Cause = Box<dyn Error + Send + Sync>;

impl Http {
    /// No connection yet; by https, the other end has to prove to `tls` who it is.
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
        })
    }

    /// Sends a request and reads the answer, all of it within a time.
    pub fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Bytes>, Failure> {
        let exchange = async {
            let (head, body) = self.client.request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(Failure::Broken)?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let exchanged = self.runtime.block_on(async { timeout(within, exchange).await });
        exchanged.unwrap_or(Err(Failure::Late(within)))
    }

    /// Sends a request, whose answer has to begin within a time, and is read as it comes.
    pub fn open(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Reader<'_>>, Failure> {
        let opened = self.runtime.block_on(async { timeout(within, self.client.request(request)).await });
        let response = opened.map_err(|_| Failure::Late(within))??;
        Ok(response.map(|body| Reader { runtime: &self.runtime, body, rest: Bytes::new() }))
    }
}

/// An answer that is read as it comes.
pub struct Reader<'a> {
    runtime: &'a Runtime,
    body: Incoming,
    rest: Bytes,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let Some(frame) = self.runtime.block_on(self.body.frame()) else { return Ok(0) };
            self.rest = frame.map_err(io::Error::other)?.into_data().unwrap_or_default();
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
    /// What is wrong with the other end's certificate, if that is why.
    pub fn certificate_error(&self) -> Option<&rustls::Error> {
        let cause = match self {
            Failure::Late(_) => return None,
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
            // The last cause says what happened; hyper's own words around it say where in hyper.
            Failure::Unsent(cause) | Failure::Broken(cause) => match causes(&**cause).last() {
                Some(last) => write!(f, "{last}"),
                None => write!(f, "{cause}"),
            },
        }
    }
}

// No source: the innermost cause is in the message already.
impl Error for Failure {}

/// An error and those behind it. An error of IO does not name the one that it holds as its source.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}
