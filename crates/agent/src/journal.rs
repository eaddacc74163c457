//! What the agent remembers, on disk: one file that is replaced as a whole, so that whatever ends the agent, the next one
//! finds the state before or after a change and nothing in between.
//!
//! The file is `journal.json` in the state directory: a format level and the machine's state. It holds copies of rules,
//! with whatever secrets their webhooks have, so only its owner can read it. Beside it is `lock`, which the agent holds for
//! as long as it runs: two agents would undo each other's work; `vm`, which says whose directory it is; and `name` and
//! `endpoint`, which are what the platform last called this VM and where it last answered. A journal that cannot be read is
//! kept aside under another name and said aloud, and so is one that another VM has written (`owner.rs`). `disk.rs` refuses a
//! directory that would be empty after the event, and `dir.rs` what another user can have written.
//!
//! A write that fails is no reason to leave a VM unprepared: the caller goes on with what is in memory, says so, and
//! tries again. A disk that hangs is given up on after [`SAVE_TIMEOUT`]; the write that hangs is the only one under way.
//! Nor is a disk that can no longer be written to when the agent starts: what is there is read, and what else should have
//! been done with the directory is done before the first write that succeeds.

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

use content::{FORMAT, OLDEST_FORMAT, Unreadable};
use dir::{Dir, OpenMode};
pub use disk::UnsuitableDisk;
pub use owner::{ENDPOINT_FILE, NAME_FILE};

use crate::machine::State;
use crate::trust::Untrusted;
use crate::vm_id::VmId;

/// The largest journal that is read: a thousand events with their rules are some 4 MiB.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a write may take before the agent goes on without it. A Preempt has thirty seconds for everything.
pub const SAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// The journal's name.
const NAME: &str = "journal.json";
/// The name of what an agent holds for as long as it runs.
const LOCK: &str = "lock";

/// The journal, held by this agent alone.
#[derive(Debug)]
pub struct Journal {
    /// As it was set; the directory may be one below it.
    state: PathBuf,
    /// None on a disk that had no room for one.
    dir: Option<Dir>,
    /// None on a disk that had no room for one.
    lock: Option<File>,
    /// What the disk would not have done at the start.
    moving_in: Option<PendingClaim>,
    /// What is on disk, as far as is known.
    written: Option<Vec<u8>>,
    /// A write that has not ended in time.
    hanging: Option<JoinHandle<Saved>>,
}

/// Where a write went, and the lock that was taken for it.
type Saved = io::Result<(Dir, Option<File>)>;

/// What an agent does with the directory before it writes there. It can be done again.
#[derive(Clone, Debug)]
struct PendingClaim {
    /// The other name of a journal that is not to be written over.
    aside: Option<PathBuf>,
    /// Whose directory it is from then on.
    vm: VmId,
}

/// What was found at the start.
#[derive(Debug)]
pub enum Found {
    /// No journal.
    Nothing,
    /// What an agent before this one remembered.
    State(Box<State>),
    /// A journal that cannot be read. Its content is safe under another name, `aside`.
    Corrupt { aside: PathBuf, why: String },
    /// The journal of another VM, of whose disk this one's is a copy. It is under another name, `aside`, too.
    AnotherVms { aside: PathBuf },
}

/// Why there can be no journal.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or used. `why` stands in the middle of the sentence, and is therefore no
    /// source that would be told once more.
    #[error("cannot use {} ({why}); make the state directory writable for the agent, or name another with --state", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// Another user can have written what is there.
    #[error("{0}")]
    Untrusted(Box<Untrusted>),
    /// Another agent runs, and holds the lock.
    #[error("another agent holds {}; stop it, or name another state directory with --state", path.display())]
    Held { path: PathBuf },
    /// What is there will not be there after a reboot or a redeployment.
    #[error("the state directory {} {why}; the journal has to survive what happens to the VM: name a directory on the OS disk with --state (state = …)", path.display())]
    UnsuitableDisk { path: PathBuf, why: UnsuitableDisk },
    /// Written by another release, at this level.
    #[error("{} is of format {found}, and this release reads formats {OLDEST_FORMAT} to {FORMAT}; it is left as it is: run the release that wrote it until its events are over, or move it away", path.display())]
    Format { path: PathBuf, found: u64 },
}

/// Why a change is not on disk.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system says why.
    #[error("cannot write {}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// The disk does not answer.
    #[error("writing {} takes longer than {} s", path.display(), SAVE_TIMEOUT.as_secs())]
    Hangs { path: PathBuf },
}

impl Journal {
    /// Takes hold of the journal in this VM's directory, which is made if it is missing, and reads it.
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
        // On a disk that cannot be written to a state that is there is written all the same: that it fails has to show.
        let written = read.and_then(|(read, _)| read.ok());
        let written = written.filter(|_| writable && matches!(found, Found::State(_)));
        let state = state.to_owned();
        Ok((Journal { state, dir, lock, moving_in: left, written, hanging: None }, found))
    }

    /// Puts a state on disk, unless it is there already. Once this has returned well, the state survives a power cut.
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

impl Found {
    /// Where what was found is kept under another name.
    fn aside(&self) -> Option<&PathBuf> {
        match self {
            Found::Corrupt { aside, .. } | Found::AnotherVms { aside } => Some(aside),
            Found::Nothing | Found::State(_) => None,
        }
    }
}

impl OpenError {
    /// What the system says of a path; what is not trusted says so itself.
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

/// Makes the directory, if it is one for a journal, and sees to it that no other agent uses it.
fn acquire_lock(state: &Path) -> Result<(Dir, File), OpenError> {
    let dir = Dir::make(state).map_err(|why| OpenError::io(state, why))?;
    disk::check(dir.path()).map_err(|why| OpenError::UnsuitableDisk { path: state.to_owned(), why })?;
    let path = dir.path().join(LOCK);
    let lock = dir.open(LOCK, OpenMode::Writing).map_err(|why| OpenError::io(&path, why))?;
    Ok((dir, hold(lock, path)?))
}

/// The same on a disk that cannot be written to. Where no agent has ever been there is nothing to hold.
fn hold_unwritten(dir: &Dir) -> Option<Result<File, OpenError>> {
    dir.open(LOCK, OpenMode::Reading).ok().map(|lock| hold(lock, dir.path().join(LOCK)))
}

/// The agent's directory, if it is there.
fn find(state: &Path) -> Result<Option<Dir>, OpenError> {
    match Dir::find(state) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(OpenError::io(state, why)),
    }
}

/// The path of a file in the state directory, for what is remembered beside the journal. None where the directory is not
/// there, is not trusted, or is another VM's.
pub fn memory(state: &Path, file: &str) -> Option<PathBuf> {
    let dir = Dir::find(state).ok()?;
    owner::is_ours(&dir, &VmId::detect()).then(|| dir.path().join(file))
}

fn hold(lock: File, path: PathBuf) -> Result<File, OpenError> {
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Held { path }),
        Err(TryLockError::Error(why)) => Err(OpenError::Io { path, why }),
    }
}

/// Whether there can be a journal in a directory, which need not be there yet: on a disk that lasts, and written by whoever
/// asks.
pub fn check(state: &Path) -> Result<(), OpenError> {
    let dir = find(state)?.map_or(state.to_owned(), |dir| dir.path().to_owned());
    let Some(there) = dir.ancestors().find(|place| place.exists()) else { return Ok(()) };
    disk::check(there).map_err(|why| OpenError::UnsuitableDisk { path: dir.clone(), why })?;
    // A name that nobody else has: where everybody may write, it could be a link to somewhere else.
    let trial = there.join(format!(".notbefore-check-{}", std::process::id()));
    let tried = File::create_new(&trial).and_then(|_| fs::remove_file(&trial));
    tried.map_err(|why| OpenError::Io { path: dir.clone(), why })
}

/// Reads the journal of an agent that does not run, for people: without holding or changing anything.
pub fn read_state(state: &Path) -> io::Result<State> {
    let dir = Dir::find(state)?;
    if !owner::is_ours(&dir, &VmId::detect()) {
        return Err(io::Error::other("it is of another VM, of whose disk this one's is a copy"));
    }
    content::read(&dir.read(NAME)?).map_err(|unreadable| match unreadable {
        Unreadable::Format(found) => {
            io::Error::other(format!("it is of format {found}, not {OLDEST_FORMAT} to {FORMAT}"))
        }
        Unreadable::Corrupt(why) => io::Error::other(why),
    })
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
        for level in [u64::from(OLDEST_FORMAT) - 1, u64::from(FORMAT) + 1] {
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
        assert!(!dir.path().join(".journal.json.new").exists(), "what is left of it takes room");
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
        for name in [NAME_FILE, ENDPOINT_FILE] {
            fs::write(memory(name), "the origin's").unwrap();
        }
        drop(journal);
        let (journal, found) = open("origin");
        assert!(matches!(found, Found::State(_)) && memory(NAME_FILE).exists(), "it is its own");
        drop(journal);
        assert!(!owner::is_ours(&Dir::find(dir.path()).unwrap(), &vm("copy")));
        let (mut journal, found) = open("copy");
        let Found::AnotherVms { aside } = found else { panic!("{found:?}") };
        assert!(aside.exists() && !memory(NAME).exists());
        assert!(!memory(NAME_FILE).exists() && !memory(ENDPOINT_FILE).exists());
        journal.save(&State::new(None)).await.unwrap();
        drop(journal);
        assert!(matches!(open("copy").1, Found::State(_)), "from then on it is the copy's");
    }
}
