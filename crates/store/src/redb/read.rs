//! Snapshots: redb read transactions (MVCC), which hold their pages while they live.
//!
//! Reads run on a blocking thread if there is a tokio runtime: the cache is small, and a page outside it is on disk.
//!
//! A snapshot does not outlive its database: when the writer reopens the file after an I/O error, older snapshots may
//! fail, and their readers take another.

use std::ops::Bound;
use std::sync::{Arc, mpsc};

use ::redb::{AccessGuard, ReadOnlyTable, ReadableDatabase};
use async_trait::async_trait;
use tokio::runtime::Handle;

use super::format::{Fault, RECORDS, State, decode, reading, shown};
use super::open::{Inspected, OpenDatabase};
use super::order::KeyOrder;
use super::writer::Message;
use super::{Shared, open};
use crate::{Page, PageRoom, ReadError, Revision, Snapshot, Tallies, Versioned, scan_end, scan_start};

/// More damaged entries than this, one after another, are pages that lead in a circle: a lost page has a hundred at most.
const DAMAGED_RUN_MAX: usize = 10_000;

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Entry<'a> =
    Result<(AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>), ::redb::StorageError>;

pub(super) struct RedbSnapshot {
    state: State,
    table: Arc<Table>,
    shared: Arc<Shared>,
    queue: mpsc::Sender<Message>,
}

impl RedbSnapshot {
    pub fn take(shared: &Arc<Shared>, queue: &mpsc::Sender<Message>) -> Result<Self, ReadError> {
        let begun = shared
            .with_open(|open| reading(|| begin(open)))
            .map_err(|shut| ReadError::Unavailable(shut.to_string()))?;
        let (table, state) = begun.map_err(|fault| failed(fault, shared, queue))?;
        Ok(Self { state, table: Arc::new(table), shared: shared.clone(), queue: queue.clone() })
    }
}

fn begin(open: &OpenDatabase) -> Result<(Table, State), Fault> {
    let txn = open.database.begin_read()?;
    let state = match &open.inspected {
        Some(Inspected::Rebuilt(state)) => state.clone(),
        Some(Inspected::AsItIs | Inspected::Damaged) | None => open::read_state(&txn)?,
    };
    Ok((txn.open_table(RECORDS)?, state))
}

/// A failed read may be the I/O error after which redb fails every access, so the thread is asked to check. A damaged
/// record is not such an error.
fn failed(fault: Fault, shared: &Shared, queue: &mpsc::Sender<Message>) -> ReadError {
    match fault {
        Fault::Damaged { key } => {
            shared.note_damage(&key);
            ReadError::Damaged { key }
        }
        fault @ (Fault::Redb(_) | Fault::Unfollowable) => {
            shared.request_check(queue);
            ReadError::Unavailable(open::chain(&fault))
        }
    }
}

#[async_trait]
impl Snapshot for RedbSnapshot {
    fn revision(&self) -> Revision {
        self.state.revision
    }

    fn tallies(&self) -> Option<&Tallies> {
        Some(&self.state.tallies)
    }

    async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
        let key = key.to_owned();
        self.run_blocking(move |table| get(table, &key)).await
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        self.scanned(scan, prefix, after, limit).await
    }

    async fn scan_back(&self, prefix: &str, before: Option<&str>, limit: usize) -> Result<Page, ReadError> {
        self.scanned(scan_back, prefix, before, limit).await
    }
}

type Scan = fn(&Table, &str, Option<&str>, usize) -> Result<Scanned, Fault>;

/// The result of a scan.
#[derive(Default)]
struct Scanned {
    page: Page,
    /// Damaged records whose keys do not have the prefix: records of another kind, or with a damaged key.
    strays: Vec<String>,
}

impl RedbSnapshot {
    async fn scanned(
        &self,
        scan: Scan,
        prefix: &str,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let (prefix, from) = (prefix.to_owned(), from.map(str::to_owned));
        let Scanned { page, strays } =
            self.run_blocking(move |table| scan(table, &prefix, from.as_deref(), limit)).await?;
        page.damaged.iter().for_each(|key| self.shared.note_damage(key));
        strays.iter().for_each(|key| self.shared.note_damage(key));
        Ok(page)
    }

    /// Runs a read on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
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
        found.map_err(|fault| failed(fault, &self.shared, &self.queue))
    }
}

fn get(table: &Table, key: &str) -> Result<Option<Versioned>, Fault> {
    let key = key.as_bytes();
    table.get(key)?.map(|raw| decode(key, raw.value())).transpose()
}

fn scan(table: &Table, prefix: &str, after: Option<&str>, limit: usize) -> Result<Scanned, Fault> {
    let start = scan_start(prefix, after).map(str::as_bytes);
    let entries = table.range::<&[u8]>((start, Bound::Unbounded))?;
    page(entries, prefix, limit, KeyOrder::rising(start))
}

fn scan_back(table: &Table, prefix: &str, before: Option<&str>, limit: usize) -> Result<Scanned, Fault> {
    let end = scan_end(prefix, before);
    let end = end.as_ref().map(String::as_bytes);
    let entries = table.range::<&[u8]>((Bound::Unbounded, end))?.rev();
    page(entries, prefix, limit, KeyOrder::falling(end))
}

/// Valid records as far as they fit, and the damaged ones between them. A damaged key may be out of order, so only a valid
/// record ends the scan.
fn page<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    prefix: &str,
    limit: usize,
    mut order: KeyOrder,
) -> Result<Scanned, Fault> {
    let Scanned { mut page, mut strays } = Scanned::default();
    let mut room = PageRoom::new(limit);
    let mut run = 0;
    for entry in entries {
        let (key, raw) = match entry {
            Ok(entry) => entry,
            // The next scan meets it first.
            Err(_) if room.is_full() => {
                page.more = true;
                break;
            }
            Err(error) => return Err(error.into()),
        };
        let key = key.value();
        if room.is_full() && key.starts_with(prefix.as_bytes()) {
            page.more = true;
            break;
        }
        match (decode(key, raw.value()), std::str::from_utf8(key)) {
            (Ok(record), Ok(key)) => {
                order.accept(key.as_bytes())?;
                run = 0;
                if !key.starts_with(prefix) {
                    break;
                }
                room.take(key, &record);
                page.records.push((key.into(), record));
            }
            (Ok(_) | Err(Fault::Damaged { .. }), _) => {
                run += 1;
                if run > DAMAGED_RUN_MAX {
                    return Err(Fault::Unfollowable);
                }
                match key.starts_with(prefix.as_bytes()) {
                    true => page.damaged.push(shown(key).into()),
                    false => strays.push(shown(key)),
                }
            }
            (Err(fault @ (Fault::Redb(_) | Fault::Unfollowable)), _) => return Err(fault),
        }
    }
    Ok(Scanned { page, strays })
}
