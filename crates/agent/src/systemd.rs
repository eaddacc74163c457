//! Word to systemd, as `Type=notify` and `WatchdogSec=` ask for it. Without `NOTIFY_SOCKET` in the environment nothing is
//! sent, and on Windows there is nobody to send it to.

use std::time::Duration;

#[cfg(unix)]
use notbefore_wire::text::printable;

/// How the agent is.
#[derive(Clone, Copy, Debug)]
pub enum ServiceState<'a> {
    /// It runs.
    Ready,
    /// It reads its configuration anew; [`ServiceState::Ready`] follows.
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
pub fn notify(condition: ServiceState<'_>) {
    use sd_notify::NotifyState;
    // A line end in a status would begin another word to systemd.
    let status = if let ServiceState::Status(text) = condition { printable(text) } else { String::new() };
    let states = match condition {
        ServiceState::Ready => vec![NotifyState::Ready],
        ServiceState::Reloading => {
            let now = NotifyState::monotonic_usec_now();
            std::iter::once(NotifyState::Reloading).chain(now).collect()
        }
        ServiceState::Stopping => vec![NotifyState::Stopping],
        ServiceState::Alive => vec![NotifyState::Watchdog],
        ServiceState::Status(_) => vec![NotifyState::Status(&status)],
    };
    if let Err(error) = sd_notify::notify(&states) {
        tracing::debug!(%error, "cannot tell systemd how the agent is");
    }
}

/// Nobody listens; what is for people may be of use to those who look closely.
#[cfg(not(unix))]
pub fn notify(condition: ServiceState<'_>) {
    if let ServiceState::Status(text) = condition {
        tracing::debug!("{text}");
    }
}

/// How often a sign of life is due: twice in the watchdog's time.
pub fn watchdog_interval() -> Option<Duration> {
    #[cfg(unix)]
    return sd_notify::watchdog_enabled().filter(|within| !within.is_zero()).map(|within| within / 2);
    #[cfg(not(unix))]
    return None;
}
