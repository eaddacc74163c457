//! Field numbers and types on the wire: what one of the store and `etcdctl` writes, the other one reads.

use data_encoding::BASE64;
use notbefore_etcd::{AlarmKind, MemberState};
use notbefore_store::{Outcome, Revision, Store};
use serde_json::Value;

use crate::support::{NO_FSYNC, committed, delete, etcd, eventually, expecting, next, put, read, read_text};

fn text(value: &Value) -> String {
    String::from_utf8(BASE64.decode(value.as_str().unwrap().as_bytes()).unwrap()).unwrap()
}

#[tokio::test]
async fn records_are_exchanged_with_etcdctl() {
    let etcd = etcd(NO_FSYNC).await;
    let store = etcd.store("/nb/").await;
    let before = store.snapshot().await.unwrap().revision();
    let mut watch = store.watch(before).await.unwrap();

    // By the store, read by etcdctl.
    let first = committed(&store, put("vm/1", "one")).await;
    committed(&store, put("vm/2", "two")).await;
    let shown = etcd.etcdctl_json(&["get", "--prefix", "/nb/vm/"]);
    let shown: Vec<(String, String, u64)> = shown["kvs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kv| (text(&kv["key"]), text(&kv["value"]), kv["mod_revision"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("/nb/vm/1".to_owned(), "one".to_owned(), first.0),
        ("/nb/vm/2".to_owned(), "two".to_owned(), first.0 + 1),
    ];
    assert_eq!(shown, expected);
    committed(&store, delete("vm/1")).await;
    assert_eq!(etcd.etcdctl(&["get", "/nb/vm/1"]), "");

    // By etcdctl, read by the store.
    let header = &etcd.etcdctl_json(&["put", "/nb/vm/3", "three"])["header"];
    let third = Revision(header["revision"].as_u64().unwrap());
    let record = read(&store, "vm/3").await.unwrap();
    assert_eq!((record.revision, &*record.value), (third, &b"three"[..]));
    assert_eq!(header["cluster_id"].as_u64(), Some(store.cluster_id()));
    let page = store.snapshot().await.unwrap().scan("vm/", None, 10).await.unwrap();
    let keys: Vec<&str> = page.records.iter().map(|(key, _)| &**key).collect();
    assert_eq!((keys, page.more), (vec!["vm/2", "vm/3"], false));
    assert!(matches!(
        store.commit(expecting("vm/3", Some(Revision(1)), put("x", ""))).await,
        Outcome::Conflict(_)
    ));
    committed(&store, expecting("vm/3", Some(third), put("vm/3", "four"))).await;
    etcd.etcdctl(&["del", "/nb/vm/2"]);
    assert_eq!(read(&store, "vm/2").await, None);
    assert_eq!(read_text(&store, "vm/3").await.as_deref(), Some("four"));

    // Both in one watch.
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let batch = next(&mut *watch).await;
        for change in &*batch.changes {
            let value = change.value.as_ref().map(|value| String::from_utf8_lossy(value).into_owned());
            seen.push(format!("{} {} {}", batch.revision, change.key, value.unwrap_or("-".to_owned())));
        }
    }
    let at = |offset: u64, text: &str| format!("{} {text}", first.0 + offset);
    let expected = [
        at(0, "vm/1 one"),
        at(1, "vm/2 two"),
        at(2, "vm/1 -"),
        at(3, "vm/3 three"),
        at(4, "vm/3 four"),
        at(5, "vm/2 -"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn status_is_that_of_etcdctl() {
    let etcd = etcd(NO_FSYNC).await;
    let store = etcd.store("/nb/").await;
    committed(&store, put("a", &"x".repeat(100_000))).await;
    let members = etcd.etcdctl_json(&["member", "list"]);
    // etcd also writes by itself; nothing may change between the two views.
    let (shown, status) = eventually("etcd is at rest", async || {
        let before = etcd.etcdctl_json(&["endpoint", "status"]);
        let status = store.status().await;
        let after = etcd.etcdctl_json(&["endpoint", "status"]);
        (before == after).then_some((after, status))
    })
    .await;
    let shown = &shown[0]["Status"];
    assert_eq!(status.members.len(), 1);
    let member = &status.members[0];
    assert_eq!(Some(member.id), shown["header"]["member_id"].as_u64());
    assert_eq!(Some(member.id), members["members"][0]["ID"].as_u64());
    assert_eq!(Some(&*member.name), members["members"][0]["name"].as_str());
    assert_eq!(Some(&*member.client_urls[0]), members["members"][0]["clientURLs"][0].as_str());
    let MemberState::Answered(own) = &member.state else { panic!("{member:?}") };
    assert_eq!(Some(&*own.version), shown["version"].as_str());
    assert_eq!(Some(own.database_bytes), shown["dbSize"].as_u64());
    assert_eq!(Some(own.database_bytes_in_use), shown["dbSizeInUse"].as_u64());
    assert_eq!(Some(own.raft_term), shown["raftTerm"].as_u64());
    assert_eq!(Some(own.raft_index), shown["raftIndex"].as_u64());
    assert_eq!(Some(own.raft_applied_index), shown["raftAppliedIndex"].as_u64());
    assert!(own.is_leader && own.has_leader && own.errors.is_empty(), "{own:?}");
    assert_eq!(status.leader().map(|leader| leader.id), Some(member.id));
    assert_eq!(status.alarms.as_deref(), Some(&[][..]));
    assert_eq!(status.endpoints[0].member, Ok(member.id));
    assert!(!status.has_alarm(AlarmKind::NoSpace));
}
