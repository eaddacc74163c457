//! Rate limit per VM: GCRA with one atomic number.
//!
//! A VM may burst one second's worth of requests, which refills over time. Its state is one number, the theoretical
//! arrival time ([`RateState`]). Each request advances it by one interval. A request that would advance it more than a
//! second ahead is refused. The check is one atomic exchange in memory that the poll touches anyway, and nothing has to
//! be swept.
//!
//! Times are those of [`UPTIME`](crate::clock::UPTIME), which cannot be set: no VM is refused because the wall clock
//! was set back. Threads read it at different moments, so a stored time may be a little further ahead than this
//! thread's time allows; it stays in force.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;

/// GCRA state of one VM.
#[derive(Debug, Default)]
pub struct RateState {
    /// Theoretical arrival time, in nanoseconds of uptime: the VM has its full burst from then on.
    tat_ns: AtomicU64,
}

impl RateState {
    /// A separate state with the same value.
    pub fn copy(&self) -> RateState {
        RateState { tat_ns: AtomicU64::new(self.tat_ns.load(Relaxed)) }
    }

    /// Whether the full burst is available again.
    pub(crate) fn is_full(&self, uptime: Duration) -> bool {
        self.tat_ns.load(Relaxed) <= nanoseconds(uptime)
    }
}

/// The limit, which is the same for every VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// One second divided by the allowed requests per second.
    interval_ns: u64,
}

impl RateLimit {
    pub(crate) fn new(per_second: NonZeroU32) -> RateLimit {
        RateLimit { interval_ns: SECOND_NS / u64::from(per_second.get()) }
    }

    /// Whether a request is allowed now; if so, counts it.
    pub(super) fn try_acquire(self, rate_state: &RateState, uptime: Duration) -> bool {
        self.acquire(rate_state, uptime, Duration::from_nanos(SECOND_NS)).is_ok()
    }

    /// Like [`Self::try_acquire`] with another burst; an error says when the next request is allowed.
    #[inline]
    pub(crate) fn acquire(
        self,
        rate_state: &RateState,
        uptime: Duration,
        burst: Duration,
    ) -> Result<(), Duration> {
        let now_ns = nanoseconds(uptime);
        let tat_max = now_ns + nanoseconds(burst);
        let mut tat = rate_state.tat_ns.load(Relaxed);
        loop {
            let from = tat.clamp(now_ns, tat_max);
            let next_tat = from + self.interval_ns;
            let is_allowed = next_tat <= tat_max;
            let next = if is_allowed { next_tat } else { from };
            match rate_state.tat_ns.compare_exchange_weak(tat, next, Relaxed, Relaxed) {
                Ok(_) if is_allowed => return Ok(()),
                Ok(_) => return Err(Duration::from_nanos(next_tat - tat_max)),
                Err(other) => tat = other,
            }
        }
    }
}

/// Limited to centuries, so that sums of two do not overflow.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_wire::guest::error::GuestError;

    fn limit(per_second: u32) -> RateLimit {
        RateLimit::new(NonZeroU32::new(per_second).unwrap())
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(1_000_000 + milliseconds)
    }

    #[test]
    fn burst_of_one_second_refills() {
        let limit = limit(5);
        let [a, b] = [RateState::default(), RateState::default()];
        assert_eq!((0..7).filter(|_| limit.try_acquire(&a, at(0))).count(), 5);
        assert!(limit.try_acquire(&b, at(0)), "each VM has its own state");
        assert!(!limit.try_acquire(&a, at(199)));
        assert!(limit.try_acquire(&a, at(200)));
        assert!(!limit.try_acquire(&a, at(200)));
        assert_eq!((0..9).filter(|_| limit.try_acquire(&a, at(60_000))).count(), 5);
    }

    #[test]
    fn older_now_of_other_thread_refills_nothing() {
        let limit = limit(5);
        let rate_state = RateState::default();
        assert_eq!((0..9).filter(|_| limit.try_acquire(&rate_state, at(100))).count(), 5);
        assert!(!limit.try_acquire(&rate_state, at(0)));
        assert!(!limit.try_acquire(&rate_state, at(100)));
    }

    #[test]
    fn request_succeeds_after_retry_after() {
        for per_second in [1, 3, 200] {
            let (limit, rate_state) = (limit(per_second), RateState::default());
            while limit.try_acquire(&rate_state, at(0)) {}
            assert!(
                limit.try_acquire(&rate_state, at(u64::from(GuestError::RETRY_AFTER_S) * 1_000)),
                "{per_second}"
            );
        }
    }

    #[test]
    fn extreme_times_and_limits_do_not_panic() {
        let rate_state = RateState::default();
        for now in [Duration::ZERO, Duration::MAX, at(0)] {
            for per_second in [1, 200, u32::MAX] {
                limit(per_second).try_acquire(&rate_state, now);
            }
        }
    }
}
