//! The operator API's types: what travels under `/v1`, for the service and the command line alike.
//!
//! Requests refuse fields they do not know, so that a misspelt one is an answer and not a surprise. Times are
//! RFC 3339, durations are whole seconds, ids are GUIDs in lower case. Every resource carries the `revision`
//! at which it was last written, for `If-Match`.

pub mod audit;
pub mod certificate;
pub mod clock;
pub mod delivery;
pub mod export;
pub mod facts;
pub mod fleet;
pub mod hosts;
pub mod tokens;
pub mod words;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use self::delivery::{Listening, SeenBy};
use crate::guest::instance::Instance;

pub mod exec;

pub use exec::{ExecCommand, ExecProgress};
pub use facts::{Actor, Fact, FactId, What};
pub use words::*;

/// The header that makes a repeated request safe.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// The longest such key.
pub const IDEMPOTENCY_KEY_MAX: usize = 128;
/// How many items a page has unless the caller says.
pub const PAGE_DEFAULT: usize = 100;
/// How many items a page has at most.
pub const PAGE_MAX: usize = 1_000;

/// An error, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The HTTP status, repeated.
    pub status: u16,
    /// What programs go by; it never changes its meaning.
    pub code: String,
    /// The status in words.
    pub title: String,
    /// What happened to this request, and what to do about it.
    pub detail: String,
    /// What a name could have meant, where it meant several things.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one; to be given back as `cursor`, as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The items show every change up to this revision, and may show later ones: to follow what comes, open the stream with
    /// the first page's as `Last-Event-ID`.
    #[serde(default)]
    #[schema(required)]
    pub revision: u64,
}

/// A scope's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// A user's restart starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_reboot: bool,
    /// A user's redeploy starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_redeploy: bool,
    /// How much notice a deletion gives, in seconds: 300 to 900, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 300, maximum = 900)]
    pub terminate_notification_seconds: Option<u32>,
}

/// A scope as it should be: the body of `PUT /v1/scopes/{subscription}/{group}/{scope}`.
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

/// A VM as it should be.
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
    /// Whether its capacity may be wanted back.
    pub spot: bool,
    /// Where it calls from: `10.0.0.4`, or `network/10.0.0.4` for another network than `default`.
    #[schema(example = json!(["10.0.0.4"]))]
    pub addresses: Vec<String>,
    /// What it is told about itself besides what the inventory knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// The body of `POST /v1/vms`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddVm {
    /// Its scope's path; a standalone scope of the VM's own name if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The kind to make the scope of, if there is none of that path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ScopeKind>,
    /// The VM.
    pub vm: VmSpec,
}

/// What came of `PUT /v1/scopes/…` or of removing a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeOutcome {
    /// The scope's path.
    pub scope: String,
    /// Whether it was made.
    pub created: bool,
    /// How many VMs were added.
    pub added: usize,
    /// How many were changed.
    pub changed: usize,
    /// How many were removed.
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
    /// The number of the document that its guests see.
    pub incarnation: u64,
    /// How many VMs it has.
    pub vms: usize,
    /// How many live events it has.
    pub events: usize,
    /// Whether a fleet file made it.
    pub from_fleet: bool,
    /// When it was last written.
    pub revision: u64,
}

/// A VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vm {
    /// Its id; `vmId` in its own metadata.
    pub id: Uuid,
    /// Its whole path: `subscription/group/scope/name`.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its scope's path.
    pub scope: String,
    /// Its scope's kind.
    pub kind: ScopeKind,
    /// Whether it runs.
    pub state: VmState,
    /// Its update domain.
    pub update_domain: u32,
    /// Its fault domain.
    pub fault_domain: u32,
    /// Its zone.
    pub zone: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Whether its capacity may be wanted back.
    pub spot: bool,
    /// Where it calls from.
    pub addresses: Vec<String>,
    /// The live events that happen to it.
    pub events: Vec<Uuid>,
    /// Whether it listens.
    pub listening: Listening,
    /// When it last asked for its document, as far as the service has heard since it started.
    pub last_poll_at: Option<Timestamp>,
    /// At which api-version.
    pub last_poll_version: Option<String>,
    /// Whether it stands in for a fleet, as on the first run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_run: bool,
    /// When its scope was last written.
    pub revision: u64,
}

/// The body of `POST /v1/events`: announce something to VMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleEvents {
    /// What happens: stands for the platform's usual cause.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<EventType>,
    /// The exact cause, instead of a type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The VMs, by id or by the end of their path.
    #[schema(example = json!(["web-0"]))]
    pub vms: Vec<String>,
    /// Not before when; the usual notice if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Instead of `not_before`: in how many seconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_seconds: Option<u64>,
    /// What guests read, instead of the cause's usual words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub description: Option<String>,
    /// For how long guests are told to expect to be interrupted; −1 for unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -1, maximum = 2_592_000)]
    pub duration_seconds: Option<i32>,
    /// Evict VMs that are not Spot, too; other causes need no force.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// The body of `POST /v1/vms/{vm}/restart`, `redeploy`, `evict` and `delete`; may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VmAction {
    /// Not before when; the usual notice if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// For `evict`: also a VM that is not Spot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// The body of `POST /v1/events/{event}/complete`; may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompleteEvent {
    /// Where redeployed VMs are now, by their name or id.
    pub hosts: BTreeMap<String, String>,
}

/// A VM that an event happens to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Its id.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// The host it was on when the event was announced, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// An event, live or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its id.
    pub id: Uuid,
    /// The operation it belongs to.
    pub operation: Uuid,
    /// What happens.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Where it stands.
    pub status: EventStatus,
    /// Why it happens.
    pub cause: Cause,
    /// Who set it going.
    pub source: Source,
    /// Its scope's path.
    pub scope: String,
    /// The update domain of its VMs.
    pub update_domain: u32,
    /// Its VMs, in the order in which guests see them.
    pub resources: Vec<Resource>,
    /// While Scheduled: not before when.
    pub not_before: Option<Timestamp>,
    /// Whether somebody has approved it.
    pub approved: bool,
    /// Whether a person gave its NotBefore; then only an approval or an operator starts it earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What guests read about it.
    pub description: String,
    /// For how long they are told to expect to be interrupted; −1 for unknown.
    pub duration_seconds: i32,
    /// Who carries it out.
    pub driver: Driver,
    /// What it waits for, in words, while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// How the commands stand that carry it out, once it has started, if commands do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecProgress>,
    /// The VMs it happens to that run and have not read it, by name, while it is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_by: Vec<String>,
    /// When each of its VMs first read it; lists leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenBy>,
    /// What has happened to it, oldest first; lists leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<Fact>,
    /// When it was last written.
    pub revision: u64,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Its id.
    pub id: Uuid,
    /// Why.
    pub cause: Cause,
    /// The host it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Who asked for it.
    pub by: String,
    /// When.
    pub requested_at: Timestamp,
    /// Where it stands.
    pub state: OperationState,
    /// How approvals release its events.
    pub release: Release,
    /// The one NotBefore of its events; none where there is no notice.
    pub not_before: Option<Timestamp>,
    /// Whether a person gave that time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// Whether somebody has called it off.
    pub cancelled: bool,
    /// Whether all of it was said to be carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
    /// For the reboot or freeze of a host with several events, which start together: `waiting`, `ready` (manual
    /// driver: it waits to be started) or `released`. None for any other operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_start: Option<HostStart>,
    /// What it waits for as a whole, in words, if it is due and has to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// How far it is.
    pub progress: OperationProgress,
    /// Its parts.
    pub targets: Vec<OperationTarget>,
}

/// How far an operation is, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationProgress {
    /// How many scopes it reaches.
    pub scopes: usize,
    /// How many of those have been told all that there is to tell them.
    pub scopes_told: usize,
    /// How many events it has.
    pub events: usize,
    /// How many of those are announced and wait to be approved.
    pub waiting: usize,
    /// How many are approved and have not begun.
    pub approved: usize,
    /// How many are under way.
    pub started: usize,
    /// How many have ended, in whatever way.
    pub ended: usize,
    /// How many of those were cancelled.
    #[serde(default)]
    pub cancelled: usize,
    /// How many are under way and have a command that has used up its attempts.
    #[serde(default)]
    pub failed: usize,
    /// How many their scopes would not have.
    pub refused: usize,
}

/// An operation's part in one scope.
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
    /// Where the part stands.
    pub state: TargetState,
    /// Where the event stands.
    pub status: TargetStatus,
    /// Whether a command of it has used up its attempts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The code of the refusal, if the scope would not have the event: its VMs have heard nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why it has started, in words, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_because: Option<String>,
}
