//! Where the rehearsal learns that the handler has drained the VM, or restored it.

use std::path::PathBuf;
use std::str::FromStr;

use regex_lite::Regex;

/// The source of a marker, as in `--drained SOURCE`.
#[derive(Clone, Debug)]
pub enum MarkerSource {
    /// `line:REGEX`: a line of stdout or stderr matches.
    Line(Regex),
    /// `file:PATH`: the file appears, or its modification time changes. `{vm}` is the VM's name.
    File(String),
    /// `call`: the handler requests `$NOTBEFORE_HOOK/drained` or `$NOTBEFORE_HOOK/restored`, with any method.
    Call,
}

/// Why a text is no marker source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerSourceError {
    #[error("marker source {0:?} is unknown; write line:REGEX, file:PATH or call")]
    Unknown(String),
    #[error("marker source {0:?} is incomplete; write what comes after the colon, or call")]
    Empty(String),
    #[error("marker source {text:?} has no valid regular expression: {why}; correct it, or escape with \\")]
    Regex { text: String, why: String },
}

impl FromStr for MarkerSource {
    type Err = MarkerSourceError;

    fn from_str(text: &str) -> Result<Self, MarkerSourceError> {
        match text.split_once(':') {
            None if text == "call" => Ok(Self::Call),
            Some(("line" | "file", "")) => Err(MarkerSourceError::Empty(text.to_owned())),
            Some(("line", pattern)) => match Regex::new(pattern) {
                Ok(regex) => Ok(Self::Line(regex)),
                Err(error) => {
                    // The text of a syntax error is a drawing; its last line has the reason.
                    let drawing = error.to_string();
                    let last = drawing.lines().last().unwrap_or_default();
                    let why = last.strip_prefix("error: ").unwrap_or(last).to_owned();
                    Err(MarkerSourceError::Regex { text: text.to_owned(), why })
                }
            },
            Some(("file", path)) => Ok(Self::File(path.to_owned())),
            None | Some(_) => Err(MarkerSourceError::Unknown(text.to_owned())),
        }
    }
}

/// The file of a VM.
pub(super) fn path_for(pattern: &str, vm: &str) -> PathBuf {
    pattern.replace("{vm}", vm).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn sources_are_read() {
        assert!(matches!("call".parse(), Ok(MarkerSource::Call)));
        assert!(matches!("file:/run/a:b".parse(), Ok(MarkerSource::File(path)) if path == "/run/a:b"));
        let line = "line:^drained: (yes|ja)$".parse();
        assert!(matches!(line, Ok(MarkerSource::Line(regex)) if regex.is_match("drained: ja")));
        assert_eq!(path_for("/run/{vm}/{vm}.flag", "web-0"), Path::new("/run/web-0/web-0.flag"));
    }

    #[test]
    fn wrong_source_is_refused_with_cure() {
        for (text, said) in [
            ("", "marker source \"\" is unknown; write line:REGEX, file:PATH or call"),
            ("drained", "write line:REGEX, file:PATH or call"),
            ("call:me", "write line:REGEX, file:PATH or call"),
            ("LINE:x", "write line:REGEX, file:PATH or call"),
            ("line:", "incomplete; write what comes after the colon"),
            ("file:", "incomplete; write what comes after the colon"),
            ("line:(", "no valid regular expression: found open group without closing ')'; correct it"),
            ("line:(x{1000}){1000}", "no valid regular expression: compiled regex exceeded size limit"),
        ] {
            let error = text.parse::<MarkerSource>().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(&format!("{text:?}")), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
