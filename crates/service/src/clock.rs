//! The one place that reads the system clock.
//!
//! Everything else is handed `now`, once per request or wake-up, so that tests and simulations can choose it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
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

    /// `/proc/uptime`, which is CLOCK_BOOTTIME to a hundredth of a second. Reading that clock through rustix maps the
    /// kernel's vDSO, which valgrind hides, so the cost of a poll could not be counted.
    fn since_boot(&self) -> Duration {
        static UPTIME: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/uptime").ok());
        static START: LazyLock<Stopwatch> = LazyLock::new(Stopwatch::start);
        let mut text = [0; 64];
        let read = UPTIME.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or_default();
        // Without it, time since the first look does as well, but for a machine that sleeps.
        parse_uptime(&text[..read]).unwrap_or_else(|| START.elapsed())
    }
}

/// The first number of `/proc/uptime`: seconds since the boot.
fn parse_uptime(text: &[u8]) -> Option<Duration> {
    let seconds = std::str::from_utf8(text).ok()?.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_parses_hundredths() {
        assert_eq!(parse_uptime(b"350735.47 234388.90\n"), Some(Duration::from_millis(350_735_470)));
        for garbage in ["", "x", "-1.0 2", "inf 1", "NaN 1"] {
            assert_eq!(parse_uptime(garbage.as_bytes()), None, "{garbage:?}");
        }
        let (first, second) = (SystemClock.since_boot(), SystemClock.since_boot());
        assert!(first > Duration::ZERO && second >= first);
    }
}
