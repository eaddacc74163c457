//! Seeded random numbers: the same seed gives the same choices. The exact moment of a kill is not in the seed, so a
//! failure recurs with its seed often, not always.

use std::ops::RangeInclusive;

/// SplitMix64 generator. Not from a library: an update may change its sequence, and seeds in reports would become
/// invalid.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed in `NOTBEFORE_SEED`, or a random one.
    pub fn seed() -> u64 {
        match std::env::var("NOTBEFORE_SEED") {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("NOTBEFORE_SEED={text} is no number")),
            // A number that JSON and shells accept without quotes.
            Err(_) => uuid::Uuid::new_v4().as_u64_pair().0 >> 12,
        }
    }

    /// Another generator, so that one thread's choices do not depend on another's speed.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        (self.next() % len as u64) as usize
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }
}
