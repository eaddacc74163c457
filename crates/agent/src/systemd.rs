//! Word to systemd, as `Type=notify` and `WatchdogSec=` ask for it. Without `NOTIFY_SOCKET` in the environment nothing is
//! sent, and on Windows there is nobody to send it to.

use std::time::Duration;

/// How the agent is.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    /// It runs.
    Ready,
    /// It reads its configuration anew; [`Word::Ready`] follows.
    Reloading,
    /// It has been told to stop.
    Stopping,
    /// It lives.
    Alive,
    /// For people.
    Status(&'a str),
}

/// Sends word; a manager that does not listen is no reason to stop.
#[cfg(unix)]
pub fn say(word: Word<'_>) {
    use sd_notify::NotifyState;
    let states = match word {
        Word::Ready => vec![NotifyState::Ready],
        Word::Reloading => {
            let now = NotifyState::monotonic_usec_now();
            std::iter::once(NotifyState::Reloading).chain(now).collect()
        }
        Word::Stopping => vec![NotifyState::Stopping],
        Word::Alive => vec![NotifyState::Watchdog],
        Word::Status(text) => vec![NotifyState::Status(text)],
    };
    if let Err(error) = sd_notify::notify(&states) {
        tracing::debug!(%error, "cannot tell systemd how the agent is");
    }
}

/// Nobody listens; what is for people may be of use to those who look closely.
#[cfg(not(unix))]
pub fn say(word: Word<'_>) {
    if let Word::Status(text) = word {
        tracing::debug!("{text}");
    }
}

/// How often a sign of life is due: twice in the watchdog's time.
pub fn beat() -> Option<Duration> {
    #[cfg(unix)]
    return sd_notify::watchdog_enabled().filter(|within| !within.is_zero()).map(|within| within / 2);
    #[cfg(not(unix))]
    return None;
}
