//! The exit codes of all commands, and the errors that have a code of their own.

use std::fmt;
use std::process::ExitCode;

use notbefore_settings::Mistakes;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    NotUnderstood,
    TimeOver,
}

/// Every exit code, in the order of its number.
const ALL: [Exit; 4] = [Exit::Done, Exit::Failed, Exit::NotUnderstood, Exit::TimeOver];

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::NotUnderstood => 2,
            Self::TimeOver => 3,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed or refused",
            Self::NotUnderstood => "not understood: the command line, a file or a setting; nothing was done",
            Self::TimeOver => "time over: --timeout has passed, the operation goes on",
        }
    }

    /// The code of an error; context around the error does not change it.
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<Mistakes>() || error.is::<NotUnderstood>() {
            Self::NotUnderstood
        } else if error.is::<TimeOver>() {
            Self::TimeOver
        } else {
            Self::Failed
        }
    }

    /// All codes and their meaning, a line each.
    pub fn table() -> String {
        ALL.map(|exit| format!("  {}  {}", exit.code(), exit.meaning())).join("\n")
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The command line or a file has to be changed before anything can be done.
#[derive(Debug)]
pub struct NotUnderstood(pub String);

impl NotUnderstood {
    /// The same error with all its causes, under this code.
    pub fn because(error: &anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotUnderstood {}

/// The time that the caller gave has passed.
#[derive(Debug)]
pub struct TimeOver(pub String);

impl fmt::Display for TimeOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeOver {}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn context_keeps_the_code_of_an_error() {
        let of = |result: anyhow::Result<()>| Exit::of(&result.context("more").unwrap_err()).code();
        assert_eq!(of(Err(anyhow!("no"))), 1);
        assert_eq!(of(Err(NotUnderstood("no".to_owned()).into())), 2);
        assert_eq!(of(Err(Mistakes::one("no".to_owned()).into())), 2);
        assert_eq!(of(Err(TimeOver("no".to_owned()).into())), 3);
    }
}
