//! Callers without a valid token at a follower: it refuses them itself, and they take no place of others.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use notbefore_service::clock::SystemClock;
use notbefore_service::nodes::ForwardLimits;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::span;

use super::harness::{CLIENT, Cluster, Node, NodeOptions, SECRET, leader_at, new_vm};
use super::lost_answers::{Then, scripted};
use crate::PATIENCE;

const OPERATOR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 8));

fn browser() -> Vec<(&'static str, String)> {
    vec![
        ("host", "127.0.0.1:9002".to_owned()),
        ("sec-fetch-site", "same-origin".to_owned()),
        ("content-type", "application/json".to_owned()),
    ]
}

fn with_cookie(cookie: &str) -> Vec<(&'static str, String)> {
    browser().into_iter().chain([("cookie", cookie.to_owned())]).collect()
}

/// A body that never ends.
fn endless() -> Body {
    Body::from_stream(futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>())
}

fn counted(node: &Node, code: &str) -> u64 {
    node.operator.refusals.counts.get_or_create(&[("code", code.to_owned())]).get()
}

#[tokio::test]
async fn valid_tokens_get_through_while_callers_without_one_flood_a_follower() {
    let limits = ForwardLimits { operator_timeout: PATIENCE, ..ForwardLimits::default() };
    let cluster = Arc::new(
        Cluster::with(Arc::new(SystemClock), NodeOptions { limits, ..NodeOptions::default() }).await,
    );
    let mut flood = JoinSet::new();
    for n in 0..300 {
        let cluster = Arc::clone(&cluster);
        flood.spawn(async move {
            let wrong = vec![("authorization", format!("Bearer wrong-{n}"))];
            let (method, path, headers) = match n % 4 {
                0 => ("POST", "/v1/vms", wrong),
                1 => ("GET", "/v1/status", wrong),
                2 => ("POST", "/v1/vms", with_cookie("notbefore-9002=forged")),
                _ => ("POST", "/v1/vms", Vec::new()),
            };
            cluster.follower.ask_from(CLIENT, method, path, &headers, endless()).await
        });
    }
    let mut sign_ins = JoinSet::new();
    for _ in 0..10 {
        let cluster = Arc::clone(&cluster);
        sign_ins.spawn(async move {
            cluster.follower.ask_with("POST", "/v1/sign-in", &browser(), r#"{"token":"wrong"}"#).await
        });
    }
    // These are answered at once: nothing can make them valid. The others wait.
    for _ in 0..75 {
        let refused = timeout(PATIENCE, flood.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(refused.problem(), (401, "token_missing"));
    }

    let follower = &cluster.follower;
    let added = follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(added.status, 201, "{added:?}");
    let sign_in = Body::from(format!("{{\"token\":\"{SECRET}\"}}"));
    let signed_in = follower.ask_from(OPERATOR, "POST", "/v1/sign-in", &browser(), sign_in).await;
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let link = follower.ask("POST", "/v1/session/link", "").await;
    let code = Body::from(format!("{{\"code\":\"{}\"}}", link.body["code"].as_str().unwrap()));
    let signed_in = follower.ask_from(OPERATOR, "POST", "/v1/sign-in", &browser(), code).await;
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let grants = r#"{"name":"new","grants":[{"role":"operator","path":"/"}]}"#;
    let created = cluster.leader.ask("POST", "/v1/tokens", grants).await;
    let new = [("authorization", format!("Bearer {}", created.body["secret"].as_str().unwrap()))];
    let added = follower.ask_with("POST", "/v1/vms", &new, &new_vm("db", "10.0.0.2")).await;
    assert_eq!(added.status, 201, "its token is new: {added:?}");

    follower.become_current();
    while let Some(refused) = timeout(PATIENCE, flood.join_next()).await.unwrap() {
        let refused = refused.unwrap();
        assert!(matches!(refused.problem(), (401, "token_refused" | "session_ended")), "{refused:?}");
    }
    while let Some(refused) = timeout(PATIENCE, sign_ins.join_next()).await.unwrap() {
        assert_eq!(refused.unwrap().problem(), (401, "token_refused"));
    }
    let refused = ["token_missing", "token_refused", "session_ended"];
    assert_eq!(refused.map(|code| counted(follower, code)), [75, 160, 75], "the audit trail has all");
    assert_eq!(refused.map(|code| counted(&cluster.leader, code)), [0; 3], "the leader saw none of them");
    assert_eq!((follower.forwarded("too_many"), follower.forwarded("not_current")), (0, 0));
    let another = follower.ask_with("POST", "/v1/sign-in", &browser(), "{}").await;
    assert_eq!(another.problem(), (429, "too_many_sign_ins"), "guesses are limited here, too");
}

#[tokio::test]
async fn follower_that_is_not_current_refuses_no_unknown_token_and_logs_a_line_a_second() {
    let limits = ForwardLimits { operator_timeout: Duration::from_millis(100), ..ForwardLimits::default() };
    let options = NodeOptions { limits, ..NodeOptions::default() };
    let cluster = Cluster::with(Arc::new(SystemClock), options).await;
    let lines = Arc::new(AtomicUsize::new(0));
    let _logging = tracing::subscriber::set_default(Warnings(Arc::clone(&lines)));
    let wrong = [("authorization", "Bearer wrong".to_owned())];
    let ask = || cluster.follower.ask_with("POST", "/v1/vms", &wrong, "{}");
    for refused in futures_util::future::join_all((0..100).map(|_| ask())).await {
        assert_eq!(refused.problem(), (503, "unavailable"));
        assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    }
    assert_eq!(cluster.follower.forwarded("not_current"), 100);
    // One for each second that it took. A line may be missed while tests start on other threads.
    let lines = lines.load(Relaxed);
    assert!(lines < 50, "{lines} lines");
    cluster.follower.become_current();
    assert_eq!(ask().await.problem(), (401, "token_refused"));
}

#[tokio::test]
async fn sign_ins_by_code_of_one_address_take_their_share_of_the_places() {
    let limits = ForwardLimits { operator_timeout: PATIENCE, ..ForwardLimits::default() };
    let options = NodeOptions { limits, ..NodeOptions::default() };
    let cluster = Arc::new(Cluster::with(Arc::new(SystemClock), options).await);
    let (address, mut received) = scripted(&*cluster.store, Then::NeverAnswer).await;
    cluster.follower.follow(Some(leader_at(address)));
    let sign_in = |from| {
        let cluster = Arc::clone(&cluster);
        let code = Body::from(r#"{"code":"guessed"}"#);
        async move { cluster.follower.ask_from(from, "POST", "/v1/sign-in", &browser(), code).await }
    };
    let mut waiting = JoinSet::new();
    for from in [CLIENT, CLIENT, CLIENT, CLIENT] {
        waiting.spawn(sign_in(from));
        timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    }
    let refused = sign_in(CLIENT).await;
    assert_eq!(refused.problem(), (503, "unavailable"));
    assert!(refused.body["detail"].as_str().unwrap().contains("4 sign-ins"), "{refused:?}");
    waiting.spawn(sign_in(OPERATOR));
    timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    // Places are free again when their requests end.
    waiting.shutdown().await;
    waiting.spawn(sign_in(CLIENT));
    timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
}

/// Counts lines of the log.
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
