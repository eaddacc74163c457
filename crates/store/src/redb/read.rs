//! A snapshot: a redb read transaction, which holds its pages for as long as it lives.
//!
//! Reads go to a blocking thread, where there is a tokio runtime to give one: the cache is small, and a page that is not
//! in it is on the disk.
//!
//! A snapshot does not outlive its database: when the thread opens the file anew after an I/O error, the
//! snapshots taken before may fail, and their readers take another.

use std::ops::Bound;
use std::sync::{Arc, mpsc};

use ::redb::{AccessGuard, Database, ReadOnlyTable, ReadableDatabase};
use async_trait::async_trait;
use tokio::runtime::Handle;

use super::format::{Fault, META, META_REVISION, RECORDS, decode, reading};
use super::owner::Message;
use super::{Shared, open};
use crate::{Page, ReadError, Revision, Snapshot, Versioned, scan_end, scan_start};

type Table = ReadOnlyTable<&'static str, &'static [u8]>;
type Entry<'a> =
    Result<(AccessGuard<'a, &'static str>, AccessGuard<'a, &'static [u8]>), ::redb::StorageError>;

pub(super) struct RedbSnapshot {
    revision: Revision,
    table: Arc<Table>,
    shared: Arc<Shared>,
    queue: mpsc::Sender<Message>,
}

impl RedbSnapshot {
    pub fn take(shared: &Arc<Shared>, queue: &mpsc::Sender<Message>) -> Result<Self, ReadError> {
        let begun =
            shared.with_database(|database| reading(|| begin(database))).map_err(ReadError::Unavailable)?;
        let (table, revision) = begun.map_err(|fault| unavailable(&fault, shared, queue))?;
        Ok(Self { revision, table: Arc::new(table), shared: shared.clone(), queue: queue.clone() })
    }
}

fn begin(database: &Database) -> Result<(Table, Revision), Fault> {
    let txn = database.begin_read()?;
    let revision = txn.open_table(META)?.get(META_REVISION)?.map_or(0, |value| value.value());
    Ok((txn.open_table(RECORDS)?, Revision(revision)))
}

/// A read that failed may have met the error that makes redb fail from then on, so the thread is asked to look.
fn unavailable(fault: &Fault, shared: &Shared, queue: &mpsc::Sender<Message>) -> ReadError {
    shared.suspect(queue);
    ReadError::Unavailable(open::chain(fault))
}

#[async_trait]
impl Snapshot for RedbSnapshot {
    fn revision(&self) -> Revision {
        self.revision
    }

    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
        let key = key.to_owned();
        self.aside(move |table| get(table, &key)).await
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        self.scanned(scan, prefix, after, limit).await
    }

    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        self.scanned(scan_back, prefix, before, limit).await
    }
}

type Scan = fn(&Table, &str, Option<&str>, usize) -> Result<Page, Fault>;

impl RedbSnapshot {
    async fn scanned(
        &self,
        scan: Scan,
        prefix: &str,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let (prefix, from) = (prefix.to_owned(), from.map(str::to_owned));
        self.aside(move |table| scan(table, &prefix, from.as_deref(), limit)).await
    }

    /// Reads something where it keeps nobody waiting.
    async fn aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Table) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let found = match Handle::try_current() {
            Ok(runtime) => {
                let table = self.table.clone();
                runtime
                    .spawn_blocking(move || reading(|| read(&table)))
                    .await
                    .map_err(|error| ReadError::Unavailable(open::chain(&error)))?
            }
            Err(_no_runtime) => reading(|| read(&self.table)),
        };
        found.map_err(|fault| unavailable(&fault, &self.shared, &self.queue))
    }
}

fn get(table: &Table, key: &str) -> Result<Option<Versioned>, Fault> {
    table.get(key)?.map(|raw| decode(key, raw.value())).transpose()
}

fn scan(table: &Table, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, Fault> {
    page(table.range::<&str>((scan_start(prefix, after), Bound::Unbounded))?, prefix, limit)
}

fn scan_back(table: &Table, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, Fault> {
    let end = scan_end(prefix, before);
    page(table.range::<&str>((Bound::Unbounded, end.as_ref().map(String::as_str)))?.rev(), prefix, limit)
}

fn page<'a>(entries: impl Iterator<Item = Entry<'a>>, prefix: &str, limit: usize) -> Result<Page, Fault> {
    let mut page = Page::default();
    for entry in entries {
        let (key, raw) = entry?;
        let key = key.value();
        if !key.starts_with(prefix) {
            break;
        }
        if page.records.len() == limit {
            page.more = true;
            break;
        }
        page.records.push((key.into(), decode(key, raw.value())?));
    }
    Ok(page)
}
