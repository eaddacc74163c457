//! Presents the commands of the exec driver.

use jiff::Timestamp;
use notbefore_core::{CommandState, Event, ExecRun, Operation, OperationState, Resource};
use notbefore_wire::operator as wire;

use super::access::CommandReasons;
use super::wire_names::WireName;
use crate::names::first_of;

/// Most VMs listed by name; the rest are counted.
const NAMED_MAX: usize = 3;

pub fn progress(event: &Event, run: &ExecRun, reasons: CommandReasons) -> wire::ExecProgress {
    let commands = event.resources.iter().zip(&run.commands);
    wire::ExecProgress {
        owner: run.owner.clone(),
        fence: run.fence,
        commands: commands.map(|(resource, state)| command(resource, state, reasons)).collect(),
        host_command: None,
    }
}

/// The commands of an ended event. Commands that had not ended by then were stopped, because the event was completed
/// by an operator or its VM was removed.
pub fn last_progress(event: &Event, run: &ExecRun, reasons: CommandReasons) -> wire::ExecProgress {
    let mut progress = progress(event, run, reasons);
    for (command, state) in progress.commands.iter_mut().zip(&run.commands) {
        if matches!(state, CommandState::Running { .. } | CommandState::Waiting { .. }) {
            command.state = wire::CommandState::Stopped;
            (command.attempts_left, command.due_at) = (None, None);
        }
    }
    progress
}

/// What a command's state says about its attempts.
#[derive(Default)]
struct Attempts {
    attempt: Option<u32>,
    left: Option<u32>,
    due_at: Option<Timestamp>,
    why: Option<String>,
}

impl Attempts {
    fn of(state: &CommandState, reasons: CommandReasons) -> Self {
        match state {
            CommandState::Waiting { attempt, left, due_at, why } => Self {
                attempt: Some(*attempt),
                left: Some(*left),
                due_at: Some(*due_at),
                why: reasons.show(why),
            },
            CommandState::Running { attempt, left } => {
                Self { attempt: Some(*attempt), left: Some(*left), ..Self::default() }
            }
            CommandState::Failed { attempt, why } => {
                Self { attempt: Some(*attempt), why: reasons.show(why), ..Self::default() }
            }
            CommandState::Done { .. } | CommandState::Gone => Self::default(),
        }
    }
}

fn command(resource: &Resource, state: &CommandState, reasons: CommandReasons) -> wire::ExecCommand {
    let Attempts { attempt, left, due_at, why } = Attempts::of(state, reasons);
    let host = if let CommandState::Done { host } = state { reasons.host(host.as_deref()) } else { None };
    wire::ExecCommand {
        vm: resource.vm.0,
        name: resource.name.to_string(),
        state: state.wire_name(),
        attempt,
        attempts_left: left,
        due_at,
        why,
        host,
    }
}

/// The command for the host of an operation. If the operation closed before the command ended, it was stopped or never
/// ran.
pub fn of_host(operation: &Operation, reasons: CommandReasons) -> wire::HostCommand {
    let run = operation.host_run();
    let state = run.and_then(|run| run.commands.first());
    let is_unfinished =
        matches!(state, None | Some(CommandState::Running { .. } | CommandState::Waiting { .. }));
    let is_stopped = operation.state == OperationState::Closed && is_unfinished;
    let Attempts { attempt, left, due_at, why } =
        state.map(|state| Attempts::of(state, reasons)).unwrap_or_default();
    wire::HostCommand {
        state: match state {
            _ if is_stopped => wire::CommandState::Stopped,
            None => wire::CommandState::Pending,
            Some(state) => state.wire_name(),
        },
        owner: run.map(|run| run.owner.clone()),
        fence: run.map(|run| run.fence),
        attempt,
        attempts_left: left.filter(|_| !is_stopped),
        due_at: due_at.filter(|_| !is_stopped),
        why,
    }
}

/// What an operation waits for because of its host's command, once that has begun.
pub fn host_waits_for(operation: &Operation, reasons: CommandReasons) -> Option<String> {
    let id = operation.id;
    let host = reasons.host(operation.host.as_deref());
    let host = host.map_or_else(|| "its host".to_owned(), |host| format!("host {host}"));
    match operation.host_run()?.commands.first()? {
        CommandState::Waiting { attempt, due_at, .. } => {
            Some(format!("the next attempt for {host} (at {due_at:.0}, after attempt {attempt})"))
        }
        CommandState::Running { attempt, .. } => Some(format!("the command for {host} (attempt {attempt})")),
        CommandState::Failed { attempt, .. } => Some(format!(
            "an operator, because the command failed for {host} (attempt {attempt}): 'notbefore operation retry {id}' retries, 'notbefore operation complete {id}' ends its events"
        )),
        CommandState::Done { .. } | CommandState::Gone => None,
    }
}

/// What a started event waits for, as text: first what an operator must do, then what happens without one. The reason
/// of a failure is in [`progress`].
pub fn waits_for(event: &Event, run: &ExecRun) -> String {
    let (mut failed, mut waiting, mut running) = (Vec::new(), Vec::new(), Vec::new());
    for (resource, state) in event.resources.iter().zip(&run.commands) {
        let name = &resource.name;
        match state {
            CommandState::Failed { attempt, .. } => failed.push(format!("{name} (attempt {attempt})")),
            CommandState::Waiting { attempt, due_at, .. } => {
                waiting.push(format!("{name} (again at {due_at}, after attempt {attempt})"));
            }
            CommandState::Running { attempt, .. } => running.push(format!("{name} (attempt {attempt})")),
            CommandState::Done { .. } | CommandState::Gone => {}
        }
    }
    let cure = ": 'notbefore event retry' retries, 'notbefore event complete' ends the event";
    let parts = [
        ("an operator, because the command failed for ", failed, cure),
        ("the command for ", running, ""),
        ("the next attempt for ", waiting, ""),
    ];
    let parts = parts.into_iter().filter(|(_, names, _)| !names.is_empty());
    let words = parts.map(|(before, names, after)| format!("{before}{}{after}", first_of(&names, NAMED_MAX)));
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_names_are_listed_and_the_rest_counted() {
        let names = |n: usize| (0..n).map(|n| format!("web-{n}")).collect::<Vec<_>>();
        assert_eq!(first_of(&names(1), NAMED_MAX), "web-0");
        assert_eq!(first_of(&names(3), NAMED_MAX), "web-0, web-1, web-2");
        assert_eq!(first_of(&names(5), NAMED_MAX), "web-0, web-1, web-2 and 2 more");
    }
}
