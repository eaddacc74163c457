//! Operations on hosts, where they differ from those on named VMs. A scope that refuses its event does not affect other
//! scopes. A VM that leaves the host before its scope is opened gets no event. The simulator checks the rest against
//! the model.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use notbefore_core::samples::{self, now, operation_id, operator, scope_id};
use notbefore_core::scope::EVENTS_MAX;
use notbefore_core::{
    Cause, DriverKind, Event, Member, Operation, OperationState, Scope, Settings, TargetState, VmId,
};
use notbefore_engine::records::{self, prefix};
use notbefore_engine::{
    Answer, Effect, Engine, Failure, Input, JobId, NewOperation, OperationCommand, TargetSelector,
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

    fn submit(&mut self, command: OperationCommand) {
        self.feed(request(command));
    }

    /// Carries out the oldest commit.
    fn commit_one(&mut self) {
        let (id, txn) = self.pending.pop_front().unwrap();
        self.revision += 1;
        self.records.extend(txn.put.iter().cloned());
        self.feed(Input::Committed(id, Outcome::Committed(Revision(self.revision))));
    }

    fn commit_all(&mut self) {
        while !self.pending.is_empty() {
            self.commit_one();
        }
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
