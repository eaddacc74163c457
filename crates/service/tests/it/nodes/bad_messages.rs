//! Messages that the node listener refuses: nothing of them is carried out.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use notbefore_engine::Role;
use notbefore_service::clock::SystemClock;
use notbefore_service::nodes::ForwardLimits;
use notbefore_service::nodes::messages::{ClientConnection, OperatorRequest};
use notbefore_service::nodes::signature::{Challenge, Kind, Message, Signed, Stamp};
use notbefore_service::operator::session::Browser;
use notbefore_service::stored_key::{KeyKind, StoredKey};
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Revision, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::harness::{Cluster, NodeOptions, OffClock, SECRET, leader_at, new_vm, records};
use crate::PATIENCE;

/// How long a message of these tests counts.
const LEFT: Duration = Duration::from_secs(60);

async fn key(store: &dyn Store) -> StoredKey {
    StoredKey::load_or_create(store, KeyKind::Node).await.unwrap()
}

/// A message that adds a VM.
fn message(stamp: Stamp) -> Message {
    let request = OperatorRequest {
        method: Method::POST,
        target: "/v1/vms".parse().unwrap(),
        client: ClientConnection {
            from: None,
            browser: Browser { client: None, port: 9002, is_encrypted: false },
            shown: Revision(0),
        },
        headers: [("authorization".parse().unwrap(), format!("Bearer {SECRET}").parse().unwrap())]
            .into_iter()
            .collect(),
        body: new_vm("web", "10.0.0.1").into(),
    };
    Message {
        kind: Kind::Operator,
        sender: "b~1".to_owned(),
        receiver: "a~1".to_owned(),
        stamp,
        notes: Bytes::new(),
        content: request.encode().unwrap(),
    }
}

/// A connection to a node listener.
struct Peer(TcpStream);

impl Peer {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Sends a first hello; returns the challenge.
    async fn hello(&mut self, key: &StoredKey) -> Challenge {
        let hello = Message::hello("b~1".to_owned(), "a~1".to_owned(), [7; 16]);
        let (status, bytes) = self.exchange("/node/1", &hello.sign(key).unwrap()).await;
        assert_eq!(status, 200);
        Challenge::open(key, &hello, &bytes).unwrap()
    }

    /// After both hellos: the next message has number 2.
    async fn introduced(address: SocketAddr, key: &StoredKey) -> (Self, Challenge) {
        let mut peer = Self::connect(address).await;
        let challenge = peer.hello(key).await;
        let stamp = challenge.stamp(1, Duration::ZERO, LEFT);
        let second = Message { kind: Kind::Hello, content: Bytes::new(), ..message(stamp) };
        assert_eq!(peer.send("/node/1", &second.sign(key).unwrap()).await.0, 200);
        (peer, challenge)
    }

    /// Status, and code of a refusal.
    async fn send(&mut self, path: &str, signed: &Signed) -> (u16, String) {
        refusal(self.exchange(path, signed).await)
    }

    /// Status and body of the answer.
    async fn exchange(&mut self, path: &str, signed: &Signed) -> (u16, Vec<u8>) {
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

    async fn answer(&mut self) -> (u16, Vec<u8>) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
                });
                if bytes.len() >= end + 4 + length.unwrap_or_default() {
                    return (head[9..12].parse().unwrap(), bytes.split_off(end + 4));
                }
            }
            match self.0.read(&mut buffer).await {
                Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                other => panic!("no answer: {other:?} after {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }
}

fn refusal((status, body): (u16, Vec<u8>)) -> (u16, String) {
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn messages_that_are_not_for_this_leader_now_are_refused() {
    let cluster = Cluster::new().await;
    let (key, other) = (key(&*cluster.store).await, key(&MemoryStore::new()).await);
    type Case<'c> = (&'c str, &'c str, &'c StoredKey, fn(&mut Message), (u16, &'c str));
    let nothing = |_: &mut Message| ();
    let cases: [Case<'_>; 7] = [
        ("wrong secret", "/node/1", &other, nothing, (401, "signature")),
        ("late", "/node/1", &key, |one| one.stamp.deadline -= LEFT, (401, "late")),
        ("other connection", "/node/1", &key, |one| one.stamp.connection = [7; 16], (401, "replayed")),
        ("old number", "/node/1", &key, |one| one.stamp.number = 1, (401, "replayed")),
        ("skipped number", "/node/1", &key, |one| one.stamp.number = 3, (401, "replayed")),
        ("other epoch", "/node/1", &key, |one| one.receiver = "a~0".to_owned(), (421, "other_node")),
        ("other level", "/node/2", &key, nothing, (404, "level")),
    ];
    for (case, path, with, change, expected) in cases {
        let (mut peer, challenge) = Peer::introduced(cluster.address, &key).await;
        let before = cluster.leader.refused(expected.1);
        let mut message = message(challenge.stamp(2, Duration::ZERO, LEFT));
        change(&mut message);
        let (status, code) = peer.send(path, &message.sign(with).unwrap()).await;
        assert_eq!((status, &*code), expected, "{case}");
        assert_eq!(cluster.leader.refused(expected.1), before + 1, "{case}");
    }
    let (mut peer, challenge) = Peer::introduced(cluster.address, &key).await;
    let signed = message(challenge.stamp(2, Duration::ZERO, LEFT)).sign(&key).unwrap();
    let forged = Signed { bytes: [&signed.bytes[..], b"x"].concat().into(), ..signed.clone() };
    assert_eq!(peer.send("/node/1", &forged).await, (401, "signature".to_owned()));
    assert!(records(&*cluster.store, "vm/").await.is_empty(), "nothing was carried out");
    assert_eq!(peer.send("/node/1", &signed).await.0, 200, "a forged message uses no number");
}

#[tokio::test]
async fn replayed_message_is_refused_on_every_connection() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    let (mut peer, challenge) = Peer::introduced(cluster.address, &key).await;
    let signed = message(challenge.stamp(2, Duration::ZERO, LEFT)).sign(&key).unwrap();
    assert_eq!(peer.send("/node/1", &signed).await.0, 200);
    assert_eq!(peer.send("/node/1", &signed).await, (401, "replayed".to_owned()));
    let (mut peer, _) = Peer::introduced(cluster.address, &key).await;
    assert_eq!(peer.send("/node/1", &signed).await, (401, "replayed".to_owned()));
    assert_eq!(records(&*cluster.store, "vm/").await.len(), 1);
}

#[tokio::test]
async fn number_of_a_refused_message_is_used() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    let (mut peer, challenge) = Peer::introduced(cluster.address, &key).await;
    let signed = message(challenge.stamp(2, Duration::ZERO, LEFT)).sign(&key).unwrap();
    let lead = cluster.leader.standing.borrow().role;
    cluster.leader.standing.send_modify(|standing| standing.role = Role::Follow);
    assert_eq!(peer.send("/node/1", &signed).await, (421, "not_leader".to_owned()));
    cluster.leader.standing.send_modify(|standing| standing.role = lead);
    // Its client was told that nothing happened.
    assert_eq!(peer.send("/node/1", &signed).await, (401, "replayed".to_owned()));
    assert!(records(&*cluster.store, "vm/").await.is_empty());
}

#[tokio::test]
async fn message_of_a_sender_that_stood_still_is_late() {
    let clock = Arc::new(OffClock::default());
    let cluster = Cluster::with(clock.clone(), NodeOptions::default()).await;
    let key = key(&*cluster.store).await;
    for (stopped, expected) in [(0, (200, "")), (20, (401, "late"))] {
        let (mut peer, challenge) = Peer::introduced(cluster.address, &key).await;
        let signed = message(challenge.stamp(2, Duration::ZERO, Duration::from_secs(15))).sign(&key).unwrap();
        clock.boot.store(stopped, Relaxed);
        let (status, code) = peer.send("/node/1", &signed).await;
        assert_eq!((status, &*code), expected, "{stopped} s");
    }
}

#[tokio::test]
async fn connection_begins_with_two_hellos() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    let mut peer = Peer::connect(cluster.address).await;
    let signed = message(Stamp::default()).sign(&key).unwrap();
    assert_eq!(peer.send("/node/1", &signed).await, (400, "no_hello".to_owned()));
    let challenge = peer.hello(&key).await;
    let signed = message(challenge.stamp(1, Duration::ZERO, LEFT)).sign(&key).unwrap();
    assert_eq!(peer.send("/node/1", &signed).await, (400, "no_hello".to_owned()));
    assert!(records(&*cluster.store, "vm/").await.is_empty());
}

/// Sits between a follower and the leader.
struct Proxy {
    address: SocketAddr,
    /// What the follower has sent, on all connections.
    recorded: Arc<Mutex<Vec<u8>>>,
    /// While true, a request of an operator stays in the proxy.
    holds: watch::Sender<bool>,
}

impl Proxy {
    async fn start(leader: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (recorded, holds) = (Arc::<Mutex<Vec<u8>>>::default(), watch::Sender::new(false));
        let (record, held) = (Arc::clone(&recorded), holds.subscribe());
        tokio::spawn(async move {
            while let Ok((follower, _)) = listener.accept().await {
                let (record, mut held) = (Arc::clone(&record), held.clone());
                let (mut answers, mut to_leader) = TcpStream::connect(leader).await.unwrap().into_split();
                let (mut from_follower, mut to_follower) = follower.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut to_follower).await });
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = from_follower.read(&mut buffer).await {
                        record.lock().unwrap().extend_from_slice(&buffer[..read]);
                        if String::from_utf8_lossy(&buffer[..read]).contains("operator") {
                            held.wait_for(|holds| !holds).await.unwrap();
                        }
                        to_leader.write_all(&buffer[..read]).await.unwrap();
                    }
                    // Keeps the connection to the leader open after the follower has left.
                    std::future::pending::<()>().await;
                    drop(to_leader);
                });
            }
        });
        Self { address, recorded, holds }
    }
}

#[tokio::test]
async fn recorded_connection_opens_nothing() {
    let cluster = Cluster::new().await;
    let proxy = Proxy::start(cluster.address).await;
    cluster.follower.follow(Some(leader_at(proxy.address)));
    let answered = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(answered.status, 201, "{answered:?}");
    let recorded = proxy.recorded.lock().unwrap().clone();
    let text = String::from_utf8_lossy(&recorded);
    assert!(text.matches("POST /node/1").count() == 3 && text.contains(SECRET), "{text}");
    let facts = records(&*cluster.store, "fact/").await.len();

    let mut peer = Peer::connect(cluster.address).await;
    peer.0.write_all(&recorded).await.unwrap();
    let (status, challenge) = timeout(PATIENCE, peer.answer()).await.unwrap();
    assert_eq!(status, 200, "{challenge:?}");
    timeout(PATIENCE, async {
        while cluster.leader.refused("replayed") < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(records(&*cluster.store, "fact/").await.len(), facts, "nothing was carried out");
    // The connection counts for no node, so it takes only small bodies.
    let head =
        "POST /node/1 HTTP/1.1\r\nHost: a\r\nX-Notbefore-Signature: 00\r\nContent-Length: 5000\r\n\r\n";
    let mut peer = Peer::connect(cluster.address).await;
    peer.hello(&key(&*cluster.store).await).await;
    peer.0.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(refusal(timeout(PATIENCE, peer.answer()).await.unwrap()), (413, "too_large".to_owned()));
}

#[tokio::test]
async fn message_that_arrives_after_its_client_gave_up_is_refused() {
    let limits = ForwardLimits { operator_timeout: Duration::from_millis(200), ..ForwardLimits::default() };
    let options = NodeOptions { limits, ..NodeOptions::default() };
    let cluster = Cluster::with(Arc::new(SystemClock), options).await;
    let proxy = Proxy::start(cluster.address).await;
    cluster.follower.follow(Some(leader_at(proxy.address)));
    proxy.holds.send_replace(true);
    let lost = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(lost.problem(), (503, "outcome_unknown"));
    proxy.holds.send_replace(false);
    timeout(PATIENCE, async {
        while cluster.leader.refused("late") < 1 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert!(records(&*cluster.store, "vm/").await.is_empty());
}

#[tokio::test]
async fn oversized_messages_are_refused_before_they_are_read() {
    let cluster = Cluster::new().await;
    let key = key(&*cluster.store).await;
    // Without a hello, a few kilobytes are too much.
    let large = Message { content: Bytes::from(vec![0; 5_000]), ..message(Stamp::default()) };
    let mut peer = Peer::connect(cluster.address).await;
    assert_eq!(peer.send("/node/1", &large.sign(&key).unwrap()).await, (413, "too_large".to_owned()));

    let (mut peer, _) = Peer::introduced(cluster.address, &key).await;
    let head =
        "POST /node/1 HTTP/1.1\r\nHost: a\r\nX-Notbefore-Signature: 00\r\nContent-Length: 99999999\r\n\r\n";
    peer.0.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(refusal(timeout(PATIENCE, peer.answer()).await.unwrap()), (413, "too_large".to_owned()));
}

#[tokio::test]
async fn body_limit_of_operators_holds_at_a_follower() {
    let cluster = Cluster::new().await;
    let large = " ".repeat(8 * 1024 * 1024 + 1);
    let refused = cluster.follower.ask("POST", "/v1/vms", &large).await;
    assert_eq!(refused.problem(), (413, "body_too_large"));
    let sign_in =
        [("sec-fetch-site", "same-origin".to_owned()), ("content-type", "application/json".to_owned())];
    let refused = cluster.follower.ask_with("POST", "/v1/sign-in", &sign_in, &large[..5_000]).await;
    assert_eq!(refused.problem(), (413, "body_too_large"), "without a token it is small");
    let body = new_vm("web", "10.0.0.1") + &large[..8 * 1024 * 1024 - 200];
    let answered = cluster.follower.ask("POST", "/v1/vms", &body).await;
    assert_eq!(answered.status, 201, "{answered:?}");
}

#[tokio::test]
async fn process_without_the_key_at_the_leaders_address_sees_no_request() {
    let cluster = Cluster::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
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
    cluster.follower.follow(Some(leader_at(address)));
    let refused = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(refused.problem(), (503, "unavailable"));
    let seen = timeout(PATIENCE, impostor).await.unwrap().unwrap();
    assert!(seen.contains("hello") && !seen.contains(SECRET), "{seen}");
}
