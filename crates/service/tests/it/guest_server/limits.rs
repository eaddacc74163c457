//! Slow, greedy and hostile clients, and shutdown.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};

use super::harness::*;

const SHORT: Duration = Duration::from_millis(50);
/// Short, but longer than a client needs for its first request after it has connected.
const IDLE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn head_timeout_closes_connection() {
    let server = TestServer::with_limits(Limits { head_timeout: SHORT, ..Limits::default() }).await;
    for (from, status) in [(From::A, 408), (From::Address("127.0.0.4"), 403)] {
        let mut client = server.connect(from).await;
        client.send("GET / HTTP/1.1\r\nHost:").await;
        let response = client.response().await;
        assert_eq!((response.status, response.closes()), (status, true));
        assert!(client.is_closed().await);
    }
    server.close().await;
}

#[tokio::test]
async fn body_timeout_closes_connection() {
    let server = TestServer::with_limits(Limits { body_timeout: SHORT, ..Limits::default() }).await;
    let slow = post(EVENTS, "{}");
    let chunked =
        format!("POST {EVENTS} HTTP/1.1\r\nHost: a\r\nMetadata: true\r\nTransfer-Encoding: chunked\r\n\r\n5");
    for request in [&slow[..slow.len() - 1], &chunked] {
        let mut client = server.connect(From::A).await;
        client.send(request).await;
        let response = client.response().await;
        assert_eq!((response.status, response.closes()), (408, true));
        assert!(client.is_closed().await);
    }
    server.close().await;
}

#[tokio::test]
async fn idle_timeout_closes_silently() {
    let server = TestServer::with_limits(Limits { idle_timeout: IDLE, ..Limits::default() }).await;
    let mut silent = server.connect(From::A).await;
    let mut served = server.connect(From::A).await;
    served.send(get(EVENTS)).await;
    assert_eq!(served.response().await.status, 200);
    assert!(silent.is_closed().await);
    assert!(served.is_closed().await);
    server.close().await;
}

#[tokio::test]
async fn write_timeout_closes_connection() {
    let limits = Limits { write_timeout: SHORT, ..Limits::default() };
    let server =
        TestServer::open_padded(GuestSettings { limits, ..GuestSettings::default() }, 32 * 1024 * 1024).await;
    let mut client = server.connect(From::B).await;
    client.send(get(EVENTS)).await;
    until(|| server.stats.documents.get() == 1).await;
    until(|| server.stats.connections_open.get() == 0).await;
    server.close().await;
}

#[tokio::test]
async fn large_document_is_sent_completely() {
    let server = TestServer::open_padded(GuestSettings::default(), 8 * 1024 * 1024).await;
    assert_eq!(server.request(From::B, get(EVENTS)).await.body.trim_end().len(), 54);
    server.close().await;
}

#[tokio::test]
async fn connection_limit_evicts_longest_idle() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let server =
        TestServer::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..GuestSettings::default() })
            .await;
    let mut first = server.connect(From::A).await;
    until(|| server.stats.connections_open.get() == 1).await;
    let mut second = server.connect(From::B).await;
    second.send(get(EVENTS)).await;
    assert_eq!(second.response().await.status, 200);
    later().await;
    first.send(get(EVENTS)).await;
    assert_eq!(first.response().await.status, 200);
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    assert!(second.is_closed().await, "the longest idle connection is evicted");
    first.send(get(EVENTS)).await;
    assert_eq!(first.response().await.status, 200);
    assert_eq!((server.stats.connections_evicted.get(), server.stats.connections_turned_away.get()), (1, 0));
    server.close().await;
}

#[tokio::test]
#[allow(clippy::await_holding_lock, reason = "the lock keeps a worker busy")]
async fn worker_without_idle_connections_evicts_on_others() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let server =
        TestServer::open(GuestSettings { limits, threads: NonZeroUsize::new(2), ..unlimited() }).await;
    // A worker that looks up an address waits for the lock; the other one accepts meanwhile.
    let busy = server.platform.by_address.lock().unwrap();
    let mut idle = server.connect(From::Address("127.0.0.2")).await;
    idle.send(get(EVENTS)).await;
    until(|| server.platform.lookups.load(Relaxed) == 1).await;
    let mut half = server.connect(From::A).await;
    half.send(&get(EVENTS)[..20]).await;
    until(|| server.stats.connections_handed_over.get() == 1).await;
    drop(busy);
    assert_eq!(idle.response().await.status, 200);

    // A connection that was accepted before its first byte arrived was looked up twice.
    let lookups = server.platform.lookups.load(Relaxed);
    let busy = server.platform.by_address.lock().unwrap();
    idle.send(get(EVENTS)).await;
    until(|| server.platform.lookups.load(Relaxed) == lookups + 1).await;
    assert!(server.connect(From::A).await.is_closed().await, "the accepting worker has no idle connection");
    drop(busy);
    assert_eq!(idle.response().await.status, 200, "a request in progress is finished");
    assert!(idle.is_closed().await, "it is idle afterwards");
    until(|| server.stats.connections_open.get() == 1).await;
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    half.send(&get(EVENTS)[20..]).await;
    assert_eq!(half.response().await.status, 200);
    assert_eq!((server.stats.connections_evicted.get(), server.stats.connections_turned_away.get()), (1, 1));
    server.close().await;
}

#[tokio::test]
async fn connection_limit_never_aborts_requests() {
    let server = TestServer::with_limits(Limits { connections_max: 2, ..Limits::default() }).await;
    let mut approving = server.connect(From::A).await;
    approving.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    let mut half = server.connect(From::A).await;
    half.send(&get(EVENTS)[..20]).await;
    until(|| server.stats.connections_handed_over.get() == 2).await;
    let mut third = server.connect(From::A).await;
    assert!(third.is_closed().await, "no connection is idle");
    half.send(&get(EVENTS)[20..]).await;
    assert_eq!(half.response().await.status, 200);
    server.platform.gate.add_permits(1);
    assert_eq!(approving.response().await.status, 200);
    assert_eq!((server.stats.connections_evicted.get(), server.stats.connections_turned_away.get()), (0, 1));
    server.close().await;
}

/// Mutated requests: parts in any order, with bytes changed. The seed is fixed, so failures are reproducible.
#[tokio::test]
async fn arbitrary_bytes_do_not_stop_server() {
    let parts: [&[u8]; 14] = [
        b"GET ",
        b"POST ",
        EVENTS.as_bytes(),
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"Host: a\r\n",
        b"Metadata: true\r\n",
        b"Content-Length: 7\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"\r\n",
        b"7\r\n{\"Start\r\n",
        b"0\r\n\r\n",
        b"\x00\xff%%%?&&==",
    ];
    let mut seed: u64 = 0x5eed;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let limits = Limits { head_timeout: SHORT, body_timeout: SHORT, ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    for _ in 0..500 {
        let mut bytes: Vec<u8> = (0..next(12)).flat_map(|_| parts[next(parts.len())].to_vec()).collect();
        if !bytes.is_empty() && next(2) == 0 {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        let mut client = server.connect(From::A).await;
        client.send(&bytes).await;
    }
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    until(|| server.stats.connections_open.get() == 0).await;
    server.close().await;
}

#[tokio::test]
async fn shutdown_finishes_started_requests() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut idle = server.connect(From::A).await;
    idle.send(get(EVENTS)).await;
    assert_eq!(idle.response().await.status, 200);
    let mut approving = server.connect(From::A).await;
    approving.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    until(|| server.stats.connections_handed_over.get() == 1).await;

    server.shutdown.send(true).unwrap();
    assert!(idle.is_closed().await);
    assert!(!server.serving.is_finished());
    server.platform.gate.add_permits(1);
    let response = approving.response().await;
    assert_eq!((response.status, response.closes()), (200, true));
    assert!(approving.is_closed().await);
    drop(approving);
    server.close().await;
}

#[tokio::test]
async fn shutdown_grace_is_bounded() {
    let server = TestServer::with_limits(Limits { shutdown_grace: SHORT, ..Limits::default() }).await;
    let mut stuck = server.connect(From::A).await;
    stuck.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    let mut half = server.connect(From::A).await;
    half.send("GET ").await;
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    server.close().await;
    assert!(stuck.is_closed().await);
}
