//! Runs one program in its own process group, within a budget, with the event in its environment and on stdin.
//!
//! On timeout or stop, the group gets SIGTERM, and SIGKILL after a grace period. A program that exits successfully
//! may leave a daemon running, so it is done when it exits, even if other processes hold its pipes. Windows has no
//! such groups: there the process tree is killed without a grace period (`windows.rs`).

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

/// How long a killed process has to exit. The kernel needs milliseconds, unless it waits for a dead disk.
const KILLED_GRACE: Duration = Duration::from_millis(500);
/// How long the last output may take after the program exits. After that, another process holds the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Lines of output logged for a failed program.
const LINES_SHOWN: usize = 20;
/// systemd's variables for the agent; a hook with them could impersonate it.
const VARIABLES_REMOVED: [&str; 4] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "STATE_DIRECTORY"];

#[derive(Clone, Debug)]
pub enum Program {
    Argv(Vec<String>),
    /// A command line for the system's shell.
    Shell(String),
}

impl Program {
    /// Name in messages.
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

/// Candidate paths of a program: its own path, or one per directory of `PATH`.
fn places(name: &str) -> Vec<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return vec![PathBuf::from(name)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).collect()
}

/// Outcome of a program, with the tail of its output.
#[derive(Debug)]
pub struct ProcessResult {
    pub outcome: StepOutcome,
    pub started: bool,
    streams: [(&'static str, Tail); 2],
    /// The stream whose last line is part of the reason of a failure.
    quoted: Option<&'static str>,
}

impl ProcessResult {
    /// Logs the tail of a failed program, without the line that its reason repeats.
    pub fn logged(self) -> StepOutcome {
        if matches!(self.outcome, StepOutcome::Failed { .. } | StepOutcome::TimedOut) {
            for (stream, tail) in self.streams.iter().filter(|(_, tail)| !tail.is_logged()) {
                let mut lines = tail.lines(LINES_SHOWN);
                if self.quoted == Some(*stream) {
                    lines.pop();
                }
                for line in lines {
                    tracing::warn!(target: "notbefore_agent::hook", stream, "{line}");
                }
            }
        }
        self.outcome
    }
}

/// Runs a program until it exits, times out or is stopped.
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
            let outcome = StepOutcome::Failed { reason };
            return ProcessResult { outcome, started: false, streams, quoted: None };
        }
    };
    let pid = child.id();
    let read_out = child.stdout.take().map(|stream| follow(stream, "stdout", out.clone()).in_current_span());
    let read_err = child.stderr.take().map(|stream| follow(stream, "stderr", err.clone()).in_current_span());
    let readers = [read_out.map(tokio::spawn), read_err.map(tokio::spawn)];
    let telling = child.stdin.take().map(|mut stdin| {
        let json = variables.json.clone();
        // A hook need not read stdin.
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
        // Kill remaining processes of a failed program's group.
        (End::Ended(Ok(status)), Some(pid)) if !status.success() => group::kill_group(pid),
        (End::Ended(_), _) => {}
    }
    finish_output(readers, matches!(&end, End::Ended(Ok(status)) if status.success())).await;
    if let Some(telling) = telling {
        telling.abort();
    }
    let mut quoted = None;
    let outcome = match end {
        End::Ended(Ok(status)) if status.success() => StepOutcome::Done,
        End::Ended(Ok(status)) => {
            let last = [("stderr", &err), ("stdout", &out)]
                .into_iter()
                .find_map(|(stream, tail)| Some((stream, tail.lines(1).pop()?)));
            quoted = last.as_ref().map(|(stream, _)| *stream);
            let said = last.map(|(_, line)| format!(": {line}")).unwrap_or_default();
            StepOutcome::Failed { reason: format!("{}{said}", exit_text(status)) }
        }
        End::Ended(Err(error)) => StepOutcome::Failed {
            reason: format!("cannot read the exit status of {}: {error}", program.name()),
        },
        End::Stopped(_) => StepOutcome::Stopped,
        End::TimedOut => StepOutcome::TimedOut,
    };
    ProcessResult { outcome, started: true, streams, quoted }
}

/// Waits shortly for the last output. After a success, a remaining process may hold the pipes; they are read until it
/// exits, because closing them would kill it with SIGPIPE.
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

/// Starts a program, or explains why it cannot be started.
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

/// How a program failed.
fn exit_text(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => group::signal_of(status),
    }
}

/// Why a program could not be started, with a fix.
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
