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
    dask.says(&["working", "spot", "steady"]);

    let event = service.user_asks("evict", VM);
    let noticed = dask.says(&["noticed"]);
    assert!(!noticed.contains("nothing"), "{noticed}");
    let retired = dask.says(&["retired", "steady", "value", "precious"]);
    assert!(!retired.contains("spot"), "{retired}");
    service.complete(&event);
    assert_eq!(service.cli(&["vm", "show", VM])["state"], "deallocated");

    service.cli(&["vm", "start", VM]);
    dask.tell("go on");
    dask.says(&["recovered", "again", "steady", "answer", "42", "terminating", "False"]);
    dask.ends_well();
}

#[test]
fn jobq_retires_on_preempt_and_recovers() {
    let service = Service::start(&[]);
    let mut jobq = start(&service, "jobq_preempt.py");
    jobq.says(&["working"]);

    let called_off = service.user_asks("evict", VM);
    jobq.says(&["retired"]);
    service.cli(&["event", "cancel", &called_off]);
    jobq.says(&["recovered"]);

    let carried_out = service.user_asks("evict", VM);
    jobq.says(&["retired"]);
    service.cli(&["event", "approve", &carried_out]);
    service.complete(&carried_out);
    jobq.says(&["recovered"]);
    jobq.ends_well();
    let facts: Vec<String> = service.trail(&carried_out).into_iter().map(|(fact, _)| fact).collect();
    assert_eq!(facts, ["EventScheduled", "EventApproved", "EventStarted", "EventCompleted"]);
}
