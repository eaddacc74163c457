//! Transactions at the limits of the store and of etcd, and a full database.

use bytes::Bytes;
use notbefore_etcd::{Alarm, AlarmKind};
use notbefore_store::{
    Expect, Outcome, Refusal, Store, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn, VALUE_BYTES_MAX,
};

use crate::support::{NO_FSYNC, committed, committed_at_last, etcd, put, read};

/// As many operations and bytes as a transaction may have; half of the operations are expectations of absence.
fn largest() -> Txn {
    let half = TXN_OPERATIONS_MAX / 2;
    let key = |number: usize| -> notbefore_store::Key { format!("large/{number:0>100}").into() };
    let expect = (0..half).map(|number| Expect { key: key(number), revision: None }).collect();
    let mut txn = Txn { expect, ..Txn::default() };
    let mut room = TXN_BYTES_MAX - 2 * half * key(0).len();
    for number in 0..half {
        let bytes = (room / (half - number)).min(VALUE_BYTES_MAX);
        room -= bytes;
        txn.put.push((key(number), Bytes::from(vec![b'x'; bytes])));
    }
    assert_eq!((txn.check(), txn.bytes()), (Ok(()), TXN_BYTES_MAX));
    txn
}

#[tokio::test]
async fn the_largest_transaction_is_committed_and_compared() {
    let etcd = etcd(NO_FSYNC).await;
    let store = etcd.store(&format!("/{}/", "p".repeat(126))).await;
    let txn = largest();
    let revision = committed(&store, txn.clone()).await;
    // Its conflict shows all values.
    let Outcome::Conflict(found) = store.commit(txn.clone()).await else { panic!("no conflict") };
    let shown: Vec<_> = found.into_iter().map(|found| (found.key, found.revision, found.value)).collect();
    let expected: Vec<_> =
        txn.put.into_iter().map(|(key, value)| (key, Some(revision), Some(value))).collect();
    assert!(shown == expected);
}

#[tokio::test]
async fn lower_limits_of_etcd_are_refusals() {
    let etcd = etcd(&["--unsafe-no-fsync", "--max-request-bytes", "65536", "--max-txn-ops", "10"]).await;
    let store = etcd.store("/nb/").await;
    let base = store.snapshot().await.unwrap().revision();
    // Below and above the limit of etcd's gRPC server, which is 512 KiB higher.
    for bytes in [100_000, 1_300_000] {
        let value = Bytes::from(vec![b'x'; bytes / 4]);
        let put = (0..4).map(|number| (format!("a/{number}").into(), value.clone())).collect();
        match store.commit(Txn { put, ..Txn::default() }).await {
            Outcome::Refused(Refusal::Unavailable(text)) => {
                assert!(text.contains("--max-request-bytes"), "{text}")
            }
            other @ (Outcome::Committed(_)
            | Outcome::Conflict(_)
            | Outcome::Refused(_)
            | Outcome::Unknown(_)) => {
                panic!("{bytes}: {other:?}")
            }
        }
    }
    let delete = (0..11).map(|number| format!("a/{number}").into()).collect();
    match store.commit(Txn { delete, ..put("b", "") }).await {
        Outcome::Refused(Refusal::Unavailable(text)) => assert!(text.contains("--max-txn-ops"), "{text}"),
        other
        @ (Outcome::Committed(_) | Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
            panic!("{other:?}")
        }
    }
    assert_eq!(store.snapshot().await.unwrap().revision(), base);
}

#[tokio::test]
async fn a_full_database_leaves_outcomes_open_until_it_is_cleared() {
    let etcd = etcd(&["--unsafe-no-fsync", "--quota-backend-bytes", "2000000"]).await;
    let store = etcd.store("/nb/").await;
    let value = "x".repeat(200_000);
    let mut last = None;
    let text = loop {
        match store.commit(put("a", &value)).await {
            Outcome::Committed(revision) => last = Some(revision),
            Outcome::Unknown(text) => break text,
            other @ (Outcome::Conflict(_) | Outcome::Refused(_)) => panic!("{other:?}"),
        }
    };
    assert!(text.contains("space exceeded"), "{text}");
    let status = store.status().await;
    let alarm = Alarm { member_id: status.members[0].id, kind: AlarmKind::NoSpace };
    assert_eq!(status.alarms.as_deref(), Some(&[alarm][..]));
    assert!(etcd.etcdctl(&["alarm", "list"]).contains("NOSPACE"));
    assert!(read(&store, "a").await.map(|record| record.revision) >= last, "reads work");
    // A node can start, and says by its status what is wrong.
    let late = etcd.store("/nb/").await;
    assert!(late.status().await.has_alarm(AlarmKind::NoSpace));
    assert!(matches!(late.commit(put("b", "1")).await, Outcome::Unknown(_)));

    let newest = store.snapshot().await.unwrap().revision();
    store.compact(newest).await.unwrap();
    etcd.etcdctl(&["defrag"]);
    etcd.etcdctl(&["alarm", "disarm"]);
    committed_at_last(&store, put("a", "small")).await;
    assert!(!store.status().await.has_alarm(AlarmKind::NoSpace));
}
