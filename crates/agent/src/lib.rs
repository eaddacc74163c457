//! The guest's agent: it prepares this VM for what is about to happen to it, approves the right event, and puts
//! everything back afterwards.
//!
//! [`rules`] is what its owner wants; [`machine`] decides, without IO, clock or randomness, what to do next.

// A field whose name says all there is to say has no comment.
#![allow(missing_docs)]

mod admission;
pub mod boot;
pub mod check;
pub mod config;
pub mod describe;
mod driver;
pub mod fact_text;
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
