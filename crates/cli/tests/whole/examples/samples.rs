//! The sample clients through whole events.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program::Program;
use crate::support::{Service, wait_for};

/// Time limit of a sample; mono starts slowly on a busy machine.
const RUN_SECONDS_MAX: &str = "60";
/// Debian's path of the assembly that the C# sample links.
const NEWTONSOFT: &str = "/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll";

/// A file among the examples.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// A program with a time limit and a proxy variable that it must ignore.
pub fn bounded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", RUN_SECONDS_MAX]).arg(program);
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    command
}

pub fn bash() -> Command {
    bounded(example("bash/watch-events.sh"))
}

pub fn python3() -> Command {
    let mut command = bounded("/usr/bin/python3");
    command.arg(example("python3/watch_events.py"));
    command
}

/// The C# sample, compiled once for all tests.
pub fn csharp() -> Command {
    static COMPILED: OnceLock<TempDir> = OnceLock::new();
    let dir = COMPILED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        // The assembly is found next to the program, without a global cache.
        std::fs::copy(NEWTONSOFT, dir.path().join("Newtonsoft.Json.dll"))
            .unwrap_or_else(|error| panic!("{NEWTONSOFT}: {error}: install libnewtonsoft-json5.0-cil"));
        let mut mcs = bounded("/usr/bin/mcs");
        mcs.arg(format!("-out:{}", dir.path().join("WatchEvents.exe").display()));
        let done =
            mcs.arg(format!("-r:{NEWTONSOFT}")).arg(example("csharp/WatchEvents.cs")).output().unwrap();
        assert!(done.status.success(), "mcs (Debian's mono-mcs): {done:?}");
        dir
    });
    let mut command = bounded("/usr/bin/mono");
    command.arg(dir.path().join("WatchEvents.exe"));
    command
}

/// The Rust sample, built once for all tests.
pub fn rust() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-p", "notbefore-client", "--example", "watch-events"]);
        let done = cargo
            .args(["--message-format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let stdout = String::from_utf8(done.stdout).unwrap();
        let executable = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        };
        stdout.lines().find_map(executable).unwrap_or_else(|| panic!("cargo names no executable: {stdout}"))
    });
    bounded(built)
}

/// A sample that calls this address.
pub fn at(mut sample: Command, endpoint: SocketAddr, args: &[&str]) -> Command {
    sample.args(["--endpoint", &format!("http://{endpoint}")]).args(args);
    sample
}

/// Two VMs that share a document. The caller from 127.0.0.1 is web-0, whatever the host name.
fn two_vms() -> Service {
    let service = Service::start(&["--strict", "--simulated-duration", "1h"]);
    service.apply_fleet(
        "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.0.0.1] }
      - { name: web-1, update_domain: 1, addresses: [127.0.0.2] }
",
    );
    service
}

/// Schedules an event; returns its id and NotBefore as the samples print them.
fn announced(service: &Service, kind: &str, vm: &str) -> (String, String) {
    let operation = service.cli_json(&["event", "schedule", "--type", kind, vm]);
    let id = operation["targets"][0]["event"].as_str().unwrap().to_uppercase();
    (id, operation["not_before"].as_str().unwrap().to_owned())
}

fn trail(service: &Service, event: &str) -> Vec<(String, String)> {
    crate::support::trail(&service.cli_json(&["event", "show", event]))
}

/// Its own event is approved after the answer yes, its neighbour's is not; both are printed.
fn whole_event(sample: Command, version: &str) {
    let service = two_vms();
    let mut client = Program::start(at(sample, service.guest, &["--api-version", version]));
    client.wait_for_line(&["1", "nothing"]);

    let (others, not_before) = announced(&service, "reboot", "web-1");
    client.wait_for_line(&["2", &others, "Scheduled", "Reboot", "web-1", &not_before, "others"]);
    let (mine, not_before) = announced(&service, "redeploy", "web-0");
    client.wait_for_line(&["3", &mine, "Scheduled", "Redeploy", "web-0", &not_before, "mine"]);
    client.send_line("y");
    client.wait_for_line(&["approved", &mine]);
    client.wait_for_line(&["4", &mine, "Started", "Redeploy", "web-0", "-", "mine"]);
    service.cli(&["event", "complete", &mine]);
    client.wait_for_line(&["5", &others, "Scheduled"]);
    service.cli(&["event", "cancel", &others]);
    client.wait_for_line(&["6", "nothing"]);

    let facts = trail(&service, &mine);
    assert_eq!(facts[1], ("EventApproved".to_owned(), "vm web-0 at 127.0.0.1".to_owned()), "{facts:?}");
    let facts: Vec<String> = trail(&service, &others).into_iter().map(|(fact, _)| fact).collect();
    assert_eq!(facts, ["EventScheduled", "EventCancelled"], "the neighbour's event is the neighbour's");
}

/// `--once` reads once, approves only with `--yes`, and exits.
fn once(sample: impl Fn() -> Command) {
    let service = two_vms();
    let (mine, _) = announced(&service, "freeze", "web-0");
    let run = |args: &[&str]| at(sample(), service.guest, args).stdin(Stdio::null()).output().unwrap();
    let status = || service.cli_json(&["event", "show", &mine])["status"].as_str().unwrap().to_owned();

    let unasked = run(&["--once"]);
    assert!(unasked.status.success(), "{unasked:?}");
    assert!(String::from_utf8_lossy(&unasked.stdout).contains(&mine), "{unasked:?}");
    assert_eq!(status(), "Scheduled", "not confirmed");

    let another = run(&["--once", "--yes", "--name", "web-1"]);
    assert!(String::from_utf8_lossy(&another.stdout).contains(" others"), "{another:?}");
    assert_eq!(status(), "Scheduled", "--name names another VM");

    let approved = run(&["--once", "--yes"]);
    assert!(String::from_utf8_lossy(&approved.stdout).contains(&format!("approved {mine}")), "{approved:?}");
    wait_for("the event to start", || (status() == "Started").then_some(()));
}

#[test]
fn bash_through_a_whole_event() {
    whole_event(bash(), "2020-07-01");
}

#[test]
fn bash_at_2017_03_01() {
    whole_event(bash(), "2017-03-01");
}

#[test]
fn bash_once() {
    once(bash);
}

#[test]
fn python3_through_a_whole_event() {
    whole_event(python3(), "2020-07-01");
}

#[test]
fn python3_at_2017_03_01() {
    whole_event(python3(), "2017-03-01");
}

#[test]
fn python3_once() {
    once(python3);
}

#[test]
fn csharp_through_a_whole_event() {
    whole_event(csharp(), "2020-07-01");
}

#[test]
fn csharp_at_2017_03_01() {
    whole_event(csharp(), "2017-03-01");
}

#[test]
fn csharp_once() {
    once(csharp);
}

#[test]
fn rust_through_a_whole_event() {
    whole_event(rust(), "2020-07-01");
}

#[test]
fn rust_at_2017_03_01() {
    whole_event(rust(), "2017-03-01");
}

#[test]
fn rust_once() {
    once(rust);
}
