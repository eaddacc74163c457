//! Requests that a follower refuses, and tokens that it sees, reach the leader.

use std::sync::Arc;

use axum::http::StatusCode;
use notbefore_engine::Role;
use notbefore_service::clock::SystemClock;
use notbefore_service::refusals::RefusalSink;
use notbefore_store::Revision;
use tokio::sync::watch;

use super::harness::{Cluster, Node, leader_at, records};

/// Where the follower's batches go.
fn sink(cluster: &Cluster) -> RefusalSink {
    RefusalSink {
        store: Arc::clone(&cluster.store),
        clock: Arc::new(SystemClock),
        node: "b".into(),
        // The sender is dropped: the role stays.
        role: watch::channel(Role::Follow).1,
        nodes: Some(Arc::clone(&cluster.follower.nodes)),
    }
}

/// Reads at a follower with a wrong token.
async fn refused_read(node: &Node, path: &str) {
    let wrong = [("authorization", "Bearer wrong".to_owned())];
    let refused = node.ask_with("GET", path, &wrong, "").await;
    assert_eq!(refused.problem(), (401, "token_refused"));
}

#[tokio::test]
async fn refused_read_at_a_follower_is_in_the_audit_trail_once() {
    let cluster = Cluster::new().await;
    let follower = &cluster.follower;
    let sink = sink(&cluster);
    refused_read(follower, "/v1/scopes").await;
    follower.follow(None);
    assert!(follower.operator.refusals.write_once(&sink).await);
    assert!(records(&*cluster.store, "refused/").await.is_empty(), "only the leader writes");
    refused_read(follower, "/v1/facts").await;
    follower.follow(Some(leader_at(cluster.address)));
    follower.operator.refusals.write_once(&sink).await;
    let stored = records(&*cluster.store, "refused/").await;
    assert!(stored.len() == 1 && stored[0].contains("GET /v1/scopes"), "kept for the leader: {stored:?}");
    follower.operator.refusals.write_once(&sink).await;
    follower.operator.refusals.write_once(&sink).await;
    let stored = records(&*cluster.store, "refused/").await;
    assert!(stored.len() == 2 && stored[1].contains("GET /v1/facts"), "{stored:?}");
    let counted = |node: &Node| {
        node.operator.refusals.counts.get_or_create(&[("code", "token_refused".to_owned())]).get()
    };
    assert_eq!((counted(follower), counted(&cluster.leader)), (2, 0), "each node counts its own");

    refused_read(follower, "/v1/scopes").await;
    follower.follow(None);
    follower.operator.refusals.write_once(&sink).await;
    let leading = RefusalSink { role: watch::channel(Role::Lead(Revision(1))).1, ..sink };
    follower.operator.refusals.write_once(&leading).await;
    assert_eq!(records(&*cluster.store, "refused/").await.len(), 3, "this node takes the lead");
}

#[tokio::test]
async fn use_of_a_token_at_a_follower_is_known_at_every_node() {
    let cluster = Cluster::new().await;
    let grants = r#"{"name":"ops","grants":[{"role":"operator","path":"/"}]}"#;
    let created = cluster.leader.ask("POST", "/v1/tokens", grants).await;
    let secret = created.body["secret"].as_str().unwrap().to_owned();
    let revision = Revision(cluster.leader.operator.views.complete_to().0);
    cluster.follower.operator.views.wait_for(revision).await;
    let with_token = [("authorization", format!("Bearer {secret}"))];
    let read = cluster.follower.ask_with("GET", "/v1/scopes", &with_token, "").await;
    assert_eq!(read.status, StatusCode::OK, "{read:?}");
    let last_used = async |node: &Node| {
        let tokens = node.ask("GET", "/v1/tokens", "").await;
        let tokens = tokens.body["items"].as_array().unwrap().clone();
        tokens.iter().find(|token| token["name"] == "ops").unwrap()["last_used_at"].clone()
    };
    assert!(last_used(&cluster.leader).await.is_null());
    let sink = sink(&cluster);
    cluster.follower.operator.refusals.write_once(&sink).await;
    let known = last_used(&cluster.leader).await;
    assert!(known.is_string(), "{known}");

    cluster.follower.follow(None);
    assert!(last_used(&cluster.follower).await.is_string(), "its own uses, without a leader");
    cluster.follower.follow(Some(leader_at(cluster.address)));
    assert_eq!(last_used(&cluster.follower).await, known);
    assert_eq!(cluster.follower.forwarded("answered"), 1, "the list is the leader's");
}
