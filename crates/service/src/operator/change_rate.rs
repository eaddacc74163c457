//! RateState of changes: a token that is not an operator's of everywhere may make a number of changes at once and gets them
//! back with time, so that no tenant fills the disk. The algorithm is the guest listener's (GCRA, `guest/rate.rs`).

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;

use crate::guest::rate::{RateLimit, RateState};

/// How many changes a token may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRateLimit {
    /// At once.
    pub burst: NonZeroU32,
    /// A second, for as long as it likes.
    pub per_second: NonZeroU32,
}

impl ChangeRateLimit {
    /// At once, if nothing else is set: a fleet file of 600 scopes.
    pub const BURST: usize = 600;
    /// A second, if nothing else is set.
    pub const PER_SECOND: usize = 10;

    /// Counts a change, or says how long to wait for it.
    pub fn try_acquire(self, rate_state: &RateState, now: Timestamp) -> Result<(), Duration> {
        let burst = Duration::from_secs(1) * self.burst.get() / self.per_second.get();
        RateLimit::new(self.per_second).acquire(rate_state, now, burst)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn burst_refills_and_refusal_states_wait() {
        let limit = ChangeRateLimit {
            burst: NonZeroU32::new(600).unwrap(),
            per_second: NonZeroU32::new(10).unwrap(),
        };
        let at = |ms: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_millis(1_000_000_000 + ms);
        let rate_state = RateState::default();
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(0)).is_ok()).count(), 600);
        assert_eq!(limit.try_acquire(&rate_state, at(0)), Err(Duration::from_millis(100)));
        assert_eq!(limit.try_acquire(&rate_state, at(60)), Err(Duration::from_millis(40)));
        assert_eq!(limit.try_acquire(&rate_state, at(100)), Ok(()));
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(10_100)).is_ok()).count(), 100);
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(3_600_000)).is_ok()).count(), 600);
        assert_eq!(
            limit.try_acquire(&rate_state, at(0)),
            Ok(()),
            "a clock that was set back keeps nobody out"
        );
    }
}
