//! The word that something under way is to stop, and how long it has for it.

use std::time::Duration;

use tokio::sync::watch;

/// How long a program has to end that is stopped while there is time: the event is cancelled, or the agent is told to end.
pub const STOP_GRACE: Duration = Duration::from_secs(2);
/// The same for one whose time is up. The machine ends budgets half a second before NotBefore, so that even then nothing
/// runs into the event.
pub const TIMEOUT_GRACE: Duration = Duration::from_millis(250);

/// Says it.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Option<Duration>>);

/// Hears it.
#[derive(Debug)]
pub struct Stop(watch::Receiver<Option<Duration>>);

/// A pair of those.
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(None);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Says it; to say it twice changes nothing.
    pub fn stop(&self, grace: Duration) {
        let _ = self.0.send(Some(grace));
    }
}

impl Stop {
    /// Waits until it is said, and tells the grace. That nobody is left who could say it is the same.
    pub async fn requested(&mut self) -> Duration {
        self.0.wait_for(Option::is_some).await.ok().and_then(|told| *told).unwrap_or(STOP_GRACE)
    }
}
