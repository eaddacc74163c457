//! The journal on failing and volatile disks.

use std::process::Command;

use super::vm::{BOUNDED, Vm, stderr_text, waits};
use crate::support::administrator::administrator;
use crate::support::agent::{Agent, AgentDir};
use crate::support::mounts::Mounts;
use crate::support::{PATIENCE, binary, wait_for};

fn rules() -> String {
    format!(
        "[[rule]]\nname = \"all\"\n[[rule.before]]\n{}[[rule.after]]\n{}",
        waits(),
        AgentDir::traced("back", "")
    )
}

/// State directory on the mounted disk.
const ON_THE_DISK: &str = "fs/state";

/// Starts an agent with its state on that disk.
fn start_on(vm: &Vm, mounts: &Mounts) -> Agent {
    let mut command = mounts.command(binary());
    command.env("NOTBEFORE_AGENT_STATE", mounts.dir().join(ON_THE_DISK));
    vm.start_with(command)
}

#[test]
fn full_disk_is_reported_and_agent_continues() {
    let vm = Vm::new();
    let (url, notifications) = administrator();
    vm.configure(&format!("[notify]\nurl = \"{url}\"\non = [\"failed\"]\n{}", rules()));
    let mounts = Mounts::new();
    mounts.mount_ext4();
    let start = || start_on(&vm, &mounts);
    let agent = start();
    vm.wait_for_answer("/readyz", 200, "ready");
    // A large file fills the disk except for small remains, which must be filled too.
    let fill = "cat /dev/zero > fs/fill || true; n=0; while head -c 1000 /dev/zero > fs/fill.$n; do n=$((n+1)); done";
    mounts.run(fill);
    let event = vm.announce("reboot");
    vm.dir.wait_for_trace(1);
    let red = vm.wait_for_answer("/readyz", 503, "the journal cannot be written");
    assert!(red.body.contains("No space left on device"), "{red:?}");
    let (_, word) = notifications.recv_timeout(PATIENCE).unwrap();
    assert!(word["text"].as_str().unwrap().contains("continues without a journal"), "{word}");
    vm.release_step();
    vm.wait_for_status(&event, "Started");
    assert!(!vm.get("/metrics").body.contains("journal_failures_total 0"));

    mounts.run("rm fs/fill*");
    vm.wait_for_answer("/readyz", 200, "ready");
    assert!(vm.dir.log().contains("the journal is saved again"), "{}", vm.dir.log());
    // The next agent knows the changes that were made while the disk was full.
    agent.kill();
    let _agent = start();
    vm.wait_for_answer("/drainz", 503, "draining: Reboot");
    vm.complete(&event);
    assert_eq!(vm.dir.wait_for_trace(2), ["before slow Reboot", "after back Reboot"]);
}

#[test]
fn agent_resumes_from_read_only_journal() {
    let vm = Vm::new();
    vm.configure(&rules());
    let mounts = Mounts::new();
    mounts.mount_ext4();
    let start = || start_on(&vm, &mounts);
    vm.release_step();
    let agent = start();
    let event = vm.announce("reboot");
    vm.wait_for_status(&event, "Started");
    agent.kill();
    // The kernel does this when it detects a failing disk.
    mounts.run("mount -o remount,ro fs");
    let _agent = start();
    let red = vm.wait_for_answer("/readyz", 503, "the journal cannot be written");
    assert!(red.body.contains("Read-only file system"), "{red:?}");
    vm.wait_for_answer("/drainz", 503, "draining: Reboot");
    let mut second = mounts.command("timeout");
    second.args(BOUNDED).arg(binary()).args(["agent", "run", "--listen", "none", "--config"]);
    let second = second
        .arg(vm.dir.path("agent.toml"))
        .arg("--state")
        .arg(mounts.dir().join(ON_THE_DISK))
        .output()
        .unwrap();
    assert!(stderr_text(&second).contains("another agent holds"), "{}", stderr_text(&second));
    vm.complete(&event);
    assert_eq!(vm.dir.wait_for_trace(2), ["before slow Reboot", "after back Reboot"]);

    mounts.run("mount -o remount,rw fs");
    vm.wait_for_answer("/readyz", 200, "ready");
}

#[test]
fn hanging_disk_reduces_hook_budget_and_keeps_vm_drained() {
    let vm = Vm::new();
    let line = "echo $NOTBEFORE_BUDGET >> {trace}; while [ ! -e {trace}.go ]; do sleep 0.05; done";
    vm.configure(&format!("[[rule]]\nname = \"all\"\n[[rule.before]]\nshell = \"{line}\"\n"));
    // Opening a FIFO for writing blocks without a reader, like a hanging disk.
    let pipe = vm.dir.path("state/.journal.json.new");
    let hang = || assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let go_on = || std::fs::read(&pipe).unwrap();
    let agent = vm.start_ready();
    hang();
    vm.announce("preempt");
    let budget: u64 = vm.dir.wait_for_trace(1)[0].parse().unwrap();
    // NotBefore is rounded up to a second, so at most 31 are left; the disk takes 3 and the approval 0.5. Without the
    // 3 of the disk, the budget is usually 29 or 30.
    assert!(budget <= 27, "of 30 seconds the journal took three, and the hook was given {budget}");
    go_on();
    vm.wait_for_answer("/readyz", 200, "ready");
    agent.kill();
    hang();
    let _agent = vm.start();
    wait_for("the journal to hang", || {
        std::net::TcpStream::connect(vm.signals).ok()?;
        let answer = vm.get("/drainz");
        assert_eq!(answer.status, 503, "it has drained all the time: {answer:?}");
        vm.get("/readyz").body.contains("the journal cannot be written").then_some(())
    });
    go_on();
    vm.release_step();
}

#[test]
fn corrupt_journal_is_moved_aside_and_reported() {
    let vm = Vm::new();
    let (url, notifications) = administrator();
    vm.configure(&format!("[notify]\nurl = \"{url}\"\n{}", rules()));
    let state = vm.dir.path("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("journal.json"), "{\"format\":1,\"state\":{\"boot\":").unwrap();
    vm.release_step();
    let _agent = vm.start_ready();
    assert!(vm.dir.log().contains("the journal cannot be read"), "{}", vm.dir.log());
    let (_, word) = notifications.recv_timeout(PATIENCE).unwrap();
    assert!(word["text"].as_str().unwrap().starts_with("the journal cannot be read"), "{word}");
    assert_eq!((&word["what"], &word["event"]), (&"failed".into(), &serde_json::Value::Null));
    let names: Vec<String> = std::fs::read_dir(&state)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("journal.corrupt-"))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
}

/// A journal of another format: a unit is stopped, and the VM is ready.
const OTHER_FORMAT: &str = r#"{"format":2,"state":{"boot":"boot 1","events":[{"event":{"EventId":"602D9444","EventType":"Reboot",
"ResourceType":"VirtualMachine","Resources":["web-0"],"EventStatus":"Scheduled","NotBefore":""},"mine":true,"phase":"ready",
"approval":"given","prepared":true,"begun":true,"booted":false,"heard":true,"listed":true,"cancelled":false}],"next_run":2}}"#;

#[test]
fn journal_of_other_release_is_kept_and_refuses_start() {
    let vm = Vm::new();
    vm.configure(&rules());
    let state = vm.dir.path("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("journal.json"), OTHER_FORMAT).unwrap();
    let event = vm.announce("freeze");
    let output = vm.agent_cli(&["run"]);
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("journal.json has format 2, and this release reads format 1"), "{stderr}");
    assert_eq!(std::fs::read_to_string(state.join("journal.json")).unwrap(), OTHER_FORMAT);
    let names = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name());
    let others: Vec<_> = names.filter(|name| name != "journal.json" && name != "lock").collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(vm.dir.trace().is_empty() && vm.shown(&event)["status"] == "Scheduled");
}

#[test]
fn volatile_state_directory_is_refused() {
    let vm = Vm::new();
    vm.configure(&rules());
    let mounts = Mounts::new();
    let refused = |script: &str, why: &str| {
        mounts.run(script);
        let mut command = mounts.command("timeout");
        command.args(BOUNDED).arg(binary()).args(["agent", "run", "--config"]).arg(vm.dir.path("agent.toml"));
        let output = command.arg("--state").arg(mounts.dir().join("fs/state")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains(why), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("on the OS disk"), "{}", stderr_text(&output));
    };
    refused("mkdir memory; mount -t tmpfs none memory; ln -s memory fs", "is in memory (tmpfs)");
    mounts.run("rm fs");
    mounts.mount_ext4();
    refused("touch fs/DATALOSS_WARNING_README.txt", "is on the ephemeral disk");
}
