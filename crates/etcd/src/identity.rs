//! Detects that etcd is no longer the store that the node has loaded: another cluster, or a restored backup.
//!
//! A backup that is restored has a lower revision, and usually another cluster id. All that the node knows is then wrong,
//! and revisions that it compares may belong to other records. So the first response that shows it makes the
//! store useless for good: every later call is refused, and no watch opens. The caller waits with
//! [`crate::EtcdStore::wait_for_identity_change`], stops, and starts again from nothing.
//!
//! Revisions are compared only where etcd promises that they rise: a linearizable response is never older than
//! a response that came before its request was sent.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use notbefore_store::Revision;
use tokio::sync::watch;

use crate::proto::ResponseHeader;

/// How etcd differs from the store that the node has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityChange {
    #[error(
        "the etcd cluster is {found:x}, and this node has loaded its state from {expected:x}; restart the node if etcd was restored, or correct its endpoints"
    )]
    OtherCluster { expected: u64, found: u64 },
    #[error(
        "etcd is at revision {found}, and this node has seen revision {seen}: a backup was restored; restart the node"
    )]
    WentBack { seen: Revision, found: Revision },
}

/// How a response relates to the newest revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Not older than responses that came before the request was sent.
    Linearizable,
    /// Of one member, which may lag.
    Local,
}

pub(crate) struct Identity {
    cluster_id: u64,
    /// The highest revision of a response.
    seen: AtomicU64,
    changed: watch::Sender<Option<IdentityChange>>,
}

impl Identity {
    pub(crate) fn new(cluster_id: u64) -> Self {
        Self { cluster_id, seen: AtomicU64::new(0), changed: watch::channel(None).0 }
    }

    pub(crate) fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    /// The newest revision seen; read it before a request is sent, and pass it to [`Self::check`].
    pub(crate) fn floor(&self) -> Revision {
        Revision(self.seen.load(Acquire))
    }

    pub(crate) fn changed(&self) -> Option<IdentityChange> {
        *self.changed.borrow()
    }

    pub(crate) async fn wait(&self) -> IdentityChange {
        let mut changes = self.changed.subscribe();
        loop {
            if let Some(change) = *changes.borrow_and_update() {
                return change;
            }
            // The sender lives as long as `self`.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Checks the header of a response whose request was sent when the floor was `floor`.
    pub(crate) fn check(
        &self,
        header: Option<&ResponseHeader>,
        floor: Revision,
        freshness: Freshness,
    ) -> Result<(), IdentityChange> {
        if let Some(change) = self.changed() {
            return Err(change);
        }
        let Some(header) = header else { return Ok(()) };
        if header.cluster_id != self.cluster_id {
            let change = IdentityChange::OtherCluster { expected: self.cluster_id, found: header.cluster_id };
            return Err(self.change(change));
        }
        let found = Revision(u64::try_from(header.revision).unwrap_or(0));
        match freshness {
            Freshness::Local => return Ok(()),
            Freshness::Linearizable if found < floor => {
                return Err(self.change(IdentityChange::WentBack { seen: floor, found }));
            }
            Freshness::Linearizable => {}
        }
        self.saw(found);
        Ok(())
    }

    /// Notes a revision that is committed.
    pub(crate) fn saw(&self, revision: Revision) {
        self.seen.fetch_max(revision.0, AcqRel);
    }

    /// The first change stays.
    fn change(&self, change: IdentityChange) -> IdentityChange {
        let mut first = change;
        self.changed.send_if_modified(|known| match known {
            Some(known) => {
                first = *known;
                false
            }
            None => {
                *known = Some(change);
                true
            }
        });
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(cluster_id: u64, revision: i64) -> ResponseHeader {
        ResponseHeader { cluster_id, member_id: 1, revision }
    }

    #[test]
    fn a_lower_linearizable_revision_is_a_restored_backup() {
        let identity = Identity::new(7);
        let check = |revision, floor, freshness| identity.check(Some(&header(7, revision)), floor, freshness);
        let early = identity.floor();
        assert_eq!(check(50, early, Freshness::Linearizable), Ok(()));
        // A request that was sent before may be answered after.
        assert_eq!(check(49, early, Freshness::Linearizable), Ok(()));
        // A member may lag.
        assert_eq!(check(3, identity.floor(), Freshness::Local), Ok(()));
        assert_eq!(identity.floor(), Revision(50));
        let change = IdentityChange::WentBack { seen: Revision(50), found: Revision(49) };
        assert_eq!(check(49, identity.floor(), Freshness::Linearizable), Err(change));
        assert_eq!(check(60, identity.floor(), Freshness::Linearizable), Err(change), "it stays");
    }

    #[tokio::test]
    async fn another_cluster_is_reported_once() {
        let identity = Identity::new(7);
        assert_eq!(identity.changed(), None);
        let change = IdentityChange::OtherCluster { expected: 7, found: 8 };
        assert_eq!(identity.check(Some(&header(8, 1)), Revision(0), Freshness::Local), Err(change));
        assert_eq!(identity.check(Some(&header(9, 1)), Revision(0), Freshness::Local), Err(change));
        assert_eq!(identity.wait().await, change);
    }
}
