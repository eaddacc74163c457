//! Unmodified Python packages from PyPI that retire work on Preempt, in a virtual environment that `./dev test`
//! creates.

use std::path::PathBuf;

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::program::{Program, source};

const VM: &str = "batch_0";

/// One Spot VM, with the namespace's address.
fn fleet() -> String {
    format!(
        "scopes: [{{ name: batch, kind: scale-set, vms: [{{ name: {VM}, spot: true, addresses: [{ADDRESS}] }}] }}]"
    )
}

/// The virtual environment's Python.
fn python() -> String {
    let python = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tests-python/bin/python3"));
    assert!(python.exists(), "{} is missing: './dev test clients' makes it", python.display());
    python.to_str().unwrap().to_owned()
}

fn start(service: &Service, program: &str) -> Program {
    service.apply_fleet(&fleet());
    let mut command = service.namespace.bounded(&python());
    command.arg(source(program)).env("PYTHONDONTWRITEBYTECODE", "1");
    Program::start(command)
}

/// The notice is scaled from 30 to 3 seconds, since the plugin never approves: it retires its worker after NotBefore or
/// when the event is Started.
#[test]
fn dask_worker_retires_on_preempt_and_new_worker_recovers() {
    let service = Service::start(&["--notice", "0.1"]);
    let mut dask = start(&service, "dask_preempt.py");
    dask.wait_for_line(&["working", "spot", "steady"]);

    let event = service.user_operation("evict", VM);
    let noticed = dask.wait_for_line(&["noticed"]);
    assert!(!noticed.contains("nothing"), "{noticed}");
    let retired = dask.wait_for_line(&["retired", "steady", "value", "precious"]);
    assert!(!retired.contains("spot"), "{retired}");
    service.complete(&event);
    assert_eq!(service.cli(&["vm", "show", VM])["state"], "deallocated");

    service.cli(&["vm", "start", VM]);
    dask.send_line("go on");
    dask.wait_for_line(&["recovered", "again", "steady", "answer", "42", "terminating", "False"]);
    dask.assert_success();
}

#[test]
fn jobq_retires_on_preempt_and_recovers() {
    let service = Service::start(&[]);
    let mut jobq = start(&service, "jobq_preempt.py");
    jobq.wait_for_line(&["working"]);

    let called_off = service.user_operation("evict", VM);
    jobq.wait_for_line(&["retired"]);
    service.cli(&["event", "cancel", &called_off]);
    jobq.wait_for_line(&["recovered"]);

    let carried_out = service.user_operation("evict", VM);
    jobq.wait_for_line(&["retired"]);
    service.cli(&["event", "approve", &carried_out]);
    service.complete(&carried_out);
    jobq.wait_for_line(&["recovered"]);
    jobq.assert_success();
    let facts: Vec<String> = service.trail(&carried_out).into_iter().map(|(fact, _)| fact).collect();
    assert_eq!(facts, ["EventScheduled", "EventApproved", "EventStarted", "EventCompleted"]);
}
