//! What happened, in the past tense, with who did it. The audit trail and an event's history are lists of
//! these; nothing in them is ever changed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::access::Grant;
use crate::actor::Actor;
use crate::cause::Cause;
use crate::event::StartReason;
use crate::ids::{EventId, Name, OperationId, ScopePath, VmId};

/// A fact with its time and its actor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded<F> {
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub by: Actor,
    /// What it was.
    pub fact: F,
}

/// Something that happened to one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventFact {
    /// It was announced. NotBefore is none for a cause that gives no notice.
    EventScheduled { not_before: Option<Timestamp> },
    /// A guest or an operator approved it.
    EventApproved,
    /// All parts of its operation were approved or are gone.
    EventReleased,
    /// It may begin, and waits for somebody's automation to begin it.
    EventReady { why: StartReason },
    /// It began.
    EventStarted { why: StartReason },
    /// A process went on with commands that another had begun to run.
    DriverTookOver { owner: String, fence: u64 },
    /// A command failed and will be tried again.
    DriverAttemptFailed { vm: Name, attempt: u32, why: String },
    /// A command has used up its attempts; the event stays Started until somebody retries or completes it.
    DriverFailed { vm: Name, attempts: u32, why: String },
    /// Somebody let commands be tried anew.
    DriverRetried { commands: usize },
    /// It was carried out.
    EventCompleted,
    /// It was called off.
    EventCancelled { why: CancelReason },
}

impl EventFact {
    /// The one VM of the event that it is about, if it is not about all of them.
    pub fn vm(&self) -> Option<&Name> {
        match self {
            Self::DriverAttemptFailed { vm, .. } | Self::DriverFailed { vm, .. } => Some(vm),
            Self::EventScheduled { .. }
            | Self::EventApproved
            | Self::EventReleased
            | Self::EventReady { .. }
            | Self::EventStarted { .. }
            | Self::DriverTookOver { .. }
            | Self::DriverRetried { .. }
            | Self::EventCompleted
            | Self::EventCancelled { .. } => None,
        }
    }
}

/// Why an event was called off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// Somebody asked for it.
    Asked,
    /// None of its VMs is there any more, or none of them runs.
    ResourcesGone,
    /// The VM's owner redeployed it, so that the hardware expected to fail no longer matters to it.
    Redeployed { by_event: EventId },
}

impl Fact {
    /// Whether it is about who may do what, which is for those who decide that.
    pub fn is_about_tokens(&self) -> bool {
        matches!(self, Self::TokenCreated { .. } | Self::TokenRevoked { .. })
    }
}

/// Something that happened, as the audit trail keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// Something happened to an event.
    Event {
        /// The event.
        event: EventId,
        /// The operation that it is part of; none in records of earlier releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<OperationId>,
        /// Why the event happens.
        cause: Cause,
        /// The VMs it happens to.
        resources: Vec<Name>,
        /// What happened.
        what: EventFact,
    },
    /// Somebody asked for an operation. `targets` counts the scopes and update domains in which it has a
    /// part.
    OperationRequested { operation: OperationId, cause: Cause, targets: usize },
    /// An operation was called off.
    OperationCancelled { operation: OperationId },
    /// All live parts of a host operation start.
    OperationStarted { operation: OperationId, why: StartReason },
    /// All of an operation was carried out.
    OperationCompleted { operation: OperationId },
    /// A scope was made.
    ScopeCreated { path: ScopePath },
    /// A scope's policy was changed.
    PolicyChanged,
    /// A scope was removed.
    ScopeRemoved { path: ScopePath },
    /// A VM joined its scope.
    VmAdded { vm: VmId, name: Name },
    /// What is known of a VM changed.
    VmChanged { vm: VmId, name: Name },
    /// A VM left.
    VmRemoved { vm: VmId, name: Name },
    /// A VM moved to another host.
    VmMoved { vm: VmId, name: Name, host: String },
    /// A spot VM was evicted.
    VmDeallocated { vm: VmId, name: Name },
    /// An evicted VM runs again.
    VmStarted { vm: VmId, name: Name },
    /// A token was made.
    TokenCreated { name: Name, grants: Vec<Grant> },
    /// An operator trusts the clock although it has jumped.
    ClockAccepted,
    /// A token was taken back before its time.
    TokenRevoked { name: Name },
}
