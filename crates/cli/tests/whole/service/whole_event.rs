//! One event from schedule to completion, seen by guest and operator, on the first-run VM.

use std::net::Ipv4Addr;

use crate::support::{Service, first_event};

#[test]
fn event_is_read_approved_started_and_completed() {
    let service = Service::start(&["--simulated-duration", "1h"]);
    assert_eq!(
        service.poll(Ipv4Addr::LOCALHOST, "2020-07-01").body,
        "{\"DocumentIncarnation\":1,\"Events\":[]}"
    );

    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let stdout = service.cli(&["vm", "restart", &vm]);
    assert!(stdout.contains("not before") && stdout.contains("(in 15 min)"), "{stdout}");

    let seen = service.document();
    assert_eq!(seen["DocumentIncarnation"], 2);
    assert_eq!(seen["Events"][0]["EventStatus"], "Scheduled");
    assert_eq!(seen["Events"][0]["Resources"][0], vm.as_str());
    let id = first_event(&seen);

    let approved = service.approve(Ipv4Addr::LOCALHOST, &id);
    assert_eq!((approved.status, approved.body.as_str()), (200, ""));
    let started = service.document();
    assert_eq!(
        (&started["DocumentIncarnation"], &started["Events"][0]["NotBefore"]),
        (&3.into(), &"".into())
    );

    service.cli(&["event", "complete", &id]);
    assert_eq!(service.document(), serde_json::json!({ "DocumentIncarnation": 4, "Events": [] }));
    assert_eq!(service.approve(Ipv4Addr::LOCALHOST, &id).status, 200, "a late approval is no error");

    let shown = service.cli_json(&["event", "show", &id]);
    let facts: Vec<&str> =
        shown["trail"].as_array().unwrap().iter().map(|fact| fact["type"].as_str().unwrap()).collect();
    assert_eq!(facts, ["EventScheduled", "EventApproved", "EventStarted", "EventCompleted"]);
    assert_eq!(crate::support::actor(&shown["trail"][1]), format!("vm {vm} at 127.0.0.1"));
    assert_eq!(service.cli_json(&["event", "history"])[0]["id"], shown["id"]);
}
