//! What can be typed after `notbefore agent`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Agent {
    /// Run the agent until it is told to stop
    #[command(after_help = include_str!("help/agent_run.txt").trim_end())]
    Run(Run),
    /// Look over the configuration, its hooks and the platform, without an event
    #[command(after_help = include_str!("help/agent_check.txt").trim_end())]
    Check(Check),
    /// Show what the agent handles, and how far it is
    #[command(after_help = include_str!("help/agent_status.txt").trim_end())]
    Status(Status),
    /// Print a configuration to begin with
    Sample,
    /// Make the agent a service of Windows, or bring the one that is there up to date
    #[cfg_attr(not(windows), command(hide = true))]
    #[command(after_help = include_str!("help/agent_install.txt").trim_end())]
    Install(Install),
    /// Stop the service of Windows and take it away; its configuration and journal stay
    #[cfg_attr(not(windows), command(hide = true))]
    Uninstall,
    /// Run as the service that Windows has started, which alone calls this
    #[cfg(windows)]
    #[command(hide = true)]
    Service(Settings),
}

#[derive(Debug, clap::Args)]
#[cfg_attr(
    not(windows),
    allow(dead_code, reason = "there is no such service elsewhere, and the answer is always the same")
)]
pub struct Install {
    #[command(flatten)]
    pub settings: Settings,
    /// Have Windows start it some minutes after the others; events that come before are not prepared for
    #[arg(long)]
    pub delayed: bool,
}

#[derive(Debug, clap::Args)]
pub struct Check {
    #[command(flatten)]
    pub settings: Settings,
    /// Leave the platform out; with --run, the VM's name is then its host name
    #[arg(long)]
    pub offline: bool,
    /// Run the steps of this rule for real, once each, as if an event had come; it asks first (with --dry-run they
    /// are only told)
    #[arg(long, value_name = "RULE")]
    pub run: Option<String>,
    /// With --run: the event's type [default: the first that the rule names, or Reboot]
    #[arg(long, requires = "run", value_name = "TYPE")]
    pub r#type: Option<String>,
    /// With --run: which steps
    #[arg(long, requires = "run", value_enum, default_value_t = RunStage::Both)]
    pub stage: RunStage,
    /// With --run: do not ask
    #[arg(long, short, requires = "run")]
    pub yes: bool,
}

/// What says where an agent is, and no more.
#[derive(Clone, Debug, clap::Args)]
pub struct Status {
    /// The agent's configuration file, if it can be read [env: NOTBEFORE_AGENT_CONFIG] [default:
    /// /etc/notbefore/agent.toml, on Windows %ProgramData%\notbefore\agent.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the agent serves its signals [env: NOTBEFORE_AGENT_LISTEN] [default: what the file says, else
    /// 127.0.0.1:9256]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The directory of its journal, for when it does not run [env: NOTBEFORE_AGENT_STATE]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunStage {
    /// Those before the event
    Before,
    /// Those after it
    After,
    /// One after the other
    Both,
}

#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    pub settings: Settings,
    /// How the log is written, to standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// An object for each line
    Json,
}

/// The settings that may be said by a flag; each goes before its variable, and that before the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Settings {
    /// The configuration file [env: NOTBEFORE_AGENT_CONFIG] [default: /etc/notbefore/agent.toml, on Windows
    /// %ProgramData%\notbefore\agent.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the platform answers [env: NOTBEFORE_AGENT_ENDPOINT] [default: found by itself]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// This VM's name [env: NOTBEFORE_AGENT_NAME] [default: what instance metadata says, else the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The newest api-version to ask for [env: NOTBEFORE_AGENT_API_VERSION] [default: 2020-07-01]
    #[arg(long, value_name = "DATE")]
    pub api_version: Option<String>,
    /// The directory of the journal, on a disk that survives the event [env: NOTBEFORE_AGENT_STATE]
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
    /// Where signals are served, or `none` [env: NOTBEFORE_AGENT_LISTEN] [default: 127.0.0.1:9256]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Only tell what would be done [env: NOTBEFORE_AGENT_DRY_RUN]
    #[arg(long)]
    pub dry_run: bool,
    /// What is logged: a level, or levels by module [env: NOTBEFORE_AGENT_LOG] [default: info]
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}
