//! Planning: computes a command's transaction from the current state.
//!
//! Planning has no side effects and may be repeated: after a conflict, or when a needed record was locked.

use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{
    Actor, ApplyContext, Command as ScopeCommand, Fact, FreeHosts, Recorded, Refusal, Scope, ScopeId,
    Settings, VmId,
};

use crate::cluster::FormatRecord;
use crate::draft::{Draft, DraftedTxns, SplitAt};
use crate::keys::RecordKey;
use crate::request::{
    AcceptClock, Answer, ClusterCommand, Command, EventCommand, Failure, GuestApproval, Progress,
};
use crate::state::{Revisioned, State};

/// The result of planning.
#[derive(Debug)]
pub enum Plan {
    /// Nothing to write.
    Settled(Answer),
    /// Transactions to write; the answer is valid once they are durable. `rest` is the progress of a command too large
    /// for one transaction; its rest is planned afterwards.
    Write { drafted: DraftedTxns, answer: Answer, rest: Option<Progress> },
}

/// The input of planning.
pub struct Planner<'a> {
    pub state: &'a State,
    pub settings: &'a Settings,
    /// Whether a scope is enabled.
    pub enabled: &'a dyn Fn(&ScopeId) -> bool,
    pub now: Timestamp,
    pub by: &'a Actor,
    /// With `count`, makes the keys of facts unique.
    pub node: &'a str,
    /// The owner of commands of the exec driver that start now.
    pub runner: &'a str,
    pub count: u64,
    /// The caller's address.
    pub from: Option<IpAddr>,
    pub split_at: SplitAt,
    /// The hosts to which VMs may move.
    pub free_hosts: &'a dyn FreeHosts,
}

impl<'a> Planner<'a> {
    pub fn draft(&self) -> Draft<'a> {
        let mut draft = Draft::new(self.state, self.now, self.node, self.count, self.from);
        draft.split_at(self.split_at);
        draft.by(self.by);
        draft
    }

    pub fn context(&self, scope: &ScopeId, by: &'a Actor) -> ApplyContext<'a> {
        ApplyContext {
            now: self.now,
            by,
            enabled: (self.enabled)(scope),
            settings: self.settings,
            // A previous runner is dead or has lost the lead, so its commands are taken over.
            runner: self.runner,
            host_parts: self.state.host_operations().parts_in(scope),
            clock_hold: self.state.clock_hold(),
            free_hosts: self.free_hosts,
        }
    }

    /// Plans a caller's command; `progress` is what earlier transactions of it have done.
    pub fn plan(&self, command: &Command, progress: Progress) -> Result<Plan, Failure> {
        match command {
            Command::Guest(approval) => self.plan_approval(approval),
            Command::Event(command) => self.plan_event(command),
            Command::Operation(command) => self.plan_operation(command),
            Command::Inventory(command) => self.plan_inventory(command, progress),
            Command::Token(command) => self.plan_token(command),
            Command::Clock(AcceptClock) => Ok(self.accept_clock()),
            Command::Cluster(command) => Ok(self.plan_cluster(command)),
        }
    }

    fn plan_approval(&self, approval: &GuestApproval) -> Result<Plan, Failure> {
        let GuestApproval { scope, events, network } = approval;
        self.check_caller(scope, network.as_deref())?;
        match events.as_slice() {
            [] => Ok(Plan::Settled(Answer::Done)),
            _ => self.on_scope(scope, ScopeCommand::Approve(events.clone())),
        }
    }

    fn plan_event(&self, command: &EventCommand) -> Result<Plan, Failure> {
        let event = command.event();
        let scope = self.state.scope_of_event(event).ok_or(Refusal::UnknownEvent(event))?;
        let command = match command {
            EventCommand::Approve(event) => ScopeCommand::Approve(vec![*event]),
            EventCommand::Cancel(event) => ScopeCommand::Cancel(*event),
            EventCommand::Start(event) => ScopeCommand::Start(*event),
            EventCommand::Complete { event, hosts } => {
                ScopeCommand::Complete { event: *event, hosts: hosts.clone() }
            }
            EventCommand::Retry(event) => ScopeCommand::Retry(*event),
        };
        self.on_scope(scope, command)
    }

    /// Checks that a guest is still a VM of the scope, at its address. Its VM or address may have changed since the
    /// request arrived. Such a change raises the scope's revision, so an approval waits for one that is in flight and
    /// is then planned again.
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

    /// Plans a command to an existing scope.
    pub fn on_scope(&self, id: &ScopeId, command: ScopeCommand) -> Result<Plan, Failure> {
        let Some(held) = self.state.scope(id) else { return Ok(Plan::Settled(Answer::Done)) };
        let applied = held.value.apply(command, self.context(id, self.by))?;
        let mut draft = self.draft();
        draft.scope(Some(held), applied)?;
        Ok(self.write(draft, Answer::Done))
    }

    /// Records that the clock is accepted; the hold ends when that is durable.
    fn accept_clock(&self) -> Plan {
        if self.state.clock_hold().is_none() {
            return Plan::Settled(Answer::Done);
        }
        let mut draft = self.draft();
        draft.facts(None, vec![self.recorded(Fact::ClockAccepted)]);
        Plan::Write { drafted: draft.finish(), answer: Answer::Done, rest: None }
    }

    /// The transaction compares the leader's record, like all others. So the level needs no comparison of its own: only
    /// leaders write it.
    fn plan_cluster(&self, command: &ClusterCommand) -> Plan {
        let mut draft = self.draft();
        let fact = match command {
            ClusterCommand::RecordHandOver { node } => Fact::HandOverRequested { node: node.clone() },
            ClusterCommand::FinishUpgrade { level } => {
                draft.replace(RecordKey::ClusterFormat.encode(), &FormatRecord { level: *level });
                Fact::UpgradeFinished { level: *level }
            }
            // A node that has just started again writes its record with the next heartbeat.
            ClusterCommand::ForgetNode { node } => {
                draft.clear(RecordKey::ClusterNode(node).encode());
                Fact::NodeForgotten { node: node.clone() }
            }
        };
        draft.facts(None, vec![self.recorded(fact)]);
        Plan::Write { drafted: draft.finish(), answer: Answer::Done, rest: None }
    }

    /// A fact by the caller, now.
    pub(crate) fn recorded(&self, fact: Fact) -> Recorded<Fact> {
        Recorded { at: self.now, by: self.by.clone(), fact }
    }

    /// Finishes a draft; an empty one is `Settled`.
    pub fn write(&self, draft: Draft<'_>, answer: Answer) -> Plan {
        match draft.is_empty() {
            true => Plan::Settled(answer),
            false => Plan::Write { drafted: draft.finish(), answer, rest: None },
        }
    }

    pub fn scope_of_vm(&self, vm: VmId) -> Result<(ScopeId, &'a Revisioned<Scope>), Refusal> {
        match self.state.scope_of(vm) {
            Some((scope, held, Some(_))) => Ok((scope.clone(), held)),
            Some((_, _, None)) | None => Err(Refusal::UnknownVm(vm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{
        self, at, event, event_id, now, operation, operation_id, operator, scope_id, standalone, started, vm,
    };
    use notbefore_core::{
        Cause, Event, Grant, Host, HostState, JointStart, Member, MemberState, Operation, OperationState,
        Role, ScopeKind, Token,
    };
    use notbefore_store::Revision;

    use super::*;
    use crate::records::{self, Address, Vm};
    use crate::request::{
        AddVm, Expected, FirstRun, HostChange, NewOperation, OperationCommand, PutScope, ScopeChange,
        TargetSelector, TokenCommand, VmCommand, VmSpec,
    };

    /// Records, and the caller and time.
    #[derive(Default)]
    struct Fixture {
        state: State,
        by: Option<Actor>,
        settings: Settings,
    }

    impl Fixture {
        fn put<T: serde::Serialize>(mut self, key: notbefore_store::Key, record: &T) -> Self {
            self.state.install(&key, Revision(1), Some(&records::encode(record))).unwrap();
            self
        }

        /// Adds a scope and the records of its VMs at 10.0.0.n.
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

        /// The result of a command in one line: the kinds of the written and removed records in key order, `nothing`,
        /// or the code of the failure.
        fn outcome(&self, command: &Command) -> String {
            let root = operator();
            let planner = Planner {
                state: &self.state,
                settings: &self.settings,
                enabled: &|_| true,
                now: now(),
                by: self.by.as_ref().unwrap_or(&root),
                node: "n1",
                runner: "n1",
                count: 0,
                from: None,
                split_at: SplitAt::default(),
                free_hosts: &self.state,
            };
            let kind = |key: &str| key.split('/').next().unwrap_or_default().to_owned();
            match planner.plan(command, Progress::default()) {
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
            Answer::Vm(_) => "vm",
            Answer::Scope { .. } => "scope",
        }
    }

    /// Each row: name, records, command, expected result.
    fn check(rows: Vec<(&str, Fixture, Command, &str)>) {
        for (name, given, command, expected) in rows {
            assert_eq!(given.outcome(&command), expected, "{name}");
        }
    }

    const REBOOT: Cause = Cause::HostReboot;

    fn web(events: &[Event]) -> Fixture {
        let scope = samples::scope("web", &[vm(1), vm(2)]);
        Fixture::default().scope(&Scope { events: events.to_vec(), ..scope })
    }

    fn one() -> Event {
        event(1, REBOOT, &[vm(1)])
    }

    fn on(vms: &[u128]) -> NewOperation {
        NewOperation::with_defaults(
            operation_id(9),
            REBOOT,
            TargetSelector::Vms(vms.iter().copied().map(vm).collect()),
        )
    }

    fn scheduled(new: NewOperation) -> Command {
        Command::Operation(OperationCommand::Schedule(new))
    }

    #[test]
    fn approval_requires_known_caller_and_event() {
        let approve = |network: Option<&str>, events: &[u128]| {
            let events = events.iter().copied().map(event_id).collect();
            let network = network.map(str::to_owned);
            Command::Guest(GuestApproval { scope: scope_id("web"), events, network })
        };
        let guest = |n: u8| Actor::Vm {
            vm: vm(n.into()),
            name: format!("vm-{n}").parse().unwrap(),
            address: [10, 0, 0, n].into(),
        };
        let moved = Actor::Vm { vm: vm(1), name: "vm-1".parse().unwrap(), address: [10, 0, 0, 2].into() };
        check(vec![
            ("its own", web(&[one()]).by(guest(1)), approve(Some("default"), &[1]), "fact scope"),
            ("separate listener", web(&[one()]).by(guest(1)), approve(None, &[1]), "fact scope"),
            ("nothing", web(&[one()]).by(guest(1)), approve(None, &[]), "nothing"),
            ("approved", web(&[started(one())]).by(guest(1)), approve(None, &[1]), "nothing"),
            ("unknown", web(&[]).by(guest(1)), approve(None, &[1]), "unknown_event"),
            ("another's address", web(&[one()]).by(moved), approve(Some("default"), &[1]), "unknown_caller"),
            ("another network", web(&[one()]).by(guest(1)), approve(Some("blue"), &[1]), "unknown_caller"),
            ("removed VM", web(&[one()]).by(guest(3)), approve(None, &[1]), "unknown_caller"),
        ]);
    }

    #[test]
    fn event_commands_find_events_in_any_scope() {
        let (id, hosts) = (event_id(1), Vec::new());
        let completed = || Command::Event(EventCommand::Complete { event: id, hosts: hosts.clone() });
        check(vec![
            ("approve", web(&[one()]), Command::Event(EventCommand::Approve(id)), "fact scope"),
            ("cancel", web(&[one()]), Command::Event(EventCommand::Cancel(id)), "ended fact past scope"),
            ("start", web(&[one()]), Command::Event(EventCommand::Start(id)), "fact scope"),
            ("complete", web(&[started(one())]), completed(), "ended fact past scope"),
            ("too early", web(&[one()]), completed(), "event_not_started"),
            ("retry", web(&[started(one())]), Command::Event(EventCommand::Retry(id)), "not_exec"),
            ("nowhere", web(&[]), Command::Event(EventCommand::Cancel(id)), "unknown_event"),
        ]);
    }

    #[test]
    fn operation_on_named_vms_is_all_or_nothing() {
        let two = || web(&[]).scope(&standalone("db", vm(3)));
        let evict = |force| NewOperation { cause: Cause::Eviction, force, ..on(&[1]) };
        let soon = NewOperation { not_before: Some(at(60)), ..on(&[1]) };
        let host = |host: &str| {
            scheduled(NewOperation { selector: TargetSelector::Host(host.to_owned()), ..on(&[]) })
        };
        let planned = |expected, vms: &[u128]| scheduled(NewOperation { expected, ..on(vms) });
        let planned_host = |vms: &[u128]| {
            let expected = Expected::Vms(vms.iter().copied().map(vm).collect());
            let selector = TargetSelector::Host("h1".to_owned());
            scheduled(NewOperation { selector, expected, ..on(&[]) })
        };
        let revisions = |seen: &[u64]| Expected::Revisions(seen.iter().copied().map(Revision).collect());
        let on_host = |state| {
            let member = Member { host: Some("h1".to_owned()), state, ..samples::member(vm(1)) };
            Fixture::default().scope(&Scope { members: vec![member], ..samples::scope("web", &[]) })
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
            Fixture { settings: Settings { stored_user_operations_max: 1, ..Settings::default() }, ..given }
        };
        let restart = || scheduled(NewOperation { cause: Cause::UserRestart, ..on(&[1]) });
        check(vec![
            ("one scope, one transaction", web(&[]), scheduled(on(&[1, 2])), "fact operation scope"),
            ("several scopes, the operation first", two(), scheduled(on(&[1, 3])), "fact operation"),
            ("one VM unknown", two(), scheduled(on(&[1, 4])), "unknown_vm"),
            ("none", web(&[]), scheduled(on(&[])), "no_resources"),
            ("too near", web(&[]), scheduled(soon), "not_before_too_near"),
            ("not Spot", web(&[]), scheduled(evict(false)), "not_spot"),
            ("not Spot, forced", web(&[]), scheduled(evict(true)), "fact operation scope"),
            ("host", on_host(MemberState::Running), host("h1"), "fact operation scope"),
            ("unknown host", on_host(MemberState::Running), host("h2"), "unknown_host"),
            ("host as planned", on_host(MemberState::Running), planned_host(&[1]), "fact operation scope"),
            ("host with another VM", on_host(MemberState::Running), planned_host(&[]), "plan_differs"),
            ("host without a VM", on_host(MemberState::Running), planned_host(&[1, 2]), "plan_differs"),
            ("VMs as planned", two(), planned(revisions(&[1, 1]), &[1, 3]), "fact operation"),
            ("VMs of a changed scope", two(), planned(revisions(&[1, 2]), &[1, 3]), "revision_differs"),
            ("all VMs deallocated", on_host(MemberState::Deallocated), host("h1"), "nothing_runs"),
            (
                "tenant's operations count",
                full().by(Actor::Token("tenant".to_owned())),
                restart(),
                "too_many_stored_operations",
            ),
            ("operator's operations do not count", full(), restart(), "fact operation scope"),
        ]);
    }

    #[test]
    fn operation_commands_apply_to_all_parts() {
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
            (
                "cancelled",
                on(open(), one()),
                Command::Operation(OperationCommand::Cancel(id)),
                "fact operation",
            ),
            (
                "twice",
                on(Operation { cancelled_by: by.clone(), ..open() }, one()),
                Command::Operation(OperationCommand::Cancel(id)),
                "nothing, operation",
            ),
            (
                "decided",
                on(host(released.clone()), one()),
                Command::Operation(OperationCommand::Cancel(id)),
                "event_started",
            ),
            (
                "nothing left to cancel",
                on(alone(), started(one())),
                Command::Operation(OperationCommand::Cancel(id)),
                "event_started",
            ),
            ("unknown", web(&[]), Command::Operation(OperationCommand::Cancel(id)), "unknown_operation"),
            (
                "started in one scope",
                on(alone(), one()),
                Command::Operation(OperationCommand::Start(id)),
                "fact scope",
            ),
            (
                "started in several",
                on(open(), one()),
                Command::Operation(OperationCommand::Start(id)),
                "starts_apart",
            ),
            (
                "nothing to start",
                on(alone(), started(one())),
                Command::Operation(OperationCommand::Start(id)),
                "nothing_to_start",
            ),
            (
                "host operation starts",
                on(host(JointStart::Waiting), one()),
                Command::Operation(OperationCommand::Start(id)),
                "fact operation",
            ),
            (
                "host operation starts once",
                on(host(released.clone()), one()),
                Command::Operation(OperationCommand::Start(id)),
                "event_started",
            ),
            (
                "not begun",
                on(open(), one()),
                Command::Operation(OperationCommand::Complete(id)),
                "event_not_started",
            ),
            (
                "completed",
                on(open(), started(one())),
                Command::Operation(OperationCommand::Complete(id)),
                "fact operation",
            ),
            (
                "about to start",
                on(host(released), one()),
                Command::Operation(OperationCommand::Complete(id)),
                "fact operation",
            ),
            (
                "completed twice",
                on(Operation { completed_by: by, ..open() }, one()),
                Command::Operation(OperationCommand::Complete(id)),
                "nothing, operation",
            ),
        ]);
    }

    #[test]
    fn inventory_changes_are_validated() {
        let spec = |n: u128| VmSpec::with_defaults(vm(n), format!("vm-{n}").parse().unwrap());
        let at_first = |n| VmSpec {
            addresses: vec![Address { network: "default".parse().unwrap(), ip: [10, 0, 0, 1].into() }],
            ..spec(n)
        };
        let set = ScopeKind::AvailabilitySet;
        let put = |path: &str, vms| {
            Command::from(ScopeChange::Put(PutScope::with_defaults(path.parse().unwrap(), set, vms)))
        };
        let add = |path: &str, vm| Command::from(AddVm { path: path.parse().unwrap(), kind: None, vm });
        let many = (10..110).map(spec).collect();
        let first_run = || Command::from(FirstRun { vm: vm(1), name: "lab".parse().unwrap() });
        let lab = Scope { first_run: true, ..standalone("lab", vm(1)) };
        let asleep = Member { state: MemberState::Deallocated, ..samples::member(vm(1)) };
        let evicted = Scope { members: vec![asleep], ..samples::scope("web", &[]) };
        let on_host = |n| VmSpec { host: Some("h1".to_owned()), ..spec(n) };
        let h1 = || {
            let by = operator();
            let host = Host { name: "h1".to_owned(), state: HostState::Ok, since: now(), by };
            web(&[]).put(records::host("h1"), &host)
        };
        let remove = |path: &str| {
            let (scope, fleet_only) = (scope_id(path), false);
            Command::from(ScopeChange::Remove { scope, fleet_only })
        };
        check(vec![
            ("new scope", web(&[]), put("db", vec![spec(3)]), "fact scope vm"),
            (
                "unchanged",
                Fixture::default().scope(&samples::scope("web", &[])),
                put("web", vec![]),
                "nothing, scope",
            ),
            (
                "another kind",
                Fixture::default().scope(&standalone("web", vm(1))),
                put("web", vec![]),
                "kind_differs",
            ),
            (
                "duplicate name",
                web(&[]),
                put("db", vec![spec(3), VmSpec { vm: vm(4), ..spec(3) }]),
                "name_taken",
            ),
            ("address of another VM", web(&[]), put("db", vec![at_first(3)]), "address_taken"),
            (
                "duplicate address",
                Fixture::default(),
                put("db", vec![at_first(3), at_first(4)]),
                "address_twice",
            ),
            ("many VMs", Fixture::default(), put("db", many), "fact scope vm and more"),
            ("VM in existing scope", web(&[]), add("web", spec(3)), "fact scope vm"),
            ("VM in new scope", web(&[]), add("db", spec(3)), "fact scope vm"),
            ("existing name", web(&[]), add("web", spec(1)), "name_taken"),
            (
                "second VM in standalone scope",
                Fixture::default().scope(&standalone("db", vm(1))),
                add("db", spec(3)),
                "standalone_holds_one",
            ),
            ("VM removed", web(&[]), VmCommand::Remove(vm(1)).into(), "fact scope -claim -vm"),
            (
                "VM removed with its scope",
                Fixture::default().scope(&standalone("db", vm(1))),
                VmCommand::Remove(vm(1)).into(),
                "fact -claim -scope -vm",
            ),
            ("unknown VM", web(&[]), VmCommand::Remove(vm(9)).into(), "unknown_vm"),
            ("runs again", Fixture::default().scope(&evicted), VmCommand::Start(vm(1)).into(), "fact scope"),
            ("runs", web(&[]), VmCommand::Start(vm(1)).into(), "nothing"),
            ("scope removed", web(&[]), remove("web"), "fact -claim -scope -vm"),
            ("unknown scope", web(&[]), remove("db"), "unknown_scope"),
            ("VM on a new host", web(&[]), add("db", on_host(3)), "fact host scope vm"),
            ("VM on a known host", h1(), add("db", on_host(3)), "fact scope vm"),
            ("host is ok already", h1(), HostChange::Ok("h1".to_owned()).into(), "nothing"),
            ("unknown host", web(&[]), HostChange::Ok("h1".to_owned()).into(), "unknown_host"),
            ("host removed", h1(), HostChange::Forget("h1".to_owned()).into(), "fact -host"),
            ("first run", Fixture::default(), first_run(), "fact scope vm"),
            ("not the first run", web(&[]), first_run(), "nothing"),
            (
                "the stand-in goes",
                Fixture::default().scope(&lab),
                put("web", vec![spec(3)]),
                "fact scope vm -claim -scope -vm",
            ),
        ]);
    }

    #[test]
    fn token_clock_and_cluster_commands() {
        let create = |name| Command::Token(TokenCommand::Create(samples::token(name)));
        let revoke = |name: &str| Command::Token(TokenCommand::Revoke(name.parse().unwrap()));
        let brief = Token { expires_at: Some(at(60)), ..samples::token("brief") };
        let root = || Fixture::default().token(&samples::token("root"));
        let held = || {
            let mut given = Fixture::default();
            given.state.hold_clock(Some(notbefore_core::ClockHold::default()));
            given
        };
        check(vec![
            ("a token", root(), create("ci"), "fact token"),
            ("name in another case", root(), create("Root"), "token_taken"),
            ("the last", root(), revoke("root"), "last_operator"),
            ("last permanent operator", root().token(&brief), revoke("root"), "last_operator"),
            ("one of two", root().token(&samples::token("ci")), revoke("root"), "fact -token"),
            ("unknown", root(), revoke("ci"), "unknown_token"),
            ("clock is trusted", root(), Command::Clock(AcceptClock), "nothing"),
            ("clock is held", held(), Command::Clock(AcceptClock), "fact"),
            ("lead", root(), ClusterCommand::RecordHandOver { node: "a".into() }.into(), "fact"),
            ("node", root(), ClusterCommand::ForgetNode { node: "a".into() }.into(), "fact -cluster"),
            ("level", root(), ClusterCommand::FinishUpgrade { level: 2 }.into(), "cluster fact"),
        ]);
    }
}
