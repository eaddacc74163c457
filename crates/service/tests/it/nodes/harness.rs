//! A node without the cluster's runtime: the tests say who leads. The leader's engine is the only one that writes; the
//! follower's engine follows the store's watch.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{EventId, Settings, Token, VmId, WhenNotEnabled, samples};
use notbefore_engine::cluster::{Leader, NodeIdentity};
use notbefore_engine::{Engine, EngineSettings, Role, TokenCommand};
use notbefore_listener::host::AllowedHosts;
use notbefore_service::OperatorServerConfig;
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::cluster::Standing;
use notbefore_service::delivery::{Delivery, Ledger};
use notbefore_service::driver::NoCommand;
use notbefore_service::nodes::key::NodeKey;
use notbefore_service::nodes::listener::{self, NodeServer};
use notbefore_service::nodes::tls::NodeTls;
use notbefore_service::nodes::{ForwardLimits, NoGuestNotes, Nodes, NodesParts};
use notbefore_service::operator::access::ConnectionInfo;
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::operator::session::Sessions;
use notbefore_service::operator::{self, Operator, Parts};
use notbefore_service::platform::ScheduledEvents;
use notbefore_service::runtime::{self, EngineHandle};
use notbefore_service::serve::{Loaded, load};
use notbefore_service::sessions::{SessionKey, SignInLimit};
use notbefore_service::stored_key::{KeyKind, StoredKey};
use notbefore_service::tokens;
use notbefore_service::view::Views;
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Outcome, ReadError, Revision, Snapshot, Store, Txn, Watch, WatchError};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

pub const SECRET: &str = "the secret of the first token";
/// The address of operators in these tests.
pub const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

/// The system's clock, off by numbers of seconds that a test sets.
#[derive(Default)]
pub struct OffClock {
    pub wall: AtomicI64,
    pub boot: AtomicU64,
}

impl Clock for OffClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + SignedDuration::from_secs(self.wall.load(Relaxed))
    }

    fn since_boot(&self) -> Duration {
        SystemClock.since_boot() + Duration::from_secs(self.boot.load(Relaxed))
    }
}

pub struct Node {
    pub operator: Operator,
    pub router: Router,
    pub platform: ScheduledEvents,
    pub engine: EngineHandle,
    pub nodes: Arc<Nodes>,
    pub standing: watch::Sender<Standing>,
    pub key: Arc<NodeKey>,
}

/// How a node differs from the others.
pub struct NodeOptions {
    pub name: &'static str,
    pub port: u16,
    pub leads: bool,
    pub limits: ForwardLimits,
    pub clock: Arc<dyn Clock>,
    pub tls: Option<Arc<NodeTls>>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            name: "b",
            port: 9002,
            leads: false,
            limits: ForwardLimits::default(),
            clock: Arc::new(SystemClock),
            tls: None,
        }
    }
}

impl Node {
    pub async fn start(store: &Arc<dyn Store>, options: NodeOptions) -> Self {
        let NodeOptions { name, port, leads, limits, clock, tls } = options;
        let domain = Settings { when_not_enabled: WhenNotEnabled::GiveNotice, ..Settings::default() };
        let settings = EngineSettings { domain, node: name.into() };
        let Loaded { state, revision, .. } = load(&**store).await.unwrap();
        let (engine, effects) = match leads {
            true => Engine::from_state(settings, state, revision, clock.now()),
            false => Engine::follower(settings, state, revision),
        };
        let views = Arc::new(Views::new(false));
        let engine = runtime::start(
            engine,
            effects,
            Arc::clone(store),
            revision,
            Arc::clone(&views),
            Arc::clone(&clock),
            Arc::new(NoCommand),
        );
        let me = NodeIdentity { name: name.to_owned(), epoch: "1".to_owned(), url: String::new(), level: 2 };
        let role = if leads { Role::Lead(revision) } else { Role::Follow };
        let (standing, standings) =
            watch::channel(Standing { role, term: role.fence(), is_ready: true, ..Standing::new(me) });
        let key = Arc::new(NodeKey::new(Arc::clone(store), Arc::clone(&clock)));
        let nodes = Arc::new(Nodes::new(NodesParts {
            standing: standings,
            views: Arc::clone(&views),
            key: Arc::clone(&key),
            tls,
            guest_notes: Arc::new(NoGuestNotes),
            clock: Arc::clone(&clock),
            limits,
        }));
        let (delivery, _) = Delivery::new(Ledger::default());
        let platform = ScheduledEvents::new(
            Arc::clone(&views),
            engine.clone(),
            Arc::default(),
            Arc::clone(&delivery),
            Arc::default(),
            Arc::clone(store),
        )
        .with_nodes(Some(Arc::clone(&nodes)));
        let operator = Arc::new(Parts {
            views,
            engine: engine.clone(),
            store: Arc::clone(store),
            refusals: Arc::default(),
            history: Arc::default(),
            certificate: None,
            token_file: "operator.token".into(),
            clock,
            delivery,
            vm_log: Arc::default(),
            faults: None,
            guest_stats: Arc::default(),
            listening: operator::status::ListeningCache::default(),
            hosts_shown: false,
            change_rate_limit: ChangeRateLimit { burst: NonZeroU32::MIN, per_second: NonZeroU32::MIN },
            slots: OperatorServerConfig::default().limits.slots(),
            hosts: AllowedHosts::new("localhost", &[]),
            sessions: Sessions {
                key: SessionKey::load_or_create(&**store).await.unwrap(),
                sign_ins: SignInLimit::default(),
                port,
                has_tls: false,
                proxies: Vec::new(),
            },
            exports: Arc::new(Semaphore::new(1)),
            cluster: None,
            readiness: None,
            nodes: Some(Arc::clone(&nodes)),
            // The sender is dropped: the service never stops.
            shutdown: watch::channel(false).1,
        });
        let router = operator::router(Arc::clone(&operator));
        Self { operator, router, platform, engine, nodes, standing, key }
    }

    /// Names the leader of this node's standing.
    pub fn follow(&self, leader: Option<Leader>) {
        self.standing.send_modify(|standing| standing.leader = leader);
    }

    /// From now on the node has shown every commit, as if its heartbeats returned: what its view lacks does not exist.
    pub fn become_current(&self) {
        self.standing.send_modify(|standing| standing.watched_at = Some(Duration::MAX));
    }

    /// Serves the node listener; returns its address.
    pub async fn listen(&self, tls: Option<Arc<NodeTls>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = NodeServer {
            operator: Arc::clone(&self.operator),
            router: self.router.clone(),
            nodes: Arc::clone(&self.nodes),
            tls,
        };
        // The test's runtime ends the listener.
        let (forever, shutdown) = watch::channel(false);
        tokio::spawn(async move {
            let _forever = forever;
            listener::serve(listener, server, shutdown).await;
        });
        address
    }

    /// Sends a request to this node's operator API, with the first token.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Answered {
        let with_token = [("authorization", format!("Bearer {SECRET}"))];
        self.ask_with(method, path, &with_token, body).await
    }

    pub async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Answered {
        self.ask_from(CLIENT, method, path, headers, Body::from(body.to_owned())).await
    }

    /// The same from another address.
    pub async fn ask_from(
        &self,
        from: IpAddr,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Body,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut request = request.body(body).unwrap();
        let from = SocketAddr::new(from, 50_000);
        request.extensions_mut().insert(ConnectionInfo {
            from,
            is_loopback: false,
            slot: None,
            sequence: Arc::default(),
        });
        let response = TowerToHyperService::new(self.router.clone()).call(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Answered { status: head.status, headers: head.headers, body }
    }

    /// Waits until the node shows an event of this VM; returns its id and the revision of its scope.
    pub async fn event_of(&self, name: &str) -> (EventId, u64) {
        let shown = async {
            loop {
                let view = self.operator.views.newest();
                let scope = view.scope_of(self.vm(name)).unwrap();
                if let Some(event) = scope.scope.events.first() {
                    return (event.id, scope.revision);
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::PATIENCE, shown).await.expect("the node does not show the event")
    }

    pub fn has_vm(&self, name: &str) -> bool {
        self.operator.views.newest().at_path(&format!("default/default/{name}/{name}")).is_some()
    }

    pub fn vm(&self, name: &str) -> VmId {
        self.operator.views.newest().at_path(&format!("default/default/{name}/{name}")).unwrap()
    }

    pub fn forwarded(&self, outcome: &str) -> u64 {
        self.nodes.forwarded.get_or_create(&[("outcome", outcome.to_owned())]).get()
    }

    pub fn refused(&self, reason: &str) -> u64 {
        self.nodes.refused.get_or_create(&[("reason", reason.to_owned())]).get()
    }
}

#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answered {
    /// Status and code of a problem.
    pub fn problem(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }
}

pub fn leader_at(address: SocketAddr) -> Leader {
    Leader { node: "a".to_owned(), epoch: "1".to_owned(), url: format!("http://{address}") }
}

/// A leader `a` with a token, a key and its listener, and a follower `b` that knows it.
pub struct Cluster {
    pub store: Arc<dyn Store>,
    pub leader: Node,
    pub follower: Node,
    pub address: SocketAddr,
}

impl Cluster {
    pub async fn new() -> Self {
        Self::with(Arc::new(SystemClock), NodeOptions::default()).await
    }

    pub async fn with(leaders_clock: Arc<dyn Clock>, follower: NodeOptions) -> Self {
        let (store, leader) = leader(leaders_clock).await;
        Self::of(store, leader, follower).await
    }

    /// While the returned value is true, the follower shows commits of which the leader does not know the outcome.
    pub async fn with_late_outcomes(follower: NodeOptions) -> (Self, watch::Sender<bool>) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (hold, are_held) = watch::channel(false);
        let leaders: Arc<dyn Store> = Arc::new(LateOutcomes { store: Arc::clone(&store), are_held });
        let leader = leader_on(&leaders, Arc::new(SystemClock)).await;
        (Self::of(store, leader, follower).await, hold)
    }

    async fn of(store: Arc<dyn Store>, leader: Node, follower: NodeOptions) -> Self {
        let follower = Node::start(&store, follower).await;
        let address = leader.listen(None).await;
        follower.follow(Some(leader_at(address)));
        Self { store, leader, follower, address }
    }
}

/// A store whose commits take effect at once, and whose outcomes arrive when a test lets them.
struct LateOutcomes {
    store: Arc<dyn Store>,
    are_held: watch::Receiver<bool>,
}

#[async_trait::async_trait]
impl Store for LateOutcomes {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.store.snapshot().await
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        let outcome = self.store.commit(txn).await;
        let _ = self.are_held.clone().wait_for(|are_held| !are_held).await;
        outcome
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.store.watch(after).await
    }
}

/// A store with a token, a key and a leader.
pub async fn leader(clock: Arc<dyn Clock>) -> (Arc<dyn Store>, Node) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let leader = leader_on(&store, clock).await;
    (store, leader)
}

async fn leader_on(store: &Arc<dyn Store>, clock: Arc<dyn Clock>) -> Node {
    StoredKey::load_or_create(&**store, KeyKind::Node).await.unwrap();
    let options = NodeOptions { name: "a", port: 9001, leads: true, clock, ..NodeOptions::default() };
    let leader = Node::start(store, options).await;
    let token = Token { hash: tokens::hash(SECRET), ..samples::token("root") };
    let create = notbefore_engine::Request::new(samples::operator(), TokenCommand::Create(token));
    leader.engine.ask(create).await.unwrap();
    leader
}

/// Every record under a prefix, as text.
pub async fn records(store: &dyn Store, prefix: &str) -> Vec<String> {
    let page = store.snapshot().await.unwrap().scan(prefix, None, 1_000).await.unwrap();
    page.records.iter().map(|(_, record)| String::from_utf8_lossy(&record.value).into_owned()).collect()
}

pub fn new_vm(name: &str, address: &str) -> String {
    let vm = serde_json::json!({ "name": name, "addresses": [address] });
    serde_json::json!({ "vm": vm }).to_string()
}
