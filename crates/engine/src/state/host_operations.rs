//! Index of open host operations: the scopes of their parts and their start states. It is derived from scopes and
//! operations and updated as they are installed, so that lookups are cheap: every command to a scope looks up the
//! host operations that block it.
//!
//! A part counts while its event is scheduled. `notbefore_core::joint_start` has the rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use notbefore_core::{
    Blocker, ClockHold, EventId, HostPart, HostStartState, JointStart, Operation, OperationId,
    OperationState, Phase, Scope, ScopeId, StartOrder, StartReason,
};

#[derive(Debug, Default)]
pub struct HostOperations {
    operations: HashMap<OperationId, OperationEntry>,
    by_scope: HashMap<ScopeId, ScopeOperations>,
    /// The events that wait while the clock is not trusted.
    clock_hold: Option<Arc<ClockHold>>,
}

#[derive(Debug, Default)]
struct ScopeOperations {
    operations: BTreeSet<OperationId>,
    /// The start states that the scope receives.
    parts: Vec<HostPart>,
}

#[derive(Debug)]
struct OperationEntry {
    id: OperationId,
    requested_at: Timestamp,
    decision: Decision,
    /// Sorted by scope.
    parts: Vec<Part>,
    /// Due time and order; none without a scheduled part.
    due: Option<Due>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Some scopes may not have their event yet, or it was cancelled: it does not start and blocks nothing.
    Never,
    Waiting,
    Ready,
    Released,
}

#[derive(Debug)]
struct Part {
    scope: ScopeId,
    update_domain: u32,
    event: EventId,
    scheduled: Option<Scheduled>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    not_before: Timestamp,
    approved: bool,
}

/// Due time of a host operation, and its order among waiting ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The minimum timestamp if every live part is approved, the maximum while the clock is not trusted.
    pub at: Timestamp,
    pub order: StartOrder,
}

impl Due {
    /// Why it is due at `now`; none if it is not.
    pub fn reason(&self, now: Timestamp) -> Option<StartReason> {
        if self.at == Timestamp::MIN {
            Some(StartReason::Approved)
        } else {
            (self.at <= now).then_some(StartReason::NotBefore)
        }
    }
}

impl HostOperations {
    /// The host operations with a part in a scope, as the scope receives them.
    pub fn parts_in(&self, scope: &ScopeId) -> &[HostPart] {
        self.by_scope.get(scope).map(|here| here.parts.as_slice()).unwrap_or_default()
    }

    /// The host operations that have, or had, a part in a scope.
    pub fn in_scope(&self, scope: &ScopeId) -> impl Iterator<Item = OperationId> {
        self.by_scope.get(scope).into_iter().flat_map(|here| here.operations.iter().copied())
    }

    /// The scopes with parts of host operations.
    pub fn scopes(&self) -> impl Iterator<Item = &ScopeId> {
        self.by_scope.keys()
    }

    /// The distinct scopes of one host operation's scheduled parts.
    pub fn scopes_of(&self, id: OperationId) -> Vec<&ScopeId> {
        let parts = self.operations.get(&id).map(|one| one.parts.as_slice()).unwrap_or_default();
        let mut scopes: Vec<&ScopeId> =
            parts.iter().filter(|part| part.scheduled.is_some()).map(|part| &part.scope).collect();
        scopes.dedup();
        scopes
    }

    pub fn ids(&self) -> impl Iterator<Item = OperationId> {
        self.operations.keys().copied()
    }

    /// Due time of a host operation that is not decided; none for any other.
    pub fn due(&self, id: OperationId) -> Option<Due> {
        self.operations.get(&id).filter(|one| one.decision == Decision::Waiting)?.due
    }

    /// What blocks the start of a host operation at `now`. In the scope of one of its scheduled parts, either a
    /// platform event of another operation and update domain is started or released, or an earlier host operation is
    /// due.
    pub fn blockers<'a>(
        &self,
        id: OperationId,
        scope: impl Fn(&ScopeId) -> Option<&'a Scope>,
        now: Timestamp,
    ) -> Vec<Blocker> {
        let Some((one, due)) = self.operations.get(&id).and_then(|one| Some((one, one.due?))) else {
            return Vec::new();
        };
        let mut blockers = BTreeSet::new();
        for part in one.parts.iter().filter(|part| part.scheduled.is_some()) {
            let others = self.parts_in(&part.scope);
            let here = scope(&part.scope).into_iter();
            blockers.extend(here.flat_map(|one| one.gate(due.order, part.update_domain, others, now)));
        }
        blockers.into_iter().collect()
    }

    pub fn hold_clock(&mut self, hold: Option<Arc<ClockHold>>) {
        self.clock_hold = hold;
        for one in self.operations.values_mut() {
            one.due = one.compute_due(self.clock_hold.as_deref());
        }
        let scopes: Vec<ScopeId> = self.by_scope.keys().cloned().collect();
        scopes.iter().for_each(|scope| self.refresh_parts(scope));
    }

    /// Updates an operation; none if it has closed.
    pub fn put<'a>(
        &mut self,
        id: OperationId,
        operation: Option<&Operation>,
        scope: impl Fn(&ScopeId) -> Option<&'a Scope>,
    ) {
        let operation = operation.filter(|one| one.joint_start.is_some());
        if operation.is_none() && !self.operations.contains_key(&id) {
            return;
        }
        let gone = self.operations.remove(&id);
        let mut scopes: BTreeSet<ScopeId> = BTreeSet::new();
        for part in gone.iter().flat_map(|one| &one.parts) {
            if let Some(here) = self.by_scope.get_mut(&part.scope) {
                here.operations.remove(&id);
            }
            scopes.insert(part.scope.clone());
        }
        let hold = self.clock_hold.as_deref();
        if let Some(entry) = operation.and_then(|operation| OperationEntry::new(operation, hold, scope)) {
            for part in &entry.parts {
                self.by_scope.entry(part.scope.clone()).or_default().operations.insert(id);
                scopes.insert(part.scope.clone());
            }
            self.operations.insert(id, entry);
        }
        for scope in scopes {
            self.refresh_parts(&scope);
        }
    }

    /// Updates the parts in a scope.
    pub fn scope_changed(&mut self, id: &ScopeId, scope: Option<&Scope>) {
        let Some(here) = self.by_scope.get(id) else { return };
        let mut affected: BTreeSet<ScopeId> = BTreeSet::from([id.clone()]);
        for operation in here.operations.clone() {
            let Some(one) = self.operations.get_mut(&operation) else { continue };
            if one.follow(id, scope, self.clock_hold.as_deref()) {
                affected.extend(one.parts.iter().map(|part| part.scope.clone()));
            }
        }
        for scope in affected {
            self.refresh_parts(&scope);
        }
    }

    /// Recomputes what a scope receives.
    fn refresh_parts(&mut self, id: &ScopeId) {
        let Some(here) = self.by_scope.get_mut(id) else { return };
        if here.operations.is_empty() {
            self.by_scope.remove(id);
            return;
        }
        here.parts.clear();
        for one in here.operations.iter().filter_map(|operation| self.operations.get(operation)) {
            let Some(start) = one.start_state() else { continue };
            let parts = one.parts_in(id).iter().filter(|part| part.scheduled.is_some());
            here.parts.extend(parts.map(|part| HostPart {
                operation: one.id,
                update_domain: part.update_domain,
                start,
            }));
        }
    }
}

impl OperationEntry {
    fn new<'a>(
        operation: &Operation,
        hold: Option<&ClockHold>,
        scope: impl Fn(&ScopeId) -> Option<&'a Scope>,
    ) -> Option<Self> {
        let decision = match operation.joint_start.as_ref()? {
            JointStart::Released { .. } => Decision::Released,
            _ if operation.cancelled_by.is_some() => Decision::Never,
            _ if operation.state == OperationState::Opening => Decision::Never,
            JointStart::Waiting => Decision::Waiting,
            JointStart::Ready { .. } => Decision::Ready,
        };
        let part = |target: &notbefore_core::Target| Part {
            scope: target.scope.clone(),
            update_domain: target.update_domain,
            event: target.event,
            scheduled: scope(&target.scope).and_then(|scope| scheduled(scope, target.event)),
        };
        let parts = operation.targets.iter().map(part).collect();
        let (id, requested_at) = (operation.id, operation.requested_at);
        let mut entry = Self { id, requested_at, decision, parts, due: None };
        entry.due = entry.compute_due(hold);
        Some(entry)
    }

    fn parts_in(&self, scope: &ScopeId) -> &[Part] {
        let first = self.parts.partition_point(|part| part.scope < *scope);
        let here = self.parts[first..].partition_point(|part| part.scope == *scope);
        &self.parts[first..first + here]
    }

    /// Updates the parts in a scope; returns whether the other scopes must be recomputed.
    fn follow(&mut self, id: &ScopeId, scope: Option<&Scope>, hold: Option<&ClockHold>) -> bool {
        for part in self.parts.iter_mut().filter(|part| part.scope == *id) {
            part.scheduled = scope.and_then(|scope| scheduled(scope, part.event));
        }
        let due = self.compute_due(hold);
        std::mem::replace(&mut self.due, due) != due
    }

    fn compute_due(&self, hold: Option<&ClockHold>) -> Option<Due> {
        let scheduled = self.parts.iter().filter_map(|part| Some((part.event, part.scheduled?)));
        let (mut latest, mut all_approved, mut is_held) = (None, true, false);
        for (event, part) in scheduled {
            latest = latest.max(Some(part.not_before));
            all_approved &= part.approved;
            is_held |= hold.is_some_and(|hold| hold.holds(event));
        }
        let not_before = latest?;
        let at = match (all_approved, is_held) {
            (true, _) => Timestamp::MIN,
            (false, true) => Timestamp::MAX,
            (false, false) => not_before,
        };
        Some(Due {
            at,
            order: StartOrder { not_before, requested_at: self.requested_at, operation: self.id },
        })
    }

    /// The start state that scopes receive; none if it blocks nothing.
    fn start_state(&self) -> Option<HostStartState> {
        match self.decision {
            Decision::Released => Some(HostStartState::Released),
            Decision::Waiting => {
                self.due.map(|due| HostStartState::Waiting { due_at: due.at, order: due.order })
            }
            Decision::Ready | Decision::Never => None,
        }
    }
}

fn scheduled(scope: &Scope, event: EventId) -> Option<Scheduled> {
    let Phase::Scheduled { not_before, approval, .. } = &scope.event(event)?.phase else { return None };
    Some(Scheduled { not_before: *not_before, approved: approval.is_some() })
}
