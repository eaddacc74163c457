//! Sweeps by age and by size, on a store in memory.

use super::*;
use notbefore_core::Cause;
use notbefore_core::event::Outcome as Ending;
use notbefore_core::samples::{self, event_id, now, operation, scope_id, started};
use notbefore_engine::{Answer, FactBatch};
use notbefore_store::memory::MemoryStore;

const KEPT: SignedDuration = SignedDuration::from_hours(48);

fn janitor(store: &Arc<MemoryStore>) -> Janitor {
    limited(store, None)
}

fn limited(store: &Arc<MemoryStore>, bytes_max: Option<u64>) -> Janitor {
    Janitor::new(store.clone(), HistoryLimits { retention: KEPT, bytes_max })
}

fn hours_ago(hours: i64) -> Timestamp {
    now().checked_sub(SignedDuration::from_hours(hours)).unwrap()
}

type Record = (Key, bytes::Bytes);

fn past(id: u128, ended_at: Timestamp) -> Record {
    let past = Past {
        scope: scope_id("web"),
        outcome: Ending::Completed,
        ended_at,
        event: started(samples::event(id, Cause::HostReboot, &[])),
    };
    (records::past(event_id(id)), records::encode(&past))
}

fn stored(id: u128, state: OperationState, at: Timestamp) -> Record {
    let operation = Operation {
        requested_at: at,
        not_before: None,
        state,
        ..operation(id, Cause::HostReboot, Vec::new())
    };
    (records::operation(operation.id), records::encode(&operation))
}

/// Records of each kind with their age in hours, and those that expire with a retention of 48 hours.
fn records_of_each_kind() -> (Vec<Record>, Vec<Record>) {
    let command = |key, hours| {
        let answer = CommandRecord { hash: String::new(), at: hours_ago(hours), answer: Answer::Done };
        (records::command("root", key), records::encode(&answer))
    };
    let entry = |hours, id| (records::ended(hours_ago(hours), event_id(id)), bytes::Bytes::new());
    let facts = |hours| {
        let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
        (records::fact(hours_ago(hours), "node", 1), records::encode(&batch))
    };
    let heard = |name: &str, hours| {
        let scope = scope_id(name);
        (records::heard(&scope), records::encode(&LastAt { at: hours_ago(hours) }))
    };
    let go = vec![
        command("old", 24),
        entry(49, 1),
        past(1, hours_ago(49)),
        // Written just before a crash: the event has ended later.
        entry(50, 2),
        facts(48),
        facts(1_000),
        stored(1, OperationState::Closed, hours_ago(48)),
        heard("gone", 48),
    ];
    let scope = samples::scope("web", &[]);
    let stay = vec![
        command("new", 23),
        entry(47, 2),
        past(2, hours_ago(47)),
        facts(47),
        stored(2, OperationState::Closed, hours_ago(47)),
        stored(3, OperationState::Open, hours_ago(1_000)),
        heard("web", 47),
        (records::scope(&scope.id()), records::encode(&scope)),
    ];
    (go, stay)
}

async fn keys(store: &MemoryStore) -> Vec<Key> {
    let all = store.snapshot().await.unwrap().scan("", None, 1_000).await.unwrap();
    all.records.into_iter().map(|(key, _)| key).collect()
}

fn sorted(records: &[Record]) -> Vec<Key> {
    let mut keys: Vec<Key> = records.iter().map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn sweep_removes_only_expired_records() {
    let store = Arc::new(MemoryStore::new());
    let (go, stay) = records_of_each_kind();
    let put = go.iter().chain(&stay).cloned().collect();
    assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));

    let mut janitor = janitor(&store);
    assert_eq!(janitor.sweep(now()).await, Ok(go.len()));
    assert_eq!(keys(&store).await, sorted(&stay));
    assert_eq!(janitor.sweep(now()).await, Ok(0));

    // Only the fleet and open operations stay forever.
    let much_later = now().checked_add(SignedDuration::from_hours(10_000)).unwrap();
    janitor.sweep(much_later).await.unwrap();
    let left = [stay[5].clone(), stay[7].clone()];
    assert_eq!(keys(&store).await, sorted(&left));
}

#[tokio::test]
async fn cut_off_advances_at_most_one_day() {
    let store = Arc::new(MemoryStore::new());
    let day = |n: i64| hours_ago(0) + SignedDuration::from_hours(24 * n);
    let put = (0..10).map(|n| (records::refused(day(n), "node", 0), bytes::Bytes::new())).collect();
    store.commit(Txn { put, ..Txn::default() }).await;
    let mut janitor = janitor(&store);
    assert_eq!(janitor.sweep_bounded(day(2)).await, Ok(0), "no earlier sweep to compare with");
    assert_eq!(would_remove(&*store, day(1), KEPT).await, Ok(false));
    assert_eq!(would_remove(&*store, day(100), KEPT).await, Ok(true));
    // The clock is far ahead: a sweep removes only a day's records.
    assert_eq!(janitor.sweep_bounded(day(100)).await, Ok(2));
    assert_eq!(janitor.sweep_bounded(day(100)).await, Ok(1));
    // The clock is corrected.
    assert_eq!(janitor.sweep_bounded(day(5)).await, Ok(1));
    assert_eq!(keys(&store).await.len(), 6 + 1, "the time of the sweep is a record too");
}

#[tokio::test]
async fn reads_are_kept_as_long_as_their_event() {
    let store = Arc::new(MemoryStore::new());
    let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let [gone, known, young, live] = [1, 2, 3, 4].map(event_id);
    let mut scope = samples::scope("web", &[]);
    scope.events.push(samples::event(4, Cause::PredictedFailure, &[]));
    let seen = |hours| {
        let at = now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
        let vm = samples::vm(9);
        let reads = vec![records::SeenRead { vm, at, version: "2020-07-01".into() }];
        records::encode(&Seen { scope: scope.id(), reads, added: Vec::new() })
    };
    // Only the existence of the event's record counts. It cannot be decoded, so it stays.
    let put: Vec<(Key, bytes::Bytes)> = vec![
        (records::seen(gone, "a"), seen(49)),
        (records::seen(known, "a"), seen(49)),
        (records::past(known), bytes::Bytes::from_static(b"1 {}")),
        (records::seen(young, "a"), seen(47)),
        (records::seen(live, "a"), seen(49)),
        (records::scope(&scope.id()), records::encode(&scope)),
    ];
    let outcome = store.commit(Txn { put, ..Txn::default() }).await;
    assert!(matches!(outcome, Outcome::Committed(_)));
    assert_eq!(janitor(&store).sweep(now).await, Ok(1));
    let left = store.snapshot().await.unwrap().scan(prefix::SEEN, None, 100).await.unwrap();
    let keys: Vec<&str> = left.records.iter().map(|(key, _)| &**key).collect();
    assert_eq!(
        keys,
        [known, young, live].map(|event| records::seen(event, "a")).each_ref().map(|key| &**key)
    );
}

#[tokio::test]
async fn one_sweep_removes_a_thousand_ended_events() {
    let store = Arc::new(MemoryStore::new());
    for id in 0..1_000 {
        let put =
            vec![(records::ended(hours_ago(60), event_id(id)), bytes::Bytes::new()), past(id, hours_ago(60))];
        store.commit(Txn { put, ..Txn::default() }).await;
    }
    assert_eq!(janitor(&store).sweep(now()).await, Ok(2_000));
    assert!(keys(&store).await.is_empty());
}

async fn write(store: &MemoryStore, records: Vec<Record>) {
    for put in records.chunks(90) {
        let outcome = store.commit(Txn { put: put.to_vec(), ..Txn::default() }).await;
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    }
}

fn bytes(records: &[Record]) -> u64 {
    records.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
}

/// What happened in an hour: a fact, an ended event with its read, and a closed operation.
fn hour(hours_ago_: u8) -> Vec<Record> {
    let (at, id) = (hours_ago(hours_ago_.into()), u128::from(hours_ago_));
    let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
    let reads = vec![records::SeenRead { vm: samples::vm(9), at, version: "2020-07-01".into() }];
    let seen = Seen { scope: scope_id("web"), reads, added: Vec::new() };
    vec![
        (records::fact(at, "node", 1), records::encode(&batch)),
        (records::ended(at, event_id(id)), bytes::Bytes::new()),
        past(id, at),
        (records::seen(event_id(id), "node"), records::encode(&seen)),
        stored(id, OperationState::Closed, at),
    ]
}

#[tokio::test]
async fn history_above_its_bytes_loses_the_oldest_of_each_kind() {
    let store = Arc::new(MemoryStore::new());
    let open = stored(99, OperationState::Open, hours_ago(47));
    let scope = samples::scope("web", &[]);
    let stays = vec![open.clone(), (records::scope(&scope.id()), records::encode(&scope))];
    write(&store, stays.clone()).await;
    for hours in 1..=40 {
        write(&store, hour(hours)).await;
    }
    let all = bytes(&(1..=40).flat_map(hour).collect::<Vec<_>>()) + bytes(std::slice::from_ref(&open));
    let mut janitor = limited(&store, Some(all));
    assert_eq!(janitor.sweep(now()).await, Ok(0), "nothing is too old");
    assert_eq!(janitor.check_size(now()).await, Ok(SizeCheck::default()), "and it fits");
    assert_eq!(janitor.stats.bytes.get(), all);

    janitor.limits.bytes_max = Some(all / 2);
    let check = janitor.check_size(now()).await.unwrap();
    // An event goes together with its reads.
    let groups = (1..=40).rev().flat_map(|hours| {
        let records = hour(hours);
        [records[..1].to_vec(), records[1..4].to_vec(), records[4..].to_vec()]
    });
    let (mut size, mut gone, mut kept) = (all, 0, stays);
    for group in groups {
        match size > all / 2 / 16 * 15 {
            true => (size, gone) = (size - bytes(&group), gone + group.len()),
            false => kept.extend(group),
        }
    }
    assert_eq!(keys(&store).await, sorted(&kept));
    assert_eq!((check.history.records, janitor.size.history()), (gone, size));
    let trimmed = janitor.stats.trimmed.get_or_create(&[("kind", "history".to_owned())]).get();
    assert_eq!(trimmed, gone as u64);
    assert_eq!(janitor.check_size(now()).await, Ok(SizeCheck::default()), "once is enough");
}

#[tokio::test]
async fn node_that_leads_again_removes_nothing_within_the_limit() {
    let store = Arc::new(MemoryStore::new());
    for hours in 21..=40 {
        write(&store, hour(hours)).await;
    }
    let all = bytes(&(21..=40).flat_map(hour).collect::<Vec<_>>());
    let (mut a, mut b) = (limited(&store, Some(all)), limited(&store, Some(all)));
    a.sweep(now()).await.unwrap();
    assert_eq!(a.check_size(now()).await, Ok(SizeCheck::default()));
    // b leads: it removes what is too old, and as much is written again.
    b.limits.retention = SignedDuration::from_hours(20);
    b.sweep(now()).await.unwrap();
    assert!(keys(&store).await.is_empty());
    for hours in 1..=20 {
        write(&store, hour(hours)).await;
    }
    let before = keys(&store).await;
    let mut a = a.afresh();
    a.sweep(now()).await.unwrap();
    a.check_size(now()).await.unwrap();
    assert_eq!(keys(&store).await.len(), before.len());
}

#[tokio::test]
async fn size_counts_new_records_once_and_again_after_the_clock_was_set_back() {
    let store = Arc::new(MemoryStore::new());
    let mut janitor = janitor(&store);
    write(&store, hour(3)).await;
    // Its commit may still show older records.
    let last_minute: Vec<Record> = hour(0);
    write(&store, last_minute.clone()).await;
    let ordered = |records: &[Record]| bytes(&records[..3]);
    for _ in 0..2 {
        assert_eq!(janitor.size.count(&*store, now()).await, Ok(true));
        assert_eq!(janitor.size.history(), ordered(&hour(3)));
    }
    let later = now() + SignedDuration::from_secs(61);
    assert_eq!(janitor.size.count(&*store, later).await, Ok(true));
    assert_eq!(janitor.size.history(), ordered(&hour(3)) + ordered(&last_minute));
    // The clock was ahead by two hours: further records come before those counted last.
    write(&store, [hour(2), hour(1)].concat()).await;
    assert_eq!(janitor.size.count(&*store, later - SignedDuration::from_hours(1)).await, Ok(true));
    assert_eq!(janitor.size.history(), (1..=3).map(|hours| ordered(&hour(hours))).sum::<u64>());
}

#[tokio::test]
async fn one_check_removes_a_bounded_number_of_entries() {
    let store = Arc::new(MemoryStore::new());
    let batch = |n: i64| {
        let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
        (records::fact(hours_ago(2) + SignedDuration::from_millis(n), "node", 1), records::encode(&batch))
    };
    let many = TRIM_ENTRIES_MAX + 100;
    write(&store, (0..many as i64).map(batch).collect()).await;
    let mut janitor = limited(&store, Some(0));
    let first = janitor.check_size(now()).await.unwrap().history;
    assert_eq!((first.records, first.has_more), (TRIM_ENTRIES_MAX, true));
    let second = janitor.check_size(now()).await.unwrap().history;
    assert_eq!((second.records, second.has_more), (100, false));
}

#[tokio::test]
async fn refusals_have_a_limit_of_their_own() {
    let limits = |bytes_max| HistoryLimits { retention: KEPT, bytes_max };
    assert_eq!(limits(Some(512 << 20)).refusals_bytes_max(), 8 << 20, "in a cluster");
    assert_eq!(limits(Some(HistoryLimits::BYTES_MAX)).refusals_bytes_max(), 256 << 20);
    assert_eq!(limits(None).refusals_bytes_max(), 256 << 20);

    let store = Arc::new(MemoryStore::new());
    let value = bytes::Bytes::from(vec![b'x'; 1_000]);
    let refused =
        |n: i64| (records::refused(hours_ago(3) + SignedDuration::from_secs(n), "node", 0), value.clone());
    let all: Vec<Record> = (0..100).map(refused).collect();
    write(&store, all.clone()).await;
    write(&store, hour(40)).await;
    let half = bytes(&all) / 2;
    let mut janitor = limited(&store, Some(half * HistoryLimits::REFUSALS_PART));
    let check = janitor.check_size(now()).await.unwrap();
    assert_eq!((check.history, check.refusals.records), (Trimmed::default(), 54), "history stays");
    let newest: Vec<Record> = all[54..].iter().cloned().chain(hour(40)).collect();
    assert_eq!(keys(&store).await, sorted(&newest));
    assert_eq!(janitor.size.refusals(), bytes(&all[54..]));
}

#[tokio::test]
async fn poll_time_of_a_removed_scope_is_removed_after_a_day() {
    let store = Arc::new(MemoryStore::new());
    let heard = |name: &str, hours| {
        (records::heard(&scope_id(name)), records::encode(&LastAt { at: hours_ago(hours) }))
    };
    let scope = samples::scope("web", &[]);
    let stay = vec![
        heard("web", 30),
        heard("removed-lately", 23),
        (records::scope(&scope.id()), records::encode(&scope)),
    ];
    write(&store, stay.clone()).await;
    // The process ended after the scope was removed, while a poll time was on its way to the store.
    write(&store, vec![heard("removed", 25)]).await;
    assert_eq!(janitor(&store).sweep(now()).await, Ok(1));
    assert_eq!(keys(&store).await, sorted(&stay));
}
