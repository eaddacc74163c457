//! The agent's HTTP signals.

use std::collections::BTreeSet;
use std::process::Command;

use super::vm::{Vm, free_address, waits};
use crate::support::agent::AgentDir;
use crate::support::{Service, binary, described, exchange, wait_for};

fn rules() -> String {
    format!(
        "[[rule]]\nname = \"all\"\n[[rule.before]]\n{}[[rule.after]]\n{}",
        waits(),
        AgentDir::traced("back", "")
    )
}

#[test]
fn signals_and_metrics_follow_event() {
    let vm = Vm::new();
    vm.configure(&rules());
    let _agent = vm.start_ready();
    assert_eq!(vm.get("/drainz").body, "in service\n");
    let event = vm.announce("reboot");
    let draining = vm.wait_for_answer("/drainz", 503, "draining: Reboot");
    assert!(draining.body.contains(&event) && draining.head.contains("no-store"), "{draining:?}");
    vm.dir.wait_for_trace(1);
    let events = vm.get("/events").json();
    assert_eq!((&events["vm"], &events["draining"]), (&vm.name.as_str().into(), &true.into()));
    let shown = &events["events"][0];
    assert_eq!(
        (&shown["phase"], &shown["step"], &shown["rule"]),
        (&"preparing".into(), &"slow".into(), &"all".into())
    );
    let status = String::from_utf8(vm.agent_cli(&["status"]).stdout).unwrap();
    assert!(
        status.contains("draining") && status.contains(&event) && status.contains("preparing"),
        "{status}"
    );

    let waiting = vm.get("/metrics").body;
    let name = "notbefore_agent_next_not_before_seconds{} ";
    let left = waiting.lines().find_map(|line| line.strip_prefix(name)).expect("an event waits");
    assert!((800.0..=901.0).contains(&left.parse::<f64>().unwrap()), "{left}");

    vm.release_step();
    vm.wait_for_status(&event, "Started");
    assert_eq!(vm.get("/drainz").status, 503, "it drains until the VM is back");
    vm.complete(&event);
    vm.wait_for_answer("/drainz", 200, "in service");
    let metrics = vm.get("/metrics").body;
    for line in [
        "notbefore_agent_events_seen_total{type=\"Reboot\",mine=\"true\"} 1",
        "notbefore_agent_steps_total{rule=\"all\",stage=\"before\",outcome=\"done\"} 1",
        "notbefore_agent_steps_total{rule=\"all\",stage=\"after\",outcome=\"done\"} 1",
        "notbefore_agent_facts_total{what=\"approved\"} 1",
        "notbefore_agent_facts_total{what=\"withheld\"} 0",
        "notbefore_agent_step_seconds_count 2",
        "notbefore_agent_approvals_total{outcome=\"accepted\"} 1",
        "notbefore_agent_draining 0",
        "notbefore_agent_events_handled 0",
        "notbefore_agent_journal_failures_total 0",
        concat!("notbefore_agent_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    assert!(metrics.contains("notbefore_agent_polls_total{result=\"document\"}"), "{metrics}");
    assert!(!metrics.contains(name), "no event waits: {metrics}");
    // Some metrics are there only while an event waits, others only after a step.
    let pages = described(&waiting) + &described(&metrics);
    let lines: BTreeSet<&str> = pages.split_inclusive('\n').collect();
    assert_eq!(String::from_iter(lines), include_str!("../../../fixtures/metrics/agent.txt"));
}

#[test]
fn odd_requests_are_answered() {
    let vm = Vm::new();
    vm.configure(&rules());
    let _agent = vm.start_ready();
    assert_eq!(vm.get("/healthz").body, "alive\n");
    let nowhere = vm.get("/metadata");
    assert!(nowhere.status == 404 && nowhere.body.contains("/drainz"), "{nowhere:?}");
    let local = std::net::Ipv4Addr::LOCALHOST.into();
    let send = |bytes: &[u8]| exchange(local, vm.signals, bytes).status;
    assert_eq!(
        send(b"POST /drainz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        405
    );
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(send(long.as_bytes()), 431);
    assert_eq!(send(b"\x16\x03\x01 what is this\r\n\r\n"), 400);
    // A web page calls with its own host name, even if DNS points to this address (DNS rebinding).
    for (host, expected) in
        [("127.0.0.1", 200), ("[::1]:9256", 200), ("localhost", 200), ("evil.example", 421)]
    {
        let request = format!("GET /drainz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(send(request.as_bytes()), expected, "{host}");
    }
}

#[test]
fn endpoint_of_a_rehearsal_is_read_from_the_environment() {
    let service = Service::start(&["--simulated-duration", "1h"]);
    let dir = AgentDir::new();
    let endpoint = format!("http://{}", service.guest);
    for (setting, variable, found) in [
        (None, endpoint.as_str(), format!("endpoint={endpoint} by=NOTBEFORE_ENDPOINT")),
        // No listener has port 1.
        (Some(endpoint.as_str()), "http://127.0.0.1:1", format!("endpoint={endpoint} by=\"as set\"")),
    ] {
        dir.configure(setting, "[[rule]]\nname = \"all\"\n");
        let mut command = Command::new(binary());
        command.env("NOTBEFORE_ENDPOINT", variable).env("NO_COLOR", "1");
        let _agent = dir.start_with(command, "boot-1");
        wait_for(&found, || dir.log().contains(&found).then_some(()));
    }
}

#[test]
fn missing_endpoint_is_searched_until_found() {
    let guest = free_address();
    let flags = ["--strict", "--simulated-duration", "1h", "--guest", &guest.to_string()];
    let service = Service::start(&flags);
    let mut vm = Vm::with(service);
    vm.configure(&rules());
    vm.service.kill();
    let _agent = vm.start();
    vm.wait_for_answer("/readyz", 503, "the platform has not answered yet");
    assert_eq!(vm.get("/healthz").status, 200);
    let Vm { service, name, dir, signals } = vm;
    let mut vm = Vm { service: service.restart(), name, dir, signals };
    vm.wait_for_answer("/readyz", 200, "ready");
    // An endpoint that stops and restarts loses no event.
    let event = vm.announce("freeze");
    vm.dir.wait_for_trace(1);
    vm.service.kill();
    vm.wait_for_log("the last document stays valid");
    vm.release_step();
    vm.wait_for_log("could not be approved");
    let Vm { service, name, dir, signals } = vm;
    let vm = Vm { service: service.restart(), name, dir, signals };
    vm.wait_for_status(&event, "Started");
    vm.complete(&event);
    assert_eq!(vm.dir.wait_for_trace(2), ["before slow Freeze", "after back Freeze"]);
}
