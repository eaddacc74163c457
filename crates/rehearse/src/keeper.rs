//! The keeper: a process that cleans up after a rehearsal which was killed with SIGKILL: it ends the handlers and
//! removes temporary directories.
//!
//! A rehearsal that ends in order stops its handlers itself. One that is killed cannot, so `notbefore rehearse` starts
//! its own binary as `notbefore rehearse-keeper VALUE`. That process reads orders from a pipe, whose other end only the
//! rehearsal has: `+PID` and `-PID` for the first process of each run of a handler, absolute paths of directories, and
//! `-/PATH` for one that the rehearsal has removed.
//! End of file comes however the rehearsal ends. Then the keeper kills, until none is left:
//!
//! - processes whose environment has the variable `NOTBEFORE_REHEARSAL` with this value;
//! - the first processes, their descendants, and the members of their groups, also those that cleared their
//!   environment.
//!
//! Last, it removes the directories, if the rehearsal has not. What a handler has mounted there stays, and is named on
//! standard error.
//!
//! Not found: a process without that variable that has left both the group and its parents. The keeper of the exec
//! driver (`notbefore_service::exec::keeper`) finds those too, as it is the parent of its command. A handler stays a
//! child of the rehearsal, which reports how it ended.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use notbefore_service::exec::processes::{Process, descendants, parse_pid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use uuid::Uuid;

use crate::directory;

/// The subcommand that runs a keeper.
pub const SUBCOMMAND: &str = "rehearse-keeper";
/// In the environment of handlers that have a keeper.
pub const VARIABLE: &str = "NOTBEFORE_REHEARSAL";

/// Longest time between two rounds of SIGKILL. A process in a system call dies later.
const ROUND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// Limit of rounds, about a minute: a process that hangs in a system call may never die, and one of another user cannot
/// be signalled.
const ROUNDS_MAX: usize = 64;

/// A running keeper. The last clone that is dropped lets it end.
#[derive(Clone, Debug)]
pub struct Keeper {
    link: Arc<Link>,
}

#[derive(Debug)]
struct Link {
    value: String,
    orders: Mutex<PipeWriter>,
    /// Not reaped: it ends with this process, or shortly before.
    _process: Child,
}

impl Keeper {
    /// Starts a keeper: this binary, with the arguments of the subcommand.
    pub fn start() -> io::Result<Self> {
        // This path stays valid when an update replaces the file.
        let mut command = Command::new("/proc/self/exe");
        command.arg(SUBCOMMAND);
        Self::start_by(command)
    }

    /// Starts a keeper by a command that calls [`keep`] with its last argument.
    pub fn start_by(mut command: Command) -> io::Result<Self> {
        let value = Uuid::new_v4().simple().to_string();
        let (input, orders) = io::pipe()?;
        // A keeper that was stopped must not stop the rehearsal.
        ioctl_fionbio(&orders, true)?;
        let process = command
            .arg(&value)
            .stdin(input)
            .stdout(Stdio::null())
            // Signals of a terminal, and those to the rehearsal's group, are not for it.
            .process_group(0)
            .spawn()?;
        Ok(Self { link: Arc::new(Link { value, orders: Mutex::new(orders), _process: process }) })
    }

    /// The value of [`VARIABLE`] in the environment of handlers.
    pub fn value(&self) -> &str {
        &self.link.value
    }

    /// The first process of a run has started.
    pub(crate) fn add(&self, pid: Pid) {
        self.order(&format!("+{pid}\n"));
    }

    /// The first process of a run is about to be reaped; its id may be used again.
    pub(crate) fn remove(&self, pid: Pid) {
        self.order(&format!("-{pid}\n"));
    }

    /// The rehearsal has created this directory, and removes it itself if it ends in order.
    pub(crate) fn add_directory(&self, directory: &Path) {
        // A path that is not one line of text, from an odd TMPDIR, is left to the rehearsal alone.
        if let Some(path) = directory.to_str().filter(|path| directory.is_absolute() && !path.contains('\n'))
        {
            self.order(&format!("{path}\n"));
        }
    }

    /// The rehearsal has removed this directory, or said what is left of it.
    pub(crate) fn remove_directory(&self, directory: &Path) {
        if let Some(path) = directory.to_str().filter(|path| !path.contains('\n')) {
            self.order(&format!("-{path}\n"));
        }
    }

    fn order(&self, order: &str) {
        let mut orders = self.link.orders.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails if the keeper was killed; then the rehearsal has to end in order.
        let _ = orders.write_all(order.as_bytes());
    }
}

/// Reads orders to their end, kills the handlers, and removes directories. `value` is that of [`VARIABLE`].
pub fn keep(orders: impl BufRead, value: &str, messages: &mut impl Write) -> io::Result<()> {
    let (mut firsts, mut directories) = (Firsts::new(), BTreeSet::new());
    for order in orders.lines() {
        let order = order?;
        if order.starts_with('/') {
            directories.insert(PathBuf::from(order));
        } else if let Some(path) = order.strip_prefix('-').filter(|path| path.starts_with('/')) {
            directories.remove(Path::new(path));
        } else {
            obey(&order, &mut firsts, |pid| Process::find(pid).map(|process| process.started));
        }
    }
    let entry = format!("{VARIABLE}={value}");
    for _ in 0..ROUNDS_MAX {
        let left = select(&firsts, &Process::all(), |process| process.has_variable(entry.as_bytes()));
        if left.is_empty() {
            break;
        }
        for process in &left {
            // One that cannot be signalled is tried again.
            let _ = process.signal(Signal::KILL);
        }
        if let Some(process) = left.last() {
            wait_for_end(process.pid);
        }
    }
    for directory in directories {
        directory::remove(&directory, messages);
    }
    Ok(())
}

/// Waits until a process has ended, for a limited time.
fn wait_for_end(pid: Pid) {
    // Without a descriptor, the process is gone.
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
        // A wait that is interrupted only makes the next round earlier.
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&ROUND));
    }
}

/// The first processes of runs, with their start times; none if one had ended before it was looked up.
type Firsts = HashMap<Pid, Option<u64>>;

fn obey(order: &str, firsts: &mut Firsts, started: impl FnOnce(Pid) -> Option<u64>) {
    if let Some(pid) = order.strip_prefix('+').and_then(parse_pid) {
        firsts.insert(pid, started(pid));
    } else if let Some(pid) = order.strip_prefix('-').and_then(parse_pid) {
        firsts.remove(&pid);
    }
}

/// The processes of handlers among `all`.
fn select(firsts: &Firsts, all: &[Process], has_variable: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut selected: Vec<Process> = all.iter().filter(|process| has_variable(process)).copied().collect();
    for (first, started) in firsts {
        let current = all.iter().find(|process| process.pid == *first);
        // A later process has this id. No id is reused while its group has members, so the group is gone.
        if current.is_some_and(|current| Some(current.started) != *started) {
            continue;
        }
        selected.extend(current);
        selected.extend(all.iter().filter(|process| process.is_in_group_of(*first)));
        selected.extend(descendants(*first, all));
    }
    selected.sort_by_key(|process| process.pid.as_raw_nonzero());
    selected.dedup_by_key(|process| process.pid);
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, group: i32, started: u64) -> Process {
        let stat = format!("{pid} (x) S {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0");
        Process::parse(stat.as_bytes()).unwrap()
    }

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn selected(firsts: &Firsts, all: &[Process]) -> Vec<i32> {
        let selected = select(firsts, all, |process| process.pid == pid(90));
        selected.iter().map(|process| process.pid.as_raw_nonzero().get()).collect()
    }

    #[test]
    fn groups_descendants_and_processes_with_the_variable_are_selected() {
        let mut firsts = Firsts::new();
        obey("+20", &mut firsts, |_| Some(5));
        let all = [
            process(20, 2, 20, 5),
            process(21, 1, 20, 6),
            // In a group of its own.
            process(22, 20, 22, 6),
            process(90, 1, 90, 7),
            process(2, 1, 2, 1),
            process(30, 1, 30, 9),
        ];
        assert_eq!(selected(&firsts, &all), [20, 21, 22, 90]);
        // Its first process has ended, the group has not.
        assert_eq!(selected(&firsts, &all[1..]), [21, 22, 90]);
        obey("-20", &mut firsts, |_| None);
        assert_eq!(selected(&firsts, &all), [90]);
    }

    #[test]
    fn later_process_with_the_same_id_is_spared() {
        let later = [process(20, 1, 20, 8), process(21, 20, 20, 9)];
        for started in [Some(5), None] {
            assert!(selected(&Firsts::from([(pid(20), started)]), &later).is_empty());
        }
        let mut firsts = Firsts::new();
        for order in ["", "+", "+-4", "+0", "20", "-x"] {
            obey(order, &mut firsts, |_| Some(1));
        }
        assert!(firsts.is_empty());
    }
}
