//! Formats of the guest API, everything under `/metadata`.
//!
//! - [`version`]: the api-versions of scheduled events and what each one shows;
//! - [`document`]: the document that a GET returns, byte-exact per version;
//! - [`start_requests`]: the body of an approval;
//! - [`instance`]: `/metadata/instance` and `/metadata/versions`;
//! - [`error`]: the errors of guest requests, as status and body.

pub mod document;
pub mod error;
pub mod instance;
pub mod start_requests;
pub mod version;
