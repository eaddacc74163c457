//! Shared support of the integration tests: a service on free ports, guests with chosen source addresses, and the
//! command line.
//!
//! No fixed sleeps: a test waits for a condition, and names it on a timeout.

pub mod administrator;
pub mod agent;
pub mod http;
pub mod in_namespace;
pub mod manager;
pub mod mounts;
pub mod namespace;
pub mod pages;
#[path = "../../src/pause.rs"]
mod pause;
pub mod program;
pub mod scripted;
pub mod terminal;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

pub use http::{Answer, connect, exchange};
pub use pause::pause;
use serde_json::Value;
use tempfile::TempDir;

/// Timeout of every wait.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The binary under test.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_notbefore")
}

/// A running service with its data directory.
pub struct Service {
    child: Child,
    /// Address of the guest listener; port 0 if only VMs of `--guest-vm` can call.
    pub guest: SocketAddr,
    /// Address of the operator listener.
    pub operator: SocketAddr,
    /// Addresses of the bound listeners, in the order of `--guest-vm`.
    pub guest_vms: Vec<SocketAddr>,
    data: DataDir,
    /// Flags and variables for a restart.
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    /// Wrapper command that runs the service, with its arguments; may be empty.
    through: Vec<String>,
}

/// The data directory: temporary, or kept by the test.
enum DataDir {
    Own(TempDir),
    Kept(PathBuf),
}

impl DataDir {
    fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Kept(path) => path,
        }
    }
}

impl Service {
    /// Starts a service on free ports, with further flags.
    pub fn start(flags: &[&str]) -> Self {
        Self::start_with(&[], flags)
    }

    /// Starts a service with these environment variables.
    pub fn start_with(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Self::launch(
            DataDir::Own(tempfile::tempdir().unwrap()),
            flags.iter().map(|&flag| flag.to_owned()).collect(),
            variables.collect(),
        )
    }

    /// Starts a service that writes its log to a file.
    pub fn start_logged(log: &Path, flags: &[&str]) -> Self {
        let log = std::fs::File::create(log).unwrap();
        let own = DataDir::Own(tempfile::tempdir().unwrap());
        Self::launch_with(
            own,
            flags.iter().map(|&flag| flag.to_owned()).collect(),
            Vec::new(),
            log.into(),
            Vec::new(),
        )
    }

    /// Starts a service over a directory that the test keeps.
    pub fn start_in(data: &Path, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Self::launch(DataDir::Kept(data.to_owned()), flags, Vec::new())
    }

    fn launch(data: DataDir, flags: Vec<String>, variables: Vec<(String, String)>) -> Self {
        Self::launch_with(data, flags, variables, Stdio::inherit(), Vec::new())
    }

    fn launch_with(
        data: DataDir,
        flags: Vec<String>,
        variables: Vec<(String, String)>,
        log: Stdio,
        through: Vec<String>,
    ) -> Self {
        let mut args = through.iter().map(String::as_str).chain([binary()]);
        let mut command = Command::new(args.next().unwrap());
        command.args(args).arg("serve").arg("--data").arg(data.path());
        for door in ["--guest", "--operator"] {
            if !flags.iter().any(|flag| flag == door) {
                command.args([door, "127.0.0.1:0"]);
            }
        }
        command.args(&flags).stdout(Stdio::piped()).stderr(log);
        // Set for the tests, it is set for their services: 'NOTBEFORE_LOG=debug cargo test … -- --nocapture'.
        command.env("NOTBEFORE_LOG", std::env::var("NOTBEFORE_LOG").unwrap_or_else(|_| "warn".to_owned()));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if variables.iter().any(|(name, _)| name == "NOTBEFORE_LOG") {
            let log =
                std::fs::OpenOptions::new().create(true).append(true).open(log_of(data.path())).unwrap();
            command.stderr(log);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut guest, mut operator, mut guest_vms) = (None, None, Vec::new());
        while operator.is_none() {
            let line =
                lines.next().unwrap_or_else(|| panic!("the service ended before it was ready")).unwrap();
            let address = line.split("://").nth(1).and_then(|rest| rest.split('/').next());
            let address = address.and_then(|text| text.parse::<SocketAddr>().ok());
            match line.trim_start().split(' ').next() {
                Some("guests") => guest = guest.or(address),
                Some("guest") => guest_vms.extend(address),
                Some("operators") => operator = address,
                _ => {}
            }
        }
        // Drain later output, so that the pipe does not fill up.
        std::thread::spawn(move || for _ in lines.by_ref() {});
        let guest = guest.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Self { child, guest, operator: operator.unwrap(), guest_vms, data, flags, variables, through }
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The log, including that of restarts. Only a service started with `NOTBEFORE_LOG` logs to a file.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(log_of(self.data())).unwrap()).into_owned()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits; returns the exit status.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }

    /// Waits until it has aborted because of `NOTBEFORE_ABORT_AFTER_COMMITS`.
    pub fn aborted(&mut self) {
        let status = wait_for("the service to abort", || self.child.try_wait().unwrap());
        assert_eq!(status.signal(), Some(rustix::process::Signal::ABORT.as_raw()), "{status}");
    }

    /// Kills it if it still runs, and starts it again with the same data.
    pub fn restart(mut self) -> Self {
        let variables = std::mem::take(&mut self.variables);
        self.restart_in(variables)
    }

    /// Restarts it with these environment variables instead of its former ones.
    pub fn restart_with(self, variables: &[(&str, &str)]) -> Self {
        self.restart_in(variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Restarts it with a wrapper command such as setpriv.
    pub fn restart_through(mut self, args: &[&str]) -> Self {
        self.through = args.iter().map(|&word| word.to_owned()).collect();
        self.restart()
    }

    fn restart_in(self, variables: Vec<(String, String)>) -> Self {
        let mut old = std::mem::ManuallyDrop::new(self);
        let _ = old.child.kill();
        let _ = old.child.wait();
        let flags = std::mem::take(&mut old.flags);
        let data = std::mem::replace(&mut old.data, DataDir::Kept(PathBuf::new()));
        let through = std::mem::take(&mut old.through);
        Self::launch_with(data, flags, variables, Stdio::inherit(), through)
    }

    /// Runs the command line against this service.
    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(binary()).args(args).env("NOTBEFORE_DATA", self.data()).output().unwrap()
    }

    /// Runs the command line, which must succeed; returns its standard output.
    pub fn cli(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "notbefore {args:?} failed: {out}{err}");
        out.into_owned()
    }

    /// Runs the command line, which must fail; returns its standard error.
    pub fn cli_refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "notbefore {args:?} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs the command line with `--output json`.
    pub fn cli_json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--output", "json"]).collect();
        serde_json::from_str(&self.cli(&args)).unwrap()
    }

    /// Applies a fleet file.
    pub fn apply_fleet(&self, yaml: &str) -> String {
        let file = self.data().join("fleet.yaml");
        std::fs::write(&file, yaml).unwrap();
        self.cli(&["fleet", "apply", file.to_str().unwrap()])
    }

    /// The document of a guest at loopback, at the newest version.
    pub fn document(&self) -> Value {
        self.poll(Ipv4Addr::LOCALHOST, "2020-07-01").json()
    }

    /// A poll from an address of 127.0.0.0/8.
    pub fn poll(&self, source: Ipv4Addr, version: &str) -> Answer {
        self.guest_request(source, "GET", &format!("/metadata/scheduledevents?api-version={version}"), "")
    }

    /// An approval from an address of 127.0.0.0/8.
    pub fn approve(&self, source: Ipv4Addr, event: &str) -> Answer {
        let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}");
        self.guest_request(source, "POST", "/metadata/scheduledevents?api-version=2020-07-01", &body)
    }

    /// A request with `Metadata: true`.
    pub fn guest_request(&self, source: Ipv4Addr, method: &str, target: &str, body: &str) -> Answer {
        let length =
            if method == "GET" { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n{length}\r\n{body}"
        );
        exchange(source.into(), self.guest, request.as_bytes())
    }

    /// A request to the operator listener with the first token.
    pub fn operator_request(&self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let token = std::fs::read_to_string(self.data().join("operator.token")).unwrap();
        self.request_with(&token, method, target, headers, body)
    }

    /// A request to the operator listener with some token.
    pub fn request_with(&self, token: &str, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        exchange(Ipv4Addr::LOCALHOST.into(), self.operator, request.as_bytes())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log_of(data: &Path) -> PathBuf {
    data.join("log")
}

/// Creates an executable file. Another process writes it: a child of another thread could briefly inherit the open
/// descriptor, and the kernel refuses to execute a file open for writing (ETXTBSY).
pub fn write_program(file: &Path, text: &str) {
    let new = file.with_extension("new");
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(&new).stdin(Stdio::piped());
    let mut child = install.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", new.display());
    std::fs::rename(new, file).unwrap();
}

/// First port that tests hand out, below the kernel's ephemeral ports.
const FIRST_PORT: u16 = 10_000;

/// A unique loopback address, for programs that cannot choose a port themselves or reuse one. It is derived from the
/// process id, so other test runs do not use it, and ephemeral ports do not overlap.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(FIRST_PORT);
    // A process id has 22 bits at most. This is never 127.0.0.1.
    let [_, high, middle, low] = ((std::process::id() << 2) | 2).to_be_bytes();
    SocketAddr::from(([127, high, middle, low], NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Polls until a condition holds; panics with `what` on timeout.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let span = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(waited < PATIENCE, "timeout after {PATIENCE:?}: {what}");
        pause(span, what);
        waited += span;
    }
}

/// Names, types and help texts of a metrics page, in order: dashboards and alerts depend on them.
pub fn described(metrics: &str) -> String {
    let mut lines: Vec<&str> = metrics.split_inclusive('\n').filter(|line| line.starts_with('#')).collect();
    lines.sort_unstable();
    lines.concat()
}

/// An actor as text: `vm web-0 at 10.0.0.4`.
pub fn actor(fact: &Value) -> String {
    serde_json::from_value::<notbefore_wire::operator::Fact>(fact.clone()).unwrap().by.to_string()
}

/// Facts of an event with their actors.
pub fn trail(shown: &Value) -> Vec<(String, String)> {
    let fact = |fact: &Value| (fact["type"].as_str().unwrap().to_owned(), actor(fact));
    shown["trail"].as_array().unwrap().iter().map(fact).collect()
}

/// The id of the first event of a document.
pub fn first_event(document: &Value) -> String {
    document["Events"][0]["EventId"].as_str().unwrap_or_else(|| panic!("no event in {document}")).to_owned()
}

/// Processes, except zombies, whose command line contains a text.
pub fn processes_with(text: &str) -> Vec<u32> {
    let own = std::process::id();
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        // Zombies have an empty command line.
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    numbers.filter(|&pid| pid != own).filter(holds).collect()
}
