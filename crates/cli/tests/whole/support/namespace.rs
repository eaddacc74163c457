//! A temporary network namespace.
//!
//! Its name contains the process id and a number, so that tests can run in parallel. On drop, even after a panic,
//! processes in it are killed by id and it is removed. Only a killed test run leaves namespaces behind; `ip netns del`
//! removes them.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of a program in a namespace; Java starts slowly on a busy machine.
const RUN_SECONDS_MAX: &str = "60";

/// Variables that would redirect a client to a proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// Fails if a file is missing, and names its Debian package.
pub fn require_file(file: &str, package: &str) {
    assert!(Path::new(file).exists(), "{file} is missing: install the Debian package {package}");
}

/// A network namespace with its loopback device up.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        require_file("/bin/ip", "iproute2");
        let name = format!("nbt-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("ip").args(["netns", "add", &name]).output().unwrap();
        assert!(
            made.status.success(),
            "no network namespace (these tests run as root): {}",
            failure_text(&made)
        );
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Its name for `ip`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an address to the loopback device.
    pub fn add_address(&self, address: &str) {
        self.ip(&format!("addr add {address}/32 dev lo"));
    }

    /// Runs `ip` in the namespace; arguments are separated by spaces.
    pub fn ip(&self, args: &str) {
        let done = Command::new("ip").args(["-n", &self.name]).args(args.split(' ')).output().unwrap();
        assert!(done.status.success(), "ip -n {} {args}: {}", self.name, failure_text(&done));
    }

    /// A program in the namespace, without a time limit. The spawned process execs the program.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        for variable in PROXY_VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// A program in the namespace, with a time limit.
    pub fn bounded(&self, program: &str) -> Command {
        let mut command = self.command("timeout");
        command.args(["--kill-after=1", RUN_SECONDS_MAX, program]);
        command
    }

    /// The processes in the namespace.
    fn processes(&self) -> Vec<Pid> {
        let Ok(listed) = Command::new("ip").args(["netns", "pids", &self.name]).output() else {
            return Vec::new();
        };
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        listed.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// Exit status and output of a program.
pub fn failure_text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}: {}{}", output.status, out, err)
}
