//! Tokens of the operator API. The secret is shown once, when the token is created; the store keeps its hash.
//!
//! A secret is 256 random bits, stored as SHA-256. A slow hash protects secrets that can be guessed. This one cannot,
//! and a fast hash can be checked at every request.
//!
//! The first token, `root`, is created at the first start and written to a file that only its owner can read. The
//! command line on the same machine then works at once. Its secret is random, unless a file gives it. Later tokens are ordinary records: the engine changes them and
//! publishes them to the [`TokenTable`] of the view.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use data_encoding::HEXLOWER;
use imbl::{HashMap, OrdMap};
use jiff::Timestamp;
use notbefore_core::access::TOKENS_MAX;
use notbefore_core::{Actor, Fact, Grant, Name, Prefix, Recorded, Role, Token};
use notbefore_engine::Revisioned;
use notbefore_engine::cluster::{FORMAT, FormatRecord, LEADER};
use notbefore_engine::records::{self, FactBatch, prefix};
use notbefore_store::{Expect, Outcome, ReadError, Revision, Store, Tally, Txn};
use sha2::{Digest, Sha256};

use crate::data_dir::{self, DataDir};
use crate::guest::rate::RateState;
use crate::integrity::{self, IntegrityError};
use crate::{random, secret_file};

/// The name of the first token.
pub const ROOT: &str = "root";

/// Minimum length of a first token given in a file: with a fast hash, a shorter secret could be guessed.
const FIRST_TOKEN_CHARS_MIN: usize = 20;

/// Why the first token could not be created or read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A token is damaged or missing.
    #[error(transparent)]
    Damaged(#[from] IntegrityError),
    /// A record cannot be decoded.
    #[error(transparent)]
    Decode(#[from] notbefore_engine::DecodeError),
    /// The token's file cannot be written or read.
    #[error("cannot use {path}")]
    File { path: PathBuf, source: std::io::Error },
    /// The file of the setting cannot be read.
    #[error(
        "cannot read the first token from {path}: {error}; see --root-token-file (NOTBEFORE_ROOT_TOKEN_FILE)"
    )]
    Given { path: PathBuf, error: std::io::Error },
    /// The token in the file is too short.
    #[error(
        "{path} holds a first token of {chars} characters, at least {FIRST_TOKEN_CHARS_MIN} are needed; write a longer one, for example with openssl rand -hex 32, or leave the file out to have one created"
    )]
    TooShort { path: PathBuf, chars: usize },
    /// The token cannot be sent in a header.
    #[error(
        "{path} holds a first token that cannot be sent in a header: write one line of ASCII letters, digits and punctuation"
    )]
    NotText { path: PathBuf },
    /// The cluster is not new.
    #[error(
        "the cluster has a first token already, in the data directory of the node that led first or where 'token init' wrote it; create others with 'notbefore token create'"
    )]
    NotFirst,
    /// The system has no randomness.
    #[error("cannot create the first token: the system gives no random bytes")]
    Random(#[source] std::io::Error),
    /// The store refused the token.
    #[error("cannot store the first token: {0}")]
    Store(String),
}

impl TokenError {
    /// Whether the file of the setting is wrong.
    pub fn is_setting(&self) -> bool {
        match self {
            Self::Given { .. } | Self::TooShort { .. } | Self::NotText { .. } => true,
            Self::Read(_)
            | Self::Damaged(_)
            | Self::Decode(_)
            | Self::File { .. }
            | Self::Random(_)
            | Self::NotFirst
            | Self::Store(_) => false,
        }
    }
}

/// A new secret: 256 random bits, with a prefix that secret scanners recognise.
pub fn new_secret() -> std::io::Result<String> {
    Ok(format!("nb_{}", HEXLOWER.encode(&random::<32>()?)))
}

/// The stored hash of a secret.
pub fn hash(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret.as_bytes()))
}

/// The tokens of a view. Copy-on-write: the next table shares unchanged tokens.
#[derive(Clone, Default)]
pub struct TokenTable {
    by_name: OrdMap<String, Arc<KnownToken>>,
    by_hash: HashMap<String, Arc<KnownToken>>,
}

/// A token that was not revoked; it may have expired.
pub struct KnownToken {
    /// The token.
    pub token: Token,
    /// The store revision of the token.
    pub revision: u64,
    used_at_s: AtomicI64,
    /// State of the rate limit for changes.
    pub changes: RateState,
    /// State of the rate limit for costly reads.
    pub costly_reads: RateState,
}

impl KnownToken {
    /// A token that was not used yet.
    pub fn new(token: Token, revision: u64) -> Self {
        let (used_at_s, changes, costly_reads) = Default::default();
        Self { token, revision, used_at_s, changes, costly_reads }
    }

    /// Last use, to the second, since the start of this process. It is not stored: a write at every use would cost too
    /// much. The leader of a cluster also knows the uses at its followers.
    pub fn last_used_at(&self) -> Option<Timestamp> {
        match self.used_at_s.load(Relaxed) {
            0 => None,
            second => Timestamp::from_second(second).ok(),
        }
    }

    /// Records a use.
    pub fn mark_used(&self, now: Timestamp) {
        self.used_at_s.store(now.as_second(), Relaxed);
    }
}

impl TokenTable {
    /// The token of a secret, also if it has expired. The lookup is by hash, so its timing reveals nothing about the
    /// secret.
    pub fn by_secret(&self, secret: &str) -> Option<&Arc<KnownToken>> {
        self.by_hash.get(&hash(secret))
    }

    /// Whether this token, not only one with its name, is still valid.
    pub fn is_valid(&self, token: &Token, now: Timestamp) -> bool {
        self.by_hash.contains_key(&token.hash) && !token.is_expired(now)
    }

    /// A token by name.
    pub fn named(&self, name: &Name) -> Option<&Arc<KnownToken>> {
        self.by_name.get(&name.folded())
    }

    /// Last uses by the token's hash.
    pub fn uses(&self) -> BTreeMap<String, Timestamp> {
        let used = |known: &Arc<KnownToken>| Some((known.token.hash.clone(), known.last_used_at()?));
        self.by_name.values().filter_map(used).collect()
    }

    /// Records a use at another node, of the token with this hash. Of several the last counts.
    pub fn record_use(&self, hash: &str, at: Timestamp) {
        if let Some(known) = self.by_hash.get(hash) {
            known.used_at_s.fetch_max(at.as_second(), Relaxed);
        }
    }

    /// All tokens after a name, in order.
    pub fn after(&self, name: Option<&str>) -> impl Iterator<Item = &Arc<KnownToken>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, Excluded);
        self.by_name.range::<_, str>((from, Unbounded)).map(|(_, known)| known)
    }

    /// Adds, replaces or removes a token.
    pub fn apply(&mut self, name: &Name, held: Option<Revisioned<Token>>) {
        if let Some(old) = self.by_name.remove(&name.folded()) {
            self.by_hash.remove(&old.token.hash);
        }
        if let Some(Revisioned { revision, value }) = held {
            let token = (*value).clone();
            let known = Arc::new(KnownToken::new(token, revision.0));
            self.by_hash.insert(known.token.hash.clone(), Arc::clone(&known));
            self.by_name.insert(name.folded(), known);
        }
    }
}

/// Reads the first token from the file of the setting.
pub fn read_given(path: &Path) -> Result<String, TokenError> {
    let failed = |error| TokenError::Given { path: path.to_owned(), error };
    let bytes = secret_file::read(path, "the first token").map_err(failed)?;
    let too_large = || failed(std::io::Error::other("it is too large for a token"));
    let text = String::from_utf8(bytes.ok_or_else(too_large)?);
    let text = text.map_err(|_| TokenError::NotText { path: path.to_owned() })?;
    checked(path, &text)
}

/// The secret in the text of a file.
fn checked(path: &Path, text: &str) -> Result<String, TokenError> {
    let secret = text.trim();
    let chars = secret.chars().count();
    if chars < FIRST_TOKEN_CHARS_MIN {
        return Err(TokenError::TooShort { path: path.to_owned(), chars });
    }
    match secret.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        true => Ok(secret.to_owned()),
        false => Err(TokenError::NotText { path: path.to_owned() }),
    }
}

/// What to do with a first token whose file is not in the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostToken {
    /// The file is lost: create another token.
    Replace,
    /// The file is on another node.
    Keep,
}

/// Creates the first token if no token has full access: at the first start, when its file is lost, or when all such
/// tokens have expired. Its secret is that of the file `given`, if there is one.
pub async fn ensure_first(
    store: &dyn Store,
    dir: &DataDir,
    given: Option<&Path>,
    lost_token: LostToken,
    now: Timestamp,
) -> Result<(), TokenError> {
    let secret = given.map(read_given).transpose()?;
    let snapshot = store.snapshot().await?;
    let page = snapshot.scan(prefix::TOKEN, None, TOKENS_MAX + 1).await?;
    // A token that is missing because of damage must not count as one that never existed.
    integrity::check_damaged(&page)?;
    if !page.more {
        let mut found = Tally::default();
        page.records.iter().for_each(|(key, record)| found.add(key, record.revision));
        integrity::check_tally(&*snapshot, prefix::TOKEN, found)?;
    }
    let mut root = None;
    let mut has_full_access = false;
    for (key, record) in &page.records {
        let token = records::decode::<Token>(key, &record.value)?;
        has_full_access |= token.is_full_operator() && !token.is_expired(now);
        if token.name.folded() == ROOT {
            root = Some((record.revision, token.hash));
        }
    }
    let file = dir.file(data_dir::TOKEN);
    let lost = lost_token == LostToken::Replace && root.is_some() && !file.exists();
    if has_full_access && !lost {
        let differs = |secret: &String| root.as_ref().is_some_and(|(_, known)| *known != hash(secret));
        if let (Some(path), true) = (given, secret.as_ref().is_some_and(differs)) {
            tracing::warn!(
                path = %path.display(),
                "this file does not hold the token root, which exists and stays as it is; to replace it, remove {} and restart",
                file.display()
            );
        }
        return Ok(());
    }
    if !page.records.is_empty() {
        // A user who can start the service here may have its token; without one, no access is possible. A secret left
        // in the file was revoked or has expired, so it is replaced.
        let path = file.display();
        tracing::warn!(%path, "no valid token had full access: created a new first token");
        let _ = std::fs::remove_file(&file);
    }
    make_first(store, dir, secret, root.map(|(revision, _)| revision), now).await
}

/// Creates the first token of a cluster in which no node has led yet, and writes its secret to a new file.
pub async fn create_in_cluster(store: &dyn Store, file: &Path, now: Timestamp) -> Result<(), TokenError> {
    let path = || file.to_owned();
    let exists = |source| TokenError::File { path: path(), source };
    if std::fs::symlink_metadata(file).is_ok() {
        return Err(exists(std::io::ErrorKind::AlreadyExists.into()));
    }
    let secret = new_secret().map_err(TokenError::Random)?;
    data_dir::write_atomic(file, format!("{secret}\n").as_bytes(), 0o600).map_err(exists)?;
    let mut txn = first_token(&secret, None, now)?;
    txn.expect.extend([LEADER, FORMAT].map(|key| Expect { key: key.into(), revision: None }));
    txn.put.push((FORMAT.into(), records::encode(&FormatRecord { level: records::FORMAT_LEVEL })));
    let stored = match store.commit(txn).await {
        Outcome::Committed(_) => return Ok(()),
        Outcome::Conflict(_) => Err(TokenError::NotFirst),
        Outcome::Refused(refusal) => Err(TokenError::Store(refusal.to_string())),
        // The file stays: the token may be in the store.
        Outcome::Unknown(why) => return Err(TokenError::Store(why)),
    };
    let _ = std::fs::remove_file(file);
    stored
}

/// Creates the first token. The file is written first: after a crash before the record is stored, the next start finds
/// the secret and stores it.
async fn make_first(
    store: &dyn Store,
    dir: &DataDir,
    given: Option<String>,
    replaces: Option<Revision>,
    now: Timestamp,
) -> Result<(), TokenError> {
    let path = dir.file(data_dir::TOKEN);
    let file_error = |source| TokenError::File { path: path.clone(), source };
    let write = |secret: String| {
        let written = dir.write_atomic(data_dir::TOKEN, format!("{secret}\n").as_bytes(), 0o600);
        written.map(|()| secret).map_err(file_error)
    };
    let secret = match (given, std::fs::read_to_string(&path)) {
        (Some(secret), _) => write(secret)?,
        (None, Ok(text)) => checked(&path, &text)?,
        (None, Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            write(new_secret().map_err(TokenError::Random)?)?
        }
        (None, Err(source)) => return Err(file_error(source)),
    };
    let txn = first_token(&secret, replaces, now)?;
    match store.commit(txn).await {
        Outcome::Committed(_) => Ok(()),
        Outcome::Conflict(_) => Err(TokenError::Store("another service has just created it".to_owned())),
        Outcome::Refused(refusal) => Err(TokenError::Store(refusal.to_string())),
        Outcome::Unknown(why) => Err(TokenError::Store(why)),
    }
}

/// The transaction that stores the first token. `replaces` is the revision of the token of this name, if there is one.
fn first_token(secret: &str, replaces: Option<Revision>, now: Timestamp) -> Result<Txn, TokenError> {
    let name = ROOT.parse::<Name>().map_err(|error| TokenError::Store(error.to_string()))?;
    let grants = vec![Grant { role: Role::Operator, path: Prefix::root() }];
    let token = Token {
        name: name.clone(),
        hash: hash(secret),
        grants: grants.clone(),
        created_at: now,
        created_by: Some(Actor::Service),
        expires_at: None,
    };
    let fact =
        Recorded { at: now, by: Actor::Service, fact: Fact::TokenCreated { name: name.clone(), grants } };
    let facts = FactBatch { scope: None, from: None, first: 0, facts: vec![fact] };
    let key = records::token(&name);
    Ok(Txn {
        expect: vec![Expect { key: key.clone(), revision: replaces }],
        put: vec![(key, records::encode(&token)), (records::fact(now, "start", 0), records::encode(&facts))],
        delete: Vec::new(),
    })
}
