//! Conformance suite for [`Store`] implementations.
//!
//! An implementation's tests provide a [`StoreFactory`] and call [`run`]. Each check starts with an empty store and
//! panics with a sentence that names the broken guarantee. Revisions are compared with that of the empty store, so
//! a store may start at another number than 0.
//!
//! Guarantees beyond the suite, such as crash recovery, are tested by each implementation.

mod commits;
mod reads;
mod watches;

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Batch, Change, Expect, Found, Outcome, Revision, Snapshot, Store, Txn, Versioned, Watch};

/// Timeout for a watch. A working store answers in milliseconds; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// An implementation under test.
#[async_trait]
pub trait StoreFactory: Sync {
    /// Clones are handles to the same records.
    type Store: Store + Clone;

    async fn make(&self) -> Self::Store;

    /// Drops the history so far from the log, so that a watch from before is `Compacted`. It may commit under keys that
    /// begin with `forget/`, as [`overflow_log`] does.
    async fn forget(&self, store: &Self::Store);
}

pub async fn run(factory: &impl StoreFactory) {
    reads::empty_store_is_empty(factory.make().await).await;
    commits::record_keeps_its_revision(factory.make().await).await;
    commits::absence_is_compared(factory.make().await).await;
    commits::revisions_are_compared(factory.make().await).await;
    commits::conflict_reports_current_record_and_writes_nothing(factory.make().await).await;
    commits::a_deleted_record_is_gone(factory.make().await).await;
    commits::puts_and_deletes_go_together(factory.make().await).await;
    commits::a_transaction_that_changes_nothing_takes_no_revision(factory.make().await).await;
    commits::limits_are_refused(factory.make().await).await;
    commits::commit_all_transactions_are_independent(factory.make().await).await;
    commits::values_round_trip(factory.make().await).await;
    commits::concurrent_increments_are_all_counted(factory.make().await).await;
    reads::scan_is_ordered_within_prefix(factory.make().await).await;
    reads::pages_have_no_gaps_or_repeats(factory.make().await).await;
    reads::pages_end_at_a_number_of_bytes(factory.make().await).await;
    reads::a_scan_backwards_is_the_scan_reversed(factory.make().await).await;
    reads::snapshot_is_immutable(factory.make().await).await;
    reads::pages_of_a_snapshot_show_one_revision(factory.make().await).await;
    watches::a_watch_yields_every_commit(factory.make().await).await;
    watches::watch_starts_at_any_revision(factory.make().await).await;
    watches::a_watch_waits_for_commits(factory.make().await).await;
    watches::watched_commit_is_visible_in_snapshot(factory.make().await).await;
    watches::watchers_see_one_sequence(factory.make().await).await;
    watches::expired_watch_is_an_error(factory, factory.make().await).await;
}

/// Commits `batches` times under `forget/`, concurrently: enough to overflow a log of that many batches.
pub async fn overflow_log<S: Store + Clone>(store: &S, batches: usize) {
    let each = batches.div_ceil(16);
    concurrently(16, |writer| {
        let store = store.clone();
        async move {
            for turn in 0..each {
                committed(&store, put(&format!("forget/{writer}"), &turn.to_string())).await;
            }
        }
    })
    .await;
}

/// Runs `count` concurrent tasks and waits for all; a panic in a task fails the suite.
async fn concurrently<F>(count: usize, task: impl Fn(usize) -> F) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let tasks: Vec<_> = (0..count).map(|number| tokio::spawn(task(number))).collect();
    let mut outputs = Vec::with_capacity(count);
    for task in tasks {
        match task.await {
            Ok(output) => outputs.push(output),
            Err(error) => panic!("concurrent task failed: {error}"),
        }
    }
    outputs
}

fn put(key: &str, value: &str) -> Txn {
    Txn { put: vec![(key.into(), Bytes::copy_from_slice(value.as_bytes()))], ..Txn::default() }
}

fn delete(key: &str) -> Txn {
    Txn { delete: vec![key.into()], ..Txn::default() }
}

fn expecting(key: &str, revision: Option<Revision>, txn: Txn) -> Txn {
    Txn { expect: vec![Expect { key: key.into(), revision }], ..txn }
}

fn changed(key: &str, value: Option<&str>) -> Change {
    Change { key: key.into(), value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())) }
}

fn versioned(revision: Revision, value: &str) -> Versioned {
    Versioned { revision, value: Bytes::copy_from_slice(value.as_bytes()) }
}

/// Expects a commit to succeed and returns its revision.
async fn committed(store: &impl Store, txn: Txn) -> Revision {
    match store.commit(txn).await {
        Outcome::Committed(revision) => revision,
        other @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
            panic!("commit without a conflict failed: {other:?}")
        }
    }
}

/// Expects a commit to conflict and returns the failed expectations.
async fn conflicting(store: &impl Store, txn: Txn) -> Vec<Found> {
    match store.commit(txn).await {
        Outcome::Conflict(found) => found,
        other @ (Outcome::Committed(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
            panic!("commit with a failed expectation was not a conflict: {other:?}")
        }
    }
}

async fn snapshot(store: &impl Store) -> Box<dyn Snapshot> {
    match store.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("no snapshot of a working store: {error}"),
    }
}

async fn get(snapshot: &dyn Snapshot, key: &str) -> Option<Versioned> {
    match snapshot.get(key).await {
        Ok(record) => record,
        Err(error) => panic!("cannot read {key}: {error}"),
    }
}

/// Reads one record at the newest revision.
async fn read(store: &impl Store, key: &str) -> Option<Versioned> {
    get(&*snapshot(store).await, key).await
}

async fn revision(store: &impl Store) -> Revision {
    snapshot(store).await.revision()
}

/// Scans one page: its keys, and whether there are more.
async fn scan_keys(
    snapshot: &dyn Snapshot,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> (Vec<String>, bool) {
    match snapshot.scan(prefix, after, limit).await {
        Ok(page) => (page.records.iter().map(|(key, _)| key.to_string()).collect(), page.more),
        Err(error) => panic!("cannot scan {prefix}: {error}"),
    }
}

async fn watch(store: &impl Store, after: Revision) -> Box<dyn Watch> {
    match store.watch(after).await {
        Ok(watch) => watch,
        Err(error) => panic!("a watch from revision {after} was refused: {error}"),
    }
}

async fn next(watch: &mut dyn Watch) -> Batch {
    match tokio::time::timeout(PATIENCE, watch.next()).await {
        Ok(Ok(batch)) => batch,
        Ok(Err(error)) => panic!("watch that keeps up ended: {error}"),
        Err(_elapsed) => panic!("watch did not yield a commit"),
    }
}
