//! Clock jump detection: compares the wall clock with the boot-time clock, which cannot be set.
//!
//! The engine uses the wall clock, since NotBefore is a wall-clock time. A jump of more than a minute, or several
//! within an hour that add up to more, start a hold ([`notbefore_core::ClockHold`]). The hold ends after five minutes
//! without a further jump, and after half an hour in any case: a corrected clock stays correct, and a clock that
//! never settles must not stop the service forever.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Limit on the drift between both clocks since the base reading. A slewed clock gains or loses two seconds an hour, so
/// only a clock that is set exceeds it.
const JUMP_MIN: SignedDuration = SignedDuration::from_secs(60);
/// Age at which a later reading replaces the base reading.
const COMPARED_FOR: Duration = Duration::from_secs(60 * 60);
/// Time without a jump after which a hold ends.
pub const HOLD: Duration = Duration::from_secs(5 * 60);
/// Limit on the duration of a hold.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 60);

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    pub wall: Timestamp,
    /// Counts from boot, including suspend.
    pub since_boot: Duration,
}

impl ClockReading {
    /// The boot time by the wall clock.
    pub fn booted_at(self) -> Timestamp {
        let since = SignedDuration::try_from(self.since_boot).unwrap_or(SignedDuration::MAX);
        self.wall.checked_sub(since).unwrap_or(Timestamp::MIN)
    }
}

/// A change of the clock's state, for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockNews {
    /// It jumped by this much, or cannot be trusted for another reason.
    Jumped(SignedDuration),
    /// It can be trusted again.
    Settled,
}

/// The detector; see the module docs.
#[derive(Clone, Debug)]
pub struct ClockWatch {
    /// The base reading.
    base: ClockReading,
    /// Start of the hold, since boot.
    held_since: Option<Duration>,
    last_jump: Duration,
}

impl ClockWatch {
    /// Trusts the first reading; the engine checks it at its start.
    pub fn new(reading: ClockReading) -> Self {
        Self { base: reading, held_since: None, last_jump: reading.since_boot }
    }

    /// Takes a reading. `is_held` is the engine's state: it starts a hold at its start, and ends one when an operator
    /// accepts the clock.
    pub fn read(&mut self, reading: ClockReading, is_held: bool) -> Option<ClockNews> {
        let now = reading.since_boot;
        let passed = now.saturating_sub(self.base.since_boot);
        let jump = reading.wall.duration_since(self.base.wall)
            - SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        let has_jumped = jump.abs() > JUMP_MIN;
        if has_jumped || passed >= COMPARED_FOR {
            self.base = reading;
        }
        if has_jumped {
            self.last_jump = now;
            self.held_since = self.held_since.filter(|_| is_held).or(Some(now));
            return Some(ClockNews::Jumped(jump));
        }
        if !is_held {
            self.held_since = None;
            return None;
        }
        let since = *self.held_since.get_or_insert_with(|| {
            self.last_jump = now;
            now
        });
        let is_over = now.saturating_sub(self.last_jump) >= HOLD || now.saturating_sub(since) >= HOLD_MAX;
        is_over.then(|| {
            self.held_since = None;
            ClockNews::Settled
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;

    struct Clocks {
        watch: ClockWatch,
        now: ClockReading,
        is_held: bool,
    }

    impl Clocks {
        fn new() -> Self {
            let wall = "2026-11-16T12:00:00Z".parse().unwrap();
            let now = ClockReading { wall, since_boot: Duration::from_secs(1_000) };
            Self { watch: ClockWatch::new(now), now, is_held: false }
        }

        /// Advances both clocks, and sets the wall clock by `set_by`.
        fn after(&mut self, seconds: u64, set_by: i64) -> Option<ClockNews> {
            self.now.since_boot += Duration::from_secs(seconds);
            self.now.wall += SignedDuration::from_secs(i64::try_from(seconds).unwrap() + set_by);
            let news = self.watch.read(self.now, self.is_held);
            match news {
                Some(ClockNews::Jumped(_)) => self.is_held = true,
                Some(ClockNews::Settled) => self.is_held = false,
                None => {}
            }
            news
        }
    }

    fn jumped(seconds: i64) -> Option<ClockNews> {
        Some(ClockNews::Jumped(SignedDuration::from_secs(seconds)))
    }

    #[test]
    fn only_a_difference_of_more_than_a_minute_is_a_jump() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.after(1, 0), None);
        assert_eq!(clocks.after(1, 60), None);
        assert_eq!(clocks.after(1, -60), None);
        assert_eq!(clocks.after(100_000, 0), None, "time that really passed");
        assert_eq!(clocks.after(1, 61), jumped(61));
        assert_eq!(clocks.after(1, -61), jumped(-61));
    }

    #[test]
    fn small_jumps_within_an_hour_add_up() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.after(10, 50), None);
        assert_eq!(clocks.after(10, 50), jumped(100));
        assert_eq!(clocks.after(10, -50), None);
        assert_eq!(clocks.after(10, 50), None, "it is back where it was");
        clocks.is_held = false;
        assert_eq!(clocks.after(60 * MINUTE, 50), None);
        assert_eq!(clocks.after(10, 50), None, "counted from then on");
        assert_eq!(clocks.after(10, 50), jumped(100));
    }

    #[test]
    fn hold_ends_five_minutes_after_the_last_jump() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.after(1, 86_400), jumped(86_400));
        assert_eq!(clocks.after(4 * MINUTE, 0), None);
        assert_eq!(clocks.after(1, -86_400), jumped(-86_400), "a further jump begins the five minutes again");
        assert_eq!(clocks.after(5 * MINUTE - 1, 0), None);
        assert_eq!(clocks.after(1, 0), Some(ClockNews::Settled));
        assert_eq!(clocks.after(1, 0), None);
    }

    #[test]
    fn clock_that_never_settles_is_trusted_after_half_an_hour() {
        let mut clocks = Clocks::new();
        assert!(clocks.after(1, 300).is_some());
        for _ in 0..9 {
            assert_eq!(clocks.after(3 * MINUTE, 300), jumped(300));
        }
        assert_eq!(clocks.after(3 * MINUTE, 0), Some(ClockNews::Settled));
        assert_eq!(clocks.after(MINUTE, 300), jumped(300), "the next jump is a hold of its own");
        assert_eq!(clocks.after(4 * MINUTE, 0), None);
    }

    #[test]
    fn hold_at_start_and_accepted_hold() {
        let mut clocks = Clocks::new();
        clocks.is_held = true;
        assert_eq!(clocks.after(1, 0), None);
        assert_eq!(clocks.after(5 * MINUTE, 0), Some(ClockNews::Settled));
        assert!(clocks.after(1, 300).is_some());
        clocks.is_held = false; // An operator has accepted it.
        assert_eq!(clocks.after(MINUTE, 0), None);
        assert!(clocks.after(1, 300).is_some());
        assert_eq!(clocks.after(5 * MINUTE - 1, 0), None, "counted from the second jump");
        assert_eq!(clocks.after(1, 0), Some(ClockNews::Settled));
    }
}
