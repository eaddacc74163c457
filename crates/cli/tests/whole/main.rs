//! Integration tests of the binary. Each module is a part of the test command with its own requirements: a network
//! namespace, a Python environment, Wine, a package. Tests that need only the binary are in [`service`].

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod clients;
mod cluster;
mod crash;
mod discovery;
mod examples;
mod first_day;
mod guides;
mod image;
mod networks;
mod package;
mod readme;
mod recipes;
mod service;
mod support;
mod windows;
