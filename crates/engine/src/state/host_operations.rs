//! Index of the host operations that have not closed: which scopes they have parts in, and how far each is from
//! starting. It is derived from scopes and operations and follows them as they are installed, so that asking is
//! cheap: every command to a scope asks which host operations hold it back.
//!
//! A part counts as long as its event is scheduled. `notbefore_core::joint_start` has the rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use notbefore_core::{
    Blocker, ClockHold, EventId, HostPart, HostStartState, JointStart, Operation, OperationId,
    OperationState, Phase, Scope, ScopeId, StartOrder, StartReason,
};

/// The host operations that have not closed.
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
    /// What the scope is told of them.
    parts: Vec<HostPart>,
}

#[derive(Debug)]
struct OperationEntry {
    id: OperationId,
    requested_at: Timestamp,
    decision: Decision,
    /// In the order of their scopes.
    parts: Vec<Part>,
    /// When it is due and its place among those that wait; none without a scheduled part.
    due: Option<Due>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Some scopes may not have their event yet, or it was cancelled: it does not start and holds nothing back.
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

/// When a host operation is due, and its place among those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When; the beginning of time where every live part is approved, the end of time while the clock is not trusted.
    pub at: Timestamp,
    /// Its place.
    pub order: StartOrder,
}

impl Due {
    /// What makes it due at `now`, if it is.
    pub fn reason(&self, now: Timestamp) -> Option<StartReason> {
        if self.at == Timestamp::MIN {
            Some(StartReason::Approved)
        } else {
            (self.at <= now).then_some(StartReason::NotBefore)
        }
    }
}

impl HostOperations {
    /// What a scope must know of host operations that have a part in it.
    pub fn parts_in(&self, scope: &ScopeId) -> &[HostPart] {
        self.by_scope.get(scope).map(|here| here.parts.as_slice()).unwrap_or_default()
    }

    /// The host operations that have, or had, a part in a scope.
    pub fn in_scope(&self, scope: &ScopeId) -> impl Iterator<Item = OperationId> {
        self.by_scope.get(scope).into_iter().flat_map(|here| here.operations.iter().copied())
    }

    /// The scopes that host operations have parts in.
    pub fn scopes(&self) -> impl Iterator<Item = &ScopeId> {
        self.by_scope.keys()
    }

    /// The scopes of one host operation's scheduled parts, each once.
    pub fn scopes_of(&self, id: OperationId) -> Vec<&ScopeId> {
        let parts = self.operations.get(&id).map(|one| one.parts.as_slice()).unwrap_or_default();
        let mut scopes: Vec<&ScopeId> =
            parts.iter().filter(|part| part.scheduled.is_some()).map(|part| &part.scope).collect();
        scopes.dedup();
        scopes
    }

    /// All of them.
    pub fn ids(&self) -> impl Iterator<Item = OperationId> {
        self.operations.keys().copied()
    }

    /// When a host operation is due that is still to be decided; none for any other.
    pub fn due(&self, id: OperationId) -> Option<Due> {
        self.operations.get(&id).filter(|one| one.decision == Decision::Waiting)?.due
    }

    /// What keeps a host operation that has not started from starting at `now`: in the scope of a scheduled part,
    /// another operation's platform event of another update domain is started or released, or an earlier host
    /// operation is due.
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

    /// Takes over which events wait while the clock is not trusted.
    pub fn hold_clock(&mut self, hold: Option<Arc<ClockHold>>) {
        self.clock_hold = hold;
        for one in self.operations.values_mut() {
            one.due = one.compute_due(self.clock_hold.as_deref());
        }
        let scopes: Vec<ScopeId> = self.by_scope.keys().cloned().collect();
        scopes.iter().for_each(|scope| self.tell(scope));
    }

    /// Takes an operation over as it is now; none where it has closed.
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
        if let Some(standing) = operation.and_then(|operation| OperationEntry::new(operation, hold, scope)) {
            for part in &standing.parts {
                self.by_scope.entry(part.scope.clone()).or_default().operations.insert(id);
                scopes.insert(part.scope.clone());
            }
            self.operations.insert(id, standing);
        }
        for scope in scopes {
            self.tell(&scope);
        }
    }

    /// Takes over how the parts in a scope stand now.
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
            self.tell(&scope);
        }
    }

    /// Works out what a scope is told.
    fn tell(&mut self, id: &ScopeId) {
        let Some(here) = self.by_scope.get_mut(id) else { return };
        if here.operations.is_empty() {
            self.by_scope.remove(id);
            return;
        }
        here.parts.clear();
        for one in here.operations.iter().filter_map(|operation| self.operations.get(operation)) {
            let Some(standing) = one.host_standing() else { continue };
            let parts = one.parts_in(id).iter().filter(|part| part.scheduled.is_some());
            here.parts.extend(parts.map(|part| HostPart {
                operation: one.id,
                update_domain: part.update_domain,
                standing,
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
        let mut standing = Self { id, requested_at, decision, parts, due: None };
        standing.due = standing.compute_due(hold);
        Some(standing)
    }

    fn parts_in(&self, scope: &ScopeId) -> &[Part] {
        let first = self.parts.partition_point(|part| part.scope < *scope);
        let here = self.parts[first..].partition_point(|part| part.scope == *scope);
        &self.parts[first..first + here]
    }

    /// Takes over how the parts in a scope stand; answers whether the others' scopes are to be told of it.
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

    /// What scopes are told of it; nothing of one that holds nothing back.
    fn host_standing(&self) -> Option<HostStartState> {
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
