//! What a scenario expects beside what always holds.

use std::time::Duration;

use super::markers::{does_not_drain, drains, restores};
use super::{Case, failed, not_judged, passed, seconds};
use crate::player::base_name;
use crate::recording::{Exit, RecordedEvent, Unread};
use crate::scenario::{Announcement, Expectation};
use crate::verdict::Finding;

pub(super) fn judge(case: &Case<'_>, expectation: &Expectation, findings: &mut Vec<Finding>) {
    if let Expectation::Exits { code } = expectation {
        let vms = case.recording.handled_vms.iter();
        findings.extend(vms.map(|vm| exits(case, vm, *code)));
        return;
    }
    let Some(base) = expectation.event() else { return };
    // The scenario lives as long as the case.
    let events: Vec<_> = case.recording.events.iter().filter(|(name, _)| base_name(name) == base).collect();
    if events.is_empty() {
        let why = format!("the rehearsal ended before {base} was announced");
        let what = match expectation {
            Expectation::Approves { .. } => "approves",
            Expectation::DoesNotApprove { .. } => "does not approve",
            Expectation::Drains { .. } => "is drained for",
            Expectation::DoesNotDrain { .. } => "is not drained for",
            Expectation::Restores { .. } => "is restored after",
            Expectation::Exits { .. } => "exits after",
        };
        findings.push(not_judged(format!("the handler {what} {base}"), why));
    }
    for (name, event) in events {
        let vms: Vec<&str> = match expectation {
            // Also the handlers of VMs that the event does not affect.
            Expectation::DoesNotApprove { .. } | Expectation::DoesNotDrain { .. } => {
                case.recording.handled_vms.iter().map(String::as_str).collect()
            }
            Expectation::Approves { .. }
            | Expectation::Drains { .. }
            | Expectation::Restores { .. }
            | Expectation::Exits { .. } => case.handlers_of(event).collect(),
        };
        match expectation {
            Expectation::Approves { within, .. } => {
                findings.extend(approves(case, &vms, name, event, *within))
            }
            Expectation::DoesNotApprove { .. } => {
                findings.extend(vms.iter().map(|vm| does_not_approve(case, vm, name, event)));
            }
            Expectation::Drains { .. } => findings.extend(vms.iter().map(|vm| drains(case, vm, name, event))),
            Expectation::DoesNotDrain { .. } => {
                findings.extend(vms.iter().map(|vm| does_not_drain(case, vm, name, event)));
            }
            Expectation::Restores { within, .. } => {
                findings.extend(vms.iter().map(|vm| restores(case, vm, name, event, *within)));
            }
            Expectation::Exits { .. } => {}
        }
    }
}

/// One of the event's VMs approves it; an approval speaks for all.
fn approves(
    case: &Case<'_>,
    vms: &[&str],
    name: &str,
    event: &RecordedEvent,
    within: Option<Duration>,
) -> Option<Finding> {
    let who = vms.join(" or ");
    if vms.is_empty() {
        return None;
    }
    let limit = within.map(|within| event.scheduled_at + case.pace().wait(within));
    let deadline = [limit, event.not_before].into_iter().flatten().min().unwrap_or(case.recording.ended_at);
    let expectation = match limit {
        Some(_) => {
            format!("{who} approves {name} within {}", seconds(deadline.saturating_sub(event.scheduled_at)))
        }
        None => format!("{who} approves {name} before it starts"),
    };
    let mut approvals: Vec<_> = vms.iter().flat_map(|vm| case.approvals(vm, event)).collect();
    approvals.sort_by_key(|approval| approval.at);
    let read = vms.iter().filter_map(|vm| case.first_read(vm, event)).min_by_key(|(_, at)| *at);
    let evidence =
        |index: Option<usize>| read.map(|(index, _)| index).into_iter().chain(index).collect::<Vec<_>>();
    let polls = || vms.iter().flat_map(|vm| case.read_or_last_polls(vm, event)).collect();
    let accepted = approvals.iter().find(|approval| approval.status == Some(200));
    Some(match (accepted, approvals.first(), read) {
        (Some(approval), _, _) if approval.at <= deadline => {
            passed(expectation, format!("after {}", seconds(approval.at.saturating_sub(event.scheduled_at))))
        }
        (Some(approval), _, _) => {
            let late = approval.at.saturating_sub(event.scheduled_at);
            let why = format!(
                "it approved after {}, and the event was due after {}",
                seconds(late),
                seconds(deadline.saturating_sub(event.scheduled_at))
            );
            let cure = "prepare within the notice: NotBefore is a deadline, and an eviction has 30 s";
            failed(expectation, why, cure, evidence(Some(approval.index)))
        }
        (None, Some(refused), _) => {
            let status = refused.status.map_or("no answer".to_owned(), |status| format!("status {status}"));
            let why =
                format!("its POST at {} got {status}, and no later one was accepted", seconds(refused.at));
            let cure = "send {\"StartRequests\": [{\"EventId\": \"…\"}]} with the header Metadata: true, and repeat it after an error";
            failed(expectation, why, cure, evidence(Some(refused.index)))
        }
        (None, None, Some((_, at))) => {
            let why = format!("it read the event at {} and never approved it", seconds(at));
            let cure = format!(
                "when the VM is prepared, POST the EventId; Resources lists {}: compare with NOTBEFORE_VM, or compute.name of /metadata/instance, not with the host name",
                event.resources.join(", ")
            );
            failed(expectation, why, &cure, evidence(None))
        }
        (None, None, None) => {
            let why = "it never read a document with the event".to_owned();
            let cure = "poll about once a second, and go on after every error";
            failed(expectation, why, cure, polls())
        }
    })
}

fn does_not_approve(case: &Case<'_>, vm: &str, name: &str, event: &RecordedEvent) -> Finding {
    let expectation = format!("{vm} does not approve {name}");
    match case.approvals(vm, event).next() {
        None => passed(expectation, ""),
        Some(approval) => {
            let why = format!("it approved at {}", seconds(approval.at));
            let cure = match event.resources.iter().any(|resource| resource == vm) {
                false => "compare Resources with the VM's own name, and ignore events of other VMs",
                true => "approve only events with EventStatus Scheduled that the VM has prepared for",
            };
            let read = case.first_read(vm, event).map(|(index, _)| index);
            failed(expectation, why, cure, read.into_iter().chain([approval.index]).collect())
        }
    }
}

/// The event that the scenario waited for in vain.
pub(super) fn reads(case: &Case<'_>, unread: &Unread) -> Finding {
    let Unread { event, step, action } = unread;
    let events = case.recording.events.iter().filter(|(name, _)| crate::player::base_name(name) == event);
    let scheduled_at = events.map(|(_, event)| event.scheduled_at).min().unwrap_or_default();
    let waited = case.recording.ended_at.saturating_sub(scheduled_at);
    let vms = || case.recording.handled_vms.iter();
    let polls = vms().flat_map(|vm| case.polls(vm)).filter(|(_, at, _)| *at >= scheduled_at).count();
    let last = vms().flat_map(|vm| case.last_polls(vm, case.recording.ended_at)).collect();
    let is_advice = case.scenario.announcement(event).is_some_and(Announcement::is_advice);
    let why = format!(
        "in {} none of {} polls showed it, and step {step} ({action}) waits for that",
        seconds(waited),
        polls
    );
    let cure = match is_advice {
        true => "poll with api-version=2024-07-09: older versions do not show advice",
        false => "poll about once a second, and go on after every error",
    };
    failed(format!("a handler reads {event}"), why, cure, last)
}

fn exits(case: &Case<'_>, vm: &str, code: i32) -> Finding {
    let expectation = format!("the handler of {vm} ends with exit code {code}");
    let exit = case.recording.exit(vm);
    match exit {
        Some(Exit { at, code: Some(own), .. }) if own == code => {
            passed(expectation, format!("at {}", seconds(at)))
        }
        Some(Exit { index, at, code: own, .. }) => {
            let own = own.map_or("a signal".to_owned(), |own| format!("exit code {own}"));
            let why = format!("it ended at {} with {own}", seconds(at));
            failed(expectation, why, "end in order when the VM is about to go", vec![index])
        }
        None => {
            let why = "it still ran at the end".to_owned();
            let polls = case.last_polls(vm, case.recording.ended_at);
            failed(expectation, why, "end when the VM is about to go", polls)
        }
    }
}
