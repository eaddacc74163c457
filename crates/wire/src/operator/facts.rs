//! Facts: records of what happened, in one format for the stream, an event's trail and the audit trail.
//!
//! ```json
//! {"id":"42.0","at":"…","type":"EventStarted","scope":"default/default/web","operation":"…","event":"…",
//!  "vms":["web-0"],"by":{"kind":"timer","name":"timer"},"detail":{"cause":"host-reboot","why":"NotBefore passed"}}
//! ```
//!
//! `type` determines the form of `detail`. A reader keeps unknown types with their detail.

#[cfg(feature = "describe")]
mod description;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::tokens::Grant;
use super::{ActorKind, Cause, HostState, SignInMethod};

/// The position of a fact: the revision of its commit, and a number within the commit. Ids rise in stream order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId {
    /// The revision of the commit.
    pub revision: u64,
    /// The number within the commit; may have gaps.
    pub n: u64,
}

/// Text that is not a [`FactId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fact's id is a revision, a dot and a number, as in 42.0")]
pub struct BadFactId;

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.revision, self.n)
    }
}

impl FromStr for FactId {
    type Err = BadFactId;

    fn from_str(text: &str) -> Result<Self, BadFactId> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| BadFactId),
            false => Err(BadFactId),
        };
        let (revision, n) = text.split_once('.').ok_or(BadFactId)?;
        Ok(Self { revision: number(revision)?, n: number(n)? })
    }
}

impl Serialize for FactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Who caused a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// The kind of actor.
    pub kind: ActorKind,
    /// The name of the token, VM or driver; for other kinds the kind itself.
    pub name: String,
    /// For a VM: the address that it called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, address } = self;
        match kind {
            ActorKind::Timer | ActorKind::Service | ActorKind::Unauthenticated => write!(f, "{kind}")?,
            ActorKind::Token | ActorKind::Vm | ActorKind::Driver | ActorKind::Unknown(_) => {
                write!(f, "{kind} {name}")?;
            }
        }
        address.map_or(Ok(()), |address| write!(f, " at {address}"))
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Fact {
    /// Its id. May be missing in an event's trail, once the audit trail has removed the fact.
    pub id: Option<FactId>,
    /// When it happened.
    pub at: Timestamp,
    /// Type and detail.
    pub what: FactDetail,
    /// The scope's path, if it happened in a scope.
    pub scope: Option<String>,
    /// The operation, or the operation of the event.
    pub operation: Option<Uuid>,
    /// The event.
    pub event: Option<Uuid>,
    /// The names of the affected VMs.
    pub vms: Vec<String>,
    /// Who did it.
    pub by: Actor,
}

/// The `type` and `detail` of a fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", content = "detail")]
pub enum FactDetail {
    /// An event was announced.
    EventScheduled {
        /// Why the event happens.
        cause: Cause,
        /// NotBefore; absent if the cause gives no notice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
    },
    /// An affected VM was first sent a document with the event. Only in the stream.
    EventRead {
        /// The api-version of the document.
        api_version: String,
    },
    /// A guest or an operator approved the event.
    EventApproved {
        /// Why the event happens.
        cause: Cause,
    },
    /// All parts of the event's operation are approved or ended.
    EventReleased {
        /// Why the event happens.
        cause: Cause,
    },
    /// The event may start, and waits for an operator to start it (manual driver).
    EventReady {
        /// Why the event happens.
        cause: Cause,
        /// Why it is ready, as text.
        why: String,
    },
    /// The event started.
    EventStarted {
        /// Why the event happens.
        cause: Cause,
        /// Why it started, as text.
        why: String,
    },
    /// The event completed.
    EventCompleted {
        /// Why the event happens.
        cause: Cause,
    },
    /// The event was cancelled.
    EventCancelled {
        /// Why the event happens.
        cause: Cause,
        /// Why, as text, if it was not requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Another process of the service took over the event's commands.
    DriverTookOver {
        /// Why the event happens.
        cause: Cause,
        /// The process that took over.
        owner: String,
        /// The fence of its commands.
        fence: u64,
    },
    /// An attempt of a command failed; the command will be retried.
    DriverAttemptFailed {
        /// Why the event happens.
        cause: Cause,
        /// The VM that the command is for.
        vm: String,
        /// The number of the attempt.
        attempt: u32,
        /// Why it failed: the command's path and its last line of error output. Only for operators on `/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A command failed its last attempt.
    DriverFailed {
        /// Why the event happens.
        cause: Cause,
        /// The VM that the command is for.
        vm: String,
        /// The number of attempts.
        attempts: u32,
        /// Why the last attempt failed, as in `DriverAttemptFailed`. Only for operators on `/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// An operator retried failed commands.
    DriverRetried {
        /// Why the event happens.
        cause: Cause,
        /// How many there were.
        commands: usize,
    },
    /// An operation was requested.
    OperationRequested {
        /// Why it happens.
        cause: Cause,
        /// Number of its parts: one for each scope and update domain, or each VM.
        targets: usize,
    },
    /// All live events of a host operation start.
    OperationStarted {
        /// Why it started, as text.
        why: String,
    },
    /// The command for the operation's host begins: those of all its VMs are done.
    HostCommandStarted {
        /// The host; empty for a token that does not see hosts.
        host: String,
    },
    /// Another process of the service took over the command for the operation's host.
    HostCommandTookOver {
        /// The host; empty for a token that does not see hosts.
        host: String,
        /// The process that took over.
        owner: String,
        /// The fence of its commands.
        fence: u64,
    },
    /// An attempt of the command for the operation's host failed; it will be retried.
    HostCommandAttemptFailed {
        /// The host; empty for a token that does not see hosts.
        host: String,
        /// The number of the attempt.
        attempt: u32,
        /// Why it failed, as in `DriverAttemptFailed`. Only for operators on `/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The command for the operation's host failed its last attempt.
    HostCommandFailed {
        /// The host; empty for a token that does not see hosts.
        host: String,
        /// The number of attempts.
        attempts: u32,
        /// Why the last attempt failed, as in `DriverAttemptFailed`. Only for operators on `/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The command for the operation's host was run with success; the events end.
    HostCommandSucceeded {
        /// The host; empty for a token that does not see hosts.
        host: String,
    },
    /// An operator retried the command for the operation's host.
    HostCommandRetried {
        /// The host; empty for a token that does not see hosts.
        host: String,
    },
    /// An operation was completed as a whole.
    OperationCompleted,
    /// An operation was cancelled.
    OperationCancelled,
    /// A scope was created.
    ScopeCreated,
    /// A scope's policy was changed.
    PolicyChanged,
    /// A scope was removed.
    ScopeRemoved,
    /// A VM was added to its scope.
    VmAdded,
    /// A VM's properties changed.
    VmChanged,
    /// A VM was removed from its scope.
    VmRemoved,
    /// A VM moved to another host.
    VmMoved {
        /// The new host; empty for a token that does not see hosts.
        host: String,
    },
    /// A Spot VM was evicted.
    VmDeallocated,
    /// An evicted VM runs again.
    VmStarted,
    /// An operator, or the end of an operation, changed what is known about a host.
    HostStateChanged {
        /// The host.
        host: String,
        /// Its state.
        state: HostState,
    },
    /// An operator removed a host without VMs.
    HostForgotten {
        /// The host.
        host: String,
    },
    /// A token was created.
    TokenCreated {
        /// The token's name.
        name: String,
        /// The token's grants.
        grants: Vec<Grant>,
    },
    /// A token was revoked.
    TokenRevoked {
        /// The token's name.
        name: String,
    },
    /// A browser was signed in to the console, as the token that is the actor.
    SignedIn {
        /// By the token's secret, or by a sign-in link.
        method: SignInMethod,
    },
    /// A link was created that signs a browser in once, as the token that is the actor.
    SignInLinkCreated,
    /// An operator accepted the clock after it had jumped.
    ClockAccepted,
    /// An operator asked the leader of the cluster to give up the lead.
    HandOverRequested {
        /// The node that led.
        node: String,
    },
    /// An operator finished an upgrade: all nodes of the cluster write a newer format level from now on.
    UpgradeFinished {
        /// The new format level.
        level: u32,
    },
    /// An operator removed a node that does not run any more from the list of nodes.
    NodeForgotten {
        /// The node.
        node: String,
    },
    /// A request was refused. Only in the audit trail.
    RequestRefused {
        /// Why: `not_permitted`, `hidden`, `token_refused`, `token_missing`.
        code: String,
        /// The method and path of the request.
        request: String,
    },
    /// Refused requests that came too fast to be stored one by one. Only in the audit trail.
    FurtherRefusals {
        /// How many there were.
        count: u64,
    },
    /// A type that this release does not know.
    #[serde(skip)]
    Unknown {
        /// Its type.
        kind: String,
        /// Its detail.
        detail: Option<Value>,
    },
}

impl FactDetail {
    /// The type, and the detail as JSON.
    fn parts(self) -> (String, Option<Value>) {
        if let Self::Unknown { kind, detail } = self {
            return (kind, detail);
        }
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let kind = json["type"].as_str().unwrap_or_default().to_owned();
        (kind, json.get_mut("detail").map(Value::take))
    }

    /// The type: `EventScheduled`, …
    pub fn kind(&self) -> String {
        self.clone().parts().0
    }

    fn read(kind: String, detail: Option<Value>) -> Self {
        let mut json = serde_json::json!({ "type": kind });
        if let Some(detail) = &detail {
            json["detail"] = detail.clone();
        }
        serde_json::from_value(json).unwrap_or(Self::Unknown { kind, detail })
    }
}

/// A fact in its JSON form.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
struct Written {
    /// The revision of its commit, a dot, and a number within the commit. Always present in the stream and in the audit
    /// trail; in an event's trail only while the audit trail has the fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^[0-9]+\\.[0-9]+$", example = "42.0")]
    id: Option<FactId>,
    /// When it happened.
    at: Timestamp,
    /// The type of fact.
    #[serde(rename = "type")]
    kind: String,
    /// The scope's path, if it happened in a scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The operation, or the operation of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Uuid>,
    /// The event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Uuid>,
    /// The names of the affected VMs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vms: Vec<String>,
    /// Who did it.
    by: Actor,
    /// Fields of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Value>,
}

impl From<Fact> for Written {
    fn from(Fact { id, at, what, scope, operation, event, vms, by }: Fact) -> Self {
        let (kind, detail) = what.parts();
        Self { id, at, kind, scope, operation, event, vms, by, detail }
    }
}

impl From<Written> for Fact {
    fn from(Written { id, at, kind, scope, operation, event, vms, by, detail }: Written) -> Self {
        Self { id, at, what: FactDetail::read(kind, detail), scope, operation, event, vms, by }
    }
}
