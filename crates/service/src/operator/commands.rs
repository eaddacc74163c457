//! Presents the commands of the exec driver.

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

fn command(resource: &Resource, state: &CommandState, reasons: CommandReasons) -> wire::ExecCommand {
    let bare = wire::ExecCommand {
        vm: resource.vm.0,
        name: resource.name.to_string(),
        state: state.wire_name(),
        attempt: None,
        attempts_left: None,
        due_at: None,
        why: None,
        host: None,
    };
    match state {
        CommandState::Waiting { attempt, left, due_at, why } => wire::ExecCommand {
            attempt: Some(*attempt),
            attempts_left: Some(*left),
            due_at: Some(*due_at),
            why: reasons.show(why),
            ..bare
        },
        CommandState::Running { attempt, left } => {
            wire::ExecCommand { attempt: Some(*attempt), attempts_left: Some(*left), ..bare }
        }
        CommandState::Done { host } => wire::ExecCommand { host: host.clone(), ..bare },
        CommandState::Failed { attempt, why } => {
            wire::ExecCommand { attempt: Some(*attempt), why: reasons.show(why), ..bare }
        }
        CommandState::Gone => bare,
    }
}

/// The command for the host of an operation.
pub fn of_host(operation: &Operation, reasons: CommandReasons) -> wire::HostCommand {
    let run = operation.host_run();
    let pending = wire::HostCommand {
        state: wire::CommandState::Pending,
        owner: run.map(|run| run.owner.clone()),
        fence: run.map(|run| run.fence),
        attempt: None,
        attempts_left: None,
        due_at: None,
        why: None,
    };
    let Some(state) = run.and_then(|run| run.commands.first()) else {
        let is_closed = operation.state == OperationState::Closed;
        let state = if is_closed { wire::CommandState::Stopped } else { wire::CommandState::Pending };
        return wire::HostCommand { state, ..pending };
    };
    let bare = wire::HostCommand { state: state.wire_name(), ..pending };
    let shown = match state {
        CommandState::Waiting { attempt, left, due_at, why } => wire::HostCommand {
            attempt: Some(*attempt),
            attempts_left: Some(*left),
            due_at: Some(*due_at),
            why: reasons.show(why),
            ..bare
        },
        CommandState::Running { attempt, left } => {
            wire::HostCommand { attempt: Some(*attempt), attempts_left: Some(*left), ..bare }
        }
        CommandState::Failed { attempt, why } => {
            wire::HostCommand { attempt: Some(*attempt), why: reasons.show(why), ..bare }
        }
        CommandState::Done { .. } | CommandState::Gone => bare,
    };
    let is_unfinished = matches!(state, CommandState::Running { .. } | CommandState::Waiting { .. });
    match operation.state == OperationState::Closed && is_unfinished {
        true => wire::HostCommand {
            state: wire::CommandState::Stopped,
            attempts_left: None,
            due_at: None,
            ..shown
        },
        false => shown,
    }
}

/// What an operation waits for because of its host's command, once that has begun.
pub fn host_waits_for(operation: &Operation) -> Option<String> {
    let (id, host) = (operation.id, operation.host.as_deref().unwrap_or_default());
    match operation.host_run()?.commands.first()? {
        CommandState::Waiting { attempt, due_at, .. } => {
            Some(format!("the next attempt for host {host} (at {due_at:.0}, after attempt {attempt})"))
        }
        CommandState::Running { attempt, .. } => {
            Some(format!("the command for host {host} (attempt {attempt})"))
        }
        CommandState::Failed { attempt, .. } => Some(format!(
            "an operator, because the command failed for host {host} (attempt {attempt}): 'notbefore operation retry {id}' retries, 'notbefore operation complete {id}' ends its events"
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
