//! Plans: what an operation would do, without doing it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Cause, EventType, Release, Resource};

/// Most VMs that [`Plan::silent`] lists.
pub const SILENT_NAMED_MAX: usize = 20;

/// What an operation would do: its events, and the VMs that will and will not hear of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// For an operation on a host: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What happens to the VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Why it happens.
    pub cause: Cause,
    /// How approvals let its events start.
    pub release: Release,
    /// NotBefore of all its events; null if the cause gives no notice.
    pub not_before: Option<Timestamp>,
    /// Seconds until NotBefore.
    pub notice_seconds: Option<u64>,
    /// Number of affected VMs.
    pub vms: usize,
    /// Number of affected scopes.
    pub scopes: usize,
    /// Number of VMs on the host that are not affected, because they are deallocated.
    pub deallocated: usize,
    /// Number of affected VMs that polled within the last five minutes.
    pub listening: usize,
    /// Number of affected VMs for which this is unknown, because the service has just started.
    pub listening_unknown: usize,
    /// Paths of VMs that will not see the event, because they do not poll or their scope refuses it. At most 20.
    pub silent: Vec<String>,
    /// The events, sorted by scope and update domain.
    pub events: Vec<PlannedEvent>,
    /// For an operation on a host: operations on this host that are open already.
    pub operations: Vec<Uuid>,
}

/// One event of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedEvent {
    /// Its scope's path.
    pub scope: String,
    /// The update domain of its VMs.
    pub update_domain: u32,
    /// Its VMs, in the order that guests will see.
    pub resources: Vec<Resource>,
    /// Number of its VMs that polled within the last five minutes.
    pub listening: usize,
    /// The update domain that it will have to wait for, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// If it will start at once, although its cause gives notice: why, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_because: Option<String>,
    /// The error code, if its scope will refuse it. Its VMs will not see the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_because: Option<String>,
}
