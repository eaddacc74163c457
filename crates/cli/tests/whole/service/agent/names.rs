//! A platform whose instance metadata has no name at first and that supports only older api-versions; and a VM cloned
//! from another's disk.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::support::agent::AgentDir;
use crate::support::scripted::scripted_platform;
use crate::support::{PATIENCE, binary, wait_for};

/// The VM's name in the platform.
const NAME: &str = "web_3";
const DOCUMENT: &str = "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"aa-bb\",\"EventStatus\":\"Scheduled\",\
    \"EventType\":\"Reboot\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"web_3\"],\"NotBefore\":\"\"}]}";

/// The platform's state, shared with the test.
#[derive(Default)]
struct Platform {
    knows_names: AtomicBool,
    /// Whether the metadata accepts requests and answers none.
    metadata_hangs: AtomicBool,
    documents_read: AtomicUsize,
}

impl Platform {
    /// Serves during the test. The channel receives the approvals.
    fn start() -> (Arc<Platform>, String, mpsc::Receiver<()>) {
        let (approvals, approved) = mpsc::channel();
        let platform = Arc::new(Platform::default());
        let shared = platform.clone();
        let endpoint = scripted_platform(move |line| shared.answer(line, &approvals));
        (platform, endpoint, approved)
    }

    fn answer(&self, line: &str, approvals: &mpsc::Sender<()>) -> Option<(&'static str, &'static str)> {
        let names = line.starts_with("GET /metadata/instance/compute/name");
        if names && self.metadata_hangs.load(Ordering::SeqCst) {
            return None;
        }
        Some(if names && self.knows_names.load(Ordering::SeqCst) {
            ("200 OK", NAME)
        } else if names {
            ("500 Internal Server Error", "not now")
        } else if line.contains("api-version=2024-07-09") {
            ("404 Not Found", "{ \"error\": \"Not found. Invalid version requested\" }")
        } else if line.contains("api-version=2020-07-01") {
            ("400 Bad Request", "{\"error\":\"Bad request. api-version is invalid\"}")
        } else if line.starts_with("POST") {
            approvals.send(()).unwrap();
            ("200 OK", "")
        } else {
            self.documents_read.fetch_add(1, Ordering::SeqCst);
            ("200 OK", DOCUMENT)
        })
    }
}

#[test]
fn late_name_is_applied_to_known_events() {
    let (platform, endpoint, approved) = Platform::start();
    let dir = AgentDir::new();
    let rule = format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{}", AgentDir::traced("drain", ""));
    dir.configure(Some(&endpoint), &rule);
    let _agent = dir.start("boot 1");
    wait_for("the agent to follow the document by another name", || {
        let goes_by_another = dir.log().contains("the instance metadata does not report this VM's name");
        (goes_by_another && platform.documents_read.load(Ordering::SeqCst) > 2).then_some(())
    });
    assert!(dir.trace().is_empty(), "the agent does not yet know that the event is its own");
    assert!(!dir.path("state/name").exists(), "a host name is nothing to remember");

    platform.knows_names.store(true, Ordering::SeqCst);
    assert_eq!(dir.wait_for_trace(1), ["before drain Reboot"]);
    approved.recv_timeout(PATIENCE).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path("state/name")).unwrap(), NAME);
    let log = dir.log();
    let refusals = log.matches("refuses api-version 2020-07-01: requesting 2019-08-01").count();
    assert_eq!(refusals, 1, "logged once, and not queried again: {log}");
}

#[test]
fn cloned_vm_does_not_resume_journal() {
    let (platform, endpoint, approved) = Platform::start();
    let dir = AgentDir::new();
    let drain = AgentDir::traced("drain", "");
    dir.configure(Some(&endpoint), &format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{drain}"));
    let start = |vm: &str| {
        let mut command = Command::new(binary());
        command.env("NOTBEFORE_AGENT_VM_ID", vm);
        dir.start_with(command, "boot 1")
    };
    platform.knows_names.store(true, Ordering::SeqCst);
    let origin = start("origin");
    approved.recv_timeout(PATIENCE).unwrap();
    wait_for("the original VM to store its name", || dir.path("state/name").exists().then_some(()));
    origin.kill();

    platform.knows_names.store(false, Ordering::SeqCst);
    let read_before = platform.documents_read.load(Ordering::SeqCst);
    let _copy = start("copy");
    wait_for("the copy to follow the document", || {
        (platform.documents_read.load(Ordering::SeqCst) > read_before + 2).then_some(())
    });
    let log = dir.log();
    assert!(log.contains("the journal belongs to another VM"), "{log}");
    assert!(log.contains("Reboot of other VMs only (web_3)"), "{log}");
    assert_eq!(dir.trace(), ["before drain Reboot"], "the copy prepared for the original VM's event");
    assert!(approved.try_recv().is_err(), "the copy approved the original VM's event");
    let aside =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("journal.another-vm-");
    let entries = std::fs::read_dir(dir.path("state")).unwrap().map(Result::unwrap);
    assert_eq!(entries.filter(aside).count(), 1, "what the origin knew is kept aside");
}

#[test]
fn hanging_metadata_does_not_delay_hook_or_approve() {
    let (platform, endpoint, approved) = Platform::start();
    platform.metadata_hangs.store(true, Ordering::SeqCst);
    let dir = AgentDir::new();
    // The VM's last known name, not yet confirmed.
    std::fs::create_dir(dir.path("state")).unwrap();
    std::fs::write(dir.path("state/name"), NAME).unwrap();
    let rule = format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{}", AgentDir::traced("drain", ""));
    dir.configure(Some(&endpoint), &rule);
    let agent = dir.start("boot 1");
    dir.wait_for_trace(1);
    wait_for("the VM to be ready", || dir.log().contains("this VM is ready for the Reboot").then_some(()));
    let log = dir.log();
    let before_that = log.split("this VM is ready").next().unwrap();
    assert!(!before_that.contains("the instance metadata"), "the first question was still open: {log}");
    assert!(approved.try_recv().is_err(), "approved with an unconfirmed name");
    drop(agent);

    // A configured name needs no confirmation.
    let mut command = Command::new(binary());
    command.env("NOTBEFORE_AGENT_NAME", NAME);
    let _agent = dir.start_with(command, "boot 1");
    approved.recv_timeout(PATIENCE).unwrap();
}
