//! Joint start: an atomic start decision for all events of a host operation. A host reboots or freezes once, so its
//! events start together or wait together.
//!
//! An operation on a host with the cause host-freeze or host-reboot and more than one part is a *host
//! operation*. Its scopes do not start their parts by themselves. The engine decides for all of them at once and
//! records the decision in the operation ([`JointStart`]). Then every scope gets
//! [`Command::StartParts`](crate::Command::StartParts).
//!
//! A scope sees only itself. It receives the host operations with a part in it as [`HostPart`]s, in the context. A
//! released part counts as started, even before this scope has started it. A due part of an earlier host
//! operation goes first. The order is total and decisions are never revoked, so there is no deadlock.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::event::{Event, StartReason};
use crate::ids::{EventId, OperationId};

/// The start decision of a host operation. States only move down this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JointStart {
    /// Not decided.
    Waiting,
    /// Manual driver: due, not blocked, and waiting for `operation start`. It reserves nothing.
    Ready { why: StartReason },
    /// Decided, by the timer or an operator: every live part starts.
    Released { why: StartReason, by: Actor },
}

/// The order among waiting starts: earlier NotBefore, then earlier request, then smaller id.
/// For a host operation, NotBefore is the latest of its live parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartOrder {
    pub not_before: Timestamp,
    pub requested_at: Timestamp,
    pub operation: OperationId,
}

impl StartOrder {
    /// The order of an event that starts by itself.
    pub fn of(event: &Event) -> Option<Self> {
        let not_before = event.not_before()?;
        let requested_at = event.announced_at().unwrap_or(not_before);
        Some(Self { not_before, requested_at, operation: event.operation })
    }
}

/// A scheduled part of a host operation, as its scope receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPart {
    pub operation: OperationId,
    pub update_domain: u32,
    pub start: HostStartState,
}

/// The start state of a host operation that has not started in this scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStartState {
    /// Decided; the part starts regardless of other events here.
    Released,
    /// Waits for its time, for approvals, or for other events to end. `due_at` is the minimum timestamp if
    /// every part is approved.
    Waiting { due_at: Timestamp, order: StartOrder },
}

impl HostPart {
    /// Whether it blocks, at `now`, a start of another operation in this update domain.
    pub fn blocks(&self, order: StartOrder, update_domain: u32, now: Timestamp) -> bool {
        self.operation != order.operation
            && self.update_domain != update_domain
            && match self.start {
                HostStartState::Released => true,
                HostStartState::Waiting { due_at, order: mine } => due_at <= now && mine < order,
            }
    }
}

/// Whether an operation with parts in these update domains of a scope is blocked there. With a joint start one
/// blocked part is enough; otherwise all parts have to be blocked.
pub fn waits_for<'a>(
    as_a_whole: bool,
    own: impl Iterator<Item = &'a u32>,
    first: impl Iterator<Item = &'a u32> + Clone,
) -> bool {
    let mut waits = own.map(|own| first.clone().any(|other| other != own));
    if as_a_whole { waits.any(|waits| waits) } else { waits.all(|waits| waits) }
}

/// What keeps an event or a host operation from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// A started event of another update domain.
    Event { event: EventId, update_domain: u32 },
    /// A host operation that goes first in another update domain. `update_domain` is that of its part in the
    /// shared scope.
    HostOperation { operation: OperationId, update_domain: u32 },
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { event, update_domain } => {
                write!(f, "event {event} of update domain {update_domain} is under way")
            }
            Self::HostOperation { operation, update_domain } => {
                write!(f, "host operation {operation} goes first in update domain {update_domain}")
            }
        }
    }
}

/// What waits for an update domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    Event(EventId),
    Operation(OperationId),
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "event {event}"),
            Self::Operation(operation) => write!(f, "operation {operation}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joint_start_waits_for_other_update_domains() {
        for (own, first, whole, apart) in [
            (&[0][..], &[0][..], false, false),
            (&[0], &[1], true, true),
            (&[0, 1], &[1], true, false),
            (&[0, 1], &[1, 2], true, true),
            (&[0], &[], false, false),
        ] {
            assert_eq!(waits_for(true, own.iter(), first.iter()), whole, "{own:?} behind {first:?}");
            assert_eq!(waits_for(false, own.iter(), first.iter()), apart, "{own:?} behind {first:?}");
        }
    }
}
