//! Verdicts on recordings made by hand. Each bad habit of a handler fails its expectation, and only that.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_wire::operator::EventType;
use uuid::Uuid;

use super::*;
use crate::recording::{CrowdSummary, Marker};
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
                is_by_hand: false,
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
        self.proven(expect).into_iter().map(|(failure, _)| failure).collect()
    }

    /// The same, with the cited entries: `6.0 poll, 8.0 approval`. Nothing fails without a cure and a proof.
    fn proven(&self, expect: &str) -> Vec<(String, String)> {
        let verdict = judge(&scenario(expect), &self.recording);
        let failed = |finding: &Finding| match &finding.outcome {
            Outcome::Failed { why, evidence, cure } => {
                let failure = format!("{}: {why}", finding.expectation);
                let cited: Vec<_> = evidence.iter().map(|index| self.cited(*index)).collect();
                assert!(!cure.is_empty() && !cited.is_empty(), "{failure}");
                Some((failure, cited.join(", ")))
            }
            Outcome::Passed { .. } | Outcome::NotJudged { .. } => None,
        };
        verdict.findings.iter().filter_map(failed).collect()
    }

    fn cited(&self, index: usize) -> String {
        let entry = &self.recording.entries[index];
        let what = match &entry.what {
            What::Request(request) if request.is_poll() => "poll",
            What::Request(_) => "approval",
            What::Marker { marker } => marker.as_str(),
            What::HandlerStarted => "start",
            What::HandlerExited { .. } => "exit",
            What::Output { .. } | What::HandlerStopped | What::Step { .. } | What::Event { .. } => "other",
        };
        format!("{:.1} {what}", entry.at.as_secs_f64())
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

fn is_restored(entry: &Entry) -> bool {
    is_marker(entry, Marker::Restored)
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

/// A handler that polls in vain: no document of its has the event.
fn never_reads() -> Story {
    let mut story =
        Story::good().without(|entry| is_approval(entry) || matches!(entry.what, What::Marker { .. }));
    story.recording.events.get_mut("e").unwrap().approved_at = None;
    for entry in &mut story.recording.entries {
        if let What::Request(request) = &mut entry.what {
            request.shows = Some(Vec::new());
        }
    }
    story
}

/// A bad habit: a recording of it, an expectation, what the failure says, and what it cites.
#[test]
fn bad_habits_fail_with_reason() {
    let approves = |at: f64, ids: &[Uuid]| asked(approval(at, ids));
    let cases: Vec<(&str, Story, &str, &str, &str)> = vec![
        (
            "approves everything",
            Story::good().without(is_approval).with(8.0, approves(8.0, &[EVENT, OTHER])),
            "{ does_not_approve: o }",
            "a does not approve o: it approved at 8.0 s",
            "6.0 poll, 8.0 approval",
        ),
        (
            "approves before draining",
            Story::good().without(is_approval).with(6.5, approves(6.5, &[EVENT])),
            "{ drains: e }",
            "a is drained before e is approved or starts: it approved at 6.5 s and was drained only at 7.5 s",
            "6.5 approval, 7.5 drained",
        ),
        (
            "never drains",
            Story::good().without(|entry| is_marker(entry, Marker::Drained)),
            "{ drains: e }",
            "a is drained before e is approved or starts: it never reported that it is drained",
            "6.0 poll, 8.0 approval",
        ),
        (
            "never approves",
            Story::good().without(is_approval),
            "{ approves: e }",
            "a approves e before it starts: it read the event at 6.0 s and never approved it",
            "6.0 poll",
        ),
        (
            "approves too late",
            Story::good().without(is_approval).with(21.0, approves(21.0, &[EVENT])),
            "{ approves: e }",
            "a approves e before it starts: it approved after 16.0 s, and the event was due after 15.0 s",
            "6.0 poll, 21.0 approval",
        ),
        (
            "takes an error for an empty document",
            Story::good().with(12.0, What::Marker { marker: Marker::Restored }),
            "{ restores: e }",
            "a is restored within 10.0 s after e is gone, and not before: it was restored at 12.0 s, and the event was there until 15.0 s",
            "12.0 poll, 12.0 restored",
        ),
        (
            "never restores",
            Story::good().without(is_restored),
            "{ restores: e }",
            "a is restored within 10.0 s after e is gone, and not before: it never reported that it is restored",
            "16.0 poll",
        ),
        (
            "stops polling",
            Story::good().without(|entry| {
                entry.at > s(10.0) && entry.at < s(18.0) && matches!(entry.what, What::Request(_))
            }),
            "",
            "a polls at least every 5.0 s: it did not poll for 8.0 s from 10.0 s on",
            "10.0 poll, 18.0 poll",
        ),
        (
            "ends",
            Story::good().with(12.5, What::HandlerExited { code: Some(101), signal: None }),
            "",
            "the handler of a keeps running: it ended at 12.5 s with exit code 101",
            "12.0 poll, 12.5 exit",
        ),
        (
            "sends a bad body",
            Story::good().with(9.0, asked(Request { status: Some(400), ..approval(9.0, &[]) })),
            "",
            "a approves only events that affect it: the POST at 9.0 s names no EventId",
            "9.0 approval",
        ),
        (
            "does not read the event",
            never_reads(),
            "{ approves: e }",
            "a approves e before it starts: it never read a document with the event",
            "14.0 poll, 15.0 poll",
        ),
        (
            "does not read the event, and does not drain",
            never_reads(),
            "{ drains: e }",
            "a is drained before e is approved or starts: it never reported that it is drained",
            "14.0 poll, 15.0 poll",
        ),
        (
            "approves after its limit",
            Story::good().without(is_approval).with(16.0, approves(16.0, &[EVENT])),
            "{ approves: e, within: 10m }",
            "a approves e within 10.0 s: it approved after 11.0 s, and the event was due after 10.0 s",
            "6.0 poll, 16.0 approval",
        ),
        (
            "restores after its limit",
            Story::good().without(is_restored).with(22.0, What::Marker { marker: Marker::Restored }),
            "{ restores: e, within: 6m }",
            "a is restored within 6.0 s after e is gone, and not before: it took 7.0 s",
            "16.0 poll, 22.0 restored",
        ),
        (
            "does not end",
            Story::good(),
            "{ exits: 0 }",
            "the handler of a ends with exit code 0: it still ran at the end",
            "23.0 poll, 24.0 poll",
        ),
        (
            "sends no request",
            Story::good().without(|entry| matches!(entry.what, What::Request(_))),
            "",
            "a polls at least every 5.0 s: no request arrived",
            "0.0 start",
        ),
    ];
    for (habit, story, expect, failure, proof) in cases {
        let failures = story.proven(expect);
        let has_own_check = habit == "approves everything";
        assert_eq!(failures.last(), Some(&(failure.to_owned(), proof.to_owned())), "{habit}: {failures:#?}");
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
    let expected = "a does not approve an event that was cancelled: it read a document that no longer lists e at 16.0 s, and approved e at 16.5 s";
    assert_eq!(late.failures(""), [expected]);
}

#[test]
fn approval_of_an_event_that_the_last_document_does_not_list_fails() {
    let approves = |at: f64| asked(approval(at, &[EVENT]));
    let expected = "a does not approve an event that its last document does not list: it read a document that no longer lists e at 16.0 s, and approved e at 16.5 s";
    assert_eq!(Story::good().with(16.5, approves(16.5)).failures(""), [expected]);
    // The document without the event was on its way when the approval arrived.
    let slow = Request { answered_at: s(16.6), ..poll(15.9, 200, Some(Vec::new())) };
    let concurrent = Story::good().without(|entry| entry.at == s(16.0)).with(15.9, asked(slow));
    assert_eq!(concurrent.with(16.5, approves(16.5)).failures(""), [""; 0]);
    // It was hidden for a moment, and is approved again after it returned.
    let hidden = Story::good().with(10.5, asked(poll(10.5, 200, Some(Vec::new()))));
    assert_eq!(hidden.with(11.5, approves(11.5)).failures(""), [""; 0]);
    // An answer without a document says nothing of the event.
    let unclear = Story::good().with(10.5, asked(poll(10.5, 500, None)));
    assert_eq!(unclear.with(10.7, approves(10.7)).failures(""), [""; 0]);
}

#[test]
fn more_than_five_polls_a_second_fail() {
    let polls = |every: f64, count: u32| {
        (0..count).fold(Story::good(), |story, number| {
            let at = 16.2 + f64::from(number) * every;
            story.with(at, asked(poll(at, 200, Some(Vec::new()))))
        })
    };
    let expected =
        "a polls at most 5 times a second, over ten seconds: it polled 56 times in 10.0 s from 13.0 s on";
    assert_eq!(polls(0.15, 48).failures(""), [expected]);
    assert_eq!(polls(0.25, 28).failures(""), [""; 0]);
    // A burst, and then nothing unusual.
    assert_eq!(polls(0.01, 40).failures(""), [""; 0]);
    let mut by_hand = polls(0.15, 48);
    by_hand.recording.is_by_hand = true;
    assert_eq!(by_hand.failures(""), [""; 0], "the clock stands while it polls");
}

#[test]
fn drain_for_a_started_event_must_be_undone() {
    let text = "summary: x\nvms: [a]\npolls_every: 5s\nsteps:\n  - { at: 1s, schedule: { event: e, cause: host-failure, vms: [a] } }\nexpect: [{ restores: e }]\n";
    let scenario = parse("f", "f", text).unwrap();
    let failures = |story: Story| {
        let verdict = judge(&scenario, &story.recording);
        verdict
            .findings
            .into_iter()
            .filter(Finding::is_failed)
            .map(|finding| finding.expectation)
            .collect::<Vec<_>>()
    };
    let started = || {
        let mut story = Story::good().without(is_approval);
        let event = story.recording.events.get_mut("e").unwrap();
        (event.not_before, event.approved_at, event.started_at) = (None, None, Some(event.scheduled_at));
        story
    };
    assert_eq!(failures(started()), [""; 0]);
    let is_own = |entry: &Entry| matches!(entry.what, What::Marker { .. });
    assert_eq!(failures(started().without(is_own)), [""; 0], "it need not drain");
    assert_eq!(
        failures(started().without(is_restored)),
        ["a is restored within 10.0 s after e is gone, if it was drained"]
    );
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

/// Advice from 1 s on, which drains the VM at 2 s; `e` takes its place at 5 s. Nothing drains again.
fn advised() -> Story {
    let mut story = Story::good()
        .without(|entry| is_marker(entry, Marker::Drained))
        .with(2.0, What::Marker { marker: Marker::Drained });
    let event = &story.recording.events["e"];
    let advice = RecordedEvent {
        id: Uuid::from_u128(3),
        scheduled_at: s(1.0),
        not_before: None,
        approved_at: None,
        started_at: None,
        gone_at: Some(s(5.0)),
        ..event.clone()
    };
    story.recording.events.insert("advice".to_owned(), advice);
    story
}

#[test]
fn earlier_drain_counts_until_it_is_undone() {
    let restored = What::Marker { marker: Marker::Restored };
    let drained = What::Marker { marker: Marker::Drained };
    assert_eq!(advised().failures("{ drains: e }, { restores: e }"), [""; 0]);
    let expected = "a is drained before e is approved or starts: it was drained at 2.0 s and restored at 3.0 s, and not drained again";
    assert_eq!(advised().with(3.0, restored.clone()).failures("drains: e"), [expected]);
    // The advice is gone, and the eviction is not drained for.
    assert_eq!(advised().with(6.5, restored.clone()).failures("drains: e").len(), 1);
    let again = advised().with(6.5, restored.clone()).with(7.5, drained.clone());
    assert_eq!(again.failures("drains: e"), [""; 0]);
    let too_late = advised().with(3.0, restored).with(8.5, drained);
    assert_eq!(too_late.failures("drains: e").len(), 1);
}

#[test]
fn earlier_drain_counts_without_the_other_marker_while_its_event_lives() {
    let mut story = advised();
    story.recording.markers = vec![Marker::Drained];
    assert_eq!(story.failures("drains: e"), [""; 0]);
    story.recording.events.get_mut("advice").unwrap().gone_at = Some(s(4.0));
    assert_eq!(story.failures("drains: e").len(), 1);
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
fn event_that_a_step_waits_for_in_vain_fails_with_the_last_poll() {
    let mut story = Story::good();
    let unread = crate::recording::Unread { event: "e".into(), step: 3, action: "cancel e".into() };
    story.recording.unread = Some(unread);
    let verdict = judge(&scenario(""), &story.recording);
    let failed = verdict.findings.iter().find(|finding| finding.expectation == "a handler reads e").unwrap();
    let Outcome::Failed { why, evidence, .. } = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!(why, "in 20.0 s none of 20 polls showed it, and step 3 (cancel e) waits for that");
    assert_eq!(
        evidence.iter().map(|index| story.cited(*index)).collect::<Vec<_>>(),
        ["23.0 poll", "24.0 poll"]
    );
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

#[test]
fn restore_that_a_restart_prevented_has_its_own_cure() {
    let cure = |story: &Story| {
        let verdict = judge(&scenario("restores: e"), &story.recording);
        let failed = |finding: &Finding| match &finding.outcome {
            Outcome::Failed { cure, .. } => Some(cure.clone()),
            Outcome::Passed { .. } | Outcome::NotJudged { .. } => None,
        };
        verdict.findings.iter().find_map(failed).unwrap()
    };
    let story = || Story::good().without(is_restored);
    assert!(cure(&story()).starts_with("undo the preparation"));
    let restarted = story().with(10.5, What::HandlerStarted);
    assert!(cure(&restarted).contains("NOTBEFORE_STATE"));
    assert!(restarted.proven("restores: e")[0].1.contains("10.5 start"));
}

#[test]
fn drain_while_the_approval_is_answered_is_too_late() {
    let slow = Request { answered_at: s(11.0), ..approval(8.0, &[EVENT]) };
    let story = Story::good()
        .without(|entry| is_approval(entry) || is_marker(entry, Marker::Drained))
        .with(8.0, asked(slow))
        .with(8.05, What::Marker { marker: Marker::Drained });
    assert_eq!(story.proven("drains: e")[0].1, "8.0 approval, 8.1 drained");
}

#[test]
fn exit_code_is_compared() {
    let exited = |code| {
        let story = Story::good().with(12.5, What::HandlerExited { code, signal: None });
        story
            .proven("exits: 3")
            .into_iter()
            .filter(|(failure, _)| failure.contains("ends with"))
            .collect::<Vec<_>>()
    };
    assert_eq!(exited(Some(3)), []);
    let wrong = "the handler of a ends with exit code 3: it ended at 12.5 s with exit code 1";
    assert_eq!(exited(Some(1)), [(wrong.to_owned(), "12.5 exit".to_owned())]);
    assert!(exited(None)[0].0.ends_with("it ended at 12.5 s with a signal"));
}

#[test]
fn restore_while_the_event_is_hidden_is_right_if_the_vm_is_restored_in_the_end() {
    let marker = |marker| What::Marker { marker };
    // From 10 to 12 s, documents do not list the event.
    let hidden = || {
        let mut story = Story::good().without(is_restored);
        for entry in &mut story.recording.entries {
            if let What::Request(request) = &mut entry.what
                && (s(10.0)..=s(12.0)).contains(&entry.at)
            {
                request.shows = Some(Vec::new());
            }
        }
        story
    };
    let early = || hidden().with(10.5, marker(Marker::Restored));
    assert_eq!(early().failures("restores: e"), [""; 0]);
    assert_eq!(hidden().with(17.0, marker(Marker::Restored)).failures("restores: e"), [""; 0]);
    let again = || early().with(13.5, marker(Marker::Drained));
    assert_eq!(again().with(17.0, marker(Marker::Restored)).failures("restores: e"), [""; 0]);
    assert!(again().failures("restores: e")[0].ends_with("it never reported that it is restored"));
    // The document lists the event again.
    let wrong = hidden().with(13.5, marker(Marker::Restored));
    assert!(wrong.failures("restores: e")[0].contains("it was restored at 13.5 s"));
}

#[test]
fn advice_is_undone_if_it_was_drained_for() {
    let text = "summary: x\nvms: [a]\npolls_every: 5s\nsteps:\n  - { at: 1s, schedule: { event: e, cause: rebalance, vms: [a] } }\n  - { at: 2s, cancel: e }\nexpect: [restores: e]\n";
    let scenario = parse("f", "f", text).unwrap();
    let verdict = |markers: &[(f64, Marker)], known: &[Marker]| {
        let mut story =
            Story::good().without(|entry| is_approval(entry) || matches!(entry.what, What::Marker { .. }));
        for (at, marker) in markers {
            story.add(*at, What::Marker { marker: *marker });
        }
        let event = story.recording.events.get_mut("e").unwrap();
        (event.approved_at, event.started_at, event.not_before) = (None, None, None);
        story.recording.markers = known.to_vec();
        let verdict = judge(&scenario, &story.recording);
        let finding =
            verdict.findings.iter().find(|one| one.expectation.contains("restored")).unwrap().clone();
        assert_eq!(finding.expectation, "a is restored within 10.0 s after e is gone, if it was drained");
        match finding.outcome {
            Outcome::Passed { note } => note,
            Outcome::NotJudged { why } => why,
            Outcome::Failed { why, evidence, .. } => {
                let cited: Vec<_> = evidence.iter().map(|index| story.cited(*index)).collect();
                format!("{why} [{}]", cited.join(", "))
            }
        }
    };
    let (drained, restored) = ((7.0, Marker::Drained), |at| (at, Marker::Restored));
    for (markers, said) in [
        (vec![], "it was not drained"),
        (vec![drained, restored(9.0)], "at 9.0 s"),
        (vec![drained, restored(17.0)], "after 2.0 s"),
        (vec![drained], "it never reported that it is restored [7.0 drained, 16.0 poll]"),
        (vec![drained, restored(25.5)], "it took 10.5 s [7.0 drained, 16.0 poll, 25.5 restored]"),
        (
            vec![drained, restored(9.0), (10.0, Marker::Drained)],
            "it never reported that it is restored [10.0 drained, 16.0 poll]",
        ),
    ] {
        assert_eq!(verdict(&markers, &Marker::ALL), said);
    }
    assert_eq!(verdict(&[], &[Marker::Restored]), "say how the handler shows it: --drained");
}

#[test]
fn platform_keeps_up_with_the_polls_of_the_rehearsal() {
    let good =
        CrowdSummary { vms: 1_000, answers: 29_500, failures: 0, slowest: s(0.4), polled_for: s(31.0) };
    let outcome = |crowd: CrowdSummary, scenario: &Scenario| {
        let mut story = Story::good();
        story.recording.crowd = Some(crowd);
        let verdict = judge(scenario, &story.recording);
        let expectation = "the platform answers 1000 VMs once a second, each within 5.0 s";
        verdict.findings.into_iter().find(|one| one.expectation == expectation).unwrap().outcome
    };
    let why = |crowd: CrowdSummary| match outcome(crowd, &scenario("")) {
        Outcome::Passed { note } => note,
        Outcome::Failed { why, .. } => format!("failed: {why}"),
        Outcome::NotJudged { why } => panic!("{why}"),
    };
    assert_eq!(why(good.clone()), "29500 answers in 31.0 s, slowest 0.4 s");
    assert_eq!(
        why(CrowdSummary { answers: 24_000, ..good.clone() }),
        "24000 answers in 31.0 s, slowest 0.4 s"
    );
    assert_eq!(
        why(CrowdSummary { answers: 23_999, ..good.clone() }),
        "failed: 23999 answers in 31.0 s, slowest 0.4 s; 80 % of 30000 are needed"
    );
    let slow = CrowdSummary { slowest: s(5.1), ..good.clone() };
    assert_eq!(why(slow), "failed: 29500 answers in 31.0 s, slowest 5.1 s");
    let refused = CrowdSummary { failures: 2, ..good.clone() };
    assert_eq!(why(refused), "failed: 2 polls were not answered; 29500 answers in 31.0 s, slowest 0.4 s");
    let mut faulty = scenario("");
    let text = "summary: x\nvms: [a]\nsteps: [{ at: 1s, fault: empty-body }]\n";
    faulty.steps.extend(parse("f", "f", text).unwrap().steps);
    assert!(matches!(outcome(good, &faulty), Outcome::NotJudged { .. }));
}
