//! Read-through for guests that move between nodes: a guest never gets an older document than it has.
//!
//! A guest's tag is the incarnation of the document that it has. A guest that got it from another node may be ahead of
//! this one. This node then reads the scope's record from the store, and answers by it. A tag that the store does not
//! have either is no tag of this scope: the guest gets the current document.
//!
//! Reads are limited ([`ReadThroughs`]), because a guest can send any tag. A guest whose turn does not come in time is
//! told that nothing has changed, and keeps what it has.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use notbefore_core::ScopeId;

/// Interval of reads of one scope.
pub const SCOPE_READ_EVERY: Duration = Duration::from_secs(1);
/// Reads of a node in a second.
pub const NODE_READS_MAX: usize = 64;
const NODE_READS_EVERY: Duration = Duration::from_secs(1);
/// A read that takes longer has failed.
pub const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// When to ask again while a read is under way.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// How to answer a poll, from what this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollAnswer {
    /// The guest has this document.
    NotModified,
    Document,
    /// The guest may have a newer document: the store decides.
    ReadThrough,
}

/// Compares this node's document with the guest's tag; both are incarnations.
pub fn decide(own: u64, tag: Option<u64>) -> PollAnswer {
    match tag {
        Some(tag) if tag == own => PollAnswer::NotModified,
        Some(tag) if tag > own => PollAnswer::ReadThrough,
        Some(_) | None => PollAnswer::Document,
    }
}

/// How to answer a poll, from what the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredAnswer {
    /// The guest has the newest document, or it is not known which one is.
    NotModified,
    /// This node's document, which has become newer meanwhile or is the newest there is.
    Own,
    Stored,
}

/// Compares the stored document and this node's with the guest's tag, which was ahead of this node's. `stored` is none
/// if the record could not be read, or is gone: then this node is behind, too.
pub fn decide_by_store(stored: Option<u64>, own: u64, tag: u64) -> StoredAnswer {
    match stored {
        None if own > tag => StoredAnswer::Own,
        None => StoredAnswer::NotModified,
        Some(stored) if stored.max(own) == tag => StoredAnswer::NotModified,
        Some(stored) if stored > own => StoredAnswer::Stored,
        Some(_) => StoredAnswer::Own,
    }
}

/// Limits reads: at most one under way for a scope, one a second for a scope, and [`NODE_READS_MAX`] a second for the
/// node. Guests that wait share the result. Time is an argument, monotonic.
#[derive(Debug)]
pub struct ReadThroughs<R> {
    scopes: BTreeMap<ScopeId, ScopeRead<R>>,
    /// When the last reads began; at most [`NODE_READS_MAX`].
    begun: VecDeque<Duration>,
}

/// The last read of a scope.
#[derive(Debug)]
struct ScopeRead<R> {
    begun_at: Duration,
    /// None while it is under way.
    result: Option<R>,
}

/// What a guest that waits for a read does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn<R> {
    /// Read, and call [`ReadThroughs::finish`].
    Read,
    /// The result of a read that began after the guest's request.
    Known(R),
    /// Ask again after this time.
    Wait(Duration),
}

impl<R> Default for ReadThroughs<R> {
    fn default() -> Self {
        Self { scopes: BTreeMap::new(), begun: VecDeque::new() }
    }
}

impl<R: Clone> ReadThroughs<R> {
    /// The turn of a request that came at `came_at`.
    pub fn turn(&mut self, scope: &ScopeId, came_at: Duration, now: Duration) -> Turn<R> {
        let age = |at: Duration| now.saturating_sub(at);
        // A result is of use for requests that came before; these have asked again meanwhile.
        self.scopes.retain(|_, read| age(read.begun_at) < 2 * READ_TIMEOUT);
        match self.scopes.get(scope) {
            Some(ScopeRead { begun_at, result: Some(result) }) if *begun_at > came_at => {
                return Turn::Known(result.clone());
            }
            Some(ScopeRead { begun_at, result: None }) if age(*begun_at) < READ_TIMEOUT => {
                return Turn::Wait(ASK_AGAIN_AFTER);
            }
            Some(ScopeRead { begun_at, .. }) if age(*begun_at) < SCOPE_READ_EVERY => {
                return Turn::Wait(SCOPE_READ_EVERY - age(*begun_at));
            }
            Some(_) | None => {}
        }
        while self.begun.front().is_some_and(|at| age(*at) >= NODE_READS_EVERY) {
            self.begun.pop_front();
        }
        if self.begun.len() >= NODE_READS_MAX {
            let free_in = self.begun.front().map(|at| NODE_READS_EVERY.saturating_sub(age(*at)));
            return Turn::Wait(free_in.unwrap_or_default().max(ASK_AGAIN_AFTER));
        }
        self.begun.push_back(now);
        self.scopes.insert(scope.clone(), ScopeRead { begun_at: now, result: None });
        Turn::Read
    }

    /// A read has ended.
    pub fn finish(&mut self, scope: &ScopeId, result: R) {
        if let Some(read) = self.scopes.get_mut(scope) {
            read.result = Some(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::scope_id;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn garbage_gets_the_current_document() {
        assert_eq!(decide(7, Some(9)), PollAnswer::ReadThrough);
        assert_eq!(decide_by_store(Some(7), 7, 9), StoredAnswer::Own);
        assert_eq!(decide_by_store(Some(8), 7, 9), StoredAnswer::Stored);
        assert_eq!(decide_by_store(None, 7, 9), StoredAnswer::NotModified, "the store does not answer");
    }

    #[test]
    fn requests_of_a_scope_share_one_read_a_second() {
        let (mut reads, web, db) = (ReadThroughs::default(), scope_id("web"), scope_id("db"));
        let [first, second] = [1_000 * MS, 1_001 * MS];
        assert_eq!(reads.turn(&web, first, first), Turn::Read);
        assert_eq!(reads.turn(&web, first, second), Turn::Wait(ASK_AGAIN_AFTER), "one under way");
        assert_eq!(reads.turn(&db, first, second), Turn::Read, "another scope");
        reads.finish(&web, 7);
        assert_eq!(reads.turn(&web, first - MS, second), Turn::Known(7));
        assert_eq!(
            reads.turn(&web, first, second),
            Turn::Wait(999 * MS),
            "the read may have begun before the request"
        );
        assert_eq!(reads.turn(&web, first, first + SCOPE_READ_EVERY), Turn::Read);
        assert_eq!(
            reads.turn(&web, first, first + SCOPE_READ_EVERY + READ_TIMEOUT),
            Turn::Read,
            "a read that never ended does not block the scope"
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The document changes.
        Commit,
        /// A node shows more of the store.
        Catch(usize),
        /// The guest polls a node; whether the store answers.
        Poll(usize, bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::Commit),
            (0..3_usize).prop_map(Step::Catch),
            (0..3_usize, any::<bool>()).prop_map(|(node, answers)| Step::Poll(node, answers)),
        ];
        vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        /// A guest that polls any node, however far behind, never gets an older document, and a 304 only for its own.
        #[test]
        fn guest_that_moves_never_gets_an_older_document(steps in steps(), garbage in 0..3_u64) {
            let (mut store, mut nodes, mut tag) = (1_u64, [1_u64; 3], None::<u64>);
            for step in steps {
                match step {
                    Step::Commit => store += 1,
                    Step::Catch(node) => nodes[node] = (nodes[node] + 1).min(store),
                    Step::Poll(node, answers) => {
                        let own = nodes[node];
                        let stored = answers.then_some(store);
                        let sent = match (decide(own, tag), tag) {
                            (PollAnswer::NotModified, _) => None,
                            (PollAnswer::Document, _) => Some(own),
                            (PollAnswer::ReadThrough, None) => unreachable!("no tag is newer than none"),
                            (PollAnswer::ReadThrough, Some(tag)) => match decide_by_store(stored, own, tag) {
                                StoredAnswer::NotModified => None,
                                StoredAnswer::Own => Some(own),
                                StoredAnswer::Stored => stored,
                            },
                        };
                        prop_assert!(sent.is_none_or(|sent| tag.is_none_or(|tag| sent > tag)), "{sent:?} after {tag:?}");
                        tag = sent.or(tag);
                    }
                }
            }
            // Another service's tag.
            let (own, foreign) = (nodes[0], store + 1 + garbage);
            prop_assert_eq!(decide(own, Some(foreign)), PollAnswer::ReadThrough);
            let sent = match decide_by_store(Some(store), own, foreign) {
                StoredAnswer::NotModified => None,
                StoredAnswer::Own => Some(own),
                StoredAnswer::Stored => Some(store),
            };
            prop_assert_eq!(sent, Some(store), "the current document");
        }

        /// Whatever is asked: the limits hold, and a result is shared only with requests that came before its read.
        #[test]
        fn reads_stay_within_their_limits(asked in vec((0..100_u32, 0..40_u32, any::<bool>()), 0..400)) {
            let mut reads = ReadThroughs::default();
            let (mut now, mut begun): (Duration, Vec<(Duration, u32)>) = (Duration::from_secs(10), Vec::new());
            for (scope, wait, finishes) in asked {
                now += wait * MS;
                let id = scope_id(&format!("s-{scope}"));
                match reads.turn(&id, now - 100 * MS, now) {
                    Turn::Read => {
                        let recent = begun.iter().filter(|(at, _)| now - *at < NODE_READS_EVERY);
                        prop_assert!(recent.clone().count() < NODE_READS_MAX);
                        prop_assert!(recent.clone().all(|(_, other)| *other != scope));
                        begun.push((now, scope));
                        if finishes {
                            reads.finish(&id, now);
                        }
                    }
                    Turn::Known(result) => prop_assert!(result > now - 100 * MS),
                    Turn::Wait(wait) => prop_assert!(!wait.is_zero() && wait <= NODE_READS_EVERY),
                }
                prop_assert!(reads.scopes.len() <= 5 * NODE_READS_MAX);
            }
        }
    }
}
