//! The watch of a store whose watches cannot be trusted: a sans-IO follower that resumes, reassembles fragments and
//! never goes back.
//!
//! The adapter opens a watch after [`WatchFollower::seen`] and passes on what it receives. The follower returns whole
//! batches with rising revisions, and says when the adapter has to do more ([`WatchNeed`]):
//!
//! - *reconnect*, to another member of the store: the connection is lost, or nothing arrived for [`STALLED_AFTER`].
//!   Every node writes a heartbeat each second, so a silent watch is a broken one;
//! - *resync*, load a snapshot: commits were compacted before they were seen, the watch showed a revision for the
//!   second time (then it may have skipped others, too), the state is known to be wrong, or a repair is due. Repairs find what nothing else shows:
//!   releases of etcd lose events of deletions.
//!
//! What arrives between a need and its fulfilment is dropped; the next watch shows it again.

use std::time::Duration;

use notbefore_store::{Batch, Change, Revision};

/// Silence after which a watch counts as stalled: three missed heartbeats of every node.
pub const STALLED_AFTER: Duration = Duration::from_secs(3);
/// Interval of repairs.
pub const REPAIR_EVERY: Duration = Duration::from_secs(10 * 60);

/// What the adapter receives. Times are the caller's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// A response, in the order of the store. A large commit may be split into fragments.
    Changes {
        changes: Vec<(Revision, Change)>,
        /// Whether the next response continues this one.
        is_fragment: bool,
    },
    /// A new watch after [`WatchFollower::seen`] is open.
    Opened,
    /// Commits after [`WatchFollower::seen`] are no longer in the store's log.
    Compacted,
    /// The connection is lost.
    Lost,
    /// The state that the watch has led to is wrong: a commit conflicted that could not.
    Distrusted,
    /// A snapshot was loaded and installed.
    Synced(Revision),
    /// Time passed.
    Tick,
}

/// What the adapter must do before the watch continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchNeed {
    /// Open a watch after [`WatchFollower::seen`], if possible at another member.
    Reconnect,
    /// Load a snapshot that is at least as new as [`WatchFollower::seen`].
    Resync(ResyncReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncReason {
    Compacted,
    WentBack,
    Distrusted,
    Repair,
}

/// The follower; see the module docs.
#[derive(Clone, Debug)]
pub struct WatchFollower {
    seen: Revision,
    /// Changes of a response that is not complete.
    fragments: Vec<(Revision, Change)>,
    heard_at: Duration,
    repair_every: Duration,
    repair_at: Duration,
    need: Option<WatchNeed>,
}

impl WatchFollower {
    /// After a snapshot at `seen`; the adapter opens a watch. `repair_every` is usually [`REPAIR_EVERY`].
    pub fn new(seen: Revision, repair_every: Duration, now: Duration) -> Self {
        let (fragments, repair_at) = (Vec::new(), now + repair_every);
        let need = Some(WatchNeed::Reconnect);
        Self { seen, fragments, heard_at: now, repair_every, repair_at, need }
    }

    /// Every commit up to this revision was returned, or is in the snapshot.
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// What the adapter must do before the watch continues; none while it works.
    pub fn need(&self) -> Option<WatchNeed> {
        self.need
    }

    /// How long the watch has been silent, if that is too long.
    fn stalled_for(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.heard_at)).filter(|silent| *silent >= STALLED_AFTER)
    }

    /// Takes an event and returns the batches that it completes.
    pub fn handle(&mut self, event: WatchEvent, now: Duration) -> Vec<Batch> {
        match event {
            WatchEvent::Changes { changes, is_fragment } => {
                if self.need.is_some() {
                    return Vec::new();
                }
                self.heard_at = now;
                self.fragments.extend(changes);
                match is_fragment {
                    true => Vec::new(),
                    false => self.take_batches(),
                }
            }
            WatchEvent::Opened => {
                self.heard_at = now;
                self.fragments.clear();
                if self.need == Some(WatchNeed::Reconnect) {
                    self.need = None;
                }
                Vec::new()
            }
            WatchEvent::Compacted => self.stop(WatchNeed::Resync(ResyncReason::Compacted)),
            WatchEvent::Lost => self.stop(WatchNeed::Reconnect),
            WatchEvent::Distrusted => self.stop(WatchNeed::Resync(ResyncReason::Distrusted)),
            WatchEvent::Synced(revision) => {
                // A snapshot from a member that lags would take back what was shown.
                if revision >= self.seen {
                    self.seen = revision;
                    self.repair_at = now + self.repair_every;
                    self.need = Some(WatchNeed::Reconnect);
                    self.heard_at = now;
                }
                self.fragments.clear();
                Vec::new()
            }
            WatchEvent::Tick => {
                if self.need.is_none() && self.stalled_for(now).is_some() {
                    return self.stop(WatchNeed::Reconnect);
                }
                if self.need.is_none() && now >= self.repair_at {
                    return self.stop(WatchNeed::Resync(ResyncReason::Repair));
                }
                Vec::new()
            }
        }
    }

    /// Stops until the need is fulfilled. A resync also reconnects, so it replaces a reconnect and not the reverse.
    fn stop(&mut self, need: WatchNeed) -> Vec<Batch> {
        self.fragments.clear();
        if !matches!(self.need, Some(WatchNeed::Resync(_))) {
            self.need = Some(need);
        }
        Vec::new()
    }

    /// Groups the changes of a whole response by revision.
    fn take_batches(&mut self) -> Vec<Batch> {
        let changes = std::mem::take(&mut self.fragments);
        let mut batches = Vec::new();
        for same in changes.chunk_by(|(one, _), (two, _)| one == two) {
            let revision = same[0].0;
            if revision <= self.seen {
                self.stop(WatchNeed::Resync(ResyncReason::WentBack));
                break;
            }
            self.seen = revision;
            batches
                .push(Batch { revision, changes: same.iter().map(|(_, change)| change.clone()).collect() });
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn change(n: u64) -> Change {
        Change { key: format!("k/{n}").into(), value: None }
    }

    fn changes(revisions: &[u64], is_fragment: bool) -> WatchEvent {
        let changes = revisions.iter().map(|one| (Revision(*one), change(*one))).collect();
        WatchEvent::Changes { changes, is_fragment }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// A follower at revision 10 with an open watch.
    fn watching() -> WatchFollower {
        let mut follower = WatchFollower::new(Revision(10), REPAIR_EVERY, seconds(0));
        assert_eq!(follower.need(), Some(WatchNeed::Reconnect), "a watch must be opened first");
        follower.handle(WatchEvent::Opened, seconds(0));
        follower
    }

    fn revisions(batches: &[Batch]) -> Vec<u64> {
        batches.iter().map(|batch| batch.revision.0).collect()
    }

    #[test]
    fn changes_of_one_revision_are_one_batch() {
        let mut follower = watching();
        let batches = follower.handle(changes(&[11, 11, 15], false), seconds(1));
        assert_eq!(revisions(&batches), [11, 15], "revisions rise, and may have gaps");
        assert_eq!(batches[0].changes.len(), 2);
        assert_eq!((follower.seen(), follower.need()), (Revision(15), None));
    }

    #[test]
    fn fragments_are_joined() {
        let mut follower = watching();
        assert!(follower.handle(changes(&[11, 11], true), seconds(1)).is_empty());
        assert_eq!(follower.seen(), Revision(10), "an incomplete commit was not seen");
        let batches = follower.handle(changes(&[11, 12], false), seconds(1));
        assert_eq!(revisions(&batches), [11, 12]);
        assert_eq!(batches[0].changes.len(), 3);
    }

    #[test]
    fn fragments_before_a_lost_connection_are_dropped() {
        let mut follower = watching();
        follower.handle(changes(&[11], true), seconds(1));
        follower.handle(WatchEvent::Lost, seconds(1));
        assert_eq!(follower.need(), Some(WatchNeed::Reconnect));
        assert!(follower.handle(changes(&[12], false), seconds(1)).is_empty(), "the old connection is over");
        follower.handle(WatchEvent::Opened, seconds(2));
        let batches = follower.handle(changes(&[11, 11, 12], false), seconds(2));
        assert_eq!((revisions(&batches), batches[0].changes.len()), (vec![11, 12], 2));
    }

    #[test]
    fn watch_that_goes_back_is_replaced_by_a_snapshot() {
        let mut follower = watching();
        follower.handle(changes(&[11, 12], false), seconds(1));
        let batches = follower.handle(changes(&[12, 13], false), seconds(2));
        assert!(batches.is_empty(), "a revision is returned once");
        assert_eq!(follower.need(), Some(WatchNeed::Resync(ResyncReason::WentBack)));
        follower.handle(WatchEvent::Synced(Revision(11)), seconds(2));
        assert_eq!(follower.seen(), Revision(12), "a snapshot from a lagging member is not accepted");
        assert!(matches!(follower.need(), Some(WatchNeed::Resync(_))));
        follower.handle(WatchEvent::Synced(Revision(14)), seconds(2));
        assert_eq!((follower.seen(), follower.need()), (Revision(14), Some(WatchNeed::Reconnect)));
    }

    #[test]
    fn compacted_watch_needs_a_snapshot_even_if_the_connection_is_lost_too() {
        let mut follower = watching();
        follower.handle(WatchEvent::Compacted, seconds(1));
        follower.handle(WatchEvent::Lost, seconds(1));
        follower.handle(WatchEvent::Opened, seconds(1));
        assert_eq!(follower.need(), Some(WatchNeed::Resync(ResyncReason::Compacted)));
    }

    #[test]
    fn silent_watch_is_stalled_after_three_seconds() {
        let mut follower = watching();
        follower.handle(changes(&[11], false), seconds(1));
        follower.handle(WatchEvent::Tick, seconds(3));
        assert_eq!((follower.need(), follower.stalled_for(seconds(3))), (None, None));
        follower.handle(WatchEvent::Tick, seconds(4));
        assert_eq!(follower.stalled_for(seconds(4)), Some(seconds(3)));
        assert_eq!(follower.need(), Some(WatchNeed::Reconnect));
    }

    #[test]
    fn repair_is_due_after_ten_minutes() {
        let mut follower = watching();
        follower.handle(changes(&[11], false), REPAIR_EVERY - seconds(1));
        follower.handle(WatchEvent::Tick, REPAIR_EVERY - seconds(1));
        assert_eq!(follower.need(), None);
        follower.handle(WatchEvent::Tick, REPAIR_EVERY);
        assert_eq!(follower.need(), Some(WatchNeed::Resync(ResyncReason::Repair)));
    }

    fn event() -> impl Strategy<Value = WatchEvent> {
        let revisions = vec(1u64..30, 0..6);
        prop_oneof![
            6 => (revisions, any::<bool>()).prop_map(|(revisions, is_fragment)| changes(&revisions, is_fragment)),
            2 => Just(WatchEvent::Opened),
            1 => Just(WatchEvent::Compacted),
            1 => Just(WatchEvent::Lost),
            1 => Just(WatchEvent::Distrusted),
            1 => (1u64..30).prop_map(|revision| WatchEvent::Synced(Revision(revision))),
            1 => Just(WatchEvent::Tick),
        ]
    }

    proptest! {
        #[test]
        fn batches_rise_whatever_arrives(events in vec((event(), 0u64..4), 0..60)) {
            let mut follower = watching();
            let (mut newest, mut now) = (follower.seen(), seconds(0));
            for (event, passed) in events {
                now += seconds(passed);
                for batch in follower.handle(event, now) {
                    prop_assert!(batch.revision > newest, "{} after {newest}", batch.revision);
                    newest = batch.revision;
                }
                prop_assert!(follower.seen() >= newest);
                newest = follower.seen();
            }
        }
    }
}
