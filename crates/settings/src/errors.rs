//! Errors of a configuration, collected.

use std::fmt;

/// Every error of a configuration, so that all can be corrected at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<String>);

impl ConfigErrors {
    pub fn one(wrong: String) -> Self {
        Self(vec![wrong])
    }

    /// The number of errors, for readers that must not see the values.
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
