//! The only module that reads the system clock.
//!
//! All other code gets `now` once per request or wake-up, so that tests and simulations can set it.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

/// Longest sleep by a clock that does not report moves: the delay before a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// A clock.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since boot, from a clock that cannot be set. The default derives it from `now`, so a test clock is never
    /// found to have jumped.
    fn since_boot(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }

    /// Changes when the clock was moved, so that sleeps by it end at once. None for a clock that only runs.
    fn moves(&self) -> Option<watch::Receiver<()>> {
        None
    }
}

/// Waits until a clock was moved; forever for one that only runs.
pub(crate) async fn moved(moves: &mut Option<watch::Receiver<()>>) {
    if let Some(receiver) = moves
        && receiver.changed().await.is_ok()
    {
        return;
    }
    // The clock only runs, or its owner is gone.
    std::future::pending().await
}

/// Sleeps until a clock has this time since boot. The clock may be one that is moved by hand.
pub async fn sleep_until(clock: &dyn Clock, until: Duration) {
    let mut moves = clock.moves();
    loop {
        let left = until.saturating_sub(clock.since_boot());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(left.min(SLEEP_MAX)) => {}
            () = moved(&mut moves) => {}
        }
    }
}

/// The clock of a service: the system's, unless the caller of `serve` brings one.
#[derive(Clone)]
pub struct SharedClock(pub Arc<dyn Clock>);

impl Default for SharedClock {
    fn default() -> Self {
        SharedClock(Arc::new(SystemClock))
    }
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedClock({})", self.0.now())
    }
}

/// A clock that its owner moves forward. It stands still otherwise, or runs like the system's clock. The service takes
/// no move for a jump: the time since boot moves along.
pub struct MovableClock {
    base: Base,
    moved_by: Mutex<Duration>,
    moves: watch::Sender<()>,
}

enum Base {
    Standing(Timestamp),
    Running,
}

impl MovableClock {
    /// A clock that stands still.
    pub fn standing_at(at: Timestamp) -> Self {
        Self::new(Base::Standing(at))
    }

    /// A clock that runs from the system's time on.
    pub fn running() -> Self {
        Self::new(Base::Running)
    }

    fn new(base: Base) -> Self {
        MovableClock { base, moved_by: Mutex::default(), moves: watch::channel(()).0 }
    }

    /// Moves the clock forward. Sleeps by it notice at once.
    pub fn advance(&self, by: Duration) {
        let mut moved_by = crate::lock(&self.moved_by);
        *moved_by = moved_by.saturating_add(by);
        drop(moved_by);
        self.moves.send_replace(());
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        let base = match self.base {
            Base::Standing(at) => at,
            Base::Running => SystemClock.now(),
        };
        // Time stands still at the end of the calendar.
        base.saturating_add(*crate::lock(&self.moved_by)).unwrap_or(base)
    }

    fn moves(&self) -> Option<watch::Receiver<()>> {
        Some(self.moves.subscribe())
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

/// Runs since its first use in this process: one monotonic time for all threads.
pub static UPTIME: LazyLock<Stopwatch> = LazyLock::new(Stopwatch::start);

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

    #[tokio::test]
    async fn sleep_ends_when_the_clock_is_moved() {
        let at: Timestamp = "2016-09-19T18:29:47Z".parse().unwrap();
        let clock = Arc::new(MovableClock::standing_at(at));
        let (by_clock, until) = (Arc::clone(&clock), clock.since_boot() + Duration::from_secs(120));
        let sleeper = tokio::spawn(async move { sleep_until(&*by_clock, until).await });
        clock.advance(Duration::from_secs(119));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now(), at + Duration::from_secs(120));
    }

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
