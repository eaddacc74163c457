//! Deterministic simulation testing: runs the production engine through thousands of histories, with every fault that
//! can happen between it and its store, and checks all results against a model.
//!
//! A [history](history::History) is a list of small steps, generated from a seed by [`generate`] or read from a file.
//! The [world](world::World) plays it over its own [store]. Every commit is compared with the [model], a second and
//! naive implementation of the rules, and with the fourteen [invariants] of the design. A failing history is shrunk
//! to a few steps and printed as lines for replay.
//!
//! | file | contents |
//! |---|---|
//! | [`history`] | the steps and their serialization |
//! | [`generate`] | histories from a seed |
//! | [`requests`] | from a step to a real request |
//! | [`world`] | the engine, the store, time, and the faults between them |
//! | [`cluster`] | several nodes on one store |
//! | [`store`], [`view`] | committed records, as bytes and decoded |
//! | [`rules`], [`model`], [`hosts`], [`host_command`], [`predict`] | the model: tables, one scope, hosts and their commands, requests |
//! | [`conformance`] | which request, if any, a commit carries out |
//! | [`invariants`], [`liveness`] | safety conditions, and liveness conditions once faults stop |
//! | [`trial`] | checks of commits and answers |
//! | [`ledger`] | the checker's memory |
//!
//! No shipped crate depends on this one.

pub mod cluster;
pub mod conformance;
mod counts;
pub mod generate;
pub mod history;
pub mod host_command;
pub mod hosts;
pub mod invariants;
pub mod ledger;
pub mod liveness;
pub mod model;
pub mod predict;
pub mod requests;
pub mod rules;
pub mod store;
pub mod trial;
pub mod view;
pub mod world;

pub use conformance::Violation;
pub use history::{History, Setup, Step};
pub use world::{Stats, World, play};
