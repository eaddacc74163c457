//! The only module that reads the system clock.
//!
//! All other code gets `now` once per request or wake-up, so that tests and simulations can set it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A clock.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since boot, from a clock that cannot be set. The default derives it from `now`, so a test clock is never
    /// found to have jumped.
    fn since_boot(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the only module that reads the clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// `/proc/uptime`: CLOCK_BOOTTIME to a hundredth of a second. Reading that clock through rustix maps the kernel's
    /// vDSO, which valgrind hides; then the cost of a poll could not be measured.
    fn since_boot(&self) -> Duration {
        static UPTIME: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/uptime").ok());
        static START: LazyLock<Stopwatch> = LazyLock::new(Stopwatch::start);
        let mut text = [0; 64];
        let read = UPTIME.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or_default();
        // Without it, use the time since the first call, which does not count suspend.
        parse_uptime(&text[..read]).unwrap_or_else(|| START.elapsed())
    }
}

/// The first number of `/proc/uptime`: seconds since boot.
fn parse_uptime(text: &[u8]) -> Option<Duration> {
    let seconds = std::str::from_utf8(text).ok()?.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The id of the current boot.
pub(crate) fn boot_id() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// A monotonic stopwatch, independent of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[allow(clippy::disallowed_methods, reason = "the only module that reads the clock")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Milliseconds since the start.
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
