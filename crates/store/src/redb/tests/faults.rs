//! Disk failures: the outcomes that callers get, and the state afterwards.

use super::disk::{FailureMode, Fault};
use super::group::queue;
use super::*;
use crate::Expect;

async fn store_on(disk: &Disk) -> RedbStore {
    let disk = disk.clone();
    let store = RedbStore::open_with("disk", move || disk.open()).unwrap();
    committed(&store, put("a", "1")).await;
    store
}

fn unavailable(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(Refusal::Unavailable(_)))
}

/// Fails every operation of a commit in turn, in every way. Whatever the outcome, snapshot, watch and the file opened
/// by another store agree afterwards on whether the commit happened.
#[tokio::test]
async fn snapshot_and_watch_agree_after_failed_commit() {
    let mut landed = 0;
    let mut lost = 0;
    for (done, power_cut) in [(false, false), (false, true), (true, false), (true, true)] {
        for after in 0.. {
            let disk = Disk::new();
            let store = store_on(&disk).await;
            let mut watch = store.watch(Revision(1)).await.unwrap();
            disk.fail(Fault { after, done, lost: power_cut });
            let outcome = store.commit(put("a", "2")).await;
            if disk.take_fault() {
                assert_eq!(outcome, Outcome::Committed(Revision(2)));
                break;
            }
            let case = format!("operation {after}, done: {done}, power cut: {power_cut}");
            match &outcome {
                Outcome::Unknown(reason) => assert!(reason.contains("injected"), "{case}: {reason}"),
                // redb cleans up after a commit and ignores failures of that.
                Outcome::Committed(Revision(2)) => {}
                other @ (Outcome::Committed(_) | Outcome::Conflict(_) | Outcome::Refused(_)) => {
                    panic!("{case}: {other:?}")
                }
            }
            // The caller may read at once: the file was reopened before the answer.
            let (revision, records) = read_all(&store).await;
            let value: Bytes = match revision {
                Revision(1) => "1".into(),
                Revision(2) => "2".into(),
                other => panic!("{case}: revision {other}"),
            };
            assert_eq!(records, [("a".into(), Versioned { revision, value })], "{case}");
            if matches!(outcome, Outcome::Committed(_)) {
                assert_eq!(revision, Revision(2), "{case}: an acknowledged commit is lost");
            }
            match revision {
                Revision(1) => lost += 1,
                _ => {
                    landed += 1;
                    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(2), "{case}");
                }
            }
            // The store continues without a gap, also in the watch.
            let last = committed(&store, put("b", "3")).await;
            assert_eq!(last.0, revision.0 + 1, "{case}");
            let batch = next(&mut watch).await.unwrap();
            assert_eq!((batch.revision, &*batch.changes[0].key), (last, "b"), "{case}");
            let before = read_all(&store).await;
            drop(store);
            let again = RedbStore::open_with("disk", move || disk.open()).unwrap();
            assert_eq!(read_all(&again).await, before, "{case}");
        }
    }
    assert!(landed > 0 && lost > 0, "both cases must occur: {landed} landed, {lost} lost");
}

#[tokio::test]
async fn failed_batch_is_unknown_and_later_commits_refused() {
    let disk = Disk::new();
    let store = store_on(&disk).await;
    let before = disk.syncs();
    committed(&store, put("a", "2")).await;
    let one = disk.syncs() - before;

    disk.hold(true);
    let mut waiting = queue(&store, vec![put("first", "0")]);
    disk.wait_for_sync();
    // These are one batch, and its first sync fails.
    let absent = |key: &str, txn| Txn { expect: vec![Expect { key: key.into(), revision: None }], ..txn };
    let rest = vec![put("b", "1"), absent("b", put("c", "2")), Txn::default(), put("d", "3")];
    waiting.extend(queue(&store, rest));
    disk.break_at_sync(one);
    disk.hold(false);
    let mut outcomes = Vec::new();
    for commit in waiting {
        outcomes.push(commit.await);
    }
    assert_eq!(outcomes[0], Outcome::Committed(Revision(3)), "the previous batch is not affected");
    assert!(matches!(outcomes[1], Outcome::Unknown(_)), "{:?}", outcomes[1]);
    assert!(unavailable(&outcomes[2]), "a conflict with an uncertain write was reported: {:?}", outcomes[2]);
    assert!(unavailable(&outcomes[3]), "{:?}", outcomes[3]);
    assert!(matches!(outcomes[4], Outcome::Unknown(_)), "{:?}", outcomes[4]);

    disk.set_broken(false);
    assert_eq!(committed(&store, put("e", "4")).await, Revision(4), "the failed batch did not land");
}

/// A panic inside redb is a failed commit: every caller gets a correct outcome, and the store continues once its file
/// opens again.
#[tokio::test]
async fn a_panic_is_a_failed_commit() {
    let disk = Disk::new();
    let store = store_on(&disk).await;
    let mut watch = store.watch(Revision(1)).await.unwrap();
    disk.set_panics(true);
    let outcome = store.commit(put("a", "2")).await;
    assert!(matches!(&outcome, Outcome::Unknown(why) if why.contains("notbefore check")), "{outcome:?}");
    assert!(unavailable(&store.commit(put("a", "3")).await));
    disk.set_panics(false);
    assert_eq!(
        committed(&store, put("a", "4")).await,
        Revision(2),
        "nothing was synced, so nothing is durable"
    );
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(2));
}

#[tokio::test]
async fn broken_disk_makes_store_unavailable_until_repaired() {
    let disk = Disk::new();
    let store = store_on(&disk).await;
    let mut watch = store.watch(Revision(1)).await.unwrap();
    disk.set_broken(true);
    assert!(matches!(store.commit(put("a", "2")).await, Outcome::Unknown(_)));
    for _ in 0..3 {
        let refused = store.commit(put("a", "3")).await;
        assert!(unavailable(&refused), "{refused:?}");
        let Err(ReadError::Unavailable(reason)) = store.snapshot().await else {
            panic!("snapshot of a broken disk")
        };
        assert!(reason.contains("the disk is broken"), "{reason}");
    }
    disk.set_broken(false);
    // The first commit after the repair succeeds.
    assert_eq!(committed(&store, put("a", "4")).await, Revision(2));
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(2));
    assert_eq!(read_all(&store).await.0, Revision(2));
}

#[tokio::test]
async fn idle_store_reopens_by_itself() {
    let disk = Disk::new();
    let store = store_on(&disk).await;
    let mut watch = store.watch(Revision(1)).await.unwrap();
    let before = disk.syncs();
    committed(&store, put("a", "2")).await;
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(2));

    // The commit is durable, its answer is lost, and the disk breaks before the file is reopened.
    disk.break_at_sync(disk.syncs() - before - 1);
    assert!(matches!(store.commit(put("a", "3")).await, Outcome::Unknown(_)));
    assert!(store.snapshot().await.is_err());
    disk.set_broken(false);
    // The thread reopens it by its timer only: the watch yields the durable commit.
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(3));
    assert_eq!(read_all(&store).await.0, Revision(3));
}

#[tokio::test]
async fn failed_read_reopens_file() {
    let disk = Disk::new();
    let image = {
        let store = store_on(&disk).await;
        let value = "x".repeat(100_000);
        for n in 0..20 {
            committed(&store, put(&format!("large/{n}"), &value)).await;
        }
        drop(store);
        disk.image()
    };
    let disk = Disk::holding(image);
    let open = disk.clone();
    let store = RedbStore::open_with("disk", move || open.open()).unwrap();
    let snapshot = store.snapshot().await.unwrap();
    disk.set_broken(true);
    assert!(matches!(snapshot.scan("large/", None, 100).await, Err(ReadError::Unavailable(_))));
    disk.set_broken(false);
    // Without a reopen it would refuse this one.
    assert_eq!(committed(&store, put("b", "2")).await, Revision(22));
    assert_eq!(read_all(&store).await.1.len(), 22);
}

#[tokio::test]
async fn reopen_rejects_other_file() {
    let disk = Disk::new();
    let store = store_on(&disk).await;
    let young = disk.image();
    committed(&store, put("a", "2")).await;
    committed(&store, put("a", "3")).await;
    let old = disk.image();

    disk.fail(Fault { after: 0, done: false, lost: false });
    disk.replace(Vec::new());
    assert!(matches!(store.commit(put("a", "4")).await, Outcome::Unknown(_)));
    let Outcome::Refused(Refusal::Unavailable(reason)) = store.commit(put("a", "4")).await else {
        panic!("wrote to an emptied file")
    };
    assert_eq!(reason, "disk was removed or emptied while it was open; restore it and restart");

    disk.replace(young);
    let Outcome::Refused(Refusal::Unavailable(reason)) = store.commit(put("a", "4")).await else {
        panic!("wrote to an older copy")
    };
    assert!(reason.starts_with("the file is at revision 1, but 3 was durable"), "{reason}");

    disk.replace(old);
    assert_eq!(committed(&store, put("a", "4")).await, Revision(4));
}

/// A full disk, a read-only disk, and failing syncs: a commit fails or is refused. After the repair the store works,
/// with all commits and without duplicates.
#[tokio::test]
async fn store_survives_each_failure_mode() {
    for trouble in [FailureMode::Full, FailureMode::ReadOnly, FailureMode::SyncFails] {
        let disk = Disk::new();
        let store = store_on(&disk).await;
        disk.set_failure(Some(trouble));
        let value = "x".repeat(400_000);
        let mut last = Revision(1);
        let mut outcome = store.commit(put("large/1", &value)).await;
        while let Outcome::Committed(revision) = outcome {
            last = revision;
            outcome = store.commit(put(&format!("large/{revision}"), &value)).await;
            assert!(last < Revision(100), "{trouble:?}: every commit succeeded");
        }
        assert!(matches!(outcome, Outcome::Unknown(_)), "{trouble:?}: {outcome:?}");
        let again = store.commit(put("b", &value)).await;
        assert!(matches!(again, Outcome::Unknown(_)) || unavailable(&again), "{trouble:?}: {again:?}");

        disk.set_failure(None);
        // The outcome of those two is unknown, so they may be there; the next one is there.
        let next = committed(&store, put("c", "1")).await;
        assert!((last.0 + 1..=last.0 + 3).contains(&next.0), "{trouble:?}: {last} and then {next}");
        let (revision, records) = read_all(&store).await;
        assert_eq!(revision, next, "{trouble:?}");
        let acknowledged = records.iter().filter(|(_, record)| record.revision <= last).count();
        assert_eq!(acknowledged as u64, last.0, "{trouble:?}: an acknowledged commit is lost");
    }
}
