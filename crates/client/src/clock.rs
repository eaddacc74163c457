//! The one place in client and agent that reads the clocks. Everything else is handed a [`Moment`].

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// One instant, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Since the clock was started. It never goes back and no one can set it: deadlines and timeouts are in
    /// this.
    pub tick: Duration,
    /// The wall clock: for people, for logs, and for what must make sense after a restart. It may step.
    pub wall: Timestamp,
}

/// The machine's own clocks. Ticks are the runtime's, so that a test that pauses tokio's time moves them too.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// Starts counting ticks at zero.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the file that reads the clocks for client and agent"
    )]
    pub fn start() -> Self {
        Clock { started: Instant::now() }
    }

    /// What it is now.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the file that reads the clocks for client and agent"
    )]
    pub fn now(&self) -> Moment {
        Moment { tick: self.started.elapsed(), wall: Timestamp::now() }
    }

    /// Waits until a tick; not at all for one that has passed.
    pub async fn until(&self, tick: Duration) {
        tokio::time::sleep_until(self.started + tick).await;
    }
}
