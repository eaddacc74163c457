//! Compaction that several nodes agree on.

use std::time::Duration;

use notbefore_etcd::{COMPACT_EVERY, Compactor};
use notbefore_store::{ReadError, Store, WatchError};

use crate::support::{NO_FSYNC, committed, etcd, next, put};

#[tokio::test]
async fn one_of_several_nodes_compacts_once_in_an_interval() {
    let etcd = etcd(NO_FSYNC).await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push((etcd.store("/nb/").await, Compactor::new(COMPACT_EVERY)));
    }
    let store = nodes[0].0.clone();
    let mut compacted = Vec::new();
    let mut made = Vec::new();
    let begin = store.snapshot().await.unwrap();
    // Clocks that differ by hours, 45 minutes of them.
    for minute in 0..45_u64 {
        made.push(committed(&store, put("a", "1")).await);
        for (number, (node, compactor)) in nodes.iter_mut().enumerate() {
            let now = Duration::from_secs(minute * 60 + number as u64 * 7_200);
            compacted.extend(node.compact_if_due(compactor, now).await.unwrap());
        }
    }
    assert_eq!(compacted.len(), 4, "{compacted:?}");
    assert_eq!(nodes[1].0.claim("another").await.unwrap(), "new", "the mark keeps its id");
    assert!(compacted.is_sorted_by(|one, two| one < two), "{compacted:?}");

    let last = *compacted.last().unwrap();
    assert_eq!(begin.get("a").await, Err(ReadError::Compacted));
    assert_eq!(begin.scan("", None, 1).await, Err(ReadError::Compacted));
    let early = store.watch(made[0]).await;
    let Err(WatchError::Compacted { oldest }) = early else { panic!("the history is still there") };
    assert!(oldest >= last);
    // A watch from the mark that was compacted misses nothing.
    let mut watch = store.watch(last).await.unwrap();
    let after = made.iter().find(|revision| **revision > last).unwrap();
    assert_eq!(next(&mut *watch).await.revision, *after);
}

#[tokio::test]
async fn compaction_by_others_is_no_error() {
    let etcd = etcd(NO_FSYNC).await;
    let store = etcd.store("/nb/").await;
    let first = committed(&store, put("a", "1")).await;
    let second = committed(&store, put("a", "2")).await;
    etcd.etcdctl(&["compaction", &second.to_string()]);
    assert_eq!(store.compact(first).await, Ok(()));
    assert!(matches!(store.watch(first).await.err(), Some(WatchError::Compacted { .. })));
    assert!(store.watch(second).await.is_ok());
}
