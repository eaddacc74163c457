//! The one place that sleeps. Tests, benchmarks and the agent take this file in by its path.

use std::time::Duration;

/// Lets time pass where there is no event to wait for; `_why` is why there is none.
#[allow(clippy::disallowed_methods, reason = "each caller says why it has nothing else to wait for")]
pub fn pause(span: Duration, _why: &str) {
    std::thread::sleep(span);
}
