//! The command line's side of the operator API: finds the service and its token, sends requests, repeats
//! what is safe to repeat, and turns problems into messages.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use notbefore_wire::operator::{IDEMPOTENCY_KEY, PAGE_MAX, Page, Problem};
use notbefore_wire::text::{printable, shorten};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, StatusCode};
use ureq::typestate::WithBody;
use ureq::{Agent, Body, RequestBuilder};
use uuid::Uuid;

use crate::args::Reach;
use crate::data_files::{DataFiles, read_small};
use crate::destination::{self, From, Known, Target, TokenOf};
use crate::fleet_apply::REQUESTS_AT_ONCE;
use crate::output;
use crate::trust::{self, Trust};

/// How often a request is tried whose outcome is not known; each try carries the same key.
const TRIES: usize = 4;
/// How long to wait for a service that does not answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait in all where the service asks to wait.
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);

/// How much of an answer that is not understood an error shows.
const ANSWER_CHARS_MAX: usize = 1_000;

/// A service that was found.
pub struct Client {
    agent: Agent,
    url: String,
    token: String,
}

/// What the service answered instead of doing it.
#[derive(Debug)]
pub struct Refused {
    /// The HTTP status.
    pub status: StatusCode,
    detail: String,
    /// The word for programs.
    pub code: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", printable(&self.detail), printable(&self.code))
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// The same refusal in other words.
    pub fn reworded(self, detail: &str) -> Self {
        Self { detail: detail.to_owned(), ..self }
    }
}

/// Percent-encodes what stands between two slashes of a path, or in a query.
pub fn encode(text: &str) -> String {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let one = |byte: u8| match harmless(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

impl Client {
    /// Finds the service: by its URL if one was said, else by what it has written into its data directory, as far as
    /// `destination` lets the token go there.
    pub fn find(reach: &Reach) -> Result<Self> {
        let files = DataFiles::open(reach.data_dir(), reach.names_data());
        let of_environment = token_of_environment()?;
        let no_token = |error| no_token(&files.path("operator.token"), &error);
        let (token, token_of) = match of_environment {
            Some(token) => (Ok(token), TokenOf::Environment),
            None => (files.token().map_err(no_token), TokenOf::Directory),
        };
        let (beside, directory) = files.url();
        // Without a URL there is no service to name; that there is no token says more.
        let token = match (token, &reach.operator_url) {
            (Err(error), None) => return Err(error),
            (token, _) => token,
        };
        let (target, from) = destination::choose(&Known {
            token: token_of,
            given: reach.operator_url.as_deref(),
            directory,
            beside: beside.as_deref(),
            without_tls: reach.is_without_tls(),
        })?;
        let Target { url, is_encrypted, .. } = target;
        let trust = match (&from, &reach.operator_ca) {
            (From::Given, Some(file)) => Trust::Authorities(file.clone()),
            (From::Directory, _) if is_encrypted => {
                let path = files.path("operator.ca");
                let pem = files.certificate();
                let pem =
                    pem.with_context(|| format!("cannot read the certificate in {}", path.display()))?;
                Trust::Exactly { path, pem }
            }
            (From::Given | From::Directory | From::BuiltIn(_), _) => Trust::Usual,
        };
        if let From::BuiltIn(Some(why)) = &from {
            output::complain(&format!(
                "notbefore: {why}, so the token goes to {url}; say --data or --operator-url for another service"
            ));
        }
        let token = token?;
        // Whatever proxy the environment names is for the internet, not for this.
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections_per_host(REQUESTS_AT_ONCE)
            .timeout_connect(Some(Duration::from_secs(5)));
        Ok(Self { agent: trust::agent(config.build(), &trust)?, url, token })
    }

    /// Reads something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let request = self.prepared(self.agent.get(self.at(path)));
        let response = request.config().timeout_global(Some(TIMEOUT)).build().call();
        read(response.map_err(|error| self.unreachable(error))?)
    }

    /// Reads a whole list, page by page.
    pub fn list<T: DeserializeOwned>(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Vec<T>> {
        self.list_first(path, query, usize::MAX)
    }

    /// Reads the first so many of a list, page by page.
    pub fn list_first<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        count: usize,
    ) -> Result<Vec<T>> {
        let said =
            query.iter().filter_map(|(name, value)| Some(format!("&{name}={}", encode(value.as_deref()?))));
        let query: String = said.collect();
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let limit = (count - items.len()).clamp(1, PAGE_MAX);
            let page: Page<T> = self.get(&format!("{path}?limit={limit}{query}{cursor}"))?;
            items.extend(page.items);
            match page.next {
                Some(next) if items.len() < count => cursor = format!("&cursor={next}"),
                Some(_) | None => return Ok(items),
            }
        }
    }

    /// Changes something with a POST.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.change(|| self.agent.post(self.at(path)), serde_json::to_vec(body)?)
    }

    /// Sends a POST without a body.
    pub fn post_empty<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.change(|| self.agent.post(self.at(path)), Vec::new())
    }

    /// Changes something with a PUT, if it is still at this revision.
    pub fn put_at<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        revision: Option<u64>,
    ) -> Result<T> {
        self.change(|| still_at(self.agent.put(self.at(path)), revision), serde_json::to_vec(body)?)
    }

    /// Removes something.
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.delete_at(path, None)
    }

    /// Removes something, if it is still at this revision.
    pub fn delete_at<T: DeserializeOwned>(&self, path: &str, revision: Option<u64>) -> Result<T> {
        let delete = || self.agent.delete(self.at(path)).force_send_body();
        self.change(|| still_at(delete(), revision), Vec::new())
    }

    /// Sends a change under one key, again and again until its outcome is known.
    fn change<T: DeserializeOwned>(
        &self,
        make: impl Fn() -> RequestBuilder<WithBody>,
        body: Vec<u8>,
    ) -> Result<T> {
        let key = Uuid::new_v4().to_string();
        let mut last = None;
        let (mut tries, mut waited) = (0, Duration::ZERO);
        while tries < TRIES {
            tries += 1;
            let request = self
                .prepared(make())
                .header(IDEMPOTENCY_KEY, &key)
                .header("Content-Type", "application/json");
            match request.config().timeout_global(Some(TIMEOUT)).build().send(&body) {
                Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
                    last = Some(
                        read::<T>(response).err().unwrap_or_else(|| anyhow!("the service is unavailable")),
                    );
                }
                Ok(response) => match asked_to_wait(&response).filter(|_| waited < WAIT_MAX) {
                    Some(wait) => {
                        wait_out(wait);
                        waited += wait;
                        tries -= 1;
                    }
                    None => return read(response),
                },
                // Nothing listens there, so nothing was sent.
                Err(error @ (ureq::Error::ConnectionFailed | ureq::Error::HostNotFound)) => {
                    return Err(self.unreachable(error));
                }
                Err(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Err(self.unreachable(ureq::Error::Io(error)));
                }
                Err(error) if distrust(&error).is_some() => return Err(self.unreachable(error)),
                Err(error) => last = Some(self.unreachable(error)),
            }
        }
        Err(last.unwrap_or_else(|| anyhow!("the service did not answer")))
    }

    /// Follows a stream of server-sent events; `see` gets each message's data and says whether to go on.
    pub fn stream(&self, path: &str, mut see: impl FnMut(&str) -> Result<bool>) -> Result<()> {
        let request = self.prepared(self.agent.get(self.at(path)));
        let mut response = request.call().map_err(|error| self.unreachable(error))?;
        if !response.status().is_success() {
            return read(response);
        }
        for line in BufReader::new(response.body_mut().as_reader()).lines() {
            if let Some(data) = line.context("the stream broke off")?.strip_prefix("data: ")
                && !see(data)?
            {
                return Ok(());
            }
        }
        bail!("the service has closed the stream")
    }

    /// Opens an answer that may be long, to be read as it comes.
    #[cfg(unix)]
    pub fn open(&self, path: &str) -> Result<impl io::Read + use<>> {
        let request = self.prepared(self.agent.get(self.at(path)));
        let request = request.config().timeout_recv_response(Some(TIMEOUT)).build();
        let response = request.call().map_err(|error| self.unreachable(error))?;
        match response.status().is_success() {
            true => Ok(response.into_body().into_reader()),
            false => Err(read::<serde_json::Value>(response)
                .err()
                .unwrap_or_else(|| anyhow!("the service answered something else"))),
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn prepared<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        request.header("Authorization", format!("Bearer {}", self.token))
    }

    fn unreachable(&self, error: ureq::Error) -> anyhow::Error {
        if matches!(error, ureq::Error::Timeout(_)) {
            return anyhow!("the service at {} did not answer within {} s", self.url, TIMEOUT.as_secs());
        }
        if let Some(error) = distrust(&error) {
            return anyhow!(
                "the service at {} could not prove who it is: {error}; for an authority of your own, or to trust its very certificate, say --operator-ca FILE or NOTBEFORE_CA",
                self.url
            );
        }
        anyhow!(
            "no service answers at {}: {error}; start one with 'notbefore serve', or say where it is with --operator-url or --data",
            self.url
        )
    }
}

/// How long the service asks to wait where a token makes more changes than it may at once. Other answers of this status
/// say no time, since nobody knows it.
fn asked_to_wait(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get("Retry-After")?.to_str().ok()?.parse().ok()?;
    (response.status() == StatusCode::TOO_MANY_REQUESTS).then_some(Duration::from_secs(seconds).min(WAIT_MAX))
}

/// Waits, and says once why it takes longer.
#[allow(
    clippy::disallowed_methods,
    reason = "the service has said how long; there is nothing else to wait for"
)]
fn wait_out(wait: Duration) {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        output::complain(
            "notbefore: this token makes more changes than it may at once; going on at its pace",
        );
    });
    std::thread::sleep(wait);
}

/// A change of what is still at a revision; 0 stands for what does not exist.
fn still_at(request: RequestBuilder<WithBody>, revision: Option<u64>) -> RequestBuilder<WithBody> {
    match revision {
        None => request,
        Some(0) => request.header("If-None-Match", "*"),
        Some(revision) => request.header("If-Match", format!("\"{revision}\"")),
    }
}

/// What is wrong with a certificate, if that is what an error is about.
fn distrust(error: &ureq::Error) -> Option<String> {
    let tls = if let ureq::Error::Rustls(error) = error {
        Some(error)
    } else if let ureq::Error::Io(error) = error {
        error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
    } else {
        None
    };
    tls.filter(|error| matches!(error, rustls::Error::InvalidCertificate(_))).map(ToString::to_string)
}

/// The token that the environment gives.
fn token_of_environment() -> Result<Option<String>> {
    match (std::env::var("NOTBEFORE_TOKEN"), std::env::var_os("NOTBEFORE_TOKEN_FILE")) {
        (Ok(token), _) => Ok(Some(token)),
        (Err(_), Some(file)) => {
            let file = Path::new(&file);
            let cannot = || format!("cannot read the token at {} (NOTBEFORE_TOKEN_FILE)", file.display());
            read_small(file).map(Some).with_context(cannot)
        }
        (Err(_), None) => Ok(None),
    }
}

fn no_token(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow!(
            "there is no token at {path}; start a service here with 'notbefore serve', say where its data is with --data DIR or NOTBEFORE_DATA, or give a token as NOTBEFORE_TOKEN"
        );
    }
    anyhow!("cannot read the token at {path}: {error}")
}

/// An answer as what it should be, or the problem it tells of.
fn read<T: DeserializeOwned>(mut response: Response<Body>) -> Result<T> {
    let status = response.status();
    let text = response.body_mut().with_config().limit(64 * 1024 * 1024).read_to_string()?;
    if status.is_success() {
        // An empty answer is the JSON `null`, which is what `()` is read from.
        let json = if text.is_empty() { "null" } else { text.as_str() };
        return serde_json::from_str(json).with_context(|| {
            format!("the service answered what this version does not understand: {}", shown(json))
        });
    }
    match serde_json::from_str::<Problem>(&text) {
        Ok(Problem { detail, code, .. }) => Err(Refused { status, detail, code }.into()),
        Err(_) => Err(anyhow!("the service answered {status}: {}", shown(&text))),
    }
}

/// The beginning of an answer, in one line.
fn shown(text: &str) -> String {
    printable(&shorten(text.trim(), ANSWER_CHARS_MAX))
}
