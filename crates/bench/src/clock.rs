//! The one place of the benchmark that reads the clock, and the one that waits.
//!
//! What is measured here is time itself, so a benchmark cannot be handed `now` as everything else is. It still
//! has one file for it, as the service has.

#[path = "../../cli/src/pause.rs"]
mod pause;

use std::time::{Duration, Instant};

/// Now, for measuring how long something takes.
#[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for the benchmark")]
pub fn now() -> Instant {
    Instant::now()
}

/// Now on the wall clock: what `NotBefore` is compared with.
#[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock for the benchmark")]
pub fn wall() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Lets time pass, for what has no event to wait for: memory that settles, a server that is given a moment.
pub fn pause(span: Duration) {
    pause::pause(span, "a benchmark measures what time does");
}
