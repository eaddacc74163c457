//! Following the document: [`Watch`] asks when it is time to, and says what has come of it.
//!
//! What to ask and when is [`Poller`]'s; this sends it. The poll that is under way belongs to the watch and not to the
//! call that waits for it: a [`Watch::next`] that is dropped loses nothing and sends nothing twice.

use std::pin::Pin;

use jiff::Timestamp;

use crate::changes::Changes;
use crate::client::{Client, Reading};
use crate::clock::{Clock, Moment};
use crate::dice;
use crate::document::{Document, EventKind, EventsVersion, Oddity};
use crate::failure::{Failure, FailureKind};
use crate::poll::{Answer, Begun, PACE, Poller, Verdict};

/// What a poll has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Another document than before.
    Document {
        /// It.
        document: Document,
        /// What the platform's own clock said, if it did.
        served_at: Option<Timestamp>,
        /// At which version it was read.
        version: EventsVersion,
    },
    /// The platform has answered, and nothing has changed.
    Unchanged,
    /// No document. What was last read still holds, as far as anybody knows.
    Trouble(Trouble),
}

/// The platform was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What sort of failure the last one was.
    pub kind: FailureKind,
    /// In a line for a person.
    pub text: String,
    /// When the first of these failures was.
    pub since: Moment,
    /// How many there were in a row.
    pub tries: u32,
}

/// A poll, and what was heard.
type Polled = (Begun, Result<Answer, Failure>);

/// Follows the document of one endpoint.
pub struct Watch {
    client: Client,
    clock: Clock,
    poller: Poller,
    /// A document that was read before the first poll, and is news.
    first: Option<Reading>,
    under_way: Option<Pin<Box<dyn Future<Output = Polled> + Send>>>,
    trouble: Option<Trouble>,
    version: Option<EventsVersion>,
}

impl Watch {
    /// Follows the document that this client sees. What the client has learnt is not asked for again, and if it has just
    /// read the document, the first poll waits for its turn.
    pub fn new(client: Client) -> Self {
        let poller = Poller::from(client.due());
        let clock = client.clock();
        Watch { client, clock, poller, first: None, under_way: None, trouble: None, version: None }
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
        if let Some(Reading { document, oddities, served_at, version, read_at, .. }) = self.first.take() {
            let age = self.clock.now().tick.saturating_sub(read_at);
            // It is not asked what the platform's clock says now; it has gone on as ours has.
            let served_at = served_at.map(|at| at.saturating_add(age).unwrap_or(at));
            return self.news(document, served_at, version, oddities);
        }
        loop {
            let verdict = self.poll().await;
            if !matches!(verdict, Verdict::Failed(_) | Verdict::OtherVersion { .. })
                && let Some(trouble) = self.trouble.take()
            {
                tracing::info!(endpoint = %self.client.endpoint(), tries = trouble.tries, "the platform answers again");
            }
            match verdict {
                Verdict::News { document, served_at, version, oddities } => {
                    return self.news(document, served_at, version, oddities);
                }
                Verdict::Same => return Update::Unchanged,
                Verdict::OtherVersion { refused, next } => {
                    tracing::warn!(
                        endpoint = %self.client.endpoint(),
                        "the platform does not know api-version {refused}: asking for {next}"
                    );
                }
                Verdict::Failed(failure) => return Update::Trouble(self.troubled(failure)),
            }
        }
    }

    fn news(
        &mut self,
        document: Document,
        served_at: Option<Timestamp>,
        version: EventsVersion,
        oddities: Vec<Oddity>,
    ) -> Update {
        for oddity in oddities {
            tracing::warn!(endpoint = %self.client.endpoint(), "{oddity}");
        }
        self.uses(version);
        Update::Document { document, served_at, version }
    }

    /// A stream of what changes, instead of documents.
    pub fn changes(self) -> Changes {
        Changes::of(self)
    }

    async fn poll(&mut self) -> Verdict {
        let (begun, heard) = match &mut self.under_way {
            Some(under_way) => under_way.await,
            none => {
                self.clock.until(self.poller.due()).await;
                let now = self.clock.now().tick;
                let begun = self.client.with_versions(|versions| self.poller.begin(versions, now));
                let client = self.client.clone();
                let poll = async move {
                    let heard = client.poll(begun.ask.clone()).await;
                    (begun, heard)
                };
                none.insert(Box::pin(poll)).await
            }
        };
        self.under_way = None;
        let now = self.clock.now().tick;
        self.client
            .with_versions(|versions| self.poller.answered(versions, &begun, heard, now, dice::throw()))
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

    fn troubled(&mut self, Failure { kind, text, .. }: Failure) -> Trouble {
        // The poller does not know whom it asks.
        let endpoint = self.client.endpoint().to_string();
        let text = if text.starts_with(&endpoint) { text } else { format!("{endpoint}: {text}") };
        let (since, tries) = match &self.trouble {
            Some(before) => (before.since, before.tries.saturating_add(1)),
            None => (self.clock.now(), 1),
        };
        self.trouble.insert(Trouble { kind, text, since, tries }).clone()
    }
}
