//! The settings kernel, which `serve` and the agent read their configuration by.

mod mistakes;
pub mod span;
pub mod suggest;

pub use mistakes::Mistakes;
