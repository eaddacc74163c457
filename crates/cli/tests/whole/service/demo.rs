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
        Self::run(command.arg(ready), ready)
    }

    fn run(command: &mut Command, ready: &Path) -> Self {
        let child = command.stdout(Stdio::null()).spawn().unwrap();
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
fn demo_refuses_settings_of_a_service() {
    let temporary = tempfile::tempdir().unwrap();
    let config = temporary.path().join("notbefore.toml");
    std::fs::write(&config, "").unwrap();
    let config = config.to_str().unwrap();
    let none = ("NOTBEFORE_LOG", "warn");
    for (args, variable, named) in [
        (&["--data", "x"][..], none, "--data"),
        (&["--driver", "manual"], none, "--driver"),
        (&["--strict"], none, "--strict"),
        (&["--root-token-file", config], none, "--root-token-file"),
        (&["--config", config], none, "--config"),
        (&[], ("NOTBEFORE_CONFIG", config), "NOTBEFORE_CONFIG"),
        (&[], ("NOTBEFORE_DATA", "x"), "NOTBEFORE_DATA"),
    ] {
        let mut command = notbefore(temporary.path(), &["serve", "--demo"]);
        let output = command.args(args).env(variable.0, variable.1).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{named}: {said}");
        assert!(said.contains(&format!("--demo takes no {named}: ")), "{said}");
    }
}

#[test]
fn demo_ignores_settings_of_the_environment() {
    let [own, temporary] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let other = own.path().join("ready.json");
    std::fs::write(&other, "of another service").unwrap();
    let free = "127.0.0.1:0";
    let args = ["serve", "--demo", "--guest", free, "--operator", free, "--ready-file"];
    let mut command = notbefore(temporary.path(), &args);
    let variables = [
        ("NOTBEFORE_READY_FILE", other.to_str().unwrap()),
        ("NOTBEFORE_DRIVER_KIND", "exec"),
        ("NOTBEFORE_DRIVER_EXEC_COMMAND", "/nowhere/command"),
        ("NOTBEFORE_ROOT_TOKEN_FILE", "/nowhere/token"),
        ("NOTBEFORE_TOKEN", "the token of another service"),
    ];
    let ready = own.path().join("demo.json");
    let demo = Demo::run(command.arg(&ready).envs(variables), &ready);
    let [data] = &entries(temporary.path())[..] else { panic!("one directory of the demo") };
    wait_for("the operator of the demo to schedule an event", || {
        let mut command = notbefore(temporary.path(), &["event", "list", "--output", "json"]);
        let output = command.env("NOTBEFORE_DATA", data).output().unwrap();
        serde_json::from_slice::<Vec<Value>>(&output.stdout).ok().filter(|events| !events.is_empty())
    });
    demo.terminate();
    assert_eq!(std::fs::read_to_string(other).unwrap(), "of another service");
}
