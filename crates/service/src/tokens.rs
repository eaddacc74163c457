//! Who may use the operator API. A token is shown once, when it is made; the store keeps its hash.
//!
//! The first token, `root`, is made at the first start and written to a file that only its owner can read,
//! so that the command line on the same machine works at once and nothing else does.

use jiff::Timestamp;
use notbefore_engine::records::{self, prefix};
use notbefore_store::{Expect, Key, Outcome, ReadError, Revision, Store, Txn};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::data_dir::DataDir;

/// The name of the first token.
pub const ROOT: &str = "root";

/// A token, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Its name; facts name it as the actor.
    pub name: String,
    /// The SHA-256 of its secret, in hexadecimal.
    pub hash: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A role on everything below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// Where: `subscription/group/…`, or empty for everywhere.
    pub path: String,
}

/// What a token's holder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    Operator,
}

/// The tokens there are.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    records: Vec<TokenRecord>,
}

/// Why the first token could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record cannot be understood.
    #[error(transparent)]
    Decode(#[from] notbefore_engine::DecodeError),
    /// The token's file cannot be written or read.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store would not take it.
    #[error("cannot store the first token: {0}")]
    Store(String),
}

/// A secret's hash, as it is stored.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tokens {
    /// Reads the tokens, and makes the first one where there is none.
    pub async fn load(store: &dyn Store, dir: &DataDir, now: Timestamp) -> Result<Self, TokenError> {
        let snapshot = store.snapshot().await?;
        let page = snapshot.scan(prefix::TOKEN, None, 10_000).await?;
        let mut tokens = Vec::new();
        let mut root = None;
        for (key, record) in page.records {
            let token = records::decode::<TokenRecord>(&key, &record.value)?;
            match token.name == ROOT && !dir.token_path().exists() {
                // Whoever can start the service here may have its token; without the file nobody could.
                true => root = Some(record.revision),
                false => tokens.push(token),
            }
        }
        if root.is_some() {
            tracing::warn!(path = %dir.token_path().display(), "the first token's file is gone; made a new token");
        }
        if root.is_some() || tokens.is_empty() {
            tokens.push(make_first(store, dir, root, now).await?);
        }
        Ok(Self { records: tokens })
    }

    /// The token that a secret is, if it is one and has not expired. Secrets are compared by their hashes, so
    /// that the time it takes says nothing about them.
    pub fn holder(&self, secret: &str, now: Timestamp) -> Option<&TokenRecord> {
        let hash = hash(secret);
        let valid = |record: &&TokenRecord| {
            record.hash == hash && record.expires_at.is_none_or(|expires_at| now < expires_at)
        };
        self.records.iter().find(valid)
    }
}

/// Makes the first token. The file comes first: if the process dies before the record is stored, the next
/// start finds the secret and stores it.
async fn make_first(
    store: &dyn Store,
    dir: &DataDir,
    replaces: Option<Revision>,
    now: Timestamp,
) -> Result<TokenRecord, TokenError> {
    let path = dir.token_path();
    let file_error = |source| TokenError::File { path: path.clone(), source };
    let secret = match std::fs::read_to_string(&path) {
        Ok(secret) => secret.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret = format!("nb_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            dir.write_whole("operator.token", format!("{secret}\n").as_bytes(), 0o600).map_err(file_error)?;
            secret
        }
        Err(source) => return Err(file_error(source)),
    };
    let grants = vec![Grant { role: Role::Operator, path: String::new() }];
    let record =
        TokenRecord { name: ROOT.to_owned(), hash: hash(&secret), grants, created_at: now, expires_at: None };
    let key: Key = format!("{}{ROOT}", prefix::TOKEN).into();
    let txn = Txn {
        expect: vec![Expect { key: key.clone(), revision: replaces }],
        put: vec![(key, records::encode(&record))],
        delete: Vec::new(),
    };
    match store.commit(txn).await {
        Outcome::Committed(_) => Ok(record),
        Outcome::Conflict(_) => Err(TokenError::Store("another service has just made it".to_owned())),
        Outcome::Refused(refusal) => Err(TokenError::Store(refusal.to_string())),
        Outcome::Unknown(why) => Err(TokenError::Store(why)),
    }
}
