//! Single requests to the platform: the document, an approval, a value of the instance metadata.
//!
//! A [`Client`] is cheap to clone; clones share the connection and the negotiated api-version. It does not retry,
//! except with an older api-version after a refusal. To follow the document use [`Watch`](crate::watch::Watch); to
//! retry an approval use [`Client::approve_within`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH};
use jiff::Timestamp;
use serde_json::json;

use crate::clock::Clock;
use crate::document::{self, Document, EventId, EventKind, EventStatus, EventsVersion, ReadWarning};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};
use crate::http::{HttpRequest, HttpResponse, Transport};
use crate::poll::{self, FIRST_TIMEOUT, PACE, PollRequest, PollResponse, backoff_after};
use crate::random;
use crate::versions::{Versions, is_refused, log_refusal};

/// Timeout of an approval after the platform's first response. The platform commits it to disk and may queue it.
const APPROVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of an instance metadata request.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Newest api-version to request. Older ones are used only if the platform refuses it.
    pub newest: EventsVersion,
}

impl From<EventsVersion> for Options {
    /// Defaults, with this newest api-version.
    fn from(newest: EventsVersion) -> Self {
        Options { newest }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::from(EventsVersion::NEWEST)
    }
}

/// A client of one endpoint.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    options: Options,
    clock: Clock,
    shared: Mutex<SharedState>,
    /// Whether the platform has responded yet.
    has_answered: AtomicBool,
}

/// State shared by all clones.
#[derive(Debug)]
struct SharedState {
    versions: Versions,
    /// When the document was last requested.
    asked_at: Option<Duration>,
}

/// A document with its metadata.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The document.
    pub document: Document,
    /// Deviations that the parser tolerated.
    pub warnings: Vec<ReadWarning>,
    /// The platform's clock, if reported.
    pub served_at: Option<Timestamp>,
    /// The api-version of the document.
    pub version: EventsVersion,
    /// The raw body.
    pub body: Bytes,
    /// Its tag, verbatim.
    pub(crate) etag: Option<String>,
    /// Tick of the client's clock at the response.
    pub(crate) read_at: Duration,
}

/// Outcome of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Accepted by the platform.
    Accepted,
    /// Refused, but the event has started or is gone: approval no longer matters.
    Moot,
}

/// Why an event was not approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    /// Refused, and the event still waits.
    #[error("refused: {0}")]
    Refused(String),
    /// Not sent, or a response that may be temporary.
    #[error("{0}")]
    Transient(Failure),
}

impl Client {
    /// A client of this endpoint. Sends nothing yet.
    pub fn new(endpoint: Endpoint, options: Options) -> Self {
        let shared = Mutex::new(SharedState { versions: Versions::new(options.newest), asked_at: None });
        let (transport, has_answered) = (Transport::new(endpoint), AtomicBool::new(false));
        Client { inner: Arc::new(Inner { transport, options, clock: Clock::start(), shared, has_answered }) }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.transport.endpoint()
    }

    /// The options.
    pub fn options(&self) -> Options {
        self.inner.options
    }

    /// Requests the document. The first response of a platform may take two minutes.
    pub async fn get(&self) -> Result<Reading, Failure> {
        self.get_within(FIRST_TIMEOUT).await
    }

    async fn get_within(&self, timeout: Duration) -> Result<Reading, Failure> {
        let mut version = self.shared().versions.first_version(self.now());
        loop {
            let began = self.now();
            let ask = PollRequest { version, if_none_match: None, wait: None, timeout };
            let answer = self.poll(ask).await?;
            match answer.status {
                200 => {
                    self.uses(version);
                    return self.reading(answer, version);
                }
                status if is_refused(version, status, &answer.body) => {
                    let older = self.version_after_refusal(version, began).await;
                    version = older.ok_or_else(|| self.unexpected(&answer))?;
                }
                _ => return Err(self.unexpected(&answer)),
            }
        }
    }

    /// The version to request after a refusal. Waits for the rate limit first.
    async fn version_after_refusal(&self, refused: EventsVersion, began: Duration) -> Option<EventsVersion> {
        let next = self.shared().versions.after(refused)?;
        log_refusal(self.endpoint(), refused, next);
        self.inner.clock.until(began.saturating_add(PACE)).await;
        Some(next)
    }

    fn reading(&self, answer: PollResponse, version: EventsVersion) -> Result<Reading, Failure> {
        let unreadable = |error| Failure::unreadable(self.endpoint(), error);
        let (document, warnings) = Document::read_with_warnings(&answer.body, version).map_err(unreadable)?;
        let PollResponse { served_at, body, etag, .. } = answer;
        Ok(Reading { document, warnings, served_at, version, body, etag, read_at: self.now() })
    }

    /// Approves this event only. A refusal is [`Approval::Moot`] if the event has started or is gone. At an older
    /// api-version, which hides some types, absence does not prove that.
    pub async fn approve(&self, event: &EventId) -> Result<Approval, ApproveError> {
        if event.is_synthetic() {
            return Err(ApproveError::Refused(
                "the platform gave this event no id to approve it by".to_owned(),
            ));
        }
        let mut version = self.shared().versions.used();
        let refused = loop {
            let began = self.now();
            let received = self.post(event, version).await.map_err(ApproveError::Transient)?;
            let answer = PollResponse::from(received);
            match answer.status {
                200..=299 => {
                    self.uses(version);
                    return Ok(Approval::Accepted);
                }
                status if is_refused(version, status, &answer.body) => {
                    match self.version_after_refusal(version, began).await {
                        Some(older) => version = older,
                        None => break self.unexpected(&answer),
                    }
                }
                _ => break self.unexpected(&answer),
            }
        };
        let refused_for_good =
            matches!(refused.kind, FailureKind::Status(400..=499)) && !refused.kind.may_pass();
        if !refused_for_good {
            return Err(ApproveError::Transient(refused));
        }
        let reading = self.get_within(APPROVE_TIMEOUT).await.map_err(ApproveError::Transient)?;
        match reading.document.events.iter().find(|listed| listed.id == *event) {
            Some(listed) if listed.status == EventStatus::Started => Ok(Approval::Moot),
            Some(_) => Err(ApproveError::Refused(refused.text)),
            None if self.hides_events(reading.version) => Err(ApproveError::Transient(Failure {
                text: format!(
                    "{}; whether the event still waits cannot be seen at api-version {}",
                    refused.text, reading.version
                ),
                ..refused
            })),
            None => Ok(Approval::Moot),
        }
    }

    /// Whether this version hides events that the newest one lists.
    fn hides_events(&self, version: EventsVersion) -> bool {
        EventKind::hidden_at(version) != EventKind::hidden_at(self.inner.options.newest)
    }

    /// Like [`Client::approve`], retried for `time` with the exponential backoff and jitter of polls. Refusals are
    /// not retried.
    pub async fn approve_within(&self, event: &EventId, time: Duration) -> Result<Approval, ApproveError> {
        let give_up_at = self.now().saturating_add(time);
        let mut failures = 0_u32;
        loop {
            let failure = match self.approve(event).await {
                Err(ApproveError::Transient(failure)) => failure,
                settled => return settled,
            };
            let due = self.now().saturating_add(backoff_after(&failure, failures, random::number()));
            if due > give_up_at {
                return Err(ApproveError::Transient(failure));
            }
            failures = failures.saturating_add(1);
            self.inner.clock.until(due).await;
        }
    }

    async fn post(&self, event: &EventId, version: EventsVersion) -> Result<HttpResponse, Failure> {
        let body = json!({"StartRequests": [{"EventId": event.as_str()}]}).to_string();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = HttpRequest { method: Method::POST, target: target(version), headers, body: body.into() };
        let has_answered = self.inner.has_answered.load(Ordering::Relaxed);
        self.exchange(sent, if has_answered { APPROVE_TIMEOUT } else { FIRST_TIMEOUT }).await
    }

    /// Sends one poll.
    pub(crate) async fn poll(&self, ask: PollRequest) -> Result<PollResponse, Failure> {
        let mut sent = HttpRequest::get(target(ask.version));
        // A tag from a response header is valid in a request header.
        if let Some(tag) = ask.if_none_match.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
            sent.headers.insert(IF_NONE_MATCH, tag);
        }
        if let Some(wait) =
            ask.wait.and_then(|wait| HeaderValue::from_str(&format!("wait={}", wait.as_secs())).ok())
        {
            sent.headers.insert("prefer", wait);
        }
        self.shared().asked_at = Some(self.now());
        self.exchange(sent, ask.timeout).await.map(PollResponse::from)
    }

    /// A value of the instance metadata, as text.
    pub(crate) async fn metadata(&self, path: &str, version: &str) -> Result<String, Failure> {
        let sent = HttpRequest::get(format!("/metadata/instance/{path}?api-version={version}&format=text"));
        let received = self.exchange(sent, METADATA_TIMEOUT).await?;
        match received.status {
            200 => Ok(String::from_utf8_lossy(&received.body).into_owned()),
            _ => Err(self.unexpected(&PollResponse::from(received))),
        }
    }

    async fn exchange(&self, sent: HttpRequest, answer_within: Duration) -> Result<HttpResponse, Failure> {
        let received = self.inner.transport.exchange(sent, answer_within).await?;
        self.inner.has_answered.store(true, Ordering::Relaxed);
        Ok(received)
    }

    fn unexpected(&self, answer: &PollResponse) -> Failure {
        let text = format!("{}: {}", self.endpoint(), poll::describe_response(answer.status, &answer.body));
        let failure = Failure::new(FailureKind::Status(answer.status), text);
        Failure { retry_after: answer.retry_after, ..failure }
    }

    /// Records a working api-version for later requests.
    fn uses(&self, version: EventsVersion) {
        self.shared().versions.uses(version, self.now());
    }

    /// Accesses the shared version state.
    pub(crate) fn with_versions<T>(&self, use_them: impl FnOnce(&mut Versions) -> T) -> T {
        use_them(&mut self.shared().versions)
    }

    /// Earliest tick of [`Client::clock`] for the next document request.
    pub(crate) fn due(&self) -> Duration {
        self.shared().asked_at.map(|at| at.saturating_add(PACE)).unwrap_or_default()
    }

    pub(crate) fn clock(&self) -> Clock {
        self.inner.clock
    }

    fn now(&self) -> Duration {
        self.inner.clock.now().tick
    }

    fn shared(&self) -> MutexGuard<'_, SharedState> {
        self.inner.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<HttpResponse> for PollResponse {
    fn from(received: HttpResponse) -> Self {
        let served_at = received.header("date").and_then(document::time::read);
        PollResponse {
            status: received.status,
            etag: received.header("etag").map(str::to_owned),
            waited: received.header("preference-applied").is_some_and(waited),
            retry_after: received.header("retry-after").and_then(|text| retry_after(text, served_at)),
            served_at,
            body: received.body,
        }
    }
}

fn target(version: EventsVersion) -> String {
    format!("/metadata/scheduledevents?api-version={version}")
}

/// Whether `Preference-Applied` confirms a wait.
fn waited(applied: &str) -> bool {
    applied.split([',', ';']).filter_map(|one| one.split_once('=')).any(|(name, value)| {
        let seconds = value.trim().trim_matches('"').parse::<u64>();
        name.trim().eq_ignore_ascii_case("wait") && seconds.is_ok_and(|seconds| seconds > 0)
    })
}

/// `Retry-After`: seconds, or a time relative to the response's `Date`.
fn retry_after(text: &str, served_at: Option<Timestamp>) -> Option<Duration> {
    let seconds = text.trim().parse().map(Duration::from_secs).ok();
    seconds.or_else(|| Duration::try_from(document::time::read(text)? - served_at?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preference_applied_wait_is_parsed() {
        for (applied, expected) in [
            ("wait=60", true),
            ("Wait = \"5\"", true),
            ("return=minimal, wait=1", true),
            ("wait=0", false),
            ("wait", false),
            ("respond-async", false),
            ("wait=long", false),
            ("waiting=5", false),
            ("", false),
        ] {
            assert_eq!(waited(applied), expected, "{applied}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_time() {
        let served_at = "2016-09-19T18:29:47Z".parse().ok();
        assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Mon, 19 Sep 2016 18:30:00 GMT", served_at), Some(Duration::from_secs(13)));
        assert_eq!(retry_after("Mon, 19 Sep 2016 18:29:00 GMT", served_at), None);
        assert_eq!(retry_after("Mon, 19 Sep 2016 18:30:00 GMT", None), None);
        assert_eq!(retry_after("soon", served_at), None);
    }
}
