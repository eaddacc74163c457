//! Operations on hosts, where they differ from those on named VMs. A scope that refuses its event does not affect other
//! scopes. A VM that leaves the host before its scope is opened gets no event. The simulator checks the rest against
//! the model.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use notbefore_core::samples::{self, now, operation_id, operator, scope_id};
use notbefore_core::scope::EVENTS_MAX;
use notbefore_core::{
    Cause, DriverKind, Event, Host, HostState, Member, Operation, OperationState, Scope, ScopeKind, Settings,
    TargetState, VmId,
};
use notbefore_engine::records::{self, prefix};
use notbefore_engine::{
    AddVm, Answer, Command, Effect, Engine, EventCommand, Failure, HostChange, Input, JobId, NewOperation,
    OperationCommand, PutScope, ScopeChange, TargetSelector, VmCommand, VmSpec,
};
use notbefore_store::{Key, Outcome, Revision, Txn};
use uuid::Uuid;

use crate::support::{request, started, stored};

/// An engine over a map; commits wait until the test carries them out.
struct Bench {
    engine: Engine,
    records: BTreeMap<Key, Bytes>,
    revision: u64,
    pending: VecDeque<(JobId, Txn)>,
    answers: Vec<Result<Answer, Failure>>,
}

impl Bench {
    fn new(scopes: &[Scope]) -> Self {
        let stored = stored(scopes.iter().cloned());
        let records = stored.iter().map(|(key, record)| (key.clone(), record.value.clone())).collect();
        let (engine, _) = started(Settings::default(), stored, now());
        let (pending, answers) = (VecDeque::new(), Vec::new());
        let mut bench = Self { engine, records, revision: 1, pending, answers };
        // Background writes at the start.
        bench.feed(Input::Tick);
        bench.commit_all();
        bench
    }

    fn feed(&mut self, input: Input) {
        for effect in self.engine.handle(input, now()) {
            match effect {
                Effect::Commit(id, txn) => self.pending.push_back((id, txn)),
                Effect::Publish(_) | Effect::Run(_) | Effect::Stop(_) | Effect::Resync => {}
                Effect::Answer(_, answer) => self.answers.push(answer),
            }
        }
    }

    fn submit(&mut self, command: impl Into<Command>) {
        self.feed(request(command));
    }

    /// Carries out the oldest commit.
    fn commit_one(&mut self) {
        let (id, txn) = self.pending.pop_front().unwrap();
        self.revision += 1;
        self.records.extend(txn.put.iter().cloned());
        txn.delete.iter().for_each(|key| drop(self.records.remove(key)));
        self.feed(Input::Committed(id, Outcome::Committed(Revision(self.revision))));
    }

    fn commit_all(&mut self) {
        while !self.pending.is_empty() {
            self.commit_one();
        }
    }

    /// Submits a command, carries it out and returns the code of its refusal.
    fn outcome(&mut self, command: impl Into<Command>) -> Option<&'static str> {
        self.submit(command);
        self.commit_all();
        self.answers.pop().unwrap().err().map(|failure| failure.code())
    }

    /// The stored state of a host.
    fn host(&self, name: &str) -> Option<HostState> {
        let key = records::host(name);
        Some(records::decode::<Host>(&key, self.records.get(&key)?).unwrap().state)
    }

    /// The host of each VM of a scope.
    fn vm_hosts(&self, name: &str) -> Vec<Option<String>> {
        let key = records::scope(&scope_id(name));
        let scope = records::decode::<Scope>(&key, &self.records[&key]).unwrap();
        scope.members.into_iter().map(|member| member.host).collect()
    }

    fn operation(&self) -> Operation {
        let (key, value) = self.records.iter().find(|(key, _)| key.starts_with(prefix::OPERATION)).unwrap();
        records::decode(key, value).unwrap()
    }

    fn events(&self, name: &str) -> Vec<Event> {
        let key = records::scope(&scope_id(name));
        records::decode::<Scope>(&key, &self.records[&key]).unwrap().events
    }
}

/// A scope with VMs on a host, each in its own update domain.
fn scope(name: &str, vms: u128) -> Scope {
    let member = |n: u128| Member {
        update_domain: n as u32,
        host: Some("h1".to_owned()),
        ..Member::with_defaults(
            VmId(Uuid::new_v5(&Uuid::from_u128(n), name.as_bytes())),
            format!("{name}-{n}").parse().unwrap(),
        )
    };
    Scope { members: (0..vms).map(member).collect(), ..samples::scope(name, &[]) }
}

/// Fills a scope until it has room for this many more events.
fn filled(mut scope: Scope, room: usize) -> Scope {
    let one = |n: usize| Event {
        driver: DriverKind::Manual,
        trail: Vec::new(),
        ..samples::event(n as u128, Cause::HostRedeploy, &[scope.members[0].vm])
    };
    scope.events = (0..EVENTS_MAX - room).map(one).collect();
    scope
}

fn maintain(cause: Cause) -> NewOperation {
    NewOperation::with_defaults(operation_id(7), cause, TargetSelector::Host("h1".to_owned()))
}

#[test]
fn full_scope_is_reported_and_other_scopes_get_events() {
    let mut bench = Bench::new(&[filled(scope("full", 3), 0), scope("free", 2)]);
    let preview = bench.engine.preview(&operator(), &maintain(Cause::HostReboot), now()).unwrap();
    assert_eq!(preview.operation.targets.len(), 5);
    assert_eq!(preview.refused.len(), 3);

    bench.submit(OperationCommand::Schedule(maintain(Cause::HostReboot)));
    bench.commit_all();
    assert_eq!(bench.answers.pop(), Some(Ok(Answer::Operation(operation_id(7)))));
    let operation = bench.operation();
    assert_eq!(operation.state, OperationState::Open);
    let refused: Vec<(&str, Option<&str>)> =
        operation.targets.iter().map(|one| (one.scope.as_str(), one.refused.as_deref())).collect();
    let (free, full) = ("default/default/free", "default/default/full");
    assert!(refused[..2].iter().all(|one| *one == (free, None)), "{refused:?}");
    assert!(refused[2..].iter().all(|one| *one == (full, Some("too_many_events"))), "{refused:?}");
    assert_eq!((bench.events("free").len(), bench.events("full").len()), (2, EVENTS_MAX));
}

#[test]
fn scope_gets_as_many_events_as_fit() {
    // How many events fit depends on their size, so the test searches for the limit.
    let at_the_edge = (300..EVENTS_MAX).step_by(4).find_map(|live| {
        let mut bench = Bench::new(&[filled(scope("tight", 5), EVENTS_MAX - live)]);
        bench.submit(OperationCommand::Schedule(maintain(Cause::HostRedeploy)));
        bench.commit_all();
        let fit = bench.events("tight").len() - live;
        (fit < 5).then_some((bench, fit))
    });
    let (bench, fit) = at_the_edge.unwrap();
    assert!(fit > 0, "the first events fit");
    let refused: Vec<Option<String>> = bench.operation().targets.into_iter().map(|one| one.refused).collect();
    let too_large = Some("scope_too_large".to_owned());
    assert_eq!(refused, (0..5).map(|n| too_large.clone().filter(|_| n >= fit)).collect::<Vec<_>>());
}

#[test]
fn operation_is_refused_when_all_scopes_are_full() {
    let mut bench = Bench::new(&[filled(scope("full", 3), 0)]);
    bench.submit(OperationCommand::Schedule(maintain(Cause::HostReboot)));
    assert!(matches!(bench.answers.pop(), Some(Err(Failure::Refused(_)))));
    assert!(bench.pending.is_empty());
}

#[test]
fn vm_removed_before_event_opens_gets_no_event() {
    let (one, mut two) = (scope("one", 1), scope("two", 2));
    for member in &mut two.members {
        member.update_domain = 0;
    }
    let mut bench = Bench::new(&[one, two.clone(), scope("three", 1)]);
    bench.submit(OperationCommand::Schedule(maintain(Cause::HostFreeze)));
    // The operation itself; its parts are in flight now, and the moves come before them.
    bench.commit_one();
    let opens = std::mem::take(&mut bench.pending);
    assert_eq!(opens.len(), 3);
    let mut moved = two.clone();
    moved.members[0].host = Some("h2".to_owned());
    for scope in [moved, Scope { members: Vec::new(), ..scope("three", 1) }] {
        let (key, value) = (records::scope(&scope.id()), records::encode(&scope));
        bench.revision += 1;
        bench.records.insert(key.clone(), value.clone());
        let change = notbefore_store::Change { key, value: Some(value) };
        let batch = notbefore_store::Batch { revision: Revision(bench.revision), changes: [change].into() };
        bench.feed(Input::Watched(batch));
    }
    for (id, txn) in opens {
        let stale = txn.expect.iter().any(|one| one.key.contains("two") || one.key.contains("three"));
        if stale {
            let found = txn.expect.iter().map(|one| notbefore_store::Found {
                key: one.key.clone(),
                revision: None,
                value: None,
            });
            let found = found.filter(|one| one.key.starts_with(prefix::SCOPE)).collect();
            bench.feed(Input::Committed(id, Outcome::Conflict(found)));
        } else {
            bench.pending.push_front((id, txn));
        }
    }
    bench.commit_all();
    let names = |name: &str| {
        let events = bench.events(name);
        events.iter().flat_map(|event| &event.resources).map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("one"), ["one-0"]);
    assert_eq!(names("two"), ["two-1"], "the moved VM is left out");
    assert!(names("three").is_empty());
    let operation = bench.operation();
    let parts: BTreeMap<&str, (TargetState, Option<&str>)> = operation
        .targets
        .iter()
        .map(|one| (one.scope.as_str(), (one.state, one.refused.as_deref())))
        .collect();
    assert_eq!(parts["default/default/three"], (TargetState::Ended, Some("vms_gone")));
    assert_eq!(parts["default/default/two"], (TargetState::Waiting, None));
    assert_eq!(operation.state, OperationState::Open);
}

/// A VM for a host, alone in its scope.
fn add(name: &str, host: &str) -> AddVm {
    let id = VmId(Uuid::new_v5(&Uuid::nil(), name.as_bytes()));
    let vm = VmSpec { host: Some(host.to_owned()), ..VmSpec::with_defaults(id, name.parse().unwrap()) };
    AddVm { path: name.parse().unwrap(), kind: None, vm }
}

#[test]
fn redeployed_vms_of_a_degraded_host_spread_over_the_others() {
    let mut bench = Bench::new(&[]);
    for (name, host) in [("a", "h1"), ("b", "h1"), ("c", "h1"), ("d", "h1"), ("e", "h2"), ("f", "h3")] {
        assert_eq!(bench.outcome(add(name, host)), None);
    }
    assert_eq!(bench.host("h1"), Some(HostState::Ok));
    assert_eq!(bench.outcome(OperationCommand::Schedule(maintain(Cause::PredictedFailure))), None);
    assert_eq!(bench.host("h1"), Some(HostState::Degraded));
    let events: Vec<_> = ["a", "b", "c", "d"].map(|name| bench.events(name)[0].id).into();
    // All start before the first of these commits is durable.
    events.iter().for_each(|event| bench.submit(EventCommand::Start(*event)));
    assert_eq!(bench.pending.len(), 4);
    bench.commit_all();
    for event in events {
        assert_eq!(bench.outcome(EventCommand::Complete { event, hosts: Vec::new() }), None);
    }
    let mut hosts: Vec<_> = ["a", "b", "c", "d"].iter().flat_map(|name| bench.vm_hosts(name)).collect();
    hosts.sort();
    assert_eq!(hosts, ["h2", "h2", "h3", "h3"].map(|host| Some(host.to_owned())));
    assert_eq!(bench.operation().state, OperationState::Closed);
    assert_eq!(bench.host("h1"), Some(HostState::Degraded), "its VMs are gone, its hardware is the same");
    assert_eq!(bench.outcome(HostChange::Ok("h1".to_owned())), None);
    assert_eq!(bench.host("h1"), Some(HostState::Ok));
}

#[test]
fn host_is_forgotten_only_without_vms_and_open_operations() {
    let mut bench = Bench::new(&[]);
    let forget = |host: &str| HostChange::Forget(host.to_owned());
    assert_eq!(bench.outcome(forget("h1")), Some("unknown_host"));
    assert_eq!(bench.outcome(add("a", "h1")), None);
    assert_eq!(bench.outcome(forget("h1")), Some("host_in_use"));
    let vm = add("a", "h1").vm.vm;
    assert_eq!(bench.outcome(VmCommand::Remove(vm)), None);
    assert_eq!(bench.host("h1"), Some(HostState::Ok), "a host without VMs is a host");

    // A VM arrives at the empty host: the removal waits for it.
    bench.submit(add("b", "h1"));
    bench.submit(forget("h1"));
    assert_eq!(bench.pending.len(), 1);
    bench.commit_all();
    let refused: Vec<_> = bench.answers.drain(..).filter_map(Result::err).map(|why| why.code()).collect();
    assert_eq!(refused, ["host_in_use"]);

    let event = maintain(Cause::HostRedeploy);
    assert_eq!(bench.outcome(OperationCommand::Schedule(event)), None);
    assert_eq!(bench.outcome(VmCommand::Remove(add("b", "h1").vm.vm)), None);
    assert_eq!(bench.operation().state, OperationState::Closed, "its only VM is gone");
    assert_eq!(bench.outcome(forget("h1")), None);
    assert_eq!(bench.host("h1"), None);
    assert_eq!(bench.outcome(forget("h1")), Some("unknown_host"));
}

#[test]
fn host_of_an_open_operation_is_not_forgotten_after_its_vm_has_moved() {
    let mut bench = Bench::new(&[]);
    let forget = || HostChange::Forget("h1".to_owned());
    assert_eq!(bench.outcome(add("a", "h1")), None);
    assert_eq!(bench.outcome(OperationCommand::Schedule(maintain(Cause::HostReboot))), None);
    let moved = add("a", "h2");
    let put = PutScope::with_defaults(moved.path, ScopeKind::Standalone, vec![moved.vm]);
    assert_eq!(bench.outcome(ScopeChange::Put(put)), None);
    assert_eq!(bench.vm_hosts("a"), [Some("h2".to_owned())], "no VM is on h1");
    assert_eq!(bench.operation().state, OperationState::Open);
    assert_eq!(bench.outcome(forget()), Some("host_in_use"));
    assert_eq!(bench.host("h1"), Some(HostState::Ok));
    assert_eq!(bench.outcome(OperationCommand::Cancel(operation_id(7))), None);
    assert_eq!(bench.outcome(forget()), None);
    assert_eq!(bench.host("h1"), None);
}

#[test]
fn host_is_not_forgotten_while_an_event_starts_that_moves_a_vm_there() {
    let mut bench = Bench::new(&[]);
    assert_eq!(bench.outcome(add("a", "h1")), None);
    assert_eq!(bench.outcome(add("b", "h2")), None);
    assert_eq!(bench.outcome(VmCommand::Remove(add("b", "h2").vm.vm)), None);
    assert_eq!(bench.outcome(OperationCommand::Schedule(maintain(Cause::HostRedeploy))), None);
    let event = bench.events("a")[0].id;
    bench.submit(EventCommand::Start(event));
    bench.submit(HostChange::Forget("h2".to_owned()));
    assert_eq!(bench.pending.len(), 1, "the removal waits for the start");
    bench.answers.clear();
    bench.commit_all();
    assert_eq!(bench.events("a")[0].target_host.as_deref(), Some("h2"));
    let refused: Vec<_> = bench.answers.drain(..).filter_map(Result::err).map(|why| why.code()).collect();
    assert_eq!(refused, ["host_in_use"]);
    assert_eq!(bench.host("h2"), Some(HostState::Ok));
}

#[test]
fn empty_host_can_be_reported_and_not_maintained() {
    let mut bench = Bench::new(&[]);
    bench.outcome(add("a", "h1"));
    bench.outcome(VmCommand::Remove(add("a", "h1").vm.vm));
    let schedule = |cause| OperationCommand::Schedule(maintain(cause));
    assert_eq!(bench.outcome(schedule(Cause::HostReboot)), Some("nothing_runs"));
    assert_eq!(bench.outcome(schedule(Cause::HostFailure)), None);
    assert_eq!(bench.host("h1"), Some(HostState::Failed));
    assert_eq!((bench.operation().state, bench.operation().targets.len()), (OperationState::Closed, 0));
}

#[test]
fn completed_reboot_makes_a_degraded_host_ok() {
    for (cause, expected) in [
        (Cause::HostReboot, HostState::Ok),
        (Cause::HostFreeze, HostState::Degraded),
        (Cause::LiveMigration, HostState::Degraded),
    ] {
        let mut bench = Bench::new(&[]);
        bench.outcome(add("a", "h1"));
        bench.outcome(OperationCommand::Schedule(maintain(Cause::PredictedFailure)));
        bench.outcome(OperationCommand::Cancel(operation_id(7)));
        assert_eq!(bench.host("h1"), Some(HostState::Degraded), "a cancelled redeploy repairs nothing");
        let new = NewOperation { id: operation_id(8), ..maintain(cause) };
        assert_eq!(bench.outcome(OperationCommand::Schedule(new)), None);
        assert_eq!(bench.outcome(OperationCommand::Start(operation_id(8))), None);
        assert_eq!(bench.outcome(OperationCommand::Complete(operation_id(8))), None);
        assert_eq!(bench.host("h1"), Some(expected), "{cause}");
    }
}

#[test]
fn many_new_hosts_fit_beside_their_scope() {
    let mut bench = Bench::new(&[]);
    let vms = (0..60)
        .map(|n| VmSpec { vm: VmId(Uuid::from_u128(n)), ..add(&format!("vm{n}"), &format!("h{n}")).vm });
    let put = PutScope::with_defaults("web".parse().unwrap(), ScopeKind::AvailabilitySet, vms.collect());
    assert_eq!(bench.outcome(ScopeChange::Put(put)), None);
    assert!((0..60).all(|n| bench.host(&format!("h{n}")).is_some()));
}
