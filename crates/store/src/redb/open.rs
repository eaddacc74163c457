//! Opens the file and explains why it does not open.
//!
//! A new store is created under a temporary name (`FILE.new`), complete with its tables, then renamed. redb writes
//! its magic number last, and a crash before that leaves a file it never opens again. With the rename, such a crash
//! leaves a `FILE.new` that the next start removes.
//!
//! After an I/O error the same process opens the file again. Then it must be the file that was open: an empty or
//! missing file is refused and not recreated, since silent data loss is worse than a store that cannot write.

use std::error::Error;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::redb::backends::FileBackend;
use ::redb::{
    Builder, Database, DatabaseError, Durability, ReadableDatabase, ReadableTableMetadata, StorageBackend,
    StorageError, WriteTransaction,
};

use super::format::{FORMAT, Fault, META, META_FORMAT, RECORDS, STATE, STATE_KEY, State, reading};
use super::overlay;

/// redb's cache. The service keeps every live scope in memory and reads the store only at start, for instance
/// metadata and for history. So the cache only needs the tree's inner pages; redb's default is 1 GiB. Tests use a
/// small cache, so that their reads reach the disk.
const CACHE_BYTES: usize = if cfg!(test) { 256 * 1024 } else { 16 * 1024 * 1024 };

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store in this process, has the file open.
    #[error("{} is in use: another notbefore serve has it open; stop it or choose another --data", path.display())]
    InUse { path: PathBuf },
    /// Not a store. The file was not changed.
    #[error("{} is not a notbefore store ({reason}); choose another --data, or restore it from a copy if it was one", path.display())]
    NotAStore { path: PathBuf, reason: String },
    /// A store with damage that redb cannot handle.
    #[error("{} is damaged and cannot be opened; restore it from a copy, or import a backup into a new directory", path.display())]
    Damaged { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// A notbefore before the first release wrote the file.
    #[error(
        "{} has format {found} of a notbefore before the first release; this notbefore knows format {FORMAT}: export with the old one and import that, or choose another --data",
        path.display()
    )]
    OlderFormat { path: PathBuf, found: u64 },
    /// A newer notbefore wrote the file.
    #[error(
        "{} has format {found}, this notbefore knows formats up to {FORMAT}; run the newer one",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: u64 },
    /// A new store was requested where one exists.
    #[error("{} exists already; choose another --data, or move it away first", path.display())]
    Exists { path: PathBuf },
    /// The file was open and is now missing or empty.
    #[error("{} was removed or emptied while it was open; restore it and restart", path.display())]
    Vanished { path: PathBuf },
    #[error("cannot open {}; notbefore must be able to read and write it and its directory", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The writer thread could not be started.
    #[error("cannot start the store's thread")]
    Thread(#[source] io::Error),
}

/// Whether a missing store may be created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenAttempt {
    First,
    Reopen,
}

/// An open store.
pub(super) struct Opened {
    pub database: OpenDatabase,
    pub state: State,
    /// None for a backend that is not a file.
    pub file: Option<StoreFile>,
}

/// A database and the lock of its directory, which is released after the file is closed: fields drop in this order.
pub(super) struct OpenDatabase {
    pub database: Database,
    /// The file is only read; the state is not its own if that is damaged.
    pub inspected: Option<Inspected>,
    _lock: Option<DirLock>,
}

/// Why a database that is only read was opened.
pub(super) enum Inspected {
    AsItIs,
    /// For a service, from a file with damaged pages: commits are refused.
    Damaged,
    /// With this state instead of its damaged one.
    Rebuilt(State),
}

impl OpenDatabase {
    pub fn unlocked(database: Database) -> Self {
        Self { database, inspected: None, _lock: None }
    }

    pub fn inspected(database: Database, inspected: Inspected) -> Self {
        Self { database, inspected: Some(inspected), _lock: None }
    }

    /// A database that is only read, with the lock of a service.
    pub fn damaged(database: Database, lock: Option<DirLock>) -> Self {
        Self { database, inspected: Some(Inspected::Damaged), _lock: lock }
    }
}

/// Closes a database without writing to it. On damaged pages redb may panic while it closes, and again while that panic
/// unwinds, which would abort the process; but it writes nothing while another panic unwinds.
pub(super) fn discard<T>(held: T) {
    let _ = reading(|| -> Result<(), Fault> {
        let _held = held;
        panic::resume_unwind(Box::new("a database is closed without writing"))
    });
}

/// Opens the store, any number of times.
pub(super) type Opener = Box<dyn FnMut(OpenAttempt) -> Result<Opened, OpenError> + Send>;

/// The lock of a data directory: a lock file separate from the store's own lock, so that two services do not share a
/// directory after the store's file was replaced. It is never removed; otherwise two processes could lock two files.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock at `path`; creates the file if it is missing.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.into(), source };
        // Errors name the directory, which users know, not the lock file.
        let directory = path.parent().unwrap_or(path);
        let file = open_private(path).map_err(io)?;
        locked(file.try_lock(), path, directory)?;
        // A refused import may have removed the lock file it created after it was opened here.
        match StoreFile::of(path, &file).map_err(io)?.check() {
            Ok(()) => Ok(Self { _file: file }),
            Err(_) => Err(OpenError::InUse { path: directory.into() }),
        }
    }
}

/// Opens or creates a file; a new file is readable by its owner only, whatever the umask.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options.create(true).truncate(false).open(path)
        }
        Err(error) => Err(error),
    }
}

/// Converts the result of locking `path`. If another process holds the lock, the error names `in_use`.
pub(super) fn locked(tried: Result<(), TryLockError>, path: &Path, in_use: &Path) -> Result<(), OpenError> {
    tried.map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::InUse { path: in_use.into() },
        TryLockError::Error(source) => OpenError::Io { path: path.into(), source },
    })
}

/// The path and identity of the open file, and its header after the last commit.
#[derive(Clone, Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The file's header after the last commit, with a separate handle: a handle that shared the lock would keep it
    /// after the store is closed. None before the first commit.
    look: Option<(Arc<File>, FileHeader)>,
}

/// A file's length and first bytes, which every commit changes.
type FileHeader = (u64, [u8; HEADER_BYTES]);

/// redb's header: the layout, and the position of its two newest commits.
const HEADER_BYTES: usize = 512;

impl StoreFile {
    pub fn of(path: &Path, file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self { path: path.into(), device: found.dev(), inode: found.ino(), look: None })
    }

    /// Records the file's header after a commit.
    pub fn remember(&mut self) {
        let file = match self.look.take() {
            Some((file, _)) => Some(file),
            None => File::open(&self.path).ok().map(Arc::new),
        };
        // An unreadable header is not compared.
        self.look = file.and_then(|file| read_header(&file).map(|look| (file, look)));
    }

    /// Whether the file is unchanged since the last commit and still at its path. A file that was truncated or
    /// overwritten would accept further commits and lose them.
    pub fn check_unchanged(&self) -> Result<(), FileMismatch> {
        self.check()?;
        match &self.look {
            Some((file, look)) if read_header(file).as_ref() != Some(look) => {
                Err(FileMismatch::Changed { path: self.path.to_path_buf() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the path still leads to the open file; the error says what is there and what to do.
    pub fn check(&self) -> Result<(), FileMismatch> {
        let path = || self.path.to_path_buf();
        match fs::symlink_metadata(&self.path).and_then(|_| fs::metadata(&self.path)) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => Ok(()),
            Ok(_) => Err(FileMismatch::Another { path: path() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(FileMismatch::Removed { path: path() })
            }
            Err(error) => Err(FileMismatch::Hidden { path: path(), why: error.to_string() }),
        }
    }
}

/// Why the open file is no longer the store, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileMismatch {
    #[error("{} was changed by another process while it was open, so writes to it may be lost; export from the running service, and restart from that export or from a copy", path.display())]
    Changed { path: PathBuf },
    #[error("{} is not the file that was opened; {RESTORE_HINT}", path.display())]
    Another { path: PathBuf },
    #[error("{} was removed while it was open; {RESTORE_HINT}", path.display())]
    Removed { path: PathBuf },
    #[error("cannot examine {}: {why}; {RESTORE_HINT}", path.display())]
    Hidden { path: PathBuf, why: String },
}

const RESTORE_HINT: &str = "put the same file back, or export from the running service, which still has it open, and restart from the export";

fn read_header(file: &File) -> Option<FileHeader> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    Some((file.metadata().ok()?.len(), header))
}

/// Opens the file at `path`; on the first attempt, creates it if missing. Takes the lock file `lock` first.
pub(super) fn open_file(path: &Path, lock: Option<&Path>, attempt: OpenAttempt) -> Result<Opened, OpenError> {
    let io = |source| OpenError::Io { path: path.into(), source };
    let lock = match lock.map(DirLock::take).transpose() {
        // The directory itself is missing.
        Err(OpenError::Io { source, .. })
            if attempt == OpenAttempt::Reopen && source.kind() == io::ErrorKind::NotFound =>
        {
            return Err(OpenError::Vanished { path: path.into() });
        }
        lock => lock?,
    };
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => {
            // Also on the first attempt: a previous process may have had the I/O error.
            drop_page_cache(&file).map_err(io)?;
            if !overlay::is_whole(path)? {
                return overlay::open_damaged(path, lock);
            }
            let store_file = StoreFile::of(path, &file).map_err(io)?;
            let (database, state) = open_backend(path, file_backend(path, file)?, attempt)?;
            Ok(Opened {
                database: OpenDatabase { database, inspected: None, _lock: lock },
                state,
                file: Some(store_file),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match attempt {
            OpenAttempt::First => create(path, lock),
            OpenAttempt::Reopen => Err(OpenError::Vanished { path: path.into() }),
        },
        Err(error) => Err(io(error)),
    }
}

/// Drops the file's page cache. After a failed sync the cache holds bytes that are not on disk, marked as written.
/// Reads must not return them. Overwriting them on ext4 loses the new data although its sync succeeds: the blocks stay
/// marked as never written.
fn drop_page_cache(file: &File) -> io::Result<()> {
    // Only clean pages can be dropped.
    file.sync_all()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Creates a store under a temporary name and renames it when it is complete.
fn create(path: &Path, lock: Option<DirLock>) -> Result<Opened, OpenError> {
    match NewFile::begin(path)? {
        Some(new) => {
            let (database, state) = open_backend(path, new.backend()?, OpenAttempt::First)?;
            let store_file = StoreFile::of(path, &new.file).map_err(|error| new.io(error))?;
            new.rename()?;
            Ok(Opened {
                database: OpenDatabase { database, inspected: None, _lock: lock },
                state,
                file: Some(store_file),
            })
        }
        // Another process created it just now.
        None => {
            let mut opened = open_file(path, None, OpenAttempt::Reopen)?;
            opened.database._lock = lock;
            Ok(opened)
        }
    }
}

/// A store's file under construction, as `FILE.new`, locked.
pub(super) struct NewFile {
    path: PathBuf,
    new: PathBuf,
    file: File,
}

impl NewFile {
    /// An empty file for a new store; none if there is a store already.
    pub fn begin(path: &Path) -> Result<Option<Self>, OpenError> {
        let io = |source| OpenError::Io { path: path.into(), source };
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);

        let file = open_private(&new).map_err(io)?;
        locked(file.try_lock(), path, path)?;
        // Checked under the lock: a process that created the store meanwhile renamed the file it had locked. The file
        // locked here is then a new one, and renaming it would replace that store.
        if path.try_exists().map_err(io)? {
            fs::remove_file(&new).map_err(io)?;
            return Ok(None);
        }
        file.set_len(0).map_err(io)?;
        Ok(Some(Self { path: path.into(), new, file }))
    }

    /// The file as a redb backend. Both handles share one lock, which is held until the last is dropped.
    pub fn backend(&self) -> Result<FileBackend, OpenError> {
        let file = self.file.try_clone().map_err(|error| self.io(error))?;
        file_backend(&self.path, file)
    }

    /// The final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the complete file to its final path.
    pub fn rename(self) -> Result<(), OpenError> {
        fs::rename(&self.new, &self.path)
            .and_then(|()| sync_directory(&self.path))
            .map_err(|error| self.io(error))
    }

    pub fn remove(&self) {
        // A leftover file is removed by the next process that creates a store here.
        let _ = fs::remove_file(&self.new);
    }

    fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
    }
}

/// A rename is durable only after a sync of its directory.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

fn file_backend(path: &Path, file: File) -> Result<FileBackend, OpenError> {
    FileBackend::new(file).map_err(|error| classify(path, error))
}

/// Opens a store over any backend; errors call it `name`.
pub(super) fn open_backend(
    name: &Path,
    backend: impl StorageBackend,
    attempt: OpenAttempt,
) -> Result<(Database, State), OpenError> {
    let len = backend.len().map_err(|source| OpenError::Io { path: name.into(), source })?;
    if attempt == OpenAttempt::Reopen && len == 0 {
        return Err(OpenError::Vanished { path: name.into() });
    }
    let database = open_database(name, backend)?;
    match state_in(name, &database) {
        Ok(state) => Ok((database, state)),
        Err(error) => {
            discard(database);
            Err(error)
        }
    }
}

/// The state of a store, which is created in an empty database.
fn state_in(name: &Path, database: &Database) -> Result<State, OpenError> {
    let path = || name.to_path_buf();
    match reading(|| identify(database)).map_err(|fault| damaged(name, fault))? {
        Identity::Empty => initialise(database).map_err(|fault| damaged(name, fault)),
        Identity::Store(state) => Ok(state),
        Identity::OtherFormat(found) if found < FORMAT => Err(OpenError::OlderFormat { path: path(), found }),
        Identity::OtherFormat(found) => Err(OpenError::NewerFormat { path: path(), found }),
        Identity::Foreign => {
            let reason = "a redb database with other tables".into();
            Err(OpenError::NotAStore { path: path(), reason })
        }
    }
}

/// Opens any redb database, store or not.
pub(super) fn open_database(name: &Path, backend: impl StorageBackend) -> Result<Database, OpenError> {
    let opened = reading(|| Ok(builder().create_with_backend(backend)));
    opened.map_err(|fault| damaged(name, fault))?.map_err(|error| classify(name, error))
}

/// Opens databases with the usual cache.
pub(super) fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// What a file is.
enum Identity {
    Empty,
    Store(State),
    OtherFormat(u64),
    Foreign,
}

fn identify(database: &Database) -> Result<Identity, Fault> {
    let txn = database.begin_read()?;
    if txn.list_tables()?.next().is_none() {
        return Ok(Identity::Empty);
    }
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(::redb::TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Ok(Identity::Foreign),
    };
    match meta.get(META_FORMAT)?.map(|value| value.value()) {
        None => Ok(Identity::Foreign),
        Some(FORMAT) => {
            let state = read_state(&txn)?;
            // redb keeps the number of records on another page than the state record. A state record of the past would
            // let revisions be used again.
            match txn.open_table(RECORDS)?.len()? == state.tallies.records() {
                true => Ok(Identity::Store(state)),
                false => Err(Fault::Unfollowable),
            }
        }
        Some(format) => Ok(Identity::OtherFormat(format)),
    }
}

/// Reads the store's metadata in a read transaction.
pub(super) fn read_state(txn: &::redb::ReadTransaction) -> Result<State, Fault> {
    let raw = txn.open_table(STATE)?.get(STATE_KEY)?;
    State::decode(raw.as_ref().map_or(&[][..], |raw| raw.value()))
}

/// A redb transaction with a durable commit and quick-repair, so that the next open does not walk the whole file.
pub(super) fn begin_durable(database: &Database) -> Result<WriteTransaction, Fault> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.set_quick_repair(true);
    Ok(txn)
}

fn initialise(database: &Database) -> Result<State, Fault> {
    let txn = begin_durable(database)?;
    let state = State::new()?;
    {
        txn.open_table(RECORDS)?;
        txn.open_table(STATE)?.insert(STATE_KEY, state.encode().as_slice())?;
        txn.open_table(META)?.insert(META_FORMAT, FORMAT)?;
    }
    txn.commit()?;
    Ok(state)
}

fn classify(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_path_buf();
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
        // redb's error for a file without its magic number.
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            OpenError::NotAStore { path, reason: error.to_string() }
        }
        DatabaseError::Storage(StorageError::Io(source)) => unreadable(path, source),
        // The enum is non-exhaustive; any other variant also means that the file did not open.
        error @ (DatabaseError::Storage(_)
        | DatabaseError::RepairAborted
        | DatabaseError::UpgradeRequired(_)
        | DatabaseError::TransactionInProgress
        | _) => OpenError::Damaged { path, source: error.into() },
    }
}

pub(super) fn damaged(path: &Path, fault: Fault) -> OpenError {
    match fault {
        Fault::Redb(::redb::Error::Io(source)) => unreadable(path.into(), source),
        fault @ (Fault::Redb(_) | Fault::Damaged { .. } | Fault::Unfollowable) => {
            OpenError::Damaged { path: path.into(), source: fault.into() }
        }
    }
}

/// An I/O error. If the end of the file came too early, its pages lead beyond it.
fn unreadable(path: PathBuf, source: io::Error) -> OpenError {
    match source.kind() == io::ErrorKind::UnexpectedEof {
        true => OpenError::Damaged { path, source: source.into() },
        false => OpenError::Io { path, source },
    }
}

/// An error with its causes, as one text.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
