//! Running processes, from `/proc`.
//!
//! A process is identified by its id and its start time: the kernel reuses an id, but not both together until the next
//! boot. Signals go through a pidfd, which is opened before the start time is compared, so that no signal reaches a
//! later process with the same id.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    /// None if the parent is the kernel or outside this PID namespace.
    pub parent: Option<Pid>,
    /// Process group id.
    group: i32,
    /// Start time in clock ticks since boot.
    pub started: u64,
}

/// Parses a process id. `Pid::from_raw` panics at negative numbers in debug builds.
pub fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|&number| number > 0)?)
}

impl Process {
    /// Parses `/proc/PID/stat`; none for a process that has ended.
    pub fn parse(stat: &[u8]) -> Option<Self> {
        // `PID (NAME) STATE PARENT GROUP …`; the name may contain any byte.
        let name = stat.iter().position(|&byte| byte == b'(')?;
        let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let pid = parse_pid(std::str::from_utf8(stat.get(..name)?).ok()?.trim())?;
        let fields: Vec<&str> =
            std::str::from_utf8(stat.get(after_name..)?).ok()?.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1; this starts with field 3.
        let field = |number: usize| fields.get(number - 3).copied();
        // The main thread may have ended while other threads run.
        let has_ended = matches!(field(3)?, "Z" | "X") && field(20)?.parse::<u32>().ok()? <= 1;
        let process = Self {
            pid,
            parent: parse_pid(field(4)?),
            group: field(5)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        };
        (!has_ended).then_some(process)
    }

    /// The current process with this id.
    pub fn find(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// All running processes.
    pub fn all() -> Vec<Self> {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| parse_pid(entry.file_name().to_str()?));
        numbers.filter_map(Self::find).collect()
    }

    /// Whether it is in the group that `leader` leads or led.
    pub fn is_in_group_of(&self, leader: Pid) -> bool {
        self.group == leader.as_raw_nonzero().get()
    }

    /// Whether its environment contains a result file; true if it cannot be read. Compares the file name only, because
    /// the path of the data directory may have changed; the names are unique.
    pub fn may_have_result(&self, result: &Path) -> bool {
        let name = [b"/", result.file_name().unwrap_or_default().as_encoded_bytes()].concat();
        let is_it = |line: &[u8]| line.starts_with(b"NOTBEFORE_RESULT=") && line.ends_with(&name);
        match fs::read(format!("/proc/{}/environ", self.pid)) {
            Ok(environment) => environment.split(|&byte| byte == 0).any(is_it),
            Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        }
    }

    /// Whether its environment has this entry, `NAME=VALUE`.
    pub fn has_variable(&self, entry: &[u8]) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|line| line == entry)
    }

    /// Signals it; does nothing if it has ended.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let descriptor = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            opened => opened?,
        };
        match Self::find(self.pid) {
            Some(found) if found.started == self.started => match pidfd_send_signal(&descriptor, signal) {
                Err(Errno::SRCH) => Ok(()),
                sent => sent,
            },
            Some(_) | None => Ok(()),
        }
    }
}

/// The descendants of a process among `all`.
pub fn descendants(root: Pid, all: &[Process]) -> Vec<Process> {
    let mut others = all.to_vec();
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in others.extract_if(.., |process| process.parent == Some(parent)) {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

#[cfg(test)]
pub(super) mod tests;
