//! Invariants of the exec driver's commands. They have no numbers in the design: they follow from "attempt and owner
//! are committed before the spawn" and "the fence makes a second owner harmless".

use std::collections::BTreeSet;

use notbefore_core::{CommandState, Ending, Event, EventFact, ExecRun, Outcome, Past, Phase, Run, Scope};
use notbefore_engine::{Command, CommandId, CommandTarget, DriverRun, EventCommand, RunTarget};

use super::{Check, Transition, ensure_also};
use crate::conformance::Flight;
use crate::host_command;
use crate::ledger::Ledger;
use crate::view::View;

/// The reason of a blocked command.
pub const BLOCKED: &str = "an earlier attempt still runs";

/// The run of an event with the exec driver.
pub fn exec_run(event: &Event) -> Option<&ExecRun> {
    match &event.phase {
        Phase::Started { run: Run::Exec(run), .. } => Some(run),
        Phase::Started { run: Run::Simulated { .. } | Run::Manual, .. }
        | Phase::Scheduled { .. }
        | Phase::Advisory { .. } => None,
    }
}

/// The running commands in an event's record, with their owner.
pub fn running(event: &Event) -> Vec<(String, CommandId)> {
    let Some(run) = exec_run(event) else { return Vec::new() };
    let commands = event.resources.iter().zip(&run.commands);
    let running = commands.filter_map(|(resource, command)| match command {
        CommandState::Running { attempt, .. } => {
            let target = CommandTarget::Vm { event: event.id, vm: resource.vm };
            Some((run.owner.clone(), CommandId { target, fence: run.fence, attempt: *attempt }))
        }
        CommandState::Waiting { .. }
        | CommandState::Done { .. }
        | CommandState::Failed { .. }
        | CommandState::Gone => None,
    });
    running.collect()
}

/// A command is spawned by the process that a committed record names as its owner, with the recorded attempt and
/// fence. Each attempt is spawned once, and never while the process runs another one for the same event and VM.
pub fn spawned_as_committed(
    run: &DriverRun,
    node: &str,
    running: &BTreeSet<CommandId>,
    ledger: &mut Ledger,
) -> Check {
    let id = run.id;
    let durable = run.owner == node && ledger.attempts.contains(&(run.owner.clone(), id));
    ensure_also(durable, "attempt and owner are durable before the spawn", || format!("{node}: {run:?}"))?;
    ensure_also(ledger.spawned.insert(id), "an attempt is spawned once", || format!("{run:?}"))?;
    let other = running.iter().find(|other| other.target == id.target);
    ensure_also(other.is_none(), "one command at a time for an event and VM, or a host", || {
        format!("{run:?}, {other:?}")
    })?;
    let named = match (&run.target, id.target) {
        (RunTarget::Vm { event, vm, name, scope, .. }, CommandTarget::Vm { .. }) => {
            let is_it = id.target == CommandTarget::Vm { event: *event, vm: *vm };
            ledger.first.get(event).is_some_and(|first| {
                let has = first.resources.iter().any(|one| one.vm == *vm && one.name == *name);
                is_it && has && first.scope == scope.id()
            })
        }
        // Its VMs may have been removed since the command began.
        (RunTarget::Host { host, .. }, CommandTarget::Host(operation)) => {
            operation == run.operation && !host.is_empty()
        }
        (_, _) => false,
    };
    ensure_also(named, "a command gets the VM or host that it is for", || format!("{run:?}"))
}

/// From one commit to the next:
///
/// - a run keeps its owner and fence, or gets a new owner and the next fence;
/// - Done and Gone are final;
/// - attempts rise one by one, and only a retry grants new ones;
/// - a blocked command fails at once;
/// - the event's trail contains each failure.
pub fn commands_go_on(change: &Transition<'_>) -> Check {
    const WORDS: &str = "commands go on as they should";
    let node = &*change.flight.at.node;
    for event in change.live_after() {
        let Some(run) = exec_run(event) else { continue };
        let wrong = || format!("by {node}: {:?} became {event:?}", change.was(event));
        ensure_also(run.commands.len() == event.resources.len(), WORDS, wrong)?;
        let said = event.trail.iter().any(|fact| matches!(fact.fact, EventFact::DriverFailed { .. }));
        let failed = run.commands.iter().any(|one| matches!(one, CommandState::Failed { .. }));
        ensure_also(said || !failed, "the fact DriverFailed names each failed command", wrong)?;
        let Some(was) = change.was(event).and_then(exec_run) else {
            ensure_also(run.fence == 1 && run.owner == node, WORDS, wrong)?;
            continue;
        };
        let taken_over = was.owner != run.owner;
        let fenced = run.fence == was.fence + u64::from(taken_over) && (!taken_over || run.owner == node);
        ensure_also(fenced, "the fence rises with every owner", wrong)?;
        let retried = change
            .flight
            .open_requests
            .iter()
            .any(|sent| matches!(&sent.request.command, Command::Event(EventCommand::Retry(id)) if *id == event.id));
        let mut steps = event.resources.iter().zip(was.commands.iter().zip(&run.commands));
        let onward = steps.all(|(resource, (before, is))| {
            let blocked = change.flight.at.reports.iter().any(|report| {
                let of = CommandState::Failed { attempt: report.attempt, why: BLOCKED.to_owned() };
                matches!(report.ending, Ending::Blocked { .. })
                    && (report.event, report.vm, report.fence) == (event.id, resource.vm, was.fence)
                    && matches!(before, CommandState::Running { attempt, .. } if *attempt == report.attempt)
                    && *is == of
            });
            blocked || advances(before, is, taken_over, retried)
        });
        ensure_also(onward, "attempts rise within their limit", wrong)?;
    }
    Ok(())
}

/// Attempt and attempts left; a failed command has none left.
fn counted(command: &CommandState) -> Option<(u32, u32)> {
    match command {
        CommandState::Waiting { attempt, left, .. } | CommandState::Running { attempt, left } => {
            Some((*attempt, *left))
        }
        CommandState::Failed { attempt, .. } => Some((*attempt, 0)),
        CommandState::Done { .. } | CommandState::Gone => None,
    }
}

fn advances(was: &CommandState, is: &CommandState, taken_over: bool, retried: bool) -> bool {
    match (counted(was), counted(is)) {
        // Done and Gone are final.
        (None, _) => was == is,
        (Some(_), None) => true,
        (Some((attempt, left)), Some((attempt_now, left_now))) => {
            let next = attempt_now.wrapping_sub(attempt);
            let again = matches!((was, is), (CommandState::Running { .. }, CommandState::Running { .. }));
            next <= 1
                && (left_now + next == left || (retried && left_now + next > left))
                && (!again || next == u32::from(taken_over))
        }
    }
}

/// An exec event ends when each command has succeeded, except those of removed VMs, and then the command of its host,
/// if there is one; when an operator completes it or its operation; or when none of its VMs is left. `after` is the scope after the commit.
pub fn ends_when_done(past: &Past, flight: &Flight, view: &View, after: Option<&Scope>) -> Check {
    let Some(run) = exec_run(&past.event).filter(|_| past.outcome == Outcome::Completed) else {
        return Ok(());
    };
    let over = |one: &CommandState| matches!(one, CommandState::Done { .. } | CommandState::Gone);
    let completed = flight.open_requests.iter().any(
        |sent| matches!(&sent.request.command, Command::Event(EventCommand::Complete { event, .. }) if *event == past.event.id),
    );
    let operation = view.operations.get(&past.event.operation);
    let completed = completed || operation.is_some_and(|operation| operation.completed_by.is_some());
    let members = after.map(|scope| scope.members.as_slice()).unwrap_or_default();
    let alone = !members.iter().any(|member| past.event.resources.iter().any(|one| one.vm == member.vm));
    let waits_for_host =
        operation.is_some_and(|one| one.host_command.is_some() && !host_command::is_done(one));
    let ended = run.commands.iter().all(over) && !waits_for_host;
    ensure_also(ended || completed || alone, "an event ends when its commands are done", || {
        format!("{past:?}")
    })
}
