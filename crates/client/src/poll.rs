//! Polling schedule: a pure state machine, `(response, now) → next request`, without IO, clock or randomness.
//!
//! - **Rate limit**: at most one poll a second, from start to start. Only for a server that applies long polls
//!   (`Preference-Applied: wait`) the next poll follows at once, at most [`AHEAD_OF_PACE_MAX`] polls ahead of that
//!   rate.
//! - **Long poll**: every poll with a tag sends `Prefer: wait`. Servers without long polls ignore it.
//! - **Timeouts**: the first response may take two minutes, because a platform may start to look for events only
//!   then. After a timeout, the next request gets twice the usual time. Longer timeouts would delay the detection of
//!   a Preempt event beyond its 30 seconds.
//! - **Exponential backoff with jitter** after failures, up to about ten seconds. `Retry-After` is honoured up to a
//!   minute.
//! - **Version fallback**: an older api-version only if a refusal names the version, and newer ones again later; see
//!   [`Versions`].
//! - **Change detection by content**: equal incarnations are no proof, because a platform may reset its counter. For
//!   the same reason the document is requested without its tag once a minute, and after a failure.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use crate::document::{Document, EventsVersion, ReadWarning, excerpt};
use crate::failure::{Failure, FailureKind};
use crate::versions::is_refused;
pub use crate::versions::{RAISE_INTERVAL, RETRY_INTERVAL, Versions};

/// Minimum interval between the starts of two polls.
pub const PACE: Duration = Duration::from_secs(1);
/// How many polls may be ahead of [`PACE`] on a server with long polls, so that several changes in a row arrive at
/// once. Azure allows a VM five requests a second.
pub const AHEAD_OF_PACE_MAX: u32 = 4;
/// Timeout of the first response; the platform's documentation says two minutes.
pub const FIRST_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of later responses, in addition to the requested wait.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a response after one that timed out.
pub const SLOW_TIMEOUT: Duration = Duration::from_secs(20);
/// Requested wait if the server applied it before. A broken connection is detected after this time at the latest.
pub const WAIT: Duration = Duration::from_secs(30);
/// Requested wait before that: short, for a server that waits without reporting it.
pub const INITIAL_WAIT: Duration = Duration::from_secs(5);
/// Interval of requests without the tag, in case the tag has become ambiguous.
pub const REFRESH: Duration = Duration::from_secs(60);
/// Limit of the exponential backoff; jitter adds up to half of it.
pub const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// Longest `Retry-After` that is honoured.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A poll request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollRequest {
    /// Requested api-version.
    pub version: EventsVersion,
    /// `If-None-Match`: the tag of the current document, verbatim.
    pub if_none_match: Option<String>,
    /// Requested long-poll time.
    pub wait: Option<Duration>,
    /// Timeout of the response.
    pub timeout: Duration,
}

/// A poll response.
#[derive(Clone, Debug)]
pub struct PollResponse {
    /// HTTP status.
    pub status: u16,
    /// `ETag`, verbatim.
    pub etag: Option<String>,
    /// Whether `Preference-Applied` confirms the wait.
    pub waited: bool,
    /// `Retry-After`, if valid.
    pub retry_after: Option<Duration>,
    /// `Date`, if valid.
    pub served_at: Option<Timestamp>,
    /// The body.
    pub body: Bytes,
}

/// Meaning of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    /// A new document.
    Changed {
        /// The document.
        document: Document,
        /// The api-version of the document.
        version: EventsVersion,
        /// Deviations that the parser tolerated.
        warnings: Vec<ReadWarning>,
    },
    /// No change.
    Unchanged,
    /// The api-version was refused; the next poll uses another.
    OtherVersion {
        /// The refused version.
        refused: EventsVersion,
        /// The next version.
        next: EventsVersion,
    },
    /// No document.
    Failed(Failure),
}

/// State between polls. Ticks count from any fixed point.
#[derive(Clone, Debug, Default)]
pub struct Poller {
    /// Version to request after a refusal, until one is answered.
    next_version: Option<EventsVersion>,
    cached: Option<CachedDocument>,
    /// Earliest start of the next poll.
    due: Duration,
    /// Rate limiter: start of the next poll if all polls had kept [`PACE`].
    paced: Duration,
    /// Whether the server applies long polls.
    waits: bool,
    /// Consecutive failures.
    failures: u32,
    /// Whether the last poll timed out; false before the first response.
    slow: bool,
    has_answer: bool,
    refresh_at: Duration,
}

#[derive(Clone, Debug)]
struct CachedDocument {
    version: EventsVersion,
    etag: Option<String>,
    document: Document,
}

/// A poll in progress.
#[derive(Clone, Debug)]
pub struct StartedPoll {
    /// The request to send.
    pub ask: PollRequest,
    at: Duration,
}

impl Poller {
    /// A poller whose first poll may start at this tick.
    pub fn from(due: Duration) -> Self {
        Poller { due, ..Poller::default() }
    }

    /// Uses a document read at this tick as the current one.
    pub fn has_read(
        &mut self,
        document: Document,
        version: EventsVersion,
        etag: Option<String>,
        at: Duration,
    ) {
        self.has_answer = true;
        self.refresh_at = at + REFRESH;
        self.cached = Some(CachedDocument { version, etag, document });
    }

    /// Earliest tick of the next poll.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Starts a poll.
    pub fn begin(&mut self, versions: &mut Versions, now: Duration) -> StartedPoll {
        let version = match self.next_version {
            Some(next) => next,
            // During an outage, keep the version that worked last.
            None if self.failures > 0 => versions.used(),
            None => versions.first_version(now),
        };
        // After a failure, request an immediate response.
        let plain = self.failures > 0 || now >= self.refresh_at;
        let held = self.cached.as_ref().filter(|held| held.version == version && !plain);
        let if_none_match = held.and_then(|held| held.etag.clone());
        let wait = if_none_match.is_some().then_some(if self.waits { WAIT } else { INITIAL_WAIT });
        let patience = match (self.has_answer, self.slow) {
            (false, _) => FIRST_TIMEOUT,
            (true, false) => TIMEOUT,
            (true, true) => SLOW_TIMEOUT,
        };
        let ask = PollRequest { version, if_none_match, wait, timeout: patience + wait.unwrap_or_default() };
        self.paced = self.paced.max(now) + PACE;
        StartedPoll { ask, at: now }
    }

    /// Processes a response. `random` is any number, used for jitter.
    pub fn answered(
        &mut self,
        versions: &mut Versions,
        begun: &StartedPoll,
        response: Result<PollResponse, Failure>,
        now: Duration,
        random: u32,
    ) -> PollOutcome {
        let StartedPoll { ask, at } = begun;
        self.due = (*at + PACE).max(now);
        let answer = match response {
            Ok(answer) => answer,
            Err(failure) => return self.failed(failure, now, random),
        };
        self.slow = false;
        match answer.status {
            200 => self.read(versions, ask, answer, now, random),
            304 => match &mut self.cached {
                Some(held) if held.version == ask.version && ask.if_none_match.is_some() => {
                    // Some servers resend the tag in another spelling.
                    if answer.etag.is_some() {
                        held.etag = answer.etag;
                    }
                    let in_vain = now < *at + PACE;
                    self.record_success(answer.waited && !in_vain, Some(answer.waited), now);
                    PollOutcome::Unchanged
                }
                _ => {
                    self.cached = None;
                    let text = "304 Not Modified, and nothing was there to be modified";
                    self.failed(Failure::new(FailureKind::Status(304), text), now, random)
                }
            },
            status if is_refused(ask.version, status, &answer.body) => {
                self.refused(versions, ask, &answer, now, random)
            }
            status => {
                let failure =
                    Failure::new(FailureKind::Status(status), describe_response(status, &answer.body));
                self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, random)
            }
        }
    }

    fn read(
        &mut self,
        versions: &mut Versions,
        ask: &PollRequest,
        answer: PollResponse,
        now: Duration,
        random: u32,
    ) -> PollOutcome {
        let (document, warnings) = match Document::read_with_warnings(&answer.body, ask.version) {
            Ok(read) => read,
            Err(error) => {
                let failure = Failure::new(FailureKind::Unreadable, error.to_string());
                return self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, random);
            }
        };
        // Requests without a tag are answered at once by every server, so they say nothing about long polls.
        let waited = ask.wait.map(|_| answer.waited);
        self.record_success(waited.unwrap_or(self.waits), waited, now);
        versions.uses(ask.version, now);
        self.refresh_at = now + REFRESH;
        let same =
            self.cached.as_ref().is_some_and(|held| held.version == ask.version && held.document == document);
        self.cached =
            Some(CachedDocument { version: ask.version, etag: answer.etag, document: document.clone() });
        match same {
            true => PollOutcome::Unchanged,
            false => PollOutcome::Changed { document, version: ask.version, warnings },
        }
    }

    /// Records a valid response. `at_once`: the next poll may start ahead of the rate.
    fn record_success(&mut self, at_once: bool, waited: Option<bool>, now: Duration) {
        self.failures = 0;
        self.next_version = None;
        self.has_answer = true;
        self.waits = waited.unwrap_or(self.waits);
        if at_once {
            self.due = self.paced.saturating_sub(PACE * AHEAD_OF_PACE_MAX).max(now);
        }
    }

    fn failed(&mut self, failure: Failure, now: Duration, random: u32) -> PollOutcome {
        let late = failure.kind == FailureKind::TimedOut && self.has_answer;
        // After a timeout the delay has already passed.
        let rest = backoff_after(&failure, if late { 0 } else { self.failures }, random);
        self.failures = self.failures.saturating_add(1);
        self.slow |= late;
        self.due = self.due.max(now + rest);
        PollOutcome::Failed(failure)
    }

    /// The version was refused: continue with the next one, or start over after a delay if all were.
    fn refused(
        &mut self,
        versions: &mut Versions,
        ask: &PollRequest,
        answer: &PollResponse,
        now: Duration,
        random: u32,
    ) -> PollOutcome {
        self.next_version = versions.after(ask.version);
        if let Some(next) = self.next_version {
            return PollOutcome::OtherVersion { refused: ask.version, next };
        }
        self.cached = None;
        let failure =
            Failure::new(FailureKind::Status(answer.status), describe_response(answer.status, &answer.body));
        self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, random)
    }
}

/// Backoff delay after a failure and `failures_before` consecutive ones. `random` is any number.
pub(crate) fn backoff_after(failure: &Failure, failures_before: u32, random: u32) -> Duration {
    let rest = (PACE * 2_u32.saturating_pow(failures_before.min(8))).min(BACKOFF_MAX);
    let rest = rest.max(failure.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
    let jitter = rest.min(BACKOFF_MAX).mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0);
    rest + jitter
}

/// One line for messages: the status and the start of the body.
pub(crate) fn describe_response(status: u16, body: &[u8]) -> String {
    let reason = hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let head = format!("{status} {}", reason.unwrap_or_default());
    match excerpt(body) {
        start if start.is_empty() => head.trim_end().to_owned(),
        start => format!("{}: {start}", head.trim_end()),
    }
}

#[cfg(test)]
mod tests;
