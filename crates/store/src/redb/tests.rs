//! Tests of the embedded store beyond the conformance suite: its file, its thread, and disk failures.

mod crash;
mod damage;
mod disk;
mod faults;
mod files;
mod group;

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use self::disk::Disk;
use self::files::Directory;
use super::*;
use crate::contract::{self, StoreFactory};
use crate::{Batch, Versioned};

fn put(key: &str, value: &str) -> Txn {
    Txn { put: vec![(key.into(), Bytes::copy_from_slice(value.as_bytes()))], ..Txn::default() }
}

fn revision(outcome: Outcome) -> Revision {
    let Outcome::Committed(revision) = outcome else { panic!("not committed: {outcome:?}") };
    revision
}

async fn committed(store: &RedbStore, txn: Txn) -> Revision {
    revision(store.commit(txn).await)
}

/// Timeout of a test.
const PATIENCE: Duration = Duration::from_secs(20);

async fn next(watch: &mut Box<dyn Watch>) -> Result<Batch, WatchError> {
    match tokio::time::timeout(PATIENCE, watch.next()).await {
        Ok(next) => next,
        Err(_elapsed) => panic!("watch did not yield a commit"),
    }
}

/// All records of the newest snapshot, and its revision.
async fn read_all(store: &RedbStore) -> (Revision, Vec<(String, Versioned)>) {
    let snapshot = store.snapshot().await.unwrap();
    let page = snapshot.scan("", None, usize::MAX).await.unwrap();
    (snapshot.revision(), page.records.into_iter().map(|(key, record)| (key.to_string(), record)).collect())
}

/// All records, by replaying commits from the empty store.
fn replay(batches: &[Batch]) -> Vec<(String, Versioned)> {
    let mut records = std::collections::BTreeMap::new();
    for batch in batches {
        for change in batch.changes.iter() {
            match &change.value {
                Some(value) => {
                    let record = Versioned { revision: batch.revision, value: value.clone() };
                    records.insert(change.key.to_string(), record);
                }
                None => drop(records.remove(&*change.key)),
            }
        }
    }
    records.into_iter().collect()
}

/// Small enough for the suite to exceed.
const LIMITS: Limits = Limits { batches: 256, bytes: 1024 * 1024 };

struct InMemory;

#[async_trait]
impl StoreFactory for InMemory {
    type Store = RedbStore;

    async fn make(&self) -> RedbStore {
        let disk = Disk::new();
        RedbStore::start(backends("memory".into(), move || disk.open()), LIMITS).unwrap()
    }

    async fn forget(&self, store: &RedbStore) {
        contract::overflow_log(store, LIMITS.batches).await;
    }
}

/// Stores in files, each in its own directory, kept until the suite is done.
#[derive(Default)]
struct OnDisk(Mutex<Vec<Directory>>);

#[async_trait]
impl StoreFactory for OnDisk {
    type Store = RedbStore;

    async fn make(&self) -> RedbStore {
        let directory = Directory::new();
        let path = directory.file("store.redb");
        self.0.lock().unwrap().push(directory);
        RedbStore::start(Box::new(move |attempt| open::open_file(&path, None, attempt)), LIMITS).unwrap()
    }

    async fn forget(&self, store: &RedbStore) {
        contract::overflow_log(store, LIMITS.batches).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract_in_memory() {
    contract::run(&InMemory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract_in_a_file() {
    contract::run(&OnDisk::default()).await;
}
