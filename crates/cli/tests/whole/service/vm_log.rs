//! What an operator sees of guests' requests: `vm log`, lines of the service's log, and metrics.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::support::{Answer, Service, exchange, first_event, wait_for};

const VM: Ipv4Addr = Ipv4Addr::new(127, 1, 41, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 1, 41, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 1, 41, 9);
const NEWEST: &str = "2020-07-01";
const FLEET: &str = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n      - { name: web-0, addresses: [127.1.41.1] }\n      - { name: web-1, addresses: [127.1.41.2] }\n";

fn started(flags: &[&str]) -> Service {
    let service = Service::start_with(&[("NOTBEFORE_LOG", "info")], flags);
    service.apply_fleet(FLEET);
    service
}

/// The first line of the log that has all of these texts.
fn line(service: &Service, texts: &[&str]) -> String {
    wait_for(&format!("a line with {texts:?} in {}", service.log()), || {
        let log = service.log();
        log.lines().find(|line| texts.iter().all(|text| line.contains(text))).map(str::to_owned)
    })
}

fn poll_as(service: &Service, source: Ipv4Addr, agent: &str, version: &str) -> Answer {
    let request = format!(
        "GET /metadata/scheduledevents?api-version={version} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    );
    exchange(source.into(), service.guest, request.as_bytes())
}

/// The entries of a VM's log of one kind.
fn entries(service: &Service, vm: &str, kind: &str) -> Vec<Value> {
    let log = service.cli_json(&["vm", "log", vm]);
    let entries = log["entries"].as_array().unwrap_or_else(|| panic!("{log}")).clone();
    entries.into_iter().filter(|entry| entry["kind"] == kind).collect()
}

#[test]
fn log_says_why_an_approval_was_refused() {
    let service = started(&["--driver", "manual"]);
    service.cli(&["event", "schedule", "--type", "reboot", "web-0", "--in", "1h"]);
    let event = first_event(&service.poll(VM, NEWEST).json());

    // An event of the past, an id that was cut, and a caller that is no VM.
    let past = "11111111-2222-3333-4444-555555555555";
    assert_eq!(service.approve(VM, past).status, 400);
    assert_eq!(service.approve(OTHER, &event[..8]).status, 400);
    let refused = service.approve(STRANGER, &event);
    assert_eq!(
        (refused.status, &*refused.body),
        (403, r#"{"error":"Forbidden"}"#),
        "the answer says no more"
    );

    let request = "request=\"POST /metadata/scheduledevents?api-version=2020-07-01\"";
    let of_past = line(&service, &["vm=\"default/default/web/web-0\"", "from=127.1.41.1", request]);
    for part in [past, "names no event of this scope", "status=400", "reason=\"unknown_event\"", "WARN"] {
        assert!(of_past.contains(part), "{part} in {of_past}");
    }
    line(&service, &["web/web-1", "an EventId is not a GUID"]);

    // The line has the command that adds the caller.
    let of_stranger = line(&service, &["from=127.1.41.9", "status=403", "no VM has the address 127.1.41.9"]);
    let command = of_stranger.split('\'').nth(1).unwrap().replace("NAME", "web-9");
    service.cli(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(service.poll(STRANGER, NEWEST).status, 200);

    // The event's life.
    assert_eq!(service.approve(VM, &event).status, 200);
    service.cli(&["event", "start", &event]);
    service.cli(&["event", "complete", &event]);
    let event = event.to_lowercase();
    for (verb, by) in [
        ("scheduled", "token"),
        ("read", "vm web-0"),
        ("approved", "vm web-0 at 127.1.41.1"),
        ("started", "token"),
        ("completed", "token"),
    ] {
        let found = line(&service, &[&format!("event {verb} "), &event, &format!("by=\"{by}")]);
        assert!(found.contains("INFO") && found.contains("vms=\"web-0\""), "{found}");
    }
    let page = service.operator_request("GET", "/metrics", "", "").body;
    assert!(page.contains("\nnotbefore_guest_refusals_total{reason=\"unknown_event\"} 2\n"), "{page}");
    assert!(page.contains("\nnotbefore_guest_refusals_total{reason=\"unknown_caller\"} 1\n"), "{page}");
}

#[test]
fn vm_log_shows_reads_approvals_and_changes_of_client() {
    let service = started(&[]);
    assert_eq!(service.cli_json(&["vm", "log", "web-0"])["entries"], serde_json::json!([]));
    // The head of the first VM is in the cache when the second one polls.
    for _ in 0..3 {
        assert_eq!(poll_as(&service, VM, "agent/1", NEWEST).status, 200);
    }
    for (agent, version) in [("agent/1", NEWEST), ("agent/2\t[2J", NEWEST), ("agent/2", "2019-08-01")] {
        assert_eq!(poll_as(&service, OTHER, agent, version).status, 200);
    }
    let clients = |vm: &str| -> Vec<(Value, Value)> {
        let polled = entries(&service, vm, "polled");
        polled.iter().map(|one| (one["client"].clone(), one["api_version"].clone())).collect()
    };
    let same = |client: &str, version: &str| (client.into(), version.into());
    assert_eq!(clients("web-0"), [same("agent/1", NEWEST)]);
    assert_eq!(
        clients("web-1"),
        [same("agent/1", NEWEST), same("agent/2\\t[2J", NEWEST), same("agent/2", "2019-08-01")]
    );

    service.cli(&["event", "schedule", "--type", "reboot", "web-0", "--in", "1h"]);
    let event = first_event(&poll_as(&service, VM, "agent/1", NEWEST).json());
    let read = wait_for("the read", || entries(&service, "web-0", "first-read").pop());
    let event = event.to_lowercase();
    assert_eq!((&read["events"][0], &read["incarnation"]), (&Value::from(&*event), &2.into()), "{read}");
    assert_eq!(service.approve(VM, &event).status, 200);
    let approved = entries(&service, "web-0", "approved");
    assert_eq!((approved.len(), &approved[0]["events"][0]), (1, &Value::from(&*event)));
    assert!(entries(&service, "web-1", "approved").is_empty(), "each VM for itself");

    let service = service.restart();
    assert_eq!(entries(&service, "web-0", "approved"), [] as [Value; 0], "the log is in memory");
}

#[test]
fn refused_requests_of_one_vm_do_not_hide_those_of_others() {
    let service = started(&[]);
    let refuse = |source, n: usize| {
        let target = format!("/metadata/scheduledevents?api-version={NEWEST}&format={n}");
        assert_eq!(service.guest_request(source, "GET", &target, "").status, 400);
    };
    refuse(OTHER, 0);
    (0..100).for_each(|n| refuse(VM, n));
    let (noisy, quiet) = (entries(&service, "web-0", "refused"), entries(&service, "web-1", "refused"));
    assert_eq!((noisy.len(), quiet.len()), (32, 1));
    assert_eq!(service.cli_json(&["vm", "log", "web-0"])["dropped"], 68);
    line(&service, &["web/web-1", "status=400"]);
    let lines = service.log().lines().filter(|line| line.contains("web/web-0\"")).count();
    assert!(lines <= 6, "three in a minute: {lines}");
}

#[test]
fn log_format_json_writes_objects() {
    let service = started(&["--log-format", "json"]);
    let escaped = "/metadata/x%1b\u{202e}";
    assert_eq!(service.guest_request(VM, "GET", escaped, "").status, 404);
    let refused = line(&service, &["not_found"]);
    let refused: Value = serde_json::from_str(&refused).unwrap();
    for (key, expected) in [
        ("level", "WARN".into()),
        ("target", "notbefore::guest".into()),
        ("vm", "default/default/web/web-0".into()),
        ("from", "127.1.41.1".into()),
        ("status", 404.into()),
        ("request", Value::from("GET /metadata/x%1b\\u{202e}")),
    ] {
        assert_eq!(refused[key], expected, "{key} of {refused}");
    }
    assert!(
        service.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{}",
        service.log()
    );
}
