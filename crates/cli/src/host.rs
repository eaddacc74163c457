//! `notbefore host …`: maintenance of all VMs of a host.
//!
//! A change first gets a plan from the service and shows it. At a terminal it then asks for confirmation.

use std::collections::HashSet;

use anyhow::{Context, Result};
use notbefore_wire::operator::hosts::{Host, HostAction, HostsAction, HostsPlan, ScopeImpact};
use notbefore_wire::operator::plan::{Plan, PlannedEvent};
use notbefore_wire::operator::{HostState, HostVerb, Maintenance as Word, Operation, Release, Vm};
use notbefore_wire::text::counted;

use crate::args::{self, ConfirmArgs, Hosts, Maintenance, Output, Stage, UntilArgs, WhenArgs};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::each::{each_name, planned_names};
use crate::output;
use crate::table::Column;
use crate::vm::when;
use crate::wait::{self, Kind};
use crate::{fleet_apply, host_totals, many, time, watch};

/// Limit of events in the text of a plan; JSON has all.
const EVENTS_SHOWN_MAX: usize = 40;
/// Limit of VMs per event in the text of a plan.
const VMS_SHOWN_MAX: usize = 6;

pub fn run(client: &Client, verb: args::Host, output: Output) -> Result<()> {
    match verb {
        args::Host::List(list) => {
            let none =
                "no VM has had a host; set it with 'notbefore vm add --host' or 'host' in the fleet file";
            watch::show(&list.watch, || {
                let hosts: Vec<Host> = client.list_first("/v1/hosts", &[], list.limit())?;
                output.list(&hosts, &columns(), none)
            })
        }
        args::Host::Show { host } => {
            output.answer(&client.get::<Host>(&at(&host, ""))?, |host| show(client, host, output))
        }
        args::Host::Maintain { r#type, when, hosts } => {
            let maintenance = match r#type {
                Maintenance::Freeze => Word::Freeze,
                Maintenance::Reboot => Word::Reboot,
                Maintenance::Redeploy => Word::Redeploy,
                Maintenance::LiveMigration => Word::LiveMigration,
            };
            announce(client, &HostVerb::Maintain, Some(maintenance), when, hosts, output)
        }
        args::Host::Degraded { when, hosts } => {
            announce(client, &HostVerb::Degraded, None, when, hosts, output)
        }
        args::Host::Failed(hosts) => {
            announce(client, &HostVerb::Failed, None, WhenArgs::default(), hosts, output)
        }
        args::Host::Ok { hosts } => set_ok(client, &hosts, output),
        args::Host::Forget { hosts, confirmation } => forget(client, &hosts, &confirmation, output),
    }
}

/// Hosts in their order, each once. The order decides which host goes first if they must take turns.
fn unique(hosts: &[String]) -> Vec<String> {
    let mut named = HashSet::new();
    hosts.iter().filter(|host| named.insert(host.as_str())).cloned().collect()
}

/// Reports hosts as ok, one after the other.
fn set_ok(client: &Client, hosts: &[String], output: Output) -> Result<()> {
    let change = |host: &str| client.post::<Host>(&at(host, "/ok"), &());
    let show = |host: &Host| {
        output::line(&format!("host {} is ok", host.host))?;
        host.operations.iter().try_for_each(|open| {
            output::line(&format!(
                "  operation {open} on it is open; 'notbefore operation cancel {open}' cancels it"
            ))
        })
    };
    each_name(&unique(hosts), output, change, show, None)
}

fn forget(client: &Client, hosts: &[String], confirmation: &ConfirmArgs, output: Output) -> Result<()> {
    let hosts = unique(hosts);
    let question = Question::optional("Forget?", "nothing was removed");
    let plan = || planned_names(&hosts, |host| client.get::<Host>(&at(host, "")));
    let lines = |hosts: &Vec<Host>| {
        let line = |host: &Host| format!("host {}: {}, {}", host.host, host.state, counted(host.vms, "VM"));
        hosts.iter().map(line).collect()
    };
    if let Decision::DryRun = confirm::show_and_ask(confirmation, output, question, plan, lines)? {
        return Ok(());
    }
    let change = |host: &str| client.delete_at::<()>(&at(host, ""), None).map(|_| host.to_owned());
    let show = |host: &String| output::line(&format!("host {host} is forgotten"));
    each_name(&hosts, output, change, show, None)
}

fn at(host: &str, rest: &str) -> String {
    format!("/v1/hosts/{}{rest}", encode(host))
}

fn columns() -> [Column<'static, Host>; 7] {
    type Of = Column<'static, Host>;
    [
        Of::text("HOST", &|host| host.host.clone()),
        Of::new("STATE", &|host| host.state.to_string()),
        Of::new("VMS", &vms),
        Of::optional("SCOPES", &|host| host.scopes.to_string()),
        Of::new("LISTENING", &listening),
        Of::new("EVENTS", &|host| host.events.to_string()),
        Of::id("OPERATION", &open_operations),
    ]
}

/// The state, and who reported it when. That of a host that has always been ok says nothing.
fn state(host: &Host) -> String {
    match (&host.state, host.since, &host.by) {
        (HostState::Degraded | HostState::Failed, Some(since), Some(by)) => {
            format!("{} since {}, by {by}", host.state, time::and_from_now(since))
        }
        (_, _, _) => host.state.to_string(),
    }
}

fn vms(host: &Host) -> String {
    match host.deallocated {
        0 => host.vms.to_string(),
        some => format!("{} ({some} deallocated)", host.vms),
    }
}

fn listening(host: &Host) -> String {
    match host.listening_unknown {
        0 => host.listening.to_string(),
        some => format!("{} ({some} unknown)", host.listening),
    }
}

fn open_operations(host: &Host) -> String {
    match host.operations.as_slice() {
        [] => "-".to_owned(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}

fn show(client: &Client, host: &Host, output: Output) -> Result<()> {
    output::line(&host.host)?;
    output::fields::<13>(&[
        ("state", state(host)),
        ("VMs", vms(host)),
        ("scopes", host.scopes.to_string()),
        ("listening", listening(host)),
        ("events", host.events.to_string()),
        ("operation", open_operations(host)),
    ])?;
    let vms: Vec<Vm> = client.list("/v1/vms", &[("host", Some(host.host.clone()))])?;
    output::text(&output.list(&vms, &crate::vm::columns(), "no VMs on this host")?)
}

/// Shows the plan, asks for confirmation, and creates one operation per host.
fn announce(
    client: &Client,
    verb: &HostVerb,
    maintenance: Option<Word>,
    when: WhenArgs,
    Hosts { hosts, message, confirmation, wait }: Hosts,
    output: Output,
) -> Result<()> {
    let action = HostAction {
        maintenance,
        not_before: when.not_before,
        in_seconds: when.r#in.map(|span| span.as_secs()),
        description: message.description,
        duration_seconds: message.duration,
        vms: None,
        dry_run: false,
    };
    let hosts = unique(&hosts);
    let asks = !confirmation.yes && confirm::is_interactive();
    // A refusal of one host stops all, before anything is scheduled.
    let look = HostsAction { hosts: hosts.clone(), verb: verb.clone(), action: action.clone() };
    let plan: HostsPlan = client.post("/v1/hosts/plan", &look)?;
    let question = Question::optional("Schedule this?", "nothing was scheduled");
    if confirmation.dry_run {
        return confirm::show_only(output, question, &plan, |plan| hosts_lines(plan, output));
    }
    // JSON output has the result only, but a question needs its plan.
    if output.is_text() || asks {
        confirm::show(output, &hosts_lines(&plan, output))?;
    }
    confirm::ask(confirmation.yes, question)?;
    let plan_count = plan.hosts.len();
    let mut made: Vec<Operation> = Vec::new();
    for plan in &plan.hosts {
        let host = plan.host.as_deref().unwrap_or_default();
        // The events of the confirmed plan, and no others.
        let events = plan.events.iter().filter(|event| asks && event.refused.is_none());
        let vms = events.flat_map(|event| &event.resources).map(|one| one.vm).collect();
        let action = HostAction { vms: asks.then_some(vms), ..action.clone() };
        let made_one = client.post(&at(host, &format!("/{verb}")), &action);
        let operation = made_one.map_err(fleet_apply::explain_conflict).with_context(|| {
            let done: Vec<&str> = made.iter().filter_map(|one| one.host.as_deref()).collect();
            let done = if done.is_empty() { "none".to_owned() } else { done.join(", ") };
            format!("host {host} (already scheduled: {done})")
        })?;
        if output.is_text() && !many::shows_totals(plan_count, output) {
            output::line(&announced(&operation)).with_context(|| {
                format!("host {host} and those before it are scheduled, those after it are not")
            })?;
        }
        made.push(operation);
    }
    if many::shows_totals(made.len(), output) {
        output::lines(&many::totals(&made)).context(output::CHANGED)?;
    }
    let ids: Vec<String> = made.iter().map(|one| one.id.to_string()).collect();
    if wait.wait {
        let until = UntilArgs { stage: Stage::Ended, timeout: wait.timeout };
        return wait::wait(client, Kind::Operations, &ids, &until, output);
    }
    output.answer_change(&made, |_| output::line(&how_to_follow(&ids)))
}

/// The next commands. The ids of many operations fit no line.
fn how_to_follow(ids: &[String]) -> String {
    match many::are_many(ids.len()) {
        true => "follow with 'notbefore operation wait $(notbefore operation list --output name)', which waits for all open \
                 operations; cancel with 'notbefore operation cancel ID'"
            .to_owned(),
        false => {
            let ids = ids.join(" ");
            format!("follow with 'notbefore operation wait {ids}', cancel with 'notbefore operation cancel ID'")
        }
    }
}

fn announced(made: &Operation) -> String {
    let host = made.host.as_deref().unwrap_or_default();
    let refused = match made.progress.refused {
        0 => String::new(),
        some => {
            let some = counted(some, "event");
            format!("; {some} refused: see 'notbefore operation show {}'", made.id)
        }
    };
    format!(
        "operation {}: {} of host {host}, {} in {}, not before {}{refused}",
        made.id,
        made.cause,
        counted(made.progress.events, "event"),
        counted(made.progress.scopes, "scope"),
        when(made.not_before)
    )
}

/// Text of the plans, with totals per scope if there are several hosts.
fn hosts_lines(plan: &HostsPlan, output: Output) -> Vec<String> {
    if let Some(lines) = host_totals::lines(plan, output) {
        return lines;
    }
    let mut lines: Vec<String> = plan.hosts.iter().flat_map(|host| plan_lines(host, output)).collect();
    if plan.hosts.len() < 2 {
        return lines;
    }
    lines.push("total:".to_owned());
    let (shown, more) = first(&plan.scopes, EVENTS_SHOWN_MAX);
    let columns = [
        Column::path("SCOPE", &|one: &ScopeImpact| one.scope.clone()),
        Column::new("VMS", &|one| one.vms.to_string()),
        Column::new("AFFECTED", &|one| one.hit.to_string()),
        Column::new("AT ONCE", &|one| one.at_once.to_string()),
        Column::optional("HOSTS", &|one| one.hosts.to_string()),
    ];
    lines.extend(output.indented_table_lines(shown, &columns));
    if !more.is_empty() {
        let more = counted(more.len(), "more scope");
        lines.push(format!("  and {more}; --dry-run --output json shows all"));
    }
    for wait in &plan.waits {
        let scopes = match wait.scopes.as_slice() {
            [one] => format!("in {one}"),
            [first, more @ ..] => format!("in {first} and {}", counted(more.len(), "more scope")),
            [] => String::new(),
        };
        let hosts = some_of(&wait.waits_for, ", ", Clone::clone);
        lines.push(format!("  {} waits for {hosts} ({scopes})", wait.host));
    }
    lines
}

/// Splits a list after its first `most` items.
fn first<T>(items: &[T], most: usize) -> (&[T], &[T]) {
    items.split_at(most.min(items.len()))
}

/// Names of the first [`VMS_SHOWN_MAX`] items, and the number of the others.
fn some_of<T>(items: &[T], comma: &str, name: impl Fn(&T) -> String) -> String {
    let (shown, more) = first(items, VMS_SHOWN_MAX);
    let names = shown.iter().map(name).collect::<Vec<_>>().join(comma);
    if more.is_empty() { names } else { format!("{names} and {} more", more.len()) }
}

/// Text of the plan of an operation on a host or on VMs.
pub fn plan_lines(plan: &Plan, output: Output) -> Vec<String> {
    let host = plan.host.as_ref().map(|host| format!("host {host}: ")).unwrap_or_default();
    let mut lines = vec![format!(
        "{host}{} ({}) of {} in {}, {}",
        plan.event_type,
        plan.cause,
        counted(plan.vms, "VM"),
        counted(plan.scopes, "scope"),
        counted(plan.events.len(), "event")
    )];
    let mut fact = |name: &str, value: String| lines.push(format!("  {name:<13}{value}"));
    if plan.events.is_empty() {
        fact("note", "no VM runs on it; only the state of the host changes".to_owned());
        return lines;
    }
    match plan.not_before {
        None => fact("starts", "at once, without notice".to_owned()),
        Some(at) => {
            fact("not before", time::and_from_now(at));
            let early = match plan.release {
                Release::Together => "when every event is approved",
                Release::Each | Release::Unknown(_) => "each event when it is approved",
            };
            fact("early start", early.to_owned());
        }
    }
    let known = format!("{} of {}", plan.listening, counted(plan.vms, "VM"));
    match plan.listening_unknown {
        0 => fact("listening", known),
        some => fact("listening", format!("{known}; {some} unknown, the service has just started")),
    }
    let silent = plan.vms - plan.listening - plan.listening_unknown;
    if silent > 0 {
        let more = silent - plan.silent.len().min(silent);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        fact("silent", format!("{}{more}", plan.silent.join(", ")));
    }
    if plan.deallocated > 0 {
        fact("skipped", counted(plan.deallocated, "deallocated VM"));
    }
    for open in &plan.operations {
        fact("note", format!("operation {open} on this host is still open"));
    }
    let (shown, more) = first(&plan.events, EVENTS_SHOWN_MAX);
    let columns = [
        Column::path("SCOPE", &|event: &PlannedEvent| event.scope.clone()),
        Column::optional("UD", &|event| event.update_domain.to_string()),
        Column::new("LISTENING", &|event| format!("{}/{}", event.listening, event.resources.len())),
        Column::text("VMS", &|event| some_of(&event.resources, ",", |resource| resource.name.clone())),
        Column::text("NOTE", &note),
    ];
    lines.extend(output.indented_table_lines(shown, &columns));
    if !more.is_empty() {
        let refused = match more.iter().filter(|event| event.refused.is_some()).count() {
            0 => String::new(),
            some => format!(", {some} of them refused"),
        };
        let more = counted(more.len(), "more event");
        lines.push(format!("  and {more}{refused}; --dry-run --output json shows all"));
    }
    lines
}

fn note(event: &PlannedEvent) -> String {
    if let Some(why) = &event.starts_because {
        return format!("starts at once: {why}");
    }
    match (&event.refused, &event.refused_because, &event.waits_for) {
        (Some(code), Some(why), _) => format!("refused: {why} ({code})"),
        (Some(code), None, _) => format!("refused: {code}"),
        (None, _, Some(what)) => format!("waits for {what}"),
        (None, _, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_operations_are_not_listed_in_a_line() {
        let follow =
            |count: usize| how_to_follow(&(0..count).map(|id| format!("id-{id}")).collect::<Vec<_>>());
        let few =
            "follow with 'notbefore operation wait id-0 id-1', cancel with 'notbefore operation cancel ID'";
        assert_eq!(follow(2), few);
        assert!(follow(400).len() < 200 && follow(400).contains("operation list"), "{}", follow(400));
    }
}
