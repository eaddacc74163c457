//! One program, from its start to its end: in a process group of its own, with the variables in its environment and on
//! stdin, and within its budget.
//!
//! When its time is up, or it is told to stop, the group is asked to end (SIGTERM), and what is left of it after a
//! grace is killed. A program that ends well may leave something running: that is what starting a daemon is. It is
//! done when it has ended itself, whoever still holds its pipes. Windows has no groups: there the tree of processes is
//! killed without a grace (`windows.rs`).

#[cfg(unix)]
#[path = "process/unix.rs"]
mod group;
#[cfg(windows)]
#[path = "process/windows.rs"]
mod group;

#[cfg(unix)]
#[path = "process/find_unix.rs"]
mod find;
#[cfg(windows)]
#[path = "process/find_windows.rs"]
mod find;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

pub use find::find;

use super::HookError;
use super::output::{Tail, follow};
use super::stop::{Stop, TIMEOUT_GRACE};
use super::variables::HookVariables;
use crate::machine::io::StepOutcome;

/// How long a killed process has until it is given up on. The kernel needs milliseconds, but for one that waits for
/// a dead disk.
const KILLED_GRACE: Duration = Duration::from_millis(500);
/// How long the last words may take to arrive when the program has ended. If they do not, something else holds the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// How many of the last lines are logged of a program that failed.
const LINES_SHOWN: usize = 20;
/// Variables by which systemd knows the agent, and which a hook would speak in its name with.
const VARIABLES_REMOVED: [&str; 4] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "STATE_DIRECTORY"];

/// A program to be run.
#[derive(Clone, Debug)]
pub enum Program {
    /// With arguments.
    Argv(Vec<String>),
    /// A line for the system's shell.
    Shell(String),
}

impl Program {
    /// What it is called in messages.
    fn name(&self) -> &str {
        match self {
            Program::Argv(argv) => argv.first().map_or("", String::as_str),
            Program::Shell(_) => group::SHELL,
        }
    }

    fn command(&self) -> Result<Command, HookError> {
        match self {
            Program::Argv(argv) => {
                let mut command = Command::new(find::to_start(self.name())?);
                command.args(argv.iter().skip(1));
                Ok(command)
            }
            Program::Shell(line) => Ok(group::shell(line)),
        }
    }
}

/// Where a program of this name may be: there, if it names a place; else in one of the directories of `PATH`.
fn places(name: &str) -> Vec<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return vec![PathBuf::from(name)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).collect()
}

/// A program that has run, and the last of what it said.
#[derive(Debug)]
pub struct ProcessResult {
    /// How it ended.
    pub outcome: StepOutcome,
    /// Whether it ran at all.
    pub started: bool,
    streams: [(&'static str, Tail); 2],
}

impl ProcessResult {
    /// The end of one that failed goes to the log.
    pub fn logged(self) -> StepOutcome {
        if matches!(self.outcome, StepOutcome::Failed { .. } | StepOutcome::TimedOut) {
            for (stream, tail) in &self.streams {
                for line in tail.lines(LINES_SHOWN) {
                    tracing::warn!(target: "notbefore_agent::hook", stream, "{line}");
                }
            }
        }
        self.outcome
    }
}

/// Runs a program until it ends, its time is up, or it is told to stop.
pub async fn run(
    program: &Program,
    variables: &HookVariables,
    budget: Duration,
    stop: &mut Stop,
) -> ProcessResult {
    let (out, err) = (Tail::default(), Tail::default());
    let streams = [("stdout", out.clone()), ("stderr", err.clone())];
    let mut child = match start(program, variables) {
        Ok(child) => child,
        Err(HookError(reason)) => {
            return ProcessResult { outcome: StepOutcome::Failed { reason }, started: false, streams };
        }
    };
    let pid = child.id();
    let read_out = child.stdout.take().map(|stream| follow(stream, "stdout", out.clone()).in_current_span());
    let read_err = child.stderr.take().map(|stream| follow(stream, "stderr", err.clone()).in_current_span());
    let readers = [read_out.map(tokio::spawn), read_err.map(tokio::spawn)];
    let telling = child.stdin.take().map(|mut stdin| {
        let json = variables.json.clone();
        // A hook that does not read is fine.
        tokio::spawn(async move {
            let _ = stdin.write_all(json.as_bytes()).await;
        })
    });

    let end = tokio::select! {
        biased;
        status = child.wait() => End::Ended(status),
        grace = stop.requested() => End::Stopped(grace),
        () = sleep(budget) => End::TimedOut,
    };
    match (&end, pid) {
        (End::Stopped(grace), _) => group::end(&mut child, *grace).await,
        (End::TimedOut, _) => group::end(&mut child, TIMEOUT_GRACE).await,
        // What a failed program has left in its group is part of the failure.
        (End::Ended(Ok(status)), Some(pid)) if !status.success() => group::kill_group(pid),
        (End::Ended(_), _) => {}
    }
    finish_output(readers, matches!(&end, End::Ended(Ok(status)) if status.success())).await;
    if let Some(telling) = telling {
        telling.abort();
    }
    let outcome = match end {
        End::Ended(Ok(status)) if status.success() => StepOutcome::Done,
        End::Ended(Ok(status)) => {
            let last = err.lines(1).pop().or_else(|| out.lines(1).pop());
            let said = last.map(|line| format!(": {line}")).unwrap_or_default();
            StepOutcome::Failed { reason: format!("{}{said}", exit_text(status)) }
        }
        End::Ended(Err(error)) => {
            StepOutcome::Failed { reason: format!("nobody can tell how {} ended: {error}", program.name()) }
        }
        End::Stopped(_) => StepOutcome::Stopped,
        End::TimedOut => StepOutcome::TimedOut,
    };
    ProcessResult { outcome, started: true, streams }
}

/// Waits a little for the last words. Where a program ended well, whoever still holds its pipes is what it has left running,
/// and is read on for as long as it lives: its next word would be its last if nobody did.
async fn finish_output(readers: [Option<JoinHandle<()>>; 2], ended_well: bool) {
    let mut readers = readers.into_iter().flatten().collect::<Vec<_>>();
    let all = async {
        for reader in &mut readers {
            let _ = reader.await;
        }
    };
    if timeout(OUTPUT_GRACE, all).await.is_err() && !ended_well {
        for reader in readers {
            reader.abort();
        }
    }
}

#[derive(Debug)]
enum End {
    Ended(io::Result<ExitStatus>),
    Stopped(Duration),
    TimedOut,
}

/// Starts a program, or says why it cannot be started.
fn start(program: &Program, variables: &HookVariables) -> Result<Child, HookError> {
    let mut command = program.command()?;
    for name in VARIABLES_REMOVED {
        command.env_remove(name);
    }
    command.envs(variables.variables());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group::set_process_group(&mut command);
    command.spawn().map_err(|error| not_started(program.name(), &error))
}

/// How a program ended that did not end well.
fn exit_text(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => group::signal_of(status),
    }
}

/// Why a program could not be started, and the cure.
fn not_started(name: &str, error: &io::Error) -> HookError {
    let why = if error.kind() == io::ErrorKind::NotFound {
        group::NOT_FOUND
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "it is not executable for the user that the agent runs as"
    } else if group::is_no_program(error) {
        group::NO_PROGRAM
    } else {
        return HookError(format!("cannot start {name}: {error}"));
    };
    HookError(format!("cannot start {name}: {why}"))
}
