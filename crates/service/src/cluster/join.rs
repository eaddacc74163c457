//! Joining a cluster: what a node checks and waits for before it serves.
//!
//! 1. The store must be empty, or hold a cluster at a format level that this release reads and this node may write. It must
//!    be the one that this node has joined before ([`super::joined`]).
//! 2. The node's name must be free. A process that was killed leaves its heartbeat; its successor waits 4 s for it.
//! 3. The node loads the state and follows the watch. It is ready when its own heartbeat has returned.
//! 4. The first leader creates what all nodes share: the first token and the keys. The others wait for them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notbefore_engine::cluster::name_check::{NameCheck, NameVerdict, READ_EVERY};
use notbefore_engine::cluster::watch_follower::REPAIR_EVERY;
use notbefore_engine::cluster::{
    FORMAT, FenceNews, FormatRecord, IMPORTING, NODE, NodeIdentity, NodeRecord, Role,
};
use notbefore_engine::records::{self, DecodeError};
use notbefore_etcd::{COMPACT_EVERY, ConnectError, EtcdConfig, EtcdStore, IdentityChange};
use notbefore_listener::log_limit::LogRateLimit;
use notbefore_store::{Key, ReadError, Revision, Store, Versioned, WatchLog};
use tokio::sync::{mpsc, watch};

use super::joined::{self, Claimant, JoinedCluster, JoinedError};
use super::monitor::ClusterStats;
use super::{Membership, Standing};
use crate::clock::Clock;
use crate::data_dir::DataDir;
use crate::exec::lease::LeaseEnd;
use crate::fenced_store::FencedStore;
use crate::leveled_store::{LeveledStore, WriteLevel};
use crate::runtime::EngineHandle;
use crate::serve::{SAY_WAITING_EVERY, ServeError};
use crate::sessions::SessionKey;
use crate::stored_key::StoredKeyError;
use crate::tokens::{self, LostToken, TokenError};

/// Interval at which a node looks for what the first leader creates.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// More than a cluster has nodes.
const NODES_MAX: usize = 1_000;

/// A store that several nodes use.
#[derive(Clone)]
pub enum SharedStore {
    Etcd(EtcdConfig),
    /// In this process, for tests.
    Given(Arc<dyn Store>),
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd(config) => config.fmt(f),
            Self::Given(_) => f.write_str("Given"),
        }
    }
}

/// A node of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The node's name; no two running nodes have the same.
    pub node: String,
    pub store: SharedStore,
    /// Interval at which the nodes compact etcd's history; none if this node leaves it to others.
    pub compact_every: Option<Duration>,
    /// How long this node answers for addresses while it cannot follow the store. An address may have moved to another
    /// tenant meanwhile.
    pub trust_addresses_for: Duration,
    /// The newest format level that this node writes, one of [`Self::FORMAT_LEVELS`].
    pub format_level: u32,
}

impl ClusterConfig {
    /// Default of [`Self::format_level`].
    pub const FORMAT_LEVEL: u32 = records::FORMAT_LEVEL;
    pub const FORMAT_LEVELS: [u32; 2] = records::FORMAT_LEVELS_READ;
    /// Default of [`Self::trust_addresses_for`].
    pub const TRUST_ADDRESSES_FOR: Duration = Duration::from_secs(600);

    /// With defaults.
    pub fn new(node: String, store: SharedStore) -> Self {
        Self {
            node,
            store,
            compact_every: Some(COMPACT_EVERY),
            trust_addresses_for: Self::TRUST_ADDRESSES_FOR,
            format_level: Self::FORMAT_LEVEL,
        }
    }
}

/// The store of a cluster, connected.
#[derive(Clone)]
pub struct ConnectedStore {
    pub store: Arc<dyn Store>,
    /// The same store, if it is etcd.
    pub etcd: Option<EtcdStore>,
    /// Whether there is a cluster, not an empty prefix.
    holds_fleet: bool,
}

impl ConnectedStore {
    /// Connects and checks what the store holds. Writes nothing.
    pub async fn connect(shared: &SharedStore) -> Result<Self, JoinError> {
        let (store, etcd): (Arc<dyn Store>, _) = match shared {
            SharedStore::Given(store) => (Arc::clone(store), None),
            SharedStore::Etcd(config) => {
                let etcd = EtcdStore::connect(config).await?;
                let warnings = etcd.warnings().iter().chain(etcd.unreachable_at_start());
                warnings.for_each(|warning| tracing::warn!("{warning}"));
                (Arc::new(etcd.clone()), Some(etcd))
            }
        };
        let holds_fleet = check_content(&*store).await?;
        Ok(Self { store, etcd, holds_fleet })
    }

    /// Checks that this is the cluster that the node of this data directory has joined. Writes nothing.
    pub fn check_joined(&self, data: &Path) -> Result<(), JoinError> {
        let Some(etcd) = &self.etcd else { return Ok(()) };
        let found = JoinedCluster::of(etcd, etcd.mark_id().map(str::to_owned));
        Ok(found.check(self.holds_fleet, data)?)
    }

    /// Marks the prefix of etcd, before the first commit. Returns what a node remembers; none for a store of tests.
    pub async fn claim(&self, claimant: Claimant) -> Result<Option<JoinedCluster>, JoinError> {
        let Some(etcd) = &self.etcd else { return Ok(None) };
        let mark = etcd.claim(&joined::new_mark(claimant)).await?;
        Ok(Some(JoinedCluster::of(etcd, Some(mark))))
    }
}

/// Why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Etcd(#[from] ConnectError),
    /// Not the cluster that this node has joined.
    #[error(transparent)]
    Joined(#[from] JoinedError),
    /// There are records, and none says that they are of a cluster of nodes.
    #[error(
        "{key} is in the store already, and nothing there says that it belongs to notbefore; choose another --etcd-prefix"
    )]
    Foreign { key: Key },
    /// An import has not finished.
    #[error(
        "an import into this prefix runs or was interrupted; wait for it, or remove the prefix with 'etcdctl del --prefix' and repeat the import"
    )]
    ImportIncomplete,
    /// etcd is not the one that this node has loaded: another cluster, or a restored backup.
    #[error("{0}; this node ends: start it again, and it loads everything again")]
    StoreReplaced(IdentityChange),
    /// An operator has deleted the records under running nodes.
    #[error(
        "the records of this cluster were deleted from etcd, so this node ends; stop all nodes, remove what is left below the prefix with 'etcdctl del --prefix', and restore a backup"
    )]
    RecordsDeleted,
    /// Another process of this name runs.
    #[error(
        "a node named {name} already runs, with its node listener at {url}; give each node a name of its own"
    )]
    NameTaken { name: String, url: String },
    /// Another process has taken the name of this one, which stood still.
    #[error(
        "this process stood still, and another one has started as node {name} since, with its node listener at {url}; it stays, this one ends"
    )]
    Replaced { name: String, url: String },
    /// The other nodes write at a level that this release does not read.
    #[error(
        "the cluster writes format level {level}, and this release reads levels {}; start a newer release",
        records::levels_read()
    )]
    NewerLevel { level: u32 },
    /// The upgrade is finished, and this node is set to write as the release before it.
    #[error(
        "the cluster writes format level {level}, and node.format_level (--format-level) limits this node to {own}; leave the setting out"
    )]
    LimitedLevel { level: u32, own: u32 },
}

impl JoinError {
    /// Whether etcd may be usable in a moment.
    pub fn is_store_away(&self) -> bool {
        match self {
            Self::Read(ReadError::Unavailable(_)) => true,
            Self::Etcd(error) => error.is_temporary(),
            Self::Read(ReadError::Damaged { .. } | ReadError::Compacted)
            | Self::Decode(_)
            | Self::Joined(_)
            | Self::Foreign { .. }
            | Self::ImportIncomplete
            | Self::StoreReplaced(_)
            | Self::RecordsDeleted
            | Self::NameTaken { .. }
            | Self::Replaced { .. }
            | Self::NewerLevel { .. }
            | Self::LimitedLevel { .. } => false,
        }
    }
}

/// The ends of the channels between the machines of the cluster and the rest of the service.
pub struct Joining {
    identity: NodeIdentity,
    /// The revision of the record under the node's name when it was found to be free.
    found: Option<Revision>,
    role: watch::Sender<Role>,
    standing: watch::Sender<Standing>,
    lease: watch::Sender<Duration>,
    watch_log: WatchLog,
    stats: Arc<ClusterStats>,
    level: Arc<WriteLevel>,
    news: mpsc::UnboundedReceiver<FenceNews>,
    send_news: mpsc::UnboundedSender<FenceNews>,
}

impl Joining {
    /// Checks that the node may join. `url` is where it takes forwarded changes.
    pub async fn begin(
        config: &ClusterConfig,
        store: &dyn Store,
        url: String,
        clock: &dyn Clock,
    ) -> Result<Self, JoinError> {
        check_limit(store, config.format_level).await?;
        let found = check_name(store, &config.node, clock).await?;
        let epoch = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let level = config.format_level;
        let identity = NodeIdentity { name: config.node.clone(), epoch, url, level };
        let standing = Standing::new(identity.clone());
        let (send_news, news) = mpsc::unbounded_channel();
        let (role, standing) = (watch::channel(Role::Follow).0, watch::channel(standing).0);
        let lease = watch::channel(Duration::ZERO).0;
        let (stats, level) = (Arc::default(), Arc::new(WriteLevel::new(level)));
        let watch_log = WatchLog::default();
        Ok(Self { identity, found, role, standing, lease, watch_log, stats, level, news, send_news })
    }

    pub fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    pub fn roles(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }

    pub fn stats(&self) -> Arc<ClusterStats> {
        Arc::clone(&self.stats)
    }

    /// The end of the lease of this node's commands.
    pub fn lease_end(&self) -> LeaseEnd {
        self.lease.subscribe()
    }

    /// The store, for everything that this node writes.
    pub fn leveled(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(LeveledStore::new(store, Arc::clone(&self.level)))
    }

    pub fn fenced(&self, store: Arc<dyn Store>) -> FencedStore {
        let fenced = FencedStore::new(store, self.role.subscribe(), self.send_news.clone());
        fenced.with_watch_log(self.watch_log.clone())
    }

    /// For the runtime, with the records of the cluster that the node has loaded.
    pub fn membership(&self, records: Vec<(Key, Versioned)>) -> Membership {
        Membership {
            identity: self.identity.clone(),
            found: self.found,
            records,
            // At different times, so that not all nodes read the whole store at once.
            repair_every: REPAIR_EVERY + Duration::from_secs(u64::from(self.identity.epoch.as_bytes()[0])),
            role: self.role.clone(),
            standing: self.standing.clone(),
            lease: self.lease.clone(),
            watch_log: self.watch_log.clone(),
            stats: Arc::clone(&self.stats),
            level: Arc::clone(&self.level),
        }
    }

    /// Waits until the node can serve, and returns the key of sessions. A node that leads creates what is missing.
    pub async fn wait_until_ready(
        self,
        engine: &EngineHandle,
        store: &dyn Store,
        dir: &DataDir,
        root_token_file: Option<&Path>,
        clock: &dyn Clock,
    ) -> Result<SessionKey, ServeError> {
        let Self { identity, standing, mut news, send_news, .. } = self;
        let (engine, mut standings) = (engine.clone(), standing.subscribe());
        // The fenced store has the other sender.
        drop(send_news);
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                engine.report_fence(news);
            }
        });
        let mut log_limit = LogRateLimit::every(SAY_WAITING_EVERY);
        // Most nodes are ready before anything has to be said.
        log_limit.record(clock.since_boot());
        let mut full_limit = LogRateLimit::every(SAY_WAITING_EVERY);
        loop {
            let standing = standings.borrow_and_update().clone();
            if let Some(url) = standing.name_taken_by {
                // Two processes of one name have started at once.
                return Err(JoinError::NameTaken { name: identity.name, url }.into());
            }
            if standing.is_ready && standing.role.may_write() {
                match create_shared(store, dir, root_token_file, clock).await {
                    // The lead was lost meanwhile; the next leader creates the rest.
                    Err(
                        ServeError::Token(TokenError::Store(_))
                        | ServeError::Token(TokenError::Read(_))
                        | ServeError::StoredKey(StoredKeyError::Store(..) | StoredKeyError::Read(_)),
                    ) => {}
                    Err(ServeError::Token(TokenError::File { path, source })) if is_full(&source) => {
                        if full_limit.record(clock.since_boot()).is_some() {
                            tracing::error!(
                                "cannot write the first token of the cluster to {}: {source}; this node waits until it can: free space there",
                                path.display()
                            );
                        }
                    }
                    done => return done,
                }
            } else if standing.is_ready
                && standing.leader.is_some()
                && let Ok(Some(key)) = SessionKey::load(store).await
            {
                return Ok(key);
            }
            if log_limit.record(clock.since_boot()).is_some() {
                tracing::warn!(
                    node = identity.name,
                    "waiting for the store, or for a node that leads the cluster"
                );
            }
            let _ = tokio::time::timeout(LOOK_EVERY, standings.changed()).await;
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

async fn create_shared(
    store: &dyn Store,
    dir: &DataDir,
    root_token_file: Option<&Path>,
    clock: &dyn Clock,
) -> Result<SessionKey, ServeError> {
    tokens::ensure_first(store, dir, root_token_file, LostToken::Keep, clock.now()).await?;
    Ok(SessionKey::load_or_create(store).await?)
}

/// Checks that the store holds nothing, or a cluster at a level that this release reads. Returns whether it holds one.
async fn check_content(store: &dyn Store) -> Result<bool, JoinError> {
    let snapshot = store.snapshot().await?;
    let Some(record) = snapshot.get(FORMAT).await? else {
        // Nodes write heartbeats before the first of them leads and writes the level.
        let first = snapshot.scan("", None, NODES_MAX).await?.records;
        let is_importing = snapshot.get(IMPORTING).await?.is_some();
        return match first.into_iter().find(|(key, _)| !key.starts_with(NODE)) {
            Some(_) if is_importing => Err(JoinError::ImportIncomplete),
            Some((key, _)) => Err(JoinError::Foreign { key }),
            None => Ok(false),
        };
    };
    let FormatRecord { level } = records::decode(FORMAT, &record.value)?;
    match records::FORMAT_LEVELS_READ.contains(&level) {
        true => Ok(true),
        false => Err(JoinError::NewerLevel { level }),
    }
}

/// Checks that the node's limit lets it write at the cluster's level. It could not lead otherwise.
async fn check_limit(store: &dyn Store, own: u32) -> Result<(), JoinError> {
    let Some(record) = store.snapshot().await?.get(FORMAT).await? else { return Ok(()) };
    let FormatRecord { level } = records::decode(FORMAT, &record.value)?;
    if level > own { Err(JoinError::LimitedLevel { level, own }) } else { Ok(()) }
}

/// Waits until the name is free. Returns the revision of the record under it, if there is one.
async fn check_name(store: &dyn Store, name: &str, clock: &dyn Clock) -> Result<Option<Revision>, JoinError> {
    let key = format!("{NODE}{name}");
    let mut check = NameCheck::default();
    loop {
        let found = store.snapshot().await?.get(&key).await?;
        let revision = found.as_ref().map(|record| record.revision);
        // A heartbeat that cannot be read is of another release, and counts as that of a killed process.
        let record = found.and_then(|record| records::decode::<NodeRecord>(&key, &record.value).ok());
        match check.read(record.as_ref().zip(revision), clock.since_boot()) {
            NameVerdict::Free => return Ok(revision),
            NameVerdict::Taken => {
                let url = record.map(|record| record.url).unwrap_or_default();
                return Err(JoinError::NameTaken { name: name.to_owned(), url });
            }
            NameVerdict::Wait => tokio::time::sleep(READ_EVERY).await,
        }
    }
}
