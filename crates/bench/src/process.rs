//! Processes that end with the benchmark, whatever happens, and stay on the core they are given.
//!
//! The wrappers `setpriv` and `taskset` become the process they start, so its id is the child's. The kernel ends
//! it when the benchmark dies, even by `kill -9`; dropping it ends it in the ordinary course.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::Context;
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

/// Which core serves and which makes the load.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// The server's.
    pub server: usize,
    /// The load's, and the benchmark's own.
    pub load: usize,
}

impl Cores {
    /// The first two that this process may use; one for both where there is only one.
    pub fn choose() -> anyhow::Result<Self> {
        let allowed = rustix::thread::sched_getaffinity(None).context("asking for the cores")?;
        let mut usable = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let server = usable.next().context("no core to run on")?;
        Ok(Self { server, load: usable.next().unwrap_or(server) })
    }

    /// Keeps the benchmark, and what it starts without a core of its own, on the load's core.
    pub fn stay_on_load(self) -> anyhow::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.load);
        rustix::thread::sched_setaffinity(None, &set).context("staying on the load's core")
    }
}

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As a power cut would.
    Kill,
    /// Politely: it has processes of its own to end.
    Terminate,
}

/// Where a process may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this core alone.
    Core(usize),
    /// On whichever is free, the load's included.
    Anywhere,
}

/// A command that runs on its cores and ends with the benchmark.
pub fn pinned(place: Place, end: End, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    let signal = match end {
        End::Kill => "KILL",
        End::Terminate => "TERM",
    };
    let cores = match place {
        Place::Core(core) => core.to_string(),
        // Those that do not exist are passed over.
        Place::Anywhere => format!("0-{}", CpuSet::MAX_CPU - 1),
    };
    command.args(["--pdeathsig", signal, "--", "taskset", "--cpu-list", &cores]).arg(program);
    command
}

/// A child that is ended when it is dropped.
pub struct Owned {
    child: Child,
    end: End,
}

impl Owned {
    /// Starts it.
    pub fn spawn(command: &mut Command, end: End) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Self { child, end })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends it and waits until it has.
    pub fn end(&mut self) {
        // A process that has been waited for already may have given its number to another.
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

/// Runs a command to its end and gives what it printed; it must succeed.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        anyhow::bail!("{command:?} failed: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(said)
}

/// The last lines of a log, for telling why something did not start.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
