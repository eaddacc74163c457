//! What an operation still needs: its record compared with the scopes.
//!
//! The same function serves the happy path and the morning after a crash. It says which scopes lack their
//! event, which events are to be called off or released, and what the record should say; the engine carries
//! that out and asks again until nothing is left. It takes one look at each part, since a host with VMs in
//! thousands of scopes has as many, and every approval asks again.

use std::collections::HashMap;

use notbefore_core::{EventId, JointStart, Operation, OperationState, Phase, ScopeId, Target, TargetState};

use crate::state::State;

/// The parts that this process has opened, or has tried to: those that were refused with the refusal's code. A
/// part whose VM has vanished is so not tried for ever.
pub type OpenAttempts = HashMap<EventId, Option<&'static str>>;

/// What is left to do for an operation.
#[derive(Debug, Default)]
pub struct Remaining {
    /// Parts whose scope has no event yet.
    pub open: Vec<Target>,
    /// Events to be called off.
    pub cancel: Vec<(ScopeId, EventId)>,
    /// Events that were carried out with the whole operation.
    pub complete: Vec<(ScopeId, EventId)>,
    /// Scopes to be told how far the operation's release is.
    pub release: Vec<ScopeId>,
    /// The record as it should be, if it should change.
    pub record: Option<Operation>,
}

impl Remaining {
    /// Whether a scope has still to change.
    pub fn has_scope_work(&self) -> bool {
        !(self.open.is_empty()
            && self.cancel.is_empty()
            && self.complete.is_empty()
            && self.release.is_empty())
    }
}

/// Whether a scheduled part has still to be told how far its operation's release is.
fn needs_release(operation: &Operation, released: bool, ready: bool) -> bool {
    match &operation.joint_start {
        None => operation.released && !released,
        Some(JointStart::Waiting) => false,
        Some(JointStart::Ready { .. }) => !ready,
        Some(JointStart::Released { .. }) => true,
    }
}

/// Compares an operation with the scopes.
pub fn remaining(operation: &Operation, state: &State, tried: &OpenAttempts) -> Remaining {
    let mut remaining = Remaining::default();
    let mut record = operation.clone();
    let called_off = operation.cancelled_by.is_some();
    let opening = operation.state == OperationState::Opening && !called_off;
    let alone = operation.targets.len() == 1;
    let joint = operation.joint_start.is_some();
    for target in record.targets.iter_mut().filter(|target| target.state != TargetState::Ended) {
        let scope = state.scope(&target.scope);
        let live = scope.and_then(|held| held.value.event(target.event));
        let ended = scope.and_then(|held| held.value.ended.iter().find(|one| one.event == target.event));
        match (live, tried.get(&target.event)) {
            (None, None) if opening && ended.is_none() => remaining.open.push(target.clone()),
            (None, Some(Some(code))) if opening && ended.is_none() => target.refuse(code),
            (None, _) => target.end(ended.map(|one| one.outcome)),
            (Some(event), _) => match &event.phase {
                // That one part has begun lets the others go; without others the scope says all there is to
                // say, and a thousand that begin in the same second write that once, not twice.
                Phase::Started { .. } => {
                    if operation.completed_by.is_some() {
                        remaining.complete.push((target.scope.clone(), target.event));
                    }
                    if !alone && !joint {
                        target.advance(TargetState::Approved);
                    }
                }
                Phase::Scheduled { approval, released, ready, .. } => {
                    // Of a host operation the scopes alone say who has approved.
                    if approval.is_some() && !joint {
                        target.advance(TargetState::Approved);
                    }
                    if called_off {
                        remaining.cancel.push((target.scope.clone(), target.event));
                    } else if needs_release(operation, *released, ready.is_some())
                        // Parts are in the order of their scopes.
                        && remaining.release.last() != Some(&target.scope)
                    {
                        remaining.release.push(target.scope.clone());
                    }
                }
            },
        }
    }
    if remaining.open.is_empty() {
        record.opened();
    }
    remaining.record = Some(record).filter(|record| record != operation);
    remaining
}
