//! What a node of a cluster can do: answer guests, and take changes.
//!
//! Without the store, a node answers polls from memory. An address may move to another tenant meanwhile, so after
//! [`ClusterConfig::trust_addresses_for`](super::join::ClusterConfig::trust_addresses_for) the node answers 503 to callers
//! that it knows by their address. It answers again as soon as its watch works.
//!
//! [`Reviewer`] decides, and is pure; [`review`] follows the node's standing and the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_engine::ClockReading;
use tokio::sync::watch;

use super::Standing;
use crate::clock::Clock;

/// Longest sleep, so that the node notices when it was stopped for a while.
const REVIEW_EVERY: Duration = Duration::from_millis(500);

/// What a node can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether the node says which VM has an address.
    pub trusts_addresses: bool,
    /// None if changes are taken, here or by the leader.
    pub refused: Option<ChangesRefused>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesRefused {
    pub since: Timestamp,
    pub why: WhyRefused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyRefused {
    /// The watch of this node shows nothing.
    StoreAway,
    NoLeader,
}

impl WhyRefused {
    pub fn text(self) -> &'static str {
        match self {
            Self::StoreAway => "this node does not reach the store",
            Self::NoLeader => "no node leads the cluster",
        }
    }
}

impl Readiness {
    /// A node that has just become ready.
    pub const READY: Self = Self { trusts_addresses: true, refused: None };
}

/// The decision; see the module docs.
#[derive(Debug)]
pub struct Reviewer {
    trust_addresses_for: Duration,
    /// When the node last knew that its watch works, by the monotonic clock.
    watched_at: Duration,
    refused: Option<ChangesRefused>,
}

impl Reviewer {
    /// A node whose watch works.
    pub fn new(trust_addresses_for: Duration, now: ClockReading) -> Self {
        Self { trust_addresses_for, watched_at: now.since_boot, refused: None }
    }

    pub fn review(&mut self, standing: &Standing, now: ClockReading) -> Readiness {
        if standing.is_ready {
            self.watched_at = now.since_boot;
        }
        let why = match (standing.is_ready, &standing.leader) {
            (false, _) => Some(WhyRefused::StoreAway),
            (true, None) => Some(WhyRefused::NoLeader),
            (true, Some(_)) => None,
        };
        let since = self.refused.map_or(now.wall, |refused| refused.since);
        self.refused = why.map(|why| ChangesRefused { since, why });
        let trusts_addresses = now.since_boot.saturating_sub(self.watched_at) < self.trust_addresses_for;
        Readiness { trusts_addresses, refused: self.refused }
    }
}

/// Publishes what the node can do, until the service stops. `trust_addresses` is called first, at each change.
pub async fn review(
    mut reviewer: Reviewer,
    mut standings: watch::Receiver<Standing>,
    readiness: watch::Sender<Readiness>,
    trust_addresses: impl Fn(bool),
    clock: Arc<dyn Clock>,
) {
    loop {
        let now = ClockReading { wall: clock.now(), since_boot: clock.since_boot() };
        let next = reviewer.review(&standings.borrow_and_update(), now);
        readiness.send_if_modified(|known| {
            let before = std::mem::replace(known, next);
            if before != next {
                trust_addresses(next.trusts_addresses);
                report(before, next);
            }
            before != next
        });
        if let Ok(Err(_)) = tokio::time::timeout(REVIEW_EVERY, standings.changed()).await {
            return;
        }
    }
}

fn report(before: Readiness, now: Readiness) {
    match (before.refused, now.refused) {
        (None, Some(refused)) => {
            tracing::warn!("changes are refused: {}; polls are still served", refused.why.text());
        }
        (Some(_), None) => tracing::info!("changes are taken again"),
        (None, None) | (Some(_), Some(_)) => {}
    }
    match (before.trusts_addresses, now.trusts_addresses) {
        (true, false) => tracing::error!(
            "this node has not reached the store for too long to say which VM has an address: guests get 503"
        ),
        (false, true) => tracing::info!("this node reaches the store again: guests are answered"),
        (true, true) | (false, false) => {}
    }
}

#[cfg(test)]
mod tests {
    use notbefore_engine::cluster::{Leader, NodeIdentity};

    use super::*;

    fn at(second: u64) -> ClockReading {
        let wall = Timestamp::from_second(1_790_000_000 + i64::try_from(second).unwrap()).unwrap();
        ClockReading { wall, since_boot: Duration::from_secs(1_000 + second) }
    }

    fn standing(is_ready: bool, has_leader: bool) -> Standing {
        let me = NodeIdentity { name: "a".into(), epoch: "1".into(), url: String::new(), level: 2 };
        let leader = Leader { node: "b".into(), epoch: "2".into(), url: String::new() };
        Standing { is_ready, leader: has_leader.then_some(leader), ..Standing::new(me) }
    }

    #[test]
    fn addresses_are_trusted_for_a_limited_time_without_the_store() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        let (well, away) = (standing(true, true), standing(false, true));
        assert_eq!(reviewer.review(&well, at(100)), Readiness::READY);
        let refused = Some(ChangesRefused { since: at(101).wall, why: WhyRefused::StoreAway });
        for (second, trusts_addresses) in [(101, true), (699, true), (700, false), (5_000, false)] {
            let expected = Readiness { trusts_addresses, refused };
            assert_eq!(reviewer.review(&away, at(second)), expected, "{second}");
        }
        assert_eq!(reviewer.review(&well, at(5_001)), Readiness::READY);
        assert!(reviewer.review(&away, at(5_600)).trusts_addresses);
    }

    #[test]
    fn refusal_keeps_its_beginning_when_its_reason_changes() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        let refused = |since, why| Some(ChangesRefused { since: at(since).wall, why });
        let mut review = |is_ready, has_leader, second| {
            reviewer.review(&standing(is_ready, has_leader), at(second)).refused
        };
        assert_eq!(review(true, false, 1), refused(1, WhyRefused::NoLeader));
        assert_eq!(review(false, false, 2), refused(1, WhyRefused::StoreAway));
        assert_eq!(review(true, true, 3), None);
        assert_eq!(review(true, false, 4), refused(4, WhyRefused::NoLeader));
    }
}
