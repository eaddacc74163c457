//! `/v1/cluster`: the nodes that serve one fleet, their leader, and etcd.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{ClusterMode, EtcdMemberState, NodeState};

/// What the answering node knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// Whether the service is one of several nodes.
    pub mode: ClusterMode,
    /// The time of the answering node's clock.
    pub now: Timestamp,
    /// The answering node. Absent with one node, as all of the following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The node that leads; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The format level at which the nodes write; absent until the first node has led.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format_level: Option<u32>,
    /// The newest commit that the answering node has shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// All nodes that have ever joined, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ClusterNode>,
    /// The shared store; absent if it is not etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<Etcd>,
    /// What is wrong. Empty if the cluster is healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ClusterProblem>,
}

/// A node, as the answering node knows it by its heartbeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterNode {
    /// The node's name in its configuration.
    pub name: String,
    /// The process; another one after each start.
    pub epoch: String,
    /// The node listener, where other nodes reach it.
    pub url: String,
    /// Whether the node runs.
    pub state: NodeState,
    /// When the node sent its last heartbeat, by its own clock.
    pub last_heartbeat_at: Timestamp,
    /// How long ago that heartbeat arrived, in milliseconds. A running node sends one a second.
    pub heartbeat_age_ms: u64,
    /// Whether the node leads.
    pub leads: bool,
    /// Whether the node could take the lead now.
    pub can_lead: bool,
    /// The newest format level that the node writes.
    pub format_level: u32,
    /// The node's clock minus the median of all running nodes, in milliseconds. Absent if the node does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
    /// The newest commit that the node had shown at its last heartbeat.
    pub watched_revision: u64,
    /// Commits between that one and the heartbeat itself.
    pub lag_revisions: u64,
}

/// The etcd cluster that holds the fleet. Asked at most once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Etcd {
    /// When etcd was asked, by the answering node's clock.
    pub asked_at: Timestamp,
    /// Why there is no answer; then the rest is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the etcd cluster, in hexadecimal as etcdctl prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The members, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<EtcdMember>,
    /// Size of the largest database file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// The same without free pages; defragmentation returns the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes_in_use: Option<u64>,
    /// The size above which etcd refuses writes: as its members report it since 3.6, or the setting `etcd.quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Alarms: `nospace`, `corrupt`, or a number that this release does not know. Absent if no member lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarms: Option<Vec<EtcdAlarm>>,
    /// Known faults of the members' releases, and what was found at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A member of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EtcdMember {
    /// The id, in hexadecimal as etcdctl prints it.
    pub id: String,
    /// Empty until the member has started once.
    pub name: String,
    /// Its client URLs.
    pub urls: Vec<String>,
    /// Whether it answers.
    pub state: EtcdMemberState,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it leads etcd.
    pub leads: bool,
    /// Whether it has no vote yet.
    pub is_learner: bool,
    /// Its release. Absent if it did not answer, as the following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Size of its database file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// The same without free pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes_in_use: Option<u64>,
}

/// An alarm of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EtcdAlarm {
    /// The member: its name, or its id.
    pub member: String,
    /// `nospace`, `corrupt`, or a number that this release does not know.
    pub kind: String,
}

/// Something that is wrong with the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterProblem {
    /// The code for programs. Its meaning never changes.
    pub code: String,
    /// What is wrong, and what to do.
    pub detail: String,
}

/// A request to finish an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishUpgrade {
    /// Answer with the plan and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// A request to forget a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetNode {
    /// The node's name.
    pub node: String,
    /// Answer with the plan and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// A node that was forgotten, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForgottenNode {
    /// The node's name.
    pub node: String,
    /// `stopped` or `silent`.
    pub state: NodeState,
    /// Its last heartbeat, by its own clock.
    pub last_heartbeat_at: Timestamp,
}

/// The format levels before and after an upgrade is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Upgrade {
    /// The format level at which the nodes wrote.
    pub from: u32,
    /// The format level at which they write from now on, the lowest of all running nodes. The same if there was nothing to
    /// do.
    pub to: u32,
    /// Number of running nodes.
    pub nodes: usize,
}

/// The result of a hand-over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HandOver {
    /// The node that gave up the lead.
    pub from: String,
    /// The node that leads now; absent if none has taken the lead within three seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}
