//! `/v1/cluster`: shows the nodes and etcd, hands the lead over, finishes upgrades, and forgets nodes.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use notbefore_engine::cluster::{HandOverRefusal, NodeState};
use notbefore_engine::{ClusterCommand, Failure, FailureCause};
use notbefore_wire::operator::cluster as api;
use tokio::time::timeout;

use super::Operator;
use super::access::Change;
use super::problem::{ApiResult, Problem};
use crate::cluster::Standing;
use crate::cluster::overview::{self, NodesTooOld};
use crate::nodes::Nodes;

/// Longest wait for the next leader. Usually it leads within 100 ms. Less than a forwarded request may take.
const NEXT_LEADER_TIMEOUT: Duration = Duration::from_secs(3);

/// Show the nodes of the cluster, their leader, etcd, and what is wrong
///
/// The node that is asked answers from its own knowledge. A service with one node answers with `mode` `single`.
#[utoipa::path(get, path = "/cluster", tag = "service", responses((status = 200, body = api::Cluster)))]
pub async fn show(State(operator): State<Operator>) -> ApiResult<api::Cluster> {
    let Some(cluster) = &operator.cluster else { return Ok(Json(overview::single(operator.clock.now()))) };
    let readiness = operator.readiness.as_ref().map(|readiness| *readiness.borrow());
    let answers_guests = readiness.is_none_or(|readiness| readiness.trusts_addresses);
    Ok(Json(cluster.overview(answers_guests).await.ok_or(Failure::Unavailable(FailureCause::Closing))?))
}

/// Hand the lead over: the leader gives it up, and another node takes it
///
/// Refused if no other node could lead now.
#[utoipa::path(post, path = "/cluster/hand-over", tag = "service", responses((status = 200, body = api::HandOver)))]
pub async fn hand_over(State(operator): State<Operator>, change: Change) -> ApiResult<api::HandOver> {
    let nodes = operator.nodes.as_ref().ok_or_else(|| single_node("there is no lead to hand over"))?;
    let from = nodes.standing().me.name;
    // A repeated request must not move the lead again, away from the node that has taken it.
    if !change.was_carried_out(&operator).await? {
        checked(operator.engine.check_hand_over().await)?;
        // First, because a node that does not lead writes nothing.
        change.ask(&operator, Ok(ClusterCommand::RecordHandOver { node: from.clone() })).await?;
        checked(operator.engine.hand_over().await)?;
    }
    Ok(Json(api::HandOver { from, leader: next_leader(nodes).await }))
}

/// Finish an upgrade: all nodes write the newest format level that each of them can
///
/// Nodes that cannot write it can then neither lead nor join. It cannot be undone.
#[utoipa::path(
    post, path = "/cluster/upgrade/finish", tag = "service",
    request_body(content = api::FinishUpgrade, description = "May be absent"),
    responses((status = 200, body = api::Upgrade))
)]
pub async fn finish_upgrade(State(operator): State<Operator>, change: Change) -> ApiResult<api::Upgrade> {
    if operator.nodes.is_none() {
        return Err(single_node("it upgrades its records by itself"));
    }
    let api::FinishUpgrade { dry_run } = change.body_or_default()?;
    let report = operator.engine.cluster_report().await;
    let report = report.ok_or(Failure::Unavailable(FailureCause::Closing))?;
    let plan = overview::upgrade(&report).ok_or(Failure::Unavailable(FailureCause::NotLeader))?;
    let plan = plan.map_err(|NodesTooOld { level, nodes }| {
        let named = |(name, level): &(String, u32)| format!("{name} (level {level})");
        let nodes: Vec<String> = nodes.iter().map(named).collect();
        let detail = format!(
            "the cluster stays at format level {level} because of nodes that write no newer one: {}; upgrade or stop them, or raise their node.format_level",
            nodes.join(", ")
        );
        Problem::new(StatusCode::CONFLICT, "nodes_too_old", detail)
    })?;
    if !dry_run && plan.to > plan.from {
        change.ask(&operator, Ok(ClusterCommand::FinishUpgrade { level: plan.to })).await?;
    }
    Ok(Json(plan))
}

/// Forget a node that was stopped or is silent: it is not listed any more
///
/// Refused while the node runs. A node that starts again is listed again.
#[utoipa::path(
    post, path = "/cluster/forget", tag = "service",
    request_body = api::ForgetNode, responses((status = 200, body = api::ForgottenNode))
)]
pub async fn forget(State(operator): State<Operator>, change: Change) -> ApiResult<api::ForgottenNode> {
    if operator.nodes.is_none() {
        return Err(single_node("there is no other node to forget"));
    }
    let api::ForgetNode { node, dry_run } = change.body()?;
    let report = operator.engine.cluster_report().await;
    let report = report.ok_or(Failure::Unavailable(FailureCause::Closing))?;
    let was_carried_out = change.was_carried_out(&operator).await?;
    let found = report.nodes.iter().find(|one| one.name == node);
    let (state, last_heartbeat_at) = match found.map(|one| (one.state, one.record.clock)) {
        // The answer to a repeated request: the record with the rest is gone.
        None if was_carried_out => (NodeState::Stopped, operator.clock.now()),
        None => {
            let detail = format!("there is no node named {node}; 'notbefore cluster status' lists all nodes");
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_node", detail));
        }
        Some((NodeState::Running, _)) if !was_carried_out => {
            let detail = format!(
                "node {node} runs; stop it first: a node that is silent for 4 s, or has stopped, can be forgotten"
            );
            return Err(Problem::new(StatusCode::CONFLICT, "node_runs", detail));
        }
        Some(found) => found,
    };
    if !dry_run {
        change.ask(&operator, Ok(ClusterCommand::ForgetNode { node: node.clone() })).await?;
    }
    Ok(Json(api::ForgottenNode { node, state: overview::state_word(state), last_heartbeat_at }))
}

fn checked(answer: Option<Result<(), HandOverRefusal>>) -> Result<(), Problem> {
    match answer {
        None => Err(Failure::Unavailable(FailureCause::Closing).into()),
        Some(Ok(())) => Ok(()),
        Some(Err(HandOverRefusal::NotLeading)) => Err(Failure::Unavailable(FailureCause::NotLeader).into()),
        Some(Err(HandOverRefusal::NoOtherNode)) => {
            let detail = "no other node can take the lead now; start another node, or see 'notbefore cluster status' for what keeps the others from leading";
            Err(Problem::new(StatusCode::CONFLICT, "no_other_node", detail))
        }
    }
}

/// 409 for a service that is not in a cluster.
fn single_node(what: &str) -> Problem {
    let detail =
        format!("this service has one node: {what}; 'notbefore serve --etcd' starts a node of a cluster");
    Problem::new(StatusCode::CONFLICT, "single_node", detail)
}

/// Waits until another process leads, and returns its name.
async fn next_leader(nodes: &Nodes) -> Option<String> {
    let mut standings = nodes.standings();
    let is_other =
        |standing: &Standing| standing.leader.as_ref().is_some_and(|leader| leader.id() != standing.me.id());
    let found = timeout(NEXT_LEADER_TIMEOUT, standings.wait_for(is_other)).await;
    found.ok()?.ok()?.leader.as_ref().map(|leader| leader.node.clone())
}
