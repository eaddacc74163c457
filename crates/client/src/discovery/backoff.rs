//! When DHCP may be asked again. All VMs of a network look for their platform when it is down, and each question is a
//! broadcast that all of them hear: so it is asked ever more rarely.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// From the first question to the next; it doubles, up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(30);
/// As often as a network may get a platform that it did not have.
const REST_MAX: Duration = Duration::from_secs(300);

/// Something that is to be done ever more rarely. Clones know of each other.
#[derive(Clone, Debug)]
pub struct Backoff {
    clock: Clock,
    next: Arc<Mutex<BackoffState>>,
}

#[derive(Debug)]
struct BackoffState {
    due: Duration,
    rest: Duration,
}

impl Backoff {
    pub fn new() -> Self {
        let next = BackoffState { due: Duration::ZERO, rest: REST };
        Backoff { clock: Clock::start(), next: Arc::new(Mutex::new(next)) }
    }

    /// Whether it may be done now. If so, it counts as done.
    pub fn try_start(&self) -> bool {
        let now = self.clock.now().tick;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if now < next.due {
            return false;
        }
        next.due = now.saturating_add(next.rest);
        next.rest = (next.rest * 2).min(REST_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_across_clones() {
        let (one, second) = (Backoff::new(), Duration::from_secs(1));
        let other = one.clone();
        let mut done = Vec::new();
        for at in 0..1_500 {
            if one.try_start() | other.try_start() {
                done.push(at);
            }
            tokio::time::advance(second).await;
        }
        assert_eq!(done, [0, 30, 90, 210, 450, 750, 1_050, 1_350]);
    }
}
