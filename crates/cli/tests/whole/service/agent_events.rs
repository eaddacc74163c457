//! The agent through events of every type, with the service in strict mode: prepared, approved, undone, cancelled;
//! rebooted and killed; two at once.

use std::path::Path;

use crate::support::agent::AgentDir;
use crate::support::{Service, free_address, wait_for};
use serde_json::Value;

/// A service whose events stay Started until the test completes them.
fn service() -> Service {
    Service::start(&["--strict", "--simulated-duration", "1h"])
}

fn vm(service: &Service) -> String {
    service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned()
}

fn endpoint(service: &Service) -> String {
    format!("http://{}", service.guest)
}

/// Schedules an event; returns its id as guests read it.
fn announce(service: &Service, kind: &str, vm: &str) -> String {
    let made = service.cli_json(&["event", "schedule", "--type", kind, vm]);
    made["targets"][0]["event"].as_str().unwrap_or_else(|| panic!("no event in {made}")).to_uppercase()
}

/// A hook that waits for a file. It also ends with the test, since a killed agent does not stop its hooks.
fn wait_for_file(file: &Path) -> String {
    let (file, dir) = (file.display(), file.parent().unwrap().display());
    format!("; while [ -d {dir} ] && [ ! -e {file} ]; do sleep 0.05; done")
}

fn wait_for_status(service: &Service, event: &str, status: &str) {
    wait_for(&format!("{event} to be {status}"), || {
        (service.cli_json(&["event", "show", event])["status"] == status).then_some(())
    });
}

/// Facts of an event with their actors.
fn trail(service: &Service, event: &str) -> Vec<(String, String)> {
    crate::support::trail(&service.cli_json(&["event", "show", event]))
}

/// One rule for all events: two steps before, one after, all logged.
fn one_rule() -> String {
    let step = |list: &str, name: &str| format!("[[rule.{list}]]\n{}", AgentDir::traced(name, ""));
    format!(
        "[[rule]]\nname = \"all\"\n{}{}{}",
        step("before", "drain"),
        step("before", "stop"),
        step("after", "start")
    )
}

#[test]
fn every_event_type_is_prepared_approved_and_undone() {
    let service = service();
    let vm = vm(&service);
    let dir = AgentDir::new();
    dir.configure(Some(&endpoint(&service)), &one_rule());
    let _agent = dir.start("boot 1");
    let mut traced = 0;
    for kind in ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"] {
        let event = announce(&service, kind, &vm);
        wait_for_status(&service, &event, "Started");
        service.cli(&["event", "complete", &event]);
        traced += 3;
        let trace = dir.wait_for_trace(traced);
        let expected =
            [format!("before drain {kind}"), format!("before stop {kind}"), format!("after start {kind}")];
        assert_eq!(trace[traced - 3..], expected, "{}", dir.log());
        let by = format!("vm {vm} at 127.0.0.1");
        let trail = trail(&service, &event);
        assert!(trail.contains(&("EventApproved".into(), by.clone())), "{kind}: {trail:?}");
        assert!(trail.contains(&("EventStarted".into(), by)), "{kind}: {trail:?}");
    }
}

#[test]
fn cancelled_event_is_undone() {
    let service = service();
    let vm = vm(&service);
    let dir = AgentDir::new();
    // The second step does not end by itself: the cancellation must stop it.
    let hangs = format!("[[rule.before]]\n{}", AgentDir::traced("hang", "; exec sleep 600"));
    let start =
        "[[rule.after]]\nname = \"start\"\nshell = 'echo \"cancelled $NOTBEFORE_CANCELLED\" >> {trace}'\n";
    let rule =
        format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{}{hangs}{start}", AgentDir::traced("drain", ""));
    dir.configure(Some(&endpoint(&service)), &rule);
    let _agent = dir.start("boot 1");
    let event = announce(&service, "reboot", &vm);
    dir.wait_for_trace(2);
    service.cli(&["event", "cancel", &event]);
    assert_eq!(dir.wait_for_trace(3), ["before drain Reboot", "before hang Reboot", "cancelled true"]);
    assert!(trail(&service, &event).iter().all(|(fact, _)| fact != "EventApproved"));
}

#[test]
fn agent_killed_during_reboot_restores() {
    let service = service();
    let vm = vm(&service);
    let dir = AgentDir::new();
    dir.configure(Some(&endpoint(&service)), &one_rule());
    let agent = dir.start("boot 1");
    let event = announce(&service, "reboot", &vm);
    wait_for_status(&service, &event, "Started");
    wait_for("the approval in the journal", || {
        std::fs::read_to_string(dir.path("state/journal.json"))
            .is_ok_and(|text| text.contains("given"))
            .then_some(())
    });
    agent.kill();
    let _agent = dir.start("boot 2");
    wait_for("the agent to read how it is after the boot", || {
        let journal = std::fs::read(dir.path("state/journal.json")).unwrap();
        let journal: Value = serde_json::from_slice(&journal).unwrap();
        (journal["state"]["events"][0]["boot"] == "heard").then_some(())
    });
    assert_eq!(dir.trace().len(), 2, "no step runs again while the event is live");
    service.cli(&["event", "complete", &event]);
    assert_eq!(dir.wait_for_trace(3)[2], "after start Reboot");
}

#[test]
fn agent_killed_during_step_follows_on_interrupt() {
    for (on_interrupt, expected) in [
        (
            "rerun",
            vec!["before drain Freeze", "before slow Freeze", "before slow Freeze", "before stop Freeze"],
        ),
        ("skip", vec!["before drain Freeze", "before slow Freeze", "before stop Freeze"]),
    ] {
        let service = service();
        let vm = vm(&service);
        let dir = AgentDir::new();
        let go = dir.path("go");
        let wait = wait_for_file(&go);
        let slow = format!("{}on_interrupt = \"{on_interrupt}\"\n", AgentDir::traced("slow", &wait));
        let steps = [AgentDir::traced("drain", ""), slow, AgentDir::traced("stop", "")];
        let steps: String = steps.iter().map(|step| format!("[[rule.before]]\n{step}")).collect();
        dir.configure(Some(&endpoint(&service)), &format!("[[rule]]\nname = \"all\"\n{steps}"));
        let agent = dir.start("boot 1");
        let event = announce(&service, "freeze", &vm);
        dir.wait_for_trace(2);
        agent.kill();
        let _agent = dir.start("boot 1");
        wait_for("the agent to find the step", || {
            dir.log().contains("was running when the agent stopped").then_some(())
        });
        std::fs::write(&go, "").unwrap();
        wait_for_status(&service, &event, "Started");
        assert_eq!(dir.trace(), expected, "{on_interrupt}");
    }
}

#[test]
fn concurrent_events_are_approved_separately() {
    let service = service();
    let vm = vm(&service);
    let dir = AgentDir::new();
    let (go, after) = (dir.path("go"), format!("[[rule.after]]\n{}", AgentDir::traced("start", "")));
    let wait = wait_for_file(&go);
    let rule = |kind: &str, before: &str| {
        format!("[[rule]]\nname = \"{kind}\"\ntypes = [\"{kind}\"]\n[[rule.before]]\n{before}{after}")
    };
    let rules =
        rule("Reboot", &AgentDir::traced("slow", &wait)) + &rule("Freeze", &AgentDir::traced("quick", ""));
    dir.configure(Some(&endpoint(&service)), &rules);
    let _agent = dir.start("boot 1");
    let reboot = announce(&service, "reboot", &vm);
    dir.wait_for_trace(1);
    let freeze = announce(&service, "freeze", &vm);
    wait_for_status(&service, &freeze, "Started");
    assert_eq!(service.cli_json(&["event", "show", &reboot])["status"], "Scheduled", "its hook still runs");
    service.cli(&["event", "complete", &freeze]);
    wait_for("word that the VM stays out", || dir.log().contains("is restored after event").then_some(()));
    assert_eq!(dir.trace().len(), 2, "put back only when the reboot is over, too");
    std::fs::write(&go, "").unwrap();
    wait_for_status(&service, &reboot, "Started");
    service.cli(&["event", "complete", &reboot]);
    let trace = dir.wait_for_trace(4);
    assert_eq!(
        trace[2..],
        ["after start Freeze", "after start Reboot"],
        "what was taken out last comes back first"
    );
}

#[test]
fn endpoint_outage_does_not_end_event() {
    let data = tempfile::tempdir().unwrap();
    let guest = free_address().to_string();
    let flags = ["--simulated-duration", "1h", "--guest", &guest];
    let mut service = Service::start_in(data.path(), &flags);
    let vm = vm(&service);
    let dir = AgentDir::new();
    dir.configure(Some(&endpoint(&service)), &one_rule());
    let _agent = dir.start("boot 1");
    let event = announce(&service, "freeze", &vm);
    wait_for_status(&service, &event, "Started");
    service.kill();
    wait_for("the agent to notice", || dir.log().contains("the last document stays valid").then_some(()));
    let service = Service::start_in(data.path(), &flags);
    wait_for("the agent to be answered", || dir.log().contains("the platform answers again").then_some(()));
    assert_eq!(dir.trace().len(), 2, "{}", dir.log());
    service.cli(&["event", "complete", &event]);
    assert_eq!(dir.wait_for_trace(3)[2], "after start Freeze");
}
