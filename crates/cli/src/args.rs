//! What can be typed. What needs the service's own code is there on Unix only, and has a file of its own; the rest is
//! the same everywhere. `shown` is what people are told of it.

mod agent;
mod guest;
#[cfg(unix)]
mod service;
pub mod shown;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::Timestamp;

#[cfg(windows)]
pub use agent::Install;
pub use agent::{Agent, Check, LogFormat, Run, RunStage, Settings, Status};
pub use guest::{Approve, Get, Platform};
#[cfg(unix)]
pub use service::{Export, Import, Serve};

use crate::exit::Exit;
use crate::time::{Ago, parse_ago, parse_duration, parse_time};

const EXAMPLES: &str = "Examples:\n  notbefore serve                    run the service\n  notbefore vm restart web-0         announce a restart\n  notbefore event list               see what is announced or under way\n  notbefore event schedule --type freeze web-0 --in 20m\n\nThe service and its token are found by ./notbefore-data; say --data DIR or\nNOTBEFORE_DATA for another directory, NOTBEFORE_OPERATOR for a service elsewhere. NOTBEFORE_TOKEN goes\nto a URL or a directory that you name, or else to a service on this machine.";

/// Scheduled Events for virtual machines: the platform tells a VM what is about to happen to it, not before
/// when; the VM prepares, approves, and the platform goes on.
#[derive(Debug, Parser)]
#[command(
    name = "notbefore",
    version,
    after_help = format!("{EXAMPLES}\n\nExit codes of every command:\n{}", Exit::table())
)]
pub struct Args {
    #[command(flatten)]
    pub reach: ConnectionArgs,
    /// How results are shown
    #[arg(long, short, global = true, help_heading = "Everywhere", value_enum, default_value_t = Output::Table)]
    pub output: Output,
    #[command(subcommand)]
    pub command: TopCommand,
}

/// How to reach the service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub struct ConnectionArgs {
    /// The service's data, its token included [default: $STATE_DIRECTORY or ./notbefore-data]
    #[arg(long, global = true, env = "NOTBEFORE_DATA", hide_env_values = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The operator listener's URL, if the service is elsewhere
    #[arg(long, global = true, env = "NOTBEFORE_OPERATOR", hide_env_values = true, value_name = "URL")]
    pub operator_url: Option<String>,
    /// A file with the authority, or the certificate itself, that vouches for a service elsewhere
    #[arg(long, global = true, env = "NOTBEFORE_CA", hide_env_values = true, value_name = "FILE")]
    pub operator_ca: Option<PathBuf>,
    /// Send the token also to a service elsewhere whose URL is plain http, where others may read it
    // `serve` has a flag of this name. clap carries values of global flags between commands, so both are of one type.
    #[arg(id = "operator-without-tls", long, global = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    #[arg(value_parser = PossibleValuesParser::new(["true", "false"]), hide_possible_values = true)]
    pub operator_without_tls: Option<String>,
}

impl ConnectionArgs {
    /// The data directory, said or usual.
    pub fn data_dir(&self) -> PathBuf {
        self.data.clone().or_else(state_directory).unwrap_or_else(|| "notbefore-data".into())
    }

    /// Whether the caller has said which directory it is.
    pub fn names_data(&self) -> bool {
        self.data.is_some() || state_directory().is_some()
    }

    /// Whether a token may go to another machine unencrypted.
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
    Json,
}

#[derive(Debug, Subcommand)]
pub enum TopCommand {
    /// Run the service
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/serve.txt").trim_end())]
    Serve(Box<Serve>),
    /// On a VM: prepare for what is announced, approve, and put everything back
    #[command(subcommand)]
    Agent(Agent),
    /// Describe scopes and VMs in a file and apply it
    #[command(subcommand)]
    Fleet(Fleet),
    /// List VMs, and do to them what their owners do
    #[command(subcommand)]
    Vm(Vm),
    /// See the hosts that VMs run on, and tell all VMs of one what is about to happen to it
    #[command(subcommand)]
    Host(Host),
    /// Announce, follow and carry out events
    #[command(subcommand)]
    Event(Event),
    /// What somebody asked for, in however many scopes
    #[command(subcommand)]
    Operation(Operation),
    /// Decide who may use the operator API, and for what
    #[command(subcommand, after_help = include_str!("args/help/token.txt").trim_end())]
    Token(Token),
    /// See whether the service trusts its machine's clock, and trust it
    #[command(subcommand, after_help = include_str!("args/help/clock.txt").trim_end())]
    Clock(Clock),
    /// Show what was changed and what was refused, by whom and from where
    #[command(after_help = include_str!("args/help/audit.txt").trim_end())]
    Audit(Audit),
    /// Print the operator API's description (OpenAPI), for making clients from
    #[cfg(unix)]
    #[command(name = "openapi")]
    OpenApi,
    /// Write everything the service holds to a file: a backup, or the way to another machine
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/export.txt").trim_end())]
    Export(Export),
    /// Make a data directory from an export, for a service that is not yet started
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/import.txt").trim_end())]
    Import(Import),
    /// Look the store of a stopped service over: every record, their number, and whether they fit together
    #[cfg(unix)]
    #[command(after_help = include_str!("args/help/check.txt").trim_end())]
    Check,
    /// Inside of a VM: see what is about to happen to it
    #[command(after_help = include_str!("args/help/get.txt").trim_end())]
    Get(Get),
    /// Inside of a VM: say that it is ready, so that an event may start
    #[command(after_help = include_str!("args/help/approve.txt").trim_end())]
    Approve(Approve),
    /// Print what a shell reads to complete these commands
    #[command(after_help = include_str!("args/help/completions.txt").trim_end())]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages, for a package to carry
    #[command(name = "manual-pages", hide = true)]
    ManualPages {
        /// The directory, made if it is not there
        dir: PathBuf,
    },
    /// See to it that nothing of a command of the exec driver outlives it or the service, which alone calls this
    #[cfg(unix)]
    #[command(name = notbefore_service::exec::keeper::SUBCOMMAND, hide = true)]
    ExecKeeper {
        /// The file that the command may write its result to
        result: PathBuf,
        /// The command
        command: std::ffi::OsString,
    },
    /// What is there on Linux only, so that whoever types it here learns that
    #[cfg(not(unix))]
    #[command(name = "serve", aliases = ["openapi", "export", "import", "check"], hide = true)]
    LinuxOnly {
        /// Whatever else was typed
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Make the fleet as a file describes it; may be repeated
    #[command(after_help = include_str!("args/help/fleet_apply.txt").trim_end())]
    Apply(Apply),
    /// Show what applying a file would add, change and remove, and which live events it would end
    #[command(after_help = include_str!("args/help/fleet_diff.txt").trim_end())]
    Diff {
        /// The file; - for standard input
        file: PathBuf,
        /// Also show what --prune would remove
        #[arg(long)]
        prune: bool,
        /// Say every ten seconds how far it has come, also where there is no terminal
        #[arg(long)]
        progress: bool,
    },
    /// Show scopes and how many VMs and events they have
    Show,
}

#[derive(Debug, clap::Args)]
pub struct Apply {
    /// The file; - for standard input
    pub file: PathBuf,
    /// Also remove what an earlier file made and this one does not name
    #[arg(long)]
    pub prune: bool,
    /// Only check the file
    #[arg(long, conflicts_with_all = ["dry_run", "yes"])]
    pub check: bool,
    /// Say every ten seconds how far it has come, also where there is no terminal
    #[arg(long)]
    pub progress: bool,
    /// Apply a file that describes no scopes: with --prune it removes everything that files have made
    #[arg(long)]
    pub allow_empty: bool,
    #[command(flatten)]
    pub confirmation: ConfirmArgs,
}

#[derive(Debug, Subcommand)]
pub enum Vm {
    /// List VMs
    List {
        /// Only those of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only those on this host
        #[arg(long)]
        host: Option<String>,
    },
    /// Show one VM
    Show {
        /// Its name, or as much of the end of its path as tells it from others
        vm: String,
    },
    /// Add a VM
    #[command(after_help = include_str!("args/help/vm_add.txt").trim_end())]
    Add {
        /// Its name
        name: String,
        /// Its scope: [[subscription/]group/]scope [default: a standalone one of its own name]
        #[arg(long)]
        scope: Option<String>,
        /// The kind to make the scope of, if there is none
        #[arg(long)]
        kind: Option<String>,
        /// Where it calls from; may be repeated
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
        /// Its capacity may be wanted back
        #[arg(long)]
        spot: bool,
    },
    /// Take a VM out of the inventory, at once and without an event
    #[command(
        after_help = "It shows which live events this affects and asks; without a terminal it needs --yes."
    )]
    Remove {
        vm: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Restart a VM: a Reboot event, started when approved or after its notice
    Restart(ScheduleVmArgs),
    /// Redeploy a VM
    Redeploy(ScheduleVmArgs),
    /// Evict a Spot VM: a Preempt event with 30 seconds' notice
    Evict {
        #[command(flatten)]
        act: ScheduleVmArgs,
        /// Evict it also if it is not a Spot VM
        #[arg(long)]
        force: bool,
    },
    /// Delete VMs: Terminate events, with the notice that their scope is set to give
    #[command(
        after_help = "It shows which live events this affects and asks; without a terminal it needs --yes."
    )]
    Delete {
        /// The VMs
        #[arg(required = true)]
        vms: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Say that an evicted VM runs again
    Start { vm: String },
}

#[derive(Debug, clap::Args)]
pub struct ScheduleVmArgs {
    /// Its name, or as much of the end of its path as tells it from others
    pub vm: String,
    #[command(flatten)]
    pub when: WhenArgs,
}

#[derive(Debug, Default, clap::Args)]
#[command(group = ArgGroup::new("when"))]
pub struct WhenArgs {
    /// Not before this time (RFC 3339) [default: the least notice; a restart or redeploy where no guest listens
    /// runs at once]
    #[arg(long, value_name = "TIME", value_parser = parse_time, group = "when")]
    pub not_before: Option<Timestamp>,
    /// Not before this long from now: 20m, 7d, 1h30m
    #[arg(long, value_name = "SPAN", value_parser = parse_duration, group = "when")]
    pub r#in: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub enum Host {
    /// List the hosts that VMs are on
    List,
    /// Show a host, its VMs and what is announced to them
    Show { host: String },
    /// Announce maintenance to the VMs of hosts: one operation for each host
    #[command(after_help = include_str!("args/help/host_maintain.txt").trim_end())]
    Maintain {
        /// What happens to the VMs
        #[arg(long, value_enum)]
        r#type: Maintenance,
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Say that hosts are expected to fail: their VMs will be redeployed, in 7 days unless said
    #[command(after_help = include_str!("args/help/host_degraded.txt").trim_end())]
    Degraded {
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Say that hosts have failed: their VMs are being restarted, now and without notice
    #[command(after_help = include_str!("args/help/host_failed.txt").trim_end())]
    Failed(Hosts),
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
    /// They are paused for some seconds
    Freeze,
    /// They are restarted, all at once
    Reboot,
    /// They are moved to other hosts, each by itself
    Redeploy,
    /// They are moved to other hosts while they run
    LiveMigration,
}

/// What guests are told.
#[derive(Debug, clap::Args)]
pub struct MessageArgs {
    /// What guests read, instead of the cause's usual words
    #[arg(long)]
    pub description: Option<String>,
    /// For how many seconds guests are told to expect to be interrupted; -1 for unknown
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub duration: Option<i32>,
}

/// Whether a person is asked first.
#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {
    /// Only show the plan
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Whether to stay until an operation is closed.
#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    /// Show how far it is until it is closed; Ctrl-C leaves it running
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Wait this long at most: 20m, 1h30m; then the exit code is 3
    #[arg(long, value_name = "SPAN", value_parser = parse_duration, requires = "wait")]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub enum Event {
    /// List what is announced or under way
    List {
        /// Only of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only what happens to this VM
        #[arg(long)]
        vm: Option<String>,
        /// Only `scheduled` or `started` ones
        #[arg(long)]
        status: Option<String>,
    },
    /// Show one event with its whole trail, also after it has ended
    Show {
        /// Its id, or the first digits of it
        event: String,
    },
    /// Announce an event to VMs
    #[command(after_help = include_str!("args/help/event_schedule.txt").trim_end())]
    Schedule {
        /// The VMs
        #[arg(required = true)]
        vms: Vec<String>,
        /// Freeze, Reboot, Redeploy, Preempt or Terminate
        #[arg(long, required_unless_present = "cause", conflicts_with = "cause")]
        r#type: Option<String>,
        /// The exact cause, instead of a type
        #[arg(long)]
        cause: Option<String>,
        #[command(flatten)]
        when: WhenArgs,
        #[command(flatten)]
        message: MessageArgs,
        /// With Preempt: evict VMs that are not Spot VMs, too
        #[arg(long)]
        force: bool,
    },
    /// Call an event off, before it has started
    Cancel { event: String },
    /// Approve an event in its guests' place
    Approve { event: String },
    /// Start an event now
    Start { event: String },
    /// Say that an event was carried out
    Complete {
        event: String,
        /// Where a redeployed VM is now; may be repeated
        #[arg(long, value_name = "VM=HOST", value_parser = parse_pair)]
        host: Vec<(String, String)>,
    },
    /// Try the commands of the exec driver anew that have failed, or wait to be tried again
    #[command(after_help = include_str!("args/help/event_retry.txt").trim_end())]
    Retry {
        /// Its id, or the first digits of it
        event: String,
    },
    /// List events that have ended, the oldest first
    #[command(after_help = include_str!("args/help/event_history.txt").trim_end())]
    History {
        /// Only those that ended this long ago or less, or since this time
        #[arg(long, value_name = "SPAN|TIME", value_parser = parse_ago, default_value = "24h")]
        since: Ago,
        /// Only those that ended longer ago than this, or before this time
        #[arg(long, value_name = "SPAN|TIME", value_parser = parse_ago)]
        until: Option<Ago>,
        /// Only of this scope
        #[arg(long)]
        scope: Option<String>,
        /// Only what happened to this VM: its id, its name, or the end of its path
        #[arg(long)]
        vm: Option<String>,
        /// Only what happened to VMs that were on this host
        #[arg(long)]
        host: Option<String>,
        /// Only Freeze, Reboot, Redeploy, Preempt or Terminate
        #[arg(long)]
        r#type: Option<String>,
        /// Only `completed` or `cancelled` ones
        #[arg(long)]
        outcome: Option<String>,
        /// The newest first
        #[arg(long)]
        newest: bool,
        /// So many at most
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Follow what happens, as it happens
    Watch {
        /// End after this many facts
        #[arg(long, value_name = "N", value_parser = parse_count)]
        count: Option<u64>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token; its secret is shown this once
    #[command(after_help = include_str!("args/help/token_create.txt").trim_end())]
    Create {
        /// Its name; the audit trail shows it
        name: String,
        /// operator, tenant or viewer
        #[arg(long, required_unless_present = "grant")]
        role: Option<String>,
        /// Where the role holds: subscription, subscription/group or subscription/group/scope, with all below it;
        /// / is everywhere; may be repeated
        #[arg(long, value_name = "PATH", requires = "role", value_parser = parse_path)]
        on: Vec<String>,
        /// A further role and where it holds; may be repeated
        #[arg(long, value_name = "ROLE:PATH", value_parser = parse_grant)]
        grant: Vec<(String, String)>,
        /// For how long it is good [default: until it is revoked]
        #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// List tokens: what each may do, and when it was last used since the service started
    List,
    /// Take a token back: it is refused from then on
    #[command(
        after_help = "At a terminal it shows what the token may do and asks; elsewhere it goes on without asking."
    )]
    Revoke {
        /// Its name
        name: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, Subcommand)]
pub enum Clock {
    /// Show what time it is by the service's clock, and whether that is trusted
    Show,
    /// Trust the clock as it is: what is due by it happens
    #[command(
        after_help = "Look at 'notbefore clock show' first. At a terminal it asks; elsewhere it goes on without asking."
    )]
    Accept {
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
}

#[derive(Debug, clap::Args)]
pub struct Audit {
    /// Only what happened this long ago or less
    #[arg(long, value_name = "SPAN", value_parser = parse_duration, default_value = "24h")]
    pub since: Duration,
    /// Only what happened longer ago than this
    #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
    pub until: Option<Duration>,
    /// Only what this one did or tried: the name of a token or VM, timer, service
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Only what was refused
    #[arg(long, conflicts_with = "changed")]
    pub refused: bool,
    /// Only what was changed
    #[arg(long)]
    pub changed: bool,
}

#[derive(Debug, Subcommand)]
pub enum Operation {
    /// List operations that are not closed
    List,
    /// Show an operation and its parts
    Show { operation: String },
    /// Call off whatever of an operation has not started
    #[command(
        after_help = "At a terminal it shows which events are called off and asks; elsewhere it goes on without asking."
    )]
    Cancel {
        operation: String,
        #[command(flatten)]
        confirmation: ConfirmArgs,
    },
    /// Start all events of operations now
    #[command(after_help = include_str!("args/help/operation_start.txt").trim_end())]
    Start {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
    },
    /// Say that all events of operations were carried out
    #[command(after_help = include_str!("args/help/operation_complete.txt").trim_end())]
    Complete {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
    },
    /// Show how far operations are until they are closed; Ctrl-C leaves them running
    #[command(after_help = include_str!("args/help/operation_wait.txt").trim_end())]
    Wait {
        /// The operations
        #[arg(required = true, value_name = "OPERATION")]
        operations: Vec<String>,
        /// Wait this long at most: 20m, 1h30m; then the exit code is 3
        #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
        timeout: Option<Duration>,
    },
}

/// Reads how many of something there are to be.
fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a number, 1 or more".to_owned())
}

fn parse_grant(text: &str) -> Result<(String, String), String> {
    let (role, path) = text.split_once(':').ok_or("write ROLE:PATH, as in tenant:acme/shop, or viewer:/")?;
    Ok((role.to_owned(), parse_path(path)?))
}

/// Nothing is not everywhere: it may be a variable that is not set.
fn parse_path(text: &str) -> Result<String, String> {
    let cure = "say where the role holds, as in acme/shop; / is everywhere";
    if text.is_empty() { Err(cure.to_owned()) } else { Ok(text.to_owned()) }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("write VM=HOST, as in web-0=h9")?;
    Ok((left.to_owned(), right.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_zero_is_refused_in_plain_words() {
        for words in [["event", "watch", "--count"].as_slice(), &["get", "--watch", "--count"]] {
            for wrong in ["0", "many"] {
                let typed = ["notbefore"].iter().chain(words).chain([&wrong]);
                let error = Args::try_parse_from(typed).unwrap_err().to_string();
                assert!(error.contains("must be a number, 1 or more"), "{words:?}: {error}");
            }
        }
    }
}
