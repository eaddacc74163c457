//! The one place that reads the system clock.
//!
//! Everything else is handed `now`, once per request or wake-up, so that tests and simulations can choose it.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock's time.
    fn now(&self) -> Timestamp;

    /// How long ago the machine was booted, by a clock that nobody can set. A clock for tests that has none is its own
    /// measure, and never found to have jumped.
    fn since_boot(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for all others")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).unwrap_or_default()
    }
}

/// The system's id of the boot in which this process runs.
pub(crate) fn boot_id() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
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

    /// How long ago it began.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Milliseconds since it began.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
