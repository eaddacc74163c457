//! `/v1/status`: what happens next, and what needs an operator.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::clock::Clock;
use super::words::{Cause, EventType};

/// Most names of hosts or scopes in a group.
pub const GROUP_NAMES_MAX: usize = 3;
/// Most failed events that are listed.
pub const FAILED_LISTED_MAX: usize = 5;

/// The state of the caller's scopes at a glance. Operators on `/` also see the service itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The time of the service's clock.
    pub now: Timestamp,
    /// Number of scopes.
    pub scopes: usize,
    /// Number of VMs.
    pub vms: usize,
    /// Whether they listen.
    pub listening: ListeningCounts,
    /// Live events.
    pub events: EventCounts,
    /// Scheduled events, by NotBefore.
    pub next: NextHour,
    /// The first failed events.
    pub failed: Vec<FailedEvent>,
    /// The first operations whose host's command failed its last attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_hosts: Vec<FailedHost>,
    /// The service itself; only for operators on `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceStatus>,
}

/// VMs by whether they polled within five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListeningCounts {
    /// They did.
    pub yes: usize,
    /// They did not.
    pub no: usize,
    /// The service started less than five minutes ago, and they have not polled since.
    pub unknown: usize,
    /// When the VMs were counted. More than 10,000 VMs are counted at most every ten seconds.
    pub counted_at: Timestamp,
}

/// Live events by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventCounts {
    /// Announced and not started.
    pub scheduled: usize,
    /// Started and not ended.
    pub started: usize,
    /// Advisories, which never start.
    #[serde(default)]
    pub advisory: usize,
    /// Started events with a command that failed its last attempt.
    pub failed: usize,
    /// Events of the manual driver that wait for an operator to start or complete them.
    pub waiting_for_operator: usize,
}

/// Scheduled events whose NotBefore is within the hour or has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextHour {
    /// The end of the hour.
    pub until: Timestamp,
    /// The events, grouped by type and by five minutes of NotBefore; sorted by time.
    pub groups: Vec<EventGroup>,
    /// Whether there are more events than the groups count: these stop after 20,000 VMs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// NotBefore of the first event after the hour.
    pub later_from: Option<Timestamp>,
}

/// Events of one type whose NotBefore is within the same five minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventGroup {
    /// What happens to the VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The earliest NotBefore.
    pub not_before: Timestamp,
    /// The latest NotBefore.
    pub not_before_max: Timestamp,
    /// Whether NotBefore has passed: the events wait for an operator, another update domain or the clock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub due: bool,
    /// Number of events.
    pub events: usize,
    /// Number of events that are approved.
    pub approved: usize,
    /// Number of events that a running VM has not read.
    pub unread: usize,
    /// Number of VMs.
    pub vms: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// The first hosts.
    pub host_names: Vec<String>,
    /// Number of scopes.
    pub scopes: usize,
    /// The first scopes.
    pub scope_names: Vec<String>,
}

/// A started event with a command that failed its last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedEvent {
    /// Its id.
    pub event: Uuid,
    /// What happens to its VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Its scope's path.
    pub scope: String,
    /// The VM of the first failed command.
    pub vm: String,
    /// Why that command failed. Only for operators on `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An operation with a command for its host that failed its last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedHost {
    /// The operation.
    pub operation: Uuid,
    /// Why it happens.
    pub cause: Cause,
    /// The host; empty for a token that does not see hosts.
    pub host: String,
    /// Why the command failed. Only for operators on `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The service itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceStatus {
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// Number of open operations.
    pub operations: usize,
    /// Host operations that are due and wait for another update domain.
    pub host_operations_waiting: u64,
    /// Its clock.
    pub clock: Clock,
    /// Number of active faults of the guest listener: answers to guests are wrong on purpose.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faults: u64,
    /// Its store.
    pub store: StoreStatus,
    /// The file system of its data directory; absent if the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskStatus>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// Its newest revision.
    pub revision: u64,
    /// Why it does not accept changes, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Damaged records that were skipped since the start.
    pub damaged_records: u64,
}

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskStatus {
    /// Its size.
    pub bytes: u64,
    /// Space that the service can use.
    pub bytes_free: u64,
}
