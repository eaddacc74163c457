//! A revisioned key-value store with optimistic concurrency (compare-and-swap by revision) and watches, like etcd.
//!
//! A [`Store`] holds records under string keys such as `scope/default/default/web`. Every commit gets a higher
//! [`Revision`] than the last; a record has the revision that wrote it. Other users of a shared store take revisions,
//! too, so they have gaps. The interface is three calls, so
//! that an embedded file and an etcd cluster can give the same guarantees:
//!
//! - [`Store::snapshot`] reads at one revision, page by page, while commits continue;
//! - [`Store::commit`] writes a [`Txn`] if every [`Expect`] of it holds, and returns exactly what is known of the
//!   result: [`Outcome`];
//! - [`Store::watch`] yields every commit after a revision, in order, and leaves none out. If the revision is too old
//!   ([`WatchError::Compacted`]), the reader starts over from a snapshot.
//!
//! [`memory`] is a map in memory, for tests and rehearsals; [`redb`] is the embedded default.
//! `contract` is the suite that each implementation passes; the feature of that name makes it public for the
//! simulator's store.

mod apply;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod log;
pub mod memory;
pub mod redb;
mod tally;

pub use log::WatchLog;
pub use tally::{Tallies, Tally, TallyMismatch};

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// Whether invariants are checked while running: with the feature `checks`, in builds for tests and for trying out. Not
/// `debug_assertions`, which would also check each access of the standard library, in code that every change runs.
pub const CHECKS: bool = cfg!(feature = "checks");

/// Panics if an invariant does not hold and [`CHECKS`] is on.
#[track_caller]
pub fn check(holds: impl FnOnce() -> bool, invariant: &str) {
    assert!(!CHECKS || holds(), "{invariant}");
}

/// Limit on operations (expectations, puts and deletes) in one transaction. etcd's limit is 128; staying below
/// keeps every transaction valid on both stores.
pub const TXN_OPERATIONS_MAX: usize = 100;

/// Limit on a record's value. A transaction of a scope, its operation and its facts then stays below etcd's
/// limit of 1.5 MiB per request.
pub const VALUE_BYTES_MAX: usize = 512 * 1024;

/// Limit on the sum of all keys and values in one transaction, below etcd's limit of 1.5 MiB per request. The rest is
/// for the framing of 100 operations. Less would not hold the largest transaction that cannot be split: a scope and
/// an operation of 512 KiB each, and the first facts.
pub const TXN_BYTES_MAX: usize = 1400 * 1024;

/// A page ends once it has this many bytes of keys and values, so it has at most this and one record more. A page of
/// 1,000 large records would exceed what a client of etcd accepts.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keys are ordered as bytes; `/` separates their parts.
pub type Key = Arc<str>;

/// The number of a commit, higher than those of all commits before it. Revision 0 is a new store.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The commit that put this value.
    pub revision: Revision,
    pub value: Bytes,
}

/// A transaction's condition on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub key: Key,
    /// The revision the record must have; none means that the record must not exist.
    pub revision: Option<Revision>,
}

/// Writes that happen atomically, and only if every expectation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub expect: Vec<Expect>,
    pub put: Vec<(Key, Bytes)>,
    /// Deleting a missing record is not an error.
    pub delete: Vec<Key>,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Durable, at this revision. For a transaction that writes nothing: the revision at which its expectations held.
    Committed(Revision),
    /// Nothing was written: these expectations did not hold.
    Conflict(Vec<Found>),
    /// Nothing was written and nothing will be.
    Refused(Refusal),
    /// The transaction may or may not be durable. The caller must retry in a way that is safe in both cases.
    Unknown(String),
}

/// A failed expectation, and what there is instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub key: Key,
    /// None if there is no record.
    pub revision: Option<Revision>,
    /// The record's value if no record was expected. Otherwise none: who expects a revision watches the record, and a
    /// conflict on a large record must not cost a copy of it.
    pub value: Option<Bytes>,
}

impl Found {
    pub fn new(expect: &Expect, current: Option<Versioned>) -> Self {
        let revision = current.as_ref().map(|record| record.revision);
        let value = current.filter(|_| expect.revision.is_none()).map(|record| record.value);
        Self { key: expect.key.clone(), revision, value }
    }

    /// The record, if its value is known.
    pub fn record(&self) -> Option<Versioned> {
        Some(Versioned { revision: self.revision?, value: self.value.clone()? })
    }
}

/// Why a store rejects a transaction without trying it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("transaction has {operations} operations, the limit is {TXN_OPERATIONS_MAX}; split it")]
    TooManyOperations { operations: usize },
    #[error("value of {key} has {bytes} bytes, the limit is {VALUE_BYTES_MAX}")]
    ValueTooLarge { key: Key, bytes: usize },
    #[error("transaction has {bytes} bytes, the limit is {TXN_BYTES_MAX}; split it")]
    TxnTooLarge { bytes: usize },
    #[error("transaction writes {key} twice; write it once")]
    DuplicateKey { key: Key },
    /// The store cannot write at present (a full disk, a file that does not open); it keeps trying.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
}

impl Txn {
    /// False if it only compares.
    pub fn writes(&self) -> bool {
        !(self.put.is_empty() && self.delete.is_empty())
    }

    /// Checks the limits that all stores share.
    pub fn check(&self) -> Result<(), Refusal> {
        let operations = self.expect.len() + self.put.len() + self.delete.len();
        if operations > TXN_OPERATIONS_MAX {
            return Err(Refusal::TooManyOperations { operations });
        }
        for (key, value) in &self.put {
            if value.len() > VALUE_BYTES_MAX {
                return Err(Refusal::ValueTooLarge { key: key.clone(), bytes: value.len() });
            }
        }
        let bytes = self.bytes();
        if bytes > TXN_BYTES_MAX {
            return Err(Refusal::TxnTooLarge { bytes });
        }
        // etcd refuses these.
        let mut written: Vec<&Key> = self.put.iter().map(|(key, _)| key).chain(&self.delete).collect();
        written.sort_unstable();
        match written.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Refusal::DuplicateKey { key: pair[0].clone() }),
            None => Ok(()),
        }
    }

    /// The sum of all keys and values.
    pub fn bytes(&self) -> usize {
        let put: usize = self.put.iter().map(|(key, value)| key.len() + value.len()).sum();
        let expect: usize = self.expect.iter().map(|expect| expect.key.len()).sum();
        let delete: usize = self.delete.iter().map(|key| key.len()).sum();
        put + expect + delete
    }
}

/// One commit, as a watch yields it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub revision: Revision,
    /// In the order of the transaction: puts, then deletes of records that existed.
    pub changes: Arc<[Change]>,
}

/// One record written or removed by a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    /// None if the record was removed.
    pub value: Option<Bytes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In key order.
    pub records: Vec<(Key, Versioned)>,
    /// Whether there are records after these.
    pub more: bool,
    /// Skipped records with a wrong checksum. The key itself may be the damaged part, so it cannot be used for
    /// lookups.
    pub damaged: Vec<Key>,
}

impl Page {
    /// As many records as fit.
    pub fn collect<'a>(records: impl Iterator<Item = (&'a Key, &'a Versioned)>, limit: usize) -> Self {
        let (mut page, mut room) = (Self::default(), PageRoom::new(limit));
        for (key, record) in records {
            if room.is_full() {
                page.more = true;
                break;
            }
            room.take(key, record);
            page.records.push((key.clone(), record.clone()));
        }
        page
    }
}

/// What still fits on a page: its limit of records, and [`PAGE_BYTES_MAX`].
struct PageRoom {
    records: usize,
    bytes: usize,
}

impl PageRoom {
    fn new(limit: usize) -> Self {
        Self { records: limit, bytes: PAGE_BYTES_MAX }
    }

    fn is_full(&self) -> bool {
        self.records == 0 || self.bytes == 0
    }

    fn take(&mut self, key: &str, record: &Versioned) {
        self.records -= 1;
        self.bytes = self.bytes.saturating_sub(key.len() + record.value.len());
    }
}

/// The start of a scan: the prefix, or after the last key of the previous page.
fn scan_start<'a>(prefix: &'a str, after: Option<&'a str>) -> Bound<&'a str> {
    match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        Some(_) | None => Bound::Included(prefix),
    }
}

/// The start of a backward scan: the end of the prefix, or before the last key of the previous page.
fn scan_end(prefix: &str, before: Option<&str>) -> Bound<String> {
    // No key contains this character: keys consist of names, numbers and slashes.
    let end = format!("{prefix}{}", char::MAX);
    match before {
        Some(before) if *before < *end => Bound::Excluded(before.to_owned()),
        Some(_) | None => Bound::Excluded(end),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("the store cannot be read: {0}")]
    Unavailable(String),
    /// The snapshot's revision is no longer in the store; take another one.
    #[error("the snapshot is older than the store keeps; repeat the read")]
    Compacted,
    /// The checksum does not match. The key may itself be damaged.
    #[error(
        "record {key} is damaged: its checksum does not match; 'notbefore check --data DIR' lists all damage"
    )]
    Damaged { key: String },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Commits after the revision are no longer in the log; start over from a snapshot. A watch can start at
    /// `oldest` or later.
    #[error(
        "the watch's next revision is no longer held (the oldest is {oldest}); read a snapshot and watch from there"
    )]
    Compacted { oldest: Revision },
    #[error("the store has closed")]
    Closed,
}

/// The store at one revision; later commits do not change it.
#[async_trait]
pub trait Snapshot: Send + Sync {
    fn revision(&self) -> Revision;
    /// What must be there: the tally of each kind of record, maintained in every commit; none if the store keeps none.
    fn tallies(&self) -> Option<&Tallies> {
        None
    }
    /// Whether a page costs as much as the rest of its range, as with etcd 3.4: many records are then read in parts.
    fn has_costly_ranges(&self) -> bool {
        false
    }
    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError>;
    /// Up to `limit` records with `prefix` and after `after`, in key order; fewer if they have [`PAGE_BYTES_MAX`].
    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError>;
    /// The same before `before`, in reverse key order. A shared store may have to read everything for it, so only tools
    /// for a store's file use it.
    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError>;
}

#[async_trait]
pub trait Watch: Send {
    /// Waits for the next commit.
    async fn next(&mut self) -> Result<Batch, WatchError>;
}

/// A revisioned key-value store; the crate docs list its guarantees.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// A snapshot of the newest revision.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError>;
    /// Writes `txn` if its expectations hold. After [`Outcome::Committed`] the writes are durable, and every
    /// later snapshot shows them.
    async fn commit(&self, txn: Txn) -> Outcome;
    /// Commits several transactions, in order, with one outcome each. They are independent: each one compares with
    /// the state that the ones before it left. A store may make them durable together (group commit).
    async fn commit_all(&self, txns: Vec<Txn>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(txns.len());
        for txn in txns {
            outcomes.push(self.commit(txn).await);
        }
        outcomes
    }
    /// How many transactions of one [`Self::commit_all`] share the work of a commit.
    fn commit_batch_max(&self) -> usize {
        1
    }
    /// All commits after `after`, in order.
    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError>;
    /// Number of damaged records found since the store was opened; each counts once.
    fn damaged(&self) -> u64 {
        0
    }
}
