//! Files of the settings: regular files only, so that none can block the start. Files with a secret also have a size limit,
//! and a warning if every user can read one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Largest file: room for a few secrets, and small enough to detect a wrong path.
pub const FILE_BYTES_MAX: u64 = 4 * 1024;

/// Opens a regular file. Opening a FIFO would wait for its writer, and a device may never end.
pub fn open(path: &Path) -> io::Result<File> {
    // The flags of open(2) are an int; none of them uses the sign.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, a device or a directory; name a regular file",
        )),
    }
}

/// Reads a file; none if it exceeds [`FILE_BYTES_MAX`]. `what` names the secret in the warning.
pub fn read(path: &Path, what: &str) -> io::Result<Option<Vec<u8>>> {
    let file = open(path)?;
    if file.metadata()?.permissions().mode() & 0o007 != 0 {
        tracing::warn!(path = %path.display(), "every user can read {what}: run chmod o= on the file");
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= FILE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&fifo, dir.path(), Path::new("/dev/zero")] {
            let error = read(path, "it").unwrap_err().to_string();
            assert!(error.contains("name a regular file"), "{path:?}: {error}");
        }
        let file = dir.path().join("file");
        std::fs::write(&file, "secret").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link, "it").unwrap().unwrap(), b"secret");
    }
}
