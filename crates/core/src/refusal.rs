//! Why a command was refused. A message names the thing, the limit and the cure; [`Refusal::code`] is what
//! programs go by and never changes.

use std::time::Duration;

use jiff::Timestamp;

use crate::access::TOKENS_MAX;
use crate::cause::EventType;
use crate::event::{DriverKind, StartReason};
use crate::ids::{EventId, Name, NameError, OperationId, ScopeId, ScopePath, VmId};
use crate::joint_start::{Blocked, Blocker};
use crate::scope::{EVENTS_MAX, MEMBERS_MAX, ScopeKind, TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN};

/// Why a command was refused; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such event, or none that this caller may know of.
    #[error("there is no event {0} here; it may have ended more than a day ago")]
    UnknownEvent(EventId),
    /// A guest whose VM, or whose address, has become another's since it asked.
    #[error("VM {0} is no longer the one that called; nothing was approved")]
    UnknownCaller(VmId),
    /// An event that is over.
    #[error("event {0} has ended")]
    EventEnded(EventId),
    /// Too late for it.
    #[error("event {0} has started; it can be completed, no longer cancelled or started")]
    EventStarted(EventId),
    /// Too early for it.
    #[error("event {0} has not started; start it first, or cancel it")]
    EventNotStarted(EventId),
    /// An event that no command carries out.
    #[error(
        "event {event} is carried out by the {driver} driver; only what the exec driver's commands do can be retried"
    )]
    NotExec { event: EventId, driver: DriverKind },
    /// Nothing to try again.
    #[error(
        "no command of event {0} has failed or waits to be tried again; 'notbefore event show' says how they stand"
    )]
    NothingFailed(EventId),
    /// The gate between update domains.
    #[error(
        "{waiting} must wait: {}; complete what is under way, or wait for its end", listed(.blockers)
    )]
    UpdateDomainBusy { waiting: Blocked, blockers: Vec<Blocker> },
    /// A part of a host operation cannot start alone.
    #[error(
        "event {event} is part of host operation {operation}, which starts as a whole; use 'notbefore operation start {operation}'"
    )]
    PartOfHostOperation { event: EventId, operation: OperationId },
    /// An operation of which no part waits to be started.
    #[error(
        "operation {0} has no event that waits to be started; 'notbefore operation show {0}' says how they stand"
    )]
    NothingToStart(OperationId),
    /// An operation over several scopes or update domains that does not start as a whole.
    #[error(
        "operation {0} has events in several scopes or update domains, each of which starts by itself; start them one by one with 'notbefore event start'"
    )]
    StartsApart(OperationId),
    /// An operation of which parts have not started.
    #[error(
        "operation {operation} has {scheduled} events that have not started; start them first, complete single ones with 'notbefore event complete', or cancel the operation"
    )]
    OperationNotStarted { operation: OperationId, scheduled: usize },
    /// A host operation that has been decided.
    #[error("operation {0} has started; its events can be completed, no longer started or cancelled")]
    OperationStarted(OperationId),
    /// No such VM.
    #[error("there is no VM {0}")]
    UnknownVm(VmId),
    /// No such scope.
    #[error("there is no scope {0}")]
    UnknownScope(ScopePath),
    /// No such operation.
    #[error("there is no operation {0}")]
    UnknownOperation(OperationId),
    /// No VM says that it is on such a host.
    #[error("there is no host {0:?}: no VM is on it; 'notbefore host list' shows those there are")]
    UnknownHost(String),
    /// A host on which nothing runs.
    #[error(
        "no VM runs on host {host}: all {deallocated} of its VMs are deallocated; there is nobody to tell"
    )]
    NothingRuns { host: String, deallocated: usize },
    /// The VMs of an operation's part, gone before their scope heard of it.
    #[error("its VMs were gone, deallocated or on another host before their scope could be told")]
    VmsGone,
    /// Less notice than the kind of event gives.
    #[error("NotBefore {asked} is too near: a {event_type} gives {} of notice, so the earliest is {earliest}{}", duration_text(.notice), without_time(*.at_once))]
    NotBeforeTooNear {
        /// What will happen.
        event_type: EventType,
        /// What was asked for.
        asked: Timestamp,
        /// The least notice.
        notice: Duration,
        /// The earliest time that gives it.
        earliest: Timestamp,
        /// Why it would run now if no time were given, if it would.
        at_once: Option<StartReason>,
    },
    /// A time for something that gives no notice.
    #[error("a {0} without notice starts at once; leave NotBefore out")]
    NotBeforeWithoutNotice(EventType),
    /// An operation on nothing.
    #[error("no VM was named; name at least one")]
    NoResources,
    /// A VM that is not running.
    #[error("VM {0} is deallocated; start it first (notbefore vm start {0})")]
    Deallocated(Name),
    /// An eviction of a VM that is not Spot.
    #[error(
        "VM {0} is not a Spot VM, and only those are evicted; describe it with spot: true, or evict it all the same (--force, in the API \"force\": true)"
    )]
    NotSpot(Name),
    /// Too many live events.
    #[error(
        "the scope has {EVENTS_MAX} live events, the most there may be; wait for some to end or cancel some"
    )]
    TooManyEvents,
    /// Too many live operations of users.
    #[error(
        "the scope has {limit} live user operations, the most there may be; wait for some to end or cancel some"
    )]
    TooManyUserOperations { limit: usize },
    /// Too many operations of users are stored for a scope.
    #[error(
        "{limit} operations of users are stored for scope {scope}, the most there may be; the oldest go when their history is no longer kept, or an operator of everywhere asks instead"
    )]
    TooManyStoredOperations { scope: ScopeId, limit: usize },
    /// Too many VMs.
    #[error("a scope holds at most {MEMBERS_MAX} VMs; put the rest into another")]
    TooManyMembers,
    /// A second VM for a standalone scope.
    #[error(
        "scope {0} is standalone and holds one VM; give the other a scope of its own, or make it an availability set"
    )]
    StandaloneHoldsOne(ScopePath),
    /// A kind that cannot be changed.
    #[error(
        "scope {path} is of kind {is}, not {asked}; a scope keeps its kind: remove it first, or name another"
    )]
    KindDiffers { path: ScopePath, is: ScopeKind, asked: ScopeKind },
    /// A name that is taken.
    #[error("VM name {0} is taken in this scope (names are compared without regard to case)")]
    NameTaken(Name),
    /// An address that is taken. `owner` is a VM's path.
    #[error("address {address} in network {network} belongs to VM {owner}; remove it there first")]
    AddressTaken { address: std::net::IpAddr, network: Name, owner: String },
    /// An address that is named twice. `name` is the second VM.
    #[error(
        "address {address} in network {network} is named twice, the second time by VM {name}; an address belongs to one VM"
    )]
    AddressTwice { address: std::net::IpAddr, network: Name, name: Name },
    /// More addresses than a VM may have.
    #[error("VM {name} has more than {limit} addresses, the most there may be")]
    TooManyAddresses { name: Name, limit: usize },
    /// A notification time out of range.
    #[error(
        "a Terminate notification of {} is out of range; it may be {} to {}",
        duration_text(.0), duration_text(&TERMINATE_NOTICE_MIN), duration_text(&TERMINATE_NOTICE_MAX)
    )]
    TerminateNoticeOutOfRange(Duration),
    /// The record would be too large to store.
    #[error("scope would need {bytes} bytes, the limit is {limit}; split it into smaller scopes")]
    ScopeTooLarge { bytes: usize, limit: usize },
    /// A VM's record would be too large to store.
    #[error(
        "VM {vm} would need {bytes} bytes with its metadata, the limit is {limit}; shorten its user data or tags"
    )]
    VmTooLarge { vm: VmId, bytes: usize, limit: usize },
    /// The operation's record would be too large to store.
    #[error(
        "an operation of {parts} parts would need {bytes} bytes, the limit is {limit}; ask for fewer VMs at a time"
    )]
    OperationTooLarge { parts: usize, bytes: usize, limit: usize },
    /// No such token.
    #[error("there is no token {0}; 'notbefore token list' shows those there are")]
    UnknownToken(Name),
    /// A token of that name is there.
    #[error("there is a token {0} already; choose another name, or revoke that one first")]
    TokenTaken(Name),
    /// Too many tokens.
    #[error("there are {TOKENS_MAX} tokens, the most there may be; revoke some (notbefore token list)")]
    TooManyTokens,
    /// Nobody could do anything any more.
    #[error(
        "token {0} is the last that is operator everywhere and does not expire, and without one nobody could make another; create one first (notbefore token create NAME --role operator)"
    )]
    LastOperator(Name),
    /// A bad name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Somebody changed it in between. Revision 0 stands for nothing.
    #[error("{}; read it again and repeat the change", moved(*expected, *found))]
    RevisionDiffers { expected: u64, found: u64 },
}

impl Refusal {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownEvent(_) => "unknown_event",
            Self::UnknownCaller(_) => "unknown_caller",
            Self::EventEnded(_) => "event_ended",
            Self::EventStarted(_) => "event_started",
            Self::EventNotStarted(_) => "event_not_started",
            Self::NotExec { .. } => "not_exec",
            Self::NothingFailed(_) => "nothing_failed",
            Self::UpdateDomainBusy { .. } => "update_domain_busy",
            Self::PartOfHostOperation { .. } => "part_of_host_operation",
            Self::NothingToStart(_) => "nothing_to_start",
            Self::StartsApart(_) => "starts_apart",
            Self::OperationNotStarted { .. } => "event_not_started",
            Self::OperationStarted(_) => "event_started",
            Self::UnknownVm(_) => "unknown_vm",
            Self::UnknownScope(_) => "unknown_scope",
            Self::UnknownOperation(_) => "unknown_operation",
            Self::UnknownHost(_) => "unknown_host",
            Self::NothingRuns { .. } => "nothing_runs",
            Self::VmsGone => "vms_gone",
            Self::NotBeforeTooNear { .. } => "not_before_too_near",
            Self::NotBeforeWithoutNotice(_) => "not_before_without_notice",
            Self::NoResources => "no_resources",
            Self::Deallocated(_) => "vm_deallocated",
            Self::NotSpot(_) => "not_spot",
            Self::TooManyEvents => "too_many_events",
            Self::TooManyUserOperations { .. } => "too_many_user_operations",
            Self::TooManyStoredOperations { .. } => "too_many_stored_operations",
            Self::TooManyMembers => "too_many_members",
            Self::StandaloneHoldsOne(_) => "standalone_holds_one",
            Self::KindDiffers { .. } => "kind_differs",
            Self::NameTaken(_) => "name_taken",
            Self::AddressTaken { .. } => "address_taken",
            Self::AddressTwice { .. } => "address_twice",
            Self::TooManyAddresses { .. } => "too_many_addresses",
            Self::TerminateNoticeOutOfRange(_) => "terminate_notice_out_of_range",
            Self::ScopeTooLarge { .. } => "scope_too_large",
            Self::VmTooLarge { .. } => "vm_too_large",
            Self::OperationTooLarge { .. } => "operation_too_large",
            Self::UnknownToken(_) => "unknown_token",
            Self::TokenTaken(_) => "token_taken",
            Self::TooManyTokens => "too_many_tokens",
            Self::LastOperator(_) => "last_operator",
            Self::Name(_) => "bad_name",
            Self::RevisionDiffers { .. } => "revision_differs",
        }
    }
}

/// Blockers as a list, cut where it would be long.
fn listed(blockers: &[Blocker]) -> String {
    const SHOWN_MAX: usize = 3;
    let mut shown: Vec<String> = blockers.iter().take(SHOWN_MAX).map(Blocker::to_string).collect();
    if let Some(more @ 1..) = blockers.len().checked_sub(SHOWN_MAX) {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// What happens if the time is left out, where that is now.
fn without_time(at_once: Option<StartReason>) -> String {
    at_once.map(|why| format!("; leave the time out to run it now ({why})")).unwrap_or_default()
}

/// How a record differs from what a caller saw.
fn moved(expected: u64, found: u64) -> String {
    match (expected, found) {
        (_, 0) => format!("it was at revision {expected} and does not exist any more"),
        (0, _) => format!("it exists by now, at revision {found}"),
        (_, _) => format!("it is at revision {found}, not {expected}"),
    }
}

/// A span as a person would say it, to the second: `15 min`, `30 s`, `1 min 30 s`.
fn duration_text(span: &Duration) -> String {
    let (minutes, seconds) = (span.as_secs() / 60, span.as_secs() % 60);
    match (minutes, seconds) {
        (0, _) if span.subsec_millis() > 0 => format!("{:.1} s", span.as_secs_f64()),
        (0, s) => format!("{s} s"),
        (m, 0) => format!("{m} min"),
        (m, s) => format!("{m} min {s} s"),
    }
}
