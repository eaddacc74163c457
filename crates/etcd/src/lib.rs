//! The store on a shared etcd cluster (API version 3), for several nodes.

mod compaction;
mod config;
mod connect;
mod identity;
mod proto;
mod status;
mod tls;
mod version;

use std::time::Duration;

use async_trait::async_trait;
use notbefore_store::{Outcome, ReadError, Revision, Snapshot, Store, Txn, Watch, WatchError};

pub use compaction::{COMPACT_EVERY, CompactError, CompactionStep, Compactor};
pub use config::{
    ClientCertificateFiles, ConfigError, DEFAULT_PREFIX, ENDPOINTS_MAX, EtcdConfig, EtcdTlsFiles, EtcdUser,
    PREFIX_BYTES_MAX, Password,
};
pub use connect::{ConnectError, EndpointFailure, Right};
pub use identity::IdentityChange;
pub use status::{Alarm, AlarmKind, EndpointStatus, EtcdStatus, Member, MemberState, MemberStatus};
pub use tls::TlsError;
pub use version::version_warning;

/// A store on etcd. Clones share connections.
#[derive(Clone)]
pub struct EtcdStore {}

impl EtcdStore {
    /// Connects, and checks everything that would make the store useless later.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, ConnectError> {
        config.check()?;
        todo!()
    }

    /// What the operator should know after a successful [`Self::connect`]: endpoints that do not answer, releases with
    /// faults, a password that nobody asks for.
    pub fn warnings(&self) -> &[String] {
        todo!()
    }

    pub fn cluster_id(&self) -> u64 {
        todo!()
    }

    /// Asks all endpoints. Bounded: an endpoint that does not answer takes 2 s.
    pub async fn status(&self) -> EtcdStatus {
        todo!()
    }

    /// Set once etcd is not the store any more that this node has loaded. Every call is refused from then on.
    pub fn identity_changed(&self) -> Option<IdentityChange> {
        todo!()
    }

    /// Waits for [`Self::identity_changed`]. The service stops when this returns.
    pub async fn wait_for_identity_change(&self) -> IdentityChange {
        todo!()
    }

    /// Drops the history up to a revision. Succeeds if another client has compacted more.
    pub async fn compact(&self, _up_to: Revision) -> Result<(), CompactError> {
        todo!()
    }

    /// One turn of the agreed compaction. Call it every minute, on every node; `now` is monotonic. Returns the
    /// revision up to which this call compacted.
    pub async fn compact_if_due(
        &self,
        _compactor: &mut Compactor,
        _now: Duration,
    ) -> Result<Option<Revision>, CompactError> {
        todo!()
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        todo!()
    }

    async fn commit(&self, _txn: Txn) -> Outcome {
        todo!()
    }

    async fn watch(&self, _after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        todo!()
    }
}
