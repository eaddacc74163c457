//! From lines to a new store, whole or not at all.
//!
//! Everything is checked on the way: the lines, each record by itself, and all of them together. The store gets
//! its name last, so whatever is wrong in whichever line leaves nothing behind, and no directory that was made for it.

use std::io::BufRead;
use std::path::Path;

use notbefore_store::redb::{NewStore, OpenError};
use notbefore_store::{Revision, VALUE_BYTES_MAX, Versioned};
use notbefore_wire::operator::export::ExportHeader;

use super::kinds::{Counts, Inconsistency, RecordChecker};
use super::lines::{LineError, LineFault, Lines, value_of};
use crate::data_dir::{DataDirError, NewDataDir};

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The export is not whole and right.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] DataDirError),
    /// The new store cannot be written.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// What was imported.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The export's header.
    pub header: ExportHeader,
    /// How many records there were.
    pub records: u64,
    /// What they are.
    pub counts: Counts,
}

/// Checks an export and writes nothing. `progress` is told how many records have been seen.
pub fn check(input: impl BufRead, progress: impl FnMut(u64)) -> Result<Imported, ImportError> {
    read(input, None, progress)
}

/// Makes a store in a data directory, where there must be none.
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
