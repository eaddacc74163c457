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
    /// Where its agent lives.
    pub place: AgentDir,
    /// Where the agent's signals are served.
    pub signals: SocketAddr,
}

impl Vm {
    /// One whose events stay started until the test completes them.
    pub fn new() -> Vm {
        Self::with(Service::start(&["--strict", "--simulated-duration", "1h"]))
    }

    /// One that this service knows.
    pub fn with(service: Service) -> Vm {
        let name = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
        Vm { service, name, place: AgentDir::new(), signals: free_address() }
    }

    /// Writes the agent's configuration.
    pub fn configure(&self, rules: &str) {
        self.place.configure(Some(&format!("http://{}", self.service.guest)), rules);
    }

    /// Starts the agent.
    pub fn start(&self) -> Agent {
        self.start_with(Command::new(binary()))
    }

    /// The same by another command, which runs the binary somewhere else, or with something more in its environment.
    pub fn start_with(&self, mut command: Command) -> Agent {
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        self.place.start_with(command, "boot 1")
    }

    /// Starts the agent and waits until it is ready.
    pub fn start_ready(&self) -> Agent {
        let agent = self.start();
        self.wait_for_answer("/readyz", 200, "ready");
        agent
    }

    /// The same, and its log is objects. The flag comes by a shell, after what every agent is started with.
    pub fn start_json(&self) -> Agent {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\" --log-format json", binary()]);
        let agent = self.start_with(command);
        self.wait_for_answer("/readyz", 200, "ready");
        agent
    }

    /// Asks the agent.
    pub fn ask(&self, path: &str) -> Answer {
        get(self.signals, path)
    }

    /// Waits until the agent answers so.
    pub fn wait_for_answer(&self, path: &str, status: u16, words: &str) -> Answer {
        wait_for(&format!("{path} to answer {status} {words:?}; the log is {}", self.place.log()), || {
            // The listener may not be open yet.
            std::net::TcpStream::connect(self.signals).ok()?;
            Some(self.ask(path)).filter(|answer| answer.status == status && answer.body.contains(words))
        })
    }

    /// Runs the command line of the agent, over its own configuration.
    pub fn agent_cli(&self, words: &[&str]) -> Output {
        self.agent_command(words).output().unwrap()
    }

    /// The same, to be run.
    pub fn agent_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(BOUNDED)
            .arg(binary())
            .arg("agent")
            .args(words)
            .arg("--config")
            .arg(self.place.path("agent.toml"));
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        command
    }

    /// Announces an event and gives its id as guests read it.
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
        wait_for(&format!("{event} to be {status}; the log is {}", self.place.log()), || {
            (self.shown(event)["status"] == status).then_some(())
        });
    }

    /// Says that an event was carried out.
    pub fn complete(&self, event: &str) {
        self.service.cli(&["event", "complete", event]);
    }

    /// Lets a step that waits go on.
    pub fn go(&self) {
        std::fs::write(self.place.path("trace.go"), "").unwrap();
    }

    /// Waits until the agents here have logged something.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log"), || self.place.log().contains(text).then_some(()));
    }
}

/// Standard error of a failed program.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a program.
pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
