//! `check --run`: runs a rule's steps for real, and restores the VM whatever their outcome.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::vm::{Vm, free_address, stderr_text, stdout_text, waits};
use crate::support::agent::AgentDir;
use crate::support::{Service, binary};

/// A step after the event that logs whether the event is cancelled.
fn restore_step(name: &str) -> String {
    format!("[[rule.after]]\n{}", AgentDir::traced(name, "; echo cancelled $NOTBEFORE_CANCELLED >> {trace}"))
}

fn before(step: &str) -> String {
    format!("[[rule.before]]\n{step}")
}

const RULE: &str = "[[rule]]\nname = \"all\"\ntypes = [\"Redeploy\"]\n";

#[test]
fn rehearsal_runs_steps_after_confirmation() {
    let vm = Vm::new();
    let drain = before(&AgentDir::traced("drain", "; echo output of the hook"));
    vm.configure(&format!("{RULE}{drain}{}", restore_step("back")));
    let asked = vm.agent_cli(&["check", "--run", "all"]);
    assert!(stderr_text(&asked).contains("nothing was run"), "{}", stderr_text(&asked));
    assert!(vm.dir.trace().is_empty());
    let output = vm.agent_cli(&["check", "--run", "all", "--yes"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(stdout_text(&output).contains("before drain: done in "), "{}", stdout_text(&output));
    assert!(stderr_text(&output).contains("output of the hook"), "{}", stderr_text(&output));
    assert_eq!(vm.dir.trace(), ["before drain Redeploy", "after back Redeploy", "cancelled false"]);
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--type", "preempt", "--stage", "after"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(vm.dir.trace()[3], "after back Preempt");
    let unknown = vm.agent_cli(&["check", "--run", "nothing", "--yes"]);
    assert!(stderr_text(&unknown).contains("no rule \"nothing\"; rules: all"), "{}", stderr_text(&unknown));
}

#[test]
fn failed_step_restores_vm() {
    let vm = Vm::new();
    let steps =
        [AgentDir::traced("drain", ""), AgentDir::traced("fails", "; exit 7"), AgentDir::traced("never", "")];
    let steps: String = steps.iter().map(|step| before(step)).collect();
    let after = |then: &str| {
        format!("[[rule.after]]\n{}{then}", AgentDir::traced("first", "; exit 3")) + &restore_step("back")
    };
    vm.configure(&format!("{RULE}{steps}{}", after("on_failure = \"go-on\"\n")));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr_text(&output);
    assert!(stderr.contains("notbefore: before fails: exit code 7; after first: exit code 3\n"), "{stderr}");
    assert!(stdout_text(&output).contains("before never: not run\n"), "{}", stdout_text(&output));
    let put_back =
        ["before drain Redeploy", "before fails Redeploy", "after first Redeploy", "after back Redeploy"];
    assert_eq!(vm.dir.trace()[..4], put_back);
    assert_eq!(vm.dir.trace()[4..], ["cancelled true"]);

    // A step that is required leaves the VM as it is; the error names the command for the other steps.
    vm.configure(&format!("{RULE}{}", after("")));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr_text(&output);
    assert!(stderr.contains("after first: exit code 3; the VM is not restored"), "{stderr}");
    assert!(stdout_text(&output).contains("after back: not run\n"), "{}", stdout_text(&output));
    vm.configure(&format!("{RULE}{steps}{}", after("")));

    // With `--stage before` the error names the command that undoes the steps.
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--stage", "before", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_text(&output).contains("--run all --stage after'"), "{}", stderr_text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outcomes: Vec<&str> =
        report["steps"].as_array().unwrap().iter().filter_map(|step| step["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["done", "failed", "not_run"], "{report}");
}

/// As in the agent: a wait that uses up the available time succeeds.
#[test]
fn wait_cut_short_by_notice_succeeds() {
    let vm = Vm::new();
    // The next step reserves almost all of a Preempt's thirty seconds.
    let drain = format!("{}keep = \"29s\"\n", AgentDir::traced("drain", ""));
    let steps = before("name = \"settle\"\nwait = \"5m\"\n") + &before(&drain);
    vm.configure(&format!("[[rule]]\nname = \"all\"\n{steps}{}", restore_step("back")));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--type", "preempt"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(stdout_text(&output).contains("before settle: done: cut to "), "{}", stdout_text(&output));
    assert_eq!(vm.dir.trace(), ["before drain Preempt", "after back Preempt", "cancelled false"]);
}

#[test]
fn interrupted_rehearsal_restores_vm() {
    let vm = Vm::new();
    // Killed after a while even if the interruption is ignored.
    vm.configure(&format!("{RULE}{}timeout = \"15s\"\n{}", before(&waits()), restore_step("back")));
    let config = vm.dir.path("agent.toml");
    let mut command = Command::new(binary());
    command.args(["agent", "check", "--run", "all", "--yes", "--config"]).arg(config);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    vm.dir.wait_for_trace(1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(stderr_text(&output).contains("before slow: stopped after "), "{}", stderr_text(&output));
    assert_eq!(vm.dir.trace(), ["before slow Redeploy", "after back Redeploy", "cancelled true"]);
}

#[test]
fn dry_run_runs_nothing() {
    let vm = Vm::new();
    let rules = format!("{RULE}{}{}", before(&AgentDir::traced("drain", "")), restore_step("back"));
    vm.configure(&rules);
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--dry-run"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(stderr_text(&output).contains("before  drain: "), "{}", stderr_text(&output));
    // The flag was not given, so a script must not assume that the steps ran.
    vm.configure(&format!("dry_run = true\n{rules}"));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_text(&output).contains("nothing was run"), "{}", stderr_text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["dry_run"], &report["steps"][1]["outcome"]), (&true.into(), &"not_run".into()));
    assert!(vm.dir.trace().is_empty());
    let mut once = vm.agent_command(&["check", "--run", "all", "--yes"]);
    assert!(once.env("NOTBEFORE_AGENT_DRY_RUN", "false").status().unwrap().success());
    assert_eq!(vm.dir.trace().len(), 3);
}

#[test]
fn rehearsal_uses_name_from_platform() {
    let service = Service::start(&["--guest-vm", "web-0=127.0.0.1:0"]);
    let vm = Vm::with(service);
    let named = before(&AgentDir::traced("drain", "; echo $NOTBEFORE_VM >> {trace}"));
    vm.dir.configure(Some(&format!("http://{}", vm.service.guest_vms[0])), &format!("{RULE}{named}"));
    for (args, name) in [(&[][..], "web-0"), (&["--name", "db-1"], "db-1")] {
        let output = vm.agent_cli(&[&["check", "--run", "all", "--yes"], args].concat());
        assert!(output.status.success(), "{}", stderr_text(&output));
        assert_eq!(vm.dir.trace().last().unwrap(), name);
    }
    // Without a name from the platform, the host name is used.
    let host = std::process::Command::new("uname").arg("-n").output().unwrap();
    vm.dir.configure(Some(&format!("http://{}", free_address())), &format!("{RULE}{named}"));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes"]);
    assert!(stderr_text(&output).contains("cannot determine this VM's name"), "{}", stderr_text(&output));
    let output = vm.agent_cli(&["check", "--run", "all", "--yes", "--offline"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(vm.dir.trace().last().unwrap(), stdout_text(&host).trim().split('.').next().unwrap());
}

/// `agent run` and `agent check --run` share one state machine. A change to it fails this test, and the tests of each
/// command: `every_event_type_is_prepared_approved_and_undone` in `agent_events.rs` for `run`, and
/// `failed_step_restores_vm` above for `check --run`. Verified with mutations: a machine that skips a step
/// (`Progress::next` adds two), one that approves before the steps are run (`prepare` is `ready` at once), and one that
/// does not undo (`lapse` finishes).
#[test]
fn run_and_check_run_behave_alike() {
    let facts = "; echo $NOTBEFORE_EVENT_STATUS $NOTBEFORE_ATTEMPT $NOTBEFORE_CANCELLED >> {trace}";
    let fails = format!("{facts}; exit 3");
    let step =
        |list: &str, name: &str, then: &str| format!("[[rule.{list}]]\n{}", AgentDir::traced(name, then));
    let optional = format!("{}on_failure = \"go-on\"\n", step("before", "optional", &fails));
    let prepares = format!("{}{optional}{}", step("before", "drain", facts), step("before", "stop", facts));
    let withholds = format!("{}{}", step("before", "fails", &fails), step("before", "never", facts));
    let undoes = format!("{}{}", step("after", "start", facts), step("after", "back", facts));
    let goes_well = ["before drain", "before optional", "before stop", "after start", "after back"];
    let is_cancelled = ["before fails", "after start", "after back"];
    for (before, steps) in [(prepares, &goes_well[..]), (withholds, &is_cancelled)] {
        let well = steps.len() == goes_well.len();
        let expected: Vec<String> = steps
            .iter()
            .flat_map(|step| {
                let status = if well && step.starts_with("after") { "Started" } else { "Scheduled" };
                let cancelled = !well && step.starts_with("after");
                [format!("{step} Freeze"), format!("{status} 1 {cancelled}")]
            })
            .collect();
        let rules = format!("[[rule]]\nname = \"all\"\n{before}{undoes}");

        let vm = Vm::new();
        vm.configure(&rules);
        let _agent = vm.start_ready();
        let event = vm.announce("freeze");
        match well {
            true => {
                vm.wait_for_status(&event, "Started");
                vm.wait_for_log("the Freeze has started");
                vm.complete(&event);
            }
            false => {
                vm.wait_for_answer("/drainz", 503, "(withheld");
                vm.service.cli(&["event", "cancel", &event]);
            }
        }
        vm.wait_for_answer("/drainz", 200, "in service");
        let by_run = vm.dir.trace();
        let _ = std::fs::remove_file(vm.dir.path("trace"));
        vm.agent_cli(&["check", "--run", "all", "--yes", "--type", "freeze"]);
        let by_check = vm.dir.trace();
        assert_eq!(
            [("run", by_run), ("check --run", by_check)],
            ["run", "check --run"].map(|by| (by, expected.clone()))
        );
    }
}
