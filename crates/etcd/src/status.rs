//! What etcd says about itself: members, database size, alarms.

use std::collections::BTreeSet;

/// The state of the etcd cluster, for metrics and health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdStatus {
    /// The cluster that the node joined.
    pub cluster_id: u64,
    /// Empty if no endpoint lists the members.
    pub members: Vec<Member>,
    /// In the order of the settings.
    pub endpoints: Vec<EndpointStatus>,
    /// None if no endpoint lists them.
    pub alarms: Option<Vec<Alarm>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStatus {
    pub url: String,
    /// The member that answers there, or why none does.
    pub member: Result<u64, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    /// Empty until the member has started once.
    pub name: String,
    pub client_urls: Vec<String>,
    pub is_learner: bool,
    pub state: MemberState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberState {
    Answered(MemberStatus),
    /// One of its client URLs is an endpoint, and does not answer.
    Silent {
        error: String,
    },
    /// No endpoint leads to it.
    NotAsked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub version: String,
    pub is_leader: bool,
    /// Whether the member knows a leader.
    pub has_leader: bool,
    /// The file's size, which etcd compares with the quota.
    pub database_bytes: u64,
    /// Without free pages. Defragmentation returns the difference.
    pub database_bytes_in_use: u64,
    /// Since 3.6; older members do not say it.
    pub quota_bytes: Option<u64>,
    pub raft_term: u64,
    pub raft_index: u64,
    pub raft_applied_index: u64,
    /// In etcd's words.
    pub errors: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub member_id: u64,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The quota is reached: etcd refuses writes until space is free and the alarm is cleared.
    NoSpace,
    /// The members' data differs: etcd refuses everything.
    Corrupt,
    Other(i32),
}

impl EtcdStatus {
    fn answered(&self) -> impl Iterator<Item = &MemberStatus> {
        self.members.iter().filter_map(|member| match &member.state {
            MemberState::Answered(status) => Some(status),
            MemberState::Silent { .. } | MemberState::NotAsked => None,
        })
    }

    /// The leader, if it answers.
    pub fn leader(&self) -> Option<&Member> {
        self.members
            .iter()
            .find(|member| matches!(&member.state, MemberState::Answered(status) if status.is_leader))
    }

    pub fn versions(&self) -> BTreeSet<&str> {
        self.answered().map(|status| &*status.version).collect()
    }

    /// Of the largest database. Members compact alike and are defragmented one by one.
    pub fn database_bytes(&self) -> Option<u64> {
        self.answered().map(|status| status.database_bytes).max()
    }

    pub fn database_bytes_in_use(&self) -> Option<u64> {
        self.answered().map(|status| status.database_bytes_in_use).max()
    }

    /// The smallest, if all members that answered know it.
    pub fn quota_bytes(&self) -> Option<u64> {
        let quotas: Option<Vec<u64>> = self.answered().map(|status| status.quota_bytes).collect();
        quotas?.into_iter().min()
    }

    pub fn has_alarm(&self, kind: AlarmKind) -> bool {
        self.alarms.iter().flatten().any(|alarm| alarm.kind == kind)
    }
}
