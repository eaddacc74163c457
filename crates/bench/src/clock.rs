//! The only module of the benchmark that reads clocks and sleeps.
//!
//! A benchmark measures time, so it cannot take `now` as an argument as other code does.

#[path = "../../cli/src/pause.rs"]
mod pause;

use std::time::{Duration, Instant};

/// Monotonic time, for measuring durations.
#[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for the benchmark")]
pub fn now() -> Instant {
    Instant::now()
}

/// Wall clock, for `NotBefore`.
#[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for the benchmark")]
pub fn wall() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Sleeps, where there is no event to wait for: memory that settles, a server that warms up.
pub fn pause(span: Duration) {
    pause::pause(span, "a benchmark measures what time does");
}
