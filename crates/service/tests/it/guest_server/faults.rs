//! Faults over real sockets: the bytes of each, the record of each exchange, and no difference without faults.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_service::guest::interception::{Interception, RecordedRequest, Recorder, RequestSink};
use notbefore_service::guest::settings::Mode;
use notbefore_wire::operator::faults::NewFault;
use notbefore_wire::operator::{FaultKind, FaultRequests};
use tokio::io::AsyncReadExt;

use super::harness::*;
use super::table::table;

#[derive(Default)]
struct Sink(Mutex<Vec<RecordedRequest>>);

impl RequestSink for Sink {
    fn record(&self, request: RecordedRequest) {
        self.0.lock().unwrap().push(request);
    }
}

impl Sink {
    /// The next record: it is made after the response was written.
    async fn next(&self) -> RecordedRequest {
        until(|| !self.0.lock().unwrap().is_empty()).await;
        self.0.lock().unwrap().remove(0)
    }
}

/// A server that records, and its faults.
async fn recording(mode: Mode) -> (TestServer, Arc<Interception>, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let interception = Arc::new(Interception::new(Some(Recorder(Arc::clone(&sink) as _))));
    let server = TestServer::intercepted(mode, Arc::clone(&interception)).await;
    (server, interception, sink)
}

fn add(server: &TestServer, interception: &Interception, fault: NewFault) {
    let (fault, effect) = fault.check().unwrap();
    let now = server.now();
    interception.with_faults(|faults| faults.add(fault, effect, None, now)).unwrap();
}

fn fault(json: &str) -> NewFault {
    serde_json::from_str(json).unwrap()
}

/// With a recorder and without faults, each row of the table gets the bytes that it gets without interception.
#[tokio::test]
async fn recorded_answers_have_the_same_bytes() {
    for mode in [Mode::Normal, Mode::Strict, Mode::Lenient] {
        let plain = TestServer::with_mode(mode).await;
        let (server, _, sink) = recording(mode).await;
        for row in table().filter(|row| row.modes.contains(&mode)) {
            let expected = plain.request(row.from, &row.request).await;
            let response = server.request(row.from, &row.request).await;
            assert_eq!(
                (response.head, response.body.clone()),
                (expected.head, expected.body),
                "{}",
                row.name
            );
            let record = sink.next().await;
            assert_eq!(record.status, Some(row.status), "{}", row.name);
            assert!(row.request.starts_with(&record.method), "{}", row.name);
            if !row.request.starts_with("HEAD") {
                assert_eq!(record.response_body, response.body, "{}", row.name);
            }
            assert_eq!(record.faults, []);
        }
        let [recorded, expected] = [&server, &plain].map(|server| Arc::clone(&server.platform));
        // Deliveries are recorded after their answers.
        server.close().await;
        plain.close().await;
        assert_eq!(*recorded.delivered.lock().unwrap(), *expected.delivered.lock().unwrap());
    }
}

#[tokio::test]
async fn each_fault_has_its_bytes() {
    let body = r#"{"DocumentIncarnation":7,"Events":["a at 2020-07-01"]}"#;
    for (json, status, expected, tag) in [
        (r#"{"kind":"status","status":500}"#, 500, r#"{"error":"Internal Server Error"}"#, None),
        (r#"{"kind":"status","status":410}"#, 410, r#"{"error":"Gone"}"#, None),
        (r#"{"kind":"empty-body"}"#, 200, "", Some("7")),
        (r#"{"kind":"text-plain"}"#, 200, body, Some("7")),
        (r#"{"kind":"missing-events"}"#, 200, r#"{"DocumentIncarnation":7}"#, Some("7")),
        (r#"{"kind":"hide-events"}"#, 200, r#"{"DocumentIncarnation":8,"Events":[]}"#, Some("8")),
        (
            r#"{"kind":"reset-incarnation"}"#,
            200,
            r#"{"DocumentIncarnation":1,"Events":["a at 2020-07-01"]}"#,
            Some("1"),
        ),
        (r#"{"kind":"clock-skew","seconds":-47}"#, 200, body, Some("7")),
    ] {
        let (server, interception, sink) = recording(Mode::Normal).await;
        let fault = fault(json);
        add(&server, &interception, fault.clone());
        let response = server.request(From::A, get(EVENTS)).await;
        assert_eq!((response.status, &*response.body), (status, expected), "{json}");
        assert_eq!(response.header("ETag"), tag, "{json}");
        let is_text = response.header("Content-Type") == Some("text/plain; charset=utf-8");
        assert_eq!(is_text, fault.kind == FaultKind::TextPlain, "{json}");
        let second = if fault.kind == FaultKind::ClockSkew { "00" } else { "47" };
        assert_eq!(response.header("Date"), Some(&*format!("Mon, 19 Sep 2016 18:29:{second} GMT")), "{json}");
        let record = sink.next().await;
        assert_eq!((record.status, record.faults), (Some(status), vec![fault.kind.clone()]));
        assert_eq!(record.response_body, expected);
        assert_eq!(record.incarnation, tag.map(|tag| tag.parse().unwrap()));
        let withheld = matches!(
            fault.kind,
            FaultKind::Status | FaultKind::EmptyBody | FaultKind::MissingEvents | FaultKind::HideEvents
        );
        assert_eq!(server.platform.delivered.lock().unwrap().is_empty(), withheld, "{json}");
        // The other kinds of requests are not affected.
        let approved = server.request(From::A, post(EVENTS, &approval(EVENT_A))).await;
        assert_eq!((approved.status, approved.header("Date").unwrap().contains("18:29:47")), (200, true));
        // The tag that was shown is the one that matches.
        if let Some(tag) = tag {
            let same =
                get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\nPrefer: wait=20\r\n"));
            let same = server.request(From::A, same).await;
            assert_eq!((same.status, same.header("ETag")), (304, Some(tag)), "{json}");
        }
        interception.with_faults(|faults| faults.clear(None, server.now()));
        server.close().await;
    }
}

#[tokio::test]
async fn reset_sends_no_byte_and_carries_nothing_out() {
    let (server, interception, sink) = recording(Mode::Normal).await;
    add(
        &server,
        &interception,
        NewFault { requests: Some(FaultRequests::All), ..fault(r#"{"kind":"reset"}"#) },
    );
    for request in [get(EVENTS), post(EVENTS, &approval(EVENT_A)), get("/metadata/versions")] {
        let mut client = server.connect(From::A).await;
        client.send(&request).await;
        let mut byte = [0];
        let error = with_timeout(client.stream.read(&mut byte)).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        let record = sink.next().await;
        assert_eq!((record.status, record.faults), (None, vec![FaultKind::Reset]));
        assert!(request.ends_with(std::str::from_utf8(&record.body).unwrap()));
    }
    assert!(server.platform.approved.lock().unwrap().is_empty());
    assert!(server.platform.polled.lock().unwrap().is_empty());
    // An unknown caller is refused as before.
    assert_eq!(server.request(From::Address("127.0.0.8"), get(EVENTS)).await.status, 403);
    let record = sink.next().await;
    assert_eq!((record.vm, record.status, &*record.method), (None, Some(403), "GET"));
    server.close().await;
}

#[tokio::test]
async fn late_and_slow_answers_follow_the_service_clock() {
    let (server, interception, sink) = recording(Mode::Normal).await;
    add(&server, &interception, fault(r#"{"kind":"late-first-answer"}"#));
    let mut client = server.connect(From::A).await;
    client.send(get(EVENTS)).await;
    until(|| !server.platform.polled.lock().unwrap().is_empty()).await;
    // The second request of this VM, and then the first one, after two minutes.
    assert_eq!(server.request(From::A, get(EVENTS)).await.status, 200);
    assert_eq!(sink.next().await.faults, []);
    server.clock.advance_milliseconds(120_000);
    let response = client.response().await;
    assert_eq!(response.header("Date"), Some("Mon, 19 Sep 2016 18:31:47 GMT"));
    let record = sink.next().await;
    assert_eq!(record.answered_at.duration_since(record.received_at).as_secs(), 120);
    interception.with_faults(|faults| faults.clear(None, server.now()));

    add(&server, &interception, fault(r#"{"kind":"slow-body","seconds":20}"#));
    client.send(get(EVENTS)).await;
    assert!(client.read_head().await.contains("Content-Length: 54\r\n"), "the head comes at once");
    let mut body = Vec::new();
    while body.len() < 54 {
        server.clock.advance_milliseconds(2_000);
        with_timeout(client.stream.read_buf(&mut body)).await.unwrap();
        assert!(body.len() <= 54);
    }
    let record = sink.next().await;
    assert_eq!(record.faults, [FaultKind::SlowBody]);
    let took = record.answered_at.duration_since(record.received_at);
    assert!(took.as_secs() >= 18, "{took:?}");
    server.close().await;
}

/// The clock stands still: only the clear can end the waits.
#[tokio::test]
async fn clear_releases_late_and_slow_answers() {
    let (server, interception, sink) = recording(Mode::Normal).await;
    add(&server, &interception, fault(r#"{"kind":"late-first-answer"}"#));
    let mut client = server.connect(From::A).await;
    client.send(get(EVENTS)).await;
    until(|| !server.platform.polled.lock().unwrap().is_empty()).await;
    assert_eq!(interception.clear_faults(None, server.now()), 1);
    assert_eq!(client.response().await.status, 200);
    assert_eq!(sink.next().await.faults, [FaultKind::LateFirstAnswer]);

    // The count is reached with this request, so the fault is no longer active.
    add(&server, &interception, fault(r#"{"kind":"slow-body","seconds":20,"count":1}"#));
    client.send(get(EVENTS)).await;
    assert!(client.read_head().await.contains("Content-Length: 54\r\n"));
    assert_eq!(interception.clear_faults(None, server.now()), 1);
    let mut body = [0; 54];
    with_timeout(client.stream.read_exact(&mut body)).await.unwrap();
    assert_eq!(sink.next().await.faults, [FaultKind::SlowBody]);
    server.close().await;
}

#[tokio::test]
async fn strict_header_is_strict_on_both_kinds() {
    let (server, interception, _) = recording(Mode::Lenient).await;
    let strict = fault(r#"{"kind":"strict-header","requests":"all"}"#);
    let requests = || {
        [
            (get(EVENTS), 200),
            (get_with(EVENTS, "Metadata: True\r\n"), 400),
            (post(EVENTS, &approval(EVENT_A)), 200),
            (post_with(EVENTS, "", &approval(EVENT_A)), 400),
        ]
    };
    for (request, _) in requests() {
        assert_eq!(server.request(From::A, &request).await.status, 200, "{request}");
    }
    add(&server, &interception, strict);
    for (request, status) in requests() {
        assert_eq!(server.request(From::A, &request).await.status, status, "{request}");
    }
    server.close().await;
}

/// A held poll is answered when a fault is added, and the next ones are not held.
#[tokio::test]
async fn faults_end_long_polls() {
    let interception = Arc::new(Interception::new(None));
    let server = TestServer::intercepted(Mode::Normal, Arc::clone(&interception)).await;
    let poll = get_with(EVENTS, "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=20\r\n");
    let mut client = server.connect(From::A).await;
    client.send(&poll).await;
    until(|| server.stats.waiting.get() == 1).await;
    add(&server, &interception, fault(r#"{"kind":"status","status":429,"count":1}"#));
    server.platform.notify("a");
    assert_eq!(client.response().await.status, 304);
    client.send(&poll).await;
    let refused = client.response().await;
    assert_eq!((refused.status, refused.header("Retry-After")), (429, Some("1")));
    // The fault has ended: polls are held again, by the worker.
    client.send(&poll).await;
    until(|| server.stats.waiting.get() == 1).await;
    server.platform.change("a");
    assert_eq!(client.response().await.status, 200);
    tokio::time::timeout(Duration::from_secs(10), server.close()).await.unwrap();
}
