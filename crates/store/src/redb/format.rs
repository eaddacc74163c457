//! The record format in the file: checksummed records (CRC-32C) and tallies per kind.
//!
//! | table | key | value |
//! |---|---|---|
//! | `checked` | the record's key | 4 bytes little-endian: the CRC-32C of the key and of all that follows; 8 bytes little-endian: the revision that wrote it; the value |
//! | `state` | `state` | laid out like a record: the newest revision, and [`State`] as text |
//! | `meta` | `format` | [`FORMAT`] |
//!
//! `state` is written in the same redb commit as its records. So after a crash or a failed sync it shows exactly
//! which transactions are on disk.
//!
//! redb has page checksums, but verifies them only when it repairs a file. Here every read verifies the record's
//! checksum. A checksum cannot show a missing record, or one of the past; the tallies per kind in `state` can
//! ([`crate::tally`]).

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use ::redb::{ReadableTable, Table, TableDefinition};
use bytes::Bytes;

use crate::apply::Records;
use crate::{Key, Revision, Tallies, Tally, Versioned};

/// A file with a higher number was written by a newer notbefore. Lower numbers were used before the first release: those
/// files have no checksums or no tallies, so they may lack acknowledged changes, and are refused.
pub(super) const FORMAT: u64 = 3;

/// Keys are bytes, so that a key with invalid UTF-8 is a damaged record and not a panic in redb.
pub(super) const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("checked");
pub(super) const STATE: TableDefinition<&str, &[u8]> = TableDefinition::new("state");
pub(super) const STATE_KEY: &str = "state";
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
pub(super) const META_FORMAT: &str = "format";

const CHECKSUM_BYTES: usize = size_of::<u32>();
const REVISION_BYTES: usize = size_of::<u64>();

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Redb(#[from] ::redb::Error),
    /// The key as found in the file; it may be the damaged part.
    #[error("record {key} is damaged: its checksum does not match")]
    Damaged { key: String },
    #[error(
        "the file has damaged pages; stop the service, run 'notbefore check --data DIR' to see what is left, and restore a backup"
    )]
    Unfollowable,
}

impl Fault {
    pub fn damaged(key: &[u8]) -> Self {
        Self::Damaged { key: shown(key) }
    }
}

/// Most characters of a key that are shown whole: the longest valid key has fewer.
const SHOWN_CHARS_MAX: usize = 300;
/// Characters that are shown of a longer one.
const SHOWN_CHARS: usize = 100;

/// Escapes a possibly damaged key for display. On a damaged page, a part of a value can pass for a key of some kilobytes:
/// it is cut, and keeps its length and checksum, so that two of them stay different.
pub(super) fn shown(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key).escape_debug().to_string();
    if text.chars().nth(SHOWN_CHARS_MAX).is_none() {
        return text;
    }
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{start}… ({} bytes, checksum {:08x})", key.len(), crc32c::crc32c(key))
}

thread_local! {
    /// Whether [`reading`] turns a panic on this thread into an error.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function on the file and turns a panic into an error. redb trusts its pages and panics on damaged ones, as
/// in a file with a missing part; the service must survive that. The panic message is logged at debug level, since
/// the error says what to do.
pub(super) fn reading<T>(read: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match CAUGHT.get() {
            true => tracing::debug!(%info, "redb panicked on a damaged page"),
            false => before(info),
        }));
    });
    let outer = CAUGHT.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    CAUGHT.set(outer);
    outcome.unwrap_or(Err(Fault::Unfollowable))
}

/// Every redb call has its own error type; here all become the same fault.
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

/// Serializes a record.
pub(super) fn encode(key: &[u8], revision: Revision, value: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(CHECKSUM_BYTES + REVISION_BYTES + value.len());
    raw.extend_from_slice(&[0; CHECKSUM_BYTES]);
    raw.extend_from_slice(&revision.0.to_le_bytes());
    raw.extend_from_slice(value);
    if let Some((place, checked)) = raw.split_first_chunk_mut::<CHECKSUM_BYTES>() {
        *place = checksum(key, checked).to_le_bytes();
    }
    raw
}

/// Parses a record and verifies its checksum.
pub(super) fn decode(key: &[u8], raw: &[u8]) -> Result<Versioned, Fault> {
    let (revision, value) = verified(key, raw).ok_or_else(|| Fault::damaged(key))?;
    Ok(Versioned { revision, value: Bytes::copy_from_slice(value) })
}

fn verified<'a>(key: &[u8], raw: &'a [u8]) -> Option<(Revision, &'a [u8])> {
    let (stored, checked) = raw.split_first_chunk::<CHECKSUM_BYTES>()?;
    if checksum(key, checked) != u32::from_le_bytes(*stored) {
        return None;
    }
    revision_and_value(checked)
}

fn revision_and_value(checked: &[u8]) -> Option<(Revision, &[u8])> {
    let (revision, value) = checked.split_first_chunk::<REVISION_BYTES>()?;
    Some((Revision(u64::from_le_bytes(*revision)), value))
}

fn checksum(key: &[u8], checked: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), checked)
}

/// The revision of a record that is about to be written or removed, without its checksum: that repairs it.
fn revision_in(raw: &[u8]) -> Option<Revision> {
    raw.get(CHECKSUM_BYTES..).and_then(revision_and_value).map(|(revision, _)| revision)
}

/// The store's own metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// A random store id: another store at the same path and revision has a different one.
    pub id: u64,
    pub revision: Revision,
    pub tallies: Tallies,
}

impl State {
    /// The state of an empty store, with a new id.
    pub fn new() -> Result<Self, Fault> {
        let id = getrandom::u64().map_err(|error| ::redb::Error::Io(error.into()))?;
        Ok(Self { id, revision: Revision(0), tallies: Tallies::default() })
    }

    /// `store ID`, then a line `COUNT SUM KIND` for each kind of record.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("store {:016x}\n", self.id);
        for (kind, Tally { count, sum }) in self.tallies.kinds() {
            text.push_str(&format!("{count} {sum:016x} {kind}\n"));
        }
        encode(STATE_KEY.as_bytes(), self.revision, text.as_bytes())
    }

    pub fn decode(raw: &[u8]) -> Result<Self, Fault> {
        Self::parse(raw).ok_or_else(|| Fault::damaged(STATE_KEY.as_bytes()))
    }

    fn parse(raw: &[u8]) -> Option<Self> {
        let (revision, text) = verified(STATE_KEY.as_bytes(), raw)?;
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        let id = u64::from_str_radix(lines.next()?.strip_prefix("store ")?, 16).ok()?;
        let tally = |line: &str| {
            let (count, rest) = line.split_once(' ')?;
            let (sum, kind) = rest.split_once(' ')?;
            let tally = Tally { count: count.parse().ok()?, sum: u64::from_str_radix(sum, 16).ok()? };
            Some((kind.to_owned(), tally))
        };
        Some(Self { id, revision, tallies: lines.map(tally).collect::<Option<_>>()? })
    }
}

/// The records and tallies of an open write transaction.
pub(super) struct TableWriter<'t> {
    pub table: Table<'t, &'static [u8], &'static [u8]>,
    pub tallies: Tallies,
}

/// Takes a record that was replaced or removed out of the tallies. If its revision was damaged, the sum is wrong from
/// then on, and the next start says so.
fn take_out(tallies: &mut Tallies, key: &str, raw: &[u8]) {
    tallies.remove(key, revision_in(raw).unwrap_or_default());
}

impl Records for TableWriter<'_> {
    type Error = Fault;

    fn revision_of(&self, key: &str) -> Result<Option<Revision>, Fault> {
        let found = self.table.get(key.as_bytes())?;
        found.map(|raw| revision_in(raw.value()).ok_or_else(|| Fault::damaged(key.as_bytes()))).transpose()
    }

    fn get(&self, key: &str) -> Result<Option<Versioned>, Fault> {
        self.table.get(key.as_bytes())?.map(|raw| decode(key.as_bytes(), raw.value())).transpose()
    }

    fn put(&mut self, key: &Key, record: Versioned) -> Result<(), Fault> {
        let raw = encode(key.as_bytes(), record.revision, &record.value);
        let before = self.table.insert(key.as_bytes(), raw.as_slice())?;
        if let Some(before) = before {
            take_out(&mut self.tallies, key, before.value());
        }
        self.tallies.add(key, record.revision);
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<bool, Fault> {
        let before = self.table.remove(key.as_bytes())?;
        if let Some(before) = &before {
            take_out(&mut self.tallies, key, before.value());
        }
        Ok(before.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_record_are_fixed() {
        let record = Versioned { revision: Revision(0x0102), value: Bytes::from_static(b"v") };
        // The first four bytes are the CRC-32C of the key and the rest.
        let raw = [131, 154, 13, 45, 2, 1, 0, 0, 0, 0, 0, 0, b'v'];
        assert_eq!(encode(b"k", record.revision, &record.value), raw);
        assert_eq!(decode(b"k", &raw).unwrap(), record);
        // The polynomial's published check value.
        assert_eq!(checksum(b"1234", b"56789"), 0xe306_9283);
    }

    #[test]
    fn checksum_detects_every_flipped_bit() {
        let key = b"scope/web".to_vec();
        let raw = encode(&key, Revision(7), b"2 {}");
        let parts = [&key[..], &raw[..]].concat();
        for bit in 0..parts.len() * 8 {
            let mut flipped = parts.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (key, raw) = flipped.split_at(key.len());
            assert!(matches!(decode(key, raw), Err(Fault::Damaged { .. })), "bit {bit}");
        }
    }

    #[test]
    fn truncated_record_is_an_error() {
        for raw in [&[][..], &[1, 2, 3], &[0; 11]] {
            let error = decode(b"scope/web", raw).unwrap_err().to_string();
            assert_eq!(error, "record scope/web is damaged: its checksum does not match");
        }
        assert_eq!(shown(b"scope/\xffx\n"), "scope/\u{fffd}x\\n");
    }

    #[test]
    fn long_damaged_key_is_cut_and_stays_distinct() {
        let longest = format!("command/{}~{}/{}", "n".repeat(80), "h".repeat(16), "k".repeat(128));
        assert_eq!(shown(longest.as_bytes()), longest);
        let [one, two] = [b'a', b'b'].map(|last| [&[0_u8; 4_000][..], &[last]].concat());
        let [one, two] = [shown(&one), shown(&two)];
        assert!(one.chars().count() < 140 && one.contains("… (4001 bytes, checksum "), "{one}");
        assert_ne!(one, two);
    }

    #[test]
    fn state_round_trips() {
        let mut state = State { revision: Revision(3), ..State::new().unwrap() };
        for (key, revision) in [("scope/a", 1), ("scope/b", 2), ("alive", 3)] {
            state.tallies.add(key, Revision(revision));
        }
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
        assert!(State::decode(&State::new().unwrap().encode()[1..]).is_err());
        assert_ne!(State::new().unwrap().id, State::new().unwrap().id);
    }
}
