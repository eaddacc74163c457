//! A store in memory with copy-on-write snapshots, for tests and rehearsals.
//!
//! The records are one map behind an [`Arc`]. A snapshot clones the `Arc`. The next commit copies the map only if
//! the snapshot is still held. So snapshots are free, and commits are cheap while snapshots are short-lived, as in
//! the service. Nothing survives the process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::apply::{self, Applied, Records};
use crate::log::{Limits, Log};
use crate::{
    Key, Outcome, Page, ReadError, Revision, Snapshot, Store, Txn, Versioned, Watch, WatchError, scan_end,
    scan_start,
};

type Map = BTreeMap<Key, Versioned>;

/// Clones are handles to the same records; dropping the last one ends all watches.
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    log: Arc<Log>,
}

#[derive(Clone, Default)]
struct State {
    revision: Revision,
    records: Arc<Map>,
}

impl MemoryStore {
    /// An empty store at revision 0.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let log = Log::new(Revision(0), limits);
        Self { inner: Arc::new(Inner { state: Mutex::default(), log }) }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.log.close();
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        let state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::new(state))
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        if let Err(refusal) = txn.check() {
            return Outcome::Refused(refusal);
        }
        // The log is appended to under the same lock, so that it has the commits in order.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { revision, records } = &mut *state;
        let Ok(applied) = apply::apply(txn, *revision, records);
        match applied {
            Applied::Wrote(batch) => {
                *revision = batch.revision;
                self.inner.log.append([batch]);
                Outcome::Committed(*revision)
            }
            Applied::Held(revision) => Outcome::Committed(revision),
            Applied::Conflict(found) => Outcome::Conflict(found),
        }
    }

    fn commit_batch_max(&self) -> usize {
        256
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(self.inner.log.watch(after)?))
    }
}

impl Records for Arc<Map> {
    type Error = Infallible;

    fn revision_of(&self, key: &str) -> Result<Option<Revision>, Infallible> {
        Ok(Map::get(self, key).map(|record| record.revision))
    }

    fn get(&self, key: &str) -> Result<Option<Versioned>, Infallible> {
        Ok(Map::get(self, key).cloned())
    }

    fn put(&mut self, key: &Key, record: Versioned) -> Result<(), Infallible> {
        Arc::make_mut(self).insert(key.clone(), record);
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<bool, Infallible> {
        // Checked first, so that deleting a missing record does not copy the map.
        Ok(self.contains_key(key) && Arc::make_mut(self).remove(key).is_some())
    }
}

#[async_trait]
impl Snapshot for State {
    fn revision(&self) -> Revision {
        self.revision
    }

    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
        Ok(Map::get(&self.records, key).cloned())
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let range = (scan_start(prefix, after), Bound::Unbounded);
        let records = self.records.range::<str, _>(range);
        Ok(Page::collect(records.take_while(|(key, _)| key.starts_with(prefix)), limit))
    }

    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let end = scan_end(prefix, before);
        let range = (Bound::Unbounded, end.as_ref().map(String::as_str));
        let records = self.records.range::<str, _>(range).rev();
        Ok(Page::collect(records.take_while(|(key, _)| key.starts_with(prefix)), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{self, StoreFactory};

    /// Small enough for the suite to exceed.
    const LIMITS: Limits = Limits { batches: 256, bytes: 1024 * 1024 };

    struct InMemory;

    #[async_trait]
    impl StoreFactory for InMemory {
        type Store = MemoryStore;

        async fn make(&self) -> MemoryStore {
            MemoryStore::with_limits(LIMITS)
        }

        async fn forget(&self, store: &MemoryStore) {
            contract::overflow_log(store, LIMITS.batches).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn keeps_the_contract() {
        contract::run(&InMemory).await;
    }

    #[test]
    fn new_store_needs_no_runtime_and_starts_at_zero() {
        let store = MemoryStore::new();
        assert_eq!(store.inner.state.lock().unwrap().revision, Revision(0));
    }

    #[tokio::test]
    async fn a_watch_ends_with_the_store() {
        let store = MemoryStore::new();
        let mut watch = store.watch(Revision(0)).await.unwrap();
        drop(store);
        assert_eq!(watch.next().await, Err(WatchError::Closed));
    }
}
