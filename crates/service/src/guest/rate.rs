//! How often a VM may ask, where that is limited.
//!
//! A bucket per VM holds a second's worth of requests and refills with time; a request takes one or is
//! refused. `now` is the wall clock's: a clock that is stepped back refills nothing and blocks nobody, since
//! the bucket simply goes on from the new time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use uuid::Uuid;

/// Below this many buckets nothing is swept: they take some tens of KiB.
const SWEEP_AT_LEAST: usize = 1024;

const NANOSECONDS: i128 = 1_000_000_000;

#[derive(Debug)]
struct Bucket {
    /// Requests left, in billionths of one, so that a nanosecond adds `per_second` of them.
    left: i128,
    filled_at: Timestamp,
}

#[derive(Debug)]
struct Buckets {
    by_vm: HashMap<Uuid, Bucket>,
    /// The number of buckets at which those of VMs that have gone quiet are dropped.
    sweep_at: usize,
}

/// The same limit for every VM.
#[derive(Debug)]
pub(super) struct RateLimit {
    per_second: i128,
    buckets: Mutex<Buckets>,
}

impl RateLimit {
    pub(super) fn new(per_second: NonZeroU32) -> RateLimit {
        RateLimit {
            per_second: per_second.get().into(),
            buckets: Mutex::new(Buckets { by_vm: HashMap::new(), sweep_at: SWEEP_AT_LEAST }),
        }
    }

    /// Whether the VM may make a request now; if so, it has.
    pub(super) fn take(&self, vm: Uuid, now: Timestamp) -> bool {
        let full = self.per_second * NANOSECONDS;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.by_vm.len() >= buckets.sweep_at && !buckets.by_vm.contains_key(&vm) {
            buckets.by_vm.retain(|_, bucket| self.refilled(bucket, now) < full);
            buckets.sweep_at = (buckets.by_vm.len() * 2).max(SWEEP_AT_LEAST);
        }
        let bucket = buckets.by_vm.entry(vm).or_insert(Bucket { left: full, filled_at: now });
        bucket.left = self.refilled(bucket, now);
        bucket.filled_at = now;
        let may = bucket.left >= NANOSECONDS;
        if may {
            bucket.left -= NANOSECONDS;
        }
        may
    }

    fn refilled(&self, bucket: &Bucket, now: Timestamp) -> i128 {
        let elapsed = (now.as_nanosecond() - bucket.filled_at.as_nanosecond()).max(0);
        (bucket.left + elapsed.saturating_mul(self.per_second)).min(self.per_second * NANOSECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn limit(per_second: u32) -> RateLimit {
        RateLimit::new(NonZeroU32::new(per_second).unwrap())
    }

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(1_000_000 + milliseconds)
    }

    #[test]
    fn a_vm_has_a_seconds_worth_and_gets_it_back_with_time() {
        let limit = limit(5);
        let [a, b] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        assert_eq!((0..7).filter(|_| limit.take(a, at(0))).count(), 5);
        assert!(limit.take(b, at(0)), "each VM has its own");
        assert!(!limit.take(a, at(199)));
        assert!(limit.take(a, at(200)));
        assert!(!limit.take(a, at(200)));
        assert_eq!((0..9).filter(|_| limit.take(a, at(60_000))).count(), 5);
    }

    #[test]
    fn a_clock_stepped_back_blocks_nobody() {
        let limit = limit(1);
        let vm = Uuid::from_u128(1);
        assert!(limit.take(vm, at(3_600_000)));
        assert!(!limit.take(vm, at(0)));
        assert!(limit.take(vm, at(1_000)));
    }

    #[test]
    fn vms_that_have_gone_quiet_are_forgotten() {
        let limit = limit(1);
        for vm in 0..SWEEP_AT_LEAST as u128 {
            assert!(limit.take(Uuid::from_u128(vm), at(0)));
        }
        assert!(limit.take(Uuid::from_u128(u128::MAX), at(1_000)));
        assert_eq!(limit.buckets.lock().unwrap().by_vm.len(), 1);
    }
}
