//! The order of the records that a scan visits.
//!
//! After a lost write, a page of the file is what an older commit wrote. Its records are valid, but it may lead to pages
//! that were visited before, and a reader that follows it returns to the same records without end. In a whole file the
//! keys of valid records rise strictly, so a scan ends where they do not.

use std::ops::Bound;

use super::format::Fault;

/// Compares each key of a scan with the one before it, and the first one with the start of the scan.
pub(super) struct KeyOrder {
    direction: Direction,
    /// Later keys are beyond this.
    last: Bound<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Direction {
    Rising,
    Falling,
}

impl KeyOrder {
    /// Keys of a scan from `start`.
    pub fn rising(start: Bound<&[u8]>) -> Self {
        Self { direction: Direction::Rising, last: start.map(<[u8]>::to_vec) }
    }

    /// Keys of a backward scan from `end`.
    pub fn falling(end: Bound<&[u8]>) -> Self {
        Self { direction: Direction::Falling, last: end.map(<[u8]>::to_vec) }
    }

    /// Takes the key of the next valid record; an error if the pages have led back.
    pub fn accept(&mut self, key: &[u8]) -> Result<(), Fault> {
        let is_beyond = match (self.direction, &self.last) {
            (_, Bound::Unbounded) => true,
            (Direction::Rising, Bound::Included(last)) => key >= last.as_slice(),
            (Direction::Rising, Bound::Excluded(last)) => key > last.as_slice(),
            (Direction::Falling, Bound::Included(last)) => key <= last.as_slice(),
            (Direction::Falling, Bound::Excluded(last)) => key < last.as_slice(),
        };
        if !is_beyond {
            return Err(Fault::Unfollowable);
        }
        // The space is used again: there may be millions of keys.
        let mut last = match std::mem::replace(&mut self.last, Bound::Unbounded) {
            Bound::Included(last) | Bound::Excluded(last) => last,
            Bound::Unbounded => Vec::new(),
        };
        last.clear();
        last.extend_from_slice(key);
        self.last = Bound::Excluded(last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(mut order: KeyOrder, keys: &[&str]) -> usize {
        keys.iter().take_while(|key| order.accept(key.as_bytes()).is_ok()).count()
    }

    #[test]
    fn keys_of_a_scan_rise_strictly_from_its_start() {
        let rising = |start| KeyOrder::rising(start);
        assert_eq!(accepted(rising(Bound::Unbounded), &["", "a", "aa", "b", "b"]), 4);
        assert_eq!(accepted(rising(Bound::Included(b"b")), &["b", "c", "a"]), 2);
        assert_eq!(accepted(rising(Bound::Excluded(b"b")), &["b"]), 0);
        assert_eq!(accepted(rising(Bound::Included(b"b")), &["a"]), 0);
        let falling = |end| KeyOrder::falling(end);
        assert_eq!(accepted(falling(Bound::Unbounded), &["c", "b", "a", "a"]), 3);
        assert_eq!(accepted(falling(Bound::Excluded(b"c")), &["b", "a", "b"]), 2);
        assert_eq!(accepted(falling(Bound::Excluded(b"c")), &["c"]), 0);
        assert_eq!(accepted(falling(Bound::Included(b"c")), &["c", "d"]), 1);
    }
}
