//! The leader's side of digests: which to take, and whether the polls of all nodes are known.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_store::Revision;

use super::Notes;
use super::wire::{Ack, Digest, DigestError};

/// A living node without a digest for this long does not reach the leader, and its guests are unknown. A node in order
/// sends one every three seconds.
pub const DIGESTS_LOST_AFTER: Duration = Duration::from_secs(10);
/// Processes whose digests are remembered. A cluster has three to nine nodes; those that were heard last are kept.
const NODES_MAX: usize = 64;

/// The machine of one term; see the module docs. It is new whenever the node takes the lead.
#[derive(Debug)]
pub struct Receiver {
    term: u64,
    /// By `name~epoch`.
    nodes: BTreeMap<String, Peer>,
    digests: u64,
}

#[derive(Debug, Default)]
struct Peer {
    /// Number of the last digest that was taken.
    taken: u64,
    is_whole: bool,
    /// When its last digest arrived.
    heard_at: Duration,
    /// Position in the order of digests, to drop the process that was not heard for longest.
    heard: u64,
}

/// A digest that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub ack: Ack,
    /// None if the digest was taken before, or is of another term.
    pub notes: Option<ReceivedNotes>,
}

/// The notes of a node, for [`HeldNotes`](super::HeldNotes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedNotes {
    /// The node's guests were shown nothing newer than this revision.
    pub revision: Revision,
    pub notes: Notes,
}

impl Receiver {
    /// A node took the lead with the leader's record at this revision.
    pub fn new(took_lead_at: Revision) -> Self {
        Self { term: took_lead_at.0, nodes: BTreeMap::new(), digests: 0 }
    }

    /// Takes a digest of the node `from` (`name~epoch`), which the transport has authenticated. The caller merges the
    /// notes, then sends the acknowledgement. `at` is the wall clock, `now` the monotonic one.
    pub fn take(
        &mut self,
        from: &str,
        bytes: &[u8],
        at: Timestamp,
        now: Duration,
    ) -> Result<Taken, DigestError> {
        let Digest { number, term, revision, is_whole, notes } = Digest::decode(bytes, at)?;
        let ack = Ack { number, term: self.term };
        if term != self.term {
            return Ok(Taken { ack, notes: None });
        }
        self.digests += 1;
        let peer = self.nodes.entry(from.to_owned()).or_default();
        (peer.heard, peer.heard_at) = (self.digests, now);
        let is_new = number > peer.taken;
        if is_new {
            peer.taken = number;
            peer.is_whole |= is_whole;
        }
        if self.nodes.len() > NODES_MAX {
            let oldest = self.nodes.iter().min_by_key(|(_, peer)| peer.heard).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.nodes.remove(&name));
        }
        Ok(Taken { ack, notes: is_new.then_some(ReceivedNotes { revision, notes }) })
    }

    /// Reads the notes that came along with a forwarded request. Merging them twice changes nothing.
    pub fn notes_of_request(bytes: &[u8], at: Timestamp) -> Result<ReceivedNotes, DigestError> {
        let Digest { revision, mut notes, .. } = Digest::decode(bytes, at)?;
        // Entries of logs are counted, so they come only by digests.
        notes.log.clear();
        Ok(ReceivedNotes { revision, notes })
    }

    /// Whether the leader may judge that a scope is not enabled, or that a VM does not listen: each living node except
    /// the leader itself has sent all of its notes, and goes on sending. `living` are names as `name~epoch`.
    ///
    /// There is no limit of time: a node that lives and does not reach the leader answers guests, and a scope that they
    /// poll would lose its notice.
    pub fn may_judge<'n>(&self, living: impl IntoIterator<Item = &'n str>, now: Duration) -> bool {
        let is_known = |peer: &Peer| peer.is_whole && now.saturating_sub(peer.heard_at) < DIGESTS_LOST_AFTER;
        living.into_iter().all(|name| self.nodes.get(name).is_some_and(is_known))
    }
}
