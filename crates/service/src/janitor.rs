//! Janitor: removes expired records. Answers to commands expire after a day, history after its retention.
//!
//! It runs once an hour, a page at a time, and deletes only records that have not changed since they were read. Keys of
//! facts and ended events begin with their time, so only expired ones are read. Damaged records, and records that lead
//! to them, stay.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Operation, OperationState, Past, Scope, ScopeId};
use notbefore_engine::records::{self, CommandRecord, LastAt, Seen, prefix};
use notbefore_store::{Expect, Key, Outcome, ReadError, Snapshot, Store, TXN_OPERATIONS_MAX, Txn, Versioned};

use crate::clock::Clock;
use crate::runtime::EngineHandle;
use crate::scan::Scan;

/// How long the answer to a command is kept for repeated requests.
pub const COMMAND_RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// Interval between sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// Interval between checks during a clock hold.
const HOLD_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Longest step of the cut-off time from one sweep to the next.
const CUT_OFF_STEP_MAX: SignedDuration = SignedDuration::from_hours(24);
/// Maximum bytes of refused requests. A client controls how often it is refused; at the limited write rate, it takes a
/// week to push out the oldest.
const REFUSALS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Records read at a time.
const PAGE: usize = 500;

/// Number of records removed.
pub type Removed = Result<usize, ReadError>;

/// Sweeps now and then every hour, forever, unless the clock is held.
pub async fn run(
    store: Arc<dyn Store>,
    engine: EngineHandle,
    clock: Arc<dyn Clock>,
    history_retention: SignedDuration,
) {
    loop {
        if engine.stats().clock_hold().is_some() {
            tokio::time::sleep(HOLD_RETRY_INTERVAL).await;
            continue;
        }
        match sweep_bounded(&*store, clock.now(), history_retention).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed expired records"),
            Err(error) => tracing::warn!(%error, "cannot sweep expired records"),
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

/// Sweeps with a cut-off at most a day later than at the last sweep. A clock that is wrong for longer than its hold
/// then removes a day's records an hour, not all at once.
async fn sweep_bounded(store: &dyn Store, now: Timestamp, history_retention: SignedDuration) -> Removed {
    let last = store.snapshot().await?.get(records::SWEPT).await?;
    let last = last.and_then(|record| records::decode::<LastAt>(records::SWEPT, &record.value).ok());
    let latest = last.as_ref().and_then(|last| last.at.checked_add(CUT_OFF_STEP_MAX).ok());
    let cut_off = latest.map_or(now, |latest| now.min(latest));
    let put = vec![(Key::from(records::SWEPT), records::encode(&LastAt { at: cut_off }))];
    match (store.commit(Txn { put, ..Txn::default() }).await, last) {
        // The first sweep has nothing to compare the clock with: it only stores the time.
        (_, None) => Ok(0),
        (Outcome::Committed(_), Some(_)) => sweep(store, cut_off, history_retention).await,
        (_, Some(_)) => Ok(0),
    }
}

/// Whether a sweep would remove history.
pub async fn would_remove(
    store: &dyn Store,
    now: Timestamp,
    history_retention: SignedDuration,
) -> Result<bool, ReadError> {
    let snapshot = store.snapshot().await?;
    for prefix in [prefix::FACT, prefix::REFUSED, prefix::ENDED] {
        let oldest = snapshot.scan(prefix, None, 1).await?.records.into_iter().next();
        let oldest = oldest.and_then(|(key, _)| records::time_in_key(&key));
        if oldest.is_some_and(|oldest| now.duration_since(oldest) >= history_retention) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes expired records; returns how many.
pub async fn sweep(store: &dyn Store, now: Timestamp, history_retention: SignedDuration) -> Removed {
    let older = |at: Timestamp, kept: SignedDuration| now.duration_since(at) >= kept;
    let mut removed = 0;
    removed += sweep_prefix(store, prefix::COMMAND, |key, value| {
        records::decode::<CommandRecord>(key, value).is_ok_and(|record| older(record.at, COMMAND_RETENTION))
    })
    .await?;
    removed += sweep_prefix(store, prefix::OPERATION, |key, value| {
        let operation = records::decode::<Operation>(key, value);
        operation.is_ok_and(|operation| {
            let last = operation.not_before.unwrap_or(operation.requested_at).max(operation.requested_at);
            operation.state == OperationState::Closed && older(last, history_retention)
        })
    })
    .await?;
    // There is one for each scope, removed with the scope, except one that was in flight at that time.
    removed += sweep_prefix(store, prefix::HEARD, |key, value| {
        records::decode::<LastAt>(key, value).is_ok_and(|last| older(last.at, history_retention))
    })
    .await?;
    removed += sweep_oldest(store, prefix::FACT, |at| older(at, history_retention)).await?;
    removed += sweep_oldest(store, prefix::REFUSED, |at| older(at, history_retention)).await?;
    removed += trim(store, prefix::REFUSED, REFUSALS_BYTES_MAX).await?;
    removed += sweep_oldest(store, prefix::ENDED, |at| older(at, history_retention)).await?;
    removed += sweep_seen(store, now, history_retention).await?;
    Ok(removed)
}

/// Removes the oldest records of a kind whose keys are in order of time, until the rest is small enough.
async fn trim(store: &dyn Store, prefix: &str, bytes_max: usize) -> Removed {
    let snapshot = store.snapshot().await?;
    let (mut pages, mut bytes) = (Scan::new(&*snapshot, prefix, PAGE), 0);
    while let Some(page) = pages.next().await? {
        bytes += page.records.iter().map(|(_, record)| record.value.len()).sum::<usize>();
    }
    let mut excess = bytes.saturating_sub(bytes_max);
    if excess == 0 {
        return Ok(0);
    }
    sweep_prefix(store, prefix, |_, value| {
        let oldest = excess > 0;
        excess = excess.saturating_sub(value.len());
        oldest
    })
    .await
}

/// Checks every record of a kind.
async fn sweep_prefix(
    store: &dyn Store,
    prefix: &str,
    mut is_past: impl FnMut(&str, &[u8]) -> bool,
) -> Removed {
    let snapshot = store.snapshot().await?;
    let (mut pages, mut removed) = (Scan::new(&*snapshot, prefix, PAGE), 0);
    while let Some(page) = pages.next().await? {
        let past = page.records.into_iter().filter(|(key, record)| is_past(key, &record.value));
        removed += remove(store, past.collect()).await;
    }
    Ok(removed)
}

/// Checks records whose keys begin with their time, from the oldest to the first that stays. An entry of the index of
/// ended events takes its event with it.
async fn sweep_oldest(store: &dyn Store, prefix: &str, is_past: impl Fn(Timestamp) -> bool) -> Removed {
    let snapshot = store.snapshot().await?;
    let (mut pages, mut removed) = (Scan::new(&*snapshot, prefix, PAGE), 0);
    while let Some(page) = pages.next().await? {
        let mut past = Vec::new();
        for (key, record) in page.records {
            if !records::time_in_key(&key).is_none_or(&is_past) {
                return Ok(removed + remove(store, past).await);
            }
            match event_of(&*snapshot, &key).await {
                Err(ReadError::Damaged { .. }) => continue,
                event => past.extend(event?),
            }
            past.push((key, record));
        }
        removed += remove(store, past).await;
    }
    Ok(removed)
}

/// The event of an index entry, unless it ended later under another entry.
async fn event_of(snapshot: &dyn Snapshot, entry: &str) -> Result<Option<(Key, Versioned)>, ReadError> {
    let Some(event) = records::event_in_key(entry) else { return Ok(None) };
    let key = records::past(event);
    let Some(record) = snapshot.get(&key).await? else { return Ok(None) };
    let is_indexed = records::decode::<Past>(&key, &record.value)
        .is_ok_and(|past| *records::ended(past.ended_at, event) == *entry);
    Ok(is_indexed.then_some((key, record)))
}

/// Removes reads of events whose own record is gone and that are not live. An event with a long notice may be live for
/// longer than history is kept.
async fn sweep_seen(store: &dyn Store, now: Timestamp, history_retention: SignedDuration) -> Removed {
    let snapshot = store.snapshot().await?;
    let (mut pages, mut removed) = (Scan::new(&*snapshot, prefix::SEEN, PAGE), 0);
    while let Some(page) = pages.next().await? {
        let mut past = Vec::new();
        for one in page.records {
            let Ok(seen) = records::decode::<Seen>(&one.0, &one.1.value) else { continue };
            // Most records are younger, and need no further reads.
            let is_old = seen.reads.iter().all(|read| now.duration_since(read.at) >= history_retention);
            if is_old && !is_known(&*snapshot, &one.0, &seen.scope).await? {
                past.push(one);
            }
        }
        removed += remove(store, past).await;
    }
    Ok(removed)
}

/// Whether the event of a record of reads is live or in history.
async fn is_known(snapshot: &dyn Snapshot, key: &str, scope: &ScopeId) -> Result<bool, ReadError> {
    let Some(id) = records::event_in_key(key) else { return Ok(true) };
    let key = records::scope(scope);
    match (snapshot.get(&records::past(id)).await, snapshot.get(&key).await) {
        (Ok(Some(_)) | Err(ReadError::Damaged { .. }), _) | (_, Err(ReadError::Damaged { .. })) => Ok(true),
        (past, scope) => {
            // A scope that cannot be decoded may have the event.
            let has_event = |scope: &Scope| scope.event(id).is_some();
            let scope = past.and(scope)?.map(|record| records::decode::<Scope>(&key, &record.value));
            Ok(scope.is_some_and(|scope| scope.as_ref().map_or(true, has_event)))
        }
    }
}

/// Removes records that have not changed; returns how many.
async fn remove(store: &dyn Store, records: Vec<(Key, Versioned)>) -> usize {
    let mut removed = 0;
    // Each is compared and removed; one operation is for the leader's fence.
    for some in records.chunks((TXN_OPERATIONS_MAX - 1) / 2) {
        let unchanged =
            |(key, record): &(Key, Versioned)| Expect { key: key.clone(), revision: Some(record.revision) };
        let txn = Txn {
            expect: some.iter().map(unchanged).collect(),
            put: Vec::new(),
            delete: some.iter().map(|(key, _)| key.clone()).collect(),
        };
        if let Outcome::Committed(_) = store.commit(txn).await {
            removed += some.len();
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_core::Cause;
    use notbefore_core::event::Outcome as Ending;
    use notbefore_core::samples::{self, event_id, now, operation, scope_id, started};
    use notbefore_engine::{Answer, FactBatch};
    use notbefore_store::memory::MemoryStore;

    const KEPT: SignedDuration = SignedDuration::from_hours(48);

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
        let store = MemoryStore::new();
        let (go, stay) = records_of_each_kind();
        let put = go.iter().chain(&stay).cloned().collect();
        assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));

        assert_eq!(sweep(&store, now(), KEPT).await, Ok(go.len()));
        assert_eq!(keys(&store).await, sorted(&stay));
        assert_eq!(sweep(&store, now(), KEPT).await, Ok(0));

        // Only the fleet and open operations stay forever.
        let much_later = now().checked_add(SignedDuration::from_hours(10_000)).unwrap();
        sweep(&store, much_later, KEPT).await.unwrap();
        let left = [stay[5].clone(), stay[7].clone()];
        assert_eq!(keys(&store).await, sorted(&left));
    }

    #[tokio::test]
    async fn cut_off_advances_at_most_one_day() {
        let store = MemoryStore::new();
        let day = |n: i64| hours_ago(0) + SignedDuration::from_hours(24 * n);
        let put = (0..10).map(|n| (records::refused(day(n), "node", 0), bytes::Bytes::new())).collect();
        store.commit(Txn { put, ..Txn::default() }).await;
        assert_eq!(sweep_bounded(&store, day(2), KEPT).await, Ok(0), "no earlier sweep to compare with");
        assert_eq!(would_remove(&store, day(1), KEPT).await, Ok(false));
        assert_eq!(would_remove(&store, day(100), KEPT).await, Ok(true));
        // The clock is far ahead: a sweep removes only a day's records.
        assert_eq!(sweep_bounded(&store, day(100), KEPT).await, Ok(2));
        assert_eq!(sweep_bounded(&store, day(100), KEPT).await, Ok(1));
        // The clock is corrected.
        assert_eq!(sweep_bounded(&store, day(5), KEPT).await, Ok(1));
        assert_eq!(keys(&store).await.len(), 6 + 1, "the time of the sweep is a record too");
    }

    #[tokio::test]
    async fn reads_are_kept_as_long_as_their_event() {
        let store = MemoryStore::new();
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
        assert_eq!(sweep(&store, now, SignedDuration::from_hours(48)).await, Ok(1));
        let left = store.snapshot().await.unwrap().scan(prefix::SEEN, None, 100).await.unwrap();
        let keys: Vec<&str> = left.records.iter().map(|(key, _)| &**key).collect();
        assert_eq!(
            keys,
            [known, young, live].map(|event| records::seen(event, "a")).each_ref().map(|key| &**key)
        );
    }

    #[tokio::test]
    async fn one_sweep_removes_a_thousand_ended_events() {
        let store = MemoryStore::new();
        for id in 0..1_000 {
            let put = vec![
                (records::ended(hours_ago(60), event_id(id)), bytes::Bytes::new()),
                past(id, hours_ago(60)),
            ];
            store.commit(Txn { put, ..Txn::default() }).await;
        }
        assert_eq!(sweep(&store, now(), KEPT).await, Ok(2_000));
        assert!(keys(&store).await.is_empty());
    }

    #[tokio::test]
    async fn trim_removes_oldest_above_limit() {
        let store = MemoryStore::new();
        let at = |second| Timestamp::from_second(second).unwrap();
        let value = bytes::Bytes::from(vec![b'x'; 100]);
        let put = (0..10).map(|n| (records::refused(at(1_000 + n), "node", 0), value.clone())).collect();
        store.commit(Txn { put, ..Txn::default() }).await;
        assert_eq!(trim(&store, prefix::REFUSED, 1_000).await, Ok(0));
        assert_eq!(trim(&store, prefix::REFUSED, 450).await, Ok(6));
        let newest: Vec<Key> = (6..10).map(|n| records::refused(at(1_000 + n), "node", 0)).collect();
        assert_eq!(keys(&store).await, newest);
    }
}
