//! Counters of the guest server. Aggregates only: nothing per VM or event.

use notbefore_wire::guest::error::GuestError;

use super::response::Response;
use crate::metrics::Tally;

/// Counters since the server was created, and gauges.
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
    refused: [Tally; GuestError::REASONS.len()],
    /// Connections accepted, including those refused.
    pub connections_accepted: Tally,
    /// Connections closed at once because of a limit.
    pub connections_turned_away: Tally,
    /// Connections evicted for newer ones: idle connections, or else held polls.
    pub connections_evicted: Tally,
    /// Hand-overs of connections from workers to tasks: requests that are no plain polls.
    pub connections_handed_over: Tally,
    /// Connections open now.
    pub connections_open: Tally,
    /// Long polls waiting now.
    pub waiting: Tally,
}

impl GuestStats {
    /// Number of refusals by reason.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        GuestError::REASONS.into_iter().zip(&self.refused).map(|((reason, _), tally)| (reason, tally.get()))
    }

    /// Number of refusals by status.
    pub fn refused_by_status(&self) -> impl Iterator<Item = (u16, u64)> {
        GuestError::STATUSES.into_iter().map(|status| {
            let with_status =
                GuestError::REASONS.iter().zip(&self.refused).filter(|((_, of), _)| *of == status);
            (status, with_status.map(|(_, tally)| tally.get()).sum())
        })
    }

    pub(super) fn count_response(&self, response: &Response) {
        let tally = match response {
            Response::Document { .. } => Some(&self.documents),
            Response::NotModified { .. } => Some(&self.not_modified),
            Response::Approved => Some(&self.approvals),
            Response::Metadata { .. } => Some(&self.metadata),
            // Counted by kind ([`super::interception`]).
            Response::Fault(_) => None,
            Response::Refused(error) => {
                let slot = GuestError::REASONS.iter().position(|(reason, _)| *reason == error.reason());
                slot.and_then(|slot| self.refused.get(slot))
            }
        };
        if let Some(tally) = tally {
            tally.add();
        }
    }
}
