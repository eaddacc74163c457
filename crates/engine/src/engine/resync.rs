//! Resynchronisation: replaces the state by a whole snapshot, and publishes the difference.
//!
//! A watch that was compacted, went back or lost events leaves the state wrong. The snapshot repairs it record by
//! record. This process's own commits after the snapshot stay: their records have newer revisions.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use notbefore_store::{Key, Revision, Versioned};

use super::apply_commits::record_foreign_change;
use super::{Effect, Engine};
use crate::cluster::Role;
use crate::records;

impl Engine {
    /// Asks for a snapshot after a conflict that cannot be: only the leader writes, and it knows what it has written.
    pub(super) fn request_snapshot(&mut self, effects: &mut Vec<Effect>) {
        if self.role == Role::Alone {
            return;
        }
        self.unexplained_conflicts += 1;
        if !std::mem::replace(&mut self.resync_requested, true) {
            effects.push(Effect::Resync);
        }
    }

    /// Installs a snapshot. One that is older than what the watch has shown is ignored.
    pub(super) fn apply_snapshot(
        &mut self,
        revision: Revision,
        snapshot: Vec<(Key, Versioned)>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if revision < self.watched {
            return;
        }
        self.resync_requested = false;
        if revision > self.watched {
            self.watch_had_gap();
        }
        let shown = std::mem::replace(&mut self.watched, revision);
        let synced_before = std::mem::replace(&mut self.synced_to, revision);
        while self.own_revisions.first().is_some_and(|own| *own <= revision) {
            self.own_revisions.pop_first();
        }
        let present: HashSet<&Key> = snapshot.iter().map(|(key, _)| key).collect();
        let mut gone: Vec<Key> = self.state.held_keys();
        gone.retain(|key| !present.contains(key) && self.state.revision_of(key) <= Some(revision));
        if self.own_revisions.is_empty() {
            gone.extend(
                self.state.closed_operations().map(records::operation).filter(|key| !present.contains(key)),
            );
        }
        // The watch shows later own commits again: poll times have no revision, so the snapshot has replaced them.
        self.own_revisions.clear();
        gone.sort();
        let removed = gone.into_iter().map(|key| (key, revision, None));
        let written = snapshot.into_iter().map(|(key, record)| (key, record.revision, Some(record.value)));
        let (mut published, mut to_reconcile) = (Vec::new(), BTreeSet::new());
        self.unreadable.clear();
        for (key, revision, value) in removed.chain(written) {
            let before = self.state.scope_of_key(&key).cloned();
            let was_held = self.state.revision_of(&key).is_some();
            let change = self.state.install(&key, revision, value.as_ref());
            self.note_unreadable(&key, change.as_ref().err());
            // A closed operation has a record and is not held.
            if !was_held && matches!(&change, Ok(Some(change)) if change.is_removal()) {
                continue;
            }
            self.hold_new_events(change.as_ref().ok().and_then(Option::as_ref), before.as_ref());
            let published_before = published.len();
            record_foreign_change(change, before, &mut published, &mut to_reconcile);
            // A newer record is news. The watch should have shown the others. When a record was removed is not known;
            // the revision is that of the snapshot.
            if revision <= shown {
                self.repaired_records += (published.len() - published_before) as u64;
            }
        }
        self.publish(published, now, effects);
        // A snapshot is loaded after the one before was installed. So the next one does not have older records of what
        // was removed until then.
        self.state.prune_tombstones(synced_before);
        self.reconcile_all(to_reconcile, now, effects);
        for (id, _) in std::mem::take(&mut self.conflicted) {
            self.run(id, now, effects);
        }
        self.finish_replays(now, effects);
    }
}
