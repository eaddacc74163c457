//! What the server records of requests: refused ones, and the clients that poll.

use std::num::{NonZeroU32, NonZeroUsize};

use notbefore_service::guest::settings::{GuestSettings, Mode};
use notbefore_wire::guest::error::GuestError;

use super::harness::*;
use super::table::table;

/// Each row of the table is recorded once if it is refused, with its VM unless that is unknown, and counted by reason.
#[tokio::test]
async fn each_refused_request_is_recorded_once() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut refusals = 0;
    for row in table().filter(|row| row.modes.contains(&Mode::Normal)) {
        assert_eq!(server.request(row.from, &row.request).await.status, row.status, "{}", row.name);
        let recorded = std::mem::take(&mut *server.platform.refused.lock().unwrap());
        if row.status < 400 {
            assert_eq!(recorded, [], "{}", row.name);
            continue;
        }
        refusals += 1;
        let [refused] = &recorded[..] else { panic!("{}: {recorded:?}", row.name) };
        assert!(row.request.starts_with(&refused.line) && !refused.line.is_empty(), "{}", row.name);
        assert_eq!(refused.vm.is_none(), row.status == 403, "{}: {refused:?}", row.name);
        assert!(GuestError::REASONS.contains(&(refused.reason, row.status)), "{}: {refused:?}", row.name);
    }
    assert!(refusals > 50, "{refusals}");
    assert_eq!(server.stats.refused().map(|(_, count)| count).sum::<u64>(), refusals);
    assert_eq!(server.stats.refused_by_status().map(|(_, count)| count).sum::<u64>(), refusals);
    server.close().await;
}

#[tokio::test]
async fn refused_approval_is_recorded_with_its_event() {
    let server = TestServer::open(unlimited()).await;
    let asked = |body: String| server.request(From::A, post(EVENTS, &body));
    for (body, reason, detail) in [
        (approval(EVENT_B), "unknown_event", format!("EventId {}", EVENT_B.to_lowercase())),
        (approval("nothing"), "unknown_event", "an EventId is not a GUID".to_owned()),
        ("{}".to_owned(), "bad_body", String::new()),
        (approval(EVENT_DOWN), "unavailable", "no store".to_owned()),
    ] {
        assert!(asked(body).await.status >= 400);
        let recorded = std::mem::take(&mut *server.platform.refused.lock().unwrap());
        let line = format!("POST {EVENTS} HTTP/1.1");
        assert_eq!(recorded, [Refused { vm: Some("a".to_owned()), line, reason, detail }]);
    }
    server.close().await;
}

#[tokio::test]
async fn refusals_off_the_usual_path_are_recorded() {
    let settings = GuestSettings { rate_limit: NonZeroU32::new(4), ..GuestSettings::default() };
    let server = TestServer::open(settings).await;
    // Parsed, cached, and over the limit.
    let mut client = server.connect(From::Address("127.0.0.2")).await;
    for status in [200, 200, 200, 200, 429] {
        client.send(get(EVENTS)).await;
        assert_eq!(client.response().await.status, status);
    }
    // A cached head, whose caller is now unknown.
    server.platform.map("127.0.0.2", None);
    client.send(get(EVENTS)).await;
    assert_eq!(client.response().await.status, 403);
    // A held poll, whose caller is unknown when it is checked again.
    server.clock.advance_milliseconds(1_000);
    let mut waiting = server.connect(From::Address("127.0.0.3")).await;
    waiting.send(get_with(EVENTS, "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=20\r\n")).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.map("127.0.0.3", None);
    assert_eq!(waiting.response().await.status, 403);
    let recorded = server.platform.refused.lock().unwrap().clone();
    let recorded: Vec<_> = recorded.iter().map(|one| (one.vm.as_deref(), one.reason, &*one.line)).collect();
    let line = format!("GET {EVENTS} HTTP/1.1");
    assert_eq!(
        recorded,
        [
            (Some("a"), "too_many_requests", &*line),
            (None, "unknown_caller", &*line),
            (None, "unknown_caller", "GET /metadata/scheduledevents (long poll)"),
        ]
    );
    server.close().await;
}

#[tokio::test]
async fn client_is_recorded_at_first_request_of_each_connection() {
    let server = TestServer::open(GuestSettings { threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let poll = get_with(EVENTS, "Metadata: true\r\nUser-Agent: curl/8\r\n");
    let recorded = || std::mem::take(&mut *server.platform.clients.lock().unwrap());
    let curl = |vm: &str| (vm.to_owned(), "curl/8".to_owned());
    let mut first = server.connect(From::A).await;
    for expected in [vec![curl("a")], vec![curl("a")], vec![], vec![]] {
        first.send(&poll).await;
        assert_eq!(first.response().await.status, 200);
        assert_eq!(recorded(), expected, "twice until the head is cached");
    }
    // Another VM with the same client: its head is in the cache.
    for is_late in [false, true] {
        let accepted = server.stats.connections_accepted.get();
        let mut other = server.connect(From::B).await;
        if is_late {
            until(|| server.stats.connections_accepted.get() > accepted).await;
            // The worker answers in order, so it has read the new connection in vain before this.
            first.send(&poll).await;
            assert_eq!(first.response().await.status, 200);
        }
        for expected in [vec![curl("b")], vec![], vec![]] {
            other.send(&poll).await;
            assert_eq!(other.response().await.status, 200);
            assert_eq!(recorded(), expected, "late: {is_late}");
        }
    }
    // A client that closes each connection.
    let closing = poll.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    for _ in 0..4 {
        assert_eq!(server.request(From::A, &closing).await.status, 200);
        assert_eq!(recorded(), [curl("a")]);
    }
    // A long poll, which is never cached, and a request in two parts.
    let mut split = server.connect(From::A).await;
    split.send(&poll[..20]).await;
    until(|| server.stats.connections_handed_over.get() == 1).await;
    split.send(&poll[20..]).await;
    assert_eq!(split.response().await.status, 200);
    assert_eq!(recorded(), [curl("a")]);
    server.close().await;
}
