//! `notbefore operation …`, and the output of a newly created operation.

use anyhow::{Result, bail};
use notbefore_wire::natural;
use notbefore_wire::operator::plan::Plan;
use notbefore_wire::operator::{
    CommandState, HostCommand, HostStart, Operation, OperationProgress, OperationState, OperationTarget,
    OperationVerb, Resource, ScheduleEvents, TargetStatus,
};
use notbefore_wire::text::counted;

use crate::args::{self, Output};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::each::{each_or_totals, planned};
use crate::fact::because;
use crate::output::{self, or_dash};
use crate::table::{Colour, Column};
use crate::vm::when;
use crate::wait::{Kind, wait};
use crate::{host, many, time, watch};

/// The effect of cancelling an event that has not started.
const CANCELLED: &str = "is cancelled";
/// How to see what totals leave out.
const ALL_BY_WIDE: &str = "--output wide shows every event";

pub fn run(client: &Client, verb: args::Operation, output: Output) -> Result<()> {
    match verb {
        args::Operation::List { host, r#type, list } => {
            let query = [("host", host), ("type", r#type.map(|event_type| event_type.to_string()))];
            watch::show(&list.watch, || {
                let mut operations: Vec<Operation> =
                    client.list_first("/v1/operations", &query, list.limit())?;
                if output.is_text() {
                    order_equal_times(&mut operations);
                }
                output.list(&operations, &columns(), "no open operations")
            })
        }
        args::Operation::Show { operation } => {
            output.answer(&get(client, &operation)?, |operation| show(operation, output))
        }
        args::Operation::Cancel { operations, confirmation } => {
            let question = Question::optional("Cancel this?", "nothing was cancelled");
            let plan = || planned(&operations, |id| cancellable(get(client, id)?));
            let lines = |all: &Vec<Operation>| match many::shows_totals(all.len(), output) {
                true => cancel_totals(all),
                false => all.iter().flat_map(|one| cancel_plan(one, output)).collect(),
            };
            if let Decision::DryRun = confirm::show_and_ask(&confirmation, output, question, plan, lines)? {
                return Ok(());
            }
            act_on_each(client, &operations, &OperationVerb::Cancel, output)
        }
        args::Operation::Start { operations } => {
            act_on_each(client, &operations, &OperationVerb::Start, output)
        }
        args::Operation::Complete { operations } => {
            act_on_each(client, &operations, &OperationVerb::Complete, output)
        }
        args::Operation::Retry { operations } => {
            act_on_each(client, &operations, &OperationVerb::Retry, output)
        }
        args::Operation::Wait { operations, until } => {
            wait(client, Kind::Operations, &operations, &until, output)
        }
    }
}

/// Puts operations of the same time in natural order of their hosts; the service has them in order of their ids.
fn order_equal_times(operations: &mut [Operation]) {
    let host = |one: &Operation| one.host.clone().unwrap_or_default();
    for run in
        operations.chunk_by_mut(|one, two| one.not_before.is_some() && one.not_before == two.not_before)
    {
        run.sort_by(|one, two| natural::compare(&host(one), &host(two)));
    }
}

fn get(client: &Client, id: &str) -> Result<Operation> {
    client.get(&format!("/v1/operations/{}", encode(id)))
}

fn act(client: &Client, id: &str, verb: &OperationVerb) -> Result<Operation> {
    client.post(&format!("/v1/operations/{}/{verb}", encode(id)), &serde_json::json!({}))
}

/// Does the same with each operation, and shows each, or totals of many.
fn act_on_each(client: &Client, ids: &[String], verb: &OperationVerb, output: Output) -> Result<()> {
    let change = |id: &str| act(client, id, verb);
    each_or_totals(ids, output, change, |one| show(one, output), Some(many::totals))
}

fn columns() -> [Column<'static, Operation>; 12] {
    type Of = Column<'static, Operation>;
    [
        Of::id("OPERATION", &|one| one.id.to_string()),
        Of::new("CAUSE", &|one| one.cause.to_string()),
        Of::text("HOST", &|one| or_dash(one.host.as_deref())),
        Of::new("STATE", &|one| match one.progress.failed {
            0 => one.state.to_string(),
            some => format!("{}, {some} failed", one.state),
        })
        .coloured(&|one| (one.progress.failed > 0).then_some(Colour::Red)),
        Of::optional("RELEASE", &|one| one.release.to_string()),
        Of::new("WHEN", &|one| match (one.not_before, one.progress.waiting + one.progress.approved) {
            (None, _) => "at once".to_owned(),
            (Some(_), 0) if one.progress.started > 0 => "started".to_owned(),
            (Some(at), _) => time::from_now(at),
        }),
        Of::new("EVENTS", &|one| one.progress.events.to_string()),
        Of::new("APPROVED", &|one| one.progress.approved.to_string()),
        Of::new("STARTED", &|one| one.progress.started.to_string()),
        Of::optional("ENDED", &|one| one.progress.ended.to_string()),
        Of::wide("BY", &|one| one.by.clone()),
        Of::wide("NOT BEFORE", &|one| one.not_before.map(time::absolute).unwrap_or_default()),
    ]
}

fn show(operation: &Operation, output: Output) -> Result<()> {
    let cancelled = if operation.cancelled { ", cancelled" } else { "" };
    output::line(&format!("{} {} ({}{cancelled})", operation.id, operation.cause, operation.state))?;
    let waits =
        |part: &OperationTarget| matches!(part.status, TargetStatus::Opening | TargetStatus::Scheduled);
    let is_waiting = operation.targets.iter().any(waits);
    let if_waiting = |value: String| if is_waiting { value } else { String::new() };
    let start = operation.host_start.as_ref().map_or("", |start| match start {
        HostStart::Waiting => "all events together, when all are approved or at NotBefore",
        HostStart::Ready => "all events together, when the operation is started",
        HostStart::Released | HostStart::Unknown(_) => "all events together, now",
    });
    output::fields::<14>(&[
        ("host", operation.host.clone().unwrap_or_default()),
        ("requested by", format!("{} at {}", operation.by, time::seconds(operation.requested_at))),
        ("not before", if_waiting(when(operation.not_before))),
        ("release", if_waiting(operation.release.to_string())),
        ("start", if_waiting(start.to_owned())),
        ("waits for", operation.waits_for.as_deref().map(time::in_text).unwrap_or_default()),
        ("host command", operation.host_command.as_ref().map(host_command).unwrap_or_default()),
        ("progress", progress(&operation.progress)),
    ])?;
    let columns = [
        Column::id("EVENT", &|part: &OperationTarget| part.event.to_string()),
        Column::path("SCOPE", &|part| part.scope.clone()),
        Column::optional("UD", &|part| part.update_domain.to_string()),
        Column::new("STATUS", &|part| part.status.to_string()),
        Column::text("STATE", &|part| match (&part.refused, &part.started_because) {
            (Some(code), _) => format!("refused: {code}"),
            (None, _) if part.failed => "started, a command failed".to_owned(),
            (None, Some(why)) => format!("{}: {why}", part.state),
            (None, None) => part.state.to_string(),
        }),
        Column::text("VMS", &|part| names(&part.resources)),
    ];
    output::text(&output.table(&operation.targets, &columns, ""))
}

/// The state of a host's command.
pub fn host_command(command: &HostCommand) -> String {
    let HostCommand { state, attempt, due_at, why, .. } = command;
    if (state, attempt) == (&CommandState::Stopped, &None) {
        return "not run".to_owned();
    }
    let attempt = attempt.filter(|attempt| *attempt > 0).map(|attempt| format!(", attempt {attempt}"));
    let due_at = due_at.map(|at| format!(", next attempt {}", time::from_now(at)));
    let (attempt, due_at) = (attempt.unwrap_or_default(), due_at.unwrap_or_default());
    format!("{state}{due_at}{attempt}{}", because(why.as_deref()))
}

/// One-line progress of an operation.
pub fn progress(progress: &OperationProgress) -> String {
    let OperationProgress { scopes, scopes_told, .. } = progress;
    format!("{scopes_told} of {} notified; {}", counted(*scopes, "scope"), events(progress))
}

/// The states of events, as one line.
pub fn events(progress: &OperationProgress) -> String {
    let OperationProgress { waiting, approved, started, ended, .. } = progress;
    let some = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let cancelled = match progress.cancelled {
        0 => String::new(),
        count => format!(" ({count} cancelled)"),
    };
    format!(
        "events: {waiting} waiting, {approved} approved, {started} started{}{}, {ended} ended{cancelled}{}",
        some(progress.failed, "of them failed"),
        some(progress.advisory, "advisory"),
        some(progress.refused, "refused")
    )
}

/// Refuses an operation that the service would refuse to cancel.
fn cancellable(operation: Operation) -> Result<Operation> {
    if operation.state == OperationState::Closed {
        bail!("operation {} is closed; there is nothing to cancel (operation_closed)", operation.id);
    }
    if operation.host_start == Some(HostStart::Released) {
        bail!("operation {} has started and cannot be cancelled (event_started)", operation.id);
    }
    Ok(operation)
}

/// Text of the plan for many operations: how many events are cancelled, and the operations of which some are not.
fn cancel_totals(operations: &[Operation]) -> Vec<String> {
    let is_kept = |part: &&OperationTarget| cancellation(part) != CANCELLED;
    let kept = |one: &Operation| one.targets.iter().filter(is_kept).count();
    let events: usize = operations.iter().map(|one| one.targets.len()).sum();
    let all_kept: usize = operations.iter().map(kept).sum();
    let cancelled = match all_kept {
        0 => "all are cancelled".to_owned(),
        all_kept => format!("{} are cancelled, {all_kept} are not", events - all_kept),
    };
    let (operations_shown, events) = (counted(operations.len(), "operation"), counted(events, "event"));
    let mut lines = vec![format!("{operations_shown} with {events}: {cancelled}")];
    let exceptions = operations.iter().filter(|one| kept(one) > 0).map(|one| {
        let started = one.targets.iter().filter(|part| part.status == TargetStatus::Started).count();
        let of = counted(one.targets.len(), "event");
        format!("  {}: {} of {of} not cancelled, {started} started", many::named(one), kept(one))
    });
    lines.extend(many::first_lines(exceptions.collect(), ALL_BY_WIDE));
    lines.push(format!("  {ALL_BY_WIDE}"));
    lines
}

/// Text of the plan: the effect of cancelling on each event.
fn cancel_plan(operation: &Operation, output: Output) -> Vec<String> {
    let mut lines = vec![format!("operation {} {} ({})", operation.id, operation.cause, operation.state)];
    let columns = [
        Column::id("EVENT", &|part: &OperationTarget| part.event.to_string()),
        Column::path("SCOPE", &|part| part.scope.clone()),
        Column::optional("UD", &|part| part.update_domain.to_string()),
        Column::optional("STATUS", &|part| part.status.to_string()),
        Column::text("VMS", &|part| names(&part.resources)),
        Column::text("CANCELLED", &|part| cancellation(part).to_owned()),
    ];
    lines.extend(output.indented_table_lines(&operation.targets, &columns));
    lines
}

fn cancellation(part: &OperationTarget) -> &'static str {
    match part.status {
        TargetStatus::Opening | TargetStatus::Scheduled | TargetStatus::Advisory => CANCELLED,
        TargetStatus::Started => "no: already started",
        TargetStatus::Completed | TargetStatus::Cancelled | TargetStatus::Refused | TargetStatus::Ended => {
            "no: already ended"
        }
        TargetStatus::Unknown(_) => "unknown to this version",
    }
}

/// VM names, separated by commas.
pub fn names(resources: &[Resource]) -> String {
    resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>().join(",")
}

/// Schedules events and prints the new operation.
pub fn schedule(client: &Client, request: &ScheduleEvents, output: Output) -> Result<()> {
    if request.dry_run {
        let question = Question::optional("Schedule this?", "nothing was scheduled");
        let plan: Plan = client.post("/v1/events", request)?;
        return confirm::show_only(output, question, &plan, |plan| host::plan_lines(plan, output));
    }
    output.answer_change(&client.post("/v1/events", request)?, announced)
}

/// Prints a new operation, a line per event.
fn announced(operation: &Operation) -> Result<()> {
    for part in &operation.targets {
        let what = match (&part.started_because, &part.status) {
            (Some(why), _) => format!("started at once: {why}"),
            (None, TargetStatus::Advisory) => "an advisory: it never starts".to_owned(),
            (None, TargetStatus::Completed | TargetStatus::Cancelled | TargetStatus::Ended) => {
                "already ended".to_owned()
            }
            (
                None,
                TargetStatus::Opening
                | TargetStatus::Scheduled
                | TargetStatus::Started
                | TargetStatus::Refused
                | TargetStatus::Unknown(_),
            ) => format!("not before {}", when(operation.not_before)),
        };
        let names = names(&part.resources);
        output::line(&format!("event {}: {} of {names}, {what}", part.event, operation.cause))?;
    }
    let Some(first) = operation.targets.first() else { return Ok(()) };
    let id = first.event.to_string();
    let short = id.split('-').next().unwrap_or_default();
    output::line(&format!("follow it with 'notbefore event show {short}' or 'notbefore event watch'"))
}
