//! Checks at the start: everything that would make the store useless later is an error with its cure now.
//!
//! The checks write nothing. [`crate::EtcdStore::claim`] then writes the *mark*, unless there is one: the key that equals the
//! prefix is the store's own. The mark says that the keys below are those of notbefore, and has an id, by which nodes
//! recognise their cluster in a restored backup. Its revision is that of the next compaction (see
//! [`crate::compaction`]). A prefix that has keys and no mark belongs to another program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use notbefore_store::Revision;
use tokio::time::timeout;

use crate::client::{AuthenticateError, Client, authenticate, end_of, from_etcd, to_etcd};
use crate::config::{Checked, ConfigError, Endpoint, EtcdConfig, EtcdUser};
use crate::connection::{CallMetadata, Connection, dial};
use crate::errors::{CallError, classify, is_local};
use crate::proto::{
    COMPARE_MOD_REVISION, Compare, Operation, PutRequest, RangeRequest, RequestOp, StatusRequest, TxnRequest,
};
use crate::tls::{TlsConfig, TlsError};
use crate::version::{is_too_old, version_warning};

/// Deadline for the first answer of an endpoint.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The value of a mark, before its id.
pub(crate) const MARK: &str =
    "notbefore: the keys below belong to notbefore; the revision of this key is the next compaction";
/// What every mark begins with.
const MARK_BEGIN: &[u8] = b"notbefore:";
/// What is between a mark and its id.
const MARK_ID: &str = "; id ";

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
    #[error(
        "etcd refuses user {user}: wrong name or password; correct --etcd-user or the content of --etcd-password-file, and see 'etcdctl user get {user}'"
    )]
    WrongPassword { user: String },
    #[error(
        "etcd requires authentication; set --etcd-user and --etcd-password-file, or --etcd-cert and --etcd-key with the user's name as the common name"
    )]
    UserRequired,
    #[error(
        "etcd does not let {user} {right} keys below {prefix}; grant it: etcdctl role grant-permission ROLE readwrite --prefix=true {prefix}"
    )]
    PermissionDenied { user: String, right: Right, prefix: String },
    #[error(
        "{prefix} in etcd holds keys, such as {key}, and no mark of notbefore: choose another prefix for notbefore; if the mark was deleted under running nodes, stop all nodes, remove the keys with 'etcdctl del --prefix {prefix}', and restore a backup"
    )]
    ForeignPrefix { prefix: String, key: String },
    #[error(
        "the etcd prefix {prefix} is inside {outer}, which belongs to another cluster of nodes: its nodes would read the keys of this one as their own. Choose a prefix outside, with --etcd-prefix; no prefix may begin with another one"
    )]
    NestedPrefix { prefix: String, outer: String },
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
    /// Whether nothing answers there: no process listens, the machine or the network is away, or a member waits for a leader
    /// at its start. An endpoint that refuses this connection has answered.
    pub is_away: bool,
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
            Self::NestedPrefix { .. } => "etcd_nested_prefix",
            Self::Failed(_) => "etcd_failed",
        }
    }

    /// Whether the same settings may work in a moment: etcd is away, or has no leader. An endpoint that is no etcd, or refuses
    /// this connection, is a wrong setting.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(failures) => failures.iter().any(|failure| failure.is_away),
            Self::Failed(_) => true,
            Self::Config(_)
            | Self::Tls(_)
            | Self::PasswordFile { .. }
            | Self::DifferentClusters { .. }
            | Self::TooOld { .. }
            | Self::WrongPassword { .. }
            | Self::UserRequired
            | Self::PermissionDenied { .. }
            | Self::ForeignPrefix { .. }
            | Self::NestedPrefix { .. } => false,
        }
    }
}

/// What the operator should know after a successful connect.
#[derive(Default)]
pub(crate) struct Warnings {
    /// They hold until something is changed: releases with faults, a user that is not used.
    pub lasting: Vec<String>,
    /// Endpoints that did not answer then. They may answer a moment later.
    pub unreachable: Vec<String>,
}

/// The mark as it was read.
#[derive(Default)]
pub(crate) struct Mark {
    /// None if there is no mark.
    revision: Option<Revision>,
    /// None if there is no mark, or one without an id.
    pub id: Option<String>,
}

/// Connects, and checks everything. Writes nothing.
pub(crate) async fn connect(config: &EtcdConfig) -> Result<(Arc<Client>, Warnings, Mark), ConnectError> {
    let config = Checked::new(config)?;
    let tls = config.tls.clone().map(TlsConfig::load).transpose()?;
    let greet = |endpoint| greet(endpoint, tls.as_ref(), config.user.as_ref(), &config.prefix);
    let greetings = join_all(config.endpoints.iter().map(greet)).await;

    let (mut warnings, mut failures) = (Vec::new(), Vec::new());
    let mut first: Option<(usize, u64)> = None;
    for (number, (endpoint, greeting)) in config.endpoints.iter().zip(greetings).enumerate() {
        let name = endpoint.text.clone();
        let Greeting { cluster_id, version } = match greeting {
            Ok(greeting) => greeting,
            Err(GreetError::Authenticate(error)) => return Err(authenticate_error(error)),
            Err(GreetError::Denied) => return Err(denied(&config, Right::Read)),
            Err(GreetError::UserRequired) => return Err(ConnectError::UserRequired),
            Err(GreetError::Failed(reason)) => {
                failures.push(EndpointFailure { endpoint: name, reason, is_away: false });
                continue;
            }
            Err(GreetError::Away(reason)) => {
                failures.push(EndpointFailure { endpoint: name, reason, is_away: true });
                continue;
            }
        };
        let warning = match version {
            Some(version) if is_too_old(&version) => {
                return Err(ConnectError::TooOld { endpoint: name, version });
            }
            Some(version) => version_warning(&version),
            None => Some(
                "etcd tells its version, size and alarms only to its root user; \
                 upgrade etcd to 3.5.32, 3.6.12 or later to see them"
                    .to_owned(),
            ),
        };
        warnings.extend(warning.filter(|warning| !warnings.contains(warning)));
        match first {
            Some((one, id)) if id != cluster_id => {
                let one = config.endpoints.get(one).map_or(String::new(), |one| one.text.clone());
                return Err(ConnectError::DifferentClusters { one: (one, id), other: (name, cluster_id) });
            }
            Some(_) => {}
            None => first = Some((number, cluster_id)),
        }
    }
    let Some((first, cluster_id)) = first else { return Err(ConnectError::Unreachable(failures)) };
    let unreachable =
        failures.iter().map(|failure| format!("an endpoint of etcd does not answer: {failure}"));
    let unreachable = unreachable.collect();

    let client = Arc::new(Client::new(config, tls, cluster_id, first));
    if let Some(user) = &client.config.user {
        let connection = client.open(first).await.map_err(ConnectError::Failed)?;
        if client.token(&connection).await.map_err(authenticate_error)?.is_none() {
            let name = &user.name;
            warnings.push(format!(
                "etcd has authentication switched off: user {name} is not used; run 'etcdctl auth enable'"
            ));
        }
    }
    client.check_rights().await?;
    client.check_outer_prefixes().await?;
    let mark = client.find_mark().await?;
    Ok((client, Warnings { lasting: warnings, unreachable }, mark))
}

/// What an endpoint says about itself.
struct Greeting {
    cluster_id: u64,
    /// None if etcd tells it only to its root user.
    version: Option<String>,
}

enum GreetError {
    Failed(String),
    Away(String),
    Denied,
    UserRequired,
    Authenticate(AuthenticateError),
}

async fn greet(
    endpoint: &Endpoint,
    tls: Option<&TlsConfig>,
    user: Option<&EtcdUser>,
    prefix: &str,
) -> Result<Greeting, GreetError> {
    let asking = async {
        let tcp = dial(endpoint).await.map_err(GreetError::Away)?;
        let connection = Connection::begin(tcp, endpoint, tls, 0).await.map_err(GreetError::Failed)?;
        let mut metadata = CallMetadata { token: None, timeout: Some(START_TIMEOUT) };
        let mut status = connection.call(StatusRequest {}, metadata.clone()).await;
        // Releases since 2026 tell the status only to a user, and some of them only to root.
        if let (Err(error), Some(user)) = (&status, user)
            && matches!(classify(error), CallError::Token(_) | CallError::Denied)
        {
            metadata.token = authenticate(&connection, user).await.map_err(GreetError::Authenticate)?;
            status = connection.call(StatusRequest {}, metadata.clone()).await;
        }
        let error = match status {
            Ok(status) => {
                let cluster_id = status.header.map_or(0, |header| header.cluster_id);
                return Ok(Greeting { cluster_id, version: Some(status.version) });
            }
            Err(error) => error,
        };
        if !is_local(&error) {
            match classify(&error) {
                CallError::Denied | CallError::Token(_) => {}
                error @ (CallError::NotSent(_)
                | CallError::Refused(_)
                | CallError::Compacted
                | CallError::FutureRevision
                | CallError::ResponseTooLarge(_)
                | CallError::Unknown(_)
                | CallError::Identity(_)) => {
                    let reason = format!("it is not etcd, or not its port for clients ({error})");
                    return Err(GreetError::Failed(reason));
                }
            }
            return greet_by_read(&connection, metadata, prefix).await;
        }
        let reason = connection.why_lost(&error).await;
        Err(GreetError::Failed(match endpoint.tls_name {
            Some(_) => reason,
            // A server with TLS answers with an alert, a web server with HTTP/1.1.
            None => format!("it does not speak gRPC; write https if it has TLS ({reason})"),
        }))
    };
    timeout(START_TIMEOUT, asking).await.unwrap_or_else(|_elapsed| {
        Err(GreetError::Away(format!("no answer within {} s", START_TIMEOUT.as_secs())))
    })
}

/// The cluster's id from the header of a read, which every user may make below its prefix.
async fn greet_by_read(
    connection: &Connection,
    metadata: CallMetadata,
    prefix: &str,
) -> Result<Greeting, GreetError> {
    let key = Bytes::copy_from_slice(prefix.as_bytes());
    let request = RangeRequest { key, keys_only: true, ..RangeRequest::default() };
    match connection.call(request, metadata).await {
        Ok(response) => {
            let cluster_id = response.header.map_or(0, |header| header.cluster_id);
            Ok(Greeting { cluster_id, version: None })
        }
        Err(status) => Err(match classify(&status) {
            CallError::Denied => GreetError::Denied,
            CallError::Token(_) => GreetError::UserRequired,
            error @ (CallError::NotSent(_)
            | CallError::Refused(_)
            | CallError::Compacted
            | CallError::FutureRevision
            | CallError::ResponseTooLarge(_)
            | CallError::Unknown(_)
            | CallError::Identity(_)) => GreetError::Failed(error.to_string()),
        }),
    }
}

/// The prefixes with which a prefix begins, the longest first, without itself. A prefix ends with a slash and has a name.
fn outer_prefixes(prefix: &str) -> impl Iterator<Item = &str> {
    let ends = prefix.match_indices('/').map(|(at, slash)| at + slash.len());
    let outer = ends.rev().filter_map(|end| prefix.get(..end)).skip(1);
    outer.filter(|outer| outer.chars().any(|character| character != '/'))
}

fn denied(config: &Checked, right: Right) -> ConnectError {
    let user = match &config.user {
        Some(user) => format!("user {}", user.name),
        None => "the user of the client certificate".to_owned(),
    };
    ConnectError::PermissionDenied { user, right, prefix: config.prefix.clone() }
}

fn authenticate_error(error: AuthenticateError) -> ConnectError {
    match error {
        AuthenticateError::WrongPassword { user } => ConnectError::WrongPassword { user },
        AuthenticateError::PasswordFile { path, error } => ConnectError::PasswordFile { path, error },
        error @ AuthenticateError::Failed(_) => ConnectError::Failed(error.to_string()),
    }
}

impl Client {
    fn check_error(&self, error: CallError, right: Right) -> ConnectError {
        match error {
            CallError::Denied => denied(&self.config, right),
            CallError::Token(_) if self.config.user.is_none() => ConnectError::UserRequired,
            error @ (CallError::NotSent(_)
            | CallError::Refused(_)
            | CallError::Token(_)
            | CallError::Compacted
            | CallError::FutureRevision
            | CallError::ResponseTooLarge(_)
            | CallError::Unknown(_)
            | CallError::Identity(_)) => ConnectError::Failed(error.to_string()),
        }
    }

    /// Checks that the node may read and write below the prefix, without a write.
    async fn check_rights(&self) -> Result<(), ConnectError> {
        let key = self.key("");
        let all = RangeRequest {
            key: key.clone(),
            range_end: end_of(&key),
            limit: 1,
            keys_only: true,
            ..RangeRequest::default()
        };
        self.read(all.clone()).await.map_err(|error| self.check_error(error, Right::Read))?;
        // etcd checks the rights for both branches, and no key has this revision.
        let never = Compare {
            result: 0,
            target: COMPARE_MOD_REVISION,
            key: key.clone(),
            mod_revision: Some(i64::MAX),
        };
        let put = PutRequest { key, value: Bytes::new() };
        let request = TxnRequest {
            compare: vec![never],
            success: vec![RequestOp { operation: Some(Operation::Put(put)) }],
            failure: vec![RequestOp { operation: Some(Operation::Range(all)) }],
        };
        match self.call(&self.writes, request).await {
            Ok(_) => Ok(()),
            // A full database can be read; the status says what is wrong.
            Err(CallError::Unknown(text)) if text.contains("database space exceeded") => Ok(()),
            Err(error) => Err(self.check_error(error, Right::Write)),
        }
    }

    /// Checks that no other cluster of nodes has a prefix with which this one begins. Its user may have no right to read
    /// there, as in a cell with a user of its own: then its operator has to know.
    async fn check_outer_prefixes(&self) -> Result<(), ConnectError> {
        for outer in outer_prefixes(&self.config.prefix) {
            let key = Bytes::copy_from_slice(outer.as_bytes());
            match self.read(RangeRequest { key, ..RangeRequest::default() }).await {
                Ok(response) => {
                    if response.kvs.iter().any(|kv| kv.value.starts_with(MARK_BEGIN)) {
                        let (prefix, outer) = (self.config.prefix.clone(), outer.to_owned());
                        return Err(ConnectError::NestedPrefix { prefix, outer });
                    }
                }
                Err(CallError::Denied) => tracing::info!(
                    prefix = self.config.prefix,
                    "not checked whether {outer} in etcd belongs to another cluster of nodes: this node's user may not read it"
                ),
                Err(error) => return Err(self.check_error(error, Right::Read)),
            }
        }
        Ok(())
    }

    /// Reads the mark. Fails if the prefix belongs to another program.
    async fn find_mark(&self) -> Result<Mark, ConnectError> {
        let key = self.key("");
        let request = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let response = self.read(request).await.map_err(|error| self.check_error(error, Right::Read))?;
        let foreign = |key: &[u8]| ConnectError::ForeignPrefix {
            prefix: self.config.prefix.clone(),
            key: String::from_utf8_lossy(key).into_owned(),
        };
        if let Some(kv) = response.kvs.first() {
            if !kv.value.starts_with(MARK_BEGIN) {
                return Err(foreign(&kv.key));
            }
            let text = str::from_utf8(&kv.value).unwrap_or_default();
            let id = text.rsplit_once(MARK_ID).map(|(_, id)| id.to_owned());
            return Ok(Mark { revision: Some(from_etcd(kv.mod_revision)), id });
        }
        let below = RangeRequest {
            range_end: end_of(&key),
            key,
            limit: 1,
            keys_only: true,
            ..RangeRequest::default()
        };
        let below = self.read(below).await.map_err(|error| self.check_error(error, Right::Read))?;
        // The mark itself, if another node has just written it.
        match below.kvs.first().filter(|kv| kv.key != self.config.prefix.as_bytes()) {
            Some(kv) => Err(foreign(&kv.key)),
            None => Ok(Mark::default()),
        }
    }

    /// Writes the mark if the prefix is unused, and returns its id. Fails if the prefix belongs to another program.
    pub(crate) async fn claim_prefix(&self, new_id: &str) -> Result<String, ConnectError> {
        // Two nodes may start at once: the second one finds the mark in the second round.
        for _ in 0..2 {
            let Mark { revision, id } = self.find_mark().await?;
            if let Some(id) = id {
                return Ok(id);
            }
            let value = Bytes::from(format!("{MARK}{MARK_ID}{new_id}"));
            self.write_mark(revision, value).await.map_err(|error| self.check_error(error, Right::Write))?;
        }
        Err(ConnectError::Failed(format!("the key {} is deleted again and again", self.config.prefix)))
    }

    /// Writes the mark if it still has this revision. Returns whether it did.
    pub(crate) async fn write_mark(&self, from: Option<Revision>, value: Bytes) -> Result<bool, CallError> {
        let compare = Compare {
            result: 0,
            target: COMPARE_MOD_REVISION,
            key: self.key(""),
            mod_revision: Some(from.map_or(0, to_etcd)),
        };
        let put = PutRequest { key: self.key(""), value };
        let success = vec![RequestOp { operation: Some(Operation::Put(put)) }];
        let request = TxnRequest { compare: vec![compare], success, failure: Vec::new() };
        Ok(self.call(&self.writes, request).await?.succeeded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_prefixes_are_those_that_another_cluster_may_have() {
        for (prefix, expected) in [
            ("/notbefore/", &[][..]),
            ("cells/", &[]),
            ("//a/", &[]),
            ("/cells/east/", &["/cells/"]),
            ("/a/b//c/", &["/a/b//", "/a/b/", "/a/"]),
            ("a/b/", &["a/"]),
        ] {
            assert_eq!(outer_prefixes(prefix).collect::<Vec<_>>(), expected, "{prefix}");
        }
    }
}
