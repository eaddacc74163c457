//! Requests to the engine: commands, answers and failures.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{
    Actor, Cause, EventId, Name, Operation, OperationId, Origin, Policy, Refusal, ScopeId, ScopeKind,
    ScopePath, StartReason, Token, VmId,
};
use notbefore_store::Revision;
use serde::{Deserialize, Serialize};

use crate::records::{Address, DecodeError};

/// A command and its caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<C = Command> {
    pub by: Actor,
    /// The caller's address; none for internal requests.
    pub from: Option<IpAddr>,
    /// Identifies a retry, if the caller gave a key.
    pub idempotency: Option<Idempotency>,
    /// The revision of the record that the caller has read, for optimistic concurrency.
    pub if_revision: Option<Revision>,
    pub command: C,
}

impl<C> Request<C> {
    /// A request without a key, a revision or an address.
    pub fn new(by: Actor, command: C) -> Self {
        Self { by, from: None, idempotency: None, if_revision: None, command }
    }
}

impl<C: TypedCommand> Request<C> {
    /// The request with an untyped command.
    pub fn erased(self) -> Request {
        let Self { by, from, idempotency, if_revision, command } = self;
        Request { by, from, idempotency, if_revision, command: command.into() }
    }
}

/// A command with a typed answer.
pub trait TypedCommand: Into<Command> {
    type Answer;

    /// Converts the answer. None if it belongs to another kind of command: then its idempotency key was reused.
    fn read(answer: Answer) -> Option<Self::Answer>;
}

/// An idempotency key with its owner and the request's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub principal: String,
    pub key: String,
    pub hash: String,
}

/// A command, by subject. New ids come with the command: the engine creates none.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A guest's approval.
    Guest(GuestApproval),
    Event(EventCommand),
    Operation(OperationCommand),
    Inventory(InventoryCommand),
    Token(TokenCommand),
    /// Trust the clock after a jump.
    Clock(AcceptClock),
    Cluster(ClusterCommand),
}

/// Declares the answer type and the group of commands.
macro_rules! asks {
    ($($command:ty as $this:ident => $group:expr, $read:pat => $answer:expr, $of:ty;)+) => {
        $(
            impl From<$command> for Command {
                fn from($this: $command) -> Self {
                    $group
                }
            }

            impl TypedCommand for $command {
                type Answer = $of;

                fn read(answer: Answer) -> Option<$of> {
                    let $read = answer else { return None };
                    Some($answer)
                }
            }
        )+
    };
}

asks! {
    GuestApproval as this => Self::Guest(this), Answer::Done => (), ();
    EventCommand as this => Self::Event(this), Answer::Done => (), ();
    OperationCommand as this => Self::Operation(this), Answer::Operation(id) => id, OperationId;
    ScopeChange as this => Self::Inventory(InventoryCommand::Scope(this)), Answer::Scope { progress, .. } => progress, Progress;
    AddVm as this => Self::Inventory(InventoryCommand::AddVm(this)), Answer::Vm(vm) => vm, VmId;
    VmCommand as this => Self::Inventory(InventoryCommand::Vm(this)), Answer::Done => (), ();
    HostChange as this => Self::Inventory(InventoryCommand::Host(this)), Answer::Done => (), ();
    FirstRun as this => Self::Inventory(InventoryCommand::FirstRun(this)), Answer::Done => (), ();
    TokenCommand as this => Self::Token(this), Answer::Done => (), ();
    AcceptClock as this => Self::Clock(this), Answer::Done => (), ();
    ClusterCommand as this => Self::Cluster(this), Answer::Done => (), ();
}

/// The untyped command, with an untyped answer.
impl TypedCommand for Command {
    type Answer = Answer;

    fn read(answer: Answer) -> Option<Answer> {
        Some(answer)
    }
}

/// A guest's approval of events of its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestApproval {
    pub scope: ScopeId,
    pub events: Vec<EventId>,
    /// The case-folded network in which the guest is identified by its address. None if its own listener or a proxy
    /// identifies it. The address is looked up again when the command is applied.
    pub network: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventCommand {
    /// An operator's approval.
    Approve(EventId),
    Cancel(EventId),
    Start(EventId),
    /// The event was carried out; `hosts` are the new hosts of redeployed VMs.
    Complete {
        event: EventId,
        hosts: Vec<(VmId, String)>,
    },
    Retry(EventId),
}

impl EventCommand {
    pub fn event(&self) -> EventId {
        match self {
            Self::Approve(event)
            | Self::Cancel(event)
            | Self::Start(event)
            | Self::Complete { event, .. }
            | Self::Retry(event) => *event,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum OperationCommand {
    /// Announce an operation, in any number of scopes.
    Schedule(NewOperation),
    Cancel(OperationId),
    Start(OperationId),
    /// The operation was carried out.
    Complete(OperationId),
    /// Retry the failed command of its host.
    Retry(OperationId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum InventoryCommand {
    Scope(ScopeChange),
    AddVm(AddVm),
    Vm(VmCommand),
    Host(HostChange),
    /// Create the first-run VM if there is no fleet.
    FirstRun(FirstRun),
}

/// A new VM for a scope.
#[derive(Clone, Debug, PartialEq)]
pub struct AddVm {
    pub path: ScopePath,
    /// The kind of the scope if it does not exist; default: standalone.
    pub kind: Option<ScopeKind>,
    pub vm: VmSpec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmCommand {
    /// Remove it at once.
    Remove(VmId),
    /// A deallocated VM runs again.
    Start(VmId),
}

/// A change of a host's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostChange {
    /// Its hardware works: it takes VMs.
    Ok(String),
    /// Remove it; it must have no VMs.
    Forget(String),
}

/// The first-run VM, which exists while there is no fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRun {
    pub vm: VmId,
    /// Also the name of its scope.
    pub name: Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenCommand {
    /// The name must be unused.
    Create(Token),
    Revoke(Name),
}

/// Trust the clock after a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptClock;

/// A change of the cluster of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Record that this node is asked to give up the lead. The leadership machine gives it up once this is durable: a node
    /// that does not lead writes nothing.
    RecordHandOver { node: String },
    /// All nodes write this format level from now on.
    FinishUpgrade { level: u32 },
    /// Remove the record of a node that does not run.
    ForgetNode { node: String },
}

/// A requested operation.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOperation {
    pub id: OperationId,
    pub cause: Cause,
    pub selector: TargetSelector,
    /// None means the cause's usual notice.
    pub not_before: Option<Timestamp>,
    /// Overrides the cause's duration.
    pub duration_s: Option<i32>,
    /// Overrides the cause's description.
    pub description: Option<String>,
    /// Allows an eviction of VMs that are not Spot.
    pub force: bool,
    pub expected: Expected,
}

/// What the caller's plan was made from. The operation is refused if that has changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Expected {
    #[default]
    Anything,
    /// The revision of the scope of each selected VM, in the order of the VMs.
    Revisions(Vec<Revision>),
    /// Exactly these VMs get an event.
    Vms(BTreeSet<VmId>),
}

impl NewOperation {
    /// With the cause's usual notice, duration and description.
    pub fn with_defaults(id: OperationId, cause: Cause, selector: TargetSelector) -> Self {
        Self {
            id,
            cause,
            selector,
            not_before: None,
            duration_s: None,
            description: None,
            force: false,
            expected: Expected::Anything,
        }
    }
}

/// The VMs that an operation affects.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetSelector {
    /// These VMs, in the order in which guests see them. All or none.
    Vms(Vec<VmId>),
    /// The running VMs of this host at the time of planning. A scope that refuses its event does not affect the
    /// others: a host is maintained, or fails, for all of its VMs.
    Host(String),
}

/// The desired state of a scope.
#[derive(Clone, Debug, PartialEq)]
pub struct PutScope {
    pub path: ScopePath,
    pub kind: ScopeKind,
    pub policy: Policy,
    /// A fleet file or a single request.
    pub origin: Origin,
    pub vms: Vec<VmSpec>,
    /// Whether to remove VMs that an earlier fleet file added and this one does not list.
    pub prune: bool,
}

impl PutScope {
    /// A scope with the default policy, as from a single request.
    pub fn with_defaults(path: ScopePath, kind: ScopeKind, vms: Vec<VmSpec>) -> Self {
        Self { path, kind, policy: Policy::default(), origin: Origin::Call, vms, prune: false }
    }
}

/// A change of a whole scope.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeChange {
    /// Create the scope, or change it to match.
    Put(PutScope),
    /// Remove the scope and its VMs. With `fleet_only`, only VMs that a fleet file added; the scope stays if others
    /// are left.
    Remove { scope: ScopeId, fleet_only: bool },
}

impl ScopeChange {
    /// The scope; it need not exist.
    pub fn scope(&self) -> ScopeId {
        match self {
            Self::Put(put) => put.path.id(),
            Self::Remove { scope, .. } => scope.clone(),
        }
    }
}

/// The progress of a scope change, which may take several transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub created: bool,
    /// Number of described VMs processed.
    pub seen: usize,
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

/// The desired state of a VM.
#[derive(Clone, Debug, PartialEq)]
pub struct VmSpec {
    /// The id for a new VM; an existing VM of this name keeps its own.
    pub vm: VmId,
    pub name: Name,
    pub update_domain: u32,
    pub fault_domain: u32,
    pub zone: Option<String>,
    /// None keeps the current host.
    pub host: Option<String>,
    /// Whether it can be evicted.
    pub spot: bool,
    /// The addresses from which it polls.
    pub addresses: Vec<Address>,
    /// Instance metadata.
    pub instance: serde_json::Value,
}

impl VmSpec {
    /// A VM with default properties.
    pub fn with_defaults(vm: VmId, name: Name) -> Self {
        Self {
            vm,
            name,
            update_domain: 0,
            fault_domain: 0,
            zone: None,
            host: None,
            spot: false,
            addresses: Vec::new(),
            instance: serde_json::Value::Null,
        }
    }
}

/// The answer to a command that took effect, or had nothing to do. It is stored in the idempotency record, so that a
/// retry gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done,
    /// The new operation.
    Operation(OperationId),
    /// The new VM.
    Vm(VmId),
    /// What changed in a scope.
    Scope {
        scope: ScopeId,
        progress: Progress,
    },
}

/// The dry run of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The operation as it would be.
    pub operation: Operation,
    /// VMs of the host that would get no event because they are deallocated.
    pub deallocated: Vec<VmId>,
    /// Parts that would be refused, and why.
    pub refused: Vec<(EventId, Refusal)>,
    /// Parts that would start at once, and why: for example because no guest of the scope listens.
    pub at_once: Vec<(EventId, StartReason)>,
}

/// Why a command did not take effect, or why its outcome is unknown.
///
/// The message is for the caller: stable, with what to do next. The [source](std::error::Error::source) of the cause is
/// for the log only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A rule forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The idempotency key was used for another request.
    #[error(
        "this Idempotency-Key was used within a day for another request; use a new key for a new request"
    )]
    KeyReused,
    /// It could not be carried out. Nothing was changed.
    #[error("nothing was changed: {0}; repeat the request")]
    Unavailable(FailureCause),
    /// It may or may not have taken effect.
    #[error(
        "it is not known whether this took effect: {0}; repeat it with the same Idempotency-Key to find out"
    )]
    OutcomeUnknown(FailureCause),
}

/// What keeps the service from carrying out a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// The store refused a transaction, or its outcome is unknown.
    #[error("the store cannot write (/readyz and the log say why)")]
    Store(#[source] StoreError),
    /// A record that the command needs cannot be decoded.
    #[error("a stored record cannot be decoded")]
    Record(#[source] DecodeError),
    /// Too many conflicts with other writers.
    #[error("too many changes at once")]
    Busy,
    #[error("the service is shutting down")]
    Closing,
    /// This node of a cluster does not lead, or has just lost the lead.
    #[error("this node does not lead the cluster")]
    NotLeader,
    /// The request could not be forwarded to the leader, or the answer was lost.
    #[error("{0}")]
    Forwarding(String),
    /// The request timed out.
    #[error("the request took longer than {0} s")]
    Late(u64),
}

/// The store's error, for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

impl Failure {
    /// A stable identifier for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::KeyReused => "idempotency_key_reused",
            Self::Unavailable(_) => "unavailable",
            Self::OutcomeUnknown(_) => "outcome_unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{operation_id, scope_id, vm};

    use super::*;

    #[test]
    fn failure_message_omits_store_error() {
        let store = || FailureCause::Store(StoreError("/var/lib/notbefore: no space left".to_owned()));
        for (failure, text, cause) in [
            (
                Failure::Unavailable(store()),
                "nothing was changed: the store cannot write (/readyz and the log say why); repeat the request",
                Some("/var/lib/notbefore: no space left"),
            ),
            (
                Failure::OutcomeUnknown(store()),
                "it is not known whether this took effect: the store cannot write (/readyz and the log say why); repeat it with the same Idempotency-Key to find out",
                Some("/var/lib/notbefore: no space left"),
            ),
            (
                Failure::Unavailable(FailureCause::Busy),
                "nothing was changed: too many changes at once; repeat the request",
                None,
            ),
        ] {
            assert_eq!(failure.to_string(), text);
            let (Failure::Unavailable(why) | Failure::OutcomeUnknown(why)) = &failure else {
                panic!("{text}")
            };
            let source = std::error::Error::source(why).map(ToString::to_string);
            assert_eq!(source.as_deref(), cause, "{text}");
        }
    }

    #[test]
    fn command_accepts_only_its_answer_kind() {
        let progress = Progress { added: 3, ..Progress::default() };
        let all = || {
            [
                Answer::Done,
                Answer::Operation(operation_id(1)),
                Answer::Vm(vm(2)),
                Answer::Scope { scope: scope_id("web"), progress },
            ]
        };
        let none = None::<()>;
        assert_eq!(all().map(EventCommand::read), [Some(()), none, none, none]);
        assert_eq!(all().map(OperationCommand::read), [None, Some(operation_id(1)), None, None]);
        assert_eq!(all().map(AddVm::read), [None, None, Some(vm(2)), None]);
        assert_eq!(all().map(ScopeChange::read), [None, None, None, Some(progress)]);
        assert_eq!(all().map(Command::read), all().map(Some));
    }
}
