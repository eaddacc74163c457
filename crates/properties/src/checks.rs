//! One module for each property; its doc names the invariants.

pub mod cursor;
pub mod dhcp;
pub mod document;
pub mod export;
pub mod fleet;
pub mod journal;
pub mod lease;
pub mod operator;
pub mod request;
pub mod start_requests;
