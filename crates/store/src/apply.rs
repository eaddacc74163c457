//! Evaluation of a compare-and-swap transaction, shared by all stores that do this themselves.
//!
//! A store provides its records through [`Records`]; [`apply`] compares, writes and returns the batch for watches. A
//! transaction "writes" only if it changes something: deleting missing records takes no revision and wakes no watch.

use bytes::Bytes;

use crate::{Batch, Change, Found, Key, Revision, Txn, Versioned};

/// The records as the previous transaction left them.
pub(crate) trait Records {
    type Error;

    /// Separate from `get`, since a comparison needs no copy of the value.
    fn revision_of(&self, key: &str) -> Result<Option<Revision>, Self::Error>;
    fn get(&self, key: &str) -> Result<Option<Versioned>, Self::Error>;
    fn put(&mut self, key: &Key, record: Versioned) -> Result<(), Self::Error>;
    /// Returns whether there was a record.
    fn delete(&mut self, key: &str) -> Result<bool, Self::Error>;
}

#[derive(Debug)]
pub(crate) enum Applied {
    /// It changed something.
    Wrote(Batch),
    /// Its expectations held at this revision and it changed nothing.
    Held(Revision),
    /// Its expectations did not hold; it changed nothing.
    Conflict(Vec<Found>),
}

/// Applies `txn` to `records` at revision `current`. After an error the records may be partly changed and must be
/// discarded.
pub(crate) fn apply<R: Records>(txn: Txn, current: Revision, records: &mut R) -> Result<Applied, R::Error> {
    let mut found = Vec::new();
    for expect in &txn.expect {
        let revision = records.revision_of(&expect.key)?;
        if revision != expect.revision {
            found.push(match expect.revision {
                Some(_) => Found { key: expect.key.clone(), revision, value: None },
                None => Found::new(expect, records.get(&expect.key)?),
            });
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
