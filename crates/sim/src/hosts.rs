//! The model of host operations, without indexes: everything is computed from the records each time.
//!
//! A host operation names a host, freezes or reboots it, and had more than one part. It is *due* when every scheduled
//! part is approved, or the latest of their NotBefores has passed. In one of its scopes it is *blocked* while
//!
//! - another operation has started, or is about to start, in another update domain, or
//! - an earlier host operation that is due has a part.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use notbefore_core::{
    Cause, ClockHold, Event, HostState, JointStart, Operation, OperationId, OperationState, Phase, Scope,
    ScopeId, StartReason,
};

use crate::rules;
use crate::view::Reads;

/// The start order: NotBefore, the time of the request, the operation's id.
pub type Place = (Timestamp, Timestamp, OperationId);

/// The hosts that take VMs: ok, and without an open operation.
pub fn free_hosts(reads: &dyn Reads) -> BTreeSet<String> {
    let ids = reads.scope_ids();
    let members = ids.iter().filter_map(|id| reads.scope(id)).flat_map(|(_, scope)| &scope.members);
    let mut hosts: BTreeSet<String> = members.filter_map(|member| member.host.clone()).collect();
    hosts.extend(reads.recorded_hosts());
    let busy: BTreeSet<&str> =
        reads.operations().into_iter().filter_map(|operation| operation.host.as_deref()).collect();
    hosts.retain(|host| {
        let is_ok = reads.host(host).is_none_or(|host| host.state == HostState::Ok);
        is_ok && !busy.contains(host.as_str())
    });
    hosts
}

/// A scheduled part of a host operation, as it blocks others in its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    pub operation: OperationId,
    pub update_domain: u32,
    /// None once it is released; otherwise its due time and order.
    pub waits: Option<(Timestamp, Place)>,
}

/// The events that wait while the clock is not trusted; none if it is.
pub type Hold<'a> = Option<&'a ClockHold>;

/// Gates by scope.
pub type Gates = BTreeMap<ScopeId, Vec<Gate>>;

/// Whether a new operation is a host operation.
pub fn is_whole(host: Option<&str>, cause: Cause, parts: usize) -> bool {
    host.is_some() && matches!(cause, Cause::HostFreeze | Cause::HostReboot) && parts > 1
}

/// The scheduled parts of an operation: scope, update domain and event.
pub fn scheduled<'a>(reads: &'a dyn Reads, operation: &'a Operation) -> Vec<(&'a ScopeId, u32, &'a Event)> {
    let parts = operation.targets.iter().filter_map(|target| {
        let (_, scope) = reads.scope(&target.scope)?;
        let event = scope.events.iter().find(|event| event.id == target.event)?;
        (!matches!(event.phase, Phase::Started { .. })).then_some((
            &target.scope,
            target.update_domain,
            event,
        ))
    });
    parts.collect()
}

fn place(reads: &dyn Reads, operation: &Operation) -> Option<Place> {
    let latest = scheduled(reads, operation).iter().filter_map(|(_, _, event)| event.not_before()).max()?;
    Some((latest, operation.requested_at, operation.id))
}

/// Due time and reason of a host operation that is not decided: at once if all of it is approved, otherwise at the
/// latest NotBefore, which never comes while the clock is not trusted.
pub fn due(reads: &dyn Reads, hold: Hold<'_>, operation: &Operation) -> Option<(Timestamp, StartReason)> {
    if operation.joint_start != Some(JointStart::Waiting)
        || operation.state == OperationState::Opening
        || operation.cancelled_by.is_some()
    {
        return None;
    }
    let (latest, ..) = place(reads, operation)?;
    let approved = |event: &Event| matches!(&event.phase, Phase::Scheduled { approval: Some(_), .. });
    let parts = scheduled(reads, operation);
    if parts.iter().all(|(_, _, event)| approved(event)) {
        Some((Timestamp::MIN, StartReason::Approved))
    } else if parts.iter().any(|(_, _, event)| hold.is_some_and(|hold| hold.holds(event.id))) {
        Some((Timestamp::MAX, StartReason::NotBefore))
    } else {
        Some((latest, StartReason::NotBefore))
    }
}

pub fn gates(reads: &dyn Reads, hold: Hold<'_>) -> Gates {
    let mut gates = Gates::new();
    for operation in reads.operations().into_iter().filter(|one| one.joint_start.is_some()) {
        let waits = match &operation.joint_start {
            Some(JointStart::Released { .. }) => None,
            Some(JointStart::Waiting | JointStart::Ready { .. }) | None => {
                let Some((at, _)) = due(reads, hold, operation) else { continue };
                let Some(place) = place(reads, operation) else { continue };
                Some((at, place))
            }
        };
        for (scope, update_domain, _) in scheduled(reads, operation) {
            let gate = Gate { operation: operation.id, update_domain, waits };
            gates.entry(scope.clone()).or_default().push(gate);
        }
    }
    gates
}

/// Whether a gate blocks another operation's start in an update domain.
pub fn holds(gate: &Gate, place: Place, update_domain: u32, now: Timestamp) -> bool {
    let first = gate.waits.is_none_or(|(due_at, earlier)| due_at <= now && earlier < place);
    gate.operation != place.2 && gate.update_domain != update_domain && first
}

/// Whether a scope has a started platform event of another operation and update domain.
pub fn is_busy(scope: &Scope, operation: OperationId, update_domain: u32) -> bool {
    scope.events.iter().any(|other| {
        other.operation != operation
            && other.update_domain != update_domain
            && !rules::of(other.cause).users
            && matches!(other.phase, Phase::Started { .. })
    })
}

/// Whether a host operation must wait.
pub fn is_blocked(reads: &dyn Reads, hold: Hold<'_>, operation: &Operation, now: Timestamp) -> bool {
    let Some(place) = place(reads, operation) else { return false };
    let gates = gates(reads, hold);
    scheduled(reads, operation).iter().any(|(id, update_domain, _)| {
        let busy = reads.scope(id).is_some_and(|(_, scope)| is_busy(scope, operation.id, *update_domain));
        busy || gates.get(*id).into_iter().flatten().any(|gate| holds(gate, place, *update_domain, now))
    })
}

/// The due and unblocked host operations, with their reasons.
pub fn free(reads: &dyn Reads, hold: Hold<'_>, now: Timestamp) -> Vec<(OperationId, StartReason)> {
    let due = |operation: &&Operation| {
        let (at, why) = due(reads, hold, operation)?;
        (at <= now && !is_blocked(reads, hold, operation, now)).then_some((operation.id, why))
    };
    reads.operations().iter().filter_map(due).collect()
}

/// When the next host operation is due.
pub fn next_due(reads: &dyn Reads, hold: Hold<'_>, now: Timestamp) -> Option<Timestamp> {
    let later = reads.operations().into_iter().filter_map(|one| due(reads, hold, one)).map(|(at, _)| at);
    later.filter(|at| *at > now && *at < Timestamp::MAX).min()
}
