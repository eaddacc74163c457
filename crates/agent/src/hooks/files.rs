//! Files that steps write and remove.
//!
//! A file is replaced atomically (temporary file and rename) and keeps its owner and mode, because its reader need
//! not be root. If the agent may not set the owner, it leaves the file unchanged and the step fails: with the mode
//! alone the reader could lose access, without it others could gain access.
//!
//! A symbolic link owned by root or the agent's user is followed, and its target is written or removed. Other links
//! are not followed: their owner could choose a file for root to overwrite.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::WaiterHandle;

/// Number of the next temporary file; two events may write the same file at once.
static DRAFTS: AtomicU64 = AtomicU64::new(0);
/// Most links followed in a chain; a longer one is a loop.
const LINKS_MAX: usize = 8;

/// Writes a file atomically. Leaves it unchanged if by then no task waits any more.
pub fn write(path: &Path, content: &str, waiting: &WaiterHandle) -> io::Result<()> {
    let path = &resolve_links(path);
    let draft = draft(path, DRAFTS.fetch_add(1, Ordering::Relaxed))?;
    let moved = write_draft(&draft, content, fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file))
        .and_then(|()| waiting.check())
        .and_then(|()| fs::rename(&draft, path));
    if moved.is_err() {
        let _ = fs::remove_file(&draft);
    }
    moved
}

/// Writes the temporary file, with the attributes of the file that it will replace.
fn write_draft(draft: &Path, content: &str, replaces: Option<fs::Metadata>) -> io::Result<()> {
    // A leftover, or planted by another user: never write into it.
    remove_if_there(draft)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if replaces.is_some() {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(draft)?;
    file.write_all(content.as_bytes())?;
    if let Some(replaces) = replaces {
        copy_ownership(&file, &replaces)?;
    }
    file.sync_all()
}

/// Copies owner and mode from the replaced file. Only root, with its capabilities, can change owners; other users can
/// replace their own files.
#[cfg(unix)]
fn copy_ownership(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let (draft, owner) = (file.metadata()?, (replaced.uid(), replaced.gid()));
    if (draft.uid(), draft.gid()) != owner {
        fchown(file, Some(owner.0), Some(owner.1)).map_err(|error| ownership_error(error, owner))?;
    }
    file.set_permissions(fs::Permissions::from_mode(replaced.mode() & 0o777))
}

#[cfg(unix)]
fn ownership_error(error: io::Error, (user, group): (u32, u32)) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    io::Error::other(format!(
        "the agent may not give it back to its owner, {user}:{group}; let the agent own it, or have CAP_CHOWN and CAP_FOWNER"
    ))
}

/// On Windows a file inherits the permissions of its directory.
#[cfg(not(unix))]
fn copy_ownership(_file: &File, _replaced: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Resolves symbolic links that are trusted.
fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Some(target) = trusted_link(&path) else { break };
        path = path.parent().unwrap_or(&path).join(target);
    }
    path
}

#[cfg(unix)]
fn trusted_link(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?.uid();
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    is_ours.then(|| fs::read_link(path).ok()).flatten()
}

#[cfg(not(unix))]
fn trusted_link(_path: &Path) -> Option<PathBuf> {
    None
}

/// Path of a temporary file. Numbers restart with every agent process, so leftovers of a killed one are overwritten.
fn draft(path: &Path, number: u64) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?);
    name.push(format!(".notbefore-{number}"));
    Ok(path.with_file_name(name))
}

/// Removes a file; a missing file is no failure.
pub fn remove(path: &Path, waiting: &WaiterHandle) -> io::Result<()> {
    waiting.check()?;
    remove_if_there(&resolve_links(path))
}

pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_writes_do_not_interleave() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let texts = ["a".repeat(100_000), "b".repeat(100_000)];
        let (waiting, _waiter) = WaiterHandle::new();
        let writes = |text: &String| (0..20).try_for_each(|_| write(&path, text, &waiting));
        std::thread::scope(|scope| {
            let writers: Vec<_> = texts.iter().map(|text| scope.spawn(move || writes(text))).collect();
            for writer in writers {
                writer.join().unwrap().unwrap();
            }
        });
        assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn abandoned_write_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let (waiting, waiter) = WaiterHandle::new();
        write(&path, "in time", &waiting).unwrap();
        drop(waiter);
        assert!(write(&path, "too late", &waiting).is_err() && remove(&path, &waiting).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "in time");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }

    #[cfg(unix)]
    #[test]
    fn replaced_file_keeps_owner_and_mode() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let (waiting, _waiter) = WaiterHandle::new();
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        // Without root the owner stays.
        let _ = chown(&path, Some(65_534), Some(65_534));
        let marks =
            || fs::metadata(&path).map(|file| (file.uid(), file.gid(), file.mode() & 0o7777)).unwrap();
        let before = marks();
        write(&path, "after", &waiting).unwrap();
        assert_eq!((marks(), fs::read_to_string(&path).unwrap().as_str()), (before, "after"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_is_unchanged_if_ownership_cannot_be_copied() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        use std::os::unix::fs::{MetadataExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let (path, own) = (dir.path().join("file"), dir.path().join("own"));
        for path in [&path, &own] {
            fs::write(path, "before").unwrap();
        }
        // Without root there is no file of another user here.
        let is_anothers = chown(&path, Some(65_534), Some(65_534)).is_ok();
        let (waiting, _waiter) = WaiterHandle::new();
        // Capabilities are per thread.
        let limited = || {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::CHOWN);
            set_capabilities(None, sets).unwrap();
            (write(&path, "after", &waiting), write(&own, "after", &waiting))
        };
        let (anothers, own) = std::thread::scope(|scope| scope.spawn(limited).join().unwrap());
        own.unwrap();
        if is_anothers {
            let error = anothers.unwrap_err().to_string();
            assert!(error.contains("back to its owner, 65534:65534"), "{error}");
            assert_eq!(fs::metadata(&path).unwrap().uid(), 65_534);
            assert_eq!(fs::read_to_string(&path).unwrap(), "before");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no draft is left");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_trusted_links_are_followed() {
        use std::os::unix::fs::{lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("link"), dir.path().join("target"));
        let (waiting, _waiter) = WaiterHandle::new();
        symlink("target", &path).unwrap();
        write(&path, "first", &waiting).unwrap();
        assert!(path.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "first");
        remove(&path, &waiting).unwrap();
        assert!(path.is_symlink() && !target.exists());
        // A loop ends the search.
        symlink("circle", dir.path().join("circle")).unwrap();
        write(&dir.path().join("circle"), "text", &waiting).unwrap();
        if lchown(&path, Some(65_534), Some(65_534)).is_ok() {
            write(&path, "second", &waiting).unwrap();
            assert!(path.is_file() && !path.is_symlink() && !target.exists(), "root followed another's link");
        }
    }
}
