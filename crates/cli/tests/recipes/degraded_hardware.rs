//! A VM on failing hardware drains and asks for its own redeploy.

use serde_json::Value;

use super::ground::{VM, Vm, lines};
use super::service::{ADDRESS, Service as InNamespace};
use super::support::wait_for;

/// A VM with a tenant's token, whose platform expects its hardware to fail in a week.
fn failing(vm: &mut Vm) -> String {
    let token = vm.service.cli_json(&["token", "create", "team", "--role", "tenant", "--on", "default"]);
    std::fs::write(vm.path("tenant.token"), token["secret"].as_str().unwrap()).unwrap();
    let operator = format!("http://{}", vm.service.operator);
    vm.start(&[
        ("https://ops.example.com:9255", &operator),
        ("/etc/notbefore/tenant.token", &vm.text("tenant.token")),
        // Nobody wants to wait for load balancers that are not there.
        ("wait = \"30s\"", "wait = \"1s\""),
    ]);
    vm.announced(&["event", "schedule", "--cause", "predicted-failure", VM])
}

/// The events of users' redeploys, live ones and those that have ended.
fn redeploys(vm: &Vm) -> Vec<String> {
    let of = |words: &[&str]| vm.service.cli_json(words).as_array().unwrap().clone();
    let events = [of(&["event", "list"]), of(&["event", "history"])].concat();
    let asked = events.iter().filter(|event| event["cause"] == "user-redeploy");
    asked.map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn it_drains_asks_to_be_redeployed_and_the_platform_s_own_event_is_called_off() {
    let mut vm = Vm::new("degraded-hardware", &[]);
    let predicted = failing(&mut vm);
    wait_for("/drainz", || vm.draining().then_some(()));
    let asked = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    vm.approved(&asked);
    wait_for("the end of the prediction", || (vm.status(&predicted) == "Cancelled").then_some(()));
    assert!(vm.draining(), "it is being redeployed");

    // The new hardware boots; nothing is asked for twice.
    vm.reboot();
    assert!(vm.draining());
    vm.complete(&asked);
    vm.back_in_service();
    assert_eq!(redeploys(&vm), [asked]);
    let by = vm.service.cli_json(&["event", "show", &redeploys(&vm)[0]])["trail"][0]["by"].clone();
    assert_eq!(by, Value::from("token team"));
}

#[test]
fn a_prediction_that_is_taken_back_is_undone() {
    let mut vm = Vm::new("degraded-hardware", &[]);
    let predicted = failing(&mut vm);
    wait_for("/drainz", || vm.draining().then_some(()));
    let asked = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    vm.approved(&asked);
    vm.complete(&asked);
    wait_for("the end of the prediction", || (vm.status(&predicted) == "Cancelled").then_some(()));
    vm.back_in_service();

    // The next time the platform changes its mind before anybody is asked.
    let predicted = vm.announced(&["event", "schedule", "--cause", "predicted-failure", VM]);
    vm.cancel(&predicted);
    vm.back_in_service();
    assert_eq!(redeploys(&vm), [asked]);
}

/// The hook may be killed after it has asked: asking again with the same event is the same request.
#[test]
fn asking_twice_is_asking_once() {
    let mut vm = Vm::new("degraded-hardware", &[]);
    let predicted = failing(&mut vm);
    let asked = wait_for("the redeploy that it asks for", || redeploys(&vm).pop());
    let mut again = vm.command(&vm.text("lib/ask-for-redeploy"));
    again.args(["notbefore", &format!("http://{}", vm.service.operator), &vm.text("tenant.token")]);
    let said =
        again.env("NOTBEFORE_EVENT_ID", predicted.to_uppercase()).env("NOTBEFORE_VM", VM).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(redeploys(&vm), [asked]);
}

/// On Azure it asks through `az`, which is played; the resource group comes from the instance metadata.
#[test]
fn on_azure_it_asks_az_once() {
    let service = InNamespace::start(&[]);
    let vm = service.first_run_vm();
    let dir = tempfile::tempdir().unwrap();
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/degraded-hardware/ask-for-redeploy");
    let az = "#!/bin/sh\necho \"$*\" >>\"$PLAYED\"\n";
    super::ground::write_program(&dir.path().join("az"), az);
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    for _ in 0..2 {
        let mut script = service.namespace.bounded(recipe);
        script.arg("azure").env("PATH", &path).env("PLAYED", dir.path().join("played"));
        script.env("NOTBEFORE_MARKS", dir.path().join("marks"));
        let said = script.env("NOTBEFORE_EVENT_ID", "A-1").env("NOTBEFORE_VM", &vm).output().unwrap();
        assert!(said.status.success(), "at {ADDRESS}: {said:?}");
    }
    let told = lines(&dir.path().join("played"));
    let redeploy = format!("vm redeploy --resource-group default --name {vm} --no-wait");
    assert_eq!(told, ["login --identity --output none".to_owned(), redeploy]);
}
