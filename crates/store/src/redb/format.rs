//! How records lie in the file.
//!
//! | table | key | value |
//! |---|---|---|
//! | `records` | the record's key | 8 bytes little-endian: the revision that wrote it; then the value |
//! | `meta` | `format` | [`FORMAT`] |
//! | `meta` | `revision` | the revision of the newest commit |
//!
//! `meta/revision` is written in the same redb commit as the records it speaks of, so it tells, after a
//! crash or a failed sync, exactly which transactions are on disk.

use std::panic::{self, AssertUnwindSafe};

use ::redb::{ReadableTable, Table, TableDefinition};
use bytes::Bytes;

use crate::apply::Records;
use crate::{Key, Revision, Versioned};

/// The layout described above. A file with a higher number was written by a newer notbefore.
pub(super) const FORMAT: u64 = 1;

pub(super) const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
pub(super) const META_FORMAT: &str = "format";
pub(super) const META_REVISION: &str = "revision";

const REVISION_BYTES: usize = size_of::<u64>();

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Redb(#[from] ::redb::Error),
    /// The checksums of redb make this all but impossible, short of a file written by something else.
    #[error("record {key} is damaged: it has {bytes} bytes, fewer than its revision takes")]
    Damaged { key: String, bytes: usize },
    #[error("the file is damaged: its pages cannot be followed; restore a backup")]
    Unfollowable,
}

/// Reads something of the file. redb takes its pages for what it has written and panics where they are not, as
/// in a file of which a part was lost; that is an error like any other, and not the end of the service.
pub(super) fn reading<T>(read: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(Fault::Unfollowable))
}

/// Each redb call has an error type of its own; here they all mean the same.
macro_rules! fault_from {
    ($($error:ty),*) => {
        $(impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::Redb(error.into())
            }
        })*
    };
}
fault_from!(
    ::redb::StorageError,
    ::redb::TableError,
    ::redb::TransactionError,
    ::redb::CommitError,
    ::redb::SetDurabilityError
);

pub(super) fn encode(record: &Versioned) -> Vec<u8> {
    let mut raw = Vec::with_capacity(REVISION_BYTES + record.value.len());
    raw.extend_from_slice(&record.revision.0.to_le_bytes());
    raw.extend_from_slice(&record.value);
    raw
}

pub(super) fn decode(key: &str, raw: &[u8]) -> Result<Versioned, Fault> {
    let (revision, value) = split(key, raw)?;
    Ok(Versioned { revision, value: Bytes::copy_from_slice(value) })
}

fn split<'a>(key: &str, raw: &'a [u8]) -> Result<(Revision, &'a [u8]), Fault> {
    let (revision, value) = raw
        .split_first_chunk::<REVISION_BYTES>()
        .ok_or_else(|| Fault::Damaged { key: key.into(), bytes: raw.len() })?;
    Ok((Revision(u64::from_le_bytes(*revision)), value))
}

impl Records for Table<'_, &'static str, &'static [u8]> {
    type Error = Fault;

    fn revision_of(&self, key: &str) -> Result<Option<Revision>, Fault> {
        let Some(raw) = ReadableTable::get(self, key)? else { return Ok(None) };
        Ok(Some(split(key, raw.value())?.0))
    }

    fn get(&self, key: &str) -> Result<Option<Versioned>, Fault> {
        ReadableTable::get(self, key)?.map(|raw| decode(key, raw.value())).transpose()
    }

    fn put(&mut self, key: &Key, record: Versioned) -> Result<(), Fault> {
        self.insert(&**key, encode(&record).as_slice())?;
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<bool, Fault> {
        Ok(self.remove(key)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_record_are_fixed() {
        let record = Versioned { revision: Revision(0x0102), value: Bytes::from_static(b"v") };
        let raw = [2, 1, 0, 0, 0, 0, 0, 0, b'v'];
        assert_eq!(encode(&record), raw);
        assert_eq!(decode("k", &raw).unwrap(), record);
    }

    #[test]
    fn a_short_record_is_named_and_not_a_panic() {
        let error = decode("scope/web", &[1, 2, 3]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "record scope/web is damaged: it has 3 bytes, fewer than its revision takes"
        );
    }
}
