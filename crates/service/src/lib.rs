//! Placeholder.

pub mod clock;
pub mod guest;
