//! Finds and kills the processes of earlier attempts whose keeper was killed.
//!
//! A keeper ends all processes of its command, also when the service was killed. If the keeper itself is killed, the
//! command stays, and the next attempt must not run in parallel. So each keeper first writes a record to the directory
//! of results: the boot id, and process id and start time of itself and of the command. The service removes the record
//! when no process of the attempt is left. A record that exists before the next attempt tells the service what to kill:
//!
//! - the processes of the record, if process id, start time and boot id match;
//! - their descendants;
//! - their process groups. If the group's leader has ended, a member is killed only if its environment has the
//!   attempt's result file, because the group id may have been reused.
//!
//! Not found: a process that left the group after its parents ended, and a command whose keeper was killed between the
//! start of the command and the record of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};
use tokio::time::{sleep, timeout};

use crate::clock::boot_id;

use super::processes::{Process, descendants, parse_pid};
use super::run::remove;

/// A record's file name is that of the result file with this suffix.
const SUFFIX: &str = ".pid";
/// Largest record: a boot id and two processes.
const RECORD_BYTES_MAX: u64 = 256;
/// Interval between two scans for survivors.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The record of an attempt, written by its keeper.
pub(super) struct PidRecord(File);

impl PidRecord {
    /// Creates a record with this process, the keeper.
    pub(super) fn begin(result: &Path) -> io::Result<Self> {
        let path = record_path(result);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{}", boot_id()?)?;
        let mut recorder = Self(file);
        recorder.add(getpid())?;
        Ok(recorder)
    }

    /// Adds a child that has not been reaped. A child that has ended is not recorded.
    pub(super) fn add(&mut self, pid: Pid) -> io::Result<()> {
        match Process::find(pid) {
            Some(found) => self.0.write_all(format!("{pid} {}\n", found.started).as_bytes()),
            None => Ok(()),
        }
    }
}

pub(super) fn record_path(result: &Path) -> PathBuf {
    let mut path = result.as_os_str().to_owned();
    path.push(SUFFIX);
    path.into()
}

pub(super) fn is_record(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes())
}

/// A recorded attempt: process id and start time of the keeper, then of the command.
#[derive(Debug, PartialEq, Eq)]
struct Attempt {
    processes: Vec<(Pid, u64)>,
}

impl Attempt {
    /// Parses a record; without processes if it is of another boot, none if it is malformed.
    fn parse(record: &str, boot: &str) -> Option<Self> {
        let mut lines = record.lines();
        if lines.next()? != boot {
            return Some(Self { processes: Vec::new() });
        }
        let process = |line: &str| {
            let (pid, started) = line.split_once(' ')?;
            Some((parse_pid(pid)?, started.parse().ok()?))
        };
        Some(Self { processes: lines.map(process).collect::<Option<_>>()? })
    }

    fn read(path: &Path, boot: &str) -> Option<Self> {
        let mut text = String::new();
        let file =
            fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).and(File::open(path).ok())?;
        file.take(RECORD_BYTES_MAX).read_to_string(&mut text).ok()?;
        Self::parse(&text, boot)
    }

    /// The processes to kill next. The keeper comes last, because its descendants are found through it.
    fn survivors(&self, running: &[Process], has_result: impl Fn(&Process) -> bool) -> Vec<Process> {
        let mut left: Vec<Process> = Vec::new();
        for &(pid, started) in &self.processes {
            let leader = running.iter().find(|process| process.pid == pid);
            let in_group = running.iter().filter(|process| process.is_in_group_of(pid));
            match leader {
                Some(leader) if leader.started == started => {
                    left.extend([*leader].iter().chain(&descendants(pid, running)).chain(in_group));
                }
                // The process id was reused, and so was the group id.
                Some(_) => {}
                None => left.extend(in_group.filter(|process| has_result(process))),
            }
        }
        left.sort_unstable_by_key(|process| process.pid.as_raw_nonzero());
        left.dedup();
        let keeper = self.processes.first().map(|(pid, _)| *pid);
        if left.len() > 1 {
            left.retain(|process| Some(process.pid) != keeper);
        }
        left
    }
}

/// Why earlier attempts could not be ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrphanError {
    #[error("cannot look for earlier attempts in {}: {source}", results.display())]
    Scan { results: PathBuf, source: io::Error },
    #[error("an earlier attempt still runs and cannot be ended: process {pid} ({why}); end it, then retry")]
    Survives { pid: Pid, why: String },
}

/// Kills the survivors of the attempts whose records `which` selects, all at once and within `patience`, and removes
/// the records.
pub(super) async fn kill(
    results: &Path,
    which: impl Fn(&Path) -> bool,
    patience: Duration,
) -> Result<(), OrphanError> {
    let cannot = |source| OrphanError::Scan { results: results.to_owned(), source };
    let mut records = Vec::new();
    for entry in fs::read_dir(results).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if is_record(&path) && which(&path) {
            records.push(path);
        }
    }
    if records.is_empty() {
        return Ok(());
    }
    let boot = boot_id().map_err(cannot)?;
    let mut attempts: Vec<(PathBuf, Attempt)> = Vec::new();
    for path in records {
        match Attempt::read(&path, &boot) {
            Some(attempt) => attempts.push((path, attempt)),
            None => {
                tracing::warn!(
                    target: "notbefore::exec", path = %path.display(),
                    "malformed record of an attempt removed; look for processes below exec-keeper"
                );
                remove(&path);
            }
        }
    }
    let mut survivor = None;
    let ended = async {
        loop {
            survivor = kill_survivors(&mut attempts);
            if survivor.is_none() {
                return;
            }
            sleep(RETRY_PAUSE).await;
        }
    };
    match (timeout(patience, ended).await, survivor) {
        (Ok(()), _) | (Err(_), None) => Ok(()),
        (Err(_), Some((pid, error))) => {
            let why = error.map_or_else(|| "killed, but still running".to_owned(), |error| error.to_string());
            Err(OrphanError::Survives { pid, why })
        }
    }
}

/// Kills the survivors of attempts and removes attempts without any. Returns one survivor, and why it could not be
/// signalled.
fn kill_survivors(attempts: &mut Vec<(PathBuf, Attempt)>) -> Option<(Pid, Option<Errno>)> {
    let running = Process::all();
    let mut survivor = None;
    attempts.retain(|(path, attempt)| {
        let result = path.with_extension("");
        let left = attempt.survivors(&running, |process| process.may_have_result(&result));
        for process in &left {
            survivor = Some((process.pid, process.signal(Signal::KILL).err()));
        }
        if left.is_empty() {
            remove(&result);
            remove(path);
        }
        !left.is_empty()
    });
    survivor
}

#[cfg(test)]
mod tests {
    use super::super::processes::tests::process;
    use super::*;

    fn numbers(left: &[Process]) -> Vec<i32> {
        left.iter().map(|process| process.pid.as_raw_nonzero().get()).collect()
    }

    #[test]
    fn pid_record_round_trips_for_its_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let result = dir.path().join("event.vm.1.2");
        let mut recorder = PidRecord::begin(&result).unwrap();
        recorder.add(getpid()).unwrap();
        let own = (getpid(), Process::find(getpid()).unwrap().started);
        let read = Attempt::read(&record_path(&result), &boot_id().unwrap());
        assert_eq!(read, Some(Attempt { processes: vec![own, own] }));
        let other = Attempt::read(&record_path(&result), "another");
        assert_eq!(other, Some(Attempt { processes: Vec::new() }));
        for garbage in ["", "boot\n12", "boot\n0 5\n", "boot\n12 x\n", "boot\n-1 5\n\n"] {
            assert_eq!(Attempt::parse(garbage, "boot"), None, "{garbage:?}");
        }
    }

    #[test]
    fn survivors_include_all_processes_and_keeper_last() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let attempt = Attempt { processes: vec![(pid(10), 100), (pid(11), 101)] };
        let keeper = process(10, 9, 10, 100);
        let command = process(11, 10, 11, 101);
        let other = process(12, 1, 12, 90);
        let (in_group, elsewhere) = (process(13, 1, 11, 102), process(14, 11, 14, 102));
        let left =
            |running: &[Process], has_result: bool| numbers(&attempt.survivors(running, |_| has_result));

        assert_eq!(left(&[keeper, command, other, elsewhere], false), [11, 14]);
        assert_eq!(left(&[keeper, other], false), [10]);
        assert_eq!(left(&[process(11, 1, 11, 101), other, in_group, elsewhere], false), [11, 13, 14]);
        // The command has ended, but others of its group have not.
        assert_eq!(left(&[other, in_group], true), [13]);
        assert_eq!(left(&[other, in_group], false), Vec::<i32>::new());
        // Its process id was reused.
        assert_eq!(left(&[process(11, 1, 11, 500), in_group, other], true), Vec::<i32>::new());
    }
}
