//! The only place that calls `thread::sleep`. Tests, benchmarks and the agent include this file by path.

use std::time::Duration;

/// Sleeps where no event can be awaited; `_why` documents the reason.
#[allow(clippy::disallowed_methods, reason = "each caller gives the reason")]
pub fn pause(span: Duration, _why: &str) {
    std::thread::sleep(span);
}
