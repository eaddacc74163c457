//! Facts: immutable records of what happened and who did it, in the past tense. The audit trail and an event's
//! trail are lists of facts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::access::Grant;
use crate::actor::Actor;
use crate::cause::Cause;
use crate::event::StartReason;
use crate::host::HostState;
use crate::ids::{EventId, Name, OperationId, ScopePath, VmId};

/// A fact with its time and its actor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded<F> {
    pub at: Timestamp,
    pub by: Actor,
    pub fact: F,
}

/// A fact about one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventFact {
    /// NotBefore is none for a cause without notice. For an advisory it is a date without meaning, if the request gave
    /// one.
    EventScheduled {
        not_before: Option<Timestamp>,
    },
    /// By a guest or an operator.
    EventApproved,
    /// All parts of its operation are approved or gone.
    EventReleased,
    /// Manual driver: the event may start and waits for `event start`.
    EventReady {
        why: StartReason,
    },
    EventStarted {
        why: StartReason,
    },
    /// A process took over commands that another one ran.
    DriverTookOver {
        owner: String,
        fence: u64,
    },
    /// A command failed and will be retried.
    DriverAttemptFailed {
        vm: Name,
        attempt: u32,
        why: String,
    },
    /// A command is out of attempts; the event stays Started until an operator retries or completes it.
    DriverFailed {
        vm: Name,
        attempts: u32,
        why: String,
    },
    /// An operator retried commands.
    DriverRetried {
        commands: usize,
    },
    /// The event was carried out.
    EventCompleted,
    EventCancelled {
        why: CancelReason,
    },
}

impl EventFact {
    /// The VM, for a fact about one VM of the event.
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

/// Why an event was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// An operator or the owner cancelled it.
    Asked,
    /// All its VMs are removed or deallocated.
    ResourcesGone,
    /// The VM's owner redeployed it, away from the hardware that is expected to fail.
    Redeployed { by_event: EventId },
    /// An advisory: the eviction that it warned of was scheduled.
    Preempted { by_event: EventId },
}

impl Fact {
    /// Facts about tokens are shown only to operators on `/`.
    pub fn is_about_tokens(&self) -> bool {
        matches!(
            self,
            Self::TokenCreated { .. }
                | Self::TokenRevoked { .. }
                | Self::SignedIn { .. }
                | Self::SignInLinkCreated
        )
    }
}

/// How a browser was signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignInMethod {
    /// By the token's secret.
    Token,
    /// By the code of a sign-in link.
    Link,
}

/// A fact about the exec driver's command for an operation's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostCommandFact {
    /// It begins: the commands of all VMs are done.
    Started,
    /// A process took over the command that another one ran.
    TookOver { owner: String, fence: u64 },
    /// It failed and will be retried.
    AttemptFailed { attempt: u32, why: String },
    /// It is out of attempts; the events stay Started until an operator retries it or completes the operation.
    Failed { attempts: u32, why: String },
    /// An operator retried it.
    Retried,
    /// It was run with success.
    Succeeded,
}

/// An entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    Event {
        event: EventId,
        operation: OperationId,
        cause: Cause,
        resources: Vec<Name>,
        what: EventFact,
    },
    /// `targets` counts the parts, one per scope and update domain.
    OperationRequested {
        operation: OperationId,
        cause: Cause,
        targets: usize,
    },
    OperationCancelled {
        operation: OperationId,
    },
    /// All live parts of a host operation start.
    OperationStarted {
        operation: OperationId,
        why: StartReason,
    },
    /// All parts of an operation were completed together.
    OperationCompleted {
        operation: OperationId,
    },
    /// About the exec driver's command for an operation's host.
    HostCommand {
        operation: OperationId,
        host: String,
        what: HostCommandFact,
    },
    ScopeCreated {
        path: ScopePath,
    },
    PolicyChanged,
    ScopeRemoved {
        path: ScopePath,
    },
    /// A VM joined its scope.
    VmAdded {
        vm: VmId,
        name: Name,
    },
    /// A VM's properties changed.
    VmChanged {
        vm: VmId,
        name: Name,
    },
    /// A VM left its scope.
    VmRemoved {
        vm: VmId,
        name: Name,
    },
    /// A VM moved to another host.
    VmMoved {
        vm: VmId,
        name: Name,
        host: String,
    },
    /// A Spot VM was evicted.
    VmDeallocated {
        vm: VmId,
        name: Name,
    },
    /// A deallocated VM runs again.
    VmStarted {
        vm: VmId,
        name: Name,
    },
    /// An operator or a host operation changed what is known about a host.
    HostStateChanged {
        host: String,
        state: HostState,
    },
    /// An operator removed the record of a host without VMs.
    HostForgotten {
        host: String,
    },
    TokenCreated {
        name: Name,
        grants: Vec<Grant>,
    },
    /// An operator accepted the clock after a jump.
    ClockAccepted,
    /// A token was revoked before it expired.
    TokenRevoked {
        name: Name,
    },
    /// A browser was signed in as the token that is the actor.
    SignedIn {
        method: SignInMethod,
    },
    /// A link was created that signs a browser in as the token that is the actor.
    SignInLinkCreated,
    /// An operator asked this node to give up the lead of the cluster.
    HandOverRequested {
        node: String,
    },
    /// An operator raised the format level at which the nodes of the cluster write.
    UpgradeFinished {
        level: u32,
    },
    /// An operator removed the record of a node that does not run any more.
    NodeForgotten {
        node: String,
    },
}
