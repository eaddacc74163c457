//! The store of a node of a cluster: writes values at the cluster's format level, so that nodes of the release before read
//! them during an upgrade.
//!
//! The engine downgrades its own transactions, because it must recognise them in the watch. This wrapper does the same for
//! all other writers, and for heartbeats. Values that are not newer pass through.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use async_trait::async_trait;
use notbefore_engine::records;
use notbefore_store::{Outcome, ReadError, Revision, Snapshot, Store, Txn, Watch, WatchError};

/// The level at which a node writes. It only rises.
#[derive(Debug)]
pub struct WriteLevel(AtomicU32);

impl WriteLevel {
    pub fn new(level: u32) -> Self {
        Self(AtomicU32::new(level))
    }

    pub fn get(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Before the first write of the process, the level may be lowered to that of the cluster.
    pub fn begin(&self, level: u32) {
        self.0.store(level, std::sync::atomic::Ordering::Release);
    }

    pub fn raise(&self, level: u32) {
        self.0.fetch_max(level, AcqRel);
    }
}

/// See the module docs.
pub struct LeveledStore {
    store: Arc<dyn Store>,
    level: Arc<WriteLevel>,
}

impl LeveledStore {
    pub fn new(store: Arc<dyn Store>, level: Arc<WriteLevel>) -> Self {
        Self { store, level }
    }
}

#[async_trait]
impl Store for LeveledStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.store.snapshot().await
    }

    async fn commit(&self, mut txn: Txn) -> Outcome {
        records::downgrade_txn(&mut txn, self.level.get());
        self.store.commit(txn).await
    }

    async fn commit_all(&self, mut txns: Vec<Txn>) -> Vec<Outcome> {
        let level = self.level.get();
        txns.iter_mut().for_each(|txn| _ = records::downgrade_txn(txn, level));
        self.store.commit_all(txns).await
    }

    fn commit_batch_max(&self) -> usize {
        self.store.commit_batch_max()
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.store.watch(after).await
    }

    fn damaged(&self) -> u64 {
        self.store.damaged()
    }
}

#[cfg(test)]
mod tests {
    use notbefore_engine::records::{ALIVE, LastAt, encode};
    use notbefore_store::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn values_are_written_at_the_level_of_the_cluster() {
        let level = Arc::new(WriteLevel::new(2));
        let store = LeveledStore::new(Arc::new(MemoryStore::new()), Arc::clone(&level));
        let value = encode(&LastAt { at: "2026-11-17T12:00:00Z".parse().unwrap() });
        let written = async |is_batch: bool| {
            let txn = Txn { put: vec![(ALIVE.into(), value.clone())], ..Txn::default() };
            let outcome = match is_batch {
                true => store.commit_all(vec![txn]).await.remove(0),
                false => store.commit(txn).await,
            };
            assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
            store.snapshot().await.unwrap().get(ALIVE).await.unwrap().unwrap().value[0]
        };
        for is_batch in [false, true] {
            level.begin(1);
            assert_eq!(written(is_batch).await, b'1');
            level.raise(2);
            assert_eq!(written(is_batch).await, b'2');
            level.raise(1);
            assert_eq!(written(is_batch).await, b'2', "it never goes back");
        }
    }
}
