//! Nodes of a cluster that talk: a follower forwards changes to the leader and waits until its own view has them.
//!
//! | file | contents |
//! |---|---|
//! | `signature` | signed messages: HMAC, challenges, deadlines |
//! | `messages`, `parts` | what messages and answers contain, and how it becomes bytes |
//! | `key`, `tls` | the key of the signatures; mutual TLS |
//! | `leader_client` | a follower's connections to the leader |
//! | `forward` | at a follower: which requests are forwarded, and what their callers get |
//! | `unknown_callers` | at a follower: which callers it refuses itself, and the places for sign-ins |
//! | `audit` | at a follower: reports refused requests and uses of tokens |
//! | `listener` | at the leader: takes messages and carries them out |
//!
//! A forwarded request is sent at most once. Its caller gets the leader's answer, `unavailable` if nothing was carried out,
//! or `outcome_unknown`. A service with one node has no [`Nodes`] and does none of this.

pub mod audit;
pub mod forward;
pub mod key;
mod leader_client;
pub mod listener;
pub mod messages;
mod parts;
pub mod signature;
pub mod tls;
mod unknown_callers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use notbefore_engine::Failure;
use notbefore_engine::cluster::Leader;
use notbefore_engine::request::FailureCause;
use notbefore_listener::log_limit::LogRateLimit;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use self::audit::ReportedUses;
use self::key::NodeKey;
use self::leader_client::{Connection, LeaderClient, Sent};
use self::messages::Answer;
use self::signature::{Kind, Message, OTHER_KEY, Refused, Stamp};
use self::tls::{NodeTls, NodeTlsFiles};
use self::unknown_callers::SharedPlaces;
use crate::clock::{Clock, Stopwatch};
use crate::cluster::Standing;
use crate::metrics::{Counters, counters_from_zero};
use crate::view::Views;
use crate::{lock, random};

/// Settings of the node listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesConfig {
    pub listen: SocketAddr,
    /// Mutual TLS; required beyond loopback.
    pub tls: Option<NodeTlsFiles>,
}

impl NodesConfig {
    /// A free port of the loopback interface.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    pub fn check(&self) -> Result<(), NodesConfigError> {
        let ip = self.listen.ip().to_canonical();
        if ip.is_unspecified() {
            return Err(NodesConfigError::Unspecified(self.listen));
        }
        match self.tls.is_none() && !ip.is_loopback() {
            true => Err(NodesConfigError::Exposed(self.listen)),
            false => Ok(()),
        }
    }

    /// The URL of the listener, for the node's heartbeat. `address` is where it is bound.
    pub fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}

impl Default for NodesConfig {
    fn default() -> Self {
        Self { listen: Self::LISTEN, tls: None }
    }
}

/// Why the settings of the node listener cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodesConfigError {
    #[error(
        "the node listener at {0} would be open to the network without mutual TLS; set --node-cert, --node-key and --node-ca, or use a loopback address"
    )]
    Exposed(SocketAddr),
    #[error(
        "--node-listen {0}: other nodes connect to this address; give the address at which they reach this node"
    )]
    Unspecified(SocketAddr),
}

/// What messages carry of the polls of guests. The content is opaque here.
pub trait GuestNotes: Send + Sync {
    /// At a follower: what must reach the leader before a request that is forwarded now; empty if there is nothing.
    fn notes_for_request(&self) -> Bytes;

    /// At the leader: takes these notes, before it carries the request out.
    fn take_notes_of_request(&self, notes: &[u8]);

    /// At the leader: takes the digest of a node (`name~epoch`); returns the answer. None if it cannot be taken.
    fn take_digest(&self, sender: &str, digest: &[u8]) -> Option<Bytes>;
}

/// For nodes without guests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGuestNotes;

impl GuestNotes for NoGuestNotes {
    fn notes_for_request(&self) -> Bytes {
        Bytes::new()
    }

    fn take_notes_of_request(&self, _: &[u8]) {}

    fn take_digest(&self, _: &str, _: &[u8]) -> Option<Bytes> {
        None
    }
}

/// Limits of forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardLimits {
    /// From the end of an operator's request to its answer.
    pub operator_timeout: Duration,
    /// The same for a guest's approval.
    pub guest_timeout: Duration,
    /// Requests at a time; 503 above it.
    pub in_flight_max: usize,
    /// Sign-ins by a code at a time. Only the leader can judge them, so callers without a token reach it.
    pub sign_ins_max: usize,
    /// The same of one source.
    pub sign_ins_per_source_max: usize,
}

impl Default for ForwardLimits {
    fn default() -> Self {
        Self {
            operator_timeout: Duration::from_secs(5),
            guest_timeout: Duration::from_secs(2),
            in_flight_max: 256,
            sign_ins_max: 16,
            sign_ins_per_source_max: 4,
        }
    }
}

/// Interval of lines of the log about requests of callers without an answer.
const LOG_CALLERS_EVERY: Duration = Duration::from_secs(2);
/// The same of this node's own messages: while there is no leader, one fails each second.
const LOG_OWN_EVERY: Duration = Duration::from_secs(10);

fn log_limit(interval: Duration) -> std::sync::Mutex<LogRateLimit> {
    std::sync::Mutex::new(LogRateLimit::every(interval))
}

/// Why a request has no answer of the leader. Details are for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    #[error("no node leads the cluster")]
    NoLeader,
    #[error("the leader of the cluster cannot be reached")]
    Unreachable(String),
    #[error("the leader of the cluster refused the message: {why}")]
    Refused { why: &'static str, detail: String },
    #[error("the leader of the cluster has not seen yet what this node has shown")]
    Behind,
    #[error("{0} requests are being forwarded to the leader of the cluster, which is the limit")]
    TooMany(usize),
    #[error("{0} sign-ins of this address, or of all, are under way, which is the limit")]
    TooManySignIns(usize),
    #[error("this node has not seen the newest changes for {} s, and cannot tell whether the token is valid", .0.as_secs())]
    NotCurrent(Duration),
    #[error("the request is too large to be forwarded")]
    TooLarge,
    #[error("the connection to the leader of the cluster broke")]
    Broken(String),
    #[error("the leader of the cluster did not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("this node did not see the change within {} s", .0.as_secs())]
    NotSeen(Duration),
}

/// Labels of the metric: of requests that the leader answered, and of [`ForwardError::outcome`].
const FORWARD_OUTCOMES: [&str; 8] = [
    "answered",
    "no_leader",
    "unreachable",
    "refused",
    "too_many",
    "not_current",
    "too_large",
    "outcome_unknown",
];

impl ForwardError {
    /// Whether the request may have been carried out.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Late(_) | Self::NotSeen(_) => true,
            Self::NoLeader
            | Self::Unreachable(_)
            | Self::Refused { .. }
            | Self::Behind
            | Self::TooMany(_)
            | Self::TooManySignIns(_)
            | Self::NotCurrent(_)
            | Self::TooLarge => false,
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::Unreachable(why) | Self::Refused { detail: why, .. } | Self::Broken(why) => why,
            Self::NoLeader
            | Self::Behind
            | Self::TooMany(_)
            | Self::TooManySignIns(_)
            | Self::NotCurrent(_)
            | Self::TooLarge
            | Self::Late(_)
            | Self::NotSeen(_) => "",
        }
    }

    /// The label of the metric.
    fn outcome(&self) -> &'static str {
        match self {
            Self::NoLeader => "no_leader",
            Self::Unreachable(_) => "unreachable",
            Self::Refused { .. } | Self::Behind => "refused",
            Self::TooMany(_) | Self::TooManySignIns(_) => "too_many",
            Self::NotCurrent(_) => "not_current",
            Self::TooLarge => "too_large",
            Self::Broken(_) | Self::Late(_) | Self::NotSeen(_) => "outcome_unknown",
        }
    }
}

impl From<ForwardError> for Failure {
    fn from(error: ForwardError) -> Self {
        let cause = FailureCause::Forwarding(error.to_string());
        match error.is_outcome_unknown() {
            true => Self::OutcomeUnknown(cause),
            false => Self::Unavailable(cause),
        }
    }
}

/// A time limit that began at its creation.
#[derive(Clone, Copy)]
struct Deadline {
    within: Duration,
    since: Stopwatch,
}

impl Deadline {
    fn new(within: Duration) -> Self {
        Self { within, since: Stopwatch::start() }
    }

    fn rest(self) -> Duration {
        self.within.saturating_sub(self.since.elapsed())
    }
}

/// What [`Nodes`] is made of.
pub struct NodesParts {
    pub standing: watch::Receiver<Standing>,
    pub views: Arc<Views>,
    pub key: Arc<NodeKey>,
    pub tls: Option<Arc<NodeTls>>,
    pub guest_notes: Arc<dyn GuestNotes>,
    pub clock: Arc<dyn Clock>,
    pub limits: ForwardLimits,
}

/// A node of a cluster: what it knows of the others, and its way to the leader.
pub struct Nodes {
    standing: watch::Receiver<Standing>,
    views: Arc<Views>,
    key: Arc<NodeKey>,
    client: LeaderClient,
    guest_notes: Arc<dyn GuestNotes>,
    clock: Arc<dyn Clock>,
    limits: ForwardLimits,
    in_flight: Semaphore,
    sign_ins: std::sync::Mutex<SharedPlaces>,
    reported_uses: std::sync::Mutex<ReportedUses>,
    /// Requests that this node forwarded, by outcome.
    pub forwarded: Counters,
    /// Messages that this node refused, by reason.
    pub refused: Counters,
    /// Of requests of callers. They must not hide failures of this node's own messages, which have another limit.
    callers_log_limit: std::sync::Mutex<LogRateLimit>,
    own_log_limit: std::sync::Mutex<LogRateLimit>,
    since_start: Stopwatch,
}

impl Nodes {
    pub fn new(parts: NodesParts) -> Self {
        let NodesParts { standing, views, key, tls, guest_notes, clock, limits } = parts;
        Self {
            standing,
            views,
            key,
            client: LeaderClient::new(tls),
            guest_notes,
            clock,
            limits,
            in_flight: Semaphore::new(limits.in_flight_max),
            sign_ins: std::sync::Mutex::new(SharedPlaces::new(
                limits.sign_ins_max,
                limits.sign_ins_per_source_max,
            )),
            reported_uses: std::sync::Mutex::default(),
            forwarded: counters_from_zero("outcome", FORWARD_OUTCOMES),
            refused: counters_from_zero("reason", Refused::CODES),
            callers_log_limit: log_limit(LOG_CALLERS_EVERY),
            own_log_limit: log_limit(LOG_OWN_EVERY),
            since_start: Stopwatch::start(),
        }
    }

    /// Whether changes are carried out here.
    pub fn leads(&self) -> bool {
        self.standing.borrow().role.leads()
    }

    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Sends a digest to the leader, if it is this process (`name~epoch`), and returns its answer.
    pub async fn send_digest(
        &self,
        leader: &str,
        digest: Bytes,
        within: Duration,
    ) -> Result<Bytes, ForwardError> {
        let known = self.standing().leader.map(|known| known.id());
        if known.as_deref() != Some(leader) {
            return Err(ForwardError::NoLeader);
        }
        Ok(self.exchange(Kind::Digest, digest, Deadline::new(within)).await?.content)
    }

    /// Sends a message to the leader and waits for the answer. Counts the outcome.
    async fn exchange(&self, kind: Kind, content: Bytes, deadline: Deadline) -> Result<Answer, ForwardError> {
        let (is_sent, within) = (AtomicBool::new(false), deadline.within);
        let answer =
            match timeout(deadline.rest(), self.exchange_in_time(kind, content, deadline, &is_sent)).await {
                Ok(answer) => answer,
                Err(_) if is_sent.load(Relaxed) => Err(ForwardError::Late(within)),
                Err(_) => Err(ForwardError::Unreachable(format!("no connection within {within:?}"))),
            };
        match (&answer, kind) {
            (Err(error), Kind::Hello | Kind::Digest | Kind::Audit) => self.log(kind, error),
            // `forward` logs failures of callers' requests.
            (Err(_), Kind::Operator | Kind::Approval) | (Ok(_), _) => {}
        }
        answer
    }

    async fn exchange_in_time(
        &self,
        kind: Kind,
        content: Bytes,
        deadline: Deadline,
        is_sent: &AtomicBool,
    ) -> Result<Answer, ForwardError> {
        let Standing { me, leader, .. } = self.standing();
        let leader = leader.ok_or(ForwardError::NoLeader)?;
        let (sender, receiver) = (me.id(), leader.id());
        if receiver == sender {
            // The record names this process, which does not lead yet, or no longer.
            return Err(ForwardError::NoLeader);
        }
        let notes = match kind {
            Kind::Operator | Kind::Approval => self.guest_notes.notes_for_request(),
            Kind::Hello | Kind::Digest | Kind::Audit => Bytes::new(),
        };
        let mut message = Message { kind, sender, receiver, stamp: Stamp::default(), notes, content };
        let mut idle = self.client.idle(&leader).await;
        loop {
            let is_new = idle.is_none();
            let mut connection = match idle.take() {
                Some(connection) => connection,
                None => self.connect(&leader, &message, deadline).await?,
            };
            let key = self.key.get().await.ok_or_else(no_key)?;
            match connection.send(&key, &mut message, deadline, || is_sent.store(true, Relaxed)).await? {
                Sent::Answered(bytes) => {
                    let answer = Answer::decode(bytes).ok_or_else(malformed)?;
                    self.client.keep(connection);
                    return Ok(answer);
                }
                // The connection was closed while it was idle; no byte of the message was sent.
                Sent::Unsent => {
                    is_sent.store(false, Relaxed);
                    if is_new {
                        return Err(closed());
                    }
                }
            }
        }
    }

    /// A new connection, after both hellos. If the leader has another key, this node reads the key again.
    async fn connect(
        &self,
        leader: &Leader,
        Message { sender, receiver, .. }: &Message,
        deadline: Deadline,
    ) -> Result<Connection, ForwardError> {
        let mut new = self.client.connect(leader).await?;
        let mut key = self.key.get().await.ok_or_else(no_key)?;
        let nonce = random().map_err(|error| {
            ForwardError::Unreachable(format!("the system gives no random bytes: {error}"))
        })?;
        let mut hello = Message::hello(sender.clone(), receiver.clone(), nonce);
        let challenge = match new.hello(&key, &hello).await? {
            Some(challenge) => challenge,
            None => {
                key = self.key.read_again().await.ok_or_else(other_key)?;
                new.hello(&key, &hello).await?.ok_or_else(other_key)?
            }
        };
        let mut connection = Connection::new(new, receiver.clone(), challenge);
        match connection.send(&key, &mut hello, deadline, || ()).await {
            Ok(Sent::Answered(_)) => Ok(connection),
            Ok(Sent::Unsent) => Err(closed()),
            // A hello changes nothing.
            Err(error) if error.is_outcome_unknown() => Err(ForwardError::Unreachable(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn log(&self, kind: Kind, error: &ForwardError) {
        let limit = match kind {
            Kind::Operator | Kind::Approval => &self.callers_log_limit,
            Kind::Hello | Kind::Digest | Kind::Audit => &self.own_log_limit,
        };
        if let Some(times) = lock(limit).record(self.since_start.elapsed()) {
            let (message, detail) = (kind.name(), error.detail());
            tracing::warn!(
                message,
                times,
                detail,
                "a message did not reach the leader, or has no answer: {error}"
            );
        }
    }
}

fn malformed() -> ForwardError {
    ForwardError::Broken("the leader's answer is malformed".to_owned())
}

fn closed() -> ForwardError {
    ForwardError::Unreachable("the leader closed the connection".to_owned())
}

fn no_key() -> ForwardError {
    ForwardError::Unreachable("the leader has not put the key of messages into the store yet".to_owned())
}

fn other_key() -> ForwardError {
    ForwardError::Refused { why: OTHER_KEY, detail: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_listener_beyond_loopback_needs_mutual_tls() {
        let pair = crate::operator::tls::CertificateFiles { cert: "c".into(), key: "k".into() };
        let tls = Some(NodeTlsFiles { pair, authority: "ca".into() });
        let check = |listen: &str, tls: &Option<NodeTlsFiles>| {
            NodesConfig { listen: listen.parse().unwrap(), tls: tls.clone() }.check()
        };
        assert_eq!(NodesConfig::default().check(), Ok(()));
        for listen in ["127.0.0.1:0", "[::1]:9256", "127.0.0.9:1"] {
            assert_eq!((check(listen, &None), check(listen, &tls)), (Ok(()), Ok(())), "{listen}");
        }
        for listen in ["10.0.0.1:9256", "[fd00::1]:9256"] {
            let error = check(listen, &None).unwrap_err().to_string();
            assert!(error.contains(listen) && error.contains("--node-ca"), "{error}");
            assert_eq!(check(listen, &tls), Ok(()));
        }
        for listen in ["0.0.0.0:9256", "[::]:9256"] {
            let error = check(listen, &tls).unwrap_err();
            assert_eq!(error, NodesConfigError::Unspecified(listen.parse().unwrap()));
        }
    }

    #[test]
    fn failures_before_sending_change_nothing() {
        let why = || "x".to_owned();
        for (error, code) in [
            (ForwardError::NoLeader, "unavailable"),
            (ForwardError::Unreachable(why()), "unavailable"),
            (ForwardError::Refused { why: "x", detail: why() }, "unavailable"),
            (ForwardError::Behind, "unavailable"),
            (ForwardError::TooMany(256), "unavailable"),
            (ForwardError::TooManySignIns(4), "unavailable"),
            (ForwardError::NotCurrent(Duration::from_secs(5)), "unavailable"),
            (ForwardError::TooLarge, "unavailable"),
            (ForwardError::Broken(why()), "outcome_unknown"),
            (ForwardError::Late(Duration::from_secs(5)), "outcome_unknown"),
            (ForwardError::NotSeen(Duration::from_secs(2)), "outcome_unknown"),
        ] {
            assert_eq!(Failure::from(error).code(), code);
        }
    }
}
