//! Facts as text, for `event watch`, an event's trail and the audit trail.

use std::net::IpAddr;

use notbefore_wire::operator::{Actor, Cause, Fact, FactDetail};
use notbefore_wire::text::counted;
use uuid::Uuid;

use crate::{time, token};

/// A fact as a line: time, type, subject, actor.
pub fn line(fact: &Fact) -> String {
    let by = Actor { address: None, ..fact.by.clone() };
    format!("{}  {:<18} {}  (by {by})", time::milliseconds(fact.at), fact.what.kind(), subject(fact))
}

/// The name of a host; the service leaves it out for tenants.
fn named(host: &str) -> &str {
    if host.is_empty() { "the host" } else { host }
}

/// The subject of a fact: an event, VM, scope, operation or token.
fn subject(fact: &Fact) -> String {
    let names = fact.vms.join(",");
    let event = || format!("{names} {}", id(fact.event));
    match (&fact.what, cause_and_detail(&fact.what).0) {
        (FactDetail::OperationRequested { .. } | FactDetail::OperationStarted { .. }, _)
        | (FactDetail::OperationCompleted | FactDetail::OperationCancelled, _) => id(fact.operation),
        (
            FactDetail::HostCommandTookOver { host, .. }
            | FactDetail::HostCommandAttemptFailed { host, .. }
            | FactDetail::HostCommandFailed { host, .. }
            | FactDetail::HostCommandRetried { host }
            | FactDetail::HostCommandStarted { host }
            | FactDetail::HostCommandSucceeded { host },
            _,
        ) => format!("{} {}", named(host), id(fact.operation)),
        (FactDetail::ScopeCreated | FactDetail::ScopeRemoved, _) => fact.scope.clone().unwrap_or_default(),
        (FactDetail::TokenCreated { name, .. } | FactDetail::TokenRevoked { name }, _) => name.clone(),
        (FactDetail::EventRead { .. }, _) => event(),
        (_, Some(cause)) => format!("{cause} {}", event()),
        (_, None) => names,
    }
}

/// The reason of a failed command, which only operators on `/` read.
pub fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

fn id(id: Option<Uuid>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}

/// The cause of the fact's event, and details beyond the fact's type.
fn cause_and_detail(what: &FactDetail) -> (Option<&Cause>, String) {
    match what {
        FactDetail::EventScheduled { cause: cause @ Cause::Rebalance, not_before } => {
            let date = not_before.map(|at| format!("; its date {} is no deadline", time::absolute(at)));
            (Some(cause), format!("an advisory: it never starts{}", date.unwrap_or_default()))
        }
        FactDetail::EventScheduled { cause, not_before: Some(at) } => {
            (Some(cause), format!("not before {}", time::absolute(*at)))
        }
        FactDetail::EventScheduled { cause, not_before: None } => (Some(cause), "without notice".to_owned()),
        FactDetail::EventRead { api_version } => (None, format!("at api-version {api_version}")),
        FactDetail::EventApproved { cause } | FactDetail::EventCompleted { cause } => {
            (Some(cause), String::new())
        }
        FactDetail::EventReleased { cause } => {
            (Some(cause), "all events of its operation are approved or ended".to_owned())
        }
        FactDetail::EventReady { cause, why } | FactDetail::EventStarted { cause, why } => {
            (Some(cause), why.clone())
        }
        FactDetail::EventCancelled { cause, why } => (Some(cause), why.clone().unwrap_or_default()),
        FactDetail::DriverTookOver { cause, owner, fence } => {
            (Some(cause), format!("process {owner} runs its commands, fencing number {fence}"))
        }
        FactDetail::DriverAttemptFailed { cause, vm, attempt, why } => {
            (Some(cause), format!("{vm}, attempt {attempt}{}", because(why.as_deref())))
        }
        FactDetail::DriverFailed { cause, vm, attempts, why } => {
            (Some(cause), format!("{vm}, after the last attempt ({attempts}){}", because(why.as_deref())))
        }
        FactDetail::DriverRetried { cause, commands } => (Some(cause), format!("{commands} of its commands")),
        FactDetail::OperationStarted { why } => (None, why.clone()),
        FactDetail::HostCommandTookOver { host, owner, fence } => {
            (None, format!("{}: process {owner} runs its command, fencing number {fence}", named(host)))
        }
        FactDetail::HostCommandAttemptFailed { host, attempt, why } => {
            (None, format!("{}, attempt {attempt}{}", named(host), because(why.as_deref())))
        }
        FactDetail::HostCommandFailed { host, attempts, why } => {
            let why = because(why.as_deref());
            (None, format!("{}, after the last attempt ({attempts}){why}", named(host)))
        }
        FactDetail::HostCommandStarted { host }
        | FactDetail::HostCommandRetried { host }
        | FactDetail::HostCommandSucceeded { host } => (None, named(host).to_owned()),
        FactDetail::HostStateChanged { host, state } => (None, format!("{}: {state}", named(host))),
        FactDetail::HostForgotten { host } => (None, named(host).to_owned()),
        FactDetail::VmMoved { host } if host.is_empty() => (None, "to another host".to_owned()),
        FactDetail::VmMoved { host } => (None, format!("to {host}")),
        FactDetail::TokenCreated { name, grants } => (None, format!("{name}: {}", token::granted(grants))),
        FactDetail::TokenRevoked { name } => (None, name.clone()),
        FactDetail::SignedIn { method } => (None, format!("by {method}")),
        FactDetail::SignInLinkCreated => (None, String::new()),
        FactDetail::HandOverRequested { node } => (None, format!("by node {node}")),
        FactDetail::NodeForgotten { node } => (None, format!("node {node}")),
        FactDetail::UpgradeFinished { level } => (None, format!("format level {level}")),
        FactDetail::RequestRefused { request, .. } => (None, request.clone()),
        FactDetail::FurtherRefusals { count } => (None, format!("{count} further refusals")),
        FactDetail::Unknown { detail, .. } => {
            (None, detail.as_ref().map(ToString::to_string).unwrap_or_default())
        }
        FactDetail::OperationRequested { .. }
        | FactDetail::OperationCompleted
        | FactDetail::OperationCancelled
        | FactDetail::ScopeCreated
        | FactDetail::PolicyChanged
        | FactDetail::ScopeRemoved
        | FactDetail::VmAdded
        | FactDetail::VmChanged
        | FactDetail::VmRemoved
        | FactDetail::VmDeallocated
        | FactDetail::VmStarted
        | FactDetail::ClockAccepted => (None, String::new()),
    }
}

/// Details beyond the fact's type.
pub fn detail(fact: &Fact) -> String {
    time::in_text(&cause_and_detail(&fact.what).1)
}

/// The fact's type, or the code of a refusal.
pub fn code(fact: &Fact) -> String {
    if let FactDetail::RequestRefused { code, .. } = &fact.what {
        return code.clone();
    }
    fact.what.kind()
}

/// A fact in the audit trail: subject, details and scope.
pub fn in_audit(fact: &Fact, from: Option<IpAddr>) -> String {
    let (cause, words) = cause_and_detail(&fact.what);
    let and_words = if words.is_empty() { String::new() } else { format!(": {words}") };
    let names = fact.vms.join(", ");
    let text = match (&fact.what, cause) {
        (_, Some(cause)) => format!("{cause} of {names} ({}){and_words}", id(fact.event)),
        (FactDetail::OperationRequested { cause, targets }, None) => {
            format!("{cause}, {} ({})", counted(*targets, "event"), id(fact.operation))
        }
        (FactDetail::FurtherRefusals { .. }, None) => {
            let from = from.map_or_else(|| "elsewhere".to_owned(), |from| from.to_string());
            format!("{words} from {from}")
        }
        (_, None) if fact.operation.is_some() => format!("{}{and_words}", id(fact.operation)),
        (_, None) => format!("{names} {words}").trim().to_owned(),
    };
    match &fact.scope {
        Some(scope) => format!("{text} in {scope}").trim().to_owned(),
        None => text,
    }
}
