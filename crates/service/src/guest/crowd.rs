//! Connections that keep the door waiting, and which of them goes first when it is crowded.
//!
//! Two kinds are known here, each while it lasts: connections of *strangers*, callers that are no VM, and connections
//! of VMs that the client keeps waiting: a head or a body that has begun and is not whole, or an answer that is not read.
//! They are called *half heads* here, as most of them are. All others are either idle, which a worker can close, or wait
//! for the service itself, and nobody closes those. So a plain poll is never in this table.
//!
//! Strangers have [`STRANGERS_MAX`] places; for one more the oldest goes, of the source that has most. In a full door
//! strangers go first, for strangers and VMs alike; then, for a VM only, half heads of the VM that has most of them. A
//! VM's only half head stays: it is more likely a slow network than an attack. Half heads of trusted proxies stay too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use notbefore_listener::by_source::{BySource, Id, source_of};

use super::caller::Caller;

/// How many connections strangers may have. None of them will be answered anything but 403, and each is asked to go
/// within seconds, so this is for the moment before a new VM is entered, and for mistakes in addresses.
pub(super) const STRANGERS_MAX: usize = 256;
/// How many half heads a VM has at least before one of them is closed for another VM.
const HALF_HEADS_MIN: usize = 2;

/// What a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// One of the VMs, or a proxy that may speak for them.
    Known,
    /// Nobody.
    Stranger,
}

/// Where connections are counted together: a listener's identity, and an address or, for strangers, its /64 in IPv6.
type Source = (usize, IpAddr);

fn source(caller: &Caller, standing: Standing) -> Source {
    // Listeners of one identity share it.
    let identity = Arc::as_ptr(&caller.listener) as usize;
    match standing {
        Standing::Known => (identity, caller.source.ip()),
        Standing::Stranger => (identity, source_of(caller.source.ip())),
    }
}

/// The connections, each with a handle `T` by which it is told to close.
#[derive(Debug)]
pub(super) struct Crowd<T> {
    strangers: BySource<Source>,
    half_heads: BySource<Source>,
    handles: HashMap<Id, T>,
    next: Id,
}

impl<T> Default for Crowd<T> {
    fn default() -> Self {
        let (strangers, half_heads) = (BySource::default(), BySource::default());
        Self { strangers, half_heads, handles: HashMap::new(), next: 0 }
    }
}

impl<T> Crowd<T> {
    /// Adds a connection; answers its id, and the handle of the one that goes for it, if one does.
    pub(super) fn add(&mut self, caller: &Caller, standing: Standing, handle: T) -> (Id, Option<T>) {
        let (id, source) = (self.next, source(caller, standing));
        self.next += 1;
        let closed = match standing {
            // A proxy calls for many, and has as many half heads as they have.
            Standing::Known if caller.is_proxy => None,
            Standing::Known => {
                self.half_heads.insert(id, source);
                None
            }
            Standing::Stranger => {
                let is_full = self.strangers.len() >= STRANGERS_MAX;
                let oldest = self.strangers.oldest_of_most(Some(&source), |_| true).filter(|_| is_full);
                let closed = oldest.and_then(|(oldest, _)| self.remove(oldest));
                self.strangers.insert(id, source);
                closed
            }
        };
        self.handles.insert(id, handle);
        (id, closed)
    }

    /// A connection is no longer of its kind, or has ended.
    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        self.strangers.remove(id);
        self.half_heads.remove(id);
        self.handles.remove(&id)
    }

    /// The connection that goes for a newcomer to a full door, if one of these does.
    pub(super) fn make_room(&mut self, newcomer: Standing) -> Option<T> {
        let stranger = self.strangers.oldest_of_most(None, |_| true).map(|(id, _)| id);
        let chosen = stranger.or_else(|| match newcomer {
            Standing::Stranger => None,
            Standing::Known => {
                let most = self.half_heads.oldest_of_most(None, |_| true);
                most.filter(|(_, count)| *count >= HALF_HEADS_MIN).map(|(id, _)| id)
            }
        });
        chosen.and_then(|id| self.remove(id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::ListenerIdentity;
    use super::*;
    use Standing::{Known, Stranger};

    fn caller(listener: &Arc<ListenerIdentity>, address: &str) -> Caller {
        Caller::new(
            Arc::clone(listener),
            (address.parse::<IpAddr>().unwrap(), 5).into(),
            ([10, 0, 0, 254], 80).into(),
        )
    }

    fn network() -> Arc<ListenerIdentity> {
        Arc::new(ListenerIdentity::Network("default".to_owned()))
    }

    #[test]
    fn a_full_door_closes_strangers_first_then_half_heads_of_the_vm_that_has_most() {
        let network = network();
        // (who waits, oldest first, with its number as handle; who comes; who goes)
        for (there, newcomer, expected) in [
            (vec![], Known, None),
            (vec![(Known, "10.0.0.1")], Known, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.2")], Known, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.2"), (Known, "10.0.0.2")], Known, Some(1)),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.1")], Stranger, None),
            (vec![(Known, "10.0.0.1"), (Known, "10.0.0.1"), (Stranger, "10.9.0.1")], Known, Some(2)),
            (vec![(Known, "10.0.0.1"), (Stranger, "10.9.0.1")], Stranger, Some(1)),
            (vec![(Stranger, "10.9.0.1"), (Stranger, "10.9.0.2"), (Stranger, "10.9.0.2")], Known, Some(1)),
            // Strangers are counted by prefix, VMs by address.
            (vec![(Stranger, "fd00:1::1"), (Stranger, "fd00::1"), (Stranger, "fd00::2")], Known, Some(1)),
            (vec![(Known, "fd00::1"), (Known, "fd00::2"), (Known, "fd00::3")], Known, None),
        ] {
            let mut crowd = Crowd::default();
            for (handle, (standing, address)) in there.iter().enumerate() {
                assert!(crowd.add(&caller(&network, address), *standing, handle).1.is_none());
            }
            assert_eq!(crowd.make_room(newcomer), expected, "{there:?} {newcomer:?}");
        }
    }

    #[test]
    fn half_heads_of_a_proxy_stay() {
        let mut crowd = Crowd::default();
        let proxy = Caller { is_proxy: true, ..caller(&network(), "10.9.0.2") };
        let ids: Vec<Id> = (0..3).map(|handle| crowd.add(&proxy, Known, handle).0).collect();
        assert_eq!(crowd.make_room(Known), None);
        assert!(ids.into_iter().all(|id| crowd.remove(id).is_some()));
    }

    #[test]
    fn strangers_have_their_places_and_take_none_of_the_others() {
        let (network, other) = (network(), network());
        let mut crowd = Crowd::default();
        crowd.add(&caller(&other, "fd00::1"), Stranger, "same address, other network");
        crowd.add(&caller(&network, "10.0.0.1"), Known, "half head");
        for n in 1..STRANGERS_MAX {
            assert_eq!(
                crowd.add(&caller(&network, &format!("fd00::{n:x}")), Stranger, "one of many").1,
                None
            );
        }
        for n in 0..2 * STRANGERS_MAX {
            let closed = crowd.add(&caller(&network, &format!("fd00::1:{n:x}")), Stranger, "one of many").1;
            assert_eq!(closed, Some("one of many"), "{n}");
        }
        assert_eq!((crowd.strangers.len(), crowd.half_heads.len()), (STRANGERS_MAX, 1));
        let ids: Vec<Id> = crowd.handles.keys().copied().collect();
        assert!(ids.into_iter().all(|id| crowd.remove(id).is_some()));
        assert!(crowd.strangers.is_empty() && crowd.half_heads.is_empty());
    }
}
