//! Counts of scopes, VMs and events below each path, updated with every change of a scope. Reading the counts of a path
//! costs the same at any fleet size.

use std::ops::{AddAssign, SubAssign};

use imbl::OrdMap;
use notbefore_core::{CommandState, Event, Phase, Prefix, Run, Scope, ScopeId};

/// Counts of published things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub scopes: usize,
    pub vms: usize,
    /// Scheduled events.
    pub scheduled: usize,
    /// Started events.
    pub started: usize,
    pub advisory: usize,
    /// Started events with a command without attempts left.
    pub failed: usize,
    /// Events of the manual driver that wait for an operator to start or complete them.
    pub waiting_for_operator: usize,
    /// Commands of the exec driver that wait for their next attempt.
    pub commands_waiting: usize,
    /// Commands that run or are queued to run.
    pub commands_running: usize,
    /// Commands without attempts left.
    pub commands_failed: usize,
}

impl Counts {
    /// The counts of one scope.
    pub fn of(scope: &Scope) -> Self {
        let mut counts = Self { scopes: 1, vms: scope.members.len(), ..Self::default() };
        scope.events.iter().for_each(|event| counts.add_event(event));
        counts
    }

    fn add_event(&mut self, event: &Event) {
        match &event.phase {
            Phase::Scheduled { ready, .. } => {
                self.scheduled += 1;
                self.waiting_for_operator += usize::from(ready.is_some());
            }
            Phase::Advisory { .. } => self.advisory += 1,
            Phase::Started { run, .. } => {
                self.started += 1;
                self.waiting_for_operator += usize::from(matches!(run, Run::Manual));
            }
        }
        let before = self.commands_failed;
        event.exec_run().iter().flat_map(|run| &run.commands).for_each(|one| self.add_command(one));
        self.failed += usize::from(self.commands_failed > before);
    }

    pub fn add_command(&mut self, command: &CommandState) {
        match command {
            CommandState::Waiting { .. } => self.commands_waiting += 1,
            CommandState::Running { .. } => self.commands_running += 1,
            CommandState::Failed { .. } => self.commands_failed += 1,
            CommandState::Done { .. } | CommandState::Gone => {}
        }
    }

    fn each(&mut self, other: Self, change: fn(&mut usize, usize)) {
        let Self {
            scopes,
            vms,
            scheduled,
            started,
            advisory,
            failed,
            waiting_for_operator,
            commands_waiting,
            commands_running,
            commands_failed,
        } = self;
        change(scopes, other.scopes);
        change(vms, other.vms);
        change(scheduled, other.scheduled);
        change(started, other.started);
        change(advisory, other.advisory);
        change(failed, other.failed);
        change(waiting_for_operator, other.waiting_for_operator);
        change(commands_waiting, other.commands_waiting);
        change(commands_running, other.commands_running);
        change(commands_failed, other.commands_failed);
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.each(other, |one, other| *one += other);
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Self) {
        self.each(other, |one, other| *one -= other);
    }
}

/// Counts by path: of everything, of each subscription and of each group. Those of a scope are in the scope.
#[derive(Clone, Debug, Default)]
pub struct CountsByPath(OrdMap<Box<str>, Counts>);

impl CountsByPath {
    /// Updates the counts after a change of a scope.
    pub fn change(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        let of = |scope: Option<&Scope>| scope.map(Counts::of).unwrap_or_default();
        let (before, after) = (of(before), of(after));
        if before == after {
            return;
        }
        let id = id.as_str();
        let ends = id.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
        for path in std::iter::once(0).chain(ends).map(|end| &id[..end]) {
            let Some(counts) = self.0.get_mut(path) else {
                self.0.insert(path.into(), after);
                continue;
            };
            *counts += after;
            *counts -= before;
            if counts.scopes == 0 {
                self.0.remove(path);
            }
        }
    }

    /// The counts below a path that is not a scope.
    pub fn below(&self, path: &Prefix) -> Option<Counts> {
        self.0.get(path.start()).copied()
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{self, vm};
    use notbefore_core::{Cause, ExecRun, StartReason};

    use super::*;

    fn started(id: u128, run: Run) -> Event {
        let phase = Phase::Started { at: samples::now(), why: StartReason::Approved, run };
        Event { phase, ..samples::event(id, Cause::HostReboot, &[vm(1)]) }
    }

    #[test]
    fn counts_follow_changes_below_each_path() {
        let mut counts = CountsByPath::default();
        let exec = |command| Run::Exec(ExecRun { owner: String::new(), fence: 1, commands: vec![command] });
        let mut web = samples::scope("acme/shop/web", &[vm(1), vm(2)]);
        web.events = vec![
            samples::event(1, Cause::HostReboot, &[vm(1)]),
            started(2, Run::Manual),
            started(3, exec(CommandState::Failed { attempt: 3, why: "exit 1".into() })),
            started(4, exec(CommandState::Running { attempt: 1, left: 2 })),
            samples::advisory(5, vm(1)),
        ];
        let db = samples::scope("acme/data/db", &[vm(3)]);
        let far = samples::scope("acme-two/shop/web", &[vm(4)]);
        for scope in [&web, &db, &far] {
            counts.change(&scope.id(), None, Some(scope));
        }
        let below = |counts: &CountsByPath, path: &str| counts.below(&path.parse().unwrap());
        let expected = Counts {
            scopes: 1,
            vms: 2,
            scheduled: 1,
            started: 3,
            advisory: 1,
            failed: 1,
            waiting_for_operator: 1,
            commands_waiting: 0,
            commands_running: 1,
            commands_failed: 1,
        };
        assert_eq!(below(&counts, "acme/shop"), Some(expected));
        assert_eq!(below(&counts, "acme"), Some(Counts { scopes: 2, vms: 3, ..expected }));
        assert_eq!(below(&counts, "/"), Some(Counts { scopes: 3, vms: 4, ..expected }));
        assert_eq!(below(&counts, "acm"), None);

        let ended = samples::scope("acme/shop/web", &[vm(1)]);
        counts.change(&web.id(), Some(&web), Some(&ended));
        assert_eq!(below(&counts, "acme/shop"), Some(Counts { scopes: 1, vms: 1, ..Counts::default() }));
        counts.change(&web.id(), Some(&ended), None);
        assert_eq!(below(&counts, "acme/shop"), None);
        assert_eq!(below(&counts, "/"), Some(Counts { scopes: 2, vms: 2, ..Counts::default() }));
    }
}
