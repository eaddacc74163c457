//! Whether a node's name is free: no two running nodes have the same.
//!
//! A process that was killed leaves its heartbeat in the store. A process that still runs changes it every second. So a
//! node that starts and finds a heartbeat under its name reads it again, until it changes or has not changed for
//! [`ELECT_AFTER`]. A process that stops in an orderly way says so in its last heartbeat; then no node waits.
//!
//! A process that stood still and lost its name may write one more heartbeat before it ends. Its claim is lower than the one
//! that was read first ([`NodeRecord::claim`]), so it does not count as a change.

use std::time::Duration;

use notbefore_store::Revision;

use super::NodeRecord;
use super::leadership::ELECT_AFTER;

/// How often the caller reads the heartbeat again.
pub const READ_EVERY: Duration = Duration::from_millis(250);

/// What the heartbeats say so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameVerdict {
    Free,
    /// Another process of this name runs.
    Taken,
    /// Read the heartbeat again after [`READ_EVERY`].
    Wait,
}

/// The check; see the module docs. Times are the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct NameCheck {
    first: Option<FirstRead>,
}

/// The first heartbeat that was read, and when.
#[derive(Clone, Debug)]
struct FirstRead {
    epoch: String,
    beat: u64,
    claim: Revision,
    at: Duration,
}

impl NameCheck {
    /// The heartbeat under the node's name with its revision, as just read.
    pub fn read(&mut self, record: Option<(&NodeRecord, Revision)>, now: Duration) -> NameVerdict {
        let Some((record, revision)) = record.filter(|(record, _)| !record.has_stopped) else {
            return NameVerdict::Free;
        };
        let claim = record.claim(revision);
        let first = self.first.get_or_insert_with(|| FirstRead {
            epoch: record.epoch.clone(),
            beat: record.beat,
            claim,
            at: now,
        });
        let is_late = first.epoch != record.epoch && claim < first.claim;
        if !is_late && (&first.epoch, first.beat) != (&record.epoch, record.beat) {
            NameVerdict::Taken
        } else if now.saturating_sub(first.at) >= ELECT_AFTER {
            NameVerdict::Free
        } else {
            NameVerdict::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(epoch: &str, beat: u64) -> NodeRecord {
        NodeRecord {
            epoch: epoch.into(),
            beat,
            clock: "2026-11-17T12:00:00Z".parse().unwrap(),
            url: String::new(),
            level: 2,
            is_watching: true,
            has_stopped: false,
            watched_revision: Revision(1),
            claimed_at: None,
        }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn name_without_a_heartbeat_is_free() {
        assert_eq!(NameCheck::default().read(None, seconds(1)), NameVerdict::Free);
    }

    #[test]
    fn name_whose_heartbeat_changes_is_taken() {
        for changed in [record("a", 8), record("b", 1)] {
            let mut check = NameCheck::default();
            assert_eq!(check.read(Some((&record("a", 7), Revision(9))), seconds(1)), NameVerdict::Wait);
            assert_eq!(check.read(Some((&record("a", 7), Revision(9))), seconds(2)), NameVerdict::Wait);
            assert_eq!(check.read(Some((&changed, Revision(9))), seconds(3)), NameVerdict::Taken);
        }
    }

    #[test]
    fn name_of_a_killed_process_is_free_after_four_seconds() {
        let mut check = NameCheck::default();
        check.read(Some((&record("a", 7), Revision(9))), seconds(1));
        assert_eq!(check.read(Some((&record("a", 7), Revision(9))), seconds(4)), NameVerdict::Wait);
        assert_eq!(check.read(Some((&record("a", 7), Revision(9))), seconds(5)), NameVerdict::Free);
    }

    #[test]
    fn name_of_a_process_that_stopped_is_free_at_once() {
        let stopped = NodeRecord { has_stopped: true, ..record("a", 9) };
        assert_eq!(NameCheck::default().read(Some((&stopped, Revision(9))), seconds(1)), NameVerdict::Free);
    }

    #[test]
    fn late_heartbeat_of_a_process_that_lost_the_name_does_not_take_it() {
        let of = |epoch, beat, claim| NodeRecord { claimed_at: Some(Revision(claim)), ..record(epoch, beat) };
        let mut check = NameCheck::default();
        assert_eq!(check.read(Some((&of("b", 7, 20), Revision(30))), seconds(1)), NameVerdict::Wait);
        let late = of("a", 9, 10);
        assert_eq!(check.read(Some((&late, Revision(31))), seconds(2)), NameVerdict::Wait);
        assert_eq!(check.read(Some((&late, Revision(31))), seconds(5)), NameVerdict::Free);
        let goes_on = of("b", 8, 20);
        assert_eq!(check.read(Some((&goes_on, Revision(32))), seconds(6)), NameVerdict::Taken);
        // The process before may have written the heartbeat that was read first.
        let mut check = NameCheck::default();
        check.read(Some((&late, Revision(31))), seconds(1));
        assert_eq!(check.read(Some((&goes_on, Revision(32))), seconds(2)), NameVerdict::Taken);
    }
}
