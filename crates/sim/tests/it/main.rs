//! Histories against the model, regressions, and the contract of the simulated store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod histories;
mod replay;
