//! Arguments of `notbefore agent` and its subcommands.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Agent {
    /// Run the agent until it is stopped
    #[command(after_help = include_str!("help/agent_run.txt").trim_end())]
    Run(Run),
    /// Check the configuration, its hooks and the connection to the platform
    #[command(after_help = include_str!("help/agent_check.txt").trim_end())]
    Check(Check),
    /// Show the events that the agent handles and their progress
    #[command(after_help = include_str!("help/agent_status.txt").trim_end())]
    Status(Status),
    /// Show the last 100 events: what the agent did, when, and how it ended
    #[command(after_help = include_str!("help/agent_history.txt").trim_end())]
    History(History),
    /// Make the running agent read its configuration again, and print the result
    #[command(after_help = include_str!("help/agent_reload.txt").trim_end())]
    Reload(StateDir),
    /// Retry the failed step or approval of an event, and wait for the outcome
    #[command(after_help = include_str!("help/agent_retry.txt").trim_end())]
    Retry(Retry),
    /// Print a sample configuration
    Sample,
    /// Install or update the agent as a Windows service
    #[cfg_attr(not(windows), command(hide = true))]
    #[command(after_help = include_str!("help/agent_install.txt").trim_end())]
    Install(Install),
    /// Stop and remove the Windows service; configuration and journal stay
    #[cfg_attr(not(windows), command(hide = true))]
    Uninstall,
    /// Entry point of the Windows service; only the service control manager runs this
    #[cfg(windows)]
    #[command(hide = true)]
    Service(Settings),
}

#[derive(Debug, clap::Args)]
#[cfg_attr(
    not(windows),
    allow(dead_code, reason = "the command fails with the same message on other platforms")
)]
pub struct Install {
    #[command(flatten)]
    pub settings: Settings,
    /// Delayed start: Windows starts it some minutes after boot; earlier events are not handled
    #[arg(long)]
    pub delayed: bool,
}

#[derive(Debug, clap::Args)]
pub struct Check {
    #[command(flatten)]
    pub settings: Settings,
    /// Do not contact the platform; with --run, the VM's name is its host name
    #[arg(long)]
    pub offline: bool,
    /// Run the steps of this rule once each, as for an event, after confirmation (with --dry-run they are only
    /// printed)
    #[arg(long, value_name = "RULE")]
    pub run: Option<String>,
    /// With --run: the event's type [default: the rule's first type, or Reboot]
    #[arg(long, requires = "run", value_name = "TYPE")]
    pub r#type: Option<String>,
    /// With --run: the steps to run
    #[arg(long, requires = "run", value_enum, default_value_t = RunStage::Both)]
    pub stage: RunStage,
    /// With --run: do not ask for confirmation
    #[arg(long, short, requires = "run")]
    pub yes: bool,
}

/// The settings needed to find a running agent or its journal.
#[derive(Clone, Debug, clap::Args)]
pub struct Status {
    /// Configuration file of the agent, if readable [env: NOTBEFORE_AGENT_CONFIG] [default:
    /// /etc/notbefore/agent.toml, on Windows %ProgramData%\notbefore\agent.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Listen address of the agent's signals [env: NOTBEFORE_AGENT_LISTEN] [default: from the file, else
    /// 127.0.0.1:9256]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Journal directory, read if the agent is not running [env: NOTBEFORE_AGENT_STATE]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
}

/// The settings needed to find the state directory of an agent.
#[derive(Clone, Debug, clap::Args)]
pub struct StateDir {
    /// Configuration file of the agent, for its state directory [env: NOTBEFORE_AGENT_CONFIG] [default:
    /// /etc/notbefore/agent.toml, on Windows %ProgramData%\notbefore\agent.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State directory of the agent [env: NOTBEFORE_AGENT_STATE]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct History {
    /// Show all facts of this event: its id, or the first digits
    // Completion finds the kind of names by the argument's id.
    #[arg(id = "agent-past-event", value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub dir: StateDir,
}

#[derive(Clone, Debug, clap::Args)]
pub struct Retry {
    /// Event id, or its first digits
    #[arg(id = "agent-event", value_name = "EVENT")]
    pub event: String,
    /// Do not wait for the outcome
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub dir: StateDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunStage {
    /// Steps before the event
    Before,
    /// Steps after the event
    After,
    /// Steps before, then steps after
    Both,
}

#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    pub settings: Settings,
}

/// Agent settings with a flag. A flag overrides the environment variable, which overrides the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Settings {
    /// Configuration file [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows
    /// %ProgramData%\notbefore\agent.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// URL of the platform's metadata endpoint [env: NOTBEFORE_AGENT_ENDPOINT] [default: discovered]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// This VM's name [env: NOTBEFORE_AGENT_NAME] [default: from instance metadata, else the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Newest api-version to request [env: NOTBEFORE_AGENT_API_VERSION] [default: 2020-07-01]
    #[arg(long, value_name = "DATE")]
    pub api_version: Option<String>,
    /// Journal directory, on a disk that survives the event [env: NOTBEFORE_AGENT_STATE]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
    /// Listen address of the signals, or `none` [env: NOTBEFORE_AGENT_LISTEN] [default: 127.0.0.1:9256]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Log the actions without running them [env: NOTBEFORE_AGENT_DRY_RUN]
    #[arg(long)]
    pub dry_run: bool,
    /// Log filter: a level, or levels per module [env: NOTBEFORE_AGENT_LOG] [default: info]
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Log format, on standard error: `text`, or `json` for one object per line [env: NOTBEFORE_AGENT_LOG_FORMAT]
    /// [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}
