//! What the judge remembers of a history: every event and how far it came, which key took effect how, what
//! readers were shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use notbefore_core::{EventId, OperationId, Resource, ScopeId, VmId};
use notbefore_engine::CommandId;
use notbefore_store::{Key, Revision};

use crate::store::SimStore;

/// An event as it first was.
#[derive(Clone, Debug)]
pub struct FirstSeen {
    /// In which scope.
    pub scope: ScopeId,
    /// In which order it names its VMs.
    pub resources: Vec<Resource>,
    /// The commit that made it.
    pub revision: Revision,
}

/// What the judge remembers.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Every event there was, in the order in which they came.
    pub events: Vec<EventId>,
    /// How each of them first was.
    pub first: BTreeMap<EventId, FirstSeen>,
    /// Those that are over.
    pub ended: BTreeSet<EventId>,
    /// Every operation there was.
    pub operations: Vec<OperationId>,
    /// Every VM there was.
    pub vms: Vec<VmId>,
    /// The operations and VMs that each key made.
    pub made: BTreeMap<String, BTreeSet<uuid::Uuid>>,
    /// The commits that may have carried out a request.
    pub effects: BTreeMap<u64, Vec<Revision>>,
    /// The requests that were carried out for sure.
    pub carried_out: BTreeSet<u64>,
    /// Every attempt of a command that a committed record said is running, and under whose name.
    pub attempts: BTreeSet<(String, CommandId)>,
    /// Those that were spawned.
    pub spawned: BTreeSet<CommandId>,
    /// What readers see: which of its versions each record is at.
    pub shown: HashMap<Key, usize>,
}

impl Ledger {
    /// The revision that readers see of a record.
    pub fn shown_revision(&self, store: &SimStore, key: &str) -> Revision {
        let index = self.shown.get(key).copied();
        index.and_then(|index| store.versions(key).get(index)).map_or(Revision(0), |version| version.revision)
    }
}
