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
    #[command(flatten)]
    pub etcd: EtcdArgs,
}

/// How to reach etcd, as for `serve`.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct EtcdArgs {
    /// Client URLs of etcd's members, instead of a data directory
    #[arg(long, value_name = "URL", value_delimiter = ',', env = "NOTBEFORE_ETCD_ENDPOINTS")]
    pub etcd: Vec<String>,
    /// Key in etcd below which everything is stored
    #[arg(
        long, value_name = "PREFIX", env = "NOTBEFORE_ETCD_PREFIX", default_value = notbefore_etcd::DEFAULT_PREFIX,
        requires = "etcd"
    )]
    pub etcd_prefix: String,
    /// Certificates of the authority of etcd's certificates (PEM)
    #[arg(long, value_name = "FILE", env = "NOTBEFORE_ETCD_CA", requires = "etcd")]
    pub etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", env = "NOTBEFORE_ETCD_CERT", requires = "etcd")]
    pub etcd_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "NOTBEFORE_ETCD_KEY", requires = "etcd")]
    pub etcd_key: Option<PathBuf>,
    /// User of etcd
    #[arg(long, value_name = "NAME", env = "NOTBEFORE_ETCD_USER", requires = "etcd")]
    pub etcd_user: Option<String>,
    /// File with the user's password
    #[arg(long, value_name = "FILE", env = "NOTBEFORE_ETCD_PASSWORD_FILE", requires = "etcd")]
    pub etcd_password_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct TokenInit {
    /// The new file for the token's secret; it must not exist
    pub file: PathBuf,
    #[command(flatten)]
    pub etcd: EtcdArgs,
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
