//! `/v1/clock`: whether the service trusts its machine's clock.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The service's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// What time it is by it.
    pub now: Timestamp,
    /// Why it is not trusted, and what waits for that; not there while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<ClockHold>,
}

/// A clock that is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockHold {
    /// Since when, by the clock that is not trusted.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// How many live events wait: they start or end by an approval or a command, not by time.
    pub events: u64,
}
