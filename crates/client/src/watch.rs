//! Follows the document: [`Watch`] sends the polls that [`Poller`] schedules and yields updates.
//!
//! A poll in progress belongs to the watch, not to the call of [`Watch::next`]: dropping that future loses nothing
//! and repeats nothing (cancel-safe). Each poll runs in its own task, so its arrival time is exact; a late caller
//! gets the platform's time adjusted to the current instant.

use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::changes::Changes;
use crate::client::{Client, Reading};
use crate::clock::{Clock, Moment};
use crate::document::{Document, EventKind, EventsVersion, ReadWarning};
use crate::failure::{Failure, FailureKind};
use crate::poll::{PACE, PollOutcome, PollResponse, Poller, StartedPoll};
use crate::random;
use crate::versions::log_refusal;

/// Most warnings logged per document.
const WARNINGS_LOGGED_MAX: usize = 10;

/// Result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A new document.
    Document {
        /// The document.
        document: Document,
        /// The platform's current time, if reported: `Date` of the response plus the time since.
        served_at: Option<Timestamp>,
        /// The api-version of the document.
        version: EventsVersion,
    },
    /// A response without changes; only the time is new.
    Unchanged {
        /// The platform's current time.
        served_at: Option<Timestamp>,
    },
    /// No document. The last one stays valid.
    Outage(Outage),
}

/// Consecutive failed polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Class of the last failure.
    pub kind: FailureKind,
    /// One line for people.
    pub text: String,
    /// Time of the first failure.
    pub since: Moment,
    /// Number of consecutive failures.
    pub tries: u32,
}

/// A response and its arrival tick.
type TimedResponse = (Result<PollResponse, Failure>, Duration);

/// Follows the document of one endpoint.
pub struct Watch {
    client: Client,
    clock: Clock,
    poller: Poller,
    /// A document read before the first poll, not yet delivered.
    first: Option<Reading>,
    /// A poll in progress, run by a task.
    begun: Option<StartedPoll>,
    under_way: JoinSet<TimedResponse>,
    outage: Option<Outage>,
    version: Option<EventsVersion>,
}

impl Watch {
    /// Follows the document. Uses the api-version that the client negotiated, and keeps the rate limit if the client
    /// has just read the document.
    pub fn new(client: Client) -> Self {
        let poller = Poller::from(client.due());
        let clock = client.clock();
        let (begun, under_way) = (None, JoinSet::new());
        Watch { client, clock, poller, first: None, begun, under_way, outage: None, version: None }
    }

    /// Like [`Watch::new`], and delivers `reading` first. If that is older than one poll interval, the first poll
    /// replaces it.
    pub fn after(client: Client, reading: Reading) -> Self {
        let mut watch = Watch::new(client);
        if watch.clock.now().tick.saturating_sub(reading.read_at) < PACE {
            let Reading { document, etag, version, read_at, .. } = &reading;
            watch.poller.has_read(document.clone(), *version, etag.clone(), *read_at);
            watch.first = Some(reading);
        }
        watch
    }

    /// The result of the next poll. Cancel-safe.
    pub async fn next(&mut self) -> Update {
        if let Some(Reading { document, warnings, served_at, version, read_at, .. }) = self.first.take() {
            let served_at = self.platform_time_now(served_at, read_at);
            return self.document_update(document, served_at, version, warnings);
        }
        loop {
            let (outcome, served_at) = self.poll().await;
            if !matches!(outcome, PollOutcome::Failed(_) | PollOutcome::OtherVersion { .. })
                && let Some(outage) = self.outage.take()
            {
                tracing::info!(endpoint = %self.client.endpoint(), tries = outage.tries, "the platform answers again");
            }
            match outcome {
                PollOutcome::Changed { document, version, warnings } => {
                    return self.document_update(document, served_at, version, warnings);
                }
                PollOutcome::Unchanged => return Update::Unchanged { served_at },
                PollOutcome::OtherVersion { refused, next } => {
                    log_refusal(self.client.endpoint(), refused, next);
                }
                PollOutcome::Failed(failure) => return Update::Outage(self.record_failure(failure)),
            }
        }
    }

    fn document_update(
        &mut self,
        document: Document,
        served_at: Option<Timestamp>,
        version: EventsVersion,
        warnings: Vec<ReadWarning>,
    ) -> Update {
        for warning in warnings.iter().take(WARNINGS_LOGGED_MAX) {
            tracing::warn!(endpoint = %self.client.endpoint(), "{warning}");
        }
        if let Some(more) = warnings.len().checked_sub(WARNINGS_LOGGED_MAX).filter(|more| *more > 0) {
            tracing::warn!(endpoint = %self.client.endpoint(), "at least {more} more warnings about the document");
        }
        self.uses(version);
        Update::Document { document, served_at, version }
    }

    /// Converts into a stream of changes.
    pub fn changes(self) -> Changes {
        Changes::of(self)
    }

    /// The outcome of a poll and the platform's time.
    async fn poll(&mut self) -> (PollOutcome, Option<Timestamp>) {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => {
                self.clock.until(self.poller.due()).await;
                let now = self.clock.now().tick;
                let begun = self.client.with_versions(|versions| self.poller.begin(versions, now));
                let (client, clock, ask) = (self.client.clone(), self.clock, begun.ask.clone());
                self.under_way.spawn(async move {
                    let answer = client.poll(ask).await;
                    (answer, clock.now().tick)
                });
                begun
            }
        };
        // Kept in `self` while waiting, so that a dropped call can resume.
        let begun = self.begun.insert(begun).clone();
        let (heard, heard_at) = match self.under_way.join_next().await {
            Some(Ok(heard)) => heard,
            Some(Err(_)) | None => {
                let failure = Failure::new(FailureKind::Broken, "the poll came to no end");
                (Err(failure), self.clock.now().tick)
            }
        };
        self.begun = None;
        let served_at = heard.as_ref().ok().and_then(|answer| answer.served_at);
        let served_at = self.platform_time_now(served_at, heard_at);
        let outcome = self.client.with_versions(|versions| {
            self.poller.answered(versions, &begun, heard, heard_at, random::number())
        });
        (outcome, served_at)
    }

    /// The platform's time now, extrapolated from its value at a tick.
    fn platform_time_now(&self, served_at: Option<Timestamp>, at: Duration) -> Option<Timestamp> {
        let age = self.clock.now().tick.saturating_sub(at);
        served_at.map(|served_at| served_at.saturating_add(age).unwrap_or(served_at))
    }

    /// Logs a change of the api-version, and which types it hides.
    fn uses(&mut self, version: EventsVersion) {
        let before = self.version.replace(version).unwrap_or(self.client.options().newest);
        if before == version {
            return;
        }
        let endpoint = self.client.endpoint();
        let hidden = EventKind::hidden_at(version);
        let hidden: Vec<&str> = hidden.iter().map(EventKind::as_str).collect();
        match hidden.is_empty() {
            true => tracing::info!(%endpoint, "the platform answers at api-version {version}"),
            false => tracing::warn!(
                %endpoint,
                "the platform answers at api-version {version}, which does not list {}: such events are not visible",
                hidden.join(" and ")
            ),
        }
    }

    fn record_failure(&mut self, Failure { kind, text, .. }: Failure) -> Outage {
        // The poller does not know the endpoint.
        let endpoint = self.client.endpoint().to_string();
        let text = if text.starts_with(&endpoint) { text } else { format!("{endpoint}: {text}") };
        let (since, tries) = match &self.outage {
            Some(before) => (before.since, before.tries.saturating_add(1)),
            None => (self.clock.now(), 1),
        };
        self.outage.insert(Outage { kind, text, since, tries }).clone()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;
    use crate::client::Options;

    #[tokio::test(start_paused = true)]
    async fn served_at_accounts_for_read_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let (asked, has_asked) = oneshot::channel();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4_096]).await.unwrap();
            asked.send(()).unwrap();
            let body = "{\"DocumentIncarnation\":1,\"Events\":[]}";
            let head = "HTTP/1.1 200 OK\r\nDate: Mon, 16 Nov 2026 08:00:00 GMT\r\nContent-Length";
            stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let mut watch = Watch::new(Client::new(endpoint, Options::default()));
        tokio::select! {
            update = watch.next() => panic!("{update:?} before it was asked for"),
            asked = has_asked => asked.unwrap(),
        }
        // The caller is busy.
        let late = Duration::from_secs(3);
        tokio::time::sleep(late).await;
        let Update::Document { served_at, .. } = watch.next().await else { panic!("no document") };
        let came_at: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let age = Duration::try_from(served_at.unwrap() - came_at).unwrap();
        assert!((late..late + PACE).contains(&age), "{age:?}");
    }
}
