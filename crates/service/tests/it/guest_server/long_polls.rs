//! Long polls: polls that wait for a change.

use std::num::NonZeroUsize;
use std::time::Duration;

use notbefore_service::guest::settings::{GuestSettings, HEAD_BYTES_MAX, Limits, Mode};
use notbefore_service::wait_queues::WAITERS_PER_VM_MAX;

use super::harness::*;

/// A poll with an ETag and a wait.
fn long_poll(tag: &str, wait: &str) -> String {
    long_poll_at(EVENTS, tag, wait)
}

fn long_poll_at(target: &str, tag: &str, wait: &str) -> String {
    get_with(target, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\nPrefer: {wait}\r\n"))
}

fn incarnation(response: &Response) -> Option<&str> {
    response.header("ETag")
}

#[tokio::test]
async fn long_poll_returns_when_document_changes() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let [mut first, mut second, mut other] =
        [server.connect(From::A).await, server.connect(From::A).await, server.connect(From::B).await];
    first.send(long_poll("7", "wait=60")).await;
    second.send(long_poll_at("/metadata/scheduledevents?api-version=2017-08-01", "\"7\"", "wait=1000")).await;
    other.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == 3).await;
    assert_eq!(server.platform.polled.lock().unwrap().len(), 3, "a poll is recorded when it arrives");
    server.platform.change("a");
    assert_eq!(
        first.response().await.head,
        "HTTP/1.1 200 OK\r\n\
         Content-Type: application/json; charset=utf-8\r\n\
         Server: IMDS/0.1.0 (notbefore)\r\n\
         x-ms-request-id: ID\r\n\
         ETag: 8\r\n\
         Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
         Content-Length: 54\r\n\
         Preference-Applied: wait=60\r\n\
         \r\n"
    );
    let response = second.response().await;
    assert_eq!(response.body, r#"{"DocumentIncarnation":8,"Events":["a at 2017-08-01"]}"#);
    assert_eq!(response.header("Preference-Applied"), Some("wait=300"), "the wait is capped");
    assert_eq!(server.stats.waiting.get(), 1, "the other scope has not changed");
    until(|| server.platform.delivered.lock().unwrap().len() == 2).await;
    assert_eq!(server.platform.polled.lock().unwrap().len(), 3, "each poll is recorded once");

    // Each of these connections is an ordinary one again.
    first.send(get(EVENTS)).await;
    assert_eq!(first.response().await.status, 200);
    first.send(long_poll("8", "wait=60")).await;
    until(|| server.stats.waiting.get() == 2).await;
    server.platform.change("a");
    assert_eq!(incarnation(&first.response().await), Some("9"));
    server.close().await;
}

#[tokio::test]
async fn long_poll_returns_304_on_timeout() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(long_poll("7", "respond-async, WAIT=\"1\"")).await;
    until(|| server.stats.waiting.get() == 1).await;
    assert_eq!(
        client.response().await.head,
        "HTTP/1.1 304 Not Modified\r\n\
         ETag: 7\r\n\
         Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
         Preference-Applied: wait=1\r\n\
         \r\n"
    );
    assert!(server.stats.waiting.get() == 0 && server.platform.has_no_waiters());
    client.send(get(EVENTS)).await;
    assert_eq!(client.response().await.status, 200);
    server.close().await;
}

#[tokio::test]
async fn poll_without_wait_returns_at_once() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let tagged = |rest: &str| get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: 7\r\n{rest}"));
    for (request, status) in [
        (tagged(""), 304),
        (tagged("Prefer: wait=0\r\n"), 304),
        (tagged("Prefer: wait=soon\r\n"), 304),
        (tagged("Prefer: respond-async\r\n"), 304),
        (tagged("Prefer: wait=x\r\nPrefer: wait=5\r\n"), 304),
        (get_with(EVENTS, "Metadata: true\r\nPrefer: wait=60\r\n"), 200),
        (long_poll(&"1,".repeat(600), "wait=60"), 200),
        (format!("{}7\r\n\r\n", tagged(&format!("If-None-Match: {}", "1,".repeat(600))).trim_end()), 304),
        (long_poll_at("/metadata/versions", "7", "wait=60"), 200),
        (long_poll_at("/nowhere", "7", "wait=60"), 404),
    ] {
        client.send(&request).await;
        let response = client.response().await;
        assert_eq!((response.status, response.header("Preference-Applied")), (status, None), "{request}");
    }
    client.send(long_poll("6", "wait=60")).await;
    let response = client.response().await;
    assert_eq!(
        (response.status, response.header("Preference-Applied")),
        (200, Some("wait=60")),
        "the document has changed"
    );
    server.close().await;
}

#[tokio::test]
async fn spurious_notification_returns_nothing() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == 1).await;
    for _ in 0..100 {
        until(|| !server.platform.has_no_waiters()).await;
        server.platform.notify("a");
    }
    until(|| !server.platform.has_no_waiters()).await;
    assert_eq!(server.stats.waiting.get(), 1);
    server.platform.change("a");
    assert_eq!(incarnation(&client.response().await), Some("8"));
    server.close().await;
}

#[tokio::test]
async fn change_before_registration_is_not_missed() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    *server.platform.changes_early.lock().unwrap() = Some("a".to_owned());
    client.send(long_poll("7", "wait=60")).await;
    assert_eq!(incarnation(&client.response().await), Some("8"));
    assert!(server.platform.has_no_waiters());
    server.close().await;
}

#[tokio::test]
async fn long_poll_is_resolved_again_when_caller_changes() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let from = From::Address("127.0.0.2");
    let mut moved = server.connect(from).await;
    moved.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.change("b");
    server.platform.map("127.0.0.2", Some("b"));
    let response = moved.response().await;
    assert_eq!(response.body, r#"{"DocumentIncarnation":8,"Events":["b at 2020-07-01"]}"#);

    moved.send(long_poll("8", "wait=60")).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.map("127.0.0.2", None);
    let response = moved.response().await;
    assert_eq!((response.status, response.closes()), (403, true));
    assert_eq!(response.header("Preference-Applied"), None);
    assert!(moved.is_closed().await);
    server.close().await;
}

#[tokio::test]
async fn proxied_long_poll_waits_for_its_vm() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let id = vm_id("a").to_string();
    let claim = format!("X-Instance-ID: {id}\r\nX-Instance-ID-Signature: {}\r\n", signature(SECRET, &id));
    let mut proxy = server.connect(From::Address("127.0.0.9")).await;
    let about = "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=60\r\n";
    proxy.send(get_with(EVENTS, &format!("{about}{claim}"))).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.change("b");
    server.platform.change("a");
    assert_eq!(proxy.response().await.body, r#"{"DocumentIncarnation":8,"Events":["a at 2020-07-01"]}"#);
    server.close().await;
}

#[tokio::test]
async fn shutdown_ends_long_polls() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.shutdown.send(true).unwrap();
    let response = client.response().await;
    assert_eq!((response.status, response.closes()), (304, true));
    assert_eq!(response.header("Preference-Applied"), Some("wait=60"));
    assert!(client.is_closed().await);
    assert_eq!(server.stats.waiting.get(), 0);
    server.close().await;
}

#[tokio::test]
async fn disconnect_cancels_long_poll() {
    let server = TestServer::with_mode(Mode::Normal).await;
    for reset in [false, true] {
        let mut client = server.connect(From::A).await;
        client.send(long_poll("7", "wait=60")).await;
        until(|| server.stats.waiting.get() == 1).await;
        if reset {
            client.stream.set_zero_linger().unwrap();
        }
        drop(client);
        until(|| server.stats.waiting.get() == 0 && server.stats.connections_open.get() == 0).await;
        assert!(server.platform.has_no_waiters());
    }
    server.close().await;
}

#[tokio::test]
async fn long_poll_is_not_closed_as_idle() {
    let server =
        TestServer::with_limits(Limits { idle_timeout: Duration::from_secs(1), ..Limits::default() }).await;
    let mut client = server.connect(From::A).await;
    client.send(long_poll("7", "wait=3")).await;
    assert_eq!(client.response().await.status, 304, "held longer than the idle timeout");
    assert!(client.is_closed().await, "it is idle now");
    server.close().await;

    let limits = Limits { connections_max: 2, ..Limits::default() };
    let server =
        TestServer::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let mut client = server.connect(From::A).await;
    client.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == 1).await;
    let mut idle = server.connect(From::A).await;
    until(|| server.stats.connections_open.get() == 2).await;
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    assert!(idle.is_closed().await, "the idle connection is evicted first, although it is newer");
    assert_eq!((server.stats.waiting.get(), server.stats.connections_evicted.get()), (1, 1));
    server.close().await;
}

#[tokio::test]
async fn long_polls_are_evicted_for_new_connections() {
    let limits = Limits { connections_max: 3, ..Limits::default() };
    let server =
        TestServer::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let mut waiting = Vec::new();
    // The first to arrive has the longest wait.
    for (count, wait) in [(1, "wait=300"), (2, "wait=200"), (3, "wait=100")] {
        let mut client = server.connect(From::A).await;
        client.send(long_poll("7", wait)).await;
        until(|| server.stats.waiting.get() == count).await;
        // Pipelined input is read but not answered, and does not prevent the response.
        client.send(get(EVENTS)).await;
        later().await;
        waiting.push(client);
    }
    let mut newer = Vec::new();
    for (longest, wait) in waiting.iter_mut().zip(["wait=300", "wait=200"]) {
        let mut client = server.connect(From::A).await;
        client.send(&get(EVENTS)[..9]).await;
        let response = longest.response().await;
        assert_eq!((response.status, response.closes()), (304, true));
        assert_eq!(response.header("Preference-Applied"), Some(wait));
        assert!(longest.is_closed().await);
        until(|| server.stats.connections_handed_over.get() == newer.len() as u64 + 1).await;
        newer.push(client);
    }
    for client in &mut newer {
        client.send(&get(EVENTS)[9..]).await;
        assert_eq!(client.response().await.status, 200);
    }
    assert_eq!((server.stats.waiting.get(), server.stats.connections_evicted.get()), (1, 2));
    assert_eq!(server.stats.connections_turned_away.get(), 0);
    drop(waiting);
    server.close().await;
}

#[tokio::test]
async fn long_polls_per_vm_are_limited() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut waiting = Vec::new();
    for count in 1..=WAITERS_PER_VM_MAX as u64 {
        let mut client = server.connect(From::A).await;
        client.send(long_poll("7", "wait=60")).await;
        until(|| server.stats.waiting.get() == count).await;
        waiting.push(client);
    }
    let mut another = server.connect(From::Address("127.0.0.2")).await;
    for _ in 0..2 {
        another.send(long_poll("7", "wait=60")).await;
        let response = another.response().await;
        assert_eq!(
            (response.status, response.closes()),
            (304, false),
            "a poll beyond the limit is answered at once"
        );
    }
    let mut other = server.connect(From::B).await;
    other.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == WAITERS_PER_VM_MAX as u64 + 1).await;
    waiting.pop();
    until(|| server.stats.waiting.get() == WAITERS_PER_VM_MAX as u64).await;
    another.send(long_poll("7", "wait=60")).await;
    until(|| server.stats.waiting.get() == WAITERS_PER_VM_MAX as u64 + 1).await;
    server.platform.change("a");
    assert_eq!(incarnation(&another.response().await), Some("8"));
    server.close().await;
}

/// A long poll as long as one read.
fn oversized_long_poll() -> String {
    let about = "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=60\r\n";
    let padding = HEAD_BYTES_MAX - get_with(EVENTS, &format!("{about}X: \r\n")).len();
    get_with(EVENTS, &format!("{about}X: {}\r\n", "x".repeat(padding)))
}

#[tokio::test]
async fn input_beyond_buffer_is_served_after_long_poll() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(oversized_long_poll() + &get("/metadata/versions")).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.change("a");
    assert_eq!(incarnation(&client.response().await), Some("8"));
    assert_eq!(client.response().await.status, 200);
    server.close().await;
}

#[tokio::test]
async fn late_notification_leaves_no_registration() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    *server.platform.changes_late.lock().unwrap() = Some("a".to_owned());
    client.send(oversized_long_poll() + &long_poll("8", "wait=60")).await;
    assert_eq!(incarnation(&client.response().await), Some("8"));
    until(|| server.stats.waiting.get() == 1).await;
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    drop(client);
    until(|| server.stats.waiting.get() == 0).await;
    assert!(server.platform.has_no_waiters());
    server.close().await;
}

#[tokio::test]
async fn large_pipelined_input_ends_long_poll() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let ahead = get("/metadata/versions");
    let count = 1024 / ahead.len() + 1;
    client.send(long_poll("7", "wait=60") + &ahead.repeat(count)).await;
    let response = client.response().await;
    assert_eq!((response.status, response.closes()), (304, false));
    for _ in 0..count {
        assert_eq!(client.response().await.status, 200);
    }
    server.close().await;
}

#[tokio::test]
async fn pipelined_requests_are_served_after_long_poll() {
    let server = TestServer::with_mode(Mode::Normal).await;
    for together in [true, false] {
        let mut client = server.connect(From::A).await;
        let tag = server.request(From::A, get(EVENTS)).await.header("ETag").unwrap().to_owned();
        let (waits, then) = (long_poll(&tag, "wait=60"), get("/metadata/versions") + &get("/nowhere"));
        match together {
            true => client.send(waits + &then).await,
            false => {
                client.send(waits).await;
                until(|| server.stats.waiting.get() == 1).await;
                client.send(then).await;
            }
        }
        until(|| server.stats.waiting.get() == 1).await;
        assert_eq!(server.stats.metadata.get(), if together { 0 } else { 1 }, "the next request waits");
        server.platform.change("a");
        let mut statuses = vec![];
        for _ in 0..3 {
            statuses.push(client.response().await.status);
        }
        assert_eq!(statuses, [200, 200, 404]);
        client.send(get(EVENTS)).await;
        assert_eq!(client.response().await.status, 200);
    }
    server.close().await;
}

#[tokio::test]
async fn long_poll_request_may_be_split_anywhere() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let mut tag = 7;
    let length = long_poll("7", "wait=60").len();
    for at in 1..length {
        let request = long_poll(&tag.to_string(), "wait=60");
        let before = server.stats.connections_handed_over.get();
        client.send(&request[..at]).await;
        until(|| server.stats.connections_handed_over.get() == before + 1).await;
        client.send(&request[at..]).await;
        until(|| server.stats.waiting.get() == 1).await;
        server.platform.change("a");
        tag += 1;
        assert_eq!(incarnation(&client.response().await), Some(&*tag.to_string()), "split at {at}");
    }
    server.close().await;
}
