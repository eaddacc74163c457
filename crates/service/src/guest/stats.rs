//! What the server counts. Aggregates only: nothing per VM or event.

use notbefore_wire::guest::error::GuestError;

use super::response::Response;
use crate::metrics::Tally;

/// Counters of a server since it was made, and gauges.
#[derive(Debug, Default)]
pub struct GuestStats {
    /// Polls answered with a document.
    pub documents: Tally,
    /// Polls answered with 304.
    pub not_modified: Tally,
    /// Approvals answered with 200.
    pub approvals: Tally,
    /// Reads of instance metadata and of the list of versions.
    pub metadata: Tally,
    refused: [Tally; GuestError::STATUSES.len()],
    /// Connections accepted, those turned away included.
    pub connections_accepted: Tally,
    /// Connections closed at once because there were too many.
    pub connections_turned_away: Tally,
    /// Connections closed to make room for newer ones: idle ones, or else those of polls that were held back.
    pub connections_evicted: Tally,
    /// How often a connection had more to it than a plain poll, and was handed over to a task.
    pub connections_handed_over: Tally,
    /// Connections open now.
    pub connections_open: Tally,
    /// Polls that are held back now until there is news.
    pub waiting: Tally,
}

impl GuestStats {
    /// Each status of a refusal and how many there were.
    pub fn refused(&self) -> impl Iterator<Item = (u16, u64)> {
        GuestError::STATUSES.into_iter().zip(self.refused.iter().map(Tally::get))
    }

    pub(super) fn count_response(&self, response: &Response) {
        let tally = match response {
            Response::Document { .. } => Some(&self.documents),
            Response::NotModified { .. } => Some(&self.not_modified),
            Response::Approved => Some(&self.approvals),
            Response::Metadata { .. } => Some(&self.metadata),
            Response::Refused(error) => {
                let slot = GuestError::STATUSES.iter().position(|status| *status == error.status());
                slot.and_then(|slot| self.refused.get(slot))
            }
        };
        if let Some(tally) = tally {
            tally.add();
        }
    }
}
