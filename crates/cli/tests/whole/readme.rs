//! The README as printed: its first command, its five requests and its command lines are read from the page and run in
//! a network namespace, so that the ports are free.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use crate::support;
use crate::support::pages::{as_typed, blocks, root};
use serde_json::Value;

/// A namespace with loopback, and a directory that looks like a fresh clone.
struct CloneDir {
    namespace: String,
    dir: tempfile::TempDir,
    service: Option<Child>,
}

impl CloneDir {
    fn new() -> Self {
        let namespace = format!("nbt-readme-{}", std::process::id());
        let ip = |args: &[&str]| {
            let status = Command::new("ip").args(args).status().expect("Debian's iproute2 is installed");
            assert!(
                status.success(),
                "ip {args:?} failed; this test makes a network namespace and needs root"
            );
        };
        ip(&["netns", "add", &namespace]);
        ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["dev", "target"] {
            let _ = std::os::unix::fs::symlink(root().join(name), dir.path().join(name));
        }
        Self { namespace, dir, service: None }
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "bash", "-ec", line]).current_dir(self.dir.path());
        as_typed(&mut command);
        command
    }

    fn run(&self, line: &str) -> String {
        let Output { status, stdout, stderr } = self.shell(line).output().expect("bash starts");
        let out = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success(), "{line}\n{out}{}", String::from_utf8_lossy(&stderr));
        out
    }
}

impl Drop for CloneDir {
    fn drop(&mut self) {
        if let Some(service) = &mut self.service {
            let _ = service.kill();
            let _ = service.wait();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).status();
    }
}

#[test]
fn readme_commands_work_as_printed() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let commands = blocks(&page, "sh");
    let mut clone_dir = CloneDir::new();

    // The build's output is shown first, not mixed with the service's.
    assert_eq!(commands[0], "./dev run");
    let checked = clone_dir.shell("./dev run --check-config").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(out.ends_with("no errors\n") && out.lines().count() == 1, "{out}");
    assert!(err.contains("Finished `dev` profile"), "{err}");

    // The first command. Run with exec, so that the signal reaches the service, not a shell.
    let mut service = clone_dir.shell("exec ./dev run").stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(service.stdout.take().unwrap()).lines().map(Result::unwrap);
    clone_dir.service = Some(service);
    let name = clone_dir.run("uname -n").trim().to_owned();
    for line in blocks(&page, "text")[0].lines() {
        let shown = line.replace("the VM lab.", &format!("the VM {name}."));
        assert_eq!(printed.next().as_deref(), Some(shown.as_str()), "what the page says one then sees");
    }

    // The five requests.
    let calls: Vec<&str> = commands[1].lines().filter(|line| line.starts_with("curl")).collect();
    assert_eq!(calls.len(), 5);
    let answers: Vec<String> =
        calls.iter().map(|call| clone_dir.run(&call.replacen("curl", "curl -s", 1))).collect();
    let json = |n: usize| {
        serde_json::from_str::<Value>(&answers[n]).unwrap_or_else(|error| panic!("{error}: {answers:?}"))
    };
    assert_eq!(answers[0], "{\"DocumentIncarnation\":1,\"Events\":[]}");
    assert_eq!(json(1)["cause"], "host-reboot");
    assert_eq!(
        (&json(2)["Events"][0]["EventStatus"], &json(2)["Events"][0]["Resources"][0]),
        (&"Scheduled".into(), &name.as_str().into())
    );
    assert_eq!(answers[3], "");
    assert_eq!(json(4)["Events"][0]["EventStatus"], "Started");

    // The command lines, in one shell.
    let stdout = clone_dir.run(&format!("shopt -s expand_aliases\n{}", commands[2]));
    assert!(stdout.contains(&format!("default/default/{name}/{name}")), "{stdout}");
    assert!(stdout.contains(&format!("user-restart of {name}, not before")), "{stdout}");
    assert!(stdout.contains("Scheduled") && stdout.contains("Started"), "{stdout}");
    assert!(stdout.contains("MINE"), "what the guest sees: {stdout}");

    // The event would end after a minute; complete it now.
    let id = json(2)["Events"][0]["EventId"].as_str().unwrap().to_owned();
    clone_dir.run(&format!("./target/debug/notbefore event complete {id}"));
    let left =
        serde_json::from_str::<Value>(&clone_dir.run(&calls[4].replacen("curl", "curl -s", 1))).unwrap();
    assert_eq!(left["Events"].as_array().unwrap().len(), 1, "only the restart is left: {left}");
}

#[test]
fn readme_fleet_and_rehearsal_work_as_printed() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let commands = blocks(&page, "sh");
    let service = support::Service::start(&[
        "--notice",
        "0.01",
        "--simulated-duration",
        "5s",
        "--guest-vm",
        "web-0=127.0.0.1:0",
    ]);
    let run_block = |block: &str| {
        for line in block.lines().filter(|line| !line.contains("event watch")) {
            let args: Vec<&str> =
                line.strip_prefix("notbefore ").unwrap_or_else(|| panic!("{line}")).split(' ').collect();
            service.cli(&args);
        }
    };
    assert_eq!(commands[3].lines().last(), Some("notbefore event watch"));
    let mut watch = Command::new(support::binary())
        .args(["event", "watch"])
        .env("NOTBEFORE_DATA", service.data())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // If the stream connects late, the end of the started event is still a fact to see.
    let mut seen = BufReader::new(watch.stdout.take().unwrap()).lines();
    run_block(&commands[3]);
    service.cli(&["vm", "restart", "web-0"]);
    let line = seen.next().unwrap().unwrap();
    let _ = watch.kill();
    let _ = watch.wait();
    assert!(line.contains("(by "), "a fact a line: {line}");

    let service = support::Service::start(&[]);
    let yaml = &blocks(&page, "yaml")[0];
    let file = service.data().join("fleet.yaml");
    std::fs::write(&file, yaml).unwrap();
    for line in commands[4].lines() {
        let line = line.replace("fleet.yaml", file.to_str().unwrap());
        let args: Vec<&str> =
            line.strip_prefix("notbefore ").unwrap_or_else(|| panic!("{line}")).split(' ').collect();
        service.cli(&args);
    }
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn documented_fleet_file_is_valid() {
    let page = std::fs::read_to_string(root().join("docs/reference/fleet-file.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fleet.yaml");
    std::fs::write(&file, &blocks(&page, "yaml")[0]).unwrap();
    let check = ["fleet", "apply", "--check", file.to_str().unwrap()];
    // Checking a file needs no service.
    let output =
        Command::new(support::binary()).args(check).env("NOTBEFORE_DATA", dir.path()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.ends_with(": 3 scopes and 4 VMs, no errors\n"), "{output:?}");
    let service = support::Service::start(&[]);
    assert!(
        service.cli(&["fleet", "apply", file.to_str().unwrap()]).contains("default/shop/web: created, 2 VMs")
    );
}
