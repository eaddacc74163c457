//! Whether a node's name is free: no two running nodes have the same.
//!
//! A process that was killed leaves its heartbeat in the store. A process that still runs changes it every second. So a
//! node that starts and finds a heartbeat under its name reads it again, until it changes or has not changed for
//! [`ELECT_AFTER`]. A process that stops in an orderly way says so in its last heartbeat; then no node waits.

use std::time::Duration;

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
    /// Epoch and number of the first heartbeat that was read, and when.
    first: Option<(String, u64, Duration)>,
}

impl NameCheck {
    /// The heartbeat under the node's name, as just read.
    pub fn read(&mut self, record: Option<&NodeRecord>, now: Duration) -> NameVerdict {
        let Some(record) = record.filter(|record| !record.has_stopped) else { return NameVerdict::Free };
        let (epoch, beat, since) = self.first.get_or_insert_with(|| (record.epoch.clone(), record.beat, now));
        if (&*epoch, *beat) != (&record.epoch, record.beat) {
            NameVerdict::Taken
        } else if now.saturating_sub(*since) >= ELECT_AFTER {
            NameVerdict::Free
        } else {
            NameVerdict::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_store::Revision;

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
            assert_eq!(check.read(Some(&record("a", 7)), seconds(1)), NameVerdict::Wait);
            assert_eq!(check.read(Some(&record("a", 7)), seconds(2)), NameVerdict::Wait);
            assert_eq!(check.read(Some(&changed), seconds(3)), NameVerdict::Taken);
        }
    }

    #[test]
    fn name_of_a_killed_process_is_free_after_four_seconds() {
        let mut check = NameCheck::default();
        check.read(Some(&record("a", 7)), seconds(1));
        assert_eq!(check.read(Some(&record("a", 7)), seconds(4)), NameVerdict::Wait);
        assert_eq!(check.read(Some(&record("a", 7)), seconds(5)), NameVerdict::Free);
    }

    #[test]
    fn name_of_a_process_that_stopped_is_free_at_once() {
        let stopped = NodeRecord { has_stopped: true, ..record("a", 9) };
        assert_eq!(NameCheck::default().read(Some(&stopped), seconds(1)), NameVerdict::Free);
    }
}
