//! **Invariant 12: once faults stop, everything due happens within a bound**, and what then must be so.
//!
//! When the faults stop every commit succeeds and the watch catches up. Within a few seconds, which is what the
//! engine allows itself between tries, no work may be left, every request must be answered, nothing overdue
//! may be found in any scope, and every operation must say what its events say. At the end of a history time
//! runs on from one due time to the next until nothing more will happen, and then every event must be over that
//! does not wait for somebody.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use notbefore_core::{
    Actor, CommandState, DriverKind, Event, EventId, JointStart, Operation, OperationState, Phase, Release,
};
use notbefore_engine::state::caller_key;
use notbefore_engine::{Address, EventCommand, Input, Request};

use crate::history::Ends;
use crate::hosts;
use crate::invariants::{Check, exec_run, running};
use crate::judge::{Violation, is_approved};
use crate::model;
use crate::view::Reads;
use crate::world::World;

/// Within how many seconds everything due has happened once faults stop: the engine tries again after one, and
/// what it tries may need a second look.
const BOUND_S: u32 = 5;
/// For how long a clock that does not jump any more is not trusted.
const HOLD: SignedDuration = SignedDuration::from_mins(5);
/// How many due times may follow one another at the end of a history.
const DUES_MAX: usize = 2_000;

fn late(detail: String) -> Violation {
    Violation { number: Some(12), words: "once faults stop, everything due happens within a bound", detail }
}

impl World {
    /// Lets the faults stop, waits for as long as the bound allows, and looks.
    pub fn drain(&mut self) -> Check {
        self.feed(Input::Tick)?;
        for _ in 0..BOUND_S {
            self.calm()?;
            self.advance(SignedDuration::from_secs(1))?;
        }
        self.calm()?;
        self.at_rest()
    }

    /// Lets time run until nothing more happens by itself. Commands succeed by now; those that have failed before
    /// are retried by somebody.
    pub(crate) fn run_out(&mut self) -> Check {
        // The clock does not jump any more, so it is trusted before long.
        if self.engine.is_clock_held() {
            self.advance(HOLD)?;
            self.calm()?;
        }
        if self.engine.is_clock_held() {
            return Err(late("the clock does not jump any more, and is not trusted".to_owned()));
        }
        for _ in 0..DUES_MAX {
            let due = self.next_due();
            if let Some(command) = self.running.first().copied() {
                self.ran(Some(command), Ends::Well)?;
            } else if let Some(due) = due {
                self.wait_until(due)?;
            } else if let Some(event) = self.given_up() {
                let by = Actor::Token("operator".to_owned());
                let command = EventCommand::Retry(event);
                self.request(Request::new(by, command.into()))?;
            } else {
                return self.all_over();
            }
            self.calm()?;
            self.at_rest()?;
        }
        Err(late(format!("{DUES_MAX} things were due one after the other and there is no end")))
    }

    /// An event that waits for somebody to retry it.
    fn given_up(&self) -> Option<EventId> {
        let failed = |event: &&Event| {
            exec_run(event).is_some_and(|run| {
                run.commands.iter().any(|command| matches!(command, CommandState::Failed { .. }))
            })
        };
        let mut events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
        events.find(failed).map(|event| event.id)
    }

    /// What the records say is running runs, under this process's name, and nothing else does.
    fn commands_run(&self) -> Check {
        let node = self.node();
        let events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
        let mut wanted = BTreeSet::new();
        for event in events {
            if exec_run(event).is_some_and(|run| run.owner != node) {
                return Err(late(format!("{node} has not taken over {event:?}")));
            }
            wanted.extend(running(event).into_iter().map(|(_, id)| id));
        }
        match wanted == self.running {
            true => Ok(()),
            false => Err(late(format!("{:?} run, not {wanted:?}", self.running))),
        }
    }

    fn at_rest(&self) -> Check {
        if !self.engine.is_idle() {
            return Err(late("a job is left".to_owned()));
        }
        if let Some(asked) = self.open.values().next() {
            return Err(late(format!("{:?} was never answered", asked.request)));
        }
        let hold = self.engine.state().clock_hold();
        let gates = hosts::gates(&self.view, hold);
        for (id, (_, scope)) in &self.view.scopes {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            let due = model::next_due(scope, here, hold, self.now);
            if due.is_some_and(|due| due <= self.now) {
                return Err(late(format!("{id} has something due at {due:?}, it is {}", self.now)));
            }
        }
        for operation in self.view.operations.values() {
            self.operation_is_true(operation)?;
        }
        if let Some((operation, _)) = hosts::free(&self.view, hold, self.now).first() {
            return Err(late(format!("host operation {operation} is due and free, and has not started")));
        }
        self.commands_run()?;
        self.engine_knows_all()
    }

    /// Opening is over, Closed means that every event is over, called off means that none is to come, and
    /// what was approved in all its parts is released.
    fn operation_is_true(&self, operation: &Operation) -> Check {
        let live: Vec<_> =
            operation.targets.iter().filter_map(|target| self.view.live(target.event)).collect();
        let expected = if live.is_empty() { OperationState::Closed } else { OperationState::Open };
        if operation.state != expected {
            return Err(late(format!("operation should be {expected:?}: {operation:?}")));
        }
        let all_approved = live.iter().all(|event| is_approved(event));
        for event in live {
            let Phase::Scheduled { released, .. } = &event.phase else { continue };
            if operation.cancelled_by.is_some() {
                return Err(late(format!("{} was called off with its operation and is live", event.id)));
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
                    "all of its operation were approved, yet {event:?} is not released"
                )));
            }
        }
        Ok(())
    }

    /// What the engine goes by is what the store has.
    fn engine_knows_all(&self) -> Check {
        let state = self.engine.state();
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
        let addresses = (0..8).map(crate::ask::address);
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

    /// Nothing more will happen by itself: every event is over, but those that wait for somebody.
    fn all_over(&self) -> Check {
        for (id, (_, scope)) in &self.view.scopes {
            if let Some(event) = scope.events.iter().find(|event| event.driver != DriverKind::Manual) {
                return Err(late(format!("nothing is due any more in {id}, and yet there is {event:?}")));
            }
        }
        Ok(())
    }
}
