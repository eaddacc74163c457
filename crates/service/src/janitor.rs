//! Removes what is kept only for a while: answers to commands after a day, history after its retention.
//!
//! It looks once an hour, a page at a time, and deletes only what is still as it was when it looked.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{EventId, Operation, OperationState, Past, Scope, ScopeId};
use notbefore_engine::records::{self, CommandRecord, FactBatch, Seen, prefix};
use notbefore_store::{Expect, Key, Outcome, ReadError, Snapshot, Store, TXN_OPERATIONS_MAX, Txn, Versioned};
use uuid::Uuid;

use crate::clock::Clock;

/// For how long the answer to a command is kept for those who ask twice.
pub const COMMANDS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// How often the janitor looks.
const EVERY: Duration = Duration::from_secs(3_600);
/// How many records it looks at in one go.
const PAGE: usize = 500;

/// Sweeps now and then every hour, for ever.
pub async fn run(store: Arc<dyn Store>, clock: Arc<dyn Clock>, history_kept: SignedDuration) {
    loop {
        match sweep(&*store, clock.now(), history_kept).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed records past their time"),
            Err(error) => tracing::warn!(%error, "could not look for records past their time"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Removes what is past its time; answers how many records that was.
pub async fn sweep(
    store: &dyn Store,
    now: Timestamp,
    history_kept: SignedDuration,
) -> Result<usize, ReadError> {
    let older = |at: Timestamp, kept: SignedDuration| now.duration_since(at) >= kept;
    let mut removed = 0;
    removed += sweep_prefix(store, prefix::COMMAND, |key, value| {
        records::decode::<CommandRecord>(key, value).is_ok_and(|record| older(record.at, COMMANDS_KEPT))
    })
    .await?;
    removed += sweep_prefix(store, prefix::PAST, |key, value| {
        records::decode::<Past>(key, value).is_ok_and(|past| older(past.ended_at, history_kept))
    })
    .await?;
    removed += sweep_prefix(store, prefix::ENDED, |key, _| {
        let millis = key.strip_prefix(prefix::ENDED).and_then(|rest| rest.split('/').next());
        let at =
            millis.and_then(|text| text.parse().ok()).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        at.is_some_and(|at| older(at, history_kept))
    })
    .await?;
    removed += sweep_prefix(store, prefix::FACT, |key, value| {
        let batch = records::decode::<FactBatch>(key, value);
        batch.is_ok_and(|batch| batch.facts.iter().all(|fact| older(fact.at, history_kept)))
    })
    .await?;
    removed += sweep_prefix(store, prefix::OPERATION, |key, value| {
        let operation = records::decode::<Operation>(key, value);
        operation.is_ok_and(|operation| {
            let last = operation.not_before.unwrap_or(operation.requested_at).max(operation.requested_at);
            operation.state == OperationState::Closed && older(last, history_kept)
        })
    })
    .await?;
    removed += sweep_seen(store, now, history_kept).await?;
    Ok(removed)
}

async fn sweep_prefix(
    store: &dyn Store,
    prefix: &str,
    is_past: impl Fn(&str, &[u8]) -> bool,
) -> Result<usize, ReadError> {
    let snapshot = store.snapshot().await?;
    let mut after: Option<Key> = None;
    let mut removed = 0;
    loop {
        let page = snapshot.scan(prefix, after.as_deref(), PAGE).await?;
        after = page.records.last().map(|(key, _)| key.clone());
        let past: Vec<&(Key, Versioned)> =
            page.records.iter().filter(|(key, record)| is_past(key, &record.value)).collect();
        removed += remove(store, &past).await;
        if !page.more {
            return Ok(removed);
        }
    }
}

/// Removes who has read an event together with the event's own record: where that is gone, and the event does
/// not live, which an event with much notice may do for longer than history is kept.
async fn sweep_seen(
    store: &dyn Store,
    now: Timestamp,
    history_kept: SignedDuration,
) -> Result<usize, ReadError> {
    let snapshot = store.snapshot().await?;
    let mut after: Option<Key> = None;
    let mut removed = 0;
    loop {
        let page = snapshot.scan(prefix::SEEN, after.as_deref(), PAGE).await?;
        after = page.records.last().map(|(key, _)| key.clone());
        let mut past = Vec::new();
        for one in &page.records {
            let Ok(seen) = records::decode::<Seen>(&one.0, &one.1.value) else { continue };
            // Most records are younger than that, and nothing more needs to be read for them.
            let is_old = seen.reads.iter().all(|read| now.duration_since(read.at) >= history_kept);
            if is_old && !is_known(&*snapshot, &one.0, &seen.scope).await? {
                past.push(one);
            }
        }
        removed += remove(store, &past).await;
        if !page.more {
            return Ok(removed);
        }
    }
}

/// Whether the event of a record of reads lives, or is part of history.
async fn is_known(snapshot: &dyn Snapshot, key: &str, scope: &ScopeId) -> Result<bool, ReadError> {
    let id = key.strip_prefix(prefix::SEEN).and_then(|rest| rest.split('/').next());
    let Some(id) = id.and_then(|id| Uuid::parse_str(id).ok()).map(EventId) else { return Ok(true) };
    if snapshot.get(&records::past(id)).await?.is_some() {
        return Ok(true);
    }
    let key = records::scope(scope);
    let Some(record) = snapshot.get(&key).await? else { return Ok(false) };
    // A scope that cannot be read may have the event.
    Ok(records::decode::<Scope>(&key, &record.value).map_or(true, |scope| scope.event(id).is_some()))
}

/// Removes records that are still as they were read; says how many.
async fn remove(store: &dyn Store, past: &[&(Key, Versioned)]) -> usize {
    let mut removed = 0;
    for some in past.chunks(TXN_OPERATIONS_MAX / 2) {
        let unchanged =
            |(key, record): &&(Key, Versioned)| Expect { key: key.clone(), revision: Some(record.revision) };
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
    use notbefore_engine::Answer;
    use notbefore_store::memory::MemoryStore;

    use super::*;
    use crate::delivery::samples;

    #[tokio::test]
    async fn who_has_read_an_event_is_kept_as_long_as_the_event() {
        let store = MemoryStore::new();
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let [gone, known, young, live] = [1, 2, 3, 4].map(|n| EventId(Uuid::from_u128(n)));
        let mut scope = samples::scope("web", &[]);
        scope.events.push(samples::event(4, notbefore_core::Cause::PredictedFailure, &[], now, now));
        let seen = |hours| {
            let at = now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
            let vm = samples::vm(9);
            let reads = vec![records::SeenRead { vm, at, version: "2020-07-01".into() }];
            records::encode(&Seen { scope: scope.id(), reads })
        };
        // Only whether there is a record of the event counts here, not what it says: it cannot be read, and so
        // it stays.
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
    async fn what_is_past_its_time_goes_and_the_rest_stays() {
        let store = MemoryStore::new();
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let hours_ago = |hours| now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
        let answer = |at| records::encode(&CommandRecord { hash: String::new(), at, answer: Answer::Done });
        let facts = records::encode(&FactBatch { scope: None, facts: Vec::new() });
        let ended =
            |hours, id| records::ended(hours_ago(hours), notbefore_core::EventId(uuid::Uuid::from_u128(id)));
        let put: Vec<(Key, bytes::Bytes)> = vec![
            (records::command("root", "old"), answer(hours_ago(24))),
            (records::command("root", "new"), answer(hours_ago(23))),
            (ended(49, 1), bytes::Bytes::new()),
            (ended(47, 2), bytes::Bytes::new()),
            (records::fact(hours_ago(1), "node", 1), facts),
        ];
        let outcome = store.commit(Txn { put, ..Txn::default() }).await;
        assert!(matches!(outcome, Outcome::Committed(_)));

        // A batch of facts without facts has nothing that is younger than the retention.
        assert_eq!(sweep(&store, now, SignedDuration::from_hours(48)).await, Ok(3));
        let left = store.snapshot().await.unwrap().scan("", None, 100).await.unwrap();
        let keys: Vec<&str> = left.records.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, [&*records::command("root", "new"), &*ended(47, 2)]);
        assert_eq!(sweep(&store, now, SignedDuration::from_hours(48)).await, Ok(0));
    }
}
