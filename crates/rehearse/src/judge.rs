//! The judge: compares a recording with what the scenario expects. Pure; it knows nothing of particular handlers.
//!
//! Some expectations hold in every scenario (`always`): the handler polls, sends the header, approves only its own
//! events, approves nothing that was cancelled, and keeps running. The scenario adds its own (`expected`, and
//! `markers` about drains and restores).
//!
//! A failure says what happened, what to change, and which entries of the recording prove it.

mod always;
mod crowd;
mod expected;
mod markers;

use std::time::Duration;

use crate::pace::Pace;
use crate::recording::{Entry, RecordedEvent, Recording, Request, What};
use crate::scenario::Scenario;
use crate::verdict::{Finding, Outcome, Verdict};

/// Entries that a failure cites at most.
const EVIDENCE_MAX: usize = 4;

/// Polls that prove an omission.
const LAST_POLLS: usize = 2;

/// Judges a recording of the scenario.
pub fn judge(scenario: &Scenario, recording: &Recording) -> Verdict {
    let case = Case { scenario, recording };
    let mut findings = Vec::new();
    for vm in &recording.handled_vms {
        always::judge(&case, vm, &mut findings);
    }
    for expectation in &scenario.expectations {
        expected::judge(&case, expectation, &mut findings);
    }
    findings.extend(recording.refused_steps.iter().map(|refused| {
        let why = format!("the platform refused it: {}", refused.why);
        not_judged(format!("step {} takes place", refused.step), why)
    }));
    findings.extend(recording.unread.as_ref().map(|unread| expected::reads(&case, unread)));
    findings.extend(recording.crowd.as_ref().map(|summary| crowd::judge(scenario, summary)));
    Verdict { scenario: scenario.name.clone(), findings }
}

/// What is judged.
#[derive(Clone, Copy)]
struct Case<'a> {
    scenario: &'a Scenario,
    recording: &'a Recording,
}

impl<'a> Case<'a> {
    fn pace(&self) -> Pace {
        self.recording.pace
    }

    /// VMs of the event that have a handler.
    fn handlers_of(&self, event: &'a RecordedEvent) -> impl Iterator<Item = &'a str> {
        let vms = self.recording.handled_vms.iter().map(String::as_str);
        vms.filter(|vm| event.resources.iter().any(|name| name == vm))
    }

    fn polls(&self, vm: &'a str) -> impl Iterator<Item = (usize, Duration, &'a Request)> {
        self.recording.requests(vm).filter(|(_, _, request)| request.is_poll())
    }

    /// The last polls of a VM until `at`, as proof of what it did not do. A handler that never polled has its start.
    fn last_polls(&self, vm: &'a str, at: Duration) -> Vec<usize> {
        let polls: Vec<usize> =
            self.polls(vm).filter(|(_, asked, _)| *asked <= at).map(|(index, _, _)| index).collect();
        match polls.len() {
            0 => self.start_of(vm).into_iter().collect(),
            count => polls[count.saturating_sub(LAST_POLLS)..].to_vec(),
        }
    }

    /// The first poll that showed the event, or if there is none, the last ones before the event was gone.
    fn read_or_last_polls(&self, vm: &'a str, event: &RecordedEvent) -> Vec<usize> {
        match self.first_read(vm, event) {
            Some((index, _)) => vec![index],
            None => self.last_polls(vm, event.gone_at.unwrap_or(self.recording.ended_at)),
        }
    }

    /// The last start of a VM's handler.
    fn start_of(&self, vm: &str) -> Option<usize> {
        let is_start = |entry: &Entry| entry.what == What::HandlerStarted && entry.vm.as_deref() == Some(vm);
        self.recording.entries.iter().rposition(is_start)
    }

    /// Approvals of an event by a VM: number, time and status.
    fn approvals(&self, vm: &'a str, event: &'a RecordedEvent) -> impl Iterator<Item = Approval> {
        self.recording.requests(vm).filter_map(|(index, at, request)| {
            let approves = request.is_approval() && request.approves.contains(&event.id);
            approves.then_some(Approval { index, at, status: request.status })
        })
    }

    /// The first poll of a VM whose answer showed the event.
    fn first_read(&self, vm: &'a str, event: &RecordedEvent) -> Option<(usize, Duration)> {
        self.polls(vm).find_map(|(index, _, request)| {
            let shows = request.shows.as_ref().is_some_and(|ids| ids.contains(&event.id));
            shows.then_some((index, request.answered_at))
        })
    }
}

#[derive(Clone, Copy)]
struct Approval {
    index: usize,
    at: Duration,
    status: Option<u16>,
}

fn passed(expectation: String, note: impl Into<String>) -> Finding {
    Finding { expectation, outcome: Outcome::Passed { note: note.into() } }
}

fn failed(expectation: String, why: String, cure: &str, mut evidence: Vec<usize>) -> Finding {
    evidence.truncate(EVIDENCE_MAX);
    Finding { expectation, outcome: Outcome::Failed { why, cure: cure.to_owned(), evidence } }
}

fn not_judged(expectation: String, why: impl Into<String>) -> Finding {
    Finding { expectation, outcome: Outcome::NotJudged { why: why.into() } }
}

/// A time since the beginning, or a span.
fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

#[cfg(test)]
mod tests;
