//! The command line against a service that loses connections, stops, or gives unusable responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Output};
use std::thread::JoinHandle;

use crate::support::binary;
use serde_json::{Value, json};

/// Runs a command against a service that gives each connection the next response and then stops. Returns the output
/// and the heads of the requests, in lower case.
fn run(words: &[&str], responses: Vec<String>) -> (Output, Vec<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service: JoinHandle<Vec<String>> = std::thread::spawn(move || {
        let answer = |response: String| {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(stream.read_line(&mut head).unwrap(), 0);
            }
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            stream.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
            stream.get_mut().write_all(response.as_bytes()).unwrap();
            head
        };
        responses.into_iter().map(answer).collect()
    });
    let mut command = Command::new(binary());
    command.env("NOTBEFORE_TOKEN", "0123456789abcdefghij").args(["--operator-url", &url]).args(words);
    let output = command.output().unwrap();
    (output, service.join().unwrap())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{body}")
}

fn problem(status: &str, headers: &str, code: &str) -> String {
    let number: u16 = status.split(' ').next().unwrap().parse().unwrap();
    let body = json!({ "status": number, "code": code, "title": "", "detail": "a detail" });
    response(status, headers, &body.to_string())
}

fn fact(id: &str) -> String {
    let fact = json!({ "id": id, "at": "2026-11-17T03:00:00Z", "type": "VmAdded", "vms": ["web-0"], "by": { "kind": "timer", "name": "timer" } });
    format!("id: {id}\nevent: fact\ndata: {fact}\n\n")
}

fn stream(messages: &str) -> String {
    response("200 OK", "Content-Type: text/event-stream\r\n", messages)
}

#[test]
fn watch_resumes_and_names_missing_facts() {
    let first = format!(": connected\nid: 4\n\n{}: alive\nid: 6\n\ndata: unfinished", fact("5.0"));
    let responses = vec![
        stream(&first),
        problem("410 Gone", "", "stream_position_gone"),
        stream(&format!(": connected\nid: 9\n\n{}", fact("10.0"))),
    ];
    let (output, heads) = run(&["event", "watch", "--count", "2", "-o", "json"], responses);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let ids: Vec<Value> =
        shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, ["5.0", "10.0"]);
    assert!(!heads[0].contains("last-event-id"), "{heads:?}");
    assert!(heads[1].contains("\r\nlast-event-id: 6\r\n"), "{heads:?}");
    assert!(!heads[2].contains("last-event-id"), "{heads:?}");
    let notes: Vec<&str> = error.lines().skip(1).collect();
    assert_eq!(notes[0], "notbefore: the service has closed the stream; connecting again");
    assert!(notes[1].starts_with("notbefore: facts since 20"), "{error}");
    assert!(notes[1].contains("may be missing") && notes[1].contains("notbefore audit --since "), "{error}");
    assert_eq!(notes[2..], ["notbefore: connected again; the stream continues"], "{error}");
}

#[test]
fn watch_ends_when_its_token_is_refused() {
    let responses = vec![stream(": connected\nid: 4\n\n"), problem("401 Unauthorized", "", "token_refused")];
    let (output, _) = run(&["event", "watch"], responses);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.ends_with("notbefore: a detail (token_refused)\n"), "{error}");
}

#[test]
fn change_of_unknown_outcome_may_have_been_made() {
    let responses = vec![problem("503 Service Unavailable", "Retry-After: 1\r\n", "outcome_unknown")];
    let (output, heads) = run(&["event", "schedule", "--type", "reboot", "web-0"], responses);
    assert!(heads[0].contains("\r\nidempotency-key: "), "{heads:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("the change may have been made: check with"), "{error}");
}

#[test]
fn unusable_responses_are_explained() {
    let page =
        |next: &str| response("200 OK", "", &json!({ "items": [], "next": next, "revision": 1 }).to_string());
    for (responses, said) in [
        (
            vec![response("302 Found", "Location: https://ops.example/\r\n", "")],
            "a redirect to https://ops.example/",
        ),
        (vec![response("204 No Content", "", "")], "204 No Content: it is empty"),
        (vec![response("200 OK", "", "<html>")], "200 OK: <html>"),
        (vec![page("a"), page("b"), page("b")], "the service repeats a page of /v1/vms"),
    ] {
        let (output, _) = run(&["vm", "list"], responses);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
