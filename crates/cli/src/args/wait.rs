//! Arguments of commands that wait for events or operations.

use std::time::Duration;

use clap::ValueEnum;

use crate::time::parse_span;

/// Flags to wait until an operation is closed.
#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    /// Wait until the operation is closed and show progress; Ctrl-C leaves it running
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span, requires = "wait")]
    pub timeout: Option<Duration>,
}

/// Stage and timeout of a wait.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct UntilArgs {
    /// Stage to wait for
    #[arg(long = "for", value_name = "STAGE", value_enum, default_value_t = Stage::Ended)]
    pub stage: Stage,
    /// Maximum time to wait, for example 20m, 1h30m; exit code 3 when it has passed
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span)]
    pub timeout: Option<Duration>,
}

/// A stage of an event, or of all events of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Each of its running VMs has read it
    Read,
    /// A guest or an operator has approved it
    Approved,
    /// It has started
    Started,
    /// It is completed or cancelled
    Ended,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Approved => "approved",
            Self::Started => "started",
            Self::Ended => "ended",
        })
    }
}
