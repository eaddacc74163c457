//! Damage: flipped bits, and a file that was moved or replaced.

use std::collections::BTreeSet;
use std::fs;

use super::format::RECORDS;
use super::*;
use crate::{Expect, Tallies};

/// The tallies of the readable records.
async fn tallied(store: &RedbStore) -> Tallies {
    let mut tallies = Tallies::default();
    for (key, record) in read_all(store).await.1 {
        tallies.add(&key, record.revision);
    }
    tallies
}

/// Changes the stored bytes of a record, like a disk error that redb's own checksums do not show.
fn corrupt_record(disk: &Disk, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let database = Database::builder().create_with_backend(disk.open().unwrap()).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut table = txn.open_table(RECORDS).unwrap();
        let mut raw = table.remove(key.as_bytes()).unwrap().unwrap().value().to_vec();
        change(&mut raw);
        table.insert(key.as_bytes(), raw.as_slice()).unwrap();
    }
    txn.commit().unwrap();
}

#[tokio::test]
async fn damaged_record_is_skipped_logged_and_counted_once() {
    let disk = Disk::new();
    let open = disk.clone();
    let open = move || open.open();
    let store = RedbStore::open_with("disk", open.clone()).unwrap();
    for n in 1..=4 {
        committed(&store, put(&format!("fact/{n}"), "value")).await;
    }
    drop(store);
    corrupt_record(&disk, "fact/2", |raw| raw[13] ^= 1);

    let store = RedbStore::open_with("disk", open).unwrap();
    let snapshot = store.snapshot().await.unwrap();
    for _ in 0..2 {
        let damaged = Err(ReadError::Damaged { key: "fact/2".to_owned() });
        assert_eq!(snapshot.get("fact/2").await, damaged);
        let page = snapshot.scan("fact/", None, 10).await.unwrap();
        let keys: Vec<&str> = page.records.iter().map(|(key, _)| &**key).collect();
        assert_eq!((keys, page.more), (vec!["fact/1", "fact/3", "fact/4"], false));
        assert_eq!(page.damaged, ["fact/2".into()]);
        assert_eq!(snapshot.scan_back("fact/", None, 10).await.unwrap().damaged.len(), 1);
        assert_eq!(store.damaged(), 1);
    }
    // Scans of other kinds do not see it.
    assert_eq!(snapshot.scan("e", None, 10).await.unwrap(), crate::Page::default());
    // A page that ends before it continues after it.
    let page = snapshot.scan("fact/", Some("fact/1"), 1).await.unwrap();
    assert_eq!((&*page.records[0].0, page.damaged.len(), page.more), ("fact/3", 1, true));

    // Only a comparison with it is refused; a write repairs it.
    let expect = vec![Expect { key: "fact/2".into(), revision: None }];
    let refused = store.commit_all(vec![Txn { expect, ..put("fact/5", "") }, put("fact/6", "")]).await;
    let [Outcome::Refused(Refusal::Unavailable(why)), Outcome::Committed(_)] = &refused[..] else {
        panic!("{refused:?}")
    };
    assert!(why.contains("fact/2 is damaged"), "{why}");
    committed(&store, put("fact/2", "again")).await;
    let snapshot = store.snapshot().await.unwrap();
    assert_eq!(snapshot.scan("fact/", None, 10).await.unwrap().records.len(), 5);
    assert_eq!(snapshot.tallies(), Some(&tallied(&store).await));
}

#[tokio::test]
async fn tallies_follow_puts_and_deletes() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", move || disk.open()).unwrap();
    let delete = |keys: &[&str]| keys.iter().map(|&key| key.into()).collect();
    let put_too = |key: &str, txn: Txn| Txn { put: [put(key, "").put, txn.put].concat(), ..txn };
    for (txn, expected) in [
        (put_too("vm/a", put_too("scope/a", put("alive", ""))), [1, 1, 1]),
        (put("vm/a", "again"), [1, 1, 1]),
        (Txn { delete: delete(&["vm/a", "vm/b"]), ..put("scope/b", "") }, [1, 2, 0]),
        (Txn { delete: delete(&["alive", "scope/a", "scope/b"]), ..Txn::default() }, [0, 0, 0]),
    ] {
        committed(&store, txn).await;
        let snapshot = store.snapshot().await.unwrap();
        let tallies = snapshot.tallies().unwrap();
        assert_eq!(["", "scope/", "vm/"].map(|kind| tallies.of(kind).count), expected);
        assert_eq!(*tallies, tallied(&store).await);
    }
}

/// Flips each bit of every record, including key and checksum.
#[tokio::test]
async fn corrupt_record_is_never_returned() {
    let disk = Disk::new();
    let store = RedbStore::open_with("disk", move || disk.open()).unwrap();
    for (key, value) in [("scope/default/web", "2 {\"incarnation\":3}"), ("ended/1/x", ""), ("alive", "2 {}")]
    {
        committed(&store, put(key, value)).await;
    }
    let replace = |from: &[u8], to: &[u8], raw: &[u8]| {
        let written = store.inner.shared.with_database(|database| {
            let mut txn = database.begin_write().unwrap();
            txn.set_durability(::redb::Durability::None).unwrap();
            {
                let mut table = txn.open_table(RECORDS).unwrap();
                table.remove(from).unwrap().unwrap();
                table.insert(to, raw).unwrap();
            }
            txn.commit().unwrap();
        });
        written.unwrap();
    };
    let (_, records) = read_all(&store).await;
    for (key, record) in &records {
        let raw = format::encode(key.as_bytes(), record.revision, &record.value);
        let parts = [key.as_bytes(), &raw].concat();
        for bit in 0..parts.len() * 8 {
            let mut flipped = parts.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (flipped_key, flipped_raw) = flipped.split_at(key.len());
            replace(key.as_bytes(), flipped_key, flipped_raw);
            let snapshot = store.snapshot().await.unwrap();
            let found = snapshot.get(key).await;
            assert!(
                matches!(found, Ok(None) | Err(ReadError::Damaged { .. })),
                "{key}, bit {bit}: {found:?}"
            );
            for page in [snapshot.scan("", None, 10).await, snapshot.scan_back("", None, 10).await] {
                let page = page.unwrap();
                assert_eq!((page.records.len(), page.damaged.len()), (2, 1), "{key}, bit {bit}");
                assert!(page.records.iter().all(|(other, _)| **other != **key), "{key}, bit {bit}");
            }
            replace(flipped_key, key.as_bytes(), &raw);
        }
    }
    assert_eq!(read_all(&store).await.1, records);
}

/// With any bit of the file flipped, reads return the written values, and missing records are reported.
#[tokio::test]
async fn flipped_file_bits_never_change_reads() {
    let disk = Disk::new();
    let open = disk.clone();
    let store = RedbStore::open_with("disk", move || open.open()).unwrap();
    for n in 0..40 {
        committed(&store, put(&format!("scope/{n:02}"), &format!("{n}-{}", "x".repeat(200)))).await;
    }
    let (revision, records) = read_all(&store).await;
    drop(store);
    let image = disk.image();
    let used: Vec<usize> = (0..image.len()).filter(|at| image[*at] != 0).collect();
    let mut noticed = 0;
    // A prime step covers all parts of all pages, and all bits.
    for (number, at) in used.iter().step_by(127).enumerate() {
        let mut flipped = image.clone();
        flipped[*at] ^= 1 << (number % 8);
        let disk = Disk::holding(flipped);
        let Ok(store) = RedbStore::open_with("disk", move || disk.open()) else {
            noticed += 1;
            continue;
        };
        let Ok(snapshot) = store.snapshot().await else {
            noticed += 1;
            continue;
        };
        let Ok(page) = snapshot.scan("", None, 1_000).await else {
            noticed += 1;
            continue;
        };
        let found: Vec<(String, Versioned)> =
            page.records.into_iter().map(|(key, record)| (key.to_string(), record)).collect();
        let is_whole = found == records && snapshot.revision() == revision;
        let mut tallies = Tallies::default();
        found.iter().for_each(|(key, record)| tallies.add(key, record.revision));
        let is_missed = !page.damaged.is_empty() || snapshot.tallies() != Some(&tallies);
        assert!(is_whole || is_missed, "byte {at} of {}, bit {}", image.len(), number % 8);
        assert!(found.iter().all(|one| records.contains(one)), "byte {at}, bit {}", number % 8);
        noticed += usize::from(is_missed);
    }
    assert!(noticed > 20, "only {noticed} were noticed");
}

/// After a lost write, a page is what an older commit wrote. Records of the past are found by their sum: their number is
/// right, and so are their checksums.
#[tokio::test]
async fn records_of_lost_writes_change_the_tallies() {
    const PAGE_BYTES: usize = 4096;
    let disk = Disk::new();
    let open = disk.clone();
    let store = RedbStore::open_with("disk", move || open.open()).unwrap();
    let mut older = BTreeSet::new();
    for n in 0..100 {
        committed(&store, put(&format!("scope/{:02}", n % 25), &format!("{n}-{}", "x".repeat(300)))).await;
        let image = disk.image();
        older.extend(image.chunks(PAGE_BYTES).map(<[u8]>::to_vec).enumerate().skip(1));
    }
    let before = read_all(&store).await;
    drop(store);
    let last = disk.image();
    let [mut found_by_count, mut found_by_sum] = [0; 2];
    // The file shrinks when it is closed.
    for (number, page) in older.into_iter().filter(|(number, _)| number * PAGE_BYTES < last.len()) {
        let mut image = last.clone();
        image[number * PAGE_BYTES..][..page.len()].copy_from_slice(&page);
        let disk = Disk::holding(image);
        let Ok(store) = RedbStore::open_with("disk", move || disk.open()) else { continue };
        let Ok(snapshot) = store.snapshot().await else { continue };
        let Ok(read) = snapshot.scan("", None, 1_000).await else { continue };
        let mut found = Tallies::default();
        read.records.iter().for_each(|(key, record)| found.add(key, record.revision));
        match snapshot.tallies().unwrap().of("scope/") {
            written if written.count != found.of("scope/").count => found_by_count += 1,
            written if written != found.of("scope/") => found_by_sum += 1,
            _ => assert_eq!(read_all(&store).await, before, "page {number}"),
        }
    }
    assert!(found_by_sum > 0, "none of {found_by_count} has the right number");
}

#[tokio::test]
async fn replaced_file_refuses_commits() {
    let directory = Directory::new();
    let (path, aside) = (directory.file("store.redb"), directory.file("aside"));
    let store = RedbStore::open_locked(path.clone(), directory.file("lock")).unwrap();
    let mut watch = store.watch(Revision(0)).await.unwrap();
    committed(&store, put("a", "1")).await;
    next(&mut watch).await.unwrap();

    fs::rename(&path, &aside).unwrap();
    let refused = async |says: &str| {
        let outcome = store.commit(put("a", "2")).await;
        let Outcome::Refused(Refusal::Unavailable(why)) = &outcome else { panic!("{outcome:?}") };
        assert!(why.contains(says) && why.contains("put the same file back"), "{why}");
    };
    refused("was removed while it was open").await;
    // The open file can still be read and exported.
    assert_eq!(read_all(&store).await.1.len(), 1);
    fs::copy(&aside, &path).unwrap();
    refused("is not the file that was opened").await;

    fs::rename(&aside, &path).unwrap();
    assert_eq!(committed(&store, put("a", "3")).await, Revision(2));
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(2));
}

/// The file is removed during a commit: the commit may be lost, so it is unknown; it counts once the file is back.
#[tokio::test]
async fn commit_to_removed_file_is_unknown() {
    let directory = Directory::new();
    let (path, aside) = (directory.file("store.redb"), directory.file("aside"));
    let mut opened = open::open_file(&path, None, OpenAttempt::First).ok();
    let place = opened.as_mut().and_then(|opened| opened.file.take());
    drop(opened);
    // The disk controls when the commit syncs; the path is that of a file.
    let disk = Disk::new();
    let under = disk.clone();
    let store = RedbStore::start(
        Box::new(move |attempt| {
            let (database, state) = open::open_backend(Path::new("disk"), under.open().unwrap(), attempt)?;
            Ok(Opened { database: OpenDatabase::unlocked(database), state, file: place.clone() })
        }),
        LIMITS,
    )
    .unwrap();
    let mut watch = store.watch(Revision(0)).await.unwrap();
    disk.hold(true);
    let (commit, moved) = tokio::join!(store.commit(put("a", "1")), async {
        let disk = disk.clone();
        let (path, aside) = (path.clone(), aside.clone());
        tokio::task::spawn_blocking(move || {
            disk.wait_for_sync();
            fs::rename(path, aside).unwrap();
            disk.hold(false);
        })
        .await
    });
    moved.unwrap();
    assert!(matches!(&commit, Outcome::Unknown(why) if why.contains("was removed")), "{commit:?}");
    assert!(matches!(store.commit(put("b", "2")).await, Outcome::Refused(Refusal::Unavailable(_))));
    fs::rename(&aside, &path).unwrap();
    assert_eq!(committed(&store, put("b", "3")).await, Revision(2));
    let batches = [next(&mut watch).await.unwrap(), next(&mut watch).await.unwrap()];
    assert_eq!(read_all(&store).await.1, replay(&batches));
}

/// After an I/O error, another store at the same revision is not accepted.
#[tokio::test]
async fn reopen_rejects_other_store_at_same_revision() {
    let disk = Disk::new();
    let open = disk.clone();
    let store = RedbStore::open_with("disk", move || open.open()).unwrap();
    committed(&store, put("a", "1")).await;
    let other = Disk::new();
    let open = other.clone();
    let theirs = RedbStore::open_with("other", move || open.open()).unwrap();
    committed(&theirs, put("a", "theirs")).await;
    drop(theirs);

    disk.fail(disk::Fault { after: 0, done: false, lost: false });
    disk.replace(other.image());
    assert!(matches!(store.commit(put("a", "2")).await, Outcome::Unknown(_)));
    let Outcome::Refused(Refusal::Unavailable(why)) = store.commit(put("a", "2")).await else {
        panic!("wrote to another store")
    };
    assert!(why.contains("belongs to another store"), "{why}");
}

#[test]
fn directory_lock_is_separate_from_store() {
    let directory = Directory::new();
    let (path, lock) = (directory.file("store.redb"), directory.file("lock"));
    let store = RedbStore::open_locked(path.clone(), lock.clone()).unwrap();
    // The store's own lock would not help here.
    fs::remove_file(&path).unwrap();
    assert!(matches!(RedbStore::open_locked(path.clone(), lock.clone()), Err(OpenError::InUse { .. })));
    drop(store);
    assert!(lock.exists(), "the lock file is never removed");
    drop(RedbStore::open_locked(path, lock).unwrap());
}

#[tokio::test]
async fn read_only_open_leaves_file_unchanged() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    {
        let store = RedbStore::open(&path).unwrap();
        for n in 0..50 {
            committed(&store, put(&format!("large/{n}"), &"x".repeat(9_000))).await;
        }
    }
    let before = fs::read(&path).unwrap();
    assert!(pages_are_whole(&path, &Progress::default()).unwrap());
    let store = RedbStore::open_unchanged(&path).unwrap();
    assert_eq!(read_all(&store).await.1.len(), 50);
    // None of this reaches the file.
    committed(&store, put("large/51", &"y".repeat(99_000))).await;
    assert_eq!(read_all(&store).await.1.len(), 51);
    drop(store);
    assert!(fs::read(&path).unwrap() == before);
    let _open = RedbStore::open(&path).unwrap();
    assert!(matches!(RedbStore::open_unchanged(&path), Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn scan_ends_at_a_run_of_damaged_entries_that_no_file_has() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    committed(&RedbStore::open(&path).unwrap(), put("a/1", "x")).await;
    let fill = |count: u32| {
        let database = Database::open(&path).unwrap();
        let txn = database.begin_write().unwrap();
        {
            let mut table = txn.open_table(RECORDS).unwrap();
            for n in 0..count {
                table.insert(format!("b/{n}").as_bytes(), b"damaged".as_slice()).unwrap();
            }
        }
        txn.commit().unwrap();
    };
    let scan = async || {
        let store = RedbStore::open_rebuilt(&path, &Progress::default()).unwrap();
        store.snapshot().await.unwrap().scan("b/", None, 10).await
    };
    fill(10_000);
    assert_eq!(scan().await.unwrap().damaged.len(), 10_000);
    fill(10_001);
    assert!(scan().await.is_err());
}

#[tokio::test]
async fn file_with_damaged_pages_is_read_and_not_written() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    {
        let store = RedbStore::open(&path).unwrap();
        for n in 0..50 {
            committed(&store, put(&format!("large/{n}"), &"x".repeat(9_000))).await;
        }
    }
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let value = damaged.windows(4_096).position(|bytes| bytes.iter().all(|byte| *byte == b'x')).unwrap();
    damaged[value] ^= 1;
    fs::write(&path, &damaged).unwrap();

    let store = RedbStore::open(&path).unwrap();
    let page = store.snapshot().await.unwrap().scan("", None, 100).await.unwrap();
    assert_eq!((page.records.len(), page.damaged.len()), (49, 1));
    let Outcome::Refused(why) = store.commit(put("large/51", "y")).await else { panic!("it is written") };
    assert!(why.to_string().contains("the checksums of its pages do not match"), "{why}");
    assert!(why.to_string().contains("notbefore check --data DIR"), "{why}");
    drop(store);
    assert!(fs::read(&path).unwrap() == damaged, "a damaged file is left as it is");

    fs::write(&path, &whole).unwrap();
    committed(&RedbStore::open(&path).unwrap(), put("large/51", "y")).await;
}
