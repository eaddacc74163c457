//! The libvirt sample against libvirt's test driver. That driver keeps its state in one process, so every virsh call
//! finds the same domain `test`, running; other states are set in a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Service, wait_for};

fn sample() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("dist/exec/virsh")
}

#[test]
fn virsh_sample_carries_out_every_event_type() {
    let sample = sample();
    let flags = ["--driver", "exec", "--exec", sample.to_str().unwrap(), "--exec-env", "LIBVIRT_DEFAULT_URI"];
    let flags = [&flags[..], &["--exec-attempts", "1"]].concat();
    let variables = [("LIBVIRT_DEFAULT_URI", "test:///default"), ("NOTBEFORE_LOG", "info")];
    let service = Service::start_with(&variables, &flags);
    service.cli(&["vm", "add", "test", "--spot", "--address", "127.1.21.1"]);
    let cases = [
        (&["event", "schedule", "--type", "freeze"][..], "Domain 'test' suspended"),
        (&["vm", "restart"], "Domain 'test' is being rebooted"),
        (&["vm", "redeploy"], "Domain 'test' destroyed"),
        (&["vm", "evict"], "Domain 'test' destroyed"),
        (&["vm", "delete", "--yes"], "Domain 'test' has been undefined"),
    ];
    for (args, expected) in cases {
        let made = service.cli_json(&[args, &["test"]].concat());
        let event = made["targets"][0]["event"].as_str().unwrap();
        if service.cli_json(&["event", "show", event])["status"] == "Scheduled" {
            service.cli(&["event", "start", event]);
        }
        wait_for(&format!("{args:?} to be carried out"), || {
            let shown = service.cli_json(&["event", "show", event]);
            assert!(!shown.to_string().contains("DriverFailed"), "{shown}\n{}", service.log());
            (shown["status"] == "Completed").then_some(())
        });
        let line = |line: &str| line.contains(expected) && line.contains(event) && line.contains("vm=test");
        assert!(service.log().lines().any(line), "{expected} is missing in {}", service.log());
        if args.contains(&"evict") {
            service.cli(&["vm", "start", "test"]);
        }
    }
    assert!(service.cli_refused(&["vm", "show", "test"]).contains("there is no VM test"));
}

/// Runs the sample against a domain in a state: 1 is running, 3 paused, 5 shut off.
fn carry_out(event_type: &str, state: u8) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    let node = dir.path().join("node.xml");
    let domain = format!(
        "<node><domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'><name>test</name>
         <memory>1024</memory><os><type>hvm</type></os><test:runstate>{state}</test:runstate></domain></node>"
    );
    std::fs::write(&node, domain).unwrap();
    let output = Command::new(sample())
        .env("LIBVIRT_DEFAULT_URI", format!("test://{}", node.display()))
        .envs([("NOTBEFORE_VM", "test"), ("NOTBEFORE_EVENT_TYPE", event_type)])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn virsh_sample_resumes_interrupted_attempt() {
    let (running, paused, off) = (1, 3, 5);
    let cases = [
        ("Freeze", running, "suspended"),
        ("Freeze", paused, "resumed"),
        ("Reboot", running, "rebooted"),
        ("Reboot", paused, "resumed"),
        ("Reboot", off, "started"),
        ("Redeploy", off, "started"),
        ("Preempt", running, "destroyed"),
        ("Preempt", off, ""),
        ("Terminate", off, "undefined"),
    ];
    for (event_type, state, expected) in cases {
        let (done, text) = carry_out(event_type, state);
        assert!(done && text.contains(expected), "{event_type} in state {state}: {text}");
        assert_eq!(text.trim().is_empty(), expected.is_empty(), "{event_type} in state {state}: {text}");
    }
    let (done, text) = carry_out("Dance", running);
    assert!(!done && text.contains("no event of type Dance"), "{text}");
}
