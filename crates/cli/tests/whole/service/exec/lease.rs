//! Leases of commands, with a node that is a process of its own and can be stopped.
//!
//! The node is this test binary again. It renews the lease like a leader whose heartbeats are acknowledged.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::driver::Driver;
use notbefore_service::exec::lease::LEASE;
use notbefore_service::exec::{Exec, ExecConfig};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::runner::{report, test_run};
use super::{shell_of, write_script};
use crate::support::{PATIENCE, binary, processes_with, wait_for};

/// The environment variable with the node's directory.
const NODE: &str = "NOTBEFORE_TEST_NODE";

/// A process that is killed with the test.
struct Node(Child);

impl Node {
    fn start(test: &str, dir: &Path) -> Self {
        let mut node = Command::new(std::env::current_exe().unwrap());
        node.args(["--exact", test, "--nocapture"]).env(NODE, dir).stdout(Stdio::null());
        Self(node.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command for two events, one after the other, and writes each ending to a file.
fn run_node(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let lease_end = || SystemClock.since_boot() + LEASE;
    let (renew, lease) = watch::channel(lease_end());
    runtime.spawn(async move {
        loop {
            renew.send_replace(lease_end());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let mut config = ExecConfig::new(dir.join("carry-out"));
    config.keeper = binary().into();
    let exec = runtime.block_on(Exec::prepare(config, &dir.join("results"), Some(lease))).unwrap();
    let (send, ended) = mpsc::channel();
    for event in 1..=2 {
        let _in = runtime.enter();
        exec.run(test_run(event), report(event, &send));
        let (_, ending) = ended.recv_timeout(3 * PATIENCE).unwrap();
        let written = dir.join("ending");
        std::fs::write(&written, format!("{ending:?}")).unwrap();
        std::fs::rename(written, dir.join(format!("ending-{event}"))).unwrap();
    }
}

#[test]
fn command_of_a_stopped_node_ends_with_its_lease() {
    if let Some(dir) = std::env::var_os(NODE) {
        return run_node(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // The first run ignores SIGTERM, and so does its child in another session.
    let script = format!(
        "here={}
         [ -e $here/first ] && exit 0
         : >$here/first
         trap '' TERM
         setsid sh -c ': >$1/up; while :; do sleep 0.1; done' child-of-$NOTBEFORE_EVENT_ID $here &
         while :; do sleep 0.1; done",
        dir.path().display()
    );
    write_script(&path("carry-out"), &script);
    let node = Node::start("service::exec::lease::command_of_a_stopped_node_ends_with_its_lease", dir.path());
    let processes = [shell_of(&path("carry-out")), format!("\0{}\0", dir.path().display())];
    let running = || processes.iter().filter(|text| !processes_with(text).is_empty()).count();
    wait_for("command and child to run", || (path("up").exists() && running() == 2).then_some(()));

    let first_end = SystemClock.since_boot() + LEASE + Duration::from_secs(1);
    wait_for("the first lease to end", || (SystemClock.since_boot() > first_end).then_some(()));
    assert_eq!(running(), 2, "the lease is renewed while the node runs");

    node.signal(Signal::STOP);
    wait_for("the node to stop", || node.is_stopped().then_some(()));
    wait_for("command and child to be killed", || (running() == 0).then_some(()));
    assert!(node.is_stopped(), "the keeper has done it alone");

    node.signal(Signal::CONT);
    let ending = |event: u128| {
        wait_for("the ending", || std::fs::read_to_string(path(&format!("ending-{event}"))).ok())
    };
    let interrupted = ending(1);
    assert!(interrupted.contains("interrupted by its keeper, not failed"), "{interrupted}");
    assert_eq!(ending(2), "Succeeded { host: None }", "and the node runs further commands");
}
