//! Slab of a worker's connections, with a generation in each token.
//!
//! The slab reuses a slot as soon as it is free. A token is the slot's index and a generation. A late epoll event of a
//! closed connection thus never reaches the next connection in its slot.

use slab::Slab;

/// Generation in the upper half, slot index in the lower half.
pub(super) type Token = u64;

/// Tokens from here on are never used for slots.
pub(super) const RESERVED: Token = (u32::MAX as u64) << 32;

#[derive(Debug)]
pub(super) struct Slots<T> {
    slab: Slab<(u32, T)>,
    /// The generation of the next value. It stays below that of [`RESERVED`] and wraps after four billion values.
    next: u32,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Slots<T> {
        Slots { slab: Slab::new(), next: 0 }
    }

    /// Inserts a value into a free slot. Returns the value if all four billion slots are in use.
    pub(super) fn insert(&mut self, value: T) -> Result<Token, T> {
        let Ok(at) = u32::try_from(self.slab.vacant_key()) else { return Err(value) };
        let generation = self.next;
        self.next = (generation + 1) % u32::MAX;
        self.slab.insert((generation, value));
        Ok(token(generation, at))
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let (generation, value) = self.slab.get_mut(token as u32 as usize)?;
        (*generation == (token >> 32) as u32).then_some(value)
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<T> {
        self.get_mut(token)?;
        self.slab.try_remove(token as u32 as usize).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        self.slab.iter().filter_map(|(at, (generation, value))| {
            let at = u32::try_from(at).ok()?;
            Some((token(*generation, at), value))
        })
    }
}

fn token(generation: u32, at: u32) -> Token {
    u64::from(generation) << 32 | u64::from(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_reused_with_new_token() {
        let mut slots = Slots::new();
        let [first, second] = ["a", "b"].map(|value| slots.insert(value).unwrap());
        assert_eq!((slots.remove(first), slots.remove(first)), (Some("a"), None));
        let third = slots.insert("c").unwrap();
        assert_ne!(third, first);
        assert!(slots.get_mut(first).is_none() && slots.remove(first).is_none());
        assert_eq!(slots.get_mut(third), Some(&mut "c"));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(third, &"c"), (second, &"b")]);
        assert!(slots.get_mut(RESERVED).is_none() && slots.get_mut(Token::MAX).is_none());
    }

    #[test]
    fn generations_stay_below_the_reserved_tokens() {
        let mut slots = Slots { slab: Slab::new(), next: u32::MAX - 1 };
        let [last, first] = ["a", "b"].map(|value| slots.insert(value).unwrap());
        assert!(last < RESERVED);
        assert_eq!(first >> 32, 0);
    }
}
