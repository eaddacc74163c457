//! Pages of the repository, and their commands run as readers would type them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{Service, binary, wait_for};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The fenced blocks of a language on a page, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// The files that a page links to, relative to it.
pub fn links(page: &str) -> Vec<String> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|link| link.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://")).map(str::to_owned).collect()
}

/// Removes test-only variables from a command's environment. Cargo's variables for tests would also cause rebuilds.
pub fn as_typed(command: &mut Command) {
    let of_cargo =
        ["CARGO", "CARGO_CRATE_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PRIMARY_PACKAGE"];
    for (name, _) in std::env::vars_os() {
        let word = name.to_string_lossy();
        let of_the_package = word.starts_with("CARGO_PKG_") || word.starts_with("CARGO_BIN_");
        let of_ours = word.starts_with("NOTBEFORE_") || word.eq_ignore_ascii_case("http_proxy");
        if of_cargo.contains(&&*word) || of_the_package || of_ours {
            command.env_remove(&name);
        }
    }
}

/// A rehearsal that a page prints for several terminals. Its commands run as printed, except for the build, the ports,
/// and the path of the service's token.
pub struct Rehearsal {
    /// The service that the page's `./dev run` starts.
    pub service: Service,
    signals: SocketAddr,
    dir: TempDir,
    agent: Option<Child>,
}

impl Rehearsal {
    /// Runs the commands of the first terminal. The agent of the second terminal serves its signals at this address.
    pub fn start(first_terminal: &str, signals: SocketAddr) -> Self {
        let flags: Vec<&str> = first_terminal.strip_prefix("./dev run ").unwrap().split(' ').collect();
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::os::unix::fs::symlink(root().join("recipes"), dir.path().join("recipes")).unwrap();
        Rehearsal { service: Service::start(&flags), signals, dir, agent: None }
    }

    /// A path in the reader's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A shell with a terminal's commands.
    pub fn terminal(&self, block: &str) -> Command {
        let block = block
            .replace("./target/debug/notbefore", binary())
            .replace("127.0.0.1:9254", &self.service.guest.to_string())
            .replace("127.0.0.1:9256", &self.signals.to_string());
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("shopt -s expand_aliases\n{block}")]).current_dir(self.dir.path());
        as_typed(&mut shell);
        shell.env("NOTBEFORE_DATA", self.service.data());
        shell.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        shell
    }

    /// Runs the commands of the second terminal, the last of which runs the agent. Waits until the agent polls.
    pub fn run_agent(&mut self, block: &str) {
        // With exec, ending the shell ends the agent.
        let block = block.replace("notbefore agent run", &format!("exec {} agent run", binary()));
        let log = std::fs::File::create(self.path("agent.log")).unwrap();
        let mut terminal = self.terminal(&block);
        self.agent = Some(terminal.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        wait_for("the agent to listen", || {
            let listed = self.service.cli_json(&["vm", "list"]);
            (listed[0]["listening"] == "yes").then_some(())
        });
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        if let Some(agent) = &mut self.agent {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}
