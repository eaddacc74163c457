//! Clients that are slow, greedy or hostile, and a door that closes.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};

use super::harness::*;

const SHORT: Duration = Duration::from_millis(50);
/// Short, and longer than a client needs to send its first request after it has connected.
const IDLE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_head_that_takes_too_long_is_given_up() {
    let door = Door::with_limits(Limits { head_timeout: SHORT, ..Limits::default() }).await;
    for (from, status) in [(From::A, 408), (From::Address("127.0.0.4"), 403)] {
        let mut client = door.connect(from).await;
        client.send("GET / HTTP/1.1\r\nHost:").await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.closes()), (status, true));
        assert!(client.is_closed().await);
    }
    door.close().await;
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_given_up() {
    let door = Door::with_limits(Limits { body_timeout: SHORT, ..Limits::default() }).await;
    let slow = post(EVENTS, "{}");
    let chunked =
        format!("POST {EVENTS} HTTP/1.1\r\nHost: a\r\nMetadata: true\r\nTransfer-Encoding: chunked\r\n\r\n5");
    for request in [&slow[..slow.len() - 1], &chunked] {
        let mut client = door.connect(From::A).await;
        client.send(request).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.closes()), (408, true));
        assert!(client.is_closed().await);
    }
    door.close().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let door = Door::with_limits(Limits { idle_timeout: IDLE, ..Limits::default() }).await;
    let mut silent = door.connect(From::A).await;
    let mut served = door.connect(From::A).await;
    served.send(get(EVENTS)).await;
    assert_eq!(served.answer().await.status, 200);
    assert!(silent.is_closed().await);
    assert!(served.is_closed().await);
    door.close().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let limits = Limits { write_timeout: SHORT, ..Limits::default() };
    let door =
        Door::open_padded(GuestSettings { limits, ..GuestSettings::default() }, 32 * 1024 * 1024).await;
    let mut client = door.connect(From::B).await;
    client.send(get(EVENTS)).await;
    until(|| door.stats.documents.get() == 1).await;
    until(|| door.stats.connections_open.get() == 0).await;
    door.close().await;
}

#[tokio::test]
async fn a_large_document_arrives_whole() {
    let door = Door::open_padded(GuestSettings::default(), 8 * 1024 * 1024).await;
    assert_eq!(door.ask(From::B, get(EVENTS)).await.body.trim_end().len(), 54);
    door.close().await;
}

#[tokio::test]
async fn for_a_connection_too_many_the_one_goes_that_has_been_idle_longest() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let door =
        Door::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..GuestSettings::default() }).await;
    let mut first = door.connect(From::A).await;
    until(|| door.stats.connections_open.get() == 1).await;
    let mut second = door.connect(From::B).await;
    second.send(get(EVENTS)).await;
    assert_eq!(second.answer().await.status, 200);
    later().await;
    first.send(get(EVENTS)).await;
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    assert!(second.is_closed().await, "it was idle longer than the first");
    first.send(get(EVENTS)).await;
    assert_eq!(first.answer().await.status, 200);
    assert_eq!((door.stats.connections_evicted.get(), door.stats.connections_turned_away.get()), (1, 0));
    door.close().await;
}

#[tokio::test]
#[allow(clippy::await_holding_lock, reason = "it is what keeps a worker busy")]
async fn a_worker_with_nothing_idle_has_another_make_room() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let door = Door::open(GuestSettings { limits, threads: NonZeroUsize::new(2), ..unlimited() }).await;
    // A worker that asks who calls from an address waits for the lock; the other one accepts meanwhile.
    let busy = door.world.by_address.lock().unwrap();
    let mut idle = door.connect(From::Address("127.0.0.2")).await;
    idle.send(get(EVENTS)).await;
    until(|| door.world.asked.load(Relaxed) == 1).await;
    let mut half = door.connect(From::A).await;
    half.send(&get(EVENTS)[..20]).await;
    until(|| door.stats.connections_handed_over.get() == 1).await;
    drop(busy);
    assert_eq!(idle.answer().await.status, 200);

    // A connection that was accepted before its first byte came has been asked about twice.
    let asked = door.world.asked.load(Relaxed);
    let busy = door.world.by_address.lock().unwrap();
    idle.send(get(EVENTS)).await;
    until(|| door.world.asked.load(Relaxed) == asked + 1).await;
    assert!(door.connect(From::A).await.is_closed().await, "nothing is idle at the worker that accepts");
    drop(busy);
    assert_eq!(idle.answer().await.status, 200, "a request under way is not broken off");
    assert!(idle.is_closed().await, "and then it is idle");
    until(|| door.stats.connections_open.get() == 1).await;
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    half.send(&get(EVENTS)[20..]).await;
    assert_eq!(half.answer().await.status, 200);
    assert_eq!((door.stats.connections_evicted.get(), door.stats.connections_turned_away.get()), (1, 1));
    door.close().await;
}

#[tokio::test]
async fn no_request_is_broken_off_for_a_connection_too_many() {
    let door = Door::with_limits(Limits { connections_max: 2, ..Limits::default() }).await;
    let mut approving = door.connect(From::A).await;
    approving.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    let mut half = door.connect(From::A).await;
    half.send(&get(EVENTS)[..20]).await;
    until(|| door.stats.connections_handed_over.get() == 2).await;
    let mut third = door.connect(From::A).await;
    assert!(third.is_closed().await, "nobody is idle");
    half.send(&get(EVENTS)[20..]).await;
    assert_eq!(half.answer().await.status, 200);
    door.world.gate.add_permits(1);
    assert_eq!(approving.answer().await.status, 200);
    assert_eq!((door.stats.connections_evicted.get(), door.stats.connections_turned_away.get()), (0, 1));
    door.close().await;
}

/// Bytes that are nearly requests: parts of some, in any order, with bytes changed. The numbers come from a
/// fixed seed, so that a failure can be repeated.
#[tokio::test]
async fn no_bytes_stop_the_door() {
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
    let door = Door::with_limits(limits).await;
    for _ in 0..500 {
        let mut bytes: Vec<u8> = (0..next(12)).flat_map(|_| parts[next(parts.len())].to_vec()).collect();
        if !bytes.is_empty() && next(2) == 0 {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        let mut client = door.connect(From::A).await;
        client.send(&bytes).await;
    }
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    until(|| door.stats.connections_open.get() == 0).await;
    door.close().await;
}

#[tokio::test]
async fn a_door_that_closes_finishes_what_it_has_begun() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut idle = door.connect(From::A).await;
    idle.send(get(EVENTS)).await;
    assert_eq!(idle.answer().await.status, 200);
    let mut approving = door.connect(From::A).await;
    approving.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    until(|| door.stats.connections_handed_over.get() == 1).await;

    door.shutdown.send(true).unwrap();
    assert!(idle.is_closed().await);
    assert!(!door.serving.is_finished());
    door.world.gate.add_permits(1);
    let answer = approving.answer().await;
    assert_eq!((answer.status, answer.closes()), (200, true));
    assert!(approving.is_closed().await);
    drop(approving);
    door.close().await;
}

#[tokio::test]
async fn a_door_that_closes_does_not_wait_for_ever() {
    let door = Door::with_limits(Limits { shutdown_grace: SHORT, ..Limits::default() }).await;
    let mut stuck = door.connect(From::A).await;
    stuck.send(post(EVENTS, &approval(EVENT_SLOW))).await;
    let mut half = door.connect(From::A).await;
    half.send("GET ").await;
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    door.close().await;
    assert!(stuck.is_closed().await);
}
