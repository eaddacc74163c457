//! The simulated store passes the contract of all stores, with gaps between revisions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use notbefore_sim::store::SimStore;
use notbefore_store::contract::{self, StoreFactory};
use notbefore_store::{
    Batch, Key, Outcome, Page, ReadError, Revision, Snapshot, Store, Txn, Versioned, Watch, WatchError,
};
use tokio::sync::watch;

/// The simulated store with the interface of a real one.
#[derive(Clone)]
struct SimEtcd {
    store: Arc<Mutex<SimStore>>,
    newest: watch::Sender<Revision>,
}

struct SimSnapshot {
    revision: Revision,
    records: BTreeMap<Key, Versioned>,
}

struct SimWatch {
    store: Arc<Mutex<SimStore>>,
    newest: watch::Receiver<Revision>,
    seen: Revision,
}

#[async_trait]
impl Store for SimEtcd {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        let store = self.store.lock().unwrap();
        let revision = store.revision();
        Ok(Box::new(SimSnapshot { revision, records: store.records_at(revision) }))
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        let mut store = self.store.lock().unwrap();
        let outcome = store.commit(&txn);
        self.newest.send_replace(store.revision());
        outcome
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        let oldest = self.store.lock().unwrap().compacted();
        match after < oldest {
            true => Err(WatchError::Compacted { oldest }),
            false => {
                let (store, newest) = (Arc::clone(&self.store), self.newest.subscribe());
                Ok(Box::new(SimWatch { store, newest, seen: after }))
            }
        }
    }
}

#[async_trait]
impl Watch for SimWatch {
    async fn next(&mut self) -> Result<Batch, WatchError> {
        let seen = self.seen;
        self.newest.wait_for(|newest| *newest > seen).await.map_err(|_| WatchError::Closed)?;
        let store = self.store.lock().unwrap();
        let next = store.log().iter().find(|batch| batch.revision > seen).cloned();
        let oldest = store.compacted();
        let batch = next.filter(|_| seen >= oldest).ok_or(WatchError::Compacted { oldest })?;
        self.seen = batch.revision;
        Ok(batch)
    }
}

#[async_trait]
impl Snapshot for SimSnapshot {
    fn revision(&self) -> Revision {
        self.revision
    }

    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
        Ok(self.records.get(key).cloned())
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let all = self.records.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(Page::collect(all.filter(|(key, _)| after.is_none_or(|after| &***key > after)), limit))
    }

    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        let all = self.records.iter().rev().filter(|(key, _)| key.starts_with(prefix));
        Ok(Page::collect(all.filter(|(key, _)| before.is_none_or(|before| &***key < before)), limit))
    }
}

struct Simulated;

#[async_trait]
impl StoreFactory for Simulated {
    type Store = SimEtcd;

    async fn make(&self) -> SimEtcd {
        let mut store = SimStore::default();
        store.leave_gaps();
        SimEtcd { store: Arc::new(Mutex::new(store)), newest: watch::Sender::new(Revision(0)) }
    }

    async fn forget(&self, store: &SimEtcd) {
        store.store.lock().unwrap().compact();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn simulated_store_keeps_the_contract() {
    contract::run(&Simulated).await;
}
