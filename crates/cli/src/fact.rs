//! Facts in words, for people: in `event watch`, in an event's trail, in the audit trail.

use std::net::IpAddr;

use notbefore_wire::operator::{Actor, Cause, Fact, What};
use uuid::Uuid;

use crate::token;

/// A fact as a line: when, what, about which event or VM, who.
pub fn line(fact: &Fact) -> String {
    let by = Actor { address: None, ..fact.by.clone() };
    format!("{:.3}  {:<18} {}  (by {by})", fact.at, fact.what.kind(), subject(fact))
}

/// What a fact is about, in few words.
fn subject(fact: &Fact) -> String {
    let names = fact.vms.join(",");
    let event = || format!("{names} {}", id(fact.event));
    match (&fact.what, cause(&fact.what)) {
        (What::OperationRequested { .. } | What::OperationStarted { .. }, _)
        | (What::OperationCompleted | What::OperationCancelled, _) => id(fact.operation),
        (What::ScopeCreated | What::ScopeRemoved, _) => fact.scope.clone().unwrap_or_default(),
        (What::TokenCreated { name, .. } | What::TokenRevoked { name }, _) => name.clone(),
        (What::EventRead { .. }, _) => event(),
        (_, Some(cause)) => format!("{cause} {}", event()),
        (_, None) => names,
    }
}

fn id(id: Option<Uuid>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}

/// The cause of the event that a fact is about.
fn cause(what: &What) -> Option<&Cause> {
    match what {
        What::EventScheduled { cause, .. }
        | What::EventApproved { cause }
        | What::EventReleased { cause }
        | What::EventReady { cause, .. }
        | What::EventStarted { cause, .. }
        | What::EventCompleted { cause }
        | What::EventCancelled { cause, .. }
        | What::DriverTookOver { cause, .. }
        | What::DriverAttemptFailed { cause, .. }
        | What::DriverFailed { cause, .. }
        | What::DriverRetried { cause, .. } => Some(cause),
        What::EventRead { .. }
        | What::OperationRequested { .. }
        | What::OperationStarted { .. }
        | What::OperationCompleted
        | What::OperationCancelled
        | What::ScopeCreated
        | What::PolicyChanged
        | What::ScopeRemoved
        | What::VmAdded
        | What::VmChanged
        | What::VmRemoved
        | What::VmMoved { .. }
        | What::VmDeallocated
        | What::VmStarted
        | What::TokenCreated { .. }
        | What::TokenRevoked { .. }
        | What::ClockAccepted
        | What::RequestRefused { .. }
        | What::FurtherRefusals { .. }
        | What::Unknown { .. } => None,
    }
}

/// What is particular to a fact; may be empty.
pub fn detail(fact: &Fact) -> String {
    match &fact.what {
        What::EventScheduled { not_before: Some(at), .. } => format!("not before {at}"),
        What::EventScheduled { not_before: None, .. } => "without notice".to_owned(),
        What::EventRead { api_version } => format!("at api-version {api_version}"),
        What::EventReleased { .. } => "all parts of its operation are approved or gone".to_owned(),
        What::EventReady { why, .. } | What::EventStarted { why, .. } | What::OperationStarted { why } => {
            why.clone()
        }
        What::EventCancelled { why, .. } => why.clone().unwrap_or_default(),
        What::DriverTookOver { owner, fence, .. } => {
            format!("process {owner} runs its commands now, fencing number {fence}")
        }
        What::DriverAttemptFailed { vm, attempt, why, .. } => format!("{vm}, attempt {attempt}: {why}"),
        What::DriverFailed { vm, attempts, why, .. } => {
            format!("{vm}, after attempt {attempts}, the last: {why}")
        }
        What::DriverRetried { commands, .. } => format!("{commands} of its commands"),
        What::VmMoved { host } => format!("to {host}"),
        What::TokenCreated { name, grants } => {
            format!("{name}: {}", token::granted(grants))
        }
        What::TokenRevoked { name } => name.clone(),
        What::RequestRefused { request, .. } => request.clone(),
        What::FurtherRefusals { count } => format!("{count} further refusals"),
        What::Unknown { detail, .. } => detail.as_ref().map_or_else(String::new, ToString::to_string),
        What::EventApproved { .. }
        | What::EventCompleted { .. }
        | What::OperationRequested { .. }
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
        | What::ClockAccepted => String::new(),
    }
}

/// What happened in a word: the fact's type, or why a request was refused.
pub fn code(fact: &Fact) -> String {
    if let What::RequestRefused { code, .. } = &fact.what {
        return code.clone();
    }
    fact.what.kind()
}

/// A fact in the audit trail: what it is about, what is particular to it, and where.
pub fn in_audit(fact: &Fact, from: Option<IpAddr>) -> String {
    let words = detail(fact);
    let and_words = if words.is_empty() { String::new() } else { format!(": {words}") };
    let names = fact.vms.join(", ");
    let text = match (&fact.what, cause(&fact.what)) {
        (_, Some(cause)) => format!("{cause} of {names} ({}){and_words}", id(fact.event)),
        (What::OperationRequested { cause, targets }, None) => {
            format!("{cause} in {targets} parts ({})", id(fact.operation))
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
