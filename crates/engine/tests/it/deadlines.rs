//! Many events that are due in the same second: they start in batches, so that the store has work and other requests
//! are handled meanwhile. Each start is one transaction.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{now, operation_id, standalone, vm};
use notbefore_core::{Cause, Settings};
use notbefore_engine::records::prefix;
use notbefore_engine::{Engine, Input, JobId, NewOperation, OperationCommand, TargetSelector};
use notbefore_store::{Outcome, Revision, Txn};

use crate::support::{commits, request, started, stored};

const MANY: u128 = 1_000;

/// Completes commits and returns how many wrote an operation's record.
fn complete(engine: &mut Engine, mut pending: Vec<(JobId, Txn)>, at: Timestamp, from: u64) -> usize {
    let mut written = 0;
    for revision in from.. {
        let Some((id, txn)) = pending.pop() else { break };
        written += usize::from(txn.put.iter().any(|(key, _)| key.starts_with(prefix::OPERATION)));
        let committed = Input::Committed(id, Outcome::Committed(Revision(revision)));
        pending.extend(commits(engine.handle(committed, at)));
    }
    written
}

/// An engine with a requested event in each scope, and the commits of that.
fn with_scheduled_events(due: Timestamp) -> (Engine, Vec<(JobId, Txn)>) {
    let scopes = (1..=MANY).map(|n| standalone(&format!("scope-{n}"), vm(n)));
    let (mut engine, _) = started(Settings::default(), stored(scopes), now());
    let mut pending = commits(engine.handle(Input::Tick, now()));
    for n in 1..=MANY {
        let selector = TargetSelector::Vms(vec![vm(n)]);
        let new = NewOperation {
            not_before: Some(due),
            ..NewOperation::with_defaults(operation_id(n), Cause::HostReboot, selector)
        };
        pending.extend(commits(engine.handle(request(OperationCommand::Schedule(new)), now())));
    }
    (engine, pending)
}

#[test]
fn due_scopes_start_in_batches_and_commit_once() {
    let due = now() + SignedDuration::from_mins(30);
    let (mut engine, pending) = with_scheduled_events(due);
    let scheduled = complete(&mut engine, pending, now(), 2);
    assert_eq!(scheduled, MANY as usize);
    assert!(engine.next_due() > Some(now()));

    // Background writes are due too.
    let mut slices = vec![commits(engine.handle(Input::Tick, due))];
    while engine.next_due() <= Some(due) {
        slices.push(commits(engine.handle(Input::Tick, due)));
    }
    let largest = slices.iter().map(Vec::len).max().unwrap();
    assert!(largest < 200, "{largest} at once");
    assert!(slices.len() > 5, "{} slices", slices.len());
    let begun: Vec<_> = slices.into_iter().flatten().collect();
    let scopes =
        begun.iter().filter(|(_, txn)| txn.put.iter().any(|(key, _)| key.starts_with(prefix::SCOPE)));
    assert_eq!(scopes.count(), MANY as usize);
    // An operation with one part need not be written.
    assert_eq!(complete(&mut engine, begun, due, 10_000), 0);
    assert!(engine.state().scopes().all(|(_, held)| held.value.events[0].is_started()));
}

#[test]
fn inputs_handled_together_start_one_batch() {
    let due = now() + SignedDuration::from_mins(30);
    let (mut engine, mut pending) = with_scheduled_events(due);
    let late = pending.split_off(MANY as usize - 300);
    complete(&mut engine, pending, now(), 2);

    let committed = late.into_iter().zip(10_000..);
    let committed = committed.map(|((id, _), n)| Input::Committed(id, Outcome::Committed(Revision(n))));
    let mut begun = commits(engine.handle_all(committed, due));
    assert!((100..200).contains(&begun.len()), "{} at once", begun.len());
    // The rest is still due.
    while engine.next_due() <= Some(due) {
        begun.extend(commits(engine.handle(Input::Tick, due)));
    }
    complete(&mut engine, begun, due, 20_000);
    assert!(engine.state().scopes().all(|(_, held)| held.value.events[0].is_started()));
}
