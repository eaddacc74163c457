//! What a scenario expects beside what always holds.

use std::time::Duration;

use super::{Approval, Case, failed, not_judged, passed, seconds};
use crate::player::base_name;
use crate::recording::{Exit, Marker, RecordedEvent, Unread};
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
            let cure =
                "when the VM is prepared, POST the EventId; otherwise the VM waits out its whole notice";
            failed(expectation, why, cure, evidence(None))
        }
        (None, None, None) => {
            let why = "it never read a document with the event".to_owned();
            let cure = "poll about once a second, and go on after every error";
            failed(expectation, why, cure, Vec::new())
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

/// The finding if the handler has no such marker.
fn unknown_marker(case: &Case<'_>, expectation: &str, marker: Marker) -> Option<Finding> {
    let is_known = case.recording.markers.contains(&marker);
    let why = format!("say how the handler shows it: --{}", marker.as_str());
    (!is_known).then(|| not_judged(expectation.to_owned(), why))
}

fn drains(case: &Case<'_>, vm: &str, name: &str, event: &RecordedEvent) -> Finding {
    let expectation = format!("{vm} is drained before {name} is approved or starts");
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Drained) {
        return finding;
    }
    let approval = case.approvals(vm, event).next();
    if is_approved_elsewhere(case, vm, event) {
        return not_judged(expectation, "another VM or the operator approved first");
    }
    let drained = case.recording.markers(vm, Marker::Drained).find(|(_, at)| *at >= event.scheduled_at);
    let read = case.first_read(vm, event).map(|(index, _)| index);
    match (drained, approval) {
        (None, approval) => {
            let why = "it never reported that it is drained".to_owned();
            let cure = "stop taking work and finish what runs when the event is announced";
            failed(expectation, why, cure, read.into_iter().chain(approval.map(|one| one.index)).collect())
        }
        // What a handler shows before it gets the answer, it did before the approval.
        (Some((index, at)), Some(approval)) if at > approval.answered_at => {
            let why =
                format!("it approved at {} and was drained only at {}", seconds(approval.at), seconds(at));
            let cure = "approve after the preparation: the platform may start at once";
            failed(expectation, why, cure, vec![approval.index, index])
        }
        (Some((index, at)), _) if event.started_at.is_some_and(|started| at > started) => {
            let started = event.started_at.unwrap_or_default();
            let why =
                format!("the event started at {}, and it was drained at {}", seconds(started), seconds(at));
            let cure = "begin as soon as the event is in the document, and stay within the notice";
            failed(expectation, why, cure, read.into_iter().chain([index]).collect())
        }
        (Some((_, at)), _) => {
            passed(expectation, format!("after {}", seconds(at.saturating_sub(event.scheduled_at))))
        }
    }
}

/// An approval speaks for all VMs of the event, so another one may have ended this VM's notice.
fn is_approved_elsewhere(case: &Case<'_>, vm: &str, event: &RecordedEvent) -> bool {
    let is_before_start = |approval: Approval| event.started_at.is_none_or(|started| approval.at <= started);
    event.approved_at.is_some() && !case.approvals(vm, event).next().is_some_and(is_before_start)
}

fn does_not_drain(case: &Case<'_>, vm: &str, name: &str, event: &RecordedEvent) -> Finding {
    let expectation = format!("{vm} is not drained for {name}");
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Drained) {
        return finding;
    }
    let drained = case.recording.markers(vm, Marker::Drained).filter(|(_, at)| *at >= event.scheduled_at);
    match drained.into_iter().find(|(_, at)| !may_be_drained(case, vm, *at)) {
        None => passed(expectation, ""),
        Some((index, at)) => {
            let why = format!("it was drained at {}", seconds(at));
            let cure = match event.resources.iter().any(|resource| resource == vm) {
                true => "react in proportion to EventType, EventStatus and DurationInSeconds",
                false => "compare Resources with the VM's own name, and ignore events of other VMs",
            };
            let read = case.first_read(vm, event).map(|(index, _)| index);
            failed(expectation, why, cure, read.into_iter().chain([index]).collect())
        }
    }
}

/// Whether a live event is a reason to drain the VM: it affects the VM, and the scenario does not forbid it.
fn may_be_drained(case: &Case<'_>, vm: &str, at: Duration) -> bool {
    let is_forbidden = |name: &str| {
        let forbids = |one: &Expectation| matches!(one, Expectation::DoesNotDrain { event } if event == base_name(name));
        case.scenario.expectations.iter().any(forbids)
    };
    case.recording.events.iter().any(|(name, event)| {
        let is_live = event.scheduled_at <= at && event.gone_at.is_none_or(|gone_at| at <= gone_at);
        is_live && event.resources.iter().any(|resource| resource == vm) && !is_forbidden(name)
    })
}

fn restores(
    case: &Case<'_>,
    vm: &str,
    name: &str,
    event: &RecordedEvent,
    within: Option<Duration>,
) -> Finding {
    let limit = match within {
        Some(within) => case.pace().wait(within),
        None => case.scenario.rest(case.pace()),
    };
    let expectation =
        format!("{vm} is restored within {} after {name} is gone, and not before", seconds(limit));
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Restored) {
        return finding;
    }
    let drained_at = case.recording.markers(vm, Marker::Drained).find(|(_, at)| *at >= event.scheduled_at);
    if drained_at.is_none()
        && case.recording.markers.contains(&Marker::Drained)
        && is_approved_elsewhere(case, vm, event)
    {
        return not_judged(expectation, "another VM or the operator approved before it was drained");
    }
    let since = drained_at.map_or(event.scheduled_at, |(_, at)| at);
    let restored = case.recording.markers(vm, Marker::Restored).find(|(_, at)| *at >= since);
    let Some(gone_at) = event.gone_at else {
        return not_judged(expectation, format!("the rehearsal ended before {name} was gone"));
    };
    match restored {
        Some((index, at)) if at < gone_at => {
            let why = format!(
                "it was restored at {}, and the event was there until {}",
                seconds(at),
                seconds(gone_at)
            );
            let cure = "only a document that no longer lists the event is the all-clear; an error or an empty body is not";
            let last = case.recording.requests(vm).filter(|(_, before, _)| *before <= at).last();
            failed(
                expectation,
                why,
                cure,
                last.map(|(index, _, _)| index).into_iter().chain([index]).collect(),
            )
        }
        Some((_, at)) if at <= gone_at + limit => {
            passed(expectation, format!("after {}", seconds(at.saturating_sub(gone_at))))
        }
        late => {
            let why = match late {
                Some((_, at)) => format!("it took {}", seconds(at.saturating_sub(gone_at))),
                None => "it never reported that it is restored".to_owned(),
            };
            let cure =
                "undo the preparation when the document no longer lists the event, also after a cancel";
            let read = case.recording.requests(vm).find(|(_, at, request)| {
                *at > gone_at
                    && request.is_poll()
                    && request.shows.as_ref().is_some_and(|ids| !ids.contains(&event.id))
            });
            failed(expectation, why, cure, read.map(|(index, _, _)| index).into_iter().collect())
        }
    }
}

/// The event that the scenario waited for in vain.
pub(super) fn reads(case: &Case<'_>, unread: &Unread) -> Finding {
    let Unread { event, step, action } = unread;
    let events = case.recording.events.iter().filter(|(name, _)| crate::player::base_name(name) == event);
    let scheduled_at = events.map(|(_, event)| event.scheduled_at).min().unwrap_or_default();
    let waited = case.recording.ended_at.saturating_sub(scheduled_at);
    let vms = case.recording.handled_vms.iter();
    let polls = vms.flat_map(|vm| case.recording.requests(vm)).filter(|(_, _, request)| request.is_poll());
    let polls: Vec<usize> =
        polls.filter(|(_, at, _)| *at >= scheduled_at).map(|(index, _, _)| index).collect();
    let is_advice = case.scenario.announcement(event).is_some_and(Announcement::is_advice);
    let why = format!(
        "in {} none of {} polls showed it, and step {step} ({action}) waits for that",
        seconds(waited),
        polls.len()
    );
    let cure = match is_advice {
        true => "poll with api-version=2024-07-09: older versions do not show advice",
        false => "poll about once a second, and go on after every error",
    };
    failed(format!("a handler reads {event}"), why, cure, polls.last().copied().into_iter().collect())
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
        None => failed(
            expectation,
            "it still ran at the end".to_owned(),
            "end when the VM is about to go",
            Vec::new(),
        ),
    }
}
