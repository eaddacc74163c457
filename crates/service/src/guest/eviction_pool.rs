//! Connections that may be evicted when the server is full, and their order.
//!
//! The pool holds two kinds of connections:
//!
//! - connections of *unknown callers*: callers that are no VM;
//! - connections of VMs that the server waits for: an incomplete head or body, or a response that the client does not
//!   read. Most are incomplete heads, and the code calls them that.
//!
//! All other connections are idle, which a worker can close, or wait for the service itself, and these are never
//! closed. A plain poll never enters the pool.
//!
//! Unknown callers have [`UNKNOWN_CALLERS_MAX`] slots. One more evicts the oldest of the source that has most. In a
//! full server, unknown callers are evicted first, for newcomers of both kinds. Then, for a VM only, incomplete heads of
//! the VM that has most of them. A VM's only incomplete head stays: a slow network is more likely than an attack.
//! Incomplete heads of trusted proxies stay too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use notbefore_listener::by_source::{BySource, Id, source_of};

use super::caller::Caller;

/// Maximum connections of unknown callers. They get only 403 and time out within seconds. The limit covers VMs that are
/// not registered yet and mistakes in addresses.
pub(super) const UNKNOWN_CALLERS_MAX: usize = 256;
/// A VM with fewer incomplete heads than this loses none to another VM.
const INCOMPLETE_MIN: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerStatus {
    /// A VM, or a trusted proxy.
    Known,
    /// No VM.
    Unknown,
}

/// The unit of counting: a listener's identity and an address; for unknown callers in IPv6, the /64 prefix.
type Source = (usize, IpAddr);

fn source(caller: &Caller, caller_status: CallerStatus) -> Source {
    // Listeners with the same identity share the pointer.
    let identity = Arc::as_ptr(&caller.listener) as usize;
    match caller_status {
        CallerStatus::Known => (identity, caller.source),
        CallerStatus::Unknown => (identity, source_of(caller.source)),
    }
}

/// The connections, each with a handle `T` that closes it.
#[derive(Debug)]
pub(super) struct EvictionPool<T> {
    unknown: BySource<Source>,
    incomplete: BySource<Source>,
    handles: HashMap<Id, T>,
    next: Id,
}

impl<T> Default for EvictionPool<T> {
    fn default() -> Self {
        let (unknown, incomplete) = (BySource::default(), BySource::default());
        Self { unknown, incomplete, handles: HashMap::new(), next: 0 }
    }
}

impl<T> EvictionPool<T> {
    /// Adds a connection; returns its id, and the handle of the connection evicted for it.
    pub(super) fn add(&mut self, caller: &Caller, caller_status: CallerStatus, handle: T) -> (Id, Option<T>) {
        let (id, source) = (self.next, source(caller, caller_status));
        self.next += 1;
        let closed = match caller_status {
            // A proxy calls for many VMs and may have many incomplete heads.
            CallerStatus::Known if caller.is_proxy => None,
            CallerStatus::Known => {
                self.incomplete.insert(id, source);
                None
            }
            CallerStatus::Unknown => {
                let is_full = self.unknown.len() >= UNKNOWN_CALLERS_MAX;
                let oldest = self.unknown.oldest_of_largest(Some(&source), |_| true).filter(|_| is_full);
                let closed = oldest.and_then(|(oldest, _)| self.remove(oldest));
                self.unknown.insert(id, source);
                closed
            }
        };
        self.handles.insert(id, handle);
        (id, closed)
    }

    /// Removes a connection that is complete, identified or closed.
    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        self.unknown.remove(id);
        self.incomplete.remove(id);
        self.handles.remove(&id)
    }

    /// Evicts one connection for a newcomer to a full server, if the order allows it.
    pub(super) fn evict_one(&mut self, newcomer: CallerStatus) -> Option<T> {
        let unknown = self.unknown.oldest_of_largest(None, |_| true).map(|(id, _)| id);
        let chosen = unknown.or_else(|| match newcomer {
            CallerStatus::Unknown => None,
            CallerStatus::Known => {
                let most = self.incomplete.oldest_of_largest(None, |_| true);
                most.filter(|(_, count)| *count >= INCOMPLETE_MIN).map(|(id, _)| id)
            }
        });
        chosen.and_then(|id| self.remove(id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::ListenerIdentity;
    use super::*;
    use CallerStatus::{Known, Unknown};

    fn caller(listener: &Arc<ListenerIdentity>, address: &str) -> Caller {
        Caller::new(Arc::clone(listener), address.parse().unwrap(), [10, 0, 0, 254].into())
    }

    fn network() -> Arc<ListenerIdentity> {
        Arc::new(ListenerIdentity::Network("default".to_owned()))
    }

    #[test]
    fn eviction_order_is_unknown_callers_then_incomplete_heads() {
        let network = network();
        // (connections, oldest first, handle = index; newcomer; expected eviction)
        for (there, newcomer, expected) in [
            (vec![], Known, None),
            (vec![(Known, "10.0.0.1")], Known, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.2")], Known, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.2"), (Known, "10.0.0.2")], Known, Some(1)),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.1")], Unknown, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.1"), (Unknown, "10.9.0.1")], Known, Some(2)),
            (vec![(Known, "10.0.0.1"), (Unknown, "10.9.0.1")], Unknown, Some(1)),
            (vec![(Unknown, "10.9.0.1"), (Unknown, "10.9.0.2"), (Unknown, "10.9.0.2")], Known, Some(1)),
            // Unknown callers are counted by prefix, VMs by address.
            (vec![(Unknown, "fd00:1::1"), (Unknown, "fd00::1"), (Unknown, "fd00::2")], Known, Some(1)),
            (vec![(Known, "fd00::1"), (Known, "fd00::2"), (Known, "fd00::3")], Known, None),
        ] {
            let mut eviction_pool = EvictionPool::default();
            for (handle, (caller_status, address)) in there.iter().enumerate() {
                assert!(eviction_pool.add(&caller(&network, address), *caller_status, handle).1.is_none());
            }
            assert_eq!(eviction_pool.evict_one(newcomer), expected, "{there:?} {newcomer:?}");
        }
    }

    #[test]
    fn incomplete_heads_of_proxies_are_kept() {
        let mut eviction_pool = EvictionPool::default();
        let proxy = Caller { is_proxy: true, ..caller(&network(), "10.9.0.2") };
        let ids: Vec<Id> = (0..3).map(|handle| eviction_pool.add(&proxy, Known, handle).0).collect();
        assert_eq!(eviction_pool.evict_one(Known), None);
        assert!(ids.into_iter().all(|id| eviction_pool.remove(id).is_some()));
    }

    #[test]
    fn unknown_callers_have_their_own_limit() {
        let (network, other) = (network(), network());
        let mut eviction_pool = EvictionPool::default();
        eviction_pool.add(&caller(&other, "fd00::1"), Unknown, "same address, other network");
        eviction_pool.add(&caller(&network, "10.0.0.1"), Known, "incomplete head");
        for n in 1..UNKNOWN_CALLERS_MAX {
            assert_eq!(
                eviction_pool.add(&caller(&network, &format!("fd00::{n:x}")), Unknown, "one of many").1,
                None
            );
        }
        for n in 0..2 * UNKNOWN_CALLERS_MAX {
            let closed =
                eviction_pool.add(&caller(&network, &format!("fd00::1:{n:x}")), Unknown, "one of many").1;
            assert_eq!(closed, Some("one of many"), "{n}");
        }
        assert_eq!((eviction_pool.unknown.len(), eviction_pool.incomplete.len()), (UNKNOWN_CALLERS_MAX, 1));
        let ids: Vec<Id> = eviction_pool.handles.keys().copied().collect();
        assert!(ids.into_iter().all(|id| eviction_pool.remove(id).is_some()));
        assert!(eviction_pool.unknown.is_empty() && eviction_pool.incomplete.is_empty());
    }
}
