//! The model of the exec driver's commands for hosts: a second, naive implementation of
//! `notbefore_core::host_command`, which shares data types with it and no functions.

use jiff::Timestamp;
use notbefore_core::{
    Cause, CommandState, DriverKind, Ending, Event, ExecRun, HostCommand, Operation, OperationId,
    OperationState, Phase, Run, TargetState,
};
use notbefore_engine::{CommandId, CommandTarget};

use crate::history::Setup;
use crate::model::{At, Codes};
use crate::rules;
use crate::view::View;

/// The command of a new operation.
pub fn first(host: Option<&str>, cause: Cause, setup: &Setup) -> Option<HostCommand> {
    let is_wide = matches!(cause, Cause::HostFreeze | Cause::HostReboot);
    let has_command = setup.exec_host && setup.driver() == DriverKind::Exec;
    (host.is_some() && is_wide && has_command).then_some(HostCommand::Pending)
}

fn run_of(operation: &Operation) -> Option<&ExecRun> {
    match &operation.host_command {
        Some(HostCommand::Run(run)) => Some(run),
        Some(HostCommand::Pending) | None => None,
    }
}

pub fn is_done(operation: &Operation) -> bool {
    run_of(operation).is_some_and(|run| matches!(run.commands[..], [CommandState::Done { .. }]))
}

/// Whether the command has begun, and neither is done nor was the operation completed by an operator.
pub fn goes_on(operation: &Operation) -> bool {
    run_of(operation).is_some() && !is_done(operation) && operation.completed_by.is_none()
}

pub fn has_failed(operation: &Operation) -> bool {
    run_of(operation).is_some_and(|run| matches!(run.commands[..], [CommandState::Failed { .. }]))
}

/// The process that runs an unfinished command.
pub fn owner(operation: &Operation) -> Option<&str> {
    run_of(operation).filter(|_| !is_done(operation)).map(|run| run.owner.as_str())
}

/// The running command in an operation's record, with its owner.
pub fn running(operation: &Operation) -> Option<(String, CommandId)> {
    let run = run_of(operation)?;
    let [CommandState::Running { attempt, .. }] = run.commands[..] else { return None };
    let target = CommandTarget::Host(operation.id);
    Some((run.owner.clone(), CommandId { target, fence: run.fence, attempt }))
}

/// When the next attempt is due; none once the operation has closed.
pub fn next_due(operation: &Operation) -> Option<Timestamp> {
    if operation.state == OperationState::Closed {
        return None;
    }
    let [CommandState::Waiting { due_at, .. }] = run_of(operation)?.commands[..] else { return None };
    Some(due_at)
}

/// Whether an event's own commands are done, and it still waits for its host.
fn is_ready(event: &Event) -> bool {
    let Phase::Started { run: Run::Exec(run), .. } = &event.phase else { return false };
    let over = |one: &CommandState| matches!(one, CommandState::Done { .. } | CommandState::Gone);
    event.waits_for_host
        && run.commands.iter().all(over)
        && run.commands.iter().any(|one| matches!(one, CommandState::Done { .. }))
}

/// Whether the command may begin: at least one part is live, and every live part is ready.
pub fn may_begin(view: &View, operation: &Operation) -> bool {
    let targets = operation.targets.iter().filter(|target| target.state != TargetState::Ended);
    let live: Vec<&Event> = targets.filter_map(|target| view.live(target.event)).collect();
    operation.state == OperationState::Open && !live.is_empty() && live.into_iter().all(is_ready)
}

/// Whether a commit is a step of the command: it begins, is taken over, ends or runs again.
pub fn follows(view: &View, before: &Operation, after: &Operation, at: &At) -> bool {
    let Some(run) = next_run(view, before, at) else { return false };
    let reports = at.host_reports.iter().filter(|(id, _)| *id == before.id).map(|(_, report)| Some(report));
    reports.chain([None]).any(|report| {
        let mut run = run.clone();
        if let (Some(report), [CommandState::Running { attempt, left }]) = (report, &run.commands[..])
            && (report.fence, report.attempt) == (run.fence, *attempt)
        {
            let (attempt, left, why) = (*attempt, *left, String::new());
            run.commands = vec![match &report.ending {
                Ending::Succeeded { .. } => CommandState::Done { host: None },
                Ending::Failed { .. } if left > 0 => {
                    let due_at = rules::retry_at(at.now, at.setup.attempts - left);
                    CommandState::Waiting { attempt, left, due_at, why }
                }
                Ending::Failed { .. } | Ending::Blocked { .. } => CommandState::Failed { attempt, why },
            }];
        }
        if let [CommandState::Waiting { attempt, left, due_at, .. }] = run.commands[..]
            && due_at <= at.now
        {
            run.commands = vec![CommandState::Running { attempt: attempt + 1, left: left - 1 }];
        }
        let expected = Operation { host_command: Some(HostCommand::Run(run)), ..before.clone() };
        bare(&expected) == bare(after) && bare(before) != bare(after)
    })
}

/// The run that the process works with: a new one, its own, or one that it takes over.
fn next_run(view: &View, before: &Operation, at: &At) -> Option<ExecRun> {
    let Some(mut run) = run_of(before).cloned() else {
        let (attempt, left, due_at) = (0, at.setup.attempts, at.now);
        let commands = vec![CommandState::Waiting { attempt, left, due_at, why: String::new() }];
        let may_begin = before.host_command.is_some() && may_begin(view, before);
        return may_begin.then(|| ExecRun { owner: at.node.to_string(), fence: 1, commands });
    };
    if *run.owner != *at.node {
        run.owner = at.node.to_string();
        run.fence += 1;
        if let [CommandState::Running { attempt, left }] = run.commands[..] {
            run.commands = vec![match left {
                0 => CommandState::Failed { attempt, why: String::new() },
                left => CommandState::Running { attempt: attempt + 1, left: left - 1 },
            }];
        }
    }
    Some(run)
}

/// The operation after an operator's retry.
pub fn retried(operation: &Operation, at: &At) -> Result<Operation, Codes> {
    let nothing = || Codes::from(["nothing_failed"]);
    let run = run_of(operation).ok_or_else(nothing)?;
    let [CommandState::Failed { attempt, why } | CommandState::Waiting { attempt, why, .. }] =
        &run.commands[..]
    else {
        return Err(nothing());
    };
    let (attempt, left, due_at) = (*attempt, at.setup.attempts, at.now);
    let commands = vec![CommandState::Waiting { attempt, left, due_at, why: why.clone() }];
    let run = ExecRun { commands, ..run.clone() };
    Ok(Operation { host_command: Some(HostCommand::Run(run)), ..operation.clone() })
}

/// An operation without the reason of a failed command.
fn bare(operation: &Operation) -> Operation {
    let mut operation = operation.clone();
    if let Some(HostCommand::Run(run)) = &mut operation.host_command {
        for command in &mut run.commands {
            if let CommandState::Waiting { why, .. } | CommandState::Failed { why, .. } = command {
                why.clear();
            }
        }
    }
    operation
}

/// The operation that a command is for, if it is for a host.
pub fn operation_of(command: CommandId) -> Option<OperationId> {
    match command.target {
        CommandTarget::Host(operation) => Some(operation),
        CommandTarget::Vm { .. } => None,
    }
}
