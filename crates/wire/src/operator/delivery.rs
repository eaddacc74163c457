//! Delivery: which VMs listen, and which have read an event.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Whether a VM listens: whether it polled within the last five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listening {
    /// It polled within the last five minutes.
    Yes,
    /// It did not poll within the last five minutes.
    No,
    /// It has not polled since the service started, less than five minutes ago.
    Unknown,
}

impl Listening {
    /// All values.
    pub const ALL: [Listening; 3] = [Listening::Yes, Listening::No, Listening::Unknown];

    /// The value as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Listening::Yes => "yes",
            Listening::No => "no",
            Listening::Unknown => "unknown",
        }
    }
}

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

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
