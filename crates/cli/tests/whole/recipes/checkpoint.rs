//! Recipe checkpoint: a batch job saves its state and resumes.

use super::vm::{Vm, lines, require_file};
use crate::support::wait_for;

/// Length of a job that outlasts the test.
const ENDLESS: u64 = 1_000_000;

/// A VM with a running job, and replacements in its `agent.toml`.
fn job(numbers: u64, replaced: &[(&str, &str)]) -> Vm {
    require_file("/usr/bin/python3", "python3");
    let mut vm = Vm::new("checkpoint", &[]);
    vm.start(&[&[("/var/lib/batch", &*vm.text("batch"))], replaced].concat());
    let (program, place) = (vm.text("lib/batch-job"), vm.text("batch"));
    vm.run("batch", &[&program, &place, &numbers.to_string()]);
    // Python may write a line in parts.
    wait_for("the job to begin", || {
        let log = std::fs::read_to_string(vm.path("batch/log")).unwrap_or_default();
        log.starts_with("from 1\n").then_some(())
    });
    vm
}

/// Positions at which the job was saved and resumed.
fn saved_and_resumed(vm: &Vm) -> (Vec<u64>, Vec<u64>) {
    let log = lines(&vm.path("batch/log"));
    let numbers = |words: &str| -> Vec<u64> {
        log.iter().filter_map(|line| line.strip_prefix(words)?.trim().parse().ok()).collect()
    };
    (numbers("saved before"), numbers("from"))
}

fn ended(vm: &Vm) -> bool {
    vm.script("process", &["ended", &vm.text("batch")]).status.success()
}

#[test]
fn job_is_checkpointed_and_resumed() {
    let mut vm = job(ENDLESS, &[]);
    let event = vm.announce("reboot");
    vm.wait_for_approval(&event);
    assert!(ended(&vm), "approved only when it is saved");
    vm.reboot();
    vm.complete(&event);
    vm.wait_until_restored();

    // Once more, without a reboot.
    wait_for("the job to go on", || (saved_and_resumed(&vm).1.len() == 2).then_some(()));
    let event = vm.announce("redeploy");
    vm.wait_for_approval(&event);
    let checkpoint = std::fs::read(vm.path("batch/checkpoint.json")).unwrap();
    let checkpoint: serde_json::Value = serde_json::from_slice(&checkpoint).unwrap();
    let next = checkpoint["next"].as_u64().unwrap();
    assert_eq!(checkpoint["sum"], next * (next - 1) / 2, "nothing was left out, nothing done twice");
    vm.complete(&event);
    vm.wait_until_restored();
    let (saved, resumed) = wait_for("the job to go on again", || {
        Some(saved_and_resumed(&vm)).filter(|(_, resumed)| resumed.len() == 3)
    });
    assert_eq!(saved, resumed[1..], "the job resumes at its saved position");
    assert_eq!(saved.last(), Some(&next));
}

#[test]
fn finished_job_is_not_restarted() {
    let vm = job(10, &[]);
    let result = vm.path("batch/result.json");
    let sum: u64 = wait_for("the result", || std::fs::read_to_string(&result).ok()?.parse().ok());
    assert_eq!(sum, 55);
    wait_for("the job to end", || ended(&vm).then_some(()));
    let event = vm.announce("reboot");
    vm.wait_for_approval(&event);
    vm.complete(&event);
    vm.wait_until_restored();
    assert_eq!(saved_and_resumed(&vm), (vec![], vec![1]));
}

#[test]
fn cancelled_event_during_checkpoint_is_restored() {
    // A start attempt has 1 second here, an hour in the recipe.
    let vm = job(ENDLESS, &[("timeout = \"1h\"", "timeout = \"1s\"")]);
    // Stop the process, so that it cannot save before the event is cancelled.
    let pid = lines(&vm.path("batch/pid"))[0].split(' ').next().unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let event = vm.announce("reboot");
    wait_for("the stop", || vm.path("batch/stopped").exists().then_some(()));
    assert_eq!(vm.status(&event), "Scheduled", "it is not approved before the job is saved");
    vm.cancel(&event);
    vm.wait_for_log("attempt 2");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    vm.wait_until_restored();
    let (saved, resumed) = wait_for("the job to go on", || {
        let (saved, resumed) = saved_and_resumed(&vm);
        (resumed.len() == 2).then_some((saved, resumed))
    });
    assert_eq!(saved, resumed[1..]);
    assert!(!ended(&vm) && !vm.path("batch/stopped").exists());
}

#[test]
fn freeze_does_not_stop_job() {
    let vm = job(ENDLESS, &[]);
    let event = vm.announce("freeze");
    vm.wait_for_approval(&event);
    assert!(!vm.draining() && !ended(&vm));
    vm.complete(&event);
    assert_eq!(saved_and_resumed(&vm).0.len(), 0);
}
