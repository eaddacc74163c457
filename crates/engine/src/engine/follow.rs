//! Taking over what is durable: this process's own commits, and what the store's watch shows. It is published,
//! and commands that it says are running are run.
//!
//! What is held is always all that was committed up to some revision, and our own commits besides. So a scope
//! is never known before the records of its VMs are.

use std::collections::BTreeSet;

use jiff::Timestamp;
use notbefore_core::{OperationId, Scope};
use notbefore_store::{Batch, Key, Revision, Txn};

use super::{Effect, Engine};
use crate::records::DecodeError;
use crate::state::{Held, Made, Publication, Published};

impl Engine {
    pub(super) fn take_over_own(
        &mut self,
        txn: &Txn,
        made: &[(Key, Made)],
        revision: Revision,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if revision <= self.watched || !txn.writes() {
            return;
        }
        self.own.insert(revision);
        let mut changes = Vec::with_capacity(txn.put.len() + txn.delete.len());
        for (key, value) in &txn.put {
            let change = match made.iter().rev().find(|(one, _)| one == key) {
                Some((_, made)) => self.state.install_made(key, revision, made),
                None => self.state.install(key, revision, Some(value)).ok().flatten(),
            };
            changes.extend(change);
        }
        for key in &txn.delete {
            changes.extend(self.state.install(key, revision, None).ok().flatten());
        }
        self.publish(changes, now, effects);
    }

    /// Plans those anew whose commit was refused since records were not as they knew them, once they know
    /// better. They wait for the watch and do not take over the record that the conflict found: what is held
    /// is then always all that was committed up to some revision, and our own commits besides. A scope would
    /// otherwise be known before its VMs' records are.
    pub(super) fn run_who_caught_up(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let behind = std::mem::take(&mut self.behind);
        for (id, expected) in behind {
            match expected.iter().any(|one| self.state.revision_of(&one.key) != one.revision) {
                true => self.run(id, now, effects),
                false => self.behind.push((id, expected)),
            }
        }
    }

    pub(super) fn take_over_watched(&mut self, batch: Batch, now: Timestamp, effects: &mut Vec<Effect>) {
        self.watched = self.watched.max(batch.revision);
        let mut stirred = BTreeSet::new();
        let is_own = self.own.contains(&batch.revision);
        // A watch that fell behind leaves revisions out, and does not come back to them.
        while self.own.first().is_some_and(|own| *own <= self.watched) {
            self.own.pop_first();
        }
        if !is_own {
            let mut published = Vec::new();
            for one in batch.changes.iter() {
                let before = self.state.scope_of_key(&one.key).cloned();
                let change = self.state.install(&one.key, batch.revision, one.value.as_ref());
                self.hold_shown(change.as_ref().ok().and_then(Option::as_ref), before.as_ref());
                note_foreign(change, before, &mut published, &mut stirred);
            }
            self.publish(published, now, effects);
        }
        self.state.watched(self.watched);
        for operation in stirred {
            self.reconcile(operation, now, effects);
        }
        self.run_who_caught_up(now, effects);
        while let Some(entry) = self.replays.first_entry().filter(|one| one.key().0 <= self.watched) {
            let ((_, id), outcome) = entry.remove_entry();
            self.finish_or_join(id, outcome, now, effects);
        }
    }

    pub(super) fn publish(&mut self, published: Vec<Published>, now: Timestamp, effects: &mut Vec<Effect>) {
        if published.is_empty() {
            return;
        }
        let mut drives = Vec::new();
        for change in &published {
            match change {
                Published::Scope(scope, _, held) => {
                    drives.extend(self.drive(scope, held.as_ref().map(|held| &*held.value)));
                    self.renew_deadline(scope, now);
                    self.look_at_hosts_in(scope);
                }
                Published::Operation(_, Some(held)) if held.value.joint_start.is_some() => {
                    self.host_operation_changed(&held.value, now);
                }
                // One that has closed had no event left, so it held nothing back.
                Published::Operation(..)
                | Published::Vm(..)
                | Published::Claim(..)
                | Published::Token(..) => {}
            }
        }
        effects.push(Effect::Publish(Publication {
            changes: published,
            inventory: self.state.inventory().clone(),
        }));
        effects.extend(drives);
    }
}

/// Notes a record that no job of this process is known to have written, another node's or one whose commit had
/// an unknown outcome, and the operations that must be looked at because of it, since no job will.
fn note_foreign(
    change: Result<Option<Published>, DecodeError>,
    before: Option<Held<Scope>>,
    published: &mut Vec<Published>,
    stirred: &mut BTreeSet<OperationId>,
) {
    // A record that cannot be read was written by a newer release in the same cluster; what is held stays,
    // and commits that touch it keep conflicting, which is said to whoever asks.
    let Ok(Some(change)) = change else { return };
    match &change {
        Published::Scope(_, _, held) => {
            let after = held.as_ref().map(|held| &*held.value);
            stirred.extend(
                before.iter().flat_map(|before| crate::draft::stirred(&before.value, after, |_| false)),
            );
        }
        Published::Operation(id, Some(_)) => {
            stirred.insert(*id);
        }
        Published::Operation(_, None) | Published::Vm(..) | Published::Claim(..) | Published::Token(..) => {}
    }
    published.push(change);
}

#[cfg(test)]
mod tests {
    use notbefore_core::Settings;
    use notbefore_store::Outcome;

    use super::super::{ALIVE_STORED_EVERY, EngineSettings, Input};
    use super::*;

    #[test]
    fn what_the_watch_has_passed_over_is_not_waited_for() {
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
        assert_eq!(engine.own.len(), 3);
        // A watch that fell behind shows neither 1 nor 2.
        engine.handle(Input::Watched(Batch { revision: Revision(3), changes: [].into() }), now);
        assert_eq!(engine.own, BTreeSet::from([Revision(4)]));
    }
}
