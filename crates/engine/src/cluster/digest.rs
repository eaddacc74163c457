//! Digests: what a follower tells the leader about its guests.
//!
//! Enablement, listening VMs, first reads and the VMs' logs are the leader's, and a guest may poll any node. So each
//! follower sends the leader *notes* of what its guests did, summed up in a digest once a second.
//!
//! | file | contents |
//! |---|---|
//! | [`sender`] | what a follower sends, and when; one machine for each node |
//! | `recent` | the last notes, which go along with forwarded requests |
//! | [`receiver`] | what the leader takes, and when it knows the polls of all nodes |
//! | [`held`] | notes that wait until the leader's view shows what they are about |
//! | [`wire`] | digests and acknowledgements as bytes |
//!
//! **Notes merge.** Of polls the last one counts, of reads the first one. Both are idempotent, so a node may send them
//! again. Entries of a VM's log are counted, so each counts once: a digest has a number, is repeated unchanged until it
//! is acknowledged, and is taken once.
//!
//! **Terms.** The leader names its *term* in every acknowledgement: the revision at which it took the lead. A node that
//! hears of another term than it knew sends everything again. So nothing depends on whether the node has noticed the
//! change of the leader, and a leader that lost the lead and took it again starts from nothing.
//!
//! **Ages, not times.** A digest says how long ago something happened. The clocks of two nodes may differ; the way of a
//! message takes milliseconds. A digest that is late makes its notes later by that much.
//!
//! All of it is pure: the time is an argument. Monotonic times are durations since any fixed moment of the node.

pub mod held;
pub mod receiver;
mod recent;
pub mod sender;
#[cfg(test)]
mod tests;
pub mod wire;

use std::collections::BTreeMap;

use jiff::Timestamp;
use notbefore_core::{EventId, ScopeId, VmId};

pub use held::HeldNotes;
pub use receiver::{ReceivedNotes, Receiver, Taken};
pub use sender::Sender;
pub use wire::{Ack, DigestError};

/// A VM's last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    pub at: Timestamp,
    /// Number of the api-version. The engine does not know the versions; the list of them grows at its end.
    pub version: u8,
}

/// A VM's first read of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstRead {
    pub at: Timestamp,
    /// Number of the api-version.
    pub version: u8,
}

/// An entry of a VM's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogNote {
    pub vm: VmId,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// How often it happened since it was last noted.
    pub count: u32,
    /// What happened, encoded by the service. At most [`wire::LOG_BYTES_MAX`].
    pub what: Box<[u8]>,
}

/// What guests did, merged. Ordered maps, so that a history of the simulator can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The last poll of a scope by any of its VMs.
    pub scopes: BTreeMap<ScopeId, Timestamp>,
    pub reads: BTreeMap<(EventId, VmId), FirstRead>,
    pub heard: BTreeMap<VmId, Heard>,
    pub log: Vec<LogNote>,
}

impl Notes {
    pub fn len(&self) -> usize {
        self.scopes.len() + self.reads.len() + self.heard.len() + self.log.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the last poll. Returns whether the scope had none.
    pub fn add_scope(&mut self, scope: ScopeId, at: Timestamp) -> bool {
        let before = self.scopes.get(&scope).copied();
        if before.is_none_or(|known| known < at) {
            self.scopes.insert(scope, at);
        }
        before.is_none()
    }

    /// Keeps the first read.
    pub fn add_read(&mut self, event: EventId, vm: VmId, read: FirstRead) {
        let known = self.reads.entry((event, vm)).or_insert(read);
        if read.at < known.at {
            *known = read;
        }
    }

    /// Keeps the last poll.
    pub fn add_heard(&mut self, vm: VmId, heard: Heard) {
        let known = self.heard.entry(vm).or_insert(heard);
        if known.at < heard.at {
            *known = heard;
        }
    }

    /// Merges other notes into these.
    pub fn merge(&mut self, other: Notes) {
        let Notes { scopes, reads, heard, log } = other;
        for (scope, at) in scopes {
            self.add_scope(scope, at);
        }
        for ((event, vm), read) in reads {
            self.add_read(event, vm, read);
        }
        for (vm, one) in heard {
            self.add_heard(vm, one);
        }
        self.log.extend(log);
    }
}
