//! What others can ask the agent: `/healthz`, `/readyz`, `/drainz`, `/metrics`, `/events`.
//!
//! The loop writes on a [`StatusBoard`], the server reads it: neither waits for the other for longer than a copy takes.

mod metrics;
mod server;
pub mod status;

pub use server::{ServeError, check_address, serve};
pub use status::{Readiness, StatusBoard};
