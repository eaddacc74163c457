//! The journal on disks that fail, or do not last.

use crate::hooks::administrator;
use crate::support::agent::Place;
use crate::support::mounts::Ground;
use crate::support::{PATIENCE, binary};
use crate::vm::{BOUNDED, Vm, complaint, waits};

fn rules() -> String {
    format!(
        "[[rule]]\nname = \"all\"\n[[rule.before]]\n{}[[rule.after]]\n{}",
        waits(),
        Place::traced("back", "")
    )
}

#[test]
fn a_full_disk_stops_nobody_and_is_said_aloud() {
    let vm = Vm::new();
    let (url, heard) = administrator();
    vm.configure(&format!("[notify]\nurl = \"{url}\"\non = [\"failed\"]\n{}", rules()));
    let ground = Ground::new();
    ground.mount_ext4();
    let state = ground.place().join("fs/state");
    let start = || {
        let mut command = ground.command(binary());
        command.env("NOTBEFORE_AGENT_STATE", &state);
        vm.start_with(command)
    };
    let agent = start();
    vm.wait_for_answer("/readyz", 200, "ready");
    // What is left after a large file is room enough for small ones.
    let fill = "cat /dev/zero > fs/fill || true; n=0; while head -c 1000 /dev/zero > fs/fill.$n; do n=$((n+1)); done";
    ground.run(fill);
    let event = vm.announce("reboot");
    vm.place.wait_for_trace(1);
    let red = vm.wait_for_answer("/readyz", 503, "the journal is not on disk");
    assert!(red.body.contains("No space left on device"), "{red:?}");
    let (_, word) = heard.recv_timeout(PATIENCE).unwrap();
    assert!(word["text"].as_str().unwrap().contains("goes on without its journal"), "{word}");
    vm.go();
    vm.wait_for_status(&event, "Started");
    assert!(!vm.ask("/metrics").body.contains("journal_failures_total 0"));

    ground.run("rm fs/fill*");
    vm.wait_for_answer("/readyz", 200, "ready");
    assert!(vm.place.log().contains("the journal is on disk again"), "{}", vm.place.log());
    // What happened while there was no room is there for the next agent.
    agent.kill();
    let _agent = start();
    vm.wait_for_answer("/drainz", 503, "draining: Reboot");
    vm.complete(&event);
    assert_eq!(vm.place.wait_for_trace(2), ["before slow Reboot", "after back Reboot"]);
}

#[test]
fn a_corrupt_journal_is_kept_aside_and_said_aloud() {
    let vm = Vm::new();
    let (url, heard) = administrator();
    vm.configure(&format!("[notify]\nurl = \"{url}\"\n{}", rules()));
    let state = vm.place.path("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("journal.json"), "{\"format\":1,\"state\":{\"boot\":").unwrap();
    vm.go();
    let _agent = vm.start_ready();
    assert!(vm.place.log().contains("the journal cannot be read"), "{}", vm.place.log());
    let (_, word) = heard.recv_timeout(PATIENCE).unwrap();
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

#[test]
fn a_directory_that_will_be_empty_after_the_event_is_refused() {
    let vm = Vm::new();
    vm.configure(&rules());
    let ground = Ground::new();
    let refused = |script: &str, why: &str| {
        ground.run(script);
        let mut command = ground.command("timeout");
        command
            .args(BOUNDED)
            .arg(binary())
            .args(["agent", "run", "--config"])
            .arg(vm.place.path("agent.toml"));
        let output = command.arg("--state").arg(ground.place().join("fs/state")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
        assert!(complaint(&output).contains(why), "{}", complaint(&output));
        assert!(complaint(&output).contains("on the OS disk"), "{}", complaint(&output));
    };
    refused("mkdir memory; mount -t tmpfs none memory; ln -s memory fs", "is in memory (tmpfs)");
    ground.run("rm fs");
    ground.mount_ext4();
    refused("touch fs/DATALOSS_WARNING_README.txt", "is on the ephemeral disk");
}
