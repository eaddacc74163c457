//! The suite that every store passes. All stores are prefixes of one etcd.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use async_trait::async_trait;
use notbefore_etcd::EtcdStore;
use notbefore_store::Store;
use notbefore_store::contract::{self, StoreFactory};

use crate::support::{Etcd, NO_FSYNC, etcd};

struct Prefixes {
    etcd: Etcd,
    made: AtomicUsize,
}

#[async_trait]
impl StoreFactory for Prefixes {
    type Store = EtcdStore;

    async fn make(&self) -> EtcdStore {
        let number = self.made.fetch_add(1, Relaxed);
        self.etcd.store(&format!("/contract/{number}/")).await
    }

    async fn forget(&self, store: &EtcdStore) {
        let newest = store.snapshot().await.unwrap().revision();
        store.compact(newest).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract() {
    contract::run(&Prefixes { etcd: etcd(NO_FSYNC).await, made: AtomicUsize::new(0) }).await;
}
