//! Following the document: [`Watch`] asks when it is time to, and says what has come of it.
//!
//! What to ask and when is [`Poller`]'s; this sends it. The poll that is under way belongs to the watch and not to the
//! call that waits for it: a [`Watch::next`] that is dropped loses nothing and sends nothing twice. It is a task of its own,
//! so that an answer is heard when it comes, and whoever is late to ask for it is told what the platform's clock says by then.

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

/// How many of the things that are odd about a document are logged, each in a line.
const WARNINGS_LOGGED_MAX: usize = 10;

/// What a poll has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Another document than before.
    Document {
        /// It.
        document: Document,
        /// What the platform's own clock says, if it said anything: as it came, and gone on since then as ours has.
        served_at: Option<Timestamp>,
        /// At which version it was read.
        version: EventsVersion,
    },
    /// The platform has answered, and nothing has changed but the time.
    Unchanged {
        /// What the platform's own clock says.
        served_at: Option<Timestamp>,
    },
    /// No document. What was last read still holds, as far as anybody knows.
    Outage(Outage),
}

/// The platform was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// What sort of failure the last one was.
    pub kind: FailureKind,
    /// In a line for a person.
    pub text: String,
    /// When the first of these failures was.
    pub since: Moment,
    /// How many there were in a row.
    pub tries: u32,
}

/// What was heard, and when.
type TimedResponse = (Result<PollResponse, Failure>, Duration);

/// Follows the document of one endpoint.
pub struct Watch {
    client: Client,
    clock: Clock,
    poller: Poller,
    /// A document that was read before the first poll, and is news.
    first: Option<Reading>,
    /// A poll that was begun; what comes of it is one task's, or none's any more.
    begun: Option<StartedPoll>,
    under_way: JoinSet<TimedResponse>,
    outage: Option<Outage>,
    version: Option<EventsVersion>,
}

impl Watch {
    /// Follows the document that this client sees. What the client has learnt is not asked for again, and if it has just
    /// read the document, the first poll waits for its turn.
    pub fn new(client: Client) -> Self {
        let poller = Poller::from(client.due());
        let clock = client.clock();
        let (begun, under_way) = (None, JoinSet::new());
        Watch { client, clock, poller, first: None, begun, under_way, outage: None, version: None }
    }

    /// The same, and what the client has just read comes first. If that was longer ago than a poll is from the next, it
    /// is left to the first poll: nobody should act on what may be over.
    pub fn after(client: Client, reading: Reading) -> Self {
        let mut watch = Watch::new(client);
        if watch.clock.now().tick.saturating_sub(reading.read_at) < PACE {
            let Reading { document, etag, version, read_at, .. } = &reading;
            watch.poller.has_read(document.clone(), *version, etag.clone(), *read_at);
            watch.first = Some(reading);
        }
        watch
    }

    /// What the next poll brings. It may be dropped at any time, and called again.
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
                    tracing::warn!(
                        endpoint = %self.client.endpoint(),
                        "the platform does not know api-version {refused}: asking for {next}"
                    );
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
            tracing::warn!(endpoint = %self.client.endpoint(), "at least {more} more things are odd about the answer");
        }
        self.uses(version);
        Update::Document { document, served_at, version }
    }

    /// A stream of what changes, instead of documents.
    pub fn changes(self) -> Changes {
        Changes::of(self)
    }

    /// What a poll has brought, and what the platform's clock says.
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
        // Put back while it is waited for: whoever drops this call comes again.
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

    /// What the platform's clock says now, which said this at a tick. It is not asked; it has gone on as ours has.
    fn platform_time_now(&self, served_at: Option<Timestamp>, at: Duration) -> Option<Timestamp> {
        let age = self.clock.now().tick.saturating_sub(at);
        served_at.map(|served_at| served_at.saturating_add(age).unwrap_or(served_at))
    }

    /// Says so where another version is in use than before, and what it keeps from us.
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
                "the platform answers at api-version {version}, which does not speak of {}: such events cannot be seen",
                hidden.join(" and ")
            ),
        }
    }

    fn record_failure(&mut self, Failure { kind, text, .. }: Failure) -> Outage {
        // The poller does not know whom it asks.
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
        // Whoever follows is busy with something else.
        let late = Duration::from_secs(3);
        tokio::time::sleep(late).await;
        let Update::Document { served_at, .. } = watch.next().await else { panic!("no document") };
        let came_at: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let age = Duration::try_from(served_at.unwrap() - came_at).unwrap();
        assert!((late..late + PACE).contains(&age), "{age:?}");
    }
}
