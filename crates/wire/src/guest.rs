//! The guest's side of the wire: everything under `/metadata`.
//!
//! - [`version`]: the api-versions of scheduled events and what each one knows;
//! - [`document`]: the document a GET answers with, byte for byte as each version shows it;
//! - [`start_requests`]: the body of an approval;
//! - [`instance`]: `/metadata/instance` and `/metadata/versions`;
//! - [`error`]: every way a guest's request can fail, as status and body.

pub mod document;
pub mod error;
pub mod instance;
pub mod start_requests;
pub mod version;
