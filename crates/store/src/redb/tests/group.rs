//! Group commit: concurrent commits share a sync, and the thread ends with its store.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use super::*;
use crate::Expect;

/// Queues every transaction, in order, and returns the futures of their outcomes.
pub(super) fn queue(store: &RedbStore, txns: Vec<Txn>) -> Vec<Pin<Box<dyn Future<Output = Outcome> + '_>>> {
    let mut waiting: Vec<Pin<Box<dyn Future<Output = Outcome>>>> = Vec::new();
    for txn in txns {
        let mut commit: Pin<Box<dyn Future<Output = Outcome>>> = Box::pin(store.commit(txn));
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting.push(commit);
    }
    waiting
}

#[tokio::test]
async fn commits_that_wait_share_a_sync() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    let before = disk.syncs();
    committed(&store, put("alone", "1")).await;
    let one = disk.syncs() - before;

    disk.hold(true);
    let before = disk.syncs();
    let mut waiting = queue(&store, vec![put("k/0", "v")]);
    disk.wait_for_sync();
    waiting.extend(queue(&store, (1..64).map(|n| put(&format!("k/{n}"), "v")).collect()));
    disk.hold(false);
    let mut revisions = Vec::new();
    for commit in waiting {
        revisions.push(revision(commit.await).0);
    }
    let expected: Vec<u64> = (2..66).collect();
    assert_eq!(revisions, expected, "each transaction has its own revision, in queue order");
    // The first was taken alone; the others queued during its write and share one commit.
    let syncs = disk.syncs() - before;
    assert_eq!(syncs, 2 * one, "64 commits took {syncs} syncs, one alone takes {one}");
}

#[tokio::test]
async fn commits_that_come_together_share_a_sync() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    let before = disk.syncs();
    committed(&store, put("alone", "1")).await;
    let one = disk.syncs() - before;

    let before = disk.syncs();
    let outcomes = store.commit_all((0..64).map(|n| put(&format!("k/{n}"), "v")).collect()).await;
    let expected: Vec<Outcome> = (2..66).map(|n| Outcome::Committed(Revision(n))).collect();
    assert_eq!(outcomes, expected);
    let syncs = disk.syncs() - before;
    assert_eq!(syncs, one, "64 commits took {syncs} syncs, one alone takes {one}");
}

/// Transactions of 1 MiB each.
fn large(names: std::ops::Range<usize>) -> Vec<Txn> {
    let half = "x".repeat(crate::VALUE_BYTES_MAX);
    let txn = |n| {
        let Txn { put: mut values, .. } = put(&format!("k/{n}/a"), &half);
        values.extend(put(&format!("k/{n}/b"), &half).put);
        Txn { put: values, ..Txn::default() }
    };
    names.map(txn).collect()
}

#[tokio::test]
async fn large_group_is_split_into_several_commits() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    let before = disk.syncs();
    committed(&store, put("alone", "1")).await;
    let one = disk.syncs() - before;

    let before = disk.syncs();
    let too_large = put("k", &"x".repeat(crate::VALUE_BYTES_MAX + 1));
    let txns = large(0..10).into_iter().chain([too_large]).chain(large(10..40)).collect();
    let mut outcomes = store.commit_all(txns).await;
    assert!(matches!(outcomes.remove(10), Outcome::Refused(Refusal::ValueTooLarge { .. })));
    let expected: Vec<Outcome> = (2..42).map(|n| Outcome::Committed(Revision(n))).collect();
    assert_eq!(outcomes, expected, "in order");
    let syncs = disk.syncs() - before;
    assert!(syncs >= 5 * one, "40 MiB took {syncs} syncs, one commit takes {one}");
}

#[tokio::test]
async fn oversized_batch_defers_transactions() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    let before = disk.syncs();
    committed(&store, put("alone", "1")).await;
    let one = disk.syncs() - before;
    let small = |from: usize| (from..from + 1_500).map(|n| put(&format!("s/{n}"), "v")).collect();

    for (what, first, second) in
        [("bytes", large(0..7), large(7..14)), ("transactions", small(0), small(2_000))]
    {
        disk.hold(true);
        let before = disk.syncs();
        let mut waiting = queue(&store, vec![put("held", "v")]);
        disk.wait_for_sync();
        let (mut first, mut second) = (store.commit_all(first), store.commit_all(second));
        for commit in [&mut first, &mut second] {
            assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        disk.hold(false);
        revision(waiting.remove(0).await);
        let newest = |outcomes: Vec<Outcome>| outcomes.into_iter().map(revision).max();
        assert!(newest(first.await) < newest(second.await), "{what}: the first is written first");
        let syncs = disk.syncs() - before;
        assert!(syncs >= 3 * one, "{what}: three commits took {syncs} syncs, one takes {one}");
    }
}

#[tokio::test]
async fn a_transaction_sees_those_before_it_in_its_batch() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    disk.hold(true);
    let absent = |txn| Txn { expect: vec![Expect { key: "k".into(), revision: None }], ..txn };
    let removed = Txn { delete: vec!["k".into()], ..Txn::default() };
    let mut waiting = queue(&store, vec![put("first", "1")]);
    disk.wait_for_sync();
    waiting.extend(queue(
        &store,
        vec![absent(put("k", "2")), absent(put("k", "3")), removed, absent(put("k", "4"))],
    ));
    disk.hold(false);
    let mut outcomes = Vec::new();
    for commit in waiting {
        outcomes.push(commit.await);
    }
    let found = crate::Found { key: "k".into(), revision: Some(Revision(2)), value: Some("2".into()) };
    let expected = [
        Outcome::Committed(Revision(1)),
        Outcome::Committed(Revision(2)),
        Outcome::Conflict(vec![found]),
        Outcome::Committed(Revision(3)),
        Outcome::Committed(Revision(4)),
    ];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn read_only_transactions_do_not_sync() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", {
        let disk = disk.clone();
        move || disk.open()
    })
    .unwrap();
    committed(&store, put("k", "1")).await;
    let before = disk.syncs();
    committed(&store, Txn::default()).await;
    committed(&store, Txn { delete: vec!["nowhere".into()], ..Txn::default() }).await;
    let stale = Txn { expect: vec![Expect { key: "k".into(), revision: None }], ..put("k", "2") };
    assert!(matches!(store.commit(stale).await, Outcome::Conflict(_)));
    assert_eq!(disk.syncs(), before);
}

#[tokio::test]
async fn queued_commits_are_written_before_close() {
    let disk = Disk::new();
    let open = {
        let disk = disk.clone();
        move || disk.open()
    };
    let store = RedbStore::open_with("disk", open.clone()).unwrap();
    let mut watch = store.watch(Revision(0)).await.unwrap();
    disk.hold(true);
    // The callers drop their futures at once.
    drop(queue(&store, (0..5).map(|n| put(&format!("k/{n}"), "v")).collect()));
    disk.hold(false);
    drop(store);
    for revision in 1..=5 {
        assert_eq!(next(&mut watch).await.unwrap().revision, Revision(revision));
    }
    assert_eq!(next(&mut watch).await, Err(WatchError::Closed));
    let (revision, records) = read_all(&RedbStore::open_with("disk", open).unwrap()).await;
    assert_eq!((revision, records.len()), (Revision(5), 5));
}
