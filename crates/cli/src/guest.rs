//! `notbefore get` and `notbefore approve`: what a VM asks of its platform, by hand.
//!
//! These speak to any platform, Azure's or ours, through the client crate, and know nothing of the service or its
//! operators. They run on Windows too.

use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use jiff::Timestamp;
use notbefore_client::client::{Approval, Client, Options, Reading};
use notbefore_client::discovery::{Discovery, Found};
use notbefore_client::document::{Document, Event, EventId, EventStatus};
use notbefore_client::identity::{self, Identity, NameSource};
use notbefore_client::watch::Watch;
use notbefore_wire::text::printable;
use serde_json::{Value, json};

use crate::args::{self, Output};
use crate::output::{self, Log, Rows, Table, or_dash, yes_no};
use crate::time;

mod changes;

/// How much of an id has to be given: as much as the operator's commands want. Less, and nothing above all, may be a
/// mistake in a script.
const SHORT_ID_MIN: usize = 4;
/// How many ids an error names.
const IDS_SHOWN_MAX: usize = 10;
/// How long an approval is sent again that does not get through: an eviction gives half a minute.
const APPROVE_TIME_MAX: Duration = Duration::from_secs(30);

pub fn get(get: args::Get, output: Output) -> Result<()> {
    log_warnings();
    in_runtime(async {
        if get.watch {
            let (client, watch) = follow(&get.platform).await?;
            return changes::watch_changes(client, watch, &get, output).await;
        }
        let found = discovery(&get.platform).find().await?;
        match get.raw {
            true => output::data(&found.reading.body),
            false => show(&found, &identity(&found.client, &get.platform).await, output),
        }
    })
}

pub fn approve(approve: args::Approve, output: Output) -> Result<()> {
    log_warnings();
    in_runtime(async {
        // A platform refuses an id that it never gave and one that is over alike; only the document tells them apart.
        let Found { client, reading: Reading { document, .. }, .. } =
            discovery(&approve.platform).find().await?;
        let events: Vec<(String, Result<EventId>)> = match approve.all_mine {
            true => {
                let mine = all_mine(&client, &approve.platform, &document).await?;
                mine.into_iter().map(|id| (id.to_string(), Ok(id))).collect()
            }
            false => approve.events.into_iter().map(|text| resolve_event(text, &document)).collect(),
        };
        let (mut outcomes, mut lines, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (name, event) in events {
            let approved = match event {
                Ok(event) => client.approve_within(&event, APPROVE_TIME_MAX).await.map_err(Error::from),
                Err(error) => Err(error),
            };
            let (outcome, text) = match &approved {
                Ok(Approval::Accepted) => ("approved", "approved".to_owned()),
                Ok(Approval::Moot) => {
                    ("moot", "has started or is gone: there is nothing to approve".to_owned())
                }
                Err(error) => ("failed", error.to_string()),
            };
            match approved {
                Ok(_) => lines.push(format!("event {name}: {text}")),
                Err(_) => failed.push(format!("event {} is not approved: {text}", printable(&name))),
            }
            outcomes.push(json!({"event": name, "outcome": outcome, "text": text}));
        }
        if outcomes.is_empty() {
            lines.push("no event waits that names this VM".to_owned());
        }
        output.answer(&outcomes, |_| output::lines(&lines))?;
        if failed.is_empty() { Ok(()) } else { Err(anyhow!(failed.join("\n"))) }
    })
}

/// Runs on this thread: one connection needs no others.
pub fn in_runtime(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let outcome = runtime.block_on(work);
    // A request that hangs in the name service keeps nobody.
    runtime.shutdown_background();
    outcome
}

/// The platform, and its document.
/// The platform, and its document as it changes. What was named is followed also if it does not answer yet.
async fn follow(platform: &args::Platform) -> Result<(Client, Watch)> {
    match (discovery(platform).find().await, &platform.endpoint) {
        (Ok(Found { client, reading, .. }), _) => Ok((client.clone(), Watch::after(client, reading))),
        (Err(why), Some(endpoint)) => {
            output::eprint(&format!("notbefore: {why}"));
            let client = Client::new(endpoint.clone(), options(platform));
            Ok((client.clone(), Watch::new(client)))
        }
        (Err(why), None) => Err(why.into()),
    }
}

fn discovery(platform: &args::Platform) -> Discovery {
    Discovery::new(platform.endpoint.clone(), options(platform))
}

fn options(platform: &args::Platform) -> Options {
    Options::from(platform.api_version)
}

/// Which VM this is to be taken for. Whoever names one wants to see with its eyes, whatever the platform says.
async fn identity(client: &Client, platform: &args::Platform) -> Identity {
    match &platform.name {
        Some(name) => Identity::set(name),
        None => Identity::find(client, Identity::of_host(&identity::host_name())).await,
    }
}

/// The events that wait and are this VM's. Nothing is taken for its own by a name that may be another's.
async fn all_mine(client: &Client, platform: &args::Platform, document: &Document) -> Result<Vec<EventId>> {
    let waiting: Vec<&Event> =
        document.events.iter().filter(|event| event.status != EventStatus::Started).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let me = identity(client, platform).await;
    match me.source() {
        NameSource::Platform => {}
        NameSource::Setting => match Identity::from_metadata_once(client).await {
            Ok(told) if !me.is(told.name()) => bail!(
                "nothing is approved: {} is named, and the platform calls this VM {}; leave --name out, or name the events \
                 by their ids",
                me.name(),
                told.name()
            ),
            Ok(_) | Err(_) => {}
        },
        NameSource::HostName => bail!(
            "nothing is approved: the platform does not say what this VM is called, which need not be its host name {}; name \
             it with --name, or the events by their ids",
            me.name()
        ),
    }
    Ok(waiting.into_iter().filter(|event| is_mine(event, &me)).map(|event| event.id.clone()).collect())
}

/// What the client warns of is for whoever has typed the command, line by line and without a time.
fn log_warnings() {
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(Log::Complaint);
    lines.without_time().with_level(false).with_target(false).with_ansi(false).init();
}

/// The event that somebody means, by its id or how that begins, and what to call it.
fn resolve_event(text: String, document: &Document) -> (String, Result<EventId>) {
    let ids = || document.events.iter().map(|event| &event.id);
    if let Some(id) = ids().find(|id| id.as_str().eq_ignore_ascii_case(&text)) {
        return (id.to_string(), Ok(id.clone()));
    }
    let begins = |id: &&EventId| {
        let start = id.as_str().get(..text.len());
        text.len() >= SHORT_ID_MIN && start.is_some_and(|start| start.eq_ignore_ascii_case(&text))
    };
    let matching: Vec<&EventId> = ids().filter(begins).collect();
    match matching.as_slice() {
        [id] => (id.to_string(), Ok((*id).clone())),
        [] => {
            let listed = id_list(ids());
            let cut = format!("an id may be cut to {SHORT_ID_MIN} digits or more");
            (text, Err(anyhow!("the platform announces no such event, but {listed} ({cut})")))
        }
        several => {
            let listed = id_list(several.iter().copied());
            (text, Err(anyhow!("several begin with that, {listed}: give more of the id")))
        }
    }
}

/// Ids in a line, as many as anybody wants to read.
fn id_list<'a>(ids: impl ExactSizeIterator<Item = &'a EventId>) -> String {
    let left_out = ids.len().saturating_sub(IDS_SHOWN_MAX);
    let shown = ids.take(IDS_SHOWN_MAX).map(|id| printable(id.as_str())).collect::<Vec<_>>().join(", ");
    match (shown.is_empty(), left_out) {
        (true, _) => "none at all".to_owned(),
        (false, 0) => shown,
        (false, _) => format!("{shown}, and {left_out} more"),
    }
}

fn is_mine(event: &Event, me: &Identity) -> bool {
    event.resources.iter().any(|resource| me.is(resource))
}

fn show(found: &Found, me: &Identity, output: Output) -> Result<()> {
    let reading = &found.reading;
    for warning in &reading.warnings {
        output::eprint(&format!("notbefore: {warning}"));
    }
    let events = &reading.document.events;
    match output {
        Output::Json => output::json(&json!({
            "endpoint": found.client.endpoint().to_string(),
            "endpoint_by": found.by.to_string(),
            "api_version": reading.version.as_str(),
            "served_at": reading.served_at,
            "vm": me.name(),
            "incarnation": reading.document.incarnation,
            "events": events.iter().map(|event| in_json(event, me)).collect::<Vec<_>>(),
        })),
        // The platform's clock decides when an event starts, so that is the one to count from.
        Output::Table => table(events, me, reading.served_at.unwrap_or_else(time::now))
            .print("no event is announced or under way"),
    }
}

fn in_json(event: &Event, me: &Identity) -> Value {
    json!({
        "id": event.id,
        "type": event.kind,
        "status": event.status,
        "mine": is_mine(event, me),
        "resources": event.resources,
        "not_before": event.not_before,
        "description": event.description,
        "source": event.source,
        "duration_seconds": event.duration_seconds,
    })
}

fn table(events: &[Event], me: &Identity, now: Timestamp) -> Table {
    let when = |at: Timestamp| format!("{at} ({})", time::relative(at, now));
    Rows(events).columns(&[
        ("EVENT", &|event| event.id.to_string()),
        ("TYPE", &|event| event.kind.to_string()),
        ("STATUS", &|event| event.status.as_str().to_owned()),
        ("NOT BEFORE", &|event| or_dash(event.not_before.map(when).as_deref())),
        ("MINE", &|event| yes_no(is_mine(event, me))),
        ("RESOURCES", &|event| event.resources.join(",")),
        ("SOURCE", &|event| or_dash(event.source.as_ref().map(|source| source.as_str()))),
        ("LASTS", &|event| or_dash(event.duration_seconds.map(time::span).as_deref())),
        ("DESCRIPTION", &|event| or_dash(Some(&event.description))),
    ])
}

#[cfg(test)]
mod tests {
    use notbefore_client::document::EventsVersion;

    use super::*;

    fn document(ids: &[String]) -> Document {
        let events: Vec<Value> = ids.iter().map(|id| json!({"EventId": id})).collect();
        let body = json!({"DocumentIncarnation": 1, "Events": events}).to_string();
        Document::read(body.as_bytes(), EventsVersion::NEWEST).unwrap()
    }

    #[test]
    fn event_is_resolved_by_id_or_unique_prefix() {
        let document = document(&["ABCD-1".to_owned(), "ABCD-12".to_owned(), "é-very-odd".to_owned()]);
        let meant =
            |text: &str| resolve_event(text.to_owned(), &document).1.map_err(|error| error.to_string());
        assert_eq!(meant("abcd-12"), Ok(EventId::new("ABCD-12")));
        assert_eq!(meant("abcd-1"), Ok(EventId::new("ABCD-1")), "a whole id is no beginning of another");
        let several = meant("abcd").unwrap_err();
        assert_eq!(several, "several begin with that, ABCD-1, ABCD-12: give more of the id");
        for none in ["", "abc", "abcd-123", "abcd-1\0", "aéé", "éééé"] {
            assert!(meant(none).unwrap_err().contains("but ABCD-1, ABCD-12, é-very-odd ("), "{none:?}");
        }
    }

    #[test]
    fn error_lists_limited_number_of_events() {
        let ids: Vec<String> = (10..22).map(|number| format!("event-{number}")).collect();
        let told = resolve_event("nothing".to_owned(), &document(&ids)).1.unwrap_err().to_string();
        assert!(told.contains("event-10, ") && told.contains("event-19, and 2 more ("), "{told}");
    }
}
