//! Installs durable commits in the state: this process's own, and those of the store's watch. Publishes them, and
//! starts the commands that they show as running.
//!
//! Invariant: the state is everything committed up to some revision, plus this process's own commits. So a scope
//! is never known before the records of its VMs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use notbefore_core::{Fact, OperationId, Scope};
use notbefore_store::{Batch, Key, Outcome, Revision, Txn};

use super::{Effect, Engine};
use crate::cluster::Role;
use crate::records::{self, DecodeError, FactBatch};
use crate::state::{OwnRecord, Publication, PublishedChange, Revisioned};

/// Limit on the unreadable records that are reported. One is enough to act.
pub(super) const UNREADABLE_MAX: usize = 16;
/// How a fact batch with a revoked token reads.
const REVOKED: &[u8] = b"TokenRevoked";
/// How one reads with which an operator has accepted the clock.
const CLOCK_ACCEPTED: &[u8] = b"ClockAccepted";

impl Engine {
    pub(super) fn apply_own_commit(
        &mut self,
        txn: &Txn,
        own_records: &[(Key, OwnRecord)],
        revision: Revision,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if !txn.writes() {
            return;
        }
        if revision <= self.watched {
            // The watch has shown it, but watches may lose deletions.
            let held = txn.delete.iter().filter(|key| self.state.revision_of(key).is_some());
            let missed: Vec<Key> = held.cloned().collect();
            let removed =
                missed.iter().filter_map(|key| self.state.install(key, revision, None).ok().flatten());
            let removed = removed.collect();
            return self.publish(removed, now, effects);
        }
        self.own_revisions.insert(revision);
        let mut changes = Vec::with_capacity(txn.put.len() + txn.delete.len());
        for (key, value) in &txn.put {
            let change = match own_records.iter().rev().find(|(one, _)| one == key) {
                Some((_, record)) => self.state.install_own(key, revision, record),
                None => self.state.install(key, revision, Some(value)).ok().flatten(),
            };
            changes.extend(change);
        }
        for key in &txn.delete {
            changes.extend(self.state.install(key, revision, None).ok().flatten());
        }
        self.publish(changes, now, effects);
    }

    /// Plans conflicted jobs again once the watch has shown the records that they lacked. The engine does not install
    /// the record that the conflict returned; that would break the invariant above.
    pub(super) fn retry_conflicted(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let conflicted = std::mem::take(&mut self.conflicted);
        for (id, expected) in conflicted {
            match expected.iter().any(|one| self.state.revision_of(&one.key) != one.revision) {
                true => self.run(id, now, effects),
                false => self.conflicted.push((id, expected)),
            }
        }
    }

    pub(super) fn apply_watched(&mut self, batch: Batch, now: Timestamp, effects: &mut Vec<Effect>) {
        // A watch that went back shows what is known.
        if batch.revision <= self.watched {
            return;
        }
        self.watched = batch.revision;
        let mut to_reconcile = BTreeSet::new();
        let is_own = self.own_revisions.contains(&batch.revision);
        // A watch that fell behind skips revisions and does not return to them.
        while self.own_revisions.first().is_some_and(|own| *own <= self.watched) {
            self.own_revisions.pop_first();
        }
        let landed = if is_own { None } else { self.find_landed(&batch) };
        if !is_own {
            let mut published = Vec::new();
            for one in batch.changes.iter() {
                let before = self.state.scope_of_key(&one.key).cloned();
                let change = self.state.install(&one.key, batch.revision, one.value.as_ref());
                self.note_unreadable(&one.key, change.as_ref().err());
                self.hold_new_events(change.as_ref().ok().and_then(Option::as_ref), before.as_ref());
                record_foreign_change(change, before, &mut published, &mut to_reconcile);
            }
            for key in revoked_tokens(&batch) {
                if self.state.revision_of(&key) < Some(batch.revision) {
                    published.extend(self.state.install(&key, batch.revision, None).ok().flatten());
                }
            }
            self.publish(published, now, effects);
            // The leader has accepted the clock. This node may lead next, and must not wait for another acceptance.
            let is_accepted = |fact| matches!(fact, Fact::ClockAccepted);
            if self.is_clock_held() && facts_with(&batch, CLOCK_ACCEPTED).any(is_accepted) {
                self.trust_clock(now);
            }
        }
        if self.role == Role::Alone {
            self.state.prune_tombstones(self.watched);
        }
        if let Some(id) = landed {
            self.on_committed(id, Outcome::Committed(batch.revision), now, effects);
        }
        self.reconcile_all(to_reconcile, now, effects);
        self.retry_conflicted(now, effects);
        self.finish_replays(now, effects);
    }

    /// Records of the store that cannot be read, and why. The node keeps what it knew before, and a node that starts now
    /// ends with an error.
    pub fn unreadable(&self) -> &BTreeMap<Key, String> {
        &self.unreadable
    }

    pub(super) fn note_unreadable(&mut self, key: &Key, error: Option<&DecodeError>) {
        match error {
            Some(error) if self.unreadable.len() < UNREADABLE_MAX || self.unreadable.contains_key(key) => {
                self.unreadable.insert(key.clone(), error.to_string());
            }
            Some(_) => {}
            None if self.unreadable.is_empty() => {}
            None => drop(self.unreadable.remove(key)),
        }
    }

    /// Continues operations that another node or an unknown commit has changed, if this node leads.
    pub(super) fn reconcile_all(
        &mut self,
        operations: BTreeSet<OperationId>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if self.role.leads() {
            for operation in operations {
                self.reconcile(operation, now, effects);
            }
        }
    }

    /// Answers repeated requests whose effect is published by now.
    pub(super) fn finish_replays(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        while let Some(entry) = self.replays.first_entry().filter(|one| one.key().0 <= self.watched) {
            let ((_, id), outcome) = entry.remove_entry();
            self.finish_or_join(id, outcome, now, effects);
        }
    }

    pub(super) fn publish(
        &mut self,
        published: Vec<PublishedChange>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if published.is_empty() {
            return;
        }
        let mut drives = Vec::new();
        let leads = self.role.leads();
        for change in published.iter().filter(|_| leads) {
            match change {
                PublishedChange::Scope(scope, _, held) => {
                    drives.extend(self.sync_commands(scope, held.as_ref().map(|held| &*held.value)));
                    self.renew_deadline(scope, now);
                    self.recheck_hosts_in(scope);
                }
                PublishedChange::Operation(id, held) => {
                    drives.extend(self.sync_host_command(*id, held.as_ref().map(|held| &*held.value)));
                    // A closed operation had no event left, so it blocked nothing.
                    if let Some(held) = held.as_ref().filter(|held| held.value.joint_start.is_some()) {
                        self.host_operation_changed(&held.value, now);
                    }
                }
                PublishedChange::Vm(..)
                | PublishedChange::Claim(..)
                | PublishedChange::Token(..)
                | PublishedChange::Host(..) => {}
            }
        }
        effects.push(Effect::Publish(Publication {
            changes: published,
            inventory: self.state.inventory().clone(),
        }));
        effects.extend(drives);
    }
}

/// The tokens that a commit has revoked, by its facts. Watches may lose the deletion, and a revoked token must not stay
/// valid until the next repair.
fn revoked_tokens(batch: &Batch) -> Vec<Key> {
    let revoked = facts_with(batch, REVOKED).filter_map(|fact| {
        let Fact::TokenRevoked { name } = fact else { return None };
        Some(records::token(&name))
    });
    revoked.collect()
}

/// The facts of a commit, of those records that contain a word. The others are not decoded.
fn facts_with<'a>(batch: &'a Batch, word: &'a [u8]) -> impl Iterator<Item = Fact> + 'a {
    let facts = batch.changes.iter().filter(|change| change.key.starts_with(records::prefix::FACT));
    let values = facts.filter_map(|change| Some((&change.key, change.value.as_ref()?)));
    let with_word = values.filter(move |(_, value)| value.windows(word.len()).any(|part| part == word));
    let batches = with_word.filter_map(|(key, value)| records::decode::<FactBatch>(key, value).ok());
    batches.flat_map(|batch| batch.facts).map(|recorded| recorded.fact)
}

/// Processes a record that no job of this process is known to have written: another node's, or one whose commit
/// had an unknown outcome. Collects the operations to reconcile because of it.
pub(super) fn record_foreign_change(
    change: Result<Option<PublishedChange>, DecodeError>,
    before: Option<Revisioned<Scope>>,
    published: &mut Vec<PublishedChange>,
    to_reconcile: &mut BTreeSet<OperationId>,
) {
    // An undecodable record was damaged, or written by a newer release in the same cluster. The state keeps its version,
    // and commits that touch the record conflict, which callers see.
    let Ok(Some(change)) = change else { return };
    match &change {
        PublishedChange::Scope(_, _, held) => {
            let after = held.as_ref().map(|held| &*held.value);
            to_reconcile.extend(
                before.iter().flat_map(|before| crate::draft::to_reconcile(&before.value, after, |_| false)),
            );
        }
        PublishedChange::Operation(id, Some(_)) => {
            to_reconcile.insert(*id);
        }
        PublishedChange::Operation(_, None)
        | PublishedChange::Vm(..)
        | PublishedChange::Claim(..)
        | PublishedChange::Token(..)
        | PublishedChange::Host(..) => {}
    }
    published.push(change);
}

#[cfg(test)]
mod tests {
    use notbefore_core::Settings;

    use super::super::{ALIVE_STORED_EVERY, EngineSettings, Input};
    use super::*;

    #[test]
    fn skipped_watch_revisions_are_not_awaited() {
        let settings = EngineSettings { domain: Settings::default(), node: "n".into() };
        let mut now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let (mut engine, _) = Engine::new(settings, Vec::new(), Revision(0), now).unwrap();
        let mut store_times = |engine: &mut Engine, revision| {
            let effects = engine.handle(Input::Tick, now);
            let [Effect::Commit(id, _)] = &effects[..] else { panic!("not one commit: {effects:?}") };
            engine.handle(Input::Committed(*id, Outcome::Committed(Revision(revision))), now);
            now += ALIVE_STORED_EVERY;
        };
        for revision in [1, 2, 4] {
            store_times(&mut engine, revision);
        }
        assert_eq!(engine.own_revisions.len(), 3);
        // A watch that fell behind shows neither 1 nor 2.
        engine.handle(Input::Watched(Batch { revision: Revision(3), changes: [].into() }), now);
        assert_eq!(engine.own_revisions, BTreeSet::from([Revision(4)]));
    }
}
