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
pub struct Rarely {
    clock: Clock,
    next: Arc<Mutex<Next>>,
}

#[derive(Debug)]
struct Next {
    due: Duration,
    rest: Duration,
}

impl Rarely {
    pub fn new() -> Self {
        let next = Next { due: Duration::ZERO, rest: REST };
        Rarely { clock: Clock::start(), next: Arc::new(Mutex::new(next)) }
    }

    /// Whether it may be done now. If so, it counts as done.
    pub fn may_be_done(&self) -> bool {
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
    async fn it_is_done_ever_more_rarely_whoever_asks() {
        let (one, second) = (Rarely::new(), Duration::from_secs(1));
        let other = one.clone();
        let mut done = Vec::new();
        for at in 0..1_500 {
            if one.may_be_done() | other.may_be_done() {
                done.push(at);
            }
            tokio::time::advance(second).await;
        }
        assert_eq!(done, [0, 30, 90, 210, 450, 750, 1_050, 1_350]);
    }
}
