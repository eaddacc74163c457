//! What the door counts. Aggregates only: nothing per VM or event.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use notbefore_wire::guest::error::GuestError;

use super::answer::Answer;

/// Counters of a door since it was made, and gauges.
#[derive(Debug, Default)]
pub struct GuestStats {
    documents: AtomicU64,
    not_modified: AtomicU64,
    approvals: AtomicU64,
    metadata: AtomicU64,
    refused: [AtomicU64; GuestError::STATUSES.len()],
    connections_accepted: AtomicU64,
    connections_turned_away: AtomicU64,
    connections_evicted: AtomicU64,
    connections_handed_over: AtomicU64,
    connections_open: AtomicU64,
    waiting: AtomicU64,
}

impl GuestStats {
    /// Polls answered with a document.
    pub fn documents(&self) -> u64 {
        self.documents.load(Relaxed)
    }

    /// Polls answered with 304.
    pub fn not_modified(&self) -> u64 {
        self.not_modified.load(Relaxed)
    }

    /// Approvals answered with 200.
    pub fn approvals(&self) -> u64 {
        self.approvals.load(Relaxed)
    }

    /// Reads of instance metadata and of the list of versions.
    pub fn metadata(&self) -> u64 {
        self.metadata.load(Relaxed)
    }

    /// Each status of a refusal and how many there were.
    pub fn refused(&self) -> impl Iterator<Item = (u16, u64)> {
        GuestError::STATUSES.into_iter().zip(self.refused.iter().map(|count| count.load(Relaxed)))
    }

    /// Connections accepted, those turned away included.
    pub fn connections_accepted(&self) -> u64 {
        self.connections_accepted.load(Relaxed)
    }

    /// Connections closed at once because there were too many.
    pub fn connections_turned_away(&self) -> u64 {
        self.connections_turned_away.load(Relaxed)
    }

    /// Connections closed to make room for newer ones: idle ones, or else those of polls that were held back.
    pub fn connections_evicted(&self) -> u64 {
        self.connections_evicted.load(Relaxed)
    }

    /// How often a connection had more to it than a plain poll, and was handed over to a task.
    pub fn connections_handed_over(&self) -> u64 {
        self.connections_handed_over.load(Relaxed)
    }

    /// Connections open now.
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Relaxed)
    }

    /// Polls that are held back now until there is news.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    pub(super) fn answered(&self, answer: &Answer) {
        let counter = match answer {
            Answer::Document { .. } => Some(&self.documents),
            Answer::NotModified { .. } => Some(&self.not_modified),
            Answer::Approved => Some(&self.approvals),
            Answer::Metadata { .. } => Some(&self.metadata),
            Answer::Refused(error) => {
                let slot = GuestError::STATUSES.iter().position(|status| *status == error.status());
                slot.and_then(|slot| self.refused.get(slot))
            }
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn accepted(&self) {
        self.connections_accepted.fetch_add(1, Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.connections_turned_away.fetch_add(1, Relaxed);
    }

    pub(super) fn evicted(&self) {
        self.connections_evicted.fetch_add(1, Relaxed);
    }

    pub(super) fn handed_over(&self) {
        self.connections_handed_over.fetch_add(1, Relaxed);
    }

    pub(super) fn begins_to_wait(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(super) fn waits_no_more(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub(super) fn opened(&self) {
        self.connections_open.fetch_add(1, Relaxed);
    }

    pub(super) fn closed(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }
}
