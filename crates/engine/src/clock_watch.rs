//! Jump detection: compares the wall clock with a clock that nobody can set, and says when the wall clock has
//! jumped and when it may be trusted again.
//!
//! The engine decides by the wall clock, since NotBefore is a wall-clock time. A jump of more than a minute, or several
//! within an hour that come to more, put it on hold ([`notbefore_core::ClockHold`]). The hold ends when the clock has not jumped again for five minutes, or
//! after half an hour in any case: a clock that was set right stays right, and one that never settles must not stop
//! the service for ever.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How far the two clocks may drift apart since the reading that they are compared by. A clock that is slewed gains or
/// loses two seconds an hour, so only one that is set comes near it.
const JUMP_MIN: SignedDuration = SignedDuration::from_secs(60);
/// After how long a later reading is what the clocks are compared by.
const COMPARED_FOR: Duration = Duration::from_secs(60 * 60);
/// How long the clock must not have jumped for a hold to end.
pub const HOLD: Duration = Duration::from_secs(5 * 60);
/// How long a hold lasts at most.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 60);

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock.
    pub wall: Timestamp,
    /// The clock that counts from the machine's boot, and also while it sleeps.
    pub since_boot: Duration,
}

impl ClockReading {
    /// When the machine was booted, by the wall clock.
    pub fn booted_at(self) -> Timestamp {
        let since = SignedDuration::try_from(self.since_boot).unwrap_or(SignedDuration::MAX);
        self.wall.checked_sub(since).unwrap_or(Timestamp::MIN)
    }
}

/// What the engine is told of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockNews {
    /// It has jumped by this much, or cannot be trusted for another reason.
    Jumped(SignedDuration),
    /// It may be trusted again.
    Settled,
}

/// Watches the clock; see the module's page.
#[derive(Clone, Debug)]
pub struct ClockWatch {
    /// The reading that later ones are compared with.
    base: ClockReading,
    /// Since when the hold lasts, if it does.
    held_since: Option<Duration>,
    last_jump: Duration,
}

impl ClockWatch {
    /// Begins with a reading that is trusted; the engine itself judges it at its start.
    pub fn new(reading: ClockReading) -> Self {
        Self { base: reading, held_since: None, last_jump: reading.since_boot }
    }

    /// Takes a reading. `is_held` says whether the engine is on hold: it begins one at its start, and ends one when
    /// an operator accepts the clock.
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

        /// Lets time pass, and sets the wall clock besides.
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
