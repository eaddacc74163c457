//! A client of Scheduled Events: what a VM asks of its platform, on Azure and on notbefore alike.
//!
//! - [`document`]: what the endpoint answers, read tolerantly and never taken for less than it is;
//! - [`identity`]: which of an event's resources is this VM;
//! - [`clock`]: the one place that reads the clocks.

pub mod clock;
pub mod document;
pub mod identity;
