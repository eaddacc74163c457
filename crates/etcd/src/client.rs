//! Calls to etcd: which connection they use, their deadlines, the token, and checks of every response.
//!
//! - Writes and reads have a connection each, so that pages of 4 MiB do not delay the answers to commits. Each watch has its
//!   own.
//! - Before a connection is used, it answers a linearizable read. A member that stands still, that has no leader, or that
//!   belongs to another cluster or a restored backup never sees a write.
//! - No write is ever sent twice. Reads are retried on other endpoints.
//! - A call that has no answer for a second, on a connection without other answers, moves later calls to the next endpoint. It
//!   still waits for its own answer until its deadline.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use notbefore_store::Revision;
use tokio::pin;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tonic::metadata::AsciiMetadataValue;

use crate::config::{Checked, EtcdUser, Password};
use crate::connection::{CallMetadata, Connection};
use crate::errors::{CallError, classify, is_local};
use crate::identity::{Freshness, Identity};
use crate::lane::{Current, Lane};
use crate::log_turns::LogTurns;
use crate::proto::{AuthenticateRequest, Call, Headed, RangeRequest};
use crate::tls::{TlsConfig, read_file};

/// Deadline of a call, with the time to connect. etcd itself gives up after 7 s.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Deadline to connect, with TLS. A member that was stopped with SIGSTOP accepts TCP connections and answers nothing.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// Deadline of the read that a new connection has to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// After this long without any answer, new calls use another endpoint. Shorter than the 2.5 s after which a leader without
/// an acknowledged heartbeat steps down.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// Pause after a round in which no endpoint answered, so that callers cannot make a busy loop of it.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// etcd checks passwords with bcrypt, which is slow by design.
const AUTHENTICATE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a read is sent at most.
const READ_ATTEMPTS: usize = 3;
/// Limit on transactions in flight. etcd commits what arrives together in one write to its disk; more gains nothing.
const COMMITS_IN_FLIGHT_MAX: usize = 128;
/// Limit on open watches; each has a connection.
const WATCHES_MAX: usize = 64;
/// Interval of lines of the log about watches that cannot be opened. Callers try again several times a second.
const LOG_WATCHES_EVERY: Duration = Duration::from_secs(10);
/// Largest file with a password.
const PASSWORD_BYTES_MAX: u64 = 4 * 1024;

pub(crate) struct Client {
    pub(crate) config: Checked,
    tls: Option<TlsConfig>,
    pub(crate) identity: Identity,
    token: Mutex<Token>,
    /// Held while authenticating, so that one caller does.
    authenticating: tokio::sync::Mutex<()>,
    connections: AtomicU64,
    pub(crate) writes: Lane,
    pub(crate) reads: Lane,
    /// Only the rotation of endpoints: each watch has a connection of its own.
    pub(crate) watch_turns: Lane,
    pub(crate) commits: Semaphore,
    pub(crate) watches: Arc<Semaphore>,
    watch_log: LogTurns,
}

/// What is known about the token of this node.
#[derive(Clone)]
enum Token {
    /// Authenticate before the next call.
    Missing,
    /// There is no user, or etcd has authentication switched off.
    NotNeeded,
    Valid(AsciiMetadataValue),
}

/// Why the node has no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthenticateError {
    #[error("etcd refuses user {user}: wrong name or password")]
    WrongPassword { user: String },
    #[error("cannot read the password of etcd's user from {path}: {error}")]
    PasswordFile { path: std::path::PathBuf, error: String },
    #[error("etcd does not authenticate this node: {0}")]
    Failed(CallError),
}

impl Client {
    pub(crate) fn new(
        config: Checked,
        tls: Option<TlsConfig>,
        cluster_id: u64,
        first_endpoint: usize,
    ) -> Self {
        let token = match config.user {
            Some(_) => Token::Missing,
            None => Token::NotNeeded,
        };
        Self {
            config,
            tls,
            identity: Identity::new(cluster_id),
            token: Mutex::new(token),
            authenticating: tokio::sync::Mutex::default(),
            connections: AtomicU64::new(0),
            writes: Lane::starting_at(first_endpoint),
            reads: Lane::starting_at(first_endpoint),
            watch_turns: Lane::starting_at(first_endpoint),
            commits: Semaphore::new(COMMITS_IN_FLIGHT_MAX),
            watches: Arc::new(Semaphore::new(WATCHES_MAX)),
            watch_log: LogTurns::every(LOG_WATCHES_EVERY),
        }
    }

    /// Logs that a watch was not opened.
    pub(crate) fn log_watch(&self, endpoint: &str, error: &str) {
        if self.watch_log.take() {
            tracing::warn!(endpoint, error, "the watch of etcd was not opened: retrying");
        }
    }

    /// The absolute key of a record.
    pub(crate) fn key(&self, key: &str) -> Bytes {
        Bytes::from([self.config.prefix.as_bytes(), key.as_bytes()].concat())
    }

    /// Opens a connection to an endpoint, without any check.
    pub(crate) async fn open(&self, endpoint: usize) -> Result<Connection, String> {
        let id = self.connections.fetch_add(1, Relaxed);
        let endpoint = self.config.endpoints.get(endpoint).ok_or("no such endpoint")?;
        match timeout(OPEN_TIMEOUT, Connection::open(endpoint, self.tls.as_ref(), id)).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(format!("no connection within {} s", OPEN_TIMEOUT.as_secs())),
        }
    }

    /// Opens a connection and checks that it leads to a working member of this cluster.
    pub(crate) async fn open_checked(&self, endpoint: usize) -> Result<Arc<Connection>, CallError> {
        let connection = self.open(endpoint).await.map_err(CallError::NotSent)?;
        match self.probe(&connection).await {
            // Whether the node may read is the calls' business.
            Ok(()) | Err(CallError::Denied | CallError::Token(_)) => Ok(Arc::new(connection)),
            Err(error @ CallError::Identity(_)) => Err(error),
            Err(error) => Err(CallError::NotSent(error.to_string())),
        }
    }

    async fn probe(&self, connection: &Connection) -> Result<(), CallError> {
        let request = RangeRequest { key: self.key(""), keys_only: true, ..RangeRequest::default() };
        let probe = || self.call_on(connection, request.clone(), PROBE_TIMEOUT, Freshness::Linearizable);
        match probe().await {
            // A member that has restarted has forgotten the tokens.
            Err(CallError::Token(_)) => probe().await.map(|_| ()),
            result => result.map(|_| ()),
        }
    }

    /// The lane's connection, or a new one. At most one round over the endpoints.
    async fn connection(&self, lane: &Lane) -> Result<Arc<Connection>, CallError> {
        let before = match lane.current() {
            Current::Connection(connection) => return Ok(connection),
            Current::None { failures } => failures,
        };
        let _dialing = lane.dialing.lock().await;
        match lane.current() {
            Current::Connection(connection) => return Ok(connection),
            Current::None { failures } if failures != before => {
                return Err(CallError::NotSent(lane.last_error()));
            }
            Current::None { .. } => {}
        }
        let endpoints = &self.config.endpoints;
        let mut errors = BTreeMap::new();
        for _ in endpoints {
            let number = lane.advance(endpoints.len());
            match self.open_checked(number).await {
                Ok(connection) => {
                    lane.install(Arc::clone(&connection));
                    return Ok(connection);
                }
                Err(error @ CallError::Identity(_)) => return Err(error),
                Err(error) => {
                    let name = endpoints.get(number).map_or("", |endpoint| &*endpoint.text);
                    errors.insert(number, format!("{name}: {error}"));
                }
            }
        }
        // In the order of the settings, whichever was tried first: callers compare it with the error before.
        let errors: Vec<String> = errors.into_values().collect();
        let error = format!("no endpoint of etcd answers: {}", errors.join("; "));
        sleep(ROUND_PAUSE).await;
        lane.fail(error.clone());
        Err(CallError::NotSent(error))
    }

    /// One call, sent at most once.
    pub(crate) async fn call<C: Call>(&self, lane: &Lane, message: C) -> Result<C::Response, CallError> {
        if let Some(change) = self.identity.changed() {
            return Err(CallError::NotSent(change.to_string()));
        }
        let deadline = sleep(CALL_TIMEOUT);
        pin!(deadline);
        let connection = tokio::select! {
            biased;
            connection = self.connection(lane) => match connection {
                Ok(connection) => connection,
                Err(error) => return Err(CallError::NotSent(error.to_string())),
            },
            () = &mut deadline => {
                let seconds = CALL_TIMEOUT.as_secs();
                return Err(CallError::NotSent(format!("no connection to etcd within {seconds} s")));
            }
        };
        let answers = connection.answers();
        let call = self.call_on(&connection, message, CALL_TIMEOUT, Freshness::Linearizable);
        let suspect = sleep(SUSPECT_AFTER);
        pin!(call, suspect);
        let mut is_suspected = false;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut call => break result,
                // The call's own timer started later.
                () = &mut deadline => break Err(no_answer()),
                () = &mut suspect, if !is_suspected => {
                    is_suspected = true;
                    if connection.answers() == answers {
                        lane.retire(connection.id);
                    }
                }
            }
        };
        if result.as_ref().is_err_and(CallError::blames_endpoint) {
            lane.retire(connection.id);
        }
        result
    }

    /// A call that may be repeated: other endpoints are tried, and an expired token is replaced.
    pub(crate) async fn read<C: Call + Clone>(&self, message: C) -> Result<C::Response, CallError> {
        let mut attempts = 1;
        loop {
            match self.call(&self.reads, message.clone()).await {
                Err(CallError::Unknown(_) | CallError::Token(_)) if attempts < READ_ATTEMPTS => attempts += 1,
                result => return result,
            }
        }
    }

    /// A call on one connection: with the token, a deadline, and checks of the response.
    pub(crate) async fn call_on<C: Call>(
        &self,
        connection: &Connection,
        message: C,
        within: Duration,
        freshness: Freshness,
    ) -> Result<C::Response, CallError> {
        let token = self.token(connection).await.map_err(|error| CallError::NotSent(error.to_string()))?;
        let floor = self.identity.floor();
        let metadata = CallMetadata { token: token.clone(), timeout: Some(within) };
        match timeout(within, connection.call(message, metadata)).await {
            Ok(Ok(response)) => {
                self.identity.check(response.header(), floor, freshness)?;
                Ok(response)
            }
            Ok(Err(status)) => {
                if is_local(&status) {
                    let reason = connection.why_lost(&status).await;
                    return Err(CallError::Unknown(format!("the connection to etcd was lost: {reason}")));
                }
                let error = classify(&status);
                if matches!(error, CallError::Token(_)) {
                    self.forget_token(token.as_ref());
                }
                Err(error)
            }
            Err(_elapsed) => Err(no_answer()),
        }
    }

    /// The token for a call. Authenticates first if there is none.
    pub(crate) async fn token(
        &self,
        connection: &Connection,
    ) -> Result<Option<AsciiMetadataValue>, AuthenticateError> {
        if let Some(known) = self.known_token() {
            return Ok(known);
        }
        let _authenticating = self.authenticating.lock().await;
        match self.known_token() {
            Some(known) => Ok(known),
            None => self.authenticate(connection).await,
        }
    }

    /// None if the node has to authenticate.
    fn known_token(&self) -> Option<Option<AsciiMetadataValue>> {
        match &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            Token::Missing => None,
            Token::NotNeeded => Some(None),
            Token::Valid(token) => Some(Some(token.clone())),
        }
    }

    fn set_token(&self, token: Token) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Forgets a token that etcd refused, unless it was replaced meanwhile.
    pub(crate) fn forget_token(&self, refused: Option<&AsciiMetadataValue>) {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = match &*token {
            Token::Missing => false,
            Token::NotNeeded => refused.is_none(),
            Token::Valid(token) => refused == Some(token),
        };
        if is_same && self.config.user.is_some() {
            *token = Token::Missing;
        }
    }

    /// Replaces the token before it expires.
    pub(crate) async fn renew_token(&self) {
        if self.config.user.is_none() || self.identity.changed().is_some() {
            return;
        }
        let Ok(connection) = self.connection(&self.writes).await else { return };
        if let Err(error) = self.authenticate(&connection).await {
            tracing::warn!(%error, "the token for etcd was not renewed: the earlier one stays in use");
        }
    }

    async fn authenticate(
        &self,
        connection: &Connection,
    ) -> Result<Option<AsciiMetadataValue>, AuthenticateError> {
        let Some(user) = &self.config.user else { return Ok(None) };
        let token = authenticate(connection, user).await?;
        self.set_token(match &token {
            Some(token) => Token::Valid(token.clone()),
            None => Token::NotNeeded,
        });
        Ok(token)
    }
}

fn no_answer() -> CallError {
    CallError::Unknown(format!("etcd did not answer within {} s", CALL_TIMEOUT.as_secs()))
}

/// Gets a token; none if etcd has authentication switched off.
pub(crate) async fn authenticate(
    connection: &Connection,
    user: &EtcdUser,
) -> Result<Option<AsciiMetadataValue>, AuthenticateError> {
    let password = read_password(&user.password)?;
    let request = AuthenticateRequest { name: user.name.clone(), password };
    let metadata = CallMetadata { token: None, timeout: Some(AUTHENTICATE_TIMEOUT) };
    let failed = |error| AuthenticateError::Failed(error);
    let response = match timeout(AUTHENTICATE_TIMEOUT, connection.call(request, metadata)).await {
        Ok(Ok(response)) => response,
        Ok(Err(status)) if status.message().contains("authentication is not enabled") => return Ok(None),
        Ok(Err(status)) if status.message().contains("invalid user ID or password") => {
            return Err(AuthenticateError::WrongPassword { user: user.name.clone() });
        }
        Ok(Err(status)) => return Err(failed(classify(&status))),
        Err(_elapsed) => return Err(failed(no_answer())),
    };
    let token = AsciiMetadataValue::try_from(response.token);
    let mut token = token.map_err(|_| failed(CallError::Refused("its token is not text".to_owned())))?;
    token.set_sensitive(true);
    Ok(Some(token))
}

fn read_password(password: &Password) -> Result<String, AuthenticateError> {
    match password {
        Password::Text(text) => Ok(text.clone()),
        Password::File(path) => {
            let wrong = |error: String| AuthenticateError::PasswordFile { path: path.clone(), error };
            let bytes = read_file(path, PASSWORD_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
            let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
        }
    }
}

/// The first key after all keys with a prefix. The prefix is not empty, and its last byte is not 0xff: it is text.
pub(crate) fn end_of(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    Bytes::from(end)
}

/// A revision in etcd's type.
pub(crate) fn to_etcd(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

pub(crate) fn from_etcd(revision: i64) -> Revision {
    Revision(u64::try_from(revision).unwrap_or(0))
}
