//! Operator sample: a script that restarts a VM and waits for it.

use std::net::Ipv4Addr;
use std::process::Command;

use super::samples::{bounded, example};
use crate::support::program::Program;
use crate::support::{Service, first_event, wait_for};

/// The script, configured with a token file only.
fn script(service: &Service, token: &str, args: &[&str]) -> Command {
    let file = service.data().join("a.token");
    std::fs::write(&file, token).unwrap();
    let mut command = bounded(example("operator/restart-vm.sh"));
    command.args(args).env("NOTBEFORE_OPERATOR", format!("http://{}", service.operator));
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
        let line = script.wait_for_line(&[cause, "of", &format!("{vm},"), "not", "before"]);
        let event = first_event(&service.document());
        assert!(line.to_uppercase().contains(&event), "{line}");
        service.approve(Ipv4Addr::LOCALHOST, &event);
        service.cli(&["event", "complete", &event]);
        script.wait_for_line(&["done"]);
        script.assert_success();
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
    assert!(script.fails().contains("the operation was cancelled"));
}

#[test]
fn refusal_is_not_retried() {
    let service = Service::start(&[]);
    let stderr = Program::start(script(&service, &tenant(&service), &["restart", "nobody"])).fails();
    assert!(stderr.contains("\"status\":404"), "{stderr}");
    let stderr = Program::start(script(&service, "guessed", &["restart", "nobody"])).fails();
    assert!(stderr.contains("\"status\":401"), "{stderr}");
    assert!(!stderr.contains("guessed"), "the token is printed: {stderr}");
}

/// A token revoked during the wait ends the script.
#[test]
fn refusal_ends_wait() {
    let service = Service::start(&["--simulated-duration", "1h"]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let mut script = Program::start(script(&service, &tenant(&service), &["restart", &vm]));
    script.wait_for_line(&["user-restart"]);
    service.cli(&["token", "revoke", "team"]);
    let stderr = script.fails();
    assert!(stderr.contains("\"status\":401"), "{stderr}");
}

#[test]
fn incomplete_command_shows_usage() {
    let service = Service::start(&[]);
    for args in [&[][..], &["restart"], &["explode", "vm"], &["restart", "vm", "now"]] {
        let stderr = Program::start(script(&service, "any", args)).fails();
        assert_eq!(stderr.trim(), "restart-vm.sh restart|redeploy VM", "{args:?}");
    }
}
