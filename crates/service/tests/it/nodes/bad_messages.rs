//! Messages that the node listener refuses: nothing of them is carried out.

use std::net::SocketAddr;

use axum::http::Method;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::nodes::messages::{ClientConnection, OperatorRequest};
use notbefore_service::nodes::signature::{Kind, Message, Signed};
use notbefore_service::operator::session::Browser;
use notbefore_service::stored_key::{KeyKind, StoredKey};
use notbefore_store::Store;
use notbefore_store::memory::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::{Cluster, SECRET, new_vm, records};
use crate::PATIENCE;

fn now() -> Timestamp {
    SystemClock.now()
}

async fn key(store: &dyn Store) -> StoredKey {
    StoredKey::load_or_create(store, KeyKind::Node).await.unwrap()
}

/// A message that adds a VM.
fn message(kind: Kind, nonce: u8) -> Message {
    let request = OperatorRequest {
        method: Method::POST,
        target: "/v1/vms".parse().unwrap(),
        client: ClientConnection {
            from: None,
            browser: Browser { client: None, port: 9002, is_encrypted: false },
        },
        headers: [("authorization".parse().unwrap(), format!("Bearer {SECRET}").parse().unwrap())]
            .into_iter()
            .collect(),
        body: new_vm("web", "10.0.0.1").into(),
    };
    let content = if kind == Kind::Operator { request.encode().unwrap() } else { Bytes::new() };
    Message {
        kind,
        sender: "b~1".to_owned(),
        receiver: "a~1".to_owned(),
        sent_at: now(),
        nonce: [nonce; 16],
        notes: Bytes::new(),
        content,
    }
}

/// A connection to a node listener.
struct Peer(TcpStream);

impl Peer {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// After a hello.
    async fn introduced(address: SocketAddr, key: &StoredKey) -> Self {
        let mut peer = Self::connect(address).await;
        let mut hello = message(Kind::Hello, 0);
        getrandom::fill(&mut hello.nonce).unwrap();
        assert_eq!(peer.send("/node/1", &hello.sign(key).unwrap()).await.0, 200);
        peer
    }

    /// Status, and code of a refusal.
    async fn send(&mut self, path: &str, signed: &Signed) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nX-Notbefore-Signature: {}\r\nContent-Length: {}\r\n\r\n",
            signed.signature,
            signed.bytes.len()
        );
        self.0.write_all(head.as_bytes()).await.unwrap();
        // A refusal may come before the body was read.
        let _ = self.0.write_all(&signed.bytes).await;
        timeout(PATIENCE, self.answer()).await.unwrap()
    }

    async fn answer(&mut self) -> (u16, String) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
                });
                if bytes.len() >= head.len() + 4 + length.unwrap_or_default() {
                    let status = head[9..12].parse().unwrap();
                    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
                    return (status, body["code"].as_str().unwrap_or_default().to_owned());
                }
            }
            match self.0.read(&mut buffer).await {
                Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                other => panic!("no answer: {other:?} after {text:?}"),
            }
        }
    }
}

#[tokio::test]
async fn messages_that_are_not_for_this_leader_now_are_refused() {
    let cluster = Cluster::new().await;
    let (key, other) = (key(&*cluster.store).await, key(&MemoryStore::new()).await);
    let later = |seconds| now() + SignedDuration::from_secs(seconds);
    let good = || message(Kind::Operator, 1);
    let forged = |signed: Signed| Signed { bytes: [&signed.bytes[..], b"x"].concat().into(), ..signed };
    let cases = [
        ("forged", "/node/1", forged(good().sign(&key).unwrap()), (401, "signature")),
        ("wrong secret", "/node/1", good().sign(&other).unwrap(), (401, "signature")),
        ("late", "/node/1", Message { sent_at: later(-31), ..good() }.sign(&key).unwrap(), (401, "clock")),
        ("early", "/node/1", Message { sent_at: later(32), ..good() }.sign(&key).unwrap(), (401, "clock")),
        (
            "other epoch",
            "/node/1",
            Message { receiver: "a~0".to_owned(), ..good() }.sign(&key).unwrap(),
            (421, "other_node"),
        ),
        ("other level", "/node/2", good().sign(&key).unwrap(), (404, "level")),
    ];
    for (case, path, signed, expected) in cases {
        let mut peer = Peer::introduced(cluster.address, &key).await;
        let (status, code) = peer.send(path, &signed).await;
        assert_eq!((status, &*code), expected, "{case}");
        assert_eq!(
            cluster.leader.refused(expected.1),
            if case == "wrong secret" || case == "early" { 2 } else { 1 }
        );
    }
    assert!(records(&*cluster.store, "vm/").await.is_empty(), "nothing was carried out");
}

#[tokio::test]
async fn replayed_message_is_refused() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    let signed = message(Kind::Operator, 1).sign(&key).unwrap();
    let mut peer = Peer::introduced(cluster.address, &key).await;
    assert_eq!(peer.send("/node/1", &signed).await.0, 200);
    assert_eq!(peer.send("/node/1", &signed).await, (401, "replayed".to_owned()));
    let mut peer = Peer::introduced(cluster.address, &key).await;
    assert_eq!(
        peer.send("/node/1", &signed).await,
        (401, "replayed".to_owned()),
        "also on another connection"
    );
    assert_eq!(records(&*cluster.store, "vm/").await.len(), 1);
}

#[tokio::test]
async fn connection_begins_with_a_hello() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    let mut peer = Peer::connect(cluster.address).await;
    let signed = message(Kind::Operator, 1).sign(&key).unwrap();
    assert_eq!(peer.send("/node/1", &signed).await, (400, "no_hello".to_owned()));
    assert!(records(&*cluster.store, "vm/").await.is_empty());
}

#[tokio::test]
async fn oversized_messages_are_refused_before_they_are_read() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    // Without a hello, a few kilobytes are too much.
    let large = Message { content: Bytes::from(vec![0; 5_000]), ..message(Kind::Operator, 1) };
    let mut peer = Peer::connect(cluster.address).await;
    assert_eq!(peer.send("/node/1", &large.sign(&key).unwrap()).await, (413, "too_large".to_owned()));

    let mut peer = Peer::introduced(cluster.address, &key).await;
    let head =
        "POST /node/1 HTTP/1.1\r\nHost: a\r\nX-Notbefore-Signature: 00\r\nContent-Length: 99999999\r\n\r\n";
    peer.0.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(timeout(PATIENCE, peer.answer()).await.unwrap(), (413, "too_large".to_owned()));
}

#[tokio::test]
async fn body_limit_of_operators_holds_at_a_follower() {
    let cluster = Cluster::new().await;
    let large = " ".repeat(8 * 1024 * 1024 + 1);
    let refused = cluster.follower.ask("POST", "/v1/vms", &large).await;
    assert_eq!(refused.problem(), (413, "body_too_large"));
    let refused = cluster.follower.ask_with("POST", "/v1/vms", &[], &large[..5_000]).await;
    assert_eq!(refused.problem(), (413, "body_too_large"), "without a token it is small");
    let body = new_vm("web", "10.0.0.1") + &large[..8 * 1024 * 1024 - 200];
    let answered = cluster.follower.ask("POST", "/v1/vms", &body).await;
    assert_eq!(answered.status, 201, "{answered:?}");
}

#[tokio::test]
async fn process_without_the_key_at_the_leaders_address_sees_no_request() {
    let cluster = Cluster::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut buffer).await.unwrap_or(0);
            if read == 0 {
                return String::from_utf8_lossy(&seen).into_owned();
            }
            seen.extend_from_slice(&buffer[..read]);
            let proof = "0".repeat(64);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{proof}", proof.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    cluster.follower.follow(Some(super::harness::leader_at(address)));
    let refused = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(refused.problem(), (503, "unavailable"));
    let seen = timeout(PATIENCE, impostor).await.unwrap().unwrap();
    assert!(seen.contains("hello") && !seen.contains(SECRET), "{seen}");
}
