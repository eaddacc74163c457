//! A ring buffer of recent commits in memory, for watches.
//!
//! All watches of a store share one ring. A watch holds only the revision it has seen and pulls the next batch, so a
//! slow one costs no memory. If it falls behind, it gets [`WatchError::Compacted`] and starts over from a snapshot,
//! as it must after a restart anyway.
//!
//! The ring does not survive a restart. It then starts, empty, at the revision on disk: a watch from that revision
//! works, an older one is `Compacted`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{Batch, Revision, Watch, WatchError, check};

/// Limits on the ring; exceeding either one drops the oldest batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A reader that loads a snapshot of a large store and then watches needs the commits made meanwhile. At a few
    /// thousand commits a second, 8,192 last for some seconds.
    pub batches: usize,
    /// Keys and values. Scope records reach 512 KiB, so the count alone would allow gigabytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batches: 8192, bytes: 32 * 1024 * 1024 }
    }
}

/// The ring and the notifier that wakes its watches.
pub(crate) struct Log {
    ring: Mutex<Ring>,
    tip: watch::Sender<Tip>,
}

struct Ring {
    /// Rising revisions after `oldest`, up to `newest`.
    batches: VecDeque<Batch>,
    bytes: usize,
    /// The oldest revision from which a watch can start.
    oldest: Revision,
    newest: Revision,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Tip {
    newest: Revision,
    closed: bool,
}

impl Log {
    /// An empty ring that expects batches after `newest`.
    pub fn new(newest: Revision, limits: Limits) -> Arc<Self> {
        let ring = Ring { batches: VecDeque::new(), bytes: 0, oldest: newest, newest, limits };
        Arc::new(Self { ring: Mutex::new(ring), tip: watch::Sender::new(Tip { newest, closed: false }) })
    }

    /// Appends batches in order and wakes every watch once. Only the store's single writer calls this.
    pub fn append(&self, batches: impl IntoIterator<Item = Batch>) {
        let newest = {
            let mut ring = self.ring();
            batches.into_iter().for_each(|batch| ring.push(batch));
            ring.newest
        };
        self.tip.send_modify(|tip| tip.newest = newest);
    }

    /// Forgets everything if the ring does not reach this revision.
    fn skip_to(&self, revision: Revision) {
        let mut ring = self.ring();
        if ring.newest >= revision {
            return;
        }
        ring.batches.clear();
        (ring.bytes, ring.oldest, ring.newest) = (0, revision, revision);
        drop(ring);
        self.tip.send_modify(|tip| tip.newest = revision);
    }

    /// Ends every watch after it has yielded the rest of the ring.
    pub fn close(&self) {
        self.tip.send_modify(|tip| tip.closed = true);
    }

    /// A watch of all batches after `after`. A future revision is valid: the watch waits for the one after it.
    pub fn watch(self: &Arc<Self>, after: Revision) -> Result<LogWatch, WatchError> {
        if self.tip.borrow().closed {
            return Err(WatchError::Closed);
        }
        let oldest = self.ring().oldest;
        if after < oldest {
            return Err(WatchError::Compacted { oldest });
        }
        Ok(LogWatch { log: self.clone(), tip: self.tip.subscribe(), seen: after })
    }

    /// Ignores lock poisoning: no method leaves the ring half changed.
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, batch: Batch) {
        check(|| batch.revision > self.newest, "a batch is repeated");
        self.newest = batch.revision;
        self.bytes += bytes(&batch);
        self.batches.push_back(batch);
        // The newest batch stays whatever its size, so that a watch that keeps up never misses one.
        while self.batches.len() > 1
            && (self.batches.len() > self.limits.batches || self.bytes > self.limits.bytes)
        {
            if let Some(dropped) = self.batches.pop_front() {
                self.bytes -= bytes(&dropped);
                self.oldest = dropped.revision;
            }
        }
    }

    fn after(&self, seen: Revision) -> Result<Batch, WatchError> {
        let next = self.batches.partition_point(|batch| batch.revision <= seen);
        let next = self.batches.get(next).filter(|_| seen >= self.oldest);
        next.cloned().ok_or(WatchError::Compacted { oldest: self.oldest })
    }
}

fn bytes(batch: &Batch) -> usize {
    batch.changes.iter().map(|change| change.key.len() + change.value.as_ref().map_or(0, |v| v.len())).sum()
}

/// A log of commits for the readers of a process that itself watches a shared store: they share its one watch.
#[derive(Clone)]
pub struct WatchLog(Arc<Log>);

impl Default for WatchLog {
    fn default() -> Self {
        Self(Log::new(Revision(0), Limits::default()))
    }
}

impl WatchLog {
    /// Adds a commit of the process's own watch. Revisions must rise.
    pub fn append(&self, batch: Batch) {
        self.0.append([batch]);
    }

    /// Commits up to this revision were not watched: readers that have not seen it must start over.
    pub fn skip_to(&self, revision: Revision) {
        self.0.skip_to(revision);
    }

    /// As [`Store::watch`](crate::Store::watch).
    pub fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(self.0.watch(after)?))
    }
}

/// One reader's position in the log.
pub(crate) struct LogWatch {
    log: Arc<Log>,
    tip: watch::Receiver<Tip>,
    seen: Revision,
}

#[async_trait]
impl Watch for LogWatch {
    async fn next(&mut self) -> Result<Batch, WatchError> {
        let seen = self.seen;
        let tip = *self
            .tip
            .wait_for(|tip| tip.newest > seen || tip.closed)
            .await
            .map_err(|_closed| WatchError::Closed)?;
        if tip.newest <= seen {
            return Err(WatchError::Closed);
        }
        let batch = self.log.ring().after(seen)?;
        self.seen = batch.revision;
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Change;

    fn batch(revision: u64, value: &'static str) -> Batch {
        let change = Change { key: "k".into(), value: Some(Bytes::from_static(value.as_bytes())) };
        Batch { revision: Revision(revision), changes: [change].into() }
    }

    #[tokio::test]
    async fn lagging_watch_gets_oldest_revision() {
        let log = Log::new(Revision(0), Limits { batches: 2, bytes: 1000 });
        let mut slow = log.watch(Revision(0)).unwrap();
        for revision in 1..=3 {
            log.append([batch(revision, "v")]);
        }
        let compacted = WatchError::Compacted { oldest: Revision(1) };
        assert_eq!(slow.next().await, Err(compacted.clone()));
        assert_eq!(log.watch(Revision(0)).err(), Some(compacted));
        assert_eq!(log.watch(Revision(1)).unwrap().next().await, Ok(batch(2, "v")));
    }

    #[tokio::test]
    async fn revisions_may_have_gaps() {
        let log = Log::new(Revision(3), Limits { batches: 2, bytes: 1000 });
        for revision in [5, 9, 10] {
            log.append([batch(revision, "v")]);
        }
        assert_eq!(log.watch(Revision(4)).err(), Some(WatchError::Compacted { oldest: Revision(5) }));
        for (after, next) in [(5, 9), (7, 9), (9, 10)] {
            assert_eq!(log.watch(Revision(after)).unwrap().next().await, Ok(batch(next, "v")), "{after}");
        }
    }

    #[tokio::test]
    async fn byte_limit_keeps_newest_batch() {
        let log = Log::new(Revision(0), Limits { batches: 100, bytes: 8 });
        log.append([batch(1, "four")]);
        log.append([batch(2, "1234567890")]);
        assert_eq!(log.watch(Revision(0)).err(), Some(WatchError::Compacted { oldest: Revision(1) }));
        assert_eq!(log.watch(Revision(1)).unwrap().next().await, Ok(batch(2, "1234567890")));
        log.append([batch(3, "1")]);
        log.append([batch(4, "2")]);
        assert_eq!(log.watch(Revision(2)).unwrap().next().await, Ok(batch(3, "1")));
    }

    #[tokio::test]
    async fn log_started_later_rejects_older_watch() {
        let log = Log::new(Revision(7), Limits::default());
        assert_eq!(log.watch(Revision(6)).err(), Some(WatchError::Compacted { oldest: Revision(7) }));
        let mut watch = log.watch(Revision(7)).unwrap();
        log.append([batch(8, "v")]);
        assert_eq!(watch.next().await, Ok(batch(8, "v")));
    }

    #[tokio::test]
    async fn readers_of_a_gap_start_over() {
        let log = WatchLog::default();
        log.skip_to(Revision(3));
        let (mut before, mut ahead) = (log.watch(Revision(3)).unwrap(), log.watch(Revision(9)).unwrap());
        log.append(batch(5, "v"));
        assert_eq!(before.next().await, Ok(batch(5, "v")));
        log.skip_to(Revision(4));
        log.append(batch(6, "v"));
        assert_eq!(before.next().await, Ok(batch(6, "v")), "the log has it all");
        log.skip_to(Revision(9));
        assert_eq!(before.next().await, Err(WatchError::Compacted { oldest: Revision(9) }));
        log.append(batch(12, "v"));
        assert_eq!(ahead.next().await, Ok(batch(12, "v")), "it has seen what was skipped");
    }

    #[tokio::test]
    async fn closed_log_drains_then_ends() {
        let log = Log::new(Revision(0), Limits::default());
        let mut watch = log.watch(Revision(0)).unwrap();
        log.append([batch(1, "v")]);
        log.close();
        assert_eq!(watch.next().await, Ok(batch(1, "v")));
        assert_eq!(watch.next().await, Err(WatchError::Closed));
        assert_eq!(log.watch(Revision(1)).err(), Some(WatchError::Closed));
    }
}
