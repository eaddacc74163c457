//! Running size of history, without reading it again.
//!
//! Keys of facts, refused requests and ended events begin with their time, so new records come last. The count remembers
//! the last key of each kind and reads only what follows: after the start of the service each record is read once, a
//! bounded number at a time. Removals are subtracted. Reads of events, and operations, are not in order of time: the
//! sweep by age reads all of them anyway, and sets their size.
//!
//! A record appears a little later than the time in its key says, because it has to be committed. So records of the last
//! minute are not counted yet. If the clock was set back, the last key may be later than that; then counting starts
//! again.

use jiff::{SignedDuration, Timestamp};
use notbefore_engine::records::{self, prefix};
use notbefore_store::{Key, ReadError, Store, Versioned};

use super::{PAGE, event_of};

/// Age from which records are counted.
const SETTLED_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// Entries counted at a time.
const COUNT_ENTRIES_MAX: usize = 100_000;

/// Bytes of a record.
pub(super) fn bytes_of(key: &str, record: &Versioned) -> u64 {
    (key.len() + record.value.len()) as u64
}

/// The size of one kind whose keys begin with their time.
#[derive(Debug, Default)]
struct RunningSize {
    bytes: u64,
    /// The last key that was counted.
    to: Option<Key>,
}

/// Bytes of history by kind; see the module docs.
#[derive(Debug, Default)]
pub(super) struct HistorySize {
    facts: RunningSize,
    /// The index of ended events, with the events.
    ended: RunningSize,
    refusals: RunningSize,
    reads: u64,
    operations: u64,
}

impl HistorySize {
    pub(super) fn history(&self) -> u64 {
        self.facts.bytes + self.ended.bytes + self.reads + self.operations
    }

    pub(super) fn refusals(&self) -> u64 {
        self.refusals.bytes
    }

    pub(super) fn set_reads(&mut self, bytes: u64) {
        self.reads = bytes;
    }

    pub(super) fn set_operations(&mut self, bytes: u64) {
        self.operations = bytes;
    }

    /// A record was removed. Before all is counted, it may not have been counted: then the size is too small until the
    /// next start.
    pub(super) fn subtract(&mut self, key: &str, bytes: u64) {
        let kind = key.split_inclusive('/').next().unwrap_or_default();
        let size = match kind {
            prefix::FACT => &mut self.facts.bytes,
            prefix::ENDED | prefix::PAST => &mut self.ended.bytes,
            prefix::REFUSED => &mut self.refusals.bytes,
            prefix::SEEN => &mut self.reads,
            prefix::OPERATION => &mut self.operations,
            _ => return,
        };
        *size = size.saturating_sub(bytes);
    }

    /// Counts further records. Returns whether all that are old enough are counted.
    pub(super) async fn count(&mut self, store: &dyn Store, now: Timestamp) -> Result<bool, ReadError> {
        let latest = now.checked_sub(SETTLED_AFTER).unwrap_or(now);
        let mut room = COUNT_ENTRIES_MAX;
        for (prefix, size) in [
            (prefix::REFUSED, &mut self.refusals),
            (prefix::FACT, &mut self.facts),
            (prefix::ENDED, &mut self.ended),
        ] {
            if !size.count(store, prefix, latest, &mut room).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl RunningSize {
    async fn count(
        &mut self,
        store: &dyn Store,
        prefix: &str,
        latest: Timestamp,
        room: &mut usize,
    ) -> Result<bool, ReadError> {
        let is_later = |key: &str| records::time_in_key(key).is_some_and(|at| at > latest);
        if self.to.as_deref().is_some_and(is_later) {
            *self = Self::default();
        }
        while *room > 0 {
            // A snapshot for each page: an old one keeps the store from reusing space.
            let snapshot = store.snapshot().await?;
            let page = snapshot.scan(prefix, self.to.as_deref(), PAGE).await?;
            for (key, record) in page.records {
                if is_later(&key) {
                    return Ok(true);
                }
                let event = match event_of(&*snapshot, &key).await {
                    Err(ReadError::Damaged { .. }) => None,
                    event => event?,
                };
                self.bytes +=
                    bytes_of(&key, &record) + event.map_or(0, |(key, record)| bytes_of(&key, &record));
                self.to = Some(key);
                *room = room.saturating_sub(1);
            }
            if !page.more {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
