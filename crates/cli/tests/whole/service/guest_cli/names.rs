//! A faulty platform, or one that does not provide this VM's name.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{WATCH_SECONDS_MAX, refused, stdout_text};
use crate::support::binary;
use crate::support::program::Program;
use crate::support::scripted::scripted_platform;

/// An event of instance 36 of a scale set, whose host name is `web000010`.
const DOCUMENT: &str = "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"aa-bb\",\"EventStatus\":\"Scheduled\",\
    \"EventType\":\"Reboot\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"web_36\"],\"NotBefore\":\"\"}]}";
const BAD_VERSION: (&str, &str) = ("400 Bad Request", "{\"error\":\"Bad request. api-version is invalid\"}");
const APPROVED: &str = "event aa-bb: approved\n";

/// A platform with this event and this response for the VM's name. It counts approvals.
fn platform(name: (&'static str, &'static str)) -> (String, Arc<AtomicUsize>) {
    let approvals = Arc::new(AtomicUsize::new(0));
    let counted = approvals.clone();
    let endpoint = scripted_platform(move |line| match line {
        _ if line.starts_with("GET /metadata/instance/compute/name") => Some(name),
        _ if line.contains("api-version=2024-07-09") => Some(("404 Not Found", "")),
        _ if line.contains("api-version=2020-07-01") => Some(BAD_VERSION),
        _ if line.starts_with("GET") => Some(("200 OK", DOCUMENT)),
        // The first approval fails with a temporary error.
        _ if counted.fetch_add(1, Ordering::SeqCst) == 0 => Some(("429 Too Many Requests", "")),
        _ => Some(("200 OK", "")),
    });
    (endpoint, approvals)
}

fn run(endpoint: &str, args: &[&str]) -> Output {
    Command::new(binary()).args(args).args(["--endpoint", endpoint]).output().unwrap()
}

#[test]
fn approval_is_retried_and_warnings_are_printed() {
    let (endpoint, approvals) = platform(("200 OK", "web_36"));
    let output = run(&endpoint, &["approve", "--all-mine"]);
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        warned.starts_with("notbefore: the platform refuses api-version 2020-07-01: requesting 2019-08-01"),
        "{warned}"
    );
    assert_eq!(stdout_text(output), APPROVED);
    assert_eq!(approvals.load(Ordering::SeqCst), 2);
}

#[test]
fn host_name_identity_approves_nothing() {
    let (endpoint, approvals) = platform(("404 Not Found", ""));
    let stderr = refused(run(&endpoint, &["approve", "--all-mine"]), 1);
    assert!(
        stderr.contains("nothing was approved: the platform does not provide this VM's name"),
        "{stderr}"
    );
    assert!(stderr.contains("use --name"), "{stderr}");
    let got = run(&endpoint, &["get"]);
    let warned = String::from_utf8_lossy(&got.stderr);
    assert!(warned.contains("the instance metadata has no name for this VM, so it goes by "), "{warned}");
    assert_eq!(approvals.load(Ordering::SeqCst), 0);
    // `--name` may equal the host name.
    assert_eq!(stdout_text(run(&endpoint, &["approve", "--all-mine", "--name", "web000010"])), APPROVED);

    let (endpoint, approvals) = platform(("200 OK", "web_37"));
    let stderr = refused(run(&endpoint, &["approve", "--all-mine", "--name", "web_36"]), 1);
    assert!(stderr.contains("--name is web_36, but the platform calls this VM web_37"), "{stderr}");
    assert_eq!(approvals.load(Ordering::SeqCst), 0);
    assert_eq!(
        stdout_text(run(&endpoint, &["approve", "aa-bb"])),
        APPROVED,
        "an explicit event id is approved"
    );
}

#[test]
fn watch_updates_ownership_when_name_arrives() {
    let knows = Arc::new(AtomicBool::new(false));
    let asked = knows.clone();
    let endpoint = scripted_platform(move |line| match line {
        _ if line.starts_with("GET /metadata/instance") && asked.load(Ordering::SeqCst) => {
            Some(("200 OK", "web_36"))
        }
        _ if line.starts_with("GET /metadata/instance") => Some(("503 Service Unavailable", "")),
        _ => Some(("200 OK", DOCUMENT)),
    });
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", WATCH_SECONDS_MAX, binary()]);
    command.args(["get", "--watch", "--count", "2", "--endpoint", &endpoint]);
    let mut watching = Program::start(command);
    let first = watching.wait_for_line(&["appeared"]);
    assert!(first.contains("others': web_36 is Scheduled"), "{first}");
    knows.store(true, Ordering::SeqCst);
    let second = watching.wait_for_line(&["changed"]);
    assert!(second.contains(" mine: web_36 is Scheduled"), "{second}");
    watching.assert_success();
}
