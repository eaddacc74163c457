//! Arguments of `notbefore event` and its subcommands.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Subcommand};
use notbefore_wire::operator::{Cause, EventSort, EventStatus, EventType};

use super::{ConfirmArgs, ListArgs, MessageArgs, UntilArgs, WhenArgs, parse_count, word};
use crate::time::{Ago, parse_ago};

#[derive(Debug, Subcommand)]
pub enum Event {
    /// List scheduled and started events, and advisories, in order of time
    List {
        /// Only events of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only events of this VM
        #[arg(long)]
        vm: Option<String>,
        /// Only events of VMs that were on this host when the event was announced
        #[arg(long)]
        host: Option<String>,
        /// Only events of this type
        #[arg(long, ignore_case = true, value_parser = word!(EventType))]
        r#type: Option<EventType>,
        /// Only events with this status
        #[arg(long, ignore_case = true, value_parser = word!(EventStatus, EventStatus::Scheduled | EventStatus::Started | EventStatus::Advisory))]
        status: Option<EventStatus>,
        /// The order: started events, then scheduled events by NotBefore, then advisories; or by scope
        #[arg(long, ignore_case = true, default_value = "time", value_parser = word!(EventSort))]
        sort: EventSort,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one event with its full trail, even after it has ended
    Show {
        /// Event id, or its first digits
        event: String,
    },
    /// Schedule an event for VMs
    #[command(group = ArgGroup::new("what").required(true).args(["type", "cause"]))]
    #[command(after_help = include_str!("help/event_schedule.txt").trim_end())]
    Schedule {
        /// The VMs
        #[arg(required = true)]
        vms: Vec<String>,
        /// The event's type
        #[arg(long, ignore_case = true, value_parser = word!(EventType))]
        r#type: Option<EventType>,
        /// The exact cause, instead of a type
        #[arg(long, ignore_case = true, value_parser = word!(Cause))]
        cause: Option<Cause>,
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        message: MessageArgs,
        /// With Preempt and SpotRebalanceRecommendation: also VMs that are not Spot VMs
        #[arg(long)]
        force: bool,
        /// Only show the plan
        #[arg(long)]
        dry_run: bool,
    },
    /// Cancel events that have not started
    #[command(after_help = include_str!("help/event_cancel.txt").trim_end())]
    Cancel {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Approve events on behalf of their guests
    Approve {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
    },
    /// Start events now
    #[command(after_help = include_str!("help/event_start.txt").trim_end())]
    Start {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
    },
    /// Report that events were carried out
    #[command(after_help = include_str!("help/event_complete.txt").trim_end())]
    Complete {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
        /// New host of a redeployed VM; may be repeated. Only with one event
        #[arg(long, value_name = "VM=HOST", value_parser = parse_pair)]
        host: Vec<(String, String)>,
    },
    /// Retry the exec driver's commands that have failed or wait for a retry
    #[command(after_help = include_str!("help/event_retry.txt").trim_end())]
    Retry {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
    },
    /// Wait until events are read, approved, started or ended, and show progress; Ctrl-C leaves them running
    #[command(after_help = include_str!("help/event_wait.txt").trim_end())]
    Wait {
        /// Event ids, or their first digits
        #[arg(required = true, value_name = "EVENT")]
        events: Vec<String>,
        #[command(flatten)]
        until: UntilArgs,
    },
    /// List events that have ended, oldest first
    #[command(after_help = include_str!("help/event_history.txt").trim_end())]
    History {
        /// Only events that ended within this span, or since this time
        #[arg(long, value_name = "SPAN|TIME", allow_hyphen_values = true, value_parser = parse_ago, default_value = "24h")]
        since: Ago,
        /// Only events that ended longer ago than this span, or before this time
        #[arg(long, value_name = "SPAN|TIME", allow_hyphen_values = true, value_parser = parse_ago)]
        until: Option<Ago>,
        /// Only events of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only events of this VM: id, name, or the end of its path
        #[arg(long)]
        vm: Option<String>,
        /// Only events of VMs that were on this host
        #[arg(long)]
        host: Option<String>,
        /// Only events of this type
        #[arg(long, ignore_case = true, value_parser = word!(EventType))]
        r#type: Option<EventType>,
        /// Only events with this outcome
        #[arg(long, ignore_case = true, value_parser = word!(EventStatus, EventStatus::Completed | EventStatus::Cancelled))]
        outcome: Option<EventStatus>,
        /// Newest first
        #[arg(long)]
        newest: bool,
        /// Count them by day, type and outcome instead, and show how long approvals took
        #[arg(long, conflicts_with_all = ["newest", "limit"])]
        summary: bool,
        /// Maximum number of events
        #[arg(long, value_name = "N", value_parser = parse_count)]
        limit: Option<usize>,
    },
    /// Print changes of events as they happen: scheduled, read, approved, started, ended
    Watch {
        /// Exit after this many changes
        #[arg(long, value_name = "N", value_parser = parse_count)]
        count: Option<usize>,
    },
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("write VM=HOST, for example web-0=h9")?;
    Ok((left.to_owned(), right.to_owned()))
}
