//! Who says what a setting is: the file, the environment, the flags.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// Where systemd says that a service shall keep its data.
pub(crate) const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl Source {
    /// The order in which mistakes are told: the file from its top, then the environment, then flags.
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

/// A setting that a flag says.
#[derive(Clone, Debug)]
pub struct FlagValue {
    /// The setting.
    pub key: String,
    /// The flag's name, without its dashes.
    pub flag: String,
    /// What it says.
    pub text: String,
}

impl FlagValue {
    /// By a flag that is called as the setting.
    pub fn of_key(key: &str, text: String) -> Self {
        FlagValue { key: key.to_owned(), flag: key.replace('_', "-"), text }
    }
}

/// What is said besides the file.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file that a flag names.
    pub file: Option<PathBuf>,
    /// The variables of this process, as text.
    pub environment: Vec<(String, String)>,
    /// What the flags say.
    pub flags: Vec<FlagValue>,
}

impl Sources {
    /// What this process is told by flags and by its environment. Variables that are no text cannot be settings.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<FlagValue>) -> Self {
        let texts = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        };
        Sources { file, environment: std::env::vars_os().filter_map(texts).collect(), flags }
    }

    /// What a variable says, if it says anything: an empty one does not.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
}
