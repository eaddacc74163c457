//! Janitor: removes records that are over their limits.
//!
//! | records | limit |
//! |---|---|
//! | answers to commands | a day |
//! | history: facts, ended events with their reads, closed operations | [`HistoryLimits`]: age and bytes |
//! | refused requests | the age of history, and a small part of its bytes |
//! | poll times of removed scopes | a day |
//!
//! Once an hour it removes what is too old. Keys of facts and ended events begin with their time, so of these only
//! expired ones are read. Once a minute it compares the size of history with its limit, and removes the oldest records
//! of all kinds if it is larger. `size.rs` counts the bytes, and reads only what is new.
//!
//! The janitor works a page at a time, and deletes only records that have not changed since they were read. Damaged
//! records, and records that lead to them, stay.

mod size;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Operation, OperationState, Past, Scope, ScopeId};
use notbefore_engine::engine::ENABLED_FOR;
use notbefore_engine::records::{self, CommandRecord, LastAt, Seen, prefix};
use notbefore_store::{
    Expect, Key, Outcome, ReadError, Revision, Snapshot, Store, TXN_OPERATIONS_MAX, Txn, Versioned,
};

use self::size::HistorySize;
use crate::clock::Clock;
use crate::metrics::{Counters, Tally};
use crate::runtime::EngineHandle;
use crate::scan::Scan;

/// How long the answer to a command is kept for repeated requests.
pub const COMMAND_RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// Interval between sweeps by age, and between log lines about the size.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// Interval between checks of the size.
const SIZE_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between checks of the size while there is more to count or to remove.
const SIZE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checks during a clock hold.
const HOLD_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Longest step of the cut-off time from one sweep to the next.
const CUT_OFF_STEP_MAX: SignedDuration = SignedDuration::from_hours(24);
/// Records read at a time.
const PAGE: usize = 500;
/// Facts, refusals, ended events and operations that one check of the size removes.
const TRIM_ENTRIES_MAX: usize = 10_000;
/// Above a limit of bytes, this part of it is freed, so that records are removed now and then and not all the time.
const TRIM_PART: u64 = 16;

/// Number of records removed.
pub type Removed = Result<usize, ReadError>;

/// Limits of history: facts, ended events with their reads, and closed operations.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    pub retention: SignedDuration,
    /// Bytes of keys and values; none for no limit. The oldest records go first.
    pub bytes_max: Option<u64>,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { retention: Self::RETENTION, bytes_max: Some(Self::BYTES_MAX) }
    }
}

impl HistoryLimits {
    /// Default retention.
    pub const RETENTION: SignedDuration = SignedDuration::from_hours(90 * 24);
    /// Default limit of bytes: room for some four million events, more than a million VMs have in 90 days. It stops a
    /// program that creates events without end before that fills the disk of a large fleet.
    pub const BYTES_MAX: u64 = 16 << 30;
    /// Default limit in etcd: a quarter of its default quota, which must hold the fleet and uncompacted revisions, too.
    pub const BYTES_MAX_IN_ETCD: u64 = 512 << 20;
    /// Most bytes of refused requests. During a flood, it takes a week to push out the oldest.
    const REFUSALS_BYTES_MAX: u64 = 256 << 20;
    /// Refused requests get this part of the bytes of history, besides them: 8 MiB of 512 MiB, which last for hours of
    /// a flood and years without one. A client controls how often it is refused, and must not push out history.
    const REFUSALS_PART: u64 = 64;

    fn refusals_bytes_max(&self) -> u64 {
        let part = self.bytes_max.map_or(u64::MAX, |bytes_max| bytes_max / Self::REFUSALS_PART);
        part.min(Self::REFUSALS_BYTES_MAX)
    }
}

/// The size of history, for metrics.
pub struct HistoryStats {
    pub bytes: Tally,
    /// Records that were removed before their retention because of a limit of bytes, by kind.
    pub trimmed: Counters,
}

impl Default for HistoryStats {
    /// All counters exist from the start, so that an alert sees the first increase.
    fn default() -> Self {
        let (bytes, trimmed) = (Tally::default(), Counters::default());
        for kind in ["history", "refusals"] {
            drop(trimmed.get_or_create(&[("kind", kind.to_owned())]));
        }
        Self { bytes, trimmed }
    }
}

/// What was removed because of a limit of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Trimmed {
    records: usize,
    /// The limit of one check was reached.
    has_more: bool,
}

/// A check of the size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SizeCheck {
    history: Trimmed,
    refusals: Trimmed,
    /// Not all records are counted.
    is_counting: bool,
}

/// A record to remove, without its value.
#[derive(Clone, Debug)]
struct Doomed {
    key: Key,
    revision: Revision,
    bytes: u64,
}

impl From<(Key, Versioned)> for Doomed {
    fn from((key, record): (Key, Versioned)) -> Self {
        let bytes = size::bytes_of(&key, &record);
        Self { key, revision: record.revision, bytes }
    }
}

/// Removes records; see the module docs.
pub struct Janitor {
    store: Arc<dyn Store>,
    limits: HistoryLimits,
    size: HistorySize,
    stats: Arc<HistoryStats>,
}

/// Whether a sweep by age would remove history.
pub async fn would_remove(
    store: &dyn Store,
    now: Timestamp,
    history_retention: SignedDuration,
) -> Result<bool, ReadError> {
    let snapshot = store.snapshot().await?;
    for prefix in [prefix::FACT, prefix::REFUSED, prefix::ENDED] {
        let oldest = snapshot.scan(prefix, None, 1).await?.records.into_iter().next();
        let oldest = oldest.and_then(|(key, _)| records::time_in_key(&key));
        if oldest.is_some_and(|oldest| now.duration_since(oldest) >= history_retention) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Janitor {
    pub fn new(store: Arc<dyn Store>, limits: HistoryLimits) -> Self {
        Self { store, limits, size: HistorySize::default(), stats: Arc::default() }
    }

    /// A janitor that counts from the beginning, for a node that leads again: other nodes have removed records meanwhile.
    pub fn afresh(&self) -> Self {
        let (store, stats) = (Arc::clone(&self.store), Arc::clone(&self.stats));
        Self { store, limits: self.limits, size: HistorySize::default(), stats }
    }

    pub fn stats(&self) -> Arc<HistoryStats> {
        Arc::clone(&self.stats)
    }

    /// Works forever, unless the clock is held.
    pub async fn run(mut self, engine: EngineHandle, clock: Arc<dyn Clock>) {
        let (mut until_sweep, mut until_log) = (Duration::ZERO, Duration::ZERO);
        let [mut history, mut refusals] = [0; 2];
        loop {
            if engine.stats().clock_hold().is_some() {
                tokio::time::sleep(HOLD_RETRY_INTERVAL).await;
                continue;
            }
            if until_sweep.is_zero() {
                until_sweep = SWEEP_INTERVAL;
                match self.sweep_bounded(clock.now()).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "removed expired records"),
                    Err(error) => tracing::warn!(%error, "cannot sweep expired records"),
                }
            }
            let check = self.check_size(clock.now()).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot check the size of history");
                SizeCheck::default()
            });
            history += check.history.records;
            refusals += check.refusals.records;
            if until_log.is_zero() && history + refusals > 0 {
                until_log = SWEEP_INTERVAL;
                self.log_trimmed(std::mem::take(&mut history), std::mem::take(&mut refusals));
            }
            let has_more = check.is_counting || check.history.has_more || check.refusals.has_more;
            let pause = if has_more { SIZE_RETRY_INTERVAL } else { SIZE_INTERVAL };
            tokio::time::sleep(pause).await;
            until_sweep = until_sweep.saturating_sub(pause);
            until_log = until_log.saturating_sub(pause);
        }
    }

    fn log_trimmed(&self, history: usize, refusals: usize) {
        if history > 0 {
            tracing::warn!(
                removed = history,
                bytes_max = self.limits.bytes_max,
                "history is larger than events.keep_history_bytes: the oldest records were removed before their \
                 retention; raise that limit, or shorten events.keep_history"
            );
        }
        if refusals > 0 {
            tracing::warn!(
                removed = refusals,
                bytes_max = self.limits.refusals_bytes_max(),
                "refused requests are larger than their limit: the oldest were removed before their retention; \
                 'notbefore audit' shows where the others come from"
            );
        }
    }

    /// Sweeps with a cut-off at most a day later than at the last sweep. A clock that is wrong for longer than its hold
    /// then removes a day's records an hour, not all at once.
    async fn sweep_bounded(&mut self, now: Timestamp) -> Removed {
        let last = self.store.snapshot().await?.get(records::SWEPT).await?;
        let last = last.and_then(|record| records::decode::<LastAt>(records::SWEPT, &record.value).ok());
        let latest = last.as_ref().and_then(|last| last.at.checked_add(CUT_OFF_STEP_MAX).ok());
        let cut_off = latest.map_or(now, |latest| now.min(latest));
        let put = vec![(Key::from(records::SWEPT), records::encode(&LastAt { at: cut_off }))];
        match (self.store.commit(Txn { put, ..Txn::default() }).await, last) {
            // The first sweep has nothing to compare the clock with: it only stores the time.
            (_, None) => Ok(0),
            (Outcome::Committed(_), Some(_)) => self.sweep(cut_off).await,
            (_, Some(_)) => Ok(0),
        }
    }

    /// Removes expired records; returns how many.
    pub async fn sweep(&mut self, now: Timestamp) -> Removed {
        let retention = self.limits.retention;
        let older = |at: Timestamp, kept: SignedDuration| now.duration_since(at) >= kept;
        let mut removed = 0;
        let (answers, _) = self
            .sweep_prefix(prefix::COMMAND, |key, value| {
                records::decode::<CommandRecord>(key, value)
                    .is_ok_and(|record| older(record.at, COMMAND_RETENTION))
            })
            .await?;
        removed += answers;
        let (operations, kept) = self
            .sweep_prefix(prefix::OPERATION, |key, value| {
                closed_at(key, value).is_some_and(|at| older(at, retention))
            })
            .await?;
        self.size.set_operations(kept);
        removed += operations;
        removed += self.sweep_heard(now).await?;
        for prefix in [prefix::FACT, prefix::REFUSED, prefix::ENDED] {
            removed += self.sweep_oldest(prefix, |at| older(at, retention)).await?;
        }
        removed += self.sweep_seen(now).await?;
        Ok(removed)
    }

    /// Counts what is new, and removes the oldest records above the limits of bytes, a bounded number at a time.
    async fn check_size(&mut self, now: Timestamp) -> Result<SizeCheck, ReadError> {
        let is_counting = !self.size.count(&*self.store, now).await?;
        let too_much = excess(self.size.refusals(), self.limits.refusals_bytes_max());
        let refusals = self.trim(&[prefix::REFUSED], VecDeque::new(), too_much).await?;
        let too_much = excess(self.size.history(), self.limits.bytes_max.unwrap_or(u64::MAX));
        let operations = if too_much > 0 { self.closed_operations().await? } else { VecDeque::new() };
        let history = self.trim(&[prefix::FACT, prefix::ENDED], operations, too_much).await?;
        for (kind, trimmed) in [("history", history), ("refusals", refusals)] {
            let count = self.stats.trimmed.get_or_create(&[("kind", kind.to_owned())]);
            count.inc_by(trimmed.records as u64);
        }
        self.stats.bytes.set(self.size.history());
        Ok(SizeCheck { history, refusals, is_counting })
    }

    /// Removes the oldest entries of kinds whose keys begin with their time, and the oldest `operations`, until `excess`
    /// bytes are gone.
    async fn trim(
        &mut self,
        kinds: &[&str],
        mut operations: VecDeque<(Timestamp, Doomed)>,
        excess: u64,
    ) -> Result<Trimmed, ReadError> {
        let mut trimmed = Trimmed::default();
        if excess == 0 {
            return Ok(trimmed);
        }
        let snapshot = self.store.snapshot().await?;
        let mut oldest = OldestFirst::new(&*snapshot, kinds);
        let mut entry = oldest.next().await?;
        let (mut doomed, mut bytes, mut entries) = (Vec::new(), 0, 0);
        while bytes < excess {
            if entries == TRIM_ENTRIES_MAX {
                trimmed.has_more = true;
                break;
            }
            let is_older = |(at, _): &mut (Timestamp, Doomed)| {
                entry.as_ref().is_none_or(|(entry_at, _)| Some(*at) < *entry_at)
            };
            if let Some((_, operation)) = operations.pop_front_if(is_older) {
                bytes += operation.bytes;
                doomed.push(operation);
            } else if let Some((_, one)) = entry.take() {
                entry = oldest.next().await?;
                let Some(records) = with_event(&*snapshot, one).await? else { continue };
                bytes += records.iter().map(|record| record.bytes).sum::<u64>();
                doomed.extend(records);
            } else {
                break;
            }
            entries += 1;
            if doomed.len() >= PAGE {
                trimmed.records += self.remove(std::mem::take(&mut doomed)).await;
            }
        }
        trimmed.records += self.remove(doomed).await;
        Ok(trimmed)
    }

    /// Closed operations, the oldest first. The engine has all operations in memory, so they are few.
    async fn closed_operations(&self) -> Result<VecDeque<(Timestamp, Doomed)>, ReadError> {
        let snapshot = self.store.snapshot().await?;
        let (mut pages, mut closed) = (Scan::new(&*snapshot, prefix::OPERATION, PAGE), Vec::new());
        while let Some(page) = pages.next().await? {
            let with_time = |one: (Key, Versioned)| Some((closed_at(&one.0, &one.1.value)?, one.into()));
            closed.extend(page.records.into_iter().filter_map(with_time));
        }
        closed.sort_by_key(|(at, _)| *at);
        Ok(closed.into())
    }

    /// Checks every record of a kind. Returns the number of removed records and the bytes of the others.
    async fn sweep_prefix(
        &mut self,
        prefix: &str,
        mut is_past: impl FnMut(&str, &[u8]) -> bool,
    ) -> Result<(usize, u64), ReadError> {
        let snapshot = self.store.snapshot().await?;
        let (mut pages, mut removed, mut kept) = (Scan::new(&*snapshot, prefix, PAGE), 0, 0);
        while let Some(page) = pages.next().await? {
            let (past, others): (Vec<_>, Vec<_>) =
                page.records.into_iter().partition(|(key, record)| is_past(key, &record.value));
            kept += others.iter().map(|(key, record)| size::bytes_of(key, record)).sum::<u64>();
            removed += self.remove(past.into_iter().map(Doomed::from).collect()).await;
        }
        Ok((removed, kept))
    }

    /// Removes poll times of scopes that do not exist. They are removed with their scope, except one that was on its
    /// way to the store. Those of the last day are not checked: most scopes are polled.
    async fn sweep_heard(&mut self, now: Timestamp) -> Removed {
        let snapshot = self.store.snapshot().await?;
        let (mut pages, mut removed) = (Scan::new(&*snapshot, prefix::HEARD, PAGE), 0);
        while let Some(page) = pages.next().await? {
            let mut past = Vec::new();
            for one in page.records {
                let Ok(last) = records::decode::<LastAt>(&one.0, &one.1.value) else { continue };
                let age = now.duration_since(last.at);
                if age >= self.limits.retention
                    || (age >= ENABLED_FOR && !has_scope(&*snapshot, &one.0).await?)
                {
                    past.push(one.into());
                }
            }
            removed += self.remove(past).await;
        }
        Ok(removed)
    }

    /// Checks records whose keys begin with their time, from the oldest to the first that stays.
    async fn sweep_oldest(&mut self, prefix: &str, is_past: impl Fn(Timestamp) -> bool) -> Removed {
        let snapshot = self.store.snapshot().await?;
        let (mut pages, mut removed) = (Scan::new(&*snapshot, prefix, PAGE), 0);
        while let Some(page) = pages.next().await? {
            let mut past = Vec::new();
            for entry in page.records {
                if !records::time_in_key(&entry.0).is_none_or(&is_past) {
                    return Ok(removed + self.remove(past).await);
                }
                past.extend(with_event(&*snapshot, entry).await?.into_iter().flatten());
            }
            removed += self.remove(past).await;
        }
        Ok(removed)
    }

    /// Removes reads of events whose own record is gone and that are not live. An event with a long notice may be live
    /// for longer than history is kept.
    async fn sweep_seen(&mut self, now: Timestamp) -> Removed {
        let snapshot = self.store.snapshot().await?;
        let (mut pages, mut removed, mut kept) = (Scan::new(&*snapshot, prefix::SEEN, PAGE), 0, 0);
        while let Some(page) = pages.next().await? {
            let mut past = Vec::new();
            for one in page.records {
                let bytes = size::bytes_of(&one.0, &one.1);
                let Ok(seen) = records::decode::<Seen>(&one.0, &one.1.value) else { continue };
                // Most records are younger, and need no further reads.
                let is_old =
                    seen.reads.iter().all(|read| now.duration_since(read.at) >= self.limits.retention);
                if is_old && !is_known(&*snapshot, &one.0, &seen.scope).await? {
                    past.push(one.into());
                } else {
                    kept += bytes;
                }
            }
            removed += self.remove(past).await;
        }
        self.size.set_reads(kept);
        Ok(removed)
    }

    /// Removes records that have not changed; returns how many.
    async fn remove(&mut self, doomed: Vec<Doomed>) -> usize {
        let mut removed = 0;
        // Each is compared and removed; one operation is for the leader's fence.
        for some in doomed.chunks((TXN_OPERATIONS_MAX - 1) / 2) {
            let unchanged = |one: &Doomed| Expect { key: one.key.clone(), revision: Some(one.revision) };
            let txn = Txn {
                expect: some.iter().map(unchanged).collect(),
                put: Vec::new(),
                delete: some.iter().map(|one| one.key.clone()).collect(),
            };
            if let Outcome::Committed(_) = self.store.commit(txn).await {
                removed += some.len();
                some.iter().for_each(|one| self.size.subtract(&one.key, one.bytes));
            }
        }
        removed
    }
}

/// Bytes to remove.
fn excess(bytes: u64, bytes_max: u64) -> u64 {
    if bytes > bytes_max { bytes - (bytes_max - bytes_max / TRIM_PART) } else { 0 }
}

/// Reads several kinds whose keys begin with their time as one, from the oldest record on.
struct OldestFirst<'a> {
    kinds: Vec<(Scan<'a>, VecDeque<(Key, Versioned)>)>,
}

impl<'a> OldestFirst<'a> {
    fn new(snapshot: &'a dyn Snapshot, kinds: &[&'a str]) -> Self {
        let kinds = kinds.iter().map(|kind| (Scan::new(snapshot, kind, PAGE), VecDeque::new()));
        Self { kinds: kinds.collect() }
    }

    async fn next(&mut self) -> Result<Option<(Option<Timestamp>, (Key, Versioned))>, ReadError> {
        for (scan, page) in &mut self.kinds {
            while page.is_empty()
                && let Some(next) = scan.next().await?
            {
                page.extend(next.records);
            }
        }
        let time = |page: &VecDeque<(Key, Versioned)>| {
            page.front().map_or((true, None), |(key, _)| (false, records::time_in_key(key)))
        };
        let oldest = self.kinds.iter_mut().map(|(_, page)| page).min_by_key(|page| time(page));
        let entry = oldest.and_then(VecDeque::pop_front);
        Ok(entry.map(|entry| (records::time_in_key(&entry.0), entry)))
    }
}

/// A record, and for an entry of the index of ended events the event and its reads. None if the event is damaged. The
/// entry comes last: if not all are removed, it leads to the rest.
async fn with_event(
    snapshot: &dyn Snapshot,
    entry: (Key, Versioned),
) -> Result<Option<Vec<Doomed>>, ReadError> {
    let event = match event_of(snapshot, &entry.0).await {
        Err(ReadError::Damaged { .. }) => return Ok(None),
        event => event?,
    };
    let mut doomed = Vec::new();
    if let (Some(record), Some(id)) = (event, records::event_in_key(&entry.0)) {
        let prefix = records::seen_of(id);
        let mut reads = Scan::new(snapshot, &prefix, PAGE);
        while let Some(page) = reads.next().await? {
            doomed.extend(page.records.into_iter().map(Doomed::from));
        }
        doomed.push(record.into());
    }
    doomed.push(entry.into());
    Ok(Some(doomed))
}

/// The event of an index entry, unless it ended later under another entry.
async fn event_of(snapshot: &dyn Snapshot, entry: &str) -> Result<Option<(Key, Versioned)>, ReadError> {
    let Some(event) = records::event_in_key(entry) else { return Ok(None) };
    let key = records::past(event);
    let Some(record) = snapshot.get(&key).await? else { return Ok(None) };
    let is_indexed = records::decode::<Past>(&key, &record.value)
        .is_ok_and(|past| *records::ended(past.ended_at, event) == *entry);
    Ok(is_indexed.then_some((key, record)))
}

/// When a closed operation was requested or was to start, whichever is later. None for another record.
fn closed_at(key: &str, value: &[u8]) -> Option<Timestamp> {
    let operation = records::decode::<Operation>(key, value).ok()?;
    let last = operation.not_before.map_or(operation.requested_at, |at| at.max(operation.requested_at));
    (operation.state == OperationState::Closed).then_some(last)
}

/// Whether the scope of a poll time exists.
async fn has_scope(snapshot: &dyn Snapshot, heard: &str) -> Result<bool, ReadError> {
    let scope = heard.replacen(prefix::HEARD, prefix::SCOPE, 1);
    match snapshot.get(&scope).await {
        Err(ReadError::Damaged { .. }) => Ok(true),
        found => Ok(found?.is_some()),
    }
}

/// Whether the event of a record of reads is live or in history.
async fn is_known(snapshot: &dyn Snapshot, key: &str, scope: &ScopeId) -> Result<bool, ReadError> {
    let Some(id) = records::event_in_key(key) else { return Ok(true) };
    let key = records::scope(scope);
    match (snapshot.get(&records::past(id)).await, snapshot.get(&key).await) {
        (Ok(Some(_)) | Err(ReadError::Damaged { .. }), _) | (_, Err(ReadError::Damaged { .. })) => Ok(true),
        (past, scope) => {
            // A scope that cannot be decoded may have the event.
            let has_event = |scope: &Scope| scope.event(id).is_some();
            let scope = past.and(scope)?.map(|record| records::decode::<Scope>(&key, &record.value));
            Ok(scope.is_some_and(|scope| scope.as_ref().map_or(true, has_event)))
        }
    }
}

#[cfg(test)]
mod tests;
