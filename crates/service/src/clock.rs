//! The one place that reads the system clock.
//!
//! Everything else is handed `now`, once per request or wake-up, so that tests and simulations can choose it.

use std::time::Instant;

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock's time.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for all others")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Measures how long something takes, whatever happens to the wall clock meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins at zero.
    #[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for all others")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// Milliseconds since it began.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
