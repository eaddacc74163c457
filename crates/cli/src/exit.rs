//! Exit codes of all commands, and the errors with their own code.

use std::process::ExitCode;

use notbefore_settings::ConfigErrors;

use crate::client::Refused;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    UsageError = 2,
    TimedOut = 3,
    /// Only of `agent status` and `agent retry`, as all below.
    AgentNotRunning = 10,
    Stranded = 11,
    Withheld = 12,
    Unmatched = 13,
    AgentNotReady = 14,
}

/// The codes of all commands.
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
            Self::AgentNotRunning => "the agent does not run",
            Self::Stranded => "the VM is not restored after an event, because a step failed",
            Self::Withheld => "an event is not approved, because a step failed",
            Self::Unmatched => "no rule matches an event of this VM",
            Self::AgentNotReady => "the agent is not ready",
        }
    }

    /// The code of an error; context around the error does not change it.
    pub fn of(error: &anyhow::Error) -> Self {
        let is_misunderstood = || error.downcast_ref::<Refused>().is_some_and(Refused::is_misunderstood);
        if error.is::<ConfigErrors>() || error.is::<UsageError>() || is_misunderstood() {
            Self::UsageError
        } else if error.is::<TimedOut>() {
            Self::TimedOut
        } else if let Some(state) = error.downcast_ref::<AgentState>() {
            state.exit
        } else {
            Self::Failed
        }
    }

    /// The codes of all commands and their meaning, a line each.
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

/// A state of the agent that `agent status` reports by its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct AgentState {
    pub exit: Exit,
    pub text: String,
}

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
        assert_eq!(of(Err(AgentState { exit: Exit::Withheld, text: "no".to_owned() }.into())), 12);
    }
}
