//! Polls that are held back until there is news.

use std::num::NonZeroUsize;
use std::time::Duration;

use notbefore_service::bell::SEATS_PER_VM_MAX;
use notbefore_service::guest::settings::{GuestSettings, HEAD_BYTES_MAX, Limits, Mode};

use super::harness::*;

/// A poll of a client that has a tag and would wait.
fn wait_for_news(tag: &str, wait: &str) -> String {
    wait_at(EVENTS, tag, wait)
}

fn wait_at(target: &str, tag: &str, wait: &str) -> String {
    get_with(target, &format!("Metadata: true\r\nIf-None-Match: {tag}\r\nPrefer: {wait}\r\n"))
}

fn incarnation(answer: &Answer) -> Option<&str> {
    answer.header("ETag")
}

#[tokio::test]
async fn a_poll_is_answered_when_its_document_changes() {
    let door = Door::with_mode(Mode::Normal).await;
    let [mut first, mut second, mut other] =
        [door.connect(From::A).await, door.connect(From::A).await, door.connect(From::B).await];
    first.send(wait_for_news("7", "wait=60")).await;
    second.send(wait_at("/metadata/scheduledevents?api-version=2017-08-01", "\"7\"", "wait=1000")).await;
    other.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == 3).await;
    assert_eq!(door.world.polled.lock().unwrap().len(), 3, "a poll counts when it comes");
    door.world.change("a");
    assert_eq!(
        first.answer().await.head,
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
    let answer = second.answer().await;
    assert_eq!(answer.body, r#"{"DocumentIncarnation":8,"Events":["a at 2017-08-01"]}"#);
    assert_eq!(answer.header("Preference-Applied"), Some("wait=300"), "nobody waits longer");
    assert_eq!(door.stats.waiting.get(), 1, "nothing has changed for the other");
    until(|| door.world.delivered.lock().unwrap().len() == 2).await;
    assert_eq!(door.world.polled.lock().unwrap().len(), 3, "and counts once");

    // Each of these connections is an ordinary one again.
    first.send(get(EVENTS)).await;
    assert_eq!(first.answer().await.status, 200);
    first.send(wait_for_news("8", "wait=60")).await;
    until(|| door.stats.waiting.get() == 2).await;
    door.world.change("a");
    assert_eq!(incarnation(&first.answer().await), Some("9"));
    door.close().await;
}

#[tokio::test]
async fn a_poll_is_answered_when_its_time_is_over() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    client.send(wait_for_news("7", "respond-async, WAIT=\"1\"")).await;
    until(|| door.stats.waiting.get() == 1).await;
    assert_eq!(
        client.answer().await.head,
        "HTTP/1.1 304 Not Modified\r\n\
         ETag: 7\r\n\
         Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n\
         Preference-Applied: wait=1\r\n\
         \r\n"
    );
    assert!(door.stats.waiting.get() == 0 && door.world.nobody_waits());
    client.send(get(EVENTS)).await;
    assert_eq!(client.answer().await.status, 200);
    door.close().await;
}

#[tokio::test]
async fn nobody_waits_who_has_not_asked_for_it() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    let tagged = |rest: &str| get_with(EVENTS, &format!("Metadata: true\r\nIf-None-Match: 7\r\n{rest}"));
    for (request, status) in [
        (tagged(""), 304),
        (tagged("Prefer: wait=0\r\n"), 304),
        (tagged("Prefer: wait=soon\r\n"), 304),
        (tagged("Prefer: respond-async\r\n"), 304),
        (tagged("Prefer: wait=x\r\nPrefer: wait=5\r\n"), 304),
        (get_with(EVENTS, "Metadata: true\r\nPrefer: wait=60\r\n"), 200),
        (wait_for_news(&"1,".repeat(600), "wait=60"), 200),
        (format!("{}7\r\n\r\n", tagged(&format!("If-None-Match: {}", "1,".repeat(600))).trim_end()), 304),
        (wait_at("/metadata/versions", "7", "wait=60"), 200),
        (wait_at("/nowhere", "7", "wait=60"), 404),
    ] {
        client.send(&request).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("Preference-Applied")), (status, None), "{request}");
    }
    client.send(wait_for_news("6", "wait=60")).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("Preference-Applied")), (200, Some("wait=60")), "there is news");
    door.close().await;
}

#[tokio::test]
async fn a_ring_without_news_wakes_nobody() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    client.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == 1).await;
    for _ in 0..100 {
        until(|| !door.world.nobody_waits()).await;
        door.world.ring("a");
    }
    until(|| !door.world.nobody_waits()).await;
    assert_eq!(door.stats.waiting.get(), 1);
    door.world.change("a");
    assert_eq!(incarnation(&client.answer().await), Some("8"));
    door.close().await;
}

#[tokio::test]
async fn a_change_between_looking_and_sitting_down_is_not_missed() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    *door.world.changes_early.lock().unwrap() = Some("a".to_owned());
    client.send(wait_for_news("7", "wait=60")).await;
    assert_eq!(incarnation(&client.answer().await), Some("8"));
    assert!(door.world.nobody_waits());
    door.close().await;
}

#[tokio::test]
async fn a_poll_is_answered_as_the_vm_that_calls_now() {
    let door = Door::with_mode(Mode::Normal).await;
    let from = From::Address("127.0.0.2");
    let mut moved = door.connect(from).await;
    moved.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == 1).await;
    door.world.change("b");
    door.world.map("127.0.0.2", Some("b"));
    let answer = moved.answer().await;
    assert_eq!(answer.body, r#"{"DocumentIncarnation":8,"Events":["b at 2020-07-01"]}"#);

    moved.send(wait_for_news("8", "wait=60")).await;
    until(|| door.stats.waiting.get() == 1).await;
    door.world.map("127.0.0.2", None);
    let answer = moved.answer().await;
    assert_eq!((answer.status, answer.closes()), (403, true));
    assert_eq!(answer.header("Preference-Applied"), None);
    assert!(moved.is_closed().await);
    door.close().await;
}

#[tokio::test]
async fn a_proxys_poll_waits_at_the_vm_it_is_for() {
    let door = Door::with_mode(Mode::Normal).await;
    let id = vm_id("a").to_string();
    let claim = format!("X-Instance-ID: {id}\r\nX-Instance-ID-Signature: {}\r\n", signature(SECRET, &id));
    let mut proxy = door.connect(From::Address("127.0.0.9")).await;
    let about = "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=60\r\n";
    proxy.send(get_with(EVENTS, &format!("{about}{claim}"))).await;
    until(|| door.stats.waiting.get() == 1).await;
    door.world.change("b");
    door.world.change("a");
    assert_eq!(proxy.answer().await.body, r#"{"DocumentIncarnation":8,"Events":["a at 2020-07-01"]}"#);
    door.close().await;
}

#[tokio::test]
async fn a_door_that_closes_keeps_nobody_waiting() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    client.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == 1).await;
    door.shutdown.send(true).unwrap();
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (304, true));
    assert_eq!(answer.header("Preference-Applied"), Some("wait=60"));
    assert!(client.is_closed().await);
    assert_eq!(door.stats.waiting.get(), 0);
    door.close().await;
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_place() {
    let door = Door::with_mode(Mode::Normal).await;
    for reset in [false, true] {
        let mut client = door.connect(From::A).await;
        client.send(wait_for_news("7", "wait=60")).await;
        until(|| door.stats.waiting.get() == 1).await;
        if reset {
            client.stream.set_zero_linger().unwrap();
        }
        drop(client);
        until(|| door.stats.waiting.get() == 0 && door.stats.connections_open.get() == 0).await;
        assert!(door.world.nobody_waits());
    }
    door.close().await;
}

#[tokio::test]
async fn a_poll_that_waits_is_not_idle() {
    let door = Door::with_limits(Limits { idle_timeout: Duration::from_secs(1), ..Limits::default() }).await;
    let mut client = door.connect(From::A).await;
    client.send(wait_for_news("7", "wait=3")).await;
    assert_eq!(client.answer().await.status, 304, "long after an idle connection is closed");
    assert!(client.is_closed().await, "now it is idle");
    door.close().await;

    let limits = Limits { connections_max: 2, ..Limits::default() };
    let door = Door::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let mut client = door.connect(From::A).await;
    client.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == 1).await;
    let mut idle = door.connect(From::A).await;
    until(|| door.stats.connections_open.get() == 2).await;
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    assert!(idle.is_closed().await, "the idle one goes first, though it came later");
    assert_eq!((door.stats.waiting.get(), door.stats.connections_evicted.get()), (1, 1));
    door.close().await;
}

#[tokio::test]
async fn polls_that_wait_keep_nobody_out() {
    let limits = Limits { connections_max: 3, ..Limits::default() };
    let door = Door::open(GuestSettings { limits, threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let mut waiting = Vec::new();
    // The first to come is the last whose time is over.
    for (count, wait) in [(1, "wait=300"), (2, "wait=200"), (3, "wait=100")] {
        let mut client = door.connect(From::A).await;
        client.send(wait_for_news("7", wait)).await;
        until(|| door.stats.waiting.get() == count).await;
        // What it sends ahead is read and not answered, and does not lose it its answer.
        client.send(get(EVENTS)).await;
        later().await;
        waiting.push(client);
    }
    let mut newer = Vec::new();
    for (longest, wait) in waiting.iter_mut().zip(["wait=300", "wait=200"]) {
        let mut client = door.connect(From::A).await;
        client.send(&get(EVENTS)[..9]).await;
        let answer = longest.answer().await;
        assert_eq!((answer.status, answer.closes()), (304, true));
        assert_eq!(answer.header("Preference-Applied"), Some(wait));
        assert!(longest.is_closed().await);
        until(|| door.stats.connections_handed_over.get() == newer.len() as u64 + 1).await;
        newer.push(client);
    }
    for client in &mut newer {
        client.send(&get(EVENTS)[9..]).await;
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!((door.stats.waiting.get(), door.stats.connections_evicted.get()), (1, 2));
    assert_eq!(door.stats.connections_turned_away.get(), 0);
    drop(waiting);
    door.close().await;
}

#[tokio::test]
async fn a_vm_has_so_many_polls_wait_and_no_more() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut waiting = Vec::new();
    for count in 1..=SEATS_PER_VM_MAX as u64 {
        let mut client = door.connect(From::A).await;
        client.send(wait_for_news("7", "wait=60")).await;
        until(|| door.stats.waiting.get() == count).await;
        waiting.push(client);
    }
    let mut another = door.connect(From::Address("127.0.0.2")).await;
    for _ in 0..2 {
        another.send(wait_for_news("7", "wait=60")).await;
        let answer = another.answer().await;
        assert_eq!((answer.status, answer.closes()), (304, false), "one too many is answered at once");
    }
    let mut other = door.connect(From::B).await;
    other.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == SEATS_PER_VM_MAX as u64 + 1).await;
    waiting.pop();
    until(|| door.stats.waiting.get() == SEATS_PER_VM_MAX as u64).await;
    another.send(wait_for_news("7", "wait=60")).await;
    until(|| door.stats.waiting.get() == SEATS_PER_VM_MAX as u64 + 1).await;
    door.world.change("a");
    assert_eq!(incarnation(&another.answer().await), Some("8"));
    door.close().await;
}

/// A poll that would wait, as long as what is read at once.
fn long_wait_for_news() -> String {
    let about = "Metadata: true\r\nIf-None-Match: 7\r\nPrefer: wait=60\r\n";
    let padding = HEAD_BYTES_MAX - get_with(EVENTS, &format!("{about}X: \r\n")).len();
    get_with(EVENTS, &format!("{about}X: {}\r\n", "x".repeat(padding)))
}

#[tokio::test]
async fn what_did_not_fit_is_answered_afterwards() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    client.send(long_wait_for_news() + &get("/metadata/versions")).await;
    until(|| door.stats.waiting.get() == 1).await;
    door.world.change("a");
    assert_eq!(incarnation(&client.answer().await), Some("8"));
    assert_eq!(client.answer().await.status, 200);
    door.close().await;
}

#[tokio::test]
async fn a_bell_for_the_poll_before_leaves_no_seat_taken() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    *door.world.changes_late.lock().unwrap() = Some("a".to_owned());
    client.send(long_wait_for_news() + &wait_for_news("8", "wait=60")).await;
    assert_eq!(incarnation(&client.answer().await), Some("8"));
    until(|| door.stats.waiting.get() == 1).await;
    assert_eq!(door.ask(From::A, get(EVENTS)).await.status, 200);
    drop(client);
    until(|| door.stats.waiting.get() == 0).await;
    assert!(door.world.nobody_waits());
    door.close().await;
}

#[tokio::test]
async fn a_client_that_sends_far_ahead_does_not_wait() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    let ahead = get("/metadata/versions");
    let count = 1024 / ahead.len() + 1;
    client.send(wait_for_news("7", "wait=60") + &ahead.repeat(count)).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.closes()), (304, false));
    for _ in 0..count {
        assert_eq!(client.answer().await.status, 200);
    }
    door.close().await;
}

#[tokio::test]
async fn what_is_sent_meanwhile_is_answered_afterwards() {
    let door = Door::with_mode(Mode::Normal).await;
    for together in [true, false] {
        let mut client = door.connect(From::A).await;
        let tag = door.ask(From::A, get(EVENTS)).await.header("ETag").unwrap().to_owned();
        let (waits, then) = (wait_for_news(&tag, "wait=60"), get("/metadata/versions") + &get("/nowhere"));
        match together {
            true => client.send(waits + &then).await,
            false => {
                client.send(waits).await;
                until(|| door.stats.waiting.get() == 1).await;
                client.send(then).await;
            }
        }
        until(|| door.stats.waiting.get() == 1).await;
        assert_eq!(door.stats.metadata.get(), if together { 0 } else { 1 }, "the next request waits too");
        door.world.change("a");
        let mut statuses = vec![];
        for _ in 0..3 {
            statuses.push(client.answer().await.status);
        }
        assert_eq!(statuses, [200, 200, 404]);
        client.send(get(EVENTS)).await;
        assert_eq!(client.answer().await.status, 200);
    }
    door.close().await;
}

#[tokio::test]
async fn a_waiting_poll_may_be_split_anywhere() {
    let door = Door::with_mode(Mode::Normal).await;
    let mut client = door.connect(From::A).await;
    let mut tag = 7;
    let length = wait_for_news("7", "wait=60").len();
    for at in 1..length {
        let request = wait_for_news(&tag.to_string(), "wait=60");
        let before = door.stats.connections_handed_over.get();
        client.send(&request[..at]).await;
        until(|| door.stats.connections_handed_over.get() == before + 1).await;
        client.send(&request[at..]).await;
        until(|| door.stats.waiting.get() == 1).await;
        door.world.change("a");
        tag += 1;
        assert_eq!(incarnation(&client.answer().await), Some(&*tag.to_string()), "split at {at}");
    }
    door.close().await;
}
