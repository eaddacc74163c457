//! Service notifications for systemd (`sd_notify`): readiness, reload, status line and watchdog. Does nothing without
//! `NOTIFY_SOCKET`, or on Windows.

use std::time::Duration;

#[cfg(unix)]
use notbefore_wire::text::printable;

/// State reported to the service manager.
#[derive(Clone, Copy, Debug)]
pub enum ServiceState<'a> {
    Ready,
    /// Reading the configuration again; [`ServiceState::Ready`] follows.
    Reloading,
    Stopping,
    /// Watchdog keep-alive.
    Alive,
    /// Free text for `systemctl status`.
    Status(&'a str),
}

/// Sends a notification. A failure is only logged.
#[cfg(unix)]
pub fn notify(condition: ServiceState<'_>) {
    use sd_notify::NotifyState;
    // A newline in a status would start another assignment.
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
        tracing::debug!(%error, "cannot notify systemd");
    }
}

/// No service manager to notify; the status line goes to the debug log.
#[cfg(not(unix))]
pub fn notify(condition: ServiceState<'_>) {
    if let ServiceState::Status(text) = condition {
        tracing::debug!("{text}");
    }
}

/// Interval between keep-alives: half of `WatchdogSec=`.
pub fn watchdog_interval() -> Option<Duration> {
    #[cfg(unix)]
    return sd_notify::watchdog_enabled().filter(|within| !within.is_zero()).map(|within| within / 2);
    #[cfg(not(unix))]
    return None;
}
