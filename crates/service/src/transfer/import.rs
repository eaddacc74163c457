//! Imports lines into a new store, all or nothing.
//!
//! The lines, each record, and the consistency of all records are checked. The store file gets its name last, so an
//! error in any line leaves no store, and no directory that was created for it.
//!
//! **Into etcd.** One transaction cannot hold a fleet. So the first one creates a mark, and the last one replaces the mark
//! by the record with the format level. No node starts before that. After an error everything is removed again; what a
//! killed import leaves is refused by nodes and by the next import, which say how to remove it.

use std::io::BufRead;
use std::path::Path;

use notbefore_engine::cluster::{CLUSTER, FORMAT, FormatRecord, IMPORTING, LEADER};
use notbefore_engine::records::{self, prefix};
use notbefore_store::redb::{NewStore, OpenError};
use notbefore_store::{
    Expect, Key, Outcome, ReadError, Revision, Store, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn,
    VALUE_BYTES_MAX, Versioned,
};
use notbefore_wire::operator::export::ExportHeader;
use tokio::runtime::Handle;

use super::kinds::{Counts, Inconsistency, RecordChecker};
use super::lines::{LineError, LineFault, Lines, value_of};
use crate::data_dir::{DataDirError, NewDataDir};

/// Largest revision of an export. The next changes count on from it: near the limit of the type, none could follow. A
/// service with a million changes a second reaches it after a hundred thousand years.
const REVISION_MAX: u64 = 1 << 62;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The export is not complete and valid.
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Data(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(
        "{key} is in etcd already; import into another --etcd-prefix, or stop all nodes and remove the prefix"
    )]
    NotEmpty { key: Key },
    #[error(
        "another import into this prefix runs or was interrupted; if it was, remove the prefix with 'etcdctl del --prefix', and repeat the import"
    )]
    Interrupted,
    #[error("cannot write to etcd: {0}")]
    Write(String),
}

#[derive(Clone, Debug)]
pub struct Imported {
    pub header: ExportHeader,
    /// Number of records.
    pub records: u64,
    /// Records by kind.
    pub counts: Counts,
}

/// Checks an export and writes nothing. Calls `progress` with the number of records so far.
pub fn check(input: impl BufRead, progress: impl FnMut(u64)) -> Result<Imported, ImportError> {
    read(input, |_, _| Ok(()), progress)
}

/// Creates a store in a data directory that has none.
pub fn import(path: &Path, input: impl BufRead, progress: impl FnMut(u64)) -> Result<Imported, ImportError> {
    let dir = NewDataDir::begin(path)?;
    let mut store = NewStore::begin(dir.store_path())?;
    let imported = read(input, |key, record| Ok(store.put(key, record)?), progress)?;
    store.finish(Revision(imported.header.revision))?;
    dir.finish()?;
    Ok(imported)
}

/// Fills a shared store that is empty; see the module docs. Records get new revisions. Blocks: call it outside of the
/// runtime, with a handle of it.
pub fn import_shared(
    store: &dyn Store,
    runtime: &Handle,
    input: impl BufRead,
    progress: impl FnMut(u64),
) -> Result<Imported, ImportError> {
    let mark = runtime.block_on(begin_shared(store))?;
    let mut batches = Batches::default();
    let imported = read(
        input,
        |key, record| match batches.add(key, record) {
            Some(txns) => runtime.block_on(commit_all(store, txns)),
            None => Ok(()),
        },
        progress,
    );
    let imported = imported.and_then(|imported| {
        runtime.block_on(commit_all(store, batches.finish()))?;
        runtime.block_on(finish_shared(store, mark))?;
        Ok(imported)
    });
    if imported.is_err()
        && let Err(error) = runtime.block_on(remove_all(store))
    {
        tracing::error!(%error, "cannot remove what was imported: remove the prefix with 'etcdctl del --prefix'");
    }
    imported
}

/// Creates the mark, and returns its revision.
async fn begin_shared(store: &dyn Store) -> Result<Revision, ImportError> {
    let snapshot = store.snapshot().await?;
    if let Some((key, _)) = snapshot.scan("", None, 1).await?.records.into_iter().next() {
        return Err(match &*key == IMPORTING {
            true => ImportError::Interrupted,
            false => ImportError::NotEmpty { key },
        });
    }
    let mark = Txn {
        expect: vec![Expect { key: IMPORTING.into(), revision: None }],
        put: vec![(IMPORTING.into(), records::encode(&FormatRecord { level: records::FORMAT_LEVEL }))],
        ..Txn::default()
    };
    committed(store.commit(mark).await)
}

/// Replaces the mark. Fails if a node has started meanwhile.
async fn finish_shared(store: &dyn Store, mark: Revision) -> Result<(), ImportError> {
    let absent = |key: &str| Expect { key: key.into(), revision: None };
    let txn = Txn {
        expect: vec![Expect { key: IMPORTING.into(), revision: Some(mark) }, absent(FORMAT), absent(LEADER)],
        put: vec![(FORMAT.into(), records::encode(&FormatRecord { level: records::FORMAT_LEVEL }))],
        delete: vec![IMPORTING.into()],
    };
    committed(store.commit(txn).await).map(drop)
}

async fn commit_all(store: &dyn Store, txns: Vec<Txn>) -> Result<(), ImportError> {
    store.commit_all(txns).await.into_iter().try_for_each(|outcome| committed(outcome).map(drop))
}

fn committed(outcome: Outcome) -> Result<Revision, ImportError> {
    match outcome {
        Outcome::Committed(revision) => Ok(revision),
        Outcome::Conflict(found) => {
            let key = found.into_iter().next().map_or_else(|| LEADER.into(), |found| found.key);
            Err(ImportError::NotEmpty { key })
        }
        Outcome::Refused(refusal) => Err(ImportError::Write(refusal.to_string())),
        Outcome::Unknown(why) => Err(ImportError::Write(why)),
    }
}

/// Removes all records, the mark last.
async fn remove_all(store: &dyn Store) -> Result<(), ImportError> {
    for range in records::all_ranges(true).into_iter().filter(|range| range != CLUSTER) {
        loop {
            let page = store.snapshot().await?.scan(&range, None, TXN_OPERATIONS_MAX).await?;
            let keys: Vec<Key> = page.records.into_iter().map(|(key, _)| key).collect();
            if keys.is_empty() {
                break;
            }
            committed(store.commit(Txn { delete: keys, ..Txn::default() }).await)?;
        }
    }
    committed(store.commit(Txn { delete: vec![IMPORTING.into()], ..Txn::default() }).await).map(drop)
}

/// Collects records into transactions.
#[derive(Default)]
struct Batches {
    full: Vec<Txn>,
    open: Txn,
    open_bytes: usize,
}

impl Batches {
    /// Transactions that are sent together.
    const TOGETHER: usize = 32;

    /// Returns transactions when there are enough.
    fn add(&mut self, key: Key, record: Versioned) -> Option<Vec<Txn>> {
        let bytes = key.len() + record.value.len();
        if self.open.put.len() == TXN_OPERATIONS_MAX || self.open_bytes + bytes > TXN_BYTES_MAX {
            self.full.push(std::mem::take(&mut self.open));
            self.open_bytes = 0;
        }
        self.open.put.push((key, record.value));
        self.open_bytes += bytes;
        (self.full.len() == Self::TOGETHER).then(|| std::mem::take(&mut self.full))
    }

    fn finish(self) -> Vec<Txn> {
        self.full.into_iter().chain(Some(self.open).filter(Txn::writes)).collect()
    }
}

fn read(
    input: impl BufRead,
    mut put: impl FnMut(Key, Versioned) -> Result<(), ImportError>,
    mut progress: impl FnMut(u64),
) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let header = lines.header()?;
    if header.revision > REVISION_MAX {
        let why = format!(
            "the export shows revision {}, the limit is {REVISION_MAX}; use an unchanged export",
            header.revision
        );
        return Err(LineError { line: 1, fault: LineFault::Record(why) }.into());
    }
    let mut checker = RecordChecker::default();
    loop {
        let records = lines.records();
        let line = lines.number() + 1;
        let wrong = |why| LineError { line, fault: LineFault::Record(why) };
        let Some(record) = lines.next_record()? else { break };
        let value = value_of(&record, &header);
        if value.len() > VALUE_BYTES_MAX {
            let why = format!("{} has {} bytes, the limit is {VALUE_BYTES_MAX}", record.key, value.len());
            return Err(wrong(why).into());
        }
        if !(1..=header.revision).contains(&record.revision) {
            let why = format!(
                "{} was written at revision {}, but the export shows revision {}",
                record.key, record.revision, header.revision
            );
            return Err(wrong(why).into());
        }
        // The new store would accept sessions and links of the author of the line.
        if record.key.starts_with(prefix::SECRET) {
            let why = format!(
                "{} is a secret, which an export never contains; use an unchanged export",
                record.key
            );
            return Err(wrong(why).into());
        }
        checker.check(line, &record.key, &value).map_err(|bad| wrong(bad.to_string()))?;
        put(record.key.into(), Versioned { revision: Revision(record.revision), value })?;
        progress(records + 1);
    }
    let inconsistencies = |Inconsistency { line, why }| LineError { line, fault: LineFault::Record(why) };
    checker.finish().map_err(inconsistencies)?;
    Ok(Imported { header, records: lines.records(), counts: checker.counts() })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::lines::LineWriter;
    use super::*;

    #[test]
    fn revision_that_leaves_no_room_for_changes_is_refused() {
        let export = |revision: u64| {
            let mut writer = LineWriter::new(Revision(revision), Timestamp::UNIX_EPOCH, true);
            writer.finish();
            writer.take()
        };
        assert_eq!(check(&export(1 << 62)[..], |_| {}).unwrap().header.revision, 1 << 62);
        for revision in [(1 << 62) + 1, u64::MAX] {
            let said = check(&export(revision)[..], |_| {}).unwrap_err().to_string();
            let expected =
                format!("line 1: the export shows revision {revision}, the limit is {REVISION_MAX}");
            assert!(said.starts_with(&expected), "{said}");
        }
    }
}
