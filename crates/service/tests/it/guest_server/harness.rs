//! A server with two VMs in two scopes, and a client that checks every byte.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use notbefore_service::clock::Clock;
use notbefore_service::guest::GuestServer;
use notbefore_service::guest::caller::{Caller, ListenerIdentity, ProxyClaim};
use notbefore_service::guest::client::Client as GuestClient;
use notbefore_service::guest::interception::Interception;
use notbefore_service::guest::platform::{
    ApproveError, GuestHandle, Platform, ReadThrough, RefusedRequest, Rendered,
};
use notbefore_service::guest::rate::RateState;
use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};
use notbefore_service::guest::stats::GuestStats;
use notbefore_service::proxy::{ProxyConfig, TrustedProxies};
use notbefore_service::wait_queues::{Affected, WaitQueues};
use notbefore_wire::guest::instance::{Instance, Interface, IpAddress};
use notbefore_wire::guest::version::EventsVersion;
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// An event of VM a's scope, and one of VM b's.
pub const EVENT_A: &str = "602D9444-D2CD-49C7-8624-8643E7171297";
pub const EVENT_B: &str = "0B1FBE6C-1A4D-4B63-9C3B-6F7C0C6E2A01";
/// Events of both scopes whose approval fails.
pub const EVENT_LOST: &str = "00000000-0000-0000-0000-000000000001";
pub const EVENT_DOWN: &str = "00000000-0000-0000-0000-000000000002";
/// An event whose approval finds that the caller's address now belongs to another VM.
pub const EVENT_MOVED: &str = "00000000-0000-0000-0000-000000000004";
/// An event of both scopes whose approval waits for [`TestPlatform::gate`].
pub const EVENT_SLOW: &str = "00000000-0000-0000-0000-000000000003";

pub const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A test platform: VMs by name, which can change while connections are open.
pub struct TestPlatform {
    pub approved: Mutex<Vec<(String, Vec<Uuid>)>>,
    /// VMs by source address.
    pub by_address: Mutex<HashMap<String, String>>,
    /// Number of lookups by address.
    pub lookups: AtomicU64,
    pub gate: Semaphore,
    /// Incarnations of scopes that have changed; all start with 7.
    incarnations: Mutex<HashMap<String, u64>>,
    wait_queues: WaitQueues<String>,
    /// A VM whose document changes just before a waiter registers.
    pub changes_early: Mutex<Option<String>>,
    /// A VM whose document changes just after a waiter registered.
    pub changes_late: Mutex<Option<String>>,
    /// Polls by VM, and deliveries by VM and incarnation.
    pub polled: Mutex<Vec<String>>,
    pub delivered: Mutex<Vec<(String, u64)>>,
    /// Clients by VM: each that was recorded.
    pub clients: Mutex<Vec<(String, String)>>,
    pub refused: Mutex<Vec<Refused>>,
    rate_states: Mutex<HashMap<String, Arc<RateState>>>,
    /// The incarnation of all documents in the store, if other nodes write to it.
    pub stored: Mutex<Option<u64>>,
    /// Spaces after VM b's document, to make it large.
    pub padding: usize,
    /// One proxy, at 127.0.0.9, with [`SECRET`].
    proxies: TrustedProxies,
}

/// A refused request, as the platform gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub vm: Option<String>,
    /// The first line of the head.
    pub line: String,
    pub reason: &'static str,
    pub detail: String,
}

impl TestPlatform {
    fn incarnation(&self, scope: &str) -> u64 {
        self.incarnations.lock().unwrap().get(scope).copied().unwrap_or(7)
    }

    /// Changes a VM's document and notifies its waiters.
    pub fn change(&self, vm: &str) {
        self.set_incarnation(vm, self.incarnation(vm) + 1);
    }

    pub fn set_incarnation(&self, vm: &str, incarnation: u64) {
        self.incarnations.lock().unwrap().insert(vm.to_owned(), incarnation);
        self.notify(vm);
    }

    /// Maps an address to another VM, or to none.
    pub fn map(&self, address: &str, vm: Option<&str>) {
        let mut by_address = self.by_address.lock().unwrap();
        let before = match vm {
            Some(vm) => by_address.insert(address.to_owned(), vm.to_owned()),
            None => by_address.remove(address),
        };
        drop(by_address);
        before.iter().for_each(|vm| self.notify(vm));
    }

    /// Notifies a VM's waiters.
    pub fn notify(&self, vm: &str) {
        self.wait_queues.notify(Affected::Keys(vec![vm.to_owned()]));
    }

    pub fn has_no_waiters(&self) -> bool {
        self.wait_queues.is_empty()
    }
}

/// The proxy's secret.
pub const SECRET: &str = "correct horse battery staple";

fn proxies() -> TrustedProxies {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, SECRET).unwrap();
    let config = ProxyConfig {
        addresses: vec!["127.0.0.9".parse().unwrap()],
        secret_file: Some(file.path().to_owned()),
    };
    TrustedProxies::load(&config).unwrap()
}

/// The signature of this id with this secret.
pub fn signature(secret: &str, id: &str) -> String {
    let key = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    data_encoding::HEXLOWER.encode(&key.chain_update(id).finalize().into_bytes())
}

pub struct TestGuest {
    name: String,
    is_proxied: bool,
    rate_state: Arc<RateState>,
}

impl GuestHandle for TestGuest {
    fn vm(&self) -> Uuid {
        vm_id(&self.name)
    }

    fn rate_state(&self) -> Option<&RateState> {
        Some(&self.rate_state)
    }

    fn is_proxied(&self) -> bool {
        self.is_proxied
    }
}

pub fn vm_id(name: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
}

impl Platform for TestPlatform {
    type Guest = TestGuest;
    type Scope = String;

    fn is_trusted_proxy(&self, caller: &Caller) -> bool {
        self.proxies.contains(caller)
    }

    fn guest(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<TestGuest> {
        let found = |name: String, is_proxied| {
            let rate_state = Arc::clone(self.rate_states.lock().unwrap().entry(name.clone()).or_default());
            Some(TestGuest { name, is_proxied, rate_state })
        };
        if caller.is_proxy {
            let vm = self.proxies.vm(caller, claim)?;
            let name = ["a", "b"].into_iter().find(|name| vm_id(name) == vm)?;
            return found(name.to_owned(), true);
        }
        let source = caller.source.to_string();
        let name = match &*caller.listener {
            ListenerIdentity::Bound(vm) => vm.clone(),
            ListenerIdentity::Network(_) => {
                self.lookups.fetch_add(1, Ordering::Relaxed);
                self.by_address.lock().unwrap().get(&source)?.clone()
            }
        };
        found(name, false)
    }

    fn path(&self, guest: &TestGuest) -> String {
        format!("scope/{}", guest.name)
    }

    fn record_client(&self, guest: &TestGuest, client: &GuestClient<'_>, _: Timestamp) {
        let agent = String::from_utf8_lossy(client.agent).into_owned();
        self.clients.lock().unwrap().push((guest.name.clone(), agent));
    }

    fn record_refusal(&self, guest: Option<&TestGuest>, _: &Caller, refused: &RefusedRequest<'_>) {
        let head = String::from_utf8_lossy(refused.head);
        self.refused.lock().unwrap().push(Refused {
            vm: guest.map(|guest| guest.name.clone()),
            line: head.lines().next().unwrap_or_default().to_owned(),
            reason: refused.error.reason(),
            detail: refused.detail.to_owned(),
        });
    }

    fn record_poll(&self, guest: &TestGuest, _: EventsVersion, _: Timestamp) {
        self.polled.lock().unwrap().push(guest.name.clone());
    }

    fn document(&self, guest: &TestGuest, version: EventsVersion) -> Rendered {
        let name = &guest.name;
        let late = if self.has_no_waiters() { None } else { self.changes_late.lock().unwrap().take() };
        late.iter().for_each(|vm| self.change(vm));
        let incarnation = self.incarnation(name);
        let body = format!(r#"{{"DocumentIncarnation":{incarnation},"Events":["{name} at {version}"]}}"#);
        let padding = if name == "b" { " ".repeat(self.padding) } else { String::new() };
        let edition = incarnation * 2 + u64::from(name == "b");
        Rendered { edition, incarnation, body: Bytes::from(body + &padding) }
    }

    fn may_lag(&self) -> bool {
        self.stored.lock().unwrap().is_some()
    }

    async fn read_through(
        &self,
        guest: &TestGuest,
        tag: u64,
        version: EventsVersion,
    ) -> ReadThrough<TestGuest> {
        let stored = self.stored.lock().unwrap().unwrap();
        if stored == tag {
            return ReadThrough::NotModified;
        }
        self.incarnations.lock().unwrap().insert(guest.name.clone(), stored);
        let guest = TestGuest {
            name: guest.name.clone(),
            is_proxied: guest.is_proxied,
            rate_state: Arc::clone(&guest.rate_state),
        };
        ReadThrough::Document { rendered: self.document(&guest, version), guest }
    }

    fn scope(&self, guest: &TestGuest) -> String {
        let early = self.changes_early.lock().unwrap().take();
        early.iter().for_each(|vm| self.change(vm));
        guest.name.clone()
    }

    fn wait_queues(&self) -> &WaitQueues<String> {
        &self.wait_queues
    }

    fn record_delivery(&self, guest: &TestGuest, _: EventsVersion, _: Timestamp) {
        self.delivered.lock().unwrap().push((guest.name.clone(), self.incarnation(&guest.name)));
    }

    async fn instance(&self, guest: &TestGuest) -> Option<Instance> {
        Some(Instance {
            name: guest.name.clone(),
            interfaces: vec![Interface {
                ipv4: vec![IpAddress { private: "10.0.0.10".into(), public: String::new() }],
                ..Interface::default()
            }],
            ..Instance::default()
        })
    }

    async fn approve(
        &self,
        guest: &TestGuest,
        _caller: &Caller,
        events: Vec<Uuid>,
        _now: Timestamp,
    ) -> Result<(), ApproveError> {
        let id = |text: &str| text.parse::<Uuid>().unwrap();
        let own = if guest.name == "a" { EVENT_A } else { EVENT_B };
        for event in &events {
            match *event {
                event if event == id(EVENT_LOST) => return Err(ApproveError::OutcomeUnknown),
                event if event == id(EVENT_DOWN) => return Err(ApproveError::Unavailable("no store".into())),
                event if event == id(EVENT_MOVED) => return Err(ApproveError::UnknownCaller),
                event if event == id(EVENT_SLOW) => self.gate.acquire().await.unwrap().forget(),
                event if event == id(own) => {}
                event => return Err(ApproveError::UnknownEvent(event)),
            }
        }
        self.approved.lock().unwrap().push((guest.name.clone(), events));
        Ok(())
    }
}

/// A clock that the test sets.
pub struct TestClock {
    now_ms: AtomicI64,
    moves: watch::Sender<()>,
}

impl TestClock {
    pub fn advance_milliseconds(&self, milliseconds: i64) {
        self.now_ms.fetch_add(milliseconds, Ordering::Relaxed);
        self.moves.send_replace(());
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms.load(Ordering::Relaxed)).unwrap()
    }

    fn moves(&self) -> Option<watch::Receiver<()>> {
        Some(self.moves.subscribe())
    }
}

/// The client's address and listener.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// The listener bound to VM a.
    A,
    /// The listener bound to VM b.
    B,
    /// The network's listener, from this source address.
    Address(&'static str),
}

/// Settings without a rate limit, because the test's clock does not advance.
pub fn unlimited() -> GuestSettings {
    GuestSettings { rate_limit: None, ..GuestSettings::default() }
}

pub struct TestServer {
    pub platform: Arc<TestPlatform>,
    pub clock: Arc<TestClock>,
    pub stats: Arc<GuestStats>,
    pub shutdown: watch::Sender<bool>,
    pub serving: JoinHandle<()>,
    addresses: [SocketAddr; 3],
}

impl TestServer {
    pub async fn open(settings: GuestSettings) -> TestServer {
        TestServer::open_padded(settings, 0).await
    }

    pub async fn with_mode(mode: Mode) -> TestServer {
        TestServer::open(GuestSettings { mode, ..unlimited() }).await
    }

    pub async fn with_limits(limits: Limits) -> TestServer {
        TestServer::open(GuestSettings { limits, ..unlimited() }).await
    }

    pub async fn open_padded(settings: GuestSettings, padding: usize) -> TestServer {
        TestServer::open_with(settings, padding, Arc::default()).await
    }

    /// A server that records requests and applies faults.
    pub async fn intercepted(mode: Mode, interception: Arc<Interception>) -> TestServer {
        TestServer::open_with(GuestSettings { mode, ..unlimited() }, 0, interception).await
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn open_with(
        settings: GuestSettings,
        padding: usize,
        interception: Arc<Interception>,
    ) -> TestServer {
        // The proxy's address is also a VM's address; this must have no effect.
        let by_address = [("127.0.0.2", "a"), ("127.0.0.3", "b"), ("127.0.0.9", "b")];
        let platform = Arc::new(TestPlatform {
            approved: Mutex::default(),
            by_address: Mutex::new(by_address.map(|(from, name)| (from.to_owned(), name.to_owned())).into()),
            lookups: AtomicU64::new(0),
            gate: Semaphore::new(0),
            incarnations: Mutex::default(),
            wait_queues: WaitQueues::default(),
            changes_early: Mutex::default(),
            changes_late: Mutex::default(),
            polled: Mutex::default(),
            delivered: Mutex::default(),
            clients: Mutex::default(),
            refused: Mutex::default(),
            rate_states: Mutex::default(),
            stored: Mutex::default(),
            padding,
            proxies: proxies(),
        });
        // Mon, 19 Sep 2016 18:29:47 GMT
        let now_ms = AtomicI64::new(1_474_309_787_000);
        let clock = Arc::new(TestClock { now_ms, moves: watch::channel(()).0 });
        let server = GuestServer::new(Arc::clone(&platform), settings, Arc::clone(&clock) as Arc<dyn Clock>);
        let server = Arc::new(server.with_interception(interception));
        let (shutdown, closing) = watch::channel(false);
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for identity in [
            ListenerIdentity::Bound("a".to_owned()),
            ListenerIdentity::Bound("b".to_owned()),
            ListenerIdentity::Network("default".to_owned()),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            listeners.push((listener, identity));
        }
        let serving = tokio::spawn(server.serve(listeners, closing).unwrap());
        let stats = server.stats();
        TestServer { platform, clock, stats, shutdown, serving, addresses: addresses.try_into().unwrap() }
    }

    pub async fn connect(&self, from: From) -> Client {
        self.connect_with(TcpSocket::new_v4().unwrap(), from).await
    }

    pub async fn connect_with(&self, socket: TcpSocket, from: From) -> Client {
        let [a, b, network] = self.addresses;
        let (source, address) = match from {
            From::A => ("127.0.0.1", a),
            From::B => ("127.0.0.1", b),
            From::Address(source) => (source, network),
        };
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, read: Vec::new() }
    }

    /// Sends a request on a new connection and reads its response.
    pub async fn request(&self, from: From, request: impl AsRef<[u8]>) -> Response {
        let mut client = self.connect(from).await;
        let method_is_head = request.as_ref().starts_with(b"HEAD ");
        client.send(request).await;
        client.response_to(method_is_head).await
    }

    /// Shuts the server down and waits for it.
    pub async fn close(self) {
        self.shutdown.send_replace(true);
        with_timeout(self.serving).await.unwrap();
    }
}

/// Awaits a future; a timeout fails the test.
pub async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("timed out")
}

/// Waits until the server's millisecond stopwatch has advanced since the last response. The next request on an open
/// connection is then later for the server too.
pub async fn later() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// Waits until a condition holds.
pub async fn until(mut so: impl FnMut() -> bool) {
    with_timeout(async {
        while !so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// The whole head, with the request id checked and replaced by `ID`.
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub fn closes(&self) -> bool {
        self.header("Connection") == Some("close")
    }
}

impl Client {
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub async fn response(&mut self) -> Response {
        self.response_to(false).await
    }

    pub async fn response_to(&mut self, method_is_head: bool) -> Response {
        let head = self.read_head().await;
        let status = head[9..12].parse().unwrap();
        let mut response = Response { status, head, body: String::new() };
        if !method_is_head && let Some(length) = response.header("Content-Length") {
            let length: usize = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.read_more().await, "the response ends in its body");
            }
            response.body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        }
        response.head = mask_request_id(&response.head);
        response
    }

    /// Reads up to and including the next empty line.
    pub async fn read_head(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                return String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
            }
            assert!(self.read_more().await, "closed without a response");
        }
    }

    /// Whether the server closed the connection without sending more.
    pub async fn is_closed(&mut self) -> bool {
        // A connection that is closed before the server accepts it is reset.
        self.read.is_empty()
            && matches!(with_timeout(self.stream.read_buf(&mut self.read)).await, Ok(0) | Err(_))
    }

    async fn read_more(&mut self) -> bool {
        match with_timeout(self.stream.read_buf(&mut self.read)).await {
            Ok(read) => read > 0,
            Err(error) => panic!("the connection was reset: {error}"),
        }
    }
}

fn mask_request_id(head: &str) -> String {
    let masked = head.lines().map(|line| match line.strip_prefix("x-ms-request-id: ") {
        Some(id) => {
            assert_eq!(id, id.parse::<Uuid>().unwrap().to_string(), "a lower-case GUID");
            "x-ms-request-id: ID".to_owned()
        }
        None => line.to_owned(),
    });
    masked.collect::<Vec<_>>().join("\r\n") + "\r\n"
}

/// A GET with the headers that every client sends.
pub fn get(target: &str) -> String {
    get_with(target, "Metadata: true\r\n")
}

pub fn get_with(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 169.254.169.254\r\n{headers}\r\n")
}

pub fn post(target: &str, body: &str) -> String {
    post_with(target, "Metadata: true\r\n", body)
}

pub fn post_with(target: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {target} HTTP/1.1\r\nHost: 169.254.169.254\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

pub fn approval(event: &str) -> String {
    format!(r#"{{"StartRequests":[{{"EventId":"{event}"}}]}}"#)
}
