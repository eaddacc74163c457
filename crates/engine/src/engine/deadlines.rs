//! One deadline for each key, in order of time.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use jiff::Timestamp;

pub(super) struct Deadlines<K> {
    by_time: BTreeSet<(Timestamp, K)>,
    of_key: HashMap<K, Timestamp>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), of_key: HashMap::new() }
    }
}

impl<K: Clone + Ord + Hash> Deadlines<K> {
    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(super) fn get(&self, key: &K) -> Option<Timestamp> {
        self.of_key.get(key).copied()
    }

    /// Replaces the deadline of a key; none removes it.
    pub(super) fn set(&mut self, key: &K, at: Option<Timestamp>) {
        if let Some(before) = self.of_key.remove(key) {
            self.by_time.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.of_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Removes and returns the first key whose deadline has come.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<K> {
        let (_, key) = self.by_time.first().filter(|(at, _)| *at <= now)?.clone();
        self.set(&key, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::at;

    use super::*;

    #[test]
    fn keys_come_in_order_of_their_newest_deadline() {
        let mut deadlines = Deadlines::default();
        for (key, seconds) in [("a", 3), ("b", 2), ("c", 1), ("a", 1), ("b", 9)] {
            deadlines.set(&key, Some(at(seconds)));
        }
        deadlines.set(&"c", None);
        assert_eq!(
            (deadlines.next(), deadlines.get(&"b"), deadlines.get(&"c")),
            (Some(at(1)), Some(at(9)), None)
        );
        assert_eq!(deadlines.pop_due(at(0)), None);
        assert_eq!(deadlines.pop_due(at(1)), Some("a"));
        assert_eq!((deadlines.pop_due(at(8)), deadlines.get(&"a")), (None, None));
        assert_eq!((deadlines.pop_due(at(9)), deadlines.next()), (Some("b"), None));
    }
}
