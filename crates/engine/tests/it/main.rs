//! The engine by its commands and its ticks, as far as the simulator's model does not speak of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod deadlines;
mod enablement;
mod exec;
mod hosts;
mod support;
mod tokens;
