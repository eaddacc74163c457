//! Watches and snapshots of a node: what its follower asks for and gets, with their faults.

use std::time::Duration;

use notbefore_engine::cluster::{WatchEvent, leadership};
use notbefore_engine::{Input, records};
use notbefore_store::Revision;

use super::Loading;
use crate::invariants::Check;
use crate::world::World;

impl World {
    /// The engine asked for a snapshot.
    pub(crate) fn snapshot_requested(&mut self) {
        let now = self.node.since_boot;
        if let Some(member) = &mut self.node.member {
            member.follower.handle(WatchEvent::Distrusted, now);
        }
    }

    /// Passes on what the current node's watch shows by now, and what it has loaded.
    pub(super) fn pump(&mut self) -> Check {
        loop {
            let now = self.node.since_boot;
            let time = self.cluster.as_ref().map_or(Duration::ZERO, |cluster| cluster.time);
            let Some(member) = self.node.member.as_mut().filter(|member| member.is_running()) else {
                return Ok(());
            };
            member.follower.handle(WatchEvent::Tick, now);
            if member.is_cut {
                return Ok(());
            }
            let needs_snapshot = member.follower.needs_snapshot().is_some();
            if needs_snapshot && self.setup.leaderless {
                // Commits that are no longer in the log were skipped.
                let oldest = self.store.compacted().max(member.follower.seen());
                member.follower.install(oldest, Vec::new(), now);
            } else if needs_snapshot && member.loading.is_none() {
                let complete_at = time + member.load_time;
                let revision = self.revision_to_load();
                if let Some(member) = &mut self.node.member {
                    member.loading = Some(Loading { revision, complete_at });
                }
            } else if let Some(loading) = member.loading.take_if(|loading| loading.complete_at <= time) {
                self.load_snapshot(loading.revision)?;
            } else if member.follower.needs_watch() {
                // Another member of the store.
                member.is_stalled = false;
                let seen = member.follower.seen();
                self.node.watched = self.store.log().partition_point(|batch| batch.revision <= seen);
                let event = match seen < self.store.compacted() {
                    true => WatchEvent::Compacted,
                    false => WatchEvent::Opened,
                };
                member.follower.handle(event, now);
            } else if let Some(events) = self.next_events() {
                for event in events {
                    self.watched_event(event)?;
                }
            } else {
                return Ok(());
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
            member.has_lost_deletes = true;
            self.stats.cluster_faults.lost_deletes += 1;
            changes.retain(|(_, change)| change.value.is_some());
        }
        // A large commit comes in fragments.
        let second = changes.split_off(changes.len() / 2);
        let first = WatchEvent::Changes { changes, is_fragment: true };
        Some(vec![first, WatchEvent::Changes { changes: second, is_fragment: false }])
    }

    /// The revision of a snapshot that is begun now.
    fn revision_to_load(&mut self) -> Revision {
        let newest = self.store.revision();
        let Some(member) = self.node.member.as_mut().filter(|member| member.stale_reads > 0) else {
            return newest;
        };
        member.stale_reads -= 1;
        self.stats.cluster_faults.stale_reads += 1;
        let behind = self.store.log().len().saturating_sub(3);
        self.store.log().get(behind).map_or(Revision(0), |batch| batch.revision)
    }

    fn load_snapshot(&mut self, revision: Revision) -> Check {
        let now = self.node.since_boot;
        let Some(member) = &mut self.node.member else { return Ok(()) };
        // A compaction ends the reads at older revisions.
        if revision < self.store.compacted() {
            return Ok(());
        }
        let all = self.store.records_at(revision);
        let followed = all.into_iter().filter(|(key, _)| records::is_followed(key)).collect();
        let Some((revision, records)) = member.follower.install(revision, followed, now) else {
            return Ok(());
        };
        member.has_lost_deletes = false;
        self.stats.resyncs += 1;
        let (loaded, of_cluster) = records.into_iter().partition(|(key, _)| records::is_loaded(key));
        self.feed(Input::Resync(revision, loaded))?;
        self.lead(leadership::Input::Synced(revision, of_cluster))
    }
}
