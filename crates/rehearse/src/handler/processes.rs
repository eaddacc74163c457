//! The processes of a handler: starts one run after the other, and signals all of them.
//!
//! They are found in two ways:
//!
//! - the process group that the run's first process leads. That process stays a zombie until the next run, or until
//!   the handler is stopped, so that no later process gets its id and group;
//! - the environment. Processes that leave the group, and those of earlier runs, have the handler's variable
//!   `NOTBEFORE_HOOK`, which is unique. A pidfd keeps the signal from a later process with the same id.
//!
//! Not found: a process that leaves the group and also clears its environment.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::keeper::Keeper;

/// Time for killed processes to end. One in a system call ends later, such as one on a file system that hangs.
const KILLED_GRACE: Duration = Duration::from_secs(5);
/// The same for a handler that is dropped, which blocks its thread.
const DROPPED_GRACE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

#[derive(Debug)]
pub(super) struct Processes {
    /// `NAME=VALUE`, as in `/proc/PID/environ`.
    variable: Vec<u8>,
    keeper: Option<Keeper>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// No run starts any more.
    is_closed: bool,
    leader: Option<Leader>,
}

/// The first process of the current run, which was not reaped.
#[derive(Debug)]
struct Leader {
    child: Child,
    descriptor: OwnedFd,
    /// Whether [`Processes::take_exit`] has returned its exit.
    is_exit_taken: bool,
}

impl Processes {
    pub(super) fn new(name: &str, value: &str, keeper: Option<Keeper>) -> Self {
        Self { variable: format!("{name}={value}").into_bytes(), keeper, state: Mutex::default() }
    }

    /// Starts a run with `spawn`, which gives the process a group of its own. Reaps the run before, which has ended.
    /// Does nothing when closed.
    pub(super) fn start(&self, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_closed {
            return Ok(());
        }
        if let Some(mut before) = state.leader.take() {
            self.forget(&before.child);
            before.child.wait()?;
        }
        let mut child = spawn()?;
        if let Some(keeper) = &self.keeper {
            keeper.add(Pid::from_child(&child));
        }
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(descriptor) => {
                state.leader = Some(Leader { child, descriptor, is_exit_taken: false });
                Ok(())
            }
            Err(error) => {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                self.forget(&child);
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Waits until the current run has ended.
    pub(super) async fn exited(&self) -> io::Result<()> {
        let descriptor = match &self.lock().leader {
            Some(leader) => leader.descriptor.try_clone()?,
            None => return Ok(()),
        };
        ended(descriptor).await
    }

    /// How the current run ended, if it has. Returns it once.
    pub(super) fn take_exit(&self) -> Option<Exit> {
        let mut state = self.lock();
        let leader = state.leader.as_mut().filter(|leader| !leader.is_exit_taken)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&leader.child)), options).ok()??;
        leader.is_exit_taken = true;
        Some(Exit { code: status.exit_status(), signal: status.terminating_signal() })
    }

    /// Lets no further run start.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Signals all processes, and returns those that were found by their environment.
    pub(super) fn signal(&self, signal: Signal) -> Vec<OwnedFd> {
        if let Some(leader) = &self.lock().leader {
            // The group may have zombies only.
            let _ = kill_process_group(Pid::from_child(&leader.child), signal);
        }
        let mut found = self.find_by_environment();
        found.retain(|process| pidfd_send_signal(process, signal).is_ok());
        found
    }

    /// Waits until no process is left. Members of the group that cleared their environment are not waited for.
    pub(super) async fn all_ended(&self) -> io::Result<()> {
        self.exited().await?;
        while let Some(process) = self.find_by_environment().pop() {
            ended(process).await?;
        }
        Ok(())
    }

    /// Kills all processes and reaps the run's first one.
    pub(super) async fn kill(&self) {
        self.close();
        let killed = async {
            while let Some(process) = self.signal(Signal::KILL).pop() {
                ended(process).await?;
            }
            self.exited().await
        };
        if let Ok(Ok(())) = tokio::time::timeout(KILLED_GRACE, killed).await {
            self.reap();
        }
    }

    /// The same without waiting for long.
    pub(super) fn kill_blocking(&self) {
        self.close();
        let killed = self.signal(Signal::KILL);
        let ends = |process| {
            poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&DROPPED_GRACE))
                .is_ok_and(|ended| ended > 0)
        };
        // If one hangs, others are not waited for.
        let _ = killed.iter().all(ends);
        // Processes that were forked meanwhile.
        self.signal(Signal::KILL);
        self.reap();
    }

    /// Reaps the run's first process if it has ended.
    fn reap(&self) {
        let mut state = self.lock();
        if let Some(leader) = &mut state.leader
            && !matches!(leader.child.try_wait(), Ok(None))
        {
            self.forget(&leader.child);
            state.leader = None;
        }
    }

    /// Tells the keeper that the process's id may be used again.
    fn forget(&self, child: &Child) {
        if let Some(keeper) = &self.keeper {
            keeper.remove(Pid::from_child(child));
        }
    }

    /// Processes with the handler's variable. A zombie has no environment.
    fn find_by_environment(&self) -> Vec<OwnedFd> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let pids = pids.filter(|number: &i32| *number > 0).filter_map(Pid::from_raw);
        pids.filter_map(|pid| {
            if !self.has_variable(pid) {
                return None;
            }
            let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // Another process may have got the id before it was opened.
            self.has_variable(pid).then_some(descriptor)
        })
        .collect()
    }

    fn has_variable(&self, pid: Pid) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == self.variable)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a process has ended.
async fn ended(process: OwnedFd) -> io::Result<()> {
    readiness(process)?.readable().await?.retain_ready();
    Ok(())
}

/// Waits for a descriptor to be readable, by epoll.
#[expect(
    deprecated,
    reason = "the successor is unsafe for types that may close the descriptor; these types own it"
)]
pub(super) fn readiness<D: AsRawFd + Into<OwnedFd>>(descriptor: D) -> io::Result<AsyncFd<D>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
