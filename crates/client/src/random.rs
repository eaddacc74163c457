//! Randomness for jitter and for the ids of requests.

/// Any number, another one every time. It is 0 where the system has no randomness: retries are then not spread.
pub fn number() -> u32 {
    getrandom::u32().unwrap_or_default()
}
