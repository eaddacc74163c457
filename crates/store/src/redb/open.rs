//! Opening the file, and saying plainly why it would not open.
//!
//! A new store is made under a name of its own (`FILE.new`), complete with its tables, and then renamed.
//! redb writes its magic number last, and a crash before that leaves a file it will never open again; with
//! the rename, such a crash leaves a `FILE.new` that the next start throws away.
//!
//! The file is opened again, in the same process, after an I/O error. Then it must be the one that was open:
//! an empty or missing file is refused rather than made anew, since a store that silently forgets is worse
//! than one that says it cannot write.

use std::error::Error;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use ::redb::backends::FileBackend;
use ::redb::{Builder, Database, DatabaseError, Durability, ReadableDatabase, StorageBackend, StorageError};

use super::format::{FORMAT, Fault, META, META_FORMAT, META_REVISION, RECORDS, reading};
use crate::Revision;

/// What redb may cache. The service keeps every live scope in memory itself and reads the store at start, for
/// instance metadata and for history, so the cache need only hold the inner pages of the tree; redb's own default is
/// 1 GiB. Tests take little, so that their reads reach the disk.
const CACHE_BYTES: usize = if cfg!(test) { 256 * 1024 } else { 16 * 1024 * 1024 };

/// Why a store would not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, has the file open.
    #[error("{} is in use: another notbefore serve has it open; stop it or choose another --data", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It was not changed.
    #[error("{} is not a notbefore store ({reason}); choose another --data", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// The file was a store once.
    #[error("{} is damaged; restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer notbefore wrote the file.
    #[error(
        "{} has format {found}, this notbefore knows formats up to {FORMAT}; run the newer one",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// A store was to be made where there is one.
    #[error("{} is there already; choose another --data, or move it away first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It was open, and is now missing or empty.
    #[error("{} was removed or emptied while it was open; restore it and restart", path.display())]
    Vanished {
        /// The file.
        path: PathBuf,
    },
    /// The operating system would not let us.
    #[error("cannot open {}; notbefore must be able to read and write it and its directory", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The thread that owns the file could not be started.
    #[error("cannot start the store's thread")]
    Thread(#[source] io::Error),
}

/// Whether a store may be made where there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Again,
}

/// A database that is ready for use, and the newest revision in it.
pub(super) type Opened = (Database, Revision);

/// Opens the store, as often as it takes.
pub(super) type Opener = Box<dyn FnMut(Attempt) -> Result<Opened, OpenError> + Send>;

/// Opens the file at `path`; makes it, on the first attempt, if there is none.
pub(super) fn open_file(path: &Path, attempt: Attempt) -> Result<Opened, OpenError> {
    let io = |source| OpenError::Io { path: path.into(), source };
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => {
            // Also at the first attempt: it may have been another process that the disk failed under.
            forget_what_is_cached(&file).map_err(io)?;
            open_backend(path, file_backend(path, file)?, attempt)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match attempt {
            Attempt::First => create(path),
            Attempt::Again => Err(OpenError::Vanished { path: path.into() }),
        },
        Err(error) => Err(io(error)),
    }
}

/// Makes the system read the file from the disk again. After a failed sync its memory of the file holds bytes
/// that the disk does not, and counts them as written. What is read must not be such bytes; and what is written
/// over them is lost on ext4, though its sync succeeds: the blocks stay marked as never written.
fn forget_what_is_cached(file: &File) -> io::Result<()> {
    // Only what has nothing left to write can be forgotten.
    file.sync_all()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Makes a store under another name and renames it when it is whole.
fn create(path: &Path) -> Result<Opened, OpenError> {
    match NewFile::begin(path)? {
        Some(new) => {
            let opened = open_backend(path, new.backend()?, Attempt::First)?;
            new.rename()?;
            Ok(opened)
        }
        None => open_file(path, Attempt::Again),
    }
}

/// A store's file while it is made, under a name of its own (`FILE.new`) and locked.
pub(super) struct NewFile {
    path: PathBuf,
    new: PathBuf,
    file: File,
}

impl NewFile {
    /// An empty file to make a store in; none if there is a store already.
    pub fn begin(path: &Path) -> Result<Option<Self>, OpenError> {
        let io = |source| OpenError::Io { path: path.into(), source };
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);

        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&new).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.into() }),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // Asked under the lock: whoever made the store meanwhile renamed the file they had locked, so the one
        // locked here is a new one, and renaming it would replace their store.
        if path.try_exists().map_err(io)? {
            fs::remove_file(&new).map_err(io)?;
            return Ok(None);
        }
        file.set_len(0).map_err(io)?;
        Ok(Some(Self { path: path.into(), new, file }))
    }

    /// The file as redb takes it. Both are one lock, which is held until the last of them is dropped.
    pub fn backend(&self) -> Result<FileBackend, OpenError> {
        let file = self.file.try_clone().map_err(|error| self.io(error))?;
        file_backend(&self.path, file)
    }

    /// The name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file, now whole, its name.
    pub fn rename(self) -> Result<(), OpenError> {
        fs::rename(&self.new, &self.path)
            .and_then(|()| sync_directory(&self.path))
            .map_err(|error| self.io(error))
    }

    /// Throws the file away.
    pub fn remove(&self) {
        // What is left behind is thrown away by the next who makes a store here.
        let _ = fs::remove_file(&self.new);
    }

    fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
    }
}

/// A rename is only durable once its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

fn file_backend(path: &Path, file: File) -> Result<FileBackend, OpenError> {
    FileBackend::new(file).map_err(|error| classify(path, error))
}

/// Opens a store over any backend; `name` is what its errors call it.
pub(super) fn open_backend(
    name: &Path,
    backend: impl StorageBackend,
    attempt: Attempt,
) -> Result<Opened, OpenError> {
    let len = backend.len().map_err(|source| OpenError::Io { path: name.into(), source })?;
    if attempt == Attempt::Again && len == 0 {
        return Err(OpenError::Vanished { path: name.into() });
    }
    let opened = reading(|| Ok(Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(backend)));
    let database = opened.map_err(|fault| damaged(name, fault))?.map_err(|error| classify(name, error))?;
    let revision = match reading(|| identify(&database)).map_err(|fault| damaged(name, fault))? {
        Identity::Empty => initialise(&database).map_err(|fault| damaged(name, fault))?,
        Identity::Store { format: FORMAT, revision } => revision,
        Identity::Store { format, revision: _ } => {
            return Err(OpenError::NewerFormat { path: name.into(), found: format });
        }
        Identity::Foreign => {
            let reason = "a redb database with other tables".into();
            return Err(OpenError::NotAStore { path: name.into(), reason });
        }
    };
    Ok((database, revision))
}

enum Identity {
    Empty,
    Store { format: u64, revision: Revision },
    Foreign,
}

fn identify(database: &Database) -> Result<Identity, Fault> {
    let txn = database.begin_read()?;
    let Some(_) = txn.list_tables()?.next() else { return Ok(Identity::Empty) };
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(::redb::TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Ok(Identity::Foreign),
    };
    let field = |key: &str| Ok::<_, Fault>(meta.get(key)?.map(|value| value.value()));
    match (field(META_FORMAT)?, field(META_REVISION)?) {
        (Some(format), Some(revision)) => Ok(Identity::Store { format, revision: Revision(revision) }),
        _ => Ok(Identity::Foreign),
    }
}

fn initialise(database: &Database) -> Result<Revision, Fault> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.set_quick_repair(true);
    {
        txn.open_table(RECORDS)?;
        let mut meta = txn.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_REVISION, 0)?;
    }
    txn.commit()?;
    Ok(Revision(0))
}

fn classify(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_path_buf();
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
        // redb's word for a file without its magic number.
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            OpenError::NotAStore { path, reason: error.to_string() }
        }
        DatabaseError::Storage(StorageError::Io(source)) => OpenError::Io { path, source },
        // Their enum may grow; whatever it grows by, the file did not open.
        error @ (DatabaseError::Storage(_)
        | DatabaseError::RepairAborted
        | DatabaseError::UpgradeRequired(_)
        | DatabaseError::TransactionInProgress
        | _) => OpenError::Damaged { path, source: error.into() },
    }
}

pub(super) fn damaged(path: &Path, fault: Fault) -> OpenError {
    match fault {
        Fault::Redb(::redb::Error::Io(source)) => OpenError::Io { path: path.into(), source },
        fault @ (Fault::Redb(_) | Fault::Damaged { .. } | Fault::Unfollowable) => {
            OpenError::Damaged { path: path.into(), source: fault.into() }
        }
    }
}

/// An error with its causes, for the answers that carry a reason as text.
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
