//! The state of a cluster in the words of the API, and what is wrong with it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_engine::cluster::leadership::{CLOCK_TAKE_MAX, STEP_DOWN_AFTER};
use notbefore_engine::cluster::{ClockOffset, ClusterReport, NodeReport, NodeState};
use notbefore_etcd::{Alarm, AlarmKind, EtcdStatus, Member, MemberState, version_warning};
use notbefore_store::Key;
use notbefore_wire::operator::cluster as api;
use notbefore_wire::operator::{ClusterMode, EtcdMemberState, NodeState as StateWord};
use notbefore_wire::text::size;

use super::etcd_status::EtcdAnswer;
use super::ntp;
use super::readiness::guests_text;

/// A node that was silent for longer counts as removed, not as a problem: its record stays in the store.
const SILENT_MATTERS_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Part of etcd's quota, in percent, above which the database is a problem. Compaction and defragmentation take a while.
const QUOTA_PERCENT_MAX: u64 = 80;

/// A heartbeat that takes longer is a problem. etcd stores one within milliseconds; half a second leaves time before
/// leaders give up the lead.
const BEAT_MAX: Duration = Duration::from_millis(500);

/// A service with one node.
pub fn single(now: Timestamp) -> api::Cluster {
    api::Cluster {
        mode: ClusterMode::Single,
        now,
        node: None,
        leader: None,
        format_level: None,
        revision: None,
        nodes: Vec::new(),
        etcd: None,
        problems: Vec::new(),
    }
}

/// `answers_guests` says whether the node that is asked does.
pub fn cluster(
    report: &ClusterReport,
    etcd: Option<&EtcdAnswer>,
    answers_guests: bool,
    now: Timestamp,
) -> api::Cluster {
    let mut problems = problems_of_nodes(report, answers_guests, now);
    let etcd = etcd.map(|answer| etcd_of(answer, &mut problems));
    api::Cluster {
        mode: ClusterMode::Cluster,
        now,
        node: Some(report.me.name.clone()),
        leader: leading(report).map(|node| node.name.clone()),
        format_level: report.level,
        revision: Some(report.watched.0),
        nodes: report.nodes.iter().map(node).collect(),
        etcd,
        problems,
    }
}

/// Nodes that keep the cluster at its format level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesTooOld {
    pub level: u32,
    /// With the newest level that each of them writes.
    pub nodes: Vec<(String, u32)>,
}

/// What finishing the upgrade does: the cluster's level becomes the lowest of all running nodes. None if the cluster has
/// no level yet.
pub fn upgrade(report: &ClusterReport) -> Option<Result<api::Upgrade, NodesTooOld>> {
    let from = report.level?;
    let running: Vec<&NodeReport> =
        report.nodes.iter().filter(|node| node.state == NodeState::Running).collect();
    let levels = || running.iter().map(|node| node.record.level);
    let to = levels().min().unwrap_or(from).max(from);
    if to == from && levels().any(|level| level > from) {
        let is_old = |node: &&&NodeReport| node.record.level <= from;
        let nodes = running.iter().filter(is_old).map(|node| (node.name.clone(), node.record.level));
        return Some(Err(NodesTooOld { level: from, nodes: nodes.collect() }));
    }
    Some(Ok(api::Upgrade { from, to, nodes: running.len() }))
}

/// The leader, if it runs.
fn leading(report: &ClusterReport) -> Option<&NodeReport> {
    report.nodes.iter().find(|node| node.leads && node.state == NodeState::Running)
}

pub fn state_word(state: NodeState) -> StateWord {
    match state {
        NodeState::Running => StateWord::Running,
        NodeState::Silent => StateWord::Silent,
        NodeState::Stopped => StateWord::Stopped,
    }
}

fn node(node: &NodeReport) -> api::ClusterNode {
    let NodeReport { name, state, leads, is_able, record, heard_ago, clock_offset, lag_revisions } = node;
    let milliseconds = |offset: SignedDuration| i64::try_from(offset.as_millis()).unwrap_or(i64::MAX);
    api::ClusterNode {
        name: name.clone(),
        epoch: record.epoch.clone(),
        url: record.url.clone(),
        state: state_word(*state),
        last_heartbeat_at: record.clock,
        heartbeat_age_ms: u64::try_from(heard_ago.as_millis()).unwrap_or(u64::MAX),
        leads: *leads,
        can_lead: *is_able,
        format_level: record.level,
        clock_offset_ms: clock_offset.map(milliseconds),
        watched_revision: record.watched_revision.0,
        lag_revisions: *lag_revisions,
    }
}

fn problem(code: &str, detail: String) -> api::ClusterProblem {
    api::ClusterProblem { code: code.to_owned(), detail }
}

/// Records of the store that cannot be read.
pub fn unreadable(found: &BTreeMap<Key, String>) -> impl Iterator<Item = api::ClusterProblem> {
    found.values().map(|why| {
        let detail = format!(
            "{why}; nodes go on with what they knew before, and no node can start: restore the record from a backup, or remove it with 'etcdctl del'"
        );
        problem("record_unreadable", detail)
    })
}

/// Heartbeats of this node are slow: etcd is, whose other calls take as long.
pub fn slow_etcd(median: Duration) -> Option<api::ClusterProblem> {
    (median > BEAT_MAX).then(|| {
        let (seconds, limit) = (median.as_secs_f64(), STEP_DOWN_AFTER.as_secs_f64());
        let detail = format!(
            "etcd is slow: it took {seconds:.1} s to store a heartbeat of this node (median of half a minute), and after {limit} s a leader gives up the lead: check the disks and the load of its members, which want 99 % of their syncs within 10 ms"
        );
        problem("etcd_slow", detail)
    })
}

fn problems_of_nodes(
    report: &ClusterReport,
    answers_guests: bool,
    now: Timestamp,
) -> Vec<api::ClusterProblem> {
    let mut problems = Vec::new();
    if leading(report).is_none() {
        let guests = guests_text(answers_guests);
        let detail = format!(
            "no node leads the cluster: changes are refused, {guests}; another node takes the lead within seconds if it can"
        );
        problems.push(problem("no_leader", detail));
    }
    let has_tls = |node: &NodeReport| node.record.url.starts_with("https:");
    let leader_has_tls = leading(report).map(has_tls);
    let mut expected = report.nodes.iter().filter(|node| node.state != NodeState::Stopped).peekable();
    let hears_no_node = expected.peek().is_some() && expected.all(|node| node.state == NodeState::Silent);
    if hears_no_node {
        let detail = "this node gets no heartbeats, not even its own, so it does not know which nodes run: check its connection to etcd, and etcd itself";
        problems.push(problem("no_heartbeats", detail.to_owned()));
    }
    for node @ NodeReport { name, state, record, clock_offset, .. } in &report.nodes {
        match state {
            NodeState::Running => {}
            NodeState::Stopped => continue,
            NodeState::Silent => {
                let since = record.clock;
                if !hears_no_node && now.duration_since(since) < SILENT_MATTERS_FOR {
                    let detail = format!(
                        "node {name} is silent since {since:.0}: start it again, or check its connection to etcd; if it is gone for good, 'notbefore cluster forget {name}'"
                    );
                    problems.push(problem("node_silent", detail));
                }
                continue;
            }
        }
        // The first heartbeat of a process comes before its watch has shown one.
        if !record.is_watching && record.beat > 1 {
            let detail = format!(
                "node {name} does not see changes of the store, so it cannot lead and its guests may read old documents: check its connection to etcd"
            );
            problems.push(problem("node_behind", detail));
        }
        if let Some(offset) = clock_offset.filter(|offset| offset.abs() > CLOCK_TAKE_MAX) {
            let offset = ClockOffset { from_median: offset, clocks: report.clocks };
            let detail = format!(
                "the clock of node {name} is {offset}, so it cannot take the lead: check {}",
                ntp(offset)
            );
            problems.push(problem("node_clock", detail));
        }
        if let Some(level) = report.level.filter(|level| record.level < *level) {
            let own = record.level;
            let detail = format!(
                "node {name} writes format level {own} at most and the cluster writes {level}, so it cannot lead: upgrade it, or raise node.format_level"
            );
            problems.push(problem("node_too_old", detail));
        }
        if let Some(leader_has_tls) = leader_has_tls.filter(|has| *has != has_tls(node)) {
            let (one, other) =
                if leader_has_tls { ("the leader", name.as_str()) } else { (name.as_str(), "the leader") };
            let detail = format!(
                "{one} uses mutual TLS between nodes and {other} does not, so changes at node {name} are refused: set --node-cert, --node-key and --node-ca on all nodes, or on none"
            );
            problems.push(problem("node_tls", detail));
        }
    }
    problems
}

fn etcd_of(answer: &EtcdAnswer, problems: &mut Vec<api::ClusterProblem>) -> api::Etcd {
    let mut etcd = api::Etcd {
        asked_at: answer.asked_at,
        error: None,
        cluster_id: None,
        members: Vec::new(),
        database_bytes: None,
        database_bytes_in_use: None,
        quota_bytes: None,
        alarms: None,
        warnings: answer.warnings.clone(),
    };
    let status = match &answer.status {
        Ok(status) => status,
        Err(error) => {
            let detail = format!("{error}: check etcd and the network between");
            problems.push(problem("etcd_silent", detail));
            etcd.error = Some(error.clone());
            return etcd;
        }
    };
    etcd.cluster_id = Some(format!("{:x}", status.cluster_id));
    etcd.members = status.members.iter().map(member).collect();
    etcd.members.sort_by(|one, two| (&one.name, &one.id).cmp(&(&two.name, &two.id)));
    etcd.database_bytes = status.database_bytes();
    etcd.database_bytes_in_use = status.database_bytes_in_use();
    etcd.quota_bytes = status.quota_bytes();
    let alarm =
        |alarm: &Alarm| api::EtcdAlarm { member: name_of(status, alarm.member_id), kind: kind(alarm.kind) };
    etcd.alarms = status.alarms.as_ref().map(|alarms| alarms.iter().map(alarm).collect());
    for version in status.versions() {
        let warning = version_warning(version).filter(|warning| !etcd.warnings.contains(warning));
        etcd.warnings.extend(warning);
    }
    problems.extend(problems_of_etcd(status, &etcd));
    etcd
}

fn member(member: &Member) -> api::EtcdMember {
    let Member { id, name, client_urls, is_learner, state } = member;
    let (word, error, status) = match state {
        MemberState::Answered(status) => (EtcdMemberState::Answered, None, Some(status)),
        MemberState::Denied => {
            let error = "it tells its status only to etcd's root user".to_owned();
            (EtcdMemberState::Answered, Some(error), None)
        }
        MemberState::Silent { error } => (EtcdMemberState::Silent, Some(error.clone()), None),
        MemberState::NotAsked => (EtcdMemberState::NotAsked, None, None),
    };
    api::EtcdMember {
        id: format!("{id:x}"),
        name: name.clone(),
        urls: client_urls.clone(),
        state: word,
        error,
        leads: status.is_some_and(|status| status.is_leader),
        is_learner: *is_learner,
        version: status.map(|status| status.version.clone()),
        database_bytes: status.map(|status| status.database_bytes),
        database_bytes_in_use: status.map(|status| status.database_bytes_in_use),
    }
}

/// A member's name; its id if it has none or is unknown.
fn name_of(status: &EtcdStatus, id: u64) -> String {
    let name = status.members.iter().find(|member| member.id == id).map(|member| member.name.clone());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{id:x}"))
}

fn kind(kind: AlarmKind) -> String {
    match kind {
        AlarmKind::NoSpace => "nospace".to_owned(),
        AlarmKind::Corrupt => "corrupt".to_owned(),
        AlarmKind::Other => "other".to_owned(),
    }
}

fn is_nearly_full(bytes: u64, quota: u64) -> bool {
    quota > 0 && bytes / QUOTA_PERCENT_MAX >= quota / 100
}

fn nearly_full(bytes: u64, quota: u64) -> String {
    let (bytes, quota) = (size(bytes), size(quota));
    format!(
        "the database of etcd is nearly full, {bytes} of {quota}: defragment its members, lower events.keep_history_bytes, or raise --quota-backend-bytes of the members and etcd.quota"
    )
}

/// The size of etcd's database, for health checks. None if no member answers.
pub fn database_text(status: &EtcdStatus) -> Option<String> {
    match (status.database_bytes(), status.quota_bytes()) {
        (Some(bytes), Some(quota)) if is_nearly_full(bytes, quota) => Some(nearly_full(bytes, quota)),
        (Some(bytes), Some(quota)) => {
            Some(format!("the database of etcd has {} of {}", size(bytes), size(quota)))
        }
        (Some(bytes), None) => Some(format!("the database of etcd has {}", size(bytes))),
        (None, _) => {
            let hides = status.members.iter().any(|member| member.state == MemberState::Denied);
            hides.then(|| {
                "the size of etcd's database is unknown: etcd tells it only to its root user".to_owned()
            })
        }
    }
}

fn problems_of_etcd(status: &EtcdStatus, etcd: &api::Etcd) -> Vec<api::ClusterProblem> {
    let mut problems = Vec::new();
    for endpoint in &status.endpoints {
        if let Err(error) = &endpoint.member {
            let url = &endpoint.url;
            let detail = format!(
                "etcd does not answer at {url}: {error}; check that member, or change etcd.endpoints"
            );
            problems.push(problem("etcd_endpoint_silent", detail));
        }
    }
    let mut answered = status.members.iter().filter_map(|member| match &member.state {
        MemberState::Answered(status) => Some(status),
        MemberState::Denied | MemberState::Silent { .. } | MemberState::NotAsked => None,
    });
    if answered.clone().count() > 0 && !answered.any(|status| status.has_leader) {
        let detail = "etcd has no leader: a majority of its members must run and reach each other";
        problems.push(problem("etcd_no_leader", detail.to_owned()));
    }
    for alarm in status.alarms.iter().flatten() {
        let member = name_of(status, alarm.member_id);
        let (code, detail) = match alarm.kind {
            AlarmKind::NoSpace => (
                "etcd_no_space",
                format!(
                    "etcd member {member} has reached its quota and refuses writes: compact, defragment, then 'etcdctl alarm disarm'"
                ),
            ),
            AlarmKind::Corrupt => (
                "etcd_corrupt",
                format!(
                    "etcd member {member} has other data than the others and refuses everything: replace it, or restore etcd from a backup"
                ),
            ),
            AlarmKind::Other => {
                ("etcd_alarm", format!("etcd member {member} has raised an alarm: see 'etcdctl alarm list'"))
            }
        };
        problems.push(problem(code, detail));
    }
    if let (Some(bytes), Some(quota)) = (etcd.database_bytes, etcd.quota_bytes)
        && is_nearly_full(bytes, quota)
    {
        problems.push(problem("etcd_nearly_full", nearly_full(bytes, quota)));
    }
    problems.extend(etcd.warnings.iter().map(|warning| problem("etcd_warning", warning.clone())));
    problems
}

#[cfg(test)]
mod tests {
    use notbefore_engine::cluster::{Leader, NodeIdentity, NodeRecord, Role};
    use notbefore_etcd::{EndpointStatus, MemberStatus};
    use notbefore_store::Revision;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-17T12:00:00Z".parse().unwrap()
    }

    fn running(name: &str) -> NodeReport {
        NodeReport {
            name: name.to_owned(),
            state: NodeState::Running,
            leads: name == "a",
            is_able: true,
            record: NodeRecord {
                epoch: format!("{name}-1"),
                beat: 7,
                clock: now(),
                url: format!("https://{name}:7400"),
                level: 2,
                is_watching: true,
                has_stopped: false,
                watched_revision: Revision(90),
                claimed_at: None,
            },
            heard_ago: Duration::from_millis(400),
            clock_offset: Some(SignedDuration::from_millis(-12)),
            lag_revisions: 3,
        }
    }

    fn healthy() -> ClusterReport {
        let me = NodeIdentity { name: "b".into(), epoch: "b-1".into(), url: String::new(), level: 2 };
        let leader = Leader { node: "a".into(), epoch: "a-1".into(), url: String::new() };
        ClusterReport {
            me,
            role: Role::Follow,
            leader: Some(leader),
            level: Some(2),
            watched: Revision(93),
            returned_ago: Some(Duration::from_millis(300)),
            clocks: 3,
            nodes: ["a", "b", "c"].map(running).into(),
        }
    }

    fn codes(found: &api::Cluster) -> Vec<&str> {
        found.problems.iter().map(|one| one.code.as_str()).collect()
    }

    #[test]
    fn healthy_cluster_has_no_problem() {
        let found = cluster(&healthy(), None, true, now());
        assert_eq!(codes(&found), [""; 0]);
        assert_eq!((found.node.as_deref(), found.leader.as_deref()), (Some("b"), Some("a")));
        assert_eq!((found.format_level, found.revision, found.nodes.len()), (Some(2), Some(93), 3));
        let one = &found.nodes[0];
        assert_eq!((one.heartbeat_age_ms, one.clock_offset_ms, one.lag_revisions), (400, Some(-12), 3));
    }

    #[test]
    fn each_fault_of_a_node_is_a_problem() {
        type Break = fn(&mut NodeReport);
        let silent: Break = |node| node.state = NodeState::Silent;
        let gone: Break = |node| {
            node.state = NodeState::Silent;
            node.record.clock = now() - SILENT_MATTERS_FOR;
        };
        let stopped: Break = |node| node.state = NodeState::Stopped;
        let stalled: Break = |node| node.record.is_watching = false;
        let just_started: Break = |node| (node.record.is_watching, node.record.beat) = (false, 1);
        let late: Break = |node| node.clock_offset = Some(SignedDuration::from_millis(-1_001));
        let old: Break = |node| node.record.level = 1;
        let without_tls: Break = |node| node.record.url = "http://127.0.0.1:7400".to_owned();
        for (index, fault, expected) in [
            (0, silent, &["no_leader", "node_silent"][..]),
            (2, silent, &["node_silent"]),
            (2, gone, &[]),
            (2, stopped, &[]),
            (2, stalled, &["node_behind"]),
            (2, just_started, &[]),
            (2, late, &["node_clock"]),
            (2, old, &["node_too_old"]),
            (2, without_tls, &["node_tls"]),
            (0, without_tls, &["node_tls", "node_tls"]),
        ] {
            let mut report = healthy();
            fault(&mut report.nodes[index]);
            assert_eq!(codes(&cluster(&report, None, true, now())), expected);
        }
        let mut cut_off = healthy();
        cut_off.nodes.iter_mut().for_each(silent);
        // Nodes that may well run are not to be forgotten.
        assert_eq!(codes(&cluster(&cut_off, None, true, now())), ["no_leader", "no_heartbeats"]);
        let mut vacant = healthy();
        vacant.nodes[0].leads = false;
        let found = cluster(&vacant, None, true, now());
        assert_eq!((codes(&found), found.leader.as_deref()), (vec!["no_leader"], None));
    }

    #[test]
    fn guests_are_said_to_be_answered_only_if_they_are() {
        let mut vacant = healthy();
        vacant.nodes[0].leads = false;
        for (answers_guests, expected) in
            [(true, "guests are still answered"), (false, "this node answers guests with 503")]
        {
            let found = cluster(&vacant, None, answers_guests, now());
            let detail = &found.problems[0].detail;
            assert!(detail.contains(expected), "{detail}");
            assert_eq!(detail.contains("still answered"), answers_guests, "{detail}");
        }
    }

    #[test]
    fn clocks_of_two_nodes_are_compared_with_each_other() {
        let mut report = ClusterReport { clocks: 2, ..healthy() };
        report.nodes.pop();
        let offsets = [-1_500, 1_500].map(|ms| Some(SignedDuration::from_millis(ms)));
        for (node, offset) in report.nodes.iter_mut().zip(offsets) {
            node.clock_offset = offset;
        }
        let found = cluster(&report, None, true, now());
        let details: Vec<_> = found.problems.iter().map(|one| one.detail.as_str()).collect();
        for (detail, name, offset) in [(details[0], "a", "-3.0 s"), (details[1], "b", "+3.0 s")] {
            let expected = format!("the clock of node {name} is {offset} from that of the only other node");
            assert!(detail.starts_with(&expected) && detail.ends_with("check NTP on both"), "{detail}");
        }
        assert_eq!(details.len(), 2);
    }

    #[test]
    fn slow_heartbeats_are_a_problem() {
        assert_eq!(slow_etcd(Duration::from_millis(500)), None);
        let problem = slow_etcd(Duration::from_millis(730)).unwrap();
        assert_eq!(problem.code, "etcd_slow");
        assert!(
            problem.detail.contains("it took 0.7 s") && problem.detail.contains("after 2.5 s"),
            "{problem:?}"
        );
    }

    #[test]
    fn upgrade_goes_to_the_lowest_level_of_all_running_nodes() {
        let plan = |cluster: u32, levels: [u32; 3], silent: Option<usize>| {
            let mut report = ClusterReport { level: Some(cluster), ..healthy() };
            for (node, level) in report.nodes.iter_mut().zip(levels) {
                node.record.level = level;
            }
            if let Some(index) = silent {
                report.nodes[index].state = NodeState::Silent;
            }
            upgrade(&report).unwrap().map(|done| (done.from, done.to, done.nodes)).map_err(|old| old.nodes)
        };
        assert_eq!(plan(1, [2, 2, 2], None), Ok((1, 2, 3)));
        assert_eq!(plan(1, [3, 2, 3], None), Ok((1, 2, 3)));
        assert_eq!(plan(2, [2, 2, 2], None), Ok((2, 2, 3)), "nothing to do");
        assert_eq!(plan(1, [2, 1, 2], None), Err(vec![("b".to_owned(), 1)]));
        assert_eq!(plan(2, [3, 2, 1], None), Err(vec![("b".to_owned(), 2), ("c".to_owned(), 1)]));
        assert_eq!(plan(1, [2, 1, 2], Some(1)), Ok((1, 2, 2)), "a node that does not run does not count");
        assert_eq!(plan(2, [1, 1, 1], None), Ok((2, 2, 3)), "it never goes back");
        assert_eq!(upgrade(&ClusterReport { level: None, ..healthy() }), None);
    }

    fn status(change: impl FnOnce(&mut EtcdStatus)) -> EtcdStatus {
        let answered = |id: u64| Member {
            id,
            name: format!("e{id}"),
            client_urls: vec![format!("http://e{id}:2379")],
            is_learner: false,
            state: MemberState::Answered(MemberStatus {
                version: "3.5.21".into(),
                is_leader: id == 1,
                has_leader: true,
                database_bytes: 700,
                database_bytes_in_use: 600,
                quota_bytes: Some(1_000),
                raft_term: 1,
                raft_index: 1,
                raft_applied_index: 1,
                errors: Vec::new(),
            }),
        };
        let endpoint = |id: u64| EndpointStatus { url: format!("http://e{id}:2379"), member: Ok(id) };
        let mut status = EtcdStatus {
            cluster_id: 0xab,
            members: vec![answered(2), answered(1)],
            endpoints: vec![endpoint(1), endpoint(2)],
            alarms: Some(Vec::new()),
            assumed_quota_bytes: None,
        };
        change(&mut status);
        status
    }

    fn of_etcd(change: impl FnOnce(&mut EtcdStatus)) -> api::Cluster {
        let answer = EtcdAnswer { asked_at: now(), status: Ok(status(change)), warnings: Vec::new() };
        cluster(&healthy(), Some(&answer), true, now())
    }

    fn answered(status: &mut EtcdStatus, index: usize) -> &mut MemberStatus {
        match &mut status.members[index].state {
            MemberState::Answered(status) => status,
            MemberState::Denied | MemberState::Silent { .. } | MemberState::NotAsked => {
                panic!("it does not answer")
            }
        }
    }

    #[test]
    fn etcd_is_shown_with_its_members() {
        let found = of_etcd(|_| ());
        assert_eq!(codes(&found), [""; 0]);
        let etcd = found.etcd.unwrap();
        assert_eq!((etcd.cluster_id.as_deref(), etcd.quota_bytes), (Some("ab"), Some(1_000)));
        let members: Vec<_> = etcd.members.iter().map(|one| (one.name.as_str(), one.leads)).collect();
        assert_eq!(members, [("e1", true), ("e2", false)], "by name");
    }

    #[test]
    fn health_checks_see_the_size_of_etcd() {
        let text = |database: u64, quota| {
            database_text(&status(|status| {
                for index in [0, 1] {
                    let member = answered(status, index);
                    (member.database_bytes, member.quota_bytes) = (database << 20, quota);
                }
            }))
        };
        let has = |text: &str| Some(format!("the database of etcd has {text}"));
        assert_eq!(text(700, Some(1_000 << 20)), has("700.0 MiB of 1000.0 MiB"));
        assert_eq!(text(700, None), has("700.0 MiB"));
        let full = text(800, Some(1_000 << 20)).unwrap();
        assert!(full.starts_with("the database of etcd is nearly full, 800.0 MiB of 1000.0 MiB: "), "{full}");
        let hidden = status(|status| {
            status.members.iter_mut().for_each(|member| member.state = MemberState::Denied);
        });
        assert!(database_text(&hidden).unwrap().contains("only to its root user"));
        assert_eq!(database_text(&status(|status| status.members.clear())), None);
    }

    #[test]
    fn each_fault_of_etcd_is_a_problem() {
        let silent = of_etcd(|status| {
            status.endpoints[1].member = Err("timeout".into());
            status.members[0].state = MemberState::Silent { error: "timeout".into() };
        });
        assert_eq!(codes(&silent), ["etcd_endpoint_silent"]);
        assert_eq!(silent.etcd.unwrap().members[1].error.as_deref(), Some("timeout"));
        let leaderless = of_etcd(|status| {
            (answered(status, 0).has_leader, answered(status, 1).has_leader) = (false, false);
        });
        assert_eq!(codes(&leaderless), ["etcd_no_leader"]);
        for (kind, code) in [
            (AlarmKind::NoSpace, "etcd_no_space"),
            (AlarmKind::Corrupt, "etcd_corrupt"),
            (AlarmKind::Other, "etcd_alarm"),
        ] {
            let alarmed = of_etcd(|status| status.alarms = Some(vec![Alarm { member_id: 2, kind }]));
            assert_eq!(codes(&alarmed), [code]);
            assert_eq!(alarmed.etcd.unwrap().alarms.unwrap()[0].member, "e2");
        }
        assert_eq!(codes(&of_etcd(|status| answered(status, 0).database_bytes = 799)), [""; 0]);
        assert_eq!(codes(&of_etcd(|status| answered(status, 0).database_bytes = 800)), ["etcd_nearly_full"]);
        assert_eq!(codes(&of_etcd(|status| answered(status, 0).version = "3.5.1".into())), ["etcd_warning"]);
        let error = Err("etcd did not answer within 5 s".to_owned());
        let answer = EtcdAnswer { asked_at: now(), status: error, warnings: Vec::new() };
        let found = cluster(&healthy(), Some(&answer), true, now());
        assert_eq!(codes(&found), ["etcd_silent"]);
        assert!(found.etcd.unwrap().error.is_some());
    }
}
