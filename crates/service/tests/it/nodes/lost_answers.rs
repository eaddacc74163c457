//! Leaders that cannot be reached, do not answer, or answer too late: requests are sent at most once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::FutureExt;
use notbefore_core::samples;
use notbefore_service::clock::SystemClock;
use notbefore_service::guest::platform::ApproveError;
use notbefore_service::nodes::ForwardLimits;
use notbefore_service::nodes::messages::{Answer, Approval, ApprovalOutcome, GuestIdentity};
use notbefore_service::nodes::signature::{self, Challenge, Kind, Signed};
use notbefore_service::operator::server::{self, OperatorServer, OperatorServerLimits};
use notbefore_service::stored_key::{KeyKind, StoredKey};
use notbefore_store::{Revision, Store};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::harness::{Cluster, NodeOptions, leader_at, new_vm, records};
use crate::PATIENCE;

/// What a scripted leader does with a message after the hello.
#[derive(Clone, Copy)]
pub enum Then {
    NeverAnswer,
    CloseConnection,
    /// With a revision that no node has.
    ApproveInFuture,
}

#[derive(Clone)]
struct Script {
    key: Arc<StoredKey>,
    then: Then,
    received: mpsc::UnboundedSender<Kind>,
    /// Dropped with the script: then the server ends.
    _closing: Arc<watch::Sender<bool>>,
}

async fn play(State(script): State<Script>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let signature = head.headers["x-notbefore-signature"].to_str().unwrap().to_owned();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let signed = Signed { bytes, signature };
    let message = signature::open(&script.key, "a~1", signed).unwrap();
    if message.kind == Kind::Hello {
        return match message.stamp.number {
            0 => Challenge { connection: [7; 16], clock: Duration::ZERO }
                .sign(&script.key, &message)
                .into_response(),
            _ => StatusCode::OK.into_response(),
        };
    }
    script.received.send(message.kind).unwrap();
    match script.then {
        Then::NeverAnswer => std::future::pending().await,
        Then::CloseConnection => {
            // The body of the response breaks the connection.
            let broken = futures_util::stream::once(async { Err::<bytes::Bytes, _>("broken") });
            let mut response = Response::new(Body::from_stream(broken));
            response.headers_mut().insert(header::CONTENT_LENGTH, 10.into());
            response
        }
        Then::ApproveInFuture => {
            let content = serde_json::to_vec(&ApprovalOutcome::Approved).unwrap().into();
            let answer = Answer { revision: Revision(1 << 40), content };
            answer.encode().unwrap().into_response()
        }
    }
}

/// A leader that follows a script; reports the messages that it receives.
pub async fn scripted(store: &dyn Store, then: Then) -> (SocketAddr, mpsc::UnboundedReceiver<Kind>) {
    let key = Arc::new(StoredKey::load_or_create(store, KeyKind::Node).await.unwrap());
    let (received, messages) = mpsc::unbounded_channel();
    let (closing, shutdown) = watch::channel(false);
    let script = Script { key, then, received, _closing: Arc::new(closing) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = OperatorServer {
        callers: "nodes",
        router: Router::new().route("/node/1", post(play)).with_state(script),
        certificate: None,
        slots: OperatorServerLimits::default().slots(),
        proxies: Vec::new(),
    };
    tokio::spawn(server::serve(listener, server, shutdown));
    (address, messages)
}

fn impatient() -> NodeOptions {
    let short = Duration::from_millis(100);
    let limits = ForwardLimits { operator_timeout: short, guest_timeout: short, ..ForwardLimits::default() };
    NodeOptions { limits, ..NodeOptions::default() }
}

fn approval() -> Approval {
    Approval {
        identity: GuestIdentity::Vouched,
        address: [10, 0, 0, 1].into(),
        vm: samples::vm(1),
        scope: samples::scope_id("default/default/web"),
        events: Vec::new(),
        shown: Revision(0),
    }
}

#[tokio::test]
async fn without_a_leader_nothing_is_sent() {
    let cluster = Cluster::new().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (leader, outcome) in [(None, "no_leader"), (Some(leader_at(closed)), "unreachable")] {
        cluster.follower.follow(leader);
        let refused = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
        assert_eq!(refused.problem(), (503, "unavailable"));
        assert_eq!(refused.headers[header::RETRY_AFTER], "1");
        assert!(matches!(
            cluster.follower.nodes.approve(&approval()).await,
            Err(ApproveError::Unavailable(_))
        ));
        assert_eq!(cluster.follower.forwarded(outcome), 2);
    }
    let read = cluster.follower.ask("GET", "/v1/vms", "").await;
    assert_eq!(read.status, 200, "reads need no leader");
}

#[tokio::test]
async fn leader_beyond_this_machine_is_not_called_without_tls() {
    let cluster = Cluster::new().await;
    cluster.follower.follow(Some(leader_at("192.0.2.1:9".parse().unwrap())));
    let refused = cluster.follower.ask("POST", "/v1/vms", "{}").await;
    assert_eq!((refused.problem(), cluster.follower.forwarded("unreachable")), ((503, "unavailable"), 1));
}

#[tokio::test]
async fn lost_answers_are_outcome_unknown_and_never_retried() {
    for then in [Then::NeverAnswer, Then::CloseConnection] {
        let cluster = Cluster::with(Arc::new(SystemClock), impatient()).await;
        let (address, mut received) = scripted(&*cluster.store, then).await;
        cluster.follower.follow(Some(leader_at(address)));
        let lost = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
        assert_eq!(lost.problem(), (503, "outcome_unknown"));
        assert_eq!(received.recv().await, Some(Kind::Operator));
        assert_eq!(cluster.follower.nodes.approve(&approval()).await, Err(ApproveError::OutcomeUnknown));
        assert_eq!(received.recv().await, Some(Kind::Approval));
        assert_eq!(received.recv().now_or_never(), None, "each was sent once");
        assert_eq!(cluster.follower.forwarded("outcome_unknown"), 2);
    }
}

#[tokio::test]
async fn answer_that_this_node_does_not_show_in_time_is_outcome_unknown() {
    let cluster = Cluster::with(Arc::new(SystemClock), impatient()).await;
    let (address, _received) = scripted(&*cluster.store, Then::ApproveInFuture).await;
    cluster.follower.follow(Some(leader_at(address)));
    assert_eq!(cluster.follower.nodes.approve(&approval()).await, Err(ApproveError::OutcomeUnknown));
}

#[tokio::test]
async fn request_257_is_turned_away_at_once() {
    let limits =
        ForwardLimits { guest_timeout: PATIENCE, operator_timeout: PATIENCE, ..ForwardLimits::default() };
    let options = NodeOptions { limits, ..NodeOptions::default() };
    let cluster = Arc::new(Cluster::with(Arc::new(SystemClock), options).await);
    let (address, mut received) = scripted(&*cluster.store, Then::NeverAnswer).await;
    cluster.follower.follow(Some(leader_at(address)));
    let (mut waiting, mut operators) = (JoinSet::new(), JoinSet::new());
    for _ in 0..192 {
        let nodes = Arc::clone(&cluster.follower.nodes);
        waiting.spawn(async move { nodes.approve(&approval()).await });
    }
    for _ in 0..192 {
        timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    }
    let refused = cluster.follower.nodes.approve(&approval()).await;
    assert!(matches!(refused, Err(ApproveError::Unavailable(_))), "{refused:?}");
    // A quarter of the places is for operators.
    for _ in 0..64 {
        let cluster = Arc::clone(&cluster);
        operators.spawn(async move { drop(cluster.follower.ask("POST", "/v1/vms", "{}").await) });
    }
    for _ in 0..64 {
        timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    }
    let refused = cluster.follower.ask("POST", "/v1/vms", "{}").await;
    assert_eq!(refused.problem(), (503, "unavailable"));
    assert!(refused.body["detail"].as_str().unwrap().contains("256 requests"), "{refused:?}");
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert_eq!(cluster.follower.forwarded("too_many"), 2);
    // Places are free again when their requests end.
    waiting.shutdown().await;
    operators.shutdown().await;
    cluster.follower.follow(Some(leader_at(cluster.address)));
    let answered = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(answered.status, 201, "{answered:?}");
    assert_eq!(records(&*cluster.store, "vm/").await.len(), 1);
}
