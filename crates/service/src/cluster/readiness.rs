//! What a node of a cluster can do: answer guests, and take changes.
//!
//! Without the store, a node answers polls from memory. An address may move to another tenant meanwhile, so after
//! [`ClusterConfig::trust_addresses_for`](super::join::ClusterConfig::trust_addresses_for) the node answers 503 to callers
//! that it knows by their address. It answers again as soon as its watch works. A store that takes no writes, but answers
//! reads, is enough for that ([`Freshness`](notbefore_engine::cluster::freshness::Freshness)).
//!
//! [`Reviewer`] decides, and is pure; [`start_review`] follows the node's standing and the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_engine::ClockReading;
use notbefore_engine::cluster::Leader;
use tokio::sync::watch;
use tokio::task::JoinHandle;

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
    /// The store is read, and takes no heartbeat of this node.
    StoreReadOnly,
    NoLeader,
}

impl WhyRefused {
    pub fn text(self) -> &'static str {
        match self {
            Self::StoreAway => "this node does not reach the store",
            Self::StoreReadOnly => {
                "the store takes no writes: if etcd has reached its quota, compact and defragment it, then disarm its alarm"
            }
            Self::NoLeader => "no node leads the cluster",
        }
    }
}

/// What a node says of its guests while changes are refused.
pub fn guests_text(answers_guests: bool) -> &'static str {
    match answers_guests {
        true => "guests are still answered",
        false => {
            "this node answers guests with 503, because it has not reached the store for too long to say which VM has an address"
        }
    }
}

/// The decision; see the module docs.
#[derive(Debug)]
pub struct Reviewer {
    trust_addresses_for: Duration,
    /// The node has shown all commits before this time, by the monotonic clock.
    watched_at: Duration,
    refused: Option<ChangesRefused>,
}

impl Reviewer {
    /// A node whose watch works.
    pub fn new(trust_addresses_for: Duration, now: ClockReading) -> Self {
        Self { trust_addresses_for, watched_at: now.since_boot, refused: None }
    }

    pub fn review(&mut self, standing: &Standing, now: ClockReading) -> Readiness {
        // Not the time of this review: a process that stood still has the standing of before.
        self.watched_at = self.watched_at.max(standing.watched_at.unwrap_or_default());
        // The record may still name this node after it has stepped down, and names it before it leads.
        let is_living = |leader: &Leader| match leader.id() == standing.me.id() {
            true => standing.role.leads(),
            false => standing.living.iter().any(|node| *node == leader.id()),
        };
        let why = match (standing.is_ready, standing.leader.as_ref().is_some_and(is_living)) {
            (false, _) if standing.is_read_only => Some(WhyRefused::StoreReadOnly),
            (false, _) => Some(WhyRefused::StoreAway),
            (true, false) => Some(WhyRefused::NoLeader),
            (true, true) => None,
        };
        let since = self.refused.map_or(now.wall, |refused| refused.since);
        self.refused = why.map(|why| ChangesRefused { since, why });
        Readiness { trusts_addresses: !self.trust_left(now).is_zero(), refused: self.refused }
    }

    /// How long the node may still say which VM has an address.
    pub fn trust_left(&self, now: ClockReading) -> Duration {
        (self.watched_at + self.trust_addresses_for).saturating_sub(now.since_boot)
    }
}

/// Publishes what the node can do, from this call until the service stops. `trust_addresses` gets the time for which
/// addresses are trusted, again and again.
pub fn start_review(
    mut reviewer: Reviewer,
    standings: watch::Receiver<Standing>,
    trust_addresses: impl Fn(Duration) + Send + 'static,
    clock: Arc<dyn Clock>,
) -> (watch::Receiver<Readiness>, JoinHandle<()>) {
    let now = ClockReading { wall: clock.now(), since_boot: clock.since_boot() };
    let (send, readiness) = watch::channel(reviewer.review(&standings.borrow(), now));
    (readiness, tokio::spawn(review(reviewer, standings, send, trust_addresses, clock)))
}

async fn review(
    mut reviewer: Reviewer,
    mut standings: watch::Receiver<Standing>,
    readiness: watch::Sender<Readiness>,
    trust_addresses: impl Fn(Duration),
    clock: Arc<dyn Clock>,
) {
    loop {
        let now = ClockReading { wall: clock.now(), since_boot: clock.since_boot() };
        let next = reviewer.review(&standings.borrow_and_update(), now);
        trust_addresses(reviewer.trust_left(now));
        readiness.send_if_modified(|known| {
            let before = std::mem::replace(known, next);
            if before != next {
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
            let guests = guests_text(now.trusts_addresses);
            tracing::warn!("changes are refused: {}; {guests}", refused.why.text());
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
    use notbefore_engine::cluster::{NodeIdentity, Role};
    use notbefore_store::Revision;

    use super::*;

    const READY: Readiness = Readiness { trusts_addresses: true, refused: None };

    fn at(second: u64) -> ClockReading {
        let wall = Timestamp::from_second(1_790_000_000 + i64::try_from(second).unwrap()).unwrap();
        ClockReading { wall, since_boot: Duration::from_secs(1_000 + second) }
    }

    /// A standing that was published at this second.
    fn standing_at(second: u64, is_ready: bool) -> Standing {
        Standing { watched_at: Some(at(second).since_boot), ..standing(is_ready, true) }
    }

    fn standing(is_ready: bool, has_leader: bool) -> Standing {
        let me = NodeIdentity { name: "a".into(), epoch: "1".into(), url: String::new(), level: 2 };
        let leader = Leader { node: "b".into(), epoch: "2".into(), url: String::new() };
        let living = vec![leader.id()];
        Standing { is_ready, leader: has_leader.then_some(leader), living, ..Standing::new(me) }
    }

    #[test]
    fn addresses_are_trusted_for_a_limited_time_without_the_store() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        assert_eq!(reviewer.review(&standing_at(100, true), at(101)), READY);
        let away = standing_at(100, false);
        let refused = Some(ChangesRefused { since: at(103).wall, why: WhyRefused::StoreAway });
        for (second, trusts_addresses) in [(103, true), (699, true), (700, false), (5_000, false)] {
            let expected = Readiness { trusts_addresses, refused };
            assert_eq!(reviewer.review(&away, at(second)), expected, "{second}");
        }
        assert_eq!(reviewer.review(&standing_at(5_001, true), at(5_001)), READY);
    }

    #[test]
    fn store_that_is_only_read_keeps_addresses_trusted() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        for second in [100, 1_000, 10_000] {
            let standing = Standing { is_read_only: true, ..standing_at(second - 5, false) };
            let readiness = reviewer.review(&standing, at(second));
            assert!(readiness.trusts_addresses, "{second}");
            assert_eq!(readiness.refused.map(|refused| refused.why), Some(WhyRefused::StoreReadOnly));
        }
        assert!(!reviewer.review(&standing_at(9_995, false), at(10_595)).trusts_addresses);
    }

    #[test]
    fn process_that_stood_still_trusts_no_address_until_it_has_caught_up() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        let before = standing_at(100, true);
        assert!(reviewer.review(&before, at(101)).trusts_addresses);
        // Nothing has told it yet that time has passed.
        assert!(!reviewer.review(&before, at(1_000)).trusts_addresses);
        // A heartbeat from before returns.
        assert!(!reviewer.review(&standing_at(101, true), at(1_000)).trusts_addresses);
        assert!(reviewer.review(&standing_at(1_000, true), at(1_001)).trusts_addresses);
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

    #[test]
    fn leader_that_is_silent_takes_no_changes() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        let silent = Standing { living: Vec::new(), ..standing(true, true) };
        let refused = reviewer.review(&silent, at(1)).refused;
        assert_eq!(refused.map(|refused| refused.why), Some(WhyRefused::NoLeader));
    }
    #[test]
    fn node_that_the_record_names_takes_no_changes_while_it_does_not_lead() {
        let mut reviewer = Reviewer::new(Duration::from_secs(600), at(0));
        let mut standing = standing(true, true);
        let me = &standing.me;
        standing.leader = Some(Leader { node: me.name.clone(), epoch: me.epoch.clone(), url: String::new() });
        let refused = reviewer.review(&standing, at(1)).refused;
        assert_eq!(refused.map(|refused| refused.why), Some(WhyRefused::NoLeader));
        standing.role = Role::Lead(Revision(7));
        assert_eq!(reviewer.review(&standing, at(2)).refused, None);
    }
}
