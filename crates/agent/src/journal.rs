//! The agent's journal: its whole state in one file, written ahead of every action and replaced by atomic rename.
//! After a crash the next agent finds the state before or after a change, never a mix.
//!
//! Files in the state directory:
//! - `journal.json`: a format number and the machine's state. It holds copies of rules with their webhooks' secrets,
//!   so only its owner can read it.
//! - `lock`: held while the agent runs, so that two agents do not work against each other.
//! - `vm`: the id of the VM that owns the directory (`owner.rs`).
//! - `name`, `endpoint`: the VM's name and the endpoint as last seen, cached.
//! - `history.jsonl`: what happened to the last events (`history.rs`).
//! - `control`: socket for commands of root and the agent's user, while the agent runs (`control.rs`). Not on Windows.
//!
//! A journal that is corrupt, or that belongs to another VM, is renamed and reported. `disk.rs` rejects directories
//! that do not survive an event; `dir.rs` rejects files that other users could have written.
//!
//! A failed write does not stop the agent: the caller continues from memory, reports the failure and retries. A write
//! that hangs is abandoned after [`SAVE_TIMEOUT`]; no second write starts until it ends. The same holds for a disk
//! that is read-only at start: the journal is read, and claiming the directory is deferred to the first write that
//! succeeds.

mod content;
mod dir;
mod disk;
mod owner;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;

use content::{FORMAT, Unreadable};
use dir::{Dir, OpenMode};
pub use disk::UnsuitableDisk;
use owner::HISTORY_FILE;
pub use owner::{ENDPOINT_FILE, NAME_FILE};

use crate::machine::State;
use crate::trust::Untrusted;
use crate::vm_id::VmId;

/// Largest journal that is read. A thousand events with their rules take about 4 MiB.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a write may take before the agent continues without it. A Preempt event gives 30 seconds in total.
pub const SAVE_TIMEOUT: Duration = Duration::from_secs(3);
const NAME: &str = "journal.json";
/// Lock file; held while the agent runs.
const LOCK: &str = "lock";
/// Socket for commands.
#[cfg(unix)]
const CONTROL: &str = "control";

/// The journal, locked by this process.
#[derive(Debug)]
pub struct Journal {
    /// As configured; the directory in use may be a subdirectory (`dir.rs`).
    state: PathBuf,
    /// None if the disk was full or read-only at start.
    dir: Option<Dir>,
    /// None if the disk was full or read-only at start.
    lock: Option<File>,
    /// Claim of the directory that the disk refused at start.
    moving_in: Option<PendingClaim>,
    /// Last bytes known to be on disk; None after a failed write.
    written: Option<Vec<u8>>,
    /// A write that exceeded [`SAVE_TIMEOUT`].
    hanging: Option<JoinHandle<Saved>>,
}

/// The directory written to, and the lock if this write acquired it.
type Saved = io::Result<(Dir, Option<File>)>;

/// Takes over the directory before the first write: renames a foreign or corrupt journal, then records this VM as
/// owner. Idempotent.
#[derive(Clone, Debug)]
struct PendingClaim {
    /// New name of a journal that must not be overwritten.
    aside: Option<PathBuf>,
    vm: VmId,
}

/// What [`Journal::open`] found.
#[derive(Debug)]
pub enum Found {
    /// No journal.
    Nothing,
    /// The state that the previous agent saved.
    State(Box<State>),
    /// The journal is corrupt and was renamed to `aside`.
    Corrupt { aside: PathBuf, why: String },
    /// The journal belongs to another VM, of whose disk this one is a copy. It was renamed to `aside`.
    AnotherVms { aside: PathBuf },
}

/// Why the journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be created or used. `why` is part of the message, so it is no `source`.
    #[error("cannot use {} ({why}); make the state directory writable for the agent, or name another with --state", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// Another user could have written the directory or a file in it.
    #[error("{0}")]
    Untrusted(Box<Untrusted>),
    #[error("another agent holds {}; stop it, or name another state directory with --state", path.display())]
    Held { path: PathBuf },
    /// The directory does not survive a reboot or a redeployment.
    #[error("the state directory {} {why}; the journal must survive a redeployment: name a directory on the OS disk with --state (state = …)", path.display())]
    UnsuitableDisk { path: PathBuf, why: UnsuitableDisk },
    /// Written by a release with another format.
    #[error("{} has format {found}, and this release reads format {FORMAT}; run the release that wrote it until its events are over, or move it away", path.display())]
    Format { path: PathBuf, found: u64 },
}

/// Why the state was not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("cannot write {}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// The disk does not respond.
    #[error("writing {} takes longer than {} s", path.display(), SAVE_TIMEOUT.as_secs())]
    Hangs { path: PathBuf },
}

impl Journal {
    /// Locks the journal in the state directory, creating the directory if needed, and reads it.
    pub fn open(state: &Path, vm: &VmId, now: Timestamp) -> Result<(Journal, Found), OpenError> {
        let (dir, lock, mut writable) = match acquire_lock(state) {
            Ok((dir, lock)) => (Some(dir), Some(lock), true),
            Err(OpenError::Io { why, .. }) if disk::is_device_error(&why) => {
                let dir = find(state)?;
                let lock = dir.as_ref().and_then(hold_unwritten).transpose()?;
                (dir, lock, false)
            }
            Err(refused) => return Err(refused),
        };
        let place = dir.as_ref().map_or(state, Dir::path).to_owned();
        let path = place.join(NAME);
        let aside = |why| place.join(format!("journal.{why}-{}", now.strftime("%Y%m%dT%H%M%SZ")));
        let corrupt = |why| Found::Corrupt { aside: aside("corrupt"), why };
        let read = match dir.as_ref().map(|dir| (dir.read(NAME), owner::is_ours(dir, vm))) {
            None => None,
            Some((Ok(bytes), is_ours)) => Some((Ok(bytes), is_ours)),
            Some((Err(error), _)) if error.kind() == io::ErrorKind::NotFound => None,
            Some((Err(error), is_ours)) if disk::is_device_error(&error) => Some((Err(error), is_ours)),
            Some((Err(error), _)) => return Err(OpenError::io(&path, error)),
        };
        let found = match &read {
            None => Found::Nothing,
            Some((_, false)) => Found::AnotherVms { aside: aside("another-vm") },
            Some((Err(error), true)) => corrupt(error.to_string()),
            Some((Ok(bytes), true)) => match content::read(bytes) {
                Ok(state) => Found::State(Box::new(state)),
                Err(Unreadable::Format(found)) => return Err(OpenError::Format { path, found }),
                Err(Unreadable::Corrupt(why)) => corrupt(why),
            },
        };
        let moving_in = PendingClaim { aside: found.aside().cloned(), vm: vm.clone() };
        let left = match dir.as_ref().map_or(Ok(false), |dir| moving_in.carry_out(dir).map(|()| true)) {
            Ok(true) => None,
            Ok(false) => Some(moving_in),
            Err(error) if disk::is_device_error(&error) => {
                writable = false;
                Some(moving_in)
            }
            Err(error) => return Err(OpenError::io(&path, error)),
        };
        // On a read-only disk, treat the state as unsaved: the next save fails and the failure is reported.
        let written = read.and_then(|(read, _)| read.ok());
        let written = written.filter(|_| writable && matches!(found, Found::State(_)));
        let state = state.to_owned();
        Ok((Journal { state, dir, lock, moving_in: left, written, hanging: None }, found))
    }

    /// Saves the state unless it is on disk already. After `Ok`, the state survives a power failure.
    pub async fn save(&mut self, state: &State) -> Result<(), SaveError> {
        let path = self.dir.as_ref().map_or(self.state.as_path(), Dir::path).join(NAME);
        let failed = |why| SaveError::Io { path: path.clone(), why };
        let bytes = content::write(state);
        let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
        if self.written.as_ref() == Some(&bytes) {
            return Ok(());
        }
        if let Some(hanging) = self.hanging.take_if(|hanging| !hanging.is_finished()) {
            self.hanging = Some(hanging);
            return Err(SaveError::Hangs { path });
        }
        self.hanging = None;
        self.written = None;
        let mut writing = tokio::task::spawn_blocking({
            let (state, bytes, moving_in) = (self.state.clone(), bytes.clone(), self.moving_in.clone());
            let held = self.dir.clone().filter(|_| self.lock.is_some());
            move || {
                let (dir, lock) = match held {
                    Some(dir) => (dir, None),
                    None => {
                        acquire_lock(&state).map(|(dir, lock)| (dir, Some(lock))).map_err(io::Error::other)?
                    }
                };
                moving_in.map_or(Ok(()), |moving_in| moving_in.carry_out(&dir))?;
                dir.replace(NAME, &bytes)?;
                Ok((dir, lock))
            }
        });
        match tokio::time::timeout(SAVE_TIMEOUT, &mut writing).await {
            Ok(Ok(Ok((dir, lock)))) => {
                self.dir = Some(dir);
                self.lock = lock.or(self.lock.take());
                self.moving_in = None;
                self.written = Some(bytes);
                Ok(())
            }
            Ok(Ok(Err(error))) => Err(failed(error)),
            Ok(Err(panicked)) => Err(failed(io::Error::other(panicked))),
            Err(_) => {
                self.hanging = Some(writing);
                Err(SaveError::Hangs { path })
            }
        }
    }
}

#[cfg(windows)]
impl Journal {
    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }
}

#[cfg(unix)]
impl Journal {
    /// Creates the socket for commands, in place of one that an earlier agent left.
    pub fn control_socket(&self) -> io::Result<tokio::net::UnixListener> {
        match self.dir.as_ref().filter(|_| self.lock.is_some()) {
            Some(dir) => dir.listen(CONTROL),
            None => Err(io::Error::other("the state directory cannot be written")),
        }
    }
}

/// Connects to the socket of the agent that uses this state directory.
#[cfg(unix)]
pub async fn connect_to_control(state: &Path) -> io::Result<tokio::net::UnixStream> {
    let dir = Dir::find(state)?;
    tokio::net::UnixStream::connect(dir.socket_path(CONTROL)).await
}

/// A file beside the journal. Every use checks that the directory is trusted and belongs to this VM.
#[derive(Clone, Debug)]
pub struct StateFile {
    state: PathBuf,
    name: &'static str,
}

impl StateFile {
    pub fn history(state: &Path) -> StateFile {
        StateFile { state: state.to_owned(), name: HISTORY_FILE }
    }

    pub fn read(&self) -> io::Result<Vec<u8>> {
        own_dir(&self.state)?.read(self.name)
    }

    /// Opens the file for writing; creates it if missing and keeps its content.
    pub fn open(&self) -> io::Result<File> {
        own_dir(&self.state)?.open(self.name, OpenMode::Writing)
    }

    /// Replaces the file atomically.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        own_dir(&self.state)?.replace(self.name, bytes)
    }
}

impl Found {
    /// The new name of a journal that was moved aside.
    fn aside(&self) -> Option<&PathBuf> {
        match self {
            Found::Corrupt { aside, .. } | Found::AnotherVms { aside } => Some(aside),
            Found::Nothing | Found::State(_) => None,
        }
    }
}

impl OpenError {
    /// Wraps an IO error of a path; an [`Untrusted`] error names its path itself.
    fn io(path: &Path, why: io::Error) -> OpenError {
        match why.downcast::<Untrusted>() {
            Ok(untrusted) => OpenError::Untrusted(Box::new(untrusted)),
            Err(why) => OpenError::Io { path: path.to_owned(), why },
        }
    }
}

impl PendingClaim {
    fn carry_out(&self, dir: &Dir) -> io::Result<()> {
        if let Some(aside) = self.aside.as_ref().and_then(|aside| aside.file_name()?.to_str()) {
            match dir.rename(NAME, aside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
        owner::claim(dir, &self.vm)
    }
}

/// Creates the directory, checks its disk and takes the lock.
fn acquire_lock(state: &Path) -> Result<(Dir, File), OpenError> {
    let dir = Dir::make(state).map_err(|why| OpenError::io(state, why))?;
    disk::check(dir.path()).map_err(|why| OpenError::UnsuitableDisk { path: state.to_owned(), why })?;
    let path = dir.path().join(LOCK);
    let lock = dir.open(LOCK, OpenMode::Writing).map_err(|why| OpenError::io(&path, why))?;
    Ok((dir, hold(lock, path)?))
}

/// Takes the lock on a disk that cannot be written. Without a lock file there is none to take.
fn hold_unwritten(dir: &Dir) -> Option<Result<File, OpenError>> {
    dir.open(LOCK, OpenMode::Reading).ok().map(|lock| hold(lock, dir.path().join(LOCK)))
}

/// The agent's directory, if it exists.
fn find(state: &Path) -> Result<Option<Dir>, OpenError> {
    match Dir::find(state) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(OpenError::io(state, why)),
    }
}

/// Path of a cache file beside the journal. None if the directory is missing, not trusted, or another VM's.
pub fn memory(state: &Path, file: &str) -> Option<PathBuf> {
    let dir = Dir::find(state).ok()?;
    owner::is_ours(&dir, &VmId::detect()).then(|| dir.path().join(file))
}

impl Drop for Journal {
    /// Unlocks. Closing the file is not enough: a child process that is about to run its program still has it open.
    fn drop(&mut self) {
        let _ = self.lock.as_ref().map(File::unlock);
    }
}

fn hold(lock: File, path: PathBuf) -> Result<File, OpenError> {
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Held { path }),
        Err(TryLockError::Error(why)) => Err(OpenError::Io { path, why }),
    }
}

/// Checks that a directory, which need not exist yet, is on a persistent disk and writable for the current user.
pub fn check(state: &Path) -> Result<(), OpenError> {
    let dir = find(state)?.map_or(state.to_owned(), |dir| dir.path().to_owned());
    let Some(there) = dir.ancestors().find(|place| place.exists()) else { return Ok(()) };
    disk::check(there).map_err(|why| OpenError::UnsuitableDisk { path: dir.clone(), why })?;
    // A name no other process uses, created exclusively: in a world-writable directory it could be a planted link.
    let trial = there.join(format!(".notbefore-check-{}", std::process::id()));
    let tried = File::create_new(&trial).and_then(|_| fs::remove_file(&trial));
    tried.map_err(|why| OpenError::Io { path: dir.clone(), why })
}

/// Reads the journal of a stopped agent for display, without locking or changing anything.
pub fn read_state(state: &Path) -> io::Result<State> {
    content::read(&own_dir(state)?.read(NAME)?).map_err(|unreadable| match unreadable {
        Unreadable::Format(found) => {
            io::Error::other(format!("it has format {found}; this release reads format {FORMAT}"))
        }
        Unreadable::Corrupt(why) => io::Error::other(why),
    })
}

/// The agent's directory, if it exists and belongs to this VM.
fn own_dir(state: &Path) -> io::Result<Dir> {
    let dir = Dir::find(state)?;
    match owner::is_ours(&dir, &VmId::detect()) {
        true => Ok(dir),
        false => Err(io::Error::other("it belongs to another VM, of whose disk this one is a copy")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn open(dir: &Path) -> Result<(Journal, Found), OpenError> {
        Journal::open(dir, &VmId::default(), Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn saved_state_is_read_back_and_private() {
        let dir = dir();
        let state = State::new(Some("boot".to_owned()));
        let (mut journal, found) = open(&dir.path().join("a/b")).unwrap();
        assert!(matches!(found, Found::Nothing));
        journal.save(&state).await.unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode("a/b"), mode("a/b/journal.json")), (0o700, 0o600));
        }
        drop(journal);
        let (_journal, found) = open(&dir.path().join("a/b")).unwrap();
        assert!(matches!(found, Found::State(found) if *found == state));
        assert_eq!(read_state(&dir.path().join("a/b")).unwrap(), state);
    }

    #[tokio::test]
    async fn unchanged_state_is_not_rewritten() {
        let dir = dir();
        let (mut journal, _) = open(dir.path()).unwrap();
        let state = State::new(None);
        journal.save(&state).await.unwrap();
        fs::remove_file(dir.path().join(NAME)).unwrap();
        journal.save(&state).await.unwrap();
        assert!(!dir.path().join(NAME).exists());
        journal.save(&State::new(Some("another".to_owned()))).await.unwrap();
        assert!(dir.path().join(NAME).exists());
    }

    #[test]
    fn two_agents_do_not_share_a_journal() {
        let dir = dir();
        let (_first, _) = open(dir.path()).unwrap();
        let second = open(dir.path()).unwrap_err();
        assert!(matches!(second, OpenError::Held { .. }), "{second}");
    }

    #[test]
    fn corrupt_journal_is_moved_aside() {
        let dir = dir();
        let of_this_release = |state: &str| format!("{{\"format\":{FORMAT},\"state\":{state}");
        for broken in [String::new(), of_this_release("{"), of_this_release("7}"), "\0\0\0".to_owned()] {
            fs::write(dir.path().join(NAME), &broken).unwrap();
            let (_journal, found) = open(dir.path()).unwrap();
            let Found::Corrupt { aside, .. } = found else { panic!("{broken:?} was read") };
            assert_eq!(fs::read_to_string(aside).unwrap(), broken);
            assert!(!dir.path().join(NAME).exists());
        }
    }

    #[test]
    fn unknown_format_journal_is_left_unchanged() {
        let dir = dir();
        for level in [u64::from(FORMAT) - 1, u64::from(FORMAT) + 1] {
            let journal = format!("{{\"format\":{level},\"whatever\":1}}");
            fs::write(dir.path().join(NAME), &journal).unwrap();
            assert!(matches!(open(dir.path()), Err(OpenError::Format { found, .. }) if found == level));
            assert_eq!(fs::read_to_string(dir.path().join(NAME)).unwrap(), journal);
        }
    }

    #[tokio::test]
    async fn failed_save_reports_error_and_is_retried() {
        let dir = dir();
        let (mut journal, _) = open(dir.path()).unwrap();
        let in_the_way = dir.path().join(NAME);
        fs::create_dir(&in_the_way).unwrap();
        let error = journal.save(&State::new(None)).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert!(!dir.path().join(".journal.json.new").exists(), "temporary file is left");
        fs::remove_dir(&in_the_way).unwrap();
        journal.save(&State::new(None)).await.unwrap();
    }

    #[tokio::test]
    async fn journal_of_another_vm_is_moved_aside() {
        let dir = dir();
        let vm =
            |id: &str| -> VmId { serde_json::from_value(serde_json::json!({ "hardware": id })).unwrap() };
        let open = |id: &str| Journal::open(dir.path(), &vm(id), Timestamp::UNIX_EPOCH).unwrap();
        let memory = |name: &str| dir.path().join(name);
        let (mut journal, _) = open("origin");
        journal.save(&State::new(Some("boot".to_owned()))).await.unwrap();
        for name in [NAME_FILE, ENDPOINT_FILE, HISTORY_FILE] {
            fs::write(memory(name), "the origin's").unwrap();
        }
        drop(journal);
        let (journal, found) = open("origin");
        assert!(matches!(found, Found::State(_)) && memory(NAME_FILE).exists(), "same VM");
        drop(journal);
        assert!(!owner::is_ours(&Dir::find(dir.path()).unwrap(), &vm("copy")));
        let (mut journal, found) = open("copy");
        let Found::AnotherVms { aside } = found else { panic!("{found:?}") };
        assert!(aside.exists() && !memory(NAME).exists());
        assert!([NAME_FILE, ENDPOINT_FILE, HISTORY_FILE].iter().all(|name| !memory(name).exists()));
        journal.save(&State::new(None)).await.unwrap();
        drop(journal);
        assert!(matches!(open("copy").1, Found::State(_)), "the copy has claimed it");
    }
}
