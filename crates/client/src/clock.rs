//! The only module of client and agent that reads clocks. Other code gets a [`Moment`].

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Monotonic time since the clock started; used for deadlines and timeouts.
    pub tick: Duration,
    /// Wall clock: for people, logs and times that survive a restart. It may step.
    pub wall: Timestamp,
}

/// The system's clocks. Ticks use tokio's time, so tests can pause them.
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

    /// The current instant.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the file that reads the clocks for client and agent"
    )]
    pub fn now(&self) -> Moment {
        Moment { tick: self.started.elapsed(), wall: Timestamp::now() }
    }

    /// Sleeps until a tick; returns at once if it has passed.
    pub async fn until(&self, tick: Duration) {
        tokio::time::sleep_until(self.started + tick).await;
    }
}
