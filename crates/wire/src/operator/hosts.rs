//! Hosts: the machines that VMs run on, and what is done to all the VMs of one.
//!
//! Nobody makes a host. It is a name that VMs carry, and exists while one does.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Cause, EventType, HostVerb, Maintenance, Release, Resource};

/// How many of the VMs that will hear nothing are named in a plan.
pub const SILENT_NAMED_MAX: usize = 20;

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// How many VMs are on it.
    pub vms: usize,
    /// How many of them are deallocated, and so left out of whatever happens to the host.
    pub deallocated: usize,
    /// In how many scopes they are.
    pub scopes: usize,
    /// How many of those that run have asked for their events within five minutes.
    pub listening: usize,
    /// Of how many of those that run nobody can tell yet, since the service has just started.
    pub listening_unknown: usize,
    /// How many live events happen to them.
    pub events: usize,
    /// The operations on this host that are not closed.
    pub operations: Vec<Uuid>,
}

/// The body of `POST /v1/hosts/{host}/maintain`, `degraded` and `failed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostAction {
    /// How it is maintained; for `maintain` only.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
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
    /// Only say what it would come to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What an operation on a host would come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostPlan {
    /// The host.
    pub host: String,
    /// What happens to its VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Why.
    pub cause: Cause,
    /// Whether an early start needs every event approved.
    pub release: Release,
    /// The one NotBefore of its events; none where there is no notice.
    pub not_before: Option<Timestamp>,
    /// How long that is from now.
    pub notice_seconds: Option<u64>,
    /// How many VMs it happens to.
    pub vms: usize,
    /// In how many scopes.
    pub scopes: usize,
    /// How many VMs of the host are left out since they are deallocated.
    pub deallocated: usize,
    /// How many VMs have asked for their events within five minutes.
    pub listening: usize,
    /// Of how many nobody can tell yet, since the service has just started.
    pub listening_unknown: usize,
    /// The paths of VMs that have not asked, or whose scope will not have the event, and so will hear nothing;
    /// the first of them, if they are many.
    pub silent: Vec<String>,
    /// The events, in the order of scope and update domain.
    pub events: Vec<PlannedEvent>,
    /// Operations on this host that are not closed already.
    pub operations: Vec<Uuid>,
}

/// One event of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedEvent {
    /// Its scope's path.
    pub scope: String,
    /// The update domain of its VMs.
    pub update_domain: u32,
    /// Its VMs, in the order in which guests will see them.
    pub resources: Vec<Resource>,
    /// How many of them are listening.
    pub listening: usize,
    /// Which other update domain it will wait for, in words, if it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The code of the refusal, if its scope will not have it: its VMs hear nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_because: Option<String>,
}

/// How many hosts one plan compares.
pub const PLANNED_HOSTS_MAX: usize = 1_000;

/// The body of `POST /v1/hosts/plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsAction {
    /// The hosts, in the order in which their operations would be announced.
    #[schema(min_items = 1, max_items = 1000)]
    pub hosts: Vec<String>,
    /// What is done to each of them.
    pub verb: HostVerb,
    /// How; `dry_run` makes no difference.
    #[serde(default)]
    pub action: HostAction,
}

/// What operations on several hosts would come to, compared with each other. Nothing is announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostsPlan {
    /// What each would come to, in the order of the request.
    pub hosts: Vec<HostPlan>,
    /// The scopes that are hit, in order.
    pub scopes: Vec<ScopeImpact>,
    /// The hosts that have to wait for others of the list.
    pub waits: Vec<HostWait>,
}

/// How operations on several hosts hit one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeImpact {
    /// The scope's path.
    pub scope: String,
    /// How many VMs it has.
    pub vms: usize,
    /// How many of them are hit in all.
    pub hit: usize,
    /// How many of them may be hit at once, at most: hosts with VMs in one and the same update domain are not kept
    /// apart.
    pub at_once: usize,
    /// How many of the hosts have VMs in it.
    pub hosts: usize,
}

/// A host that waits for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostWait {
    /// The host.
    pub host: String,
    /// The hosts that go first, since both have VMs in different update domains of a scope.
    pub waits_for: Vec<String>,
    /// Those scopes.
    pub scopes: Vec<String>,
}
