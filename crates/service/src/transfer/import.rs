//! Imports lines into a new store, all or nothing.
//!
//! The lines, each record, and the consistency of all records are checked. The store file gets its name last, so an
//! error in any line leaves no store, and no directory that was created for it.

use std::io::BufRead;
use std::path::Path;

use notbefore_engine::records::prefix;
use notbefore_store::redb::{NewStore, OpenError};
use notbefore_store::{Revision, VALUE_BYTES_MAX, Versioned};
use notbefore_wire::operator::export::ExportHeader;

use super::kinds::{Counts, Inconsistency, RecordChecker};
use super::lines::{LineError, LineFault, Lines, value_of};
use crate::data_dir::{DataDirError, NewDataDir};

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The export is not complete and valid.
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Data(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] OpenError),
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
    read(input, None, progress)
}

/// Creates a store in a data directory that has none.
pub fn import(path: &Path, input: impl BufRead, progress: impl FnMut(u64)) -> Result<Imported, ImportError> {
    let dir = NewDataDir::begin(path)?;
    let mut store = NewStore::begin(dir.store_path())?;
    let imported = read(input, Some(&mut store), progress)?;
    store.finish(Revision(imported.header.revision))?;
    dir.finish()?;
    Ok(imported)
}

fn read(
    input: impl BufRead,
    mut store: Option<&mut NewStore>,
    mut progress: impl FnMut(u64),
) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let header = lines.header()?;
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
        if let Some(store) = &mut store {
            store.put(record.key.into(), Versioned { revision: Revision(record.revision), value })?;
        }
        progress(records + 1);
    }
    let inconsistencies = |Inconsistency { line, why }| LineError { line, fault: LineFault::Record(why) };
    checker.finish().map_err(inconsistencies)?;
    Ok(Imported { header, records: lines.records(), counts: checker.counts() })
}
