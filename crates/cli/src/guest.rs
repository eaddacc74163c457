//! `notbefore get` and `notbefore approve`: guest commands, run inside a VM.
//!
//! They use the client crate and work with any platform, Azure or notbefore, on Linux and Windows. They do not depend
//! on the service or the operator API.

use std::collections::HashSet;
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
use crate::each::SHORT_ID_MIN;
use crate::output::{self, Log, or_dash, yes_no};
use crate::table::Column;
use crate::time;

mod changes;

/// Limit of ids in an error.
const IDS_SHOWN_MAX: usize = 10;
/// Time limit for retries of an approval; an eviction has 30 seconds' notice.
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
        // The platform refuses unknown and ended events alike; only the document distinguishes them.
        let Found { client, reading: Reading { document, .. }, .. } =
            discovery(&approve.platform).find().await?;
        let events: Vec<(String, Result<EventId>)> = match approve.all_mine {
            true => {
                let mine = all_mine(&client, &approve.platform, &document).await?;
                mine.into_iter().map(|id| (id.to_string(), Ok(id))).collect()
            }
            false => {
                let mut seen = HashSet::new();
                let named = approve.events.into_iter().map(|text| resolve_event(text, &document));
                named.filter(|(name, _)| seen.insert(name.clone())).collect()
            }
        };
        let (mut outcomes, mut lines, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (name, event) in events {
            let approved = match event {
                Ok(event) => client.approve_within(&event, APPROVE_TIME_MAX).await.map_err(Error::from),
                Err(error) => Err(error),
            };
            let (outcome, text) = match &approved {
                Ok(Approval::Accepted) => ("approved", "approved".to_owned()),
                Ok(Approval::Moot) => ("moot", "has started or ended: no approval needed".to_owned()),
                Err(error) => ("failed", error.to_string()),
            };
            match approved {
                Ok(_) => lines.push(format!("event {name}: {text}")),
                Err(_) => failed.push(format!("event {} was not approved: {text}", printable(&name))),
            }
            outcomes.push(json!({"event": name, "outcome": outcome, "text": text}));
        }
        if outcomes.is_empty() {
            lines.push("no event of this VM waits for approval".to_owned());
        }
        output.answer(&outcomes, |_| output::lines(&lines))?;
        if failed.is_empty() { Ok(()) } else { Err(anyhow!(failed.join("\n"))) }
    })
}

/// Runs a future on a single-threaded runtime: there is only one connection.
pub fn in_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let outcome = runtime.block_on(work);
    // Do not wait for a DNS lookup that hangs.
    runtime.shutdown_background();
    outcome
}

/// The client and a watch of the document. An endpoint given by the user is watched even if it does not answer yet.
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

/// The VM's identity. `--name` overrides the platform.
async fn identity(client: &Client, platform: &args::Platform) -> Identity {
    match &platform.name {
        Some(name) => Identity::set(name),
        None => Identity::find(client, Identity::of_host(&identity::host_name())).await,
    }
}

/// Ids of this VM's events that wait for approval; an advisory does not. Fails if the VM's name is not certain: it may be another VM's.
async fn all_mine(client: &Client, platform: &args::Platform, document: &Document) -> Result<Vec<EventId>> {
    let waiting: Vec<&Event> = document
        .events
        .iter()
        .filter(|event| event.status != EventStatus::Started && !event.is_advisory())
        .collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let me = identity(client, platform).await;
    match me.source() {
        NameSource::Platform => {}
        NameSource::Setting => match Identity::from_metadata_once(client).await {
            Ok(found) if !me.is(found.name()) => bail!(
                "nothing was approved: --name is {}, but the platform calls this VM {}; omit --name, or give event ids",
                me.name(),
                found.name()
            ),
            Ok(_) | Err(_) => {}
        },
        NameSource::HostName => bail!(
            "nothing was approved: the platform does not provide this VM's name, which may differ from its host name {}; \
             use --name, or give event ids",
            me.name()
        ),
    }
    Ok(waiting.into_iter().filter(|event| is_mine(event, &me)).map(|event| event.id.clone()).collect())
}

/// Prints the client's warnings as lines on standard error, without a timestamp.
fn log_warnings() {
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(Log::Warning);
    lines.without_time().with_level(false).with_target(false).with_ansi(false).init();
}

/// Resolves an id or a unique prefix; also returns the id, or the text if there is none, for messages.
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
            let cut = format!("a prefix of {SHORT_ID_MIN} digits or more is accepted");
            (text, Err(anyhow!("no such event; scheduled events: {listed} ({cut})")))
        }
        several => {
            let listed = id_list(several.iter().copied());
            (text, Err(anyhow!("ambiguous prefix: {listed}; use a longer one")))
        }
    }
}

/// Ids on one line, [`IDS_SHOWN_MAX`] at most.
fn id_list<'a>(ids: impl ExactSizeIterator<Item = &'a EventId>) -> String {
    let left_out = ids.len().saturating_sub(IDS_SHOWN_MAX);
    let shown = ids.take(IDS_SHOWN_MAX).map(|id| printable(id.as_str())).collect::<Vec<_>>().join(", ");
    match (shown.is_empty(), left_out) {
        (true, _) => "none".to_owned(),
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
    let result = json!({
        "endpoint": found.client.endpoint().to_string(),
        "endpoint_by": found.by.to_string(),
        "api_version": reading.version.as_str(),
        "served_at": reading.served_at,
        "vm": me.name(),
        "incarnation": reading.document.incarnation,
        "events": events.iter().map(|event| in_json(event, me)).collect::<Vec<_>>(),
    });
    if output == Output::Name {
        let ids: Vec<Value> = events.iter().map(|event| in_json(event, me)).collect();
        return output.answer(&ids, |_| Ok(()));
    }
    // Events start by the platform's clock, so times are relative to it.
    let now = reading.served_at.unwrap_or_else(time::now);
    output.answer(&result, |_| output::text(&table(events, me, now, output)))
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

fn table(events: &[Event], me: &Identity, now: Timestamp, output: Output) -> String {
    let when = |at: Timestamp| time::and_from(at, now);
    output.table(
        events,
        &[
            Column::id("EVENT", &|event: &Event| event.id.to_string()),
            Column::new("TYPE", &|event| event.kind.to_string()),
            Column::new("STATUS", &|event| event.status.as_str().to_owned()),
            Column::new("NOT BEFORE", &|event| or_dash(event.not_before.map(when).as_deref())),
            Column::new("MINE", &|event| yes_no(is_mine(event, me))),
            Column::text("RESOURCES", &|event| event.resources.join(",")),
            Column::optional("SOURCE", &|event| or_dash(event.source.as_ref().map(|source| source.as_str()))),
            Column::optional("DURATION", &|event| or_dash(event.duration_seconds.map(time::span).as_deref())),
            Column::text("DESCRIPTION", &|event| or_dash(Some(&event.description))),
        ],
        "no scheduled or started events",
    )
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
        assert_eq!(meant("abcd-1"), Ok(EventId::new("ABCD-1")), "an exact id wins over a prefix");
        let several = meant("abcd").unwrap_err();
        assert_eq!(several, "ambiguous prefix: ABCD-1, ABCD-12; use a longer one");
        for none in ["", "abc", "abcd-123", "abcd-1\0", "aéé", "éééé"] {
            assert!(meant(none).unwrap_err().contains("events: ABCD-1, ABCD-12, é-very-odd ("), "{none:?}");
        }
    }

    #[test]
    fn error_lists_limited_number_of_events() {
        let ids: Vec<String> = (10..22).map(|number| format!("event-{number}")).collect();
        let told = resolve_event("nothing".to_owned(), &document(&ids)).1.unwrap_err().to_string();
        assert!(told.contains("event-10, ") && told.contains("event-19, and 2 more ("), "{told}");
    }
}
