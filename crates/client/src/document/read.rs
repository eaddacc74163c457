//! Parser: response body to [`Document`].
//!
//! Two rules:
//! - Anything that is not a document is an error, never "no events". Handlers have missed reboots because an empty
//!   response looked like an empty document.
//! - An event is never dropped: an invalid field is left out and reported as a [`ReadWarning`].
//!
//! The content type is ignored.

use std::collections::HashSet;

use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::text::{printable, shorten};
use serde_json::{Map, Value};

use super::{Document, Event, EventId, EventKind, EventSource, EventStatus, repair, time};

/// Most events in a document: one per VM of the largest scope. More are an error; leaving some out would report them
/// as over.
pub const EVENTS_MAX: usize = 1_000;
/// Largest body: [`EVENTS_MAX`] events of a kilobyte each.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Characters of a body shown in a message: enough to tell a proxy's page from a platform's error.
const SHOWN_CHARACTERS_MAX: usize = 80;

/// Most warnings kept per response; a hostile platform could cause a million.
const WARNINGS_MAX: usize = 100;

/// Why a response is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No body, or a blank one.
    #[error("the answer is empty, which does not mean that there are no events")]
    Empty,
    /// Larger than [`BODY_BYTES_MAX`].
    #[error("the answer has {bytes} bytes, more than the limit of {BODY_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not JSON.
    #[error("the answer is not JSON ({error}): {start}")]
    NotJson {
        /// Message of the parser.
        error: String,
        /// Start of the body.
        start: String,
    },
    /// JSON, but not an object.
    #[error("the answer is no JSON object: {start}")]
    NotAnObject {
        /// Start of the body.
        start: String,
    },
    /// No list of events.
    #[error("the answer has no Events: {start}")]
    NoEvents {
        /// Start of the body.
        start: String,
    },
    /// `Events` is not a list.
    #[error("Events is not a list: {start}")]
    EventsNotAList {
        /// Start of the value.
        start: String,
    },
    /// More than [`EVENTS_MAX`] events.
    #[error("the answer has {events} events, more than the limit of {EVENTS_MAX}: {start}")]
    TooManyEvents {
        /// Number of events.
        events: usize,
        /// Start of the body.
        start: String,
    },
    /// An event is not an object.
    #[error("Events[{index}] is not an object: {start}")]
    EventNotAnObject {
        /// Index of the event, from 0.
        index: usize,
        /// Start of the value.
        start: String,
    },
}

/// A deviation that was tolerated. `index` counts events from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadWarning {
    /// Invalid JSON that could be repaired.
    #[error("the answer has raw control characters, or bytes that are no UTF-8, in its strings")]
    NotQuiteJson,
    /// No incarnation.
    #[error("the answer has no DocumentIncarnation")]
    NoIncarnation,
    /// An event without id; it cannot be approved.
    #[error("Events[{index}] has no EventId: it cannot be approved")]
    NoId {
        /// Index of the event.
        index: usize,
    },
    /// A duplicate id.
    #[error("Events[{index}] has the id {} of an event before it, and is passed over", printable(id.as_str()))]
    Repeated {
        /// Index of the event.
        index: usize,
        /// The id.
        id: EventId,
    },
    /// An invalid field. The event is kept without it.
    #[error("Events[{index}] has a {field} that cannot be read: {start}")]
    Unreadable {
        /// Index of the event.
        index: usize,
        /// Name of the field.
        field: &'static str,
        /// Start of the value.
        start: String,
    },
}

impl Document {
    /// Parses a response body of an api-version.
    ///
    /// ```
    /// use notbefore_client::document::{Document, EventKind, EventsVersion};
    ///
    /// let body = br#"{"DocumentIncarnation":"2","Events":[{"EventId":"602d9444-d2cd-49c7-8624-8643e7171297",
    ///     "EventType":"Reboot","EventStatus":"Scheduled","Resources":["web-0"],"NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT"}]}"#;
    /// let document = Document::read(body, EventsVersion::NEWEST)?;
    /// assert_eq!(document.events[0].kind, EventKind::Reboot);
    ///
    /// // An empty answer is an error, never "no events".
    /// assert!(Document::read(b"", EventsVersion::NEWEST).is_err());
    /// # Ok::<(), notbefore_client::document::ReadError>(())
    /// ```
    pub fn read(body: &[u8], version: EventsVersion) -> Result<Document, ReadError> {
        Document::read_with_warnings(body, version).map(|(document, _)| document)
    }

    /// Like [`Document::read`], with the tolerated deviations.
    pub fn read_with_warnings(
        body: &[u8],
        version: EventsVersion,
    ) -> Result<(Document, Vec<ReadWarning>), ReadError> {
        if body.len() > BODY_BYTES_MAX {
            return Err(ReadError::TooLarge { bytes: body.len() });
        }
        if body.trim_ascii().is_empty() {
            return Err(ReadError::Empty);
        }
        let (value, mended) = repair::parse(body)
            .map_err(|error| ReadError::NotJson { error: error.to_string(), start: excerpt(body) })?;
        let Value::Object(mut fields) = value else {
            return Err(ReadError::NotAnObject { start: excerpt(body) });
        };
        let events = match fields.remove("Events") {
            Some(Value::Array(events)) => events,
            Some(other) => return Err(ReadError::EventsNotAList { start: shown(&other) }),
            None => return Err(ReadError::NoEvents { start: excerpt(body) }),
        };
        if events.len() > EVENTS_MAX {
            return Err(ReadError::TooManyEvents { events: events.len(), start: excerpt(body) });
        }
        let mut warnings = Vec::new();
        if mended {
            warnings.push(ReadWarning::NotQuiteJson);
        }
        let incarnation = text_of(fields.get("DocumentIncarnation")).unwrap_or_default();
        if incarnation.is_empty() {
            warnings.push(ReadWarning::NoIncarnation);
        }
        let mut document = Document { incarnation, events: Vec::with_capacity(events.len()) };
        let mut known = HashSet::new();
        for (index, value) in events.into_iter().enumerate() {
            let Value::Object(fields) = value else {
                return Err(ReadError::EventNotAnObject { index, start: shown(&value) });
            };
            let event = Reader { index, version, warnings: &mut warnings }.event(fields);
            match known.insert(event.id.clone()) {
                true => document.events.push(event),
                false if warnings.len() < WARNINGS_MAX => {
                    warnings.push(ReadWarning::Repeated { index, id: event.id })
                }
                false => {}
            }
        }
        Ok((document, warnings))
    }
}

/// Parses the fields of one event.
struct Reader<'a> {
    index: usize,
    version: EventsVersion,
    warnings: &'a mut Vec<ReadWarning>,
}

impl Reader<'_> {
    fn event(&mut self, fields: Map<String, Value>) -> Event {
        let kind = EventKind::from(self.text(&fields, "EventType"));
        let resources = self.resources(fields.get("Resources"));
        let id = match self.text(&fields, "EventId") {
            id if id.trim().is_empty() => {
                self.warn(|index| ReadWarning::NoId { index });
                EventId::synthetic(&kind, &resources)
            }
            id => EventId::new(id),
        };
        let source = self.text(&fields, "EventSource");
        let mut event = Event {
            id,
            kind,
            status: EventStatus::from(self.text(&fields, "EventStatus")),
            resources,
            not_before: self.not_before(fields.get("NotBefore")),
            description: self.text(&fields, "Description"),
            source: (!source.is_empty()).then(|| EventSource::from(source)),
            duration_seconds: self.duration(fields.get("DurationInSeconds")),
            raw: Value::Object(fields),
        };
        if event.is_advisory() {
            // No deadline: nothing starts then.
            event.not_before = None;
        }
        event
    }

    fn unreadable(&mut self, field: &'static str, value: &Value) {
        self.warn(|index| ReadWarning::Unreadable { index, field, start: shown(value) });
    }

    fn warn(&mut self, warning: impl FnOnce(usize) -> ReadWarning) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning(self.index));
        }
    }

    /// A string; empty if missing.
    fn text(&mut self, fields: &Map<String, Value>, field: &'static str) -> String {
        match fields.get(field) {
            None | Some(Value::Null) => String::new(),
            Some(value) => text_of(Some(value)).unwrap_or_else(|| {
                self.unreadable(field, value);
                String::new()
            }),
        }
    }

    fn resources(&mut self, value: Option<&Value>) -> Vec<String> {
        const FIELD: &str = "Resources";
        let names = match value {
            None | Some(Value::Null) => &[],
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
        };
        let mut read = Vec::with_capacity(names.len());
        for name in names {
            match name {
                Value::String(name) => read.push(self.plain(name).to_owned()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    self.unreadable(FIELD, name);
                }
            }
        }
        read
    }

    /// Strips the single `_` that the preview version adds. A second one belongs to the name.
    fn plain<'n>(&self, name: &'n str) -> &'n str {
        match self.version.has_underscore_names() {
            true => name.strip_prefix('_').unwrap_or(name),
            false => name,
        }
    }

    fn not_before(&mut self, value: Option<&Value>) -> Option<jiff::Timestamp> {
        let value = value.filter(|value| !value.is_null())?;
        let text = value.as_str();
        if text.is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
        let read = text.and_then(time::read);
        if read.is_none() {
            self.unreadable("NotBefore", value);
        }
        read
    }

    fn duration(&mut self, value: Option<&Value>) -> Option<u64> {
        let value = value.filter(|value| !value.is_null())?;
        let seconds = match value {
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_f64(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match seconds {
            Some(seconds) if seconds.is_finite() => (seconds >= 0.0).then_some(seconds.ceil() as u64),
            _ => {
                self.unreadable("DurationInSeconds", value);
                None
            }
        }
    }
}

/// A string or a number, as text.
fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn shown(value: &Value) -> String {
    excerpt(value.to_string().as_bytes())
}

/// Start of a body in one printable line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_CHARACTERS_MAX)]);
    shorten(&printable(text.trim()), SHOWN_CHARACTERS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NEWEST: EventsVersion = EventsVersion::NEWEST;

    fn closely(value: &Value) -> (Document, Vec<ReadWarning>) {
        Document::read_with_warnings(value.to_string().as_bytes(), NEWEST).unwrap()
    }

    fn one(event: Value) -> (Event, Vec<ReadWarning>) {
        let (mut document, warnings) = closely(&json!({"DocumentIncarnation": 1, "Events": [event]}));
        (document.events.remove(0), warnings)
    }

    #[test]
    fn date_of_an_advisory_is_no_deadline() {
        for not_before in [json!(""), json!("Mon, 19 Sep 2016 18:29:47 GMT"), Value::Null] {
            for (kind, status) in [("SpotRebalanceRecommendation", "Advisory"), ("Reboot", "advisory")] {
                let event = json!({"EventId": "a", "EventType": kind, "EventStatus": status, "NotBefore": not_before});
                let (document, warnings) = closely(&json!({"DocumentIncarnation": 1, "Events": [event]}));
                let event = &document.events[0];
                assert_eq!((event.not_before, event.is_advisory(), warnings), (None, true, vec![]));
                assert_eq!(event.raw["NotBefore"], not_before);
            }
        }
    }

    #[test]
    fn invalid_document_error_shows_body() {
        for (body, said) in [
            ("", "the answer is empty"),
            (" \r\n", "the answer is empty"),
            ("<html><body>Bad gateway</body></html>", "<html><body>Bad gateway"),
            ("null", "no JSON object: null"),
            ("[]", "no JSON object: []"),
            ("{\"DocumentIncarnation\":1}", "has no Events: {\"DocumentIncarnation\":1}"),
            ("{\"error\":\"Forbidden\"}", "has no Events: {\"error\":\"Forbidden\"}"),
            ("{\"Events\":null}", "Events is not a list: null"),
            ("{\"Events\":{}}", "Events is not a list: {}"),
            ("{\"Events\":[null]}", "Events[0] is not an object: null"),
            ("{\"Events\":[", "is not JSON"),
        ] {
            let error = Document::read(body.as_bytes(), NEWEST).unwrap_err().to_string();
            assert!(error.contains(said), "{body}: {error}");
        }
        let long = "x".repeat(BODY_BYTES_MAX + 1);
        let error = Document::read(long.as_bytes(), NEWEST).unwrap_err();
        assert_eq!(error, ReadError::TooLarge { bytes: BODY_BYTES_MAX + 1 });
        let error = Document::read(&long.as_bytes()[1..], NEWEST).unwrap_err().to_string();
        assert!(error.ends_with(&format!("{}…", "x".repeat(80))), "{error}");
    }

    #[test]
    fn too_many_events_are_an_error() {
        let of = |count: usize| {
            let events: Vec<Value> = (0..count).map(|index| json!({"EventId": index.to_string()})).collect();
            let body = json!({"DocumentIncarnation": 1, "Events": events}).to_string();
            Document::read(body.as_bytes(), NEWEST).map(|document| document.events.len())
        };
        assert_eq!(of(EVENTS_MAX), Ok(EVENTS_MAX));
        let error = of(EVENTS_MAX + 1).unwrap_err().to_string();
        assert!(error.starts_with("the answer has 1001 events, more than the limit of 1000: {"), "{error}");
    }

    #[test]
    fn an_incarnation_may_be_a_number_a_text_or_missing() {
        let incarnation = |value: Value| {
            let (document, warnings) = closely(&json!({"DocumentIncarnation": value, "Events": []}));
            (document.incarnation, warnings)
        };
        assert_eq!(incarnation(json!(7)), ("7".into(), vec![]));
        assert_eq!(incarnation(json!("7")), ("7".into(), vec![]));
        assert_eq!(incarnation(json!(u64::MAX)), (u64::MAX.to_string(), vec![]));
        assert_eq!(incarnation(json!(-1)), ("-1".into(), vec![]));
        assert_eq!(incarnation(json!(null)), (String::new(), vec![ReadWarning::NoIncarnation]));
    }

    #[test]
    fn complete_event_is_read() {
        let sent = json!({
            "EventId": "602d9444-D2CD-49C7-8624-8643E7171297", "EventStatus": "Scheduled", "EventType": "freeze",
            "ResourceType": "VirtualMachine", "Resources": ["_a", "b"], "NotBefore": "Sun, 19 Sep 2016 18:29:47 GMT",
            "Description": "Why\nnot", "EventSource": "Platform", "DurationInSeconds": 9, "Further": {"x": 1}
        });
        let (event, warnings) = one(sent.clone());
        assert_eq!(warnings, vec![]);
        assert_eq!(event.id, EventId::new("602D9444-d2cd-49c7-8624-8643e7171297"));
        assert_eq!(event.kind, EventKind::Freeze);
        assert_eq!(event.status, EventStatus::Scheduled);
        assert_eq!(event.resources, ["_a", "b"]);
        assert_eq!(event.not_before.map(|at| at.to_string()).as_deref(), Some("2016-09-19T18:29:47Z"));
        assert_eq!(event.description, "Why\nnot");
        assert_eq!(event.source, Some(EventSource::Platform));
        assert_eq!(event.duration_seconds, Some(9));
        assert_eq!(event.raw, sent);
    }

    #[test]
    fn one_underscore_is_stripped_at_the_preview_version_only() {
        let body =
            br#"{"DocumentIncarnation":1,"Events":[{"EventId":"a","Resources":["_vm","__vm","vm_0"]}]}"#;
        for version in EventsVersion::ALL {
            let expected = match version == EventsVersion::V2017_03_01 {
                true => ["vm", "_vm", "vm_0"],
                false => ["_vm", "__vm", "vm_0"],
            };
            assert_eq!(Document::read(body, version).unwrap().events[0].resources, expected, "{version}");
        }
    }

    #[test]
    fn unknown_words_are_kept() {
        let (event, _) = one(
            json!({"EventId": "a", "EventType": "Hibernate", "EventStatus": "Completed", "EventSource": "Moon"}),
        );
        assert_eq!(event.kind, EventKind::Other("Hibernate".into()));
        assert_eq!(event.status, EventStatus::Other("Completed".into()));
        assert_eq!(event.source, Some(EventSource::Other("Moon".into())));
    }

    #[test]
    fn an_event_without_a_time_is_an_event() {
        for nothing in [json!(""), json!("  "), json!(null)] {
            let (event, warnings) = one(json!({"EventId": "a", "NotBefore": nothing}));
            assert_eq!((event.not_before, warnings), (None, vec![]));
        }
        assert_eq!(one(json!({"EventId": "a"})).0.not_before, None);
        for unreadable in [json!("soon"), json!(1_474_309_787), json!({})] {
            let (event, warnings) = one(json!({"EventId": "a", "NotBefore": unreadable}));
            assert_eq!(event.not_before, None);
            assert!(
                matches!(&warnings[..], [ReadWarning::Unreadable { field: "NotBefore", .. }]),
                "{warnings:?}"
            );
        }
    }

    #[test]
    fn duration_minus_one_is_unknown() {
        let duration =
            |value: Value| one(json!({"EventId": "a", "DurationInSeconds": value})).0.duration_seconds;
        assert_eq!(duration(json!(0)), Some(0));
        assert_eq!(duration(json!("30")), Some(30));
        assert_eq!(duration(json!(5.5)), Some(6));
        for unknown in [json!(-1), json!("-1"), json!(null), json!("long"), json!([])] {
            assert_eq!(duration(unknown.clone()), None, "{unknown}");
        }
    }

    #[test]
    fn event_without_id_gets_stable_synthetic_id() {
        let (event, warnings) =
            one(json!({"EventType": "Reboot", "EventStatus": "Scheduled", "Resources": ["a", "b"]}));
        assert_eq!(warnings, vec![ReadWarning::NoId { index: 0 }]);
        assert!(event.id.is_synthetic());
        let (later, _) = one(
            json!({"EventId": "", "EventType": "Reboot", "EventStatus": "Started", "Resources": ["a", "b"]}),
        );
        assert_eq!(event.id, later.id);
        assert!(!EventId::new("602d9444-d2cd-49c7-8624-8643e7171297").is_synthetic());
    }

    #[test]
    fn duplicate_event_id_keeps_first() {
        let (document, warnings) = closely(&json!({"DocumentIncarnation": 1, "Events": [
            {"EventId": "A", "EventType": "Reboot"}, {"EventId": "b"}, {"EventId": "a", "EventType": "Freeze"}]}));
        assert_eq!(document.events.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["A", "b"]);
        assert_eq!(document.events[0].kind, EventKind::Reboot);
        assert_eq!(warnings, vec![ReadWarning::Repeated { index: 2, id: EventId::new("a") }]);
    }

    #[test]
    fn malformed_resources_keep_event() {
        assert_eq!(one(json!({"EventId": "a", "Resources": "vm"})).0.resources, ["vm"]);
        let (event, warnings) = one(json!({"EventId": "a", "Resources": ["vm", 5]}));
        assert_eq!(event.resources, ["vm"]);
        assert!(
            matches!(&warnings[..], [ReadWarning::Unreadable { field: "Resources", .. }]),
            "{warnings:?}"
        );
    }

    /// Any JSON value.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[A-Za-z]{1,4}", inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    const FIELDS: [&str; 8] = [
        "EventId",
        "EventStatus",
        "EventType",
        "Resources",
        "NotBefore",
        "Description",
        "EventSource",
        "DurationInSeconds",
    ];

    proptest! {
        /// No event is lost, whatever its fields hold, and its raw form is kept.
        #[test]
        fn no_event_is_lost(
            events in prop::collection::vec(prop::collection::vec(any_value(), FIELDS.len()), 0..4),
            incarnation in any_value(),
        ) {
            let event = |values: &Vec<Value>| -> Value { FIELDS.map(str::to_owned).into_iter().zip(values.clone()).collect::<Map<_, _>>().into() };
            let sent: Vec<Value> = events.iter().map(event).collect();
            let body = json!({"DocumentIncarnation": incarnation, "Events": sent}).to_string();
            for version in [EventsVersion::V2017_03_01, NEWEST] {
                let (document, warnings) = Document::read_with_warnings(body.as_bytes(), version).unwrap();
                let repeated = warnings.iter().filter(|warning| matches!(warning, ReadWarning::Repeated { .. })).count();
                prop_assert_eq!(document.events.len() + repeated, sent.len());
                prop_assert!(document.events.iter().all(|event| sent.contains(&event.raw)));
            }
        }

        /// Only an object with a list of events is a document.
        #[test]
        fn nothing_else_is_a_document(value in any_value(), garbage in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(Document::read(value.to_string().as_bytes(), NEWEST).is_err());
            prop_assert!(Document::read(&garbage, NEWEST).is_err());
        }
    }

    #[test]
    fn warnings_escape_control_characters() {
        let told = ReadWarning::Repeated { index: 1, id: EventId::new("a\u{1b}[2Jb") }.to_string();
        assert_eq!(told, "Events[1] has the id a\\u{1b}[2Jb of an event before it, and is passed over");
    }

    /// The service's own bytes at every version, which tests of other clients compare with Azure's.
    #[test]
    fn golden_documents_read_without_warnings() {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/golden");
        let mut count = 0;
        for version in EventsVersion::ALL {
            for what in ["empty", "scheduled", "started", "cloud-service", "preempt-terminate"] {
                let body = std::fs::read(golden.join(format!("{version}.{what}.json"))).unwrap();
                let (document, warnings) = Document::read_with_warnings(&body, version).unwrap();
                assert_eq!(warnings, vec![], "{version} {what}");
                assert_eq!(
                    document.events.is_empty(),
                    what == "empty" || (what == "preempt-terminate" && version < EventsVersion::V2017_11_01)
                );
                count += document.events.len();
            }
        }
        assert!(count > 20, "{count}");
    }
}
