//! Compaction of etcd's history, agreed by a record that the nodes compare and swap.
//!
//! etcd keeps every revision until it is told to compact. All nodes run a [`Compactor`], and none is in charge. The store's
//! mark is a record that a node may rewrite once it has seen the same revision of it for the interval, by
//! its own monotonic clock. The rewrite compares that revision, so one node wins; it then compacts up to the old
//! mark. So:
//!
//! - the history of at least one interval stays, whatever the nodes' clocks say;
//! - each interval has one compaction, however many nodes run;
//! - if the winner stops between the rewrite and the compaction, the next round compacts more.
//!
//! The compacted revision is one that only put the mark. etcd up to 3.5.17 and 3.6 betas can withhold a delete from a watch
//! that starts at the compacted revision itself (etcd#18089); that revision has no delete.

use std::time::Duration;

use bytes::Bytes;
use notbefore_store::Revision;

use crate::client::{Client, from_etcd, to_etcd};
use crate::connect::MARK;
use crate::errors::CallError;
use crate::proto::{CompactionRequest, RangeRequest};

/// Default interval between compactions.
pub const COMPACT_EVERY: Duration = Duration::from_secs(10 * 60);

/// Decides when this node compacts. It reads no clock and no record.
#[derive(Debug)]
pub struct Compactor {
    every: Duration,
    /// The mark as last seen, and since when.
    seen: Option<(Option<Revision>, Duration)>,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionStep {
    /// Nothing before this time.
    Wait { until: Duration },
    /// Rewrite the mark if it still has this revision. If that succeeds, compact up to the revision.
    Advance { from: Option<Revision> },
}

impl Compactor {
    pub fn new(every: Duration) -> Self {
        Self { every, seen: None }
    }

    /// `mark` is the revision of the mark as just read, `now` the time by a clock that never goes back.
    pub fn decide(&mut self, mark: Option<Revision>, now: Duration) -> CompactionStep {
        match self.seen {
            Some((seen, since)) if seen == mark => match now.saturating_sub(since) >= self.every {
                true => CompactionStep::Advance { from: mark },
                false => CompactionStep::Wait { until: since.saturating_add(self.every) },
            },
            Some(_) | None => {
                self.seen = Some((mark, now));
                CompactionStep::Wait { until: now.saturating_add(self.every) }
            }
        }
    }
}

/// Why the history was not compacted. The next attempt may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    #[error("etcd did not compact its history: {0}")]
    Failed(String),
    /// Since 3.4.42, 3.5.28 and 3.6.9.
    #[error(
        "etcd lets only its root user compact: switch compaction off here and set --auto-compaction-retention of etcd"
    )]
    Denied,
    #[error("the compaction mark cannot be read or written: {0}")]
    Mark(String),
}

impl Client {
    pub(crate) async fn compact(&self, up_to: Revision) -> Result<(), CompactError> {
        match self.call(&self.writes, CompactionRequest { revision: to_etcd(up_to) }).await {
            Ok(_) | Err(CallError::Compacted) => Ok(()),
            Err(CallError::Denied) => Err(CompactError::Denied),
            Err(error) => Err(CompactError::Failed(error.to_string())),
        }
    }

    pub(crate) async fn compact_if_due(
        &self,
        compactor: &mut Compactor,
        now: Duration,
    ) -> Result<Option<Revision>, CompactError> {
        let mark_error = |error: CallError| CompactError::Mark(error.to_string());
        let request = RangeRequest { key: self.key(""), ..RangeRequest::default() };
        let found = self.read(request).await.map_err(mark_error)?.kvs.into_iter().next();
        let mark = found.as_ref().map(|kv| from_etcd(kv.mod_revision));
        match compactor.decide(mark, now) {
            CompactionStep::Wait { .. } => Ok(None),
            CompactionStep::Advance { from } => {
                // With its id; a mark that was deleted gets one when the next node starts.
                let value = found.map_or_else(|| Bytes::from_static(MARK.as_bytes()), |kv| kv.value.into());
                let has_won = self.write_mark(from, value).await.map_err(mark_error)?;
                let Some(up_to) = from.filter(|_| has_won) else { return Ok(None) };
                self.compact(up_to).await?;
                Ok(Some(up_to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(600);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_mark_is_advanced_after_one_interval() {
        let mut compactor = Compactor::new(EVERY);
        let mark = Some(Revision(5));
        assert_eq!(compactor.decide(mark, at(100)), CompactionStep::Wait { until: at(700) });
        assert_eq!(compactor.decide(mark, at(699)), CompactionStep::Wait { until: at(700) });
        assert_eq!(compactor.decide(mark, at(700)), CompactionStep::Advance { from: mark });
        // Until the new mark is seen, the attempt is repeated: it compares the revision.
        assert_eq!(compactor.decide(mark, at(701)), CompactionStep::Advance { from: mark });
        assert_eq!(compactor.decide(Some(Revision(9)), at(702)), CompactionStep::Wait { until: at(1302) });
    }

    /// Nodes with clocks of their own, which look at different times, and lose the outcome of some writes.
    #[test]
    fn several_nodes_keep_one_interval_and_compact_once_in_each() {
        let mut nodes: Vec<(Compactor, u64)> =
            (0..5).map(|number| (Compactor::new(EVERY), number * 10_000)).collect();
        let mut mark = (Revision(1), 0);
        let mut compactions: Vec<(u64, u64)> = Vec::new();
        for second in 1..20_000_u64 {
            let number = (second * 7 % 5) as usize;
            let (compactor, offset) = &mut nodes[number];
            match compactor.decide(Some(mark.0), at(second + *offset)) {
                CompactionStep::Wait { .. } => {}
                CompactionStep::Advance { from } => {
                    assert_eq!(from, Some(mark.0));
                    let written_at = mark.1;
                    mark = (Revision(mark.0.0 + 1), second);
                    // Every third winner stops before it compacts.
                    if mark.0.0 % 3 != 0 {
                        compactions.push((second, written_at));
                    }
                }
            }
        }
        assert!(compactions.len() >= 15, "{compactions:?}");
        for (now, up_to) in &compactions {
            assert!(now - up_to >= EVERY.as_secs(), "history of one interval stays: {now} {up_to}");
        }
        assert!(compactions.windows(2).all(|pair| pair[1].0 - pair[0].0 >= EVERY.as_secs()));
    }
}
