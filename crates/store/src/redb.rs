//! The embedded store: one redb file, one thread that writes it.
//!
//! **Layout.** `format` says how records lie in the file. [`RedbStore`] is a handle; behind it `owner` is the
//! thread that evaluates and commits transactions, `read` is what a snapshot does, `open` is how the file is
//! opened, `load` how a whole one is made from records, `overlay` how one is read and left as it is. The state between
//! them (`DatabaseState`) holds the open database, or the reason why there is none.
//!
//! **A commit.** Callers queue their transactions. The thread takes all that wait, up to a number and a size,
//! evaluates each against the state that the one before left, and makes one durable redb commit of them: at one sync a transaction a
//! disk gives a few thousand a second, in batches some thirty times that. Then the batches go to the log,
//! where watchers find them, and last the callers are answered.
//!
//! **A crash.** redb commits in two phases: the pages are synced before the header points to them. A crash
//! leaves the state before the commit or after it, and a transaction is answered only after it. Quick-repair
//! keeps redb's allocator state in each commit, so that opening after a crash does not walk the whole file.
//!
//! **An I/O error.** redb then fails every access until the file is opened again, and the failed commit may
//! or may not be on disk. The batch answers [`Outcome::Unknown`], the thread opens the file anew and reads
//! the revision on disk: on disk, and not in the system's memory of it, which is thrown away first, since after
//! a failed sync the two differ. If the batch is there, it goes to the log like any other, so that whoever
//! publishes from the log publishes what a restart would. What is found there is durable: the header can only
//! point to pages whose sync succeeded, and redb writes and syncs the header itself as it opens. While the file
//! will not open, commits are refused and reads fail, and the thread keeps trying.
//!
//! **Damage.** Every record has a checksum, compared when it is read, and the store counts its records of each kind in
//! every commit. A damaged record is never handed out: reading it by its key is an error, and a scan passes it over and
//! names it. Who scans decides what that means. Where redb itself stumbles over a damaged page, it panics; that is
//! caught, and an error too.
//!
//! **A file that is gone.** A file that was removed or replaced while it is open can still be written, and all of it is
//! lost with the process. So the thread looks, before each batch is answered, whether the path leads to the open file.
//!
//! **Not taken.** A redb commit per transaction (slow), writing from the callers' threads (they would queue on
//! redb's write lock all the same, on threads of the async runtime), and retrying a failed batch (a caller
//! that was told nothing for seconds has already asked again).

mod format;
mod load;
mod open;
mod overlay;
mod read;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::{io, mem};

use ::redb::{Database, StorageBackend};
use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};

use self::format::reading;
pub use self::load::NewStore;
pub use self::open::{DirLock, OpenError};
use self::open::{OpenAttempt, OpenDatabase, Opened, Opener};
pub use self::overlay::pages_are_whole;
use self::writer::{Message, Request, Writer};
use crate::log::{Limits, Log};
use crate::{Outcome, ReadError, Refusal, Revision, Snapshot, Store, Txn, Watch, WatchError};

/// How much may wait to be written, in KiB of keys and values (each transaction counts as one at least). More
/// callers than that wait for room. 64 MiB is far more than a disk takes in the time a caller will wait.
const QUEUE_KIB_MAX: u32 = 64 * 1024;

const CLOSED: &str = "the store has closed";

/// How many damaged records are told from each other; past that they are neither counted nor logged.
const DAMAGED_MAX: usize = 10_000;

/// A store in a redb file. Clones are handles to the same file. When the last handle goes, the thread finishes
/// what it has taken and the file is closed before the drop returns, which takes a sync or two.
#[derive(Clone)]
pub struct RedbStore {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Message>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the handles both see.
struct Shared {
    database: RwLock<DatabaseState>,
    log: Arc<Log>,
    /// Whether the thread has been told, and has not yet looked, that a read failed.
    check_requested: AtomicBool,
    /// The damaged records that were met, by their keys as they were found.
    damaged: Mutex<BTreeSet<String>>,
}

/// The database, or why there is none. Only the writer's thread changes it, so that it may hold the lock for
/// reading through a whole commit while snapshots are taken.
enum DatabaseState {
    Open(OpenDatabase),
    Closed(Unavailable),
}

/// Why there is no database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unavailable {
    #[error("{CLOSED}")]
    Closed,
    /// A commit or a look has failed, or the file does not open: the chain of what failed.
    #[error("{0}")]
    Failed(String),
    #[error(
        "the file is that of another store, and not the one that was open; put that back, or restart to accept this one"
    )]
    OtherStore,
    #[error(
        "the file is at revision {found}, but {durable} was durable: it is not the file that was open; restart to accept it"
    )]
    OtherRevision { found: Revision, durable: Revision },
}

impl RedbStore {
    /// Opens the store at `path`, which is made if it does not exist. Blocks while it does.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Box::new(move |attempt| open::open_file(&path, None, attempt)), Limits::default())
    }

    /// Opens the store at `path` while it holds the lock of its directory, the file `lock`.
    pub fn open_locked(path: PathBuf, lock: PathBuf) -> Result<Self, OpenError> {
        Self::start(Box::new(move |attempt| open::open_file(&path, Some(&lock), attempt)), Limits::default())
    }

    /// Opens the store at `path`, which must be there, and leaves the file as it is: what opening it would write, and all
    /// that is committed, stays in memory.
    pub fn open_unchanged(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Box::new(move |_| overlay::open(&path)), Limits::default())
    }

    /// The same for a store that is damaged in what it says of itself: its revision and its counts become those of the
    /// records that can be read.
    pub fn open_rebuilt(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Box::new(move |_| overlay::open_rebuilt(&path)), Limits::default())
    }

    /// Opens a store over the backends that `make` yields: one at once, and another after each I/O error. It
    /// is how tests put faults under the store. Errors call it `name`.
    pub fn open_with<B: StorageBackend>(
        name: impl Into<PathBuf>,
        make: impl FnMut() -> io::Result<B> + Send + 'static,
    ) -> Result<Self, OpenError> {
        Self::start(backends(name.into(), make), Limits::default())
    }

    fn start(mut open: Opener, limits: Limits) -> Result<Self, OpenError> {
        let Opened { database, state, file } = open(OpenAttempt::First)?;
        let shared = Arc::new(Shared {
            database: RwLock::new(DatabaseState::Open(database)),
            log: Log::new(state.revision, limits),
            check_requested: AtomicBool::new(false),
            damaged: Mutex::default(),
        });
        let (queue, messages) = mpsc::channel();
        let writer = Writer::new(shared.clone(), messages, open, state, file);
        let thread = thread::Builder::new()
            .name("notbefore-store".into())
            .spawn(move || writer.run())
            .map_err(OpenError::Thread)?;
        let room = Arc::new(Semaphore::new(QUEUE_KIB_MAX as usize));
        Ok(Self { inner: Arc::new(Inner { shared, queue, room, thread: Some(thread) }) })
    }
}

fn backends<B: StorageBackend>(
    name: PathBuf,
    mut make: impl FnMut() -> io::Result<B> + Send + 'static,
) -> Opener {
    Box::new(move |attempt| {
        let backend = make().map_err(|source| OpenError::Io { path: name.clone(), source })?;
        let (database, state) = open::open_backend(&name, backend, attempt)?;
        Ok(Opened { database: OpenDatabase::unlocked(database), state, file: None })
    })
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Both fail only if the thread has ended already, which is what is wanted here.
        let _ = self.queue.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Runs `work` on the database, or answers why there is none.
    fn with_database<T>(&self, work: impl FnOnce(&Database) -> T) -> Result<T, Unavailable> {
        match &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            DatabaseState::Open(open) => Ok(work(&open.database)),
            DatabaseState::Closed(reason) => Err(reason.clone()),
        }
    }

    fn set_database(&self, database: DatabaseState) {
        let before =
            mem::replace(&mut *self.database.write().unwrap_or_else(PoisonError::into_inner), database);
        // Closing a database writes and syncs; readers need not wait for that. It fails where the file is damaged, and
        // nothing can be done about it.
        let _ = reading(|| {
            drop(before);
            Ok(())
        });
    }

    /// Counts a damaged record, and logs it, the first time it is met.
    fn note_damage(&self, key: &str) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() < DAMAGED_MAX && damaged.insert(key.to_owned()) {
            tracing::error!(
                record = key,
                "a record is damaged and was passed over; 'notbefore check --data DIR' lists all damage"
            );
        }
    }

    /// Asks the thread, once, to see whether the database still works.
    fn request_check(&self, queue: &mpsc::Sender<Message>) {
        if !self.check_requested.swap(true, Ordering::AcqRel) {
            // It fails only if the thread has ended, and then there is nobody to ask.
            let _ = queue.send(Message::Check);
        }
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(read::RedbSnapshot::take(&self.inner.shared, &self.inner.queue)?))
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        self.commit_all(vec![txn]).await.pop().unwrap_or_else(unknown_outcome)
    }

    async fn commit_all(&self, txns: Vec<Txn>) -> Vec<Outcome> {
        let refusals: Vec<Option<Refusal>> = txns.iter().map(|txn| txn.check().err()).collect();
        let is_fit = |index: usize| refusals.get(index).is_some_and(Option::is_none);
        let fit = txns.into_iter().enumerate().filter(|(index, _)| is_fit(*index)).map(|(_, txn)| txn);
        let mut outcomes = self.inner.queued(fit.collect()).await.into_iter();
        let outcome = |refusal: Option<Refusal>| match refusal {
            Some(refusal) => Outcome::Refused(refusal),
            None => outcomes.next().unwrap_or_else(unknown_outcome),
        };
        refusals.into_iter().map(outcome).collect()
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(self.inner.shared.log.watch(after)?))
    }

    fn damaged(&self) -> u64 {
        self.inner.shared.damaged.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

impl Inner {
    /// Puts transactions into the queue, in order and in requests that each fit into one redb commit, and waits for
    /// what becomes of each.
    async fn queued(&self, txns: Vec<Txn>) -> Vec<Outcome> {
        let mut waiting = Vec::new();
        for part in writer::parts(txns) {
            waiting.push((part.len(), self.queue(part).await));
        }
        let mut outcomes = Vec::new();
        for (count, answered) in waiting {
            outcomes.extend(match answered {
                Some(answered) => answered.await.unwrap_or_else(|_| vec![unknown_outcome(); count]),
                None => vec![Outcome::Refused(Refusal::Unavailable(CLOSED.into())); count],
            });
        }
        outcomes
    }

    /// Puts one request into the queue as soon as there is room; answers none if the store has closed.
    async fn queue(&self, txns: Vec<Txn>) -> Option<oneshot::Receiver<Vec<Outcome>>> {
        let room = self.room.clone().acquire_many_owned(weight_kib(&txns)).await.ok()?;
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Commit(Request { txns, answer, room })).ok()?;
        Some(answered)
    }
}

/// What is told of a transaction that was taken up and never answered.
fn unknown_outcome() -> Outcome {
    Outcome::Unknown("the store's thread ended before it answered".into())
}

/// What transactions take of [`QUEUE_KIB_MAX`]; never more than all of it, or they would wait for ever.
fn weight_kib(txns: &[Txn]) -> u32 {
    let kib: usize = txns.iter().map(|txn| 1 + bytes(txn) / 1024).sum();
    u32::try_from(kib).map_or(QUEUE_KIB_MAX, |kib| kib.min(QUEUE_KIB_MAX))
}

fn bytes(txn: &Txn) -> usize {
    let put: usize = txn.put.iter().map(|(key, value)| key.len() + value.len()).sum();
    let expect: usize = txn.expect.iter().map(|expect| expect.key.len()).sum();
    let delete: usize = txn.delete.iter().map(|key| key.len()).sum();
    put + expect + delete
}
