//! The service under test: the release binary on free loopback ports, with its own data directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::clock::{now, pause};
use crate::http::{Client, Kept};
use crate::process::{CoreSet, End, Owned, pinned, tail};

/// Target of a poll at the newest api-version.
pub const POLL: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A rate limit that is never reached. The check still runs and is measured.
const UNLIMITED_RATE: &str = "4000000000";

/// Pause between attempts while a service is not ready.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// Longest time for which a refused request is repeated.
const REFUSED_MAX: Duration = Duration::from_secs(60);

/// The binary and its core.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The release binary.
    pub path: PathBuf,
    /// The server's core.
    pub core: usize,
    /// A tool that wraps it, with its flags.
    pub under: Vec<String>,
}

/// Rate limit per VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Unlimited, but still counted.
    Unlimited,
    /// The service's default.
    Usual,
}

/// A running service.
pub struct Service {
    process: Owned,
    /// Address of the guest listener.
    pub guest: SocketAddr,
    /// Address of the operator listener.
    pub operator: SocketAddr,
    token: String,
}

/// A service that has not printed its addresses yet.
pub struct Starting {
    process: Owned,
    log: PathBuf,
    token: PathBuf,
}

impl Starting {
    /// Starts a node of a cluster on all cores. `token` is the file with the first token of all nodes. The kernel kills
    /// the node when this thread ends.
    pub fn node(
        binary: &Binary,
        data: &Path,
        rate: Rate,
        token: &Path,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let root = token.to_str().context("a path that is no text")?;
        let flags = [&["--root-token-file", root], flags].concat();
        Self::spawn(CoreSet::Anywhere, binary, data, rate, token.to_owned(), &flags)
    }

    fn spawn(
        cores: CoreSet,
        binary: &Binary,
        data: &Path,
        rate: Rate,
        token: PathBuf,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let log = data.with_extension("log");
        let program = binary.path.as_os_str();
        let mut words = binary.under.iter().map(OsStr::new).chain([program]);
        let mut command = pinned(cores, End::Kill, words.next().unwrap_or(program));
        command.args(words).arg("serve").arg("--data").arg(data);
        command.args(["--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]);
        if rate == Rate::Unlimited {
            command.args(["--rate-limit", UNLIMITED_RATE]);
        }
        command.args(flags);
        command.env("NOTBEFORE_LOG", "warn").stdout(Stdio::piped()).stderr(File::create(&log)?);
        Ok(Self { process: Owned::spawn(&mut command, End::Kill)?, log, token })
    }

    /// Waits until the service accepts requests.
    pub fn wait(self) -> anyhow::Result<Service> {
        let Self { mut process, log, token } = self;
        let printed = process.child().stdout.take().context("the service's output")?;
        let mut lines = BufReader::new(printed).lines();
        let (mut guest, mut operator) = (None, None);
        while operator.is_none() {
            let line =
                lines.next().with_context(|| format!("the service did not start:\n{}", tail(&log)))??;
            let address = line.split("://").nth(1).and_then(|rest| rest.split('/').next());
            let address = address.and_then(|text| text.parse::<SocketAddr>().ok());
            match line.trim_start().split(' ').next() {
                Some("guests") => guest = guest.or(address),
                Some("operators") => operator = address,
                Some(_) | None => {}
            }
        }
        // Later output must not fill the pipe and block the service.
        std::thread::spawn(move || for _ in lines.by_ref() {});
        let token = std::fs::read_to_string(token).context("reading the token")?;
        Ok(Service {
            process,
            guest: guest.context("a service without a guest listener")?,
            operator: operator.context("a service without an operator listener")?,
            token: token.trim().to_owned(),
        })
    }
}

impl Service {
    /// Starts it on its core with a data directory, and waits until it accepts requests.
    pub fn start(binary: &Binary, data: &Path, rate: Rate, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_at(CoreSet::Core(binary.core), binary, data, rate, flags)
    }

    /// Starts it on all cores, for scenarios that measure completion time rather than CPU time per request.
    pub fn start_anywhere(binary: &Binary, data: &Path, rate: Rate, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_at(CoreSet::Anywhere, binary, data, rate, flags)
    }

    fn start_at(
        cores: CoreSet,
        binary: &Binary,
        data: &Path,
        rate: Rate,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let token = data.join("operator.token");
        Starting::spawn(cores, binary, data, rate, token, flags)?.wait()
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills it (SIGKILL), like a power failure.
    pub fn kill(&mut self) {
        self.process.end();
    }

    /// Sends a signal, and does not wait.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        Ok(rustix::process::kill_process(Pid::from_child(self.process.child()), signal)?)
    }

    /// Stops it gracefully.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let ended = self.process.child().wait()?;
        anyhow::ensure!(ended.success(), "the service ended with {ended}");
        Ok(())
    }

    /// Headers of an operator request.
    pub fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.token)
    }

    /// An operator's connection.
    pub fn operator(&self) -> anyhow::Result<Client> {
        Client::connect(Ipv4Addr::LOCALHOST, self.operator, self.authorization())
    }

    /// Connection of the guest with this address.
    pub fn guest(&self, source: Ipv4Addr) -> anyhow::Result<Client> {
        Client::guest(source, self.guest)
    }

    /// One operator request, which must succeed.
    ///
    /// Repeats a request that changed nothing, as its answer asks for: a node that is slowed down, by valgrind or a busy
    /// machine, loses the lead now and then.
    pub fn operate(&self, method: &str, target: &str, body: &Value) -> anyhow::Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let since = now();
        loop {
            let answer = self.operator()?.request(method, target, &body)?;
            let is_refused = answer.status == 503 && answer.body.contains(r#""code":"unavailable""#);
            if !is_refused || since.elapsed() > REFUSED_MAX {
                return answer.json().with_context(|| format!("{method} {target}"));
            }
            pause(RETRY_EVERY);
        }
    }

    /// One poll from an address, which must return 200.
    pub fn poll(&self, source: Ipv4Addr) -> anyhow::Result<Kept> {
        let answer = self.guest(source)?.request("GET", POLL, "")?;
        anyhow::ensure!(answer.status == 200, "a poll was answered {}: {}", answer.status, answer.body);
        Ok(answer)
    }

    /// Waits until the service reports that it is ready.
    pub fn wait_until_ready(&self) -> anyhow::Result<()> {
        self.wait_for_200("/readyz")
    }

    /// Waits until a node of a cluster knows a leader.
    pub fn wait_until_changes_are_taken(&self) -> anyhow::Result<()> {
        self.wait_for_200("/readyz?changes")
    }

    fn wait_for_200(&self, target: &str) -> anyhow::Result<()> {
        let mut client = self.operator()?;
        while client.request("GET", target, "")?.status != 200 {
            pause(RETRY_EVERY);
        }
        Ok(())
    }
}
