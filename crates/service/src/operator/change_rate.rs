//! Rate limit of changes (GCRA, as in `guest/rate.rs`) for tokens that are not operator on `/`, so that no tenant can
//! fill the disk.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::guest::rate::{RateLimit, RateState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRateLimit {
    /// Changes that a token may make at once.
    pub burst: NonZeroU32,
    /// Sustained rate.
    pub per_second: NonZeroU32,
}

impl Default for ChangeRateLimit {
    fn default() -> Self {
        let positive =
            |number| u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
        Self { burst: positive(Self::BURST), per_second: positive(Self::PER_SECOND) }
    }
}

impl ChangeRateLimit {
    /// Default burst: a fleet file of 600 scopes.
    pub const BURST: usize = 600;
    /// Default sustained rate.
    pub const PER_SECOND: usize = 10;

    /// Counts a change; over the limit, returns the time to wait.
    pub fn try_acquire(self, rate_state: &RateState, uptime: Duration) -> Result<(), Duration> {
        let burst = Duration::from_secs(1) * self.burst.get() / self.per_second.get();
        RateLimit::new(self.per_second).acquire(rate_state, uptime, burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_refills_and_refusal_states_wait() {
        let limit = ChangeRateLimit {
            burst: NonZeroU32::new(600).unwrap(),
            per_second: NonZeroU32::new(10).unwrap(),
        };
        let at = Duration::from_millis;
        let rate_state = RateState::default();
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(0)).is_ok()).count(), 600);
        assert_eq!(limit.try_acquire(&rate_state, at(0)), Err(Duration::from_millis(100)));
        assert_eq!(limit.try_acquire(&rate_state, at(60)), Err(Duration::from_millis(40)));
        assert_eq!(limit.try_acquire(&rate_state, at(100)), Ok(()));
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(10_100)).is_ok()).count(), 100);
        assert_eq!((0..700).filter(|_| limit.try_acquire(&rate_state, at(3_600_000)).is_ok()).count(), 600);
    }
}
