//! Data directory: `format`, `store.redb`, `lock` and `operator.token`.
//!
//! `format` holds the format level of the records in digits. It is a separate file, so that it can be read before the
//! store is opened: a store with an unknown level is refused and not modified, not even by opening it. Once a store
//! exists, a second line says so. If the store is missing then, it was lost, and the service does not start with an
//! empty one.
//!
//! `lock` is locked by the service that uses the directory, in addition to the store's own lock. It is never removed.
//!
//! Files that may hold a secret are private to their owner, whatever the umask; `format`, `operator.url`, `listeners.json` and
//! `cluster.json` hold none.

use std::error::Error as _;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use notbefore_engine::records::{FORMAT_LEVEL, FORMAT_LEVELS_READ, levels_read};
use notbefore_store::redb::{DirLock, OpenError, RedbStore};

/// The second line of `format`.
const HAS_STORE: &str = "store";

/// The first token's secret.
pub const TOKEN: &str = "operator.token";
/// The operator listener's URL, for a command line on the same machine.
pub const OPERATOR_URL: &str = "operator.url";
/// The cluster that a node has joined.
pub const CLUSTER: &str = "cluster.json";
/// All listeners, for scripts on the same machine.
pub const LISTENERS: &str = "listeners.json";
/// The operator listener's certificate, for a command line on the same machine.
pub const AUTHORITY: &str = "operator.ca";
/// Directory for results of exec driver commands.
pub const RESULTS: &str = "exec";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The directory cannot be created or written.
    #[error("cannot use data directory {path}; check its permissions, or choose another with --data")]
    Io { path: PathBuf, source: io::Error },
    /// Another release wrote it.
    #[error(
        "data directory {path} has format {found:?}; this release reads formats {} and has touched nothing: run the release that wrote it, or choose another --data",
        levels_read()
    )]
    Format { path: PathBuf, found: String },
    /// The store has no format file.
    #[error(
        "{path} holds a store but no 'format' file, so its format is unknown; nothing was modified. Restore the file, or choose another --data"
    )]
    FormatMissing { path: PathBuf },
    /// The store is missing, although there was one.
    #[error(
        "{store} is missing or empty, but {format} says that there was a store; nothing was modified. Restore the file, or create it from an export with 'notbefore import FILE --data DIR'. To start with an empty fleet, remove {format}",
        store = .path.join("store.redb").display(),
        format = .path.join("format").display()
    )]
    StoreMissing { path: PathBuf },
    /// A node of a cluster has its fleet in etcd.
    #[error(
        "{path} holds the fleet of a service with one node, and with --etcd the fleet is in etcd; to move it, run 'notbefore export --data {path}' and 'notbefore import --etcd', or choose another --data. Nothing was modified"
    )]
    HoldsFleet { path: PathBuf },
    /// The directory has no format file and no store.
    #[error("{path} is not a data directory: it has no 'format' file; name one with --data")]
    NotADataDir { path: PathBuf },
    /// The store itself cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// A data directory with a supported format.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
}

/// The content of `format`, of a supported level.
enum Format {
    /// There is no such file, and no store.
    New,
    /// The file exists; `has_store` is its second line.
    Known { has_store: bool },
}

impl DataDir {
    /// Creates the directory if needed; checks its format, and that its store exists.
    pub fn prepare(path: &Path) -> Result<Self, DataDirError> {
        let (dir, _lock, format) = Self::begin(path)?;
        if let Format::New = format {
            dir.write_format(false)?;
        }
        Ok(dir)
    }

    /// The same for a node of a cluster, which has no store and does without the file `format` if the disk is full. The
    /// lock keeps other services out of the directory; the store of a single node does that by itself.
    pub fn prepare_for_node(path: &Path) -> Result<(Self, DirLock), DataDirError> {
        let (dir, lock, format) = Self::begin(path)?;
        if let Format::New = format
            && let Err(error) = dir.write_format(false)
        {
            tracing::warn!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default());
        }
        Ok((dir, lock))
    }

    fn begin(path: &Path) -> Result<(Self, DirLock, Format), DataDirError> {
        make_private(path).map_err(|source| DataDirError::Io { path: path.to_owned(), source })?;
        let dir = Self { path: path.to_owned() };
        // Before anything is modified, and again under the lock.
        dir.check_store()?;
        let lock = DirLock::take(&dir.lock_path())?;
        let format = dir.check_store()?;
        Ok((dir, lock, format))
    }

    /// Checks a directory for a node of a cluster, without modifying it: it must not hold a fleet.
    pub fn check_for_node(path: &Path) -> Result<(), DataDirError> {
        let dir = Self { path: path.to_owned() };
        match dir.read_format()? {
            Format::Known { has_store: true } => Err(DataDirError::HoldsFleet { path: dir.path }),
            // The service ended before it wrote the second line.
            Format::Known { has_store: false } if dir.has_store() => {
                Err(DataDirError::HoldsFleet { path: dir.path })
            }
            Format::Known { has_store: false } | Format::New => Ok(()),
        }
    }

    /// A directory whose store is only read.
    pub fn existing(path: &Path) -> Result<Self, DataDirError> {
        let dir = Self { path: path.to_owned() };
        match dir.check_store()? {
            Format::New => Err(DataDirError::NotADataDir { path: path.to_owned() }),
            Format::Known { .. } => Ok(dir),
        }
    }

    fn check_store(&self) -> Result<Format, DataDirError> {
        match self.read_format()? {
            Format::Known { has_store: true } if !self.has_store() => {
                Err(DataDirError::StoreMissing { path: self.path.clone() })
            }
            format @ (Format::Known { .. } | Format::New) => Ok(format),
        }
    }

    /// Whether there is a store that is not empty.
    fn has_store(&self) -> bool {
        fs::metadata(self.store_path()).is_ok_and(|found| found.len() > 0)
    }

    fn read_format(&self) -> Result<Format, DataDirError> {
        let path = self.path.join("format");
        let found = match fs::read_to_string(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match self.has_store() {
                    true => Err(DataDirError::FormatMissing { path: self.path.clone() }),
                    false => Ok(Format::New),
                };
            }
            Err(source) => return Err(DataDirError::Io { path, source }),
        };
        let mut lines = found.trim().lines();
        let level = lines.next().unwrap_or_default();
        let is_read = FORMAT_LEVELS_READ.iter().any(|known| level == known.to_string());
        match (is_read, lines.next(), lines.next()) {
            (true, None, None) => Ok(Format::Known { has_store: false }),
            (true, Some(HAS_STORE), None) => Ok(Format::Known { has_store: true }),
            _ => {
                let found = found.trim().chars().take(20).collect();
                Err(DataDirError::Format { path: self.path.clone(), found })
            }
        }
    }

    /// Opens the store, then sets the format level to this release's. Older releases refuse the directory from then on,
    /// since they could not read new records. The store is opened first, because an older release may be using it.
    pub fn open_store(&self) -> Result<RedbStore, DataDirError> {
        let store = RedbStore::open_locked(self.store_path(), self.lock_path())?;
        self.write_format(true)?;
        Ok(store)
    }

    fn write_format(&self, has_store: bool) -> Result<(), DataDirError> {
        let second = if has_store { format!("{HAS_STORE}\n") } else { String::new() };
        let (path, ours) = (self.path.join("format"), format!("{FORMAT_LEVEL}\n{second}"));
        if fs::read_to_string(&path).is_ok_and(|found| found == ours) {
            return Ok(());
        }
        self.write_atomic("format", ours.as_bytes(), 0o644)
            .map_err(|source| DataDirError::Io { path, source })
    }

    /// Path of the store.
    pub fn store_path(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    /// Path of the lock file.
    pub fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Path of another file; `name` is a constant of this module.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a small file atomically.
    pub fn write_atomic(&self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        write_atomic(&self.path.join(name), content, mode)
    }
}

/// Writes a small file under a temporary name in its directory, syncs it and renames it.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(".new");
    let temporary = dir.join(temporary);
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
    File::open(dir)?.sync_all()
}

/// A directory that an import fills. Everything that was created is removed unless the import finishes.
pub struct NewDataDir {
    dir: DataDir,
    /// Directories that were created, the outermost first.
    made: Vec<PathBuf>,
    /// Whether the lock file was created.
    lock_is_new: bool,
    /// Held until the end.
    lock: Option<DirLock>,
    is_finished: bool,
}

impl NewDataDir {
    /// Creates the directory if needed. A lost store may be replaced.
    pub fn begin(path: &Path) -> Result<Self, DataDirError> {
        let dir = DataDir { path: path.to_owned() };
        dir.read_format()?;
        if dir.has_store() {
            return Err(OpenError::Exists { path: dir.store_path() }.into());
        }
        let made = make_private(path).map_err(|source| DataDirError::Io { path: path.to_owned(), source })?;
        let lock_is_new = !dir.lock_path().exists();
        // From here on, an error removes what was created.
        let mut new = Self { dir, made, lock_is_new, lock: None, is_finished: false };
        new.lock = Some(DirLock::take(&new.dir.lock_path()).inspect_err(|_| new.lock_is_new = false)?);
        new.dir.read_format()?;
        if !new.dir.has_store() {
            // An empty store file would be in the way, and nothing is lost with it.
            let _ = fs::remove_file(new.store_path());
        }
        Ok(new)
    }

    /// Path of the new store.
    pub fn store_path(&self) -> PathBuf {
        self.dir.store_path()
    }

    /// Keeps the directory: its store is complete.
    pub fn finish(mut self) -> Result<(), DataDirError> {
        self.is_finished = true;
        self.dir.write_format(true)
    }
}

impl Drop for NewDataDir {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // While the lock is held, so that no process locks a deleted file.
        if self.lock_is_new {
            let _ = fs::remove_file(self.dir.lock_path());
        }
        // Only empty directories are removed.
        for dir in self.made.iter().rev() {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Creates a directory and its missing parents, private to their owner whatever the umask. Returns those created, the
/// outermost first.
pub fn make_private(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<&Path> = path
        .ancestors()
        .take_while(|dir| !dir.as_os_str().is_empty() && fs::symlink_metadata(dir).is_err())
        .collect();
    missing.reverse();
    let mut made = Vec::new();
    for dir in missing {
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) => {
                fs::set_permissions(dir, Permissions::from_mode(0o700))?;
                made.push(dir.to_owned());
            }
            // Another process created it just now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(made),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn new_directory_is_private_and_has_format_file() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        DataDir::prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(path.join("format")).unwrap(), "2\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        DataDir::prepare(&path).unwrap();
    }

    #[test]
    fn unknown_format_is_refused_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("format"), "3\n").unwrap();
        fs::write(dir.path().join("store.redb"), b"whatever").unwrap();
        let error = DataDir::prepare(dir.path()).unwrap_err().to_string();
        assert!(error.contains("format \"3\"") && error.contains("touched nothing"), "{error}");
        assert_eq!(fs::read(dir.path().join("store.redb")).unwrap(), b"whatever");
    }

    #[test]
    fn missing_store_is_an_error_only_if_recorded() {
        for (format, store, is_refused) in [
            (None, None, false),
            (None, Some(""), false),
            (Some("2\n"), None, false),
            (Some("2\n"), Some(""), false),
            (Some("2\nstore\n"), None, true),
            (Some("2\nstore\n"), Some(""), true),
            (Some("1\nstore\n"), None, true),
            (Some("2\nstore\n"), Some("something"), false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let put = |name: &str, content: Option<&str>| {
                content.map(|content| fs::write(dir.path().join(name), content).unwrap())
            };
            put("format", format);
            put("store.redb", store);
            let prepared = DataDir::prepare(dir.path());
            let refused = matches!(prepared, Err(DataDirError::StoreMissing { .. }));
            assert_eq!(refused, is_refused, "{format:?} {store:?}");
            assert_eq!(prepared.is_ok(), !is_refused, "{format:?} {store:?}: {prepared:?}");
            assert_eq!(dir.path().join("lock").exists(), !is_refused, "a refused directory is not modified");
        }
    }

    #[test]
    fn directory_with_a_fleet_is_refused_for_a_node() {
        for (format, store, is_refused) in [
            (None, None, false),
            (Some("2\n"), None, false),
            (Some("2\n"), Some(""), false),
            (Some("1\n"), Some("something"), true),
            (Some("2\n"), Some("something"), true),
            (Some("2\nstore\n"), Some("something"), true),
            (Some("2\nstore\n"), None, true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (name, content) in [("format", format), ("store.redb", store)] {
                if let Some(content) = content {
                    fs::write(dir.path().join(name), content).unwrap();
                }
            }
            let checked = DataDir::check_for_node(dir.path());
            let refused = matches!(checked, Err(DataDirError::HoldsFleet { .. }));
            assert_eq!((refused, checked.is_ok()), (is_refused, !is_refused), "{format:?} {store:?}");
        }
    }

    #[test]
    fn opening_level_1_store_raises_format() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("format"), "1\n").unwrap();
        let prepared = DataDir::prepare(dir.path()).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("format")).unwrap(),
            "1\n",
            "an older release may be using it"
        );
        let _store = prepared.open_store().unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("format")).unwrap(), "2\nstore\n");
    }

    #[test]
    fn store_without_format_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("store.redb"), b"whatever").unwrap();
        assert!(matches!(DataDir::prepare(dir.path()), Err(DataDirError::FormatMissing { .. })));
    }
}
