//! Faults of the guest listener by command line, and what operators see of them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::support::{Service, connect, wait_for};
use serde_json::json;

const VM: Ipv4Addr = Ipv4Addr::new(127, 1, 61, 1);
const BATCH: Ipv4Addr = Ipv4Addr::new(127, 1, 61, 3);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 1, 61, 2);
const NEWEST: &str = "2020-07-01";
const FLEET: &str = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n      - { name: web-0, addresses: [127.1.61.1] }\n      - { name: web-1, addresses: [127.1.61.2] }\n";

#[test]
fn faults_affect_polls_until_they_end() {
    let service = Service::start_with(&[("NOTBEFORE_LOG", "info")], &["--faults", "--driver", "manual"]);
    service.apply_fleet(FLEET);
    let readyz = || service.operator_request("GET", "/readyz", "", "").body;
    assert_eq!((service.poll(VM, NEWEST).status, &*readyz()), (200, "ready\n"));

    let added =
        service.cli_json(&["fault", "add", "status", "--status", "500", "--vm", "web-0", "--count", "2"]);
    assert_eq!(
        (&added["id"], &added["vm"], &added["effects"]),
        (&json!(1), &json!("default/default/web/web-0"), &json!(0))
    );
    assert!(readyz().contains("1 fault of the guest listener is active"), "{}", readyz());
    assert_eq!(service.cli_json(&["status"])["service"]["faults"], 1);
    assert_eq!([VM, VM, VM].map(|vm| service.poll(vm, NEWEST).status), [500, 500, 200]);
    assert_eq!(service.poll(OTHER, NEWEST).status, 200);
    let metrics = service.operator_request("GET", "/metrics", "", "").body;
    assert!(metrics.contains("notbefore_guest_faults_total{kind=\"status\"} 2"), "{metrics}");

    // A document with another incarnation, whose tag is the shown one.
    service.cli(&["event", "schedule", "--type", "reboot", "web-0", "--in", "1h"]);
    let before = service.poll(VM, NEWEST).json();
    let hidden = service.cli_json(&["fault", "add", "hide-events", "--for", "1h"]);
    let during = service.poll(VM, NEWEST).json();
    assert_eq!(during["Events"], json!([]));
    let cleared = service.cli_json(&["fault", "clear", &hidden["id"].to_string()]);
    assert_eq!(cleared, json!({"cleared": 1}));
    let after = service.poll(VM, NEWEST).json();
    assert_eq!(after["Events"], before["Events"]);
    let incarnation = |document: &serde_json::Value| document["DocumentIncarnation"].as_u64().unwrap();
    assert_eq!(incarnation(&during), incarnation(&before) + 1);
    assert_eq!(incarnation(&after), incarnation(&before) + 2);
    assert_eq!((service.cli_json(&["fault", "list"]), &*readyz()), (json!([]), "ready\n"));
    assert!(service.log().contains("fault added"), "{}", service.log());
}

#[test]
fn fault_of_a_vm_leaves_long_polls_of_others() {
    let service = Service::start_with(&[], &["--faults", "--driver", "manual"]);
    service.apply_fleet(FLEET);
    let incarnation = service.poll(VM, NEWEST).json()["DocumentIncarnation"].clone();
    let hold = |vm: Ipv4Addr| {
        let mut stream = connect(vm.into(), service.guest).unwrap();
        let poll = format!(
            "GET /metadata/scheduledevents?api-version={NEWEST} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\
             If-None-Match: {incarnation}\r\nPrefer: wait=60\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(poll.as_bytes()).unwrap();
        stream
    };
    let status = |mut stream: TcpStream| {
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response[9..12].to_owned()
    };
    let (own, other) = (hold(VM), hold(OTHER));
    wait_for("both polls to be held", || {
        let metrics = service.operator_request("GET", "/metrics", "", "").body;
        metrics.contains("notbefore_guest_polls_waiting 2\n").then_some(())
    });
    service.cli(&["fault", "add", "status", "--status", "500", "--vm", "web-0"]);
    assert_eq!(status(own), "304");
    // The other poll is answered by a change only.
    service.cli(&["event", "schedule", "--type", "reboot", "web-0", "--in", "1h"]);
    assert_eq!(status(other), "200");
}

#[test]
fn scope_is_not_enabled_until_its_next_poll() {
    let service = Service::start_with(&[], &["--faults", "--driver", "manual"]);
    service.apply_fleet(FLEET);
    service.apply_fleet(
        "scopes:\n  - name: batch\n    kind: availability-set\n    vms:\n      - { name: batch-0, addresses: [127.1.61.3] }\n",
    );
    let restart = |vm: &str| {
        let operation = service.cli_json(&["event", "schedule", "--cause", "user-restart", vm]);
        let events = service.cli_json(&["event", "list"]);
        let all = events.as_array().unwrap().iter();
        let own = all.clone().find(|event| event["operation"] == operation["id"]).unwrap();
        service.cli(&[
            "event",
            if own["status"] == "Started" { "complete" } else { "cancel" },
            own["id"].as_str().unwrap(),
        ]);
        own["status"].as_str().unwrap().to_owned()
    };
    for vm in [VM, BATCH] {
        assert_eq!(service.poll(vm, NEWEST).status, 200);
    }
    assert_eq!((&*restart("web-0"), &*restart("batch-0")), ("Scheduled", "Scheduled"));
    service.cli(&["fault", "add", "not-enabled", "--vm", "web-0"]);
    assert_eq!((&*restart("web-1"), &*restart("web-0")), ("Started", "Started"), "until a poll");
    assert_eq!(restart("batch-0"), "Scheduled", "another scope");
    // The poll is answered as always and enables the scope, although polls are reported once a minute.
    assert_eq!(service.poll(VM, NEWEST).status, 200);
    assert_eq!(restart("web-0"), "Scheduled");
    assert_eq!(service.cli_json(&["fault", "list"])[0]["effects"], 1);
    service.cli(&["fault", "add", "not-enabled"]);
    assert_eq!((&*restart("web-0"), &*restart("batch-0")), ("Started", "Started"), "all scopes");
}

#[test]
fn faults_need_a_service_that_allows_them() {
    let service = Service::start(&[]);
    let refused = service.operator_request("POST", "/v1/faults", "", r#"{"kind":"reset"}"#);
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("faults_off")));
}
