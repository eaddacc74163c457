//! What is wrong with a configuration.

use std::fmt;

/// Every mistake of a configuration, so that all can be corrected in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl ConfigErrors {
    /// A single one.
    pub fn one(wrong: String) -> Self {
        Self(vec![wrong])
    }

    /// How many there are, for those who are not to know which.
    pub fn count(&self) -> String {
        match self.0.len() {
            1 => "1 mistake, which the log names".to_owned(),
            many => format!("{many} mistakes, which the log names"),
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            many => write!(f, "the configuration has {} mistakes:\n  {}", many.len(), many.join("\n  ")),
        }
    }
}

impl std::error::Error for ConfigErrors {}
