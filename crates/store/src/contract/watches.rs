//! Guarantees of watches.

use super::{
    StoreFactory, changed, committed, concurrently, conflicting, delete, expecting, next, put, read,
    revision, watch,
};
use crate::{Batch, Revision, Store, Txn, WatchError};

pub(super) async fn a_watch_yields_every_commit(store: impl Store) {
    let base = revision(&store).await;
    let first = committed(&store, put("a", "1")).await;
    let mixed = Txn {
        put: vec![("c".into(), "3".into()), ("b".into(), "2".into())],
        delete: vec!["a".into(), "x".into()],
        ..Txn::default()
    };
    let second = committed(&store, mixed).await;
    // None of these changes anything, so no watch yields them.
    conflicting(&store, expecting("b", None, put("b", "9"))).await;
    committed(&store, delete("x")).await;
    committed(&store, Txn::default()).await;
    let third = committed(&store, delete("b")).await;

    let mut from_start = watch(&store, base).await;
    let batch = next(&mut *from_start).await;
    assert_eq!((batch.revision, &*batch.changes), (first, &[changed("a", Some("1"))][..]));
    let batch = next(&mut *from_start).await;
    let changes = [changed("c", Some("3")), changed("b", Some("2")), changed("a", None)];
    let promise = "puts in order, then deletes of existing records";
    assert_eq!((batch.revision, &*batch.changes), (second, &changes[..]), "{promise}");
    let batch = next(&mut *from_start).await;
    assert_eq!((batch.revision, &*batch.changes), (third, &[changed("b", None)][..]));
}

pub(super) async fn watch_starts_at_any_revision(store: impl Store) {
    committed(&store, put("a", "1")).await;
    let second = committed(&store, put("a", "2")).await;
    let third = committed(&store, put("a", "3")).await;
    let mut from_second = watch(&store, second).await;
    let batch = next(&mut *from_second).await;
    assert_eq!(batch.revision, third, "a watch starts right after its revision");
    let fourth = committed(&store, put("a", "4")).await;
    assert_eq!(next(&mut *from_second).await.revision, fourth, "and continues with new commits");
}

pub(super) async fn a_watch_waits_for_commits<S: Store + Clone>(store: S) {
    let mut live = watch(&store, revision(&store).await).await;
    let waiting = tokio::spawn(async move {
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(next(&mut *live).await);
        }
        seen
    });
    let mut made = Vec::new();
    for turn in 0..20 {
        let value = turn.to_string();
        let revision = committed(&store, put("a", &value)).await;
        made.push(Batch { revision, changes: [changed("a", Some(&value))].into() });
    }
    match waiting.await {
        Ok(seen) => assert_eq!(seen, made, "a live watch yields the commits as they are made"),
        Err(error) => panic!("the waiting watch failed: {error}"),
    }
}

pub(super) async fn watched_commit_is_visible_in_snapshot<S: Store + Clone>(store: S) {
    let mut live = watch(&store, revision(&store).await).await;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for turn in 0..50 {
                committed(&store, put("a", &turn.to_string())).await;
            }
        }
    });
    for _ in 0..50 {
        let batch = next(&mut *live).await;
        let shown = read(&store, "a").await.map(|record| record.revision);
        assert!(shown >= Some(batch.revision), "a watch yielded {}, a snapshot lacks it", batch.revision);
    }
    if let Err(error) = writer.await {
        panic!("the writer failed: {error}");
    }
}

pub(super) async fn watchers_see_one_sequence<S: Store + Clone>(store: S) {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let base = revision(&store).await;
    let mut watchers = Vec::new();
    for _ in 0..4 {
        let mut watch = watch(&store, base).await;
        watchers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.len() < WRITERS * EACH {
                seen.push(next(&mut *watch).await);
            }
            seen
        }));
    }
    let made = concurrently(WRITERS, |writer| {
        let store = store.clone();
        async move {
            let mut made = Vec::new();
            for turn in 0..EACH {
                let (key, value) = (format!("w/{writer}"), turn.to_string());
                let revision = committed(&store, put(&key, &value)).await;
                made.push(Batch { revision, changes: [changed(&key, Some(&value))].into() });
            }
            made
        }
    })
    .await;
    let mut made = made.concat();
    made.sort_by_key(|batch| batch.revision);
    for watcher in watchers {
        match watcher.await {
            Ok(seen) => assert_eq!(seen, made, "a watch yielded other commits than were acknowledged"),
            Err(error) => panic!("a watcher failed: {error}"),
        }
    }
    let revisions: Vec<Revision> = made.iter().map(|batch| batch.revision).collect();
    assert!(revisions.is_sorted_by(|one, two| one < two), "the revisions of a watch do not rise");
}

pub(super) async fn expired_watch_is_an_error<T: StoreFactory>(factory: &T, store: T::Store) {
    let base = revision(&store).await;
    let mut slow = watch(&store, base).await;
    let first = committed(&store, put("a", "1")).await;
    committed(&store, put("a", "2")).await;
    factory.forget(&store).await;

    let oldest = match store.watch(base).await {
        Err(WatchError::Compacted { oldest }) => oldest,
        Err(error @ WatchError::Closed) => panic!("an old watch failed for another reason: {error}"),
        Ok(_) => panic!("a watch older than the log was accepted"),
    };
    assert!(oldest > base, "the oldest revision offered, {oldest}, is no newer than the refused one");

    // An open watch may still have its batches, but must not skip any.
    match slow.next().await {
        Err(WatchError::Compacted { .. }) => {}
        Ok(batch) => assert_eq!(batch.revision, first, "a watch that fell behind skipped commits"),
        Err(error @ WatchError::Closed) => panic!("a slow watch ended for another reason: {error}"),
    }

    let before = revision(&store).await;
    let last = committed(&store, put("a", "3")).await;
    let newest = next(&mut *watch(&store, before).await).await;
    assert_eq!(newest.revision, last, "a watch of new commits still works");
    let begin = match store.watch(oldest).await {
        Ok(_) => oldest,
        // The latest commit may have dropped it.
        Err(WatchError::Compacted { oldest }) => oldest,
        Err(error @ WatchError::Closed) => panic!("a watch from the offered revision failed: {error}"),
    };
    let batch = next(&mut *watch(&store, begin).await).await;
    assert!(batch.revision > begin, "a watch can start at the oldest offered revision");
}
