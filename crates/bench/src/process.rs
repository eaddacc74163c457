//! Child processes pinned to a core that end with the benchmark.
//!
//! The wrappers `setpriv` and `taskset` exec the program, so its pid is the child's. The kernel kills it when the
//! benchmark dies, even by `kill -9` (parent-death signal); dropping it kills it too.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::Context;
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

/// Cores of server and load.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// Core of the server.
    pub server: usize,
    /// Core of the load generator and the benchmark itself.
    pub load: usize,
}

impl Cores {
    /// The first two usable cores; the same one twice if there is only one.
    pub fn choose() -> anyhow::Result<Self> {
        let allowed = rustix::thread::sched_getaffinity(None).context("asking for the cores")?;
        let mut usable = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let server = usable.next().context("no core to run on")?;
        Ok(Self { server, load: usable.next().unwrap_or(server) })
    }

    /// Lets this thread, and threads that it starts, use both cores.
    pub fn use_both(self) -> anyhow::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.load);
        set.set(self.server);
        rustix::thread::sched_setaffinity(None, &set).context("using both cores")
    }

    /// Pins the benchmark, and children without a core of their own, to the load's core.
    pub fn pin_to_load_core(self) -> anyhow::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.load);
        rustix::thread::sched_setaffinity(None, &set).context("staying on the load's core")
    }
}

/// How to end a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGKILL, like a power failure.
    Kill,
    /// SIGTERM: it has to stop its own children.
    Terminate,
}

/// Cores of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSet {
    /// This core only.
    Core(usize),
    /// Any core, including the load's.
    Anywhere,
}

/// A command that runs on its cores and ends with the benchmark.
pub fn pinned(cores: CoreSet, end: End, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    let signal = match end {
        End::Kill => "KILL",
        End::Terminate => "TERM",
    };
    let cores = match cores {
        CoreSet::Core(core) => core.to_string(),
        // Missing ones are ignored.
        CoreSet::Anywhere => format!("0-{}", CpuSet::MAX_CPU - 1),
    };
    command.args(["--pdeathsig", signal, "--", "taskset", "--cpu-list", &cores]).arg(program);
    command
}

/// A child that is killed when dropped.
pub struct Owned {
    child: Child,
    end: End,
}

impl Owned {
    /// Starts the child.
    pub fn spawn(command: &mut Command, end: End) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Self { child, end })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends the process and waits for it.
    pub fn end(&mut self) {
        // A reaped pid may be reused.
        if matches!(self.child.try_wait(), Ok(None)) {
            let signal = match self.end {
                End::Kill => Signal::KILL,
                End::Terminate => Signal::TERM,
            };
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command that must succeed; returns its output.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        anyhow::bail!("{command:?} failed: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(stdout)
}

/// The last lines of a log, for error messages.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
