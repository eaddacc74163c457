//! Liveness. **Invariant 12: once faults stop, everything due happens within a bound.**
//!
//! When the faults stop, every commit succeeds and the watch catches up. Within a few seconds, the engine's retry
//! interval, there must be no job left, no unanswered request, nothing overdue in any scope, and every operation must
//! agree with its events. At the end of a history, time advances from one due time to the next until nothing is due.
//! Then every event must have ended, except those that wait for an operator.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{
    Actor, CommandState, DriverKind, Event, HostCommand, JointStart, Operation, OperationState, Phase,
    Release,
};
use notbefore_engine::state::caller_key;
use notbefore_engine::{Address, Command, EventCommand, Input, OperationCommand, Request};

use crate::conformance::{Violation, is_approved};
use crate::history::CommandEnd;
use crate::host_command;
use crate::hosts;
use crate::invariants::{self, Check, exec_run, running};
use crate::model;
use crate::rules;
use crate::view::Reads;
use crate::world::World;

/// The bound in seconds: the engine retries after one, and a retry may need a second pass.
const BOUND_S: u32 = 5;
/// How long the clock is held after its last jump.
const HOLD: SignedDuration = SignedDuration::from_mins(5);
/// How long a cluster runs at the end of a history.
const CLUSTER_RUNS_FOR: SignedDuration = SignedDuration::from_secs(20);
/// Limit on successive due times at the end of a history.
const DUES_MAX: usize = 2_000;

fn late(detail: String) -> Violation {
    Violation { number: Some(12), words: "once faults stop, everything due happens within a bound", detail }
}

impl World {
    /// Stops the faults, waits for the bound, and checks.
    pub fn drain(&mut self) -> Check {
        if self.cluster.is_some() {
            self.calm_cluster()?;
            self.check_settled()?;
            return self.check_followers();
        }
        self.feed(Input::Tick)?;
        for _ in 0..BOUND_S {
            self.settle()?;
            self.advance(SignedDuration::from_secs(1))?;
        }
        self.settle()?;
        self.check_settled()
    }

    /// Advances time until nothing more is due. Commands now succeed; failed ones are retried.
    pub(crate) fn run_to_end(&mut self) -> Check {
        // The clock does not jump any more, so the hold ends.
        if self.node.engine.is_clock_held() {
            self.advance(HOLD)?;
            self.settle()?;
        }
        if self.node.engine.is_clock_held() {
            return Err(late("the clock does not jump any more, but is still held".to_owned()));
        }
        // The time of a cluster passes in small steps, so the end of far events is left to single nodes.
        let end = match self.cluster {
            Some(_) => rules::plus(self.node.now, CLUSTER_RUNS_FOR),
            None => Timestamp::MAX,
        };
        for _ in 0..DUES_MAX {
            let due = self.next_due();
            if let Some(command) = self.node.running.first().copied() {
                self.ran(Some(command), CommandEnd::Well)?;
            } else if due.is_some_and(|due| due > end) {
                return Ok(());
            } else if let Some(due) = due {
                self.wait_until(due)?;
            } else if let Some(command) = self.retry_of_failed_command() {
                self.request(Request::new(Actor::Token("operator".to_owned()), command))?;
            } else {
                return self.check_all_ended();
            }
            self.settle()?;
            self.check_settled()?;
        }
        Err(late(format!("{DUES_MAX} successive due times and no end")))
    }

    /// The retry that an event or an operation waits for.
    fn retry_of_failed_command(&self) -> Option<Command> {
        let failed = |event: &&Event| {
            exec_run(event).is_some_and(|run| {
                run.commands.iter().any(|command| matches!(command, CommandState::Failed { .. }))
            })
        };
        let mut events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
        let mut operations = self.view.operations.values();
        let is_open = |one: &Operation| one.state == OperationState::Open;
        let event = events.find(failed).map(|event| EventCommand::Retry(event.id).into());
        event.or_else(|| {
            let operation = operations.find(|one| is_open(one) && host_command::has_failed(one))?;
            Some(OperationCommand::Retry(operation.id).into())
        })
    }

    /// Exactly the commands that the records show as running are running, with this process as owner.
    fn check_running_commands(&self) -> Check {
        let node = self.runner();
        let events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
        let mut wanted = BTreeSet::new();
        for event in events {
            if exec_run(event).is_some_and(|run| run.owner != node) {
                return Err(late(format!("{node} has not taken over {event:?}")));
            }
            wanted.extend(running(event).into_iter().map(|(_, id)| id));
        }
        for operation in self.view.operations.values().filter(|one| one.state != OperationState::Closed) {
            if host_command::owner(operation).is_some_and(|owner| owner != node) {
                return Err(late(format!("{node} has not taken over {operation:?}")));
            }
            wanted.extend(host_command::running(operation).map(|(_, id)| id));
        }
        match wanted == self.node.running {
            true => Ok(()),
            false => Err(late(format!("{:?} run, not {wanted:?}", self.node.running))),
        }
    }

    fn check_settled(&self) -> Check {
        if !self.node.engine.is_idle() {
            return Err(late("a job is left".to_owned()));
        }
        if let Some(sent) = self.node.open.values().next() {
            return Err(late(format!("{:?} was never answered", sent.request)));
        }
        let hold = self.node.engine.state().clock_hold();
        let gates = hosts::gates(&self.view, hold);
        for (id, (_, scope)) in &self.view.scopes {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            let due = model::next_due(scope, here, hold, self.node.now);
            if due.is_some_and(|due| due <= self.node.now) {
                return Err(late(format!("{id} has something due at {due:?}, it is {}", self.node.now)));
            }
        }
        for operation in self.view.operations.values() {
            self.check_operation_record(operation)?;
        }
        if let Some((operation, _)) = hosts::free(&self.view, hold, self.node.now).first() {
            return Err(late(format!(
                "host operation {operation} is due and not blocked, but has not started"
            )));
        }
        self.check_running_commands()?;
        // Nothing is partly written any more.
        invariants::addresses_are_unambiguous(&self.view, &BTreeSet::new())?;
        self.check_engine_state()
    }

    /// Not Opening any more; Closed if every event has ended; if cancelled, no event is to come; released if all parts
    /// were approved.
    fn check_operation_record(&self, operation: &Operation) -> Check {
        let is_pending = operation.host_command == Some(HostCommand::Pending);
        if is_pending && host_command::may_begin(&self.view, operation) {
            return Err(late(format!("the command of the host may begin: {operation:?}")));
        }
        if host_command::next_due(operation).is_some_and(|due| due <= self.node.now) {
            return Err(late(format!("the command of the host is due: {operation:?}")));
        }
        let live: Vec<_> =
            operation.targets.iter().filter_map(|target| self.view.live(target.event)).collect();
        let is_over = live.is_empty() && !host_command::goes_on(operation);
        let expected = if is_over { OperationState::Closed } else { OperationState::Open };
        if operation.state != expected {
            return Err(late(format!("operation should be {expected:?}: {operation:?}")));
        }
        let all_approved = live.iter().all(|event| is_approved(event));
        for event in live {
            let Phase::Scheduled { released, .. } = &event.phase else { continue };
            if operation.cancelled_by.is_some() {
                return Err(late(format!("{} was cancelled with its operation and is live", event.id)));
            }
            if matches!(operation.joint_start, Some(JointStart::Released { .. })) {
                return Err(Violation {
                    number: Some(14),
                    words: "all live parts of a released host operation are Started once faults stop",
                    detail: format!("{event:?} of {operation:?}"),
                });
            }
            let counted = operation.release == Release::Together && operation.joint_start.is_none();
            if counted && all_approved && !released {
                return Err(late(format!(
                    "all parts of its operation were approved, but {event:?} is not released"
                )));
            }
        }
        Ok(())
    }

    /// Every node that does not lead knows what is committed, and runs nothing.
    fn check_followers(&mut self) -> Check {
        let leader = self.index();
        for index in (0..self.nodes()).filter(|index| *index != leader) {
            self.select(index);
            self.check_engine_state()?;
            let is_busy = self.has_waiting_clients() || !self.node.open.is_empty();
            if !self.node.running.is_empty() || !self.node.engine.is_idle() || is_busy {
                return Err(late(format!("node {index} has work and does not lead")));
            }
        }
        self.select(leader);
        Ok(())
    }

    /// The engine's state is equal to the store's.
    fn check_engine_state(&self) -> Check {
        let state = self.node.engine.state();
        let mut same = state.scope_ids() == self.view.scope_ids();
        for id in self.view.scope_ids() {
            same &= Reads::scope(state, &id) == self.view.scope(&id);
        }
        let differs =
            |what: &str| Err(late(format!("the engine does not know the {what} that are committed")));
        if !same {
            return differs("scopes");
        }
        for (id, vm) in &self.view.vms {
            same &= Reads::vm(state, *id).as_ref() == Some(vm);
            let claimed = |address: &Address| Reads::claim(state, address) == Some(*id);
            same &= vm.addresses.iter().all(claimed);
        }
        for vm in &self.ledger.vms {
            same &= Reads::vm(state, *vm).is_some() == self.view.vms.contains_key(vm);
        }
        let addresses = (0..8).map(crate::requests::address);
        for address in addresses {
            same &= Reads::claim(state, &address) == self.view.claims.get(&caller_key(&address)).copied();
        }
        if !same {
            return differs("VMs and addresses");
        }
        for id in &self.ledger.operations {
            same &= Reads::operation(state, *id) == self.view.operation(*id);
        }
        if !same {
            return differs("operations");
        }
        Ok(())
    }

    /// Nothing more is due: every event has ended, except those that wait for an operator.
    fn check_all_ended(&self) -> Check {
        for (id, (_, scope)) in &self.view.scopes {
            if let Some(event) = scope.events.iter().find(|event| event.driver != DriverKind::Manual) {
                return Err(late(format!("nothing more is due in {id}, but there is {event:?}")));
            }
        }
        Ok(())
    }
}
