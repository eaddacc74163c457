//! Reads the result file of a command (`NOTBEFORE_RESULT`). It is optional; one line `host=NAME` reports the VM's new
//! host.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use notbefore_core::exec::HOST_BYTES_MAX;

/// Largest result file.
const RESULT_BYTES_MAX: u64 = 4 * 1024;

/// The result file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} in the file NOTBEFORE_RESULT; write one line host=NAME, or nothing")]
pub(super) struct ResultError(pub(super) String);

/// Reads the VM's new host from a result file, if the command wrote one.
pub(super) fn read(path: &Path) -> Result<Option<String>, ResultError> {
    let wrong = |what: String| Err(ResultError(what));
    // Check the file type before opening: opening a pipe would block.
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return wrong("not a regular file".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return wrong(format!("unreadable content ({error})")),
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return wrong(format!("unreadable content ({error})"));
    }
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        return wrong(format!("more than {} KiB", RESULT_BYTES_MAX / 1024));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return wrong("text that is not UTF-8".to_owned());
    };
    let mut written = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let known = line.split_once('=').filter(|(key, _)| *key == "host");
        let Some((_, host)) = known else {
            return wrong(format!("unknown line {:?}", notbefore_wire::text::shorten(line, 60)));
        };
        let fits = (1..=HOST_BYTES_MAX).contains(&host.len()) && !host.chars().any(char::is_control);
        if !fits {
            return wrong(format!("a host name that does not have 1 to {HOST_BYTES_MAX} characters"));
        }
        if written.replace(host.to_owned()).is_some() {
            return wrong("more than one host".to_owned());
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: &[u8]) -> Result<Option<String>, ResultError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result");
        fs::write(&path, content).unwrap();
        read(&path)
    }

    #[test]
    fn result_file_may_name_host_or_be_absent() {
        assert_eq!(written(b"host=h9\n"), Ok(Some("h9".to_owned())));
        assert_eq!(written(b"\n host=h9"), Ok(Some("h9".to_owned())));
        assert_eq!(written(b""), Ok(None));
        assert_eq!(read(Path::new("/nowhere/at/all")), Ok(None));
    }

    #[test]
    fn invalid_result_file_is_refused_with_hint() {
        let huge = b"host=h9\n".repeat(1_000);
        let long = format!("host={}", "x".repeat(200)).into_bytes();
        let cases: [(&[u8], &str); 7] = [
            (b"h9", "unknown line \"h9\""),
            (b"HOST=h9", "unknown line \"HOST=h9\""),
            (b"host=", "does not have 1 to 128"),
            (&long, "does not have 1 to 128"),
            (b"host=a\nhost=b", "more than one host"),
            (b"\xff\xfe", "not UTF-8"),
            (&huge, "more than 4 KiB"),
        ];
        for (content, said) in cases {
            let error = written(content).unwrap_err().to_string();
            assert!(
                error.contains(said) && error.ends_with("write one line host=NAME, or nothing"),
                "{error}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("not a regular file"));
    }
}
