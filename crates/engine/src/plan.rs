//! From a command to a transaction: what would have to be written, given the state as it is.
//!
//! Planning changes nothing and may be repeated, which is what happens when somebody else was faster or when
//! the records it needs are in use.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::apply::{NewEvent, not_before, notice};
use notbefore_core::operation::{Reached, targets};
use notbefore_core::time::{after, round_up};
use notbefore_core::{
    Actor, Applied, Cause, Circumstances, Command as ScopeCommand, EventId, Fact, Member, MemberState, Name,
    Operation, OperationId, OperationState, Recorded, Refusal, Resource, Scope, ScopeId, Settings, Source,
    Target, VmId,
};

use crate::draft::{Draft, Drafted, fits, sized};
use crate::records;
use crate::request::{Answer, Command, Failure, NewOperation, Preview, Whom};
use crate::state::{Held, State};

/// What an operation over several scopes adds to its notice, scaled like the notice: the time it may take to
/// reach all of them, so that the last one to hear still gets the whole notice.
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
    /// Where the request came from, if from somewhere.
    pub from: Option<IpAddr>,
}

impl<'a> Planner<'a> {
    /// A draft from the state as it is.
    pub fn draft(&self) -> Draft<'a> {
        Draft::new(self.state, self.now, self.node, self.count, self.from)
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
            host_parts: self.state.host_operations().parts_in(scope),
            clock_hold: self.state.clock_hold(),
        }
    }

    /// Plans what a caller asked for.
    pub fn plan(&self, command: &Command) -> Result<Plan, Failure> {
        match command {
            Command::Approve { scope, events, network } => {
                self.check_caller(scope, network.as_deref())?;
                match events.as_slice() {
                    [] => Ok(Plan::Settled(Answer::Done)),
                    _ => self.on_scope(scope, ScopeCommand::Approve(events.clone())),
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
            Command::Preview(new) => Ok(Plan::Settled(Answer::Preview(Box::new(self.preview(new)?)))),
            Command::CancelOperation(id) => self.cancel_operation(*id),
            Command::StartOperation(id) => self.start_operation(*id),
            Command::CompleteOperation(id) => self.complete_operation(*id),
            Command::StartVm(vm) => {
                let (scope, _) = self.home(*vm)?;
                self.on_scope(&scope, ScopeCommand::Revive(*vm))
            }
            Command::Token(command) => self.plan_token(command),
            Command::AcceptClock => Ok(self.accept_clock()),
            Command::PutScope(_)
            | Command::RemoveScope { .. }
            | Command::PlanScope(_)
            | Command::AddVm { .. }
            | Command::RemoveVm(_)
            | Command::MakeFirstRun { .. } => self.plan_fleet(command),
        }
    }

    /// Checks that a guest is still a VM of the scope, at the address that it called from. It was when its request came;
    /// its VM or its address may have been taken away since. A change of either gives the scope a new revision, so an
    /// approval waits for one that is under way and is then planned anew.
    fn check_caller(&self, scope: &ScopeId, network: Option<&str>) -> Result<(), Refusal> {
        match self.by {
            Actor::Vm { vm, address, .. } => {
                let has_address = |network| self.state.inventory().caller(network, *address) == Some(*vm);
                let is_member = self.state.vm(*vm).is_some_and(|known| *known.scope == *scope);
                match is_member && network.is_none_or(has_address) {
                    true => Ok(()),
                    false => Err(Refusal::UnknownCaller(*vm)),
                }
            }
            Actor::Token(_) | Actor::Timer | Actor::Driver(_) | Actor::Service => Ok(()),
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

    /// Plans the opening of one part of an operation, for those of its VMs that are still there: running, and
    /// on the host that the operation is about.
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

    /// Records that the clock is accepted; the hold ends when that is durable.
    fn accept_clock(&self) -> Plan {
        if self.state.clock_hold().is_none() {
            return Plan::Settled(Answer::Done);
        }
        let mut draft = self.draft();
        let fact = Fact::ClockAccepted;
        draft.facts(None, vec![Recorded { at: self.now, by: self.by.clone(), fact }]);
        Plan::Write { drafted: draft.finish(), answer: Answer::Done, rest: None }
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
        match self.state.scope_of(vm) {
            Some((scope, held, Some(_))) => Ok((scope.clone(), held)),
            Some((_, _, None)) | None => Err(Refusal::UnknownVm(vm)),
        }
    }

    fn on_event(&self, event: EventId, command: ScopeCommand) -> Result<Plan, Failure> {
        match self.state.home(event) {
            Some(scope) => self.on_scope(scope, command),
            None => Err(Refusal::UnknownEvent(event).into()),
        }
    }

    fn schedule(&self, new: &NewOperation) -> Result<Plan, Failure> {
        let Outline { mut operation, alone, .. } = self.outline(new)?;
        let mut draft = self.draft();
        let requested = Fact::OperationRequested {
            operation: operation.id,
            cause: operation.cause,
            targets: operation.targets.len(),
        };
        let answer = Answer::Operation(operation.id);
        draft.facts(None, vec![Recorded { at: self.now, by: self.by.clone(), fact: requested }]);
        if let Some(OneScope { held, opened }) = alone {
            // One scope: the operation and its events are one transaction.
            draft.scope_of_bytes(Some(held), opened.applied, Some(opened.bytes))?;
            operation.opened();
        }
        draft.new_operation(operation)?;
        Ok(self.write(draft, answer))
    }

    fn preview(&self, new: &NewOperation) -> Result<Preview, Failure> {
        let Outline { operation, deallocated, refused, .. } = self.outline(new)?;
        fits(&operation)?;
        let refused = refused.into_iter().map(|(event, why)| (event, why.to_string())).collect();
        Ok(Preview { operation, deallocated, refused })
    }

    /// Works out an operation: whom it reaches, when, and that every scope would have its events.
    fn outline(&self, new: &NewOperation) -> Result<Outline<'a>, Refusal> {
        let (reached, deallocated, host) = match &new.whom {
            Whom::Vms(vms) => (self.named(new, vms)?, Vec::new(), None),
            Whom::Host(host) => {
                let (reached, deallocated) = self.on_host(host)?;
                (reached, deallocated, Some(host.clone()))
            }
        };
        let targets = targets(new.id, new.cause.grouping(), reached);
        self.leaves_room(new.cause, &targets)?;
        let mut operation = Operation {
            id: new.id,
            cause: new.cause,
            by: self.by.clone(),
            requested_at: self.now,
            joint_start: Operation::new_joint_start(host.as_deref(), new.cause, targets.len()),
            host,
            not_before: self.one_not_before(new, &targets)?,
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
        let (alone, refused) = self.try_all(&mut operation)?;
        Ok(Outline { operation, deallocated, refused, alone })
    }

    /// The VMs that somebody has named.
    fn named(&self, new: &NewOperation, vms: &[VmId]) -> Result<Vec<Reached>, Refusal> {
        let mut reached = Vec::new();
        let mut named = HashSet::new();
        for vm in vms.iter().filter(|vm| named.insert(**vm)) {
            let (scope, held) = self.home(*vm)?;
            let member = held.value.member(*vm).ok_or(Refusal::UnknownVm(*vm))?;
            if new.cause == Cause::Eviction && !new.force && !held.value.is_spot(member) {
                return Err(Refusal::NotSpot(member.name.clone()));
            }
            reached.push(reach(&scope, member));
        }
        match reached.is_empty() {
            true => Err(Refusal::NoResources),
            false => Ok(reached),
        }
    }

    /// The VMs that run on a host, in the order of scope and of members within it, and those that do not run.
    fn on_host(&self, host: &str) -> Result<(Vec<Reached>, Vec<VmId>), Refusal> {
        let (mut reached, mut deallocated) = (Vec::new(), Vec::new());
        for (id, held) in self.state.scopes_on(host) {
            for member in held.value.members.iter().filter(|member| member.host.as_deref() == Some(host)) {
                match member.state {
                    MemberState::Running => reached.push(reach(id, member)),
                    MemberState::Deallocated => deallocated.push(member.vm),
                }
            }
        }
        match (reached.is_empty(), deallocated.len()) {
            (true, 0) => Err(Refusal::UnknownHost(host.to_owned())),
            (true, deallocated) => Err(Refusal::NothingRuns { host: host.to_owned(), deallocated }),
            (false, _) => Ok((reached, deallocated)),
        }
    }

    /// Refuses a user's operation where too many are stored. Operators of everywhere, the service itself and what happens
    /// to the platform are never refused for that.
    fn leaves_room(&self, cause: Cause, targets: &[Target]) -> Result<(), Refusal> {
        let token = match self.by {
            Actor::Token(name) => name.parse::<Name>().ok().and_then(|name| self.state.token(&name)),
            Actor::Vm { .. } | Actor::Timer | Actor::Driver(_) | Actor::Service => None,
        };
        if cause.source() != Source::User || token.is_none_or(|token| token.value.rules_everything()) {
            return Ok(());
        }
        let limit = self.settings.stored_user_operations_max;
        match scopes_of(targets).into_iter().find(|scope| self.state.user_operations(scope) >= limit) {
            Some(scope) => Err(Refusal::TooManyStoredOperations { scope: scope.clone(), limit }),
            None => Ok(()),
        }
    }

    /// The NotBefore that every part of an operation shares: the latest that any of its scopes asks for.
    fn one_not_before(&self, new: &NewOperation, targets: &[Target]) -> Result<Option<Timestamp>, Refusal> {
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

    /// Finds out whether every part of an operation would be opened, before anything is written. Where VMs were
    /// named, one refusal refuses all of it. For a host the parts that are refused are marked so, and all of it
    /// is refused only if nothing else is left. Answers what the scope becomes, if there is but one, and the
    /// parts that were refused.
    fn try_all(&self, operation: &mut Operation) -> Result<(Option<OneScope<'a>>, RefusedParts), Refusal> {
        let mut refused = Vec::new();
        let mut alone = None;
        let mut from = 0;
        while let Some(first) = operation.targets.get(from) {
            // Parts are in the order of their scopes.
            let here = operation.targets[from..].iter().take_while(|one| one.scope == first.scope).count();
            let held = self.state.scope(&first.scope).ok_or(Refusal::NoResources)?;
            let mut parts: Vec<&Target> = operation.targets[from..from + here].iter().collect();
            let mut tried = self.open_all(operation, &parts, held);
            if tried.is_err() && operation.host.is_some() {
                let unfit = self.unfit(operation, &parts, held);
                parts.retain(|part| unfit.iter().all(|(event, _)| *event != part.event));
                tried = self.open_all(operation, &parts, held);
                refused.extend(unfit);
            }
            let opened = tried?;
            if here == operation.targets.len() {
                alone = Some(OneScope { held, opened });
            }
            from += here;
        }
        if refused.len() == operation.targets.len()
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
        Ok((alone, refused))
    }

    /// What a scope becomes when these parts of an operation are opened in it.
    fn open_all(
        &self,
        operation: &Operation,
        parts: &[&Target],
        held: &Held<Scope>,
    ) -> Result<Opened, Refusal> {
        let events = parts.iter().map(|target| self.event(operation, target, &held.value)).collect();
        let circumstances = self.circumstances(&held.value.id(), self.by);
        let applied = held.value.apply(ScopeCommand::Open(events), circumstances)?;
        let bytes = sized(Some(&held.value), &applied.scope)?;
        Ok(Opened { applied, bytes })
    }

    /// The parts for which a scope has no room, the last ones; what fits is found by halving, since a scope
    /// that is nearly full is large.
    fn unfit(&self, operation: &Operation, parts: &[&Target], held: &Held<Scope>) -> RefusedParts {
        let (mut fit, mut more) = (0, parts.len());
        let mut unfit = Vec::new();
        while fit < more {
            let half = (fit + more).div_ceil(2);
            match self.open_all(operation, &parts[..half], held) {
                Ok(_) => fit = half,
                Err(why) => {
                    more = half - 1;
                    unfit = parts[more..].iter().map(|part| (part.event, why.clone())).collect();
                }
            }
        }
        unfit
    }

    fn cancel_operation(&self, id: OperationId) -> Result<Plan, Failure> {
        let held = self.state.operation(id).ok_or(Refusal::UnknownOperation(id))?;
        if held.value.cancelled_by.is_some() {
            return Ok(Plan::Settled(Answer::Operation(id)));
        }
        if held.value.is_released_as_a_whole() {
            return Err(Refusal::OperationStarted(id).into());
        }
        let mut operation = (*held.value).clone();
        operation.cancelled_by = Some(self.by.clone());
        let mut draft = self.draft();
        draft.operation(operation);
        let cancelled = Fact::OperationCancelled { operation: id };
        draft.facts(None, vec![Recorded { at: self.now, by: self.by.clone(), fact: cancelled }]);
        Ok(self.write(draft, Answer::Operation(id)))
    }
}

/// What a scope becomes when parts of an operation are opened in it.
struct Opened {
    applied: Applied,
    /// The scope, as it will be stored.
    bytes: Bytes,
}

/// The only scope that an operation reaches, and what that becomes.
struct OneScope<'a> {
    held: &'a Held<Scope>,
    opened: Opened,
}

/// Parts of an operation that their scopes will not have, and why.
type RefusedParts = Vec<(EventId, Refusal)>;

/// An operation, worked out and not yet made.
struct Outline<'a> {
    operation: Operation,
    /// The VMs of its host that do not run.
    deallocated: Vec<VmId>,
    refused: RefusedParts,
    alone: Option<OneScope<'a>>,
}

fn reach(scope: &ScopeId, member: &Member) -> Reached {
    let resource = Resource { vm: member.vm, name: member.name.clone(), host: None };
    Reached { scope: scope.clone(), update_domain: member.update_domain, resource }
}

/// The scopes that an operation reaches; its parts are in the order of their scopes.
fn scopes_of(targets: &[Target]) -> Vec<&ScopeId> {
    let mut scopes: Vec<&ScopeId> = targets.iter().map(|target| &target.scope).collect();
    scopes.dedup();
    scopes
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{
        self, at, event, event_id, now, operation, operation_id, operator, scope_id, standalone, started, vm,
    };
    use notbefore_core::{Event, Grant, JointStart, Role, ScopeKind, Token};
    use notbefore_store::Revision;

    use super::*;
    use crate::records::{Address, Vm};
    use crate::request::{PutScope, TokenCommand, VmSpec};

    /// Records, and who asks when.
    #[derive(Default)]
    struct Given {
        state: State,
        by: Option<Actor>,
        settings: Settings,
    }

    impl Given {
        fn put<T: serde::Serialize>(mut self, key: notbefore_store::Key, record: &T) -> Self {
            self.state.install(&key, Revision(1), Some(&records::encode(record))).unwrap();
            self
        }

        /// A scope, and the records of its VMs at 10.0.0.n.
        fn scope(self, scope: &Scope) -> Self {
            let mut given = self.put(records::scope(&scope.id()), scope);
            for id in scope.members.iter().map(|member| member.vm) {
                let last = u8::try_from(id.0.as_u128()).unwrap();
                let address = Address { network: "default".parse().unwrap(), ip: [10, 0, 0, last].into() };
                given = given.put(records::claim(&address), &id);
                let instance = serde_json::Value::Null;
                let record = Vm { id, scope: scope.id(), addresses: vec![address], instance };
                given = given.put(records::vm(id), &record);
            }
            given
        }

        fn operation(self, operation: &Operation) -> Self {
            self.put(records::operation(operation.id), operation)
        }

        fn token(self, token: &Token) -> Self {
            self.put(records::token(&token.name), token)
        }

        fn by(self, by: Actor) -> Self {
            Self { by: Some(by), ..self }
        }

        /// What a command comes to, in one line: the kinds of the records that are written and removed, in the order
        /// of their keys, or that nothing is; or the code of the failure.
        fn told(&self, command: &Command) -> String {
            let root = operator();
            let planner = Planner {
                state: &self.state,
                settings: &self.settings,
                enabled: &|_| true,
                now: now(),
                by: self.by.as_ref().unwrap_or(&root),
                node: "n1",
                count: 0,
                from: None,
            };
            let kind = |key: &str| key.split('/').next().unwrap_or_default().to_owned();
            match planner.plan(command) {
                Ok(Plan::Settled(Answer::Done)) => "nothing".to_owned(),
                Ok(Plan::Settled(answer)) => format!("nothing, {}", named(&answer)),
                Ok(Plan::Write { drafted, rest, .. }) => {
                    let put = drafted.txns.iter().flat_map(|txn| &txn.put).map(|(key, _)| kind(key));
                    let gone = drafted.txns.iter().flat_map(|txn| &txn.delete);
                    let mut words: Vec<String> = put.collect();
                    words.sort();
                    let mut gone: Vec<String> = gone.map(|key| format!("-{}", kind(key))).collect();
                    gone.sort();
                    words.append(&mut gone);
                    words.dedup();
                    words.extend(rest.map(|_| "and more".to_owned()));
                    words.join(" ")
                }
                Err(failure) => failure.code().to_owned(),
            }
        }
    }

    fn named(answer: &Answer) -> &'static str {
        match answer {
            Answer::Done => "done",
            Answer::Operation(_) => "operation",
            Answer::Preview(_) => "preview",
            Answer::ScopePlan(_) => "plan",
            Answer::Vm(_) => "vm",
            Answer::Scope { .. } => "scope",
        }
    }

    /// Each row: what it shows, the records, the command, and what it comes to.
    fn check(rows: Vec<(&str, Given, Command, &str)>) {
        for (name, given, command, expected) in rows {
            assert_eq!(given.told(&command), expected, "{name}");
        }
    }

    const REBOOT: Cause = Cause::HostReboot;

    /// `web` with VMs 1 and 2 and these events.
    fn web(events: &[Event]) -> Given {
        let scope = samples::scope("web", &[vm(1), vm(2)]);
        Given::default().scope(&Scope { events: events.to_vec(), ..scope })
    }

    fn one() -> Event {
        event(1, REBOOT, &[vm(1)])
    }

    fn on(vms: &[u128]) -> NewOperation {
        NewOperation::bare(operation_id(9), REBOOT, Whom::Vms(vms.iter().copied().map(vm).collect()))
    }

    #[test]
    fn guests_approve_as_those_that_they_are() {
        let approve = |network: Option<&str>, events: &[u128]| Command::Approve {
            scope: scope_id("web"),
            events: events.iter().copied().map(event_id).collect(),
            network: network.map(str::to_owned),
        };
        let guest = |n: u8| Actor::Vm {
            vm: vm(n.into()),
            name: format!("vm-{n}").parse().unwrap(),
            address: [10, 0, 0, n].into(),
        };
        let moved = Actor::Vm { vm: vm(1), name: "vm-1".parse().unwrap(), address: [10, 0, 0, 2].into() };
        check(vec![
            ("its own", web(&[one()]).by(guest(1)), approve(Some("default"), &[1]), "fact scope"),
            ("a listener of its own", web(&[one()]).by(guest(1)), approve(None, &[1]), "fact scope"),
            ("nothing", web(&[one()]).by(guest(1)), approve(None, &[]), "nothing"),
            ("approved", web(&[started(one())]).by(guest(1)), approve(None, &[1]), "nothing"),
            ("unknown", web(&[]).by(guest(1)), approve(None, &[1]), "unknown_event"),
            ("another's address", web(&[one()]).by(moved), approve(Some("default"), &[1]), "unknown_caller"),
            ("another network", web(&[one()]).by(guest(1)), approve(Some("blue"), &[1]), "unknown_caller"),
            ("a VM that has left", web(&[one()]).by(guest(3)), approve(None, &[1]), "unknown_caller"),
        ]);
    }

    #[test]
    fn events_are_found_wherever_they_are() {
        let (id, hosts) = (event_id(1), Vec::new());
        let completed = || Command::Complete { event: id, hosts: hosts.clone() };
        check(vec![
            ("approve", web(&[one()]), Command::ApproveFor(id), "fact scope"),
            ("cancel", web(&[one()]), Command::Cancel(id), "ended fact past scope"),
            ("start", web(&[one()]), Command::Start(id), "fact scope"),
            ("complete", web(&[started(one())]), completed(), "ended fact past scope"),
            ("too early", web(&[one()]), completed(), "event_not_started"),
            ("retry", web(&[started(one())]), Command::Retry(id), "not_exec"),
            ("nowhere", web(&[]), Command::Cancel(id), "unknown_event"),
        ]);
    }

    #[test]
    fn operations_reach_all_or_none_of_the_vms_that_are_named() {
        let two = || web(&[]).scope(&standalone("db", vm(3)));
        let evict = |force| NewOperation { cause: Cause::Eviction, force, ..on(&[1]) };
        let soon = NewOperation { not_before: Some(at(60)), ..on(&[1]) };
        let host =
            |host: &str| Command::Schedule(NewOperation { whom: Whom::Host(host.to_owned()), ..on(&[]) });
        let on_host = |state| {
            let member = Member { host: Some("h1".to_owned()), state, ..samples::member(vm(1)) };
            Given::default().scope(&Scope { members: vec![member], ..samples::scope("web", &[]) })
        };
        let full = || {
            let restart = Operation {
                state: OperationState::Closed,
                ..operation(5, Cause::UserRestart, vec![samples::target("web", 0, 5, &[vm(1)])])
            };
            let path = "default/default/web".parse().unwrap();
            let tenant =
                Token { grants: vec![Grant { role: Role::Tenant, path }], ..samples::token("tenant") };
            let given = web(&[]).operation(&restart).token(&tenant).token(&samples::token("root"));
            Given { settings: Settings { stored_user_operations_max: 1, ..Settings::default() }, ..given }
        };
        let restart = || Command::Schedule(NewOperation { cause: Cause::UserRestart, ..on(&[1]) });
        check(vec![
            ("one scope, one transaction", web(&[]), Command::Schedule(on(&[1, 2])), "fact operation scope"),
            ("several, the operation first", two(), Command::Schedule(on(&[1, 3])), "fact operation"),
            ("one of them is unknown", two(), Command::Schedule(on(&[1, 4])), "unknown_vm"),
            ("none", web(&[]), Command::Schedule(on(&[])), "no_resources"),
            ("too near", web(&[]), Command::Schedule(soon), "not_before_too_near"),
            ("not Spot", web(&[]), Command::Schedule(evict(false)), "not_spot"),
            ("not Spot, forced", web(&[]), Command::Schedule(evict(true)), "fact operation scope"),
            ("a host", on_host(MemberState::Running), host("h1"), "fact operation scope"),
            ("no such host", on_host(MemberState::Running), host("h2"), "unknown_host"),
            ("nothing runs there", on_host(MemberState::Deallocated), host("h1"), "nothing_runs"),
            (
                "a tenant's are counted",
                full().by(Actor::Token("tenant".to_owned())),
                restart(),
                "too_many_stored_operations",
            ),
            ("an operator's are not", full(), restart(), "fact operation scope"),
            ("a look", two(), Command::Preview(on(&[1, 3])), "nothing, preview"),
            ("a look at what is refused", two(), Command::Preview(on(&[1, 4])), "unknown_vm"),
        ]);
    }

    #[test]
    fn operations_are_called_off_started_and_completed_as_a_whole() {
        let parts = || vec![samples::target("web", 0, 1, &[vm(1)]), samples::target("db", 0, 2, &[vm(3)])];
        let open = || operation(9, REBOOT, parts());
        let by = Some(operator());
        let released = JointStart::Released { why: StartReason::NotBefore, by: operator() };
        let host = |start| Operation { joint_start: Some(start), host: Some("h1".to_owned()), ..open() };
        let on = |operation: Operation, event: Event| {
            let part =
                Event { operation: operation.id, joint_start: operation.joint_start.is_some(), ..event };
            web(&[part]).operation(&operation)
        };
        let id = operation_id(9);
        let alone = || operation(9, REBOOT, vec![samples::target("web", 0, 1, &[vm(1)])]);
        use notbefore_core::StartReason;
        check(vec![
            ("called off", on(open(), one()), Command::CancelOperation(id), "fact operation"),
            (
                "twice",
                on(Operation { cancelled_by: by.clone(), ..open() }, one()),
                Command::CancelOperation(id),
                "nothing, operation",
            ),
            ("decided", on(host(released.clone()), one()), Command::CancelOperation(id), "event_started"),
            ("unknown", web(&[]), Command::CancelOperation(id), "unknown_operation"),
            ("started in one scope", on(alone(), one()), Command::StartOperation(id), "fact scope"),
            ("started in several", on(open(), one()), Command::StartOperation(id), "starts_apart"),
            (
                "nothing to start",
                on(alone(), started(one())),
                Command::StartOperation(id),
                "nothing_to_start",
            ),
            (
                "a host starts",
                on(host(JointStart::Waiting), one()),
                Command::StartOperation(id),
                "fact operation",
            ),
            (
                "a host starts once",
                on(host(released.clone()), one()),
                Command::StartOperation(id),
                "event_started",
            ),
            ("not begun", on(open(), one()), Command::CompleteOperation(id), "event_not_started"),
            ("completed", on(open(), started(one())), Command::CompleteOperation(id), "fact operation"),
            ("about to begin", on(host(released), one()), Command::CompleteOperation(id), "fact operation"),
            (
                "completed twice",
                on(Operation { completed_by: by, ..open() }, one()),
                Command::CompleteOperation(id),
                "nothing, operation",
            ),
        ]);
    }

    #[test]
    fn inventory_changes_fit_together() {
        let spec = |n: u128| VmSpec::bare(vm(n), format!("vm-{n}").parse().unwrap());
        let at_first = |n| VmSpec {
            addresses: vec![Address { network: "default".parse().unwrap(), ip: [10, 0, 0, 1].into() }],
            ..spec(n)
        };
        let set = ScopeKind::AvailabilitySet;
        let put = |path: &str, vms| Command::PutScope(PutScope::bare(path.parse().unwrap(), set, vms));
        let add = |path: &str, vm| Command::AddVm { path: path.parse().unwrap(), kind: None, vm };
        let many = (10..110).map(spec).collect();
        let first_run = || Command::MakeFirstRun { vm: vm(1), name: "lab".parse().unwrap() };
        let lab = Scope { first_run: true, ..standalone("lab", vm(1)) };
        let asleep = Member { state: MemberState::Deallocated, ..samples::member(vm(1)) };
        let evicted = Scope { members: vec![asleep], ..samples::scope("web", &[]) };
        let remove = |path: &str| Command::RemoveScope {
            scope: scope_id(path),
            fleet_only: false,
            progress: Default::default(),
        };
        check(vec![
            ("a new scope", web(&[]), put("db", vec![spec(3)]), "fact scope vm"),
            (
                "as it is",
                Given::default().scope(&samples::scope("web", &[])),
                put("web", vec![]),
                "nothing, scope",
            ),
            (
                "another kind",
                Given::default().scope(&standalone("web", vm(1))),
                put("web", vec![]),
                "kind_differs",
            ),
            (
                "one name twice",
                web(&[]),
                put("db", vec![spec(3), VmSpec { vm: vm(4), ..spec(3) }]),
                "name_taken",
            ),
            ("an address of another", web(&[]), put("db", vec![at_first(3)]), "address_taken"),
            (
                "an address twice",
                Given::default(),
                put("db", vec![at_first(3), at_first(4)]),
                "address_twice",
            ),
            ("many", Given::default(), put("db", many), "fact scope vm and more"),
            ("a VM", web(&[]), add("web", spec(3)), "fact scope vm"),
            ("a VM of its own", web(&[]), add("db", spec(3)), "fact scope vm"),
            ("a name that is there", web(&[]), add("web", spec(1)), "name_taken"),
            (
                "a second standalone",
                Given::default().scope(&standalone("db", vm(1))),
                add("db", spec(3)),
                "standalone_holds_one",
            ),
            ("a VM goes", web(&[]), Command::RemoveVm(vm(1)), "fact scope -claim -vm"),
            (
                "a VM with its scope",
                Given::default().scope(&standalone("db", vm(1))),
                Command::RemoveVm(vm(1)),
                "fact -claim -scope -vm",
            ),
            ("no such VM", web(&[]), Command::RemoveVm(vm(9)), "unknown_vm"),
            ("runs again", Given::default().scope(&evicted), Command::StartVm(vm(1)), "fact scope"),
            ("runs", web(&[]), Command::StartVm(vm(1)), "nothing"),
            ("a scope goes", web(&[]), remove("web"), "fact -claim -scope -vm"),
            ("no such scope", web(&[]), remove("db"), "unknown_scope"),
            ("the first run", Given::default(), first_run(), "fact scope vm"),
            ("not the first", web(&[]), first_run(), "nothing"),
            (
                "the stand-in goes",
                Given::default().scope(&lab),
                put("web", vec![spec(3)]),
                "fact scope vm -claim -scope -vm",
            ),
        ]);
    }

    #[test]
    fn tokens_and_the_clock_change_what_is_there() {
        let create = |name| Command::Token(TokenCommand::Create(samples::token(name)));
        let revoke = |name: &str| Command::Token(TokenCommand::Revoke(name.parse().unwrap()));
        let brief = Token { expires_at: Some(at(60)), ..samples::token("brief") };
        let root = || Given::default().token(&samples::token("root"));
        let held = || {
            let mut given = Given::default();
            given.state.hold_clock(Some(notbefore_core::ClockHold::default()));
            given
        };
        check(vec![
            ("a token", root(), create("ci"), "fact token"),
            ("its name in another case", root(), create("Root"), "token_taken"),
            ("the last", root(), revoke("root"), "last_operator"),
            ("the last that stays", root().token(&brief), revoke("root"), "last_operator"),
            ("one of two", root().token(&samples::token("ci")), revoke("root"), "fact -token"),
            ("unknown", root(), revoke("ci"), "unknown_token"),
            ("the clock is trusted", root(), Command::AcceptClock, "nothing"),
            ("the clock is not", held(), Command::AcceptClock, "fact"),
        ]);
    }
}
