//! What stops a node at its start, and what does not.

use std::io::{Read, Write};
use std::net::TcpListener;

use notbefore_etcd::{EtcdConfig, EtcdStore, MemberState};
use notbefore_store::Store;

use crate::support::{NO_FSYNC, committed, connect, etcd, free_port, put, read_text, refusal};

#[tokio::test]
async fn endpoints_that_are_not_etcd_are_named() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let text = refusal(&EtcdConfig::new([&*nobody], "/nb/")).await;
    assert!(text.starts_with("etcd_unreachable: ") && text.contains(&nobody), "{text}");
    assert!(text.contains("nothing listens there"), "{text}");

    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", web.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut caller, _) = web.accept().unwrap();
        let _ = caller.read(&mut [0; 1024]);
        let _ = caller.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let text = refusal(&EtcdConfig::new([url], "/nb/")).await;
    assert!(text.contains("does not speak gRPC"), "{text}");
    server.join().unwrap();

    let text = refusal(&EtcdConfig::new(["http://host.invalid:2379"], "/nb/")).await;
    assert!(text.contains("host.invalid"), "{text}");
}

#[tokio::test]
async fn endpoints_of_different_clusters_are_refused() {
    let (one, other) = (etcd(NO_FSYNC).await, etcd(NO_FSYNC).await);
    let config = EtcdConfig::new([&*one.client_url, &*other.client_url], "/nb/");
    let text = refusal(&config).await;
    assert!(text.starts_with("etcd_different_clusters: "), "{text}");
    assert!(text.contains(&one.client_url) && text.contains(&other.client_url), "{text}");
}

#[tokio::test]
async fn one_endpoint_that_answers_is_enough() {
    let etcd = etcd(NO_FSYNC).await;
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let store = connect(&EtcdConfig::new([&*nobody, &*etcd.client_url], "/nb/")).await;
    let unreachable = store.unreachable_at_start();
    assert!(unreachable.iter().any(|warning| warning.contains(&nobody)), "{unreachable:?}");
    // It may answer a moment later, so it is no lasting warning.
    assert!(!store.warnings().iter().any(|warning| warning.contains(&nobody)), "{:?}", store.warnings());
    committed(&store, put("a", "1")).await;
    let status = store.status().await;
    assert!(status.endpoints[0].member.is_err() && status.endpoints[1].member.is_ok(), "{status:?}");
    assert!(matches!(status.members[0].state, MemberState::Answered(_)));
}

#[tokio::test]
async fn prefixes_are_apart() {
    let etcd = etcd(NO_FSYNC).await;
    let (one, other) = (etcd.store("/nb/").await, etcd.store("/nb2/").await);
    let before = one.snapshot().await.unwrap().revision();
    let mut watch = one.watch(before).await.unwrap();
    committed(&other, put("a", "of the other")).await;
    committed(&one, put("a", "of the one")).await;
    assert_eq!(read_text(&one, "a").await.as_deref(), Some("of the one"));
    assert_eq!(read_text(&other, "a").await.as_deref(), Some("of the other"));
    let page = one.snapshot().await.unwrap().scan("", None, 10).await.unwrap();
    assert_eq!(page.records.len(), 1, "the mark and the other prefix are not records: {page:?}");
    let page = one.snapshot().await.unwrap().scan_back("", None, 10).await.unwrap();
    assert_eq!(page.records.len(), 1, "{page:?}");
    let batch = crate::support::next(&mut *watch).await;
    assert_eq!(batch.changes[0].value.as_deref(), Some(&b"of the one"[..]));

    // A second node of the same cluster.
    let again = etcd.store("/nb/").await;
    assert_eq!(read_text(&again, "a").await.as_deref(), Some("of the one"));
}

#[tokio::test]
async fn a_prefix_of_another_program_is_refused() {
    let etcd = etcd(NO_FSYNC).await;
    etcd.etcdctl(&["put", "/registry/pods/x", "1"]);
    let text = refusal(&etcd.config("/registry/")).await;
    assert!(text.starts_with("etcd_foreign_prefix: ") && text.contains("/registry/pods/x"), "{text}");
    assert_eq!(etcd.etcdctl(&["get", "--keys-only", "/registry/"]), "", "nothing was written");

    etcd.etcdctl(&["put", "/taken/", "1"]);
    let text = refusal(&etcd.config("/taken/")).await;
    assert!(text.starts_with("etcd_foreign_prefix: "), "{text}");

    // A prefix that contains one of another cluster of nodes.
    drop(etcd.store("/nb/west/").await);
    let text = refusal(&etcd.config("/nb/")).await;
    assert!(text.contains("/nb/west/"), "{text}");
}

#[tokio::test]
async fn a_prefix_inside_that_of_another_cell_is_refused() {
    let etcd = etcd(NO_FSYNC).await;
    drop(etcd.store("/cells/").await);
    for prefix in ["/cells/east/", "/cells/of/the/east/"] {
        let text = refusal(&etcd.config(prefix)).await;
        assert!(text.starts_with("etcd_nested_prefix: ") && text.contains(prefix), "{text}");
        assert!(text.contains("inside /cells/,") && text.contains("--etcd-prefix"), "{text}");
        assert_eq!(etcd.etcdctl(&["get", "--prefix", "--keys-only", prefix]), "", "nothing was written");
    }
    // Beside it, and below a key of another program.
    etcd.etcdctl(&["put", "/other/", "1"]);
    drop(etcd.store("/cells2/").await);
    drop(etcd.store("/other/cell/").await);
}

#[tokio::test]
async fn nodes_that_start_at_once_share_a_prefix() {
    let etcd = etcd(NO_FSYNC).await;
    let config = etcd.config("/nb/");
    let starts = (0..8).map(|number| {
        let config = config.clone();
        tokio::spawn(async move { EtcdStore::connect(&config).await?.claim(&number.to_string()).await })
    });
    let mut ids = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        ids.push(start.await.unwrap().unwrap());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn only_a_claim_marks_the_prefix() {
    let etcd = etcd(NO_FSYNC).await;
    let store = EtcdStore::connect(&etcd.config("/nb/")).await.unwrap();
    assert_eq!((etcd.etcdctl(&["get", "--prefix", "/"]).as_str(), store.mark_id()), ("", None));
    assert_eq!(store.claim("first").await.unwrap(), "first");
    let mark = etcd.etcdctl(&["get", "/nb/"]);
    let again = EtcdStore::connect(&etcd.config("/nb/")).await.unwrap();
    assert_eq!(again.mark_id(), Some("first"));
    assert_eq!(again.claim("second").await.unwrap(), "first");
    assert_eq!(etcd.etcdctl(&["get", "/nb/"]), mark, "nothing was written");

    etcd.etcdctl(&["put", "/nb/", "notbefore: a mark without an id"]);
    let without_id = EtcdStore::connect(&etcd.config("/nb/")).await.unwrap();
    assert_eq!(without_id.mark_id(), None);
    assert_eq!(without_id.claim("third").await.unwrap(), "third");
}

#[tokio::test]
async fn keys_that_are_not_text_are_reported() {
    let etcd = etcd(NO_FSYNC).await;
    let store = etcd.store("/nb/").await;
    committed(&store, put("a", "1")).await;
    committed(&store, put("c", "2")).await;
    let mut command = crate::support::etcdctl_command();
    use std::os::unix::ffi::OsStrExt;
    let key = std::ffi::OsStr::from_bytes(b"/nb/b\xff");
    command.args(["--endpoints", &etcd.client_url, "put"]).arg(key).arg("x");
    crate::support::succeed(command);
    let page = store.snapshot().await.unwrap().scan("", None, 1).await.unwrap();
    assert_eq!((page.records.len(), page.more), (1, true));
    let page = store.snapshot().await.unwrap().scan("", Some("a"), 10).await.unwrap();
    assert_eq!((page.records.len(), page.damaged.len(), page.more), (1, 1, false), "{page:?}");
}
