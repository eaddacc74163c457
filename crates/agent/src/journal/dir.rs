//! The directory that the agent keeps its files in. On Unix it is an open handle: the directory is judged once, and every
//! file is reached through the handle, whatever becomes of the path. A state directory that other users can write to, as
//! a container's volume may be, gets a subdirectory that is the agent's own ([`OWN`]).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::BYTES_MAX;

/// The agent's own directory in one that others can write to.
#[cfg(unix)]
const OWN: &str = "notbefore-agent";
/// The files that the agent believes.
#[cfg(unix)]
const BELIEVED: [&str; 5] =
    [super::NAME, super::LOCK, super::owner::FILE, super::NAME_FILE, super::ENDPOINT_FILE];

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    Reading,
    /// It is made if it is missing, and its content stays.
    Writing,
}

/// A directory that only root and the agent's user can write to.
#[derive(Clone, Debug)]
pub struct Dir {
    path: PathBuf,
    #[cfg(unix)]
    handle: std::sync::Arc<std::os::fd::OwnedFd>,
}

impl Dir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name, OpenMode::Reading)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces a file so that it is there whole or as it was.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.new");
        let write = || {
            let mut file = self.open(&temporary, OpenMode::Writing)?;
            file.set_len(0)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        let written = write().and_then(|()| self.rename(&temporary, name));
        if written.is_err() {
            // What is left of it takes room on a disk that may have none.
            let _ = self.remove(&temporary);
        }
        written?;
        self.sync()
    }

    /// Removes a file, if it is there.
    pub fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
    use rustix::io::Errno;

    use super::*;
    use crate::trust::{self, FileOwner, Rule, TrustError, Untrusted};

    const PRIVATE_DIR: Mode = Mode::RWXU;
    const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

    /// Opens what is no symbolic link.
    fn open_no_link(at: impl AsFd, name: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let at = at.as_fd();
        rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, PRIVATE_FILE).map_err(
            |error| {
                let Ok(stat) = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else {
                    return error.into();
                };
                let seen = FileOwner { owner: stat.st_uid, mode: stat.st_mode };
                let flaw = if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                    TrustError::Link
                } else if error == Errno::ACCESS {
                    TrustError::Closed { seen }
                } else {
                    return error.into();
                };
                Untrusted::new(path, flaw, trust::user()).into()
            },
        )
    }

    fn open_dir(at: impl AsFd, name: &Path, path: &Path) -> io::Result<OwnedFd> {
        open_no_link(at, name, path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Makes a directory for its owner alone, whatever the umask is, unless something is there.
    fn make_private(at: impl AsFd, name: &Path, path: &Path) -> io::Result<()> {
        let at = at.as_fd();
        let parent = name.parent().filter(|parent| !parent.as_os_str().is_empty());
        let made = match (rustix::fs::mkdirat(at, name, PRIVATE_DIR), parent) {
            (Err(Errno::NOENT), Some(parent)) => {
                make_private(at, parent, parent)?;
                rustix::fs::mkdirat(at, name, PRIVATE_DIR)
            }
            (outcome, _) => outcome,
        };
        match made {
            Ok(()) => Ok(rustix::fs::fchmod(open_dir(at, name, path)?, PRIVATE_DIR)?),
            Err(Errno::EXIST) => Ok(()),
            // A disk that is read-only has what it has.
            Err(_) if path.is_dir() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is a journal in a directory that only root or the agent's user can have written.
    fn has_journal(dir: &OwnedFd) -> bool {
        let (name, flags) = (Path::new(super::super::NAME), OFlags::RDONLY | OFlags::NONBLOCK);
        let opened = open_no_link(dir, name, name, flags);
        opened.is_ok_and(|file| trust::check(Rule::State, &file, name).is_ok())
    }

    impl Dir {
        /// The agent's directory at this path, which is made if it is missing.
        pub fn make(state: &Path) -> io::Result<Dir> {
            let state: PathBuf = state.components().collect();
            make_private(CWD, &state, &state)?;
            Dir::enter(&state, true)
        }

        /// The agent's directory at this path, if it is there.
        pub fn find(state: &Path) -> io::Result<Dir> {
            Dir::enter(&state.components().collect::<PathBuf>(), false)
        }

        /// The path has no slash at its end: the system would follow a link for it.
        fn enter(state: &Path, make: bool) -> io::Result<Dir> {
            let handle = open_dir(CWD, state, state)?;
            let own = Dir::own_with_journal(&handle, state);
            let dir = match (trust::check(Rule::State, &handle, state), own) {
                // Others cannot write to it any more, and the journal is where it was.
                (Ok(_), Some(own)) if !has_journal(&handle) => own,
                (Ok(_), _) => Dir { path: state.to_owned(), handle: Arc::new(handle) },
                (Err(_), Some(own)) => own,
                // Its journal is the agent's, from before others could write to it. To start over would leave the VM as
                // the journal's events have made it.
                (Err(wide), None) if has_journal(&handle) => return Err(wide),
                (Err(wide), None) => Dir::own(&handle, state, &wide, make)?,
            };
            for name in BELIEVED {
                // What else is wrong with it shows when it is used.
                dir.open(name, OpenMode::Reading).map(drop).or_else(|error| match Untrusted::is(&error) {
                    true => Err(error),
                    false => Ok(()),
                })?;
            }
            Ok(dir)
        }

        /// The agent's own directory in the state directory, if it has a journal.
        fn own_with_journal(state_dir: &OwnedFd, state: &Path) -> Option<Dir> {
            let path = state.join(OWN);
            let handle = open_dir(state_dir, OWN.as_ref(), &path).ok()?;
            trust::check(Rule::State, &handle, &path).ok()?;
            has_journal(&handle).then(|| Dir { path, handle: Arc::new(handle) })
        }

        /// The agent's own directory in one that others can write to, and why that is not enough.
        fn own(wide: &OwnedFd, state: &Path, why: &io::Error, make: bool) -> io::Result<Dir> {
            let (name, path) = (Path::new(OWN), state.join(OWN));
            let refused = |kind| {
                io::Error::new(kind, format!("{why}; there is no {} of the agent's own", path.display()))
            };
            if make {
                make_private(wide, name, &path).map_err(|error| {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    if is_denied { refused(error.kind()) } else { error }
                })?;
                tracing::info!("others can write to {}: the agent uses {}", state.display(), path.display());
            }
            let handle = open_dir(wide, name, &path).map_err(|error| {
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                if is_missing { refused(error.kind()) } else { error }
            })?;
            trust::check(Rule::State, &handle, &path)?;
            Ok(Dir { path, handle: Arc::new(handle) })
        }

        /// Opens a file that is no link, and that only root and the agent's user can write.
        pub fn open(&self, name: &str, mode: OpenMode) -> io::Result<File> {
            let flags = match mode {
                OpenMode::Reading => OFlags::RDONLY | OFlags::NONBLOCK,
                OpenMode::Writing => OFlags::WRONLY | OFlags::CREATE,
            };
            let path = self.path.join(name);
            let file = File::from(open_no_link(&self.handle, name.as_ref(), &path, flags)?);
            let seen = trust::check(Rule::State, &file, &path)?;
            if mode == OpenMode::Writing && seen.owner == trust::user() {
                file.set_permissions(fs::Permissions::from_mode(PRIVATE_FILE.as_raw_mode()))?;
            }
            Ok(file)
        }

        /// Gives a file another name.
        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
        }

        pub(super) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
        }

        pub(super) fn sync(&self) -> io::Result<()> {
            Ok(rustix::fs::fsync(&self.handle)?)
        }
    }
}

/// Windows judges by the rights that the installation gives the directory, and renames through its own journal.
#[cfg(not(unix))]
impl Dir {
    /// The agent's directory at this path, which is made if it is missing.
    pub fn make(state: &Path) -> io::Result<Dir> {
        fs::create_dir_all(state)?;
        Ok(Dir { path: state.to_owned() })
    }

    /// The agent's directory at this path, if it is there.
    pub fn find(state: &Path) -> io::Result<Dir> {
        fs::metadata(state)?;
        Ok(Dir { path: state.to_owned() })
    }

    /// Opens a file.
    pub fn open(&self, name: &str, mode: OpenMode) -> io::Result<File> {
        let mut options = File::options();
        match mode {
            OpenMode::Reading => options.read(true),
            OpenMode::Writing => options.write(true).create(true).truncate(false),
        };
        options.open(self.path.join(name))
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
