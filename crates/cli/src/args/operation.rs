//! Arguments of `notbefore operation` and its subcommands.

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use notbefore_wire::operator::EventType;

use super::{ConfirmArgs, ListArgs, UntilArgs, word};

#[derive(Debug, Subcommand)]
pub enum Operation {
    /// List open operations, in order of time
    List {
        /// Only operations on this host
        #[arg(long)]
        host: Option<String>,
        /// Only operations whose events have this type
        #[arg(long, ignore_case = true, value_parser = word!(EventType))]
        r#type: Option<EventType>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show an operation and its events
    Show {
        /// Operation id, or its first digits
        operation: String,
    },
    /// Cancel the events of an operation that have not started
    #[command(
        after_help = "At a terminal it shows the events to cancel and asks for confirmation; without a terminal it does not ask."
    )]
    Cancel {
        /// Operation ids, or their first digits
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Start all events of operations now
    #[command(after_help = include_str!("help/operation_start.txt").trim_end())]
    Start {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
    },
    /// Report that all events of operations were carried out
    #[command(after_help = include_str!("help/operation_complete.txt").trim_end())]
    Complete {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
    },
    /// Retry the exec driver's command for the host of operations
    #[command(after_help = include_str!("help/operation_retry.txt").trim_end())]
    Retry {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
    },
    /// Wait until all events of operations are read, approved, started or ended, and show progress; Ctrl-C leaves them
    /// running
    #[command(after_help = include_str!("help/operation_wait.txt").trim_end())]
    Wait {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
        #[command(flatten)]
        until: UntilArgs,
    },
}
