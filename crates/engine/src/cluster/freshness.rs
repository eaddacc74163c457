//! Up to when a node knows every commit.
//!
//! Usually its own heartbeat says so: when it returns through the watch, the node has shown all commits before it. A store
//! that has reached its quota takes no heartbeats, but answers reads. Then the node asks the store for its newest revision.
//! If the node has seen that revision, it knows every commit until the question. If it has not, the watch gets
//! the time until the next question to show it. A commit that the watch does not show belongs to another user of the store, or was lost: the
//! node loads everything again, which says the same.

use std::time::Duration;

use notbefore_store::Revision;

/// Time without a returned heartbeat after which the node asks: its watch counts as stalled.
const ASK_AFTER: Duration = Duration::from_secs(3);
/// Interval of questions. Each is a read of one revision, and guests must not wait for the next one.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// The machine; pure. Times are the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Freshness {
    /// When the question was asked that has no answer yet.
    asked_at: Option<Duration>,
    ask_due: Duration,
    /// A revision that the store had and this node has not seen.
    missing: Option<Revision>,
    /// See [`Self::complete_at`].
    proven_at: Option<Duration>,
}

impl Freshness {
    /// Whether to ask the store now. `returned_at` is when the newest heartbeat was sent that has returned.
    pub fn must_ask(&mut self, returned_at: Option<Duration>, now: Duration) -> bool {
        let is_silent = returned_at.is_none_or(|at| now.saturating_sub(at) >= ASK_AFTER);
        let must_ask = is_silent && self.asked_at.is_none() && now >= self.ask_due;
        if must_ask {
            (self.asked_at, self.ask_due) = (Some(now), now + ASK_EVERY);
        }
        must_ask
    }

    /// The store's newest revision, or none if it did not answer. Returns whether everything must be loaded again.
    pub fn answered(&mut self, newest: Option<Revision>, seen: Revision) -> bool {
        let asked_at = self.asked_at.take();
        let Some(newest) = newest else { return false };
        if newest <= seen {
            self.proven_at = self.proven_at.max(asked_at);
            self.missing = None;
            return false;
        }
        let was_missing = self.missing.is_some_and(|missing| seen < missing);
        self.missing = Some(newest).filter(|_| !was_missing);
        was_missing
    }

    /// Everything was loaded by a reading that began then.
    pub fn loaded(&mut self, begun: Duration) {
        self.proven_at = self.proven_at.max(Some(begun));
        self.missing = None;
    }

    /// The node knows all commits before this time, by answers of the store.
    pub fn proven_at(&self) -> Option<Duration> {
        self.proven_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn node_asks_only_without_heartbeats_and_one_question_at_a_time() {
        let mut one = Freshness::default();
        assert!(!one.must_ask(Some(second(98)), second(100)));
        assert!(one.must_ask(Some(second(97)), second(100)));
        assert!(!one.must_ask(Some(second(95)), second(200)), "the first has no answer yet");
        assert!(!one.answered(None, Revision(7)));
        assert_eq!(one.proven_at(), None);
        assert!(one.must_ask(Some(second(95)), second(200)));
        one.answered(None, Revision(7));
        assert!(!one.must_ask(Some(second(95)), second(201)));
        assert!(one.must_ask(Some(second(95)), second(202)));
    }

    #[test]
    fn answer_proves_the_time_of_the_question_if_its_revision_was_seen() {
        let mut one = Freshness::default();
        assert!(one.must_ask(None, second(100)));
        assert!(!one.answered(Some(Revision(7)), Revision(7)));
        assert_eq!(one.proven_at(), Some(second(100)));
        assert!(one.must_ask(None, second(110)));
        assert!(!one.answered(Some(Revision(8)), Revision(7)), "the watch may show it yet");
        assert!(one.must_ask(None, second(120)));
        assert!(!one.answered(Some(Revision(9)), Revision(8)), "it has, and there is another one");
        assert_eq!(one.proven_at(), Some(second(100)));
        assert!(one.must_ask(None, second(130)));
        assert!(one.answered(Some(Revision(9)), Revision(8)), "the watch does not show it");
        one.loaded(second(131));
        assert_eq!(one.proven_at(), Some(second(131)));
        assert!(one.must_ask(None, second(140)));
        assert!(!one.answered(Some(Revision(9)), Revision(9)));
        assert_eq!(one.proven_at(), Some(second(140)));
    }
}
