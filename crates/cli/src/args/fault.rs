//! Arguments of `notbefore fault` and its subcommands.

use std::time::Duration;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use notbefore_wire::operator::faults::NewFault;
use notbefore_wire::operator::{FaultKind, FaultRequests};

use super::word;
use crate::time::parse_span;

#[derive(Debug, Subcommand)]
pub enum Fault {
    /// Add a fault: guests get wrong, late or no answers
    #[command(after_help = include_str!("help/fault_add.txt").trim_end())]
    Add(Box<AddFault>),
    /// List the active faults and how often each had an effect
    List,
    /// End a fault, or all of them
    Clear {
        /// Number of the fault [default: all faults]
        id: Option<u64>,
    },
}

#[derive(Debug, clap::Args)]
pub struct AddFault {
    /// What the fault does
    #[arg(ignore_case = true, value_parser = word!(FaultKind))]
    kind: FaultKind,
    /// Only for this VM: its id, or the end of its path [default: all VMs]
    #[arg(long)]
    vm: Option<String>,
    /// Requests that it affects
    #[arg(long, ignore_case = true, default_value = "polls", value_parser = word!(FaultRequests))]
    on: FaultRequests,
    /// Affect every Nth request of each VM only
    #[arg(long, value_name = "N")]
    every: Option<u32>,
    /// End after N effects
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// End after this time
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span)]
    active: Option<Duration>,
    /// late-first-answer, slow-body: how long; clock-skew: how far the platform's clock is ahead, negative for behind
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seconds: Option<i64>,
    /// status: the status of the response, 400 to 599
    #[arg(long, value_name = "N")]
    status: Option<u16>,
    /// skip-incarnations: how far the incarnation rises with each change
    #[arg(long, value_name = "N")]
    by: Option<u64>,
}

impl AddFault {
    /// The fault, not yet checked.
    pub fn fault(self) -> NewFault {
        let AddFault { kind, vm, on, every, count, active, seconds, status, by } = self;
        // A part of a second counts as one.
        let active_seconds = active.map(|span| {
            let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
            u32::try_from(seconds).unwrap_or(u32::MAX)
        });
        NewFault { kind, vm, requests: Some(on), every, count, active_seconds, seconds, status, by }
    }
}
