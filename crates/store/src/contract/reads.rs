//! Guarantees of snapshots.

use bytes::Bytes;

use super::{committed, delete, get, put, revision, scan_keys, snapshot, versioned};
use crate::{PAGE_BYTES_MAX, Store, Txn, VALUE_BYTES_MAX};

pub(super) async fn empty_store_is_empty(store: impl Store) {
    let empty = snapshot(&store).await;
    assert_eq!(get(&*empty, "a").await, None, "an empty store has no record");
    assert_eq!(scan_keys(&*empty, "", None, 10).await, (vec![], false), "a scan of it is empty");
    assert_eq!(revision(&store).await, empty.revision(), "reading takes no revision");
}

async fn fill(store: &impl Store, keys: &[&str]) {
    let put = keys.iter().map(|&key| (key.into(), key.as_bytes().to_vec().into())).collect();
    committed(store, Txn { put, ..Txn::default() }).await;
}

pub(super) async fn scan_is_ordered_within_prefix(store: impl Store) {
    fill(&store, &["b", "a/2", "ab", "a/10", "a", "a/", "a/é", "a0", "A/1", "a/1/x", "a/1"]).await;
    let all = snapshot(&store).await;
    let (keys, more) = scan_keys(&*all, "", None, 100).await;
    let expected = ["A/1", "a", "a/", "a/1", "a/1/x", "a/10", "a/2", "a/é", "a0", "ab", "b"];
    assert_eq!(keys, expected, "a scan is in the order of the keys' bytes");
    assert!(!more, "a scan that shows everything has no more");

    let within = ["a/", "a/1", "a/1/x", "a/10", "a/2", "a/é"];
    let (keys, more) = scan_keys(&*all, "a/", None, 100).await;
    assert_eq!((&keys[..], more), (&within.map(String::from)[..], false), "a/ matches neither ab nor a0");

    let (keys, _) = scan_keys(&*all, "a/", Some("a/10"), 100).await;
    assert_eq!(keys, within[4..], "a scan continues after `after`");
    let (keys, _) = scan_keys(&*all, "a/", Some("a/11"), 100).await;
    assert_eq!(keys, within[4..], "`after` need not be an existing key");
    let (keys, _) = scan_keys(&*all, "a/", Some("A"), 100).await;
    assert_eq!(keys, within, "an `after` before the prefix leaves nothing out");
    let past = scan_keys(&*all, "a/", Some("b"), 100).await;
    assert_eq!(past, (vec![], false), "an `after` past the prefix leaves nothing");
    let none = scan_keys(&*all, "a/3", None, 100).await;
    assert_eq!(none, (vec![], false), "an unused prefix finds nothing");

    match all.scan("a/1", None, 1).await {
        Ok(page) => {
            let expected = [("a/1".into(), versioned(all.revision(), "a/1"))];
            assert_eq!(page.records, expected, "a scan shows values and revisions");
        }
        Err(error) => panic!("a/1 could not be scanned: {error}"),
    }
}

pub(super) async fn pages_have_no_gaps_or_repeats(store: impl Store) {
    let keys = ["p/1", "p/2", "p/3", "p/4", "p/5", "p/6"];
    fill(&store, &keys).await;
    fill(&store, &["o/9", "q/1"]).await;
    let all = snapshot(&store).await;
    for limit in 1..=keys.len() + 1 {
        let mut read: Vec<String> = Vec::new();
        loop {
            let (page, more) = scan_keys(&*all, "p/", read.last().map(String::as_str), limit).await;
            assert!(page.len() <= limit, "a page has {} records of {limit}", page.len());
            read.extend(page);
            assert_eq!(more, read.len() < keys.len(), "`more` is wrong after {} records", read.len());
            if !more {
                break;
            }
        }
        assert_eq!(read, keys, "pages of {limit} do not add up to the whole");
    }
    let none = scan_keys(&*all, "p/", None, 0).await;
    assert_eq!(none, (vec![], true), "a page with limit 0 reports more");
}

pub(super) async fn pages_end_at_a_number_of_bytes(store: impl Store) {
    let large = Bytes::from(vec![7; VALUE_BYTES_MAX]);
    let each = PAGE_BYTES_MAX / VALUE_BYTES_MAX;
    for n in 0..=2 * each {
        let put = vec![(format!("p/{n:02}").into(), large.clone())];
        committed(&store, Txn { put, ..Txn::default() }).await;
    }
    let all = snapshot(&store).await;
    let (first, more) = scan_keys(&*all, "p/", None, 100).await;
    assert_eq!((first.len(), more), (each, true), "a page ends once it has {PAGE_BYTES_MAX} bytes");
    let (second, more) = scan_keys(&*all, "p/", first.last().map(String::as_str), 100).await;
    assert_eq!((second.len(), more), (each, true), "so does the next one");
    let (rest, more) = scan_keys(&*all, "p/", second.last().map(String::as_str), 100).await;
    assert_eq!((rest.len(), more), (1, false), "the last page has the rest");
}

pub(super) async fn a_scan_backwards_is_the_scan_reversed(store: impl Store) {
    let keys = ["p/1", "p/2", "p/2/a", "p/3", "p/é"];
    fill(&store, &["o", "p", "p."]).await;
    fill(&store, &keys).await;
    fill(&store, &["p0", "q/1"]).await;
    let all = snapshot(&store).await;
    let back = async |before: Option<&str>, limit| {
        let page = all.scan_back("p/", before, limit).await.unwrap_or_else(|error| panic!("{error}"));
        (page.records.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), page.more)
    };
    let reversed: Vec<String> = keys.iter().rev().map(|key| (*key).to_owned()).collect();
    for limit in 1..=keys.len() + 1 {
        let mut read: Vec<String> = Vec::new();
        loop {
            let (page, more) = back(read.last().map(String::as_str), limit).await;
            assert!(!page.is_empty(), "a page of {limit} that promised more is empty");
            read.extend(page);
            assert_eq!(more, read.len() < keys.len(), "`more` is wrong after {} records", read.len());
            if !more {
                break;
            }
        }
        assert_eq!(read, reversed, "backward pages of {limit} do not add up to the whole");
    }
    assert_eq!(
        back(Some("q"), 1).await,
        (vec!["p/é".into()], true),
        "a position after the prefix is its end"
    );
    assert_eq!(back(Some("p/"), 1).await, (vec![], false), "nothing comes before the prefix");
}

pub(super) async fn snapshot_is_immutable(store: impl Store) {
    let first = committed(&store, put("a", "1")).await;
    let before = snapshot(&store).await;
    committed(&store, put("a", "2")).await;
    committed(&store, put("b", "2")).await;
    committed(&store, delete("a")).await;
    assert_eq!(before.revision(), first, "a snapshot keeps its revision");
    assert_eq!(get(&*before, "a").await, Some(versioned(first, "1")), "a later put shows in a snapshot");
    assert_eq!(get(&*before, "b").await, None, "a later record shows in a snapshot");
    assert_eq!(scan_keys(&*before, "", None, 10).await, (vec!["a".into()], false), "so does a scan");
    assert_eq!(get(&*snapshot(&store).await, "a").await, None, "a new snapshot shows the newest revision");
}

pub(super) async fn pages_of_a_snapshot_show_one_revision(store: impl Store) {
    let keys = ["p/1", "p/3", "p/5", "p/7"];
    fill(&store, &keys).await;
    let before = snapshot(&store).await;
    let mut read: Vec<String> = Vec::new();
    for turn in 0..keys.len() {
        let (page, _) = scan_keys(&*before, "p/", read.last().map(String::as_str), 1).await;
        read.extend(page);
        // Between two pages the next key is deleted and another one added.
        if let Some(next) = keys.get(turn + 1) {
            committed(&store, delete(next)).await;
        }
        committed(&store, put(&format!("p/{}", 2 * turn + 2), "new")).await;
    }
    assert_eq!(read, keys, "the pages of one snapshot show commits made between them");
}
