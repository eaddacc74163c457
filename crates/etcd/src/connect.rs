//! Checks at the start.

use std::path::PathBuf;

use crate::config::ConfigError;
use crate::tls::TlsError;

/// Why the node cannot use etcd.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot read the password of etcd's user from {path}: {error}")]
    PasswordFile { path: PathBuf, error: String },
    /// Why, for each endpoint.
    #[error("no endpoint of etcd answers: {}", list(.0))]
    Unreachable(Vec<EndpointFailure>),
    #[error(
        "endpoints {} and {} belong to different etcd clusters ({:x} and {:x}); name the members of one", one.0, other.0, one.1, other.1
    )]
    DifferentClusters { one: (String, u64), other: (String, u64) },
    #[error("etcd at {endpoint} has version {version}; use 3.4 or later")]
    TooOld { endpoint: String, version: String },
    #[error("etcd refuses user {user}: wrong name or password; check both, and 'etcdctl user get {user}'")]
    WrongPassword { user: String },
    #[error(
        "etcd requires authentication; name a user and its password, or a client certificate with the user's name"
    )]
    UserRequired,
    #[error(
        "etcd does not let {user} {right} keys below {prefix}; grant it: etcdctl role grant-permission ROLE readwrite --prefix=true {prefix}"
    )]
    PermissionDenied { user: String, right: Right, prefix: String },
    #[error(
        "{prefix} in etcd holds keys of another program, such as {key}; choose another prefix for notbefore"
    )]
    ForeignPrefix { prefix: String, key: String },
    /// etcd answered, but not the question.
    #[error("etcd cannot be used: {0}")]
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    Read,
    Write,
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{endpoint}: {reason}")]
pub struct EndpointFailure {
    pub endpoint: String,
    /// With the cure, where one is known.
    pub reason: String,
}

fn list(failures: &[EndpointFailure]) -> String {
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    failures.join("; ")
}

impl ConnectError {
    /// Stable, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(_) => "etcd_config",
            Self::Tls(_) => "etcd_tls",
            Self::PasswordFile { .. } => "etcd_password_file",
            Self::Unreachable(_) => "etcd_unreachable",
            Self::DifferentClusters { .. } => "etcd_different_clusters",
            Self::TooOld { .. } => "etcd_too_old",
            Self::WrongPassword { .. } => "etcd_wrong_password",
            Self::UserRequired => "etcd_user_required",
            Self::PermissionDenied { .. } => "etcd_permission_denied",
            Self::ForeignPrefix { .. } => "etcd_foreign_prefix",
            Self::Failed(_) => "etcd_failed",
        }
    }

    /// Whether the same settings may work later: etcd is not up yet, or has no leader.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Failed(_) => true,
            Self::Config(_)
            | Self::Tls(_)
            | Self::PasswordFile { .. }
            | Self::DifferentClusters { .. }
            | Self::TooOld { .. }
            | Self::WrongPassword { .. }
            | Self::UserRequired
            | Self::PermissionDenied { .. }
            | Self::ForeignPrefix { .. } => false,
        }
    }
}
