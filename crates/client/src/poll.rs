//! What to ask next, and when: a pure machine, `(answer, now) → next`, without IO, clock or randomness.
//!
//! The rules it keeps, each for a reason:
//!
//! - **At most one poll a second**, counted from one poll's beginning to the next's, whatever the answer. Only a server
//!   that has said `Preference-Applied: wait` holds polls, and is asked again when it has answered one; even then there
//!   are no more than [`AHEAD_OF_PACE_MAX`] polls ahead of that pace.
//! - **Every poll that has a tag asks to wait** (`Prefer: wait`). A server that does not know that passes over it, and
//!   nothing about the pace changes. It costs nothing to ask, and there is no other way to learn that it can be had.
//! - **The first answer may take two minutes**, because a platform may only now begin to look for events. Later ones may
//!   not: whoever was too slow gets twice the time for the next, and no more. A question that got lost keeps the next
//!   from being asked, and a platform that is well again should be heard of before an eviction's half minute is over.
//! - **Failures back off**, with jitter, to some ten seconds: an eviction gives half a minute, and a poller that rests
//!   longer than that may as well not be there. `Retry-After` is honoured up to a minute.
//! - **An older api-version only where a refusal speaks of the version**, and newer ones again: see [`Versions`].
//! - **A document is the same if all of it is.** The incarnation alone does not tell: a platform that forgets a scope
//!   counts anew. For the same reason the document is asked for without its tag once a minute, and after a failure.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use crate::document::{Document, EventsVersion, ReadWarning, excerpt};
use crate::failure::{Failure, FailureKind};
use crate::versions::is_refused;
pub use crate::versions::{RAISE_INTERVAL, RETRY_INTERVAL, Versions};

/// From the beginning of a poll to the beginning of the next.
pub const PACE: Duration = Duration::from_secs(1);
/// How many polls may be ahead of [`PACE`] where the server lets polls wait: so many changes in a row are heard of at
/// once. Azure grants a VM five requests a second.
pub const AHEAD_OF_PACE_MAX: u32 = 4;
/// How long the first answer may take: the platform's documents say two minutes.
pub const FIRST_TIMEOUT: Duration = Duration::from_secs(120);
/// How long any later answer may take, beside the time that it was asked to wait.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take after one that took longer than that.
pub const SLOW_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a poll asks to wait where waiting was granted before. A broken connection is noticed after this, at the latest.
pub const WAIT: Duration = Duration::from_secs(30);
/// How long it asks to wait where it was not: short, for a server that waits without saying so.
pub const INITIAL_WAIT: Duration = Duration::from_secs(5);
/// How often the document is asked for without its tag, so that a tag that means something else by now does no harm.
pub const REFRESH: Duration = Duration::from_secs(60);
/// The rest after a failure doubles up to this, and has up to half of it as jitter on top.
pub const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// The longest `Retry-After` that is believed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollRequest {
    /// At which version.
    pub version: EventsVersion,
    /// The tag of the document that is held, as it came.
    pub if_none_match: Option<String>,
    /// How long the server is asked to wait for news.
    pub wait: Option<Duration>,
    /// How long the answer may take.
    pub timeout: Duration,
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct PollResponse {
    /// The status.
    pub status: u16,
    /// `ETag`, verbatim.
    pub etag: Option<String>,
    /// Whether `Preference-Applied` says that it waited, or would have.
    pub waited: bool,
    /// `Retry-After`, if it can be read.
    pub retry_after: Option<Duration>,
    /// `Date`, if it can be read.
    pub served_at: Option<Timestamp>,
    /// The body.
    pub body: Bytes,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    /// Another document than before.
    Changed {
        /// It.
        document: Document,
        /// At which version it was read.
        version: EventsVersion,
        /// What was odd about it.
        warnings: Vec<ReadWarning>,
    },
    /// The same as before.
    Unchanged,
    /// The version was refused, and another will be asked for.
    OtherVersion {
        /// What was refused.
        refused: EventsVersion,
        /// What comes next.
        next: EventsVersion,
    },
    /// No document.
    Failed(Failure),
}

/// What is remembered from poll to poll. Ticks count from any fixed point.
#[derive(Clone, Debug, Default)]
pub struct Poller {
    /// What comes after the version that was refused last, until one is answered.
    next_version: Option<EventsVersion>,
    cached: Option<CachedDocument>,
    /// The next poll may begin then.
    due: Duration,
    /// Where the pace is: a poll at every second since the first would begin the next then.
    paced: Duration,
    /// Whether the server lets polls wait.
    waits: bool,
    /// In a row.
    failures: u32,
    /// Whether the last poll took too long; none does before the first answer.
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

/// A poll that was begun.
#[derive(Clone, Debug)]
pub struct StartedPoll {
    /// What is asked.
    pub ask: PollRequest,
    at: Duration,
}

impl Poller {
    /// The first poll may begin at this tick.
    pub fn from(due: Duration) -> Self {
        Poller { due, ..Poller::default() }
    }

    /// Takes a document for the last that was read, as of this tick: the next poll is for what comes after it.
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

    /// At which tick the next poll may begin.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Begins a poll.
    pub fn begin(&mut self, versions: &mut Versions, now: Duration) -> StartedPoll {
        let version = match self.next_version {
            Some(next) => next,
            // While nothing is answered, what worked last is as good as anything.
            None if self.failures > 0 => versions.used(),
            None => versions.first_version(now),
        };
        // After a failure the answer is wanted now, and not when something happens.
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

    /// Takes in what was answered. `random` is any number, and decides how long a failed poller rests.
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
                    // Some servers send the tag anew, in another spelling.
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
        // What was asked for without its tag is answered at once by everybody, so it says nothing about waiting.
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

    /// A poll was answered as it should be; `at_once` where the next may begin ahead of the pace.
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
        // One that was late was waited for already.
        let rest = backoff_after(&failure, if late { 0 } else { self.failures }, random);
        self.failures = self.failures.saturating_add(1);
        self.slow |= late;
        self.due = self.due.max(now + rest);
        PollOutcome::Failed(failure)
    }

    /// The version was refused: another comes next, or all were, and it begins anew after a rest.
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

/// How long to rest after a failure, and so many before it in a row. `random` is any number.
pub(crate) fn backoff_after(failure: &Failure, failures_before: u32, random: u32) -> Duration {
    let rest = (PACE * 2_u32.saturating_pow(failures_before.min(8))).min(BACKOFF_MAX);
    let rest = rest.max(failure.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
    let jitter = rest.min(BACKOFF_MAX).mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0);
    rest + jitter
}

/// A refusal in a line: the status, and how the body begins.
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
