//! Client tests against a scripted platform that replays reported quirks of real platforms, and some more. The
//! platform runs on loopback in the same thread with paused time, so no test depends on the machine's load.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod platform;

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use futures_core::Stream;
use notbefore_client::changes::Change;
use notbefore_client::client::{Approval, ApproveError, Client, Options};
use notbefore_client::clock::Clock;
use notbefore_client::discovery::{BUSY_TIME_MAX, Discovery, DiscoverySource};
use notbefore_client::document::{Document, EventId, EventStatus, EventsVersion};
use notbefore_client::failure::FailureKind;
use notbefore_client::identity::{Identity, NameSource};
use notbefore_client::watch::{Update, Watch};
use platform::{Platform, RecordedRequest, Reply, answer, body, document, event};

const BAD_VERSION: &str =
    "{\"error\":\"Bad request. api-version is invalid or was not specified in the request.\"}";
const NOT_SERVED: &str = "{ \"error\": \"Not found. Invalid version requested\" }";

/// The next document; before it, outages of these kinds are expected.
async fn document_after(watch: &mut Watch, troubles: &[FailureKind]) -> Document {
    for kind in troubles {
        match watch.next().await {
            Update::Outage(outage) => assert_eq!(outage.kind, *kind, "{}", outage.text),
            other @ (Update::Document { .. } | Update::Unchanged { .. }) => {
                panic!("{other:?}, and a {kind:?} was expected")
            }
        }
    }
    match watch.next().await {
        Update::Document { document, .. } => document,
        other @ (Update::Unchanged { .. } | Update::Outage(_)) => {
            panic!("{other:?}, and a document was expected")
        }
    }
}

/// The failure of a first poll.
async fn outage_of(reply: Reply) -> (FailureKind, String) {
    let platform = Platform::start([reply]).await;
    match Watch::new(platform.client()).next().await {
        Update::Outage(outage) => (outage.kind, outage.text),
        other @ (Update::Document { .. } | Update::Unchanged { .. }) => {
            panic!("{other:?}, and outage was expected")
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_have_required_headers_and_reuse_connection() {
    let platform = Platform::start([document(1, &[]), answer(304, "", "")]).await;
    let mut watch = Watch::new(platform.client());
    document_after(&mut watch, &[]).await;
    assert!(matches!(watch.next().await, Update::Unchanged { .. }));
    let requests = platform.requests();
    assert_eq!(requests.len(), 2);
    for one in &requests {
        assert!(one.head.starts_with("GET /metadata/scheduledevents?api-version=2024-07-09 HTTP/1.1\r\n"));
        assert_eq!(one.header("metadata"), Some("true"));
        assert_eq!(one.header("host"), Some(platform.endpoint.to_string().trim_start_matches("http://")));
        assert!(one.header("user-agent").unwrap().starts_with("notbefore/"));
        assert_eq!(one.header("x-forwarded-for"), None);
        assert_eq!(one.connection, 0);
    }
    assert_eq!((requests[0].header("if-none-match"), requests[0].header("prefer")), (None, None));
    assert_eq!(
        (requests[1].header("if-none-match"), requests[1].header("prefer")),
        (Some("1"), Some("wait=5"))
    );
}

/// Longer than the timeout of later responses.
#[tokio::test(start_paused = true)]
async fn first_poll_has_longer_timeout() {
    let slow = Reply::After(Duration::from_secs(11), Box::new(document(1, &[])));
    let platform = Platform::start([slow]).await;
    document_after(&mut Watch::new(platform.client()), &[]).await;
    assert_eq!(platform.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_document_is_outage_not_empty() {
    for (reply, kind, said) in [
        (answer(200, "", ""), FailureKind::Unreadable, "the answer is empty"),
        (answer(200, "", "{\"DocumentIncarnation\":1}"), FailureKind::Unreadable, "no Events"),
        (answer(200, "", "{\"Events\":{}}"), FailureKind::Unreadable, "not a list"),
        (answer(200, "", "<html>captive</html>"), FailureKind::Unreadable, "<html>captive</html>"),
        (answer(204, "", ""), FailureKind::Status(204), "204"),
        (answer(304, "", ""), FailureKind::Status(304), "304"),
        (
            answer(403, "", "{\"error\":\"Forbidden\"}"),
            FailureKind::Status(403),
            "403 Forbidden: {\"error\":\"Forbidden\"}",
        ),
        (answer(404, "", ""), FailureKind::Status(404), "404 Not Found"),
        (answer(500, "", "oops"), FailureKind::Status(500), "500 Internal Server Error: oops"),
        (Reply::SendAndClose(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), FailureKind::Broken, "http://127.0.0.1"),
        (Reply::SendAndClose(vec![0; 64]), FailureKind::Broken, "http://127.0.0.1"),
        (Reply::SendAndClose(vec![]), FailureKind::Broken, "http://127.0.0.1"),
    ] {
        let shown = format!("{reply:?}");
        let (got, text) = outage_of(reply).await;
        assert_eq!(got, kind, "{shown}: {text}");
        assert!(text.contains(said) && text.contains("http://127.0.0.1"), "{shown}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_documents_are_read_leniently() {
    let raw_newline = event("a", "Scheduled").replace("\"\"}", "\"\",\"Description\":\"one\r\ntwo\"}");
    for (headers, text) in [
        ("Content-Type: text/plain; charset=utf-8\r\n", body(1, &[&event("a", "Scheduled")])),
        ("Content-Type: text/html\r\n", format!("\u{feff}{}\r\n", body(1, &[&event("a", "Scheduled")]))),
        ("", body(1, &[&raw_newline])),
        ("", body(1, &[&event("a", "Scheduled")]).replace(":1,", ":\"1\",")),
        ("", body(1, &[&event("a", "Scheduled"), &event("A", "Started")])),
        (
            "",
            body(
                1,
                &[&event("a", "Scheduled")
                    .replace("\"NotBefore\":\"\"", "\"NotBefore\":\"Xyz, 19 Sep 2016 18:29:47 GMT\"")],
            ),
        ),
    ] {
        let platform = Platform::start([answer(200, headers, &text)]).await;
        let document = document_after(&mut Watch::new(platform.client()), &[]).await;
        assert_eq!((document.incarnation.as_str(), document.events.len()), ("1", 1), "{text}");
        assert_eq!(document.events[0].status, EventStatus::Scheduled, "of two with one id the first counts");
    }
}

#[tokio::test(start_paused = true)]
async fn chunked_and_close_delimited_bodies_are_read() {
    let text = body(1, &[&event("a", "Scheduled")]);
    let (one, two) = text.split_at(20);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x};ext=1\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    let until_end = format!("HTTP/1.0 200 OK\r\n\r\n{text}");
    for reply in [Reply::Send(chunked.into()), Reply::SendAndClose(until_end.into())] {
        let platform = Platform::start([reply]).await;
        assert_eq!(document_after(&mut Watch::new(platform.client()), &[]).await.events.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn truncated_response_is_outage_then_recovers() {
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{}", body(1, &[]));
    for cut in [20, 60] {
        let platform =
            Platform::start([Reply::SendAndClose(whole.as_bytes()[..cut].to_vec()), document(1, &[])]).await;
        let mut watch = Watch::new(platform.client());
        document_after(&mut watch, &[FailureKind::Broken]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_response_is_outage() {
    let long = "x".repeat(1 << 20);
    let (kind, text) = outage_of(answer(200, "", &format!("{long}y"))).await;
    assert_eq!(kind, FailureKind::Broken);
    assert!(text.contains("larger than the limit of 1048576 bytes"), "{text}");
    let endless = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n{long}y\r\n");
    assert_eq!(outage_of(Reply::Send(endless.into())).await.0, FailureKind::Broken);
    let head = format!("X-Long: {}\r\n", &long[..9_000]);
    assert_eq!(outage_of(answer(200, &head, &body(1, &[]))).await.0, FailureKind::Broken);
    let many = "X: y\r\n".repeat(100);
    assert_eq!(outage_of(answer(200, &many, &body(1, &[]))).await.0, FailureKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn idle_close_reconnects_without_outage() {
    let closing = |incarnation| {
        let text = body(incarnation, &[]);
        Reply::SendAndClose(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into())
    };
    let platform = Platform::start([closing(1), closing(2), document(3, &[])]).await;
    let mut watch = Watch::new(platform.client());
    for incarnation in ["1", "2", "3"] {
        assert_eq!(document_after(&mut watch, &[]).await.incarnation, incarnation);
    }
    let connections: Vec<usize> = platform.requests().iter().map(|requests| requests.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed() {
    let elsewhere = Platform::start([document(1, &[])]).await;
    let to = format!("Location: {}/metadata/scheduledevents\r\n", elsewhere.endpoint);
    let (kind, _) = outage_of(answer(302, &to, "")).await;
    assert_eq!(kind, FailureKind::Status(302));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tags_are_echoed_verbatim() {
    for tag in ["17", "\"17\"", "W/\"a, b\"", "no quotes at all"] {
        let first = answer(200, &format!("ETag: {tag}\r\n"), &body(1, &[]));
        let platform = Platform::start([first, answer(304, "", "")]).await;
        let mut watch = Watch::new(platform.client());
        document_after(&mut watch, &[]).await;
        assert!(matches!(watch.next().await, Update::Unchanged { .. }));
        assert_eq!(platform.requests()[1].header("if-none-match"), Some(tag));
    }
}

/// A platform drops a scope after a day without polls and resets its counter: the number falls, or repeats for
/// another document.
#[tokio::test(start_paused = true)]
async fn incarnation_order_is_ignored() {
    let (a, b) = (event("a", "Scheduled"), event("b", "Scheduled"));
    let script = [
        document(279, &[&a]),
        document(1, &[]),
        document(279, &[&b]),
        document(280, &[&b]),
        document(280, &[]),
    ];
    let platform = Platform::start(script).await;
    let mut watch = Watch::new(platform.client());
    for (incarnation, events) in [("279", 1), ("1", 0), ("279", 1), ("280", 1), ("280", 0)] {
        let document = document_after(&mut watch, &[]).await;
        assert_eq!((document.incarnation.as_str(), document.events.len()), (incarnation, events));
    }
}

#[tokio::test(start_paused = true)]
async fn reverted_status_is_passed_through() {
    let script =
        [document(1, &[&event("a", "Started")]), document(2, &[&event("a", "Scheduled")]), document(3, &[])];
    let platform = Platform::start(script).await;
    let mut changes = Watch::new(platform.client()).changes();
    assert!(matches!(changes.next().await, Change::Appeared(event) if event.status == EventStatus::Started));
    let Change::Changed { before, event } = changes.next().await else { panic!("it changed") };
    assert_eq!((before.status, event.status), (EventStatus::Started, EventStatus::Scheduled));
    assert!(matches!(changes.next().await, Change::Gone(_)));
}

#[tokio::test(start_paused = true)]
async fn change_stream_reports_outage() {
    let script = [document(1, &[&event("a", "Scheduled")]), answer(503, "", ""), document(2, &[])];
    let platform = Platform::start(script).await;
    let mut changes = Watch::new(platform.client()).changes();
    assert!(matches!(changes.next().await, Change::Appeared(_)));
    assert!(changes.outage().is_none());
    while changes.outage().is_none() {
        tokio::select! {
            change = changes.next() => panic!("{change:?} in the middle of outage"),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    assert_eq!(changes.outage().unwrap().kind, FailureKind::Status(503));
    let mut stream = pin!(changes.into_stream());
    let next = poll_fn(|context| stream.as_mut().poll_next(context)).await;
    assert!(matches!(next, Some(Change::Gone(_))), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn outage_has_start_time_and_polling_continues() {
    let script = [answer(410, "", "updating"), answer(503, "", ""), document(1, &[])];
    let platform = Platform::start(script).await;
    let mut watch = Watch::new(platform.client());
    let Update::Outage(first) = watch.next().await else { panic!("410 is outage") };
    let Update::Outage(second) = watch.next().await else { panic!("503 is outage") };
    assert_eq!((first.tries, second.tries), (1, 2));
    assert_eq!(first.since, second.since);
    document_after(&mut watch, &[]).await;
    let at: Vec<Duration> = platform.requests().iter().map(|requests| requests.at).collect();
    assert!(at[1] - at[0] >= Duration::from_secs(1) && at[2] - at[1] >= Duration::from_secs(2), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let platform = Platform::start([answer(429, "Retry-After: 3\r\n", ""), document(1, &[])]).await;
    document_after(&mut Watch::new(platform.client()), &[FailureKind::Status(429)]).await;
    let requests = platform.requests();
    let rest = requests[1].at - requests[0].at;
    assert!(rest >= Duration::from_secs(3) && rest < Duration::from_secs(5), "{rest:?}");
}

/// For any responses: never two polls within a second.
#[tokio::test(start_paused = true)]
async fn one_poll_a_second_for_a_server_that_does_not_wait() {
    for preference in ["", "Preference-Applied: respond-async\r\n", "Preference-Applied: wait=0\r\n"] {
        let news = |incarnation| {
            answer(200, &format!("ETag: {incarnation}\r\n{preference}"), &body(incarnation, &[]))
        };
        let platform = Platform::start([news(1), news(2), answer(304, preference, ""), news(4)]).await;
        let mut watch = Watch::new(platform.client());
        for _ in 0..4 {
            watch.next().await;
        }
        let at: Vec<Duration> = platform.requests().iter().map(|requests| requests.at).collect();
        let rests: Vec<Duration> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let pace = Duration::from_secs(1);
        // So an event is seen within 1.1 s.
        let paced = |rest: &Duration| (pace..pace + Duration::from_millis(100)).contains(rest);
        assert!(rests.iter().all(paced), "{rests:?}");
    }
}

/// Service goal: an event is seen within 100 ms.
#[tokio::test(start_paused = true)]
async fn long_poll_server_is_polled_again_immediately() {
    let waits = "Preference-Applied: wait=30\r\n";
    let news = |incarnation, events: &[&str]| {
        let reply = answer(200, &format!("ETag: {incarnation}\r\n{waits}"), &body(incarnation, events));
        Reply::After(Duration::from_millis(1_200), Box::new(reply))
    };
    let first = document(1, &[]);
    let platform = Platform::start([
        first,
        news(2, &[&event("a", "Scheduled")]),
        news(3, &[&event("a", "Started")]),
        news(4, &[]),
    ])
    .await;
    let mut watch = Watch::new(platform.client());
    let clock = Clock::start();
    let mut received_at = Vec::new();
    for _ in 0..4 {
        document_after(&mut watch, &[]).await;
        received_at.push(clock.now().tick);
    }
    let requests = platform.requests();
    assert_eq!(requests[2].header("prefer"), Some("wait=30"));
    // Polled right after the last response, and answered right after the change.
    let late = |turn: usize| {
        let sent_after = requests[turn].at.abs_diff(received_at[turn - 1]);
        let received_after = received_at[turn] - received_at[turn - 1] - Duration::from_millis(1_200);
        sent_after.max(received_after)
    };
    assert!(late(2).max(late(3)) < Duration::from_millis(100), "late by {:?} and {:?}", late(2), late(3));
}

#[tokio::test(start_paused = true)]
async fn next_is_cancel_safe() {
    let slow = Reply::After(Duration::from_millis(300), Box::new(document(1, &[])));
    let platform = Platform::start([slow, document(2, &[])]).await;
    let mut watch = Watch::new(platform.client());
    let mut dropped = 0;
    let document = loop {
        tokio::select! {
            update = watch.next() => break update,
            () = tokio::time::sleep(Duration::from_millis(20)) => dropped += 1,
        }
    };
    assert!(matches!(document, Update::Document { .. }), "{document:?}");
    assert!(dropped > 5, "{dropped}");
    assert_eq!(platform.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn version_fallback_applies_to_approvals() {
    // The list is for other documents: following it would skip a version that works.
    let named =
        BAD_VERSION.replace('}', ",\"newest-versions\":[\"2018-02-01\",\"2017-12-01\",\"2017-08-01\"]}");
    let script = [
        answer(400, "", &named),
        answer(404, "", NOT_SERVED),
        document(1, &[&event("a", "Scheduled").replace("web-0", "_web-0")]),
        answer(200, "", ""),
    ];
    let platform = Platform::start(script).await;
    let client = platform.client();
    let mut watch = Watch::new(client.clone());
    match watch.next().await {
        Update::Document { document, version, .. } => {
            assert_eq!(version, EventsVersion::V2019_08_01);
            assert_eq!(document.events[0].resources, ["_web-0"], "the underscore is the preview's only");
        }
        other @ (Update::Unchanged { .. } | Update::Outage(_)) => panic!("{other:?}"),
    }
    assert_eq!(client.approve(&EventId::new("a")).await, Ok(Approval::Accepted));
    assert_eq!(versions(&platform.requests()), ["2024-07-09", "2020-07-01", "2019-08-01", "2019-08-01"]);
}

/// The requested versions, in order.
fn versions(requests: &[RecordedRequest]) -> Vec<&str> {
    requests.iter().map(|requests| requests.head.split(['=', ' ']).nth(2).unwrap()).collect()
}

/// Never two within a second.
fn is_paced(requests: &[RecordedRequest]) -> bool {
    requests.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_secs(1))
}

#[tokio::test(start_paused = true)]
async fn single_get_falls_back_at_poll_pace() {
    let platform = Platform::start([answer(400, "", BAD_VERSION), document(7, &[])]).await;
    let reading = platform.client().get().await.unwrap();
    assert_eq!((reading.version, reading.document.incarnation.as_str()), (EventsVersion::V2020_07_01, "7"));
    let never = Platform::start([answer(400, "", BAD_VERSION)]).await;
    assert_eq!(never.client().get().await.unwrap_err().kind, FailureKind::Status(400));
    assert_eq!(never.requests().len(), EventsVersion::ALL.len());
    assert!(is_paced(&never.requests()), "{:?}", never.requests());
}

#[tokio::test(start_paused = true)]
async fn approval_falls_back_at_poll_pace() {
    let script = [answer(404, "", NOT_SERVED), answer(400, "", BAD_VERSION), answer(200, "", "")];
    let platform = Platform::start(script).await;
    let client = platform.client();
    for _ in 0..2 {
        assert_eq!(client.approve(&EventId::new("a")).await, Ok(Approval::Accepted));
    }
    let requests = platform.requests();
    assert_eq!(versions(&requests), ["2024-07-09", "2020-07-01", "2019-08-01", "2019-08-01"]);
    assert!(is_paced(&requests[..3]), "{requests:?}");
}

/// Most platforms answer the newest version with 404, whatever the body.
#[tokio::test(start_paused = true)]
async fn version_that_is_not_rolled_out_is_left_for_an_hour() {
    let platform = Platform::start([answer(404, "", "<html>"), document(1, &[])]).await;
    let client = platform.client();
    for _ in 0..3 {
        assert_eq!(client.get().await.unwrap().version, EventsVersion::DOCUMENTED);
    }
    assert_eq!(client.approve(&EventId::new("a")).await, Ok(Approval::Accepted));
    let asked = ["2024-07-09", "2020-07-01", "2020-07-01", "2020-07-01", "2020-07-01"];
    assert_eq!(versions(&platform.requests()), asked);
    // The platform has no events: not an answer about the version.
    let none = Platform::start([answer(404, "", "<html>")]).await;
    assert_eq!(none.client().get().await.unwrap_err().kind, FailureKind::Status(404));
    assert_eq!(versions(&none.requests()), ["2024-07-09", "2020-07-01"]);
}

/// A new watch uses the negotiated version and the document read before.
#[tokio::test(start_paused = true)]
async fn watch_continues_from_discovery_reading() {
    let script = [answer(400, "", BAD_VERSION), document(1, &[]), answer(304, "", "")];
    let platform = Platform::start(script).await;
    let found = Discovery::new(Some(platform.endpoint.clone()), Options::default()).find().await.unwrap();
    let mut watch = Watch::after(found.client, found.reading);
    assert_eq!(document_after(&mut watch, &[]).await.incarnation, "1");
    assert_eq!(platform.requests().len(), 2, "the document was there");
    assert!(matches!(watch.next().await, Update::Unchanged { .. }));
    let requests = platform.requests();
    assert_eq!(versions(&requests), ["2024-07-09", "2020-07-01", "2020-07-01"]);
    assert_eq!(requests[2].header("if-none-match"), Some("1"));
    assert!(is_paced(&requests), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn watch_without_reading_keeps_pace_and_version() {
    let script = [answer(400, "", BAD_VERSION), document(1, &[])];
    let platform = Platform::start(script).await;
    let client = platform.client();
    let reading = client.get().await.unwrap();
    // At the rate of polls; after two of them the reading is more than a second old.
    for _ in 0..2 {
        assert_eq!(document_after(&mut Watch::new(client.clone()), &[]).await.incarnation, "1");
    }
    // An old reading is left to the first poll.
    let mut late = Watch::after(client, reading);
    assert_eq!(document_after(&mut late, &[]).await.incarnation, "1");
    let requests = platform.requests();
    assert_eq!(versions(&requests), ["2024-07-09", "2020-07-01", "2020-07-01", "2020-07-01", "2020-07-01"]);
    assert_eq!(requests[4].header("if-none-match"), None);
    assert!(is_paced(&requests), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn approval_sends_platform_event_id() {
    let platform = Platform::start([answer(200, "", "")]).await;
    let id = EventId::new("602d9444-D2CD-49c7-8624-8643e7171297");
    assert_eq!(platform.client().approve(&id).await, Ok(Approval::Accepted));
    let requests = &platform.requests()[0];
    assert!(requests.head.starts_with("POST /metadata/scheduledevents?api-version=2024-07-09 "));
    assert_eq!(requests.body, "{\"StartRequests\":[{\"EventId\":\"602d9444-D2CD-49c7-8624-8643e7171297\"}]}");
    assert_eq!(
        (requests.header("metadata"), requests.header("content-type")),
        (Some("true"), Some("application/json"))
    );
}

#[tokio::test(start_paused = true)]
async fn refused_approval_of_gone_event_is_moot() {
    let refusal = || answer(400, "", "{\"error\":\"Bad request. Unknown event\"}");
    for (events, expected) in [
        (vec![], Ok(Approval::Moot)),
        (vec![event("A", "Started")], Ok(Approval::Moot)),
        (vec![event("b", "Scheduled")], Ok(Approval::Moot)),
        (vec![event("A", "Scheduled")], Err("refused")),
        (vec![event("A", "Paused")], Err("refused")),
    ] {
        let listed: Vec<&str> = events.iter().map(String::as_str).collect();
        let platform = Platform::start([refusal(), document(3, &listed)]).await;
        match (platform.client().approve(&EventId::new("a")).await, expected) {
            (Ok(approval), Ok(expected)) => assert_eq!(approval, expected),
            (Err(ApproveError::Refused(text)), Err(_)) => assert!(text.contains("Unknown event"), "{text}"),
            (other, expected) => panic!("{other:?} where {expected:?} was expected, with {listed:?}"),
        }
    }
}

/// 2017-11-01 does not list Terminate, so an unlisted event may still wait.
#[tokio::test(start_paused = true)]
async fn refusal_is_not_moot_if_version_hides_event() {
    let refusal = || answer(400, "", "{\"error\":\"Bad request. Unknown event\"}");
    let unknown = || answer(400, "", BAD_VERSION);
    let fallen_back = |events: &[&str]| [unknown(), refusal(), unknown(), document(3, events)];
    let options = Options::from(EventsVersion::V2019_01_01);
    let id = EventId::new("a");
    let platform = Platform::start(fallen_back(&[])).await;
    match Client::new(platform.endpoint.clone(), options).approve(&id).await {
        Err(ApproveError::Transient(failure)) => {
            let text = failure.text;
            assert!(text.contains("Unknown event") && text.contains("at api-version 2017-11-01"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(versions(&platform.requests()), ["2019-01-01", "2017-11-01", "2019-01-01", "2017-11-01"]);
    let platform = Platform::start(fallen_back(&[&event("a", "Started")])).await;
    assert_eq!(Client::new(platform.endpoint.clone(), options).approve(&id).await, Ok(Approval::Moot));
    // A client limited to this version has never seen hidden types.
    let platform = Platform::start([refusal(), document(3, &[])]).await;
    let older = Options::from(EventsVersion::V2017_11_01);
    assert_eq!(Client::new(platform.endpoint.clone(), older).approve(&id).await, Ok(Approval::Moot));
}

#[tokio::test(start_paused = true)]
async fn transient_approval_failure_is_not_refusal() {
    let refusal = || answer(400, "", "{\"error\":\"no\"}");
    for script in [
        vec![answer(410, "", "")],
        vec![answer(429, "", "")],
        vec![answer(500, "", "")],
        vec![answer(503, "", "")],
        vec![answer(302, "", "")],
        vec![Reply::SendAndClose(vec![])],
        // Refused, and it is unknown whether the event still exists.
        vec![refusal(), answer(200, "", "")],
        vec![refusal(), answer(503, "", "")],
    ] {
        let shown = format!("{script:?}");
        let platform = Platform::start(script).await;
        let outcome = platform.client().approve(&EventId::new("a")).await;
        assert!(matches!(outcome, Err(ApproveError::Transient(_))), "{shown}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn approve_within_retries_until_timeout() {
    let busy = || answer(429, "Retry-After: 5\r\n", "");
    let limit = Duration::from_secs(20);
    let id = EventId::new("a");
    let script = [answer(503, "", ""), busy(), Reply::SendAndClose(vec![]), answer(200, "", "")];
    let platform = Platform::start(script).await;
    assert_eq!(platform.client().approve_within(&id, limit).await, Ok(Approval::Accepted));
    let requests = platform.requests();
    assert!(requests[2].at - requests[1].at >= Duration::from_secs(5), "{requests:?}");
    assert!(requests.len() == 4 && is_paced(&requests), "{requests:?}");

    let never = Platform::start([busy()]).await;
    let outcome = never.client().approve_within(&id, limit).await;
    assert!(matches!(outcome, Err(ApproveError::Transient(_))), "{outcome:?}");
    assert!(never.requests().len() > 1 && never.requests().last().unwrap().at <= limit);

    let refused = [answer(400, "", "{\"error\":\"no\"}"), document(1, &[&event("a", "Scheduled")])];
    let platform = Platform::start(refused).await;
    let outcome = platform.client().approve_within(&id, limit).await;
    assert!(matches!(outcome, Err(ApproveError::Refused(_))), "{outcome:?}");
    assert_eq!(platform.requests().len(), 2, "what was refused is not sent again");
}

#[tokio::test(start_paused = true)]
async fn event_without_id_cannot_be_approved() {
    let platform = Platform::start([document(1, &[&event("", "Scheduled")])]).await;
    let client = platform.client();
    let document = document_after(&mut Watch::new(client.clone()), &[]).await;
    let outcome = client.approve(&document.events[0].id).await;
    assert!(matches!(outcome, Err(ApproveError::Refused(_))), "{outcome:?}");
    assert_eq!(platform.requests().len(), 1, "no approval was sent");
}

/// An approval does not wait for a long poll.
#[tokio::test(start_paused = true)]
async fn an_approval_does_not_wait_for_a_poll() {
    let held = Reply::After(Duration::from_secs(3), Box::new(document(2, &[])));
    let platform = Platform::start([document(1, &[]), held, answer(200, "", "")]).await;
    let client = platform.client();
    let mut watch = Watch::new(client.clone());
    document_after(&mut watch, &[]).await;
    let clock = Clock::start();
    let approving = async {
        while platform.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.approve(&EventId::new("a")).await
    };
    tokio::select! {
        update = watch.next() => panic!("{update:?} before the approval"),
        approved = approving => assert_eq!(approved, Ok(Approval::Accepted)),
    }
    assert!(clock.now().tick < Duration::from_secs(2));
    document_after(&mut watch, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn identity_comes_from_metadata() {
    let name = || answer(200, "Content-Type: text/plain\r\n", "web_36\n");
    let platform = Platform::start([name()]).await;
    assert_eq!(
        Identity::find(&platform.client(), Identity::of_host("web000010")).await,
        Identity::named("web_36")
    );
    assert!(
        platform.requests()[0]
            .head
            .starts_with("GET /metadata/instance/compute/name?api-version=2021-02-01&format=text ")
    );
    // A configured name is used only if the platform reports none.
    assert_eq!(Identity::find(&platform.client(), Identity::set("web-9")).await, Identity::named("web_36"));
    // It may be busy for a while.
    let platform = Platform::start([answer(503, "", ""), name()]).await;
    assert_eq!(Identity::find(&platform.client(), Identity::of_host("web000010")).await.name(), "web_36");
    // Terminal control characters are escaped.
    let odd = Platform::start([answer(200, "", "web\u{1b}[2J")]).await;
    let error = Identity::from_metadata_once(&odd.client()).await.unwrap_err().text;
    assert!(error.ends_with("compute.name is no name: web\\u{1b}[2J"), "{error}");
    // The VM may be unknown yet, or the response something else.
    let script = [answer(404, "", ""), answer(200, "", "<html>"), name()];
    let platform = Platform::start(script).await;
    assert_eq!(
        Identity::find(&platform.client(), Identity::of_host("web000010")).await,
        Identity::named("web_36")
    );
}

#[tokio::test(start_paused = true)]
async fn find_falls_back_to_host_name_and_watch_keeps_asking() {
    let script = [404, 403, 500, 404].map(|status| answer(status, "", "")).into_iter();
    let platform = Platform::start(script.chain([answer(200, "", "web_36")])).await;
    let me = Identity::find(&platform.client(), Identity::of_host("web000010")).await;
    assert!(me.is("web_36") && me.is("WEB000010"));
    assert_eq!(me.source(), NameSource::HostName, "it may be another's");
    assert_eq!(Identity::from_metadata(&platform.client()).await, Identity::named("web_36"));
}

#[tokio::test(start_paused = true)]
async fn configured_endpoint_is_final_then_environment() {
    let dir = tempfile::tempdir().unwrap();
    let memory = dir.path().join("endpoint");
    let good = Platform::start([document(1, &[])]).await;
    let mut discovery = Discovery::new(None, Options::default());
    discovery.environment = Some(good.endpoint.to_string());
    discovery.memory = Some(memory.clone());
    let found = discovery.find().await.unwrap();
    assert_eq!((found.client.endpoint(), &found.by), (&good.endpoint, &DiscoverySource::Environment));
    assert!(!memory.exists(), "the environment still has the name");

    // With NOTBEFORE_ENDPOINT, no other is tried.
    let requests = good.requests().len();
    let elsewhere = Platform::start([answer(404, "", "")]).await;
    discovery.named = Some(elsewhere.endpoint.to_string());
    let error = discovery.find().await.unwrap_err().to_string();
    let said = "the endpoint that was named does not answer:\n  ";
    let expected = format!("{said}{} (NOTBEFORE_ENDPOINT): 404 Not Found", elsewhere.endpoint);
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(good.requests().len(), requests);
    discovery.named = Some(good.endpoint.to_string());
    assert_eq!(discovery.find().await.unwrap().by, DiscoverySource::Named);

    // With a configured endpoint, no other is tried, not even that of NOTBEFORE_ENDPOINT.
    let requests = good.requests().len();
    let elsewhere = Platform::start([answer(404, "", "")]).await;
    discovery.setting = Some(elsewhere.endpoint.clone());
    let error = discovery.find().await.unwrap_err().to_string();
    assert!(error.contains(&format!("{} (as set): 404 Not Found", elsewhere.endpoint)), "{error}");
    assert_eq!((good.requests().len(), elsewhere.requests().len()), (requests, 2), "at both newest versions");

    // An endpoint that is already polled is skipped.
    discovery.setting = Some(good.endpoint.clone());
    discovery.besides = Some(good.endpoint.clone());
    let error = discovery.find().await.unwrap_err().to_string();
    assert!(error.contains("it is asked already"), "{error}");
    assert_eq!(good.requests().len(), requests);
}

#[tokio::test(start_paused = true)]
async fn busy_endpoint_is_retried_before_next_source() {
    let busy = [answer(410, "", ""), answer(200, "", ""), answer(503, "", ""), Reply::SendAndClose(vec![])];
    let script = busy.clone().into_iter().chain(busy.clone()).chain([document(1, &[])]);
    let platform = Platform::start(script).await;
    let mut discovery = Discovery::new(None, Options::default());
    discovery.environment = Some(platform.endpoint.to_string());
    assert_eq!(discovery.find().await.unwrap().by, DiscoverySource::Environment);
    let requests = platform.requests();
    assert!(is_paced(&requests), "{requests:?}");

    for never in busy {
        let platform = Platform::start([never]).await;
        discovery.setting = Some(platform.endpoint.clone());
        discovery.find().await.unwrap_err();
        let requests = platform.requests();
        let tried = requests.last().unwrap().at - requests[0].at;
        assert!(tried > Duration::from_secs(60) && tried <= BUSY_TIME_MAX, "{tried:?}");
    }
}
