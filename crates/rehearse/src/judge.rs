//! The judge: compares a recording with what the scenario expects. Pure; it knows nothing of particular handlers.
//!
//! Some expectations hold in every scenario (`always`): the handler polls, sends the header, approves only its own
//! events, approves nothing that was cancelled, and keeps running. The scenario adds its own (`expected`).
//!
//! A failure says what happened, what to change, and which entries of the recording prove it.

mod always;
mod expected;

use std::time::Duration;

use crate::pace::Pace;
use crate::recording::{RecordedEvent, Recording};
use crate::scenario::Scenario;
use crate::verdict::{Finding, Outcome, Verdict};

/// Entries that a failure cites at most.
const EVIDENCE_MAX: usize = 4;

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
    if let Some(crowd) = &recording.crowd {
        let expectation = format!("the platform answers {} VMs once a second", crowd.vms);
        let note = format!("{} answers, slowest {}", crowd.answers, seconds(crowd.slowest));
        findings.push(match crowd.failures {
            0 => passed(expectation, note),
            many => {
                let cure = "close other programs on this machine, or use fewer VMs";
                failed(expectation, format!("{many} polls were not answered, {note}"), cure, Vec::new())
            }
        });
    }
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

    /// Approvals of an event by a VM: number, time and status.
    fn approvals(&self, vm: &'a str, event: &'a RecordedEvent) -> impl Iterator<Item = Approval> {
        self.recording.requests(vm).filter_map(|(index, at, request)| {
            let approves = request.is_approval() && request.approves.contains(&event.id);
            approves.then_some(Approval {
                index,
                at,
                answered_at: request.answered_at,
                status: request.status,
            })
        })
    }

    /// The first poll of a VM whose answer showed the event.
    fn first_read(&self, vm: &'a str, event: &RecordedEvent) -> Option<(usize, Duration)> {
        self.recording.requests(vm).find_map(|(index, _, request)| {
            let shows =
                request.is_poll() && request.shows.as_ref().is_some_and(|ids| ids.contains(&event.id));
            shows.then_some((index, request.answered_at))
        })
    }
}

#[derive(Clone, Copy)]
struct Approval {
    index: usize,
    at: Duration,
    answered_at: Duration,
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
