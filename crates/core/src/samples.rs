//! Test fixtures with defaults. A test names the fields it is about and takes the rest from here
//! (`Event { joint_start: true, ..samples::event(1, cause, &[1]) }`). Behind a feature that only
//! dev-dependencies enable.
//!
//! Ids are small numbers. VM `n` is named `vm-n`, so the same number always gives the same VM.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::access::{Grant, Prefix, Role, Token};
use crate::actor::Actor;
use crate::apply::{Applied, ApplyContext, NewEvent};
use crate::cause::Cause;
use crate::clock_hold::ClockHold;
use crate::event::{Approval, DriverKind, Event, Phase, Resource, Run, StartReason};
use crate::fact::{EventFact, Fact, Recorded};
use crate::host::{FreeHost, FreeHosts};
use crate::ids::{EventId, Name, OperationId, ScopeId, ScopePath, VmId};
use crate::joint_start::HostPart;
use crate::operation::{Operation, OperationState, Target, TargetState};
use crate::scope::{Member, Origin, Policy, Scope, ScopeKind};
use crate::settings::Settings;

/// The start time of tests.
pub fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// Seconds after [`now`].
pub fn at(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

pub const fn vm(n: u128) -> VmId {
    VmId(Uuid::from_u128(n))
}

pub const fn event_id(n: u128) -> EventId {
    EventId(Uuid::from_u128(n))
}

pub const fn operation_id(n: u128) -> OperationId {
    OperationId(Uuid::from_u128(n))
}

pub fn scope_id(path: &str) -> ScopeId {
    path.parse::<ScopePath>().unwrap().id()
}

/// An operator's token as an actor.
pub fn operator() -> Actor {
    Actor::Token("root".to_owned())
}

fn name(vm: VmId) -> Name {
    format!("vm-{}", vm.0.as_u128()).parse().unwrap()
}

/// A running VM in update domain 0.
pub fn member(vm: VmId) -> Member {
    Member::with_defaults(vm, name(vm))
}

/// A VM as a resource of an event.
pub fn resource(vm: VmId) -> Resource {
    Resource { vm, name: name(vm), host: None }
}

/// An availability set with these VMs.
pub fn scope(path: &str, vms: &[VmId]) -> Scope {
    let path = path.parse().unwrap();
    let members = vms.iter().copied().map(member).collect();
    Scope { members, ..Scope::new(path, ScopeKind::AvailabilitySet, Policy::default(), Origin::Call) }
}

/// A standalone scope with one VM.
pub fn standalone(path: &str, vm: VmId) -> Scope {
    Scope { kind: ScopeKind::Standalone, ..scope(path, &[vm]) }
}

/// An event to announce to these VMs, with the simulated driver.
pub fn new_event(id: u128, cause: Cause, vms: &[VmId]) -> NewEvent {
    NewEvent {
        id: event_id(id),
        operation: operation_id(id),
        cause,
        update_domain: 0,
        resources: vms.iter().copied().map(resource).collect(),
        not_before: None,
        duration_s: cause.duration_s(),
        description: String::new(),
        driver: DriverKind::Simulated,
        release: cause.release(),
        time_given: false,
        joint_start: false,
        waits_for_host: false,
        released: false,
    }
}

/// A scheduled event, announced [`now`], with NotBefore 15 minutes later. An approval alone starts it.
pub fn event(id: u128, cause: Cause, vms: &[VmId]) -> Event {
    let new = new_event(id, cause, vms);
    let not_before = at(900);
    let fact = EventFact::EventScheduled { not_before: Some(not_before) };
    Event {
        id: new.id,
        operation: new.operation,
        cause,
        update_domain: new.update_domain,
        resources: new.resources,
        duration_s: new.duration_s,
        description: new.description,
        driver: new.driver,
        release: crate::operation::Release::Each,
        time_given: false,
        joint_start: false,
        waits_for_host: false,
        target_host: None,
        phase: Phase::Scheduled { not_before, approval: None, released: false, ready: None },
        trail: vec![Recorded { at: now(), by: Actor::Timer, fact }],
    }
}

/// An advisory for one VM, without a date.
pub fn advisory(id: u128, vm: VmId) -> Event {
    Event { phase: Phase::Advisory { date: None }, ..event(id, Cause::Rebalance, &[vm]) }
}

pub fn approved(mut event: Event) -> Event {
    if let Phase::Scheduled { approval, .. } = &mut event.phase {
        *approval = Some(Approval { by: Actor::Timer, at: now() });
    }
    event
}

/// Starts the event [`now`]; a simulated one ends a minute later.
pub fn started(mut event: Event) -> Event {
    let run = match event.driver {
        DriverKind::Simulated => Run::Simulated { ends_at: at(60) },
        DriverKind::Manual | DriverKind::Exec => Run::Manual,
    };
    event.phase = Phase::Started { at: now(), why: StartReason::NotBefore, run };
    event
}

/// A part of an operation; `event` is the number of its event.
pub fn target(scope: &str, update_domain: u32, event: u128, vms: &[VmId]) -> Target {
    Target {
        scope: scope_id(scope),
        update_domain,
        event: event_id(event),
        resources: vms.iter().copied().map(resource).collect(),
        state: TargetState::Waiting,
        refused: None,
        outcome: None,
    }
}

/// An open operation with these parts.
pub fn operation(id: u128, cause: Cause, targets: Vec<Target>) -> Operation {
    Operation {
        id: operation_id(id),
        cause,
        by: operator(),
        requested_at: now(),
        host: None,
        not_before: Some(at(900)),
        time_given: false,
        duration_s: cause.duration_s(),
        description: String::new(),
        driver: DriverKind::Simulated,
        release: cause.release(),
        targets,
        state: OperationState::Open,
        released: false,
        joint_start: None,
        host_command: None,
        cancelled_by: None,
        completed_by: None,
    }
}

/// A token that is operator on `/` and does not expire.
pub fn token(name: &str) -> Token {
    Token {
        name: name.parse().unwrap(),
        hash: format!("hash of {name}"),
        grants: vec![Grant { role: Role::Operator, path: Prefix::root() }],
        created_at: now(),
        created_by: None,
        expires_at: None,
    }
}

/// An owned context. Default: an operator's request at [`now`] in an enabled scope.
#[derive(Clone, Debug)]
pub struct ContextFixture {
    pub now: Timestamp,
    pub by: Actor,
    pub enabled: bool,
    pub settings: Settings,
    /// The scheduled parts of host operations in the scope.
    pub host_parts: Vec<HostPart>,
    /// The events that wait while the clock is not trusted.
    pub clock_hold: Option<ClockHold>,
    /// The hosts that take VMs, each with the number of its VMs.
    pub free_hosts: FreeHostList,
}

/// Hosts that take VMs, each with the number of its VMs.
#[derive(Clone, Debug, Default)]
pub struct FreeHostList(pub Vec<(&'static str, usize)>);

impl FreeHosts for FreeHostList {
    fn free_hosts(&self) -> Vec<FreeHost<'_>> {
        self.0.iter().map(|(name, vms)| FreeHost { name, vms: *vms }).collect()
    }
}

impl Default for ContextFixture {
    fn default() -> Self {
        let (host_parts, clock_hold) = (Vec::new(), None);
        Self {
            now: now(),
            by: operator(),
            enabled: true,
            settings: Settings::default(),
            host_parts,
            clock_hold,
            free_hosts: FreeHostList::default(),
        }
    }
}

impl ContextFixture {
    /// The context for [`Scope::apply`]; the runner is `n1`.
    pub fn context(&self) -> ApplyContext<'_> {
        ApplyContext {
            now: self.now,
            by: &self.by,
            enabled: self.enabled,
            settings: &self.settings,
            runner: "n1",
            host_parts: &self.host_parts,
            clock_hold: self.clock_hold.as_ref(),
            free_hosts: &self.free_hosts,
        }
    }
}

/// The result of a command in one line for a table: the facts in order, each with its reason and the number of
/// its event or VM, or the refusal's code.
pub fn outcome_text(result: Result<Applied, crate::Refusal>) -> String {
    match result {
        Ok(applied) => {
            let facts = applied.facts.iter().map(|one| fact(&one.fact));
            facts.collect::<Vec<_>>().join(", ")
        }
        Err(refusal) => refusal.code().to_owned(),
    }
}

fn fact(fact: &Fact) -> String {
    let Fact::Event { event, what, .. } = fact else { return variant(fact) };
    let why = match what {
        EventFact::EventScheduled { not_before: Some(at) } => {
            format!("(+{})", at.duration_since(now()).as_secs())
        }
        EventFact::EventScheduled { not_before: None } => "(at once)".to_owned(),
        EventFact::EventReady { why } | EventFact::EventStarted { why } => format!("({why:?})"),
        EventFact::EventCancelled { why } => format!("({})", variant(why)),
        EventFact::EventApproved
        | EventFact::EventReleased
        | EventFact::EventCompleted
        | EventFact::DriverTookOver { .. }
        | EventFact::DriverAttemptFailed { .. }
        | EventFact::DriverFailed { .. }
        | EventFact::DriverRetried { .. } => String::new(),
    };
    format!("{}{why} {}", variant(what), event.0.as_u128())
}

/// The name of an enum variant.
fn variant(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}
