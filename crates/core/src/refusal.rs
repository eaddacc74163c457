//! Refusals: why a command is not carried out. A message names the thing, the limit and what to do;
//! [`Refusal::code`] is the stable identifier for programs.

use std::time::Duration;

use jiff::Timestamp;

use crate::access::TOKENS_MAX;
use crate::cause::EventType;
use crate::event::{DriverKind, StartReason};
use crate::ids::{EventId, Name, NameError, OperationId, ScopeId, ScopePath, VmId};
use crate::joint_start::{Blocked, Blocker};
use crate::scope::{EVENTS_MAX, MEMBERS_MAX, ScopeKind, TERMINATE_NOTICE_MAX, TERMINATE_NOTICE_MIN};

/// Why a command was refused; it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The event does not exist, or the caller does not see it.
    #[error("there is no event {0} here; it may have ended more than a day ago")]
    UnknownEvent(EventId),
    /// The calling guest's VM or address changed while the request was in progress.
    #[error("the caller's address no longer belongs to VM {0}; nothing was approved")]
    UnknownCaller(VmId),
    #[error("event {0} has ended")]
    EventEnded(EventId),
    #[error("event {0} has started; it can be completed, but not cancelled or started")]
    EventStarted(EventId),
    #[error("event {0} has not started; start it first, or cancel it")]
    EventNotStarted(EventId),
    #[error("event {0} is an advisory and never starts; cancel it, or evict the VM (notbefore vm evict)")]
    Advisory(EventId),
    /// Only the exec driver's commands can be retried.
    #[error(
        "event {event} is carried out by the {driver} driver; only commands of the exec driver can be retried"
    )]
    NotExec { event: EventId, driver: DriverKind },
    /// No command to retry.
    #[error(
        "no command of event {0} has failed or waits for a retry; 'notbefore event show' lists their states"
    )]
    NothingFailed(EventId),
    /// No command of the host to retry.
    #[error(
        "no command for the host of operation {0} has failed or waits for a retry; commands of VMs are retried with 'notbefore event retry'"
    )]
    NoHostCommandFailed(OperationId),
    /// Blocked by the gate between update domains.
    #[error(
        "{waiting} must wait: {}; complete the started events, or wait for them to end", listed(.blockers)
    )]
    UpdateDomainBusy { waiting: Blocked, blockers: Vec<Blocker> },
    /// A part of a host operation cannot start alone.
    #[error(
        "event {event} is part of host operation {operation}, which starts as a whole; use 'notbefore operation start {operation}'"
    )]
    PartOfHostOperation { event: EventId, operation: OperationId },
    /// No part waits to be started.
    #[error(
        "operation {0} has no event that waits to be started; 'notbefore operation show {0}' lists their states"
    )]
    NothingToStart(OperationId),
    /// Its parts cannot start at one moment.
    #[error(
        "operation {0} has events in several scopes or update domains, each of which starts by itself; start them one by one with 'notbefore event start'"
    )]
    StartsApart(OperationId),
    /// Some parts have not started.
    #[error(
        "operation {operation} has events that have not started ({scheduled}); start them first, complete single ones with 'notbefore event complete', or cancel the operation"
    )]
    OperationNotStarted { operation: OperationId, scheduled: usize },
    /// The start of the host operation is decided.
    #[error("operation {0} has started; its events can be completed, but not started or cancelled")]
    OperationStarted(OperationId),
    #[error("there is no VM {0}")]
    UnknownVm(VmId),
    #[error("there is no scope {0}")]
    UnknownScope(ScopePath),
    #[error("there is no operation {0}")]
    UnknownOperation(OperationId),
    /// No VM was ever on such a host, or it was removed.
    #[error("there is no host {0:?}; 'notbefore host list' shows all hosts")]
    UnknownHost(String),
    /// The host has no VMs, or all are deallocated.
    #[error("{}", nothing_runs(.host, *.deallocated))]
    NothingRuns { host: String, deallocated: usize },
    /// A host that is named somewhere cannot be removed.
    #[error("host {host} is in use by {}", in_use(*.vms, .operations))]
    HostInUse {
        host: String,
        /// On it, or on their way to it.
        vms: usize,
        /// Open operations on it.
        operations: Vec<OperationId>,
    },
    /// The VMs of a part left before their scope could announce the event.
    #[error("its VMs were removed, deallocated or moved before their scope could announce the event")]
    VmsGone,
    /// The requested time leaves less than the least notice.
    #[error("NotBefore {asked} is {}: a {event_type} gives {} of notice, so the earliest is {earliest}{}", how_near(*.asked, *.earliest, *.notice), duration_text(.notice), without_time(*.at_once))]
    NotBeforeTooNear {
        event_type: EventType,
        asked: Timestamp,
        notice: Duration,
        /// The earliest valid NotBefore.
        earliest: Timestamp,
        /// Why the event would start at once without a requested time.
        at_once: Option<StartReason>,
    },
    /// A time was requested for a cause without notice.
    #[error("a {0} without notice starts at once; omit NotBefore")]
    NotBeforeWithoutNotice(EventType),
    #[error("no VM was named; name at least one")]
    NoResources,
    #[error("VM {0} is deallocated; start it first (notbefore vm start {0})")]
    Deallocated(Name),
    /// Only Spot VMs can be evicted, or advised of that.
    #[error(
        "VM {0} is not a Spot VM and cannot be evicted; set spot: true for it, or force the event (--force, in the API \"force\": true)"
    )]
    NotSpot(Name),
    #[error(
        "the scope has {EVENTS_MAX} live events, which is the limit; wait for some to end or cancel some"
    )]
    TooManyEvents,
    #[error(
        "the scope has {limit} live user operations, which is the limit; wait for some to end or cancel some"
    )]
    TooManyUserOperations { limit: usize },
    /// Limit on stored user operations of a scope.
    #[error(
        "{limit} user operations are stored for scope {scope}, which is the limit; wait until old ones leave the history, or use a token that is operator on /"
    )]
    TooManyStoredOperations { scope: ScopeId, limit: usize },
    #[error("a scope holds at most {MEMBERS_MAX} VMs; put the others into another scope")]
    TooManyMembers,
    #[error(
        "scope {0} is standalone and holds one VM; put the other VM into its own scope, or use an availability set"
    )]
    StandaloneHoldsOne(ScopePath),
    #[error(
        "scope {path} is of kind {is}, not {asked}; the kind of a scope cannot change: remove the scope first, or use another name"
    )]
    KindDiffers { path: ScopePath, is: ScopeKind, asked: ScopeKind },
    #[error("VM name {0} is taken in this scope (names ignore case)")]
    NameTaken(Name),
    /// `owner` is a VM's path.
    #[error("address {address} in network {network} belongs to VM {owner}; remove it there first")]
    AddressTaken { address: std::net::IpAddr, network: Name, owner: String },
    /// Within one request; `name` is the second VM.
    #[error(
        "address {address} in network {network} is named twice, the second time by VM {name}; an address belongs to one VM"
    )]
    AddressTwice { address: std::net::IpAddr, network: Name, name: Name },
    #[error("VM {name} has more than {limit} addresses, which is the limit")]
    TooManyAddresses { name: Name, limit: usize },
    #[error(
        "a Terminate notification of {} is out of range; it may be {} to {}",
        duration_text(.0), duration_text(&TERMINATE_NOTICE_MIN), duration_text(&TERMINATE_NOTICE_MAX)
    )]
    TerminateNoticeOutOfRange(Duration),
    /// The scope's record exceeds the size limit.
    #[error("scope would need {bytes} bytes, the limit is {limit}; split it into smaller scopes")]
    ScopeTooLarge { bytes: usize, limit: usize },
    /// The VM's record exceeds the size limit.
    #[error(
        "VM {vm} would need {bytes} bytes with its metadata, the limit is {limit}; shorten its user data or tags"
    )]
    VmTooLarge { vm: VmId, bytes: usize, limit: usize },
    /// The operation's record exceeds the size limit.
    #[error(
        "an operation of {parts} parts would need {bytes} bytes, the limit is {limit}; name fewer VMs at a time"
    )]
    OperationTooLarge { parts: usize, bytes: usize, limit: usize },
    #[error("there is no token {0}; 'notbefore token list' shows all tokens")]
    UnknownToken(Name),
    #[error("token {0} exists already; use another name, or revoke it first")]
    TokenTaken(Name),
    #[error("there are {TOKENS_MAX} tokens, which is the limit; revoke some (notbefore token list)")]
    TooManyTokens,
    /// Without such a token, no further token could be created.
    #[error(
        "token {0} is the last token that is operator on / and does not expire; create another such token first (notbefore token create NAME --role operator)"
    )]
    LastOperator(Name),
    #[error(transparent)]
    Name(#[from] NameError),
    /// Optimistic concurrency: the record changed since the caller read it. Revision 0 means that it does not exist.
    #[error("{}; read it again and repeat the change", moved(*expected, *found))]
    RevisionDiffers { expected: u64, found: u64 },
    /// Other VMs are affected than in the caller's plan.
    #[error(
        "since the plan was made, other VMs would be affected ({more} more, {fewer} no longer); make a new plan and repeat the change"
    )]
    PlanDiffers { more: usize, fewer: usize },
}

impl Refusal {
    /// A stable identifier for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownEvent(_) => "unknown_event",
            Self::UnknownCaller(_) => "unknown_caller",
            Self::EventEnded(_) => "event_ended",
            Self::EventStarted(_) => "event_started",
            Self::EventNotStarted(_) => "event_not_started",
            Self::Advisory(_) => "advisory",
            Self::NotExec { .. } => "not_exec",
            Self::NothingFailed(_) | Self::NoHostCommandFailed(_) => "nothing_failed",
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
            Self::HostInUse { .. } => "host_in_use",
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
            Self::PlanDiffers { .. } => "plan_differs",
        }
    }
}

/// Joins the first blockers, and counts the rest.
fn listed(blockers: &[Blocker]) -> String {
    const SHOWN_MAX: usize = 3;
    let mut shown: Vec<String> = blockers.iter().take(SHOWN_MAX).map(Blocker::to_string).collect();
    if let Some(more @ 1..) = blockers.len().checked_sub(SHOWN_MAX) {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// Whether a time is in the past. The earliest time is rounded up to a second, so it is now plus the notice plus less
/// than a second.
fn how_near(asked: Timestamp, earliest: Timestamp, notice: Duration) -> &'static str {
    let is_past = earliest.checked_sub(notice).is_ok_and(|now| asked < now);
    if is_past { "in the past" } else { "too near" }
}

/// A hint that the event would start at once without a requested time.
fn without_time(at_once: Option<StartReason>) -> String {
    at_once.map(|why| format!("; omit the time to run it now ({why})")).unwrap_or_default()
}

/// How the record's revision differs from the expected one.
fn moved(expected: u64, found: u64) -> String {
    match (expected, found) {
        (_, 0) => format!("it was at revision {expected} and no longer exists"),
        (0, _) => format!("it exists already, at revision {found}"),
        (_, _) => format!("it is at revision {found}, not {expected}"),
    }
}

fn nothing_runs(host: &str, deallocated: usize) -> String {
    match deallocated {
        0 => format!("host {host} has no VMs, so there is nothing to announce"),
        some => format!(
            "no VM runs on host {host}: all {some} of its VMs are deallocated; start one first (notbefore vm start)"
        ),
    }
}

/// What keeps a host, and how to remove that.
fn in_use(vms: usize, operations: &[OperationId]) -> String {
    let vms = (vms > 0).then(|| {
        format!(
            "{vms} VM{} on it or on the way to it; redeploy or remove the VMs first",
            if vms == 1 { "" } else { "s" }
        )
    });
    let operation = operations.first().map(|id| {
        format!("operation {id}, which is open; wait until it ends (notbefore operation wait {id})")
    });
    let uses: Vec<String> = vms.into_iter().chain(operation).collect();
    uses.join("; and by ")
}

/// A duration for people, to the second: `15 min`, `30 s`, `1 min 30 s`.
fn duration_text(span: &Duration) -> String {
    let (minutes, seconds) = (span.as_secs() / 60, span.as_secs() % 60);
    match (minutes, seconds) {
        (0, _) if span.subsec_millis() > 0 => format!("{:.1} s", span.as_secs_f64()),
        (0, s) => format!("{s} s"),
        (m, 0) => format!("{m} min"),
        (m, s) => format!("{m} min {s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_in_use_names_its_users() {
        let said = |vms, operations: &[OperationId]| {
            let operations = operations.to_vec();
            Refusal::HostInUse { host: "h1".to_owned(), vms, operations }.to_string()
        };
        let open = OperationId(uuid::Uuid::from_u128(7));
        assert!(said(1, &[]).starts_with("host h1 is in use by 1 VM on it or"), "{}", said(1, &[]));
        let both = said(2, &[open]);
        assert!(both.contains("2 VMs on it") && both.contains(&open.to_string()), "{both}");
    }

    #[test]
    fn time_in_the_past_is_called_that() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let refusal = |asked: i64| {
            // Now is 1000 seconds.
            let (notice, earliest) = (Duration::from_secs(900), at(1_900));
            let event_type = EventType::Reboot;
            Refusal::NotBeforeTooNear { event_type, asked: at(asked), notice, earliest, at_once: None }
                .to_string()
        };
        assert!(
            refusal(999).starts_with("NotBefore 1970-01-01T00:16:39Z is in the past: a Reboot gives 15 min")
        );
        assert!(refusal(1_000).contains("is too near: ") && refusal(1_899).contains("is too near: "));
    }
}
