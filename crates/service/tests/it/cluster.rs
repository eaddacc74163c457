//! Several nodes on one store, each a whole service with real sockets.

mod harness;

use notbefore_service::serve::ServeError;

use harness::{TestCluster, TestNode};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_leads_and_all_answer_guests() {
    let cluster = TestCluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.nodes[leader].add_vm("web-0", "127.0.0.1").await;
    for node in &cluster.nodes {
        node.wait_for_document("\"DocumentIncarnation\":1").await;
    }
    let files = cluster.nodes.iter().filter(|node| node.token_file().exists()).count();
    assert_eq!(files, 1, "only the first leader has created a token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_leads_when_the_leader_is_killed() {
    let mut cluster = TestCluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.nodes[leader].add_vm("web-0", "127.0.0.1").await;
    cluster.nodes.remove(leader).kill();
    let next = cluster.leader().await;
    cluster.nodes[next].add_vm("web-1", "127.0.0.2").await;
    for node in &cluster.nodes {
        node.wait_for_vms(2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_stops_hands_over_and_its_name_is_free_at_once() {
    let mut cluster = TestCluster::start(2).await;
    let leader = cluster.leader().await;
    let stopped = cluster.nodes.remove(leader);
    let name = stopped.name.clone();
    stopped.stop().await;
    cluster.leader().await;
    let again = TestNode::start(&cluster.store, &name).await.unwrap();
    cluster.nodes.push(again);
    cluster.leader().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_node_of_a_name_is_refused() {
    let cluster = TestCluster::start(1).await;
    let refused = TestNode::start(&cluster.store, "node-0").await.err().unwrap();
    assert!(matches!(refused, ServeError::Join(_)), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("a node named node-0 already runs"), "{message}");
}
