//! A VM with a recipe: its service, its disk and its agent.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::agent::{Agent, AgentDir};
use crate::support::http::get;
pub use crate::support::namespace::require_file;
use crate::support::pages::root;
pub use crate::support::write_program;
use crate::support::{Answer, PATIENCE, Service, binary, free_address, wait_for};

/// The VM's name in the service.
pub const VM: &str = "web-0";
/// Path of scripts in the recipes.
const INSTALLED: &str = "/usr/local/lib/notbefore/";

/// A VM. Its agent and other processes that the test started end on drop.
pub struct Vm {
    /// Its platform.
    pub service: Service,
    recipe: PathBuf,
    endpoint: SocketAddr,
    agent: Option<Agent>,
    /// Address of the agent's HTTP signals.
    signals: SocketAddr,
    boots: u32,
    /// Directories of processes that `recipes/process` started; they are killed on drop.
    processes: Vec<PathBuf>,
    dir: AgentDir,
}

impl Vm {
    /// A VM with its own guest listener and an installed recipe. Events stay Started until the test completes them.
    /// The notice is that of the rehearsal on the recipes' page, unless a flag sets it.
    pub fn new(recipe: &str, flags: &[&str]) -> Self {
        let (guest_vm, notice) = (format!("{VM}=127.0.0.1:0"), notice(recipe));
        let mut args = vec!["--strict", "--simulated-duration", "1h", "--guest-vm", &guest_vm];
        if !flags.contains(&"--notice") {
            args.extend(["--notice", &notice]);
        }
        let service = Service::start(&[&args, flags].concat());
        let endpoint = service.guest_vms[0];
        Self::on_service(service, endpoint, recipe)
    }

    /// A VM that calls a service at this address.
    pub fn on_service(service: Service, endpoint: SocketAddr, recipe: &str) -> Self {
        let recipes = root().join("recipes");
        let dir = AgentDir::new();
        let (recipe, mut scripts) = (recipes.join(recipe), vec![recipes.join("process")]);
        scripts.extend(fs::read_dir(&recipe).unwrap().map(|entry| entry.unwrap().path()));
        for part in ["lib", "bin", "state"] {
            fs::create_dir(dir.path(part)).unwrap();
        }
        for script in scripts.iter().filter(|file| file.extension().is_none()) {
            write_program(
                &dir.path("lib").join(script.file_name().unwrap()),
                &fs::read_to_string(script).unwrap(),
            );
        }
        let (signals, processes) = (free_address(), Vec::new());
        Self { service, recipe, endpoint, agent: None, signals, boots: 1, processes, dir }
    }

    /// Address of the agent's HTTP signals.
    pub fn signals(&self) -> SocketAddr {
        self.signals
    }

    /// A path on its disk.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    /// A path on its disk, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Installs a fake program in the `PATH` of the agent's hooks.
    pub fn install_fake(&self, name: &str, script: &str) {
        write_program(&self.path("bin").join(name), script);
    }

    /// Configures the recipe, with replacements in its `agent.toml`, and starts the agent.
    pub fn start(&mut self, replaced: &[(&str, &str)]) {
        let mut config = fs::read_to_string(self.recipe.join("agent.toml")).unwrap();
        let lib = format!("{}/", self.text("lib"));
        for (printed, here) in replaced.iter().copied().chain([(INSTALLED, lib.as_str())]) {
            // A recipe without scripts names none.
            let there = config.contains(printed) || printed == INSTALLED;
            assert!(there, "{} does not contain {printed}", self.recipe.display());
            config = config.replace(printed, here);
        }
        fs::write(self.path("agent.toml"), config).unwrap();
        self.boot();
    }

    /// A program on the VM, with the fake programs in its `PATH`.
    pub fn command(&self, program: &str) -> Command {
        let path = format!("{}:{}", self.text("bin"), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command
            .env("PATH", path)
            .env("NOTBEFORE_MARKS", self.path("marks"))
            .env("PLAYED", self.path("played"));
        command
    }

    /// Runs one of the recipe's scripts by hand.
    pub fn script(&self, name: &str, args: &[&str]) -> Output {
        let mut bounded = self.command("timeout");
        bounded.arg(PATIENCE.as_secs().to_string()).arg(self.path("lib").join(name));
        bounded.args(args).output().unwrap()
    }

    /// Runs one of the recipe's scripts, which must succeed.
    pub fn run_script(&self, name: &str, args: &[&str]) {
        let output = self.script(name, args);
        assert!(output.status.success(), "{name} {args:?}: {output:?}");
    }

    /// Starts a process with `recipes/process`. It, or a process that replaces it, is killed on drop.
    pub fn run(&mut self, directory: &str, command: &[&str]) {
        let dir = self.text(directory);
        self.processes.push(self.path(directory));
        self.run_script("process", &[&["start", &dir], command].concat());
    }

    fn boot(&mut self) {
        let mut command = self.command(binary());
        command.env("NOTBEFORE_AGENT_ENDPOINT", format!("http://{}", self.endpoint));
        command.env("NOTBEFORE_AGENT_STATE", self.path("state")).env("NOTBEFORE_AGENT_LOG", "debug");
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        self.agent = Some(self.dir.start_with(command, &format!("boot-{}", self.boots)));
        // The agent has resumed from its journal and read the current document.
        wait_for("the agent", || {
            let there = TcpStream::connect(self.signals).is_ok();
            (there && self.get_signal("/readyz").status == 200).then_some(())
        });
    }

    /// Waits until the agents' log contains a text; it includes the hooks' output.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("`{text}` in the log"), || self.dir.log().contains(text).then_some(()));
    }

    /// How often its agents have started a step.
    pub fn started_steps(&self, step: &str) -> usize {
        let begins = |line: &&str| line.contains(&format!(": step {step} ")) && line.contains(" starts: ");
        self.dir.log().lines().filter(begins).count()
    }

    /// Kills the agent and starts it again with a new boot id, as after a reboot.
    pub fn reboot(&mut self) {
        self.boots += 1;
        self.restart_agent();
    }

    /// Kills the agent and starts it again in the same boot.
    pub fn restart_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.kill();
        }
        self.boot();
    }

    fn get_signal(&self, path: &str) -> Answer {
        get(self.signals, path)
    }

    /// Whether the agent reports the VM as draining.
    pub fn draining(&self) -> bool {
        let answer = self.get_signal("/drainz");
        match answer.status {
            200 => false,
            503 => true,
            status => panic!("/drainz is {status}: {}", answer.body),
        }
    }

    /// Schedules an event of this type for the VM; returns its id.
    pub fn announce(&self, kind: &str) -> String {
        self.announced(&["event", "schedule", "--type", kind, VM])
    }

    /// Schedules an event with this command; returns its id.
    pub fn announced(&self, args: &[&str]) -> String {
        let operation = self.service.cli_json(args);
        operation["targets"][0]["event"].as_str().unwrap().to_owned()
    }

    /// An event's status.
    pub fn status(&self, event: &str) -> String {
        self.service.cli_json(&["event", "show", event])["status"].as_str().unwrap().to_owned()
    }

    /// Facts of an event with their actors.
    pub fn trail(&self, event: &str) -> Vec<(String, String)> {
        crate::support::trail(&self.service.cli_json(&["event", "show", event]))
    }

    /// Waits until an event has been approved by this VM's agent, and has started.
    pub fn wait_for_approval(&self, event: &str) {
        wait_for("the approval", || (self.status(event) == "Started").then_some(()));
        let (fact, by) = &self.trail(event)[1];
        assert_eq!(fact, "EventApproved");
        assert!(by.starts_with(&format!("vm {VM} at")), "approved by {by}");
    }

    /// Completes an event.
    pub fn complete(&self, event: &str) {
        self.service.cli(&["event", "complete", event]);
    }

    /// Cancels an event.
    pub fn cancel(&self, event: &str) {
        self.service.cli(&["event", "cancel", event]);
    }

    /// Waits until the agent has restored the VM.
    pub fn wait_until_restored(&self) {
        wait_for("the VM to be restored", || (!self.draining()).then_some(()));
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.agent = None;
        for dir in std::mem::take(&mut self.processes) {
            self.script("process", &["kill", dir.to_str().unwrap()]);
        }
        if std::thread::panicking() {
            eprintln!("log of the agent:\n{}", self.dir.log());
        }
    }
}

/// The notice that `recipes/README.md` names for the rehearsal of a recipe.
fn notice(recipe: &str) -> String {
    let page = fs::read_to_string(root().join("recipes/README.md")).unwrap();
    let of = |row: &str| -> Option<String> {
        let cells: Vec<&str> = row.strip_prefix("| ")?.split(" | ").collect();
        let named = cells[0].split(", ").any(|name| name == recipe);
        named.then(|| cells[1].to_owned())
    };
    page.lines().find_map(of).unwrap_or_else(|| panic!("the page names no notice for {recipe}"))
}

/// A file's lines; none if it is missing.
pub fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}
