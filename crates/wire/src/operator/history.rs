//! `/v1/history/summary`: ended events, counted.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EventStatus, EventType};

/// Ended events by day, type and outcome, and the times from announcement to approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistorySummary {
    /// The first time that is counted.
    pub since: Timestamp,
    /// The time up to which is counted.
    pub until: Timestamp,
    /// Number of events.
    pub events: usize,
    /// The counts, sorted by day (UTC), type and outcome; only those above zero.
    pub days: Vec<DayCount>,
    /// Events that were approved.
    pub approval: ApprovalTimes,
    /// Whether there are more events than one request counts: the newest are counted, from `since` on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// Events of one type and outcome that ended on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayCount {
    /// The start of the day (UTC).
    pub day: Timestamp,
    /// What happened to the VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// `Completed` or `Cancelled`.
    pub outcome: EventStatus,
    /// Number of events.
    pub events: usize,
}

/// Seconds from announcement to the first approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalTimes {
    /// Number of approved events; the other fields are 0 if there are none.
    pub events: usize,
    /// Half of them were approved within this time.
    pub p50_seconds: u64,
    /// Nine in ten.
    pub p90_seconds: u64,
    /// The longest time.
    pub max_seconds: u64,
}
