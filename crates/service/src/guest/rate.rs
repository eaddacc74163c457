//! Rate limit per VM: GCRA with one atomic number.
//!
//! A VM has a second's worth of requests and gets them back with time. All that is to be remembered of it is
//! one moment, the one at which it has them all again ([`Pace`]): each request moves it on by its share of a
//! second, and one that would move it further than a second ahead is refused. So the check is one atomic
//! exchange, in memory that the poll touches anyway, and nothing is ever to be swept.
//!
//! `now` is the wall clock's. A moment more than `SKEW_NS` beyond the furthest possible one was stored before the
//! clock was set back: it is forgotten, and the VM has its whole second's worth. Threads take their `now` at
//! different times, so a moment that is only a little too far may be another thread's, and stays in force.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;
/// The largest difference between two threads' `now`: a wake-up handles its requests in far less.
const SKEW_NS: u64 = SECOND_NS / 10;

/// One VM's place in time, as far as its requests go. It belongs to the VM and goes with it.
#[derive(Debug, Default)]
pub struct Pace {
    /// When it has its whole second's worth again, in nanoseconds since 1970.
    full_at_ns: AtomicU64,
}

impl Pace {
    /// The same, in another place.
    pub fn copy(&self) -> Pace {
        Pace { full_at_ns: AtomicU64::new(self.full_at_ns.load(Relaxed)) }
    }
}

/// The same limit for every VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// What one request takes of the second.
    share_ns: u64,
}

impl RateLimit {
    pub(crate) fn new(per_second: NonZeroU32) -> RateLimit {
        RateLimit { share_ns: SECOND_NS / u64::from(per_second.get()) }
    }

    /// Whether the VM may make a request now; if so, it has.
    pub(super) fn take(self, pace: &Pace, now: Timestamp) -> bool {
        self.take_within(pace, now, Duration::from_nanos(SECOND_NS)).is_ok()
    }

    /// The same where another time's worth may be used at once; a refusal says when the next request may come.
    #[inline]
    pub(crate) fn take_within(self, pace: &Pace, now: Timestamp, burst: Duration) -> Result<(), Duration> {
        let burst_ns = u64::try_from(burst.as_nanos()).unwrap_or(u64::MAX / 4);
        // A clock before 1970, or centuries ahead, is wrong: it limits as one that stands still.
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or(0).min(u64::MAX / 2);
        let most = now_ns + burst_ns;
        let mut full_at = pace.full_at_ns.load(Relaxed);
        loop {
            let from = if full_at <= now_ns { now_ns } else { still_used(full_at, now_ns, most) };
            let moved = from + self.share_ns;
            let may = moved <= most;
            let next = if may { moved } else { from };
            match pace.full_at_ns.compare_exchange_weak(full_at, next, Relaxed, Relaxed) {
                Ok(_) if may => return Ok(()),
                Ok(_) => return Err(Duration::from_nanos(moved - most)),
                Err(other) => full_at = other,
            }
        }
    }
}

/// The moment at which a VM has all its requests again, where that is ahead of `now`. Out of line: a VM that polls once a
/// second does not come here.
#[cold]
fn still_used(full_at: u64, now_ns: u64, most: u64) -> u64 {
    if full_at <= most + SKEW_NS { full_at.min(most) } else { now_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use notbefore_wire::guest::error::GuestError;

    fn limit(per_second: u32) -> RateLimit {
        RateLimit::new(NonZeroU32::new(per_second).unwrap())
    }

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(1_000_000 + milliseconds)
    }

    #[test]
    fn a_vm_has_a_seconds_worth_and_gets_it_back_with_time() {
        let limit = limit(5);
        let [a, b] = [Pace::default(), Pace::default()];
        assert_eq!((0..7).filter(|_| limit.take(&a, at(0))).count(), 5);
        assert!(limit.take(&b, at(0)), "each VM has its own");
        assert!(!limit.take(&a, at(199)));
        assert!(limit.take(&a, at(200)));
        assert!(!limit.take(&a, at(200)));
        assert_eq!((0..9).filter(|_| limit.take(&a, at(60_000))).count(), 5);
    }

    #[test]
    fn a_clock_stepped_back_blocks_nobody() {
        let limit = limit(1);
        let pace = Pace::default();
        assert!(limit.take(&pace, at(3_600_000)));
        assert!(limit.take(&pace, at(0)), "the first request after the step is not refused");
        assert!(!limit.take(&pace, at(0)), "the limit still holds");
        assert!(limit.take(&pace, at(1_000)));
    }

    #[test]
    fn a_thread_with_an_older_now_refills_nothing() {
        let limit = limit(5);
        let pace = Pace::default();
        assert_eq!((0..9).filter(|_| limit.take(&pace, at(100))).count(), 5);
        assert!(!limit.take(&pace, at(0)));
        assert!(!limit.take(&pace, at(100)));
    }

    #[test]
    fn a_refused_vm_may_ask_again_after_the_retry_after_time() {
        for per_second in [1, 3, 200] {
            let (limit, pace) = (limit(per_second), Pace::default());
            while limit.take(&pace, at(0)) {}
            assert!(limit.take(&pace, at(i64::from(GuestError::RETRY_AFTER_S) * 1_000)), "{per_second}");
        }
    }

    #[test]
    fn no_clock_and_no_limit_is_too_odd() {
        let pace = Pace::default();
        for now in [Timestamp::MIN, Timestamp::MAX, at(0)] {
            for per_second in [1, 200, u32::MAX] {
                limit(per_second).take(&pace, now);
            }
        }
    }
}
