//! Plans that start or complete a whole operation. `notbefore_core::joint_start` has the rules for hosts.

use notbefore_core::{
    Applied, Blocked, Command as ScopeCommand, DriverKind, Event, Fact, JointStart, Operation, OperationId,
    OperationState, Refusal, ScopeId, StartReason,
};

use crate::draft::Draft;
use crate::plan::{Plan, Planner};
use crate::request::{Answer, Failure};
use crate::state::Revisioned;

impl Planner<'_> {
    /// Plans the decision of a host operation that may be due: its parts start, or with the manual driver become
    /// ready. The decision depends on all scopes of its parts, so none of them may change before it is durable.
    pub(crate) fn decide_host_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let nothing = Ok(Plan::Settled(Answer::Done));
        let Some(held) = self.state.operation(id) else { return nothing };
        let due = self.state.host_operations().due(id);
        let Some(why) = due.and_then(|due| due.reason(self.now)) else { return nothing };
        if !self.state.host_blockers(id, self.now).is_empty() {
            return nothing;
        }
        match held.value.driver {
            DriverKind::Simulated | DriverKind::Exec => Ok(self.release_host(held, why)),
            DriverKind::Manual => {
                Ok(self.write(self.joint_draft(held, JointStart::Ready { why }), Answer::Done))
            }
        }
    }

    /// Plans an operator's start of an operation.
    pub(crate) fn start_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        let why = match &held.value.joint_start {
            None => return self.start_in_one_scope(&held.value),
            Some(JointStart::Released { .. }) => return Err(Refusal::OperationStarted(id).into()),
            Some(JointStart::Ready { why }) => *why,
            Some(JointStart::Waiting) => StartReason::Forced,
        };
        let is_open = held.value.state == OperationState::Open && held.value.cancelled_by.is_none();
        if !is_open || self.scheduled(&held.value).next().is_none() {
            return Err(Refusal::NothingToStart(id).into());
        }
        let blockers = self.state.host_blockers(id, self.now);
        if !blockers.is_empty() {
            return Err(Refusal::UpdateDomainBusy { waiting: Blocked::Operation(id), blockers }.into());
        }
        Ok(self.release_host(held, why))
    }

    fn release_host(&self, held: &Revisioned<Operation>, why: StartReason) -> Plan {
        let id = held.value.id;
        let mut draft = self.joint_draft(held, JointStart::Released { why, by: self.by.clone() });
        draft.facts(None, vec![self.recorded(Fact::OperationStarted { operation: id, why })]);
        self.write(draft, Answer::Operation(id))
    }

    /// A draft that records the start state. It depends on all scopes of the operation.
    fn joint_draft(&self, held: &Revisioned<Operation>, start: JointStart) -> Draft<'_> {
        let mut draft = self.draft();
        draft.operation(Operation { joint_start: Some(start), ..(*held.value).clone() });
        for scope in self.state.host_operations().scopes_of(held.value.id) {
            draft.depend_on(scope);
        }
        draft.reconcile_after(held.value.id);
        draft
    }

    /// Starts the events of an operation that is not a host operation, if all can start at once in one scope.
    fn start_in_one_scope(&self, operation: &Operation) -> Result<Plan, Failure> {
        if !operation.starts_in_one_scope() {
            return Err(Refusal::StartsApart(operation.id).into());
        }
        let events: Vec<_> = self.scheduled(operation).collect();
        let nothing = || Refusal::NothingToStart(operation.id);
        let scope = events.first().map(|(scope, _)| *scope).ok_or_else(nothing)?;
        let held = self.state.scope(scope).ok_or_else(nothing)?;
        let mut applied = Applied::unchanged((*held.value).clone());
        for (_, event) in events {
            applied.apply(ScopeCommand::Start(event.id), self.context(scope, self.by))?;
        }
        let mut draft = self.draft();
        draft.scope(Some(held), applied)?;
        Ok(self.write(draft, Answer::Operation(operation.id)))
    }

    /// Plans the completion of an operation. Each of its events must have started, or be about to.
    pub(crate) fn complete_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        if held.value.completed_by.is_some() {
            return Ok(Plan::Settled(Answer::Operation(id)));
        }
        let scheduled = match held.value.state {
            OperationState::Opening => held.value.targets.len(),
            OperationState::Open | OperationState::Closed => self.scheduled(&held.value).count(),
        };
        if scheduled > 0 && !held.value.has_joint_release() {
            return Err(Refusal::OperationNotStarted { operation: id, scheduled }.into());
        }
        let mut draft = self.draft();
        draft.operation(Operation { completed_by: Some(self.by.clone()), ..(*held.value).clone() });
        draft.facts(None, vec![self.recorded(Fact::OperationCompleted { operation: id })]);
        Ok(self.write(draft, Answer::Operation(id)))
    }

    /// The scheduled events of an operation, sorted by scope.
    pub(crate) fn scheduled<'s>(
        &'s self,
        operation: &'s Operation,
    ) -> impl Iterator<Item = (&'s ScopeId, &'s Event)> {
        operation.targets.iter().filter_map(|target| {
            let event = self.state.scope(&target.scope)?.value.event(target.event)?;
            (!event.is_started()).then_some((&target.scope, event))
        })
    }
}
