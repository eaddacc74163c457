//! Joint starts of host operations: their events start together or wait together. An operation is checked whenever
//! something changed that it depends on:
//!
//! - not due: it gets a deadline;
//! - due and not blocked: it is decided in one commit;
//! - due and blocked: it is checked again when one of its scopes changes or another host operation advances.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use notbefore_core::{Actor, Operation, OperationId, ScopeId};

use super::deadlines::Deadlines;
use super::{Effect, Engine, Work};

/// The engine's data about host operations, besides their records.
#[derive(Default)]
pub(super) struct HostStarts {
    to_check: BTreeSet<OperationId>,
    deadlines: Deadlines<OperationId>,
    /// Due and blocked.
    blocked: BTreeSet<OperationId>,
    /// A decision is in flight.
    deciding: HashSet<OperationId>,
    /// Time of the last check; if the clock is set back, some are no longer due.
    checked_at: Option<Timestamp>,
}

impl HostStarts {
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }
}

impl Engine {
    /// Number of due host operations that wait for other update domains.
    pub fn host_operations_blocked(&self) -> usize {
        self.hosts.blocked.len()
    }

    pub(super) fn recheck_hosts_in(&mut self, scope: &ScopeId) {
        self.hosts.to_check.extend(self.state.host_operations().in_scope(scope));
    }

    pub(super) fn recheck_all_hosts(&mut self) {
        self.hosts.to_check.extend(self.state.host_operations().ids());
    }

    /// A host operation was created, decided or cancelled: others in its scopes may be unblocked, or blocked.
    pub(super) fn host_operation_changed(&mut self, operation: &Operation, now: Timestamp) {
        self.hosts.to_check.insert(operation.id);
        for scope in
            operation.targets.chunk_by(|one, two| one.scope == two.scope).map(|parts| &parts[0].scope)
        {
            self.recheck_hosts_in(scope);
            self.renew_deadline(scope, now);
        }
    }

    pub(super) fn host_decided(&mut self, id: OperationId) {
        self.hosts.deciding.remove(&id);
        self.hosts.to_check.insert(id);
    }

    /// Checks the host operations that are affected by a change or are due.
    pub(super) fn decide_hosts(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.hosts.checked_at.replace(now).is_some_and(|before| now < before) {
            self.recheck_all_hosts();
            let scopes: Vec<ScopeId> = self.state.host_operations().scopes().cloned().collect();
            scopes.iter().for_each(|scope| self.renew_deadline(scope, now));
        }
        while let Some(id) = self.hosts.deadlines.pop_due(now) {
            self.hosts.to_check.insert(id);
        }
        while let Some(id) = self.hosts.to_check.pop_first() {
            let due = self.state.host_operations().due(id);
            let is_due = due.is_some_and(|due| due.reason(now).is_some());
            self.hosts.deadlines.set(&id, due.filter(|_| !is_due).map(|due| due.at));
            if !is_due || self.hosts.deciding.contains(&id) {
                self.hosts.blocked.remove(&id);
            } else if self.state.host_blockers(id, now).is_empty() {
                self.hosts.blocked.remove(&id);
                self.hosts.deciding.insert(id);
                self.spawn(Work::DecideHost(id), Actor::Timer, now, effects);
            } else {
                self.hosts.blocked.insert(id);
            }
        }
    }
}
