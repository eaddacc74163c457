//! Network formats: types with their serialisation. No IO, no clock, no domain logic.
//!
//! Azure's casing and spellings appear only here. The server renders these types and the client parses them; both use
//! this crate, and the client does not depend on the domain.
//!
//! - [`guest`]: what a VM sees: documents per api-version, approvals, instance metadata and errors.
//! - `operator`: the types of the operator API under `/v1`. A feature that a guest's client does without.
//! - [`json`]: values as indented JSON and as YAML, with one writer for each type.
//! - [`text`]: escapes untrusted text for logs and terminals.
//! - [`natural`]: the order of names in lists.

// Without the feature, the macros that describe types write nothing.
#[cfg(all(feature = "operator", not(feature = "describe")))]
extern crate notbefore_undescribed as utoipa;

pub mod guest;
pub mod json;
pub mod natural;
#[cfg(feature = "operator")]
pub mod operator;
pub mod text;
