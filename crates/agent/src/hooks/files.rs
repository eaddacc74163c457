//! Files that steps write and remove.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Waiting;

/// Tells drafts apart: two events may write one file at once, and neither may find the other's draft under its own name.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// Writes a file so that whoever looks finds it whole, or as it was; as it was, too, if by then nobody waits any more.
pub fn write(path: &Path, content: &str, waiting: &Waiting) -> io::Result<()> {
    let draft = draft(path, DRAFTS.fetch_add(1, Ordering::Relaxed))?;
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| waiting.still()).and_then(|()| fs::rename(&draft, path));
    if moved.is_err() {
        let _ = fs::remove_file(&draft);
    }
    moved
}

/// Where a file is written before it has its name. Numbers begin anew with every agent, so that drafts of one that was
/// killed are written over.
fn draft(path: &Path, number: u64) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::other("it names no file"))?);
    name.push(format!(".notbefore-{number}"));
    Ok(path.with_file_name(name))
}

/// Removes a file; one that is not there is as it should be.
pub fn remove(path: &Path, waiting: &Waiting) -> io::Result<()> {
    waiting.still()?;
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_write_one_file_at_once_do_not_write_into_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let texts = ["a".repeat(100_000), "b".repeat(100_000)];
        let (waiting, _waiter) = Waiting::new();
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
    fn what_nobody_waits_for_any_more_is_not_done() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let (waiting, waiter) = Waiting::new();
        write(&path, "in time", &waiting).unwrap();
        drop(waiter);
        assert!(write(&path, "too late", &waiting).is_err() && remove(&path, &waiting).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "in time");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }
}
