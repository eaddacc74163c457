//! Misbehaving hooks, and the notifications about them.

use serde_json::Value;

use super::vm::Vm;
use crate::support::administrator::administrator;
use crate::support::agent::AgentDir;
use crate::support::{PATIENCE, wait_for};

#[test]
fn failed_hook_withholds_approval_and_notifies() {
    let vm = Vm::new();
    let (url, notifications) = administrator();
    let notify = format!("[notify]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer s3cret\" }}\n");
    // This step leaves no line in the trace: its one second may pass before the shell starts.
    let hang =
        "name = \"hang\"\nshell = \"exec sleep 600\"\ntimeout = \"1s\"\non_failure = \"go-on\"\n".to_owned();
    let fail = format!(
        "{}retries = 1\nretry_delay = \"0s\"\n",
        AgentDir::traced("fail", "; echo too bad >&2; exit 3")
    );
    let steps: String = [hang, fail, AgentDir::traced("never", "")]
        .iter()
        .map(|step| format!("[[rule.before]]\n{step}"))
        .collect();
    let after = format!("[[rule.after]]\n{}", AgentDir::traced("back", ""));
    vm.configure(&format!("{notify}[[rule]]\nname = \"all\"\n{steps}{after}"));
    let _agent = vm.start_ready();
    let event = vm.announce("reboot");
    let received: Vec<(String, Value)> =
        (0..4).map(|_| notifications.recv_timeout(PATIENCE).unwrap()).collect();
    let what: Vec<&str> = received.iter().map(|(_, word)| word["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["appeared", "failed", "failed", "withheld"]);
    let (head, failed) = &received[2];
    assert!(head.to_lowercase().contains("authorization: bearer s3cret"), "{head}");
    assert_eq!(
        failed["text"],
        "step fail before the Reboot failed: exit code 3: too bad; the remaining steps are skipped, and the event is not approved"
    );
    assert_eq!(
        (&failed["vm"], &failed["event"]["EventId"]),
        (&vm.name.as_str().into(), &event.as_str().into())
    );
    assert_eq!(vm.shown(&event)["status"], "Scheduled");
    assert!(!vm.dir.log().contains("s3cret"));
    // After the event the preparation is undone anyway.
    vm.service.cli(&["event", "start", &event]);
    vm.complete(&event);
    assert_eq!(vm.dir.wait_for_trace(3), ["before fail Reboot", "before fail Reboot", "after back Reboot"]);
}

#[test]
fn flooding_hook_is_bounded_and_daemonising_hook_does_not_block() {
    let vm = Vm::new();
    let flood = AgentDir::traced("flood", "; head -c 50000000 /dev/zero | tr \"\\\\0\" x");
    // It keeps both pipes open in its own session, for a minute.
    let daemon = AgentDir::traced("daemon", "; setsid sleep 60 & echo $! > {trace}.daemon");
    let steps: String = [flood, daemon].iter().map(|step| format!("[[rule.before]]\n{step}")).collect();
    vm.configure(&format!("[[rule]]\nname = \"all\"\n{steps}"));
    let agent = vm.start_ready();
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let before = peak();
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
    let grown = peak() - before;
    assert!(grown < 8 * 1024, "50 MB of output took {grown} KiB");
    let daemon = std::fs::read_to_string(vm.dir.path("trace.daemon")).unwrap();
    let daemon = rustix::process::Pid::from_raw(daemon.trim().parse().unwrap()).unwrap();
    wait_for("the daemon to run, then to end", || {
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).ok()
    });
}
