//! What an operation still needs: its record compared with the scopes.
//!
//! The same function serves the happy path and the morning after a crash. It says which scopes lack their
//! event, which events are to be called off or released, and what the record should say; the engine carries
//! that out and asks again until nothing is left. It takes one look at each part, since a host with VMs in
//! thousands of scopes has as many, and every approval asks again.

use std::collections::HashMap;

use notbefore_core::{EventId, Operation, OperationState, Phase, ScopeId, Target, TargetState};

use crate::state::State;

/// The parts that this process has opened, or has tried to: those that were refused with the refusal's code. A
/// part whose VM has vanished is so not tried for ever.
pub type Tried = HashMap<EventId, Option<&'static str>>;

/// What is left to do for an operation.
#[derive(Debug, Default)]
pub struct Remaining {
    /// Parts whose scope has no event yet.
    pub open: Vec<Target>,
    /// Events to be called off.
    pub cancel: Vec<(ScopeId, EventId)>,
    /// Scopes to be told that every part was approved or is gone.
    pub release: Vec<ScopeId>,
    /// The record as it should be, if it should change.
    pub record: Option<Operation>,
}

impl Remaining {
    /// Whether a scope has still to change.
    pub fn wants_scopes(&self) -> bool {
        !(self.open.is_empty() && self.cancel.is_empty() && self.release.is_empty())
    }
}

/// Compares an operation with the scopes.
pub fn remaining(operation: &Operation, state: &State, tried: &Tried) -> Remaining {
    let mut remaining = Remaining::default();
    let mut record = operation.clone();
    let called_off = operation.cancelled_by.is_some();
    let opening = operation.state == OperationState::Opening && !called_off;
    let alone = operation.targets.len() == 1;
    for target in record.targets.iter_mut().filter(|target| target.state != TargetState::Ended) {
        let scope = state.scope(&target.scope);
        let live = scope.and_then(|held| held.value.event(target.event));
        let ended_here =
            scope.is_some_and(|held| held.value.ended.iter().any(|one| one.event == target.event));
        match (live, tried.get(&target.event)) {
            (None, None) if opening && !ended_here => remaining.open.push(target.clone()),
            (None, Some(Some(code))) if opening && !ended_here => target.refuse(code),
            (None, _) => target.advance(TargetState::Ended),
            (Some(event), _) => match &event.phase {
                // That one part has begun lets the others go; without others the scope says all there is to
                // say, and a thousand that begin in the same second write that once, not twice.
                Phase::Started { .. } if alone => {}
                Phase::Started { .. } => target.advance(TargetState::Approved),
                Phase::Scheduled { approval, released, .. } => {
                    if approval.is_some() {
                        target.advance(TargetState::Approved);
                    }
                    if called_off {
                        remaining.cancel.push((target.scope.clone(), target.event));
                    } else if operation.released
                        && !released
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
