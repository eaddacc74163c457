//! Tests of the whole binary. Each module here is one part of the test command: what it needs (a network namespace, a
//! Python environment, Wine, a package) differs. What needs nothing but the binary is in [`service`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod clients;
mod crash;
mod discovery;
mod examples;
mod first_day;
mod guides;
mod networks;
mod package;
mod readme;
mod recipes;
mod service;
mod support;
mod windows;
