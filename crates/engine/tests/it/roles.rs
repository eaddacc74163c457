//! Roles of a node in a cluster: what it sends, and when.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{at, event, now, scope, scope_id, started as started_event, vm};
use notbefore_core::{self as core, Actor, Cause, EventId, Scope, ScopeKind, Settings, TargetState};
use notbefore_engine::cluster::{LEADER, Role, fence_of};
use notbefore_engine::{
    AcceptClock, Answer, ClockNews, Effect, Engine, EngineSettings, EventCommand, Failure, FailureCause,
    GuestApproval, Input, JobId, Loader, NewOperation, OperationCommand, PutScope, Request, RequestId,
    ScopeChange, TargetSelector, TokenCommand, VmSpec, prepare,
};
use notbefore_store::{Batch, Change, Found, Key, Outcome, Refusal, Revision, Txn, Versioned};

use crate::support::{commits, request, started, stored};

const LEADS: Role = Role::Lead(Revision(10));

fn follower(records: Vec<(Key, Versioned)>) -> Engine {
    let settings = EngineSettings { domain: Settings::default(), node: "n1".into() };
    let mut loader = Loader::default();
    for (key, record) in records {
        loader.take(prepare(key, record).unwrap()).unwrap();
    }
    Engine::follower(settings, loader.finish(), Revision(1)).0
}

/// A scope with many events that are over: their history does not fit into one transaction.
fn many_events_over() -> Scope {
    let events = (0..80).map(|n| started_event(event(n, Cause::LiveMigration, &[vm(1)]))).collect();
    Scope { events, ..scope("web", &[vm(1)]) }
}

fn later() -> Timestamp {
    at(86_000)
}

fn answers(effects: &[Effect]) -> Vec<&Result<Answer, Failure>> {
    let answer = |effect| match effect {
        &Effect::Answer(RequestId(_), ref answer) => Some(answer),
        Effect::Commit(..) | Effect::Publish(_) | Effect::Run(_) | Effect::Stop(_) | Effect::Resync => None,
    };
    effects.iter().filter_map(answer).collect()
}

/// The batch by which the watch shows a transaction.
fn shown(txn: &Txn, revision: u64) -> Input {
    let put = txn.put.iter().map(|(key, value)| Change { key: key.clone(), value: Some(value.clone()) });
    Input::Watched(Batch { revision: Revision(revision), changes: put.collect() })
}

fn rewritten(revision: u64) -> Input {
    let change = Change { key: LEADER.into(), value: Some("2 {}".into()) };
    Input::Watched(Batch { revision: Revision(revision), changes: [change].into() })
}

/// The leader of a new store that has just written its heartbeat.
fn leader() -> Engine {
    let mut engine = follower(Vec::new());
    for (id, _) in commits(engine.handle(Input::Role(LEADS), now())) {
        engine.handle(Input::Committed(id, Outcome::Committed(Revision(11))), now());
    }
    assert!(engine.is_idle());
    engine
}

fn created(engine: &mut Engine) -> (JobId, Txn) {
    let create = TokenCommand::Create(notbefore_core::samples::token("ops"));
    commits(engine.handle(request(create), now())).remove(0)
}

#[test]
fn follower_does_nothing_by_itself_and_refuses_commands() {
    let mut engine = follower(stored([many_events_over()]));
    assert_eq!(engine.next_due(), None);
    assert!(commits(engine.handle(Input::Tick, later())).is_empty());
    let create = TokenCommand::Create(notbefore_core::samples::token("ops"));
    let effects = engine.handle(request(create), later());
    assert!(matches!(answers(&effects)[..], [Err(Failure::Unavailable(FailureCause::NotLeader))]));
}

#[test]
fn every_transaction_carries_the_fence_also_those_sent_ahead() {
    let mut engine = follower(stored([many_events_over()]));
    let mut sent = commits(engine.handle(Input::Role(LEADS), later()));
    let mut revision = 11;
    let mut of_scope = 0;
    while let Some((id, txn)) = sent.pop() {
        assert_eq!(fence_of(&txn), Some(Revision(10)), "{txn:?}");
        txn.check().unwrap();
        of_scope +=
            usize::from(txn.put.iter().any(|(key, _)| key.starts_with("past/") || key.starts_with("scope/")));
        sent.extend(commits(
            engine.handle(Input::Committed(id, Outcome::Committed(Revision(revision))), later()),
        ));
        revision += 1;
    }
    assert!(of_scope > 1, "the history fits into one transaction, so the test shows nothing");

    // Without a cluster they compare nothing: one that lands late would replace newer records.
    let (mut alone, _) = started(Settings::default(), stored([many_events_over()]), later());
    let effects = alone.handle(Input::Tick, later());
    assert!(commits(effects).iter().any(|(_, txn)| txn.put.len() > 10 && txn.expect.is_empty()));
}

/// The node may lead next: the operator must not have to accept the clock again.
#[test]
fn clock_that_the_leader_has_accepted_is_trusted_by_followers() {
    let jumped = || Input::Clock(ClockNews::Jumped(SignedDuration::from_hours(1)));
    let (mut leader, mut next) = (leader(), follower(Vec::new()));
    for engine in [&mut leader, &mut next] {
        engine.handle(jumped(), now());
        assert!(engine.is_clock_held());
    }
    let (id, txn) = commits(leader.handle(request(AcceptClock), now())).remove(0);
    leader.handle(Input::Committed(id, Outcome::Committed(Revision(12))), now());
    assert!(!leader.is_clock_held());
    next.handle(shown(&txn, 12), now());
    assert!(!next.is_clock_held());
    next.handle(jumped(), now());
    next.handle(shown(&txn, 12), now());
    assert!(next.is_clock_held(), "an acceptance of before says nothing about a later jump");
}

/// Another node may show the leader's commit, with a new event, before the leader has its outcome.
#[test]
fn approval_of_an_unknown_event_waits_for_commits_in_flight() {
    let approve = || {
        let by = Actor::Vm { vm: vm(1), name: "web-1".parse().unwrap(), address: [10, 0, 0, 1].into() };
        let events = vec![EventId(uuid::Uuid::from_u128(7))];
        let approval = GuestApproval { scope: scope_id("web"), events, network: None };
        Input::Request(RequestId(1), Box::new(Request::new(by, approval.into())))
    };
    let is_refused = |effects: &[Effect]| {
        let refused = |effect: &Effect| {
            matches!(
                effect,
                Effect::Answer(RequestId(1), Err(Failure::Refused(core::Refusal::UnknownEvent(_))))
            )
        };
        effects.iter().any(refused)
    };
    for outcome in [Outcome::Committed(Revision(12)), Outcome::Refused(Refusal::Unavailable("full".into()))] {
        let mut engine = follower(stored([scope("web", &[vm(1)])]));
        for (id, _) in commits(engine.handle(Input::Role(LEADS), now())) {
            engine.handle(Input::Committed(id, Outcome::Committed(Revision(11))), now());
        }
        assert!(is_refused(&engine.handle(approve(), now())), "at once, without commits in flight");
        let (first, _) = created(&mut engine);
        assert!(engine.handle(approve(), now()).is_empty(), "the commit may have made the event");
        let effects = engine.handle(Input::Committed(first, outcome), now());
        assert!(is_refused(&effects), "{effects:?}");
    }
}

#[test]
fn unknown_commit_that_landed_gets_its_real_answer() {
    let mut engine = leader();
    let (id, txn) = created(&mut engine);
    assert!(engine.handle(Input::Committed(id, Outcome::Unknown("lost".into())), now()).is_empty());
    assert_eq!(engine.role(), Role::Confirm, "nothing else is sent");
    let effects = engine.handle(shown(&txn, 12), now());
    assert!(matches!(answers(&effects)[..], [Ok(Answer::Done)]));
}

#[test]
fn leader_at_an_older_level_recognises_its_transactions() {
    let mut engine = leader();
    engine.set_level(1);
    let (id, txn) = created(&mut engine);
    assert!(txn.put.iter().all(|(_, value)| value.starts_with(b"1 ")), "{txn:?}");
    engine.handle(Input::Committed(id, Outcome::Unknown("lost".into())), now());
    let effects = engine.handle(shown(&txn, 12), now());
    assert!(matches!(answers(&effects)[..], [Ok(Answer::Done)]));
}

#[test]
fn state_of_a_leader_at_an_older_level_is_what_it_has_written() {
    for level in [1, 2] {
        let mut engine = follower(stored([scope("web", &[vm(1)]), scope("db", &[vm(2)])]));
        engine.set_level(level);
        let id = notbefore_core::samples::operation_id(1);
        let selector = TargetSelector::Vms(vec![vm(1), vm(2)]);
        let new = NewOperation {
            not_before: Some(at(86_400)),
            ..NewOperation::with_defaults(id, Cause::HostReboot, selector)
        };
        let mut revision = 20;
        let mut handle = |engine: &mut Engine, input| {
            let mut sent = commits(engine.handle(input, now()));
            while let Some((id, _)) = sent.pop() {
                revision += 1;
                let committed = Input::Committed(id, Outcome::Committed(Revision(revision)));
                sent.extend(commits(engine.handle(committed, now())));
            }
        };
        let first_part = |engine: &Engine| engine.state().operation(id).unwrap().value.targets[0].clone();
        handle(&mut engine, Input::Role(LEADS));
        handle(&mut engine, request(OperationCommand::Schedule(new)));
        let event = first_part(&engine).event;
        handle(&mut engine, request(EventCommand::Cancel(event)));
        let part = first_part(&engine);
        assert_eq!(part.state, TargetState::Ended);
        let expected = (level == 2).then_some(core::Outcome::Cancelled);
        assert_eq!(part.outcome, expected, "level 1 does not have the field");
    }
}

#[test]
fn unknown_commit_that_did_not_land_is_sent_again_with_the_new_fence() {
    let mut engine = leader();
    let (id, _) = created(&mut engine);
    engine.handle(Input::Committed(id, Outcome::Unknown("lost".into())), now());
    assert!(commits(engine.handle(rewritten(20), now())).is_empty());
    let sent = commits(engine.handle(Input::Role(Role::Lead(Revision(20))), now()));
    let [(id, txn)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(fence_of(txn), Some(Revision(20)));
    let effects = engine.handle(Input::Committed(*id, Outcome::Committed(Revision(21))), now());
    assert!(matches!(answers(&effects)[..], [Ok(Answer::Done)]));
}

#[test]
fn lost_lead_answers_unknown_for_what_was_sent() {
    let mut engine = leader();
    let (id, txn) = created(&mut engine);
    let effects = engine.handle(Input::Role(Role::Follow), now());
    assert!(matches!(answers(&effects)[..], [Err(Failure::OutcomeUnknown(FailureCause::NotLeader))]));
    assert!(engine.is_idle());
    assert!(engine.handle(Input::Committed(id, Outcome::Committed(Revision(12))), now()).is_empty());
    engine.handle(shown(&txn, 12), now());
    assert_eq!(engine.state().tokens().count(), 1, "the watch shows that it has landed");
}

#[test]
fn conflict_on_a_record_that_only_the_leader_writes_asks_for_a_snapshot() {
    let mut engine = leader();
    let (id, txn) = created(&mut engine);
    let found = Found { key: txn.expect[0].key.clone(), revision: None, value: None };
    let effects = engine.handle(Input::Committed(id, Outcome::Conflict(vec![found.clone()])), now());
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Resync)), "{effects:?}");
    assert_eq!(engine.unexplained_conflicts(), 1);
    let sent = commits(engine.handle(Input::Resync(Revision(12), Vec::new()), now()));
    assert_eq!(sent.len(), 1, "it is planned again from the snapshot");
    // Without a snapshot the caller is answered in the end.
    engine.handle(Input::Committed(sent[0].0, Outcome::Conflict(vec![found])), now());
    let effects = engine.handle(Input::Tick, at(6));
    assert!(matches!(answers(&effects)[..], [Err(Failure::Unavailable(FailureCause::Busy))]));
}

#[test]
fn snapshot_replaces_what_the_watch_did_not_show() {
    let mut engine = follower(stored([scope("web", &[vm(1)]), scope("db", &[vm(2)])]));
    let records = stored([Scope { incarnation: 7, ..scope("web", &[vm(1)]) }, scope("new", &[vm(3)])]);
    let newer = |(key, record): (Key, Versioned)| (key, Versioned { revision: Revision(5), ..record });
    engine.handle(Input::Resync(Revision(5), records.into_iter().map(newer).collect()), now());
    let state = engine.state();
    let mut paths: Vec<_> =
        state.scopes().map(|(id, held)| (id.to_string(), held.value.incarnation)).collect();
    paths.sort();
    assert_eq!(paths, [("default/default/new".to_owned(), 1), ("default/default/web".to_owned(), 7)]);
    assert!(state.vm(vm(2)).is_none() && state.vm(vm(3)).is_some());
    assert_eq!(engine.repaired_records(), 0, "all of it is newer than what the watch has shown");
    // Older: from a member of the store that lags.
    engine.handle(Input::Resync(Revision(4), Vec::new()), now());
    assert_eq!(engine.state().scopes().count(), 2);
    engine.handle(Input::Watched(Batch { revision: Revision(6), changes: [].into() }), now());
    engine.handle(Input::Resync(Revision(6), Vec::new()), now());
    assert_eq!(
        engine.repaired_records(),
        4,
        "the watch should have shown that two scopes and their VMs are gone"
    );
}

#[test]
fn command_of_which_a_part_is_durable_is_not_answered_as_unavailable() {
    let spec = |n| VmSpec::with_defaults(vm(n), format!("web_{n}").parse().unwrap());
    let vms = (1..=100).map(spec).collect();
    let put = PutScope::with_defaults("web".parse().unwrap(), ScopeKind::ScaleSet, vms);
    let (mut engine, _) = started(Settings::default(), Vec::new(), now());
    let (first, _) = commits(engine.handle(request(ScopeChange::Put(put)), now())).remove(0);
    let effects = engine.handle(Input::Committed(first, Outcome::Committed(Revision(1))), now());
    let (second, _) = commits(effects).remove(0);
    let full = Outcome::Refused(Refusal::Unavailable("the disk is full".into()));
    let effects = engine.handle(Input::Committed(second, full), now());
    assert!(matches!(answers(&effects)[..], [Err(Failure::OutcomeUnknown(_))]), "{:?}", answers(&effects));
}

#[test]
fn revoked_token_goes_even_if_the_watch_loses_its_deletion() {
    let mut engine = leader();
    let (id, txn) = created(&mut engine);
    let mut other = follower(Vec::new());
    for input in [shown(&txn, 12), Input::Tick] {
        other.handle(input, now());
    }
    assert_eq!(other.state().tokens().count(), 1);
    engine.handle(Input::Committed(id, Outcome::Committed(Revision(12))), now());
    let second = TokenCommand::Create(notbefore_core::samples::token("second"));
    let (id, _) = commits(engine.handle(request(second), now())).remove(0);
    engine.handle(Input::Committed(id, Outcome::Committed(Revision(13))), now());
    let revoke = TokenCommand::Revoke("ops".parse().unwrap());
    let (_, txn) = commits(engine.handle(request(revoke), now())).remove(0);
    assert_eq!(txn.delete.len(), 1);
    // `shown` has only what is written.
    other.handle(shown(&txn, 14), now());
    assert_eq!(other.state().tokens().count(), 0);
}
