//! The simulated store: a map with revisions, compare-and-swap, and its complete history.
//!
//! It is independent of the production stores and as simple as possible, since everything else is checked against
//! it. It forgets nothing, so that a published value can be looked up among all versions of its record.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use notbefore_store::{Batch, Change, Found, Key, Outcome, Revision, Txn, Versioned};

/// One version of a record; without a value if it was removed.
#[derive(Clone, Debug)]
pub struct Version {
    pub revision: Revision,
    pub value: Option<Bytes>,
}

/// Records with all their versions.
#[derive(Debug, Default)]
pub struct SimStore {
    records: BTreeMap<Key, Versioned>,
    revision: Revision,
    log: Vec<Batch>,
    versions: HashMap<Key, Vec<Version>>,
}

impl SimStore {
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn records(&self) -> &BTreeMap<Key, Versioned> {
        &self.records
    }

    /// Every commit that wrote, oldest first, for the watch.
    pub fn log(&self) -> &[Batch] {
        &self.log
    }

    /// All versions of a record.
    pub fn versions(&self, key: &str) -> &[Version] {
        self.versions.get(key).map_or(&[], Vec::as_slice)
    }

    /// The index of each record's newest version, including removed records.
    pub fn newest(&self) -> HashMap<Key, usize> {
        self.versions.iter().map(|(key, versions)| (key.clone(), versions.len() - 1)).collect()
    }

    /// The outcome of a commit, without applying it.
    pub fn compare(&self, txn: &Txn) -> Option<Outcome> {
        if let Err(refusal) = txn.check() {
            return Some(Outcome::Refused(refusal));
        }
        let differs = |key: &Key, revision| self.records.get(key).map(|record| record.revision) != revision;
        let found: Vec<Found> = txn
            .expect
            .iter()
            .filter(|expect| differs(&expect.key, expect.revision))
            .map(|expect| Found { key: expect.key.clone(), current: self.records.get(&expect.key).cloned() })
            .collect();
        (!found.is_empty()).then_some(Outcome::Conflict(found))
    }

    pub fn commit(&mut self, txn: &Txn) -> Outcome {
        if let Some(no) = self.compare(txn) {
            return no;
        }
        let revision = Revision(self.revision.0 + 1);
        let mut changes = Vec::new();
        for (key, value) in &txn.put {
            self.records.insert(key.clone(), Versioned { revision, value: value.clone() });
            changes.push(Change { key: key.clone(), value: Some(value.clone()) });
        }
        for key in &txn.delete {
            if self.records.remove(key).is_some() {
                changes.push(Change { key: key.clone(), value: None });
            }
        }
        if changes.is_empty() {
            return Outcome::Committed(self.revision);
        }
        for change in &changes {
            let version = Version { revision, value: change.value.clone() };
            self.versions.entry(change.key.clone()).or_default().push(version);
        }
        self.revision = revision;
        self.log.push(Batch { revision, changes: Arc::from(changes) });
        Outcome::Committed(revision)
    }
}
