//! Hosts, and operations on all VMs of a host.
//!
//! A host exists from its first VM until an operator removes it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::plan::Plan;
use super::{Actor, HostState, HostVerb, Maintenance};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Whether VMs may move there.
    pub state: HostState,
    /// Since when: since its first VM, if the state never changed. Not for `maintenance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The actor that reported the state, or added the first VM. Not for `maintenance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// Number of VMs on it.
    pub vms: usize,
    /// Number of deallocated VMs on it. Operations on the host do not affect them.
    pub deallocated: usize,
    /// Number of scopes with VMs on it.
    pub scopes: usize,
    /// Number of running VMs that polled within the last five minutes.
    pub listening: usize,
    /// Number of running VMs for which this is unknown, because the service has just started.
    pub listening_unknown: usize,
    /// Number of live events that affect its VMs.
    pub events: usize,
    /// The open operations on this host.
    pub operations: Vec<Uuid>,
}

/// The body of `POST /v1/hosts/{host}/maintain`, `degraded` and `failed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostAction {
    /// The kind of maintenance; only for `maintain`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
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
    /// The ids of all VMs that get an event by the plan. If others would, nothing is scheduled (412 `plan_differs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vms: Option<BTreeSet<Uuid>>,
    /// Return the plan and change nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Most hosts in one plan.
pub const PLANNED_HOSTS_MAX: usize = 1_000;

/// The body of `POST /v1/hosts/plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsAction {
    /// The hosts, in the order in which their operations would be requested.
    #[schema(min_items = 1, max_items = 1000)]
    pub hosts: Vec<String>,
    /// The operation on each host.
    pub verb: HostVerb,
    /// Its parameters. `dry_run` has no effect.
    #[serde(default)]
    pub action: HostAction,
}

/// The plan of operations on several hosts. Nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostsPlan {
    /// The plan for each host, in the order of the request.
    pub hosts: Vec<Plan>,
    /// The affected scopes, sorted.
    pub scopes: Vec<ScopeImpact>,
    /// The hosts that have to wait for other hosts of the request.
    pub waits: Vec<HostWait>,
}

/// How operations on several hosts affect one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeImpact {
    /// The scope's path.
    pub scope: String,
    /// Number of its VMs.
    pub vms: usize,
    /// Number of its VMs that are affected.
    pub hit: usize,
    /// Most VMs that may be affected at the same time. Hosts with VMs in the same update domain do not wait for each
    /// other.
    pub at_once: usize,
    /// Number of the hosts that have VMs in it.
    pub hosts: usize,
}

/// A host that waits for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostWait {
    /// The host.
    pub host: String,
    /// The hosts that go first. They have VMs in other update domains of the same scopes.
    pub waits_for: Vec<String>,
    /// The scopes that both have VMs in.
    pub scopes: Vec<String>,
}
