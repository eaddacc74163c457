//! Golden files in `tests/golden/`. After a change that is meant, rewrite them and look at the difference:
//!
//! ```sh
//! NOTBEFORE_WRITE=1 cargo test --workspace --lib report::
//! ```

use notbefore_wire::operator::EventType;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::pace::Pace;
use crate::recording::{Entry, Marker, RecordedEvent, Request, State, What};
use crate::verdict::Finding;

const RESTART: Uuid = Uuid::from_u128(0x1111_1111_1111_4111_8111_1111_1111_1111);
const OTHER: Uuid = Uuid::from_u128(0x2222_2222_2222_4222_8222_2222_2222_2222);
const TARGET: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// Text that breaks out of XML, HTML, attributes, comments and terminals if it is not escaped.
const HOSTILE: &str = "</td></script><script>alert(1)</script><img src=x onerror='a()'>\"]]>--><!-- &lt;\x1b[2J\x07\0\u{9b}31m\u{202e}\u{feff}\u{ffff}\u{fffe}\r\n\tend";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn entry(at: u64, vm: &str, what: What) -> Entry {
    Entry { at: ms(at), vm: (!vm.is_empty()).then(|| vm.to_owned()), what }
}

fn step(at: u64, text: &str) -> Entry {
    entry(at, "", What::Step { text: text.to_owned() })
}

fn state(at: u64, event: &str, state: State) -> Entry {
    entry(at, "", What::Event { event: event.to_owned(), state })
}

fn output(at: u64, vm: &str, line: &str) -> Entry {
    entry(at, vm, What::Output { line: line.to_owned() })
}

fn poll(at: u64, vm: &str, incarnation: u64, shows: &[Uuid]) -> Entry {
    request(at, vm, |request| {
        request.incarnation = Some(incarnation);
        request.shows = Some(shows.to_vec());
    })
}

fn approval(at: u64, vm: &str, id: Uuid, status: u16) -> Entry {
    request(at, vm, |request| {
        request.method = "POST".to_owned();
        request.body = format!("{{\"StartRequests\":[{{\"EventId\":\"{id}\"}}]}}");
        request.approves = vec![id];
        request.status = Some(status);
    })
}

fn request(at: u64, vm: &str, change: impl FnOnce(&mut Request)) -> Entry {
    let mut request = Request {
        method: "GET".to_owned(),
        target: TARGET.to_owned(),
        metadata: Some("true".to_owned()),
        user_agent: Some("handler/1.0".to_owned()),
        body: String::new(),
        status: Some(200),
        answered_at: ms(at + 2),
        incarnation: None,
        shows: None,
        approves: Vec::new(),
        faults: Vec::new(),
    };
    change(&mut request);
    entry(at, vm, What::Request(Box::new(request)))
}

fn event(id: Uuid, vms: &[&str], scheduled_at: u64) -> RecordedEvent {
    RecordedEvent {
        id,
        event_type: EventType::Reboot,
        resources: vms.iter().map(|vm| (*vm).to_owned()).collect(),
        scheduled_at: ms(scheduled_at),
        not_before: Some(ms(scheduled_at + 15_000)),
        approved_at: None,
        started_at: None,
        gone_at: None,
        is_cancelled: false,
    }
}

fn recording(scenario: &str, summary: &str, vms: &[&str], entries: Vec<Entry>) -> Recording {
    Recording {
        scenario: scenario.to_owned(),
        summary: summary.to_owned(),
        pace: Pace::default(),
        handled_vms: vms.iter().map(|vm| (*vm).to_owned()).collect(),
        events: BTreeMap::new(),
        ended_at: entries.last().map(|entry| entry.at).unwrap_or_default(),
        entries,
        markers: vec![Marker::Drained],
        crowd: None,
        unread: None,
        refused_steps: Vec::new(),
        is_by_hand: false,
    }
}

fn finding(expectation: &str, outcome: Outcome) -> Finding {
    Finding { expectation: expectation.to_owned(), outcome }
}

fn passed(expectation: &str, note: &str) -> Finding {
    finding(expectation, Outcome::Passed { note: note.to_owned() })
}

fn not_judged(expectation: &str, why: &str) -> Finding {
    finding(expectation, Outcome::NotJudged { why: why.to_owned() })
}

fn failed(expectation: &str, why: &str, cure: &str, evidence: &[usize]) -> Finding {
    let outcome = Outcome::Failed { why: why.to_owned(), cure: cure.to_owned(), evidence: evidence.to_vec() };
    finding(expectation, outcome)
}

fn report(recording: Recording, findings: Vec<Finding>) -> Report {
    let verdict = Verdict { scenario: recording.scenario.clone(), findings };
    Report::new(recording, verdict)
}

/// A handler without mistakes.
fn good() -> Report {
    let mut entries = vec![step(0, "starts handlers"), entry(2, "web-0", What::HandlerStarted)];
    entries.extend((0..6).map(|n| poll(110 + n * 1_000, "web-0", 1, &[])));
    entries.extend([step(5_600, "schedules restart"), state(5_601, "restart", State::Scheduled)]);
    entries.extend([
        poll(6_110, "web-0", 2, &[RESTART]),
        output(6_150, "web-0", "draining web-0"),
        entry(6_920, "web-0", What::Marker { marker: Marker::Drained }),
        approval(6_930, "web-0", RESTART, 200),
        state(6_931, "restart", State::Approved),
        state(6_932, "restart", State::Started),
    ]);
    entries.extend((0..14).map(|n| poll(7_110 + n * 1_000, "web-0", 3, &[RESTART])));
    entries.extend([state(20_700, "restart", State::Gone), poll(21_110, "web-0", 4, &[])]);
    entries.extend((0..4).map(|n| poll(22_110 + n * 1_000, "web-0", 4, &[])));
    entries.push(entry(25_900, "web-0", What::HandlerStopped));
    let mut recording = recording("user-reboot", "The VM's owner restarts it", &["web-0"], entries);
    let restart = event(RESTART, &["web-0"], 5_601);
    let restart = RecordedEvent {
        approved_at: Some(ms(6_931)),
        started_at: Some(ms(6_932)),
        gone_at: Some(ms(20_700)),
        ..restart
    };
    recording.events.insert("restart".to_owned(), restart);
    report(
        recording,
        vec![
            passed("web-0 polls at least every 15 s", "longest gap 1.0 s"),
            passed("web-0 sends the header Metadata", ""),
            passed("web-0 approves restart before it starts", "after 1.3 s"),
            passed("web-0 reports drained before it approves restart", "10 ms before"),
            not_judged(
                "web-0 reports restored after restart is gone",
                "the handler has no marker for restored; give it with --restored",
            ),
        ],
    )
}

/// A handler that approves the event of another VM, with a fault, and crashes.
fn bad() -> Report {
    let mut entries = vec![step(0, "starts handlers")];
    entries.extend(["web-0", "web-1"].map(|vm| entry(3, vm, What::HandlerStarted)));
    entries.extend(["web-0", "web-1"].map(|vm| poll(150, vm, 1, &[])));
    for n in 1..4 {
        entries.extend(["web-0", "web-1"].map(|vm| poll(150 + n * 2_000, vm, 1, &[])));
    }
    entries.extend([step(7_000, "schedules other"), state(7_001, "other", State::Scheduled)]);
    let evidence = entries.len();
    entries.extend([
        poll(8_150, "web-0", 2, &[OTHER]),
        approval(8_160, "web-0", OTHER, 200),
        state(8_161, "other", State::Approved),
        step(9_000, "cancels other"),
        state(9_001, "other", State::Gone),
        step(9_500, "adds fault status 500"),
    ]);
    let error = |at: u64, vm: &str| {
        request(at, vm, |request| {
            request.status = Some(500);
            request.faults = vec!["status 500".to_owned()];
            request.metadata = None;
        })
    };
    entries.extend([error(10_150, "web-0"), error(10_160, "web-1"), error(11_150, "web-0")]);
    entries.extend((1..5).map(|n| output(11_160 + n, "web-1", &format!("  at line {n}"))));
    let crash = entries.len();
    entries.push(entry(11_200, "web-1", What::HandlerExited { code: Some(1), signal: None }));
    let reset = request(12_150, "web-0", |request| request.status = None);
    entries.extend([reset, entry(14_000, "web-0", What::HandlerStopped)]);
    let mut recording =
        recording("other-vm-only", "An event for another VM only", &["web-0", "web-1"], entries);
    let other = event(OTHER, &["db-0"], 7_001);
    let other =
        RecordedEvent { approved_at: Some(ms(8_161)), gone_at: Some(ms(9_001)), is_cancelled: true, ..other };
    recording.events.insert("other".to_owned(), other);
    report(
        recording,
        vec![
            passed("web-0 polls at least every 15 s", "longest gap 2.0 s"),
            failed(
                "web-0 does not approve other",
                "web-0 approved other, an event of db-0, 10 ms after it read the document",
                "Compare Resources of each event with the VM's own name, and approve only events that name it.",
                &[evidence, evidence + 1],
            ),
            failed(
                "web-1 keeps running",
                "the handler of web-1 exited with code 1 at 11.20 s",
                "Treat a status other than 200 as a failed poll: keep the last document, wait, and poll again.",
                &[crash, 100_000],
            ),
        ],
    )
}

fn hostile() -> Report {
    let mut all = bad();
    let bad = |text: &mut String| text.push_str(HOSTILE);
    let Report { recording, verdict, .. } = &mut all;
    bad(&mut recording.scenario);
    bad(&mut recording.summary);
    bad(&mut recording.handled_vms[0]);
    for (_, mut event) in std::mem::take(&mut recording.events) {
        let mut event_type = String::new();
        bad(&mut event_type);
        event.event_type = event_type.into();
        bad(&mut event.resources[0]);
        recording.events.insert(HOSTILE.to_owned(), event);
    }
    for entry in &mut recording.entries {
        entry.vm.iter_mut().for_each(bad);
        match &mut entry.what {
            What::Request(request) => {
                request.metadata.iter_mut().chain(&mut request.user_agent).for_each(bad);
                [&mut request.method, &mut request.target, &mut request.body].into_iter().for_each(bad);
                request.faults.iter_mut().for_each(bad);
            }
            What::Output { line: text } | What::Step { text } | What::Event { event: text, .. } => bad(text),
            What::Marker { .. }
            | What::HandlerStarted
            | What::HandlerExited { .. }
            | What::HandlerStopped => {}
        }
    }
    bad(&mut verdict.scenario);
    for finding in &mut verdict.findings {
        bad(&mut finding.expectation);
        match &mut finding.outcome {
            Outcome::Passed { note: text } | Outcome::NotJudged { why: text } => bad(text),
            Outcome::Failed { why, cure, .. } => [why, cure].into_iter().for_each(bad),
        }
    }
    all
}

/// Compares a golden file with the text, or rewrites it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("NOTBEFORE_WRITE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((number, (wanted, line))) =
        stored.lines().zip(text.lines()).enumerate().find(|(_, (wanted, line))| wanted != line)
    {
        panic!("{name}:{}: it has\n{wanted}\nand the report\n{line}", number + 1);
    }
    assert!(stored == text, "{name} ends differently");
}

#[test]
fn terminal() {
    let [good, bad] = [good(), bad()];
    golden("passed.txt", &text::timeline(&good.recording, &good.verdict, 100, false));
    golden("failed.txt", &text::timeline(&bad.recording, &bad.verdict, 100, false));
    golden("failed-narrow.txt", &text::timeline(&bad.recording, &bad.verdict, 60, false));
    golden(
        "report-card.txt",
        &[good, bad]
            .map(|one| text::line(&one.verdict) + "\n" + &text::failures(&one.recording, &one.verdict))
            .concat(),
    );
}

#[test]
fn colours_change_no_text() {
    let Report { recording, verdict, .. } = bad();
    let coloured = text::timeline(&recording, &verdict, 80, true);
    let mut plain = String::new();
    for (number, part) in coloured.split("\x1b[").enumerate() {
        plain += if number == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    assert_ne!(coloured, plain);
    assert_eq!(plain, text::timeline(&recording, &verdict, 80, false));
}

#[test]
fn lines_fit_the_width() {
    for Report { recording, verdict, .. } in [good(), bad(), hostile()] {
        for width in [50, 60, 80, 133] {
            let text = text::timeline(&recording, &verdict, width, false);
            let head = text.find("\n\n").unwrap();
            let long = text[head..].lines().find(|line| line.chars().count() > width);
            // A hostile name can be wider than the terminal.
            assert!(long.is_none() || recording.scenario.contains('<'), "{width}: {long:?}");
        }
    }
}

#[test]
fn junit() {
    golden("report.xml", &junit::document(&[good(), bad()]));
}

#[test]
fn html() {
    golden("report.html", &html::page(&[good(), bad()]));
}

#[test]
fn json_is_read_back() {
    for report in [good(), bad(), hostile()] {
        let json = report.to_json().unwrap();
        assert!(!json.chars().any(|char| notbefore_wire::text::is_unprintable(char) && char != '\n'));
        assert_eq!(Report::from_json(&json).unwrap(), report);
    }
    golden("report.json", &good().to_json().unwrap());
}

#[test]
fn file_of_another_format_or_broken_is_an_error_with_the_cure() {
    let json = good().to_json().unwrap();
    let other = json.replacen("\"format\": 1", "\"format\": 2", 1);
    let cut = &json[..json.len() / 2];
    for (json, error) in [
        (
            other.as_str(),
            "has format 2, and this release reads format 1; read it with the release that wrote it, or record the rehearsal again with --record",
        ),
        ("", "is not a recording of 'notbefore rehearse': EOF while parsing a value at line 1 column 0;"),
        ("{}", "is not a recording of 'notbefore rehearse': missing field `format`"),
        ("{\"format\": \"\x1b\"}", "is not a recording"),
        ("{\"format\": 1}", "is not a recording of 'notbefore rehearse': missing field `recording`"),
        (cut, "is not a recording of 'notbefore rehearse': EOF"),
    ] {
        let shown = Report::from_json(json).unwrap_err().to_string();
        assert!(shown.starts_with(error), "{shown}");
        assert!(shown.ends_with("record the rehearsal again with --record"), "{shown}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let reports = [hostile()];
    let Report { recording, verdict, .. } = &reports[0];
    let terminal = text::timeline(recording, verdict, 100, false)
        + &text::line(verdict)
        + &text::failures(recording, verdict);
    let (xml, page) = (junit::document(&reports), html::page(&reports));
    for text in [&terminal, &xml, &page] {
        let char = text.chars().find(|char| notbefore_wire::text::is_unprintable(*char) && *char != '\n');
        assert_eq!(char, None);
    }
    for text in [&xml, &page] {
        assert!(text.contains("&lt;script&gt;"));
        for piece in ["<script", "<img", "</script", "]]>", "\u{ffff}", "\u{fffe}"] {
            assert!(!text.contains(piece), "{piece:?}");
        }
        assert_eq!(text.matches("<!--").count(), 0);
        well_formed(text.trim_start_matches("<!doctype html>"));
    }
    // The page has no other elements and attributes than a harmless one, and nothing leaves it.
    let names = |page: &str| tags(page).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(names(&page), names(&html::page(&[bad()])));
    assert!(!page.contains("url(") && !page.contains("@import"));
    assert!(page.contains("default-src 'none'"));
}

/// Names of elements and attributes.
fn tags(markup: &str) -> Vec<String> {
    let tags = markup.split('<').skip(1).filter_map(|part| part.split_once('>')).map(|(tag, _)| tag);
    let names = tags.flat_map(|tag| {
        // Every second part is the value of an attribute.
        let outside: Vec<&str> = tag.split('"').step_by(2).collect();
        outside.join("").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

/// Checks that elements are closed in order and that quotes are in pairs.
fn well_formed(markup: &str) {
    let mut open = Vec::new();
    for part in markup.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("not closed: {part}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && name != "?xml" && name != "meta" {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn record_with_impossible_times_is_shown() {
    let mut report = bad();
    report.recording.entries.reverse();
    report.recording.ended_at = Duration::ZERO;
    report.recording.entries[3].at = Duration::MAX;
    for event in report.recording.events.values_mut() {
        (event.scheduled_at, event.not_before) = (Duration::MAX, Some(Duration::ZERO));
    }
    let mut late = bad();
    late.recording.events.values_mut().for_each(|event| event.gone_at = Some(ms(3_600_000)));
    for one in [report, late, report_of_nothing()] {
        text::timeline(&one.recording, &one.verdict, 0, true);
        let reports = [one];
        junit::document(&reports);
        let page = html::page(&reports);
        well_formed(page.trim_start_matches("<!doctype html>"));
        for place in page.split("=\"").filter_map(|part| part.split_once("%\"")?.0.parse::<f64>().ok()) {
            assert!((0.0..=100.0).contains(&place), "{place} is outside of the picture");
        }
    }
    assert!(html::page(&[]).contains("passed: 0 of 0 scenarios"));
}

fn report_of_nothing() -> Report {
    report(recording("", "", &[], Vec::new()), Vec::new())
}

#[test]
fn long_record_stays_short() {
    let vms: Vec<String> = (0..1_000).map(|n| format!("vm-{n:03}")).collect();
    let mut entries: Vec<Entry> = vms.iter().map(|vm| entry(0, vm, What::HandlerStarted)).collect();
    for n in 0..20 {
        entries.extend(vms.iter().map(|vm| poll(100 + n * 1_000, vm, 1, &[])));
    }
    // Every answer has news.
    entries.extend((0..1_000).map(|n| poll(21_000 + n, "vm-000", 2 + n, &[])));
    let names: Vec<&str> = vms.iter().map(String::as_str).collect();
    let report = report(recording("many", "A thousand VMs", &names, entries), Vec::new());
    let text = text::timeline(&report.recording, &report.verdict, 100, false);
    assert!(text.lines().count() < 170, "{}", text.lines().count());
    assert!(text.contains("1000 VMs  ■ handler starts"), "{text}");
    assert!(text.contains("1000 VMs  → first poll: 200, incarnation 1, no events"), "{text}");
    assert!(text.contains("1000 VMs  … 19000 polls, each every 1.0 s"), "{text}");
    assert!(text.contains("lines left out; --output json has all"), "{text}");
    let page = html::page(&[report]);
    assert!(page.contains("976 VMs more not drawn"), "{}", page.len());
    assert!(page.contains("17000 more; --output json has all"), "{}", page.len());
}
