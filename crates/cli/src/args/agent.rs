//! What can be typed after `notbefore agent`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Agent {
    /// Run the agent until it is told to stop
    #[command(
        after_help = "Examples:\n  notbefore agent run\n  notbefore agent run --config agent.toml --dry-run --log debug\n\nStop it with Ctrl-C or SIGTERM: steps that run are ended, and the next agent goes on with\nthem. SIGHUP has it read its rules anew, for events to come. docs/agent.md has every key."
    )]
    Run(Run),
    /// Print a configuration to begin with
    Sample,
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
