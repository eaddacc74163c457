//! The document parser of client and agent, at every api-version.
//!
//! Invariants: an error never becomes "no events", no event is lost, and a document rendered by the service parses to
//! the same events without warnings.

use crate::planted_bug;
use notbefore_client::document::{Document, EventKind, EventStatus, EventsVersion, ReadWarning};
use notbefore_wire::guest::document as wire;
use serde_json::Value;
use uuid::Uuid;

pub fn check(body: &[u8]) -> bool {
    let read = EventsVersion::ALL.map(|version| (version, Document::read_with_warnings(body, version)));
    let passed = read.iter().filter(|(_, read)| read.is_ok()).count();
    assert!(passed == 0 || passed == read.len(), "some versions read it and some do not");
    for (version, read) in read {
        let Ok((document, warnings)) = read else { return false };
        none_is_lost(body, &document, &warnings);
        render_and_read(&document, version);
        let is_bug = |event: &notbefore_client::document::Event| {
            event.kind == EventKind::Preempt && event.duration_seconds.is_some_and(|seconds| seconds > 1_000)
        };
        planted_bug(document.events.len() > 1 && document.events.iter().any(is_bug));
    }
    true
}

fn none_is_lost(body: &[u8], document: &Document, warnings: &[ReadWarning]) {
    let repeated = warnings.iter().filter(|warning| matches!(warning, ReadWarning::Repeated { .. })).count();
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => {
            let sent = value["Events"].as_array().expect("a document has a list of events");
            assert_eq!(document.events.len() + repeated, sent.len(), "an event is lost");
        }
        // Repaired JSON: at least the list must exist.
        Err(_) => {
            assert!(warnings.contains(&ReadWarning::NotQuiteJson));
            assert!(body.contains(&b'[') && body.contains(&b']'), "no list, and no error");
        }
    }
}

/// Renders the events that the service could have, and parses them again.
fn render_and_read(document: &Document, version: EventsVersion) {
    let events: Vec<wire::Event> = document.events.iter().filter_map(as_rendered).collect();
    let style = wire::RenderStyle::default();
    let bytes = wire::Document { incarnation: 7, events: events.clone() }.render(version, &style);
    let (read, warnings) = Document::read_with_warnings(&bytes, version).expect("what is rendered is read");
    assert_eq!(warnings, []);
    assert_eq!(read.incarnation, "7");
    let shown: Vec<&wire::Event> = events.iter().filter(|event| version.knows(event.event_type)).collect();
    assert_eq!(read.events.len(), shown.len());
    for (event, shown) in read.events.iter().zip(shown) {
        assert_eq!(event.id.as_str().parse(), Ok(shown.id));
        assert_eq!(event.kind.as_str(), shown.event_type.as_str());
        assert_eq!(event.resources, shown.resources);
        let not_before = match shown.status {
            wire::Status::Scheduled { not_before } => Some(not_before.as_second()),
            wire::Status::Started | wire::Status::Advisory { .. } => None,
        };
        assert_eq!(event.not_before.map(|at| at.as_second()), not_before);
    }
}

fn as_rendered(event: &notbefore_client::document::Event) -> Option<wire::Event> {
    let event_type = match event.kind {
        EventKind::Freeze => wire::EventType::Freeze,
        EventKind::Reboot => wire::EventType::Reboot,
        EventKind::Redeploy => wire::EventType::Redeploy,
        EventKind::Preempt => wire::EventType::Preempt,
        EventKind::Terminate => wire::EventType::Terminate,
        EventKind::SpotRebalanceRecommendation => wire::EventType::SpotRebalanceRecommendation,
        EventKind::Other(_) => return None,
    };
    let status = match (&event.status, event.not_before) {
        // The date must not become a deadline.
        _ if event.is_advisory() => wire::Status::Advisory { date: Some(jiff::Timestamp::UNIX_EPOCH) },
        (EventStatus::Scheduled, Some(not_before)) => wire::Status::Scheduled { not_before },
        _ => wire::Status::Started,
    };
    Some(wire::Event {
        // Other spellings of a GUID would merge two events.
        id: Some(event.id.as_str()).filter(|id| id.len() == 36)?.parse::<Uuid>().ok()?,
        status,
        event_type,
        resources: event.resources.clone(),
        description: event.description.clone(),
        source: wire::Source::Platform,
        duration_in_seconds: event
            .duration_seconds
            .and_then(|seconds| i32::try_from(seconds).ok())
            .unwrap_or(-1),
    })
}
