//! The watch of a store whose watches cannot be trusted: a sans-IO follower that resumes, reassembles fragments and
//! never goes back.
//!
//! The adapter opens a watch after [`WatchFollower::seen`] and passes on what it receives. The follower returns whole
//! batches with rising revisions, and says what else the adapter has to do:
//!
//! - *open a watch*, if possible at another member of the store: there is none, it was lost, or nothing arrived for
//!   [`STALLED_AFTER`]. Every node writes a heartbeat each second, so a silent watch is a broken one;
//! - *load a snapshot* ([`ResyncReason`]): commits were compacted before they were seen, the watch showed a revision
//!   for the second time (then it may have skipped others, too), the state is known to be wrong, or a repair is due.
//!   Repairs find what nothing else shows: releases of etcd lose events of deletions.
//!
//! The watch continues while a snapshot is loaded: a leader that hears nothing for some seconds must step down, and a
//! large fleet takes longer than that. The follower keeps the batches of that time. [`WatchFollower::install`] adds
//! those that the snapshot lacks, so that the result is as new as the watch. Only a compacted watch has to wait for
//! the snapshot, because there is no revision from which it could continue.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_store::{Batch, Change, Key, Revision, Versioned};

use crate::records;

/// Silence after which a watch counts as stalled: three missed heartbeats of every node.
pub const STALLED_AFTER: Duration = Duration::from_secs(3);
/// Interval of repairs.
pub const REPAIR_EVERY: Duration = Duration::from_secs(10 * 60);
/// Limit on the batches that are kept while a snapshot is loaded. Beyond it, another snapshot is needed.
pub const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

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
    /// The watch does not show a commit that the store has.
    Incomplete,
    /// Time passed.
    Tick,
}

/// Why a snapshot is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncReason {
    Compacted,
    WentBack,
    Distrusted,
    Repair,
}

/// A snapshot that is needed.
#[derive(Clone, Debug)]
struct Resync {
    reason: ResyncReason,
    /// `kept` has every batch after this revision.
    kept_after: Revision,
    kept: Vec<Batch>,
    kept_bytes: usize,
}

/// The follower; see the module docs.
#[derive(Clone, Debug)]
pub struct WatchFollower {
    seen: Revision,
    is_open: bool,
    /// Changes of a commit that is not complete.
    fragments: Vec<(Revision, Change)>,
    heard_at: Duration,
    repair_every: Duration,
    repair_at: Duration,
    resync: Option<Resync>,
}

impl WatchFollower {
    /// After a snapshot at `seen`; the adapter opens a watch. `repair_every` is usually [`REPAIR_EVERY`].
    pub fn new(seen: Revision, repair_every: Duration, now: Duration) -> Self {
        Self {
            seen,
            is_open: false,
            fragments: Vec::new(),
            heard_at: now,
            repair_every,
            repair_at: now + repair_every,
            resync: None,
        }
    }

    /// Every commit up to this revision was returned, or is in the snapshot.
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// Whether the adapter must open a watch after [`Self::seen`], if possible at another member.
    pub fn needs_watch(&self) -> bool {
        !self.is_open && self.needs_snapshot() != Some(ResyncReason::Compacted)
    }

    /// Why the adapter must load a snapshot and [`Self::install`] it.
    pub fn needs_snapshot(&self) -> Option<ResyncReason> {
        self.resync.as_ref().map(|resync| resync.reason)
    }

    /// Takes an event and returns the batches that it completes.
    pub fn handle(&mut self, event: WatchEvent, now: Duration) -> Vec<Batch> {
        match event {
            WatchEvent::Changes { changes, is_fragment } => {
                if !self.is_open {
                    // Of a watch that was given up.
                    return Vec::new();
                }
                self.heard_at = now;
                self.fragments.extend(changes);
                return self.take_batches(is_fragment);
            }
            WatchEvent::Opened => {
                self.close_watch();
                (self.is_open, self.heard_at) = (true, now);
            }
            WatchEvent::Compacted => {
                self.close_watch();
                self.need_snapshot(ResyncReason::Compacted);
            }
            WatchEvent::Lost => self.close_watch(),
            WatchEvent::Distrusted => self.need_snapshot(ResyncReason::Distrusted),
            WatchEvent::Incomplete => self.need_snapshot(ResyncReason::Repair),
            WatchEvent::Tick => {
                if now.saturating_sub(self.heard_at) >= STALLED_AFTER {
                    self.close_watch();
                }
                if self.is_open && now >= self.repair_at {
                    self.need_snapshot(ResyncReason::Repair);
                }
            }
        }
        Vec::new()
    }

    /// Takes a snapshot of all records for which [`records::is_followed`] holds, and returns it as new as the watch: the
    /// state at the returned revision. Returns none if the snapshot is too old, as from a member of the store that
    /// lags: then another is needed.
    pub fn install(
        &mut self,
        revision: Revision,
        mut snapshot: Vec<(Key, Versioned)>,
        now: Duration,
    ) -> Option<(Revision, Vec<(Key, Versioned)>)> {
        let resync = self.resync.take_if(|resync| revision >= resync.kept_after)?;
        self.repair_at = now + self.repair_every;
        if revision > self.seen {
            // The watch would show again what the snapshot has.
            self.close_watch();
            self.seen = revision;
            return Some((revision, snapshot));
        }
        let mut newer = BTreeMap::new();
        for batch in resync.kept.iter().filter(|batch| batch.revision > revision) {
            for change in batch.changes.iter().filter(|change| records::is_followed(&change.key)) {
                newer.insert(change.key.clone(), (batch.revision, change.value.clone()));
            }
        }
        snapshot.retain(|(key, _)| !newer.contains_key(key));
        let written = newer
            .into_iter()
            .filter_map(|(key, (revision, value))| Some((key, Versioned { revision, value: value? })));
        snapshot.extend(written);
        Some((self.seen, snapshot))
    }

    fn close_watch(&mut self) {
        self.is_open = false;
        self.fragments.clear();
    }

    /// A compacted watch waits for its snapshot, so that reason replaces the others.
    fn need_snapshot(&mut self, reason: ResyncReason) {
        let nothing_kept = Resync { reason, kept_after: self.seen, kept: Vec::new(), kept_bytes: 0 };
        let resync = self.resync.get_or_insert(nothing_kept);
        if reason == ResyncReason::Compacted {
            resync.reason = reason;
        }
    }

    /// Groups changes by revision. The last commit of a fragment may go on in the next one.
    fn take_batches(&mut self, is_fragment: bool) -> Vec<Batch> {
        let last = self.fragments.last().map(|(revision, _)| *revision).filter(|_| is_fragment);
        let complete = last.map_or(self.fragments.len(), |last| {
            self.fragments.iter().rposition(|(revision, _)| *revision != last).map_or(0, |index| index + 1)
        });
        let changes: Vec<_> = self.fragments.drain(..complete).collect();
        let mut batches = Vec::new();
        for same in changes.chunk_by(|(one, _), (two, _)| one == two) {
            let revision = same[0].0;
            if revision <= self.seen {
                self.need_snapshot(ResyncReason::WentBack);
                continue;
            }
            self.seen = revision;
            let changes = same.iter().map(|(_, change)| change.clone()).collect();
            batches.push(Batch { revision, changes });
        }
        self.keep(&batches);
        batches
    }

    fn keep(&mut self, batches: &[Batch]) {
        let Some(resync) = &mut self.resync else { return };
        let changes = batches.iter().flat_map(|batch| batch.changes.iter());
        let bytes = |change: &Change| change.key.len() + change.value.as_ref().map_or(0, |value| value.len());
        resync.kept_bytes += changes.map(bytes).sum::<usize>();
        resync.kept.extend_from_slice(batches);
        if resync.kept_bytes > KEPT_BYTES_MAX {
            (resync.kept_after, resync.kept_bytes) = (self.seen, 0);
            resync.kept.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A write of one of three records; every third one is a deletion.
    fn change(n: u64) -> Change {
        let value = (!n.is_multiple_of(3)).then(|| Bytes::from(n.to_string()));
        Change { key: format!("vm/{}", n % 4).into(), value }
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
        assert!(follower.needs_watch(), "a watch must be opened first");
        follower.handle(WatchEvent::Opened, seconds(0));
        follower
    }

    fn revisions(batches: &[Batch]) -> Vec<u64> {
        batches.iter().map(|batch| batch.revision.0).collect()
    }

    /// What the store has at a revision, if every revision up to it is one [`change`].
    fn state_at(revision: u64) -> Vec<(Key, Versioned)> {
        let mut records = BTreeMap::new();
        for n in 1..=revision {
            let Change { key, value } = change(n);
            match value {
                Some(value) => drop(records.insert(key, Versioned { value, revision: Revision(n) })),
                None => drop(records.remove(&key)),
            }
        }
        records.into_iter().collect()
    }

    #[test]
    fn changes_of_one_revision_are_one_batch() {
        let mut follower = watching();
        let batches = follower.handle(changes(&[11, 11, 15], false), seconds(1));
        assert_eq!(revisions(&batches), [11, 15], "revisions rise, and may have gaps");
        assert_eq!(batches[0].changes.len(), 2);
        assert_eq!((follower.seen(), follower.needs_snapshot()), (Revision(15), None));
    }

    #[test]
    fn fragments_are_joined() {
        let mut follower = watching();
        let batches = follower.handle(changes(&[11, 12, 12], true), seconds(1));
        assert_eq!(revisions(&batches), [11], "only the last commit may go on");
        assert_eq!(follower.seen(), Revision(11), "an incomplete commit was not seen");
        let batches = follower.handle(changes(&[12, 13], false), seconds(1));
        assert_eq!(revisions(&batches), [12, 13]);
        assert_eq!(batches[0].changes.len(), 3);
    }

    #[test]
    fn fragments_before_a_lost_connection_are_dropped() {
        let mut follower = watching();
        follower.handle(changes(&[11], true), seconds(1));
        follower.handle(WatchEvent::Lost, seconds(1));
        assert!(follower.needs_watch());
        assert!(follower.handle(changes(&[12], false), seconds(1)).is_empty(), "the old connection is over");
        follower.handle(WatchEvent::Opened, seconds(2));
        let batches = follower.handle(changes(&[11, 11, 12], false), seconds(2));
        assert_eq!((revisions(&batches), batches[0].changes.len()), (vec![11, 12], 2));
    }

    #[test]
    fn watch_that_goes_back_continues_and_needs_a_snapshot() {
        let mut follower = watching();
        follower.handle(changes(&[11, 12], false), seconds(1));
        let batches = follower.handle(changes(&[12, 13], false), seconds(2));
        assert_eq!(revisions(&batches), [13], "a revision is returned once");
        assert_eq!(follower.needs_snapshot(), Some(ResyncReason::WentBack));
        assert_eq!(
            follower.install(Revision(11), state_at(11), seconds(2)),
            None,
            "it is of a lagging member"
        );
        assert!(follower.needs_snapshot().is_some());
        let (revision, records) = follower.install(Revision(12), state_at(12), seconds(2)).unwrap();
        assert_eq!(revision, Revision(13), "what the watch has shown since is not taken back");
        assert_eq!(records.len(), state_at(13).len());
        assert_eq!((follower.needs_watch(), follower.needs_snapshot()), (false, None));
    }

    #[test]
    fn watch_continues_while_a_snapshot_is_loaded() {
        let mut follower = watching();
        follower.handle(WatchEvent::Distrusted, seconds(1));
        for n in 11..=40 {
            let batches = follower.handle(changes(&[n], false), seconds(n));
            assert_eq!(revisions(&batches), [n]);
        }
        assert!(!follower.needs_watch());
        let (revision, mut records) = follower.install(Revision(20), state_at(20), seconds(41)).unwrap();
        records.sort_by(|one, two| one.0.cmp(&two.0));
        assert_eq!((revision, records), (Revision(40), state_at(40)), "deletions and writes since are in it");
    }

    #[test]
    fn snapshot_ahead_of_the_watch_replaces_it() {
        let mut follower = watching();
        follower.handle(WatchEvent::Distrusted, seconds(1));
        let (revision, _) = follower.install(Revision(20), state_at(20), seconds(2)).unwrap();
        assert_eq!((revision, follower.seen()), (Revision(20), Revision(20)));
        assert!(follower.needs_watch(), "the old one would show commits of the snapshot again");
    }

    #[test]
    fn compacted_watch_waits_for_its_snapshot() {
        let mut follower = watching();
        follower.handle(WatchEvent::Distrusted, seconds(1));
        follower.handle(WatchEvent::Compacted, seconds(1));
        follower.handle(WatchEvent::Lost, seconds(1));
        assert_eq!(follower.needs_snapshot(), Some(ResyncReason::Compacted));
        assert!(!follower.needs_watch(), "there is no revision to continue from");
        follower.install(Revision(14), state_at(14), seconds(2)).unwrap();
        assert_eq!((follower.seen(), follower.needs_watch()), (Revision(14), true));
    }

    #[test]
    fn silent_watch_is_stalled_after_three_seconds() {
        let mut follower = watching();
        follower.handle(changes(&[11], false), seconds(1));
        follower.handle(WatchEvent::Tick, seconds(3));
        assert!(!follower.needs_watch());
        follower.handle(WatchEvent::Tick, seconds(4));
        assert!(follower.needs_watch());
    }

    #[test]
    fn repair_is_due_after_ten_minutes() {
        let mut follower = watching();
        follower.handle(changes(&[11], false), REPAIR_EVERY - seconds(1));
        follower.handle(WatchEvent::Tick, REPAIR_EVERY - seconds(1));
        assert_eq!(follower.needs_snapshot(), None);
        follower.handle(WatchEvent::Tick, REPAIR_EVERY);
        assert_eq!(follower.needs_snapshot(), Some(ResyncReason::Repair));
    }

    #[test]
    fn too_many_batches_need_another_snapshot() {
        let mut follower = watching();
        follower.handle(WatchEvent::Distrusted, seconds(1));
        let large = Bytes::from(vec![0; KEPT_BYTES_MAX / 4]);
        for n in 11..=15 {
            let change = Change { key: "vm/1".into(), value: Some(large.clone()) };
            let event = WatchEvent::Changes { changes: vec![(Revision(n), change)], is_fragment: false };
            assert_eq!(follower.handle(event, seconds(2)).len(), 1);
        }
        assert_eq!(follower.install(Revision(12), state_at(12), seconds(2)), None, "batches are missing");
        assert_eq!(follower.needs_snapshot(), Some(ResyncReason::Distrusted));
    }

    #[derive(Clone, Debug)]
    enum Happening {
        Event(WatchEvent),
        Snapshot(u64),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        let revisions = vec(1u64..30, 0..6);
        let event = prop_oneof![
            6 => (revisions, any::<bool>()).prop_map(|(revisions, is_fragment)| changes(&revisions, is_fragment)),
            2 => Just(WatchEvent::Opened),
            1 => Just(WatchEvent::Compacted),
            1 => Just(WatchEvent::Lost),
            1 => Just(WatchEvent::Distrusted),
            1 => Just(WatchEvent::Tick),
        ];
        prop_oneof![6 => event.prop_map(Happening::Event), 1 => (1u64..30).prop_map(Happening::Snapshot)]
    }

    proptest! {
        #[test]
        fn revisions_rise_whatever_arrives(happenings in vec((happening(), 0u64..4), 0..60)) {
            let mut follower = watching();
            let (mut newest, mut now) = (follower.seen(), seconds(0));
            for (happening, passed) in happenings {
                now += seconds(passed);
                match happening {
                    Happening::Event(event) => {
                        for batch in follower.handle(event, now) {
                            prop_assert!(batch.revision > newest, "{} after {newest}", batch.revision);
                            newest = batch.revision;
                        }
                    }
                    Happening::Snapshot(revision) => {
                        if let Some((revision, _)) = follower.install(Revision(revision), Vec::new(), now) {
                            prop_assert!(revision >= newest);
                            newest = revision;
                        }
                    }
                }
                prop_assert_eq!(follower.seen(), newest);
            }
        }

        /// An honest watch and a snapshot of any time since it was needed lead to the state of the store.
        #[test]
        fn installed_snapshot_is_the_state_of_the_store(
            before in 0u64..10, during in 0u64..20, loaded in 0u64..25, is_fragment in any::<bool>()
        ) {
            let mut follower = watching();
            let show = |follower: &mut WatchFollower, to: u64| {
                for n in follower.seen().0 + 1..=to {
                    follower.handle(changes(&[n], is_fragment && n < to), seconds(1));
                }
            };
            show(&mut follower, 10 + before);
            follower.handle(WatchEvent::Distrusted, seconds(1));
            show(&mut follower, 10 + before + during);
            let taken = 10 + before + loaded;
            let (revision, mut records) = follower.install(Revision(taken), state_at(taken), seconds(2)).unwrap();
            records.sort_by(|one, two| one.0.cmp(&two.0));
            prop_assert_eq!(revision.0, taken.max(10 + before + during));
            prop_assert_eq!(records, state_at(revision.0));
        }
    }
}
