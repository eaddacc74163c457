//! Delivery: which VMs poll, which have read an event, and the warning if none has.

use std::net::Ipv4Addr;
use std::thread::JoinHandle;

use crate::support;
use crate::support::{Answer, Service, exchange, wait_for};
use serde_json::Value;

const A: Ipv4Addr = Ipv4Addr::new(127, 1, 40, 1);
const B: Ipv4Addr = Ipv4Addr::new(127, 1, 40, 2);
const NEWEST: &str = "2020-07-01";

/// Two VMs of an availability set, in two update domains.
const SET: &str = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n      - { name: web-0, addresses: [127.1.40.1] }\n      - { name: web-1, update_domain: 1, addresses: [127.1.40.2] }\n";

fn vm(service: &Service, name: &str) -> Value {
    service.cli_json(&["vm", "show", name])
}

fn metric(service: &Service, name: &str) -> String {
    let page = service.operator_request("GET", "/metrics", "", "").body;
    let line = page.lines().find(|line| line.starts_with(name));
    let (_, value) =
        line.and_then(|line| line.rsplit_once(' ')).unwrap_or_else(|| panic!("no {name} in {page}"));
    value.to_owned()
}

/// Starts a long poll with this tag; it is waiting when this returns.
fn waits(service: &Service, source: Ipv4Addr, tag: &str) -> JoinHandle<Answer> {
    let waiting = || metric(service, "notbefore_guest_polls_waiting");
    let (to, before) = (service.guest, waiting());
    let request = format!(
        "GET /metadata/scheduledevents?api-version={NEWEST} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\nIf-None-Match: {tag}\r\nPrefer: wait=20\r\n\r\n"
    );
    let answer = std::thread::spawn(move || exchange(source.into(), to, request.as_bytes()));
    wait_for("the poll to wait", || (waiting() != before).then_some(()));
    answer
}

#[test]
fn long_polls_receive_event_immediately() {
    let mut service = Service::start(&[]);
    service.apply_fleet(SET);
    let waiting = [A, B].map(|source| waits(&service, source, "1"));
    service.cli(&["event", "schedule", "--type", "reboot", "web-0"]);
    for answer in waiting {
        let answer = answer.join().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.head.contains("\r\nPreference-Applied: wait=20\r\n"), "{}", answer.head);
        assert_eq!(answer.json()["Events"][0]["Resources"][0], "web-0");
    }

    // A VM that loses its address is an unknown caller.
    let waiting = waits(&service, A, "2");
    service.apply_fleet(&SET.replace("addresses: [127.1.40.1]", "addresses: []"));
    assert_eq!(waiting.join().unwrap().status, 403);

    let waiting = waits(&service, B, "2");
    assert!(service.terminate().success());
    let answer = waiting.join().unwrap();
    assert_eq!(answer.status, 304, "{}", answer.head);
    assert!(answer.head.contains("\r\nConnection: close"), "{}", answer.head);
}

#[test]
fn operator_sees_polling_vms() {
    let service = Service::start(&[]);
    service.apply_fleet(SET);
    assert_eq!(vm(&service, "web-0")["listening"], "no", "it is new, so nothing was missed");
    assert_eq!(service.poll(A, "2019-08-01").status, 200);
    let polled = vm(&service, "web-0");
    assert_eq!((&polled["listening"], &polled["last_poll_version"]), (&"yes".into(), &"2019-08-01".into()));
    assert!(polled["last_poll_at"].is_string(), "{polled}");
    assert_eq!(
        vm(&service, "web-1")["listening"],
        "no",
        "each VM for itself, although they share a document"
    );
    assert_eq!(metric(&service, "notbefore_vms_listening{listening=\"yes\"}"), "1");

    // Changes of the scope and of the VM keep the poll time.
    service.cli(&["vm", "add", "web-2", "--scope", "web"]);
    service.apply_fleet(&SET.replace("{ name: web-0,", "{ name: web-0, host: h1,"));
    assert_eq!(vm(&service, "web-0")["last_poll_at"], polled["last_poll_at"]);
    let shown = service.cli(&["vm", "list"]);
    assert!(shown.lines().any(|line| line.contains("/web-0 ") && line.ends_with("yes")), "{shown}");

    // A VM that has not polled since a start is not reported as silent.
    let service = service.restart();
    assert_eq!(vm(&service, "web-0")["listening"], "unknown");
    assert_eq!(metric(&service, "notbefore_vms_listening{listening=\"unknown\"}"), "3");
    assert!(service.cli(&["vm", "show", "web-0"]).contains("unknown: no poll since"));
    assert_eq!(service.poll(A, NEWEST).status, 200);
    assert_eq!(vm(&service, "web-0")["listening"], "yes");
}

/// First read and version of each VM, in the order of the event's VMs.
fn first_reads(service: &Service, event: &str) -> Vec<(String, Value, Value)> {
    let shown = service.cli_json(&["event", "show", event]);
    let one = |one: &Value| {
        let name = one["name"].as_str().unwrap_or_default();
        (name.to_owned(), one["first_read_at"].clone(), one["api_version"].clone())
    };
    shown["seen"].as_array().unwrap_or_else(|| panic!("no seen in {shown}")).iter().map(one).collect()
}

/// The only live event.
fn only_event(service: &Service) -> String {
    let listed = service.cli_json(&["event", "list"]);
    match listed.as_array().map(Vec::as_slice) {
        Some([event]) => event["id"].as_str().unwrap_or_default().to_owned(),
        _ => panic!("not one event: {listed}"),
    }
}

/// Waits until the event's first VM has read it; returns the time.
fn first_read(service: &Service, event: &str) -> Value {
    wait_for("the read to be noted", || {
        let (_, at, _) = first_reads(service, event).swap_remove(0);
        at.is_string().then_some(at)
    })
}

#[test]
fn reads_count_per_vm_at_versions_that_show_the_event() {
    let service = Service::start(&[]);
    service.apply_fleet(SET);
    service.cli(&["event", "schedule", "--cause", "eviction", "--force", "web-0", "--in", "1h"]);
    let event = only_event(&service);
    assert_eq!(service.cli_json(&["event", "list"])[0]["unread_by"][0], "web-0");
    assert!(service.cli(&["event", "list"]).contains("UNREAD BY"));
    assert_eq!(metric(&service, "notbefore_events_unread"), "1");

    // Not counted as a read by web-0: a version without Preempt, a 304, a poll of the other VM.
    assert_eq!(service.poll(A, "2017-08-01").json()["Events"].as_array().unwrap().len(), 0);
    let unseen = "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n";
    assert_eq!(support::exchange(A.into(), service.guest, unseen.as_bytes()).status, 304);
    assert_eq!(service.poll(B, NEWEST).json()["Events"].as_array().unwrap().len(), 1);
    // The recorder processes notes in order, so this one comes after those of the polls before.
    service.cli(&["event", "schedule", "--cause", "host-reboot", "web-1", "--in", "1h"]);
    assert_eq!(service.poll(B, NEWEST).status, 200);
    let other = service.cli_json(&["event", "list", "--vm", "web-1"])[0]["id"].as_str().unwrap().to_owned();
    first_read(&service, &other);
    assert_eq!(first_reads(&service, &event), [("web-0".into(), Value::Null, Value::Null)]);
    assert!(service.cli(&["event", "show", &event]).contains("web-0  not read"));

    assert_eq!(service.poll(A, "2017-11-01").status, 200);
    first_read(&service, &event);
    assert_eq!(service.poll(A, NEWEST).status, 200);
    let (_, _, version) = first_reads(&service, &event).swap_remove(0);
    assert_eq!(version, "2017-11-01", "the first that shows it");
    assert_eq!(service.cli_json(&["event", "show", &event])["unread_by"], Value::Null);
    assert_eq!(metric(&service, "notbefore_events_unread"), "0");
    assert_eq!(metric(&service, "notbefore_first_read_seconds_count"), "2");
}

#[test]
fn two_vms_of_one_event_read_it_separately() {
    let service = Service::start(&[]);
    service.apply_fleet(&SET.replace("update_domain: 1, ", ""));
    service.cli(&["event", "schedule", "--cause", "host-reboot", "web-0", "web-1"]);
    let event = only_event(&service);
    assert_eq!(service.poll(A, NEWEST).status, 200);
    first_read(&service, &event);
    let shown = service.cli_json(&["event", "show", &event]);
    assert_eq!(shown["unread_by"], serde_json::json!(["web-1"]));
    assert_eq!(first_reads(&service, &event)[1], ("web-1".to_owned(), Value::Null, Value::Null));
    assert_eq!(service.poll(B, "2019-04-01").status, 200);
    wait_for("the other read", || (first_reads(&service, &event)[1].2 == "2019-04-01").then_some(()));
}

#[test]
fn first_read_survives_restart() {
    let mut service = Service::start(&[]);
    service.apply_fleet(SET);
    service.cli(&["event", "schedule", "--cause", "host-reboot", "web-0", "--in", "1h"]);
    let event = only_event(&service);
    assert_eq!(service.poll(A, "2019-08-01").status, 200);
    let read_at = first_read(&service, &event);
    let unchanged = |service: &Service, when: &str| {
        assert_eq!(
            first_reads(service, &event),
            [("web-0".into(), read_at.clone(), "2019-08-01".into())],
            "{when}"
        );
    };
    // A clean stop writes the pending reads.
    assert!(service.terminate().success());
    let service = service.restart();
    unchanged(&service, "after a stop");
    assert_eq!(service.cli_json(&["event", "list"])[0]["unread_by"], Value::Null);
    assert_eq!(service.poll(A, NEWEST).status, 200);

    service.cli(&["event", "schedule", "--cause", "host-freeze", "web-1", "--in", "1h"]);
    let other = service.cli_json(&["event", "list", "--vm", "web-1"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(service.poll(B, NEWEST).status, 200);
    let other_at = first_read(&service, &other);
    unchanged(&service, "after a poll that a new process notes again");
    wait_for("the read to be written", || {
        let records = service.operator_request("GET", "/v1/export", "", "").body;
        records.contains(&format!("seen/{other}/")).then_some(())
    });
    let mut service = service;
    service.kill();
    let service = service.restart();
    unchanged(&service, "after a power cut");
    assert_eq!(first_read(&service, &other), other_at);
    assert_eq!(metric(&service, "notbefore_first_read_seconds_count"), "0", "no first read since");

    // An ended event keeps its first reads.
    service.cli(&["event", "start", &event]);
    service.cli(&["event", "complete", &event]);
    assert_eq!(service.cli_json(&["event", "show", &event])["status"], "Completed");
    unchanged(&service, "after its end");
}

#[test]
fn unread_event_near_not_before_is_warned() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    // 15 minutes become 9 seconds, and half of them pass before the warning.
    let service = Service::start_logged(&log, &["--notice", "0.01"]);
    service.apply_fleet(&SET.replace("update_domain: 1, ", ""));
    assert_eq!(metric(&service, "notbefore_unread_warnings_total"), "0");
    service.cli(&["event", "schedule", "--cause", "host-reboot", "web-0", "web-1"]);
    let event = only_event(&service);
    assert_eq!(service.poll(A, NEWEST).status, 200);
    wait_for("the warning", || (metric(&service, "notbefore_unread_warnings_total") == "1").then_some(()));
    assert_eq!(service.cli_json(&["event", "show", &event])["unread_by"], serde_json::json!(["web-1"]));
    let logged = std::fs::read_to_string(&log).unwrap();
    let warned: Vec<&str> = logged.lines().filter(|line| line.contains("notbefore::delivery")).collect();
    assert_eq!(warned.len(), 1, "{logged}");
    for part in
        [event.as_str(), "default/default/web", "not_before=", "unread_by=\"web-1\"", "vm show", "Reboot"]
    {
        assert!(warned[0].contains(part), "{part} in {}", warned[0]);
    }
}
