//! What the runtime of the engine counts and knows of the store and the clock, for status and metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::{SignedDuration, Timestamp};
use notbefore_store::{Key, Outcome, Refusal};

use crate::metrics::{Latency, Tally};

/// Counters of the runtime.
#[derive(Debug, Default)]
pub struct EngineStats {
    /// Of calls to the store that committed something.
    pub commit_seconds: Latency,
    /// Transactions that became durable.
    pub commits: Tally,
    /// Transactions whose expected revisions did not match.
    pub conflicts: Tally,
    /// Transactions that the store refused or whose outcome is unknown.
    pub failures: Tally,
    store_error: ArcSwapOption<String>,
    /// The newest revision.
    pub revision: Tally,
    /// Host operations that are due and wait for other update domains.
    pub host_operations_waiting: Tally,
    pub(crate) clock_hold: ArcSwapOption<HeldClock>,
    /// Records of the store that cannot be read, and why.
    unreadable: ArcSwapOption<BTreeMap<Key, String>>,
}

/// A clock hold: the clock is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldClock {
    /// Start of the hold, on the clock itself.
    pub since: Timestamp,
    /// Total jump since then; none if the clock does not fit the store.
    pub jumped_by: Option<SignedDuration>,
    /// Number of events that wait.
    pub events: usize,
}

impl HeldClock {
    /// Why the clock is not trusted.
    pub fn reason(&self) -> String {
        let Some(jumped_by) = self.jumped_by else {
            return "it does not fit the time at which the service last ran".to_owned();
        };
        // The two clocks are read one after the other, so round the difference.
        match jumped_by.round(jiff::Unit::Second).unwrap_or(jumped_by).as_secs() {
            0 => "it has jumped forward and back".to_owned(),
            seconds if seconds > 0 => format!("it has jumped forward by {seconds} s"),
            seconds => format!("it has jumped back by {} s", seconds.unsigned_abs()),
        }
    }
}

impl EngineStats {
    /// Whether the store accepted the last transaction.
    pub fn is_store_writable(&self) -> bool {
        self.store_error.load().is_none()
    }

    /// Why the store failed the last transaction, if it did.
    pub fn store_error(&self) -> Option<Arc<String>> {
        self.store_error.load_full()
    }

    /// The clock hold, if there is one.
    pub fn clock_hold(&self) -> Option<Arc<HeldClock>> {
        self.clock_hold.load_full()
    }

    /// Records of the store that a running service cannot read, and why.
    pub fn unreadable(&self) -> Option<Arc<BTreeMap<Key, String>>> {
        self.unreadable.load_full()
    }

    /// Reports records that cannot be read, each once.
    pub(crate) fn report_unreadable(&self, found: &BTreeMap<Key, String>) {
        let before = self.unreadable();
        if before.as_deref().map_or(found.is_empty(), |before| before == found) {
            return;
        }
        let is_new = |key: &Key| before.as_ref().is_none_or(|before| !before.contains_key(key));
        for why in found.iter().filter(|(key, _)| is_new(key)).map(|(_, why)| why) {
            tracing::error!(
                "{why}; this node goes on with what it knew before, and no node can start: restore the record from a backup, or remove it"
            );
        }
        if found.is_empty() {
            tracing::info!("all records of the store can be read again");
        }
        self.unreadable.store((!found.is_empty()).then(|| Arc::new(found.clone())));
    }

    /// Records the outcome of a transaction. One without writes does not show whether the store can write.
    pub(crate) fn record(&self, outcome: &Outcome, writes: bool) {
        match outcome {
            Outcome::Committed(revision) if writes => {
                self.commits.add();
                self.revision.raise(revision.0);
                if self.store_error.swap(None).is_some() {
                    tracing::info!("store is writable again");
                }
            }
            Outcome::Committed(_) => {}
            Outcome::Conflict(_) => self.conflicts.add(),
            Outcome::Refused(Refusal::Unavailable(why)) | Outcome::Unknown(why) => {
                self.failures.add();
                // The store is retried every second; log only the first failure.
                let before = self.store_error.swap(Some(Arc::new(why.clone())));
                if before.is_none_or(|before| *before != *why) {
                    tracing::error!(%why, "store is read-only: changes are refused");
                }
            }
            Outcome::Refused(
                refusal @ (Refusal::TooManyOperations { .. }
                | Refusal::ValueTooLarge { .. }
                | Refusal::TxnTooLarge { .. }
                | Refusal::DuplicateKey { .. }),
            ) => {
                self.failures.add();
                tracing::error!(%refusal, "store refused a transaction: nothing was written");
            }
        }
    }
}
