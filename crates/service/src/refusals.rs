//! Refused operator requests: collected in memory, written in batches.
//!
//! A client controls how often it is refused, so all sizes are bounded. A batch keeps a limited number of requests in
//! full, with a limit per source, and counts the rest. It is written once a second, with exponential back-off while it
//! overflows. A flood therefore costs a few kilobytes a minute and hides neither itself nor other refusals. The janitor
//! removes old batches with history.
//!
//! A follower of a cluster gives its batches to the leader ([`Nodes::report`]), one at a time, until the leader has
//! stored it. Meanwhile further refusals collect in the next batch.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_engine::records::{self, FurtherRefusals, RefusalBatch, RefusedRequest};
use notbefore_engine::{Node, Role};
use notbefore_store::{Outcome, Store, Txn};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::lock;
use crate::metrics::Counters;
use crate::nodes::Nodes;

/// Requests kept in full in a batch: about what a person reads of one second.
const REQUESTS_MAX: usize = 64;
/// Requests kept in full of one source, so that it does not hide the others.
const REQUESTS_PER_SOURCE: usize = 16;
/// Sources counted separately in a batch; the others are counted together.
const SOURCES_MAX: usize = 32;
/// Longest method and path in a batch.
const REQUEST_CHARS_MAX: usize = 160;
/// Interval between writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest interval between writes while batches overflow.
const WRITE_INTERVAL_MAX: Duration = Duration::from_secs(64);

/// Collects refusals.
#[derive(Default)]
pub struct Refusals {
    pending: Mutex<PendingBatch>,
    /// The batch that is not stored yet. Locked while it is written, so that a shutdown waits for it.
    unwritten: tokio::sync::Mutex<Option<NumberedBatch>>,
    batches: AtomicU64,
    /// Number of refusals by code; there are few codes.
    pub counts: Counters,
}

/// A batch with its place in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberedBatch {
    /// The node that has refused the requests.
    node: String,
    number: u64,
    batch: RefusalBatch,
}

impl NumberedBatch {
    /// Writes the batch. It has one key, so it can be repeated.
    pub async fn store(&self, store: &dyn Store) -> Result<(), Outcome> {
        let key = records::refused(self.batch.at, &self.node, self.number);
        let put = vec![(key, records::encode(&self.batch))];
        match store.commit(Txn { put, ..Txn::default() }).await {
            Outcome::Committed(_) => Ok(()),
            other @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => Err(other),
        }
    }
}

/// Where a node's batches go.
pub struct RefusalSink {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub node: Node,
    pub role: watch::Receiver<Role>,
    /// None for a single node, which always leads.
    pub nodes: Option<Arc<Nodes>>,
}

#[derive(Default)]
struct PendingBatch {
    requests: Vec<RefusedRequest>,
    per_source: BTreeMap<Option<IpAddr>, SourceCounts>,
    other_sources: u64,
}

#[derive(Default)]
struct SourceCounts {
    kept: usize,
    counted: u64,
}

impl PendingBatch {
    /// Adds a request; returns whether it is kept in full.
    fn record(&mut self, mut refused: RefusedRequest) -> bool {
        let known = self.per_source.len();
        let source = match self.per_source.get_mut(&refused.from) {
            Some(source) => source,
            None if known < SOURCES_MAX => self.per_source.entry(refused.from).or_default(),
            None => {
                self.other_sources += 1;
                return false;
            }
        };
        if source.kept == REQUESTS_PER_SOURCE || self.requests.len() == REQUESTS_MAX {
            source.counted += 1;
            return false;
        }
        source.kept += 1;
        if refused.request.chars().count() > REQUEST_CHARS_MAX {
            refused.request = refused.request.chars().take(REQUEST_CHARS_MAX).chain(['…']).collect();
        }
        self.requests.push(refused);
        true
    }

    /// Takes the batch, if it is not empty.
    fn take(&mut self, at: jiff::Timestamp) -> Option<RefusalBatch> {
        let Self { requests, per_source, other_sources } = std::mem::take(self);
        let counted = per_source.into_iter().filter(|(_, source)| source.counted > 0);
        let mut further: Vec<_> =
            counted.map(|(from, source)| FurtherRefusals { from, count: source.counted }).collect();
        if other_sources > 0 {
            further.push(FurtherRefusals { from: None, count: other_sources });
        }
        (!requests.is_empty() || !further.is_empty()).then_some(RefusalBatch { at, requests, further })
    }
}

impl Refusals {
    /// Records and logs a refusal.
    pub fn record(&self, refused: RefusedRequest) {
        self.counts.get_or_create(&[("code", refused.code.clone())]).inc();
        let mut pending = lock(&self.pending);
        if pending.record(refused.clone()) {
            drop(pending);
            let RefusedRequest { from, token, code, request, .. } = refused;
            let (from, token) = (from.map(tracing::field::display), token.as_deref().unwrap_or("unknown"));
            tracing::warn!(target: "notbefore::audit", token, from, code, request, "refused");
        }
    }

    /// Writes batches forever.
    pub async fn write(self: Arc<Self>, sink: Arc<RefusalSink>) {
        let mut pause = WRITE_INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            pause = next_pause(pause, self.write_once(&sink).await);
        }
    }

    /// Logs the rest of a batch, and stores it or gives it to the leader. Returns whether all of its requests were kept
    /// in full.
    pub async fn write_once(&self, sink: &RefusalSink) -> bool {
        let mut unwritten = self.unwritten.lock().await;
        if unwritten.is_none() {
            *unwritten = self.next_batch(sink);
        }
        let all_kept = unwritten.as_ref().is_none_or(|one| one.batch.further.is_empty());
        if let Some(nodes) = sink.nodes.as_ref().filter(|_| !sink.role.borrow().leads()) {
            if nodes.report(unwritten.clone()).await.is_err() {
                // The reason is in the log.
                return all_kept;
            }
        } else if let Some(numbered) = &*unwritten
            && let Err(outcome) = numbered.store(&*sink.store).await
        {
            let requests = numbered.batch.requests.len();
            tracing::error!(?outcome, requests, "cannot store refused requests: they are in the log only");
        }
        *unwritten = None;
        all_kept
    }

    fn next_batch(&self, sink: &RefusalSink) -> Option<NumberedBatch> {
        let batch = lock(&self.pending).take(sink.clock.now())?;
        for FurtherRefusals { from, count } in &batch.further {
            let from = from.map_or_else(|| "elsewhere".to_owned(), |from| from.to_string());
            tracing::warn!(target: "notbefore::audit", from, count, "further refusals");
        }
        let number = self.batches.fetch_add(1, Relaxed);
        Some(NumberedBatch { node: sink.node.to_string(), number, batch })
    }
}

/// Doubles the interval while batches overflow.
fn next_pause(pause: Duration, all_kept: bool) -> Duration {
    if all_kept { WRITE_INTERVAL } else { (pause * 2).min(WRITE_INTERVAL_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use notbefore_store::memory::MemoryStore;
    use std::net::Ipv4Addr;

    fn refused(from: [u8; 4]) -> RefusedRequest {
        RefusedRequest {
            at: Timestamp::UNIX_EPOCH,
            from: Some(Ipv4Addr::from(from).into()),
            token: None,
            code: "token_refused".into(),
            request: "GET /v1/vms".into(),
        }
    }

    #[test]
    fn flood_is_counted_without_hiding_other_sources() {
        let mut pending = PendingBatch::default();
        for _ in 0..10_000 {
            pending.record(refused([10, 0, 0, 9]));
        }
        assert!(pending.record(refused([10, 0, 0, 1])), "a request of another source is kept");
        let batch = pending.take(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(batch.requests.len(), REQUESTS_PER_SOURCE + 1);
        let further = FurtherRefusals { from: refused([10, 0, 0, 9]).from, count: 10_000 - 16 };
        assert_eq!(batch.further, [further]);
        assert_eq!(pending.take(Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn batch_size_is_bounded_for_many_sources() {
        let mut pending = PendingBatch::default();
        for n in 0..50_000_u32 {
            let [a, b, c, d] = n.to_be_bytes();
            let long = RefusedRequest { request: "x".repeat(8_000), ..refused([10 + a, b, c, d]) };
            pending.record(long.clone());
            pending.record(long);
        }
        let batch = pending.take(Timestamp::UNIX_EPOCH).unwrap();
        assert!(records::encode(&batch).len() < 32 * 1024);
        let counted: u64 = batch.further.iter().map(|one| one.count).sum();
        assert_eq!(batch.requests.len() as u64 + counted, 100_000, "every request is counted");
    }

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    #[tokio::test]
    async fn repeated_batch_is_stored_once() {
        let (store, refusals) = (Arc::new(MemoryStore::new()), Refusals::default());
        let sink = RefusalSink {
            store: store.clone(),
            clock: Arc::new(StoppedClock),
            node: "b".into(),
            role: watch::channel(Role::Alone).1,
            nodes: None,
        };
        for stored in 1..3 {
            refusals.record(refused([10, 0, 0, 9]));
            let batch = refusals.next_batch(&sink).unwrap();
            assert_eq!((batch.store(&*store).await, batch.store(&*store).await), (Ok(()), Ok(())));
            let page = store.snapshot().await.unwrap().scan("refused/", None, 9).await.unwrap();
            assert_eq!(page.records.len(), stored, "another batch has another key");
        }
    }

    #[test]
    fn write_interval_backs_off_while_batches_overflow() {
        let mut pause = WRITE_INTERVAL;
        for _ in 0..20 {
            pause = next_pause(pause, false);
        }
        assert_eq!(pause, WRITE_INTERVAL_MAX);
        assert_eq!(next_pause(pause, true), WRITE_INTERVAL);
    }
}
