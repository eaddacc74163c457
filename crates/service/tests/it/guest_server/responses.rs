//! Requests and their exact responses.

use std::num::NonZeroU32;

use notbefore_service::guest::settings::{GuestSettings, Mode};

use super::harness::*;
use super::table::{ALL, Row, document, table};

#[tokio::test]
async fn every_request_gets_its_exact_response() {
    let rows: Vec<Row> = table().collect();
    for mode in ALL {
        let server = TestServer::with_mode(*mode).await;
        for row in rows.iter().filter(|row| row.modes.contains(mode)) {
            let name = format!("{} ({mode:?})", row.name);
            let response = server.request(row.from, &row.request).await;
            // A head that is in the cache gets the same response.
            let again = server.request(row.from, &row.request).await;
            assert_eq!((&again.head, &again.body), (&response.head, &response.body), "{name}, again");
            assert_eq!((response.status, response.body.as_str()), (row.status, row.body.as_str()), "{name}");

            let is_head = row.request.starts_with("HEAD ");
            let approved = row.status == 200 && row.request.starts_with("POST ");
            let is_document = row.status == 200 && row.body.starts_with(r#"{"DocumentIncarnation""#);
            let is_text = row.status == 200 && row.request.contains("format=text");
            let content_type =
                if is_text { "text/plain; charset=utf-8" } else { "application/json; charset=utf-8" };
            let mut expected = vec![];
            if !approved {
                expected.push(format!("Content-Type: {content_type}"));
            }
            expected.push("Server: IMDS/0.1.0 (notbefore)".to_owned());
            expected.push("x-ms-request-id: ID".to_owned());
            if is_document {
                expected.push("ETag: 7".to_owned());
            }
            expected.push("Date: Mon, 19 Sep 2016 18:29:47 GMT".to_owned());
            if !is_head {
                expected.push(format!("Content-Length: {}", row.body.len()));
            }
            expected.extend(row.extra.iter().map(|line| (*line).to_owned()));
            let seen: Vec<&str> = response.head.lines().skip(1).filter(|line| !line.is_empty()).collect();
            let seen: Vec<&str> =
                seen.into_iter().filter(|line| !(is_head && line.starts_with("Content-Length"))).collect();
            assert_eq!(seen, expected, "{name}");
        }
        server.close().await;
    }
}

#[tokio::test]
async fn response_bytes_match_exactly() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let response = server.request(From::A, get(EVENTS)).await;
    assert_eq!(
        response.head + &response.body,
        "HTTP/1.1 200 OK\r\n\
         Content-Type: application/json; charset=utf-8\r\n\
         Server: IMDS/0.1.0 (notbefore)\r\n\
         x-ms-request-id: ID\r\n\
         ETag: 7\r\n\
         Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
         Content-Length: 54\r\n\
         \r\n\
         {\"DocumentIncarnation\":7,\"Events\":[\"a at 2020-07-01\"]}"
    );
    let approved = server.request(From::A, post(EVENTS, &approval(EVENT_A))).await;
    assert_eq!(
        approved.head,
        "HTTP/1.1 200 OK\r\n\
         Server: IMDS/0.1.0 (notbefore)\r\n\
         x-ms-request-id: ID\r\n\
         Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
         Content-Length: 0\r\n\
         \r\n"
    );
    server.close().await;
}

#[tokio::test]
async fn matching_etag_returns_304() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: 7\r\nDate: Mon, 19 Sep 2016 18:29:47 GMT\r\n";
    let mut client = server.connect(From::A).await;
    for tag in ["7", "\"7\"", "W/\"7\"", "3, \"7\"", "*"] {
        client.send(get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\n"))).await;
        assert_eq!(client.response().await.head, format!("{not_modified}\r\n"), "{tag}");
    }
    for tag in ["0", "\"6\"", "77", ""] {
        client.send(get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\n"))).await;
        assert_eq!(client.response().await.status, 200, "{tag}");
    }
    let closing = "Metadata: true\r\nIf-None-Match: 7\r\nConnection: close\r\n";
    client.send(get_with(EVENTS, closing)).await;
    assert_eq!(client.response().await.head, format!("{not_modified}Connection: close\r\n\r\n"));
    assert!(client.is_closed().await);
    assert_eq!((server.stats.not_modified.get(), server.stats.documents.get()), (6, 4));
    server.close().await;
}

#[tokio::test]
async fn versions_endpoint_needs_no_api_version() {
    let server = TestServer::with_mode(Mode::Strict).await;
    let response = server.request(From::A, get("/metadata/versions")).await;
    assert!(response.body.starts_with(r#"{"apiVersions":["2017-03-01","2017-04-02","#), "{}", response.body);
    server.close().await;
}

#[tokio::test]
async fn approval_reaches_platform_once_for_calling_vm() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let twice = format!(
        r#"{{"StartRequests":[{{"EventId":"{EVENT_B}"}},{{"EventId":"{}"}}]}}"#,
        EVENT_B.to_lowercase()
    );
    assert_eq!(server.request(From::Address("127.0.0.3"), post(EVENTS, &twice)).await.status, 200);
    let refused = server.request(From::Address("127.0.0.2"), post(EVENTS, &twice)).await;
    let unknown =
        server.request(From::A, post(EVENTS, &approval("11111111-1111-1111-1111-111111111111"))).await;
    assert_eq!(refused.head, unknown.head, "another scope's event gets the same response as an unknown one");
    assert_eq!(*server.platform.approved.lock().unwrap(), [("b".to_owned(), vec![EVENT_B.parse().unwrap()])]);
    assert_eq!(server.stats.approvals.get(), 1);
    server.close().await;
}

#[tokio::test]
async fn caller_is_resolved_per_request() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::Address("127.0.0.2")).await;
    client.send(get(EVENTS)).await;
    assert_eq!(client.response().await.body, document("a", "2020-07-01"));
    server.platform.by_address.lock().unwrap().insert("127.0.0.2".to_owned(), "b".to_owned());
    client.send(get(EVENTS)).await;
    assert_eq!(client.response().await.body, document("b", "2020-07-01"));
    server.platform.by_address.lock().unwrap().clear();
    client.send(get(EVENTS)).await;
    assert_eq!(client.response().await.status, 403);
    assert!(client.is_closed().await);
    server.close().await;
}

#[tokio::test]
async fn rate_limit_returns_429_to_that_vm_only() {
    let rate_limit = NonZeroU32::new(1);
    let server = TestServer::open(GuestSettings { rate_limit, ..GuestSettings::default() }).await;
    let mut client = server.connect(From::A).await;
    // Pipelined, so that no time passes between them.
    client.send([get_with("/", ""), get_with("/", ""), get(EVENTS)].concat()).await;
    let mut responses = vec![];
    for _ in 0..3 {
        responses.push(client.response().await);
    }
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [400, 429, 429], "refused requests count, and 429 takes precedence");
    let refused = responses.pop().unwrap();
    let body = r#"{"error":"Too many requests. Once a second is often enough: wait and ask again"}"#;
    assert_eq!(
        refused.head + &refused.body,
        format!(
            "HTTP/1.1 429 Too Many Requests\r\n\
             Content-Type: application/json; charset=utf-8\r\n\
             Server: IMDS/0.1.0 (notbefore)\r\n\
             x-ms-request-id: ID\r\n\
             Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
             Content-Length: {}\r\n\
             Retry-After: 1\r\n\
             \r\n\
             {body}",
            body.len()
        )
    );
    assert_eq!(server.request(From::B, get(EVENTS)).await.status, 200);
    let refused: Vec<_> = server.stats.refused_by_status().filter(|(_, count)| *count > 0).collect();
    assert_eq!(refused, [(400, 1), (429, 2)]);
    server.close().await;
}

#[tokio::test]
async fn clock_that_is_set_back_limits_no_vm() {
    let rate_limit = NonZeroU32::new(200);
    let server = TestServer::open(GuestSettings { rate_limit, ..GuestSettings::default() }).await;
    let mut client = server.connect(From::A).await;
    // The limit counts a second's worth of requests: about a second is the step that it could take for a burst.
    for step_ms in [-900, -995, -1_000, -1_050, -3_600_000] {
        server.clock.advance_milliseconds(step_ms);
        client.send(get(EVENTS)).await;
        assert_eq!(client.response().await.status, 200, "{step_ms}");
    }
    server.close().await;
}
