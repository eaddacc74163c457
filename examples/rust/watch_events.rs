//! Follows Scheduled Events, shows every change, and approves what happens to this VM.
//!
//! ```sh
//! cargo run -p notbefore-client --example watch-events -- \
//!     [--endpoint URL] [--api-version VERSION] [--name VM] [--once] [--yes]
//! ```
//!
//! It asks before it approves; `--yes` approves without asking, `--once` looks once and ends. What the samples in other
//! languages do by hand is the crate's here: tolerant reading, the pace, waiting where the platform lets one wait,
//! which VM this is, and one event for each approval.

use std::collections::HashSet;
use std::error::Error;
use std::io::{self, Write};

use notbefore_client::client::{ApproveError, Client, Options};
use notbefore_client::document::{Document, Event, EventId, EventStatus, EventsVersion};
use notbefore_client::endpoint::Endpoint;
use notbefore_client::identity::{Identity, host_name};
use notbefore_client::watch::{Update, Watch};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| words.iter().skip_while(|word| *word != name).nth(1).cloned();
    let has = |name: &str| words.iter().any(|word| word == name);

    let endpoint = value("--endpoint").map_or(Ok(Endpoint::usual()), |url| url.parse())?;
    let newest = match value("--api-version") {
        Some(version) => EventsVersion::parse(&version).ok_or("there is no such api-version")?,
        None => EventsVersion::NEWEST,
    };
    let client = Client::new(endpoint, Options { newest });
    let me = Identity::find(&client, value("--name").as_deref(), &host_name()).await;
    let mut sample = Sample { client: client.clone(), me, yes: has("--yes"), settled: HashSet::new() };
    if has("--once") {
        let reading = client
            .get()
            .await
            .map_err(|failure| format!("no document from {}: {failure}", client.endpoint()))?;
        sample.take(&reading.document).await;
        return Ok(());
    }
    let mut watch = Watch::new(client);
    let mut last = None;
    loop {
        match watch.next().await {
            Update::Document { document, .. } => {
                sample.take(&document).await;
                last = Some(document);
            }
            // An approval that did not get through is sent again.
            Update::Unchanged => {
                if let Some(document) = &last {
                    sample.approve_mine(document).await;
                }
            }
            // What was last read still holds: this is no "no events".
            Update::Trouble(trouble) => eprintln!("{}", trouble.text),
        }
    }
}

struct Sample {
    client: Client,
    me: Identity,
    yes: bool,
    /// What was approved, refused, or not wanted.
    settled: HashSet<EventId>,
}

impl Sample {
    async fn take(&mut self, document: &Document) {
        if document.events.is_empty() {
            println!("{} nothing", document.incarnation);
        }
        for event in &document.events {
            let not_before = event.not_before.map_or("-".to_owned(), |at| at.to_string());
            let whose = if self.is_mine(event) { "mine" } else { "others" };
            let Event { id, status, kind, resources, .. } = event;
            let (status, kind, names) = (status.as_str(), kind.as_str(), resources.join(","));
            println!("{} {id} {status} {kind} {names} {not_before} {whose}", document.incarnation);
        }
        self.approve_mine(document).await;
    }

    async fn approve_mine(&mut self, document: &Document) {
        for event in document.events.iter().filter(|event| event.status == EventStatus::Scheduled) {
            if !self.is_mine(event) || self.settled.contains(&event.id) {
                continue;
            }
            if !self.yes && !agreed(event) {
                self.settled.insert(event.id.clone());
                continue;
            }
            match self.client.approve(&event.id).await {
                Ok(_) => println!("approved {}", event.id),
                Err(ApproveError::Refused(why)) => eprintln!("not approved {}: {why}", event.id),
                Err(ApproveError::Transient(why)) => {
                    eprintln!("not approved {}, it is tried again: {why}", event.id);
                    continue;
                }
            }
            self.settled.insert(event.id.clone());
        }
    }

    fn is_mine(&self, event: &Event) -> bool {
        event.resources.iter().any(|resource| self.me.is(resource))
    }
}

fn agreed(event: &Event) -> bool {
    print!("approve the {} {}? [y/N] ", event.kind.as_str(), event.id);
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y")
}
