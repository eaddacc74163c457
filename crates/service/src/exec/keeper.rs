//! The keeper: a process between the service and one command. It ensures that no process of the command outlives its
//! run.
//!
//! A command may fork and start its own sessions and process groups, and the service may be killed with SIGKILL at any
//! time. The parent-death signal of the kernel is not enough: it must be set between fork and exec, which needs unsafe
//! code, and it does not reach grandchildren. So the service starts its own binary as `notbefore exec-keeper DIRECTORY
//! COMMAND`. That process:
//!
//! - is a *child subreaper*: orphans below it become its children, so all descendants of the command can be found
//!   through their parents in `/proc`;
//! - has one end of a socket as standard input. An order on it requests SIGTERM for all descendants, or renews the
//!   command's lease. End of file, which comes however the service dies, kills all of them. So does the end of the
//!   lease, because a service that was stopped neither dies nor orders (`lease.rs`);
//! - kills the processes that the command leaves behind, waits until none is left, and then writes to the socket how
//!   the command ended (`End`).
//!
//! The keeper holds a lock on the directory of results, so that the next service can wait for it. SIGTERM, which a
//! service manager may send to all processes of the service, is forwarded to the command. Other signals of terminals
//! and scripts are ignored. A keeper that is killed with SIGKILL leaves the command and a record of it, with which the
//! service ends the command (`orphans.rs`).
//!
//! Alternatives: a control group per command needs delegation, root or systemd. A PID namespace needs privileges and
//! hides the host from the command. A command can leave a process group with setsid.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::mpsc;

use super::lease::{Lease, LeaseState};
use super::orphans::PidRecord;
use super::processes::{Process, descendants};
use crate::clock::{Clock, SystemClock};

/// The subcommand that runs a keeper.
pub const SUBCOMMAND: &str = "exec-keeper";
/// The order that requests SIGTERM. An order is a number of 8 bytes, big-endian; any other is the new end of the lease,
/// in milliseconds since boot.
pub(super) const TERMINATE: u64 = 0;
/// First and longest interval between two rounds of SIGKILL. A process in a system call dies later; a process that
/// cannot be signalled (setuid) ends by itself.
const KILL_BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// How a command ended, as JSON on the socket. `left` is the number of processes that it left behind and that were
/// killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// It could not be started.
    NotStarted {
        errno: i32,
    },
    Exited {
        code: i32,
        left: usize,
    },
    Killed {
        signal: i32,
        left: usize,
    },
    /// Its lease ended before it did.
    LeaseOver,
}

/// Waits until no keeper locks the directory of results; false if one still does after `patience`.
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
    // Closing the file releases the lock.
    tokio::time::timeout(patience, released).await.map_or(Ok(false), |locked| locked.map(|()| true))
}

/// Signals that would end or stop a keeper, and that a terminal, a closing session or a script may send. They get empty
/// handlers and are not ignored: exec resets handlers to the default, but a command would inherit an ignored signal.
/// SIGTERM is handled separately.
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

/// Runs a command that may write `result`, and returns when none of its processes is left. Standard input is the socket
/// to the service. `lease_until` is the end of the command's lease, if it has one, as time since boot.
pub fn keep(result: &Path, command: &OsStr, lease_until: Option<Duration>) -> io::Result<()> {
    let results = result.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Network file systems may not support locks; then the records are enough.
    let lock = fs::File::open(results)?;
    let _ = lock.try_lock_shared();
    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    // Any non-zero process id enables it.
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut order_bytes, mut report) = UnixStream::from_std(socket)?.into_split();
        let (send, mut orders) = mpsc::channel(1);
        // A task of its own, because a read of several bytes cannot be cancelled.
        tokio::spawn(async move {
            while let Ok(order) = order_bytes.read_u64().await
                && send.send(order).await.is_ok()
            {}
        });
        let mut children = signal(SignalKind::child())?;
        for survived in SURVIVED {
            // The handler stays registered.
            drop(signal(SignalKind::from_raw(survived.as_raw()))?);
        }
        let lease = Lease::new(lease_until);
        let ending = supervise(result, command, lease, &mut orders, &mut children).await?;
        // The service may have died.
        let _ = report.write_all(&serde_json::to_vec(&ending).unwrap_or_default()).await;
        Ok(())
    })
}

/// Starts the command and waits for the end of its last descendant.
async fn supervise(
    result: &Path,
    command: &OsStr,
    mut lease: Lease,
    orders: &mut mpsc::Receiver<u64>,
    children: &mut Signals,
) -> io::Result<End> {
    let clock = SystemClock;
    let mut terminate = signal(SignalKind::terminate())?;
    let not_started = |error: io::Error| End::NotStarted { errno: error.raw_os_error().unwrap_or_default() };
    // Without a record, the next service could not find the command.
    let mut recorder = match PidRecord::begin(result) {
        Ok(recorder) => recorder,
        Err(error) => return Ok(not_started(error)),
    };
    // The service may have been stopped just before it started this process.
    if lease.check(clock.since_boot()) != LeaseState::Valid {
        return Ok(End::LeaseOver);
    }
    // An own process group, so that a script that signals its group (`kill 0`) does not signal the keeper.
    let spawned = Command::new(command).stdin(Stdio::null()).process_group(0).spawn();
    let main = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return Ok(not_started(error)),
    };
    let recorded = recorder.add(main);
    let mut status = None;
    let mut is_terminating = false;
    while reap(main, &mut status) && recorded.is_ok() {
        // After a SIGTERM, the descendants may use the rest of their time for cleanup. After a normal exit of the
        // command, they are killed.
        if status.is_some() && !is_terminating {
            break;
        }
        let now = clock.since_boot();
        let mut must_terminate = match lease.check(now) {
            LeaseState::Valid => false,
            LeaseState::Over => !is_terminating,
            LeaseState::LongOver => break,
        };
        if !must_terminate {
            tokio::select! {
                _ = children.recv() => {}
                _ = terminate.recv() => must_terminate = true,
                order = orders.recv() => match order {
                    Some(TERMINATE) => must_terminate = true,
                    Some(until) => lease.renew(Duration::from_millis(until)),
                    None => break,
                },
                () = pause(lease.next_check(now)) => {}
            }
        }
        if must_terminate {
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
    if lease.is_over() {
        return Ok(End::LeaseOver);
    }
    let status = status.ok_or_else(|| io::Error::other("the command's exit status was not found"))?;
    Ok(match status.signal() {
        Some(signal) => End::Killed { signal, left },
        None => End::Exited { code: status.code().unwrap_or_default(), left },
    })
}

/// Waits for ever without a time.
async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Reaps all ended children; true if others are left.
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

/// Signals all descendants of this process and returns their number.
fn signal_all(signal: Signal) -> usize {
    descendants(getpid(), &Process::all()).iter().filter(|process| process.signal(signal).is_ok()).count()
}
