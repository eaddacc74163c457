//! etcd that is replaced under a running node.

use notbefore_etcd::IdentityChange;
use notbefore_store::{Outcome, Store};

use crate::support::{committed, etcd, eventually, put, read_text};

#[tokio::test]
async fn a_restored_backup_stops_the_store_before_it_writes() {
    let mut etcd = etcd(&[]).await;
    let store = etcd.store("/nb/").await;
    committed(&store, put("a", "1")).await;
    let backup = etcd.dir.join("backup");
    etcd.etcdctl(&["snapshot", "save", backup.to_str().unwrap()]);
    let mut last = committed(&store, put("a", "2")).await;
    for _ in 0..20 {
        last = committed(&store, put("a", "3")).await;
    }
    assert_eq!(store.identity_changed(), None);

    etcd.kill();
    etcd.restore(&backup);
    etcd.start_again();
    etcd.wait_until_healthy().await;
    let outcome = eventually("the store notices", async || {
        let outcome = store.commit(put("a", "of the old node")).await;
        store.identity_changed().map(|_| outcome)
    })
    .await;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let change = store.wait_for_identity_change().await;
    // The backup has the cluster's name and members, so its id is the same, too.
    assert!(matches!(change, IdentityChange::WentBack { seen, .. } if seen == last), "{change:?}");
    assert!(matches!(store.commit(put("b", "")).await, Outcome::Refused(_)));
    assert!(store.snapshot().await.is_err());
    assert!(store.watch(last).await.is_err());

    let new = etcd.store("/nb/").await;
    assert_eq!(read_text(&new, "a").await.as_deref(), Some("1"), "nothing was written");
}

#[tokio::test]
async fn another_cluster_stops_the_store_before_it_writes() {
    let mut etcd = etcd(&[]).await;
    let store = etcd.store("/nb/").await;
    let mut watch = store.watch(committed(&store, put("a", "1")).await).await.unwrap();
    etcd.kill();
    assert!(watch.next().await.is_err());
    etcd.start_anew("another");
    etcd.wait_until_healthy().await;
    eventually("the store notices", async || {
        assert!(!matches!(store.commit(put("a", "2")).await, Outcome::Committed(_)));
        store.identity_changed()
    })
    .await;
    let change = store.wait_for_identity_change().await;
    assert!(
        matches!(change, IdentityChange::OtherCluster { expected, .. } if expected == store.cluster_id())
    );
    assert_eq!(etcd.etcdctl(&["get", "--prefix", "/nb/"]), "", "nothing was written");
}
