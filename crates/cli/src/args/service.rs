//! What can be typed where the service runs, which is on Linux: `serve`, and the way out of and into its store.

use std::path::PathBuf;

use crate::config;

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The file; - for standard output [default: -]
    pub file: Option<PathBuf>,
    /// Leave out the operators' tokens (their hashes, and what they may do)
    #[arg(long)]
    pub without_tokens: bool,
    /// Read a damaged store itself, of a service that is stopped, and leave out what is damaged and what does not fit
    /// without it
    #[arg(long)]
    pub skip_damaged: bool,
}

#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file; - for standard input
    pub file: PathBuf,
    /// Only check the file
    #[arg(long)]
    pub check: bool,
}

/// The settings themselves are in `config/settings.rs`.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The configuration file; the environment and flags go before it [env: NOTBEFORE_CONFIG] [default:
    /// /etc/notbefore/notbefore.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Show every setting, its value and where that came from, and end
    #[arg(long)]
    pub print_config: bool,
    /// Look the configuration over and end
    #[arg(long, conflicts_with = "print_config")]
    pub check_config: bool,
    #[command(flatten)]
    pub settings: config::Flags,
}
