//! Operator sample: a script that restarts a VM and waits for it.

use std::net::Ipv4Addr;
use std::process::Command;

use super::samples::{bounded, example};
use crate::support::program::Program;
use crate::support::{Service, first_event, wait_for};

/// The script, configured with a token file only.
fn script(service: &Service, token: &str, words: &[&str]) -> Command {
    let file = service.data().join("a.token");
    std::fs::write(&file, token).unwrap();
    let mut command = bounded(example("operator/restart-vm.sh"));
    command.args(words).env("NOTBEFORE_OPERATOR", format!("http://{}", service.operator));
    command.env("NOTBEFORE_TOKEN_FILE", file).env("no_proxy", "127.0.0.1");
    command
}

fn tenant(service: &Service) -> String {
    let made = service.cli_json(&["token", "create", "team", "--role", "tenant", "--on", "default"]);
    made["secret"].as_str().unwrap().to_owned()
}

#[test]
fn tenant_restarts_and_redeploys_vm_and_waits() {
    let service = Service::start(&["--strict", "--simulated-duration", "1h"]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let token = tenant(&service);
    for (verb, cause) in [("restart", "user-restart"), ("redeploy", "user-redeploy")] {
        let mut script = Program::start(script(&service, &token, &[verb, &vm]));
        let said = script.says(&[cause, "of", &format!("{vm},"), "not", "before"]);
        let event = first_event(&service.document());
        assert!(said.to_uppercase().contains(&event), "{said}");
        service.approve(Ipv4Addr::LOCALHOST, &event);
        service.cli(&["event", "complete", &event]);
        script.says(&["done"]);
        script.ends_well();
    }
}

#[test]
fn cancelled_operation_is_reported() {
    let service = Service::start(&[]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let script = Program::start(script(&service, &tenant(&service), &["restart", &vm]));
    let operation = wait_for("the operation", || {
        let listed = service.cli_json(&["operation", "list"]);
        listed[0]["id"].as_str().map(str::to_owned)
    });
    service.cli(&["operation", "cancel", &operation]);
    assert!(script.fails().contains("called off"));
}

#[test]
fn refusal_is_not_retried() {
    let service = Service::start(&[]);
    let complaint = Program::start(script(&service, &tenant(&service), &["restart", "nobody"])).fails();
    assert!(complaint.contains("\"status\":404"), "{complaint}");
    let complaint = Program::start(script(&service, "guessed", &["restart", "nobody"])).fails();
    assert!(complaint.contains("\"status\":401"), "{complaint}");
    assert!(!complaint.contains("guessed"), "the token is printed: {complaint}");
}

/// A token revoked during the wait ends the script.
#[test]
fn refusal_ends_wait() {
    let service = Service::start(&["--simulated-duration", "1h"]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let mut script = Program::start(script(&service, &tenant(&service), &["restart", &vm]));
    script.says(&["user-restart"]);
    service.cli(&["token", "revoke", "team"]);
    let complaint = script.fails();
    assert!(complaint.contains("\"status\":401"), "{complaint}");
}

#[test]
fn incomplete_command_shows_usage() {
    let service = Service::start(&[]);
    for words in [&[][..], &["restart"], &["explode", "vm"], &["restart", "vm", "now"]] {
        let complaint = Program::start(script(&service, "any", words)).fails();
        assert_eq!(complaint.trim(), "restart-vm.sh restart|redeploy VM", "{words:?}");
    }
}
