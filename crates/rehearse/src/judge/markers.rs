//! What a scenario expects of the handler's markers: that it drains and restores its VM.

use std::time::Duration;

use super::{Approval, Case, failed, not_judged, passed, seconds};
use crate::player::base_name;
use crate::recording::{Marker, RecordedEvent, Request, What};
use crate::scenario::{Announcement, Expectation};
use crate::verdict::{Finding, Outcome};

/// The finding if the handler has no such marker.
fn unknown_marker(case: &Case<'_>, expectation: &str, marker: Marker) -> Option<Finding> {
    let is_known = case.recording.markers.contains(&marker);
    let why = format!("say how the handler shows it: --{}", marker.as_str());
    (!is_known).then(|| not_judged(expectation.to_owned(), why))
}

pub(super) fn drains(case: &Case<'_>, vm: &str, name: &str, event: &RecordedEvent) -> Finding {
    let expectation = format!("{vm} is drained before {name} is approved or starts");
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Drained) {
        return finding;
    }
    let approval = case.approvals(vm, event).next();
    if is_approved_elsewhere(case, vm, event) {
        return not_judged(expectation, "another VM or the operator approved first");
    }
    let until = [approval.map(|one| one.at), event.started_at, event.gone_at].into_iter().flatten().min();
    if let Some(at) = drained_before(case, vm, event, until.unwrap_or(case.recording.ended_at)) {
        return passed(expectation, format!("since {}, before it was announced", seconds(at)));
    }
    let drained = case.recording.markers(vm, Marker::Drained).find(|(_, at)| *at >= event.scheduled_at);
    match (drained, approval) {
        (None, approval) => {
            let cure = "stop taking work and finish what runs when the event is announced";
            let proof = case.read_or_last_polls(vm, event).into_iter().chain(approval.map(|one| one.index));
            match undone_drain(case, vm) {
                Some(((drained, drained_at), (restored, restored_at))) => {
                    let why = format!(
                        "it was drained at {} and restored at {}, and not drained again",
                        seconds(drained_at),
                        seconds(restored_at)
                    );
                    failed(expectation, why, cure, [drained, restored].into_iter().chain(proof).collect())
                }
                None => {
                    let why = "it never reported that it is drained".to_owned();
                    failed(expectation, why, cure, proof.collect())
                }
            }
        }
        // The arrival of the approval is recorded after everything that the handler showed before it.
        (Some((index, at)), Some(approval)) if at > approval.at => {
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
            let proof = case.read_or_last_polls(vm, event).into_iter();
            failed(expectation, why, cure, proof.chain([index]).collect())
        }
        (Some((_, at)), _) => {
            passed(expectation, format!("after {}", seconds(at.saturating_sub(event.scheduled_at))))
        }
    }
}

/// When the VM was drained before the announcement, if it still was at `until`: a handler that has drained for another
/// event, such as advice, need not drain again.
fn drained_before(case: &Case<'_>, vm: &str, event: &RecordedEvent, until: Duration) -> Option<Duration> {
    let drained = case.recording.markers(vm, Marker::Drained).map(|(_, at)| at);
    let at = drained.take_while(|at| *at < event.scheduled_at).last()?;
    let holds = match case.recording.markers.contains(&Marker::Restored) {
        true => {
            !case.recording.markers(vm, Marker::Restored).any(|(_, undone)| (at..=until).contains(&undone))
        }
        // An undo is not shown. While the other event lives, there is no reason for one.
        false => case.recording.events.values().any(|other| {
            let is_live =
                other.scheduled_at <= at && other.gone_at.is_none_or(|gone| gone >= event.scheduled_at);
            is_live && other.resources.iter().any(|name| name == vm)
        }),
    };
    holds.then_some(at)
}

/// A marker's number and time.
type Marked = (usize, Duration);

/// The last `drained` and the `restored` that undid it.
fn undone_drain(case: &Case<'_>, vm: &str) -> Option<(Marked, Marked)> {
    let drained = case.recording.markers(vm, Marker::Drained).last()?;
    let restored = case.recording.markers(vm, Marker::Restored).find(|(_, at)| *at >= drained.1)?;
    Some((drained, restored))
}

/// An approval speaks for all VMs of the event, so another one may have ended this VM's notice.
fn is_approved_elsewhere(case: &Case<'_>, vm: &str, event: &RecordedEvent) -> bool {
    let is_before_start = |approval: Approval| event.started_at.is_none_or(|started| approval.at <= started);
    event.approved_at.is_some() && !case.approvals(vm, event).next().is_some_and(is_before_start)
}

pub(super) fn does_not_drain(case: &Case<'_>, vm: &str, name: &str, event: &RecordedEvent) -> Finding {
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

/// How a handler undoes its preparation.
pub(super) fn restores(
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
    let announcement = case.scenario.announcement(base_name(name));
    let is_advice = announcement.is_some_and(Announcement::is_advice);
    // The handler first sees it Started, when it is too late to prepare.
    let has_no_notice = !is_advice && announcement.is_some_and(|one| one.notice.is_none());
    let how = if is_advice || has_no_notice { "if it was drained" } else { "and not before" };
    let expectation = format!("{vm} is restored within {} after {name} is gone, {how}", seconds(limit));
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Restored) {
        return finding;
    }
    if has_no_notice {
        if let Some(finding) = unknown_marker(case, &expectation, Marker::Drained) {
            return finding;
        }
        let is_drained = |(_, at): (usize, Duration)| at >= event.scheduled_at;
        if !case.recording.markers(vm, Marker::Drained).any(is_drained) {
            return passed(expectation, "it was not drained");
        }
    }
    let Some(gone_at) = event.gone_at else {
        return not_judged(expectation, format!("the rehearsal ended before {name} was gone"));
    };
    match is_advice {
        true => restores_after_advice(case, vm, event, (gone_at, limit), expectation),
        false => restores_after_event(case, vm, event, (gone_at, limit), expectation),
    }
}

/// After an event, with the time at which it was gone and the limit after that.
fn restores_after_event(
    case: &Case<'_>,
    vm: &str,
    event: &RecordedEvent,
    (gone_at, limit): (Duration, Duration),
    expectation: String,
) -> Finding {
    let drained_at = case.recording.markers(vm, Marker::Drained).find(|(_, at)| *at >= event.scheduled_at);
    if drained_at.is_none()
        && drained_before(case, vm, event, event.scheduled_at).is_none()
        && case.recording.markers.contains(&Marker::Drained)
        && is_approved_elsewhere(case, vm, event)
    {
        return not_judged(expectation, "another VM or the operator approved before it was drained");
    }
    let since = drained_at.map_or(event.scheduled_at, |(_, at)| at);
    let restored = || case.recording.markers(vm, Marker::Restored).filter(|(_, at)| *at >= since);
    let early = || restored().filter(|(_, at)| *at < gone_at);
    let wrong = early().find(|(_, at)| !last_document_lacks(case, vm, event, *at));
    if let Some((index, at)) = wrong {
        let why =
            format!("it was restored at {}, and the event was there until {}", seconds(at), seconds(gone_at));
        let cure = "only a document that no longer lists the event is the all-clear; an error or an empty body is not";
        let last = case.recording.requests(vm).filter(|(_, before, _)| *before <= at).last();
        let last = last.map(|(index, _, _)| index);
        return failed(expectation, why, cure, last.into_iter().chain([index]).collect());
    }
    // The event had left the document and came back. The VM stays restored, unless it is drained again.
    if let Some((_, at)) = early().last()
        && !case.recording.markers(vm, Marker::Drained).any(|(_, drained)| drained > at)
    {
        return passed(expectation, format!("at {}, when the document did not list it", seconds(at)));
    }
    match restored().find(|(_, at)| *at >= gone_at) {
        Some((_, at)) if at <= gone_at + limit => {
            passed(expectation, format!("after {}", seconds(at.saturating_sub(gone_at))))
        }
        late => not_restored(case, vm, event, late, gone_at, expectation),
    }
}

/// After advice: a handler need not drain, and may restore before the advice is gone.
fn restores_after_advice(
    case: &Case<'_>,
    vm: &str,
    event: &RecordedEvent,
    (gone_at, limit): (Duration, Duration),
    expectation: String,
) -> Finding {
    if let Some(finding) = unknown_marker(case, &expectation, Marker::Drained) {
        return finding;
    }
    let drained = case.recording.markers(vm, Marker::Drained).filter(|(_, at)| *at >= event.scheduled_at);
    let Some((drained, drained_at)) = drained.last() else {
        return passed(expectation, "it was not drained");
    };
    match case.recording.markers(vm, Marker::Restored).find(|(_, at)| *at >= drained_at) {
        Some((_, at)) if at < gone_at => passed(expectation, format!("at {}", seconds(at))),
        Some((_, at)) if at <= gone_at.max(drained_at) + limit => {
            passed(expectation, format!("after {}", seconds(at.saturating_sub(gone_at))))
        }
        late => {
            let mut finding = not_restored(case, vm, event, late, gone_at, expectation);
            if let Outcome::Failed { evidence, .. } = &mut finding.outcome {
                evidence.insert(0, drained);
            }
            finding
        }
    }
}

/// A VM that was restored too late, or never.
fn not_restored(
    case: &Case<'_>,
    vm: &str,
    event: &RecordedEvent,
    late: Option<Marked>,
    gone_at: Duration,
    expectation: String,
) -> Finding {
    let why = match late {
        Some((_, at)) => format!("it took {}", seconds(at.saturating_sub(gone_at))),
        None => "it never reported that it is restored".to_owned(),
    };
    let drained_at = case.recording.markers(vm, Marker::Drained).last().map(|(_, at)| at);
    let restart = case.recording.entries.iter().enumerate().find(|(_, entry)| {
        entry.what == What::HandlerStarted
            && entry.vm.as_deref() == Some(vm)
            && drained_at.is_some_and(|drained| drained < entry.at)
    });
    let cure = match restart {
        Some(_) => {
            "keep what was prepared in a file, such as one in NOTBEFORE_STATE: the handler was restarted since"
        }
        None => "undo the preparation when the document no longer lists the event, also after a cancel",
    };
    let read = case.polls(vm).find(|(_, at, request)| *at > gone_at && lacks(request, event));
    let mut evidence = match read {
        Some((index, _, _)) => vec![index],
        None => case.last_polls(vm, case.recording.ended_at),
    };
    evidence.extend(restart.map(|(index, _)| index));
    evidence.extend(late.map(|(index, _)| index));
    failed(expectation, why, cure, evidence)
}

/// Whether a poll was answered with a document without the event.
fn lacks(request: &Request, event: &RecordedEvent) -> bool {
    request.shows.as_ref().is_some_and(|ids| !ids.contains(&event.id))
}

/// Whether the last document that the VM had asked for by `at` does not list the event.
fn last_document_lacks(case: &Case<'_>, vm: &str, event: &RecordedEvent, at: Duration) -> bool {
    let documents = case.polls(vm).filter(|(_, asked, request)| *asked <= at && request.shows.is_some());
    documents.last().is_some_and(|(_, _, request)| lacks(request, event))
}
