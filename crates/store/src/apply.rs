//! What a transaction does, written once for every store that evaluates transactions itself.
//!
//! A store lends its records through [`Records`]; [`apply`] compares, writes and says what a watcher will
//! see. A transaction "writes" when it changes something: deletes of records that are not there change
//! nothing, take no revision and wake no watcher.

use bytes::Bytes;

use crate::{Batch, Change, Found, Key, Revision, Txn, Versioned};

/// The records as the transaction before left them.
pub(crate) trait Records {
    /// Why they could not be read or written.
    type Error;

    /// The revision of one record. Apart from `get`, since comparing needs no copy of the value.
    fn revision_of(&self, key: &str) -> Result<Option<Revision>, Self::Error>;
    fn get(&self, key: &str) -> Result<Option<Versioned>, Self::Error>;
    fn put(&mut self, key: &Key, record: Versioned) -> Result<(), Self::Error>;
    /// Removes a record and says whether there was one.
    fn delete(&mut self, key: &str) -> Result<bool, Self::Error>;
}

/// What came of a transaction.
#[derive(Debug)]
pub(crate) enum Applied {
    /// It changed something.
    Wrote(Batch),
    /// Its expectations held at this revision and it changed nothing.
    Held(Revision),
    /// Its expectations did not hold; it changed nothing.
    Conflict(Vec<Found>),
}

/// Applies `txn` to `records`, which stand at the revision `current`. After an error the records may be half
/// changed and must be thrown away.
pub(crate) fn apply<R: Records>(txn: Txn, current: Revision, records: &mut R) -> Result<Applied, R::Error> {
    let mut found = Vec::new();
    for expect in &txn.expect {
        if records.revision_of(&expect.key)? != expect.revision {
            found.push(Found { key: expect.key.clone(), current: records.get(&expect.key)? });
        }
    }
    if !found.is_empty() {
        return Ok(Applied::Conflict(found));
    }

    let revision = Revision(current.0 + 1);
    let mut changes: Vec<Change> = Vec::with_capacity(txn.put.len() + txn.delete.len());
    for (key, value) in txn.put {
        records.put(&key, Versioned { revision, value: Bytes::clone(&value) })?;
        changes.push(Change { key, value: Some(value) });
    }
    for key in txn.delete {
        if records.delete(&key)? {
            changes.push(Change { key, value: None });
        }
    }
    if changes.is_empty() {
        return Ok(Applied::Held(current));
    }
    Ok(Applied::Wrote(Batch { revision, changes: changes.into() }))
}
