//! `notbefore host …`: what happens to all the VMs of a host.
//!
//! A change first asks the service what it would come to and shows that. At a terminal it then asks the person;
//! elsewhere there is nobody to ask.

use std::collections::HashSet;

use anyhow::Result;
use notbefore_wire::operator::hosts::{Host, HostAction, HostPlan, HostsAction, HostsPlan, PlannedEvent};
use notbefore_wire::operator::{HostVerb, Maintenance as Word, Operation, Release, Vm};

use crate::args::{self, Care, Maintenance, Output, Wait, When, Words};
use crate::client::{Client, encode};
use crate::confirm::{self, Question, Unattended};
use crate::output::{self, Table};
use crate::vm::when;
use crate::{operation, time};

/// How many events of a plan a person is shown; a program gets all of them.
const EVENTS_SHOWN_MAX: usize = 40;
/// How many VMs of one event a person is shown.
const VMS_SHOWN_MAX: usize = 6;

pub fn run(client: &Client, verb: args::Host, output: Output) -> Result<()> {
    match verb {
        args::Host::List => list(&client.list("/v1/hosts", &[])?, output),
        args::Host::Show { host } => show(client, &host, output),
        args::Host::Maintain { hosts, r#type, when, words, care, wait } => {
            let maintenance = match r#type {
                Maintenance::Freeze => Word::Freeze,
                Maintenance::Reboot => Word::Reboot,
                Maintenance::Redeploy => Word::Redeploy,
                Maintenance::LiveMigration => Word::LiveMigration,
            };
            let action = HostAction { maintenance: Some(maintenance), ..action(when, words) };
            announce(client, &HostVerb::Maintain, &hosts, &action, (&care, &wait), output)
        }
        args::Host::Degraded { hosts, when, words, care, wait } => {
            announce(client, &HostVerb::Degraded, &hosts, &action(when, words), (&care, &wait), output)
        }
        args::Host::Failed { hosts, words, care, wait } => {
            let at_once = When { not_before: None, r#in: None };
            announce(client, &HostVerb::Failed, &hosts, &action(at_once, words), (&care, &wait), output)
        }
    }
}

fn action(when: When, words: Words) -> HostAction {
    HostAction {
        maintenance: None,
        not_before: when.not_before,
        in_seconds: when.r#in.map(|span| span.as_secs()),
        description: words.description,
        duration_seconds: words.duration,
        dry_run: false,
    }
}

fn at(host: &str, rest: &str) -> String {
    format!("/v1/hosts/{}{rest}", encode(host))
}

fn list(hosts: &[Host], output: Output) -> Result<()> {
    if output == Output::Json {
        return output::json(&hosts);
    }
    let mut table = Table::new(&["HOST", "VMS", "SCOPES", "LISTENING", "EVENTS", "OPERATION"]);
    for host in hosts {
        table.row([
            host.host.clone(),
            vms(host),
            host.scopes.to_string(),
            listening(host.listening, host.listening_unknown),
            host.events.to_string(),
            open_operations(host),
        ]);
    }
    table.print("no VM says which host it is on; 'notbefore vm add --host' and the fleet file's 'host' do")
}

fn vms(host: &Host) -> String {
    match host.deallocated {
        0 => host.vms.to_string(),
        some => format!("{} ({some} deallocated)", host.vms),
    }
}

fn listening(known: usize, unknown: usize) -> String {
    match unknown {
        0 => known.to_string(),
        some => format!("{known} ({some} not known yet)"),
    }
}

fn open_operations(host: &Host) -> String {
    match host.operations.as_slice() {
        [] => "-".to_owned(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}

fn show(client: &Client, name: &str, output: Output) -> Result<()> {
    let host: Host = client.get(&at(name, ""))?;
    if output == Output::Json {
        return output::json(&host);
    }
    output::line(&host.host)?;
    for (name, value) in [
        ("VMs", vms(&host)),
        ("scopes", host.scopes.to_string()),
        ("listening", listening(host.listening, host.listening_unknown)),
        ("events", host.events.to_string()),
        ("operation", open_operations(&host)),
    ] {
        output::line(&format!("  {name:<13}{value}"))?;
    }
    let vms: Vec<Vm> = client.list("/v1/vms", &[("host", Some(host.host))])?;
    crate::vm::table(&vms).print("no VM is on it any more")
}

/// Shows what would happen to each host, asks, and makes it happen: one operation for each host.
fn announce(
    client: &Client,
    verb: &HostVerb,
    hosts: &[String],
    action: &HostAction,
    (care, wait): (&Care, &Wait),
    output: Output,
) -> Result<()> {
    // In the order typed, which decides who goes first where they have to take turns.
    let mut named = HashSet::new();
    let hosts: Vec<String> = hosts.iter().filter(|host| named.insert(host.as_str())).cloned().collect();
    let asks = !care.yes && confirm::is_attended();
    // What one of them is refused stops all of them, before anything is announced.
    let look = HostsAction { hosts: hosts.clone(), verb: verb.clone(), action: action.clone() };
    let plan: HostsPlan = client.post("/v1/hosts/plan", &look)?;
    let question =
        Question { ask: "Announce this?", nothing: "nothing was announced", unattended: Unattended::GoesOn };
    if care.dry_run {
        return confirm::show_only(output, question.nothing, &plan, hosts_lines);
    }
    // Programs get what was made; a person who is asked must see what about.
    if output == Output::Table || asks {
        confirm::show(output, &hosts_lines(&plan))?;
    }
    confirm::ask(care.yes, &question)?;
    let mut made: Vec<Operation> = Vec::new();
    for host in &hosts {
        match client.post::<Operation>(&at(host, &format!("/{verb}")), action) {
            Ok(operation) => {
                if output == Output::Table {
                    output::line(&announced(&operation))?;
                }
                made.push(operation);
            }
            Err(error) => {
                let done: Vec<&str> = made.iter().filter_map(|one| one.host.as_deref()).collect();
                let done = if done.is_empty() { "none".to_owned() } else { done.join(", ") };
                return Err(error.context(format!("host {host} (announced before it: {done})")));
            }
        }
    }
    if wait.wait {
        let ids: Vec<String> = made.iter().map(|one| one.id.to_string()).collect();
        return operation::wait(client, &ids, wait.timeout, output);
    }
    match output {
        Output::Json => output::json(&made),
        Output::Table => {
            let ids: Vec<String> = made.iter().map(|one| one.id.to_string()).collect();
            output::line(&format!(
                "follow with 'notbefore operation wait {}', call one off with 'notbefore operation cancel ID'",
                ids.join(" ")
            ))
        }
    }
}

fn announced(made: &Operation) -> String {
    let host = made.host.as_deref().unwrap_or_default();
    let refused = match made.progress.refused {
        0 => String::new(),
        some => format!("; {some} events were refused: 'notbefore operation show {}' says why", made.id),
    };
    format!(
        "operation {}: {} of host {host}, {} events in {} scopes, not before {}{refused}",
        made.id,
        made.cause,
        made.progress.events,
        made.progress.scopes,
        when(made.not_before)
    )
}

/// What would happen to each host, and for several of them what that comes to together.
fn hosts_lines(plan: &HostsPlan) -> Vec<String> {
    let mut lines: Vec<String> = plan.hosts.iter().flat_map(plan_lines).collect();
    if plan.hosts.len() < 2 {
        return lines;
    }
    lines.push("together:".to_owned());
    let mut table = Table::new(&["  SCOPE", "VMS", "HIT", "AT ONCE", "HOSTS"]);
    for one in plan.scopes.iter().take(EVENTS_SHOWN_MAX) {
        table.row([
            format!("  {}", one.scope),
            one.vms.to_string(),
            one.hit.to_string(),
            one.at_once.to_string(),
            one.hosts.to_string(),
        ]);
    }
    lines.extend(table.lines());
    if let Some(more @ 1..) = plan.scopes.len().checked_sub(EVENTS_SHOWN_MAX) {
        lines.push(format!("  and {more} more scopes; --dry-run --output json shows all"));
    }
    for wait in &plan.waits {
        let scopes = match wait.scopes.as_slice() {
            [one] => format!("in {one}"),
            [first, more @ ..] => format!("in {first} and {} more scopes", more.len()),
            [] => String::new(),
        };
        lines.push(format!("  {} waits for {} ({scopes})", wait.host, some_hosts(&wait.waits_for)));
    }
    lines
}

fn some_hosts(hosts: &[String]) -> String {
    match hosts.len().checked_sub(VMS_SHOWN_MAX) {
        None | Some(0) => hosts.join(", "),
        Some(more) => format!("{} and {more} more", hosts[..VMS_SHOWN_MAX].join(", ")),
    }
}

fn plan_lines(plan: &HostPlan) -> Vec<String> {
    let mut lines = vec![format!(
        "host {}: {} ({}) of {} VMs in {} scopes, {} events",
        plan.host,
        plan.event_type,
        plan.cause,
        plan.vms,
        plan.scopes,
        plan.events.len()
    )];
    let mut fact = |name: &str, value: String| lines.push(format!("  {name:<13}{value}"));
    match plan.not_before {
        None => fact("starts", "at once, without notice".to_owned()),
        Some(at) => {
            fact("not before", format!("{at} ({})", time::relative(at, time::now())));
            let early = match plan.release {
                Release::Together => "when every event is approved",
                Release::Each | Release::Unknown(_) => "each event when it is approved",
            };
            fact("early start", early.to_owned());
        }
    }
    let known = format!("{} of {} VMs", plan.listening, plan.vms);
    match plan.listening_unknown {
        0 => fact("listening", known),
        some => {
            fact("listening", format!("{known}; of {some} it is not known yet, the service has just started"))
        }
    }
    let silent = plan.vms - plan.listening - plan.listening_unknown;
    if silent > 0 {
        let more = silent - plan.silent.len().min(silent);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        fact("hear nothing", format!("{}{more}", plan.silent.join(", ")));
    }
    if plan.deallocated > 0 {
        fact("left out", format!("{} deallocated VMs", plan.deallocated));
    }
    for open in &plan.operations {
        fact("note", format!("operation {open} on this host is not closed yet"));
    }
    let mut table = Table::new(&["  SCOPE", "UD", "LISTENING", "VMS", "NOTE"]);
    for event in plan.events.iter().take(EVENTS_SHOWN_MAX) {
        table.row([
            format!("  {}", event.scope),
            event.update_domain.to_string(),
            format!("{}/{}", event.listening, event.resources.len()),
            some_names(event),
            note(event),
        ]);
    }
    lines.extend(table.lines());
    let refused = plan.events.iter().skip(EVENTS_SHOWN_MAX).filter(|event| event.refused.is_some()).count();
    if plan.events.len() > EVENTS_SHOWN_MAX {
        let refused = if refused == 0 { String::new() } else { format!(", {refused} of them refused") };
        let more = plan.events.len() - EVENTS_SHOWN_MAX;
        lines.push(format!("  and {more} more events{refused}; --dry-run --output json shows all"));
    }
    lines
}

fn some_names(event: &PlannedEvent) -> String {
    let names: Vec<&str> =
        event.resources.iter().take(VMS_SHOWN_MAX).map(|resource| resource.name.as_str()).collect();
    match event.resources.len().checked_sub(VMS_SHOWN_MAX) {
        None | Some(0) => names.join(","),
        Some(more) => format!("{} and {more} more", names.join(",")),
    }
}

fn note(event: &PlannedEvent) -> String {
    match (&event.refused, &event.refused_because, &event.waits_for) {
        (Some(code), Some(why), _) => format!("refused: {why} ({code})"),
        (Some(code), None, _) => format!("refused: {code}"),
        (None, _, Some(what)) => format!("waits for {what}"),
        (None, _, None) => String::new(),
    }
}
