//! The file and what readers make of it.

use std::fs;

use super::*;

fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn line(event: &str, second: i64, what: &str, step: Option<&str>) -> Line {
    Line {
        at: Timestamp::from_second(second).unwrap(),
        event: event.to_owned(),
        r#type: "Reboot".to_owned(),
        what: what.to_owned(),
        rule: Some("drain".to_owned()),
        not_before: None,
        step: step.map(|name| LineStep {
            name: name.to_owned(),
            stage: Stage::Before,
            attempt: None,
            reason: (what == "step_failed").then(|| "exit code 3".to_owned()),
        }),
        text: format!("{what} of {event}"),
    }
}

fn size(dir: &Path) -> u64 {
    fs::metadata(dir.join("history.jsonl")).unwrap().len()
}

#[test]
fn appended_facts_are_read_as_events() {
    let dir = dir();
    let file = StateFile::history(dir.path());
    assert_eq!(read(dir.path()).unwrap(), [], "no history yet");
    append(&file, &[line("A", 1, "appeared", None), line("B", 2, "appeared", None)]).unwrap();
    append(&file, &[line("A", 3, "approved", None), line("A", 4, "changed", None)]).unwrap();
    let events = read(dir.path()).unwrap();
    let seen: Vec<(&str, &str, i64)> =
        events.iter().map(|event| (&*event.id, &*event.outcome, event.last_at.as_second())).collect();
    assert_eq!(seen, [("A", "approved", 4), ("B", "appeared", 2)]);
    assert_eq!(events[0].facts.len(), 3);
    let missing = read(&dir.path().join("nowhere")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn line_cut_short_by_crash_is_skipped() {
    let dir = dir();
    let file = StateFile::history(dir.path());
    append(&file, &[line("A", 1, "appeared", None)]).unwrap();
    for cut in ["{\"at\":\"1970", "\u{0}\u{0}\u{0}", "{}"] {
        let mut opened = file.open().unwrap();
        opened.seek(SeekFrom::End(0)).unwrap();
        opened.write_all(cut.as_bytes()).unwrap();
    }
    append(&file, &[line("A", 2, "approved", None)]).unwrap();
    let events = read(dir.path()).unwrap();
    assert_eq!((events.len(), events[0].facts.len(), &*events[0].outcome), (1, 2, "approved"));
}

#[test]
fn file_is_bounded_in_bytes_and_events() {
    let dir = dir();
    let file = StateFile::history(dir.path());
    let id = |number: i64| format!("{number:05}-{}", "x".repeat(90));
    for batch in 0..60 {
        let numbers = batch * 50..batch * 50 + 50;
        let of_event = |number| (0..4).map(move |at| line(&id(number), number * 10 + at, "appeared", None));
        append(&file, &numbers.flat_map(of_event).collect::<Vec<Line>>()).unwrap();
        assert!(size(dir.path()) <= BYTES_MAX as u64);
    }
    let events = read(dir.path()).unwrap();
    assert_eq!(events.len(), EVENTS_MAX);
    assert!(events[EVENTS_MAX - 1].id.starts_with("02999-"), "the newest is last");
}

#[test]
fn one_event_with_many_facts_keeps_its_first_and_its_newest() {
    let dir = dir();
    let file = StateFile::history(dir.path());
    append(&file, &[line("A", 0, "appeared", None)]).unwrap();
    for batch in 0..50 {
        let lines = (1..=100).map(|at| line("A", batch * 100 + at, "withheld", None));
        append(&file, &lines.collect::<Vec<Line>>()).unwrap();
    }
    assert!(size(dir.path()) <= BYTES_MAX as u64);
    let event = &read(dir.path()).unwrap()[0];
    assert_eq!((event.facts.len(), &*event.facts[0].what), (LINES_MAX, "appeared"));
    assert_eq!(event.last_at.as_second(), 5_000);
}

#[test]
fn steps_have_start_end_and_outcome() {
    let facts = [
        ("step_begun", "a"),
        ("step_retried", "a"),
        ("step_begun", "a"),
        ("step_done", "a"),
        ("step_failed", "b"),
        ("step_begun", "c"),
        ("step_interrupted", "c"),
        ("step_begun", "c"),
    ];
    let lines: Vec<Line> =
        (0..).zip(facts).map(|(at, (what, step))| line("A", at, what, Some(step))).collect();
    let seen = |lines: &[Line]| -> Vec<(String, Option<i64>, Option<i64>, StepEnd)> {
        let second = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        let row = |step: PastStep| (step.step, second(step.begun_at), second(step.ended_at), step.outcome);
        steps(lines).into_iter().map(row).collect()
    };
    let expected = |last| {
        [
            ("a".to_owned(), Some(0), Some(1), StepEnd::Failed),
            ("a".to_owned(), Some(2), Some(3), StepEnd::Done),
            ("b".to_owned(), None, Some(4), StepEnd::Failed),
            ("c".to_owned(), Some(5), Some(6), StepEnd::Interrupted),
            ("c".to_owned(), Some(7), None, last),
        ]
    };
    assert_eq!(seen(&lines), expected(StepEnd::Running));
    let cancelled = [&lines[..], &[line("A", 9, "cancelled", None)]].concat();
    assert_eq!(seen(&cancelled), expected(StepEnd::Stopped));
    assert_eq!(steps(&lines)[2].reason.as_deref(), Some("exit code 3"));
}

#[tokio::test]
async fn facts_of_other_vms_without_rule_and_repetitions_are_left_out() {
    let dir = dir();
    let event = crate::hooks::variables::tests::run_of(
        crate::rules::StepAction::Wait { time: Duration::ZERO },
        Duration::ZERO,
    )
    .event;
    let fact = |mine, rule: Option<&str>, kind| Fact {
        event: event.clone(),
        mine,
        rule: rule.map(str::to_owned),
        kind,
    };
    let failed = || FactKind::ApprovalFailed { reason: "no".to_owned(), again_in: Duration::from_secs(5) };
    let mut history = History::start(dir.path());
    for fact in [
        fact(false, None, FactKind::Ended),
        fact(false, Some("log"), FactKind::Matched),
        fact(true, None, FactKind::Unmatched),
        fact(true, Some("drain"), failed()),
        fact(true, Some("drain"), failed()),
        fact(true, Some("drain"), FactKind::Approved),
    ] {
        history.record(&fact, Timestamp::UNIX_EPOCH);
    }
    history.finish().await;
    let events = read(dir.path()).unwrap();
    let what: Vec<&str> = events[0].facts.iter().map(|fact| &*fact.what).collect();
    assert_eq!(what, ["matched", "unmatched", "approval_failed", "approved"]);
}
