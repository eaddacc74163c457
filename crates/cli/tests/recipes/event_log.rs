//! Every event is written down, other VMs' included.

use serde_json::Value;

use super::ground::{Vm, lines};
use super::support::{Service, wait_for};

/// What was written: when in the event's life, whether it was called off, and for whom it was.
fn log(vm: &Vm) -> Vec<(String, String, bool)> {
    let read = |line: &String| -> Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let entry = |line: Value| {
        assert!(line["at"].as_str().unwrap().ends_with('Z'), "{line}");
        let (event, stage) = (&line["agent"]["event"], line["agent"]["stage"].as_str().unwrap());
        let whose = event["Resources"][0].as_str().unwrap().to_owned();
        (whose, stage.to_owned(), line["cancelled"].as_bool().unwrap())
    };
    lines(&vm.path("events.jsonl")).iter().map(read).map(entry).collect()
}

fn entry(whose: &str, stage: &str, cancelled: bool) -> (String, String, bool) {
    (whose.to_owned(), stage.to_owned(), cancelled)
}

#[test]
fn every_event_is_written_down_once_and_nothing_is_approved() {
    let service = Service::start(&["--strict", "--simulated-duration", "1h"]);
    service.apply_fleet(
        "scopes:
  - name: web
    kind: availability-set
    vms: [ { name: web-0, addresses: [127.0.0.1] }, { name: web-1, addresses: [127.0.0.2], update_domain: 1 } ]
",
    );
    let endpoint = service.guest;
    let mut vm = Vm::known_to(service, endpoint, "event-log");
    vm.start(&[("/var/log/notbefore-events.jsonl", &vm.text("events.jsonl"))]);

    let others = vm.announced(&["event", "schedule", "--type", "reboot", "web-1"]);
    wait_for("the first line", || (log(&vm) == [entry("web-1", "before", false)]).then_some(()));
    let mine = vm.announce("freeze");
    wait_for("the second line", || (log(&vm).get(1) == Some(&entry("web-0", "before", false))).then_some(()));
    assert!(!vm.draining());
    vm.restart_agent();

    vm.cancel(&others);
    wait_for("the third line", || (log(&vm).get(2) == Some(&entry("web-1", "after", true))).then_some(()));
    vm.service.cli(&["event", "start", &mine]);
    vm.complete(&mine);
    wait_for("the fourth line", || (log(&vm).get(3) == Some(&entry("web-0", "after", false))).then_some(()));
    for event in [&mine, &others] {
        assert!(vm.trail(event).iter().all(|(fact, _)| fact != "EventApproved"), "{:?}", vm.trail(event));
    }
    assert_eq!(log(&vm).len(), 4);
}

/// A hook that is run again, because nobody knows how far it came, adds nothing.
#[test]
fn a_line_is_not_written_twice() {
    let vm = Vm::new("event-log", &[]);
    let file = vm.text("events.jsonl");
    for stage in ["before", "before", "after"] {
        let mut command = vm.command("sh");
        command.args(["-c", r#"echo '{"x":1}' | "$0" "$1""#, &vm.text("lib/log-event"), &file]);
        command
            .env("NOTBEFORE_EVENT_ID", "A-1")
            .env("NOTBEFORE_STAGE", stage)
            .env("NOTBEFORE_CANCELLED", "false");
        assert!(command.status().unwrap().success());
    }
    assert_eq!(lines(&vm.path("events.jsonl")).len(), 2);
}
