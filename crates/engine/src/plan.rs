//! From a command to a transaction: what would have to be written, given the state as it is.
//!
//! Planning changes nothing and may be repeated, which is what happens when somebody else was faster or when
//! the records it needs are in use.

use std::collections::HashSet;

use jiff::Timestamp;
use notbefore_core::apply::{NewEvent, not_before, notice};
use notbefore_core::operation::{Reached, targets};
use notbefore_core::time::{after, round_up};
use notbefore_core::{
    Actor, Applied, Circumstances, Command as ScopeCommand, EventId, Fact, Operation, OperationId,
    OperationState, Recorded, Refusal, Resource, Scope, ScopeId, Settings, Target, VmId,
};

use crate::draft::{Draft, Drafted, sized};
use crate::records;
use crate::request::{Answer, Command, Failure, NewOperation};
use crate::state::{Held, State};

/// What an operation over several scopes adds to its notice: the time it may take to reach all of them, so
/// that the last one to hear still gets the whole notice.
const OPENING_ALLOWANCE: std::time::Duration = std::time::Duration::from_secs(5);

/// What a command comes to.
#[derive(Debug)]
pub enum Plan {
    /// Nothing needs to be written.
    Settled(Answer),
    /// This needs to be.
    Write {
        /// The transactions and what they stir.
        drafted: Drafted,
        /// What is answered when they are durable.
        answer: Answer,
        /// The rest of a command too large for one transaction, to be planned after this.
        rest: Option<Box<Command>>,
    },
}

/// Everything that planning may look at.
pub struct Planner<'a> {
    /// The records.
    pub state: &'a State,
    /// The service's settings.
    pub settings: &'a Settings,
    /// Whether guests of a scope listen.
    pub enabled: &'a dyn Fn(&ScopeId) -> bool,
    /// What time it is.
    pub now: Timestamp,
    /// Who asks.
    pub by: &'a Actor,
    /// What makes keys of facts unique.
    pub node: &'a str,
    /// The same.
    pub count: u64,
}

impl<'a> Planner<'a> {
    /// A draft from the state as it is.
    pub fn draft(&self) -> Draft<'a> {
        Draft::new(self.state, self.now, self.node, self.count)
    }

    /// The circumstances of a command to one scope.
    pub fn circumstances(&self, scope: &ScopeId, by: &'a Actor) -> Circumstances<'a> {
        Circumstances {
            now: self.now,
            by,
            enabled: (self.enabled)(scope),
            settings: self.settings,
            // One process has an embedded store, so whoever ran commands before it is dead. Where several share
            // a store this is whoever holds the lease of the scope, be it another node.
            runner: self.node,
        }
    }

    /// Plans what a caller asked for.
    pub fn plan(&self, command: &Command) -> Result<Plan, Failure> {
        match command {
            Command::Approve { scope, events } => {
                let Some(first) = events.first() else { return Ok(Plan::Settled(Answer::Done)) };
                match self.state.scope(scope) {
                    None => Err(Refusal::UnknownEvent(*first).into()),
                    Some(_) => self.on_scope(scope, ScopeCommand::Approve(events.clone())),
                }
            }
            Command::ApproveFor(event) => self.on_event(*event, ScopeCommand::Approve(vec![*event])),
            Command::Cancel(event) => self.on_event(*event, ScopeCommand::Cancel(*event)),
            Command::Start(event) => self.on_event(*event, ScopeCommand::Start(*event)),
            Command::Complete { event, hosts } => {
                self.on_event(*event, ScopeCommand::Complete { event: *event, hosts: hosts.clone() })
            }
            Command::Retry(event) => self.on_event(*event, ScopeCommand::Retry(*event)),
            Command::Schedule(new) => self.schedule(new),
            Command::CancelOperation(id) => self.cancel_operation(*id),
            Command::StartVm(vm) => {
                let (scope, _) = self.home(*vm)?;
                self.on_scope(&scope, ScopeCommand::Revive(*vm))
            }
            Command::PutScope(_)
            | Command::RemoveScope { .. }
            | Command::AddVm { .. }
            | Command::RemoveVm(_)
            | Command::MakeFirstRun { .. } => self.plan_fleet(command),
        }
    }

    /// Plans a command to one scope that is known to exist.
    pub fn on_scope(&self, id: &ScopeId, command: ScopeCommand) -> Result<Plan, Failure> {
        let Some(held) = self.state.scope(id) else { return Ok(Plan::Settled(Answer::Done)) };
        let applied = held.value.apply(command, self.circumstances(id, self.by))?;
        let mut draft = self.draft();
        draft.scope(Some(held), applied)?;
        Ok(self.write(draft, Answer::Done))
    }

    /// Plans the opening of one part of an operation.
    pub fn open_target(&self, operation: &Operation, target: &Target) -> Result<Plan, Failure> {
        let Some(held) = self.state.scope(&target.scope) else {
            return Err(Refusal::UnknownEvent(target.event).into());
        };
        let event = self.event(operation, target, &held.value);
        let circumstances = self.circumstances(&target.scope, &operation.by);
        let applied = held.value.apply(ScopeCommand::Open(vec![event]), circumstances)?;
        let mut draft = self.draft();
        draft.scope(Some(held), applied)?;
        if !draft.is_empty() {
            // Opened by an earlier process, and ended and forgotten since: it must not happen again.
            draft.expect_absent(records::past(target.event));
        }
        Ok(self.write(draft, Answer::Done))
    }

    /// The event that an operation's part makes in its scope: with the operation's NotBefore, or a later one
    /// where opening was held up for so long that the notice would be cut short, or none where the scope's
    /// policy gives no notice.
    fn event(&self, operation: &Operation, target: &Target, scope: &Scope) -> NewEvent {
        let mut event = operation.event(target);
        let earliest =
            notice(event.cause, &scope.policy, self.settings).map(|least| round_up(after(self.now, least)));
        event.not_before = earliest.map(|earliest| event.not_before.map_or(earliest, |at| at.max(earliest)));
        event
    }

    /// Closes a draft: nothing to do if nothing would be written.
    pub fn write(&self, draft: Draft<'_>, answer: Answer) -> Plan {
        match draft.is_empty() {
            true => Plan::Settled(answer),
            false => Plan::Write { drafted: draft.finish(), answer, rest: None },
        }
    }

    /// The scope a VM is in.
    pub fn home(&self, vm: VmId) -> Result<(ScopeId, &'a Held<Scope>), Refusal> {
        let scope = self.state.vm(vm).map(|held| held.value.scope.clone());
        let held = scope.as_ref().and_then(|scope| self.state.scope(scope));
        match (scope, held) {
            (Some(scope), Some(held)) if held.value.member(vm).is_some() => Ok((scope, held)),
            _ => Err(Refusal::UnknownVm(vm)),
        }
    }

    fn on_event(&self, event: EventId, command: ScopeCommand) -> Result<Plan, Failure> {
        match self.state.home(event) {
            Some(scope) => self.on_scope(scope, command),
            None => Err(Refusal::UnknownEvent(event).into()),
        }
    }

    fn schedule(&self, new: &NewOperation) -> Result<Plan, Failure> {
        let mut reached = Vec::new();
        let mut named = HashSet::new();
        for vm in &new.vms {
            if !named.insert(*vm) {
                continue;
            }
            let (scope, held) = self.home(*vm)?;
            let member = held.value.member(*vm).ok_or(Refusal::UnknownVm(*vm))?;
            let resource = Resource { vm: *vm, name: member.name.clone() };
            reached.push(Reached { scope, update_domain: member.update_domain, resource });
        }
        if reached.is_empty() {
            return Err(Refusal::NoResources.into());
        }
        let targets = targets(new.id, new.cause.grouping(), reached);
        let mut operation = Operation {
            id: new.id,
            cause: new.cause,
            by: self.by.clone(),
            requested_at: self.now,
            host: new.host.clone(),
            not_before: self.one_not_before(new, &targets)?,
            duration_s: new.duration_s.unwrap_or(new.cause.duration_s()),
            description: new.description.clone().unwrap_or_else(|| new.cause.description().to_owned()),
            driver: self.settings.driver,
            release: new.cause.release(),
            targets,
            state: OperationState::Opening,
            released: false,
            cancelled_by: None,
        };
        self.try_all(&operation)?;

        let mut draft = self.draft();
        let requested = Fact::OperationRequested {
            operation: operation.id,
            cause: operation.cause,
            targets: operation.targets.len(),
        };
        let answer = Answer::Operation(operation.id);
        draft.facts(None, vec![Recorded { at: self.now, by: self.by.clone(), fact: requested }]);
        if let [scope] = scopes_of(&operation.targets).as_slice() {
            // One scope: the operation and its events are one transaction.
            let held = self.state.scope(scope).ok_or(Refusal::NoResources)?;
            draft.scope(Some(held), self.open_all(&operation, held)?)?;
            operation.opened();
        }
        draft.new_operation(&operation)?;
        Ok(self.write(draft, answer))
    }

    /// The NotBefore that every part of an operation shares: the latest that any of its scopes asks for.
    fn one_not_before(&self, new: &NewOperation, targets: &[Target]) -> Result<Option<Timestamp>, Refusal> {
        let now = match scopes_of(targets).len() {
            1 => self.now,
            _ => after(self.now, OPENING_ALLOWANCE),
        };
        let mut latest = None;
        for target in targets {
            let Some(held) = self.state.scope(&target.scope) else { continue };
            let own = not_before(new.cause, new.not_before, &held.value.policy, self.settings, now)?;
            latest = latest.max(own);
        }
        Ok(latest)
    }

    /// Refuses the whole operation where any of its parts would be refused, before anything is written.
    fn try_all(&self, operation: &Operation) -> Result<(), Refusal> {
        for scope in scopes_of(&operation.targets) {
            let Some(held) = self.state.scope(scope) else { continue };
            sized(Some(&held.value), &self.open_all(operation, held)?.scope)?;
        }
        Ok(())
    }

    /// What a scope becomes when all of an operation's parts in it are opened.
    fn open_all(&self, operation: &Operation, held: &Held<Scope>) -> Result<Applied, Refusal> {
        let id = held.value.id();
        let here = operation.targets.iter().filter(|target| target.scope == id);
        let events = here.map(|target| self.event(operation, target, &held.value)).collect();
        held.value.apply(ScopeCommand::Open(events), self.circumstances(&id, self.by))
    }

    fn cancel_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        if held.value.cancelled_by.is_some() {
            return Ok(Plan::Settled(Answer::Operation(id)));
        }
        let mut operation = (*held.value).clone();
        operation.cancelled_by = Some(self.by.clone());
        let mut draft = self.draft();
        draft.operation(&operation);
        let cancelled = Fact::OperationCancelled { operation: id };
        draft.facts(None, vec![Recorded { at: self.now, by: self.by.clone(), fact: cancelled }]);
        Ok(self.write(draft, Answer::Operation(id)))
    }
}

/// The scopes that an operation reaches; its parts are in the order of their scopes.
fn scopes_of(targets: &[Target]) -> Vec<&ScopeId> {
    let mut scopes: Vec<&ScopeId> = targets.iter().map(|target| &target.scope).collect();
    scopes.dedup();
    scopes
}
