//! A host's events start or wait together, and a given time is kept.

use std::net::Ipv4Addr;

use crate::support::{Service, first_event, wait_for};
use serde_json::{Value, json};

/// Two hosts, each with a VM in both sets; the VMs of a set are in different update domains.
const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.1.30.1], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.1.30.2], host: h2 }
  - name: db
    kind: availability-set
    vms:
      - { name: db-0, update_domain: 0, addresses: [127.1.30.3], host: h1 }
      - { name: db-1, update_domain: 1, addresses: [127.1.30.4], host: h2 }
";

fn guest(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 30, n)
}

fn maintain(service: &Service, host: &str) -> Value {
    service.cli_json(&["host", "maintain", host, "--type", "reboot", "--yes"])[0].clone()
}

fn operation(service: &Service, made: &Value) -> Value {
    service.cli_json(&["operation", "show", made["id"].as_str().unwrap()])
}

fn statuses(operation: &Value) -> Vec<&str> {
    operation["targets"].as_array().unwrap().iter().map(|part| part["status"].as_str().unwrap()).collect()
}

fn approve_all(service: &Service, operation: &Value) {
    for part in operation["targets"].as_array().unwrap() {
        service.cli(&["event", "approve", part["event"].as_str().unwrap()]);
    }
}

#[test]
fn host_waits_while_another_update_domain_is_started() {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    // Only the database's set is busy; the web server's part must wait too.
    let busy = service.cli_json(&["event", "schedule", "--cause", "host-failure", "db-1"]);
    let made = maintain(&service, "h1");
    assert_eq!(made["host_start"], "waiting");
    approve_all(&service, &made);
    let shown = operation(&service, &made);
    assert_eq!(statuses(&shown), ["Scheduled", "Scheduled"]);
    let waits_for = shown["waits_for"].as_str().unwrap();
    assert!(waits_for.contains("update domain 1 of default/default/db"), "{waits_for}");
    assert!(service.operator_request("GET", "/metrics", "", "").body.contains("host_operations_waiting 1"));
    let part = shown["targets"][0]["event"].as_str().unwrap();
    let refused = service.cli_refused(&["event", "start", part]);
    assert!(refused.contains("operation start"), "{refused}");
    let id = made["id"].as_str().unwrap();
    let start = service.operator_request("POST", &format!("/v1/operations/{id}/start"), "", "");
    assert_eq!((start.status, &start.json()["code"]), (409, &json!("update_domain_busy")), "{start:?}");

    // With the manual driver, all parts become ready when the set is free, and none starts automatically.
    service.cli(&["event", "complete", busy["targets"][0]["event"].as_str().unwrap()]);
    let ready = wait_for("the operation to be ready", || {
        Some(operation(&service, &made)).filter(|shown| shown["host_start"] == "ready")
    });
    assert_eq!(statuses(&ready), ["Scheduled", "Scheduled"]);
    let started = service.cli_json(&["operation", "start", id]);
    assert_eq!(statuses(&started[0]), ["Started", "Started"], "{started}");
    assert_eq!(started[0]["targets"][0]["started_because"], "approved");
    let late = service.cli_refused(&["operation", "cancel", id, "--yes"]);
    assert!(late.contains("has started"), "{late}");
    let completed = service.cli_json(&["operation", "complete", id]);
    assert_eq!(statuses(&completed[0]), ["Completed", "Completed"], "{completed}");
    assert_eq!(completed[0]["completed"], true);
    // The record follows its scopes.
    wait_for("the operation to close", || (operation(&service, &made)["state"] == "closed").then_some(()));
    for verb in ["complete", "start"] {
        let again = service.cli_refused(&["operation", verb, id]);
        assert!(again.contains("is closed: completed"), "{again}");
    }
}

#[test]
fn operation_show_lists_pending_parts_only() {
    const TO_COME: [&str; 3] = ["  not before ", "  release ", "  start "];
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    let text = |id: &str| service.cli(&["operation", "show", id]);
    let (ended, cancelled) = (maintain(&service, "h1"), maintain(&service, "h2"));
    let [ended, cancelled] = [&ended, &cancelled].map(|made| made["id"].as_str().unwrap());
    for id in [ended, cancelled] {
        let shown = text(id);
        assert!(TO_COME.iter().all(|line| shown.contains(line)), "{shown}");
    }
    service.cli(&["operation", "cancel", cancelled, "--yes"]);
    service.cli(&["operation", "start", ended]);
    service.cli(&["operation", "complete", ended]);
    for (id, state) in [(ended, " completed "), (cancelled, " cancelled ")] {
        let shown = text(id);
        assert!(!TO_COME.iter().any(|line| shown.contains(line)), "{shown}");
        assert_eq!(shown.matches(state).count(), 2, "one for each part: {shown}");
    }
}

#[test]
fn hosts_run_in_given_order() {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    let args = ["host", "maintain", "h2", "h1", "h2", "--type", "reboot"];
    let shown = service.cli(&[&args[..], &["--dry-run"]].concat());
    assert!(shown.contains("h1 waits for h2"), "{shown}");
    let made = service.cli_json(&[&args[..], &["--yes"]].concat());
    let hosts: Vec<&str> = made.as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["h2", "h1"], "each once");
}

#[test]
fn later_host_waits_for_earlier_one_in_every_scope() {
    let service = Service::start(&["--simulated-duration", "1h"]);
    service.apply_fleet(FLEET);
    let (first, second) = (maintain(&service, "h1"), maintain(&service, "h2"));
    // The later operation is approved first, in each scope, so it starts first.
    approve_all(&service, &second);
    wait_for("the second host to start", || {
        (statuses(&operation(&service, &second)) == ["Started", "Started"]).then_some(())
    });
    approve_all(&service, &first);
    let waiting = operation(&service, &first);
    assert_eq!(statuses(&waiting), ["Scheduled", "Scheduled"]);
    // When one of the scopes is free the other is not, so nothing starts.
    let parts: Vec<&str> =
        second["targets"].as_array().unwrap().iter().map(|part| part["event"].as_str().unwrap()).collect();
    service.cli(&["event", "complete", parts[0]]);
    assert_eq!(statuses(&operation(&service, &first)), ["Scheduled", "Scheduled"]);
    let service = service.restart();
    assert_eq!(statuses(&operation(&service, &first)), ["Scheduled", "Scheduled"], "also after a restart");
    service.cli(&["event", "complete", parts[1]]);
    wait_for("the first host to start", || {
        (statuses(&operation(&service, &first)) == ["Started", "Started"]).then_some(())
    });
}

#[test]
fn plan_of_several_hosts_shows_waits_and_affected_vms() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let body = json!({"hosts": ["h1", "h2"], "verb": "maintain", "action": {"type": "reboot"}}).to_string();
    let plan = service.operator_request("POST", "/v1/hosts/plan", "", &body).json();
    assert_eq!(plan["hosts"].as_array().unwrap().len(), 2, "{plan}");
    let waits = json!([{"host": "h2", "waits_for": ["h1"],
        "scopes": ["default/default/db", "default/default/web"]}]);
    assert_eq!(plan["waits"], waits);
    let web = json!({"scope": "default/default/web", "vms": 2, "hit": 2, "at_once": 1, "hosts": 2});
    assert_eq!(plan["scopes"][1], web);
    let shown = service.cli(&["host", "maintain", "h1", "h2", "--type", "reboot", "--dry-run"]);
    assert!(shown.contains("h2 waits for h1"), "{shown}");
    for (body, code) in [
        (json!({"hosts": [], "verb": "maintain"}), "bad_hosts"),
        (json!({"hosts": ["h1", "h1"], "verb": "failed"}), "bad_hosts"),
        (json!({"hosts": ["h9"], "verb": "failed"}), "unknown_host"),
        (json!({"hosts": ["h1"], "verb": "paint"}), "unknown_verb"),
    ] {
        let refused = service.operator_request("POST", "/v1/hosts/plan", "", &body.to_string());
        assert_eq!(refused.json()["code"], code, "{refused:?}");
    }
    assert_eq!(service.cli_json(&["event", "list"]), json!([]), "nothing is announced");
}

/// Redeploys start separately, so two hosts with VMs in one update domain are affected at once, although one also has
/// VMs in another.
#[test]
fn redeploy_plan_counts_update_domains_of_all_hosts() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes: [{ name: x, kind: availability-set, vms: [{ name: a0, host: a }, { name: a1, host: a }, { name: b0, host: b }, { name: b1, host: b }, { name: b2, update_domain: 1, host: b }] }]",
    );
    for (maintenance, at_once, waits) in [("redeploy", 4, 0), ("reboot", 3, 1)] {
        let body = json!({"hosts": ["a", "b"], "verb": "maintain", "action": {"type": maintenance}});
        let plan = service.operator_request("POST", "/v1/hosts/plan", "", &body.to_string()).json();
        assert_eq!(plan["scopes"][0]["at_once"], at_once, "{maintenance}: {plan}");
        assert_eq!(plan["waits"].as_array().unwrap().len(), waits, "{maintenance}: {plan}");
    }
}

#[test]
fn if_match_is_refused_without_revision() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let made = maintain(&service, "h1");
    let id = made["id"].as_str().unwrap();
    for path in [format!("/v1/operations/{id}/start"), format!("/v1/operations/{id}/cancel")] {
        let refused = service.operator_request("POST", &path, "If-Match: \"999999\"\r\n", "");
        assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("no_revision")), "{refused:?}");
    }
    assert_eq!(operation(&service, &made)["host_start"], "waiting");
}

#[test]
fn operation_of_several_update_domains_cannot_be_started_at_once() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let made = service.cli_json(&["event", "schedule", "--type", "reboot", "web-0", "web-1"]);
    let refused = service.cli_refused(&["operation", "start", made["id"].as_str().unwrap()]);
    assert!(refused.contains("starts_apart") && refused.contains("event start"), "{refused}");
}

#[test]
fn given_time_is_kept_without_polling_guests() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes: [{ name: solo, kind: standalone, vms: [{ name: solo, addresses: [127.1.30.9] }] }]",
    );
    let made = service.cli_json(&["vm", "restart", "solo", "--in", "2h"]);
    assert_eq!((&made["time_given"], &made["targets"][0]["status"]), (&json!(true), &json!("Scheduled")));
    let event = first_event(&service.poll(guest(9), "2020-07-01").json());
    // A time nearer than the notice is refused, with what happens if it is left out.
    let near = service.cli_refused(&["vm", "redeploy", "solo", "--in", "1m"]);
    assert!(near.contains("earliest"), "{near}");
    assert_eq!(service.approve(guest(9), &event).status, 200);
    assert_eq!(
        service.cli_json(&["event", "show", &event])["status"],
        "Started",
        "an approval still starts it"
    );

    service.cli(&["vm", "add", "quiet"]);
    let near = service.cli_refused(&["vm", "restart", "quiet", "--in", "1m"]);
    assert!(near.contains("omit the time to run it now (no guest of the scope listens)"), "{near}");
    let at_once = service.cli_json(&["vm", "restart", "quiet"]);
    assert_eq!(at_once["targets"][0]["status"], "Started", "{at_once}");
    assert_eq!(at_once["not_before"], json!(null), "what has started is not announced for later");
}

#[test]
fn poll_before_restart_keeps_notice() {
    let mut service = Service::start(&[]);
    service.apply_fleet(FLEET);
    assert_eq!(service.poll(guest(1), "2020-07-01").status, 200);
    assert!(service.terminate().success());
    let service = service.restart();
    let made = service.cli_json(&["vm", "restart", "web-0"]);
    assert_eq!(made["targets"][0]["status"], "Scheduled", "{made}");
}

#[test]
fn part_states_are_current() {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    let part = |operation: &Value| {
        let shown = service.cli_json(&["operation", "show", operation["id"].as_str().unwrap()]);
        let part = &shown["targets"][0];
        (part["state"].as_str().unwrap().to_owned(), part["status"].as_str().unwrap().to_owned())
    };
    let pair = |state: &str, status: &str| (state.to_owned(), status.to_owned());
    let forced = service.cli_json(&["event", "schedule", "--type", "redeploy", "web-0"]);
    let event = forced["targets"][0]["event"].as_str().unwrap().to_owned();
    assert_eq!(part(&forced), pair("waiting", "Scheduled"), "not approved");
    service.cli(&["event", "start", &event]);
    assert_eq!(part(&forced), pair("started", "Started"));
    assert_eq!(service.cli_json(&["event", "show", &event])["approved"], false);
    service.cli(&["event", "complete", &event]);
    assert_eq!(part(&forced), pair("completed", "Completed"));
    let cancelled = service.cli_json(&["event", "schedule", "--type", "freeze", "web-1"]);
    service.cli(&["event", "cancel", cancelled["targets"][0]["event"].as_str().unwrap()]);
    assert_eq!(part(&cancelled), pair("cancelled", "Cancelled"));
    let service = service.restart();
    let shown = service.cli_json(&["operation", "show", cancelled["id"].as_str().unwrap()]);
    assert_eq!(shown["targets"][0]["status"], "Cancelled", "the record says so too");
}
