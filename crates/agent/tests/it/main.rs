//! The agent's machine, told stories and thrown at random, in a world that knows what must never happen.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod property;
mod stories;
mod world;
