//! What can be asked of the engine, and what it answers.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{
    Actor, Cause, EventId, Name, Operation, OperationId, Origin, Policy, Refusal, ScopeId, ScopeKind,
    ScopePath, Token, VmId,
};
use notbefore_store::Revision;
use serde::{Deserialize, Serialize};

use crate::records::{Address, DecodeError};

/// A command with who asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<C = Command> {
    /// Who asks.
    pub by: Actor,
    /// Where the request came from, if from somewhere.
    pub from: Option<IpAddr>,
    /// The key by which a retry is known, if the caller gave one.
    pub idempotency: Option<Idempotency>,
    /// The revision at which the caller saw what it changes, if it says so.
    pub if_revision: Option<Revision>,
    /// What is asked.
    pub command: C,
}

impl<C> Request<C> {
    /// A request without a key, a revision or an address.
    pub fn new(by: Actor, command: C) -> Self {
        Self { by, from: None, idempotency: None, if_revision: None, command }
    }
}

impl<C: TypedCommand> Request<C> {
    /// The same request, as the engine takes it.
    pub fn erased(self) -> Request {
        let Self { by, from, idempotency, if_revision, command } = self;
        Request { by, from, idempotency, if_revision, command: command.into() }
    }
}

/// A command that names its answer, so that a caller is given that and nothing else.
pub trait TypedCommand: Into<Command> {
    /// What it is answered with.
    type Answer;

    /// Reads the answer. None where it is another command's: then the key that found it was used for that.
    fn read(answer: Answer) -> Option<Self::Answer>;
}

/// What tells a retry from a second wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Whose key it is.
    pub principal: String,
    /// The key.
    pub key: String,
    /// A hash of the request.
    pub hash: String,
}

/// What can be asked for, by what it is about. Fresh ids come with the command: the engine makes up nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A guest lets events of its scope begin.
    Guest(GuestApproval),
    /// Something is done to one event.
    Event(EventCommand),
    /// Something is done to a whole operation.
    Operation(OperationCommand),
    /// Scopes and VMs change.
    Inventory(InventoryCommand),
    /// Who may use the operator API changes.
    Token(TokenCommand),
    /// The clock is trusted as it is, although it has jumped.
    Clock(AcceptClock),
}

/// Says what commands are answered with, and into which group they go.
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
    FirstRun as this => Self::Inventory(InventoryCommand::FirstRun(this)), Answer::Done => (), ();
    TokenCommand as this => Self::Token(this), Answer::Done => (), ();
    AcceptClock as this => Self::Clock(this), Answer::Done => (), ();
}

/// Any command, answered with what there is.
impl TypedCommand for Command {
    type Answer = Answer;

    fn read(answer: Answer) -> Option<Answer> {
        Some(answer)
    }
}

/// A guest's approval of events of its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestApproval {
    /// The guest's scope.
    pub scope: ScopeId,
    /// The events.
    pub events: Vec<EventId>,
    /// The network, folded, in which the guest is known by its address; none where a listener of its own or a
    /// proxy says who it is. It is looked up again when the command is applied.
    pub network: Option<String>,
}

/// What can be done to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventCommand {
    /// An operator lets it begin.
    Approve(EventId),
    /// Call it off.
    Cancel(EventId),
    /// Begin it.
    Start(EventId),
    /// Say that it was carried out, and where redeployed VMs are now.
    Complete { event: EventId, hosts: Vec<(VmId, String)> },
    /// Try its failed commands again.
    Retry(EventId),
}

impl EventCommand {
    /// The event.
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

/// What can be done to a whole operation.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationCommand {
    /// Announce something to VMs, in however many scopes.
    Schedule(NewOperation),
    /// Call it off.
    Cancel(OperationId),
    /// Start it.
    Start(OperationId),
    /// Say that it was carried out.
    Complete(OperationId),
}

/// What can be done to scopes and VMs.
#[derive(Clone, Debug, PartialEq)]
pub enum InventoryCommand {
    /// A whole scope changes.
    Scope(ScopeChange),
    /// Add one VM.
    AddVm(AddVm),
    /// Something is done to one VM.
    Vm(VmCommand),
    /// Make the VM that stands in for a fleet where there is none.
    FirstRun(FirstRun),
}

/// A VM that is not there yet, to be added to its scope.
#[derive(Clone, Debug, PartialEq)]
pub struct AddVm {
    /// Its scope.
    pub path: ScopePath,
    /// The kind to make the scope of if there is none; standalone by default.
    pub kind: Option<ScopeKind>,
    /// The VM.
    pub vm: VmSpec,
}

/// What can be done to one VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmCommand {
    /// Remove it at once.
    Remove(VmId),
    /// It was evicted, and runs again.
    Start(VmId),
}

/// The VM that stands in for a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRun {
    /// Its id.
    pub vm: VmId,
    /// Its name and its scope's.
    pub name: Name,
}

/// What can be asked about tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenCommand {
    /// Make this one; there must be none of its name.
    Create(Token),
    /// Take this one back.
    Revoke(Name),
}

/// The clock is trusted as it is, although it has jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptClock;

/// An operation to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOperation {
    /// Its id.
    pub id: OperationId,
    /// Why.
    pub cause: Cause,
    /// The VMs that it reaches.
    pub selector: TargetSelector,
    /// Not before when; the cause's usual notice if none.
    pub not_before: Option<Timestamp>,
    /// Another duration than the cause's.
    pub duration_s: Option<i32>,
    /// Another description than the cause's.
    pub description: Option<String>,
    /// Whether an eviction may reach VMs that are not Spot.
    pub force: bool,
}

impl NewOperation {
    /// One with the cause's usual notice, duration and description.
    pub fn with_defaults(id: OperationId, cause: Cause, selector: TargetSelector) -> Self {
        Self { id, cause, selector, not_before: None, duration_s: None, description: None, force: false }
    }
}

/// The VMs that an operation reaches.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetSelector {
    /// These VMs, in the order in which guests are to see them. If one of them cannot be told, none is.
    Vms(Vec<VmId>),
    /// Whoever runs on this host when the operation is planned. A scope that will not have its event keeps
    /// nobody else from hearing: a host is maintained, and fails, for all of its VMs.
    Host(String),
}

/// A scope as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct PutScope {
    /// Where.
    pub path: ScopePath,
    /// What kind.
    pub kind: ScopeKind,
    /// Its owner's settings.
    pub policy: Policy,
    /// Who asks: a fleet file or a single call.
    pub origin: Origin,
    /// Its VMs.
    pub vms: Vec<VmSpec>,
    /// Whether VMs that an earlier fleet file added and this one does not name are removed.
    pub prune: bool,
}

impl PutScope {
    /// A scope of these VMs with the default policy, as a single call describes it.
    pub fn with_defaults(path: ScopePath, kind: ScopeKind, vms: Vec<VmSpec>) -> Self {
        Self { path, kind, policy: Policy::default(), origin: Origin::Call, vms, prune: false }
    }
}

/// A change of a whole scope.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeChange {
    /// Make it as described, or change it to be so.
    Put(PutScope),
    /// Remove it and its VMs. With `fleet_only` only those VMs go that a fleet file added; the scope stays if
    /// others are left.
    Remove { scope: ScopeId, fleet_only: bool },
}

impl ScopeChange {
    /// The scope that is changed; it need not exist.
    pub fn scope(&self) -> ScopeId {
        match self {
            Self::Put(put) => put.path.id(),
            Self::Remove { scope, .. } => scope.clone(),
        }
    }
}

/// What has been done to a scope so far: a change of a scope may take several transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether it was made.
    pub created: bool,
    /// How many of the described VMs have been seen to.
    pub seen: usize,
    /// How many VMs were added.
    pub added: usize,
    /// How many were changed.
    pub changed: usize,
    /// How many were removed.
    pub removed: usize,
}

/// A VM as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct VmSpec {
    /// The id it gets if there is none of its name yet.
    pub vm: VmId,
    /// Its name.
    pub name: Name,
    /// Its update domain.
    pub update_domain: u32,
    /// Its fault domain.
    pub fault_domain: u32,
    /// Its zone.
    pub zone: Option<String>,
    /// Its host; none leaves the one that is known.
    pub host: Option<String>,
    /// Whether its capacity may be wanted back.
    pub spot: bool,
    /// Where it calls from.
    pub addresses: Vec<Address>,
    /// What it is told about itself.
    pub instance: serde_json::Value,
}

impl VmSpec {
    /// A VM of which nothing is known but its name.
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

/// What a command that took effect, or had no need to, is answered with. It is stored with the command, so
/// that a retry gets the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done.
    Done,
    /// The operation that was made.
    Operation(OperationId),
    /// The VM that was added.
    Vm(VmId),
    /// What a scope needed to be as described.
    Scope { scope: ScopeId, progress: Progress },
}

/// An operation that nobody has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// What it would be.
    pub operation: Operation,
    /// The VMs of its host that would hear nothing since they do not run.
    pub deallocated: Vec<VmId>,
    /// Why parts would be refused.
    pub refused: Vec<(EventId, Refusal)>,
}

/// Why a command did not take effect, or why nobody knows.
///
/// What it says of itself is for the caller: stable, and what to do next. What has caused it is for the log alone, and
/// is its [source](std::error::Error::source).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A rule speaks against it.
    Refused(Refusal),
    /// The same key came with another request.
    KeyReused,
    /// It could not be carried out. Nothing was changed.
    Unavailable(FailureCause),
    /// It may or may not have taken effect.
    OutcomeUnknown(FailureCause),
}

/// What keeps the service from carrying out a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// The store has not taken a transaction, or does not know whether it has.
    #[error("the store cannot write (/readyz and the log say why)")]
    Store(#[source] StoreError),
    /// A record that the command needs cannot be read.
    #[error("a stored record cannot be read")]
    Record(#[source] DecodeError),
    /// Others were faster, again and again.
    #[error("too many changes at once")]
    Busy,
    /// The service stops.
    #[error("the service is shutting down")]
    Closing,
    /// Nobody waited any longer.
    #[error("it took longer than {0} s")]
    Late(u64),
}

/// What the store says, for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(_) | Self::KeyReused => None,
            // `Display` already shows the cause.
            Self::Unavailable(cause) | Self::OutcomeUnknown(cause) => cause.source(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::KeyReused => f.write_str(
                "this Idempotency-Key was used within a day for another request; use a new key for a new wish",
            ),
            Self::Unavailable(cause) => {
                write!(f, "nothing was changed: {cause}; repeat the request")
            }
            Self::OutcomeUnknown(cause) => write!(
                f,
                "it is not known whether this took effect: {cause}; repeat it with the same Idempotency-Key to find out"
            ),
        }
    }
}

impl Failure {
    /// A stable word for programs.
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
        for (failure, told, cause) in [
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
            assert_eq!(failure.to_string(), told);
            let source = std::error::Error::source(&failure).map(ToString::to_string);
            assert_eq!(source.as_deref(), cause, "{told}");
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
