//! What etcd says about itself: members, database size, alarms.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;

use crate::client::Client;
use crate::errors::CallError;
use crate::identity::Freshness;
use crate::proto::{
    AlarmEntry, AlarmRequest, Call, MemberEntry, MemberListRequest, RangeRequest, StatusRequest,
    StatusResponse,
};

/// Deadline of each question to one endpoint.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// [`EtcdConfig::quota_bytes`](crate::EtcdConfig::quota_bytes).
    pub assumed_quota_bytes: Option<u64>,
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
    /// It answers, and tells its status only to etcd's root user; the crate docs list such releases.
    Denied,
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
    /// Of a later release.
    Other,
}

impl EtcdStatus {
    fn answered(&self) -> impl Iterator<Item = &MemberStatus> {
        self.members.iter().filter_map(|member| match &member.state {
            MemberState::Answered(status) => Some(status),
            MemberState::Denied | MemberState::Silent { .. } | MemberState::NotAsked => None,
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

    /// The smallest of the members that answered: as reported, or as assumed.
    pub fn quota_bytes(&self) -> Option<u64> {
        self.answered().filter_map(|status| status.quota_bytes.or(self.assumed_quota_bytes)).min()
    }

    pub fn has_alarm(&self, kind: AlarmKind) -> bool {
        self.alarms.iter().flatten().any(|alarm| alarm.kind == kind)
    }
}

/// What one endpoint answered.
struct EndpointAnswers {
    member_id: u64,
    /// None if only the root user may ask for it.
    status: Option<StatusResponse>,
    members: Option<Vec<MemberEntry>>,
    alarms: Option<Vec<Alarm>>,
}

impl Client {
    /// Asks all endpoints at once, over connections of their own: a status must not depend on those in use.
    pub(crate) async fn status(&self) -> EtcdStatus {
        let answers = join_all((0..self.config.endpoints.len()).map(|endpoint| self.ask(endpoint))).await;
        let endpoints =
            self.config.endpoints.iter().zip(&answers).map(|(endpoint, answers)| EndpointStatus {
                url: endpoint.text.clone(),
                member: match answers {
                    Ok(answers) => Ok(answers.member_id),
                    Err(error) => Err(error.clone()),
                },
            });
        let endpoints: Vec<EndpointStatus> = endpoints.collect();
        let answers: Vec<EndpointAnswers> = answers.into_iter().flatten().collect();
        let alarms = answers.iter().find_map(|answers| answers.alarms.clone());
        let entries = answers.iter().find_map(|answers| answers.members.clone()).unwrap_or_default();
        let members = entries.into_iter().map(|entry| {
            let answer = answers.iter().find(|answers| answers.member_id == entry.id);
            let silent = endpoints.iter().find_map(|endpoint| {
                let error = endpoint.member.as_ref().err()?;
                let url = endpoint.url.trim_end_matches('/');
                entry.client_urls.iter().any(|one| one.trim_end_matches('/') == url).then_some(error)
            });
            let state = match (answer, silent) {
                (Some(EndpointAnswers { status: Some(status), .. }), _) => {
                    MemberState::Answered(member_status(status))
                }
                (Some(_), _) => MemberState::Denied,
                (None, Some(error)) => MemberState::Silent { error: error.clone() },
                (None, None) => MemberState::NotAsked,
            };
            let MemberEntry { id, name, client_urls, is_learner } = entry;
            Member { id, name, client_urls, is_learner, state }
        });
        let (cluster_id, members) = (self.identity.cluster_id(), members.collect());
        let assumed_quota_bytes = self.config.quota_bytes;
        EtcdStatus { cluster_id, members, endpoints, alarms, assumed_quota_bytes }
    }

    async fn ask(&self, endpoint: usize) -> Result<EndpointAnswers, String> {
        let connection = self.open(endpoint).await?;
        let (status, header) = match self.ask_one(&connection, StatusRequest {}).await {
            Ok(status) => (Some(status.clone()), status.header),
            Err(CallError::Denied) => {
                let request = RangeRequest { key: self.key(""), keys_only: true, ..RangeRequest::default() };
                (None, self.ask_one(&connection, request).await.map_err(|error| error.to_string())?.header)
            }
            Err(error) => return Err(error.to_string()),
        };
        let members = self.ask_one(&connection, MemberListRequest {}).await.ok();
        let members = members.map(|response| response.members);
        // Asking for the alarms alone is a write to etcd's log, so it is left to members that hide their status.
        let alarms = match &status {
            Some(status) => Some(status.errors.iter().filter_map(|text| parse_alarm(text)).collect()),
            None => self.ask_one(&connection, AlarmRequest {}).await.ok().map(|response| {
                let alarm = |entry: &AlarmEntry| Alarm {
                    member_id: entry.member_id,
                    kind: match entry.kind {
                        1 => AlarmKind::NoSpace,
                        2 => AlarmKind::Corrupt,
                        _ => AlarmKind::Other,
                    },
                };
                response.alarms.iter().map(alarm).collect()
            }),
        };
        let member_id = header.map_or(0, |header| header.member_id);
        Ok(EndpointAnswers { member_id, status, members, alarms })
    }

    async fn ask_one<C: Call + Clone>(
        &self,
        connection: &crate::connection::Connection,
        question: C,
    ) -> Result<C::Response, CallError> {
        match self.call_on(connection, question.clone(), QUESTION_TIMEOUT, Freshness::Local).await {
            Err(CallError::Token(_)) => {
                self.call_on(connection, question, QUESTION_TIMEOUT, Freshness::Local).await
            }
            result => result,
        }
    }
}

fn member_status(status: &StatusResponse) -> MemberStatus {
    let bytes = |size: i64| u64::try_from(size).unwrap_or(0);
    MemberStatus {
        version: status.version.clone(),
        is_leader: status.leader != 0
            && Some(status.leader) == status.header.as_ref().map(|header| header.member_id),
        has_leader: status.leader != 0,
        database_bytes: bytes(status.db_size),
        database_bytes_in_use: bytes(status.db_size_in_use),
        quota_bytes: Some(bytes(status.db_size_quota)).filter(|quota| *quota > 0),
        raft_term: status.raft_term,
        raft_index: status.raft_index,
        raft_applied_index: status.raft_applied_index,
        errors: status.errors.clone(),
    }
}

/// An alarm as a member's status lists it: `memberID:10501334649042878790 alarm:NOSPACE`. None for other errors.
fn parse_alarm(text: &str) -> Option<Alarm> {
    let field = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name));
    let kind = match field("alarm:")? {
        "NOSPACE" => AlarmKind::NoSpace,
        "CORRUPT" => AlarmKind::Corrupt,
        _ => AlarmKind::Other,
    };
    Some(Alarm { member_id: field("memberID:").and_then(|id| id.parse().ok()).unwrap_or(0), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_that_a_member_does_not_report_is_assumed() {
        let quota = |reported: &[i64], assumed| {
            let member = |quota: &i64| Member {
                id: 1,
                name: String::new(),
                client_urls: Vec::new(),
                is_learner: false,
                state: MemberState::Answered(member_status(&StatusResponse {
                    db_size_quota: *quota,
                    ..StatusResponse::default()
                })),
            };
            let members = reported.iter().map(member).collect();
            let (endpoints, alarms) = (Vec::new(), None);
            EtcdStatus { cluster_id: 1, members, endpoints, alarms, assumed_quota_bytes: assumed }
                .quota_bytes()
        };
        assert_eq!(quota(&[0, 0], Some(100)), Some(100));
        assert_eq!(quota(&[300, 200], Some(100)), Some(200), "a reported one is the true one");
        assert_eq!(quota(&[300, 0], Some(100)), Some(100));
        assert_eq!(quota(&[0], None), None);
        assert_eq!(quota(&[], Some(100)), None, "no member has answered");
    }

    #[test]
    fn alarms_are_parsed() {
        let alarm = |member_id, kind| Some(Alarm { member_id, kind });
        for (text, expected) in [
            (
                "memberID:10501334649042878790 alarm:NOSPACE ",
                alarm(10_501_334_649_042_878_790, AlarmKind::NoSpace),
            ),
            ("memberID:1  alarm:CORRUPT", alarm(1, AlarmKind::Corrupt)),
            ("alarm:NEW", alarm(0, AlarmKind::Other)),
            ("etcdserver: no leader", None),
            ("", None),
        ] {
            assert_eq!(parse_alarm(text), expected, "{text}");
        }
    }
}
