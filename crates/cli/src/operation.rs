//! `notbefore operation …`, and the output of a newly created operation.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use notbefore_client::clock::Clock;
use notbefore_wire::operator::{
    CommandState, Event, EventStatus, HostStart, Operation, OperationProgress, OperationState,
    OperationTarget, OperationVerb, Resource, ScheduleEvents, TargetStatus,
};
use notbefore_wire::text::printable;

use crate::args::{self, Output};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::each::each;
use crate::exit::TimedOut;
use crate::output::{self, Rows, or_dash};
use crate::pause::pause;
use crate::table::{Colour, Column};
use crate::vm::when;
use crate::{time, watch};

/// Poll interval of `operation wait`.
const POLL_EVERY: Duration = Duration::from_millis(500);

pub fn run(client: &Client, verb: args::Operation, output: Output) -> Result<()> {
    match verb {
        args::Operation::List { host, r#type, list } => {
            let query = [("host", host), ("type", r#type)];
            watch::show(&list.watch, || {
                let operations: Vec<Operation> = client.list_first("/v1/operations", &query, list.limit())?;
                output.list(&operations, &columns(), "no open operations")
            })
        }
        args::Operation::Show { operation } => output.answer(&get(client, &operation)?, show),
        args::Operation::Cancel { operation, confirmation } => {
            let question = Question::optional("Cancel it?", "nothing was cancelled");
            let plan = || cancellable(get(client, &operation)?);
            if let Decision::DryRun =
                confirm::show_and_ask(&confirmation, output, question, plan, cancel_plan)?
            {
                return Ok(());
            }
            output.answer(&act(client, &operation, &OperationVerb::Cancel)?, show)
        }
        args::Operation::Start { operations } => {
            each(&operations, output, |id| act(client, id, &OperationVerb::Start), show)
        }
        args::Operation::Complete { operations } => {
            each(&operations, output, |id| act(client, id, &OperationVerb::Complete), show)
        }
        args::Operation::Wait { operations, timeout } => wait(client, &operations, timeout, output),
    }
}

fn get(client: &Client, id: &str) -> Result<Operation> {
    client.get(&format!("/v1/operations/{}", encode(id)))
}

fn act(client: &Client, id: &str, verb: &OperationVerb) -> Result<Operation> {
    client.post(&format!("/v1/operations/{}/{verb}", encode(id)), &serde_json::json!({}))
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
        Of::new("WHEN", &|one| one.not_before.map_or_else(|| "at once".to_owned(), time::from_now)),
        Of::new("EVENTS", &|one| one.progress.events.to_string()),
        Of::new("APPROVED", &|one| one.progress.approved.to_string()),
        Of::new("STARTED", &|one| one.progress.started.to_string()),
        Of::optional("ENDED", &|one| one.progress.ended.to_string()),
        Of::wide("BY", &|one| one.by.clone()),
        Of::wide("NOT BEFORE", &|one| one.not_before.map(|at| at.to_string()).unwrap_or_default()),
    ]
}

fn show(operation: &Operation) -> Result<()> {
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
        ("requested by", format!("{} at {:.0}", operation.by, operation.requested_at)),
        ("not before", if_waiting(when(operation.not_before))),
        ("release", if_waiting(operation.release.to_string())),
        ("start", if_waiting(start.to_owned())),
        ("waits for", operation.waits_for.clone().unwrap_or_default()),
        ("progress", progress(&operation.progress)),
    ])?;
    let parts = Rows(&operation.targets).columns(&[
        ("EVENT", &|part| part.event.to_string()),
        ("SCOPE", &|part| part.scope.clone()),
        ("UD", &|part| part.update_domain.to_string()),
        ("STATUS", &|part| part.status.to_string()),
        ("STATE", &|part| match (&part.refused, &part.started_because) {
            (Some(code), _) => format!("refused: {code}"),
            (None, _) if part.failed => "started, a command failed".to_owned(),
            (None, Some(why)) => format!("{}: {why}", part.state),
            (None, None) => part.state.to_string(),
        }),
        ("VMS", &|part| names(&part.resources)),
    ]);
    parts.print("")
}

/// One-line progress of an operation.
fn progress(progress: &OperationProgress) -> String {
    let OperationProgress { scopes, scopes_told, waiting, approved, started, ended, .. } = progress;
    let some = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let cancelled = match progress.cancelled {
        0 => String::new(),
        count => format!(" ({count} cancelled)"),
    };
    format!(
        "{scopes_told} of {scopes} scopes notified; events: {waiting} waiting, {approved} approved, {started} started{}, {ended} ended{cancelled}{}",
        some(progress.failed, "of them failed"),
        some(progress.refused, "refused")
    )
}

/// Waits until all operations are closed and shows progress: as a bar at a terminal, else a line per change. Fails
/// early when an exec command has used up its attempts, which needs an operator, or at the timeout.
pub fn wait(client: &Client, ids: &[String], timeout: Option<Duration>, output: Output) -> Result<()> {
    let bars = MultiProgress::new();
    let at_terminal = output.is_text() && io::stderr().is_terminal();
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}")?.progress_chars("=> ");
    let mut open: Vec<(String, ProgressBar, String)> = Vec::new();
    for id in ids {
        let bar = if at_terminal { bars.add(ProgressBar::new(1)) } else { ProgressBar::hidden() };
        open.push((id.clone(), bar.with_style(style.clone()).with_prefix(printable(id)), String::new()));
    }
    let mut closed: Vec<Operation> = Vec::new();
    let clock = Clock::start();
    let (still_open, why) = loop {
        let mut still_open = Vec::new();
        let mut next = Vec::new();
        for (id, bar, last) in open {
            let one = get(client, &id)?;
            let said = progress(&one.progress);
            bar.set_length(one.progress.events as u64);
            bar.set_position((one.progress.ended + one.progress.refused) as u64);
            bar.set_message(said.clone());
            if !at_terminal && output.is_text() && said != last {
                output::line(&format!("{} {}: {said}", one.id, one.state))?;
            }
            match one.state {
                OperationState::Closed => {
                    bar.finish();
                    closed.push(one);
                }
                OperationState::Opening | OperationState::Open | OperationState::Unknown(_) => {
                    still_open.push(one);
                    next.push((id, bar, said));
                }
            }
        }
        if still_open.is_empty() {
            break (still_open, None);
        }
        if let Some(failed) = failure(client, &still_open)? {
            break (still_open, Some(failed));
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(clock.now().tick));
        if let (Some(Duration::ZERO), Some(timeout)) = (left, timeout) {
            let over = out_of_time(&still_open, timeout);
            break (still_open, Some(over));
        }
        open = next;
        let span = left.map_or(POLL_EVERY, |left| left.min(POLL_EVERY));
        pause(span, "operations are polled until closed");
    };
    output.answer(&closed.iter().chain(&still_open).collect::<Vec<_>>(), |_| {
        closed.iter().try_for_each(|one| {
            let how = if one.cancelled { "cancelled" } else { "completed" };
            output::line(&format!("operation {} is closed: {how}", one.id))
        })
    })?;
    why.map_or(Ok(()), Err)
}

fn out_of_time(open: &[Operation], timeout: Duration) -> Error {
    let one = |one: &Operation| format!("operation {} is {}: {}", one.id, one.state, progress(&one.progress));
    let open = open.iter().map(one).collect::<Vec<_>>().join("\n  ");
    TimedOut(format!("not closed within {}; still in progress\n  {open}", time::span(timeout.as_secs())))
        .into()
}

/// The error of exec commands that have used up their attempts, if there are any.
fn failure(client: &Client, open: &[Operation]) -> Result<Option<Error>> {
    if open.iter().all(|operation| operation.progress.failed == 0) {
        return Ok(None);
    }
    let started: Vec<Event> =
        client.list("/v1/events", &[("status", Some(EventStatus::Started.to_string()))])?;
    let ours = started.iter().filter(|event| open.iter().any(|one| one.id == event.operation));
    let mut failed = Vec::new();
    for event in ours {
        let commands = event.exec.iter().flat_map(|exec| &exec.commands);
        for command in commands.filter(|command| command.state == CommandState::Failed) {
            let attempt =
                command.attempt.map_or_else(String::new, |attempt| format!(" at attempt {attempt}"));
            let why = command.why.as_ref().map_or_else(String::new, |why| format!(": {}", printable(why)));
            failed.push(format!(
                "operation {}, event {}: the command for {} failed{attempt}{why}",
                event.operation, event.id, command.name
            ));
        }
    }
    Ok((!failed.is_empty()).then(|| {
        let cure =
            "use 'notbefore event retry EVENT' to try again, or 'notbefore event complete EVENT' if the work was done by hand";
        anyhow!("{}\n{cure}", failed.join("\n"))
    }))
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

/// Text of the plan: the effect of cancelling on each event.
fn cancel_plan(operation: &Operation) -> Vec<String> {
    let mut lines = vec![format!("operation {} {} ({})", operation.id, operation.cause, operation.state)];
    let becomes = |part: &OperationTarget| match part.status {
        TargetStatus::Opening | TargetStatus::Scheduled => "is cancelled",
        TargetStatus::Started => "no: already started",
        TargetStatus::Completed | TargetStatus::Cancelled | TargetStatus::Refused | TargetStatus::Ended => {
            "no: already ended"
        }
        TargetStatus::Unknown(_) => "unknown to this version",
    };
    let parts = Rows(&operation.targets).columns(&[
        ("  EVENT", &|part| format!("  {}", part.event)),
        ("SCOPE", &|part| part.scope.clone()),
        ("UD", &|part| part.update_domain.to_string()),
        ("STATUS", &|part| part.status.to_string()),
        ("VMS", &|part| names(&part.resources)),
        ("CANCELLED", &|part| becomes(part).to_owned()),
    ]);
    lines.extend(parts.lines());
    lines
}

/// VM names, separated by commas.
pub fn names(resources: &[Resource]) -> String {
    resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>().join(",")
}

/// Schedules events and prints the new operation.
pub fn schedule(client: &Client, request: &ScheduleEvents, output: Output) -> Result<()> {
    output.answer(&client.post("/v1/events", request)?, announced)
}

/// Prints a new operation, a line per event.
fn announced(operation: &Operation) -> Result<()> {
    for part in &operation.targets {
        let what = match (&part.started_because, &part.status) {
            (Some(why), _) => format!("started at once: {why}"),
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
