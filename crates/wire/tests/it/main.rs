//! Every golden document, and the words of the operator API in all sources.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod golden;
mod words;
