//! The commands of the exec driver: what the records say is running under this process's name is run.
//!
//! The records are looked at each time a scope changes, whoever changed it, and compared with what this process
//! has asked for. So a command is asked for only when its attempt and owner are durable, and once for each
//! attempt. A report is kept beside it and offered to the scope at every pulse until the record has moved on; a
//! disk that fails loses none.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use notbefore_core::exec::Ran;
use notbefore_core::time::after;
use notbefore_core::{
    Actor, Cause, CommandState, Ending, Event, EventId, EventType, Name, OperationId, Phase, Run, Scope,
    ScopeId, ScopePath, StartReason, VmId,
};

use super::{Effect, Engine, RETRY_AFTER, Work};
use crate::records;

/// One attempt of one command; no other is ever called the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId {
    /// The event.
    pub event: EventId,
    /// The VM.
    pub vm: VmId,
    /// The owner's fencing number.
    pub fence: u64,
    /// The attempt.
    pub attempt: u32,
}

/// A command to be run, with all that it may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverRun {
    /// Which one it is.
    pub id: CommandId,
    /// The operation that the event is part of.
    pub operation: OperationId,
    /// What is done to the VM.
    pub event_type: EventType,
    /// Why.
    pub cause: Cause,
    /// What guests read about it.
    pub description: String,
    /// For how long they expect to be interrupted, in seconds, or −1.
    pub duration_s: i32,
    /// The VM's scope.
    pub scope: ScopePath,
    /// The VM's name.
    pub name: Name,
    /// The host it is on, as far as anybody knows.
    pub host: Option<String>,
    /// The event's update domain.
    pub update_domain: u32,
    /// The process that runs it.
    pub owner: String,
    /// What let the event begin.
    pub why: StartReason,
    /// When it began.
    pub started_at: Timestamp,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverReport {
    /// Which one it was.
    pub id: CommandId,
    /// How it ended.
    pub ending: Ending,
}

/// A command that was asked for.
pub(super) struct RunningCommand {
    fence: u64,
    attempt: u32,
    /// How it ended, once it has, until the record says so.
    ending: Option<Ending>,
}

impl Engine {
    /// Brings what runs in line with what a scope's record says is running.
    pub(super) fn sync_commands(&mut self, id: &ScopeId, scope: Option<&Scope>) -> Vec<Effect> {
        let wanted = scope.map(|scope| commands_to_run(scope, &self.settings.node)).unwrap_or_default();
        if wanted.is_empty() && !self.commands.contains_key(id) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        let asked = self.commands.entry(id.clone()).or_default();
        asked.retain(|(event, vm), one| {
            let id = CommandId { event: *event, vm: *vm, fence: one.fence, attempt: one.attempt };
            let still = wanted.contains_key(&id);
            if !still && one.ending.is_none() {
                effects.push(Effect::Stop(id));
            }
            still
        });
        for (command, event) in wanted {
            let CommandId { event: of, vm, fence, attempt } = command;
            if let (Entry::Vacant(place), Some(scope)) = (asked.entry((of, vm)), scope) {
                place.insert(RunningCommand { fence, attempt, ending: None });
                effects.extend(driver_run(scope, event, command).map(|run| Effect::Run(Box::new(run))));
            }
        }
        if asked.is_empty() {
            self.commands.remove(id);
        }
        effects
    }

    /// Keeps a report, and sets a pulse going that takes it up. One of a command that is no longer wanted, or that
    /// was reported before, means nothing.
    pub(super) fn on_command_ended(
        &mut self,
        report: DriverReport,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let CommandId { event, vm, fence, attempt } = report.id;
        let Some(scope) = self.state.scope_of_event(event).cloned() else { return };
        let asked = self.commands.get_mut(&scope).and_then(|commands| commands.get_mut(&(event, vm)));
        match asked {
            Some(one) if (one.fence, one.attempt) == (fence, attempt) && one.ending.is_none() => {
                one.ending = Some(report.ending);
            }
            Some(_) | None => return,
        }
        // One pulse that waits for its turn takes up all that has been reported by then.
        let waiting = self.waiting.get(&records::scope(&scope)).into_iter().flatten();
        let pulses = waiting.filter_map(|id| self.jobs.get(id));
        if !pulses.into_iter().any(|job| matches!(job.work, Work::Pulse(_))) {
            self.spawn(Work::Pulse(scope), Actor::Driver("exec".to_owned()), now, effects);
        }
    }

    /// The reports that the scope's record has not taken up.
    pub(super) fn reports(&self, scope: &ScopeId) -> Vec<Ran> {
        let commands = self.commands.get(scope).into_iter().flatten();
        let reports = commands.filter_map(|((event, vm), one)| {
            let ending = one.ending.clone()?;
            Some(Ran { event: *event, vm: *vm, fence: one.fence, attempt: one.attempt, ending })
        });
        reports.collect()
    }

    /// Looks at a scope again soon if its commands still want something: a report to be taken up, or a run to be
    /// taken over, that the store has refused.
    pub(super) fn retry_commands(&mut self, scope: &ScopeId, now: Timestamp) {
        let reported =
            self.commands.get(scope).is_some_and(|all| all.values().any(|one| one.ending.is_some()));
        if reported || self.has_foreign_runs(scope) {
            let soon = after(now, RETRY_AFTER);
            let due = self.deadline_of.get(scope).map_or(soon, |due| soon.min(*due));
            self.set_deadline(scope, Some(due));
        }
    }

    /// Takes over the runs of the process before this one.
    pub(super) fn adopt_commands(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let ids = self.state.scopes().map(|(id, _)| id);
        let mut scopes: Vec<ScopeId> = ids.filter(|id| self.has_foreign_runs(id)).cloned().collect();
        scopes.sort();
        for scope in scopes {
            self.spawn(Work::Pulse(scope), Actor::Service, now, effects);
        }
    }

    fn has_foreign_runs(&self, scope: &ScopeId) -> bool {
        let foreign = |event: &Event| event.exec_run().is_some_and(|run| run.owner != *self.settings.node);
        self.state.scope(scope).is_some_and(|held| held.value.events.iter().any(foreign))
    }
}

/// The commands that a scope's record says are running under a process's name, each with its event.
fn commands_to_run<'a>(scope: &'a Scope, node: &str) -> BTreeMap<CommandId, &'a Event> {
    let mut wanted = BTreeMap::new();
    for event in &scope.events {
        let Some(run) = event.exec_run().filter(|run| run.owner == node) else { continue };
        for (resource, command) in event.resources.iter().zip(&run.commands) {
            if let CommandState::Running { attempt, .. } = command {
                let (fence, attempt) = (run.fence, *attempt);
                wanted.insert(CommandId { event: event.id, vm: resource.vm, fence, attempt }, event);
            }
        }
    }
    wanted
}

/// A command with all that it may want to know.
fn driver_run(scope: &Scope, event: &Event, id: CommandId) -> Option<DriverRun> {
    let Phase::Started { at, why, run: Run::Exec(run) } = &event.phase else { return None };
    let resource = event.resources.iter().find(|resource| resource.vm == id.vm)?;
    Some(DriverRun {
        id,
        operation: event.operation,
        event_type: event.cause.event_type(),
        cause: event.cause,
        description: event.description.clone(),
        duration_s: event.duration_s,
        scope: scope.path.clone(),
        name: resource.name.clone(),
        host: scope.member(id.vm).and_then(|member| member.host.clone()),
        update_domain: event.update_domain,
        owner: run.owner.clone(),
        why: *why,
        started_at: *at,
    })
}
