//! `notbefore agent status`: what the agent handles, by its own word or by its journal's. It has to do when something is
//! wrong, and for users who may read neither configuration nor journal: whoever may connect to the agent is told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::Full;
use hyper::Request;
use jiff::Timestamp;
use notbefore_agent::config::{self, FlagValue, Sources, Whereabouts};
use notbefore_agent::journal;
use notbefore_agent::overview::{self, Overview};
use notbefore_agent::signals::board::Events;

use crate::args::{Output, Status};
use crate::http::Http;
use crate::output::{self, Table, or_dash};
use crate::time;
use crate::trust::{self, Trust};

/// How long the agent has to answer: it is on this machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

pub fn run(status: &Status, output: Output) -> Result<()> {
    let flags = [("listen", &status.listen), ("state", &status.state)].into_iter();
    let place = config::whereabouts(&Sources {
        file: status.config.clone(),
        environment: config::process_environment(),
        flags: flags.filter_map(|(key, value)| Some(FlagValue::of_key(key, value.clone()?))).collect(),
    })?;
    if let Some(untrusted) = place.unread.as_ref().filter(|_| place.is_untrusted) {
        output::complain(&format!("warning: the configuration is not read: {untrusted}"));
    }
    let asked = match place.listen {
        Some(address) => ask(address).with_context(|| format!("no agent answers at {address}")),
        None => Err(anyhow!("the agent's listen is \"none\"")),
    };
    let events = match asked {
        Ok(events) => events,
        Err(error) => by_journal(&place).with_context(|| match &place.unread {
            Some(unread) => format!("{error:#}; {unread}: --listen and --state name what it may say"),
            None => format!("{error:#}"),
        })?,
    };
    match output {
        Output::Json => output::json(&events),
        Output::Table => show(&events, time::now()),
    }
}

/// Asks the agent that runs.
pub fn ask(address: SocketAddr) -> Result<Events> {
    // An agent that listens everywhere also listens here.
    let host = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let url = format!("http://{}/events", SocketAddr::new(host, address.port()));
    let request = Request::get(&url).body(Full::default())?;
    let answer = Http::new(trust::tls(&Trust::Usual)?)?.exchange(request, ANSWER_WITHIN)?;
    if !answer.status().is_success() {
        bail!("it answers {}", answer.status());
    }
    serde_json::from_slice(answer.body()).with_context(|| format!("{url} is no agent's"))
}

/// What the last agent has written down.
fn by_journal(place: &Whereabouts) -> Result<Events> {
    let state = journal::peek(&place.state)
        .with_context(|| format!("and there is no journal to read in {}", place.state.display()))?;
    let events = overview::of(&state);
    Ok(Events {
        vm: None,
        endpoint: None,
        dry_run: false,
        draining: events.iter().any(|event| event.draining),
        not_ready: Some("no agent runs; this is what its journal holds".to_owned()),
        events,
    })
}

fn show(events: &Events, now: Timestamp) -> Result<()> {
    let vm = events.vm.as_deref().unwrap_or("this VM");
    let at = events.endpoint.as_ref().map(|endpoint| format!(", platform at {endpoint}")).unwrap_or_default();
    let service = if events.draining { "draining" } else { "in service" };
    let dry = if events.dry_run { ", dry run" } else { "" };
    output::line(&format!("{vm}: {service}{at}{dry}"))?;
    if let Some(why) = &events.not_ready {
        output::line(&format!("not ready: {why}"))?;
    }
    let mut table =
        Table::new(&["EVENT", "TYPE", "STATUS", "NOT BEFORE", "MINE", "RULE", "PHASE", "STEP", "APPROVAL"]);
    for event in &events.events {
        table.row(row(event, now));
    }
    table.print("there are no events")
}

fn row(event: &Overview, now: Timestamp) -> [String; 9] {
    let not_before = event.not_before.map(|at| time::relative(at, now));
    [
        event.id.clone(),
        event.r#type.clone(),
        event.status.clone(),
        or_dash(not_before.as_deref()),
        if event.mine { "yes" } else { "no" }.to_owned(),
        or_dash(event.rule.as_deref()),
        event.phase.clone(),
        or_dash(event.step.as_deref()),
        event.approval.clone(),
    ]
}
