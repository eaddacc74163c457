//! Randomness for jitter and for the ids of requests. The standard library seeds its hash maps with some.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Any number, another one every time.
pub fn throw() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
