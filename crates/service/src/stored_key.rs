//! Keys of the service itself, as records under `secret/`. An export leaves them out.

use std::fmt;
use std::io;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use notbefore_engine::records::{self, NODE_KEY, SESSION_KEY, StoredKeyRecord};
use notbefore_store::{Expect, Outcome, ReadError, Store, Txn};
use sha2::Sha256;

use crate::random;

/// Which key, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Seals sessions of the console.
    Session,
    /// Signs messages between the nodes of a cluster.
    Node,
}

impl KeyKind {
    fn record(self) -> &'static str {
        match self {
            Self::Session => SESSION_KEY,
            Self::Node => NODE_KEY,
        }
    }

    /// What a new key means, if it replaces a malformed one.
    fn cost_of_replacement(self) -> &'static str {
        match self {
            Self::Session => "users of the console must sign in again",
            Self::Node => "the other nodes read it again",
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "the key of the console's sessions",
            Self::Node => "the key of messages between nodes",
        })
    }
}

/// Why a key cannot be read or created.
#[derive(Debug, thiserror::Error)]
pub enum StoredKeyError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot create {0}: the system gives no random bytes")]
    Random(KeyKind, #[source] io::Error),
    #[error("cannot store {0}: {1}")]
    Store(KeyKind, String),
}

/// A key for HMAC-SHA256.
#[derive(Clone)]
pub struct StoredKey(Hmac<Sha256>);

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKey").finish_non_exhaustive()
    }
}

impl StoredKey {
    /// Reads a key; none if it was not created yet, or is malformed.
    pub async fn load(store: &dyn Store, kind: KeyKind) -> Result<Option<Self>, ReadError> {
        let found = store.snapshot().await?.get(kind.record()).await?;
        Ok(found.and_then(|record| Self::decode(kind, &record.value)))
    }

    /// Reads a key, or creates it at the first start. A malformed key is replaced, so that guests are served.
    pub async fn load_or_create(store: &dyn Store, kind: KeyKind) -> Result<Self, StoredKeyError> {
        let name = kind.record();
        let found = store.snapshot().await?.get(name).await?;
        if let Some(record) = &found {
            if let Some(key) = Self::decode(kind, &record.value) {
                return Ok(key);
            }
            tracing::warn!("the record {name} is malformed and is replaced: {}", kind.cost_of_replacement());
        }
        let random: [u8; 32] = random().map_err(|error| StoredKeyError::Random(kind, error))?;
        let key = HEXLOWER.encode(&random);
        let put = vec![(name.into(), records::encode(&StoredKeyRecord { key }))];
        let expect = vec![Expect { key: name.into(), revision: found.map(|record| record.revision) }];
        match store.commit(Txn { expect, put, delete: Vec::new() }).await {
            // After a conflict, another node's key counts.
            Outcome::Committed(_) | Outcome::Conflict(_) => {}
            Outcome::Refused(refusal) => return Err(StoredKeyError::Store(kind, refusal.to_string())),
            Outcome::Unknown(why) => return Err(StoredKeyError::Store(kind, why)),
        }
        let stored = Self::load(store, kind).await?;
        stored.ok_or_else(|| StoredKeyError::Store(kind, "it is gone again".to_owned()))
    }

    /// The key in a record; none if the record is malformed.
    fn decode(kind: KeyKind, value: &[u8]) -> Option<Self> {
        let record: StoredKeyRecord = records::decode(kind.record(), value).ok()?;
        let key = Some(record).filter(StoredKeyRecord::is_well_formed)?.key;
        Self::of(&HEXLOWER.decode(key.as_bytes()).ok()?)
    }

    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(key).ok().map(Self)
    }

    /// The HMAC of `content`. The purpose distinguishes the uses of a key.
    pub fn sign(&self, purpose: &[u8], content: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(purpose).chain_update(content).finalize().into_bytes().into()
    }

    /// Whether `signature` is the HMAC of `content`. The comparison is constant-time.
    pub fn verify(&self, purpose: &[u8], content: &[u8], signature: &[u8]) -> bool {
        self.0.clone().chain_update(purpose).chain_update(content).verify_slice(signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use notbefore_store::memory::MemoryStore;

    use super::*;

    const KINDS: [KeyKind; 2] = [KeyKind::Session, KeyKind::Node];

    fn mac(key: &StoredKey) -> [u8; 32] {
        key.sign(b"test", b"content")
    }

    #[tokio::test]
    async fn key_survives_restart_and_is_shared() {
        for kind in KINDS {
            let (store, other) = (MemoryStore::new(), MemoryStore::new());
            assert!(StoredKey::load(&store, kind).await.unwrap().is_none());
            let first = mac(&StoredKey::load_or_create(&store, kind).await.unwrap());
            assert_eq!(mac(&StoredKey::load_or_create(&store, kind).await.unwrap()), first);
            assert_eq!(mac(&StoredKey::load(&store, kind).await.unwrap().unwrap()), first);
            assert_ne!(mac(&StoredKey::load_or_create(&other, kind).await.unwrap()), first);
        }
    }

    #[tokio::test]
    async fn malformed_key_is_replaced() {
        for kind in KINDS {
            for wrong in ["1 {\"key\":\"zz\"}", "1 {\"key\":1}", "garbage"] {
                let store = MemoryStore::new();
                let put = vec![(kind.record().into(), wrong.into())];
                store.commit(Txn { put, ..Txn::default() }).await;
                assert!(StoredKey::load(&store, kind).await.unwrap().is_none());
                let first = mac(&StoredKey::load_or_create(&store, kind).await.unwrap());
                assert_eq!(mac(&StoredKey::load_or_create(&store, kind).await.unwrap()), first);
            }
        }
    }

    #[test]
    fn purpose_and_content_are_signed() {
        let key = StoredKey::of(&[7; 32]).unwrap();
        let signature = key.sign(b"a", b"b");
        assert!(key.verify(b"a", b"b", &signature));
        for (purpose, content) in [(b"x", b"b"), (b"a", b"x")] {
            assert!(!key.verify(purpose, content, &signature));
        }
        assert!(!key.verify(b"a", b"b", &signature[..31]));
        assert!(!StoredKey::of(&[8; 32]).unwrap().verify(b"a", b"b", &signature));
    }
}
