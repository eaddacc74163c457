//! Advisories of api-version 2024-07-09: a hint that nothing follows, or a Preempt.

use std::net::Ipv4Addr;

use crate::support::{Service, first_event};

const A: Ipv4Addr = Ipv4Addr::new(127, 1, 70, 1);
const SPOT: &str =
    "scopes:\n  - { name: a, kind: standalone, vms: [ { name: a, spot: true, addresses: [127.1.70.1] } ] }\n";
const NEW: &str = "2024-07-09";
const OLD: &str = "2020-07-01";
const NOT_SERVED: &str = "{ \"error\": \"Not found. Invalid version requested\" }";

#[test]
fn advisory_is_shown_at_the_newest_version_and_replaced_by_a_preempt() {
    let service = Service::start(&[]);
    service.apply_fleet(SPOT);
    service.cli(&["event", "schedule", "--cause", "rebalance", "a"]);
    let document = service.poll(A, NEW).json();
    let event = &document["Events"][0];
    assert_eq!(document["DocumentIncarnation"], 2);
    assert_eq!(
        [&event["EventStatus"], &event["EventType"], &event["NotBefore"], &event["EventSource"]],
        ["Advisory", "SpotRebalanceRecommendation", "", "Platform"]
    );
    assert_eq!(event["DurationInSeconds"], -1);
    assert_eq!(service.poll(A, OLD).body, "{\"DocumentIncarnation\":2,\"Events\":[]}");

    // An approval is accepted and changes nothing.
    let id = first_event(&document);
    assert_eq!(service.approve(A, &id).status, 200);
    assert_eq!(service.poll(A, NEW).json(), document);
    let shown = service.cli_json(&["event", "show", &id]);
    assert_eq!((&shown["status"], &shown["approved"]), (&"Advisory".into(), &false.into()));
    assert!(shown["not_before"].is_null(), "{shown}");
    assert_eq!(service.cli_json(&["event", "list", "--status", "advisory"])[0]["id"], shown["id"]);
    let status = service.cli_json(&["status"]);
    assert_eq!((&status["events"]["advisory"], &status["events"]["scheduled"]), (&1.into(), &0.into()));

    // The document that shows the Preempt no longer shows the advisory.
    service.cli(&["vm", "evict", "a"]);
    let evicted = service.poll(A, NEW).json();
    assert_eq!(evicted["DocumentIncarnation"], 3);
    let types: Vec<_> = evicted["Events"].as_array().unwrap().iter().map(|one| &one["EventType"]).collect();
    assert_eq!(types, ["Preempt"]);
    assert_eq!(service.cli_json(&["event", "show", &id])["status"], "Cancelled");
}

#[test]
fn date_of_an_advisory_is_shown_and_cancelling_ends_it() {
    let service = Service::start(&[]);
    service.apply_fleet(SPOT);
    service.cli(&["event", "schedule", "--cause", "rebalance", "--in", "0s", "a"]);
    let document = service.poll(A, NEW).json();
    assert!(document["Events"][0]["NotBefore"].as_str().unwrap().ends_with(" GMT"), "{document}");
    let id = first_event(&document);
    service.cli(&["event", "cancel", "--yes", &id]);
    assert_eq!(service.poll(A, NEW).body, "{\"DocumentIncarnation\":3,\"Events\":[]}");
}

#[test]
fn newest_version_can_be_turned_off() {
    let service = Service::start(&["--newest-version", OLD]);
    service.apply_fleet(SPOT);
    service.cli(&["event", "schedule", "--cause", "rebalance", "a"]);
    let probe = service.poll(A, NEW);
    assert_eq!((probe.status, probe.body.as_str()), (404, NOT_SERVED));
    assert_eq!(service.poll(A, "2024-7-9").status, 400);
    // The incarnation counts changes that no guest of this service can see.
    assert_eq!(service.poll(A, OLD).body, "{\"DocumentIncarnation\":2,\"Events\":[]}");
}
