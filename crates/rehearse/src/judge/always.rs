//! What every handler must do in every scenario.

use std::time::Duration;

use notbefore_wire::operator::EventType;

use super::{Case, failed, passed, seconds};
use crate::recording::{Exit, Request, What};
use crate::stage::FIRST_REQUEST_MAX;
use crate::verdict::Finding;

/// Slack of the longest gap between polls: the machine may be busy.
const GAP_SLACK: Duration = Duration::from_millis(500);

/// Most polls in [`RATE_WINDOW`]: five a second. Azure advises one, and limits what a VM may ask.
const POLLS_MAX: usize = 50;
/// Polls may come in bursts, such as after an error; the mean counts.
const RATE_WINDOW: Duration = Duration::from_secs(10);

pub(super) fn judge(case: &Case<'_>, vm: &str, findings: &mut Vec<Finding>) {
    findings.push(polls(case, vm));
    findings.extend(polls_too_often(case, vm));
    if case.recording.requests(vm).next().is_none() {
        findings.extend(keeps_running(case, vm).filter(Finding::is_failed));
        return;
    }
    findings.push(sends_header(case, vm));
    findings.push(approves_only_its_own(case, vm));
    findings.extend(approves_only_what_is_listed(case, vm));
    findings.extend(keeps_running(case, vm));
}

/// Spans of time in which the VM's handler ran, and whether it ended by itself.
fn runs(case: &Case<'_>, vm: &str) -> Vec<(Duration, Duration)> {
    let mut runs: Vec<(Duration, Option<Duration>)> = Vec::new();
    let mut has_process = false;
    for entry in case.recording.entries.iter().filter(|entry| entry.vm.as_deref() == Some(vm)) {
        match &entry.what {
            What::HandlerStarted => {
                has_process = true;
                runs.push((entry.at, None));
            }
            What::HandlerExited { .. } | What::HandlerStopped => {
                if let Some((_, end @ None)) = runs.last_mut() {
                    *end = Some(entry.at);
                }
            }
            What::Request(_)
            | What::Marker { .. }
            | What::Output { .. }
            | What::Step { .. }
            | What::Event { .. } => {}
        }
    }
    if !has_process {
        // A handler that the rehearsal did not start is known from its first request on.
        runs.extend(case.recording.requests(vm).next().map(|(_, at, _)| (at, None)));
    }
    let ended_at = case.recording.ended_at;
    runs.into_iter().map(|(start, end)| (start, end.unwrap_or(ended_at))).collect()
}

fn polls(case: &Case<'_>, vm: &str) -> Finding {
    let every = case.scenario.polls_every;
    let expectation = format!("{vm} polls at least every {}", seconds(every));
    let polls: Vec<_> = case.polls(vm).collect();
    if polls.is_empty() {
        let index = case.recording.requests(vm).next().map(|(index, _, _)| index);
        let why = match index {
            Some(_) => "it never asked for /metadata/scheduledevents".to_owned(),
            None => "no request arrived".to_owned(),
        };
        let cure = "poll the URL in NOTBEFORE_ENDPOINT, or run a handler with a fixed address with --netns";
        return failed(expectation, why, cure, index.or_else(|| case.start_of(vm)).into_iter().collect());
    }
    if !polls.iter().any(|(_, _, request)| matches!(request.status, Some(200 | 304))) {
        let (index, _, request) = polls[0];
        let status = request.status.map_or("no answer".to_owned(), |status| format!("status {status}"));
        let why = format!("none of its {} polls got a document; the first got {status}", polls.len());
        let cure = "ask for /metadata/scheduledevents?api-version=2020-07-01 with the header Metadata: true";
        return failed(expectation, why, cure, vec![index]);
    }
    let mut longest = (Duration::ZERO, Vec::new(), Duration::ZERO);
    for (start, end) in runs(case, vm) {
        // The time in which a handler waits for an answer is the platform's, and the time to its first poll is that of
        // its runtime, up to a limit.
        let (mut since, mut last) = (start + FIRST_REQUEST_MAX, None);
        for (index, at, request) in polls.iter().filter(|(_, at, _)| (start..=end).contains(at)) {
            let gap = at.saturating_sub(since);
            if gap > longest.0 {
                longest = (gap, last.into_iter().chain([*index]).collect(), since);
            }
            let before = last.map_or(Duration::ZERO, |_| since);
            (since, last) = (request.answered_at.max(before), Some(*index));
        }
        let gap = end.saturating_sub(since);
        if gap > longest.0 {
            longest = (gap, last.into_iter().collect(), since);
        }
    }
    let (gap, mut evidence, since) = longest;
    if evidence.is_empty() {
        evidence.extend(case.start_of(vm));
    }
    match gap > every + GAP_SLACK {
        false => passed(expectation, format!("{} polls, longest gap {}", polls.len(), seconds(gap))),
        true => {
            let why = format!("it did not poll for {} from {} on", seconds(gap), seconds(since));
            let cure = "poll in a loop that survives every error, about once a second; a Spot VM has 30 s";
            failed(expectation, why, cure, evidence)
        }
    }
}

fn sends_header(case: &Case<'_>, vm: &str) -> Finding {
    let expectation = format!("{vm} sends the header Metadata: true");
    let wrong =
        case.recording.requests(vm).find(|(_, _, request)| request.metadata.as_deref() != Some("true"));
    match wrong {
        None => passed(expectation, ""),
        Some((index, at, request)) => {
            let what = match &request.metadata {
                Some(value) => format!("the {} at {} has Metadata: {value}", request.method, seconds(at)),
                None => format!("the {} at {} has no such header", request.method, seconds(at)),
            };
            let cure =
                "send 'Metadata: true', in lower case, with every GET and POST; Azure answers 400 without it";
            failed(expectation, what, cure, vec![index])
        }
    }
}

fn approves_only_its_own(case: &Case<'_>, vm: &str) -> Finding {
    let expectation = format!("{vm} approves only events that affect it");
    for (index, at, request) in case.recording.requests(vm).filter(|(_, _, request)| request.is_approval()) {
        if request.approves.is_empty() {
            let cure = "send {\"StartRequests\": [{\"EventId\": \"…\"}]} as the body";
            let why = format!("the POST at {} names no EventId", seconds(at));
            return failed(expectation, why, cure, vec![index]);
        }
        for id in &request.approves {
            let known = case.recording.events.iter().find(|(_, event)| event.id == *id);
            let why = match known {
                None => format!("the POST at {} names the unknown EventId {id}", seconds(at)),
                Some((name, event)) if !event.resources.iter().any(|name| name == vm) => {
                    let resources = event.resources.join(", ");
                    format!("the POST at {} approves {name}, which affects only {resources}", seconds(at))
                }
                Some(_) => continue,
            };
            let cure = "compare Resources with the VM's own name, and approve only events that list it";
            let read = known.and_then(|(_, event)| case.first_read(vm, event)).map(|(index, _)| index);
            return failed(expectation, why, cure, read.into_iter().chain([index]).collect());
        }
    }
    passed(expectation, "")
}

/// An approval must be of an event that the VM's last document listed: one that is missing there was cancelled, is over,
/// or was never announced. A handler that approves from memory speaks for VMs that are not prepared any more.
fn approves_only_what_is_listed(case: &Case<'_>, vm: &str) -> Option<Finding> {
    let mut document: Option<(usize, &Request)> = None;
    for (index, at, request) in case.recording.requests(vm) {
        if request.is_poll() && request.shows.is_some() {
            document = Some((index, request));
        }
        let Some((read, poll)) = document.filter(|_| request.is_approval()) else { continue };
        // An approval that was sent while a poll waited for its answer cannot know the answer.
        let Some(shows) = poll.shows.as_ref().filter(|_| at > poll.answered_at) else { continue };
        let mut unlisted = request.approves.iter().filter(|id| !shows.contains(id));
        let Some((name, event)) = unlisted.find_map(|id| {
            let known = case.recording.events.iter().find(|(_, event)| event.id == *id);
            known.filter(|(_, event)| event.resources.iter().any(|name| name == vm))
        }) else {
            continue;
        };
        let what = if event.is_cancelled { "was cancelled" } else { "its last document does not list" };
        let gone = if event.scheduled_at > poll.answered_at { "without" } else { "that no longer lists" };
        let why = format!(
            "it read a document {gone} {name} at {}, and approved {name} at {}",
            seconds(poll.answered_at),
            seconds(at)
        );
        let cure = "read the document again before the approval, and forget events that it no longer lists";
        return Some(failed(
            format!("{vm} does not approve an event that {what}"),
            why,
            cure,
            vec![read, index],
        ));
    }
    let is_cancelled = case.recording.events.values().any(|event| event.is_cancelled);
    is_cancelled.then(|| passed(format!("{vm} does not approve an event that was cancelled"), ""))
}

fn polls_too_often(case: &Case<'_>, vm: &str) -> Option<Finding> {
    if case.recording.is_by_hand {
        return None;
    }
    let polls: Vec<_> = case.polls(vm).map(|(index, at, _)| (index, at)).collect();
    let is_burst = |burst: &&[(usize, Duration)]| burst[POLLS_MAX].1.saturating_sub(burst[0].1) < RATE_WINDOW;
    let burst = polls.windows(POLLS_MAX + 1).find(is_burst)?;
    let (since, first) = (burst[0].1, burst[0].0);
    let window = polls.iter().filter(|(_, at)| (since..since + RATE_WINDOW).contains(at));
    let (count, last) = window.fold((0, first), |(count, _), (index, _)| (count + 1, *index));
    let why = format!("it polled {count} times in {} from {} on", seconds(RATE_WINDOW), seconds(since));
    let cure = "wait a second after each poll, also after an error and after an approval";
    let most = POLLS_MAX as f64 / RATE_WINDOW.as_secs_f64();
    let expectation = format!("{vm} polls at most {most} times a second, over ten seconds");
    Some(failed(expectation, why, cure, vec![first, last]))
}

fn keeps_running(case: &Case<'_>, vm: &str) -> Option<Finding> {
    let has_process = case
        .recording
        .entries
        .iter()
        .any(|entry| entry.what == What::HandlerStarted && entry.vm.as_deref() == Some(vm));
    if !case.scenario.keeps_running || !has_process {
        return None;
    }
    let expectation = format!("the handler of {vm} keeps running");
    let exit = case.recording.exit(vm);
    let Some(Exit { index, at, code, signal }) = exit else { return Some(passed(expectation, "")) };
    // A VM that is evicted or deleted needs its handler no longer.
    let ends = |event: &&crate::recording::RecordedEvent| {
        [EventType::Preempt, EventType::Terminate].contains(&event.event_type)
            && event.resources.iter().any(|name| name == vm)
            && (event.started_at.is_some_and(|started| at >= started)
                || (at >= event.scheduled_at && code == Some(0)))
    };
    if case.recording.events.values().find(ends).is_some() {
        return Some(passed(expectation, format!("it ended at {}, as its VM does", seconds(at))));
    }
    let how = match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    };
    let last = case.recording.requests(vm).filter(|(_, before, _)| *before <= at).last();
    let has_failed = last.is_some_and(|(_, _, request)| !matches!(request.status, Some(200 | 304)));
    let why = format!("it ended at {} with {how}", seconds(at));
    let cure = match code {
        Some(0) => "poll in a loop; for a handler that runs once and ends, use --repeat 10s",
        Some(_) | None if has_failed => {
            "catch every error of a request (status, timeout, connection, JSON), log it, and poll again"
        }
        Some(_) | None => "its output says why; a handler runs until its VM is gone",
    };
    // The last line that it printed may have the reason.
    let lines = case.recording.entries.iter().enumerate().filter(|(_, entry)| {
        entry.at <= at && entry.vm.as_deref() == Some(vm) && matches!(entry.what, What::Output { .. })
    });
    let line = lines.map(|(index, _)| index).next_back();
    let last = last.map(|(index, _, _)| index);
    Some(failed(expectation, why, cure, last.into_iter().chain(line).chain([index]).collect()))
}
