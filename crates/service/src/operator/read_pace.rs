//! Pace of costly reads for each token (GCRA, as in `guest/rate.rs`): the summary of the history reads up to 10,000
//! events, an export reads the whole store. Without it, one token could keep a processor busy for all.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::guest::rate::{RateLimit, RateState};

/// Costly reads that a token may make at once: a page of the console makes one each time a filter changes.
pub const BURST: u32 = 20;
/// Sustained rate.
pub const PER_SECOND: NonZeroU32 = NonZeroU32::MIN;

/// Counts a read; over the limit, returns the time to wait.
pub fn try_acquire(rate_state: &RateState, uptime: Duration) -> Result<(), Duration> {
    let burst = Duration::from_secs(1) * BURST / PER_SECOND.get();
    RateLimit::new(PER_SECOND).acquire(rate_state, uptime, burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_refills() {
        let at = |seconds: u64| Duration::from_secs(1_000 + seconds);
        let rate_state = RateState::default();
        assert_eq!((0..30).filter(|_| try_acquire(&rate_state, at(0)).is_ok()).count(), 20);
        assert_eq!(try_acquire(&rate_state, at(0)), Err(Duration::from_secs(1)));
        assert_eq!((0..30).filter(|_| try_acquire(&rate_state, at(5)).is_ok()).count(), 5);
    }
}
