//! Watches and snapshots of a node: what its follower asks for and gets, with their faults.

use notbefore_engine::Input;
use notbefore_engine::cluster::leadership;
use notbefore_engine::cluster::watch_follower::{WatchEvent, WatchNeed};
use notbefore_store::{Key, Revision, Versioned};

use super::of_cluster;
use crate::conformance::Violation;
use crate::invariants::Check;
use crate::world::{World, is_loaded};

impl World {
    /// The engine asked for a snapshot.
    pub(crate) fn snapshot_requested(&mut self) {
        let now = self.node.since_boot;
        if let Some(member) = &mut self.node.member {
            member.follower.handle(WatchEvent::Distrusted, now);
        }
    }

    /// Passes on what the current node's watch shows by now.
    pub(super) fn pump(&mut self) -> Check {
        loop {
            let now = self.node.since_boot;
            let Some(member) = self.node.member.as_mut().filter(|member| member.is_running()) else {
                return Ok(());
            };
            member.follower.handle(WatchEvent::Tick, now);
            match member.follower.need() {
                Some(_) if member.is_cut => return Ok(()),
                Some(WatchNeed::Reconnect) => {
                    // Another member of the store.
                    member.is_stalled = false;
                    let seen = member.follower.seen();
                    self.node.watched = self.store.log().partition_point(|batch| batch.revision <= seen);
                    let event = match seen < self.store.compacted() {
                        true => WatchEvent::Compacted,
                        false => WatchEvent::Opened,
                    };
                    member.follower.handle(event, now);
                }
                Some(WatchNeed::Resync(_)) if self.setup.leaderless => {
                    // Commits that are no longer in the log were skipped.
                    let oldest = self.store.compacted().max(member.follower.seen());
                    member.follower.handle(WatchEvent::Synced(oldest), now);
                }
                Some(WatchNeed::Resync(_)) => {
                    if !self.load_snapshot()? {
                        return Ok(());
                    }
                }
                None => {
                    let Some(events) = self.next_events() else { return Ok(()) };
                    for event in events {
                        self.watched_event(event)?;
                    }
                }
            }
        }
    }

    fn watched_event(&mut self, event: WatchEvent) -> Check {
        let now = self.node.since_boot;
        let Some(member) = &mut self.node.member else { return Ok(()) };
        for batch in member.follower.handle(event, now) {
            self.feed(Input::Watched(batch.clone()))?;
            self.lead(leadership::Input::Watched(batch))?;
        }
        Ok(())
    }

    /// What the watch yields next, if anything is due.
    fn next_events(&mut self) -> Option<Vec<WatchEvent>> {
        let cluster = self.cluster.as_ref()?;
        let member = self.node.member.as_mut()?;
        let position = self.node.watched;
        let batch = self.store.log().get(position)?;
        let is_due = cluster.committed_at.get(position).is_some_and(|at| *at + member.lag <= cluster.time);
        if !is_due || member.is_cut || member.is_stalled {
            return None;
        }
        self.node.watched += 1;
        if batch.revision <= self.store.compacted() && batch.revision > member.follower.seen() {
            let is_behind = cluster.committed_at.get(position).is_some_and(|at| *at < cluster.time);
            if is_behind {
                return Some(vec![WatchEvent::Compacted]);
            }
        }
        let mut changes: Vec<_> =
            batch.changes.iter().map(|change| (batch.revision, change.clone())).collect();
        if member.drop_deletes > 0 && changes.iter().any(|(_, change)| change.value.is_none()) {
            member.drop_deletes -= 1;
            self.stats.cluster_faults.lost_deletes += 1;
            changes.retain(|(_, change)| change.value.is_some());
        }
        // A large commit comes in fragments.
        let second = changes.split_off(changes.len() / 2);
        let first = WatchEvent::Changes { changes, is_fragment: true };
        Some(vec![first, WatchEvent::Changes { changes: second, is_fragment: false }])
    }

    /// Loads a snapshot; returns whether it was new enough.
    fn load_snapshot(&mut self) -> Result<bool, Violation> {
        let now = self.node.since_boot;
        let Some(member) = &mut self.node.member else { return Ok(false) };
        let mut revision = self.store.revision();
        if member.stale_reads > 0 {
            member.stale_reads -= 1;
            self.stats.cluster_faults.stale_reads += 1;
            let behind = self.store.log().len().saturating_sub(3);
            revision = self.store.log().get(behind).map_or(Revision(0), |batch| batch.revision);
        }
        if revision < member.follower.seen() {
            member.follower.handle(WatchEvent::Synced(revision), now);
            return Ok(false);
        }
        self.stats.resyncs += 1;
        let all = self.store.records_at(revision);
        let loaded = all.iter().filter(|(key, _)| is_loaded(key));
        let loaded: Vec<(Key, Versioned)> =
            loaded.map(|(key, record)| (key.clone(), record.clone())).collect();
        self.feed(Input::Resync(revision, loaded))?;
        self.lead(leadership::Input::Synced(revision, of_cluster(all.iter())))?;
        if let Some(member) = &mut self.node.member {
            member.follower.handle(WatchEvent::Synced(revision), now);
        }
        Ok(true)
    }
}
