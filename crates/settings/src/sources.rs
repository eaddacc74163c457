//! Sources of settings: the file, the environment, the flags.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// systemd's variable for a service's data directory.
pub(crate) const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Not set.
    Default,
    /// A line of the file.
    File {
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    Environment(String),
    Flag(String),
}

impl Source {
    /// The order of errors: the file by line, then the environment, then flags.
    pub(crate) fn rank(&self) -> (u8, usize) {
        match self {
            Source::Default => (0, 0),
            Source::File { line, .. } => (1, *line),
            Source::Environment(_) => (2, 0),
            Source::Flag(_) => (3, 0),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A setting from a flag.
#[derive(Clone, Debug)]
pub struct FlagValue {
    pub key: String,
    /// The flag's name, without dashes.
    pub flag: String,
    pub text: String,
}

impl FlagValue {
    /// A flag with the setting's own name.
    pub fn of_key(key: &str, text: String) -> Self {
        FlagValue { key: key.to_owned(), flag: key.replace('_', "-"), text }
    }
}

/// The sources besides the file's content.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file from a flag.
    pub file: Option<PathBuf>,
    pub environment: Vec<(String, String)>,
    /// Names of variables whose value is not UTF-8.
    pub not_text: Vec<String>,
    pub flags: Vec<FlagValue>,
}

impl Sources {
    /// The flags and environment of this process. A variable whose name is not UTF-8 cannot be a setting.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<FlagValue>) -> Self {
        let mut sources = Sources { file, flags, ..Sources::default() };
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => sources.environment.push((name, value)),
                Err(_) => sources.not_text.push(name),
            }
        }
        sources
    }

    /// A variable's value; an empty one counts as unset.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
}
