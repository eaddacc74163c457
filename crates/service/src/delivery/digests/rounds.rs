//! Rounds through the fleet: each VM's slot is looked at once a minute, a part of them each second. Pure.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;

/// Slices of a round.
const SLICES: usize = 60;
/// Interval of slices.
const SLICE_EVERY: Duration = Duration::from_secs(1);

/// The scopes to look at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Numbers of the scopes' slots.
    pub slots: Range<usize>,
    /// Start of the round before: later polls have not been noted, or at most once.
    pub since: Timestamp,
}

/// Where the round is.
#[derive(Debug)]
pub struct Rounds {
    /// Number of the next slice, below [`SLICES`].
    slice: usize,
    next_at: Duration,
    /// Starts of this round and the one before.
    started: Timestamp,
    started_before: Timestamp,
}

impl Default for Rounds {
    fn default() -> Self {
        let never = Timestamp::MIN;
        Self { slice: 0, next_at: Duration::ZERO, started: never, started_before: never }
    }
}

impl Rounds {
    /// The next slice of `slots` scopes, once a second. `now` is monotonic, `at` the wall clock.
    pub fn next(&mut self, slots: usize, now: Duration, at: Timestamp) -> Option<Slice> {
        if now < self.next_at {
            return None;
        }
        self.next_at = now.saturating_add(SLICE_EVERY);
        if self.slice == 0 {
            self.started_before = std::mem::replace(&mut self.started, at);
        }
        let start_of = |slice: usize| slots * slice / SLICES;
        let slots = start_of(self.slice)..start_of(self.slice + 1);
        self.slice = (self.slice + 1) % SLICES;
        Some(Slice { slots, since: self.started_before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_core::samples::at;

    #[test]
    fn round_looks_at_each_scope_once_a_minute() {
        for slots in [1, 59, 60, 61, 1_000] {
            let mut rounds = Rounds::default();
            let mut seen = vec![0; slots];
            for second in 0..60 {
                let now = Duration::from_secs(second);
                let slice = rounds.next(slots, now, at(second as i64)).unwrap();
                assert!(slice.slots.len() <= slots.div_ceil(60));
                assert_eq!(rounds.next(slots, now + SLICE_EVERY / 2, at(0)), None);
                slice.slots.for_each(|slot| seen[slot] += 1);
            }
            assert!(seen.iter().all(|times| *times == 1), "{slots}: {seen:?}");
        }
    }

    #[test]
    fn slice_notes_polls_since_the_round_before() {
        let mut rounds = Rounds::default();
        let mut since = |second: i64| {
            rounds.next(120, Duration::from_secs(second.unsigned_abs()), at(second)).unwrap().since
        };
        assert!((0..60).all(|second| since(second) == Timestamp::MIN));
        assert!((60..120).all(|second| since(second) == at(0)));
        assert!((500..560).all(|second| since(second) == at(60)), "the leader did not answer for a while");
    }
}
