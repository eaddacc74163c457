//! Watches beyond the contract: fragments, and a connection that ends.

use bytes::Bytes;
use notbefore_store::{Change, Revision, Store, Txn, WatchError};

use crate::support::{committed, etcd, eventually, next, put};

/// 90 puts with 1.3 MiB in all.
fn large(turn: u8) -> Txn {
    let value = Bytes::from(vec![turn; 15_000]);
    let put = (0..90).map(|number| (format!("k/{number:02}").into(), value.clone())).collect();
    Txn { put, ..Txn::default() }
}

#[tokio::test]
async fn a_revision_in_fragments_is_one_batch() {
    let mut etcd = etcd(&[]).await;
    let store = etcd.store("/nb/").await;
    let base = store.snapshot().await.unwrap().revision();
    let mut made: Vec<(Revision, Vec<Change>)> = Vec::new();
    for turn in 0..4 {
        let txn = large(turn);
        let put = |(key, value): (_, Bytes)| Change { key, value: Some(value) };
        let changes = txn.put.iter().cloned().map(put).collect();
        made.push((committed(&store, txn).await, changes));
    }
    // More than etcd's limit for a response, 1.5 MiB: fragments of several revisions.
    let mut watch = store.watch(base).await.unwrap();
    for (revision, changes) in &made {
        let batch = next(&mut *watch).await;
        assert!(batch.revision == *revision && *batch.changes == **changes, "revision {revision}");
    }
    // Fragments of 64 KiB: each revision is more than one.
    etcd.kill();
    etcd.start_with(&["--max-request-bytes", "65536"]);
    etcd.wait_until_healthy().await;
    let mut watch = eventually("a watch", async || store.watch(base).await.ok()).await;
    for (revision, changes) in &made {
        let batch = next(&mut *watch).await;
        assert!(batch.revision == *revision && *batch.changes == **changes, "revision {revision}");
    }
    let last = committed(&store, put("a", "1")).await;
    assert_eq!(next(&mut *watch).await.revision, last, "and it continues");
}

#[tokio::test]
async fn a_lost_connection_ends_the_watch() {
    let mut etcd = etcd(&[]).await;
    let store = etcd.store("/nb/").await;
    let first = committed(&store, put("a", "1")).await;
    let mut watch = store.watch(first).await.unwrap();
    etcd.kill();
    assert_eq!(watch.next().await, Err(WatchError::Closed));
    assert_eq!(watch.next().await, Err(WatchError::Closed), "it stays");
    assert_eq!(store.watch(first).await.err(), Some(WatchError::Closed));
    etcd.start_again();
    let mut watch = eventually("a watch", async || store.watch(first).await.ok()).await;
    let second = committed(&store, put("a", "2")).await;
    assert_eq!(next(&mut *watch).await.revision, second);
}

#[tokio::test]
async fn a_watch_of_a_revision_to_come_is_not_opened() {
    let etcd = etcd(&["--unsafe-no-fsync"]).await;
    let store = etcd.store("/nb/").await;
    let newest = store.snapshot().await.unwrap().revision();
    let later = store.watch(Revision(newest.0 + 100)).await;
    assert_eq!(later.err(), Some(WatchError::Closed));
}
