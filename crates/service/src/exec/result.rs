//! What a command has to say beyond its exit code: the file that `NOTBEFORE_RESULT` names. A command need not
//! write it; one line `host=NAME` says on which host the VM is now.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use notbefore_core::exec::HOST_BYTES_MAX;

/// How large the file may be; one line of it means something.
const RESULT_BYTES_MAX: u64 = 4 * 1024;

/// What a command wrote is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} in the file that NOTBEFORE_RESULT names; write one line host=NAME, or nothing")]
pub(super) struct ResultError(pub(super) String);

/// Reads what a command wrote: the host that the VM is on now, if it named one.
pub(super) fn read(path: &Path) -> Result<Option<String>, ResultError> {
    let wrong = |what: String| Err(ResultError(what));
    // Not opened before it is looked at: opening a pipe would wait for a writer.
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return wrong("it left something that is no regular file".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return wrong(format!("it left what cannot be read ({error})")),
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return wrong(format!("it left what cannot be read ({error})"));
    }
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        return wrong(format!("it wrote more than {} KiB", RESULT_BYTES_MAX / 1024));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return wrong("it wrote what is not UTF-8".to_owned());
    };
    let mut written = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let known = line.split_once('=').filter(|(key, _)| *key == "host");
        let Some((_, host)) = known else {
            return wrong(format!("it wrote {:?}", notbefore_wire::text::shorten(line, 60)));
        };
        let fits = (1..=HOST_BYTES_MAX).contains(&host.len()) && !host.chars().any(char::is_control);
        if !fits {
            return wrong(format!("it wrote a host's name that has not 1 to {HOST_BYTES_MAX} characters"));
        }
        if written.replace(host.to_owned()).is_some() {
            return wrong("it wrote more than one host".to_owned());
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
            (b"h9", "it wrote \"h9\""),
            (b"HOST=h9", "it wrote \"HOST=h9\""),
            (b"host=", "has not 1 to 128"),
            (&long, "has not 1 to 128"),
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
        assert!(read(dir.path()).unwrap_err().to_string().contains("no regular file"));
    }
}
