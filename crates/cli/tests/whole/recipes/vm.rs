//! A VM with a recipe: its service, its disk and its agent.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::agent::{Agent, AgentDir};
use crate::support::http::get;
pub use crate::support::namespace::need;
use crate::support::pages::root;
pub use crate::support::write_program;
use crate::support::{Answer, PATIENCE, Service, binary, free_address, wait_for};

/// The VM's name in the service.
pub const VM: &str = "web-0";
/// Path of scripts in the recipes.
const INSTALLED: &str = "/usr/local/lib/notbefore/";

/// A VM. Its agent and other processes that the test started end on drop.
pub struct Vm {
    /// Who knows it.
    pub service: Service,
    recipe: PathBuf,
    endpoint: SocketAddr,
    agent: Option<Agent>,
    /// Where the agent's signals are.
    signals: SocketAddr,
    boots: u32,
    /// Whether the test's own processes are to be ended with it, by what `recipes/process` knows of them.
    processes: Vec<PathBuf>,
    place: AgentDir,
}

impl Vm {
    /// A VM with a door of its own, on which a recipe is installed. Its events stay Started until they are completed,
    /// and are announced as far ahead as the recipes' page has it for a rehearsal, unless a flag says otherwise.
    pub fn new(recipe: &str, flags: &[&str]) -> Self {
        let (door, notice) = (format!("{VM}=127.0.0.1:0"), notice(recipe));
        let mut words = vec!["--strict", "--simulated-duration", "1h", "--guest-vm", &door];
        if !flags.contains(&"--notice") {
            words.extend(["--notice", &notice]);
        }
        let service = Service::start(&[&words, flags].concat());
        let endpoint = service.guest_vms[0];
        Self::known_to(service, endpoint, recipe)
    }

    /// A VM that calls a service at this address.
    pub fn known_to(service: Service, endpoint: SocketAddr, recipe: &str) -> Self {
        let recipes = root().join("recipes");
        let place = AgentDir::new();
        let (recipe, mut scripts) = (recipes.join(recipe), vec![recipes.join("process")]);
        scripts.extend(fs::read_dir(&recipe).unwrap().map(|entry| entry.unwrap().path()));
        for part in ["lib", "bin", "state"] {
            fs::create_dir(place.path(part)).unwrap();
        }
        for script in scripts.iter().filter(|file| file.extension().is_none()) {
            write_program(
                &place.path("lib").join(script.file_name().unwrap()),
                &fs::read_to_string(script).unwrap(),
            );
        }
        let (signals, processes) = (free_address(), Vec::new());
        Self { service, recipe, endpoint, agent: None, signals, boots: 1, processes, place }
    }

    /// Where its agent tells how it is.
    pub fn signals(&self) -> SocketAddr {
        self.signals
    }

    /// A place on its disk.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// The same, as a text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Puts a program of the test's own onto the path of the agent's hooks.
    pub fn play(&self, name: &str, script: &str) {
        write_program(&self.path("bin").join(name), script);
    }

    /// Configures the recipe, with these words of its `agent.toml` replaced by others, and starts the agent.
    pub fn start(&mut self, replaced: &[(&str, &str)]) {
        let mut config = fs::read_to_string(self.recipe.join("agent.toml")).unwrap();
        let lib = format!("{}/", self.text("lib"));
        for (printed, here) in replaced.iter().copied().chain([(INSTALLED, lib.as_str())]) {
            // A recipe without scripts names none.
            let there = config.contains(printed) || printed == INSTALLED;
            assert!(there, "{} does not speak of {printed}", self.recipe.display());
            config = config.replace(printed, here);
        }
        fs::write(self.path("agent.toml"), config).unwrap();
        self.boot();
    }

    /// A program on the VM, which finds what is played there.
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
    pub fn script(&self, name: &str, words: &[&str]) -> Output {
        let mut bounded = self.command("timeout");
        bounded.arg(PATIENCE.as_secs().to_string()).arg(self.path("lib").join(name));
        bounded.args(words).output().unwrap()
    }

    /// The same; it must succeed.
    pub fn does(&self, name: &str, words: &[&str]) {
        let output = self.script(name, words);
        assert!(output.status.success(), "{name} {words:?}: {output:?}");
    }

    /// Starts a process as `recipes/process` does. It is ended with the VM, and so is whatever goes on in its place.
    pub fn run(&mut self, directory: &str, command: &[&str]) {
        let place = self.text(directory);
        self.processes.push(self.path(directory));
        self.does("process", &[&["start", &place], command].concat());
    }

    fn boot(&mut self) {
        let mut command = self.command(binary());
        command.env("NOTBEFORE_AGENT_ENDPOINT", format!("http://{}", self.endpoint));
        command.env("NOTBEFORE_AGENT_STATE", self.path("state")).env("NOTBEFORE_AGENT_LOG", "debug");
        command.env("NOTBEFORE_AGENT_LISTEN", self.signals.to_string());
        self.agent = Some(self.place.start_with(command, &format!("boot-{}", self.boots)));
        // The agent has resumed from its journal and read the current document.
        wait_for("the agent", || {
            let there = TcpStream::connect(self.signals).is_ok();
            (there && self.ask("/readyz").status == 200).then_some(())
        });
    }

    /// Waits until its agents have logged something: what hooks print is in it, too.
    pub fn logs(&self, text: &str) {
        wait_for(&format!("`{text}` in the log"), || self.place.log().contains(text).then_some(()));
    }

    /// How often its agents have begun a step.
    pub fn begun(&self, step: &str) -> usize {
        let begins = |line: &&str| line.contains(&format!(": step {step} ")) && line.contains(" starts: ");
        self.place.log().lines().filter(begins).count()
    }

    /// Ends the agent as a power cut would, and starts it again: for the VM it was a reboot.
    pub fn reboot(&mut self) {
        self.boots += 1;
        self.restart_agent();
    }

    /// The same, but the VM did not reboot.
    pub fn restart_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.kill();
        }
        self.boot();
    }

    fn ask(&self, path: &str) -> Answer {
        get(self.signals, path)
    }

    /// Whether the agent says that the VM should get no new work.
    pub fn draining(&self) -> bool {
        let answer = self.ask("/drainz");
        match answer.status {
            200 => false,
            503 => true,
            status => panic!("/drainz is {status}: {}", answer.body),
        }
    }

    /// Announces an event of a type to the VM, and gives its id.
    pub fn announce(&self, kind: &str) -> String {
        self.announced(&["event", "schedule", "--type", kind, VM])
    }

    /// The same with words of one's own.
    pub fn announced(&self, words: &[&str]) -> String {
        let operation = self.service.cli_json(words);
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
    pub fn approved(&self, event: &str) {
        wait_for("the approval", || (self.status(event) == "Started").then_some(()));
        let (fact, by) = &self.trail(event)[1];
        assert_eq!(fact, "EventApproved");
        assert!(by.starts_with(&format!("vm {VM} at")), "approved by {by}");
    }

    /// Ends an event.
    pub fn complete(&self, event: &str) {
        self.service.cli(&["event", "complete", event]);
    }

    /// Calls an event off.
    pub fn cancel(&self, event: &str) {
        self.service.cli(&["event", "cancel", event]);
    }

    /// Waits until the agent has put the VM back.
    pub fn back_in_service(&self) {
        wait_for("the VM to be put back", || (!self.draining()).then_some(()));
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.agent = None;
        for place in std::mem::take(&mut self.processes) {
            self.script("process", &["kill", place.to_str().unwrap()]);
        }
        if std::thread::panicking() {
            eprintln!("the agent said:\n{}", self.place.log());
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
