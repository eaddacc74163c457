//! Bulk load: creates a whole store from exported records, with an atomic rename at the end.
//!
//! The records go into a file under a temporary name, in batches. The file is renamed only when all of them are
//! durable: there is a complete store, or none. Records keep their revisions and the store starts at the exported
//! revision, so clients can still compare with revisions they have seen.

use std::path::Path;

use ::redb::Database;

use super::OpenError;
use super::format::{Fault, RECORDS, STATE, STATE_KEY, State, TableWriter};
use super::open::{self, NewFile, OpenAttempt};
use crate::apply::Records;
use crate::{Key, Revision, Versioned};

/// Size of one commit; it limits memory use.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Overhead per record, so that many small records also fill a batch.
const RECORD_BYTES: usize = 64;

/// A store under construction. Dropping it without [`NewStore::finish`] removes it.
pub struct NewStore {
    /// None only while `finish` closes it.
    database: Option<Database>,
    /// None after the rename.
    file: Option<NewFile>,
    state: State,
    waiting: Vec<(Key, Versioned)>,
    bytes: usize,
}

impl NewStore {
    /// Starts a store at `path`; fails if one exists.
    pub fn begin(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let Some(file) = NewFile::begin(path)? else { return Err(OpenError::Exists { path: path.into() }) };
        let mut new =
            Self { database: None, file: Some(file), state: State::default(), waiting: Vec::new(), bytes: 0 };
        if let Some(file) = &new.file {
            let (database, state) = open::open_backend(path, file.backend()?, OpenAttempt::First)?;
            (new.database, new.state) = (Some(database), state);
        }
        Ok(new)
    }

    pub fn put(&mut self, key: Key, record: Versioned) -> Result<(), OpenError> {
        self.bytes += key.len() + record.value.len() + RECORD_BYTES;
        self.waiting.push((key, record));
        if self.bytes < BATCH_BYTES_MAX {
            return Ok(());
        }
        self.flush()
    }

    /// Makes all records durable, at `revision`, and renames the file.
    pub fn finish(mut self, revision: Revision) -> Result<(), OpenError> {
        self.state.revision = revision;
        self.flush()?;
        // Closing a database writes and syncs; only then is the file complete.
        self.database = None;
        match self.file.take() {
            Some(file) => file.rename(),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), OpenError> {
        self.bytes = 0;
        let records = std::mem::take(&mut self.waiting);
        let (Some(database), Some(file)) = (&self.database, &self.file) else { return Ok(()) };
        write(database, records, &mut self.state).map_err(|fault| open::damaged(file.path(), fault))
    }
}

fn write(database: &Database, records: Vec<(Key, Versioned)>, state: &mut State) -> Result<(), Fault> {
    let transaction = open::begin_durable(database)?;
    {
        let tallies = std::mem::take(&mut state.tallies);
        let mut writing = TableWriter { table: transaction.open_table(RECORDS)?, tallies };
        for (key, record) in records {
            writing.put(&key, record)?;
        }
        state.tallies = writing.tallies;
        transaction.open_table(STATE)?.insert(STATE_KEY, state.encode().as_slice())?;
    }
    transaction.commit()?;
    Ok(())
}

impl Drop for NewStore {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.database = None;
            file.remove();
        }
    }
}
