//! Client of the operator API: finds the service and its token, sends requests, retries changes under one idempotency
//! key, and turns problem responses into messages.

mod facts;
mod retries;
mod sse;

use std::env::VarError;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::Full;
use hyper::http::request::Builder;
use hyper::{Request, Response, StatusCode, header};
use notbefore_wire::operator::{IDEMPOTENCY_KEY, PAGE_MAX, Page, Problem};
use notbefore_wire::text::{printable, shorten};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::args::ConnectionArgs;
use crate::data_files::{DataFiles, read_small};
use crate::destination::{self, DestinationInput, Target, TokenSource, UrlSource};
use crate::http::{self, Failure, Http};
use crate::output;
use crate::pause::pause;
use crate::trust::{self, Trust};
pub use facts::Next;
use retries::{Attempt, Retries};

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Limit of a page that needs no token; the service's have less than 1 KiB.
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// Limit of a response quoted in an error.
const ANSWER_CHARS_MAX: usize = 1_000;

pub struct Client {
    http: Http,
    url: String,
    token: String,
}

/// A problem response of the service.
#[derive(Debug, thiserror::Error)]
#[error("{} ({})", printable(.detail), printable(.code))]
pub struct Refused {
    pub status: StatusCode,
    detail: String,
    /// The problem's machine-readable code.
    pub code: String,
}

impl Refused {
    /// Whether the service could not make sense of a value: its codes for that begin with `bad_`. A time that is too far
    /// ahead is such a value; some of them cannot even be sent.
    pub fn is_misunderstood(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
            && (self.code.starts_with("bad_") || self.code == "not_before_too_far")
    }

    pub fn with_detail(self, detail: &str) -> Self {
        Self { detail: detail.to_owned(), ..self }
    }

    #[cfg(test)]
    pub fn sample(detail: &str) -> Self {
        Self { status: StatusCode::CONFLICT, detail: detail.to_owned(), code: "sample".to_owned() }
    }
}

/// Whether the error is a problem response with this code.
pub fn has_code(error: &anyhow::Error, code: &str) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == code)
}

/// Percent-encodes a path segment or query value.
pub fn encode(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let one = |byte: u8| match unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

impl Client {
    /// Finds the service by the given URL, else by the URL in its data directory. `destination` decides whether the
    /// token may be sent there.
    pub fn find(reach: &ConnectionArgs) -> Result<Self> {
        Self::with_token(reach, token_of_environment()?)
    }

    /// The service of a data directory; the environment does not count.
    #[cfg(unix)]
    pub fn of_directory(directory: &Path) -> Result<Self> {
        let reach = ConnectionArgs {
            data: Some(directory.to_owned()),
            operator_url: None,
            operator_ca: None,
            operator_without_tls: None,
        };
        Self::with_token(&reach, None)
    }

    fn with_token(reach: &ConnectionArgs, of_environment: Option<String>) -> Result<Self> {
        let files = DataFiles::open(reach.data_dir(), reach.names_data());
        let no_token =
            |error| no_token(&files.path("operator.token"), files.path("operator.url").exists(), &error);
        let (token, token_of) = match of_environment {
            Some(token) => (Ok(token), TokenSource::Environment),
            None => (files.token().map_err(no_token), TokenSource::Directory),
        };
        let (beside, directory) = files.url();
        // Without a URL, the missing token is the more useful error.
        let token = match (token, &reach.operator_url) {
            (Err(error), None) => return Err(error),
            (token, _) => token,
        };
        let (target, from) = destination::choose(&DestinationInput {
            token: token_of,
            given: reach.operator_url.as_deref(),
            directory,
            beside: beside.as_deref(),
            without_tls: reach.is_without_tls(),
        })?;
        let http = http(&files, reach, &target, &from)?;
        if let UrlSource::BuiltIn(Some(why)) = &from {
            output::eprint(&format!(
                "notbefore: {why}, so the token goes to {}; use --data or --operator-url for another service",
                target.url
            ));
        }
        let token = token?;
        Ok(Self { http, url: target.url, token })
    }

    /// The service's URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.get_answer(path)?.read()
    }

    fn get_answer(&self, path: &str) -> Result<Answer> {
        let response = self.http.exchange(self.request(Request::get(self.at(path)), Vec::new())?, TIMEOUT);
        Answer::of(response.map_err(|failure| self.unreachable(&failure))?)
    }

    /// Reads a whole list, page by page.
    pub fn list<T: DeserializeOwned>(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Vec<T>> {
        self.list_first(path, query, usize::MAX)
    }

    /// Reads the first `count` items of a list, page by page.
    pub fn list_first<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        count: usize,
    ) -> Result<Vec<T>> {
        Ok(self.pages(path, query, count)?.0)
    }

    /// Reads a whole list, with the revision from which the stream continues.
    pub fn list_at_revision<T: DeserializeOwned>(&self, path: &str) -> Result<(Vec<T>, u64)> {
        self.pages(path, &[], usize::MAX)
    }

    /// The items of a list and the revision of its first page.
    fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        count: usize,
    ) -> Result<(Vec<T>, u64)> {
        let filters =
            query.iter().filter_map(|(name, value)| Some(format!("&{name}={}", encode(value.as_deref()?))));
        let query: String = filters.collect();
        let mut items = Vec::new();
        let (mut cursor, mut revision) = (String::new(), None);
        loop {
            let limit = (count - items.len()).clamp(1, PAGE_MAX);
            let page: Page<T> = self.get(&format!("{path}?limit={limit}{query}{cursor}"))?;
            items.extend(page.items);
            let revision = *revision.get_or_insert(page.revision);
            match page.next.map(|next| format!("&cursor={}", encode(&next))) {
                Some(next) if next == cursor => {
                    bail!("the service repeats a page of {path}; report this fault")
                }
                Some(next) if items.len() < count => cursor = next,
                Some(_) | None => return Ok((items, revision)),
            }
        }
    }

    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.change(Request::post(self.at(path)), serde_json::to_vec(body)?)?.read()
    }

    pub fn post_empty<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.change(Request::post(self.at(path)), Vec::new())?.read()
    }

    /// Sends a PUT, conditional on the revision if there is one.
    pub fn put_at<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        revision: Option<u64>,
    ) -> Result<T> {
        self.change(if_match(Request::put(self.at(path)), revision), serde_json::to_vec(body)?)?.read()
    }

    /// Sends a DELETE, conditional on the revision if there is one.
    pub fn delete_at<T: DeserializeOwned>(&self, path: &str, revision: Option<u64>) -> Result<T> {
        self.change(if_match(Request::delete(self.at(path)), revision), Vec::new())?.read()
    }

    /// Sends a change under one idempotency key, again if its outcome is unknown or the service asks to wait.
    fn change(&self, request: Builder, body: Vec<u8>) -> Result<Answer> {
        let request = request.header(IDEMPOTENCY_KEY, Uuid::new_v4().to_string());
        let request = self.request(request.header(header::CONTENT_TYPE, "application/json"), body)?;
        let mut retries = Retries::default();
        loop {
            let (error, attempt) = match self.http.exchange(request.clone(), TIMEOUT) {
                Ok(response) => {
                    let (status, retry_after) = (response.status(), retry_after(&response));
                    match (Answer::of(response), status, retry_after) {
                        (Err(error), StatusCode::TOO_MANY_REQUESTS, Some(wait)) => {
                            (error, Attempt::RateLimited(wait))
                        }
                        (Err(error), StatusCode::SERVICE_UNAVAILABLE, retry_after) => {
                            let is_outcome_unknown = has_code(&error, "outcome_unknown");
                            (error, Attempt::Unavailable { retry_after, is_outcome_unknown })
                        }
                        (result, ..) => return result,
                    }
                }
                Err(failure @ Failure::Unsent(_)) => (self.unreachable(&failure), Attempt::Unsent),
                Err(failure) => (self.unreachable(&failure), Attempt::Unanswered),
            };
            match retries.after(attempt) {
                Some(wait) => wait_for(wait, attempt),
                None if retries.may_be_done => {
                    return Err(error.context(
                        "the change may have been made: check with 'notbefore event list' or 'notbefore audit' before you repeat it",
                    ));
                }
                None => return Err(error),
            }
        }
    }

    /// Opens a response of any length as a stream.
    #[cfg(unix)]
    pub fn open(&self, path: &str) -> Result<http::Reader<'_>> {
        self.open_request(Request::get(self.at(path)))
    }

    fn open_request(&self, request: Builder) -> Result<http::Reader<'_>> {
        let request = self.request(request, Vec::new())?;
        let response = self.http.open(request, TIMEOUT).map_err(|failure| self.unreachable(&failure))?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let mut text = Vec::new();
        body.take(http::ANSWER_BYTES_MAX as u64).read_to_end(&mut text)?;
        let refused = Answer::of(Response::from_parts(head, text.into()));
        Err(refused.err().unwrap_or_else(|| anyhow!("unexpected response from the service")))
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn request(&self, request: Builder, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        request
            .body(body.into())
            .with_context(|| format!("cannot send a request to the service at {}", self.url))
    }

    fn unreachable(&self, failure: &Failure) -> anyhow::Error {
        unreachable(&self.url, failure)
    }
}

/// The HTTP client for a service, with the certificates that it may have.
fn http(files: &DataFiles, reach: &ConnectionArgs, target: &Target, from: &UrlSource) -> Result<Http> {
    let trust = match (from, &reach.operator_ca) {
        (UrlSource::Given, Some(file)) => Trust::Authorities(file.clone()),
        (UrlSource::Directory, _) if target.is_encrypted => {
            let path = files.path("operator.ca");
            let pem = files.certificate();
            let pem = pem.with_context(|| format!("cannot read the certificate in {}", path.display()))?;
            Trust::Exactly { path, pem }
        }
        (UrlSource::Given | UrlSource::Directory | UrlSource::BuiltIn(_), _) => Trust::Usual,
    };
    Ok(Http::new(trust::tls(&trust)?)?)
}

/// The response of a page that needs no token.
pub struct PageAnswer {
    /// The service's URL.
    pub url: String,
    pub status: StatusCode,
    pub text: String,
}

/// Gets a page that needs no token, in one request without one.
pub fn get_page(reach: &ConnectionArgs, page: &str, within: Duration) -> Result<PageAnswer> {
    let files = DataFiles::open(reach.data_dir(), reach.names_data());
    let (target, from) = match &reach.operator_url {
        Some(given) => (destination::target(given)?, UrlSource::Given),
        None => {
            let missing = || {
                let url = files.path("operator.url");
                anyhow!(
                    "no service runs here: there is no {}; start one with 'notbefore serve', or name another with --data or --operator-url",
                    url.display()
                )
            };
            (destination::target(&files.url().0.ok_or_else(missing)?)?, UrlSource::Directory)
        }
    };
    let http = http(&files, reach, &target, &from)?;
    let Target { url, .. } = target;
    let request = Request::get(format!("{url}{page}")).body(Full::default())?;
    let response = http
        .exchange_limited(request, within, PAGE_BYTES_MAX)
        .map_err(|failure| unreachable(&url, &failure))?;
    let (status, text) = (response.status(), String::from_utf8_lossy(response.body()));
    let text = shorten(text.trim(), ANSWER_CHARS_MAX);
    Ok(PageAnswer { url, status, text })
}

fn unreachable(url: &str, failure: &Failure) -> anyhow::Error {
    if let Failure::Late(within) = failure {
        return anyhow!("the service at {url} did not answer within {} s", within.as_secs());
    }
    if let Failure::TooLong(_) = failure {
        return anyhow!("{failure} at {url}; is it a service? Name another with --operator-url or --data");
    }
    if let Some(error) = failure.certificate_error() {
        return anyhow!(
            "cannot verify the certificate of the service at {url}: {error}; to trust your own CA or the certificate itself, use --operator-ca FILE or NOTBEFORE_CA"
        );
    }
    anyhow!(
        "cannot connect to the service at {url}: {failure}; start it with 'notbefore serve', or name another with --operator-url or --data"
    )
}

fn retry_after(response: &Response<Bytes>) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Waits before the next attempt of a change, and prints the reason once per process.
fn wait_for(wait: Duration, attempt: Attempt) {
    static PRINTED: std::sync::Once = std::sync::Once::new();
    let reason = match attempt {
        Attempt::RateLimited(_) => "rate limit of this token reached; continuing more slowly".to_owned(),
        Attempt::Unavailable { .. } => {
            format!("the service is unavailable; trying again every {} s", wait.as_secs())
        }
        Attempt::Unsent | Attempt::Unanswered => {
            "no response from the service; trying again every second".to_owned()
        }
    };
    PRINTED.call_once(|| output::eprint(&format!("notbefore: {reason}")));
    pause(wait, "the service asks to wait, or may be restarting");
}

/// Makes a request conditional on a revision; revision 0 requires that the resource does not exist.
fn if_match(request: Builder, revision: Option<u64>) -> Builder {
    match revision {
        None => request,
        Some(0) => request.header(header::IF_NONE_MATCH, "*"),
        Some(revision) => request.header(header::IF_MATCH, format!("\"{revision}\"")),
    }
}

/// The token from `NOTBEFORE_TOKEN` or `NOTBEFORE_TOKEN_FILE`. An empty variable is as one that is not set.
fn token_of_environment() -> Result<Option<String>> {
    let token = match std::env::var("NOTBEFORE_TOKEN") {
        Ok(token) if token.is_empty() => Err(VarError::NotPresent),
        token => token,
    };
    let file = std::env::var_os("NOTBEFORE_TOKEN_FILE").filter(|file| !file.is_empty());
    match (token, file) {
        (Ok(token), _) => Ok(Some(token)),
        (Err(VarError::NotUnicode(_)), _) => bail!("the value of NOTBEFORE_TOKEN is not UTF-8"),
        (Err(VarError::NotPresent), Some(file)) => {
            let file = Path::new(&file);
            let cannot = || format!("cannot read the token at {} (NOTBEFORE_TOKEN_FILE)", file.display());
            read_small(file).map(Some).with_context(cannot)
        }
        (Err(VarError::NotPresent), None) => Ok(None),
    }
}

/// `serves_here`: the directory has the URL of a service.
fn no_token(path: &Path, serves_here: bool, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match (error.kind() == io::ErrorKind::NotFound, serves_here) {
        (true, true) => anyhow!(
            "no token at {path}; the service of this directory has its token elsewhere: that of a cluster is on the node that led first, or where 'notbefore token init' wrote it. Copy it to {path}, or set NOTBEFORE_TOKEN_FILE or NOTBEFORE_TOKEN"
        ),
        (true, false) => anyhow!(
            "no token at {path}; start a service here with 'notbefore serve', name its data directory with --data DIR or NOTBEFORE_DATA, or set NOTBEFORE_TOKEN"
        ),
        (false, _) => anyhow!("cannot read the token at {path}: {error}"),
    }
}

/// A response that is no problem.
struct Answer {
    status: StatusCode,
    text: String,
}

impl Answer {
    /// Returns the problem of a response as an error.
    fn of(response: Response<Bytes>) -> Result<Self> {
        let status = response.status();
        let text = String::from_utf8_lossy(response.body());
        if status.is_success() {
            return Ok(Self { status, text: text.into_owned() });
        }
        if let (true, Some(to)) = (status.is_redirection(), response.headers().get(header::LOCATION)) {
            let to = shown(&String::from_utf8_lossy(to.as_bytes()));
            bail!(
                "the service answered {status}, a redirect to {to}; name the right URL with --operator-url"
            );
        }
        match serde_json::from_slice::<Problem>(text.as_bytes()) {
            Ok(Problem { detail, code, .. }) => Err(Refused { status, detail, code }.into()),
            Err(_) => Err(anyhow!("the service answered {status}: {}", shown(&text))),
        }
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T> {
        // An empty response parses as `()`, like the JSON `null`.
        let json = if self.text.is_empty() { "null" } else { &*self.text };
        serde_json::from_slice(json.as_bytes()).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: serde_json::Error) -> anyhow::Error {
        let what = if self.text.is_empty() { "it is empty".to_owned() } else { shown(&self.text) };
        let status = self.status;
        anyhow::Error::new(error)
            .context(format!("cannot read the response of the service, {status}: {what}"))
    }
}

/// The start of a response, on one line.
fn shown(text: &str) -> String {
    printable(&shorten(text.trim(), ANSWER_CHARS_MAX))
}
