//! Commands of the exec driver: reconciles running processes with the records that name this process as owner.
//!
//! Each time a scope changes, its record is compared with the commands that this process requested. So a command is
//! requested only when its attempt and owner are durable, and once per attempt. A report is kept in memory and passed
//! to the scope at every pulse until the record contains it; a failing disk loses no report.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use notbefore_core::exec::Ran;
use notbefore_core::time::after;
use notbefore_core::{
    Actor, Cause, CommandState, Ending, Event, EventId, EventType, HostRan, Name, OperationId, Scope,
    ScopeId, ScopePath, VmId,
};

use super::{Effect, Engine, RETRY_AFTER, Work};
use crate::records;

/// What a command is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CommandTarget {
    /// A VM of a started event.
    Vm { event: EventId, vm: VmId },
    /// The host of an operation.
    Host(OperationId),
}

/// One attempt of one command; unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId {
    pub target: CommandTarget,
    /// The owner's fence.
    pub fence: u64,
    pub attempt: u32,
}

/// A command to run, with the data for its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverRun {
    pub id: CommandId,
    pub operation: OperationId,
    pub event_type: EventType,
    pub cause: Cause,
    /// Expected interruption in seconds, or −1.
    pub duration_s: i32,
    /// The process that runs it.
    pub owner: String,
    pub target: RunTarget,
}

/// What a command acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunTarget {
    Vm {
        event: EventId,
        vm: VmId,
        scope: ScopePath,
        name: Name,
        /// The VM's host, if known.
        host: Option<String>,
        /// A redeploy: a host to which the VM could move.
        target_host: Option<String>,
        update_domain: u32,
    },
    Host {
        host: String,
        /// Its VMs that the operation affects, each with its path.
        vms: Vec<String>,
    },
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverReport {
    pub id: CommandId,
    pub ending: Ending,
}

/// A requested command.
pub(super) struct RunningCommand {
    pub(super) fence: u64,
    pub(super) attempt: u32,
    /// Set when it has ended, until the record contains it.
    pub(super) ending: Option<Ending>,
}

impl Engine {
    /// Starts and stops commands so that they match a scope's record.
    pub(super) fn sync_commands(&mut self, id: &ScopeId, scope: Option<&Scope>) -> Vec<Effect> {
        let wanted = scope.map(|scope| commands_to_run(scope, &self.runner)).unwrap_or_default();
        if wanted.is_empty() && !self.commands.contains_key(id) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        let asked = self.commands.entry(id.clone()).or_default();
        asked.retain(|(event, vm), one| {
            let target = CommandTarget::Vm { event: *event, vm: *vm };
            let id = CommandId { target, fence: one.fence, attempt: one.attempt };
            let still = wanted.contains_key(&id);
            if !still && one.ending.is_none() {
                effects.push(Effect::Stop(id));
            }
            still
        });
        for (command, (event, vm)) in wanted {
            let CommandId { fence, attempt, .. } = command;
            if let (Entry::Vacant(place), Some(scope)) = (asked.entry((event.id, vm)), scope) {
                place.insert(RunningCommand { fence, attempt, ending: None });
                effects.extend(driver_run(scope, event, vm, command).map(|run| Effect::Run(Box::new(run))));
            }
        }
        if asked.is_empty() {
            self.commands.remove(id);
        }
        effects
    }

    /// Keeps a report and starts a pulse that processes it. A report of a command that is no longer wanted, or a second
    /// report, is ignored.
    pub(super) fn on_command_ended(
        &mut self,
        report: DriverReport,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let CommandId { target, fence, attempt } = report.id;
        let (event, vm) = match target {
            CommandTarget::Vm { event, vm } => (event, vm),
            CommandTarget::Host(operation) => {
                if self.keep_host_report(operation, HostRan { fence, attempt, ending: report.ending }) {
                    self.reconcile(operation, now, effects);
                }
                return;
            }
        };
        let Some(scope) = self.state.scope_of_event(event).cloned() else { return };
        let asked = self.commands.get_mut(&scope).and_then(|commands| commands.get_mut(&(event, vm)));
        match asked {
            Some(one) if (one.fence, one.attempt) == (fence, attempt) && one.ending.is_none() => {
                one.ending = Some(report.ending);
            }
            Some(_) | None => return,
        }
        // One queued pulse processes all reports so far.
        let waiting = self.waiting.get(&records::scope(&scope)).into_iter().flatten();
        let pulses = waiting.filter_map(|id| self.jobs.get(id));
        if !pulses.into_iter().any(|job| matches!(job.work, Work::Pulse(_))) {
            self.spawn(Work::Pulse(scope), Actor::Driver("exec".to_owned()), now, effects);
        }
    }

    /// Reports that the scope's record does not contain yet.
    pub(super) fn reports(&self, scope: &ScopeId) -> Vec<Ran> {
        let commands = self.commands.get(scope).into_iter().flatten();
        let reports = commands.filter_map(|((event, vm), one)| {
            let ending = one.ending.clone()?;
            Some(Ran { event: *event, vm: *vm, fence: one.fence, attempt: one.attempt, ending })
        });
        reports.collect()
    }

    /// Schedules a retry if the store refused a report or a takeover of the scope's commands.
    pub(super) fn retry_commands(&mut self, scope: &ScopeId, now: Timestamp) {
        let reported =
            self.commands.get(scope).is_some_and(|all| all.values().any(|one| one.ending.is_some()));
        if reported || self.has_foreign_runs(scope) {
            let soon = after(now, RETRY_AFTER);
            let due = self.deadlines.get(scope).map_or(soon, |due| soon.min(due));
            self.deadlines.set(scope, Some(due));
        }
    }

    /// Takes over the runs of the previous process.
    pub(super) fn adopt_commands(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let ids = self.state.scopes_with_events().map(|(id, _)| id);
        let mut scopes: Vec<ScopeId> = ids.filter(|id| self.has_foreign_runs(id)).cloned().collect();
        scopes.sort();
        for scope in scopes {
            self.spawn(Work::Pulse(scope), Actor::Service, now, effects);
        }
    }

    fn has_foreign_runs(&self, scope: &ScopeId) -> bool {
        let foreign = |event: &Event| event.exec_run().is_some_and(|run| run.owner != *self.runner);
        self.state.scope(scope).is_some_and(|held| held.value.events.iter().any(foreign))
    }
}

/// The commands that a scope's record shows as running with this owner, each with its event and VM.
fn commands_to_run<'a>(scope: &'a Scope, node: &str) -> BTreeMap<CommandId, (&'a Event, VmId)> {
    let mut wanted = BTreeMap::new();
    for event in &scope.events {
        let Some(run) = event.exec_run().filter(|run| run.owner == node) else { continue };
        for (resource, command) in event.resources.iter().zip(&run.commands) {
            if let CommandState::Running { attempt, .. } = command {
                let (fence, attempt) = (run.fence, *attempt);
                let target = CommandTarget::Vm { event: event.id, vm: resource.vm };
                wanted.insert(CommandId { target, fence, attempt }, (event, resource.vm));
            }
        }
    }
    wanted
}

/// Collects the data for a command.
fn driver_run(scope: &Scope, event: &Event, vm: VmId, id: CommandId) -> Option<DriverRun> {
    let run = event.exec_run()?;
    let resource = event.resources.iter().find(|resource| resource.vm == vm)?;
    Some(DriverRun {
        id,
        operation: event.operation,
        event_type: event.cause.event_type(),
        cause: event.cause,
        duration_s: event.duration_s,
        owner: run.owner.clone(),
        target: RunTarget::Vm {
            event: event.id,
            vm,
            scope: scope.path.clone(),
            name: resource.name.clone(),
            host: scope.member(vm).and_then(|member| member.host.clone()),
            target_host: event.target_host.clone(),
            update_domain: event.update_domain,
        },
    })
}
