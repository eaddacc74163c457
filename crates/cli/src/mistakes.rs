//! What is wrong with a configuration. Whoever runs a program by a file with mistakes learns all of them at once, and by
//! the exit code 2 that starting it again will not help.

use std::fmt;

/// What is wrong with the configuration: every mistake there is, so that they can be corrected in one go.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

impl Mistakes {
    /// A single one.
    #[cfg(unix)]
    pub fn one(wrong: String) -> Self {
        Self(vec![wrong])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            many => write!(f, "the configuration has {} mistakes:\n  {}", many.len(), many.join("\n  ")),
        }
    }
}

impl std::error::Error for Mistakes {}
