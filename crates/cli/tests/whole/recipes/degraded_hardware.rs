//! Recipe degraded-hardware: a VM on failing hardware drains and requests its own redeploy.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::vm::{VM, Vm, lines, write_program};
use crate::support::administrator::administrator;
use crate::support::in_namespace::{ADDRESS, Service as InNamespace};
use crate::support::{PATIENCE, wait_for};

/// A VM with a tenant's token and no load balancers to wait for.
fn tenant(replaced: &[(&str, &str)]) -> Vm {
    let mut vm = Vm::new("degraded-hardware", &[]);
    let token = vm.service.cli_json(&["token", "create", "team", "--role", "tenant", "--on", "default"]);
    std::fs::write(vm.path("tenant.token"), token["secret"].as_str().unwrap()).unwrap();
    let (operator, token) = (format!("http://{}", vm.service.operator), vm.text("tenant.token"));
    let here = [("https://ops.example.com:9255", &*operator), ("/etc/notbefore/tenant.token", &*token)];
    vm.start(&[&here, replaced].concat());
    vm
}

/// Skip the wait for load balancers.
const NO_WAIT: (&str, &str) = ("wait = \"30s\"", "wait = \"1s\"");

/// Schedules a predicted failure of the VM's hardware, in a week.
fn predict(vm: &Vm) -> String {
    vm.announced(&["event", "schedule", "--cause", "predicted-failure", VM])
}

/// User redeploy events, live and ended.
fn redeploys(vm: &Vm) -> Vec<String> {
    let of = |args: &[&str]| vm.service.cli_json(args).as_array().unwrap().clone();
    let events = [of(&["event", "list"]), of(&["event", "history"])].concat();
    let redeploy = events.iter().filter(|event| event["cause"] == "user-redeploy");
    redeploy.map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn vm_drains_and_redeploys_and_platform_event_is_cancelled() {
    let mut vm = tenant(&[NO_WAIT]);
    let predicted = predict(&vm);
    wait_for("/drainz", || vm.draining().then_some(()));
    let redeploy = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    vm.wait_for_approval(&redeploy);
    wait_for("the end of the prediction", || (vm.status(&predicted) == "Cancelled").then_some(()));
    assert!(vm.draining(), "it is being redeployed");

    // After the boot on new hardware nothing is requested again.
    vm.reboot();
    assert!(vm.draining());
    vm.complete(&redeploy);
    vm.wait_until_restored();
    assert_eq!(redeploys(&vm), [redeploy]);
    let by = vm.service.cli_json(&["event", "show", &redeploys(&vm)[0]])["trail"][0]["by"].clone();
    assert_eq!(by, serde_json::json!({"kind": "token", "name": "team"}));
}

/// The platform cancels the event before the redeploy request, within half a minute.
#[test]
fn cancelled_prediction_is_restored() {
    let vm = tenant(&[]);
    let predicted = predict(&vm);
    wait_for("/drainz", || vm.draining().then_some(()));
    vm.cancel(&predicted);
    vm.wait_until_restored();
    vm.wait_for_log("the Redeploy is cancelled");
    assert_eq!((vm.started_steps("ask"), redeploys(&vm).len()), (0, 0));
}

/// An invalid token is reported; with a valid one the redeploy is requested. Intervals are shorter here than in the
/// recipe.
#[test]
fn failed_redeploy_request_is_reported_and_retried() {
    let (url, notifications) = administrator();
    let vm = tenant(&[
        NO_WAIT,
        (
            "#[notify]\n#url = \"https://hooks.example/vm-events\"\n#on",
            &format!("[notify]\nurl = \"{url}\"\non"),
        ),
        ("retries = 20\nretry_delay = \"1m\"", "retries = 1"),
        ("retry_delay = \"2h\"", "retry_delay = \"1s\""),
    ]);
    let secret = std::fs::read(vm.path("tenant.token")).unwrap();
    std::fs::write(vm.path("tenant.token"), "expired").unwrap();
    predict(&vm);
    let (_, notification) = notifications.recv_timeout(PATIENCE).unwrap();
    assert_eq!((&notification["what"], &notification["vm"]), (&Value::from("failed"), &Value::from(VM)));
    wait_for("it to ask on", || (vm.started_steps("ask-on") > 1).then_some(()));
    std::fs::write(vm.path("tenant.token"), secret).unwrap();
    let redeploy = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    vm.wait_for_approval(&redeploy);
}

/// The hook may be killed after its request: a retry for the same event is the same request (idempotency key).
#[test]
fn repeated_redeploy_request_is_idempotent() {
    let vm = tenant(&[NO_WAIT]);
    let predicted = predict(&vm);
    let redeploy = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    let mut again = vm.command(&vm.text("lib/ask-for-redeploy"));
    again.args(["notbefore", &format!("http://{}", vm.service.operator), &vm.text("tenant.token")]);
    let output =
        again.env("NOTBEFORE_EVENT_ID", predicted.to_uppercase()).env("NOTBEFORE_VM", VM).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(redeploys(&vm), [redeploy]);
}

/// Runs the hook as on Azure, in a namespace with a service, with a fake `az` that records its calls.
fn run_hook_on_azure(service: &InNamespace, vm: &str, dir: &Path) -> Output {
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/degraded-hardware/ask-for-redeploy");
    write_program(&dir.join("az"), "#!/bin/sh\necho \"$*\" >>\"$PLAYED\"\n");
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    let mut script = service.namespace.bounded(recipe);
    script.arg("azure").env("PATH", path).env("PLAYED", dir.join("played"));
    script.env("NOTBEFORE_MARKS", dir.join("marks"));
    script.env("NOTBEFORE_EVENT_ID", "A-1").env("NOTBEFORE_VM", vm).output().unwrap()
}

/// On Azure the request goes through `az` (fake here); the resource group comes from the instance metadata.
#[test]
fn on_azure_az_is_called_once() {
    let service = InNamespace::start(&[]);
    let vm = service.first_run_vm();
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = run_hook_on_azure(&service, &vm, dir.path());
        assert!(output.status.success(), "at {ADDRESS}: {output:?}");
    }
    let calls = lines(&dir.path().join("played"));
    let redeploy = format!("vm redeploy --resource-group default --name {vm} --no-wait");
    assert_eq!(calls, ["login --identity --output none".to_owned(), redeploy]);
}

/// `az vm redeploy` cannot find an instance of a uniform scale set, which has a number. An instance of a flexible scale
/// set is a normal VM.
#[test]
fn on_azure_uniform_scale_set_instance_is_refused() {
    let service = InNamespace::start(&[]);
    service.apply_fleet(
        "scopes:
  - { name: pool, kind: scale-set, vms: [ { name: pool_3, addresses: [169.254.169.254] } ] }
",
    );
    let dir = tempfile::tempdir().unwrap();
    let output = run_hook_on_azure(&service, "pool_3", dir.path());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("the uniform scale set pool"), "{output:?}");
    assert!(lines(&dir.path().join("played")).is_empty());
    let output = run_hook_on_azure(&service, "pool_a1b2c3d4", dir.path());
    assert!(output.status.success() && lines(&dir.path().join("played")).len() == 2, "{output:?}");
}
