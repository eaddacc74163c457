//! Files that hold a secret: a size limit, and a warning if every user can read one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Largest file: room for a few secrets, and small enough to detect a wrong path.
pub const FILE_BYTES_MAX: u64 = 4 * 1024;

/// Reads a file; none if it exceeds [`FILE_BYTES_MAX`]. `what` names the secret in the warning.
pub fn read(path: &Path, what: &str) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o007 != 0 {
        tracing::warn!(path = %path.display(), "every user can read {what}: run chmod o= on the file");
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= FILE_BYTES_MAX))
}
