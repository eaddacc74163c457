//! Enabled scopes: a scope's first poll is stored within a second and at a clean stop, and a time from the store
//! counts an hour longer.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{now, scope_id, standalone, vm};
use notbefore_core::{ScopeId, Settings};
use notbefore_engine::records::{self, LastAt, prefix};
use notbefore_engine::{Engine, Input};
use notbefore_store::{Key, Outcome, Refusal, Revision, Txn, Versioned};

use crate::support::{commits, started, stored};

fn later(milliseconds: i64) -> Timestamp {
    now() + SignedDuration::from_millis(milliseconds)
}

fn records(scopes: u128) -> Vec<(Key, Versioned)> {
    stored((1..=scopes).map(|n| standalone(&format!("scope-{n}"), vm(n))))
}

/// An engine over these records, after its start.
fn engine(records: Vec<(Key, Versioned)>) -> Engine {
    let (mut engine, _) = started(Settings::default(), records, now());
    for (revision, (id, _)) in commits(engine.handle(Input::Tick, now())).into_iter().enumerate() {
        let revision = Revision(2 + revision as u64);
        engine.handle(Input::Committed(id, Outcome::Committed(revision)), now());
    }
    engine
}

fn poll_time_records(txn: &Txn) -> usize {
    txn.put.iter().filter(|(key, _)| key.starts_with(prefix::HEARD)).count()
}

fn id(n: u128) -> ScopeId {
    scope_id(&format!("scope-{n}"))
}

#[test]
fn first_request_of_a_scope_is_stored_within_a_second() {
    let mut engine = engine(records(1));
    assert!(commits(engine.handle(Input::Polled(id(1), now()), now())).is_empty(), "waits for other polls");
    let due = engine.next_due().unwrap();
    assert!(due > now() && due < later(1_000), "{due}");
    let stored = commits(engine.handle(Input::Tick, due));
    assert_eq!(stored.iter().map(|(_, txn)| poll_time_records(txn)).sum::<usize>(), 1);
}

#[test]
fn many_first_requests_are_stored_in_batches_four_at_a_time() {
    const SCOPES: u128 = 500;
    let mut engine = engine(records(SCOPES));
    for n in 1..=SCOPES {
        engine.handle(Input::Polled(id(n), now()), now());
    }
    let mut pending = commits(engine.handle(Input::Tick, later(600)));
    assert_eq!(pending.iter().map(|(_, txn)| poll_time_records(txn)).collect::<Vec<_>>(), [90; 4]);
    let mut stored = 0;
    for revision in 10.. {
        let Some((id, txn)) = pending.pop() else { break };
        stored += poll_time_records(&txn);
        let committed = Input::Committed(id, Outcome::Committed(Revision(revision)));
        pending.extend(commits(engine.handle(committed, later(700))));
        assert!(pending.len() <= 4);
    }
    assert_eq!(stored, SCOPES as usize);
    assert!(engine.is_idle());
}

#[test]
fn clean_stop_stores_recent_polls() {
    let mut engine = engine(records(1));
    engine.handle(Input::Polled(id(1), now()), now());
    let stored = commits(engine.handle(Input::Closing, later(1)));
    assert_eq!(stored.iter().map(|(_, txn)| poll_time_records(txn)).sum::<usize>(), 1);
}

#[test]
fn refused_poll_time_is_retried_after_a_second() {
    let mut engine = engine(records(1));
    engine.handle(Input::Polled(id(1), now()), now());
    let (refused, _) = commits(engine.handle(Input::Tick, later(600))).remove(0);
    let full = Outcome::Refused(Refusal::Unavailable("no space left".to_owned()));
    assert!(commits(engine.handle(Input::Committed(refused, full), later(700))).is_empty());
    let again = commits(engine.handle(Input::Tick, later(1_700)));
    assert_eq!(again.iter().map(|(_, txn)| poll_time_records(txn)).sum::<usize>(), 1);
}

#[test]
fn stored_poll_time_enables_scope_an_hour_longer() {
    let mut engine_of_guests = engine(records(1));
    engine_of_guests.handle(Input::Polled(id(1), now()), now());
    let day_and_minute = SignedDuration::from_secs(86_400 + 60);
    let instant = SignedDuration::from_millis(1);
    assert!(engine_of_guests.is_enabled(&id(1), now() + day_and_minute - instant));
    assert!(!engine_of_guests.is_enabled(&id(1), now() + day_and_minute));

    let at = |at| records::encode(&LastAt { at });
    let stored: BTreeMap<Key, _> =
        [(records::heard(&id(1)), at(now())), (Key::from(records::ALIVE), at(now()))].into();
    let stored = stored.into_iter().map(|(key, value)| (key, Versioned { revision: Revision(1), value }));
    let mut restarted = engine(records(1).into_iter().chain(stored).collect());
    let hour = SignedDuration::from_hours(1);
    assert!(restarted.is_enabled(&id(1), now() + day_and_minute + hour - instant));
    assert!(!restarted.is_enabled(&id(1), now() + day_and_minute + hour));
    // After a new poll the time is exact, and gets no allowance.
    restarted.handle(Input::Polled(id(1), now()), now());
    assert!(!restarted.is_enabled(&id(1), now() + day_and_minute));
}

#[test]
fn forgotten_polls_do_not_count_until_the_next() {
    let mut engine = engine(records(2));
    for scope in [id(1), id(2)] {
        engine.handle(Input::Polled(scope, now()), now());
    }
    engine.handle(Input::PollsForgotten(id(1)), now());
    assert_eq!([id(1), id(2)].map(|scope| engine.is_enabled(&scope, now())), [false, true]);
    engine.handle(Input::Polled(id(1), now()), now());
    assert!(engine.is_enabled(&id(1), now()));
}

#[test]
fn new_leader_takes_every_scope_for_enabled_until_it_knows_all_polls() {
    let mut engine = engine(records(1));
    assert!(!engine.is_enabled(&id(1), now()), "the only node of a store knows all polls");
    engine.handle(Input::PollsComplete(false), now());
    assert!(engine.is_enabled(&id(1), now()));
    engine.handle(Input::PollsComplete(true), now());
    assert!(!engine.is_enabled(&id(1), now()));
}
