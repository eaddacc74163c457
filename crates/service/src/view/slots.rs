//! Copy-on-write array in chunks: a change copies one chunk and the pointers to the others.

use std::sync::Arc;

/// Slots in a chunk.
const CHUNK: usize = 256;

type Chunk<T> = Arc<[Option<T>; CHUNK]>;

/// A sparse copy-on-write array.
#[derive(Clone)]
pub struct Slots<T> {
    chunks: Arc<Vec<Chunk<T>>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<T: Clone> Slots<T> {
    /// Number of slots; some are empty.
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// The value in a slot.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?[at % CHUNK].as_ref()
    }

    /// Sets or clears a slot.
    pub fn set(&mut self, at: usize, value: Option<T>) {
        let chunks = Arc::make_mut(&mut self.chunks);
        while chunks.len() <= at / CHUNK {
            chunks.push(Arc::new([const { None }; CHUNK]));
        }
        Arc::make_mut(&mut chunks[at / CHUNK])[at % CHUNK] = value;
    }

    /// All occupied slots, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.iter());
        slots.enumerate().filter_map(|(at, value)| Some((at, value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_is_unaffected_by_changes() {
        let mut slots = Slots::default();
        assert_eq!(slots.get(7), None);
        slots.set(7, Some("a"));
        slots.set(1_000, Some("b"));
        let copy = slots.clone();
        slots.set(7, None);
        slots.set(1_001, Some("c"));
        assert_eq!(copy.iter().collect::<Vec<_>>(), [(7, &"a"), (1_000, &"b")]);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(1_000, &"b"), (1_001, &"c")]);
        assert_eq!((slots.get(7), slots.get(1_001), slots.get(5_000)), (None, Some(&"c"), None));
    }
}
