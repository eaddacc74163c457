//! Tests of the agent's state machine: named scenarios and random inputs, in a simulated world that checks
//! invariants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod property;
mod scenarios;
mod world;
