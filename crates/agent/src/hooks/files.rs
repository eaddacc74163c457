//! Files that steps write and remove.
//!
//! A file is replaced as a whole, and what replaces it is as it was: whose it is and who may read it stays, because the
//! program that looks at it need not be root. Where the agent may not give it back to its owner, it is left as it is and the
//! step fails: with the rights alone its reader could be shut out, and without them anybody let in. A link of this agent's
//! user, or of root's, stays a link, and what it leads to is written or removed. Anybody else's is not followed: who can make
//! a link does not get to say what root writes to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::WaiterHandle;

/// Tells drafts apart: two events may write one file at once, and neither may find the other's draft under its own name.
static DRAFTS: AtomicU64 = AtomicU64::new(0);
/// How many links to a file are followed, one after the other; more are a circle.
const LINKS_MAX: usize = 8;

/// Writes a file so that whoever looks finds it whole, or as it was; as it was, too, if by then nobody waits any more.
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

/// Writes what will replace a file, if there is one.
fn write_draft(draft: &Path, content: &str, replaces: Option<fs::Metadata>) -> io::Result<()> {
    // What is there is left over, or somebody else's, and not to be written into.
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

/// Gives a file the owner and the rights of the one that it replaces. Only root, with all that root may do, can give files
/// away; others can replace their own.
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

/// Windows gives a file the rights of its directory.
#[cfg(not(unix))]
fn copy_ownership(_file: &File, _replaced: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The file that a name leads to, over links that are to be trusted.
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

/// Where a file is written before it has its name. Numbers begin anew with every agent, so that drafts of one that was
/// killed do not stay.
fn draft(path: &Path, number: u64) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::other("it names no file"))?);
    name.push(format!(".notbefore-{number}"));
    Ok(path.with_file_name(name))
}

/// Removes a file; one that is not there is as it should be.
pub fn remove(path: &Path, waiting: &WaiterHandle) -> io::Result<()> {
    waiting.check()?;
    remove_if_there(&resolve_links(path))
}

/// Removes a file that may have been removed already.
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
        // Who is not root can give it to nobody else, and keeps it.
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
        // Who is not root has nobody else's file to replace here.
        let is_anothers = chown(&path, Some(65_534), Some(65_534)).is_ok();
        let (waiting, _waiter) = WaiterHandle::new();
        // Capabilities are a thread's own.
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
        // A circle is no file, and does not go on for ever.
        symlink("circle", dir.path().join("circle")).unwrap();
        write(&dir.path().join("circle"), "text", &waiting).unwrap();
        if lchown(&path, Some(65_534), Some(65_534)).is_ok() {
            write(&path, "second", &waiting).unwrap();
            assert!(path.is_file() && !path.is_symlink() && !target.exists(), "root followed another's link");
        }
    }
}
