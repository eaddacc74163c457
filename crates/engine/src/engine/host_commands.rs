//! The exec driver's commands for hosts: reconciles running processes with the operations that name this process as
//! owner, as `commands` does with scopes. `notbefore_core::host_command` has the rules.
//!
//! Everything that concerns such a command, such as a report or its next attempt, reconciles its operation. So there is
//! at most one job for it.

use std::collections::HashMap;

use jiff::Timestamp;
use notbefore_core::{CommandState, HostCommandContext, HostRan, Operation, OperationId, Refusal};

use super::commands::{CommandId, CommandTarget, DriverRun, RunTarget, RunningCommand};
use super::deadlines::Deadlines;
use super::{Effect, Engine};
use crate::plan::{Plan, Planner};
use crate::request::{Answer, Failure};
use crate::state::Revisioned;

/// The engine's data about commands of hosts, besides the operations' records.
#[derive(Default)]
pub(super) struct HostCommands {
    /// The commands that this process requested and the records still want.
    running: HashMap<OperationId, RunningCommand>,
    /// When the next attempt is due.
    deadlines: Deadlines<OperationId>,
}

impl HostCommands {
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }

    /// Forgets all commands; returns those that run.
    pub(super) fn drain(&mut self) -> Vec<CommandId> {
        self.deadlines = Deadlines::default();
        let running = self.running.drain().filter(|(_, one)| one.ending.is_none());
        running
            .map(|(operation, one)| CommandId {
                target: CommandTarget::Host(operation),
                fence: one.fence,
                attempt: one.attempt,
            })
            .collect()
    }
}

impl Engine {
    /// Starts or stops the command of an operation's host so that it matches the record; none if it has closed.
    pub(super) fn sync_host_command(
        &mut self,
        id: OperationId,
        operation: Option<&Operation>,
    ) -> Vec<Effect> {
        let run = operation.and_then(Operation::host_run);
        self.host_commands.deadlines.set(&id, run.and_then(|run| run.next_due()));
        let ours = run.filter(|run| run.owner == *self.runner);
        let wanted = ours.and_then(|run| match run.commands.first() {
            Some(CommandState::Running { attempt, .. }) => Some((run.fence, *attempt)),
            Some(CommandState::Waiting { .. } | CommandState::Done { .. } | CommandState::Failed { .. })
            | Some(CommandState::Gone)
            | None => None,
        });
        let mut effects = Vec::new();
        if let Some(asked) = self.host_commands.running.get(&id)
            && wanted != Some((asked.fence, asked.attempt))
        {
            if asked.ending.is_none() {
                let (fence, attempt) = (asked.fence, asked.attempt);
                effects.push(Effect::Stop(CommandId { target: CommandTarget::Host(id), fence, attempt }));
            }
            self.host_commands.running.remove(&id);
        }
        if let (Some((fence, attempt)), Some(operation)) = (wanted, operation)
            && !self.host_commands.running.contains_key(&id)
        {
            self.host_commands.running.insert(id, RunningCommand { fence, attempt, ending: None });
            let id = CommandId { target: CommandTarget::Host(id), fence, attempt };
            effects.extend(self.host_driver_run(operation, id).map(|run| Effect::Run(Box::new(run))));
        }
        effects
    }

    /// Keeps a report until the record contains it. Returns whether it is one that is waited for.
    pub(super) fn keep_host_report(&mut self, operation: OperationId, report: HostRan) -> bool {
        match self.host_commands.running.get_mut(&operation) {
            Some(one)
                if (one.fence, one.attempt) == (report.fence, report.attempt) && one.ending.is_none() =>
            {
                one.ending = Some(report.ending);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether the command of an operation's host has to be processed.
    pub(super) fn needs_host_command(
        &self,
        operation: &Operation,
        are_parts_ready: bool,
        now: Timestamp,
    ) -> bool {
        operation.is_host_command_due(are_parts_ready, &self.runner, now)
            || self.host_report(operation.id).is_some()
    }

    /// The report that the operation's record does not contain yet.
    pub(super) fn host_report(&self, operation: OperationId) -> Option<HostRan> {
        let one = self.host_commands.running.get(&operation)?;
        Some(HostRan { fence: one.fence, attempt: one.attempt, ending: one.ending.clone()? })
    }

    pub(super) fn run_due_host_commands(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        while let Some(id) = self.host_commands.deadlines.pop_due(now) {
            self.reconcile(id, now, effects);
        }
    }

    /// Restores the deadline after a job for the command.
    pub(super) fn renew_host_command_deadline(&mut self, id: OperationId) {
        let run = self.state.operation(id).and_then(|held| held.value.host_run());
        let due = run.and_then(|run| run.next_due());
        self.host_commands.deadlines.set(&id, due);
    }

    /// Collects the data for a command.
    fn host_driver_run(&self, operation: &Operation, id: CommandId) -> Option<DriverRun> {
        let live = operation.targets.iter().filter_map(|target| {
            let scope = &self.state.scope(&target.scope)?.value;
            Some((&scope.path, scope.event(target.event)?))
        });
        let vms = live.flat_map(|(path, event)| {
            event.resources.iter().map(move |resource| format!("{path}/{}", resource.name))
        });
        Some(DriverRun {
            id,
            operation: operation.id,
            event_type: operation.cause.event_type(),
            cause: operation.cause,
            duration_s: operation.duration_s,
            owner: self.runner.to_string(),
            target: RunTarget::Host { host: operation.host.clone()?, vms: vms.collect() },
        })
    }
}

impl Planner<'_> {
    fn host_command_context(&self) -> HostCommandContext<'_> {
        HostCommandContext { now: self.now, settings: &self.settings.exec, runner: self.runner }
    }

    /// Plans the next state of the command of an operation's host.
    pub(crate) fn drive_host_command(
        &self,
        held: &Revisioned<Operation>,
        are_parts_ready: bool,
        report: Option<HostRan>,
    ) -> Plan {
        let mut operation = (*held.value).clone();
        let facts = operation.drive_host_command(are_parts_ready, report, self.host_command_context());
        let mut draft = self.draft();
        if held.value.host_run().is_none() {
            // It begins because its parts are ready, so they must stay as they are until it has begun.
            for target in
                held.value.targets.iter().filter(|one| self.state.scope_of_event(one.event).is_some())
            {
                draft.depend_on(&target.scope);
            }
        }
        if operation != *held.value {
            draft.operation(operation);
        }
        draft.facts(None, facts);
        self.write(draft, Answer::Done)
    }

    /// Plans a retry of the command of an operation's host.
    pub(crate) fn retry_host_command(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        let mut operation = (*held.value).clone();
        let fact = operation.retry_host_command(self.host_command_context())?;
        let mut draft = self.draft();
        draft.operation(operation);
        draft.facts(None, vec![self.recorded(fact)]);
        draft.reconcile_after(id);
        Ok(self.write(draft, Answer::Operation(id)))
    }
}
