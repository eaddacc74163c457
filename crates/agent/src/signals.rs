//! The agent's status server: `/healthz`, `/readyz`, `/drainz`, `/metrics`, `/events`.
//!
//! The loop writes to a [`StatusBoard`] and the server reads it; each holds its lock only for a copy.

mod metrics;
mod server;
pub mod status;

pub use server::{ServeError, check_address, serve};
pub use status::StatusBoard;
