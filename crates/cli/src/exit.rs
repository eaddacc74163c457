//! Exit codes of all commands, and the errors with their own code.

use std::process::ExitCode;

use notbefore_settings::ConfigErrors;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    UsageError = 2,
    TimedOut = 3,
}

const ALL: [Exit; 4] = [Exit::Done, Exit::Failed, Exit::UsageError, Exit::TimedOut];

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed or refused",
            Self::UsageError => "usage error: invalid command line, file or setting; nothing was done",
            Self::TimedOut => "timeout: --timeout has passed, the operation continues",
        }
    }

    /// The code of an error; context around the error does not change it.
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<ConfigErrors>() || error.is::<UsageError>() {
            Self::UsageError
        } else if error.is::<TimedOut>() {
            Self::TimedOut
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

/// An error in the command line or a file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// The error with all its causes, as a usage error.
    pub fn because(error: &anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

/// The caller's `--timeout` has passed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TimedOut(pub String);

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn context_keeps_the_code_of_an_error() {
        let of = |result: anyhow::Result<()>| Exit::of(&result.context("more").unwrap_err()).code();
        assert_eq!(of(Err(anyhow!("no"))), 1);
        assert_eq!(of(Err(UsageError("no".to_owned()).into())), 2);
        assert_eq!(of(Err(ConfigErrors::one("no".to_owned()).into())), 2);
        assert_eq!(of(Err(TimedOut("no".to_owned()).into())), 3);
    }
}
