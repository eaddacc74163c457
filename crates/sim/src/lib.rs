//! A deterministic simulator: it runs the production engine through thousands of histories, with every fault
//! that can happen between it and its store, and judges all that comes out.
//!
//! A [history](history::History) is a list of small steps, made up by [`generate`] from a seed or read from a
//! file. The [world](world::World) plays it over a [store] of its own. Every commit is held against the
//! [model], a second and naive telling of the rules, and against the fourteen [invariants] of the design. What
//! fails is shrunk to a few steps and printed as lines that can be played again.
//!
//! | file | what is in it |
//! |---|---|
//! | [`history`] | the steps, and how they are written down |
//! | [`generate`] | histories from a seed |
//! | [`ask`] | from a step to a real request |
//! | [`world`] | the engine, the store, time, and the faults between them |
//! | [`store`], [`view`] | what was committed, as bytes and in readable form |
//! | [`rules`], [`model`], [`hosts`], [`foretell`] | the rules once more: tables, one scope, whole hosts, whole requests |
//! | [`judge`] | which request, if any, a commit carries out |
//! | [`invariants`], [`liveness`] | what must always be so, and what once the faults stop |
//! | [`trial`] | where commits and answers meet the judge |
//! | [`ledger`] | what the judge remembers |
//!
//! No crate that is shipped depends on this one.

pub mod ask;
pub mod foretell;
pub mod generate;
pub mod history;
pub mod hosts;
pub mod invariants;
pub mod judge;
pub mod ledger;
pub mod liveness;
pub mod model;
pub mod rules;
pub mod store;
pub mod trial;
pub mod view;
pub mod world;

pub use history::{History, Setup, Step};
pub use judge::Violation;
pub use world::{Stats, World, play};
