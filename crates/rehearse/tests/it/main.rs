//! Tests of rehearsals with real processes, and in network namespaces (root).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrival;
mod by_hand;
mod habits;
mod handler;
mod namespace;
mod stage;
mod support;

use std::time::Duration;

/// Time limit of every wait in a test.
const PATIENCE: Duration = Duration::from_secs(30);
