//! The operator API through the binary: operations, drivers, retries, the stream, a restart.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use crate::support;
use crate::support::http::{EventStream, get};
use crate::support::{Service, first_event, wait_for};
use serde_json::Value;

const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.1.10.1], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.1.10.2], host: h1 }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.1.10.3], host: h1 } ]
  - name: batch
    kind: scale-set
    terminate_notification: 5m
    vms:
      - { name: batch_0, spot: true, addresses: [127.1.10.4] }
      - { name: batch_1, spot: true, addresses: [127.1.10.5] }
";

fn guest(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 10, n)
}

fn status(service: &Service, n: u8) -> String {
    let document = service.poll(guest(n), "2020-07-01").json();
    document["Events"][0]["EventStatus"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn change_without_response_may_have_been_made() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // This server reads one request and ends; the second attempt cannot connect.
    let service = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).count()
    });
    let mut command = Command::new(support::binary());
    command.env("NOTBEFORE_TOKEN", "0123456789abcdefghij").args(["--operator-url", &url]);
    let output = command.args(["event", "schedule", "--type", "reboot", "web-0"]).output().unwrap();
    assert!(service.join().unwrap() > 1);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("the change may have been made"), "{error}");
    assert!(error.contains("notbefore audit"), "{error}");
}

#[test]
fn host_reboot_starts_early_only_when_all_scopes_approve() {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    let made = service.cli_json(&["event", "schedule", "--cause", "host-reboot", "web-0", "web-1", "db"]);
    assert_eq!((made["release"].as_str(), made["targets"].as_array().unwrap().len()), (Some("together"), 3));
    let times: Vec<Value> = service
        .cli_json(&["event", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["not_before"].clone())
        .collect();
    assert!(times.iter().all(|time| *time == times[0]), "one NotBefore for all: {times:?}");

    // Approved by the web scope alone: nothing is ready.
    for event in service.poll(guest(1), "2020-07-01").json()["Events"].as_array().unwrap() {
        assert_eq!(service.approve(guest(1), event["EventId"].as_str().unwrap()).status, 200);
    }
    let waits =
        service.cli_json(&["event", "list", "--vm", "web-0"])[0]["waits_for"].as_str().unwrap().to_owned();
    assert!(waits.starts_with("the approval of 1 more part of its operation"), "{waits}");
    // The last approval releases all of them.
    let last = first_event(&service.poll(guest(3), "2020-07-01").json());
    assert_eq!(service.approve(guest(3), &last).status, 200);
    let ready = |vm: &str| {
        let waits =
            service.cli_json(&["event", "list", "--vm", vm])[0]["waits_for"].as_str().unwrap().to_owned();
        waits.starts_with("an operator to start it").then_some(())
    };
    for vm in ["web-0", "web-1", "db"] {
        wait_for(&format!("the event of {vm} to be ready"), || ready(vm));
    }
    // One update domain is started, so the other must wait, even with a start command.
    let id =
        |vm: &str| service.cli_json(&["event", "list", "--vm", vm])[0]["id"].as_str().unwrap().to_owned();
    let (zero, one) = (id("web-0"), id("web-1"));
    service.cli(&["event", "start", &zero]);
    let refused = service.cli_refused(&["event", "start", &one]);
    assert!(
        refused.contains("must wait") && refused.contains(&zero) && refused.contains("update_domain_busy"),
        "{refused}"
    );
    let refused = service.cli_refused(&["event", "retry", &zero]);
    assert!(refused.contains("manual driver") && refused.contains("not_exec"), "{refused}");
    service.cli(&["event", "complete", &zero]);
    service.cli(&["event", "start", &one]);
    service.cli(&["event", "complete", &one]);
    let third = id("db");
    service.cli(&["event", "start", &third]);
    service.cli(&["event", "complete", &third]);
    let operation = made["id"].as_str().unwrap();
    wait_for("the operation to close", || {
        (service.cli_json(&["operation", "show", operation])["state"] == "closed").then_some(())
    });
}

#[test]
fn completion_updates_the_fleet() {
    let service = Service::start(&["--driver", "manual", "--always-give-notice"]);
    service.apply_fleet(FLEET);
    let run = |args: &[&str], complete: &[&str]| {
        let made = service.cli_json(args);
        let id = made["targets"][0]["event"].as_str().unwrap().to_owned();
        service.cli(&["event", "start", &id]);
        let mut finish = vec!["event", "complete", id.as_str()];
        finish.extend(complete);
        service.cli(&finish);
    };
    run(&["vm", "redeploy", "db"], &["--host", "db=h9"]);
    assert_eq!(service.cli_json(&["vm", "show", "db"])["host"], "h9");
    run(&["vm", "evict", "batch_0"], &[]);
    assert_eq!(service.cli_json(&["vm", "show", "batch_0"])["state"], "deallocated");
    let refused = service.cli_refused(&["vm", "restart", "batch_0"]);
    assert!(refused.contains("notbefore vm start batch_0"), "{refused}");
    assert!(service.cli(&["vm", "start", "batch_0"]).contains("is running"));
    run(&["vm", "delete", "--yes", "batch_1"], &[]);
    assert!(service.cli_refused(&["vm", "show", "batch_1"]).contains("there is no VM batch_1"));
    assert_eq!(service.poll(guest(5), "2020-07-01").status, 403, "its address is free now");
}

#[test]
fn acknowledged_changes_survive_crash() {
    let mut service = Service::start(&[]);
    service.apply_fleet(FLEET);
    service.cli(&[
        "event",
        "schedule",
        "--type",
        "freeze",
        "web-0",
        "--in",
        "1h",
        "--description",
        "patch day",
    ]);
    let before = service.poll(guest(1), "2020-07-01").body;
    service.kill();
    let mut service = service.restart();
    assert_eq!(service.poll(guest(1), "2020-07-01").body, before, "the same document, to the byte");
    assert!(service.terminate().success(), "SIGTERM ends it with exit code 0");
    let service = service.restart();
    assert_eq!(service.poll(guest(1), "2020-07-01").body, before);
}

#[test]
fn unapproved_event_starts_at_not_before() {
    // A thousandth of 15 minutes is less than a second.
    let service = Service::start(&["--notice", "0.001", "--simulated-duration", "1s"]);
    service.apply_fleet(FLEET);
    assert_eq!(status(&service, 3), "none");
    service.cli(&["vm", "restart", "db"]);
    let ended =
        wait_for("the event to start and end", || service.cli_json(&["event", "history"]).get(0).cloned());
    // The trail has the facts of that time.
    let shown = service.cli_json(&["event", "show", ended["id"].as_str().unwrap()]);
    let trail = support::trail(&shown);
    let expected =
        [("EventScheduled", "token root"), ("EventStarted", "timer"), ("EventCompleted", "driver simulated")];
    assert_eq!(trail, expected.map(|(fact, by)| (fact.to_owned(), by.to_owned())));
    assert_eq!(status(&service, 3), "none");
}

#[test]
fn user_operation_without_polling_guests_starts_immediately() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    service.cli(&["vm", "restart", "db"]);
    let event = service.cli_json(&["event", "list"])[0].clone();
    assert_eq!(event["status"], "Started", "{event}");
    // The first poll shows the started events; from then on there is notice.
    assert_eq!(status(&service, 3), "Started");
    service.cli(&["event", "complete", event["id"].as_str().unwrap()]);
    service.cli(&["vm", "restart", "db"]);
    assert_eq!(status(&service, 3), "Scheduled");
}

#[test]
fn idempotency_key_applies_request_once() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let body = "{\"type\":\"Reboot\",\"vms\":[\"db\"]}";
    let post = |key: &str, body: &str| {
        service.operator_request("POST", "/v1/events", &format!("Idempotency-Key: {key}\r\n"), body)
    };
    let (first, second) = (post("k1", body), post("k1", body));
    assert_eq!((first.status, second.status), (201, 201), "{second:?}");
    assert_eq!(first.json()["id"], second.json()["id"]);
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 1);
    // A retry with the same key succeeds, although the request would now be refused.
    let id = first.json()["targets"][0]["event"].as_str().unwrap().to_owned();
    let cancel = || {
        service.operator_request("POST", &format!("/v1/events/{id}/cancel"), "Idempotency-Key: k2\r\n", "")
    };
    assert_eq!((cancel().status, cancel().status), (200, 200));
    let again =
        service.operator_request("POST", &format!("/v1/events/{id}/cancel"), "Idempotency-Key: k3\r\n", "");
    assert_eq!((again.status, again.json()["code"].clone()), (409, "event_ended".into()));
    let other = post("k1", "{\"type\":\"Freeze\",\"vms\":[\"db\"]}");
    assert_eq!((other.status, other.json()["code"].clone()), (422, "idempotency_key_reused".into()));
}

#[test]
fn stale_if_match_is_refused() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let scope = service.operator_request("GET", "/v1/scopes/default/default/db", "", "").json();
    let put = |revision: u64| {
        let body = "{\"kind\":\"standalone\",\"policy\":{\"automatically_approve_reboot\":true},\"vms\":[{\"name\":\"db\"}]}";
        service.operator_request(
            "PUT",
            "/v1/scopes/default/default/db",
            &format!("If-Match: \"{revision}\"\r\n"),
            body,
        )
    };
    let revision = scope["revision"].as_u64().unwrap();
    assert_eq!(put(revision).status, 200);
    let stale = put(revision);
    assert_eq!((stale.status, stale.json()["code"].clone()), (412, "revision_differs".into()));
}

/// A stream of facts.
struct Stream(EventStream);

impl Stream {
    /// Opens a stream after a fact id or a list's revision.
    fn after(service: &Service, last: &str) -> Self {
        let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
        let stream = EventStream::open(service, &token, &format!("Last-Event-ID: {last}\r\n"));
        for header in ["content-type: text/event-stream\r\n", "cache-control: no-store\r\n"] {
            assert!(stream.head.contains(header), "{}", stream.head);
        }
        Self(stream)
    }

    /// The next fact; the message's id is the fact's.
    fn next(&mut self) -> Value {
        let mut id = String::new();
        loop {
            let line = self.0.line();
            if let Some(value) = line.strip_prefix("id: ") {
                id = value.trim_end().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let fact: Value = serde_json::from_str(data).unwrap();
                assert_eq!(fact["id"], id.as_str(), "{fact}");
                return fact;
            }
        }
    }
}

#[test]
fn stream_resumes_after_any_fact_without_loss_or_duplicates() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let list = service.operator_request("GET", "/v1/vms", "", "").json();
    let revision = list["revision"].as_u64().unwrap().to_string();
    // Commits with several facts: the events of all VMs of a scope, and their end.
    let made = service.cli_json(&["event", "schedule", "--type", "redeploy", "web-0", "web-1", "db"]);
    service.cli(&["operation", "cancel", made["id"].as_str().unwrap()]);
    service.cli(&["vm", "restart", "db"]);
    let event = service.cli_json(&["event", "list"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(status(&service, 3), "Started", "the VM reads it");
    service.cli(&["event", "complete", &event]);

    // All facts up to the first read, which is stored a second later.
    let mut all = Vec::new();
    let mut stream = Stream::after(&service, &revision);
    while !all.iter().any(|fact: &Value| fact["type"] == "EventRead")
        || !all.iter().any(|fact: &Value| fact["type"] == "EventCompleted")
    {
        all.push(stream.next());
    }
    let read = all.iter().find(|fact| fact["type"] == "EventRead").unwrap();
    assert_eq!(
        (&read["event"], &read["vms"], &read["by"]),
        (
            &Value::from(event.as_str()),
            &serde_json::json!(["db"]),
            &serde_json::json!({"kind": "vm", "name": "db"})
        )
    );
    let of = |fact: &Value| fact["id"].as_str().unwrap().split_once('.').unwrap().0.to_owned();
    assert!(all.windows(2).any(|two| of(&two[0]) == of(&two[1])), "no commit has several facts: {all:?}");
    for (n, fact) in all.iter().enumerate() {
        let mut again = Stream::after(&service, fact["id"].as_str().unwrap());
        for expected in &all[n + 1..] {
            assert_eq!(again.next(), *expected, "resumed behind {}", fact["id"]);
        }
    }
    // The audit trail and the event's own trail name the same facts.
    let audit = service.cli_json(&["audit"]);
    let shown = service.cli_json(&["event", "show", &event]);
    for fact in all.iter().filter(|fact| fact["type"] != "EventRead") {
        let same = |one: &&Value| one["id"] == fact["id"];
        let entry = audit.as_array().unwrap().iter().find(same).unwrap();
        for (field, value) in fact.as_object().unwrap() {
            assert_eq!(entry[field], *value, "{field} of {entry}");
        }
        if fact["event"] == event.as_str() {
            assert_eq!(shown["trail"].as_array().unwrap().iter().find(same), Some(fact));
        }
    }
    for (last, status, code) in [
        ("999999", 410, "stream_position_gone"),
        ("999999.0", 410, "stream_position_gone"),
        ("x", 400, "bad_last_event_id"),
        ("1.", 400, "bad_last_event_id"),
        ("1.-1", 400, "bad_last_event_id"),
    ] {
        let header = format!("Last-Event-ID: {last}\r\n");
        let answer = service.operator_request("GET", "/v1/stream", &header, "");
        assert_eq!((answer.status, answer.json()["code"].clone()), (status, code.into()), "{last}");
    }
}

#[test]
fn paged_lists_are_complete() {
    let service = Service::start(&[]);
    let mut yaml = "scopes:\n".to_owned();
    for n in 0..30 {
        yaml += &format!(
            "  - {{ name: s{n}, kind: availability-set, vms: [ {{ name: a{n} }}, {{ name: B{n} }}, {{ name: c{n} }} ] }}\n"
        );
    }
    service.apply_fleet(&yaml);
    let mut names = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = service.operator_request("GET", &format!("/v1/vms?limit=7{cursor}"), "", "").json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 7);
        names.extend(items.iter().map(|vm| vm["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((names.len(), distinct.len()), (90, 90));
}

#[test]
fn fleet_file_converges_and_prunes_only_its_own() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    assert_eq!(
        service.apply_fleet(FLEET),
        "default/default/web: unchanged\ndefault/default/db: unchanged\ndefault/default/batch: unchanged\n3 scopes: 3 unchanged\n"
    );
    service.cli(&["vm", "add", "web-9", "--scope", "web"]);
    service.cli(&["vm", "add", "own", "--address", "127.1.10.9"]);
    let file = service.data().join("smaller.yaml");
    let smaller = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n      - { name: web-0, update_domain: 3, addresses: [127.1.10.1] }\n";
    std::fs::write(&file, smaller).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        service.cli(&["fleet", "apply", path]),
        "default/default/web: 1 changed\n1 scope: 1 changed; VMs: 1 changed\n"
    );
    let pruned = service.cli(&["fleet", "apply", path, "--prune", "--yes"]);
    assert_eq!(
        pruned,
        "default/default/web: 1 removed\ndefault/default/batch: removed\ndefault/default/db: removed\n3 scopes: 1 changed, 2 removed; VMs: 4 removed\n"
    );
    let left: Vec<String> = service
        .cli_json(&["vm", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|vm| vm["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(left, ["default/default/own/own", "default/default/web/web-0", "default/default/web/web-9"]);
}

#[test]
fn operator_api_requires_token() {
    let service = Service::start(&[]);
    for path in ["/v1/vms", "/v1/events", "/v1/stream", "/v1/nothing"] {
        for header in ["", "Authorization: Bearer nb_wrong\r\n", "Authorization: Basic cm9vdDo=\r\n"] {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n");
            let answer = support::exchange(Ipv4Addr::LOCALHOST.into(), service.operator, request.as_bytes());
            assert_eq!(answer.status, 401, "{path} {header}");
        }
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(service.operator, path).status, 200);
    }
    let metrics = service.operator_request("GET", "/metrics", "", "").body;
    assert_eq!(support::described(&metrics), include_str!("../../fixtures/metrics/service.txt"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(service.data().join("operator.token")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

/// A scope accepts only what it can complete: scheduled events can be approved, cancelled and ended however full the
/// scope is, and a request that does not fit is refused as a whole.
#[test]
fn full_scope_can_be_emptied() {
    let service = Service::start(&[]);
    let mut yaml = "scopes:\n  - name: big\n    kind: scale-set\n    vms:\n".to_owned();
    for n in 0..1_000 {
        let address = format!("127.1.{}.{}", 100 + n / 250, 1 + n % 250);
        yaml += &format!("      - {{ name: big_{n}, host: a-host-name-{n:04}, addresses: [{address}] }}\n");
    }
    service.apply_fleet(&yaml);
    let guest = Ipv4Addr::new(127, 1, 100, 1);
    let announce = |from: usize, to: usize| {
        let vms: Vec<String> = (from..to).map(|n| format!("big_{n}")).collect();
        let body = serde_json::json!({ "cause": "host-redeploy", "vms": vms }).to_string();
        service.operator_request("POST", "/v1/events", "", &body)
    };
    let all = announce(0, 1_000);
    assert_eq!((all.status, all.json()["code"].clone()), (409, "scope_too_large".into()));
    assert_eq!(
        service.cli_json(&["event", "list"]).as_array().unwrap().len(),
        0,
        "nothing of it was announced"
    );
    let mut operations = Vec::new();
    for from in (0..1_000).step_by(50) {
        let made = announce(from, from + 50);
        if made.status != 201 {
            assert_eq!(made.json()["code"], "scope_too_large", "{made:?}");
            break;
        }
        operations.push(made.json()["id"].as_str().unwrap().to_owned());
    }
    assert!(operations.len() >= 4, "{} operations fitted", operations.len());
    let document = service.poll(guest, "2020-07-01").json();
    let events = document["Events"].as_array().unwrap();
    assert_eq!(events.len(), operations.len() * 50);
    for event in events.iter().rev().take(20) {
        assert_eq!(service.approve(guest, event["EventId"].as_str().unwrap()).status, 200);
    }
    for operation in &operations {
        service.cli(&["operation", "cancel", operation]);
    }
    let left = service.cli_json(&["event", "list"]);
    assert!(
        left.as_array().unwrap().iter().all(|event| event["status"] == "Started"),
        "only what had started is left"
    );
}

#[test]
fn if_match_is_compared_once_with_current_revision() {
    let service = Service::start(&[]);
    let vms: Vec<Value> = (0..200).map(|n| serde_json::json!({ "name": format!("v{n}") })).collect();
    let put = |revision: &str, vms: &[Value]| {
        let body = serde_json::json!({ "kind": "availability-set", "vms": vms }).to_string();
        service.operator_request(
            "PUT",
            "/v1/scopes/default/default/s",
            &format!("If-Match: {revision}\r\n"),
            &body,
        )
    };
    let absent = put("\"5\"", &[]);
    assert_eq!((absent.status, absent.json()["code"].clone()), (412, "revision_differs".into()));
    service.operator_request("PUT", "/v1/scopes/default/default/s", "", "{\"kind\":\"availability-set\"}");
    let revision = service.operator_request("GET", "/v1/scopes/default/default/s", "", "").json()["revision"]
        .to_string();
    assert_eq!(put(&revision, &vms).json()["added"], 200, "a change of several steps compares its first one");
    let stale =
        service.operator_request("POST", "/v1/vms/v1/restart", &format!("If-Match: {revision}\r\n"), "");
    assert_eq!(stale.status, 412);
    let remove = || {
        service.operator_request("DELETE", "/v1/scopes/default/default/s", "Idempotency-Key: gone\r\n", "")
    };
    let (first, again) = (remove(), remove());
    assert_eq!(
        (&first.json()["removed"], &again.json()["removed"]),
        (&200.into(), &200.into()),
        "all steps count"
    );
}

#[test]
fn pruning_keeps_vms_not_created_by_a_file() {
    let service = Service::start(&[]);
    service.apply_fleet("scopes:\n  - { name: web, kind: availability-set, vms: [ { name: a } ] }\n  - { name: x, kind: standalone, vms: [ { name: x } ] }\n");
    service.cli(&["vm", "add", "extra", "--scope", "web"]);
    let file = service.data().join("none.yaml");
    std::fs::write(&file, "scopes: []\n").unwrap();
    let stdout =
        service.cli(&["fleet", "apply", "--prune", "--yes", "--allow-empty", file.to_str().unwrap()]);
    assert_eq!(
        stdout,
        "default/default/web: 1 removed, 1 kept (not created by a file)\ndefault/default/x: removed\n2 scopes: 1 changed, 1 removed; VMs: 2 removed\n"
    );
    assert_eq!(service.cli_json(&["vm", "list"])[0]["path"], "default/default/web/extra");
}

#[test]
fn api_root_lists_the_routes() {
    let service = Service::start(&[]);
    let answer = service.operator_request("GET", "/v1", "", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    let index = answer.json();
    assert_eq!(index["openapi"], "/v1/openapi.json");
    let routes = index["routes"].as_array().unwrap();
    assert!(routes.iter().any(|route| route["method"] == "POST" && route["path"] == "/v1/events"), "{index}");
    assert_eq!(service.request_with("nb_wrong", "GET", "/v1", "", "").status, 401);
    let missing = service.operator_request("GET", "/v1/nothing", "", "");
    assert_eq!(missing.json()["detail"], "there is nothing at /v1/nothing; GET /v1 lists all routes");
}

#[test]
fn every_route_refuses_unknown_parameters() {
    let service = Service::start(&[]);
    let description = service.operator_request("GET", "/v1/openapi.json", "", "").json();
    let mut routes = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let known =
                parameters.filter(|one| one["in"] == "query").map(|one| one["name"].as_str().unwrap());
            let known = Some(known.collect::<Vec<_>>().join(", ")).filter(|known| !known.is_empty());
            let known = known.unwrap_or("none".to_owned());
            let answer =
                service.operator_request(&method.to_uppercase(), &format!("{path}?unknown=1"), "", "");
            assert_eq!(
                (answer.status, &answer.json()["code"]),
                (400, &"bad_query".into()),
                "{method} {path}"
            );
            let detail = format!("the query is not valid: unknown is unknown; known: {known}");
            assert_eq!(answer.json()["detail"], detail, "{method} {path}");
            routes += 1;
        }
    }
    assert!(routes > 30, "{routes}");
}

#[test]
fn similar_vm_is_suggested_only_if_visible() {
    let service = Service::start(&[]);
    service.cli(&["vm", "add", "web-0", "--scope", "acme/shop/web-0"]);
    service.cli(&["vm", "add", "web-1", "--scope", "other/shop/web-1"]);
    let made = service.cli_json(&["token", "create", "shop", "--role", "viewer", "--on", "acme"]);
    let secret = made["secret"].as_str().unwrap();
    let detail = |vm: &str| service.request_with(secret, "GET", &format!("/v1/vms/{vm}"), "", "").json();
    let suggested = detail("wbe-0");
    assert_eq!(suggested["candidates"], serde_json::json!(["web-0"]), "{suggested}");
    assert!(suggested["detail"].as_str().unwrap().ends_with("; did you mean web-0?"), "{suggested}");
    // What the caller must not see is neither suggested nor told from what does not exist.
    let hidden = detail("web-1");
    assert_eq!(hidden["detail"].as_str().unwrap().replace("web-1", "web-2"), detail("web-2")["detail"]);
}

#[test]
fn recreated_token_invalidates_old_one() {
    let mut service = Service::start(&[]);
    let token = service.data().join("operator.token");
    let old = std::fs::read_to_string(&token).unwrap();
    service.kill();
    std::fs::remove_file(&token).unwrap();
    let service = service.restart();
    assert_ne!(std::fs::read_to_string(&token).unwrap(), old);
    service.cli(&["vm", "list"]);
    std::fs::write(&token, old).unwrap();
    assert!(service.cli_refused(&["vm", "list"]).contains("token_refused"));
}

#[test]
fn bound_listener_serves_only_its_vm() {
    let service = Service::start(&["--guest-vm", "web-0=127.0.0.1:0"]);
    service.cli(&["vm", "add", "web-0", "--scope", "other/web-0"]);
    let ask = |service: &Service| {
        let request = "GET /metadata/instance/compute/resourceGroupName?api-version=2021-02-01&format=text HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n\r\n";
        support::exchange(Ipv4Addr::LOCALHOST.into(), service.guest_vms[0], request.as_bytes())
    };
    assert_eq!(ask(&service).body, "default");
    let service = service.restart();
    assert_eq!(ask(&service).body, "default", "also after a restart");
    service.cli(&["vm", "remove", "--yes", "default/web-0/web-0"]);
    assert_eq!(ask(&service).status, 403, "a VM's listener never identifies another VM");
}

#[test]
fn immediate_start_is_reported() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let stdout = service.cli(&["vm", "restart", "db"]);
    assert!(stdout.contains("started at once: no guest of the scope listens"), "{stdout}");
}

#[test]
fn networks_may_share_addresses() {
    let service = Service::start(&["--guest", "tenant-a=127.0.0.1:0"]);
    service.cli(&["vm", "add", "a", "--address", "tenant-a/127.1.30.1"]);
    service.cli(&["vm", "add", "b", "--address", "127.1.30.1"]);
    let answer = service.guest_request(
        Ipv4Addr::new(127, 1, 30, 1),
        "GET",
        "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
        "",
    );
    assert_eq!(answer.body, "a");
}

#[test]
fn path_that_is_not_utf8_answers_problem() {
    let service = Service::start(&[]);
    for target in ["/v1/vms/%ff", "/v1/scopes/a/%c3%28/c", "/v1/events/%e2%82", "/v1/hosts/%ff/maintain"] {
        let method = if target.ends_with("maintain") { "POST" } else { "GET" };
        let answer = service.operator_request(method, target, "", "");
        assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some("bad_path")), "{answer:?}");
        assert!(answer.head.contains("application/problem+json"), "{answer:?}");
    }
}
