//! Word to systemd, as `Type=notify` and `WatchdogSec=` ask for it: ready, reloading, stopping, a status line, and a
//! sign of life. Without `NOTIFY_SOCKET` in the environment nothing is sent.

use std::time::Duration;

use notbefore_service::running::Running;
use sd_notify::NotifyState;

/// How often the status line is looked at when no watchdog asks for more.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Sends word; a manager that does not listen is no reason to stop.
fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot tell systemd how the service is");
    }
}

/// Everything listens.
pub fn ready(running: &Running) {
    send(&[NotifyState::Ready, NotifyState::Status(&status(running))]);
}

/// The service has been told to stop.
pub fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("finishing what was acknowledged")]);
}

/// Reads anew whatever can be, and logs what became of it.
pub async fn reload(running: &Running) {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    send(&states);
    let reloads = running.reloads.clone();
    match tokio::task::spawn_blocking(move || reloads.run()).await {
        Ok(outcomes) if outcomes.is_empty() => {
            tracing::info!("nothing to reload; settings are read at the start");
        }
        Ok(outcomes) => {
            for (what, outcome) in outcomes {
                match outcome {
                    Ok(()) => tracing::info!("reloaded: {what}"),
                    Err(error) => tracing::error!(%error, "could not reload: {what}; it stays as it was"),
                }
            }
        }
        Err(error) => tracing::error!(%error, "could not reload"),
    }
    ready(running);
}

/// Sends a sign of life twice in the watchdog's time, each after the engine's own task has given one: if that task
/// hangs, systemd starts the service anew. Also keeps the status line true. Ends with the engine.
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
        return "the store cannot write: guests are answered from memory, changes are refused".to_owned();
    }
    let addresses = &running.addresses;
    let guests: Vec<String> = addresses.guest.iter().map(ToString::to_string).collect();
    format!("guests at {}, operators at {}", guests.join(", "), addresses.operator)
}
