//! What others can ask the agent: `/healthz`, `/readyz`, `/drainz`, `/metrics`, `/events`.
//!
//! The loop writes on a [`Board`], the server reads it: neither waits for the other for longer than a copy takes.

pub mod board;
mod metrics;
mod server;

pub use board::{Answer, Board};
pub use server::{ServeError, look_over, serve};
