//! Follows Scheduled Events, prints every change, and approves events of this VM.
//!
//! ```sh
//! cargo run -p notbefore-client --example watch-events -- \
//!     [--endpoint URL] [--api-version VERSION] [--name VM] [--once] [--yes]
//! ```
//!
//! It asks before it approves; `--yes` approves without asking, `--once` polls once and exits (with 1 if the document
//! or this VM's name is unavailable). The crate does what the samples in other languages do by hand: tolerant
//! parsing, rate limit, long polls, and one event per approval.

use std::collections::HashSet;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use notbefore_client::client::{ApproveError, Client, Options};
use notbefore_client::document::{Document, Event, EventId, EventStatus, EventsVersion};
use notbefore_client::endpoint::Endpoint;
use notbefore_client::identity::Identity;
use notbefore_client::watch::{Update, Watch};

/// How long to wait for this VM's name before the next poll; it is requested again after that.
const NAME_PATIENCE: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| words.iter().skip_while(|word| *word != name).nth(1).cloned();
    let has = |name: &str| words.iter().any(|word| word == name);

    let endpoint = value("--endpoint").map_or(Ok(Endpoint::azure_default()), |url| url.parse())?;
    let newest = match value("--api-version") {
        Some(version) => EventsVersion::parse(&version).ok_or("there is no such api-version")?,
        None => EventsVersion::NEWEST,
    };
    let client = Client::new(endpoint, Options::from(newest));
    let me = value("--name").as_deref().map(Identity::set);
    let (yes, settled) = (has("--yes"), HashSet::new());
    let mut sample = Sample { client: client.clone(), me, yes, shown: Vec::new(), settled };
    if has("--once") {
        sample.learn_name().await;
        let reading = client
            .get()
            .await
            .map_err(|failure| format!("no document from {}: {failure}", client.endpoint()))?;
        sample.take(&reading.document).await;
        return sample.me.map(|_| ()).ok_or("the name of this VM is unknown".into());
    }
    let mut watch = Watch::new(client);
    let mut last = None;
    loop {
        match watch.next().await {
            Update::Document { document, .. } => last = Some(document),
            Update::Unchanged { .. } => {}
            // The last document stays valid: an outage is not "no events".
            Update::Outage(outage) => eprintln!("{}", outage.text),
        }
        // The name may be known only now; failed approvals are retried.
        sample.learn_name().await;
        if let Some(document) = &last {
            sample.take(document).await;
        }
    }
}

struct Sample {
    client: Client,
    /// This VM's name, once known. With the host name, which the platform may use for another VM, nothing is
    /// approved.
    me: Option<Identity>,
    yes: bool,
    /// The document that was last printed.
    shown: Vec<String>,
    /// Events approved, refused or declined.
    settled: HashSet<EventId>,
}

impl Sample {
    async fn learn_name(&mut self) {
        if self.me.is_some() {
            return;
        }
        let told = match tokio::time::timeout(NAME_PATIENCE, Identity::from_metadata_once(&self.client)).await
        {
            Ok(told) => told.map_err(|failure| failure.to_string()),
            Err(_) => Err(format!("it takes longer than {NAME_PATIENCE:?}")),
        };
        match told {
            Ok(me) => self.me = Some(me),
            Err(why) => eprintln!(
                "{} does not say what this VM is called ({why}); until it does, or --name says it, nothing is approved",
                self.client.endpoint()
            ),
        }
    }

    async fn take(&mut self, document: &Document) {
        let incarnation = &document.incarnation;
        let mut lines: Vec<String> = document
            .events
            .iter()
            .map(|event| {
                let Event { id, status, kind, resources, .. } = event;
                let (status, kind, names) = (status.as_str(), kind.as_str(), resources.join(","));
                let not_before = event.not_before.map_or("-".to_owned(), |at| at.to_string());
                format!("{incarnation} {id} {status} {kind} {names} {not_before} {}", self.whose(event))
            })
            .collect();
        if lines.is_empty() {
            lines.push(format!("{incarnation} nothing"));
        }
        if lines != self.shown {
            println!("{}", lines.join("\n"));
            self.shown = lines;
        }
        self.approve_mine(document).await;
    }

    async fn approve_mine(&mut self, document: &Document) {
        for event in document.events.iter().filter(|event| event.status == EventStatus::Scheduled) {
            if self.whose(event) != "mine" || self.settled.contains(&event.id) {
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

    fn whose(&self, event: &Event) -> &'static str {
        match &self.me {
            None => "unknown",
            Some(me) if event.resources.iter().any(|resource| me.is(resource)) => "mine",
            Some(_) => "others",
        }
    }
}

fn agreed(event: &Event) -> bool {
    print!("approve the {} {}? [y/N] ", event.kind.as_str(), event.id);
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y")
}
