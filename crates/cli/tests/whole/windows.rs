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
use wine::{Windows, stderr_text, stdout_text};

/// A strict service with one VM, whose address is this machine's.
fn service(flags: &[&str]) -> Service {
    let service = Service::start(&[&["--strict"], flags].concat());
    service.apply_fleet(
        "scopes: [{ name: web-0, kind: standalone, vms: [{ name: web-0, addresses: [127.0.0.1] }] }]",
    );
    service
}

/// The command line on Windows, inside the VM.
fn guest(service: &Service, args: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(args);
    command.args(["--endpoint", &format!("http://{}", service.guest)]);
    command
}

/// The command line on Windows, for a remote service.
fn operator(service: &Service, args: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(args);
    let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    command.env("NOTBEFORE_TOKEN", token.trim());
    command.env("NOTBEFORE_OPERATOR", format!("http://{}", service.operator));
    command
}

#[test]
fn guest_reads_and_approves_event() {
    let service = service(&["--simulated-duration", "1h"]);
    assert!(stdout_text(&mut guest(&service, &["get"])).contains("no scheduled or started events"));
    service.cli(&["vm", "restart", "web-0"]);
    let event = first_event(&service.document());
    // With --name, no change is printed again when the metadata is slow.
    let watch = ["get", "--watch", "--count", "2", "--name", "web-0"];
    let mut watching = Program::start(guest(&service, &watch));
    watching.wait_for_line(&["appeared"]);
    let table = stdout_text(&mut guest(&service, &["get"]));
    for cell in [event.as_str(), "Reboot", "Scheduled", "yes", "web-0"] {
        assert!(table.contains(cell), "{cell}: {table}");
    }
    assert!(stdout_text(&mut guest(&service, &["approve", "--all-mine"])).contains("approved"));
    assert_eq!(service.document()["Events"][0]["EventStatus"], "Started");
    // A repeated approval is not an error.
    stdout_text(&mut guest(&service, &["approve", &event]));
    watching.wait_for_line(&["started"]);
    watching.assert_success();
}

#[test]
fn operator_on_windows_schedules_event() {
    let service = service(&[]);
    assert!(stdout_text(&mut operator(&service, &["vm", "list"])).contains("web-0"));
    stdout_text(&mut operator(&service, &["vm", "restart", "web-0"]));
    assert_eq!(service.document()["Events"][0]["EventType"], "Reboot");
}

#[test]
fn linux_only_commands_are_refused() {
    for args in [["serve", "--notice", "0.01"], ["import", "--check", "backup.jsonl"]] {
        let output = Windows::get().notbefore(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("on Linux only"), "{}", stderr_text(&output));
    }
}
