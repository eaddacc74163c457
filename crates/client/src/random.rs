//! Random numbers for jitter and request ids.

/// A random number; 0 if the system has no randomness, so retries are not spread.
pub fn number() -> u32 {
    getrandom::u32().unwrap_or_default()
}
