//! Converts stored facts to API facts.
//!
//! A fact's id is the revision of its commit and a number within the commit. The number is stored with the facts
//! ([`FactBatch::first`]), so that stream and audit trail give a fact the same id. An event's trail is stored without
//! ids; they are looked up in the audit trail, whose keys begin with the time.

use jiff::Timestamp;
use notbefore_core::fact::CancelReason;
use notbefore_core::{
    Actor, Cause, Event, EventFact, EventId, Fact, HostCommandFact, Name, Recorded, ScopeId, SignInMethod,
};
use notbefore_engine::records::{self, FactBatch, NewRead, Seen, SeenRead, prefix};
use notbefore_store::{Batch, Change, ReadError, Revision, Snapshot};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::facts::{FactDetail, FactId};
use wire::ActorKind;

use super::access::CommandReasons;
use super::tokens;
use super::wire_names::WireName;

/// Most records of the audit trail read to find the ids of one event's trail. A millisecond has more only if thousands
/// of events start at the same time.
const SCANNED_MAX: usize = 2_000;

/// The facts of a batch with their ids, sorted.
pub fn numbered(revision: Revision, batch: &FactBatch) -> impl Iterator<Item = (FactId, &Recorded<Fact>)> {
    let id = move |n| FactId { revision: revision.0, n };
    (batch.first..).map(id).zip(&batch.facts)
}

/// The facts of a commit that a caller sees, sorted by id.
pub fn of_batch(
    batch: &Batch,
    reasons: CommandReasons,
    sees: impl Fn(Option<&ScopeId>, Option<&Fact>) -> bool,
) -> Vec<(FactId, wire::Fact)> {
    let mut found = Vec::new();
    // A commit has facts or first reads, not both.
    let mut numbers = 0..;
    for Change { key, value } in batch.changes.iter() {
        let Some(value) = value else { continue };
        // A record of another release may not be readable.
        if key.starts_with(prefix::FACT)
            && let Ok(facts) = records::decode::<FactBatch>(key, value)
        {
            let scope = facts.scope.as_ref();
            let seen = numbered(batch.revision, &facts).filter(|(_, one)| sees(scope, Some(&one.fact)));
            found.extend(seen.map(|(id, one)| (id, present(id, scope, one, reasons))));
        } else if let Some(event) = records::event_in_key(key)
            && let Ok(seen) = records::decode::<Seen>(key, value)
        {
            let is_seen = sees(Some(&seen.scope), None);
            for (fact, n) in reads(event, &seen).into_iter().zip(&mut numbers) {
                let id = FactId { revision: batch.revision.0, n };
                found.extend(is_seen.then_some((id, wire::Fact { id: Some(id), ..fact })));
            }
        }
    }
    found.sort_by_key(|(id, _)| *id);
    found
}

pub fn present(
    id: FactId,
    scope: Option<&ScopeId>,
    recorded: &Recorded<Fact>,
    reasons: CommandReasons,
) -> wire::Fact {
    let (mut scope, mut operation, mut event) = (scope.map(ToString::to_string), None, None);
    let mut vms = Vec::new();
    match &recorded.fact {
        Fact::Event { event: id, operation: of, resources, .. } => {
            (event, operation) = (Some(id.0), Some(of.0));
            vms = resources.iter().map(Name::to_string).collect();
        }
        Fact::OperationRequested { operation: id, .. }
        | Fact::OperationCancelled { operation: id }
        | Fact::OperationStarted { operation: id, .. }
        | Fact::OperationCompleted { operation: id }
        | Fact::HostCommand { operation: id, .. } => operation = Some(id.0),
        Fact::ScopeCreated { path } | Fact::ScopeRemoved { path } => scope = Some(path.to_string()),
        Fact::VmAdded { name, .. }
        | Fact::VmChanged { name, .. }
        | Fact::VmRemoved { name, .. }
        | Fact::VmMoved { name, .. }
        | Fact::VmDeallocated { name, .. }
        | Fact::VmStarted { name, .. } => vms = vec![name.to_string()],
        Fact::PolicyChanged
        | Fact::HostStateChanged { .. }
        | Fact::HostForgotten { .. }
        | Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. }
        | Fact::SignedIn { .. }
        | Fact::SignInLinkCreated
        | Fact::ClockAccepted
        | Fact::HandOverRequested { .. }
        | Fact::UpgradeFinished { .. }
        | Fact::NodeForgotten { .. } => {}
    }
    let what = match &recorded.fact {
        Fact::Event { cause, what, .. } => of_event(*cause, what, reasons),
        Fact::OperationRequested { cause, targets, .. } => {
            FactDetail::OperationRequested { cause: cause.wire_name(), targets: *targets }
        }
        Fact::OperationCancelled { .. } => FactDetail::OperationCancelled,
        Fact::OperationStarted { why, .. } => FactDetail::OperationStarted { why: why.to_string() },
        Fact::OperationCompleted { .. } => FactDetail::OperationCompleted,
        Fact::HostCommand { host, what, .. } => of_host_command(reasons.host_or_empty(host), what, reasons),
        Fact::ScopeCreated { .. } => FactDetail::ScopeCreated,
        Fact::PolicyChanged => FactDetail::PolicyChanged,
        Fact::ScopeRemoved { .. } => FactDetail::ScopeRemoved,
        Fact::VmAdded { .. } => FactDetail::VmAdded,
        Fact::VmChanged { .. } => FactDetail::VmChanged,
        Fact::VmRemoved { .. } => FactDetail::VmRemoved,
        Fact::VmMoved { host, .. } => FactDetail::VmMoved { host: reasons.host_or_empty(host) },
        Fact::VmDeallocated { .. } => FactDetail::VmDeallocated,
        Fact::VmStarted { .. } => FactDetail::VmStarted,
        Fact::HostStateChanged { host, state } => {
            FactDetail::HostStateChanged { host: reasons.host_or_empty(host), state: state.wire_name() }
        }
        Fact::HostForgotten { host } => FactDetail::HostForgotten { host: reasons.host_or_empty(host) },
        Fact::TokenCreated { name, grants } => FactDetail::TokenCreated {
            name: name.to_string(),
            grants: grants.iter().map(tokens::grant).collect(),
        },
        Fact::TokenRevoked { name } => FactDetail::TokenRevoked { name: name.to_string() },
        Fact::SignedIn { method } => FactDetail::SignedIn {
            method: match method {
                SignInMethod::Token => wire::SignInMethod::Token,
                SignInMethod::Link => wire::SignInMethod::Link,
            },
        },
        Fact::SignInLinkCreated => FactDetail::SignInLinkCreated,
        Fact::ClockAccepted => FactDetail::ClockAccepted,
        Fact::HandOverRequested { node } => FactDetail::HandOverRequested { node: node.clone() },
        Fact::NodeForgotten { node } => FactDetail::NodeForgotten { node: node.clone() },
        Fact::UpgradeFinished { level } => FactDetail::UpgradeFinished { level: *level },
    };
    wire::Fact { id: Some(id), at: recorded.at, what, scope, operation, event, vms, by: actor(&recorded.by) }
}

/// An event's trail, without ids.
pub fn trail(scope: &ScopeId, event: &Event, reasons: CommandReasons) -> Vec<wire::Fact> {
    let names = || event.resources.iter().map(|one| one.name.to_string()).collect();
    let one = |recorded: &Recorded<EventFact>| wire::Fact {
        id: None,
        at: recorded.at,
        what: of_event(event.cause, &recorded.fact, reasons),
        scope: Some(scope.to_string()),
        operation: Some(event.operation.0),
        event: Some(event.id.0),
        vms: recorded.fact.vm().map_or_else(names, |vm| vec![vm.to_string()]),
        by: actor(&recorded.by),
    };
    event.trail.iter().map(one).collect()
}

/// Adds the ids to the facts of an event's trail.
pub async fn identify(
    snapshot: &dyn Snapshot,
    trail: &mut [wire::Fact],
    reasons: CommandReasons,
) -> Result<(), ReadError> {
    let mut left = SCANNED_MAX;
    let mut times: Vec<Timestamp> = trail.iter().map(|fact| fact.at).collect();
    times.dedup();
    for at in times {
        let page = snapshot.scan(&records::facts_at(at), None, left).await?;
        left -= page.records.len();
        for (key, record) in &page.records {
            // A record of another release may not be readable; its facts get no id.
            let Ok(batch) = records::decode::<FactBatch>(key, &record.value) else { continue };
            for (id, recorded) in numbered(record.revision, &batch) {
                let stored = present(id, batch.scope.as_ref(), recorded, reasons);
                let same = |fact: &&mut wire::Fact| {
                    fact.id.is_none()
                        && (fact.event, fact.at, &fact.what, &fact.by)
                            == (stored.event, stored.at, &stored.what, &stored.by)
                };
                if let Some(fact) = trail.iter_mut().find(same) {
                    fact.id = stored.id;
                }
            }
        }
        if left == 0 {
            break;
        }
    }
    Ok(())
}

/// The first reads of an event that are new in this record.
pub fn reads(event: EventId, seen: &Seen) -> Vec<wire::Fact> {
    let one = |NewRead { vm, name }: &NewRead| {
        let SeenRead { at, version, .. } = seen.reads.iter().find(|read| read.vm == *vm)?;
        Some(wire::Fact {
            id: None,
            at: *at,
            what: FactDetail::EventRead { api_version: version.clone() },
            scope: Some(seen.scope.to_string()),
            operation: None,
            event: Some(event.0),
            vms: vec![name.to_string()],
            by: wire::Actor { kind: ActorKind::Vm, name: name.to_string(), address: None },
        })
    };
    seen.added.iter().filter_map(one).collect()
}

pub fn actor(actor: &Actor) -> wire::Actor {
    let bare = |kind: ActorKind| wire::Actor { name: kind.to_string(), kind, address: None };
    match actor {
        Actor::Token(name) => wire::Actor { name: name.clone(), ..bare(ActorKind::Token) },
        Actor::Vm { name, address, .. } => {
            wire::Actor { name: name.to_string(), address: Some(*address), kind: ActorKind::Vm }
        }
        Actor::Timer => bare(ActorKind::Timer),
        Actor::Driver(name) => wire::Actor { name: name.clone(), ..bare(ActorKind::Driver) },
        Actor::Service => bare(ActorKind::Service),
    }
}

fn of_host_command(host: String, what: &HostCommandFact, reasons: CommandReasons) -> FactDetail {
    match what.clone() {
        HostCommandFact::TookOver { owner, fence } => FactDetail::HostCommandTookOver { host, owner, fence },
        HostCommandFact::AttemptFailed { attempt, why } => {
            FactDetail::HostCommandAttemptFailed { host, attempt, why: reasons.show(&why) }
        }
        HostCommandFact::Failed { attempts, why } => {
            FactDetail::HostCommandFailed { host, attempts, why: reasons.show(&why) }
        }
        HostCommandFact::Retried => FactDetail::HostCommandRetried { host },
        HostCommandFact::Started => FactDetail::HostCommandStarted { host },
        HostCommandFact::Succeeded => FactDetail::HostCommandSucceeded { host },
    }
}

fn of_event(cause: Cause, what: &EventFact, reasons: CommandReasons) -> FactDetail {
    let cause = cause.wire_name();
    match what.clone() {
        EventFact::EventScheduled { not_before } => FactDetail::EventScheduled { cause, not_before },
        EventFact::EventApproved => FactDetail::EventApproved { cause },
        EventFact::EventReleased => FactDetail::EventReleased { cause },
        EventFact::EventReady { why } => FactDetail::EventReady { cause, why: why.to_string() },
        EventFact::EventStarted { why } => FactDetail::EventStarted { cause, why: why.to_string() },
        EventFact::DriverTookOver { owner, fence } => FactDetail::DriverTookOver { cause, owner, fence },
        EventFact::DriverAttemptFailed { vm, attempt, why } => {
            FactDetail::DriverAttemptFailed { cause, vm: vm.to_string(), attempt, why: reasons.show(&why) }
        }
        EventFact::DriverFailed { vm, attempts, why } => {
            FactDetail::DriverFailed { cause, vm: vm.to_string(), attempts, why: reasons.show(&why) }
        }
        EventFact::DriverRetried { commands } => FactDetail::DriverRetried { cause, commands },
        EventFact::EventCompleted => FactDetail::EventCompleted { cause },
        EventFact::EventCancelled { why } => {
            let why = match why {
                CancelReason::Asked => None,
                CancelReason::ResourcesGone => Some("all its VMs were removed or deallocated".to_owned()),
                CancelReason::Redeployed { by_event } => {
                    Some(format!("the VM was redeployed by event {by_event}"))
                }
                CancelReason::Preempted { by_event } => {
                    Some(format!("the VM is evicted by event {by_event}"))
                }
            };
            FactDetail::EventCancelled { cause, why }
        }
    }
}
