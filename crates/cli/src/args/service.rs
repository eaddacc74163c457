//! Arguments of the commands that run the service or read its store, on Unix only: `serve`, `export`, `import`.

use std::path::PathBuf;

use crate::config;

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The file; - for standard output [default: -]
    pub file: Option<PathBuf>,
    /// Leave out operator tokens (their hashes and roles)
    #[arg(long)]
    pub without_tokens: bool,
    /// Read the store of a stopped service directly; skip damaged records and records that depend on them
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
    /// Configuration file (environment variables and flags override it) [env: NOTBEFORE_CONFIG] [default:
    /// /etc/notbefore/notbefore.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print every setting with its value and source, and exit
    #[arg(long)]
    pub print_config: bool,
    /// Check the configuration and exit
    #[arg(long, conflicts_with = "print_config")]
    pub check_config: bool,
    /// Run in memory with a small fleet, guests that poll and approve, and events, to try the console; on free ports if
    /// the usual ones are taken. Reads no configuration file; takes only --guest, --operator, --ready-file and
    /// --log-format
    #[arg(long, conflicts_with_all = ["print_config", "check_config"])]
    pub demo: bool,
    #[command(flatten)]
    pub settings: config::Flags,
}
