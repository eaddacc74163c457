//! Orders to a running agent: signals, reload, dry run.

use std::process::Command;
use std::sync::mpsc;

use rustix::process::Signal;

use super::vm::{Vm, stderr_text, stdout_text, waits};
use crate::support::administrator::busy_administrator;
use crate::support::agent::AgentDir;
use crate::support::manager::Manager;
use crate::support::{PATIENCE, binary, processes_with, wait_for};

fn rule(name: &str, step: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\n[[rule.before]]\n{step}")
}

#[test]
fn stop_ends_steps_and_next_agent_resumes() {
    let vm = Vm::new();
    // A unique sleep duration identifies the hook's processes.
    let sleep = format!("sleep 5{}", std::process::id());
    let slow = AgentDir::traced("slow", &format!("; [ -e {{trace}}.go ] || {sleep}"));
    vm.configure(&rule("all", &slow));
    let agent = vm.start_ready();
    let event = vm.announce("freeze");
    vm.dir.wait_for_trace(1);
    wait_for("the hook to sleep", || (!processes_with(&sleep.replace(' ', "\0")).is_empty()).then_some(()));
    assert!(agent.terminate().success());
    assert_eq!(processes_with(&sleep.replace(' ', "\0")), [0_u32; 0], "nothing of the hook is left");
    assert_eq!(vm.shown(&event)["status"], "Scheduled");
    let status = String::from_utf8(vm.agent_cli(&["status"]).stdout).unwrap();
    assert!(status.contains("the agent is not running") && status.contains("preparing"), "{status}");
    vm.release_step();
    let _agent = vm.start();
    let first = wait_for("the agent to listen", || {
        std::net::TcpStream::connect(vm.signals).ok()?;
        Some(vm.get("/drainz"))
    });
    assert_eq!(first.status, 503, "its first word is that it drains still: {first:?}");
    vm.wait_for_status(&event, "Started");
    assert_eq!(vm.dir.trace(), ["before slow Freeze"; 2]);
}

#[test]
fn pending_notifications_are_sent_before_exit() {
    let vm = Vm::new();
    let (leave, waits_for) = mpsc::channel();
    let (url, notifications) = busy_administrator(waits_for);
    let notify = format!("[notify]\nurl = \"{url}\"\non = [\"appeared\", \"withheld\"]\n");
    vm.configure(&format!("{notify}{}", rule("all", &AgentDir::traced("fail", "; exit 3"))));
    let agent = vm.start_ready();
    vm.announce("reboot");
    let what = || notifications.recv_timeout(PATIENCE).unwrap().1["what"].clone();
    assert_eq!(what(), "appeared");
    vm.wait_for_log("the Reboot is not approved");
    let ending = std::thread::spawn(move || agent.terminate());
    vm.wait_for_log("stopping: running steps are stopped");
    drop(leave);
    assert_eq!(what(), "withheld");
    assert!(ending.join().unwrap().success());
    assert!(!vm.dir.log().contains("notification failed"), "{}", vm.dir.log());
}

#[test]
fn reload_applies_to_new_events_and_ignores_bad_file() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"old\"\ntypes = [\"Preempt\"]\n");
    let agent = vm.start_ready();
    // After a reload, an event without a rule gets a new matching rule.
    let event = vm.announce("freeze");
    vm.wait_for_log("Freeze of this VM");
    vm.configure(&rule("new", &AgentDir::traced("new", "")));
    agent.signal(Signal::HUP);
    vm.wait_for_status(&event, "Started");
    vm.complete(&event);

    vm.configure("[[rule]]\nname = \"bad\"\ntipes = [\"Freeze\"]\n");
    agent.signal(Signal::HUP);
    let refused = vm.wait_for_answer("/readyz", 503, "is not applied");
    assert!(refused.body.contains("is not applied: 1") && !refused.body.contains("tipes"), "{refused:?}");
    vm.wait_for_log("unknown key rule.tipes; did you mean rule.types?");
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
    assert_eq!(vm.dir.trace(), ["before new Freeze"; 2]);

    vm.configure(&rule("new", &AgentDir::traced("new", "")));
    agent.signal(Signal::HUP);
    vm.wait_for_answer("/readyz", 200, "ready");
}

#[test]
fn reload_retries_failed_step_with_new_configuration() {
    let vm = Vm::new();
    let rules = |before: &str, after: &str| {
        let before = AgentDir::traced("drain", before);
        let after = AgentDir::traced("start", after);
        // Other types have no rule and are only listed.
        let rule = "[[rule]]\nname = \"all\"\ntypes = [\"Freeze\"]\n";
        format!("{rule}[[rule.before]]\n{before}[[rule.after]]\n{after}")
    };
    vm.configure(&rules("; exit 3", "; exit 4"));
    let agent = vm.start_ready();
    let event = vm.announce("freeze");
    vm.wait_for_answer("/events", 200, "\"phase\":\"withheld\"");
    let status = stdout_text(&vm.agent_cli(&["status"]));
    assert!(status.contains("withheld") && status.contains("none: the step `drain` failed"), "{status}");
    vm.configure(&rules("; echo corrected >> {trace}", "; exit 4"));
    agent.signal(Signal::HUP);
    vm.wait_for_status(&event, "Started");
    vm.complete(&event);
    // The step after the event fails too, and its rule is corrected while no agent runs.
    vm.wait_for_answer("/drainz", 503, "stranded: Freeze");
    vm.wait_for_answer("/readyz", 503, "rule all, step start after has failed");
    vm.wait_for_answer("/metrics", 200, "notbefore_agent_stranded 1");
    let status = vm.agent_cli(&["status"]);
    assert_eq!(status.status.code(), Some(11), "{}", stderr_text(&status));
    assert!(stdout_text(&status).contains(": stranded, platform at"), "{}", stdout_text(&status));
    // The agent goes on polling.
    let other = vm.announce("reboot");
    vm.wait_for_answer("/events", 200, &other);
    vm.service.cli(&["event", "cancel", &other]);
    assert!(agent.terminate().success());
    vm.configure(&rules("", "; echo corrected >> {trace}; exit 5"));
    let agent = vm.start();
    vm.wait_for_log("exit code 5");
    vm.configure(&rules("", "; echo retried >> {trace}; exit 6"));
    let retried = vm.agent_cli(&["retry", &event]);
    assert_eq!(retried.status.code(), Some(11), "{}", stderr_text(&retried));
    assert!(stdout_text(&retried).contains("exit code 6"), "{}", stdout_text(&retried));
    let why = format!("this VM is not restored after event {event}: step start of rule all failed");
    assert!(stderr_text(&retried).contains(&why), "{}", stderr_text(&retried));
    vm.configure(&rules("", ""));
    agent.signal(Signal::HUP);
    vm.wait_for_answer("/drainz", 200, "in service");
    let (before, after) = ("before drain Freeze", "after start Freeze");
    assert_eq!(
        vm.dir.trace(),
        [before, before, "corrected", after, after, "corrected", after, "retried", after]
    );
}

#[test]
fn dry_run_logs_and_runs_nothing() {
    let vm = Vm::new();
    vm.configure(&rule("all", &AgentDir::traced("drain", "")));
    let mut command = Command::new(binary());
    command.env("NOTBEFORE_AGENT_DRY_RUN", "true");
    let _agent = vm.start_with(command);
    vm.wait_for_answer("/readyz", 200, "ready");
    let event = vm.announce("reboot");
    vm.wait_for_log("dry run: the Reboot is approved");
    vm.wait_for_answer("/drainz", 503, "draining");
    assert_eq!(vm.shown(&event)["status"], "Scheduled", "nothing was approved");
    assert!(vm.dir.trace().is_empty(), "nothing was run");
    assert!(!vm.dir.path("state").exists(), "nothing was written");
}

#[test]
fn second_agent_refuses_to_share_journal() {
    let vm = Vm::new();
    vm.configure(&rule("all", &AgentDir::traced("drain", "")));
    let _agent = vm.start_ready();
    let second = vm.agent_cli(&["run"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr_text(&second).contains("another agent holds"), "{}", stderr_text(&second));
}

#[test]
fn log_format_json_writes_objects() {
    let vm = Vm::new();
    vm.configure(&rule("all", &AgentDir::traced("drain", "")));
    let _agent = vm.start_json();
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
    vm.wait_for_log("has started");
    let log = vm.dir.log();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done = lines.iter().find(|line| line["message"] == "step drain before the Freeze is done").unwrap();
    assert_eq!(
        (&done["event"], &done["type"], &done["rule"], &done["step"], &done["level"]),
        (&event.as_str().into(), &"Freeze".into(), &"all".into(), &"drain".into(), &"INFO".into())
    );
}

#[test]
fn systemd_is_notified() {
    let vm = Vm::new();
    vm.configure(&rule("all", &waits()));
    let manager = Manager::new();
    let mut command = Command::new(binary());
    command.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "400000");
    let agent = vm.start_with(command);
    manager.wait_for("READY=1");
    manager.wait_for(&format!("STATUS={}: in service", vm.name));
    manager.wait_for("WATCHDOG=1");
    vm.announce("reboot");
    manager.wait_for(&format!("STATUS={}: draining: Reboot", vm.name));
    agent.signal(Signal::HUP);
    manager.wait_for("RELOADING=1");
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    assert!(agent.terminate().success());
    manager.wait_for("STOPPING=1");
}

#[test]
fn wrong_vm_clock_does_not_delay_preparation() {
    let vm = Vm::new();
    let line = "echo $NOTBEFORE_BUDGET >> {trace}; while [ ! -e {trace}.go ]; do sleep 0.05; done";
    vm.configure(&rule("all", &format!("shell = \"{line}\"\n")));
    let faketime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    assert!(std::path::Path::new(faketime).exists(), "install the Debian package libfaketime");
    let mut command = Command::new(binary());
    command.env("LD_PRELOAD", faketime).env("FAKETIME", "+3h").env("DONT_FAKE_MONOTONIC", "1");
    let _agent = vm.start_with(command);
    vm.wait_for_answer("/readyz", 200, "ready");
    let event = vm.announce("reboot");
    let budget: u64 = vm.dir.wait_for_trace(1)[0].parse().unwrap();
    // By the VM's wrong clock, NotBefore passed hours ago, and only the timeout of an hour would limit the hook.
    assert!((840..=900).contains(&budget), "of a quarter of an hour the hook was given {budget} s");
    vm.release_step();
    vm.wait_for_status(&event, "Started");
}
