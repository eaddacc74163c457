//! Tests of the engine's commands and ticks that the simulator's model does not cover.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod deadlines;
mod enablement;
mod exec;
mod hosts;
mod roles;
mod sizes;
mod support;
mod tokens;
