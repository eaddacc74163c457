//! The checker's memory of a history: every event and its phases, the effect of each idempotency key, and what ran.

use std::collections::{BTreeMap, BTreeSet};

use notbefore_core::{EventId, OperationId, Resource, ScopeId, VmId};
use notbefore_engine::CommandId;
use notbefore_store::Revision;

/// An event when it was first seen.
#[derive(Clone, Debug)]
pub struct FirstSeen {
    pub scope: ScopeId,
    /// In its order of VMs.
    pub resources: Vec<Resource>,
    /// The commit that created it.
    pub revision: Revision,
}

#[derive(Debug, Default)]
pub struct Ledger {
    /// All events, in order of creation.
    pub events: Vec<EventId>,
    pub first: BTreeMap<EventId, FirstSeen>,
    /// Ended events.
    pub ended: BTreeSet<EventId>,
    /// All operations.
    pub operations: Vec<OperationId>,
    /// All VMs.
    pub vms: Vec<VmId>,
    /// The operations and VMs that each key created.
    pub made: BTreeMap<String, BTreeSet<uuid::Uuid>>,
    /// The commits that may have carried out a request.
    pub effects: BTreeMap<u64, Vec<Revision>>,
    /// The requests that were certainly carried out.
    pub carried_out: BTreeSet<u64>,
    /// Every attempt that a committed record showed as running, with its owner.
    pub attempts: BTreeSet<(String, CommandId)>,
    /// The spawned attempts.
    pub spawned: BTreeSet<CommandId>,
    /// The newest refused request of each idempotency key, with the hash of the request.
    pub refused: BTreeMap<(String, String), u64>,
    /// VMs of which something was removed ahead of the change that removes them from their scope.
    pub leaving: BTreeSet<VmId>,
    /// The requests that a follower sent to the leader and the leader executed, with the number of the execution.
    pub executed: BTreeMap<u64, u64>,
    /// Those whose client was told that nothing happens.
    pub not_executed: BTreeSet<u64>,
    /// The newest fence of a commit.
    pub fence: Revision,
}
