//! Verdicts on recordings made by hand. Each bad habit of a handler fails its expectation, and only that.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_wire::operator::EventType;
use uuid::Uuid;

use super::*;
use crate::recording::{Entry, Marker, Request, What};
use crate::scenario::{Scenario, parse};

const EVENT: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn scenario(expect: &str) -> Scenario {
    let text = format!(
        "summary: x\nvms: [a, {{ name: b, handler: false }}]\npolls_every: 5s\nsteps:\n  - {{ at: 1s, schedule: {{ event: e, cause: user-restart, vms: [a] }} }}\n  - {{ at: 1s, schedule: {{ event: o, cause: user-restart, vms: [b] }} }}\nexpect: [{expect}]\n"
    );
    parse("f", "f", &text).unwrap()
}

/// A recording in which the handler of VM `a` drains, approves and restores, and polls every second.
struct Story {
    recording: Recording,
}

impl Story {
    fn good() -> Self {
        let event = |id: Uuid, vm: &str| RecordedEvent {
            id,
            event_type: EventType::Reboot,
            resources: vec![vm.to_owned()],
            scheduled_at: s(5.0),
            not_before: Some(s(20.0)),
            approved_at: Some(s(8.0)),
            started_at: Some(s(8.1)),
            gone_at: Some(s(15.0)),
            is_cancelled: false,
        };
        let events =
            BTreeMap::from([("e".to_owned(), event(EVENT, "a")), ("o".to_owned(), event(OTHER, "b"))]);
        let mut story = Self {
            recording: Recording {
                scenario: "f".to_owned(),
                summary: "x".to_owned(),
                pace: Pace { compress: 60.0, floor: s(5.0) },
                handled_vms: vec!["a".to_owned()],
                events,
                entries: Vec::new(),
                ended_at: s(25.0),
                markers: Marker::ALL.to_vec(),
                crowd: None,
                unread: None,
                refused_steps: Vec::new(),
            },
        };
        story.add(0.0, What::HandlerStarted);
        for second in 1..25 {
            let at = f64::from(second);
            let shows = if (6..=15).contains(&second) { vec![EVENT, OTHER] } else { Vec::new() };
            story.add(at, asked(poll(at, 200, Some(shows))));
        }
        story.add(7.5, What::Marker { marker: Marker::Drained });
        story.add(8.0, asked(approval(8.0, &[EVENT])));
        story.add(17.0, What::Marker { marker: Marker::Restored });
        story
    }

    fn add(&mut self, at: f64, what: What) {
        self.recording.entries.push(Entry { at: s(at), vm: Some("a".to_owned()), what });
        self.recording.entries.sort_by_key(|entry| entry.at);
    }

    fn without(mut self, is_gone: impl Fn(&Entry) -> bool) -> Self {
        self.recording.entries.retain(|entry| !is_gone(entry));
        self
    }

    fn with(mut self, at: f64, what: What) -> Self {
        self.add(at, what);
        self
    }

    /// Expectations that failed, with the reasons.
    fn failures(&self, expect: &str) -> Vec<String> {
        let verdict = judge(&scenario(expect), &self.recording);
        let failed = |finding: &Finding| match &finding.outcome {
            Outcome::Failed { why, evidence, cure } => {
                assert!(
                    !cure.is_empty() && evidence.iter().all(|index| *index < self.recording.entries.len())
                );
                Some(format!("{}: {why}", finding.expectation))
            }
            Outcome::Passed { .. } | Outcome::NotJudged { .. } => None,
        };
        verdict.findings.iter().filter_map(failed).collect()
    }
}

fn request(at: f64, method: &str) -> Request {
    Request {
        method: method.to_owned(),
        target: "/metadata/scheduledevents?api-version=2020-07-01".to_owned(),
        metadata: Some("true".to_owned()),
        user_agent: None,
        body: String::new(),
        status: Some(200),
        answered_at: s(at + 0.01),
        incarnation: None,
        shows: None,
        approves: Vec::new(),
        faults: Vec::new(),
    }
}

fn asked(request: Request) -> What {
    What::Request(Box::new(request))
}

fn poll(at: f64, status: u16, shows: Option<Vec<Uuid>>) -> Request {
    Request { status: Some(status), shows, ..request(at, "GET") }
}

fn approval(at: f64, ids: &[Uuid]) -> Request {
    Request { approves: ids.to_vec(), ..request(at, "POST") }
}

const ALL: &str =
    "{ drains: e }, { approves: e }, { restores: e }, { does_not_approve: o }, { does_not_drain: o }";

fn is_marker(entry: &Entry, marker: Marker) -> bool {
    entry.what == What::Marker { marker }
}

fn is_approval(entry: &Entry) -> bool {
    matches!(&entry.what, What::Request(request) if request.is_approval())
}

#[test]
fn good_handler_passes() {
    let expect = "{ drains: e }, { approves: e, within: 10m }, { restores: e }, { does_not_approve: o }";
    assert_eq!(Story::good().failures(expect), [""; 0]);
    let verdict = judge(&scenario(expect), &Story::good().recording);
    assert!(verdict.is_passed() && verdict.findings.len() == 8, "{verdict:#?}");
}

/// A bad habit: a recording of it, an expectation, and what the failure says.
#[test]
fn bad_habits_fail_with_reason() {
    let approves = |at: f64, ids: &[Uuid]| asked(approval(at, ids));
    let cases: Vec<(&str, Story, &str, &str)> = vec![
        (
            "approves everything",
            Story::good().without(is_approval).with(8.0, approves(8.0, &[EVENT, OTHER])),
            "{ does_not_approve: o }",
            "a does not approve o: it approved at 8.0 s",
        ),
        (
            "approves before draining",
            Story::good().without(is_approval).with(6.5, approves(6.5, &[EVENT])),
            "{ drains: e }",
            "a is drained before e is approved or starts: it approved at 6.5 s and was drained only at 7.5 s",
        ),
        (
            "never drains",
            Story::good().without(|entry| is_marker(entry, Marker::Drained)),
            "{ drains: e }",
            "a is drained before e is approved or starts: it never reported that it is drained",
        ),
        (
            "never approves",
            Story::good().without(is_approval),
            "{ approves: e }",
            "a approves e before it starts: it read the event at 6.0 s and never approved it",
        ),
        (
            "approves too late",
            Story::good().without(is_approval).with(21.0, approves(21.0, &[EVENT])),
            "{ approves: e }",
            "a approves e before it starts: it approved after 16.0 s, and the event was due after 15.0 s",
        ),
        (
            "takes an error for an empty document",
            Story::good().with(12.0, What::Marker { marker: Marker::Restored }),
            "{ restores: e }",
            "a is restored within 10.0 s after e is gone, and not before: it was restored at 12.0 s, and the event was there until 15.0 s",
        ),
        (
            "never restores",
            Story::good().without(|entry| is_marker(entry, Marker::Restored)),
            "{ restores: e }",
            "a is restored within 10.0 s after e is gone, and not before: it never reported that it is restored",
        ),
        (
            "stops polling",
            Story::good().without(|entry| {
                entry.at > s(10.0) && entry.at < s(18.0) && matches!(entry.what, What::Request(_))
            }),
            "",
            "a polls at least every 5.0 s: it did not poll for 8.0 s from 10.0 s on",
        ),
        (
            "ends",
            Story::good().with(12.5, What::HandlerExited { code: Some(101), signal: None }),
            "",
            "the handler of a keeps running: it ended at 12.5 s with exit code 101",
        ),
        (
            "sends a bad body",
            Story::good().with(9.0, asked(Request { status: Some(400), ..approval(9.0, &[]) })),
            "",
            "a approves only events that affect it: the POST at 9.0 s names no EventId",
        ),
    ];
    for (habit, story, expect, failure) in cases {
        let failures = story.failures(expect);
        let has_own_check = habit == "approves everything";
        assert_eq!(failures.last().map(String::as_str), Some(failure), "{habit}: {failures:#?}");
        assert_eq!(failures.len(), if has_own_check { 2 } else { 1 }, "{habit}: {failures:#?}");
    }
}

#[test]
fn header_is_needed_with_every_request() {
    let bare = Request { metadata: None, ..approval(8.0, &[EVENT]) };
    let story = Story::good().without(is_approval).with(8.0, asked(bare));
    assert_eq!(
        story.failures(ALL).first().map(String::as_str),
        Some("a sends the header Metadata: true: the POST at 8.0 s has no such header")
    );
    let upper = Request { metadata: Some("True".to_owned()), ..poll(9.5, 200, None) };
    let story = Story::good().with(9.5, asked(upper));
    assert!(story.failures("")[0].contains("Metadata: True"));
}

#[test]
fn approval_after_a_cancel_fails_only_if_the_handler_could_know() {
    let mut story = Story::good().without(is_approval);
    let event = story.recording.events.get_mut("e").unwrap();
    (event.is_cancelled, event.gone_at, event.started_at) = (true, Some(s(15.0)), None);
    let in_time = Story { recording: story.recording.clone() }.with(15.5, asked(approval(15.5, &[EVENT])));
    assert_eq!(in_time.failures(""), [""; 0], "it has not read the document without the event");
    let late = story.with(16.5, asked(approval(16.5, &[EVENT])));
    let expected = "a does not approve an event that was cancelled: it read at 16.0 s that e is gone, and approved it at 16.5 s";
    assert_eq!(late.failures(""), [expected]);
}

#[test]
fn waiting_for_an_answer_is_not_the_handlers_gap() {
    let slow = Request { answered_at: s(17.5), ..poll(10.5, 200, None) };
    let story = Story::good()
        .without(|entry| entry.at > s(10.0) && entry.at < s(18.0) && matches!(entry.what, What::Request(_)))
        .with(10.5, asked(slow));
    assert_eq!(story.failures(""), [""; 0]);
}

#[test]
fn drain_for_an_own_event_is_not_for_another() {
    // The VM is drained for `e`, while `o` affects another VM.
    assert_eq!(Story::good().failures("does_not_drain: o"), [""; 0]);
    let mut only_other = Story::good().without(is_approval);
    only_other.recording.events.remove("e");
    assert_eq!(only_other.failures("does_not_drain: o"), ["a is not drained for o: it was drained at 7.5 s"]);
    assert_eq!(Story::good().failures("does_not_drain: e").len(), 1);
}

#[test]
fn start_of_a_slow_runtime_is_no_gap() {
    let is_early = |entry: &Entry| entry.at < s(8.0) && matches!(entry.what, What::Request(_));
    assert_eq!(Story::good().without(is_early).failures(""), [""; 0]);
    let is_later =
        |entry: &Entry| entry.at > s(2.0) && entry.at < s(9.0) && matches!(entry.what, What::Request(_));
    assert_eq!(Story::good().without(is_later).failures("").len(), 1, "it polled before");
}

#[test]
fn unknown_markers_are_not_judged() {
    let mut story = Story::good().without(|entry| matches!(entry.what, What::Marker { .. }));
    story.recording.markers.clear();
    let verdict = judge(&scenario("{ drains: e }, { restores: e }"), &story.recording);
    let not_judged =
        |finding: &&Finding| matches!(&finding.outcome, Outcome::NotJudged { why } if why.contains("--"));
    assert!(verdict.is_passed() && verdict.findings.iter().filter(not_judged).count() == 2);
}

#[test]
fn drain_is_not_judged_if_another_vm_approved_first() {
    let story = Story::good().without(|entry| is_approval(entry) || is_marker(entry, Marker::Drained));
    let verdict = judge(&scenario("{ drains: e }"), &story.recording);
    let said = |finding: &Finding| matches!(&finding.outcome, Outcome::NotJudged { why } if why.contains("another VM"));
    assert!(verdict.findings.iter().any(said), "{verdict:#?}");
}

#[test]
fn handler_of_an_evicted_vm_may_end() {
    let mut story = Story::good().with(12.5, What::HandlerExited { code: Some(0), signal: None });
    story.recording.events.get_mut("e").unwrap().event_type = EventType::Preempt;
    assert_eq!(story.failures(""), [""; 0]);
}

#[test]
fn handler_that_never_gets_a_document_fails() {
    let mut story = Story::good().without(is_approval);
    for entry in &mut story.recording.entries {
        if let What::Request(request) = &mut entry.what {
            (request.status, request.shows) = (Some(404), None);
        }
    }
    let expected =
        "a polls at least every 5.0 s: none of its 24 polls got a document; the first got status 404";
    assert_eq!(story.failures("{ does_not_approve: o }"), [expected]);
}

#[test]
fn handler_without_requests_fails_once() {
    let story = Story::good().without(|entry| matches!(entry.what, What::Request(_)));
    assert_eq!(story.failures(""), ["a polls at least every 5.0 s: no request arrived"]);
}

#[test]
fn event_that_a_step_waits_for_in_vain_fails_with_the_last_poll() {
    let mut story = Story::good();
    let unread = crate::recording::Unread { event: "e".into(), step: 3, action: "cancel e".into() };
    story.recording.unread = Some(unread);
    let verdict = judge(&scenario(""), &story.recording);
    let failed = verdict.findings.iter().find(|finding| finding.expectation == "a handler reads e").unwrap();
    let Outcome::Failed { why, evidence, .. } = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!(why, "in 20.0 s none of 20 polls showed it, and step 3 (cancel e) waits for that");
    assert!(matches!(story.recording.entries[evidence[0]].what, What::Request(_)));
}

#[test]
fn restore_has_time_for_one_poll_with_the_longest_gap() {
    let restored = |at: f64| {
        let marker = What::Marker { marker: Marker::Restored };
        Story::good().without(|entry| entry.what == marker).with(at, marker.clone()).failures("restores: e")
    };
    // Ten minutes, divided by 60, and 5 s between polls with a floor of 5 s: the same.
    assert!(restored(24.9).is_empty());
    assert_eq!(restored(25.1).len(), 1);
    let slow = Scenario { polls_every: s(15.0), ..scenario("restores: e") };
    assert_eq!(slow.rest(Pace { compress: 60.0, floor: s(5.0) }), s(20.0));
}
