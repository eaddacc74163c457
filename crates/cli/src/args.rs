//! Command-line arguments (clap). Commands that need the service's code exist on Unix only and are in `service`; the
//! rest is the same on every platform. `shown` decides which flags help, manual pages and completions show.

mod agent;
mod event;
mod fault;
mod guest;
mod operation;
#[cfg(unix)]
mod rehearse;
#[cfg(unix)]
mod service;
pub mod shown;
mod token;
mod wait;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use notbefore_wire::operator::ScopeKind;

#[cfg(windows)]
pub use agent::Install;
pub use agent::{Agent, Check, History as AgentHistory, Retry, Run, RunStage, Settings, StateDir, Status};
pub use event::Event;
pub use fault::Fault;
pub use guest::{Approve, Get, Platform};
pub use operation::Operation;
#[cfg(unix)]
pub use rehearse::{Play, Rehearse, RehearseVerb};
#[cfg(unix)]
pub use service::{EtcdArgs, Export, Import, Serve, TokenInit};
pub use token::Token;
pub use wait::{Stage, UntilArgs, WaitArgs};

use crate::exit::Exit;
use crate::time::{Ago, parse_ago, parse_ahead, parse_interruption, parse_time};

/// The parser of a word of the API, in upper or lower case. Help, errors and completions list all its words, or those
/// given, in lower case.
macro_rules! word {
    ($type:ident) => {
        word!($type, _)
    };
    ($type:ident, $among:pat) => {{
        let among = $type::ALL.iter().filter(|one| matches!(one, $among));
        let words = among.map(|one| $crate::args::lower_case(one.as_str()));
        PossibleValuesParser::new(words).map(|text| $type::parse_ignoring_case(&text))
    }};
}
use word;

/// clap requires `'static` words. The leak is bounded: the program builds its command once or twice.
fn lower_case(word: &str) -> &'static str {
    word.to_ascii_lowercase().leak()
}

const EXAMPLES: &str = "Examples:\n  notbefore serve                    run the service\n  notbefore vm restart web-0         announce a restart\n  notbefore event list               list scheduled and started events\n  notbefore event schedule --type freeze web-0 --in 20m\n\nThe service's address and token are read from ./notbefore-data. Use --data DIR or NOTBEFORE_DATA\nfor another directory, --operator-url or NOTBEFORE_OPERATOR for a remote service. NOTBEFORE_TOKEN is\nsent only to a URL or directory that you name, or to a service on this machine.";

const AT_ONCE: &str = "Runs at once, without notice, if no guest of the scope has polled within a day.";

/// Scheduled Events for virtual machines: the platform announces an event and its NotBefore time; the VM
/// prepares and approves; then the platform starts the event.
#[derive(Debug, Parser)]
#[command(
    name = "notbefore",
    version,
    after_help = format!("{EXAMPLES}\n\nExit codes of every command:\n{}", Exit::table())
)]
pub struct Args {
    #[command(flatten)]
    pub reach: ConnectionArgs,
    /// Output format
    #[arg(long, short, global = true, help_heading = "Global options", value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Show local times with their offset, instead of relative times and UTC
    #[arg(long, global = true, help_heading = "Global options")]
    pub local_time: bool,
    #[command(subcommand)]
    pub command: TopCommand,
}

/// Flags that select the service and its token.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct ConnectionArgs {
    /// Data directory of the service, with its token [default: $STATE_DIRECTORY or ./notbefore-data]
    #[arg(long, global = true, env = "NOTBEFORE_DATA", hide_env_values = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// URL of a remote service's operator listener
    #[arg(long, global = true, env = "NOTBEFORE_OPERATOR", hide_env_values = true, value_name = "URL")]
    pub operator_url: Option<String>,
    /// CA certificate, or the server's own certificate, to trust for a remote service (PEM)
    #[arg(long, global = true, env = "NOTBEFORE_CA", hide_env_values = true, value_name = "FILE")]
    pub operator_ca: Option<PathBuf>,
    /// Send the token to a remote service over plain http, where others on the network can read it
    // `serve` has a flag of this name. clap carries values of global flags between commands, so both are of one type.
    #[arg(id = "operator-without-tls", long, global = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    #[arg(value_parser = PossibleValuesParser::new(["true", "false"]), hide_possible_values = true)]
    pub operator_without_tls: Option<String>,
}

impl ConnectionArgs {
    /// The data directory from the flag, else `STATE_DIRECTORY`, else the default.
    pub fn data_dir(&self) -> PathBuf {
        self.data.clone().or_else(state_directory).unwrap_or_else(|| "notbefore-data".into())
    }

    /// Whether the flag or the environment names the data directory.
    pub fn names_data(&self) -> bool {
        self.data.is_some() || state_directory().is_some()
    }

    /// Whether the token may be sent to a remote machine unencrypted.
    pub fn is_without_tls(&self) -> bool {
        self.operator_without_tls.as_deref() == Some("true")
    }
}

fn state_directory() -> Option<PathBuf> {
    std::env::var_os("STATE_DIRECTORY").filter(|path| !path.is_empty()).map(PathBuf::from)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    // All columns, with whole ids.
    Wide,
    Json,
    Yaml,
    // Only names or ids, a line each.
    Name,
}

#[derive(Debug, Subcommand)]
pub enum TopCommand {
    /// Run the service
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/serve.txt").trim_end())]
    Serve(Box<Serve>),
    /// On a VM: prepare for events, approve them, and undo the preparation afterwards
    #[command(subcommand)]
    Agent(Agent),
    /// Show what happens in the next hour, what has failed, and the state of the service
    #[command(after_help = include_str!("args/help/status.txt").trim_end())]
    Status(WatchArgs),
    /// Describe scopes and VMs in a file and apply it
    #[command(subcommand)]
    Fleet(Fleet),
    /// List and manage VMs: restart, redeploy, evict, delete
    #[command(subcommand)]
    Vm(Vm),
    /// List hosts, and schedule maintenance for all VMs of a host
    #[command(subcommand)]
    Host(Host),
    /// Schedule, follow, start and complete events
    #[command(subcommand)]
    Event(Event),
    /// Follow, start, complete and cancel operations (requests that may span scopes)
    #[command(subcommand)]
    Operation(Operation),
    /// Manage tokens for the operator API and their roles
    #[command(subcommand, after_help = include_str!("args/help/token.txt").trim_end())]
    Token(Token),
    /// Make the guest listener misbehave, to test handlers (serve --faults)
    #[command(subcommand)]
    Fault(Fault),
    /// Show whether the service trusts its system clock, and accept a jump
    #[command(subcommand, after_help = include_str!("args/help/clock.txt").trim_end())]
    Clock(Clock),
    /// Show the nodes of a cluster and etcd, hand the lead over, finish an upgrade
    #[command(subcommand)]
    Cluster(Cluster),
    /// Show the audit trail: changes and refusals, with actor and source address
    #[command(after_help = include_str!("args/help/audit.txt").trim_end())]
    Audit(Audit),
    /// Print a link that opens the console in a browser, signed in
    #[command(after_help = include_str!("args/help/console.txt").trim_end())]
    Console,
    /// Ask the service once whether it works; the exit code says so
    #[command(after_help = include_str!("args/help/healthy.txt").trim_end())]
    Healthy(Healthy),
    /// Print the OpenAPI description of the operator API
    #[cfg(unix)]
    #[command(name = "openapi")]
    OpenApi,
    /// Export the service's data to a file, for backup or to move it to another machine
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/export.txt").trim_end())]
    Export(Export),
    /// Create a data directory from an export, before the service starts
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/import.txt").trim_end())]
    Import(Import),
    /// Check the store of a stopped service: every record, the record counts, and their consistency
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/check.txt").trim_end())]
    Check,
    /// Play events to a maintenance handler, watch it, and give a verdict
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/rehearse.txt").trim_end())]
    Rehearse(Box<Rehearse>),
    /// Inside a VM: show its scheduled events
    #[command(after_help = include_str!("args/help/get.txt").trim_end())]
    Get(Get),
    /// Inside a VM: approve events, so that they may start
    #[command(after_help = include_str!("args/help/approve.txt").trim_end())]
    Approve(Approve),
    /// Print a shell completion script
    #[command(after_help = include_str!("args/help/completions.txt").trim_end())]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print names of the service or the agent, for shell completion
    #[command(name = "complete-names", hide = true)]
    CompleteNames {
        /// The kind of names
        kind: NameKind,
        /// Longest time to wait for an answer, in milliseconds: a shell that waits longer feels slow
        #[arg(long, env = "NOTBEFORE_COMPLETION_MS", value_name = "MS", default_value_t = 200)]
        within: u64,
    },
    /// Supervise one exec driver command: kill its processes when it or the service ends; only the service runs this
    #[cfg(unix)]
    #[command(name = notbefore_service::exec::keeper::SUBCOMMAND, hide = true)]
    ExecKeeper {
        /// End of the command's lease, in milliseconds since boot
        #[arg(long, value_name = "MS")]
        lease_until: Option<u64>,
        /// Result file that the command may write
        result: PathBuf,
        /// The command
        command: std::ffi::OsString,
    },
    /// End the handlers of a rehearsal that was killed; only the rehearsal runs this
    #[cfg(unix)]
    #[command(name = notbefore_rehearse::keeper::SUBCOMMAND, hide = true)]
    RehearseKeeper {
        /// The value of NOTBEFORE_REHEARSAL in the environment of the handlers
        value: String,
    },
    /// Commands that exist on Linux only; they fail with a message that says so
    #[cfg(not(unix))]
    #[command(name = "serve", aliases = ["openapi", "export", "import", "check", "rehearse"], hide = true)]
    LinuxOnly {
        /// The remaining arguments, ignored
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
}

/// Shells with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    Power,
    Zsh,
}

/// Names that a shell completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameKind {
    Vms,
    Hosts,
    Events,
    Operations,
    Scopes,
    /// Events that the agent on this machine handles.
    AgentEvents,
    /// Events in its history.
    AgentPastEvents,
}

impl TopCommand {
    /// Whether `--output name` has something to print.
    pub fn has_names(&self) -> bool {
        match self {
            Self::Vm(Vm::Document { .. }) | Self::Event(Event::History { summary: true, .. }) => false,
            Self::Vm(_)
            | Self::Host(_)
            | Self::Event(_)
            | Self::Operation(_)
            | Self::Token(_)
            | Self::Fault(_)
            | Self::Get(_)
            | Self::Fleet(Fleet::Show) => true,
            Self::Fleet(Fleet::Apply(_) | Fleet::Diff { .. })
            | Self::Agent(_)
            | Self::Status(_)
            | Self::Console
            | Self::Healthy(_)
            | Self::Clock(_)
            | Self::Cluster(_)
            | Self::Audit(_)
            | Self::Approve(_)
            | Self::Completions { .. }
            | Self::CompleteNames { .. } => false,
            #[cfg(unix)]
            Self::Serve(_)
            | Self::Rehearse(_)
            | Self::OpenApi
            | Self::Export(_)
            | Self::Import(_)
            | Self::Check
            | Self::ExecKeeper { .. }
            | Self::RehearseKeeper { .. } => false,
            #[cfg(not(unix))]
            Self::LinuxOnly { .. } => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Apply a fleet file (idempotent)
    #[command(after_help = include_str!("args/help/fleet_apply.txt").trim_end())]
    Apply(Apply),
    /// Show what applying a file would add, change and remove, and which live events would end
    #[command(after_help = include_str!("args/help/fleet_diff.txt").trim_end())]
    Diff {
        /// The file; - for standard input
        file: PathBuf,
        /// Also show what --prune would remove
        #[arg(long)]
        prune: bool,
        /// Report progress every 10 seconds, even without a terminal
        #[arg(long)]
        progress: bool,
    },
    /// Show scopes with their number of VMs and events
    Show,
}

#[derive(Debug, clap::Args)]
pub struct Apply {
    /// The file; - for standard input
    pub file: PathBuf,
    /// Also remove scopes and VMs that an earlier file created and this one does not name
    #[arg(long)]
    pub prune: bool,
    /// Only check the file
    #[arg(long, conflicts_with_all = ["dry_run", "yes"])]
    pub check: bool,
    /// Report progress every 10 seconds, even without a terminal
    #[arg(long)]
    pub progress: bool,
    /// Accept a file without scopes; with --prune it removes everything that files created
    #[arg(long)]
    pub allow_empty: bool,
    #[command(flatten)]
    pub confirmation: ConfirmArgs,
}

#[derive(Debug, Subcommand)]
pub enum Vm {
    /// List VMs
    List {
        /// Only VMs of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only VMs on this host
        #[arg(long)]
        host: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one VM
    Show {
        /// VM name, or the end of its path if the name is not unique
        vm: String,
    },
    /// Show what a VM asked for lately: refused requests, approvals, first reads, and which clients poll
    #[command(after_help = include_str!("args/help/vm_log.txt").trim_end())]
    Log {
        /// VM name, or the end of its path if the name is not unique
        vm: String,
    },
    /// Show the document of scheduled events that a VM reads now
    Document {
        /// VM name, or the end of its path if the name is not unique
        vm: String,
        /// The api-version [default: the newest]
        #[arg(long, value_name = "VERSION")]
        api_version: Option<String>,
    },
    /// Add a VM
    #[command(after_help = include_str!("args/help/vm_add.txt").trim_end())]
    Add {
        /// VM name
        name: String,
        /// Scope: [[subscription/]group/]scope [default: a standalone scope named after the VM]
        #[arg(long)]
        scope: Option<String>,
        /// Kind of the scope, if it is created
        #[arg(long, ignore_case = true, value_parser = word!(ScopeKind))]
        kind: Option<ScopeKind>,
        /// Source address of its requests; may be repeated
        #[arg(long, value_name = "IP")]
        address: Vec<String>,
        #[arg(long, default_value_t = 0)]
        update_domain: u32,
        #[arg(long, default_value_t = 0)]
        fault_domain: u32,
        #[arg(long)]
        zone: Option<String>,
        #[arg(long)]
        host: Option<String>,
        /// Spot VM: may be evicted
        #[arg(long)]
        spot: bool,
    },
    /// Remove a VM from the inventory at once, without an event
    #[command(
        after_help = "Shows the live events this affects and asks for confirmation; without a terminal, --yes is required."
    )]
    Remove {
        vm: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Restart a VM: a Reboot event, started when approved or at its NotBefore
    #[command(after_help = AT_ONCE)]
    Restart(ScheduleVmArgs),
    /// Redeploy a VM: a Redeploy event, started when approved or at its NotBefore
    #[command(after_help = AT_ONCE)]
    Redeploy(ScheduleVmArgs),
    /// Evict a Spot VM: a Preempt event with 30 seconds' notice
    Evict {
        #[command(flatten)]
        act: ScheduleVmArgs,
        /// Evict the VM even if it is not a Spot VM
        #[arg(long)]
        force: bool,
    },
    /// Delete VMs: Terminate events, with the scope's terminate notification as notice
    #[command(
        after_help = "Shows the live events this affects and asks for confirmation; without a terminal, --yes is required."
    )]
    Delete {
        /// The VMs
        #[arg(required = true)]
        vms: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Report that an evicted VM runs again
    Start { vm: String },
}

#[derive(Debug, clap::Args)]
pub struct ScheduleVmArgs {
    /// VM name, or the end of its path if the name is not unique
    pub vm: String,
    #[command(flatten)]
    pub when: WhenArgs,
    /// Only show the plan
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Default, clap::Args)]
#[command(group = ArgGroup::new("when"))]
pub struct WhenArgs {
    /// Not before this time: RFC 3339, a date, '2026-11-20 08:00' or 'tomorrow 02:00' (UTC) [default: the minimum notice]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time, group = "when")]
    pub not_before: Option<Timestamp>,
    /// Not before this long from now, for example 20m, 1h30m, 7d, 2w
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_ahead, group = "when")]
    pub r#in: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub enum Host {
    /// List hosts with their state, by name
    List(ListArgs),
    /// Show a host, its VMs and their events
    Show { host: String },
    /// Schedule maintenance for the VMs of hosts: one operation per host
    #[command(after_help = include_str!("args/help/host_maintain.txt").trim_end())]
    Maintain {
        /// What happens to the VMs
        #[arg(long, value_enum, ignore_case = true)]
        r#type: Maintenance,
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Report hosts with predicted failure: their VMs are redeployed [default notice: 7 days]
    #[command(after_help = include_str!("args/help/host_degraded.txt").trim_end())]
    Degraded {
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Report hosts that failed: their VMs restart now, without notice
    #[command(after_help = include_str!("args/help/host_failed.txt").trim_end())]
    Failed(Hosts),
    /// Report that hosts work: redeployed VMs may move there
    #[command(after_help = include_str!("args/help/host_ok.txt").trim_end())]
    Ok {
        /// The hosts
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// Remove hosts without VMs from the list of hosts
    #[command(after_help = include_str!("args/help/host_forget.txt").trim_end())]
    Forget {
        /// The hosts
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, clap::Args)]
pub struct Hosts {
    /// The hosts
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
    #[command(flatten)]
    pub message: MessageArgs,
    #[command(flatten)]
    pub confirmation: ConfirmArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Maintenance {
    /// Paused for some seconds
    Freeze,
    /// Restarted, all at once
    Reboot,
    /// Moved to other hosts, each VM separately
    Redeploy,
    /// Moved to other hosts while running
    LiveMigration,
}

/// Overrides of the event fields that guests read.
#[derive(Debug, clap::Args)]
pub struct MessageArgs {
    /// Event description for guests [default: the cause's description]
    #[arg(long)]
    pub description: Option<String>,
    /// Expected interruption (DurationInSeconds), for example 9s, 2m; -1 for unknown
    #[arg(long, value_name = "SPAN", allow_negative_numbers = true, value_parser = parse_interruption)]
    pub duration: Option<i32>,
}

/// Dry run and confirmation flags.
#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {
    /// Only show the plan
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Flags of lists.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Maximum number of lines
    #[arg(long, value_name = "N", value_parser = parse_count)]
    limit: Option<usize>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// Flags to show a result again and again.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Show it again every 2 seconds, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// With --watch: exit after this many times
    #[arg(long, requires = "watch", value_name = "N", value_parser = parse_count)]
    pub count: Option<usize>,
}

impl ListArgs {
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Subcommand)]
pub enum Clock {
    /// Show the service's clock and whether it is trusted
    Show,
    /// Trust the clock: events that are due by it start
    #[command(
        after_help = "Run 'notbefore clock show' first. At a terminal it asks for confirmation; without a terminal it does not ask."
    )]
    Accept {
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, Subcommand)]
pub enum Cluster {
    /// Show the nodes, the leader, etcd, and what is wrong
    #[command(after_help = include_str!("args/help/cluster_status.txt").trim_end())]
    Status,
    /// Make the leader give up the lead, so that another node takes it
    #[command(after_help = include_str!("args/help/cluster_hand_over.txt").trim_end())]
    HandOver {
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Rolling upgrades of the nodes
    #[command(subcommand)]
    Upgrade(Upgrade),
    /// Remove a node that does not run any more from the list of nodes
    #[command(after_help = include_str!("args/help/cluster_forget.txt").trim_end())]
    Forget {
        /// Name of the node, as in 'cluster status'
        node: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, Subcommand)]
pub enum Upgrade {
    /// Let all nodes write the newest format level that each of them can
    #[command(after_help = include_str!("args/help/cluster_upgrade_finish.txt").trim_end())]
    Finish {
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, clap::Args)]
pub struct Audit {
    /// Only entries within this span, or since this time
    #[arg(long, value_name = "SPAN|TIME", allow_hyphen_values = true, value_parser = parse_ago, default_value = "24h")]
    pub since: Ago,
    /// Only entries older than this span, or before this time
    #[arg(long, value_name = "SPAN|TIME", allow_hyphen_values = true, value_parser = parse_ago)]
    pub until: Option<Ago>,
    /// Only entries of this actor: the name of a token or VM, `timer` or `service`
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Only refusals
    #[arg(long, conflicts_with = "changed")]
    pub refused: bool,
    /// Only changes
    #[arg(long)]
    pub changed: bool,
    /// Newest entries first
    #[arg(long)]
    pub newest: bool,
    /// Maximum number of entries
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub struct Healthy {
    /// Only check that the process answers, not that it can store changes
    #[arg(long)]
    pub alive: bool,
}

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a number, 1 or more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_zero_is_refused_with_message() {
        for words in [
            ["event", "watch", "--count"].as_slice(),
            &["get", "--watch", "--count"],
            &["event", "history", "--limit"],
        ] {
            for wrong in ["0", "many"] {
                let typed = ["notbefore"].iter().chain(words).chain([&wrong]);
                let error = Args::try_parse_from(typed).unwrap_err().to_string();
                assert!(error.contains("must be a number, 1 or more"), "{words:?}: {error}");
            }
        }
    }
}
