//! Plans for operations: split a request for VMs or a host into parts, and cancel or update a whole operation.
//! `joint_start.rs` has the plans that start or complete one.

use std::collections::{BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::apply::{NewEvent, not_before, notice};
use notbefore_core::operation::{TargetVm, targets};
use notbefore_core::time::{after, round_up};
use notbefore_core::{
    Actor, Applied, Cause, Command as ScopeCommand, EventId, Fact, HostCommand, HostState, Member,
    MemberState, Name, Operation, OperationId, OperationState, Phase, Refusal, Resource, Scope, ScopeId,
    Source, StartReason, Target, VmId,
};

use crate::draft::{encode_operation, encode_scope};
use crate::fleet::check_revision;
use crate::plan::{Plan, Planner};
use crate::records;
use crate::request::{Answer, Expected, Failure, NewOperation, OperationCommand, Preview, TargetSelector};
use crate::state::Revisioned;

/// Added to the notice of an operation over several scopes, and scaled with it: the time to reach all of them, so that
/// the last scope still gives the whole notice.
const OPENING_ALLOWANCE: std::time::Duration = std::time::Duration::from_secs(5);

impl<'a> Planner<'a> {
    pub(crate) fn plan_operation(&self, command: &OperationCommand) -> Result<Plan, Failure> {
        match command {
            OperationCommand::Schedule(new) => self.schedule(new),
            OperationCommand::Cancel(id) => self.cancel_operation(*id),
            OperationCommand::Start(id) => self.start_operation(*id),
            OperationCommand::Complete(id) => self.complete_operation(*id),
            OperationCommand::Retry(id) => self.retry_host_command(*id),
        }
    }

    /// Plans the opening of one part, for those of its VMs that are still running and on the operation's host.
    pub fn open_target(&self, operation: &Operation, target: &Target) -> Result<Plan, Failure> {
        let held = self.state.scope(&target.scope).ok_or(Refusal::VmsGone)?;
        let mut event = self.event(operation, target, &held.value);
        event.resources.retain(|resource| {
            let member = held.value.member(resource.vm);
            member.is_some_and(|member| {
                member.state == MemberState::Running
                    && (operation.host.is_none() || member.host == operation.host)
            })
        });
        if event.resources.is_empty() {
            return Err(Refusal::VmsGone.into());
        }
        let context = self.context(&target.scope, &operation.by);
        let applied = held.value.apply(ScopeCommand::Open(vec![event]), context)?;
        let mut draft = self.draft();
        draft.scope(Some(held), applied)?;
        if !draft.is_empty() {
            // An earlier process may have opened it, and it ended and was forgotten: it must not happen again.
            draft.expect(records::past(target.event), None);
        }
        Ok(self.write(draft, Answer::Done))
    }

    /// The event of a part. It has the operation's NotBefore, a later one if opening was delayed so long that the
    /// notice would be too short, or none if the scope's policy gives no notice. An advisory keeps its date.
    fn event(&self, operation: &Operation, target: &Target, scope: &Scope) -> NewEvent {
        let mut event = operation.event(target);
        if event.cause.is_advisory() {
            return event;
        }
        let earliest =
            notice(event.cause, &scope.policy, self.settings).map(|least| round_up(after(self.now, least)));
        event.not_before = earliest.map(|earliest| event.not_before.map_or(earliest, |at| at.max(earliest)));
        event
    }

    fn schedule(&self, new: &NewOperation) -> Result<Plan, Failure> {
        let (Preview { mut operation, .. }, alone) = self.outline(new)?;
        let mut draft = self.draft();
        let requested = Fact::OperationRequested {
            operation: operation.id,
            cause: operation.cause,
            targets: operation.targets.len(),
        };
        let answer = Answer::Operation(operation.id);
        draft.facts(None, vec![self.recorded(requested)]);
        if let Some(OneScope { held, applied, bytes }) = alone {
            // One scope: the operation and its events are one transaction.
            draft.scope_with_bytes(Some(held), applied, Some(bytes))?;
            operation.opened();
        } else if operation.targets.is_empty() {
            operation.opened();
        }
        if let (Some(host), Some(state)) = (&operation.host, HostState::reported_by(operation.cause)) {
            self.set_host_state(&mut draft, host, state);
        }
        draft.new_operation(operation)?;
        Ok(self.write(draft, answer))
    }

    pub(crate) fn preview(&self, new: &NewOperation) -> Result<Preview, Failure> {
        let (preview, _) = self.outline(new)?;
        encode_operation(&preview.operation)?;
        Ok(preview)
    }

    /// Computes an operation: its VMs, its NotBefore, and whether every scope accepts its events. Also returns the
    /// next value of its scope, if there is only one.
    fn outline(&self, new: &NewOperation) -> Result<(Preview, Option<OneScope<'a>>), Refusal> {
        let (reached, deallocated, host) = match &new.selector {
            TargetSelector::Vms(vms) => (self.named(new, vms)?, Vec::new(), None),
            TargetSelector::Host(host) => {
                let (reached, deallocated) = self.on_host(host, new.cause)?;
                (reached, deallocated, Some(host.clone()))
            }
        };
        let targets = targets(new.id, new.cause.grouping(), reached);
        self.check_user_operation_limit(new.cause, &targets)?;
        let mut operation = Operation {
            id: new.id,
            cause: new.cause,
            by: self.by.clone(),
            requested_at: self.now,
            joint_start: Operation::new_joint_start(host.as_deref(), new.cause, targets.len()),
            host_command: HostCommand::new(
                host.as_deref(),
                new.cause,
                self.settings.driver,
                &self.settings.exec,
            ),
            host,
            not_before: self.common_not_before(new, &targets)?,
            time_given: new.not_before.is_some(),
            duration_s: new.duration_s.unwrap_or(new.cause.duration_s()),
            description: new.description.clone().unwrap_or_else(|| new.cause.description().to_owned()),
            driver: self.settings.driver,
            release: new.cause.release(),
            targets,
            state: OperationState::Opening,
            released: false,
            cancelled_by: None,
            completed_by: None,
        };
        let TriedParts { alone, refused, at_once } = self.try_all(&mut operation)?;
        check_vms(&new.expected, &operation.targets)?;
        Ok((Preview { operation, deallocated, refused, at_once }, alone))
    }

    /// The VMs that the caller named.
    fn named(&self, new: &NewOperation, vms: &[VmId]) -> Result<Vec<TargetVm>, Refusal> {
        let mut reached = Vec::new();
        let mut named = HashSet::new();
        if let Expected::Revisions(seen) = &new.expected {
            for (vm, seen) in vms.iter().zip(seen) {
                check_revision(*seen, Some(self.scope_of_vm(*vm)?.1))?;
            }
        }
        for vm in vms.iter().filter(|vm| named.insert(**vm)) {
            let (scope, held) = self.scope_of_vm(*vm)?;
            let member = held.value.member(*vm).ok_or(Refusal::UnknownVm(*vm))?;
            if new.cause.is_for_spot() && !new.force && !member.spot {
                return Err(Refusal::NotSpot(member.name.clone()));
            }
            reached.push(reach(&scope, member));
        }
        match reached.is_empty() {
            true => Err(Refusal::NoResources),
            false => Ok(reached),
        }
    }

    /// The running VMs of a host, sorted by scope and member, and the deallocated ones. A host without running VMs can be
    /// reported as degraded or failed, so that no VM moves there; there is nothing to maintain.
    fn on_host(&self, host: &str, cause: Cause) -> Result<(Vec<TargetVm>, Vec<VmId>), Refusal> {
        let (mut reached, mut deallocated) = (Vec::new(), Vec::new());
        for (id, held) in self.state.scopes_on(host) {
            for member in held.value.members.iter().filter(|member| member.host.as_deref() == Some(host)) {
                match member.state {
                    MemberState::Running => reached.push(reach(id, member)),
                    MemberState::Deallocated => deallocated.push(member.vm),
                }
            }
        }
        if !self.state.is_known_host(host) {
            return Err(Refusal::UnknownHost(host.to_owned()));
        }
        match reached.is_empty() && HostState::reported_by(cause).is_none() {
            true => Err(Refusal::NothingRuns { host: host.to_owned(), deallocated: deallocated.len() }),
            false => Ok((reached, deallocated)),
        }
    }

    /// Refuses a user operation if too many are stored. Operators on `/`, the service itself and platform events are
    /// exempt.
    fn check_user_operation_limit(&self, cause: Cause, targets: &[Target]) -> Result<(), Refusal> {
        let token = match self.by {
            Actor::Token(name) => name.parse::<Name>().ok().and_then(|name| self.state.token(&name)),
            Actor::Vm { .. } | Actor::Timer | Actor::Driver(_) | Actor::Service => None,
        };
        if cause.source() != Source::User || token.is_none_or(|token| token.value.is_full_operator()) {
            return Ok(());
        }
        let limit = self.settings.stored_user_operations_max;
        match scopes_of(targets).into_iter().find(|scope| self.state.user_operations(scope) >= limit) {
            Some(scope) => Err(Refusal::TooManyStoredOperations { scope: scope.clone(), limit }),
            None => Ok(()),
        }
    }

    /// The NotBefore of all parts: the latest that any of the scopes requires.
    fn common_not_before(
        &self,
        new: &NewOperation,
        targets: &[Target],
    ) -> Result<Option<Timestamp>, Refusal> {
        let now = match scopes_of(targets).len() {
            1 => self.now,
            _ => after(self.now, self.settings.scaled(OPENING_ALLOWANCE)),
        };
        let mut latest = None;
        for target in targets {
            let Some(held) = self.state.scope(&target.scope) else { continue };
            let (policy, enabled) = (&held.value.policy, (self.enabled)(&target.scope));
            let own = not_before(new.cause, new.not_before, policy, enabled, self.settings, now)?;
            latest = latest.max(own);
        }
        Ok(latest)
    }

    /// Checks that every part can be opened, before the first write. For named VMs, one refusal refuses the operation.
    /// For a host, refused parts are marked, and the operation is refused only if no part is left. Returns the scope's
    /// next value, if there is only one scope, and the refused parts.
    fn try_all(&self, operation: &mut Operation) -> Result<TriedParts<'a>, Refusal> {
        let mut refused = Vec::new();
        let mut at_once = Vec::new();
        let mut alone = None;
        let mut from = 0;
        while let Some(first) = operation.targets.get(from) {
            // Targets are sorted by scope.
            let here = operation.targets[from..].iter().take_while(|one| one.scope == first.scope).count();
            let held = self.state.scope(&first.scope).ok_or(Refusal::NoResources)?;
            let mut parts: Vec<&Target> = operation.targets[from..from + here].iter().collect();
            let mut tried = self.open_all(operation, &parts, held);
            if tried.is_err() && operation.host.is_some() {
                let refused_parts = self.refused_parts(operation, &parts, held);
                parts.retain(|part| refused_parts.iter().all(|(event, _)| *event != part.event));
                tried = self.open_all(operation, &parts, held);
                refused.extend(refused_parts);
            }
            let (applied, bytes) = tried?;
            at_once.extend(parts.iter().filter_map(|part| match &applied.scope.event(part.event)?.phase {
                Phase::Started { why, .. } => Some((part.event, *why)),
                Phase::Scheduled { .. } | Phase::Advisory { .. } => None,
            }));
            if here == operation.targets.len() {
                alone = Some(OneScope { held, applied, bytes });
            }
            from += here;
        }
        if !operation.targets.is_empty()
            && refused.len() == operation.targets.len()
            && let Some((_, why)) = refused.pop()
        {
            return Err(why);
        }
        let codes: HashMap<EventId, &str> = refused.iter().map(|(event, why)| (*event, why.code())).collect();
        for target in &mut operation.targets {
            if let Some(code) = codes.get(&target.event) {
                target.refuse(code);
            }
        }
        Ok(TriedParts { alone, refused, at_once })
    }

    /// The scope's next value, and its encoding, with these parts opened.
    fn open_all(
        &self,
        operation: &Operation,
        parts: &[&Target],
        held: &Revisioned<Scope>,
    ) -> Result<(Applied, Bytes), Refusal> {
        let events = parts.iter().map(|target| self.event(operation, target, &held.value)).collect();
        let context = self.context(&held.value.id(), self.by);
        let applied = held.value.apply(ScopeCommand::Open(events), context)?;
        let bytes = encode_scope(Some(&held.value), &applied.scope)?;
        Ok((applied, bytes))
    }

    /// The last parts, for which a scope has no room. Uses binary search, since a nearly full scope is large.
    fn refused_parts(
        &self,
        operation: &Operation,
        parts: &[&Target],
        held: &Revisioned<Scope>,
    ) -> RefusedParts {
        let (mut fit, mut more) = (0, parts.len());
        let mut refused_parts = Vec::new();
        while fit < more {
            let half = (fit + more).div_ceil(2);
            match self.open_all(operation, &parts[..half], held) {
                Ok(_) => fit = half,
                Err(why) => {
                    more = half - 1;
                    refused_parts = parts[more..].iter().map(|part| (part.event, why.clone())).collect();
                }
            }
        }
        refused_parts
    }

    fn cancel_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        if held.value.cancelled_by.is_some() {
            return Ok(Plan::Settled(Answer::Operation(id)));
        }
        let scheduled = self.scheduled(&held.value).map(|(scope, _)| scope).next();
        // If all events have started, nothing is cancelled, and the record would call the operation cancelled.
        let has_only_started = held.value.state == OperationState::Open && scheduled.is_none();
        if held.value.has_joint_release() || has_only_started {
            return Err(Refusal::OperationStarted(id).into());
        }
        let mut operation = (*held.value).clone();
        operation.cancelled_by = Some(self.by.clone());
        let mut draft = self.draft();
        draft.operation(operation);
        draft.facts(None, vec![self.recorded(Fact::OperationCancelled { operation: id })]);
        // At least this one has not started.
        if let Some((scope, held)) = scheduled.and_then(|scope| Some((scope, self.state.scope(scope)?))) {
            draft.expect(records::scope(scope), Some(held.revision));
        }
        Ok(self.write(draft, Answer::Operation(id)))
    }
}

/// The only scope of an operation, its next value and encoding.
struct OneScope<'a> {
    held: &'a Revisioned<Scope>,
    applied: Applied,
    bytes: Bytes,
}

/// What the scopes of an operation answer to its parts.
struct TriedParts<'a> {
    /// The scope, if it is the only one.
    alone: Option<OneScope<'a>>,
    refused: RefusedParts,
    /// Parts that start at once, and why.
    at_once: Vec<(EventId, StartReason)>,
}

/// Parts that their scopes refuse, and why.
type RefusedParts = Vec<(EventId, Refusal)>;

fn reach(scope: &ScopeId, member: &Member) -> TargetVm {
    let resource = Resource { vm: member.vm, name: member.name.clone(), host: None };
    TargetVm { scope: scope.clone(), update_domain: member.update_domain, resource }
}

/// Refuses events of other VMs than the caller expects.
fn check_vms(expected: &Expected, targets: &[Target]) -> Result<(), Refusal> {
    let Expected::Vms(expected) = expected else { return Ok(()) };
    let opened = targets.iter().filter(|target| target.refused.is_none());
    let found: BTreeSet<VmId> = opened.flat_map(|target| &target.resources).map(|one| one.vm).collect();
    match found == *expected {
        true => Ok(()),
        false => Err(Refusal::PlanDiffers {
            more: found.difference(expected).count(),
            fewer: expected.difference(&found).count(),
        }),
    }
}

/// The scopes of an operation; targets are sorted by scope.
fn scopes_of(targets: &[Target]) -> Vec<&ScopeId> {
    let mut scopes: Vec<&ScopeId> = targets.iter().map(|target| &target.scope).collect();
    scopes.dedup();
    scopes
}
