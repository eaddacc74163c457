//! Golden documents, and the check of API words in all sources.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod golden;
mod words;
