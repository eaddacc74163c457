//! The agent that runs in a VM: it prepares the VM for scheduled events, approves them, and restores the VM
//! afterwards.
//!
//! [`rules`] holds the configured rules; [`machine`] is a pure state machine (no IO, clock or randomness) that
//! decides what to do next.

mod admission;
pub mod boot;
pub mod check;
pub mod config;
pub mod control;
pub mod coverage;
pub mod describe;
mod driver;
pub mod fact_text;
pub mod history;
pub mod hooks;
pub mod journal;
pub mod machine;
pub mod notify;
pub mod overview;
pub mod platform;
pub mod rehearsal;
pub mod rules;
pub mod run;
pub mod signals;
mod systemd;
pub mod trust;
pub mod vm_id;
