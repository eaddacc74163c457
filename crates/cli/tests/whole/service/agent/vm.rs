//! A VM: its service, its agent and the agent's signals.

use std::net::SocketAddr;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::agent::{Agent, AgentDir};
pub use crate::support::free_address;
use crate::support::http::get;
use crate::support::{Answer, Service, binary, wait_for};

/// A step before the event that logs its start and waits until the test creates `go`.
pub fn waits() -> String {
    AgentDir::traced("slow", "; while [ ! -e {trace}.go ]; do sleep 0.05; done")
}

/// `timeout` command for an agent that should refuse to start: otherwise it would run forever.
pub const BOUNDED: [&str; 2] = ["--kill-after=1", "20"];

/// A VM with its service.
pub struct Vm {
    /// The service that knows it.
    pub service: Service,
    /// Its name.
    pub name: String,
    /// Directory of its agent.
    pub dir: AgentDir,
    /// Address of the agent's HTTP signals.
    pub signals: SocketAddr,
}

impl Vm {
    /// A VM whose events stay Started until the test completes them.
    pub fn new() -> Vm {
        Self::with(Service::start(&["--strict", "--simulated-duration", "1h"]))
    }

    /// A VM of this service.
    pub fn with(service: Service) -> Vm {
        let name = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
        Vm { service, name, dir: AgentDir::new(), signals: free_address() }
    }

    /// Writes the agent's configuration.
    pub fn configure(&self, rules: &str) {
        self.dir.configure(Some(&format!("http://{}", self.service.guest)), rules);
    }

    /// Starts the agent.
    pub fn start(&self) -> Agent {
        self.start_with(Command::new(binary()))
    }

    /// Starts the agent with another command, such as one that runs the binary in a namespace.
    pub fn start_with(&self, mut command: Command) -> Agent {
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        self.dir.start_with(command, "boot 1")
    }

    /// Starts the agent and waits until it is ready.
    pub fn start_ready(&self) -> Agent {
        let agent = self.start();
        self.wait_for_answer("/readyz", 200, "ready");
        agent
    }

    /// Starts the agent with a JSON log and waits until it is ready. A shell adds the flag after the usual arguments.
    pub fn start_json(&self) -> Agent {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\" --log-format json", binary()]);
        let agent = self.start_with(command);
        self.wait_for_answer("/readyz", 200, "ready");
        agent
    }

    /// Gets one of the agent's HTTP signals.
    pub fn get(&self, path: &str) -> Answer {
        get(self.signals, path)
    }

    /// Waits for a response with this status and text.
    pub fn wait_for_answer(&self, path: &str, status: u16, text: &str) -> Answer {
        wait_for(&format!("{path} to answer {status} {text:?}; the log is {}", self.dir.log()), || {
            // The listener may not be open yet.
            std::net::TcpStream::connect(self.signals).ok()?;
            Some(self.get(path)).filter(|answer| answer.status == status && answer.body.contains(text))
        })
    }

    /// Runs an agent command with the VM's configuration.
    pub fn agent_cli(&self, args: &[&str]) -> Output {
        self.agent_command(args).output().unwrap()
    }

    /// An agent command with the VM's configuration.
    pub fn agent_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(BOUNDED)
            .arg(binary())
            .arg("agent")
            .args(args)
            .arg("--config")
            .arg(self.dir.path("agent.toml"));
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        command
    }

    /// Schedules an event; returns its id as guests read it.
    pub fn announce(&self, kind: &str) -> String {
        let made = self.service.cli_json(&["event", "schedule", "--type", kind, &self.name]);
        made["targets"][0]["event"].as_str().unwrap_or_else(|| panic!("no event in {made}")).to_uppercase()
    }

    /// An event, as an operator sees it.
    pub fn shown(&self, event: &str) -> Value {
        self.service.cli_json(&["event", "show", event])
    }

    /// Waits until an event has that status.
    pub fn wait_for_status(&self, event: &str, status: &str) {
        wait_for(&format!("{event} to be {status}; the log is {}", self.dir.log()), || {
            (self.shown(event)["status"] == status).then_some(())
        });
    }

    /// Completes an event.
    pub fn complete(&self, event: &str) {
        self.service.cli(&["event", "complete", event]);
    }

    /// Releases the waiting step.
    pub fn release_step(&self) {
        std::fs::write(self.dir.path("trace.go"), "").unwrap();
    }

    /// Waits until the agents' log contains a text.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log"), || self.dir.log().contains(text).then_some(()));
    }
}

/// Standard error of a failed program.
pub fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a program.
pub fn stdout_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
