//! Several nodes on one store: one leader plans and writes, the others follow.
//!
//! Every node loads the state, follows the store's watch and answers polls. One node leads: its engine runs timers,
//! operations, drivers and the janitor. The leader is the node that `cluster/leader` names. Every transaction of the
//! leader compares that record with the revision at which the node took the lead, its *fence*. So a node that lost
//! the lead without noticing writes nothing more, however late its transactions arrive.
//!
//! | file | contents |
//! |---|---|
//! | [`leadership`] | heartbeats, election, step-down, hand-over and the fence |
//! | [`name_check`] | no two running nodes have the same name |
//! | [`watch_follower`] | a watch that never goes back, and what to do when it stalls or is compacted |
//! | [`freshness`] | up to when a node knows every commit, also if it cannot write |
//! | [`digest`] | what followers tell the leader about their guests |
//! | [`read_through`] | guests that are ahead of the node that they poll |
//!
//! All are pure: the runtime and the simulator pass in the time and what they read, and carry out what is asked.
//! A service with an embedded store has one node. It leads from start to end ([`Role::Alone`]), and neither writes
//! nor compares any of these records.

pub mod digest;
pub mod freshness;
pub mod leadership;
pub mod name_check;
pub mod read_through;
pub mod watch_follower;

use jiff::Timestamp;
use notbefore_store::{Expect, Key, Outcome, Revision, Txn};
use serde::{Deserialize, Serialize};

use crate::keys::RecordKey;

pub use leadership::{
    Action, ClockOffset, ClusterReport, HandOverRefusal, Leadership, NodeIdentity, NodeReport, NodeState,
    StepDown,
};
pub use watch_follower::{ResyncReason, WatchEvent, WatchFollower};

/// What a node may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The only node of its store: leads from start to end, without a fence.
    #[default]
    Alone,
    /// Leads. Every transaction compares the leader's record with this revision.
    Lead(Revision),
    /// Leads, but the outcome of a commit is unknown. Nothing is sent until the leader's record is rewritten: then no
    /// older transaction can land any more, and the watch has shown those that did.
    Confirm,
    /// Another node leads, or none does. Nothing is written.
    Follow,
}

impl Role {
    /// Whether the node plans: it runs timers and accepts commands.
    pub fn leads(self) -> bool {
        match self {
            Self::Alone | Self::Lead(_) | Self::Confirm => true,
            Self::Follow => false,
        }
    }

    /// Whether the node may send a transaction now.
    pub fn may_write(self) -> bool {
        match self {
            Self::Alone | Self::Lead(_) => true,
            Self::Confirm | Self::Follow => false,
        }
    }

    /// The revision that transactions compare.
    pub fn fence(self) -> Option<Revision> {
        match self {
            Self::Lead(revision) => Some(revision),
            Self::Alone | Self::Confirm | Self::Follow => None,
        }
    }

    /// Adds the comparison with the leader's record to a transaction.
    pub fn fenced(self, mut txn: Txn) -> Txn {
        if let Some(revision) = self.fence() {
            txn.expect.push(Expect { key: RecordKey::Leader.encode(), revision: Some(revision) });
        }
        txn
    }
}

/// The revision that a fenced transaction compares with the leader's record.
pub fn fence_of(txn: &Txn) -> Option<Revision> {
    txn.expect.iter().find(|one| is_leader_key(&one.key)).and_then(|one| one.revision)
}

/// Whether this is the key of the leader's record.
pub fn is_leader_key(key: &Key) -> bool {
    &**key == LEADER
}

/// What the outcome of a fenced transaction says about the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceNews {
    /// The outcome is unknown: the leader's record must be rewritten before anything else is written.
    Unknown(Revision),
    /// The record has another revision: another node has taken the lead since, or this one has confirmed it.
    Lost(Revision),
}

impl FenceNews {
    /// None for an outcome that says nothing, or a transaction without a fence.
    pub fn of(fence: Option<Revision>, outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Unknown(_) => fence.map(Self::Unknown),
            Outcome::Conflict(found) if found.iter().any(|one| is_leader_key(&one.key)) => {
                fence.map(Self::Lost)
            }
            Outcome::Committed(_) | Outcome::Conflict(_) | Outcome::Refused(_) => None,
        }
    }
}

/// Key of the leader's record.
pub const LEADER: &str = "cluster/leader";
/// Key of the mark of an import that is not complete.
pub const IMPORTING: &str = "cluster/import";
/// Key of the format level of the cluster.
pub const FORMAT: &str = "cluster/format";
/// Prefix of the records of this module.
pub const CLUSTER: &str = "cluster/";
/// Prefix of the nodes' heartbeats.
pub const NODE: &str = "cluster/node/";

/// The format level at which nodes write. A node of an older level follows and never leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatRecord {
    pub level: u32,
}

/// The leader's record. Its revision is the leader's fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderRecord {
    /// None after a hand-over: the next node takes the lead at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The node's name in the configuration.
    pub node: String,
    /// The process, new at every start.
    pub epoch: String,
    /// Where the leader takes forwarded changes.
    pub url: String,
}

impl Leader {
    /// `name~epoch`, as [`NodeIdentity::id`].
    pub fn id(&self) -> String {
        leadership::node_id(&self.node, &self.epoch)
    }
}

/// A node's heartbeat, written once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The process, new at every start.
    pub epoch: String,
    /// Counts the heartbeats of a process. A late one is ignored.
    pub beat: u64,
    /// The node's wall clock when it sent the heartbeat.
    pub clock: Timestamp,
    pub url: String,
    /// The newest format level that the node writes.
    pub level: u32,
    /// Whether the node's heartbeats return through its own watch. A leader without a watch counts as silent: it may
    /// not even see that the record names it.
    pub is_watching: bool,
    /// The last heartbeat of a process that stops in an orderly way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_stopped: bool,
    /// The node has shown every commit up to this revision.
    pub watched_revision: Revision,
    /// The revision at which the process took the name. None in its first heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Revision>,
}

impl NodeRecord {
    /// When the process took its name: claims of a name rise. `revision` is that of this record. A heartbeat without
    /// a claim takes the name itself, because it compares the record before it.
    pub fn claim(&self, revision: Revision) -> Revision {
        // A later revision is of another store, before a restore.
        self.claimed_at.map_or(revision, |claimed_at| claimed_at.min(revision))
    }
}
