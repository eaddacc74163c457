//! Requests that arrive split, pipelined, held back or chunked.

use notbefore_service::guest::settings::Mode;

use super::harness::*;
use super::table::document;

const CHUNKED: &str = "Metadata: true\r\nTransfer-Encoding: chunked\r\n";

fn chunked(body: &str) -> String {
    let head = format!("POST {EVENTS} HTTP/1.1\r\nHost: a\r\n{CHUNKED}\r\n");
    let chunks: String = (body.as_bytes().chunks(20))
        .map(|chunk| format!("{:X};x=y\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    format!("{head}{chunks}0\r\nTrailer: x\r\n\r\n")
}

#[tokio::test]
async fn request_may_be_split_anywhere() {
    let server = TestServer::with_mode(Mode::Normal).await;
    for request in
        [post(EVENTS, &approval(EVENT_A)), chunked(&approval(EVENT_A)), format!("\r\n{}", get(EVENTS))]
    {
        let mut client = server.connect(From::A).await;
        for at in 1..request.len() {
            let before = server.stats.connections_handed_over.get();
            client.send(&request[..at]).await;
            // The server has seen the first part by then.
            until(|| server.stats.connections_handed_over.get() == before + 1).await;
            client.send(&request[at..]).await;
            assert_eq!(client.response().await.status, 200, "split at {at}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn plain_poll_may_be_split_anywhere() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let request = get(EVENTS);
    let whole = server.request(From::A, &request).await;
    let mut client = server.connect(From::A).await;
    for at in 1..request.len() {
        let before = server.stats.connections_handed_over.get();
        client.send(&request[..at]).await;
        until(|| server.stats.connections_handed_over.get() == before + 1).await;
        client.send(&request[at..]).await;
        let response = client.response().await;
        assert_eq!((&response.head, &response.body), (&whole.head, &whole.body), "split at {at}");
        // In between, the worker serves the connection again.
        client.send(&request).await;
        assert_eq!(client.response().await.status, 200, "after a split at {at}");
        assert_eq!(server.stats.connections_handed_over.get(), before + 1);
    }
    server.close().await;
}

#[tokio::test]
async fn many_requests_in_one_write_are_served_in_order() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let versions = ["2017-08-01", "2019-01-01", "2020-07-01"];
    for count in 1..=40 {
        let mut client = server.connect(From::A).await;
        let requested: Vec<_> = (0..count).map(|at| versions[at % versions.len()]).collect();
        let all: String = requested
            .iter()
            .map(|version| get(&format!("/metadata/scheduledevents?api-version={version}")))
            .collect();
        client.send(all).await;
        for version in requested {
            assert_eq!(client.response().await.body, document("a", version), "{count} requests");
        }
    }
    server.close().await;
}

/// A request that is no plain poll goes to a task, and the connection returns to its worker.
#[tokio::test]
async fn connection_moves_between_worker_and_task() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let name = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    for round in 0..3 {
        for (request, tasks) in
            [(get(EVENTS), 0), (post(EVENTS, &approval(EVENT_A)), 1), (name.clone(), 1), (get(EVENTS), 0)]
        {
            let before = server.stats.connections_handed_over.get();
            client.send(&request).await;
            assert_eq!(client.response().await.status, 200, "round {round}");
            assert_eq!(server.stats.connections_handed_over.get() - before, tasks, "{request}");
            // The remaining task is the one that shuts the server down.
            until(|| tokio::runtime::Handle::current().metrics().num_alive_tasks() == 1).await;
        }
    }
    assert_eq!(server.stats.connections_open.get(), 1);
    server.close().await;
}

#[tokio::test]
async fn pipelined_requests_are_served_in_order() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let posted = post(EVENTS, &approval(EVENT_A));
    let all =
        [get(EVENTS), posted, get("/nowhere"), chunked("{}"), get_with(EVENTS, ""), get(EVENTS)].concat();
    client.send(all.repeat(50)).await;
    for _ in 0..50 {
        let mut statuses = vec![];
        for _ in 0..6 {
            statuses.push(client.response().await.status);
        }
        assert_eq!(statuses, [200, 200, 404, 400, 400, 200]);
    }
    server.close().await;
}

#[tokio::test]
async fn refused_request_keeps_connection_in_sync() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let hidden = get(EVENTS);
    for (refused, status) in [
        (post_with("/", "", &hidden), 400),
        (post("/nowhere", &hidden), 404),
        (post("/metadata/versions", &hidden), 405),
        (post(EVENTS, &hidden), 400),
    ] {
        client.send(refused).await;
        assert_eq!(client.response().await.status, status);
        client.send(get("/metadata/instance/compute/name?api-version=2021-02-01&format=text")).await;
        assert_eq!(client.response().await.body, "a", "after {status}");
    }
    server.close().await;
}

#[tokio::test]
async fn expect_continue_gets_100() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    let body = approval(EVENT_A);
    let request = post_with(EVENTS, "Metadata: true\r\nExpect: 100-Continue\r\n", &body);
    let (head, body) = request.split_at(request.len() - body.len());
    client.send(head).await;
    assert_eq!(client.read_head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(body).await;
    assert_eq!(client.response().await.status, 200);

    client.send(&request).await;
    assert_eq!(client.response().await.status, 200, "a body that was not held back needs no 100 Continue");
    server.close().await;
}

#[tokio::test]
async fn refused_expect_continue_gets_no_100() {
    let server = TestServer::with_mode(Mode::Normal).await;
    for (headers, length, status) in [
        ("Metadata: true\r\nExpect: 100-continue\r\n", 65_537, 413),
        ("Expect: 100-continue\r\n", 100, 400),
        ("Expect: 100-continue\r\n", 65_537, 400),
    ] {
        let request =
            format!("POST {EVENTS} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\n\r\n");
        let mut client = server.connect(From::A).await;
        client.send(request).await;
        let response = client.response().await;
        assert_eq!((response.status, response.closes()), (status, true), "{headers}{length}");
        assert!(client.is_closed().await);
    }
    server.close().await;
}

#[tokio::test]
async fn response_reaches_client_still_sending() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(post(EVENTS, &" ".repeat(1024 * 1024))).await;
    assert_eq!(client.response().await.status, 413);
    assert!(client.is_closed().await);
    server.close().await;
}

#[tokio::test]
async fn connection_close_header_closes_connection() {
    let server = TestServer::with_mode(Mode::Normal).await;
    for request in [
        get_with(EVENTS, "Metadata: true\r\nConnection: close\r\n"),
        post_with(EVENTS, "Metadata: true\r\nConnection: foo, CLOSE\r\n", &approval(EVENT_A)),
        format!("GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n\r\n"),
    ] {
        let mut client = server.connect(From::A).await;
        client.send(&request).await;
        let response = client.response().await;
        assert_eq!((response.status, response.closes()), (200, true), "{request}");
        assert!(client.is_closed().await);
    }
    let mut client = server.connect(From::A).await;
    for _ in 0..2 {
        client
            .send(format!("GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\nConnection: Keep-Alive\r\n\r\n"))
            .await;
        assert_eq!(client.response().await.header("Connection"), Some("keep-alive"));
    }
    server.close().await;
}

#[tokio::test]
async fn half_closed_client_gets_response() {
    use tokio::io::AsyncWriteExt;
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(get(EVENTS)).await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(client.response().await.status, 200);
    assert!(client.is_closed().await);
    server.close().await;
}
