//! `notbefore cluster …`: the nodes that serve one fleet, and etcd.

use anyhow::{Result, bail};
use notbefore_wire::operator::cluster::{
    Cluster, ClusterNode, Etcd, EtcdMember, FinishUpgrade, ForgetNode, ForgottenNode, HandOver, Upgrade,
};
use notbefore_wire::operator::{ClusterMode, EtcdMemberState, NodeState};
use notbefore_wire::text::{counted, size};

use crate::args::{self, Output};
use crate::client::Client;
use crate::confirm::{self, Decision, Question};
use crate::table::Column;
use crate::{output, time};

/// Width of the names in the first column.
const NAME: usize = 10;

const SINGLE: &str = "this service is a single node, not a cluster; to run several nodes, start each with 'notbefore serve --etcd URL'";

pub fn run(client: &Client, verb: args::Cluster, output: Output) -> Result<()> {
    match verb {
        args::Cluster::Status => {
            let cluster: Cluster = client.get("/v1/cluster")?;
            output::text(&output.text(&cluster, |cluster| lines(cluster, output))?)?;
            match cluster.problems.len() {
                0 => Ok(()),
                some => bail!("the cluster has {}", counted(some, "problem")),
            }
        }
        args::Cluster::HandOver { confirmation } => {
            let question = Question::optional("Hand the lead over?", "nothing was changed");
            let plan = || in_cluster(client);
            if let Decision::DryRun =
                confirm::show_and_ask(&confirmation, output, question, plan, hand_over_plan)?
            {
                return Ok(());
            }
            let done: HandOver = client.post("/v1/cluster/hand-over", &())?;
            output.answer_change(&done, |done| output::line(&handed_over(done)))
        }
        args::Cluster::Upgrade(args::Upgrade::Finish { confirmation }) => {
            let question = Question::needed("Finish the upgrade?", "nothing was changed");
            let finish = |dry_run| client.post("/v1/cluster/upgrade/finish", &FinishUpgrade { dry_run });
            let plan = || finish(true);
            if let Decision::DryRun =
                confirm::show_and_ask(&confirmation, output, question, plan, upgrade_plan)?
            {
                return Ok(());
            }
            output.answer_change(&finish(false)?, |done| output::line(&upgraded(done)))
        }
        args::Cluster::Forget { node, confirmation } => {
            let question = Question::needed("Forget it?", "nothing was changed");
            let forget = |dry_run| {
                let request = ForgetNode { node: node.clone(), dry_run };
                client.post::<ForgottenNode>("/v1/cluster/forget", &request)
            };
            let plan = || forget(true);
            if let Decision::DryRun =
                confirm::show_and_ask(&confirmation, output, question, plan, forget_plan)?
            {
                return Ok(());
            }
            output.answer_change(&forget(false)?, |done| {
                output::line(&format!("node {} is forgotten", done.node))
            })
        }
    }
}

/// The cluster; an error on a single node.
fn in_cluster(client: &Client) -> Result<Cluster> {
    let cluster: Cluster = client.get("/v1/cluster")?;
    match cluster.mode {
        ClusterMode::Single => bail!("{SINGLE}"),
        ClusterMode::Cluster | ClusterMode::Unknown(_) => Ok(cluster),
    }
}

fn hand_over_plan(cluster: &Cluster) -> Vec<String> {
    let Some(leader) = &cluster.leader else {
        return vec!["no node leads now; see 'notbefore cluster status'".to_owned()];
    };
    let others = cluster.nodes.iter().filter(|node| node.can_lead && node.name != *leader);
    let others: Vec<&str> = others.map(|node| node.name.as_str()).collect();
    match others.is_empty() {
        true => vec![
            format!("{leader} leads, and no other node can take the lead now"),
            "start another node; 'notbefore cluster status' says what keeps the others from leading"
                .to_owned(),
        ],
        false => vec![
            format!("{leader} gives up the lead; {} takes it, usually within 100 ms", others.join(" or ")),
            "changes that are under way may answer that their outcome is unknown; guests notice nothing"
                .to_owned(),
        ],
    }
}

fn forget_plan(plan: &ForgottenNode) -> Vec<String> {
    let (node, state, at) = (&plan.node, &plan.state, plan.last_heartbeat_at);
    vec![
        time::in_text(&format!("node {node} is {state}; its last heartbeat was at {at:.0}")),
        "it is not listed any more until it starts again; nothing else changes".to_owned(),
    ]
}

fn upgrade_plan(plan: &Upgrade) -> Vec<String> {
    let nodes = counted(plan.nodes, "running node");
    match plan.to > plan.from {
        true => vec![
            format!("the cluster goes from format level {} to {}; {nodes} can write it", plan.from, plan.to),
            "from then on a node of an older release can neither lead nor join; this cannot be undone"
                .to_owned(),
        ],
        false => vec![format!(
            "the cluster is already at format level {}; {nodes} can write no newer one",
            plan.to
        )],
    }
}

fn upgraded(done: &Upgrade) -> String {
    match done.to > done.from {
        true => format!("all nodes write format level {} now", done.to),
        false => format!("already at format level {}", done.to),
    }
}

fn handed_over(done: &HandOver) -> String {
    match &done.leader {
        Some(leader) => format!("{leader} leads now; {} has given up the lead", done.from),
        None => format!(
            "{} has given up the lead, and no node has taken it within 3 s; see 'notbefore cluster status'",
            done.from
        ),
    }
}

fn lines(cluster: &Cluster, output: Output) -> Vec<String> {
    if cluster.mode == ClusterMode::Single {
        return vec![SINGLE.to_owned()];
    }
    let field = |name: &str, value: String| format!("{name:<NAME$}{value}");
    let running = cluster.nodes.iter().filter(|node| node.state == NodeState::Running).count();
    let mut lines = vec![
        field("leader", cluster.leader.clone().unwrap_or_else(|| "none".to_owned())),
        field("format", format_level(cluster)),
        field("nodes", format!("{running} of {} running", cluster.nodes.len())),
    ];
    lines.extend(node_lines(cluster, output));
    if let Some(etcd) = &cluster.etcd {
        lines.extend(etcd_lines(etcd, output));
    }
    match cluster.problems.as_slice() {
        [] => lines.push(field("problems", "none".to_owned())),
        some => {
            lines.push(field("problems", some.len().to_string()));
            lines.extend(some.iter().map(|problem| format!("  {}", time::in_text(&problem.detail))));
        }
    }
    lines
}

fn format_level(cluster: &Cluster) -> String {
    let Some(level) = cluster.format_level else { return "unknown: no node has led yet".to_owned() };
    let running = cluster.nodes.iter().filter(|node| node.state == NodeState::Running);
    match running.map(|node| node.format_level).min() {
        Some(newest) if newest > level => {
            format!("level {level}; all nodes can write {newest}: 'notbefore cluster upgrade finish'")
        }
        Some(_) | None => format!("level {level}"),
    }
}

fn node_lines(cluster: &Cluster, output: Output) -> Vec<String> {
    let is_me = |node: &ClusterNode| cluster.node.as_ref() == Some(&node.name);
    let name = |node: &ClusterNode| match is_me(node) {
        true => format!("{} (asked)", node.name),
        false => node.name.clone(),
    };
    let state = |node: &ClusterNode| match (&node.state, node.leads, node.can_lead) {
        (NodeState::Running, true, _) => "leads".to_owned(),
        (NodeState::Running, false, true) => "follows".to_owned(),
        (NodeState::Running, false, false) => "cannot lead".to_owned(),
        (NodeState::Silent | NodeState::Stopped | NodeState::Unknown(_), ..) => node.state.to_string(),
    };
    let heartbeat = |node: &ClusterNode| match node.state {
        NodeState::Running => format!("{:.1} s ago", node.heartbeat_age_ms as f64 / 1_000.0),
        NodeState::Silent | NodeState::Stopped | NodeState::Unknown(_) => {
            time::from(node.last_heartbeat_at, cluster.now)
        }
    };
    let clock = |node: &ClusterNode| node.clock_offset_ms.map_or_else(String::new, |ms| format!("{ms:+} ms"));
    output.indented_table_lines(
        &cluster.nodes,
        &[
            Column::new("NODE", &name),
            Column::new("STATE", &state),
            Column::new("HEARTBEAT", &heartbeat),
            Column::new("CLOCK", &clock),
            Column::optional("LAG", &|node: &ClusterNode| node.lag_revisions.to_string()),
            Column::optional("LEVEL", &|node| node.format_level.to_string()),
            Column::text("URL", &|node| node.url.clone()),
        ],
    )
}

fn etcd_lines(etcd: &Etcd, output: Output) -> Vec<String> {
    let field = |value: String| format!("{:<NAME$}{value}", "etcd");
    if let Some(error) = &etcd.error {
        return vec![field(format!("no answer: {error}"))];
    }
    let used = etcd.database_bytes.map(|bytes| {
        let quota = etcd.quota_bytes.map(|quota| format!(" of {}", size(quota))).unwrap_or_default();
        let in_use = etcd.database_bytes_in_use.map(|bytes| format!(", {} in use", size(bytes)));
        format!("; database {}{quota}{}", size(bytes), in_use.unwrap_or_default())
    });
    let id = etcd.cluster_id.as_deref().unwrap_or("unknown");
    let mut lines = vec![field(format!(
        "cluster {id}, {}{}",
        counted(etcd.members.len(), "member"),
        used.unwrap_or_default()
    ))];
    let state = |member: &EtcdMember| match (&member.state, member.leads, member.is_learner) {
        (EtcdMemberState::Answered, true, _) => "leads".to_owned(),
        (EtcdMemberState::Answered, false, true) => "learns".to_owned(),
        (EtcdMemberState::Answered, false, false) => "follows".to_owned(),
        (EtcdMemberState::Silent, ..) => "silent".to_owned(),
        (EtcdMemberState::NotAsked, ..) => "not asked".to_owned(),
        (EtcdMemberState::Unknown(word), ..) => word.clone(),
    };
    let bytes = |bytes: Option<u64>| bytes.map(size).unwrap_or_default();
    let name = |member: &EtcdMember| match member.name.is_empty() {
        true => member.id.clone(),
        false => member.name.clone(),
    };
    lines.extend(output.indented_table_lines(
        &etcd.members,
        &[
            Column::new("MEMBER", &name),
            Column::new("STATE", &state),
            Column::new("VERSION", &|member: &EtcdMember| member.version.clone().unwrap_or_default()),
            Column::optional("DATABASE", &|member| bytes(member.database_bytes)),
            Column::optional("IN USE", &|member| bytes(member.database_bytes_in_use)),
            Column::text("URLS", &|member| member.urls.join(", ")),
        ],
    ));
    lines
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use notbefore_wire::operator::cluster::ClusterProblem;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn node(name: &str, state: NodeState) -> ClusterNode {
        ClusterNode {
            name: name.to_owned(),
            epoch: "e".to_owned(),
            url: format!("https://{name}:7400"),
            clock_offset_ms: (state == NodeState::Running).then_some(-12),
            state,
            last_heartbeat_at: at(-120),
            heartbeat_age_ms: 420,
            leads: name == "a",
            can_lead: true,
            format_level: 2,
            watched_revision: 90,
            lag_revisions: 3,
        }
    }

    fn member(name: &str, state: EtcdMemberState) -> EtcdMember {
        let answered = state == EtcdMemberState::Answered;
        EtcdMember {
            id: "8e9e05c52164694d".to_owned(),
            name: name.to_owned(),
            urls: vec![format!("http://{name}:2379")],
            leads: answered,
            is_learner: false,
            error: None,
            version: answered.then(|| "3.5.21".to_owned()),
            database_bytes: answered.then_some(3 << 20),
            database_bytes_in_use: answered.then_some(1 << 20),
            state,
        }
    }

    fn cluster() -> Cluster {
        Cluster {
            mode: ClusterMode::Cluster,
            now: at(0),
            node: Some("b".to_owned()),
            leader: Some("a".to_owned()),
            format_level: Some(2),
            revision: Some(93),
            nodes: vec![
                node("a", NodeState::Running),
                node("b", NodeState::Running),
                node("c", NodeState::Silent),
            ],
            etcd: Some(Etcd {
                asked_at: at(0),
                error: None,
                cluster_id: Some("cdf8".to_owned()),
                members: vec![member("e1", EtcdMemberState::Answered), member("e2", EtcdMemberState::Silent)],
                database_bytes: Some(3 << 20),
                database_bytes_in_use: Some(1 << 20),
                quota_bytes: Some(2 << 30),
                alarms: Some(Vec::new()),
                warnings: Vec::new(),
            }),
            problems: vec![ClusterProblem { code: "node_silent".into(), detail: "node c is silent".into() }],
        }
    }

    #[test]
    fn status_shows_nodes_members_and_problems() {
        let expected = "\
leader    a
format    level 2
nodes     2 of 3 running
  NODE       STATE    HEARTBEAT  CLOCK   LAG  LEVEL  URL
  a          leads    0.4 s ago  -12 ms  3    2      https://a:7400
  b (asked)  follows  0.4 s ago  -12 ms  3    2      https://b:7400
  c          silent   2 min ago          3    2      https://c:7400
etcd      cluster cdf8, 2 members; database 3.0 MiB of 2.0 GiB, 1.0 MiB in use
  MEMBER  STATE   VERSION  DATABASE  IN USE   URLS
  e1      leads   3.5.21   3.0 MiB   1.0 MiB  http://e1:2379
  e2      silent                              http://e2:2379
problems  1
  node c is silent";
        assert_eq!(lines(&cluster(), Output::Table).join("\n"), expected);
    }

    #[test]
    fn status_of_a_cluster_in_an_upgrade_names_the_next_step() {
        let older = Cluster { format_level: Some(1), ..cluster() };
        assert_eq!(
            lines(&older, Output::Table)[1],
            "format    level 1; all nodes can write 2: 'notbefore cluster upgrade finish'"
        );
        let mut mixed = older;
        mixed.nodes[1].format_level = 1;
        assert_eq!(lines(&mixed, Output::Table)[1], "format    level 1");
    }

    #[test]
    fn plan_of_an_upgrade_says_what_follows() {
        let plan = |from, to| Upgrade { from, to, nodes: 3 };
        assert_eq!(
            upgrade_plan(&plan(1, 2))[0],
            "the cluster goes from format level 1 to 2; 3 running nodes can write it"
        );
        assert_eq!(upgrade_plan(&plan(2, 2)).len(), 1);
        assert_eq!(
            (upgraded(&plan(1, 2)), upgraded(&plan(2, 2))),
            ("all nodes write format level 2 now".into(), "already at format level 2".into())
        );
    }

    #[test]
    fn plan_of_a_hand_over_names_the_nodes_that_can_lead() {
        let mut cluster = cluster();
        cluster.nodes[2].can_lead = false;
        assert!(hand_over_plan(&cluster)[0].starts_with("a gives up the lead; b takes it"));
        cluster.nodes[1].can_lead = false;
        assert_eq!(hand_over_plan(&cluster)[0], "a leads, and no other node can take the lead now");
    }
}
