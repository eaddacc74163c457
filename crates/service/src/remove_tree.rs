//! Removes a directory tree that a handler or a command had for its own, without entering file systems that it has
//! mounted there.
//!
//! A bind mount shows another directory of the machine. `std::fs::remove_dir_all` enters it and empties that directory.
//! So each directory is opened without following symbolic links, and entered only if it belongs to the same mount as the
//! parent of the tree. A mounted file cannot be removed: the kernel answers EBUSY. Mount points stay, with what is
//! mounted there and the directories above them; everything else goes.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, StatxFlags, openat, statx, unlinkat};
use rustix::io::Errno;

/// Most mount points that a message names.
const NAMED_MAX: usize = 3;
/// Most directories in each other that are removed. Each takes a file descriptor and some stack, and a handler can create
/// any number.
const DEPTH_MAX: usize = 500;

/// What is left of a tree.
#[derive(Debug)]
pub struct NotRemoved {
    pub path: PathBuf,
    /// Mount points at or below the path.
    pub mounts: Vec<PathBuf>,
    /// The first other failure.
    pub error: Option<(PathBuf, io::Error)>,
}

impl fmt::Display for NotRemoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names in the tree are those of the handler; the debug form escapes control characters.
        write!(f, "{:?} is not removed", self.path)?;
        if !self.mounts.is_empty() {
            write!(f, ": mounted there, and left as it is: ")?;
            let named = self.mounts.iter().take(NAMED_MAX).enumerate();
            for (index, mount) in named {
                write!(f, "{}{mount:?}", if index == 0 { "" } else { ", " })?;
            }
            match self.mounts.len().saturating_sub(NAMED_MAX) {
                0 => {}
                more => write!(f, " and {more} more")?,
            }
            write!(f, "; unmount it with umount, then remove the directory")?;
        }
        match &self.error {
            Some((path, error)) if self.mounts.is_empty() => write!(f, ": {path:?}: {error}"),
            Some((path, error)) => write!(f, ". Also not removed: {path:?}: {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotRemoved {}

/// Removes a file, or a directory with its content. A path that does not exist is no error.
pub fn remove_tree(path: &Path) -> Result<(), NotRemoved> {
    let mut removal = Removal { mounts: Vec::new(), error: None };
    if let Err(error) = removal.remove_root(path) {
        removal.failed(path, error.into());
    }
    let Removal { mounts, error } = removal;
    match mounts.is_empty() && error.is_none() {
        true => Ok(()),
        false => Err(NotRemoved { path: path.to_owned(), mounts, error }),
    }
}

struct Removal {
    mounts: Vec<PathBuf>,
    error: Option<(PathBuf, io::Error)>,
}

impl Removal {
    fn remove_root(&mut self, path: &Path) -> Result<(), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = match openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened?,
        };
        let mount = mount_of(parent.as_fd())?;
        self.remove(parent.as_fd(), name, path, mount, 0);
        Ok(())
    }

    /// Removes an entry of a directory. `path` is for messages, `mount` is that of the tree.
    fn remove(&mut self, at: BorrowedFd<'_>, name: &OsStr, path: &Path, mount: u64, depth: usize) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let removed = match openat(at, name, flags, Mode::empty()) {
            Ok(directory) => match self.empty(&directory, path, mount, depth) {
                // What is left in it is known.
                Ok(IsEmpty(false)) => return,
                Ok(IsEmpty(true)) => unlinkat(at, name, AtFlags::REMOVEDIR),
                Err(error) => Err(error),
            },
            // A file, or a symbolic link.
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(at, name, AtFlags::empty()),
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::BUSY) => self.mounts.push(path.to_owned()),
            Err(error) => self.failed(path, error.into()),
        }
    }

    /// Removes all entries of a directory. EBUSY if it is a mount point.
    fn empty(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        mount: u64,
        depth: usize,
    ) -> Result<IsEmpty, Errno> {
        if mount_of(directory.as_fd())? != mount {
            return Err(Errno::BUSY);
        }
        if depth == DEPTH_MAX {
            let error = format!("more than {DEPTH_MAX} directories are in each other; remove it with rm -r");
            self.failed(path, io::Error::other(error));
            return Ok(IsEmpty(false));
        }
        let before = self.left();
        let mut names: Vec<CString> = Vec::new();
        for entry in Dir::read_from(directory)? {
            names.push(entry?.file_name().to_owned());
        }
        names.retain(|name| ![c".", c".."].contains(&name.as_c_str()));
        for name in names {
            let name = OsStr::from_bytes(name.to_bytes());
            self.remove(directory.as_fd(), name, &path.join(name), mount, depth + 1);
        }
        Ok(IsEmpty(self.left() == before))
    }

    fn failed(&mut self, path: &Path, error: io::Error) {
        self.error.get_or_insert_with(|| (path.to_owned(), error));
    }

    fn left(&self) -> (usize, bool) {
        (self.mounts.len(), self.error.is_some())
    }
}

struct IsEmpty(bool);

/// The id of the mount that an open file belongs to.
fn mount_of(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    match statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID) {
        Ok(found) if found.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Ok(found.stx_mnt_id),
        // Before Linux 5.8.
        Ok(_) | Err(_) => mount_by_proc(file),
    }
}

/// The same, as `/proc` shows it since Linux 3.15.
fn mount_by_proc(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    let path = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
    let text = File::open(path).and_then(io::read_to_string).map_err(|_| Errno::NOSYS)?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    id.and_then(|id| id.trim().parse().ok()).ok_or(Errno::NOSYS)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;

    use rustix::thread::UnshareFlags;

    use super::*;

    /// Moves this thread, and with it its child processes, into a mount namespace of its own. It needs root.
    pub(crate) fn enter_namespace() {
        #[expect(
            deprecated,
            reason = "the successor is unsafe because of UnshareFlags::FILES, which is not used"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNS).expect("this test needs root");
        run("mount", &["--make-rprivate".as_ref(), "/".as_ref()]);
    }

    fn run(program: &str, arguments: &[&OsStr]) {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program} {arguments:?}");
    }

    pub(crate) fn bind(from: &Path, to: &Path) {
        run("mount", &["--bind".as_ref(), from.as_ref(), to.as_ref()]);
    }

    #[test]
    fn mounts_below_a_directory_are_left_and_named() {
        enter_namespace();
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        for directory in ["precious/deep", "state/a/data", "state/b/c", "state/d"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        for file in ["precious/deep/file", "precious/file", "state/a/data/own", "state/b/c/own", "state/d/x"]
        {
            std::fs::write(at(file), "content").unwrap();
        }
        std::os::unix::fs::symlink(at("precious"), at("state/link")).unwrap();
        bind(&at("precious"), &at("state/a/data"));
        bind(&at("precious/file"), &at("state/d/x"));

        let left = remove_tree(&at("state")).unwrap_err();
        assert!(left.error.is_none(), "{left}");
        let mut mounts = left.mounts.clone();
        mounts.sort();
        assert_eq!(mounts, [at("state/a/data"), at("state/d/x")]);
        assert!(left.to_string().contains("state/a/data") && left.to_string().contains("umount"), "{left}");
        // What is mounted is whole; all else is gone.
        assert_eq!(std::fs::read_to_string(at("precious/deep/file")).unwrap(), "content");
        assert_eq!(std::fs::read_to_string(at("precious/file")).unwrap(), "content");
        assert!(!at("state/b").exists() && at("state/link").symlink_metadata().is_err());

        // A mount on the directory itself.
        bind(&at("precious"), &at("state"));
        assert_eq!(remove_tree(&at("state")).unwrap_err().mounts, [at("state")]);
        assert!(at("precious/deep/file").exists());
        run("umount", &[at("state").as_ref()]);

        run("umount", &[at("state/a/data").as_ref()]);
        run("umount", &[at("state/d/x").as_ref()]);
        remove_tree(&at("state")).unwrap();
        assert!(!at("state").exists() && at("precious/file").exists());
    }

    #[test]
    fn mount_is_the_same_by_both_ways() {
        let place = tempfile::tempdir().unwrap();
        let directory = File::open(place.path()).unwrap();
        let found = mount_of(directory.as_fd()).unwrap();
        assert_eq!(mount_by_proc(directory.as_fd()).unwrap(), found);
        let other = File::open("/proc/self").unwrap();
        assert_ne!(mount_of(other.as_fd()).unwrap(), found);
    }

    #[test]
    fn file_and_absent_path_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        remove_tree(&file).unwrap();
        assert!(!file.exists());
        remove_tree(&file).unwrap();
        remove_tree(&place.path().join("no/such")).unwrap();
    }

    #[test]
    fn nesting_is_limited() {
        let place = tempfile::tempdir().unwrap();
        let mut at = File::open(place.path()).unwrap();
        for _ in 0..=DEPTH_MAX {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::DIRECTORY, Mode::empty()).unwrap().into();
        }
        drop(at);
        let top = place.path().join("d");
        let left = remove_tree(&top).unwrap_err().to_string();
        assert!(left.contains("500 directories are in each other"), "{left}");
        run("rm", &["-r".as_ref(), top.as_ref()]);
    }

    #[test]
    fn message_names_few_mounts_on_one_line() {
        let path = |name: &str| PathBuf::from(name);
        let left = NotRemoved {
            path: path("/s"),
            mounts: ["/s/a\nb", "/s/2", "/s/3", "/s/4", "/s/5"].map(path).into(),
            error: Some((path("/s/x"), Errno::ACCESS.into())),
        };
        assert_eq!(
            left.to_string(),
            "\"/s\" is not removed: mounted there, and left as it is: \"/s/a\\nb\", \"/s/2\", \"/s/3\" and 2 more; \
             unmount it with umount, then remove the directory. Also not removed: \"/s/x\": Permission denied (os error 13)"
        );
    }
}
