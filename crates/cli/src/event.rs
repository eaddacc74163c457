//! `notbefore event …`

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use notbefore_wire::natural;
use notbefore_wire::operator::delivery::SeenBy;
use notbefore_wire::operator::history::{DayCount, HistorySummary};
use notbefore_wire::operator::{
    CommandState, CompleteEvent, Event, EventSort, EventStatus, EventVerb, ExecCommand, Order, ScheduleEvents,
};
use notbefore_wire::text::counted;
use serde_json::{Value, json};

use crate::args::{self, Output};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::each::{each, planned, unique, unique_ids};
use crate::exit::UsageError;
use crate::operation::{self, host_command, names};
use crate::output::{self, or_dash, yes_no};
use crate::table::{Colour, Column};
use crate::wait::{Kind, wait};
use crate::{fact, fleet_plan, time, watch};

pub fn run(client: &Client, verb: args::Event, output: Output) -> Result<()> {
    match verb {
        args::Event::List { scope, vm, host, r#type, status, sort, list } => {
            let query = [
                ("scope", scope.clone()),
                ("vm", vm),
                ("host", host),
                ("type", r#type.map(|event_type| event_type.to_string())),
                ("status", status.map(|status| status.to_string())),
                ("sort", Some(sort.to_string())),
            ];
            watch::show(&list.watch, || {
                let events = client.list_first("/v1/events", &query, list.limit());
                let mut events: Vec<Event> = fleet_plan::or_unknown_scope(client, scope.as_deref(), events)?;
                if output.is_text() && sort == EventSort::Time {
                    order_equal_times(&mut events);
                }
                output.list(&events, &live_columns(), "no scheduled or started events")
            })
        }
        args::Event::Show { event } => output.answer(&client.get(&at(&event, ""))?, show),
        args::Event::Schedule { vms, r#type, cause, when, message, force, dry_run } => {
            let request = ScheduleEvents {
                event_type: r#type,
                cause,
                vms: unique(&vms),
                not_before: when.not_before,
                in_seconds: when.r#in.map(|span| span.as_secs()),
                description: message.description,
                duration_seconds: message.duration,
                force,
                revisions: None,
                dry_run,
            };
            operation::schedule(client, &request, output)
        }
        args::Event::Cancel { events, confirmation } => {
            let question = Question::optional("Cancel this?", "nothing was cancelled");
            let plan = || planned(&events, |event| client.get::<Event>(&at(event, "")));
            if let Decision::DryRun =
                confirm::show_and_ask(&confirmation, output, question, plan, |events| {
                    cancel_plan(events, output)
                })?
            {
                return Ok(());
            }
            act(client, &events, EventVerb::Cancel, &json!({}), output)
        }
        args::Event::Approve { events } => act(client, &events, EventVerb::Approve, &json!({}), output),
        args::Event::Start { events } => act(client, &events, EventVerb::Start, &json!({}), output),
        args::Event::Complete { events, host } => {
            let events = unique_ids(&events);
            let hosts: BTreeMap<String, String> = host.into_iter().collect();
            if !hosts.is_empty() && events.len() > 1 {
                let cure =
                    "--host is for one event; complete each event with new hosts by a command of its own";
                return Err(UsageError(cure.to_owned()).into());
            }
            let body = serde_json::to_value(CompleteEvent { hosts })?;
            act(client, &events, EventVerb::Complete, &body, output)
        }
        args::Event::Retry { events } => act(client, &events, EventVerb::Retry, &json!({}), output),
        args::Event::Wait { events, until } => wait(client, Kind::Events, &events, &until, output),
        args::Event::History { since, until, scope, vm, host, r#type, outcome, newest, summary, limit } => {
            let now = time::now();
            let query = [
                ("since", Some(since.at(now).to_string())),
                ("until", until.map(|until| until.at(now).to_string())),
                ("scope", scope.clone()),
                ("vm", vm),
                ("host", host),
                ("type", r#type.map(|event_type| event_type.to_string())),
                ("outcome", outcome.map(|outcome| outcome.to_string())),
                ("order", newest.then(|| Order::Newest.to_string())),
            ];
            if summary {
                let query = query
                    .iter()
                    .filter_map(|(name, value)| Some(format!("{name}={}", encode(value.as_deref()?))));
                let path = format!("/v1/history/summary?{}", query.collect::<Vec<_>>().join("&"));
                return output.answer(&client.get(&path)?, |summary| show_summary(summary, output));
            }
            let events: Vec<Event> = client.list_first("/v1/history", &query, limit.unwrap_or(usize::MAX))?;
            output::text(&output.list(&events, &ended_columns(), "no events ended in that time")?)
        }
        args::Event::Watch { count } => follow(client, count, output),
    }
}

/// Puts events of the same time in natural order of their VMs; the service has them in order of their ids.
fn order_equal_times(events: &mut [Event]) {
    let is_same = |one: &Event, two: &Event| {
        one.status == two.status && one.not_before.or(one.started_at) == two.not_before.or(two.started_at)
    };
    for run in events.chunk_by_mut(is_same) {
        run.sort_by(|one, two| natural::compare(&names(&one.resources), &names(&two.resources)));
    }
}

fn show_summary(summary: &HistorySummary, output: Output) -> Result<()> {
    let columns = [
        Column::new("DAY (UTC)", &|one: &DayCount| one.day.to_string().chars().take(10).collect()),
        Column::new("TYPE", &|one| one.event_type.to_string()),
        Column::new("OUTCOME", &|one| one.outcome.to_string()),
        Column::new("EVENTS", &|one| one.events.to_string()),
    ];
    output::text(&output.table(&summary.days, &columns, "no events ended in that time"))?;
    let approval = &summary.approval;
    if approval.events > 0 {
        let [half, most, all] =
            [approval.p50_seconds, approval.p90_seconds, approval.max_seconds].map(time::span);
        output::line(&format!(
            "{} approved: half within {half}, nine in ten within {most}, all within {all}",
            counted(approval.events, "event")
        ))?;
    } else if summary.events > 0 {
        output::line("none was approved")?;
    }
    match summary.partial {
        true => output::line(&format!("there are more: these ended since {:.0}", summary.since)),
        false => Ok(()),
    }
}

fn at(event: &str, rest: &str) -> String {
    format!("/v1/events/{}{rest}", encode(event))
}

fn act(client: &Client, events: &[String], verb: EventVerb, body: &Value, output: Output) -> Result<()> {
    let act = |event: &str| client.post(&at(event, &format!("/{verb}")), body);
    each(events, output, act, |event: &Event| {
        let waits = event.waits_for.as_ref().map(|what| format!("; waits for {}", time::in_text(what)));
        output::line(&format!("event {} is {}{}", event.id, event.status, waits.unwrap_or_default()))
    })
}

/// Text of the plan: the effect of cancelling on each event.
fn cancel_plan(events: &[Event], output: Output) -> Vec<String> {
    let columns = [
        Column::id("EVENT", &|event: &Event| event.id.to_string()),
        Column::new("TYPE", &|event| event.event_type.to_string()),
        Column::path("SCOPE", &|event| event.scope.clone()),
        Column::optional("STATUS", &|event| event.status.to_string()),
        Column::text("VMS", &|event| names(&event.resources)),
        Column::text("CANCELLED", &|event| cancellation(event).to_owned()),
    ];
    output.table_lines(events, &columns)
}

fn cancellation(event: &Event) -> &'static str {
    match event.status {
        EventStatus::Scheduled | EventStatus::Advisory => "is cancelled",
        EventStatus::Started => "no: already started",
        EventStatus::Completed | EventStatus::Cancelled | EventStatus::Unknown(_) => "no: already ended",
    }
}

/// VMs that have not read the event: names if few, else their number.
fn unread(event: &Event) -> String {
    const NAMED_MAX: usize = 3;
    match event.unread_by.len() {
        0 => "-".to_owned(),
        1..=NAMED_MAX => event.unread_by.join(","),
        many => format!("{many} of {}", counted(event.resources.len(), "VM")),
    }
}

/// Whether an exec command needs an operator.
fn has_failed(event: &Event) -> bool {
    event.exec.iter().any(|exec| {
        exec.commands.iter().any(|command| command.state == CommandState::Failed)
            || exec.host_command.as_ref().is_some_and(|command| command.state == CommandState::Failed)
    })
}

/// The event's status, with `failed` if an exec command needs an operator.
fn status(event: &Event) -> String {
    match has_failed(event) {
        true => format!("{}, failed", event.status),
        false => event.status.to_string(),
    }
}

fn status_colour(event: &Event) -> Option<Colour> {
    let started = (event.status == EventStatus::Started).then_some(Colour::Yellow);
    if has_failed(event) { Some(Colour::Red) } else { started }
}

/// The hosts of the VMs, each once.
fn hosts(event: &Event) -> String {
    let hosts: BTreeSet<&str> = event.resources.iter().filter_map(|one| one.host.as_deref()).collect();
    or_dash(Some(&hosts.into_iter().collect::<Vec<_>>().join(",")))
}

fn live_columns() -> [Column<'static, Event>; 11] {
    type Of = Column<'static, Event>;
    [
        Of::id("EVENT", &|event| event.id.to_string()),
        Of::new("TYPE", &|event| event.event_type.to_string()),
        Of::new("STATUS", &status).coloured(&status_colour),
        Of::new("WHEN", &|event| {
            event.not_before.or(event.started_at).map(time::from_now).unwrap_or_default()
        }),
        Of::new("APPROVED", &|event| yes_no(event.approved)),
        Of::optional("SOURCE", &|event| event.source.to_string()),
        Of::path("SCOPE", &|event| event.scope.clone()),
        Of::text("VMS", &|event| names(&event.resources)),
        Of::text("UNREAD BY", &unread)
            .coloured(&|event| (!event.unread_by.is_empty()).then_some(Colour::Yellow)),
        Of::wide("HOSTS", &hosts),
        Of::wide("OPERATION", &|event| event.operation.to_string()),
    ]
}

fn ended_columns() -> [Column<'static, Event>; 9] {
    type Of = Column<'static, Event>;
    [
        Of::id("EVENT", &|event| event.id.to_string()),
        Of::new("TYPE", &|event| event.event_type.to_string()),
        Of::new("OUTCOME", &|event| event.status.to_string()),
        Of::new("ENDED", &|event| event.ended_at.map(time::from_now).unwrap_or_default()),
        Of::new("DURATION", &|event| or_dash(lasted(event).as_deref())),
        Of::path("SCOPE", &|event| event.scope.clone()),
        Of::text("VMS", &|event| names(&event.resources)),
        Of::wide("HOSTS", &hosts),
        Of::wide("OPERATION", &|event| event.operation.to_string()),
    ]
}

/// How long an ended event was started.
fn lasted(event: &Event) -> Option<String> {
    let (from, to) = event.started_at.zip(event.ended_at)?;
    Some(time::span(to.duration_since(from).as_secs().unsigned_abs()))
}

fn show(event: &Event) -> Result<()> {
    output::line(&format!("{} {} is {}", event.event_type, event.id, event.status))?;
    let seconds = match event.duration_seconds {
        -1 => "unknown".to_owned(),
        seconds => format!("{seconds} s"),
    };
    let by = event.exec.as_ref().map(|exec| format!("process {}, fencing number {}", exec.owner, exec.fence));
    output::fields::<13>(&[
        ("VMs", names(&event.resources)),
        ("scope", format!("{}, update domain {}", event.scope, event.update_domain)),
        ("cause", format!("{} ({})", event.cause, event.source)),
        ("description", event.description.clone()),
        ("duration", seconds),
        ("driver", event.driver.to_string()),
        ("operation", event.operation.to_string()),
        ("not before", event.not_before.map(time::and_from_now).unwrap_or_default()),
        ("waits for", event.waits_for.as_deref().map(time::in_text).unwrap_or_default()),
        ("commands", by.map(|by| format!("run by {by}")).unwrap_or_default()),
    ])?;
    let commands: Vec<&ExecCommand> = event.exec.iter().flat_map(|exec| &exec.commands).collect();
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or_default();
    for command in commands {
        output::line(&format!("    {:<width$}  {}", command.name, command_status(command)))?;
    }
    if let Some(command) = event.exec.as_ref().and_then(|exec| exec.host_command.as_ref()) {
        output::line(&format!("  host command {}", host_command(command)))?;
    }
    if !event.seen.is_empty() {
        output::line("  read by")?;
    }
    let width = event.seen.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for one in &event.seen {
        output::line(&format!("    {:<width$}  {}", one.name, read(event, one)))?;
    }
    output::line("  trail")?;
    for entry in &event.trail {
        let detail = fact::detail(entry);
        let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
        let at = time::milliseconds(entry.at);
        output::line(&format!("    {at}  {:<15} by {}{detail}", entry.what.kind(), entry.by))?;
    }
    Ok(())
}

/// State of an exec command as text.
fn command_status(command: &ExecCommand) -> String {
    let attempt = command.attempt.map_or_else(String::new, |attempt| format!(", attempt {attempt}"));
    let left = command.attempts_left.map(|left| format!("; {} left", counted(left, "attempt")));
    let left = left.unwrap_or_default();
    let next = command.due_at.map_or_else(String::new, |at| format!(", next attempt {}", time::from_now(at)));
    let why = fact::because(command.why.as_deref());
    let host = command.host.as_ref().map_or_else(String::new, |host| format!(", on host {host}"));
    format!("{}{next}{attempt}{host}{why}{left}", command.state)
}

/// When a VM read the event, as text.
fn read(event: &Event, seen: &SeenBy) -> String {
    let Some(at) = seen.first_read_at else { return "not read".to_owned() };
    let version = seen.api_version.as_deref().unwrap_or_default();
    let waited = event.trail.first().map(|fact| at.duration_since(fact.at).as_secs().unsigned_abs());
    let waited = waited.map(|seconds| format!(", {} after it was scheduled", time::span(seconds)));
    format!("{} at api-version {version}{}", time::milliseconds(at), waited.unwrap_or_default())
}

/// Prints facts from the stream, a line each.
fn follow(client: &Client, count: Option<usize>, output: Output) -> Result<()> {
    output::eprint("waiting for facts; stop with Ctrl-C");
    client
        .facts(None)
        .take(count.unwrap_or(usize::MAX))
        .try_for_each(|shown| output.item(&shown?, |shown| output::line(&fact::line(shown))))
}
