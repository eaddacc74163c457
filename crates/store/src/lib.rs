//! Where notbefore keeps what it has acknowledged: a small, revisioned key-value store.
//!
//! A [`Store`] holds records under string keys such as `scope/default/default/web`. Every commit gets a
//! [`Revision`], one higher than the last; a record remembers the revision that wrote it. Three calls are
//! all there is, so that an embedded file and an etcd cluster can give the same promise:
//!
//! - [`Store::snapshot`] reads at one revision, page by page, while commits go on;
//! - [`Store::commit`] writes a [`Txn`] if every [`Expect`] of it still holds (compare-and-swap), and says
//!   exactly what is known of the outcome: [`Outcome`];
//! - [`Store::watch`] yields every commit after a revision, in order, without gaps, or says that the
//!   revision is too old ([`WatchError::Compacted`]), and then the reader starts over from a snapshot.
//!
//! [`memory`] keeps everything in a map and is what tests and rehearsals use; [`redb`] is the embedded
//! default. `tests/contract.rs` is the suite that each implementation passes.

// A field whose name says all there is to say has no comment.
#![allow(missing_docs)]

mod apply;
mod log;
pub mod memory;
pub mod redb;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// How many operations (expectations, puts and deletes together) one transaction may hold. etcd refuses
/// past 128; staying under it keeps every transaction valid on both stores.
pub const TXN_OPERATIONS_MAX: usize = 100;

/// The largest value a record may have. A transaction of a scope, its operation and its facts then stays
/// under etcd's limit of 1.5 MiB a request.
pub const VALUE_BYTES_MAX: usize = 512 * 1024;

/// The largest sum of the values one transaction may put, below etcd's limit of 1.5 MiB a request.
pub const TXN_BYTES_MAX: usize = 1400 * 1024;

/// A record's name. Keys are ordered as bytes; `/` separates their parts.
pub type Key = Arc<str>;

/// A point in the store's history. Revision 0 is the empty store; each commit that writes adds one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record's value and the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The revision of the commit that put this value.
    pub revision: Revision,
    /// The value, as it was put.
    pub value: Bytes,
}

/// What a transaction takes for granted about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The key that is compared.
    pub key: Key,
    /// The revision its record must have, or none for "there is no such record".
    pub revision: Option<Revision>,
}

/// Writes that happen together or not at all, and only if every expectation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// What must hold.
    pub expect: Vec<Expect>,
    /// Records to write.
    pub put: Vec<(Key, Bytes)>,
    /// Records to remove; a key that has none is no error.
    pub delete: Vec<Key>,
}

/// What is known after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable, at this revision. A transaction that writes nothing answers the revision at which its
    /// expectations held.
    Committed(Revision),
    /// Nothing was written, since at least one expectation did not hold; these are the records found there.
    Conflict(Vec<Found>),
    /// Nothing was written and nothing will be.
    Refused(Refusal),
    /// It may or may not be durable. Whoever asked must ask again in a way that is safe either way.
    Unknown(String),
}

/// A record that stood where a transaction expected something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The key whose expectation failed.
    pub key: Key,
    /// What is there now; none if nothing is.
    pub current: Option<Versioned>,
}

/// Why a store would not even try a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// More operations than [`TXN_OPERATIONS_MAX`].
    #[error("transaction has {operations} operations, the limit is {TXN_OPERATIONS_MAX}; split it")]
    TooManyOperations { operations: usize },
    /// A value over [`VALUE_BYTES_MAX`].
    #[error("value of {key} has {bytes} bytes, the limit is {VALUE_BYTES_MAX}")]
    ValueTooLarge { key: Key, bytes: usize },
    /// All values together over [`TXN_BYTES_MAX`].
    #[error("transaction has {bytes} bytes, the limit is {TXN_BYTES_MAX}; split it")]
    TxnTooLarge { bytes: usize },
    /// The store cannot write at present (a full disk, a file that will not open); it keeps trying.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
}

impl Txn {
    /// Whether it changes anything, and does not only compare.
    pub fn writes(&self) -> bool {
        !(self.put.is_empty() && self.delete.is_empty())
    }

    /// Checks the limits that every store shares.
    pub fn check(&self) -> Result<(), Refusal> {
        let operations = self.expect.len() + self.put.len() + self.delete.len();
        if operations > TXN_OPERATIONS_MAX {
            return Err(Refusal::TooManyOperations { operations });
        }
        let mut bytes = 0;
        for (key, value) in &self.put {
            if value.len() > VALUE_BYTES_MAX {
                return Err(Refusal::ValueTooLarge { key: key.clone(), bytes: value.len() });
            }
            bytes += value.len();
        }
        if bytes > TXN_BYTES_MAX {
            return Err(Refusal::TxnTooLarge { bytes });
        }
        Ok(())
    }
}

/// One commit, as a watcher sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The commit's revision.
    pub revision: Revision,
    /// What it wrote, in the order of the transaction: puts, then deletes of records that existed.
    pub changes: Arc<[Change]>,
}

/// One record written or removed by a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record.
    pub key: Key,
    /// Its new value; none if it was removed.
    pub value: Option<Bytes>,
}

/// One page of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The records, in the order of their keys.
    pub records: Vec<(Key, Versioned)>,
    /// Whether there are more after the last of them.
    pub more: bool,
    /// Records that were passed over because they are not what was written. A key stands here as it was found; it may be
    /// the damaged part, and is not for looking the record up.
    pub damaged: Vec<Key>,
}

/// Where a scan begins: at the prefix, or behind the last key of the page before.
fn scan_start<'a>(prefix: &'a str, after: Option<&'a str>) -> Bound<&'a str> {
    match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        Some(_) | None => Bound::Included(prefix),
    }
}

/// Where a scan backwards begins: behind all that the prefix begins, or before the last key of the page before.
fn scan_end(prefix: &str, before: Option<&str>) -> Bound<String> {
    // No key has the last character there is; ours are made of names, numbers and slashes.
    let end = format!("{prefix}{}", char::MAX);
    match before {
        Some(before) if *before < *end => Bound::Excluded(before.to_owned()),
        Some(_) | None => Bound::Excluded(end),
    }
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store cannot be read at present.
    #[error("the store cannot be read: {0}")]
    Unavailable(String),
    /// The record is not what was written. Its key stands here as it was found.
    #[error(
        "record {key} is damaged: its checksum does not match; 'notbefore check --data DIR' lists all damage"
    )]
    Damaged { key: String },
}

/// Why a watch ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Commits after the wanted revision are no longer held; start over from a snapshot. A watch can begin at
    /// `oldest` or later.
    #[error(
        "the watch's next revision is no longer held (the oldest is {oldest}); read a snapshot and watch from there"
    )]
    Compacted { oldest: Revision },
    /// The store is gone.
    #[error("the store has closed")]
    Closed,
}

/// The store as of one revision, however many commits follow.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The revision it shows.
    fn revision(&self) -> Revision;
    /// How many records there are of each kind, as the store has counted them in every commit; none where it does not
    /// count. A kind is what a key has up to its first slash, or nothing for keys without one.
    fn counts(&self) -> Option<Vec<(String, u64)>> {
        None
    }
    /// One record.
    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError>;
    /// Up to `limit` records whose keys begin with `prefix` and come after `after`, in key order.
    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError>;
    /// Up to `limit` records whose keys begin with `prefix` and come before `before`, the last key first.
    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError>;
}

/// A running watch.
#[async_trait]
pub trait Watch: Send {
    /// The next commit; waits for it.
    async fn next(&mut self) -> Result<Batch, WatchError>;
}

/// A revisioned key-value store; see the crate's own page for the promise.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// A view of the newest revision.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError>;
    /// Writes `txn` if its expectations hold. When it answers [`Outcome::Committed`] the writes are durable
    /// and every snapshot taken from then on shows them.
    async fn commit(&self, txn: Txn) -> Outcome;
    /// Commits several transactions, in order, and answers what became of each. They are not one: each compares
    /// with what those before it left and stands by itself. A store that can makes them durable together.
    async fn commit_all(&self, txns: Vec<Txn>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(txns.len());
        for txn in txns {
            outcomes.push(self.commit(txn).await);
        }
        outcomes
    }
    /// All commits after `after`, in order.
    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError>;
    /// How many damaged records were met since the store was opened, each counted once.
    fn damaged(&self) -> u64 {
        0
    }
}
