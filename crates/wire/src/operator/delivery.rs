//! Delivery: which VMs have read an event.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Whether an affected VM has read an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeenBy {
    /// The VM.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// When it was first sent a document with the event; null if never.
    pub first_read_at: Option<Timestamp>,
    /// The api-version of that document.
    pub api_version: Option<String>,
}
