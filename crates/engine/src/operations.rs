//! Reconciliation of an operation: compares its record with the scopes and returns what is missing.
//!
//! The same function serves normal operation and recovery after a crash. It returns the scopes that lack their event,
//! the events to cancel or release, and the updated record. The engine carries that out and calls it again until
//! nothing is left. It visits each part once: a host may have VMs in thousands of scopes, and every approval calls it.

use std::collections::HashMap;

use notbefore_core::{EventId, JointStart, Operation, OperationState, Phase, ScopeId, Target, TargetState};

use crate::state::State;

/// Parts that this process has opened or tried to open, with the refusal's code if refused. So a part whose VM has
/// vanished is not retried forever.
pub type OpenAttempts = HashMap<EventId, Option<&'static str>>;

/// The work left for an operation.
#[derive(Debug, Default)]
pub struct Remaining {
    /// Parts whose scope has no event yet.
    pub open: Vec<Target>,
    pub cancel: Vec<(ScopeId, EventId)>,
    /// Events to complete with the whole operation.
    pub complete: Vec<(ScopeId, EventId)>,
    /// Scopes whose parts do not have the operation's release state yet.
    pub release: Vec<ScopeId>,
    /// Scopes whose parts do not know yet that the host's command is done.
    pub host_done: Vec<ScopeId>,
    /// Whether every live part waits for the host's command.
    pub are_parts_ready: bool,
    /// The updated record, if it changes.
    pub record: Option<Operation>,
}

impl Remaining {
    /// Whether a scope still has to change.
    pub fn has_scope_work(&self) -> bool {
        !(self.open.is_empty()
            && self.cancel.is_empty()
            && self.complete.is_empty()
            && self.release.is_empty()
            && self.host_done.is_empty())
    }
}

/// Whether a scheduled part does not have the operation's release state yet.
fn needs_release(operation: &Operation, released: bool, ready: bool) -> bool {
    match &operation.joint_start {
        None => operation.released && !released,
        Some(JointStart::Waiting) => false,
        Some(JointStart::Ready { .. }) => !ready,
        Some(JointStart::Released { .. }) => true,
    }
}

pub fn remaining(operation: &Operation, state: &State, tried: &OpenAttempts) -> Remaining {
    let mut remaining = Remaining::default();
    let mut record = operation.clone();
    let called_off = operation.cancelled_by.is_some();
    let opening = operation.state == OperationState::Opening && !called_off;
    let alone = operation.targets.len() == 1;
    let joint = operation.joint_start.is_some();
    let (mut parts_ready, mut parts_not_ready) = (0, 0);
    for target in record.targets.iter_mut().filter(|target| target.state != TargetState::Ended) {
        let scope = state.scope(&target.scope);
        let live = scope.and_then(|held| held.value.event(target.event));
        let ended = scope.and_then(|held| held.value.ended.iter().find(|one| one.event == target.event));
        match (live, tried.get(&target.event)) {
            (None, None) if opening && ended.is_none() => {
                parts_not_ready += 1;
                remaining.open.push(target.clone());
            }
            (None, Some(Some(code))) if opening && ended.is_none() => target.refuse(code),
            (None, _) => target.end(ended.map(|one| one.outcome)),
            (Some(event), _) => match &event.phase {
                // A started part lets the others start. Without other parts the record needs no update, so a thousand
                // events that start in the same second are written once, not twice.
                Phase::Started { .. } => {
                    if operation.completed_by.is_some() {
                        remaining.complete.push((target.scope.clone(), target.event));
                    }
                    if !alone && !joint {
                        target.advance(TargetState::Approved);
                    }
                    match event.is_ready_for_host() {
                        true => parts_ready += 1,
                        false => parts_not_ready += 1,
                    }
                    if event.waits_for_host
                        && operation.is_host_done()
                        && remaining.host_done.last() != Some(&target.scope)
                    {
                        remaining.host_done.push(target.scope.clone());
                    }
                }
                Phase::Advisory { .. } => {
                    parts_not_ready += 1;
                    if called_off {
                        remaining.cancel.push((target.scope.clone(), target.event));
                    }
                }
                Phase::Scheduled { approval, released, ready, .. } => {
                    parts_not_ready += 1;
                    // For a host operation only the scopes hold the approvals.
                    if approval.is_some() && !joint {
                        target.advance(TargetState::Approved);
                    }
                    if called_off {
                        remaining.cancel.push((target.scope.clone(), target.event));
                    } else if needs_release(operation, *released, ready.is_some())
                        // Targets are sorted by scope.
                        && remaining.release.last() != Some(&target.scope)
                    {
                        remaining.release.push(target.scope.clone());
                    }
                }
            },
        }
    }
    remaining.are_parts_ready = parts_ready > 0 && parts_not_ready == 0;
    if remaining.open.is_empty() {
        record.opened();
    }
    remaining.record = Some(record).filter(|record| record != operation);
    remaining
}
