//! Recipe event-log: every event is logged, including those of other VMs.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::vm::{Vm, lines, require_file};
use crate::support::{Service, wait_for};

/// Log entries: stage, whether cancelled, and the VMs.
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
fn every_event_is_logged_once_and_not_approved() {
    let service = Service::start(&["--strict", "--simulated-duration", "1h"]);
    service.apply_fleet(
        "scopes:
  - name: web
    kind: availability-set
    vms: [ { name: web-0, addresses: [127.0.0.1] }, { name: web-1, addresses: [127.0.0.2], update_domain: 1 } ]
",
    );
    let endpoint = service.guest;
    let mut vm = Vm::on_service(service, endpoint, "event-log");
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

/// Runs the hook for an event and stage, through a wrapper program.
fn written(vm: &Vm, event: &str, stage: &str, by: &[&str]) {
    let long = "x".repeat(20_000);
    let (hook, file) = (vm.text("lib/log-event"), vm.text("events.jsonl"));
    let mut command = vm.command(by[0]);
    command.args(&by[1..]).args([&hook, &file]);
    command
        .env("NOTBEFORE_EVENT_ID", event)
        .env("NOTBEFORE_STAGE", stage)
        .env("NOTBEFORE_CANCELLED", "false");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A hook that adds nothing need not read standard input.
    let _ = write!(child.stdin.take().unwrap(), "{{\"x\":\"{long}\"}}");
    assert!(child.wait().unwrap().success());
}

/// A repeated hook adds nothing, even for an unusual id. A partial line, left by a full disk, does not count as
/// written.
#[test]
fn log_line_is_written_once_and_complete() {
    let vm = Vm::new("event-log", &[]);
    let odd = r#"a"b\c d"#;
    written(&vm, odd, "before", &["env"]);
    let file = vm.path("events.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    for stage in ["before", "before", "after"] {
        written(&vm, odd, stage, &["env"]);
    }
    let written = lines(&file);
    let keys: Vec<Value> =
        written[1..].iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["key"].clone()).collect();
    assert_eq!(keys, [format!("{odd} before"), format!("{odd} after")]);
}

/// A single write is not interleaved with others.
#[test]
fn log_line_is_one_write() {
    require_file("/usr/bin/strace", "strace");
    let vm = Vm::new("event-log", &[]);
    let (calls, file) = (vm.text("calls"), vm.text("events.jsonl"));
    std::fs::write(&file, "").unwrap();
    written(&vm, "A-1", "before", &["strace", "-f", "-o", &calls, "-e", "trace=write", "-P", &file]);
    let writes = lines(&vm.path("calls")).into_iter().filter(|call| call.contains(" write("));
    assert_eq!((writes.count(), lines(&vm.path("events.jsonl")).len()), (1, 1));
}
