//! Guests whose tag is newer than the node's document: they have polled another node.

use notbefore_service::guest::settings::Mode;

use super::harness::*;

fn poll(tag: &str) -> String {
    get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\n"))
}

fn long_poll(tag: &str, wait: u32) -> String {
    get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\nPrefer: wait={wait}\r\n"))
}

fn answer(response: &Response) -> (u16, Option<&str>) {
    (response.status, response.header("ETag"))
}

#[tokio::test]
async fn newer_tag_is_answered_from_the_store() {
    let server = TestServer::with_mode(Mode::Normal).await;
    let mut client = server.connect(From::A).await;
    client.send(poll("9")).await;
    assert_eq!(answer(&client.response().await), (200, Some("7")), "the only node knows the newest document");

    for (tag, stored, expected) in
        [("9", 9, (304, Some("9"))), ("\"3\", W/\"9\"", 9, (304, Some("9"))), ("8", 9, (200, Some("9")))]
    {
        let server = TestServer::with_mode(Mode::Normal).await;
        *server.platform.stored.lock().unwrap() = Some(stored);
        let mut client = server.connect(From::A).await;
        client.send(poll(tag)).await;
        assert_eq!(answer(&client.response().await), expected, "{tag}");
        client.send(poll(expected.1.unwrap())).await;
        assert_eq!(answer(&client.response().await), (304, expected.1), "the connection goes on");
        server.close().await;
    }

    *server.platform.stored.lock().unwrap() = Some(7);
    for tag in ["9", "18446744073709551615", "99999999999999999999", "6", "garbage"] {
        client.send(poll(tag)).await;
        assert_eq!(answer(&client.response().await), (200, Some("7")), "{tag}: no node has sent it");
    }
    server.close().await;
}

#[tokio::test]
async fn long_poll_with_newer_tag_waits_until_the_node_has_caught_up() {
    let server = TestServer::with_mode(Mode::Normal).await;
    *server.platform.stored.lock().unwrap() = Some(9);
    let [mut waiting, mut timed_out] = [server.connect(From::A).await, server.connect(From::B).await];
    waiting.send(long_poll("9", 60)).await;
    timed_out.send(long_poll("9", 1)).await;
    until(|| server.stats.waiting.get() == 2).await;
    server.platform.change("a");
    assert_eq!(answer(&timed_out.response().await), (304, Some("9")));
    assert_eq!(server.stats.waiting.get(), 1, "document 8 is older than the client's");
    // The node catches up with both changes at once.
    *server.platform.stored.lock().unwrap() = Some(10);
    server.platform.set_incarnation("a", 10);
    assert_eq!(answer(&waiting.response().await), (200, Some("10")));
    until(|| *server.platform.delivered.lock().unwrap() == [("a".to_owned(), 10)]).await;
    server.close().await;
}
