//! The data directory: `format`, `store.redb` and `operator.token`.
//!
//! `format` holds the level of the records in digits. It is a file of its own so that it can be read before
//! the store is opened: a store of a level that this release does not know is refused and not touched, not
//! even by the bookkeeping that opening a store does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use notbefore_engine::records::{FORMAT_LEVEL, FORMAT_LEVELS_READ, levels_read};
use notbefore_store::redb::{OpenError, RedbStore};

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// It cannot be made or written to.
    #[error("cannot use data directory {path}; choose another with --data, or see to its permissions")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was written by another release.
    #[error(
        "data directory {path} has format {found:?}; this release reads formats {} and has touched nothing: run the release that wrote it, or choose another --data",
        levels_read()
    )]
    Format {
        /// The directory.
        path: PathBuf,
        /// What its format file says.
        found: String,
    },
    /// There is a store, and nothing says of what format.
    #[error(
        "{path} holds a store but no 'format' file, so its format is unknown and nothing was touched; restore the file, or choose another --data"
    )]
    FormatMissing {
        /// The directory.
        path: PathBuf,
    },
    /// The store itself cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// A data directory that this release may use.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Makes the directory if there is none, and checks that its format is ours.
    pub fn prepare(path: &Path) -> Result<Self, DataDirError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| DataDirError::Io { path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))?;
        let dir = Self { path: path.to_owned() };
        let format = path.join("format");
        match fs::read_to_string(&format) {
            Ok(found) if FORMAT_LEVELS_READ.iter().any(|level| found.trim() == level.to_string()) => Ok(dir),
            Ok(found) => {
                let found = found.trim().chars().take(20).collect();
                Err(DataDirError::Format { path: path.to_owned(), found })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.store_path().exists() => {
                Err(DataDirError::FormatMissing { path: path.to_owned() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                dir.write_format()?;
                Ok(dir)
            }
            Err(source) => Err(DataDirError::Io { path: format, source }),
        }
    }

    /// Opens the store. From then on its format is ours: an older release refuses it, since it could not read
    /// what is written now. The store comes first, because an older release may be using it.
    pub fn open_store(&self) -> Result<RedbStore, DataDirError> {
        let store = RedbStore::open(self.store_path())?;
        self.write_format()?;
        Ok(store)
    }

    fn write_format(&self) -> Result<(), DataDirError> {
        let (path, ours) = (self.path.join("format"), format!("{FORMAT_LEVEL}\n"));
        if fs::read_to_string(&path).is_ok_and(|found| found == ours) {
            return Ok(());
        }
        self.write_whole("format", ours.as_bytes(), 0o644).map_err(|source| DataDirError::Io { path, source })
    }

    /// Where the store is.
    pub fn store_path(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    /// Where the first token is.
    pub fn token_path(&self) -> PathBuf {
        self.path.join("operator.token")
    }

    /// Where the operator door can be found, for a command line on the same machine.
    pub fn operator_path(&self) -> PathBuf {
        self.path.join("operator.url")
    }

    /// Where commands of the exec driver leave their results.
    pub fn results_path(&self) -> PathBuf {
        self.path.join("exec")
    }

    /// Where the certificate of the operator door is left, for a command line on the same machine.
    pub fn authority_path(&self) -> PathBuf {
        self.path.join("operator.ca")
    }

    /// Writes a small file so that it is there whole or not at all, whatever happens.
    pub fn write_whole(&self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        let temporary = self.path.join(format!(".{name}.new"));
        let _ = fs::remove_file(&temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, self.path.join(name))?;
        File::open(&self.path)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_directory_gets_our_format_and_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        DataDir::prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(path.join("format")).unwrap(), "2\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        DataDir::prepare(&path).unwrap();
    }

    #[test]
    fn a_format_of_another_release_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("format"), "3\n").unwrap();
        fs::write(dir.path().join("store.redb"), b"whatever").unwrap();
        let error = DataDir::prepare(dir.path()).unwrap_err().to_string();
        assert!(error.contains("format \"3\"") && error.contains("touched nothing"), "{error}");
        assert_eq!(fs::read(dir.path().join("store.redb")).unwrap(), b"whatever");
    }

    #[test]
    fn opening_a_store_of_level_1_raises_its_format() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("format"), "1\n").unwrap();
        let prepared = DataDir::prepare(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("format")).unwrap(), "1\n", "an older release may run");
        let _store = prepared.open_store().unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("format")).unwrap(), "2\n");
    }

    #[test]
    fn a_store_without_a_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("store.redb"), b"whatever").unwrap();
        assert!(matches!(DataDir::prepare(dir.path()), Err(DataDirError::FormatMissing { .. })));
    }
}
