//! Facts as text, for `event watch`, an event's trail and the audit trail.

use std::net::IpAddr;

use notbefore_wire::operator::{Actor, Cause, Fact, What};
use uuid::Uuid;

use crate::token;

/// A fact as a line: time, type, subject, actor.
pub fn line(fact: &Fact) -> String {
    let by = Actor { address: None, ..fact.by.clone() };
    format!("{:.3}  {:<18} {}  (by {by})", fact.at, fact.what.kind(), subject(fact))
}

/// The subject of a fact: an event, VM, scope, operation or token.
fn subject(fact: &Fact) -> String {
    let names = fact.vms.join(",");
    let event = || format!("{names} {}", id(fact.event));
    match (&fact.what, cause_and_detail(&fact.what).0) {
        (What::OperationRequested { .. } | What::OperationStarted { .. }, _)
        | (What::OperationCompleted | What::OperationCancelled, _) => id(fact.operation),
        (What::ScopeCreated | What::ScopeRemoved, _) => fact.scope.clone().unwrap_or_default(),
        (What::TokenCreated { name, .. } | What::TokenRevoked { name }, _) => name.clone(),
        (What::EventRead { .. }, _) => event(),
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
fn cause_and_detail(what: &What) -> (Option<&Cause>, String) {
    match what {
        What::EventScheduled { cause, not_before: Some(at) } => (Some(cause), format!("not before {at}")),
        What::EventScheduled { cause, not_before: None } => (Some(cause), "without notice".to_owned()),
        What::EventRead { api_version } => (None, format!("at api-version {api_version}")),
        What::EventApproved { cause } | What::EventCompleted { cause } => (Some(cause), String::new()),
        What::EventReleased { cause } => {
            (Some(cause), "all events of its operation are approved or ended".to_owned())
        }
        What::EventReady { cause, why } | What::EventStarted { cause, why } => (Some(cause), why.clone()),
        What::EventCancelled { cause, why } => (Some(cause), why.clone().unwrap_or_default()),
        What::DriverTookOver { cause, owner, fence } => {
            (Some(cause), format!("process {owner} runs its commands, fencing number {fence}"))
        }
        What::DriverAttemptFailed { cause, vm, attempt, why } => {
            (Some(cause), format!("{vm}, attempt {attempt}{}", because(why.as_deref())))
        }
        What::DriverFailed { cause, vm, attempts, why } => {
            (Some(cause), format!("{vm}, after the last attempt ({attempts}){}", because(why.as_deref())))
        }
        What::DriverRetried { cause, commands } => (Some(cause), format!("{commands} of its commands")),
        What::OperationStarted { why } => (None, why.clone()),
        What::VmMoved { host } => (None, format!("to {host}")),
        What::TokenCreated { name, grants } => (None, format!("{name}: {}", token::granted(grants))),
        What::TokenRevoked { name } => (None, name.clone()),
        What::RequestRefused { request, .. } => (None, request.clone()),
        What::FurtherRefusals { count } => (None, format!("{count} further refusals")),
        What::Unknown { detail, .. } => (None, detail.as_ref().map(ToString::to_string).unwrap_or_default()),
        What::OperationRequested { .. }
        | What::OperationCompleted
        | What::OperationCancelled
        | What::ScopeCreated
        | What::PolicyChanged
        | What::ScopeRemoved
        | What::VmAdded
        | What::VmChanged
        | What::VmRemoved
        | What::VmDeallocated
        | What::VmStarted
        | What::ClockAccepted => (None, String::new()),
    }
}

/// Details beyond the fact's type.
pub fn detail(fact: &Fact) -> String {
    cause_and_detail(&fact.what).1
}

/// The fact's type, or the code of a refusal.
pub fn code(fact: &Fact) -> String {
    if let What::RequestRefused { code, .. } = &fact.what {
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
        (What::OperationRequested { cause, targets }, None) => {
            format!("{cause}, {targets} events ({})", id(fact.operation))
        }
        (What::FurtherRefusals { .. }, None) => {
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
