//! The one place that reads the system clock.
//!
//! Everything else is handed `now`, once per request or wake-up, so that tests and simulations can choose it.

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
