//! What crosses the network, and nothing else: no IO, no clock, no domain logic.
//!
//! Azure's own casing and spellings live here, so that the rest of the code can speak its own words. A
//! server renders these types, a client reads them; both link this crate and neither links the domain.
//!
//! [`guest`] is what a VM sees: documents per api-version, approvals, instance metadata and errors.
//! `operator` is what those who run VMs use: the types of the API under `/v1`. It is a feature, on by itself, so that a
//! guest's client can do without. [`text`] makes what others have written fit for a log line.

pub mod guest;
#[cfg(feature = "operator")]
pub mod operator;
pub mod text;
