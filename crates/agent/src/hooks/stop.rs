//! Cooperative cancellation: a stop request with a grace period, over a watch channel.

use std::time::Duration;

use tokio::sync::watch;

/// Grace period of a program that is stopped early: the event is cancelled, or the agent shuts down.
pub const STOP_GRACE: Duration = Duration::from_secs(2);
/// Grace period after a timeout. Budgets end half a second before NotBefore, so the program is still gone by then.
pub const TIMEOUT_GRACE: Duration = Duration::from_millis(250);

/// Sends the stop request.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Option<Duration>>);

/// Receives the stop request.
#[derive(Debug)]
pub struct Stop(watch::Receiver<Option<Duration>>);

pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(None);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Requests the stop; idempotent.
    pub fn stop(&self, grace: Duration) {
        let _ = self.0.send(Some(grace));
    }
}

impl Stop {
    /// Waits for the request and returns its grace period. A dropped [`Stopper`] counts as a request.
    pub async fn requested(&mut self) -> Duration {
        self.0.wait_for(Option::is_some).await.ok().and_then(|told| *told).unwrap_or(STOP_GRACE)
    }
}
