//! Golden documents, byte for byte: six cases at eight versions, and a line for each type of fact.

use notbefore_wire::guest::document::{Document, Event, EventType, RenderStyle, Source, Status};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::{Fact, FactDetail};

fn event(id: &str, event_type: EventType, source: Source, resources: &[&str]) -> Event {
    Event {
        id: id.parse().unwrap(),
        status: Status::Scheduled { not_before: "2016-09-19T18:29:47Z".parse().unwrap() },
        event_type,
        resources: resources.iter().map(|name| name.to_string()).collect(),
        description: String::new(),
        source,
        duration_in_seconds: -1,
    }
}

fn reboot(resources: &[&str]) -> Event {
    Event {
        description: "Host server is undergoing maintenance.".to_owned(),
        ..event("602d9444-d2cd-49c7-8624-8643e7171297", EventType::Reboot, Source::Platform, resources)
    }
}

fn cases() -> Vec<(&'static str, Document, RenderStyle)> {
    let iaas = RenderStyle::default();
    let cloud_service = RenderStyle { underscore_names: false, ..iaas };
    let scheduled = reboot(&["web-0", "web-2"]);
    let started = Event { status: Status::Started, ..scheduled.clone() };
    let preempt =
        event("0b1fbe6c-1a4d-4b63-9c3b-6f7c0c6e2a01", EventType::Preempt, Source::Platform, &["batch_0"]);
    let terminate =
        event("0b1fbe6c-1a4d-4b63-9c3b-6f7c0c6e2a02", EventType::Terminate, Source::User, &["batch_1"]);
    let advisory = |id: &str, resource: &str, date: Option<&str>| Event {
        status: Status::Advisory { date: date.map(|date| date.parse().unwrap()) },
        ..event(id, EventType::SpotRebalanceRecommendation, Source::Platform, &[resource])
    };
    let advisories = vec![
        advisory("0b1fbe6c-1a4d-4b63-9c3b-6f7c0c6e2a03", "batch_0", None),
        advisory("0b1fbe6c-1a4d-4b63-9c3b-6f7c0c6e2a04", "batch_1", Some("2016-09-19T18:29:47Z")),
    ];
    vec![
        ("empty", Document { incarnation: 1, events: vec![] }, iaas),
        ("scheduled", Document { incarnation: 2, events: vec![scheduled] }, iaas),
        ("started", Document { incarnation: 3, events: vec![started] }, iaas),
        ("preempt-terminate", Document { incarnation: 3, events: vec![preempt, terminate] }, iaas),
        ("advisory", Document { incarnation: 4, events: advisories }, iaas),
        (
            "cloud-service",
            Document { incarnation: 2, events: vec![reboot(&["FrontEnd_IN_0", "BackEnd_IN_0"])] },
            cloud_service,
        ),
    ]
}

#[test]
fn documents_are_the_golden_bytes() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut compared = 0;
    for (case, document, style) in cases() {
        for version in EventsVersion::ALL {
            let name = format!("{version}.{case}.json");
            let golden = std::fs::read(format!("{directory}/{name}")).unwrap();
            let rendered = document.render(version, &style);
            assert_eq!(String::from_utf8_lossy(&rendered), String::from_utf8_lossy(&golden), "{name}");
            compared += 1;
        }
    }
    let files = std::fs::read_dir(directory).unwrap();
    let on_disk = files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "json"));
    assert_eq!(compared, on_disk.count(), "a golden file that nothing compares");
}

/// One line for each type: parsing and writing it gives the same bytes.
#[test]
fn facts_are_the_golden_lines() {
    let lines = include_str!("../golden/facts.jsonl");
    let mut types = std::collections::BTreeSet::new();
    for line in lines.lines() {
        let fact: Fact = serde_json::from_str(line).unwrap();
        assert!(!matches!(fact.what, FactDetail::Unknown { .. }), "{line}");
        assert_eq!(serde_json::to_string(&fact).unwrap(), line);
        types.insert(fact.what.kind());
    }
    // The description of the API has exactly these types.
    let api: serde_json::Value = serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    let schema = &api["components"]["schemas"]["Fact"];
    assert_eq!(schema["discriminator"]["propertyName"], "type");
    let described: Vec<&String> = schema["discriminator"]["mapping"].as_object().unwrap().keys().collect();
    assert_eq!(types.iter().collect::<Vec<_>>(), described);
}

/// A type of a later release, or a detail in another form, is written as it was read.
#[test]
fn fact_of_unknown_type_is_kept() {
    for rest in [
        r#""type":"VmPainted","by":{"kind":"robot","name":"r2"},"detail":{"colour":"red"}"#,
        r#""type":"VmMoved","by":{"kind":"timer","name":"timer"},"detail":{"to":"h9"}"#,
    ] {
        let line = format!("{{\"at\":\"2026-11-17T03:00:00Z\",{rest}}}");
        let fact: Fact = serde_json::from_str(&line).unwrap();
        assert!(matches!(fact.what, FactDetail::Unknown { .. }), "{line}");
        assert_eq!(serde_json::to_string(&fact).unwrap(), line);
    }
}
