//! The keeper: a small process between the service and one command, which sees to it that nothing of the
//! command outlives its run.
//!
//! A command may fork, fork twice, start sessions and process groups of its own; and the service may be killed
//! with -9 at any moment, when no code of its own can run any more. What the kernel offers for this alone (a
//! signal to children when their parent dies) has to be asked for between fork and exec, which is unsafe code,
//! and does not reach grandchildren. So the service starts its own binary once more, as `notbefore exec-keeper
//! DIRECTORY COMMAND`, and that process
//!
//! - becomes a *child subreaper*: whatever is orphaned below it becomes its own child, so that all that stems
//!   from the command can be found by walking up the parents in `/proc`;
//! - holds one end of a socket as its standard input. One byte on it asks the command to end (SIGTERM to all);
//!   its end, which comes with the service's own, however that dies, has everything killed;
//! - kills whatever the command leaves behind when it ends, waits until nothing is left, and only then says on
//!   the same socket how the command ended (`End`).
//!
//! While it runs it holds a lock on the directory of results, so that the next service can wait until nothing of this
//! one's commands is left. SIGTERM, which a service manager may send to the whole service, asks the command to end; other
//! signals that a terminal or a script sends do nothing. Killed with -9, it leaves the command behind, and a record of
//! it (`earlier.rs`), by which the service ends the command.
//!
//! Roads not taken: a control group per command (needs one delegated, and root or systemd); a PID namespace
//! (needs privileges, and hides the host from the command); a process group (a command leaves it with setsid).

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::orphans::PidRecord;
use super::processes::{Process, descendants};

/// The subcommand under which the binary is a keeper.
pub const SUBCOMMAND: &str = "exec-keeper";
/// What the service sends to have the command asked to end.
pub(super) const TERMINATE: u8 = b't';
/// How often what will not die is killed again, at first and at most. Killing takes effect at once but for a
/// process in the midst of a system call; what is not ours to kill (a setuid program's) ends in its own time.
const KILL_BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// How a command ended; `left` is how many processes it left behind, which were killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It could not be started; the system's error number says why.
    NotStarted { errno: i32 },
    /// It exited.
    Exited { code: i32, left: usize },
    /// A signal ended it.
    Killed { signal: i32, left: usize },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { errno } => write!(f, "not-started {errno} 0"),
            Self::Exited { code, left } => write!(f, "exited {code} {left}"),
            Self::Killed { signal, left } => write!(f, "killed {signal} {left}"),
        }
    }
}

impl FromStr for End {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let (Some(how), Some(number), Some(left), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(());
        };
        let (number, left) = (number.parse().map_err(|_| ())?, left.parse().map_err(|_| ())?);
        match how {
            "not-started" => Ok(Self::NotStarted { errno: number }),
            "exited" => Ok(Self::Exited { code: number, left }),
            "killed" => Ok(Self::Killed { signal: number, left }),
            _ => Err(()),
        }
    }
}

/// Waits until no keeper holds a directory of results any more; answers false if some still do after `patience`.
pub(super) async fn wait_for_keepers(results: &Path, patience: Duration) -> io::Result<bool> {
    let directory = fs::File::open(results)?;
    let released = async {
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(()),
                Err(fs::TryLockError::WouldBlock) => tokio::time::sleep(KILL_BACK_OFF.0).await,
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    };
    // The lock goes with the handle.
    tokio::time::timeout(patience, released).await.map_or(Ok(false), |locked| locked.map(|()| true))
}

/// Signals that would end or stop a keeper, and that a terminal, the end of a session or a script may send to it.
/// Their handlers do nothing, and a command has the defaults again: exec resets handlers, but would hand on that a
/// signal is ignored. SIGTERM has a meaning of its own.
const SURVIVED: [Signal; 16] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::PIPE,
    Signal::ALARM,
    Signal::IO,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::POWER,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// Runs a command that may write `result`, and ends when nothing of it is left. Standard input is the socket to the
/// service.
pub fn keep(result: &Path, command: &OsStr) -> io::Result<()> {
    let results = result.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Where it cannot be had, on a network's file system, the records have to do.
    let lock = fs::File::open(results)?;
    let _ = lock.try_lock_shared();
    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    // Any process id that is not zero means yes.
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut socket = UnixStream::from_std(socket)?;
        let mut children = signal(SignalKind::child())?;
        for survived in SURVIVED {
            // The handler stays.
            drop(signal(SignalKind::from_raw(survived.as_raw()))?);
        }
        let ending = supervise(result, command, &mut socket, &mut children).await?;
        // Whoever wanted to know may have gone.
        let _ = socket.write_all(ending.to_string().as_bytes()).await;
        Ok(())
    })
}

/// Starts the command and follows it to the end of the last process that stems from it.
async fn supervise(
    result: &Path,
    command: &OsStr,
    socket: &mut UnixStream,
    children: &mut Signals,
) -> io::Result<End> {
    let mut terminate = signal(SignalKind::terminate())?;
    let not_started = |error: io::Error| End::NotStarted { errno: error.raw_os_error().unwrap_or_default() };
    // Without a record the next service would not find the command.
    let mut recorder = match PidRecord::begin(result) {
        Ok(recorder) => recorder,
        Err(error) => return Ok(not_started(error)),
    };
    // A group of its own: a script that signals its group (`kill 0`) does not mean its keeper.
    let spawned = Command::new(command).stdin(Stdio::null()).process_group(0).spawn();
    let main = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return Ok(not_started(error)),
    };
    let recorded = recorder.add(main);
    let mut status = None;
    let mut is_terminating = false;
    while reap(main, &mut status) && recorded.is_ok() {
        // A command that was asked to end may take the rest of its time to do so in good order, with all that
        // belongs to it; one that ended by itself has nothing left to do.
        if status.is_some() && !is_terminating {
            break;
        }
        let mut order = 0;
        tokio::select! {
            _ = children.recv() => {}
            _ = terminate.recv() => order = TERMINATE,
            read = socket.read_u8() => match read {
                Ok(byte) => order = byte,
                Err(_) => break,
            },
        }
        if order == TERMINATE {
            is_terminating = true;
            signal_all(Signal::TERM);
        }
    }
    let mut left = 0;
    let mut pause = KILL_BACK_OFF.0;
    while reap(main, &mut status) {
        left = left.max(signal_all(Signal::KILL));
        let _ = tokio::time::timeout(pause, children.recv()).await;
        pause = (pause * 2).min(KILL_BACK_OFF.1);
    }
    let status = status.ok_or_else(|| io::Error::other("the command was never seen to end"))?;
    Ok(match status.signal() {
        Some(signal) => End::Killed { signal, left },
        None => End::Exited { code: status.code().unwrap_or_default(), left },
    })
}

/// Takes leave of all children that have ended, and answers whether there are any others.
fn reap(main: Pid, status: &mut Option<ExitStatus>) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) if pid == main => *status = Some(ExitStatus::from_raw(ended.as_raw())),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Signals all that stems from this process, and answers how many that were.
fn signal_all(signal: Signal) -> usize {
    descendants(getpid(), &Process::all()).iter().filter(|process| process.signal(signal).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_round_trips_as_text() {
        let endings = [
            End::NotStarted { errno: 2 },
            End::Exited { code: 3, left: 2 },
            End::Killed { signal: 9, left: 0 },
        ];
        for ending in endings {
            assert_eq!(ending.to_string().parse(), Ok(ending));
        }
        for garbage in ["", "exited", "exited 1", "exited one 0", "exited 1 0 0", "left 1 0"] {
            assert_eq!(garbage.parse::<End>(), Err(()), "{garbage:?}");
        }
    }
}
