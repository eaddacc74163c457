//! Scopes and events for tests of what is read.

use std::sync::Arc;

use jiff::Timestamp;
use notbefore_core::{
    Actor, Approval, Cause, DriverKind, Event, EventFact, EventId, Member, MemberState, OperationId, Origin,
    Phase, Policy, Recorded, Release, Resource, Scope, ScopeKind, VmId,
};
use notbefore_engine::{Held, Published, Vm};
use notbefore_store::Revision;
use uuid::Uuid;

use crate::view::Views;

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

pub fn vm(n: u128) -> VmId {
    VmId(Uuid::from_u128(n))
}

pub fn scope(path: &str, vms: &[VmId]) -> Scope {
    let member = |vm: &VmId| Member {
        vm: *vm,
        name: name(*vm),
        update_domain: 0,
        fault_domain: 0,
        zone: None,
        host: None,
        spot: false,
        state: MemberState::Running,
        origin: Origin::Call,
    };
    let path = path.parse().unwrap();
    let mut scope = Scope::new(path, ScopeKind::AvailabilitySet, Policy::default(), Origin::Call);
    scope.members = vms.iter().map(member).collect();
    scope
}

fn name(vm: VmId) -> notbefore_core::Name {
    format!("vm-{}", vm.0.as_u128()).parse().unwrap()
}

/// A scheduled event of these VMs.
pub fn event(id: u128, cause: Cause, vms: &[VmId], announced: Timestamp, not_before: Timestamp) -> Event {
    let fact = EventFact::EventScheduled { not_before: Some(not_before) };
    Event {
        id: EventId(Uuid::from_u128(id)),
        operation: OperationId(Uuid::from_u128(id)),
        cause,
        update_domain: 0,
        resources: vms.iter().map(|vm| Resource { vm: *vm, name: name(*vm), host: None }).collect(),
        duration_s: -1,
        description: String::new(),
        driver: DriverKind::Simulated,
        release: Release::Each,
        phase: Phase::Scheduled { not_before, approval: None, released: false, ready: None },
        trail: vec![Recorded { at: announced, by: Actor::Timer, fact }],
    }
}

pub fn approve(event: &mut Event, now: Timestamp) {
    if let Phase::Scheduled { approval, .. } = &mut event.phase {
        *approval = Some(Approval { by: Actor::Timer, at: now });
    }
}

pub fn held<T>(revision: u64, value: T) -> Held<T> {
    Held { revision: Revision(revision), value: Arc::new(value) }
}

/// Publishes a scope and its VMs; its revision is its incarnation.
pub fn publish(views: &Views, scope: &Scope, now: Timestamp) {
    let revision = scope.incarnation;
    let vm = |member: &Member| {
        let vm = Vm { id: member.vm, scope: scope.id(), addresses: Vec::new(), instance: Default::default() };
        Published::Vm(member.vm, Some(held(revision, vm)))
    };
    let mut changes: Vec<_> = scope.members.iter().map(vm).collect();
    changes.push(Published::Scope(scope.id(), Some(held(revision, scope.clone()))));
    views.publish(changes, now);
}
