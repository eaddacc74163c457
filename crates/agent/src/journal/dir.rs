//! The agent's directory. On Unix it is an open directory handle: ownership is checked once and every file is opened
//! relative to the handle (`openat`), so replacing the path has no effect. If other users can write to the state
//! directory (a container volume, for example), the agent uses a private subdirectory ([`OWN`]).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::BYTES_MAX;

/// Private subdirectory, used if other users can write to the state directory.
#[cfg(unix)]
const OWN: &str = "notbefore-agent";
/// Files whose content the agent trusts.
#[cfg(unix)]
const BELIEVED: [&str; 5] =
    [super::NAME, super::LOCK, super::owner::FILE, super::NAME_FILE, super::ENDPOINT_FILE];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    Reading,
    /// Created if missing; existing content is kept.
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
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name, OpenMode::Reading)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces a file atomically: temporary file, fsync, rename, fsync of the directory.
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
            // Free the space; the disk may be full.
            let _ = self.remove(&temporary);
        }
        written?;
        self.sync()
    }

    /// Removes a file if it exists.
    pub fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
    use rustix::io::Errno;

    use super::*;
    use crate::trust::{self, FileOwner, Rule, TrustError, Untrusted};

    const PRIVATE_DIR: Mode = Mode::RWXU;
    const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

    /// Opens a file or directory, but no symbolic link.
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

    /// Creates a directory with mode 0700 regardless of umask, unless the path exists.
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
            // On a read-only disk, use what exists.
            Err(_) if path.is_dir() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the directory has a journal that only root or the agent's user could have written.
    fn has_journal(dir: &OwnedFd) -> bool {
        let (name, flags) = (Path::new(super::super::NAME), OFlags::RDONLY | OFlags::NONBLOCK);
        let opened = open_no_link(dir, name, name, flags);
        opened.is_ok_and(|file| trust::check(Rule::State, &file, name).is_ok())
    }

    impl Dir {
        /// Opens the agent's directory at this path; creates it if missing.
        pub fn make(state: &Path) -> io::Result<Dir> {
            let state: PathBuf = state.components().collect();
            make_private(CWD, &state, &state)?;
            Dir::enter(&state, true)
        }

        /// Opens the agent's directory at this path, if it exists.
        pub fn find(state: &Path) -> io::Result<Dir> {
            Dir::enter(&state.components().collect::<PathBuf>(), false)
        }

        /// `state` has no trailing slash: the kernel would follow a symbolic link for it.
        fn enter(state: &Path, make: bool) -> io::Result<Dir> {
            let handle = open_dir(CWD, state, state)?;
            let own = Dir::own_with_journal(&handle, state);
            let dir = match (trust::check(Rule::State, &handle, state), own) {
                // Permissions were tightened since; the journal is still in the subdirectory.
                (Ok(_), Some(own)) if !has_journal(&handle) => own,
                (Ok(_), _) => Dir { path: state.to_owned(), handle: Arc::new(handle) },
                (Err(_), Some(own)) => own,
                // The agent wrote this journal before others got write access. Starting over would leave the
                // journal's events unrestored.
                (Err(wide), None) if has_journal(&handle) => return Err(wide),
                (Err(wide), None) => Dir::own(&handle, state, &wide, make)?,
            };
            for name in BELIEVED {
                // Other errors surface when the file is used.
                dir.open(name, OpenMode::Reading).map(drop).or_else(|error| match Untrusted::is(&error) {
                    true => Err(error),
                    false => Ok(()),
                })?;
            }
            Ok(dir)
        }

        /// The private subdirectory, if it has a journal.
        fn own_with_journal(state_dir: &OwnedFd, state: &Path) -> Option<Dir> {
            let path = state.join(OWN);
            let handle = open_dir(state_dir, OWN.as_ref(), &path).ok()?;
            trust::check(Rule::State, &handle, &path).ok()?;
            has_journal(&handle).then(|| Dir { path, handle: Arc::new(handle) })
        }

        /// The private subdirectory of a directory that others can write to; `why` is the check that failed.
        fn own(wide: &OwnedFd, state: &Path, why: &io::Error, make: bool) -> io::Result<Dir> {
            let (name, path) = (Path::new(OWN), state.join(OWN));
            let refused = |kind| {
                io::Error::new(
                    kind,
                    format!("{why}; the private subdirectory {} does not exist", path.display()),
                )
            };
            if make {
                make_private(wide, name, &path).map_err(|error| {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    if is_denied { refused(error.kind()) } else { error }
                })?;
                tracing::info!("other users can write to {}: using {}", state.display(), path.display());
            }
            let handle = open_dir(wide, name, &path).map_err(|error| {
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                if is_missing { refused(error.kind()) } else { error }
            })?;
            trust::check(Rule::State, &handle, &path)?;
            Ok(Dir { path, handle: Arc::new(handle) })
        }

        /// Opens a file that is no symbolic link and that only root and the agent's user can write.
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

        /// A path of a socket, for this process. Through the handle if possible: the kernel limits such paths to 107
        /// bytes, and replacing the directory has no effect.
        pub fn socket_path(&self, name: &str) -> PathBuf {
            let by_handle = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
            if by_handle.is_dir() { by_handle.join(name) } else { self.path.join(name) }
        }

        /// Listens at a socket that only root and the agent's user can connect to; replaces an existing one.
        pub fn listen(&self, name: &str) -> io::Result<tokio::net::UnixListener> {
            self.remove_if_there(name)?;
            let listener = tokio::net::UnixListener::bind(self.socket_path(name))?;
            rustix::fs::chmodat(&self.handle, name, PRIVATE_FILE, AtFlags::empty())?;
            Ok(listener)
        }

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

/// On Windows the installer sets the directory's permissions, and NTFS journals the rename.
#[cfg(not(unix))]
impl Dir {
    /// Opens the agent's directory at this path; creates it if missing.
    pub fn make(state: &Path) -> io::Result<Dir> {
        fs::create_dir_all(state)?;
        Ok(Dir { path: state.to_owned() })
    }

    /// Opens the agent's directory at this path, if it exists.
    pub fn find(state: &Path) -> io::Result<Dir> {
        fs::metadata(state)?;
        Ok(Dir { path: state.to_owned() })
    }

    pub fn open(&self, name: &str, mode: OpenMode) -> io::Result<File> {
        let mut options = File::options();
        match mode {
            OpenMode::Reading => options.read(true),
            OpenMode::Writing => options.write(true).create(true).truncate(false),
        };
        options.open(self.path.join(name))
    }

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
