//! The guest's side on Windows: `notbefore.exe`, run by Wine, against a service that runs on this machine.
//!
//! `./dev test windows` builds the program and says in `NOTBEFORE_WINDOWS_EXE` where it is. Wine is not Windows: what
//! these tests show is that the program starts there, speaks HTTP, starts children through `cmd`, keeps its files in
//! the places where Windows has them, and does as a service is told. `docs/guide/windows.md` says what nobody has tried.

mod agent;
mod machine;
mod wine;

use std::process::Command;

use crate::support::program::Program;
use crate::support::{Service, first_event};
use wine::{Windows, complaint, said};

/// A service with one VM, which calls from this machine, as strict as Azure is.
fn service(flags: &[&str]) -> Service {
    let service = Service::start(&[&["--strict"], flags].concat());
    service.apply_fleet(
        "scopes: [{ name: web-0, kind: standalone, vms: [{ name: web-0, addresses: [127.0.0.1] }] }]",
    );
    service
}

/// The command line on Windows, inside of the VM.
fn guest(service: &Service, words: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(words);
    command.args(["--endpoint", &format!("http://{}", service.guest)]);
    command
}

/// The command line on Windows, for a service elsewhere.
fn operator(service: &Service, words: &[&str]) -> Command {
    let mut command = Windows::get().notbefore(words);
    let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    command.env("NOTBEFORE_TOKEN", token.trim());
    command.env("NOTBEFORE_OPERATOR", format!("http://{}", service.operator));
    command
}

#[test]
fn a_guest_sees_an_event_and_approves_it() {
    let service = service(&["--simulated-duration", "1h"]);
    assert!(said(&mut guest(&service, &["get"])).contains("no event is announced"));
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
fn an_operator_at_a_windows_machine_announces_an_event() {
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
