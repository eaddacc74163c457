//! Integration tests: the inputs of `fuzz/corpus`, and mutations of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod corpus;
