//! Python clients after the documentation of 2017 (Python 2, with jython) and of 2020 (Python 3).

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::namespace::require_file;
use crate::support::program::{Program, source};

/// `python2_2017.py` lists the differences from the documented sample: mainly, it strips `_` from names, or it would
/// never find its own. Like the sample it never approves, so the operator starts the event after the client has seen
/// it.
#[test]
fn python2_2017() {
    require_file("/usr/bin/jython", "jython");
    let service = Service::start(&[]);
    let vm = service.first_run_vm();
    let mut jython = service.namespace.bounded("/usr/bin/jython");
    jython.arg(source("python2_2017.py"));
    let mut client = Program::start(jython);

    client.wait_for_line(&["1", "nothing"]);
    let event = service.user_operation("restart", &vm);
    let named = format!("_{vm}");
    let seen = client.wait_for_line(&["2", &event, "Scheduled", "Reboot", "VirtualMachine", &named]);
    // The documents of that version show ISO 8601, so there is no space to replace.
    assert!(seen.ends_with("Z]") && seen.contains('T') && !seen.contains(','), "{seen}");
    service.cli(&["event", "start", &event]);
    client.wait_for_line(&["3", &event, "Started", "Reboot", &named, "[]"]);
    service.complete(&event);
    client.wait_for_line(&["4", "nothing"]);
    client.assert_success();

    let trail = service.trail(&event);
    let facts: Vec<&str> = trail.iter().map(|(fact, _)| fact.as_str()).collect();
    assert_eq!(facts, ["EventScheduled", "EventStarted", "EventCompleted"], "{trail:?}");
    assert_eq!(trail[1].1, "token root");
}

/// `python3_2020.py` lists the differences from the documented sample: mainly, its indentation is valid, and it
/// approves.
#[test]
fn python3_2020() {
    require_file("/usr/bin/python3", "python3");
    let service = Service::start(&[]);
    let vm = service.first_run_vm();
    let mut python = service.namespace.bounded("/usr/bin/python3");
    python.arg(source("python3_2020.py"));
    let mut client = Program::start(python);

    client.wait_for_line(&["1", "nothing"]);
    let event = service.user_operation("restart", &vm);
    let description = "[Virtual_machine_is_going_to_be_restarted_as_requested_by_authorized_user.]";
    let seen =
        client.wait_for_line(&["2", &event, "Scheduled", "Reboot", "VirtualMachine", "User", description]);
    assert!(seen.ends_with("_GMT]"), "{seen}");
    client.wait_for_line(&["approved", &event, "200", "0", "bytes"]);
    client.wait_for_line(&["3", &event, "Started", "User", "[]"]);
    service.complete(&event);
    client.wait_for_line(&["4", "nothing"]);
    client.assert_success();
    service.assert_approved_by(&event, &vm, ADDRESS);
}
