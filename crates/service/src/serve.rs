//! `serve`: opens the store, starts the engine and opens the listeners; at shutdown it closes them in reverse order.

use std::io;
use std::net::SocketAddr;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Actor, Fact, Name, Policy, Prefix, ScopeKind, ScopePath, VmId};
use notbefore_engine::cluster::{CLUSTER, Role};
use notbefore_engine::records::{self, Boot, LOADED};
use notbefore_engine::{
    AddVm, ClockNews, ClockReading, DecodeError, Engine, EngineSettings, Failure, FirstRun, Input, Loader,
    Node, Prepared, PutScope, Request, ScopeChange, State, VmSpec, prepare,
};
use notbefore_etcd::{Compactor, EtcdStore};
use notbefore_listener::host::AllowedHosts;
use notbefore_listener::log_limit::LogRateLimit;
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Key, ReadError, Revision, Store, Tally, Versioned};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::clock::{Clock, Stopwatch, boot_id};
use crate::cluster::Standing;
use crate::cluster::etcd_status::EtcdStatusCache;
use crate::cluster::join::{ConnectedStore, JoinError, Joining};
use crate::cluster::joined::{Claimant, JoinedCluster};
use crate::cluster::monitor::ClusterMonitor;
use crate::cluster::readiness::{self, Reviewer};
use crate::config::{GuestListener, ServeConfig};
use crate::data_dir::{self, DataDir, DataDirError, make_private, write_atomic};
use crate::delivery::digests::Digests;
use crate::delivery::{Delivery, recorder};
use crate::driver::{Driver, NoCommand};
use crate::exec::Exec;
use crate::exec::lease::LeaseEnd;
use crate::faults::Faults;
use crate::fenced_store::FencedStore;
use crate::follow::LOAD_PAGE;
use crate::guest::GuestServer;
use crate::guest::caller::ListenerIdentity;
use crate::guest::interception::Interception;
use crate::integrity::{IntegrityError, STALL_MAX};
use crate::janitor::Janitor;
use crate::listen::{BindError, ListenAddress};
use crate::nodes::key::NodeKey;
use crate::nodes::listener::NodeServer;
use crate::nodes::tls::NodeTls;
use crate::nodes::{self, ForwardLimits, Nodes, NodesConfigError, NodesParts};
use crate::operator::server::OperatorServer;
use crate::operator::session::Sessions;
use crate::operator::tls::{Certificate, TlsError};
use crate::platform::ScheduledEvents;
use crate::proxy::{ProxyError, TrustedProxies};
use crate::refusals::{RefusalSink, Refusals};
use crate::running::{Addresses, Listener, Listeners, Reloads, Running};
use crate::runtime::{self, EngineHandle};
use crate::scan::Scan;
use crate::sessions::{SessionKey, SignInLimit, create_link, record_fact};
use crate::starting::{Starting, StartingError};
use crate::stored_key::StoredKeyError;
use crate::tokens::{LostToken, TokenError};
use crate::view::{View, Views};
use crate::vm_log::VmLog;
use crate::{event_log, fleet, integrity, janitor, names, operator, tokens};

/// More than a cluster has nodes.
const CLUSTER_RECORDS_MAX: usize = 1_000;
/// Interval at which a starting node tries again to use etcd.
const RETRY_START_EVERY: Duration = Duration::from_secs(1);
/// Interval at which a starting node says what it waits for.
pub(crate) const SAY_WAITING_EVERY: Duration = Duration::from_secs(10);
/// Interval at which VMs with a listener of their own are recorded as polled.
const BOUND_POLL_INTERVAL: Duration = Duration::from_secs(3_600);
/// Turns of the agreed compaction in its interval; in most, nothing is compacted.
const COMPACTION_TURNS: u32 = 10;
/// More than the listeners of any service have.
const READY_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why the service could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] DataDirError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store is damaged.
    #[error(transparent)]
    Damaged(#[from] IntegrityError),
    /// A record cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The first token cannot be created.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A key of the service itself cannot be read or created.
    #[error(transparent)]
    StoredKey(#[from] StoredKeyError),
    /// An address cannot be bound.
    #[error("cannot listen at {at} for {what}: {error}; {}", .error.hint(.flag))]
    Listen { at: String, what: &'static str, flag: &'static str, error: BindError },
    /// The listeners of a starting node cannot be answered.
    #[error("cannot answer callers while this node starts: {0}; raise the limit of open files")]
    Starting(#[from] StartingError),
    /// The guest listener's threads cannot be started.
    #[error("cannot start the threads of the guest listener")]
    GuestServer(#[source] io::Error),
    /// The operator listener would accept remote connections without TLS.
    #[error(
        "the operator listener at {0} would be open to the network without encryption; set --operator-cert and --operator-key, use a loopback address, or set --operator-without-tls to allow it"
    )]
    OperatorExposed(SocketAddr),
    /// The settings of the node listener cannot be used.
    #[error(transparent)]
    Nodes(#[from] NodesConfigError),
    /// Two listeners have the same address.
    #[error("{0} and {1} have the same address, {2}; give each listener an address or a port of its own")]
    DuplicateAddress(String, String, ListenAddress),
    /// The operator listener's certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The ready file would replace another file.
    #[error(
        "--ready-file {}: the file exists and is no ready file of a service; remove it, or name another file", .0.display()
    )]
    ReadyFile(PathBuf),
    /// A command of the service itself at the start was refused.
    #[error("cannot prepare the fleet: {0}")]
    Prepare(#[from] Failure),
    /// The configuration of trusted proxies is invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The name of a bound listener matches several VMs.
    #[error("--guest-vm {name}: {error}")]
    GuestVm { name: String, error: String },
    /// The directory for results of commands is a symbolic link.
    #[error("{} is a symbolic link: results of commands must be in the data directory itself; remove the link", .0.display())]
    ResultsLink(PathBuf),
    /// Settings that create VMs at the start.
    #[error(
        "--fleet and --guest-vm create VMs at the start, which each node of a cluster would do; use 'notbefore fleet apply' and 'notbefore vm add' once the cluster runs"
    )]
    NotInCluster,
    /// Faults are kept by each node for itself, so a guest would see them or not by the node that answers.
    #[error("--faults is for a single node: leave it out, or leave out the settings of the cluster")]
    FaultsInCluster,
    /// The node cannot join its cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A small file could not be written.
    #[error("cannot write {path}")]
    File { path: PathBuf, source: io::Error },
}

impl ServeError {
    /// Whether the store may be usable in a moment.
    fn is_store_away(&self) -> bool {
        match self {
            Self::Join(error) => error.is_store_away(),
            Self::Read(ReadError::Unavailable(_)) => true,
            Self::Read(ReadError::Damaged { .. } | ReadError::Compacted)
            | Self::Token(_)
            | Self::OperatorExposed(_)
            | Self::Nodes(_)
            | Self::DuplicateAddress(..)
            | Self::Tls(_)
            | Self::ReadyFile(_)
            | Self::Proxy(_)
            | Self::GuestVm { .. }
            | Self::NotInCluster
            | Self::FaultsInCluster
            | Self::Data(_)
            | Self::Damaged(_)
            | Self::Decode(_)
            | Self::Listen { .. }
            | Self::StoredKey(_)
            | Self::Starting(_)
            | Self::GuestServer(_)
            | Self::Prepare(_)
            | Self::ResultsLink(_)
            | Self::File { .. } => false,
        }
    }

    /// Whether a setting, or a file that it names, is wrong. Other errors are of the machine, the network or the store.
    pub fn is_setting(&self) -> bool {
        match self {
            Self::Token(error) => error.is_setting(),
            Self::OperatorExposed(_)
            | Self::Nodes(_)
            | Self::DuplicateAddress(..)
            | Self::Tls(_)
            | Self::ReadyFile(_)
            | Self::Proxy(_)
            | Self::GuestVm { .. }
            | Self::NotInCluster
            | Self::FaultsInCluster => true,
            Self::Data(_)
            | Self::Read(_)
            | Self::Damaged(_)
            | Self::Decode(_)
            | Self::Listen { .. }
            | Self::StoredKey(_)
            | Self::Starting(_)
            | Self::GuestServer(_)
            | Self::Prepare(_)
            | Self::ResultsLink(_)
            | Self::Join(_)
            | Self::File { .. } => false,
        }
    }
}

/// Called once everything listens.
pub type Ready<'a> = Box<dyn FnOnce(&Running) + Send + 'a>;

/// [`serve`] on a thread of its own, which its future does not leave; its tasks run on the current runtime.
pub fn serve_in_background(
    config: ServeConfig,
    shutdown: watch::Receiver<bool>,
    ready: Ready<'static>,
) -> JoinHandle<Result<(), ServeError>> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(serve(config, shutdown, ready)))
}

/// Runs the service until `shutdown` turns true, or another process takes the node's name. Calls `ready` once everything
/// listens.
///
/// Nothing here is generic and the future is boxed, so that this crate alone compiles the service: the guest server too,
/// with the optimisation of this crate. An `async fn` is compiled in each crate that awaits it.
pub fn serve<'a>(
    config: ServeConfig,
    shutdown: watch::Receiver<bool>,
    ready: Ready<'a>,
) -> Pin<Box<dyn Future<Output = Result<(), ServeError>> + 'a>> {
    Box::pin(run(config, shutdown, ready))
}

async fn run(
    config: ServeConfig,
    shutdown: watch::Receiver<bool>,
    ready: Ready<'_>,
) -> Result<(), ServeError> {
    let clock: Arc<dyn Clock> = Arc::clone(&config.clock.0);
    config.check()?;
    let certificate = match &config.operator_certificate {
        Some(files) => Some(Arc::new(Certificate::load(files.clone(), clock.now())?)),
        None => None,
    };
    // Bind listeners before anything is written: a port in use then leaves no files.
    let operator_listener = bind(&config.operator.into(), "operators", "--operator")?;
    let (mut guest_listeners, mut guest_addresses) = (Vec::new(), Vec::new());
    for GuestListener { network, at } in &config.guest {
        let listener = bind(at, "guests", "--guest")?;
        let at = ListenAddress { address: local(&listener, at.address), ..at.clone() };
        guest_addresses.push(GuestListener { network: network.clone(), at });
        guest_listeners.push((listener, ListenerIdentity::Network(network.to_ascii_lowercase())));
    }
    let mut bound_listeners = Vec::new();
    for one in &config.guest_vms {
        let listener = bind(&one.at, "one VM", "--guest-vm")?;
        let at = ListenAddress { address: local(&listener, one.at.address), ..one.at.clone() };
        bound_listeners.push((listener, at));
    }
    for one in &config.guest_sockets {
        let wrong = |error: io::Error| ServeError::GuestVm { name: one.vm.clone(), error: error.to_string() };
        bound_listeners.push(duplicate(&one.listener).map_err(wrong)?);
    }
    let node_listener = match &config.cluster {
        Some(_) => Some(bind(&config.nodes.listen.into(), "other nodes", "--node-listen")?),
        None => None,
    };
    let node_tls = match config.nodes.tls.clone().filter(|_| config.cluster.is_some()) {
        Some(files) => Some(Arc::new(NodeTls::load(files, clock.now())?)),
        None => None,
    };
    let proxies = Arc::new(TrustedProxies::load(&config.proxy)?);

    let starting = match &config.cluster {
        Some(_) => {
            let starting = Starting::default();
            guest_listeners.iter().try_for_each(|(listener, _)| starting.answer_guests(listener))?;
            let certificate = certificate.clone().map(|certificate| certificate as _);
            starting.answer_operators(&operator_listener, certificate)?;
            Some(starting)
        }
        None => None,
    };

    // Connect before anything is written, too.
    let shared = match &config.cluster {
        Some(cluster) => {
            DataDir::check_for_node(&config.data)?;
            let connect = async || {
                let connected = ConnectedStore::connect(&cluster.store).await?;
                connected.check_joined(&config.data)?;
                Ok(connected)
            };
            let Some(connected) = retry_until_stopped(&shutdown, connect).await? else { return Ok(()) };
            Some(connected)
        }
        None => None,
    };
    let etcd = shared.as_ref().and_then(|shared| shared.etcd.clone());

    let (dir, directory_lock) = match &config.cluster {
        Some(_) => DataDir::prepare_for_node(&config.data).map(|(dir, lock)| (dir, Some(lock)))?,
        None => (DataDir::prepare(&config.data)?, None),
    };
    let mut joined = None;
    let (raw_store, joining): (Arc<dyn Store>, _) = match (&config.cluster, shared) {
        (Some(cluster), Some(shared)) => {
            let listens_at = node_listener.as_ref().map(|listener| local(listener, config.nodes.listen));
            let url = listens_at.map(|address| config.nodes.url(address)).unwrap_or_default();
            let begin = async || {
                let joining = Joining::begin(cluster, &*shared.store, url.clone(), &*clock).await?;
                Ok((joining, shared.claim(Claimant::Node).await?))
            };
            let Some((joining, cluster)) = retry_until_stopped(&shutdown, begin).await? else {
                return Ok(());
            };
            joined = cluster;
            (joining.leveled(shared.store), Some(joining))
        }
        (Some(_), None) | (None, _) if config.in_memory => (Arc::new(MemoryStore::new()), None),
        (Some(_), None) | (None, _) => (Arc::new(dir.open_store()?), None),
    };
    let store: Arc<dyn Store> = Arc::new(match &joining {
        Some(joining) => joining.fenced(Arc::clone(&raw_store)),
        None => FencedStore::alone(Arc::clone(&raw_store)),
    });
    // A service that was killed has left its ready file. The lock is held, so it is not that of another one.
    if let Some(file) = &config.ready_file {
        remove_ready_file(file)?;
    }
    let first_token = config.root_token_file.as_deref();
    if joining.is_none() {
        let first = tokens::ensure_first(&*store, &dir, first_token, LostToken::Replace, clock.now());
        unstalled(Some(STALL_MAX), first).await??;
    }
    let views = Arc::new(Views::new(config.rfc1123_everywhere));
    let exec = prepare_exec(&config, &dir, joining.as_ref().map(Joining::lease_end)).await?;
    let driver: Arc<dyn Driver> = match &exec {
        Some(exec) => Arc::clone(exec) as _,
        None => Arc::new(NoCommand),
    };
    let node = match &joining {
        Some(joining) => Node::from(&*joining.identity().epoch),
        None => Node::from(&Uuid::new_v4().simple().to_string()[..8]),
    };
    let start = async || {
        let (node, driver) = (node.clone(), Arc::clone(&driver));
        let revision = store.snapshot().await?.revision();
        let engine =
            start_engine(&config, node, &raw_store, &views, &clock, driver, joining.as_ref()).await?;
        Ok((revision, engine))
    };
    let (revision, engine) = match &joining {
        Some(_) => match retry_until_stopped(&shutdown, start).await? {
            Some(started) => started,
            None => return Ok(()),
        },
        None => start().await?,
    };
    let standing = joining.as_ref().map(Joining::standing);
    let roles = joining.as_ref().map_or_else(|| watch::channel(Role::Alone).1, Joining::roles);
    let cluster = joining.as_ref().map(|joining| {
        let source = etcd.clone().map(|etcd| EtcdStatusCache::new(Arc::new(etcd), Arc::clone(&clock)));
        ClusterMonitor::start(engine.clone(), Arc::clone(&clock), source, joining.stats())
    });
    let session_key = match joining {
        Some(joining) => {
            let mut stopping = shutdown.clone();
            tokio::select! {
                key = joining.wait_until_ready(&engine, &*store, &dir, first_token, &*clock) => key?,
                // A dropped sender means shutdown too. The guard of the value must not live on: it is not Send.
                () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
                    engine.close().await;
                    return Ok(());
                }
            }
        }
        None => unstalled(Some(STALL_MAX), SessionKey::load_or_create(&*store)).await??,
    };
    let remembering = joined.filter(|joined| joined.write(&config.data).is_err());
    let remembering = remembering.map(|joined| tokio::spawn(remember(joined, config.data.clone())));
    let (shutdown, must_end) = match standing.clone() {
        Some(standing) => {
            let (shutdown, must_end) = shutdown_or(shutdown, must_end(standing, etcd.clone()));
            (shutdown, Some(must_end))
        }
        None => (shutdown, None),
    };
    let bound = prepare_fleet(&config, &engine, &views).await?;
    let mut bound_addresses = Vec::new();
    for ((listener, at), vm) in bound_listeners.into_iter().zip(&bound) {
        guest_listeners.push((listener, ListenerIdentity::Bound(vm.clone())));
        bound_addresses.push((vm.clone(), at));
    }

    let vm_log = Arc::new(VmLog::default());
    let (delivery, recorder) = recorder::start(node.clone(), &views, &store, &clock, &vm_log).await?;
    let guest_delivery = Arc::clone(&delivery);
    let peers = standing.clone().map(|standing| {
        let key = Arc::new(NodeKey::new(Arc::clone(&store), Arc::clone(&clock)));
        let digests = Arc::new(Digests::new(
            Arc::clone(&views),
            engine.clone(),
            Arc::clone(&delivery),
            Arc::clone(&vm_log),
            Arc::clone(&clock),
        ));
        let nodes = Arc::new(Nodes::new(NodesParts {
            standing: standing.clone(),
            views: Arc::clone(&views),
            key: Arc::clone(&key),
            tls: node_tls.clone(),
            guest_notes: Arc::clone(&digests) as _,
            clock: Arc::clone(&clock),
            limits: ForwardLimits::default(),
        }));
        let tasks = [
            tokio::spawn({
                let standing = standing.clone();
                async move { key.create_when_leading(standing).await }
            }),
            tokio::spawn(Arc::clone(&digests).follow_cluster(standing)),
            tokio::spawn(digests.run(Arc::clone(&nodes) as _)),
        ];
        (nodes, tasks)
    });
    let nodes = peers.as_ref().map(|(nodes, _)| Arc::clone(nodes));
    let platform = ScheduledEvents::new(
        Arc::clone(&views),
        engine.clone(),
        Arc::clone(&proxies),
        Arc::clone(&delivery),
        Arc::clone(&vm_log),
        Arc::clone(&store),
    );
    let platform = Arc::new(platform.with_nodes(nodes.clone()));
    let readiness = config.cluster.as_ref().zip(standing.clone()).map(|(cluster, standing)| {
        let now = ClockReading { wall: clock.now(), since_boot: clock.since_boot() };
        let reviewer = Reviewer::new(cluster.trust_addresses_for, now);
        let platform = Arc::clone(&platform);
        let trust_addresses = move |left| platform.trust_addresses_for(left);
        readiness::start_review(reviewer, standing, trust_addresses, Arc::clone(&clock))
    });
    let interception = Arc::new(Interception::new(config.recorder.clone()));
    let server = GuestServer::new(platform, config.guest_settings.clone(), Arc::clone(&clock));
    let server = Arc::new(server.with_interception(Arc::clone(&interception)));
    let faults = Arc::new(Faults::new(interception, Arc::clone(&views), engine.clone(), Arc::clone(&clock)));
    let operator_address = local(&operator_listener, config.operator);
    let refusals = Arc::new(Refusals::default());
    let janitor = Janitor::new(Arc::clone(&store), config.history);
    let operator_slots = config.operator_server.limits.slots();
    let operator = Arc::new(operator::Parts {
        views: Arc::clone(&views),
        engine: engine.clone(),
        store: Arc::clone(&store),
        refusals: Arc::clone(&refusals),
        history: janitor.stats(),
        certificate: certificate.clone(),
        token_file: dir.file(data_dir::TOKEN),
        clock: Arc::clone(&clock),
        delivery,
        vm_log: Arc::clone(&vm_log),
        faults: config.faults_allowed.then(|| Arc::clone(&faults)),
        listening: operator::status::ListeningCache::default(),
        guest_stats: server.stats(),
        change_rate_limit: config.change_rate_limit,
        hosts_shown: config.hosts_shown,
        slots: Arc::clone(&operator_slots),
        hosts: AllowedHosts::new(&config.host_name, &config.operator_server.hosts),
        sessions: Sessions {
            key: session_key,
            sign_ins: SignInLimit::default(),
            port: operator_address.port(),
            has_tls: certificate.is_some(),
            proxies: config.operator_server.proxies.clone(),
        },
        exports: Arc::new(Semaphore::new(operator::EXPORTS_MAX)),
        nodes: nodes.clone(),
        cluster,
        readiness: readiness.as_ref().map(|(readiness, _)| readiness.clone()),
        shutdown: shutdown.clone(),
    });

    let scheme = if certificate.is_some() { "https" } else { "http" };
    let named = |guest: &GuestListener| Listener {
        network: Some(guest.network.clone()),
        ..Listener::new("http", &guest.at)
    };
    let mut listeners = Listeners {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        token_file: absolute(&dir.file(data_dir::TOKEN)),
        operator: Listener::new(scheme, &operator_address.into()),
        guest: guest_addresses.iter().map(named).collect(),
        guest_vms: Vec::new(),
    };
    if config.has_bound_vms() && config.proxy.addresses.is_empty() {
        let view = views.newest();
        guest_addresses.retain(|guest| has_callers(&view, &guest.network));
    }
    let mut vm_addresses = Vec::new();
    for (vm, at) in bound_addresses {
        listeners.guest_vms.push(Listener { vm: Some(vm.clone()), ..Listener::new("http", &at) });
        vm_addresses.push((vm, at.address));
    }
    drop(starting);
    let guests = server.serve(guest_listeners, shutdown.clone()).map_err(ServeError::GuestServer)?;
    let guests = tokio::spawn(guests);
    let mut published = PublishedFiles { paths: Vec::new(), may_fail: config.cluster.is_some() };
    published.write_for_command_line(&dir, &listeners, certificate.as_deref())?;
    // Stop commands at once, while requests finish: later effects of a command would have to be repeated.
    let commands = exec.map(|exec| {
        let mut shutdown = shutdown.clone();
        tokio::spawn(async move {
            // A dropped sender means shutdown too.
            let _ = shutdown.wait_for(|stop| *stop).await;
            exec.close().await;
        })
    });
    let refusal_sink = Arc::new(RefusalSink {
        store: Arc::clone(&store),
        clock: Arc::clone(&clock),
        node,
        role: roles.clone(),
        nodes: nodes.clone(),
    });
    let background = [
        tokio::spawn(Arc::clone(&refusals).write(Arc::clone(&refusal_sink))),
        tokio::spawn({
            let (engine, clock, roles) = (engine.clone(), Arc::clone(&clock), roles.clone());
            async move { while_leading(roles, || janitor.afresh().run(engine.clone(), Arc::clone(&clock))).await }
        }),
        tokio::spawn(Arc::clone(&vm_log).write(Arc::clone(&clock))),
        tokio::spawn(event_log::write(Arc::clone(&store), revision, Arc::clone(&vm_log), Arc::clone(&clock))),
        tokio::spawn(keep_bound_enabled(
            bound,
            engine.clone(),
            guest_delivery,
            Arc::clone(&views),
            Arc::clone(&clock),
        )),
    ];
    let compact_every = config.cluster.as_ref().and_then(|cluster| cluster.compact_every);
    let compaction = etcd.zip(compact_every);
    let compaction = compaction.map(|(etcd, every)| tokio::spawn(compact(etcd, every, Arc::clone(&clock))));
    // Each part that can be reloaded registers here: `reloads.add("…", …)`.
    let reloads = Reloads::default();
    if config.proxy.secret_file.is_some() {
        reloads.add("the proxies' secret", move || Ok(proxies.reload()?));
    }
    if let Some(certificate) = &certificate {
        let (certificate, dir, clock) = (Arc::clone(certificate), dir.clone(), Arc::clone(&clock));
        reloads.add("the operator listener's certificate", move || certificate.reload(&dir, clock.now()));
    }
    if let Some(tls) = node_tls.clone() {
        let clock = Arc::clone(&clock);
        reloads.add("the node listener's certificate", move || Ok(tls.reload(clock.now())?));
    }
    if let Some(file) = &config.ready_file {
        // The service itself has created files since its start, and the ready file must not replace one of them.
        remove_ready_file(file)?;
        // Another program waits for it.
        published.may_fail = false;
        published.write(file.clone(), &json_line(&listeners))?;
    }
    let sign_in_code = match config.sign_in_link {
        true => first_sign_in_code(&*store, &views, clock.now()).await,
        false => None,
    };
    let addresses = Addresses {
        sign_in_code,
        guest: guest_addresses,
        guest_vms: vm_addresses,
        operator: operator_address,
        operator_encrypted: certificate.is_some(),
        token: dir.file(data_dir::TOKEN),
        first_run: first_run_name(&views),
        listeners,
    };
    ready(&Running {
        addresses,
        engine: engine.clone(),
        reloads,
        standing: standing.clone(),
        faults,
        views: Arc::clone(&views),
    });

    if standing.is_some() {
        // A node that has just started may lead next, and its first change must not wait for this.
        tokio::task::spawn_blocking(operator::reader::prepare);
    }
    let router = operator::router(Arc::clone(&operator));
    let other_nodes = node_listener.zip(nodes).map(|(listener, nodes)| {
        let server = NodeServer { operator, router: router.clone(), nodes, tls: node_tls };
        tokio::spawn(nodes::listener::serve(listener, server, shutdown.clone()))
    });
    let operator_server = OperatorServer {
        callers: "operators",
        router: router.clone(),
        certificate: certificate.map(|certificate| certificate as _),
        slots: operator_slots,
        proxies: config.operator_server.proxies,
    };
    operator::server::serve(operator_listener, operator_server, shutdown).await;
    if let Some(other_nodes) = other_nodes {
        let _ = other_nodes.await;
    }
    let _ = guests.await;
    // Before the engine closes: commands that have ended are still recorded.
    if let Some(commands) = commands {
        let _ = commands.await;
    }
    // Before the engine closes: a node of a cluster then hands the lead over, and writes nothing more.
    recorder.close().await;
    refusals.write_once(&refusal_sink).await;
    engine.close().await;
    let of_nodes = peers.into_iter().flat_map(|(_, tasks)| tasks);
    let of_cluster = compaction.into_iter().chain(remembering).chain(readiness.map(|(_, task)| task));
    background.into_iter().chain(of_nodes).chain(of_cluster).for_each(|task| task.abort());
    vm_log.write_rest();
    drop(published);
    drop(directory_lock);
    match must_end.map(|mut must_end| must_end.try_recv()) {
        Some(Ok(why)) => Err(why.into()),
        Some(Err(_)) | None => Ok(()),
    }
}

/// Repeats a step of a node's start while etcd is away or has no leader. Any other failure is returned at once: wrong
/// settings do not work later, either. None if the service is to stop.
async fn retry_until_stopped<T>(
    shutdown: &watch::Receiver<bool>,
    step: impl AsyncFn() -> Result<T, ServeError>,
) -> Result<Option<T>, ServeError> {
    let (mut log_limit, since) = (LogRateLimit::every(SAY_WAITING_EVERY), Stopwatch::start());
    let mut stopping = shutdown.clone();
    loop {
        // A dropped sender means shutdown too.
        let done = tokio::select! {
            done = step() => done,
            _ = stopping.wait_for(|stop| *stop) => return Ok(None),
        };
        let error = match done {
            Ok(done) => return Ok(Some(done)),
            Err(error) if error.is_store_away() => error,
            Err(error) => return Err(error),
        };
        if log_limit.record(since.elapsed()).is_some() {
            tracing::warn!("{error}; this node waits for etcd, and answers 503 until it can serve");
        }
        if tokio::time::timeout(RETRY_START_EVERY, stopping.wait_for(|stop| *stop)).await.is_ok() {
            return Ok(None);
        }
    }
}

/// Why a node of a cluster ends without a signal.
async fn must_end(mut standing: watch::Receiver<Standing>, etcd: Option<EtcdStore>) -> JoinError {
    let store_replaced = async {
        match etcd {
            Some(etcd) => etcd.wait_for_identity_change().await,
            None => std::future::pending().await,
        }
    };
    let name = standing.borrow().me.name.clone();
    let told = async {
        let told =
            standing.wait_for(|standing| standing.name_taken_by.is_some() || standing.are_records_deleted);
        match told.await.map(|standing| standing.name_taken_by.clone()) {
            Ok(Some(url)) => JoinError::Replaced { name, url },
            Ok(None) => JoinError::RecordsDeleted,
            // The runtime has ended, at shutdown.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        change = store_replaced => JoinError::StoreReplaced(change),
        why = told => why,
    }
}

/// Turns true at shutdown, and when the service must end; says why, then.
fn shutdown_or(
    mut shutdown: watch::Receiver<bool>,
    must_end: impl Future<Output = JoinError> + Send + 'static,
) -> (watch::Receiver<bool>, oneshot::Receiver<JoinError>) {
    let (stop, stopping) = watch::channel(false);
    let (send_why, why) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            // A dropped sender means shutdown too.
            _ = shutdown.wait_for(|stop| *stop) => {}
            why = must_end => {
                tracing::error!("{why}");
                let _ = send_why.send(why);
            }
        }
        stop.send_replace(true);
    });
    (stopping, why)
}

fn bind(at: &ListenAddress, what: &'static str, flag: &'static str) -> Result<TcpListener, ServeError> {
    at.bind().map_err(|error| ServeError::Listen { at: at.to_string(), what, flag, error })
}

/// A duplicate of a caller's listener for this runtime, and its address.
fn duplicate(listener: &std::net::TcpListener) -> io::Result<(TcpListener, ListenAddress)> {
    let own = listener.try_clone()?;
    own.set_nonblocking(true)?;
    let at = own.local_addr()?.into();
    Ok((TcpListener::from_std(own)?, at))
}

fn local(listener: &TcpListener, fallback: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(fallback)
}

/// Prepares the exec driver, if one is configured.
async fn prepare_exec(
    config: &ServeConfig,
    dir: &DataDir,
    lease_end: Option<LeaseEnd>,
) -> Result<Option<Arc<Exec>>, ServeError> {
    let Some(exec) = &config.exec else { return Ok(None) };
    let path = dir.file(data_dir::RESULTS);
    // The directory is emptied at the start, and commands write to it.
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        return Err(ServeError::ResultsLink(path));
    }
    let failed = |source| ServeError::File { path: path.clone(), source };
    make_private(&path).map_err(failed)?;
    Ok(Some(Arc::new(Exec::prepare(exec.clone(), &path, lease_end).await.map_err(failed)?)))
}

/// Loads the engine's state at one revision and starts it.
async fn start_engine(
    config: &ServeConfig,
    node: Node,
    store: &Arc<dyn Store>,
    views: &Arc<Views>,
    clock: &Arc<dyn Clock>,
    driver: Arc<dyn Driver>,
    joining: Option<&Joining>,
) -> Result<EngineHandle, ServeError> {
    let Loaded { mut state, revision, cluster } = load(&**store).await?;
    let settings = EngineSettings { domain: config.domain.clone(), node };
    let now = clock.now();
    let booted_at = ClockReading { wall: now, since_boot: clock.since_boot() }.booted_at();
    state.set_boot(boot_id().ok().map(|id| Boot { id, at: booted_at }));
    if let Some(joining) = joining {
        let follower = Engine::follower(settings, state, revision);
        let (store, views, clock) = (Arc::clone(store), Arc::clone(views), Arc::clone(clock));
        let membership = Some(joining.membership(cluster));
        return Ok(runtime::start_node(follower, store, revision, views, clock, driver, membership));
    }
    let (mut engine, mut effects) = Engine::from_state(settings, state, revision, now);
    // The engine checked its clock against what would start; check it against what would be removed, too.
    let is_doubtful = !engine.is_clock_held() && engine.is_clock_far_ahead(now);
    if is_doubtful && janitor::would_remove(&**store, now, config.history.retention).await? {
        effects.extend(engine.handle(Input::Clock(ClockNews::Jumped(SignedDuration::ZERO)), now));
    }
    let (store, views, clock) = (Arc::clone(store), Arc::clone(views), Arc::clone(clock));
    Ok(runtime::start(engine, effects, store, revision, views, clock, driver))
}

/// The store at one revision.
pub struct Loaded {
    pub state: State,
    pub revision: Revision,
    /// The records of the cluster.
    pub cluster: Vec<(Key, Versioned)>,
}

/// Loads all records; fails if one is damaged or missing, or if a file gives no more of them. A large fleet's records are
/// never in memory all at once: while one page is applied, the next is read.
pub async fn load(store: &dyn Store) -> Result<Loaded, ServeError> {
    let snapshot = store.snapshot().await?;
    // A shared store has time limits of its own.
    let stall_max = snapshot.tallies().map(|_| STALL_MAX);
    let revision = snapshot.revision();
    let cluster = snapshot.scan(CLUSTER, None, CLUSTER_RECORDS_MAX);
    let cluster = unstalled(stall_max, cluster).await??.records;
    let (pages, mut read) = mpsc::channel(1);
    let reading = tokio::spawn(async move {
        for prefix in LOADED {
            let mut found = Tally::default();
            for range in records::ranges(prefix, snapshot.has_costly_ranges()) {
                let mut scan = Scan::new(&*snapshot, &range, LOAD_PAGE);
                while let Some(page) = scan.next().await? {
                    integrity::check_damaged(&page)?;
                    page.records.iter().for_each(|(key, record)| found.add(key, record.revision));
                    if pages.send(prepared(page.records).await?).await.is_err() {
                        return Ok(());
                    }
                }
            }
            integrity::check_tally(&*snapshot, prefix, found)?;
        }
        let (mut times, mut found) = (Vec::new(), Tally::default());
        for key in records::TIMES {
            let record = snapshot.get(key).await.map_err(|error| match error {
                ReadError::Damaged { key } => ServeError::from(IntegrityError::Damaged { key }),
                error @ (ReadError::Unavailable(_) | ReadError::Compacted) => error.into(),
            })?;
            if let Some(record) = record {
                found.add(key, record.revision);
                times.push((Key::from(key), record));
            }
        }
        // These are the records whose keys have no slash. Only the janitor reads `swept`.
        integrity::check_tally(&*snapshot, "", found)?;
        times.retain(|(key, _)| **key == *records::ALIVE);
        let _ = pages.send(prepared(times).await?).await;
        Ok::<_, ServeError>(())
    });
    let mut loader = Loader::default();
    while let Some(page) = unstalled(stall_max, read.recv()).await? {
        for record in page {
            loader.take(record)?;
        }
    }
    reading.await.unwrap_or_else(|died| Err(ReadError::Unavailable(died.to_string()).into()))?;
    Ok(Loaded { state: loader.finish(), revision, cluster })
}

/// Waits for a read at the start, for `stall_max` at most: damaged pages may lead in a circle.
async fn unstalled<T>(
    stall_max: Option<Duration>,
    read: impl Future<Output = T>,
) -> Result<T, IntegrityError> {
    let Some(stall_max) = stall_max else { return Ok(read.await) };
    tokio::time::timeout(stall_max, read).await.map_err(|_| IntegrityError::Stalled)
}

/// Decodes a page of records on a blocking thread.
async fn prepared(records: Vec<(Key, Versioned)>) -> Result<Vec<Prepared>, ServeError> {
    let prepare = move || records.into_iter().map(|(key, record)| prepare(key, record)).collect();
    let prepared: Result<_, DecodeError> = tokio::task::spawn_blocking(prepare)
        .await
        .map_err(|died| ReadError::Unavailable(died.to_string()))?;
    Ok(prepared?)
}

/// Applies the fleet file, creates the VMs that have a listener of their own and, if there is no VM, the first-run VM.
/// Returns the full path of each VM with a listener: a VM added later elsewhere under the same name is not matched.
async fn prepare_fleet(
    config: &ServeConfig,
    engine: &EngineHandle,
    views: &Arc<Views>,
) -> Result<Vec<String>, ServeError> {
    // First: a listener of one VM may name a VM of the file.
    if let Some(file) = &config.fleet {
        fleet::apply(file, engine).await?;
        fleet::log_leftovers(file, &views.newest());
    }
    let mut paths = Vec::new();
    let named = config.guest_vms.iter().map(|one| &one.vm);
    for vm in named.chain(config.guest_sockets.iter().map(|one| &one.vm)) {
        let wrong = |error: String| ServeError::GuestVm { name: vm.clone(), error };
        let (scope, name) = vm.rsplit_once('/').unwrap_or((vm, vm));
        let path = scope.parse::<ScopePath>().map_err(|error| wrong(error.to_string()))?;
        let name = Name::parse_new(name).map_err(|error| wrong(error.to_string()))?;
        let view = views.newest();
        // A VM that an earlier start created under this name takes precedence over other matches.
        let whole = format!("{path}/{name}");
        let found = names::resolve(&view, &whole).or_else(|_| names::resolve(&view, vm));
        match found {
            Ok(vm) if view.first_run != Some(vm) => {
                let found = view.scope_of(vm).map(|scope| names::path(scope, vm));
                paths.push(found.unwrap_or(whole));
            }
            Err(error @ names::NameError::Ambiguous { .. }) => return Err(wrong(error.to_string())),
            Ok(_) | Err(names::NameError::Unknown(_)) => {
                // Like the first-run VM, it is for trying out events of every type.
                let vm = VmSpec { spot: true, ..VmSpec::with_defaults(VmId(Uuid::new_v4()), name) };
                let known = view.scope(&path.id()).filter(|scope| !scope.scope.first_run);
                if known.is_some() {
                    let add = AddVm { path, kind: None, vm };
                    engine.ask(Request::new(Actor::Service, add)).await?;
                } else {
                    let put = PutScope {
                        policy: Policy::for_first_run(),
                        ..PutScope::with_defaults(path, ScopeKind::Standalone, vec![vm])
                    };
                    engine.ask(Request::new(Actor::Service, ScopeChange::Put(put))).await?;
                }
                paths.push(whole);
            }
        }
    }
    let name = config.host_name.parse::<Name>().or_else(|_| "localhost".parse::<Name>());
    // In a cluster the first VM would be that of whichever node came first.
    if let (Ok(name), None) = (name, &config.cluster) {
        let first_run = FirstRun { vm: VmId(Uuid::new_v4()), name };
        engine.ask(Request::new(Actor::Service, first_run)).await?;
    }
    Ok(paths)
}

/// Whether a VM has an address in this network.
fn has_callers(view: &View, network: &str) -> bool {
    let root = Prefix::root();
    let scopes = view.scopes_below(&root, Bound::Unbounded);
    let vms = scopes.flat_map(|(_, scope)| scope.scope.members.iter().map(|member| member.vm));
    vms.flat_map(|vm| view.addresses(vm))
        .any(|address| address.network.as_str().eq_ignore_ascii_case(network))
}

/// The code of a sign-in link of the first token; none if the token was revoked or the store cannot write.
async fn first_sign_in_code(store: &dyn Store, views: &Views, now: Timestamp) -> Option<String> {
    let known = views.newest().tokens.named(&tokens::ROOT.parse().ok()?).cloned()?;
    let (code, _) = create_link(store, &known, None, now).await.ok()?;
    record_fact(store, Actor::Service, None, Fact::SignInLinkCreated, now).await;
    Some(code)
}

fn first_run_name(views: &Views) -> Option<String> {
    let view = views.newest();
    let vm = view.first_run?;
    view.scope_of(vm)?.member(vm).map(|member| member.name.to_string())
}

/// Compacts etcd's history in agreement with the other nodes, forever.
async fn compact(etcd: EtcdStore, every: Duration, clock: Arc<dyn Clock>) {
    let mut compactor = Compactor::new(every);
    let turn = every / COMPACTION_TURNS;
    loop {
        match etcd.compact_if_due(&mut compactor, clock.since_boot()).await {
            Ok(Some(revision)) => tracing::debug!(%revision, "compacted the history of etcd"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot compact the history of etcd: retrying in {turn:?}"),
        }
        tokio::time::sleep(turn).await;
    }
}

/// Runs a task while this node leads: a new one each time, because another node has changed the records meanwhile.
async fn while_leading<T: Future<Output = ()>>(
    mut roles: watch::Receiver<Role>,
    mut task: impl FnMut() -> T,
) {
    while roles.wait_for(|role| role.leads()).await.is_ok() {
        tokio::select! {
            () = task() => return,
            // Never, for a single node: its role does not change.
            Ok(_) = roles.wait_for(|role| !role.leads()) => {}
        }
    }
}

/// Keeps scopes of VMs with a listener of their own enabled: these VMs are for rehearsals and count as polling from the
/// start.
async fn keep_bound_enabled(
    bound: Vec<String>,
    engine: EngineHandle,
    delivery: Arc<Delivery>,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
) {
    loop {
        let view = views.newest();
        for vm in &bound {
            let scope = view.at_path(vm).and_then(|vm| view.scope_of(vm).cloned());
            if let Some(scope) = scope {
                delivery.record_scope_poll(&scope.scope.id(), clock.now());
                engine.record_poll(scope.scope.id(), clock.now());
            }
        }
        tokio::time::sleep(BOUND_POLL_INTERVAL).await;
    }
}

/// An absolute path, as text.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn json_line(listeners: &Listeners) -> String {
    // The type has no map and no number that JSON cannot hold.
    serde_json::to_string(listeners).unwrap_or_default() + "\n"
}

/// Removes a ready file that an earlier service has left. Another file is kept, and is an error: its path may be a mistake.
fn remove_ready_file(path: &Path) -> Result<(), ServeError> {
    let failed = |source| ServeError::File { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.is_file() || found.len() > READY_FILE_BYTES_MAX => {
            return Err(ServeError::ReadyFile(path.to_owned()));
        }
        Ok(_) => {}
    }
    let text = std::fs::read(path).map_err(failed)?;
    let left: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    // An empty file is one that a script has created for us, for example with mktemp.
    if text.is_empty() || (left["pid"].is_u64() && left["operator"]["url"].is_string()) {
        return std::fs::remove_file(path).map_err(failed);
    }
    Err(ServeError::ReadyFile(path.to_owned()))
}

/// Remembers the cluster that this node has joined. Without room for that, the node serves, and tries again.
async fn remember(joined: JoinedCluster, data: PathBuf) {
    let (mut log_limit, since) = (LogRateLimit::every(SAY_WAITING_EVERY), Stopwatch::start());
    while let Err(error) = joined.write(&data) {
        if log_limit.record(since.elapsed()).is_some() {
            tracing::error!(
                "cannot write {}: {error}; until this node can, its next start does not notice a wrong --etcd or --etcd-prefix: free space there",
                data.join(data_dir::CLUSTER).display()
            );
        }
        tokio::time::sleep(RETRY_START_EVERY).await;
    }
}

/// Files that say where a running service listens. Dropping removes them, the last one first.
struct PublishedFiles {
    paths: Vec<PathBuf>,
    /// Whether the service goes on without a file that cannot be written. A node of a cluster does: its disk has no state
    /// of the fleet, and a full one must not keep it from its guests.
    may_fail: bool,
}

impl PublishedFiles {
    fn write(&mut self, path: PathBuf, text: &str) -> Result<(), ServeError> {
        let written = write_atomic(&path, text.as_bytes(), 0o644);
        self.written(path, written)
    }

    fn written(&mut self, path: PathBuf, written: io::Result<()>) -> Result<(), ServeError> {
        match written {
            Ok(()) => self.paths.push(path),
            Err(source) if !self.may_fail => return Err(ServeError::File { path, source }),
            Err(error) => {
                // That of an earlier start would mislead.
                let _ = std::fs::remove_file(&path);
                tracing::warn!(
                    "cannot write {}: {error}; this node serves without it, and the command line does not find it by its data directory: free space there and restart",
                    path.display()
                );
            }
        }
        Ok(())
    }

    /// Writes the listeners, and the operator listener's URL and certificate, so that the command line finds it by the
    /// data directory.
    fn write_for_command_line(
        &mut self,
        dir: &DataDir,
        listeners: &Listeners,
        certificate: Option<&Certificate>,
    ) -> Result<(), ServeError> {
        let path = dir.file(data_dir::AUTHORITY);
        match certificate {
            Some(certificate) => self.written(path, certificate.publish(dir))?,
            // A certificate that an earlier start wrote would mislead.
            None => drop(std::fs::remove_file(path)),
        }
        self.write(dir.file(data_dir::LISTENERS), &json_line(listeners))?;
        self.write(dir.file(data_dir::OPERATOR_URL), &format!("{}\n", listeners.operator.url))
    }
}

impl Drop for PublishedFiles {
    fn drop(&mut self) {
        self.paths.iter().rev().for_each(|path| drop(std::fs::remove_file(path)));
    }
}
