//! Whether word reaches the guests: who listens, and who has read what.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Whether a VM listens: whether it has asked for its document lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listening {
    /// It polled within the last five minutes.
    Yes,
    /// It did not.
    No,
    /// It has not polled since the service started, and that was less than five minutes ago.
    Unknown,
}

impl Listening {
    /// Every answer there is.
    pub const ALL: [Listening; 3] = [Listening::Yes, Listening::No, Listening::Unknown];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Listening::Yes => "yes",
            Listening::No => "no",
            Listening::Unknown => "unknown",
        }
    }
}

/// Whether a VM that an event happens to has read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeenBy {
    /// The VM.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// When it was first sent a document that shows the event; none if it never was.
    pub first_read_at: Option<Timestamp>,
    /// At which api-version.
    pub api_version: Option<String>,
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
