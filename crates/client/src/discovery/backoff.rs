//! Exponential backoff for DHCP requests. When a platform is down, all VMs of its network search for it, and each
//! request is a broadcast to all of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// First interval; doubles up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(30);
/// Longest interval; a network may get a platform at any time.
const REST_MAX: Duration = Duration::from_secs(300);

/// Exponential backoff. Clones share their state.
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

    /// Whether an attempt may start now. If so, it counts as started.
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
