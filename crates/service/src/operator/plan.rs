//! Presents plans: what an operation would do.

use std::collections::HashMap;

use jiff::Timestamp;
use notbefore_core::{Blocker, Operation, Target};
use notbefore_engine::Preview;
use notbefore_wire::operator::Listening;
use notbefore_wire::operator::plan::{Plan, PlannedEvent, SILENT_NAMED_MAX};

use super::access::CommandReasons;
use super::present;
use super::wire_names::WireName;
use crate::names;
use crate::view::{ScopeView, View};

/// Presents a preview.
pub fn plan(view: &View, preview: &Preview, now: Timestamp, reasons: CommandReasons) -> Plan {
    let Preview { operation, deallocated, refused, at_once } = preview;
    let at_once: HashMap<_, _> = at_once.iter().map(|(event, why)| (*event, why)).collect();
    // As for a scheduled operation: NotBefore means nothing if no event waits for it, and for an advisory.
    let waits = !operation.cause.is_advisory()
        && operation.targets.iter().any(|part| part.refused.is_none() && !at_once.contains_key(&part.event));
    let not_before = operation.not_before.filter(|_| waits);
    let why: HashMap<_, _> = refused.iter().map(|(event, why)| (*event, why)).collect();
    let mut plan = Plan {
        host: reasons.host(operation.host.as_deref()),
        event_type: operation.cause.event_type().wire_name(),
        cause: operation.cause.wire_name(),
        release: operation.release.wire_name(),
        not_before,
        notice_seconds: not_before.and_then(|at| u64::try_from(at.duration_since(now).as_secs()).ok()),
        vms: 0,
        scopes: 0,
        deallocated: deallocated.len(),
        listening: 0,
        listening_unknown: 0,
        silent: Vec::new(),
        events: Vec::new(),
        operations: Vec::new(),
    };
    // Parts are sorted by scope.
    for parts in operation.targets.chunk_by(|one, two| one.scope == two.scope) {
        plan.scopes += 1;
        let scope = parts.first().and_then(|part| view.scope(&part.scope));
        for part in parts {
            let mut listening = 0;
            for one in &part.resources {
                match view.listening(one.vm, now) {
                    Listening::Yes if part.refused.is_none() => listening += 1,
                    Listening::Unclear if part.refused.is_none() => plan.listening_unknown += 1,
                    Listening::Yes | Listening::Unclear | Listening::No | Listening::Unknown(_) => {
                        let room = SILENT_NAMED_MAX - plan.silent.len().min(SILENT_NAMED_MAX);
                        plan.silent
                            .extend(scope.map(|scope| names::path(scope, one.vm)).into_iter().take(room));
                    }
                }
            }
            plan.vms += part.resources.len();
            plan.listening += listening;
            plan.events.push(PlannedEvent {
                scope: part.scope.to_string(),
                update_domain: part.update_domain,
                resources: part.resources.iter().map(|one| present::resource(one, reasons)).collect(),
                listening,
                starts_because: at_once
                    .get(&part.event)
                    .filter(|_| operation.not_before.is_some())
                    .map(ToString::to_string),
                waits_for: scope.and_then(|scope| will_wait(scope, operation, part)),
                refused: part.refused.clone(),
                refused_because: why.get(&part.event).map(ToString::to_string),
            });
        }
    }
    plan
}

/// The update domains that an event will have to wait for, as far as known in advance.
fn will_wait(scope: &ScopeView, operation: &Operation, part: &Target) -> Option<String> {
    if !operation.cause.waits_for_other_update_domains() || part.refused.is_some() {
        return None;
    }
    if let Some(Blocker::Event { event, update_domain }) =
        scope.scope.active_in_other_domains(part.update_domain).next()
    {
        return Some(format!("the end of event {event} in update domain {update_domain}"));
    }
    let others = operation.other_update_domains(part);
    let list = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let domains = if others.len() == 1 { "domain" } else { "domains" };
    let turn = format!("its turn: update {domains} {list} of the scope must not be down at the same time");
    (!others.is_empty()).then_some(turn)
}
