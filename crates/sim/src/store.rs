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
    has_gaps: bool,
    compacted: Revision,
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

    /// The revision of a record that is shown to readers, by the index of its version.
    pub fn revision_shown(&self, shown: &HashMap<Key, usize>, key: &str) -> Revision {
        let index = shown.get(key).copied();
        index.and_then(|index| self.versions(key).get(index)).map_or(Revision(0), |version| version.revision)
    }

    /// All records as of a revision.
    pub fn records_at(&self, revision: Revision) -> BTreeMap<Key, Versioned> {
        let mut records = BTreeMap::new();
        for (key, versions) in &self.versions {
            let version = versions.iter().rev().find(|version| version.revision <= revision);
            if let Some(Version { revision, value: Some(value) }) = version {
                records.insert(key.clone(), Versioned { revision: *revision, value: value.clone() });
            }
        }
        records
    }

    /// Other writers of the store take some revisions from now on.
    pub fn leave_gaps(&mut self) {
        self.has_gaps = true;
    }

    /// Commits up to the newest are dropped from the log for new watches.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
    }

    /// A watch cannot start before this revision.
    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    fn next_revision(&self) -> Revision {
        let gap = if self.has_gaps && self.revision.0.is_multiple_of(3) { 4 } else { 1 };
        Revision(self.revision.0 + gap)
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
            .map(|expect| Found::new(expect, self.records.get(&expect.key).cloned()))
            .collect();
        (!found.is_empty()).then_some(Outcome::Conflict(found))
    }

    pub fn commit(&mut self, txn: &Txn) -> Outcome {
        if let Some(no) = self.compare(txn) {
            return no;
        }
        let revision = self.next_revision();
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
