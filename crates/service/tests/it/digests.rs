//! Guests that poll a follower: the leader knows them, and it alone writes what they read.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use notbefore_core::samples::{operation_id, scope_id, vm};
use notbefore_core::{Actor, Cause, EventId, Settings};
use notbefore_engine::records::prefix;
use notbefore_engine::{
    AddVm, Address, Command, Engine, EngineSettings, NewOperation, Node, OperationCommand, Request, State,
    TargetSelector, VmSpec,
};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::delivery::digests::DigestTransport;
use notbefore_service::delivery::recorder::{self, RecorderHandle};
use notbefore_service::delivery::{Delivery, DeliveryRole, Digests};
use notbefore_service::driver::NoCommand;
use notbefore_service::guest::caller::{Caller, ListenerIdentity, ProxyClaim};
use notbefore_service::guest::client::Client;
use notbefore_service::guest::platform::{Platform, ReadThrough, RefusedRequest};
use notbefore_service::platform::ScheduledEvents;
use notbefore_service::runtime::{self, EngineHandle};
use notbefore_service::view::Views;
use notbefore_service::vm_log::VmLog;
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Batch, Outcome, ReadError, Revision, Snapshot, Store, Txn, Watch, WatchError};
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::Listening;
use tokio::sync::watch;

use crate::PATIENCE;

/// A node with a guest listener's platform, but without sockets.
struct TestNode {
    engine: EngineHandle,
    views: Arc<Views>,
    delivery: Arc<Delivery>,
    vm_log: Arc<VmLog>,
    platform: ScheduledEvents,
    digests: Arc<Digests>,
    /// The recorder ends when this is dropped.
    _recorder: RecorderHandle,
}

/// The nodes `a` and `b` may lead; guests poll `c`.
struct TestCluster {
    store: Arc<dyn Store>,
    a: Arc<TestNode>,
    b: Arc<TestNode>,
    c: Arc<TestNode>,
    network: Arc<Network>,
}

/// Carries digests of `c` to the leader, unless it is cut.
struct Network {
    leader: Mutex<Arc<TestNode>>,
    is_cut: AtomicBool,
}

#[async_trait]
impl DigestTransport for Network {
    async fn send(&self, _: &str, digest: Vec<u8>) -> Result<Vec<u8>, String> {
        if self.is_cut.load(Relaxed) {
            return Err("the network is cut".to_owned());
        }
        let leader = Arc::clone(&self.leader.lock().unwrap());
        leader.digests.take("c~1", &digest).unwrap().ok_or_else(|| "this node does not lead".to_owned())
    }
}

/// A store whose watch shows nothing while it is stopped.
struct SlowWatch {
    store: Arc<dyn Store>,
    is_stopped: watch::Receiver<bool>,
}

struct Slow {
    watch: Box<dyn Watch>,
    is_stopped: watch::Receiver<bool>,
}

#[async_trait]
impl Watch for Slow {
    async fn next(&mut self) -> Result<Batch, WatchError> {
        let batch = self.watch.next().await;
        self.is_stopped.wait_for(|is_stopped| !is_stopped).await.unwrap();
        batch
    }
}

#[async_trait]
impl Store for SlowWatch {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.store.snapshot().await
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        self.store.commit(txn).await
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        let (watch, is_stopped) = (self.store.watch(after).await?, self.is_stopped.clone());
        Ok(Box::new(Slow { watch, is_stopped }))
    }
}

impl TestNode {
    /// Only one node of the test writes with its engine: `leads`.
    async fn new(name: &str, store: &Arc<dyn Store>, leads: bool) -> Arc<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let settings = EngineSettings { domain: Settings::default(), node: name.into() };
        let (engine, effects) = match leads {
            true => Engine::new(settings, Vec::new(), Revision(0), clock.now()).unwrap(),
            false => Engine::follower(settings, State::default(), Revision(0)),
        };
        let views = Arc::new(Views::new(false));
        let engine = runtime::start(
            engine,
            effects,
            Arc::clone(store),
            Revision(0),
            Arc::clone(&views),
            Arc::clone(&clock),
            Arc::new(NoCommand),
        );
        let vm_log = Arc::new(VmLog::default());
        let (delivery, recorder) =
            recorder::start(Node::from(name), &views, store, &clock, &vm_log).await.unwrap();
        let platform = ScheduledEvents::new(
            Arc::clone(&views),
            engine.clone(),
            Arc::default(),
            Arc::clone(&delivery),
            Arc::clone(&vm_log),
            Arc::clone(store),
        );
        let digests = Digests::new(
            Arc::clone(&views),
            engine.clone(),
            Arc::clone(&delivery),
            Arc::clone(&vm_log),
            clock,
        );
        Arc::new(Self {
            engine,
            views,
            delivery,
            vm_log,
            platform,
            digests: Arc::new(digests),
            _recorder: recorder,
        })
    }

    async fn add_vm(&self, n: u8, name: &str) {
        let address = Address { network: "default".parse().unwrap(), ip: IpAddr::from([10, 0, 0, n]) };
        let addresses = vec![address];
        let spec = VmSpec { addresses, ..VmSpec::with_defaults(vm(n.into()), name.parse().unwrap()) };
        ask(&self.engine, AddVm { path: name.parse().unwrap(), kind: None, vm: spec }).await;
    }

    /// Whether the engine takes a scope for enabled.
    async fn is_enabled(&self, scope: &str) -> bool {
        let scope = scope_id(scope);
        self.engine.query(move |engine, now| Ok(engine.is_enabled(&scope, now))).await.unwrap()
    }

    fn reads(&self, event: EventId) -> usize {
        self.delivery.ledger().reads(event).count()
    }
}

impl TestCluster {
    /// `a` leads. The VM `web` has an event; `idle` has none and does not poll.
    async fn new() -> (Self, EventId) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let a = TestNode::new("a", &store, true).await;
        let b = TestNode::new("b", &store, false).await;
        let c = TestNode::new("c", &store, false).await;
        a.add_vm(1, "web").await;
        a.add_vm(2, "idle").await;
        let event = schedule(&a, 7).await;
        for node in [&b, &c] {
            eventually("the event is known", || async { node.views.newest().is_live(event) }).await;
        }
        a.digests.take_lead(Revision(5));
        let network =
            Arc::new(Network { leader: Mutex::new(Arc::clone(&a)), is_cut: AtomicBool::new(false) });
        c.digests.set_leader(Some("a~1"));
        tokio::spawn(Arc::clone(&c.digests).run(Arc::clone(&network) as _));
        (Self { store, a, b, c, network }, event)
    }

    /// Another event of `web`.
    async fn schedule(&self, id: u128) -> EventId {
        schedule(&self.a, id).await
    }

    /// The VM `web` polls `c` and reads its event; another of its requests is refused.
    fn poll(&self) {
        let (platform, now) = (&self.c.platform, SystemClock.now());
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        let caller = Caller::new(listener, [10, 0, 0, 1].into(), [10, 0, 0, 254].into());
        let guest = platform.guest(&caller, &ProxyClaim::default()).unwrap();
        let version = EventsVersion::NEWEST;
        platform.record_client(&guest, &Client::new(b"curl", version), now);
        platform.record_poll(&guest, version, now);
        platform.record_delivery(&guest, version, now);
        let refused = RefusedRequest {
            head: b"GET /nothing HTTP/1.1\r\n",
            error: GuestError::NotFound,
            detail: "",
            at: now,
        };
        platform.record_refusal(Some(&guest), &caller, &refused);
    }

    /// Waits until a node that leads knows all about the guest.
    async fn wait_until_known(&self, leader: &TestNode, event: EventId) {
        eventually("the leader knows the guest", || async {
            let listening = leader.views.newest().listening(vm(1), SystemClock.now());
            listening == Listening::Yes
                && leader.reads(event) == 1
                && leader.vm_log.of(vm(1)).entries.len() == 3
                && leader.is_enabled("web").await
        })
        .await;
    }

    /// The keys of stored reads.
    async fn stored_reads(&self) -> Vec<String> {
        let snapshot = self.store.snapshot().await.unwrap();
        let page = snapshot.scan(prefix::SEEN, None, 100).await.unwrap();
        page.records.into_iter().map(|(key, _)| key.to_string()).collect()
    }
}

/// Announces an event of `web`.
async fn schedule(node: &TestNode, id: u128) -> EventId {
    let selector = TargetSelector::Vms(vec![vm(1)]);
    let reboot = NewOperation::with_defaults(operation_id(id), Cause::HostReboot, selector);
    ask(&node.engine, OperationCommand::Schedule(reboot)).await;
    let view = node.views.newest();
    view.scope_of(vm(1)).unwrap().scope.events.last().unwrap().id
}

async fn ask(engine: &EngineHandle, command: impl Into<Command>) {
    engine.ask(Request::new(Actor::Token("root".into()), command.into())).await.unwrap();
}

/// A node that is behind: its engine has a store of its own, with the same VM, and its platform reads the shared one.
async fn lagging_platform(cluster: &TestCluster) -> (ScheduledEvents, Caller, Arc<Views>) {
    let own: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = TestNode::new("d", &own, true).await;
    node.add_vm(1, "web").await;
    let platform = ScheduledEvents::new(
        Arc::clone(&node.views),
        node.engine.clone(),
        Arc::default(),
        Arc::clone(&node.delivery),
        Arc::clone(&node.vm_log),
        Arc::clone(&cluster.store),
    );
    let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
    let caller = Caller::new(listener, [10, 0, 0, 1].into(), [10, 0, 0, 254].into());
    (platform, caller, Arc::clone(&node.views))
}

async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not so: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_knows_guests_of_a_follower_and_alone_writes_their_reads() {
    let (cluster, event) = TestCluster::new().await;
    let (a, c) = (&cluster.a, &cluster.c);
    assert!(a.is_enabled("idle").await, "a new leader judges no scope");
    cluster.poll();
    cluster.wait_until_known(a, event).await;
    a.digests.review(["c~1"]);
    assert_eq!(a.delivery.node_notes.role(), DeliveryRole::Leading);
    assert!(a.is_enabled("web").await && !a.is_enabled("idle").await);
    assert_eq!(a.views.newest().listening(vm(2), SystemClock.now()), Listening::No);

    eventually("the read is stored", || async { !cluster.stored_reads().await.is_empty() }).await;
    assert_eq!(cluster.stored_reads().await, [format!("seen/{event}/a-5")]);
    let stored = recorder::stored_reads(&*cluster.store, event).await.unwrap();
    assert_eq!((stored[0].reads.len(), stored[0].added.len()), (1, 1));
    assert_eq!(c.reads(event), 1, "the follower keeps its reads in case the leader fails");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_leader_gets_everything_again_and_stores_only_what_is_missing() {
    let (cluster, event) = TestCluster::new().await;
    let (a, b, c) = (&cluster.a, &cluster.b, &cluster.c);
    cluster.poll();
    cluster.wait_until_known(a, event).await;
    eventually("the read is stored", || async { !cluster.stored_reads().await.is_empty() }).await;

    a.digests.follow();
    b.digests.take_lead(Revision(9));
    *cluster.network.leader.lock().unwrap() = Arc::clone(b);
    c.digests.set_leader(Some("b~1"));
    cluster.wait_until_known(b, event).await;
    b.digests.review(["c~1"]);
    assert_eq!(b.delivery.node_notes.role(), DeliveryRole::Leading);
    assert_eq!(b.vm_log.of(vm(1)).entries.iter().map(|entry| entry.count).sum::<u64>(), 3, "once each");
    assert_eq!(a.vm_log.of(vm(1)).entries.len(), 0, "the entries of others are the leader's");

    let second = cluster.schedule(8).await;
    eventually("the second event is known", || async { c.views.newest().is_live(second) }).await;
    cluster.poll();
    let expected = [format!("seen/{event}/a-5"), format!("seen/{second}/b-9")];
    eventually("the second read is stored", || async {
        let mut stored = cluster.stored_reads().await;
        stored.sort_by_key(|key| key.ends_with("b-9"));
        stored == expected
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_go_along_with_a_forwarded_request() {
    let (cluster, _) = TestCluster::new().await;
    let (a, c) = (&cluster.a, &cluster.c);
    eventually("everything was sent", || async {
        a.digests.review(["c~1"]);
        a.delivery.node_notes.role() == DeliveryRole::Leading
    })
    .await;
    assert!(!a.is_enabled("web").await);
    cluster.network.is_cut.store(true, Relaxed);
    cluster.poll();
    let notes = c.digests.notes_for_request().expect("the poll is not acknowledged");
    a.digests.take_notes_of_request(&notes).unwrap();
    assert!(a.is_enabled("web").await, "a request after the poll gives notice");
    assert!(a.digests.take_notes_of_request(b"forged").is_err());
    assert_eq!(c.digests.take("b~1", b"").ok(), Some(None), "a follower takes no digests");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_read_of_an_event_that_the_leader_does_not_show_yet_is_kept() {
    let (cluster, event) = TestCluster::new().await;
    let stop = watch::Sender::new(false);
    let slow = SlowWatch { store: Arc::clone(&cluster.store), is_stopped: stop.subscribe() };
    let slow = TestNode::new("d", &(Arc::new(slow) as _), false).await;
    eventually("the event is known", || async { slow.views.newest().is_live(event) }).await;
    cluster.a.digests.follow();
    slow.digests.take_lead(Revision(9));
    *cluster.network.leader.lock().unwrap() = Arc::clone(&slow);
    cluster.c.digests.set_leader(Some("d~1"));

    stop.send_replace(true);
    let second = cluster.schedule(8).await;
    eventually("the follower shows it", || async { cluster.c.views.newest().is_live(second) }).await;
    cluster.poll();
    eventually("the read is acknowledged", || async {
        slow.is_enabled("web").await
            && cluster.c.reads(second) == 1
            && cluster.c.digests.notes_for_request().is_none()
    })
    .await;
    assert!(!slow.views.newest().is_live(second), "the leader is behind");
    assert_eq!(slow.reads(second), 0);

    stop.send_replace(false);
    eventually("the leader shows it", || async { slow.views.newest().is_live(second) }).await;
    eventually("the leader knows the read", || async {
        slow.digests.review(["c~1"]);
        slow.reads(second) == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_that_is_ahead_of_its_node_is_answered_from_the_store() {
    let (cluster, event) = TestCluster::new().await;
    let (platform, caller, views) = lagging_platform(&cluster).await;
    let guest = platform.guest(&caller, &ProxyClaim::default()).unwrap();
    let version = EventsVersion::NEWEST;
    assert_eq!(platform.document(&guest, version).incarnation, 1, "the node is behind");
    // The scope's document at `a` has incarnation 2.
    assert!(matches!(platform.read_through(&guest, 2, version).await, ReadThrough::NotModified));

    cluster.schedule(8).await;
    let ReadThrough::Document { guest: sent, rendered } = platform.read_through(&guest, 2, version).await
    else {
        panic!("the store has incarnation 3");
    };
    assert_eq!(rendered.incarnation, 3);
    assert!(
        views.shown_to() > Revision(views.complete_to().0),
        "a note of this read is about a later commit"
    );
    let body = String::from_utf8(rendered.body.to_vec()).unwrap();
    assert!(
        body.contains(&event.to_string().to_uppercase()) && body.contains("\"DocumentIncarnation\":3"),
        "{body}"
    );
    platform.record_delivery(&sent, version, SystemClock.now());

    let ReadThrough::Document { rendered, .. } = platform.read_through(&guest, 99, version).await else {
        panic!("no node has sent this tag");
    };
    assert_eq!(rendered.incarnation, 3, "the current document");
}
