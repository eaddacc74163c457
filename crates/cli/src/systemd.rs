//! systemd notifications (sd_notify) for `Type=notify` and `WatchdogSec=`: ready, reloading, stopping, status line,
//! watchdog. Without `NOTIFY_SOCKET` nothing is sent.

use std::time::Duration;

use notbefore_service::running::Running;
use sd_notify::NotifyState;

/// Interval of status line updates, and upper limit of the watchdog interval.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Sends notifications; a failure is only logged.
fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}

/// Call when all listeners are open.
pub fn ready(running: &Running) {
    send(&[NotifyState::Ready, NotifyState::Status(&status(running))]);
}

pub fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("finishing acknowledged requests")]);
}

/// Reloads certificates and secrets, and logs the outcome.
pub async fn reload(running: &Running) {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    send(&states);
    let reloads = running.reloads.clone();
    match tokio::task::spawn_blocking(move || reloads.run()).await {
        Ok(outcomes) if outcomes.is_empty() => {
            tracing::info!("nothing to reload; settings are read only at startup");
        }
        Ok(outcomes) => {
            for (what, outcome) in outcomes {
                match outcome {
                    Ok(()) => tracing::info!("reloaded: {what}"),
                    Err(error) => {
                        tracing::error!(%error, "could not reload: {what}; the previous one stays in use")
                    }
                }
            }
        }
        Err(error) => tracing::error!(%error, "could not reload"),
    }
    ready(running);
}

/// Sends watchdog notifications at half the watchdog interval, each after a ping of the engine's task: if that task
/// hangs, systemd restarts the service. Also updates the status line. Ends with the engine.
pub async fn keep_notified(running: Running) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let watchdog = sd_notify::watchdog_enabled().filter(|within| !within.is_zero());
    let every = watchdog.map_or(CHECK_EVERY, |within| (within / 2).min(CHECK_EVERY));
    let mut last = status(&running);
    while running.engine.ping().await {
        if watchdog.is_some() {
            send(&[NotifyState::Watchdog]);
        }
        let now = status(&running);
        if now != last {
            send(&[NotifyState::Status(&now)]);
            last = now;
        }
        tokio::time::sleep(every).await;
    }
}

fn status(running: &Running) -> String {
    if !running.engine.stats().is_store_writable() {
        // A node answers guests for a limited time without its store.
        if running.standing.is_some() {
            return "store is read-only: changes are refused; GET /readyz says more".to_owned();
        }
        return "store is read-only: polls are still served, changes are refused".to_owned();
    }
    let addresses = &running.addresses;
    let guests: Vec<String> = addresses.guest.iter().map(ToString::to_string).collect();
    format!("guests at {}, operators at {}", guests.join(", "), addresses.operator)
}
