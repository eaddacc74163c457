//! Test fixtures: scopes, events and views.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{Cause, Event, EventFact, Phase, Recorded, Scope, VmId};
use notbefore_engine::{Address, Publication, State, Vm, records};
use notbefore_store::{Key, Revision};

pub use notbefore_core::samples::{approved, at, scope, vm};

use crate::view::Views;

/// A scheduled event of these VMs.
pub fn event(id: u128, cause: Cause, vms: &[VmId], announced: Timestamp, not_before: Timestamp) -> Event {
    let mut event = notbefore_core::samples::event(id, cause, vms);
    let fact = EventFact::EventScheduled { not_before: Some(not_before) };
    event.trail = vec![Recorded { at: announced, fact, ..event.trail.remove(0) }];
    event.phase = Phase::Scheduled { not_before, approval: None, released: false, ready: None };
    event
}

/// Views, and a state to publish from.
#[derive(Default)]
pub struct ViewFixture {
    pub views: Arc<Views>,
    state: State,
    revision: u64,
}

impl ViewFixture {
    /// Publishes a scope with its VMs, and removes VMs that left it.
    pub fn publish(&mut self, scope: &Scope, now: Timestamp) {
        self.revision += 1;
        let before = self.state.scope(&scope.id()).map(|held| Arc::clone(&held.value));
        let removed = before.iter().flat_map(|before| &before.members);
        let removed =
            removed.filter(|one| scope.member(one.vm).is_none()).map(|one| (records::vm(one.vm), None));
        let added = scope.members.iter().map(|member| {
            let (scope, addresses) = (scope.id(), Vec::new());
            let vm = Vm { id: member.vm, scope, addresses, instance: Default::default() };
            (records::vm(member.vm), Some(records::encode(&vm)))
        });
        let scope = (records::scope(&scope.id()), Some(records::encode(scope)));
        let writes: Vec<_> = removed.chain(added).chain([scope]).collect();
        self.write(writes, now);
    }

    /// Publishes the claim of an address, or its removal.
    pub fn claim(&mut self, address: &Address, vm: Option<VmId>, now: Timestamp) {
        self.revision += 1;
        let value = vm.map(|vm| records::encode(&vm));
        self.write(vec![(records::claim(address), value)], now);
    }

    fn write(&mut self, writes: Vec<(Key, Option<Bytes>)>, now: Timestamp) {
        let installed = writes.into_iter().filter_map(|(key, value)| {
            self.state.install(&key, Revision(self.revision), value.as_ref()).unwrap()
        });
        let changes = installed.collect();
        self.views.publish(Publication { changes, inventory: self.state.inventory().clone() }, now);
    }
}
