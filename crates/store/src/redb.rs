//! The embedded store: one redb file with a single writer thread and group commit.
//!
//! **Layout.** `format` is the record format in the file. [`RedbStore`] is a handle; behind it `writer` is the
//! thread that evaluates and commits transactions. `read` has snapshots, `open` opens the file, `load` creates a
//! whole store from records, and `overlay` reads a store without changing its file. `order` detects pages that lead back.
//! They share `DatabaseState`: the open database, or the reason why there is none.
//!
//! **Group commit.** Callers queue their transactions. The thread takes all that wait, up to a count and a size,
//! evaluates each against the state that the previous one left, and writes one durable redb commit. One sync per
//! transaction gives a few thousand a second; batches give about thirty times that. Then the batches are appended to
//! the log for the watches, and last the callers get their outcomes.
//!
//! **Crash.** redb commits in two phases: it syncs the pages before the header points to them. A crash leaves the
//! state before or after the commit, and callers get their outcome only after it. Quick-repair keeps redb's allocator
//! state in each commit, so opening after a crash does not walk the whole file.
//!
//! **I/O error.** redb then fails every access until the file is opened again, and the failed commit may or may
//! not be on disk. The batch returns [`Outcome::Unknown`]. The thread reopens the file and reads the revision on
//! disk. It drops the page cache first, since after a failed sync the cache and the disk differ. If the batch is on
//! disk, it is appended to the log like any other, so that a publisher that follows the log shows the same state as
//! after a restart. What it finds is durable: the header only points to pages whose sync succeeded, and redb writes
//! and syncs the header itself when it opens. While the file does not open, commits are refused, reads fail, and the
//! thread keeps trying.
//!
//! **Damage.** Every record has a checksum, verified on each read, and every commit stores record counts per kind. A
//! damaged record is never returned: reading it by key is an error, and a scan skips and reports it. The caller of
//! the scan decides what that means. redb panics on a damaged page; the panic is caught and becomes an error.
//!
//! **Removed file.** A file that was removed or replaced while open can still be written, but the data is lost with
//! the process. So before each batch is answered, the thread checks that the path leads to the open file.
//!
//! **Rejected alternatives.** A redb commit per transaction is slow. Writing from the callers' threads would queue
//! on redb's write lock, on threads of the async runtime. Retrying a failed batch is useless: a caller without a
//! response for seconds has already retried.

mod format;
mod load;
mod open;
mod order;
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
pub use self::overlay::{ENTRY_BYTES_MIN, Progress, STALL_MAX, pages_are_whole};
use self::writer::{Message, Request, Writer};
use crate::log::{Limits, Log};
use crate::{Outcome, ReadError, Refusal, Revision, Snapshot, Store, Txn, Watch, WatchError};

/// Limit on queued data, in KiB of keys and values (a transaction counts as at least one). Further callers wait for
/// room. 64 MiB is far more than a disk writes before a caller times out.
const QUEUE_KIB_MAX: u32 = 64 * 1024;

/// Transactions in one call. They are answered together, so the first wait for the last.
const GROUP_MAX: usize = 256;

const CLOSED: &str = "the store has closed";

/// Limit on the set of damaged records; beyond it they are neither counted nor logged.
const DAMAGED_MAX: usize = 10_000;

/// A store in a redb file. Clones are handles to the same file. Dropping the last handle waits until the thread has
/// written its queue and closed the file, which takes a sync or two.
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

/// State shared by the thread and the handles.
struct Shared {
    database: RwLock<DatabaseState>,
    log: Arc<Log>,
    /// A read failed and the thread has not yet checked the database.
    check_requested: AtomicBool,
    /// Damaged records found so far, by their keys as found.
    damaged: Mutex<BTreeSet<String>>,
}

/// The database, or why there is none. Only the writer thread changes it, so it may hold the read lock through a
/// whole commit while snapshots are taken.
enum DatabaseState {
    Open(OpenDatabase),
    Closed(Unavailable),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unavailable {
    #[error("{CLOSED}")]
    Closed,
    /// A commit or a check failed, or the file does not open; the text is the error chain.
    #[error("{0}")]
    Failed(String),
    #[error(
        "the file belongs to another store than the one that was open; put that one back, or restart to accept this one"
    )]
    OtherStore,
    #[error(
        "the file is at revision {found}, but {durable} was durable: it is not the file that was open; restart to accept it"
    )]
    OtherRevision { found: Revision, durable: Revision },
}

impl RedbStore {
    /// Opens the store at `path` and creates it if it is missing. Blocking.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_path_buf();
        Self::start(Box::new(move |attempt| open::open_file(&path, None, attempt)), Limits::default())
    }

    /// Opens the store at `path` and holds the lock file `lock` of its directory.
    pub fn open_locked(path: PathBuf, lock: PathBuf) -> Result<Self, OpenError> {
        Self::start(Box::new(move |attempt| open::open_file(&path, Some(&lock), attempt)), Limits::default())
    }

    /// Opens an existing store without changing its file: all writes, including those of opening, stay in memory.
    pub fn open_unchanged(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_unchanged_with(path, &Progress::default())
    }

    /// Like [`Self::open_unchanged`], counting what is read.
    pub fn open_unchanged_with(path: impl AsRef<Path>, progress: &Progress) -> Result<Self, OpenError> {
        let (path, progress) = (path.as_ref().to_path_buf(), progress.clone());
        Self::start(Box::new(move |_| overlay::open(&path, &progress)), Limits::default())
    }

    /// Like [`Self::open_unchanged_with`], for a damaged state record: revision and counts are recomputed from
    /// the readable records.
    pub fn open_rebuilt(path: impl AsRef<Path>, progress: &Progress) -> Result<Self, OpenError> {
        let (path, progress) = (path.as_ref().to_path_buf(), progress.clone());
        Self::start(Box::new(move |_| overlay::open_rebuilt(&path, &progress)), Limits::default())
    }

    /// Opens a store over the backends from `make`: one now, and one after each I/O error. Tests use it to inject
    /// faults. Errors call the store `name`.
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
        // Both fail only if the thread has already ended.
        let _ = self.queue.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Runs `work` on the database, or returns why there is none.
    fn with_database<T>(&self, work: impl FnOnce(&Database) -> T) -> Result<T, Unavailable> {
        self.with_open(|open| work(&open.database))
    }

    fn with_open<T>(&self, work: impl FnOnce(&OpenDatabase) -> T) -> Result<T, Unavailable> {
        match &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            DatabaseState::Open(open) => Ok(work(open)),
            DatabaseState::Closed(reason) => Err(reason.clone()),
        }
    }

    fn set_database(&self, database: DatabaseState) {
        let before =
            mem::replace(&mut *self.database.write().unwrap_or_else(PoisonError::into_inner), database);
        if matches!(&before, DatabaseState::Open(open) if open.inspected.is_some()) {
            return open::discard(before);
        }
        // Closing a database writes and syncs; readers need not wait for that. It fails if the file is damaged; that
        // is ignored.
        let _ = reading(|| {
            drop(before);
            Ok(())
        });
    }

    /// Counts and logs a damaged record the first time it is found.
    fn note_damage(&self, key: &str) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() < DAMAGED_MAX && damaged.insert(key.to_owned()) {
            tracing::error!(
                record = key,
                "record is damaged and was skipped; 'notbefore check --data DIR' lists all damage"
            );
        }
    }

    /// Asks the thread, once, to check the database.
    fn request_check(&self, queue: &mpsc::Sender<Message>) {
        if !self.check_requested.swap(true, Ordering::AcqRel) {
            // Fails only if the thread has ended.
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

    fn commit_batch_max(&self) -> usize {
        GROUP_MAX
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(self.inner.shared.log.watch(after)?))
    }

    fn damaged(&self) -> u64 {
        self.inner.shared.damaged.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

impl Inner {
    /// Queues transactions, in order and in requests that each fit into one redb commit, and waits for the outcomes.
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

    /// Queues one request as soon as there is room; none if the store has closed.
    async fn queue(&self, txns: Vec<Txn>) -> Option<oneshot::Receiver<Vec<Outcome>>> {
        let room = self.room.clone().acquire_many_owned(weight_kib(&txns)).await.ok()?;
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Commit(Request { txns, answer, room })).ok()?;
        Some(answered)
    }
}

/// The outcome of a transaction that the thread took but never answered.
fn unknown_outcome() -> Outcome {
    Outcome::Unknown("the store's thread ended before it answered".into())
}

/// The share of [`QUEUE_KIB_MAX`]; at most all of it, since more would wait forever.
fn weight_kib(txns: &[Txn]) -> u32 {
    let kib: usize = txns.iter().map(|txn| 1 + txn.bytes() / 1024).sum();
    u32::try_from(kib).map_or(QUEUE_KIB_MAX, |kib| kib.min(QUEUE_KIB_MAX))
}
