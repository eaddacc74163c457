//! The program on Windows: `notbefore.exe`, run by Wine, against a service on this machine.
//!
//! `./dev test windows` builds the program and sets `NOTBEFORE_WINDOWS_EXE`. Wine is not Windows. These tests show that
//! the program starts, speaks HTTP, starts children through `cmd`, uses Windows paths, and works as a service.
//! `docs/guide/windows.md` lists what is untested.

mod agent;
mod machine;
mod wine;

use std::process::Command;

use crate::support::program::Program;
use crate::support::{Service, first_event};
use wine::{Windows, complaint, said};

/// A strict service with one VM, whose address is this machine's.
fn service(flags: &[&str]) -> Service {
    let service = Service::start(&[&["--strict"], flags].concat());
    service.apply_fleet(
        "scopes: [{ name: web-0, kind: standalone, vms: [{ name: web-0, addresses: [127.0.0.1] }] }]",
    );
    service
}

/// The command line on Windows, inside the VM.
fn guest(service: &Service, words: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(words);
    command.args(["--endpoint", &format!("http://{}", service.guest)]);
    command
}

/// The command line on Windows, for a remote service.
fn operator(service: &Service, words: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(words);
    let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    command.env("NOTBEFORE_TOKEN", token.trim());
    command.env("NOTBEFORE_OPERATOR", format!("http://{}", service.operator));
    command
}

#[test]
fn guest_reads_and_approves_event() {
    let service = service(&["--simulated-duration", "1h"]);
    assert!(said(&mut guest(&service, &["get"])).contains("no scheduled or started events"));
    service.cli(&["vm", "restart", "web-0"]);
    let event = first_event(&service.document());
    // With a name that is set, no change is told again because the metadata took its time to say one.
    let watch = ["get", "--watch", "--count", "2", "--name", "web-0"];
    let mut watching = Program::start(guest(&service, &watch));
    watching.says(&["appeared"]);
    let table = said(&mut guest(&service, &["get"]));
    for cell in [event.as_str(), "Reboot", "Scheduled", "yes", "web-0"] {
        assert!(table.contains(cell), "{cell}: {table}");
    }
    assert!(said(&mut guest(&service, &["approve", "--all-mine"])).contains("approved"));
    assert_eq!(service.document()["Events"][0]["EventStatus"], "Started");
    // Once more is no error: an approval may be repeated.
    said(&mut guest(&service, &["approve", &event]));
    watching.says(&["started"]);
    watching.ends_well();
}

#[test]
fn operator_on_windows_schedules_event() {
    let service = service(&[]);
    assert!(said(&mut operator(&service, &["vm", "list"])).contains("web-0"));
    said(&mut operator(&service, &["vm", "restart", "web-0"]));
    assert_eq!(service.document()["Events"][0]["EventType"], "Reboot");
}

#[test]
fn linux_only_commands_are_refused() {
    for words in [["serve", "--notice", "0.01"], ["import", "--check", "backup.jsonl"]] {
        let output = Windows::get().notbefore(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
        assert!(complaint(&output).contains("on Linux only"), "{}", complaint(&output));
    }
}
