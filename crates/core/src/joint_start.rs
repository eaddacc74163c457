//! Joint start: a host reboots or freezes once, so the events of such an operation start together or wait
//! together.
//!
//! An operation on a host with the cause host-freeze or host-reboot and more than one part is a *host
//! operation*. Its scopes do not start their parts by themselves. The engine decides for all of them at once and
//! records the decision in the operation ([`JointStart`]); then every scope gets
//! [`Command::StartParts`](crate::Command::StartParts).
//!
//! A scope sees only itself. What it must know of host operations that have a part in it comes in as
//! [`HostPart`]s, like the time: a part that is released counts as started although this scope has not heard of
//! it yet, and a part of an earlier host operation that is due goes first. The order is total and decisions are
//! never taken back, so there is no deadlock.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::event::{Event, StartReason};
use crate::ids::{EventId, OperationId};

/// How far the decision to start a host operation is. It moves down this list and never back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JointStart {
    /// Not decided.
    Waiting,
    /// Manual driver: it was due and not blocked, and waits for `operation start`. It reserves nothing.
    Ready { why: StartReason },
    /// Decided, by the timer or an operator: every part that is still live starts.
    Released { why: StartReason, by: Actor },
}

/// Who goes first among those that wait: the earlier NotBefore, then the earlier request, then the smaller id.
/// A host operation has the latest NotBefore of its live parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartOrder {
    /// NotBefore.
    pub not_before: Timestamp,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// The operation.
    pub operation: OperationId,
}

impl StartOrder {
    /// The place of an event that starts by itself.
    pub fn of(event: &Event) -> Option<Self> {
        let not_before = event.not_before()?;
        let requested_at = event.announced_at().unwrap_or(not_before);
        Some(Self { not_before, requested_at, operation: event.operation })
    }
}

/// A scheduled part of a host operation, as its scope is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// The operation.
    pub operation: OperationId,
    /// The part's update domain.
    pub update_domain: u32,
    /// Where the operation stands.
    pub standing: HostStartState,
}

/// Where a host operation stands that has not started here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStartState {
    /// It is decided; the part starts whatever else happens here.
    Released,
    /// It waits for its time, for approvals, or for others to end. `due_at` is the beginning of time where
    /// every part is approved. `order` is its place among those that wait.
    Waiting { due_at: Timestamp, order: StartOrder },
}

impl HostPart {
    /// Whether it keeps a start of another operation, in this update domain, waiting at `now`.
    pub fn blocks(&self, order: StartOrder, update_domain: u32, now: Timestamp) -> bool {
        self.operation != order.operation
            && self.update_domain != update_domain
            && match self.standing {
                HostStartState::Released => true,
                HostStartState::Waiting { due_at, order: mine } => due_at <= now && mine < order,
            }
    }
}

/// Whether an operation with parts in these update domains of a scope waits there for one that goes first: where its
/// parts start as a whole any of them is enough, else all of them have to wait.
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
    /// scope that both share.
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
    /// One event.
    Event(EventId),
    /// A host operation.
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
