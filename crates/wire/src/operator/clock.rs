//! `/v1/clock`: whether the service trusts the system clock.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The service's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// The current time of the clock.
    pub now: Timestamp,
    /// Present while the clock is not trusted: why, and what waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<ClockHold>,
}

/// A clock hold: the service does not trust its clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockHold {
    /// When the hold began, by the untrusted clock.
    pub since: Timestamp,
    /// Why, as text.
    pub reason: String,
    /// Number of live events that wait. During a hold only approvals and commands start or end events.
    pub events: u64,
}
