//! Types of the operator API under `/v1`, shared by the service and the command line.
//!
//! The service refuses requests with unknown fields, so that a misspelt field is an error. A reader of responses skips
//! them, so that an older client can read responses of a newer service; a type of responses has no
//! `deny_unknown_fields`. Times are RFC 3339, durations are
//! whole seconds, ids are lower-case GUIDs. Every resource has the `revision` at which it was last written, for
//! `If-Match`.

pub mod audit;
pub mod certificate;
pub mod clock;
pub mod cluster;
pub mod delivery;
pub mod export;
pub mod facts;
pub mod faults;
pub mod fleet;
pub mod history;
pub mod hosts;
pub mod plan;
pub mod session;
pub mod status;
pub mod tokens;
pub mod vm_log;
pub mod words;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use self::delivery::SeenBy;
use crate::guest::instance::Instance;

pub mod exec;

pub use exec::{ExecCommand, ExecProgress, HostCommand};
pub use facts::{Actor, Fact, FactDetail, FactId};
pub use words::*;

/// The header that makes a repeated request happen once.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// The longest key, in bytes.
pub const IDEMPOTENCY_KEY_MAX: usize = 128;
/// Default number of items on a page.
pub const PAGE_DEFAULT: usize = 100;
/// Largest number of items on a page.
pub const PAGE_MAX: usize = 1_000;

/// An error, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The error code for programs. Its meaning never changes.
    pub code: String,
    /// The status in words.
    pub title: String,
    /// Why this request failed, and what to do next.
    pub detail: String,
    /// For an ambiguous name or id: the paths or ids that match. For an unknown host: similar names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// The index of the API: its routes, and where they are described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiIndex {
    /// The release of the service.
    pub version: String,
    /// The path of the OpenAPI description.
    pub openapi: String,
    /// The page of the documentation, in the repository and in the package.
    pub documentation: String,
    /// All routes, sorted by path. Those outside `/v1` need no token.
    pub routes: Vec<ApiRoute>,
}

/// A route of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiRoute {
    /// The HTTP method.
    pub method: String,
    /// The path, with parameters in braces.
    pub path: String,
    /// What it does.
    pub summary: String,
    /// Whether it needs the role operator on `/`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator_only: bool,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor of the next page, if there is one. Pass it unchanged as `cursor`.
    pub next: Option<String>,
    /// The items show all changes up to this revision, and may show later ones. To follow changes, open the stream with
    /// the first page's revision as `Last-Event-ID`.
    #[serde(default)]
    #[schema(required)]
    pub revision: u64,
}

/// A scope's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Policy {
    /// A restart by the VM's owner starts without an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_reboot: bool,
    /// A redeploy by the VM's owner starts without an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_redeploy: bool,
    /// Notice of a deletion in seconds, 300 to 900. Without it a deletion gives no notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 300, maximum = 900)]
    pub terminate_notification_seconds: Option<u32>,
}

/// The desired state of a scope: the body of `PUT /v1/scopes/{subscription}/{group}/{scope}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeSpec {
    /// Its kind.
    pub kind: ScopeKind,
    /// Its settings.
    #[serde(default)]
    pub policy: Policy,
    /// Its VMs.
    #[serde(default)]
    pub vms: Vec<VmSpec>,
}

/// The desired state of a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VmSpec {
    /// Its name, unique in its scope.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,80}$")]
    pub name: String,
    /// Its update domain.
    pub update_domain: u32,
    /// Its fault domain.
    pub fault_domain: u32,
    /// Its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The host it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether it is a Spot VM, which can be evicted.
    pub spot: bool,
    /// Its addresses: `10.0.0.4`, or `network/10.0.0.4` for a network other than `default`.
    #[schema(example = json!(["10.0.0.4"]))]
    pub addresses: Vec<String>,
    /// Instance metadata for the VM, in addition to the fields above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// The body of `POST /v1/vms`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddVm {
    /// Its scope's path. Default: a standalone scope with the VM's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The kind of the scope, if it has to be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ScopeKind>,
    /// The VM.
    pub vm: VmSpec,
}

/// The result of `PUT /v1/scopes/…` or of removing a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeOutcome {
    /// The scope's path.
    pub scope: String,
    /// Whether the scope was created.
    pub created: bool,
    /// Number of VMs added.
    pub added: usize,
    /// Number of VMs changed.
    pub changed: usize,
    /// Number of VMs removed.
    pub removed: usize,
}

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Scope {
    /// Its path.
    pub path: String,
    /// Its kind.
    pub kind: ScopeKind,
    /// Its settings.
    pub policy: Policy,
    /// The incarnation of its document.
    pub incarnation: u64,
    /// Number of its VMs.
    pub vms: usize,
    /// Number of its live events.
    pub events: usize,
    /// Whether it comes from a fleet file.
    pub from_fleet: bool,
    /// The revision at which it was last written.
    pub revision: u64,
}

/// A VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vm {
    /// Its id; `vmId` in its instance metadata.
    pub id: Uuid,
    /// Its path: `subscription/group/scope/name`.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its scope's path.
    pub scope: String,
    /// Its scope's kind.
    pub kind: ScopeKind,
    /// Running or deallocated.
    pub state: VmState,
    /// Its update domain.
    pub update_domain: u32,
    /// Its fault domain.
    pub fault_domain: u32,
    /// Its zone.
    pub zone: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Whether it is a Spot VM, which can be evicted.
    pub spot: bool,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// The live events that affect it.
    pub events: Vec<Uuid>,
    /// Whether it polled within the last five minutes.
    pub listening: Listening,
    /// Time of its last poll since the service started.
    pub last_poll_at: Option<Timestamp>,
    /// The api-version of its last poll.
    pub last_poll_version: Option<String>,
    /// Whether it is the example VM that the service creates when it starts without a fleet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_run: bool,
    /// The revision at which its scope was last written.
    pub revision: u64,
}

/// The body of `POST /v1/events`: schedule events for VMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleEvents {
    /// The event type; the service chooses the usual cause for it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<EventType>,
    /// The exact cause, instead of `type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The VMs, each by id or by the end of its path.
    #[schema(example = json!(["web-0"]), max_items = 1000)]
    pub vms: Vec<String>,
    /// NotBefore. Default: the usual notice of the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Instead of `not_before`: seconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 2_147_483_647)]
    pub in_seconds: Option<u64>,
    /// The Description that guests read. Default: the usual text of the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub description: Option<String>,
    /// The expected interruption in seconds that guests read; −1 for unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -1, maximum = 2_592_000)]
    pub duration_seconds: Option<i32>,
    /// Evict also VMs that are not Spot. Other causes ignore it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The `revision` of each of `vms`, in their order. If one has changed, nothing is scheduled
    /// (412 `revision_differs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Vec<u64>>,
    /// Return the plan and change nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The body of `POST /v1/vms/{vm}/restart`, `redeploy`, `evict` and `delete`. Optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VmAction {
    /// NotBefore. Default: the usual notice of the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// For `evict`: evict also a VM that is not Spot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// The body of `POST /v1/events/{event}/complete`. Optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompleteEvent {
    /// The new hosts of redeployed VMs, by VM name or id.
    pub hosts: BTreeMap<String, String>,
}

/// A VM that an event affects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Its id.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// Its host at the time of the announcement, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// An event, live or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its id.
    pub id: Uuid,
    /// The operation that it is part of.
    pub operation: Uuid,
    /// What happens to its VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Its current state.
    pub status: EventStatus,
    /// Why it happens.
    pub cause: Cause,
    /// Platform or User.
    pub source: Source,
    /// Its scope's path.
    pub scope: String,
    /// The update domain of its VMs.
    pub update_domain: u32,
    /// Its VMs, in the order that guests see.
    pub resources: Vec<Resource>,
    /// When it was announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// NotBefore, while Scheduled.
    pub not_before: Option<Timestamp>,
    /// Whether a guest or an operator approved it.
    pub approved: bool,
    /// Whether the request gave NotBefore. Then only an approval or an operator starts the event earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The Description that guests read.
    pub description: String,
    /// The expected interruption in seconds that guests read; −1 for unknown.
    pub duration_seconds: i32,
    /// The driver that carries it out.
    pub driver: Driver,
    /// What it waits for, as text, while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// For the exec driver, once the event has started: the state of its commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecProgress>,
    /// Names of its running VMs that have not read it, while it is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_by: Vec<String>,
    /// First reads, one entry per VM. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenBy>,
    /// The facts of the event, oldest first. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<Fact>,
    /// The revision at which it was last written.
    pub revision: u64,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Its id.
    pub id: Uuid,
    /// Why it happens.
    pub cause: Cause,
    /// For an operation on a host: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Who requested it.
    pub by: String,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// Its current state.
    pub state: OperationState,
    /// How approvals let its events start.
    pub release: Release,
    /// NotBefore of all its events; null if the cause gives no notice.
    pub not_before: Option<Timestamp>,
    /// Whether the request gave NotBefore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether an operator completed it as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
    /// For the reboot or freeze of a host with several events, which start together: `waiting`, `ready` (manual
    /// driver: waits for an operator to start it) or `released`. Absent for other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_start: Option<HostStart>,
    /// With the exec driver and a command for hosts: that command, for the reboot or freeze of a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_command: Option<HostCommand>,
    /// What the whole operation waits for, as text, if it is due and has to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Progress, as counts.
    pub progress: OperationProgress,
    /// Its parts, one per event.
    pub targets: Vec<OperationTarget>,
}

/// Progress of an operation, as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationProgress {
    /// Scopes that it affects.
    pub scopes: usize,
    /// Scopes that have all changes of the operation.
    pub scopes_told: usize,
    /// Its events.
    pub events: usize,
    /// Events that are announced and wait for an approval.
    pub waiting: usize,
    /// Events that are approved and not started.
    pub approved: usize,
    /// Events that are started and not ended.
    pub started: usize,
    /// Advisories, which never start.
    #[serde(default)]
    pub advisory: usize,
    /// Events that ended, completed or cancelled.
    pub ended: usize,
    /// Ended events that were cancelled.
    #[serde(default)]
    pub cancelled: usize,
    /// Started events with a command that failed its last attempt.
    #[serde(default)]
    pub failed: usize,
    /// Events that their scopes refused.
    pub refused: usize,
}

impl OperationProgress {
    /// The progress of an operation with these parts, which are sorted by scope.
    pub fn of(targets: &[OperationTarget]) -> Self {
        let mut progress = Self { events: targets.len(), ..Self::default() };
        for scope in targets.chunk_by(|one, two| one.scope == two.scope) {
            progress.scopes += 1;
            progress.scopes_told += usize::from(scope.iter().all(|part| part.state != TargetState::Opening));
        }
        for part in targets {
            progress.failed += usize::from(part.failed);
            match part.state {
                TargetState::Approved => progress.approved += 1,
                TargetState::Waiting => progress.waiting += 1,
                TargetState::Started => progress.started += 1,
                TargetState::Advisory => progress.advisory += 1,
                TargetState::Refused => progress.refused += 1,
                TargetState::Cancelled => {
                    progress.ended += 1;
                    progress.cancelled += 1;
                }
                TargetState::Completed | TargetState::Ended => progress.ended += 1,
                TargetState::Opening | TargetState::Unknown(_) => {}
            }
        }
        progress
    }
}

/// The part of an operation for one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationTarget {
    /// The event.
    pub event: Uuid,
    /// Its scope's path.
    pub scope: String,
    /// Its update domain.
    pub update_domain: u32,
    /// Its VMs.
    pub resources: Vec<Resource>,
    /// The state of the part.
    pub state: TargetState,
    /// The status of the event.
    pub status: TargetStatus,
    /// Whether one of its commands failed its last attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The error code, if the scope refused the event. Its VMs do not see the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why it started, as text, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_because: Option<String>,
}
