//! What to ask next, and when: a pure machine, `(answer, now) → next`, without IO, clock or randomness.
//!
//! The rules it keeps, each for a reason:
//!
//! - **At most one poll a second**, counted from one poll's beginning to the next's, whatever the answer. Only a server
//!   that has said `Preference-Applied: wait` holds polls, and is asked again when it has answered one; even then there
//!   are no more than [`HURRIED_MAX`] polls ahead of that pace.
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

use crate::document::{Document, EventsVersion, Oddity, start_of};
use crate::failure::{Failure, FailureKind};
use crate::versions::is_refused;
pub use crate::versions::{AGAIN, RAISE, Versions};

/// From the beginning of a poll to the beginning of the next.
pub const PACE: Duration = Duration::from_secs(1);
/// How many polls may be ahead of [`PACE`] where the server lets polls wait: so many changes in a row are heard of at
/// once. Azure grants a VM five requests a second.
pub const HURRIED_MAX: u32 = 4;
/// How long the first answer may take: the platform's documents say two minutes.
pub const FIRST_TIMEOUT: Duration = Duration::from_secs(120);
/// How long any later answer may take, beside the time that it was asked to wait.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take after one that took longer than that.
pub const SLOW_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a poll asks to wait where waiting was granted before. A broken connection is noticed after this, at the latest.
pub const WAIT: Duration = Duration::from_secs(30);
/// How long it asks to wait where it was not: short, for a server that waits without saying so.
pub const WAIT_AT_FIRST: Duration = Duration::from_secs(5);
/// How often the document is asked for without its tag, so that a tag that means something else by now does no harm.
pub const REFRESH: Duration = Duration::from_secs(60);
/// The rest after a failure doubles up to this, and has up to half of it as jitter on top.
pub const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// The longest `Retry-After` that is believed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
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
pub struct Answer {
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
pub enum Verdict {
    /// Another document than before.
    News {
        /// It.
        document: Document,
        /// At which version it was read.
        version: EventsVersion,
        /// What was odd about it.
        oddities: Vec<Oddity>,
    },
    /// The same as before.
    Same,
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
    held: Option<Held>,
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
    heard: bool,
    refresh_at: Duration,
}

#[derive(Clone, Debug)]
struct Held {
    version: EventsVersion,
    etag: Option<String>,
    document: Document,
}

/// A poll that was begun.
#[derive(Clone, Debug)]
pub struct Begun {
    /// What is asked.
    pub ask: Ask,
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
        self.heard = true;
        self.refresh_at = at + REFRESH;
        self.held = Some(Held { version, etag, document });
    }

    /// At which tick the next poll may begin.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Begins a poll.
    pub fn begin(&mut self, versions: &mut Versions, now: Duration) -> Begun {
        let version = match self.next_version {
            Some(next) => next,
            // While nothing is answered, what worked last is as good as anything.
            None if self.failures > 0 => versions.used(),
            None => versions.begin_with(now),
        };
        // After a failure the answer is wanted now, and not when something happens.
        let plain = self.failures > 0 || now >= self.refresh_at;
        let held = self.held.as_ref().filter(|held| held.version == version && !plain);
        let if_none_match = held.and_then(|held| held.etag.clone());
        let wait = if_none_match.is_some().then_some(if self.waits { WAIT } else { WAIT_AT_FIRST });
        let patience = match (self.heard, self.slow) {
            (false, _) => FIRST_TIMEOUT,
            (true, false) => TIMEOUT,
            (true, true) => SLOW_TIMEOUT,
        };
        let ask = Ask { version, if_none_match, wait, timeout: patience + wait.unwrap_or_default() };
        self.paced = self.paced.max(now) + PACE;
        Begun { ask, at: now }
    }

    /// Takes in what was answered. `dice` is any number, and decides how long a failed poller rests.
    pub fn answered(
        &mut self,
        versions: &mut Versions,
        begun: &Begun,
        heard: Result<Answer, Failure>,
        now: Duration,
        dice: u32,
    ) -> Verdict {
        let Begun { ask, at } = begun;
        self.due = (*at + PACE).max(now);
        let answer = match heard {
            Ok(answer) => answer,
            Err(failure) => return self.failed(failure, now, dice),
        };
        self.slow = false;
        match answer.status {
            200 => self.read(versions, ask, answer, now, dice),
            304 => match &mut self.held {
                Some(held) if held.version == ask.version && ask.if_none_match.is_some() => {
                    // Some servers send the tag anew, in another spelling.
                    if answer.etag.is_some() {
                        held.etag = answer.etag;
                    }
                    let in_vain = now < *at + PACE;
                    self.went_well(answer.waited && !in_vain, Some(answer.waited), now);
                    Verdict::Same
                }
                _ => {
                    self.held = None;
                    let text = "304 Not Modified, and nothing was there to be modified";
                    self.failed(Failure::new(FailureKind::Status(304), text), now, dice)
                }
            },
            status if is_refused(ask.version, status, &answer.body) => {
                self.refused(versions, ask, &answer, now, dice)
            }
            status => {
                let failure = Failure::new(FailureKind::Status(status), said(status, &answer.body));
                self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, dice)
            }
        }
    }

    fn read(
        &mut self,
        versions: &mut Versions,
        ask: &Ask,
        answer: Answer,
        now: Duration,
        dice: u32,
    ) -> Verdict {
        let (document, oddities) = match Document::read_closely(&answer.body, ask.version) {
            Ok(read) => read,
            Err(error) => {
                let failure = Failure::new(FailureKind::Unreadable, error.to_string());
                return self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, dice);
            }
        };
        // What was asked for without its tag is answered at once by everybody, so it says nothing about waiting.
        let waited = ask.wait.map(|_| answer.waited);
        self.went_well(waited.unwrap_or(self.waits), waited, now);
        versions.uses(ask.version, now);
        self.refresh_at = now + REFRESH;
        let same =
            self.held.as_ref().is_some_and(|held| held.version == ask.version && held.document == document);
        self.held = Some(Held { version: ask.version, etag: answer.etag, document: document.clone() });
        match same {
            true => Verdict::Same,
            false => Verdict::News { document, version: ask.version, oddities },
        }
    }

    /// A poll was answered as it should be; `at_once` where the next may begin ahead of the pace.
    fn went_well(&mut self, at_once: bool, waited: Option<bool>, now: Duration) {
        self.failures = 0;
        self.next_version = None;
        self.heard = true;
        self.waits = waited.unwrap_or(self.waits);
        if at_once {
            self.due = self.paced.saturating_sub(PACE * HURRIED_MAX).max(now);
        }
    }

    fn failed(&mut self, failure: Failure, now: Duration, dice: u32) -> Verdict {
        let late = failure.kind == FailureKind::TimedOut && self.heard;
        // One that was late was waited for already.
        let rest = rest_after(&failure, if late { 0 } else { self.failures }, dice);
        self.failures = self.failures.saturating_add(1);
        self.slow |= late;
        self.due = self.due.max(now + rest);
        Verdict::Failed(failure)
    }

    /// The version was refused: another comes next, or all were, and it begins anew after a rest.
    fn refused(
        &mut self,
        versions: &mut Versions,
        ask: &Ask,
        answer: &Answer,
        now: Duration,
        dice: u32,
    ) -> Verdict {
        self.next_version = versions.after(ask.version);
        if let Some(next) = self.next_version {
            return Verdict::OtherVersion { refused: ask.version, next };
        }
        self.held = None;
        let failure = Failure::new(FailureKind::Status(answer.status), said(answer.status, &answer.body));
        self.failed(Failure { retry_after: answer.retry_after, ..failure }, now, dice)
    }
}

/// How long to rest after a failure, and so many before it in a row. `dice` is any number.
pub(crate) fn rest_after(failure: &Failure, failures_before: u32, dice: u32) -> Duration {
    let rest = (PACE * 2_u32.saturating_pow(failures_before.min(8))).min(BACKOFF_MAX);
    let rest = rest.max(failure.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
    let jitter = rest.min(BACKOFF_MAX).mul_f64(f64::from(dice) / f64::from(u32::MAX) / 2.0);
    rest + jitter
}

/// A refusal in a line: the status, and how the body begins.
pub(crate) fn said(status: u16, body: &[u8]) -> String {
    let reason = hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let head = format!("{status} {}", reason.unwrap_or_default());
    match start_of(body) {
        start if start.is_empty() => head.trim_end().to_owned(),
        start => format!("{}: {start}", head.trim_end()),
    }
}

#[cfg(test)]
mod tests;
