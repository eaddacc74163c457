//! Several nodes on one store, each a whole service with real sockets.

mod harness;
mod starting;

use std::sync::Arc;

use notbefore_service::serve::ServeError;
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Store, Txn};

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
async fn follower_takes_commands_and_approvals() {
    let cluster = TestCluster::start(3).await;
    let leader = cluster.leader().await;
    let follower = &cluster.nodes[(leader + 1) % 3];
    let token = cluster.token();
    let vm = r#"{"scope":"web","vm":{"name":"web-0","addresses":["127.0.0.1"]}}"#;
    let (status, added) = follower.change("/v1/vms", &token, vm).await;
    assert_eq!(status, 201, "{added}");
    // When it is answered, every later poll at this node shows it.
    assert!(follower.poll().await.contains("\"Events\":[]"));
    let (status, scheduled) = follower.change("/v1/vms/web-0/restart", &token, "{}").await;
    assert_eq!(status, 201, "{scheduled}");
    let document = follower.poll().await;
    assert!(document.contains("\"EventStatus\":\"Scheduled\""), "the poll before gives notice: {document}");
    let id = document.split("\"EventId\":\"").nth(1).unwrap().split('"').next().unwrap();
    let approval = format!(r#"{{"StartRequests":[{{"EventId":"{id}"}}]}}"#);
    let other = &cluster.nodes[(leader + 2) % 3];
    let approved = other.approve(&approval).await;
    assert!(approved.starts_with("HTTP/1.1 200"), "{approved}");
    assert!(other.poll().await.contains("\"EventStatus\":\"Started\""));
    // Only the leader knows who listens; every node says so.
    for node in &cluster.nodes {
        node.wait_for_answer("/v1/vms/web-0", &token, "\"listening\":\"yes\"").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follower_refuses_unknown_tokens_and_takes_new_ones() {
    let cluster = TestCluster::start(2).await;
    let leader = cluster.leader().await;
    let (leader, follower) = (&cluster.nodes[leader], &cluster.nodes[1 - leader]);
    let vm = r#"{"scope":"web","vm":{"name":"web-0"}}"#;
    let strangers = (0..50).map(|_| follower.change("/v1/vms", "wrong", vm));
    let strangers = futures_util::future::join_all(strangers);
    let operators = async {
        let grants = r#"{"name":"new","grants":[{"role":"operator","path":"/"}]}"#;
        let (status, created) = leader.change("/v1/tokens", &cluster.token(), grants).await;
        assert_eq!(status, 201, "{created}");
        let secret = created.split("\"secret\":\"").nth(1).unwrap().split('"').next().unwrap();
        follower.change("/v1/vms", secret, vm).await
    };
    let (strangers, (status, added)) = tokio::join!(strangers, operators);
    assert_eq!(status, 201, "{added}");
    for (status, refused) in strangers {
        assert_eq!(status, 401, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_shows_the_cluster() {
    let mut cluster = TestCluster::start(3).await;
    let leader = cluster.leader().await;
    let (name, token) = (cluster.nodes[leader].name.clone(), cluster.token());
    for node in &cluster.nodes {
        node.wait_for_answer("/v1/cluster", &token, &format!("\"leader\":\"{name}\"")).await;
        let shown = node.show("/v1/cluster", &token).await;
        assert_eq!((&shown["mode"], &shown["node"]), (&"cluster".into(), &node.name.as_str().into()));
        assert_eq!(shown["format_level"], 2);
        let nodes = shown["nodes"].as_array().unwrap();
        let states: Vec<_> = nodes.iter().map(|one| (one["name"].clone(), one["state"].clone())).collect();
        let running = |name: &str| (name.into(), "running".into());
        assert_eq!(states, ["node-0", "node-1", "node-2"].map(running), "{shown:#}");
        assert!(shown.get("problems").is_none(), "{shown:#}");
    }
    for (index, node) in cluster.nodes.iter().enumerate() {
        let page = node.operator("GET", "/metrics", &token, "").await.1;
        for line in [
            &*format!("notbefore_cluster_leads {}", u8::from(index == leader)),
            "notbefore_cluster_nodes{state=\"running\"} 3",
            "notbefore_cluster_fence_conflicts_total 0",
            "notbefore_cluster_step_downs_total{reason=\"hand_over\"} 0",
            "notbefore_cluster_resync_differences_total{reason=\"repair\"} 0",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
    }
    cluster.nodes.remove((leader + 1) % 3).stop().await;
    let left = &cluster.nodes[0];
    left.wait_for_answer("/v1/cluster", &token, "\"state\":\"stopped\"").await;
    cluster.nodes.remove(1).kill();
    cluster.nodes[0].wait_for_answer("/v1/cluster", &token, "\"code\":\"node_silent\"").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_hands_the_lead_over_once_per_key() {
    let cluster = TestCluster::start(3).await;
    let token = cluster.token();
    let leader = cluster.leader_of_able_nodes(&token).await;
    let from = cluster.nodes[leader].name.clone();
    let follower = &cluster.nodes[(leader + 1) % 3];
    let (status, answer) =
        follower.change_with("/v1/cluster/hand-over", &token, "Idempotency-Key: once\r\n", "").await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(&format!("\"from\":\"{from}\"")), "{answer}");
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    let name = &cluster.nodes[next].name;
    assert!(answer.contains(&format!("\"leader\":\"{name}\"")), "{answer}");
    // The same request again: the lead stays.
    let (status, answer) =
        follower.change_with("/v1/cluster/hand-over", &token, "Idempotency-Key: once\r\n", "").await;
    assert_eq!((status, cluster.leader().await), (200, next), "{answer}");
    let audit = follower.show("/v1/audit", &token).await;
    let facts = audit["items"].as_array().unwrap();
    let asked: Vec<_> = facts.iter().filter(|fact| fact["type"] == "HandOverRequested").collect();
    assert_eq!(asked.len(), 1, "{audit:#}");
    assert_eq!((&asked[0]["by"]["name"], &asked[0]["detail"]["node"]), (&"root".into(), &from.into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lead_is_not_handed_over_if_no_other_node_can_lead() {
    let cluster = TestCluster::start(1).await;
    cluster.leader().await;
    let (status, answer) = cluster.nodes[0].change("/v1/cluster/hand-over", &cluster.token(), "").await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer.contains("\"code\":\"no_other_node\""), "{answer}");
    assert!(cluster.nodes[0].standing().role.leads());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_nodes_write_the_older_level_until_the_upgrade_is_finished() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let older = TestNode::start_at_level(&store, "node-0", 1).await.unwrap();
    let mut cluster = TestCluster { store, nodes: vec![older] };
    cluster.leader().await;
    let token = cluster.token();
    for name in ["node-1", "node-2"] {
        let newer = TestNode::start(&cluster.store, name).await.unwrap();
        cluster.nodes.push(newer);
    }
    // A newer node leads, and writes what the older one reads.
    cluster.leader_of_able_nodes(&token).await;
    let (status, answer) = cluster.nodes[1].change("/v1/cluster/hand-over", &token, "").await;
    assert_eq!(status, 200, "{answer}");
    assert_ne!(cluster.leader().await, 0);
    let vm = r#"{"scope":"web","vm":{"name":"web-0","addresses":["127.0.0.1"]}}"#;
    let (status, answer) = cluster.nodes[0].change("/v1/vms", &token, vm).await;
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = cluster.nodes[0].change("/v1/vms/web-0/restart", &token, "{}").await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(cluster.levels().await, [b'1'].into());

    let (status, answer) = cluster.nodes[0].change("/v1/cluster/upgrade/finish", &token, "").await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer.contains("\"code\":\"nodes_too_old\"") && answer.contains("node-0 (level 1)"), "{answer}");

    cluster.nodes.remove(0).stop().await;
    cluster.leader().await;
    let upgrade = async |body: &str| {
        let (status, answer) = cluster.nodes[0].change("/v1/cluster/upgrade/finish", &token, body).await;
        assert_eq!(status, 200, "{answer}");
        answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
    };
    let raised = r#"{"from":1,"to":2,"nodes":2}"#;
    assert_eq!(upgrade(r#"{"dry_run":true}"#).await, raised);
    assert_eq!(upgrade("").await, raised);
    for node in &cluster.nodes {
        node.wait_for_answer("/v1/cluster", &token, "\"format_level\":2,\"revision\"").await;
    }
    assert_eq!(upgrade("").await, r#"{"from":2,"to":2,"nodes":2}"#, "it can be repeated");
    let audit = cluster.nodes[0].show("/v1/audit", &token).await;
    let facts = audit["items"].as_array().unwrap();
    let finished: Vec<_> = facts.iter().filter(|fact| fact["type"] == "UpgradeFinished").collect();
    assert_eq!((finished.len(), &finished[0]["detail"]["level"]), (1, &2.into()), "{audit:#}");
    let (status, answer) = cluster.nodes[0].change("/v1/vms/web-0/restart", &token, "{}").await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(
        cluster.levels().await,
        [b'1', b'2'].into(),
        "a record keeps its level until it is written again"
    );
    let refused = TestNode::start_at_level(&cluster.store, "node-0", 1).await.err().unwrap().to_string();
    assert!(refused.contains("--format-level") && refused.contains("limits this node to 1"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_without_a_leader_is_refused_and_can_be_repeated() {
    let mut cluster = TestCluster::start(2).await;
    let leader = cluster.leader().await;
    let token = cluster.token();
    cluster.nodes.remove(leader).kill();
    let left = &cluster.nodes[0];
    let vm = |name: &str| format!(r#"{{"scope":"{name}","vm":{{"name":"{name}"}}}}"#);
    let (status, answer) = left.operator("POST", "/v1/vms", &token, &vm("first")).await;
    // A machine that is busy for seconds may elect the node first.
    if !left.standing().role.leads() {
        assert_eq!(status, 503, "{answer}");
        // The killed leader's connections close a moment later: until then it may take the request.
        let is_said = |code| answer.contains(&format!("\"code\":\"{code}\""));
        assert!(is_said("unavailable") || is_said("outcome_unknown"), "{answer}");
    }
    assert!(left.poll().await.starts_with("HTTP/1.1 "), "guests are answered");
    cluster.leader().await;
    let (status, added) = left.change("/v1/vms", &token, &vm("second")).await;
    assert_eq!(status, 201, "{added}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_node_of_a_name_is_refused() {
    let cluster = TestCluster::start(1).await;
    let refused = TestNode::start(&cluster.store, "node-0").await.err().unwrap();
    assert!(matches!(refused, ServeError::Join(_)), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("a node named node-0 already runs"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_of_a_name_that_start_at_once_one_is_refused() {
    let cluster = TestCluster::start(1).await;
    let starting = [(); 3].map(|()| TestNode::start(&cluster.store, "twin"));
    let mut started = futures_util::future::join_all(starting).await;
    started.sort_by_key(Result::is_err);
    let refused = started.split_off(1);
    assert!(started[0].is_ok(), "one of them runs: {:?}", started[0].as_ref().err());
    for refused in refused {
        let message = refused.err().expect("the others do not").to_string();
        assert!(message.contains("a node named twin already runs"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_whose_name_another_process_took_stops() {
    let cluster = TestCluster::start(1).await;
    let paused = TestNode::start(&cluster.store, "paused").await.unwrap();
    // As if it had stood still for so long that another process took its name.
    cluster.replace_heartbeat("paused").await;
    let message = paused.ended().await.unwrap_err().to_string();
    assert!(message.contains("another one has started as node paused"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_does_not_run_is_forgotten() {
    let mut cluster = TestCluster::start(3).await;
    let (leader, token) = (cluster.leader().await, cluster.token());
    let gone = cluster.nodes.remove((leader + 1) % 3);
    let name = gone.name.clone();
    let body = |rest: &str| format!(r#"{{"node":"{name}"{rest}}}"#);
    let left = &cluster.nodes[0];
    let (status, answer) = left.change("/v1/cluster/forget", &token, &body("")).await;
    assert_eq!((status, answer.contains("\"code\":\"node_runs\"")), (409, true), "{answer}");
    gone.stop().await;
    left.wait_for_answer("/v1/cluster", &token, "\"state\":\"stopped\"").await;
    cluster.leader().await;
    let (status, answer) = left.change("/v1/cluster/forget", &token, &body(",\"dry_run\":true")).await;
    assert_eq!((status, answer.contains("\"state\":\"stopped\"")), (200, true), "{answer}");
    assert!(
        left.operator("GET", "/v1/cluster", &token, "").await.1.contains("stopped"),
        "nothing was changed"
    );
    let (status, answer) = left.change("/v1/cluster/forget", &token, &body("")).await;
    assert_eq!(status, 200, "{answer}");
    for node in &cluster.nodes {
        let gone = async {
            while node.operator("GET", "/v1/cluster", &token, "").await.1.contains(&format!("\"{name}\"")) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(crate::PATIENCE, gone).await.expect("the node is still listed");
    }
    let (status, answer) = left.change("/v1/cluster/forget", &token, &body("")).await;
    assert_eq!((status, answer.contains("\"code\":\"unknown_node\"")), (404, true), "{answer}");
    // It is listed again when it starts again.
    cluster.nodes.push(TestNode::start(&cluster.store, &name).await.unwrap());
    cluster.nodes[0].wait_for_answer("/v1/cluster", &token, &format!("\"name\":\"{name}\"")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn record_that_cannot_be_read_is_reported_until_it_is_repaired() {
    let cluster = TestCluster::start(2).await;
    let (leader, token) = (cluster.leader().await, cluster.token());
    cluster.nodes[leader].add_vm("web-0", "127.0.0.1").await;
    let snapshot = cluster.store.snapshot().await.unwrap();
    let (key, record) = snapshot.scan("scope/", None, 1).await.unwrap().records.remove(0);
    let put = |value: bytes::Bytes| Txn { put: vec![(key.clone(), value)], ..Txn::default() };
    cluster.store.commit(put("2 {damaged".into())).await;
    for node in &cluster.nodes {
        node.wait_for_answer("/v1/cluster", &token, "\"code\":\"record_unreadable\"").await;
        let shown = node.show("/v1/cluster", &token).await;
        assert!(shown["problems"].to_string().contains(&*key), "it names the record: {shown:#}");
        node.wait_for_answer("/readyz", &token, "1 record in the store cannot be read").await;
        node.wait_for_answer("/metrics", &token, "notbefore_cluster_unreadable_records 1").await;
        assert!(node.poll().await.starts_with("HTTP/1.1 200"), "guests get what the node knew before");
    }
    cluster.store.commit(put(record.value)).await;
    for node in &cluster.nodes {
        node.wait_for_answer("/metrics", &token, "notbefore_cluster_unreadable_records 0").await;
        assert!(!node.operator("GET", "/readyz", &token, "").await.1.contains("cannot be read"));
    }
}
