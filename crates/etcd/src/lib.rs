//! The store on a shared etcd cluster (API version 3), for several nodes.
//!
//! [`EtcdStore::connect`] checks settings, certificates, password, rights, versions and the prefix, and refuses with the
//! cure. After that, [`EtcdStore`] is a [`Store`]: records are keys below the prefix, and a record's revision is etcd's
//! `mod_revision`. Other programs may use the same etcd, so revisions have gaps. [`EtcdStore::claim`] must precede the first
//! commit: a prefix with records and no mark is refused at the next start.
//!
//! | file | contents |
//! |---|---|
//! | `config` | settings, and what is wrong with them |
//! | `connect` | checks at the start, and the mark of the prefix |
//! | `client`, `lane`, `connection`, `tls`, `alert`, `codec` | calls: deadlines, token, rotation of endpoints, HTTP/2, certificates |
//! | `log_turns` | lines of the log that would repeat |
//! | `errors` | which failures are refusals, and which leave the outcome open |
//! | `identity` | detects another cluster and a restored backup |
//! | `commit`, `snapshot`, `watch` | the store |
//! | `compaction`, `status`, `version` | upkeep |
//! | `proto` | etcd's messages, by hand: no code generator and no `protoc` |
//!
//! # Rules
//!
//! - No write is sent twice, by any layer. A repeated transaction would report a conflict with itself.
//! - A failure is a refusal only if etcd did nothing for certain. Otherwise the outcome is unknown.
//! - No leases, no sort orders, no nested transactions, no trust in progress notices.
//! - Every call has a deadline of 5 s, with the time to connect.
//!
//! # What the service must do
//!
//! - Stop the process when [`EtcdStore::wait_for_identity_change`] returns: etcd was restored or replaced, and all that the
//!   node has loaded may be wrong. From then on every commit is refused, every read fails, and no watch opens.
//! - Open a watch again when it ends with [`WatchError::Closed`] or when it stalls. Each new watch uses the next endpoint.
//! - Call [`EtcdStore::compact_if_due`] every minute on every node, unless the operator compacts.
//!
//! # Rights
//!
//! With authentication, the user needs a role with `readwrite` on the prefix:
//! `etcdctl role grant-permission ROLE readwrite --prefix=true /notbefore/`. The rest depends on the release:
//!
//! | call | only for root | without it |
//! |---|---|---|
//! | compact | since 3.4.42, 3.5.28, 3.6.9 | [`CompactError::Denied`]: let etcd compact by itself |
//! | status | since 3.4.42; 3.5.28 to 3.5.31; 3.6.0 to 3.6.11 | [`MemberState::Denied`], and no check of the version |
//! | alarms | 3.4.42, 3.5.28, 3.6.9 | none are shown |
//! | members | 3.5.28, 3.6.9 | none are shown |

mod alert;
mod client;
mod codec;
mod commit;
mod compaction;
mod config;
mod connect;
mod connection;
mod errors;
mod identity;
mod lane;
mod log_turns;
mod proto;
mod snapshot;
mod status;
mod tls;
mod version;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use notbefore_store::{Outcome, ReadError, Revision, Snapshot, Store, Txn, Watch, WatchError};
use tokio::task::AbortHandle;

use crate::client::Client;

pub use compaction::{COMPACT_EVERY, CompactError, CompactionStep, Compactor};
pub use config::{
    ClientCertificateFiles, ConfigError, DEFAULT_PREFIX, DEFAULT_QUOTA_BYTES, ENDPOINTS_MAX, EtcdConfig,
    EtcdTlsFiles, EtcdUser, PREFIX_BYTES_MAX, Password,
};
pub use connect::{ConnectError, EndpointFailure, Right};
pub use identity::IdentityChange;
pub use status::{Alarm, AlarmKind, EndpointStatus, EtcdStatus, Member, MemberState, MemberStatus};
pub use tls::TlsError;
pub use version::version_warning;

/// Interval of renewals of the token. etcd's default lifetime is 5 min; a token that expires costs one refused commit.
const RENEW_TOKEN_EVERY: Duration = Duration::from_secs(2 * 60);

/// A store on etcd. Clones share connections.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<Client>,
    warnings: connect::Warnings,
    /// The id of the mark when the store connected.
    mark_id: Option<String>,
    /// The task that renews the token.
    renewal: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl EtcdStore {
    /// Connects, and checks everything that would make the store useless later. Writes nothing. Takes some milliseconds,
    /// and at most a minute if etcd does not answer.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let (client, warnings, mark) = connect::connect(config).await?;
        let renewing = Arc::clone(&client);
        let renewal = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEW_TOKEN_EVERY).await;
                renewing.renew_token().await;
            }
        });
        let renewal = renewal.abort_handle();
        Ok(Self { inner: Arc::new(Inner { client, warnings, mark_id: mark.id, renewal }) })
    }

    /// Marks the prefix as that of notbefore, unless it is marked. Returns the id of the mark; `new_id` is for a new one.
    pub async fn claim(&self, new_id: &str) -> Result<String, ConnectError> {
        self.inner.client.claim_prefix(new_id).await
    }

    /// The id of the mark at [`Self::connect`]; none if the prefix had no mark. A backup of etcd holds it, too.
    pub fn mark_id(&self) -> Option<&str> {
        self.inner.mark_id.as_deref()
    }

    pub fn prefix(&self) -> &str {
        &self.inner.client.config.prefix
    }

    /// What the operator should know as long as the process runs: releases with faults, a user that is not used.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings.lasting
    }

    /// Endpoints that did not answer at [`Self::connect`]. [`Self::status`] says which do now.
    pub fn unreachable_at_start(&self) -> &[String] {
        &self.inner.warnings.unreachable
    }

    pub fn cluster_id(&self) -> u64 {
        self.inner.client.identity.cluster_id()
    }

    /// Asks all endpoints, over connections of their own. Takes at most some 3 s.
    pub async fn status(&self) -> EtcdStatus {
        self.inner.client.status().await
    }

    /// Set once etcd is not the store any more that this node has loaded. Every call is refused from then on.
    pub fn identity_changed(&self) -> Option<IdentityChange> {
        self.inner.client.identity.changed()
    }

    /// Waits for [`Self::identity_changed`]. The service stops when this returns.
    pub async fn wait_for_identity_change(&self) -> IdentityChange {
        self.inner.client.identity.wait().await
    }

    /// Drops the history up to a revision. Succeeds if another client has compacted more.
    pub async fn compact(&self, up_to: Revision) -> Result<(), CompactError> {
        self.inner.client.compact(up_to).await
    }

    /// One turn of the agreed compaction. Call it every minute, on every node; `now` is of a clock that never goes back.
    /// Returns the revision up to which this call compacted.
    pub async fn compact_if_due(
        &self,
        compactor: &mut Compactor,
        now: Duration,
    ) -> Result<Option<Revision>, CompactError> {
        self.inner.client.compact_if_due(compactor, now).await
    }
}

/// `commit_all` is the trait's: one transaction after the other, since etcd orders concurrent ones as it likes. Callers that
/// want many in flight call `commit` concurrently; `commit_batch_max` is 1, so the engine's runtime does.
#[async_trait]
impl Store for EtcdStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(self.inner.client.snapshot().await?))
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        self.inner.client.commit(txn).await
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(self.inner.client.watch(after).await?))
    }
}
