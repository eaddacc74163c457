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

impl HistoryLimits {
    /// Default limit of bytes: room for some four million events, more than a million VMs have in 90 days. It stops a
    /// program that creates events without end before that fills the disk of a large fleet.
    pub const BYTES_MAX: u64 = 16 << 30;
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
mod tests {
    use super::*;
    use notbefore_core::Cause;
    use notbefore_core::event::Outcome as Ending;
    use notbefore_core::samples::{self, event_id, now, operation, scope_id, started};
    use notbefore_engine::{Answer, FactBatch};
    use notbefore_store::memory::MemoryStore;

    const KEPT: SignedDuration = SignedDuration::from_hours(48);

    fn janitor(store: &Arc<MemoryStore>) -> Janitor {
        limited(store, None)
    }

    fn limited(store: &Arc<MemoryStore>, bytes_max: Option<u64>) -> Janitor {
        Janitor::new(store.clone(), HistoryLimits { retention: KEPT, bytes_max })
    }

    fn hours_ago(hours: i64) -> Timestamp {
        now().checked_sub(SignedDuration::from_hours(hours)).unwrap()
    }

    type Record = (Key, bytes::Bytes);

    fn past(id: u128, ended_at: Timestamp) -> Record {
        let past = Past {
            scope: scope_id("web"),
            outcome: Ending::Completed,
            ended_at,
            event: started(samples::event(id, Cause::HostReboot, &[])),
        };
        (records::past(event_id(id)), records::encode(&past))
    }

    fn stored(id: u128, state: OperationState, at: Timestamp) -> Record {
        let operation = Operation {
            requested_at: at,
            not_before: None,
            state,
            ..operation(id, Cause::HostReboot, Vec::new())
        };
        (records::operation(operation.id), records::encode(&operation))
    }

    /// Records of each kind with their age in hours, and those that expire with a retention of 48 hours.
    fn records_of_each_kind() -> (Vec<Record>, Vec<Record>) {
        let command = |key, hours| {
            let answer = CommandRecord { hash: String::new(), at: hours_ago(hours), answer: Answer::Done };
            (records::command("root", key), records::encode(&answer))
        };
        let entry = |hours, id| (records::ended(hours_ago(hours), event_id(id)), bytes::Bytes::new());
        let facts = |hours| {
            let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
            (records::fact(hours_ago(hours), "node", 1), records::encode(&batch))
        };
        let heard = |name: &str, hours| {
            let scope = scope_id(name);
            (records::heard(&scope), records::encode(&LastAt { at: hours_ago(hours) }))
        };
        let go = vec![
            command("old", 24),
            entry(49, 1),
            past(1, hours_ago(49)),
            // Written just before a crash: the event has ended later.
            entry(50, 2),
            facts(48),
            facts(1_000),
            stored(1, OperationState::Closed, hours_ago(48)),
            heard("gone", 48),
        ];
        let scope = samples::scope("web", &[]);
        let stay = vec![
            command("new", 23),
            entry(47, 2),
            past(2, hours_ago(47)),
            facts(47),
            stored(2, OperationState::Closed, hours_ago(47)),
            stored(3, OperationState::Open, hours_ago(1_000)),
            heard("web", 47),
            (records::scope(&scope.id()), records::encode(&scope)),
        ];
        (go, stay)
    }

    async fn keys(store: &MemoryStore) -> Vec<Key> {
        let all = store.snapshot().await.unwrap().scan("", None, 1_000).await.unwrap();
        all.records.into_iter().map(|(key, _)| key).collect()
    }

    fn sorted(records: &[Record]) -> Vec<Key> {
        let mut keys: Vec<Key> = records.iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    #[tokio::test]
    async fn sweep_removes_only_expired_records() {
        let store = Arc::new(MemoryStore::new());
        let (go, stay) = records_of_each_kind();
        let put = go.iter().chain(&stay).cloned().collect();
        assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));

        let mut janitor = janitor(&store);
        assert_eq!(janitor.sweep(now()).await, Ok(go.len()));
        assert_eq!(keys(&store).await, sorted(&stay));
        assert_eq!(janitor.sweep(now()).await, Ok(0));

        // Only the fleet and open operations stay forever.
        let much_later = now().checked_add(SignedDuration::from_hours(10_000)).unwrap();
        janitor.sweep(much_later).await.unwrap();
        let left = [stay[5].clone(), stay[7].clone()];
        assert_eq!(keys(&store).await, sorted(&left));
    }

    #[tokio::test]
    async fn cut_off_advances_at_most_one_day() {
        let store = Arc::new(MemoryStore::new());
        let day = |n: i64| hours_ago(0) + SignedDuration::from_hours(24 * n);
        let put = (0..10).map(|n| (records::refused(day(n), "node", 0), bytes::Bytes::new())).collect();
        store.commit(Txn { put, ..Txn::default() }).await;
        let mut janitor = janitor(&store);
        assert_eq!(janitor.sweep_bounded(day(2)).await, Ok(0), "no earlier sweep to compare with");
        assert_eq!(would_remove(&*store, day(1), KEPT).await, Ok(false));
        assert_eq!(would_remove(&*store, day(100), KEPT).await, Ok(true));
        // The clock is far ahead: a sweep removes only a day's records.
        assert_eq!(janitor.sweep_bounded(day(100)).await, Ok(2));
        assert_eq!(janitor.sweep_bounded(day(100)).await, Ok(1));
        // The clock is corrected.
        assert_eq!(janitor.sweep_bounded(day(5)).await, Ok(1));
        assert_eq!(keys(&store).await.len(), 6 + 1, "the time of the sweep is a record too");
    }

    #[tokio::test]
    async fn reads_are_kept_as_long_as_their_event() {
        let store = Arc::new(MemoryStore::new());
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let [gone, known, young, live] = [1, 2, 3, 4].map(event_id);
        let mut scope = samples::scope("web", &[]);
        scope.events.push(samples::event(4, Cause::PredictedFailure, &[]));
        let seen = |hours| {
            let at = now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
            let vm = samples::vm(9);
            let reads = vec![records::SeenRead { vm, at, version: "2020-07-01".into() }];
            records::encode(&Seen { scope: scope.id(), reads, added: Vec::new() })
        };
        // Only the existence of the event's record counts. It cannot be decoded, so it stays.
        let put: Vec<(Key, bytes::Bytes)> = vec![
            (records::seen(gone, "a"), seen(49)),
            (records::seen(known, "a"), seen(49)),
            (records::past(known), bytes::Bytes::from_static(b"1 {}")),
            (records::seen(young, "a"), seen(47)),
            (records::seen(live, "a"), seen(49)),
            (records::scope(&scope.id()), records::encode(&scope)),
        ];
        let outcome = store.commit(Txn { put, ..Txn::default() }).await;
        assert!(matches!(outcome, Outcome::Committed(_)));
        assert_eq!(janitor(&store).sweep(now).await, Ok(1));
        let left = store.snapshot().await.unwrap().scan(prefix::SEEN, None, 100).await.unwrap();
        let keys: Vec<&str> = left.records.iter().map(|(key, _)| &**key).collect();
        assert_eq!(
            keys,
            [known, young, live].map(|event| records::seen(event, "a")).each_ref().map(|key| &**key)
        );
    }

    #[tokio::test]
    async fn one_sweep_removes_a_thousand_ended_events() {
        let store = Arc::new(MemoryStore::new());
        for id in 0..1_000 {
            let put = vec![
                (records::ended(hours_ago(60), event_id(id)), bytes::Bytes::new()),
                past(id, hours_ago(60)),
            ];
            store.commit(Txn { put, ..Txn::default() }).await;
        }
        assert_eq!(janitor(&store).sweep(now()).await, Ok(2_000));
        assert!(keys(&store).await.is_empty());
    }

    async fn write(store: &MemoryStore, records: Vec<Record>) {
        for put in records.chunks(90) {
            let outcome = store.commit(Txn { put: put.to_vec(), ..Txn::default() }).await;
            assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
        }
    }

    fn bytes(records: &[Record]) -> u64 {
        records.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }

    /// What happened in an hour: a fact, an ended event with its read, and a closed operation.
    fn hour(hours_ago_: u8) -> Vec<Record> {
        let (at, id) = (hours_ago(hours_ago_.into()), u128::from(hours_ago_));
        let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
        let reads = vec![records::SeenRead { vm: samples::vm(9), at, version: "2020-07-01".into() }];
        let seen = Seen { scope: scope_id("web"), reads, added: Vec::new() };
        vec![
            (records::fact(at, "node", 1), records::encode(&batch)),
            (records::ended(at, event_id(id)), bytes::Bytes::new()),
            past(id, at),
            (records::seen(event_id(id), "node"), records::encode(&seen)),
            stored(id, OperationState::Closed, at),
        ]
    }

    #[tokio::test]
    async fn history_above_its_bytes_loses_the_oldest_of_each_kind() {
        let store = Arc::new(MemoryStore::new());
        let open = stored(99, OperationState::Open, hours_ago(47));
        let scope = samples::scope("web", &[]);
        let stays = vec![open.clone(), (records::scope(&scope.id()), records::encode(&scope))];
        write(&store, stays.clone()).await;
        for hours in 1..=40 {
            write(&store, hour(hours)).await;
        }
        let all = bytes(&(1..=40).flat_map(hour).collect::<Vec<_>>()) + bytes(std::slice::from_ref(&open));
        let mut janitor = limited(&store, Some(all));
        assert_eq!(janitor.sweep(now()).await, Ok(0), "nothing is too old");
        assert_eq!(janitor.check_size(now()).await, Ok(SizeCheck::default()), "and it fits");
        assert_eq!(janitor.stats.bytes.get(), all);

        janitor.limits.bytes_max = Some(all / 2);
        let check = janitor.check_size(now()).await.unwrap();
        // An event goes together with its reads.
        let groups = (1..=40).rev().flat_map(|hours| {
            let records = hour(hours);
            [records[..1].to_vec(), records[1..4].to_vec(), records[4..].to_vec()]
        });
        let (mut size, mut gone, mut kept) = (all, 0, stays);
        for group in groups {
            match size > all / 2 / 16 * 15 {
                true => (size, gone) = (size - bytes(&group), gone + group.len()),
                false => kept.extend(group),
            }
        }
        assert_eq!(keys(&store).await, sorted(&kept));
        assert_eq!((check.history.records, janitor.size.history()), (gone, size));
        let trimmed = janitor.stats.trimmed.get_or_create(&[("kind", "history".to_owned())]).get();
        assert_eq!(trimmed, gone as u64);
        assert_eq!(janitor.check_size(now()).await, Ok(SizeCheck::default()), "once is enough");
    }

    #[tokio::test]
    async fn node_that_leads_again_removes_nothing_within_the_limit() {
        let store = Arc::new(MemoryStore::new());
        for hours in 21..=40 {
            write(&store, hour(hours)).await;
        }
        let all = bytes(&(21..=40).flat_map(hour).collect::<Vec<_>>());
        let (mut a, mut b) = (limited(&store, Some(all)), limited(&store, Some(all)));
        a.sweep(now()).await.unwrap();
        assert_eq!(a.check_size(now()).await, Ok(SizeCheck::default()));
        // b leads: it removes what is too old, and as much is written again.
        b.limits.retention = SignedDuration::from_hours(20);
        b.sweep(now()).await.unwrap();
        assert!(keys(&store).await.is_empty());
        for hours in 1..=20 {
            write(&store, hour(hours)).await;
        }
        let before = keys(&store).await;
        let mut a = a.afresh();
        a.sweep(now()).await.unwrap();
        a.check_size(now()).await.unwrap();
        assert_eq!(keys(&store).await.len(), before.len());
    }

    #[tokio::test]
    async fn size_counts_new_records_once_and_again_after_the_clock_was_set_back() {
        let store = Arc::new(MemoryStore::new());
        let mut janitor = janitor(&store);
        write(&store, hour(3)).await;
        // Its commit may still show older records.
        let last_minute: Vec<Record> = hour(0);
        write(&store, last_minute.clone()).await;
        let ordered = |records: &[Record]| bytes(&records[..3]);
        for _ in 0..2 {
            assert_eq!(janitor.size.count(&*store, now()).await, Ok(true));
            assert_eq!(janitor.size.history(), ordered(&hour(3)));
        }
        let later = now() + SignedDuration::from_secs(61);
        assert_eq!(janitor.size.count(&*store, later).await, Ok(true));
        assert_eq!(janitor.size.history(), ordered(&hour(3)) + ordered(&last_minute));
        // The clock was ahead by two hours: further records come before those counted last.
        write(&store, [hour(2), hour(1)].concat()).await;
        assert_eq!(janitor.size.count(&*store, later - SignedDuration::from_hours(1)).await, Ok(true));
        assert_eq!(janitor.size.history(), (1..=3).map(|hours| ordered(&hour(hours))).sum::<u64>());
    }

    #[tokio::test]
    async fn one_check_removes_a_bounded_number_of_entries() {
        let store = Arc::new(MemoryStore::new());
        let batch = |n: i64| {
            let batch = FactBatch { scope: None, from: None, first: 0, facts: Vec::new() };
            (records::fact(hours_ago(2) + SignedDuration::from_millis(n), "node", 1), records::encode(&batch))
        };
        let many = TRIM_ENTRIES_MAX + 100;
        write(&store, (0..many as i64).map(batch).collect()).await;
        let mut janitor = limited(&store, Some(0));
        let first = janitor.check_size(now()).await.unwrap().history;
        assert_eq!((first.records, first.has_more), (TRIM_ENTRIES_MAX, true));
        let second = janitor.check_size(now()).await.unwrap().history;
        assert_eq!((second.records, second.has_more), (100, false));
    }

    #[tokio::test]
    async fn refusals_have_a_limit_of_their_own() {
        let limits = |bytes_max| HistoryLimits { retention: KEPT, bytes_max };
        assert_eq!(limits(Some(512 << 20)).refusals_bytes_max(), 8 << 20, "in a cluster");
        assert_eq!(limits(Some(HistoryLimits::BYTES_MAX)).refusals_bytes_max(), 256 << 20);
        assert_eq!(limits(None).refusals_bytes_max(), 256 << 20);

        let store = Arc::new(MemoryStore::new());
        let value = bytes::Bytes::from(vec![b'x'; 1_000]);
        let refused = |n: i64| {
            (records::refused(hours_ago(3) + SignedDuration::from_secs(n), "node", 0), value.clone())
        };
        let all: Vec<Record> = (0..100).map(refused).collect();
        write(&store, all.clone()).await;
        write(&store, hour(40)).await;
        let half = bytes(&all) / 2;
        let mut janitor = limited(&store, Some(half * HistoryLimits::REFUSALS_PART));
        let check = janitor.check_size(now()).await.unwrap();
        assert_eq!((check.history, check.refusals.records), (Trimmed::default(), 54), "history stays");
        let newest: Vec<Record> = all[54..].iter().cloned().chain(hour(40)).collect();
        assert_eq!(keys(&store).await, sorted(&newest));
        assert_eq!(janitor.size.refusals(), bytes(&all[54..]));
    }

    #[tokio::test]
    async fn poll_time_of_a_removed_scope_is_removed_after_a_day() {
        let store = Arc::new(MemoryStore::new());
        let heard = |name: &str, hours| {
            (records::heard(&scope_id(name)), records::encode(&LastAt { at: hours_ago(hours) }))
        };
        let scope = samples::scope("web", &[]);
        let stay = vec![
            heard("web", 30),
            heard("removed-lately", 23),
            (records::scope(&scope.id()), records::encode(&scope)),
        ];
        write(&store, stay.clone()).await;
        // The process ended after the scope was removed, while a poll time was on its way to the store.
        write(&store, vec![heard("removed", 25)]).await;
        assert_eq!(janitor(&store).sweep(now()).await, Ok(1));
        assert_eq!(keys(&store).await, sorted(&stay));
    }
}
