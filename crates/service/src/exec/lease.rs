//! Lease of a command: how long its keeper lets it run without news from the node that leads.
//!
//! A leader that is stopped with SIGSTOP, or cut off, cannot end its commands, and its successor runs them again. So
//! every heartbeat that the store acknowledges renews the lease of the leader's commands. A keeper whose lease is over
//! ends its command, whatever the service does. The only node of a store has no successor: its commands have no lease.
//!
//! | time since the leader's last acknowledged heartbeat was sent | |
//! |---|---|
//! | 2.5 s, `STEP_DOWN_AFTER` | the node, if it runs, stops leading and sends its commands SIGTERM |
//! | 3 s, [`LEASE`] | the keeper sends SIGTERM, if the service has not |
//! | 3.5 s | the keeper sends SIGKILL |
//! | 4 s, `ELECT_AFTER` | another node may claim the lead, and then start the command again |
//!
//! The last half second is for the keeper to wake up, which takes up to a quarter of a second, and for processes to die. If a
//! node gives up the lead of its own accord, for example because its clock is off, the successor does not wait: then the
//! old command may run beside the new one, for at most the rest of the lease. Fence and attempt tell them apart.
//!
//! A lease is a time since boot, not a period. A renewal that a stopped service writes when it goes on is therefore
//! over when it arrives. Service and keeper read the same clock, which counts while the machine is suspended.

use std::time::Duration;

pub use notbefore_engine::cluster::leadership::COMMAND_LEASE as LEASE;
use notbefore_engine::cluster::leadership::{ELECT_AFTER, STEP_DOWN_AFTER};
use tokio::sync::watch;

/// Time between SIGTERM and SIGKILL once the lease is over.
const TERMINATE_GRACE: Duration = Duration::from_millis(500);
/// Longest time between two checks: timers do not count the time that the machine is suspended.
const CHECK_EVERY: Duration = Duration::from_millis(250);

const _: () = assert!(
    STEP_DOWN_AFTER.as_millis() < LEASE.as_millis()
        && (LEASE.as_millis() + TERMINATE_GRACE.as_millis() + CHECK_EVERY.as_millis())
            < ELECT_AFTER.as_millis(),
    "a command ends after its node has stopped leading, and before another node can lead"
);

/// The end of the lease of all commands, as time since boot. The task that leads sends the sending time of the newest
/// acknowledged heartbeat plus [`LEASE`], and nothing more once the node does not lead.
pub type LeaseEnd = watch::Receiver<Duration>;

/// What the keeper does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    Valid,
    /// The command and its descendants get SIGTERM.
    Over,
    /// They get SIGKILL.
    LongOver,
}

/// The keeper's lease. Times are since boot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// None for a command without a lease.
    until: Option<Duration>,
    is_over: bool,
}

impl Lease {
    pub(super) fn new(until: Option<Duration>) -> Self {
        Self { until, is_over: false }
    }

    /// Extends the lease, unless it was found to be over: the command has its SIGTERM, and what it does with that is
    /// not known.
    pub(super) fn renew(&mut self, until: Duration) {
        if !self.is_over {
            self.until = self.until.map(|before| before.max(until));
        }
    }

    pub(super) fn check(&mut self, now: Duration) -> LeaseState {
        match self.until.and_then(|until| now.checked_sub(until)) {
            None => LeaseState::Valid,
            Some(overdue) => {
                self.is_over = true;
                if overdue < TERMINATE_GRACE { LeaseState::Over } else { LeaseState::LongOver }
            }
        }
    }

    /// Whether a check found it to be over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Time until the next check; none for a command without a lease.
    pub(super) fn next_check(&self, now: Duration) -> Option<Duration> {
        let next = if self.is_over { self.until? + TERMINATE_GRACE } else { self.until? };
        Some(next.saturating_sub(now).min(CHECK_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn command_of_a_single_node_has_no_lease() {
        let mut lease = Lease::new(None);
        lease.renew(at(1));
        assert_eq!(lease.check(Duration::MAX), LeaseState::Valid);
        assert_eq!(lease.next_check(Duration::MAX), None);
    }

    #[test]
    fn lease_without_renewal_ends_in_two_steps() {
        let mut lease = Lease::new(Some(at(1_000)));
        assert_eq!((lease.check(at(999)), lease.next_check(at(999))), (LeaseState::Valid, Some(at(1))));
        assert!(!lease.is_over());
        assert_eq!((lease.check(at(1_000)), lease.next_check(at(1_400))), (LeaseState::Over, Some(at(100))));
        assert_eq!(lease.check(at(1_499)), LeaseState::Over);
        assert_eq!(lease.check(at(1_500)), LeaseState::LongOver);
        assert!(lease.is_over());
    }

    #[test]
    fn renewal_extends_but_never_shortens() {
        let mut lease = Lease::new(Some(at(1_000)));
        lease.renew(at(3_000));
        lease.renew(at(2_000));
        assert_eq!(lease.check(at(2_999)), LeaseState::Valid);
        assert_eq!(lease.next_check(at(0)), Some(CHECK_EVERY), "the machine may be suspended meanwhile");
        assert_eq!(lease.check(at(3_000)), LeaseState::Over);
    }

    #[test]
    fn lease_that_is_over_stays_over() {
        let mut lease = Lease::new(Some(at(1_000)));
        assert_eq!(lease.check(at(1_100)), LeaseState::Over);
        lease.renew(at(9_000));
        assert_eq!(lease.check(at(1_500)), LeaseState::LongOver);
        // A renewal that was written too late changes nothing.
        let mut lease = Lease::new(Some(at(1_000)));
        lease.renew(at(1_200));
        assert_eq!(lease.check(at(5_000)), LeaseState::LongOver);
    }
}
