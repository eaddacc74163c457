//! A copy-on-write sharded hash table: O(1) clones, and no memory besides its rows.
//!
//! The inventory has a row for every VM and every address, a million of each in a large fleet. The engine changes it
//! while polls read it; polls must not wait and must not see a partial change. So cloning a [`Table`] copies one
//! pointer, and a change copies only what it touches: one *shard* of about fifteen rows in a million, and the two
//! arrays of pointers above it. If the table is not shared, only the changed shard is copied.
//!
//! ```text
//! root: 256 branches of 256 shards; a row's hash selects the shard; a shard is sorted by key
//! ```
//!
//! A usual hash map keeps a third of its capacity empty and doubles when it is full; persistent maps of libraries have
//! overhead per node. Here a row costs its own bytes and a few per cent. A lookup is a hash and a binary search in half
//! a kilobyte, whatever the size of the fleet.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

const WIDTH: usize = 256;

/// A row with a unique key.
pub trait Row: Clone {
    type Key: Ord + Hash;

    fn key(&self) -> Self::Key;
}

type Shard<R> = Arc<[R]>;
type Branch<R> = Arc<[Shard<R>; WIDTH]>;

pub struct Table<R: Row> {
    root: Arc<[Branch<R>; WIDTH]>,
    hasher: RandomState,
    len: usize,
}

impl<R: Row> Clone for Table<R> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root), hasher: self.hasher.clone(), len: self.len }
    }
}

impl<R: Row> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} rows", self.len)
    }
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        // All shards of an empty table are the same empty shard.
        let shard: Shard<R> = Arc::from([]);
        let branch: Branch<R> = Arc::new(std::array::from_fn(|_| Arc::clone(&shard)));
        let root = Arc::new(std::array::from_fn(|_| Arc::clone(&branch)));
        Self { root, hasher: RandomState::new(), len: 0 }
    }
}

impl<R: Row> Table<R> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, key: &R::Key) -> Option<&R> {
        let shard = self.shard(key);
        shard.binary_search_by(|row| row.key().cmp(key)).ok().map(|at| &shard[at])
    }

    /// Inserts a row, or replaces the one with its key.
    pub fn insert(&mut self, row: R) {
        let key = row.key();
        let shard = self.shard_mut(&key);
        match shard.binary_search_by(|other| other.key().cmp(&key)) {
            Ok(at) => Arc::make_mut(shard)[at] = row,
            Err(at) => {
                let (before, after) = shard.split_at(at);
                let before = before.iter().cloned();
                *shard = before.chain(std::iter::once(row)).chain(after.iter().cloned()).collect();
                self.len += 1;
            }
        }
    }

    /// Changes an existing row; its key must stay the same.
    pub fn update(&mut self, key: &R::Key, change: impl FnOnce(&mut R)) {
        if let Ok(at) = self.shard(key).binary_search_by(|row| row.key().cmp(key)) {
            change(&mut Arc::make_mut(self.shard_mut(key))[at]);
        }
    }

    pub fn remove(&mut self, key: &R::Key) {
        if let Ok(at) = self.shard(key).binary_search_by(|row| row.key().cmp(key)) {
            let shard = self.shard_mut(key);
            *shard = shard[..at].iter().chain(&shard[at + 1..]).cloned().collect();
            self.len -= 1;
        }
    }

    /// Builds a table; keys must be unique.
    pub fn of(rows: Vec<R>) -> Self {
        let mut table = Self { len: rows.len(), ..Self::default() };
        let place = |row: &R| table.place(&row.key());
        let mut placed: Vec<_> = rows.into_iter().map(|row| (place(&row), row)).collect();
        placed.sort_unstable_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.key().cmp(&other.key())));
        let root = Arc::make_mut(&mut table.root);
        for shard in placed.chunk_by(|(a, _), (b, _)| a == b) {
            let (branch, place) = shard[0].0;
            Arc::make_mut(&mut root[branch])[place] = shard.iter().map(|(_, row)| row.clone()).collect();
        }
        table
    }

    /// All rows, unordered.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.root.iter().flat_map(|branch| branch.iter()).flat_map(|shard| shard.iter())
    }

    fn shard(&self, key: &R::Key) -> &[R] {
        let (branch, shard) = self.place(key);
        &self.root[branch][shard]
    }

    fn shard_mut(&mut self, key: &R::Key) -> &mut Shard<R> {
        let (branch, shard) = self.place(key);
        &mut Arc::make_mut(&mut Arc::make_mut(&mut self.root)[branch])[shard]
    }

    fn place(&self, key: &R::Key) -> (usize, usize) {
        // Sixteen low bits are enough, and fit into every usize.
        let hash = self.hasher.hash_one(key) as usize;
        (hash % WIDTH, hash / WIDTH % WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Numbered(u32, u8);

    impl Row for Numbered {
        type Key = u32;

        fn key(&self) -> u32 {
            self.0
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u8),
        Update(u32, u8),
        Remove(u32),
        /// Keep a clone, which must not change.
        Keep,
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..60u32;
        prop_oneof![
            4 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            1 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Step::Update(key, value)),
            2 => key.prop_map(Step::Remove),
            1 => Just(Step::Keep),
        ]
    }

    fn check(table: &Table<Numbered>, model: &BTreeMap<u32, u8>) {
        assert_eq!(table.len(), model.len());
        assert_eq!(table.is_empty(), model.is_empty());
        let mut rows: Vec<_> = table.iter().map(|row| (row.0, row.1)).collect();
        rows.sort_unstable();
        assert_eq!(rows, model.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
        for key in 0..60 {
            assert_eq!(table.get(&key).map(|row| row.1), model.get(&key).copied());
        }
    }

    proptest! {
        #[test]
        fn table_matches_map_and_clones_are_unchanged(steps in proptest::collection::vec(step(), 0..200)) {
            let mut table = Table::default();
            let mut model = BTreeMap::new();
            let mut kept = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        table.insert(Numbered(key, value));
                        model.insert(key, value);
                    }
                    Step::Update(key, value) => {
                        table.update(&key, |row| row.1 = value);
                        model.entry(key).and_modify(|known| *known = value);
                    }
                    Step::Remove(key) => {
                        table.remove(&key);
                        model.remove(&key);
                    }
                    Step::Keep => kept.push((table.clone(), model.clone())),
                }
            }
            check(&table, &model);
            check(&Table::of(table.iter().cloned().collect()), &model);
            for (table, model) in &kept {
                check(table, model);
            }
        }
    }
}
