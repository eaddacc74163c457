//! An agent for integration tests: a directory with its configuration, its journal, and a trace to which hooks write a
//! line each.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{binary, pause, wait_for};

/// The agent's directory; an agent can be killed and restarted in it.
pub struct AgentDir {
    dir: TempDir,
}

impl AgentDir {
    /// An empty directory. Not in /tmp: it may be in memory, and the agent refuses a volatile state directory.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the configuration: these rules, a journal, no signals. Without an endpoint, the agent discovers it.
    pub fn configure(&self, endpoint: Option<&str>, rules: &str) {
        let endpoint = endpoint.map(|endpoint| format!("endpoint = \"{endpoint}\"\n")).unwrap_or_default();
        let general = format!("state = \"{}\"\nlisten = \"none\"\n", self.path("state").display());
        let rules = rules.replace("{trace}", &self.trace_file());
        std::fs::write(self.path("agent.toml"), endpoint + &general + &rules).unwrap();
    }

    fn trace_file(&self) -> String {
        self.path("trace").display().to_string()
    }

    /// A step that writes a line to the trace (stage, name, event type), then runs `and_then`.
    pub fn traced(name: &str, and_then: &str) -> String {
        let line = "$NOTBEFORE_STAGE $NOTBEFORE_STEP $NOTBEFORE_EVENT_TYPE";
        format!("name = \"{name}\"\nshell = '''echo \"{line}\" >> {{trace}}{and_then}'''\n")
    }

    /// The lines that hooks wrote.
    pub fn trace(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.trace_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the hooks have written this many lines; returns them.
    pub fn wait_for_trace(&self, lines: usize) -> Vec<String> {
        wait_for(&format!("{lines} lines in the trace"), || {
            Some(self.trace()).filter(|trace| trace.len() >= lines)
        })
    }

    /// The log of all agents in this directory.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Starts an agent with this boot id.
    pub fn start(&self, boot: &str) -> Agent {
        self.start_with(Command::new(binary()), boot)
    }

    /// Starts an agent with another command, such as one that runs the binary in a namespace.
    pub fn start_with(&self, mut command: Command, boot: &str) -> Agent {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        command.args(["agent", "run", "--config"]).arg(self.path("agent.toml"));
        command.env("NOTBEFORE_AGENT_BOOT_ID", boot).stdout(Stdio::null()).stderr(log);
        Agent { child: command.spawn().unwrap() }
    }
}

/// Number and interval of polls for the end of a stopped agent; it may take three seconds.
const ENDING_LOOKS: u32 = 250;
const ENDING_LOOK: Duration = Duration::from_millis(20);

/// A running agent, stopped on drop.
pub struct Agent {
    child: Child,
}

impl Agent {
    /// Kills it (SIGKILL).
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits; returns the exit status.
    pub fn terminate(mut self) -> std::process::ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SIGTERM first, also after a failed test: the agent then ends its hooks, which might otherwise run forever.
        let pid = rustix::process::Pid::from_child(&self.child);
        let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if !has_ended && rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok() {
            for _ in 0..ENDING_LOOKS {
                if matches!(self.child.try_wait(), Ok(Some(_))) {
                    return;
                }
                pause(ENDING_LOOK, "std has no wait for a child that ends in time");
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
