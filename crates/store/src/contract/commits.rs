//! Guarantees of commits.

use bytes::Bytes;

use super::{
    committed, concurrently, conflicting, delete, expecting, get, put, read, revision, snapshot, versioned,
};
use crate::{
    Expect, Found, Outcome, Refusal, Revision, Store, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn,
    VALUE_BYTES_MAX, Versioned,
};

pub(super) async fn record_keeps_its_revision(store: impl Store) {
    let base = revision(&store).await;
    let first = committed(&store, put("a", "1")).await;
    assert!(first > base, "the first commit takes a higher revision");
    let second = committed(&store, put("b", "2")).await;
    assert!(second > first, "the second commit takes a higher revision than the first");
    assert_eq!(revision(&store).await, second, "a snapshot taken after a commit shows its revision");
    assert_eq!(read(&store, "a").await, Some(versioned(first, "1")), "a record keeps its own revision");
    let third = committed(&store, put("a", "3")).await;
    assert_eq!(read(&store, "a").await, Some(versioned(third, "3")), "a second put replaces the first");
    assert_eq!(read(&store, "b").await, Some(versioned(second, "2")), "a put leaves other records alone");
}

pub(super) async fn absence_is_compared(store: impl Store) {
    let first = committed(&store, expecting("a", None, put("a", "1"))).await;
    let found = conflicting(&store, expecting("a", None, put("a", "2"))).await;
    let there = Found { key: "a".into(), revision: Some(first), value: Some("1".into()) };
    assert_eq!(found, [there], "create-if-absent finds the record there, with its value");
    committed(&store, delete("a")).await;
    committed(&store, expecting("a", None, put("a", "3"))).await;
}

pub(super) async fn revisions_are_compared(store: impl Store) {
    let first = committed(&store, put("a", "1")).await;
    committed(&store, put("b", "x")).await;
    let second = committed(&store, expecting("a", Some(first), put("a", "2"))).await;
    let found = conflicting(&store, expecting("a", Some(first), put("a", "3"))).await;
    let newer = Found { key: "a".into(), revision: Some(second), value: None };
    assert_eq!(found, [newer], "the old revision no longer matches");
    let found = conflicting(&store, expecting("nowhere", Some(first), put("a", "3"))).await;
    let none = Found { key: "nowhere".into(), revision: None, value: None };
    assert_eq!(found, [none], "no record matches no revision");
    // The compared key may differ from the written one.
    committed(&store, expecting("a", Some(second), put("c", "4"))).await;
}

pub(super) async fn conflict_reports_current_record_and_writes_nothing(store: impl Store) {
    let first = committed(&store, put("a", "1")).await;
    let second = committed(&store, put("b", "2")).await;
    let txn = Txn {
        expect: vec![
            Expect { key: "a".into(), revision: Some(first) },
            Expect { key: "b".into(), revision: Some(first) },
            Expect { key: "c".into(), revision: Some(second) },
        ],
        put: vec![("a".into(), Bytes::from_static(b"9")), ("d".into(), Bytes::from_static(b"9"))],
        delete: vec!["b".into()],
    };
    let found = conflicting(&store, txn).await;
    let expected = [
        Found { key: "b".into(), revision: Some(second), value: None },
        Found { key: "c".into(), revision: None, value: None },
    ];
    assert_eq!(found, expected, "a conflict lists the failed expectations and no others");
    let after = snapshot(&store).await;
    assert_eq!(after.revision(), second, "a conflict takes no revision");
    assert_eq!(get(&*after, "a").await, Some(versioned(first, "1")), "a conflict puts nothing");
    assert_eq!(get(&*after, "d").await, None, "a conflict puts nothing");
    assert_eq!(get(&*after, "b").await, Some(versioned(second, "2")), "a conflict deletes nothing");
}

pub(super) async fn a_deleted_record_is_gone(store: impl Store) {
    let first = committed(&store, put("a", "1")).await;
    let second = committed(&store, expecting("a", Some(first), delete("a"))).await;
    assert!(second > first, "a delete takes a revision");
    assert_eq!(read(&store, "a").await, None, "a deleted record is gone");
    let third = committed(&store, put("a", "2")).await;
    assert_eq!(read(&store, "a").await, Some(versioned(third, "2")), "a key can be used again");
}

pub(super) async fn puts_and_deletes_go_together(store: impl Store) {
    committed(&store, put("old", "1")).await;
    let moved = Txn { delete: vec!["old".into()], ..put("new", "1") };
    let revision = committed(&store, moved).await;
    let after = snapshot(&store).await;
    assert_eq!(get(&*after, "old").await, None, "the delete of a mixed transaction happened");
    assert_eq!(get(&*after, "new").await, Some(versioned(revision, "1")), "so did its put");
}

pub(super) async fn a_transaction_that_changes_nothing_takes_no_revision(store: impl Store) {
    let first = committed(&store, put("a", "1")).await;
    assert_eq!(committed(&store, Txn::default()).await, first, "an empty transaction takes no revision");
    let compared = committed(&store, expecting("a", Some(first), Txn::default())).await;
    assert_eq!(compared, first, "comparing answers the revision at which it held");
    let gone = committed(&store, delete("nowhere")).await;
    assert_eq!(gone, first, "deleting a missing record takes no revision");
    conflicting(&store, expecting("a", None, Txn::default())).await;
    assert!(committed(&store, put("b", "2")).await > first, "revisions rise");
}

pub(super) async fn limits_are_refused(store: impl Store) {
    let base = revision(&store).await;
    let key = |number: usize| -> crate::Key { format!("k/{number:03}").into() };

    let most = Txn { delete: (0..TXN_OPERATIONS_MAX).map(key).collect(), ..Txn::default() };
    committed(&store, most).await;
    let operations = TXN_OPERATIONS_MAX + 1;
    let many = Txn { delete: (0..operations).map(key).collect(), ..put("a", "1") };
    let refusal = Refusal::TooManyOperations { operations: operations + 1 };
    assert_eq!(store.commit(many).await, Outcome::Refused(refusal), "too many operations are refused");

    let large = Bytes::from(vec![7; VALUE_BYTES_MAX + 1]);
    let txn = Txn { put: vec![(key(1), large.clone())], ..Txn::default() };
    let refusal = Refusal::ValueTooLarge { key: key(1), bytes: large.len() };
    assert_eq!(store.commit(txn).await, Outcome::Refused(refusal), "a large value is refused");

    let count = TXN_BYTES_MAX / VALUE_BYTES_MAX + 1;
    let value = large.slice(1..);
    let txn = Txn { put: (0..count).map(|n| (key(n), value.clone())).collect(), ..Txn::default() };
    let refusal = Refusal::TxnTooLarge { bytes: count * (value.len() + key(0).len()) };
    assert_eq!(store.commit(txn).await, Outcome::Refused(refusal), "a large transaction is refused");

    for (put, delete) in
        [(vec![key(1), key(1)], vec![]), (vec![key(1)], vec![key(1)]), (vec![], vec![key(1), key(1)])]
    {
        let put = put.into_iter().map(|key| (key, Bytes::new())).collect();
        let refusal = Refusal::DuplicateKey { key: key(1) };
        let outcome = store.commit(Txn { put, delete, ..Txn::default() }).await;
        assert_eq!(outcome, Outcome::Refused(refusal), "a key that is written twice is refused");
    }

    assert_eq!(revision(&store).await, base, "a refused transaction writes nothing");
}

pub(super) async fn commit_all_transactions_are_independent(store: impl Store) {
    let base = committed(&store, put("a", "0")).await;
    let large = Bytes::from(vec![7; VALUE_BYTES_MAX + 1]);
    let outcomes = store
        .commit_all(vec![
            expecting("a", Some(base), put("a", "1")),
            expecting("a", Some(base), put("a", "2")),
            Txn { put: vec![("b".into(), large.clone())], ..Txn::default() },
            expecting("b", None, put("b", "3")),
            Txn::default(),
        ])
        .await;
    let (first, second) = match outcomes[..] {
        [Outcome::Committed(first), _, _, Outcome::Committed(second), _] => (first, second),
        _ => panic!("transactions without a conflict failed: {outcomes:?}"),
    };
    assert!(base < first && first < second, "revisions rise in the order of the transactions");
    let found = Found { key: "a".into(), revision: Some(first), value: None };
    let refusal = Refusal::ValueTooLarge { key: "b".into(), bytes: large.len() };
    let expected = [
        Outcome::Committed(first),
        Outcome::Conflict(vec![found]),
        Outcome::Refused(refusal),
        Outcome::Committed(second),
        Outcome::Committed(second),
    ];
    assert_eq!(outcomes, expected, "each compares with the state that the ones before it left");
    assert_eq!(read(&store, "b").await, Some(versioned(second, "3")));
    assert_eq!(store.commit_all(Vec::new()).await, [], "no transactions, no outcomes");
}

pub(super) async fn values_round_trip(store: impl Store) {
    let all: Vec<u8> = (0..=255).collect();
    let values = [Vec::new(), all, vec![7; VALUE_BYTES_MAX]];
    for value in values {
        let value = Bytes::from(value);
        committed(&store, Txn { put: vec![("a".into(), value.clone())], ..Txn::default() }).await;
        let back = read(&store, "a").await.map(|record| record.value);
        assert!(back.as_ref() == Some(&value), "a value of {} bytes was read back differently", value.len());
    }
}

/// 32 writers increment one counter by compare-and-swap; a loser reads the record and retries.
pub(super) async fn concurrent_increments_are_all_counted<S: Store + Clone>(store: S) {
    const WRITERS: usize = 32;
    const EACH: u64 = 8;
    let base = revision(&store).await;
    let seen = concurrently(WRITERS, |_| {
        let store = store.clone();
        async move {
            let mut seen: Option<(Revision, u64)> = None;
            let mut won = Vec::new();
            while won.len() < EACH as usize {
                let value = seen.map_or(0, |(_, value)| value) + 1;
                let swap = expecting("n", seen.map(|(revision, _)| revision), put("n", &value.to_string()));
                match store.commit(swap).await {
                    Outcome::Committed(revision) => {
                        won.push(revision);
                        seen = Some((revision, value));
                    }
                    Outcome::Conflict(_) => seen = read(&store, "n").await.as_ref().map(counter),
                    other @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                        panic!("compare-and-swap neither succeeded nor conflicted: {other:?}")
                    }
                }
            }
            won
        }
    })
    .await;

    let total = WRITERS as u64 * EACH;
    let last = read(&store, "n").await.map(|record| record.value);
    assert_eq!(last, Some(Bytes::from(total.to_string())), "an increment was lost");
    let mut revisions: Vec<u64> = seen.concat().iter().map(|revision| revision.0).collect();
    revisions.sort_unstable();
    assert_eq!(revisions.len() as u64, total);
    assert!(revisions.is_sorted_by(|one, two| one < two), "two commits have the same revision");
    assert!(revisions.first().is_some_and(|first| *first > base.0), "a revision is not higher than before");
}

fn counter(record: &Versioned) -> (Revision, u64) {
    let text = String::from_utf8_lossy(&record.value);
    match text.parse() {
        Ok(value) => (record.revision, value),
        Err(_) => panic!("a read showed {text:?}, which was never written"),
    }
}
