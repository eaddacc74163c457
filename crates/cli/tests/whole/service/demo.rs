//! `serve --demo`: a fleet in memory with guests that poll, on free ports if the usual ones are taken.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{binary, wait_for};

/// A running demo; it is killed at the end of the test.
struct Demo {
    child: Child,
    listeners: Value,
}

impl Demo {
    /// Starts a demo with its files in `temporary`.
    fn start(temporary: &Path, ready: &Path) -> Self {
        let mut command = notbefore(temporary, &["serve", "--demo", "--ready-file"]);
        let child = command.arg(ready).stdout(Stdio::null()).spawn().unwrap();
        let mut demo = Self { child, listeners: Value::Null };
        demo.listeners = wait_for("the demo to be ready", || {
            assert!(demo.child.try_wait().unwrap().is_none(), "the demo ended");
            serde_json::from_str(&std::fs::read_to_string(ready).ok()?).ok()
        });
        demo
    }

    fn addresses(&self) -> [&str; 2] {
        [&self.listeners["guest"][0]["address"], &self.listeners["operator"]["address"]]
            .map(|address| address.as_str().unwrap())
    }

    fn terminate(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn notbefore(temporary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env("TMPDIR", temporary).env("NOTBEFORE_LOG", "warn").env_remove("NOTBEFORE_DATA");
    command
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn demo_has_guests_that_poll_and_leaves_nothing_behind() {
    let [own, temporary] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let first = Demo::start(temporary.path(), &own.path().join("first.json"));
    let [data] = &entries(temporary.path())[..] else { panic!("one directory of the demo") };
    let second = Demo::start(temporary.path(), &own.path().join("second.json"));
    for (one, two) in first.addresses().into_iter().zip(second.addresses()) {
        assert_ne!(one, two, "the second demo has ports of its own");
    }

    let json = |args: &[&str]| -> Vec<Value> {
        let mut command = notbefore(temporary.path(), args);
        let output = command.args(["--output", "json"]).env("NOTBEFORE_DATA", data).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    wait_for("a guest to read an event", || {
        let is_read = |event: &Value| event["unread_by"].as_array().is_none_or(Vec::is_empty);
        json(&["event", "list"]).iter().any(is_read).then_some(())
    });
    let vms = json(&["vm", "list"]);
    let listening = |name: &str| vms.iter().find(|vm| vm["name"] == name).unwrap()["listening"].clone();
    assert_eq!(listening("web-0"), "yes");
    assert_ne!(listening("legacy"), "yes", "one VM does not poll");

    first.terminate();
    second.terminate();
    assert_eq!(entries(temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn demo_is_refused_with_a_data_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let output = notbefore(temporary.path(), &["serve", "--demo", "--data", "x"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--demo keeps everything in memory: leave --data"), "{said}");
}
