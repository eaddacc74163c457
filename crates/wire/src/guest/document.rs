//! The scheduled-events document: an incarnation and the live events of a scope.
//!
//! [`Document::render`] returns the exact bytes of a version: compact JSON, keys in the order that Azure sends (not
//! the order of its published schema), an upper-case EventId, and an empty NotBefore once an event has started.
//! Documents are rendered once per change and served many times. Rendering writes into one buffer and allocates
//! nothing per field.

use std::io::Write;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::{rfc2822, temporal};
use serde::Serializer;
use uuid::Uuid;

use super::version::EventsVersion;

/// What an event does to its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// A pause of some seconds; memory and connections stay.
    Freeze,
    /// A restart on the same host; memory is lost.
    Reboot,
    /// A move to another host; memory and ephemeral disks are lost.
    Redeploy,
    /// The eviction of a Spot VM.
    Preempt,
    /// The deletion of the VM.
    Terminate,
    /// Nothing: a hint that a Spot VM may be evicted.
    SpotRebalanceRecommendation,
}

impl EventType {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Freeze => "Freeze",
            EventType::Reboot => "Reboot",
            EventType::Redeploy => "Redeploy",
            EventType::Preempt => "Preempt",
            EventType::Terminate => "Terminate",
            EventType::SpotRebalanceRecommendation => "SpotRebalanceRecommendation",
        }
    }
}

/// The status of a live event. Documents do not contain ended events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Starts when it is approved, or at NotBefore.
    Scheduled {
        /// Shown in whole seconds.
        not_before: Timestamp,
    },
    /// Has started; NotBefore is an empty string.
    Started,
    /// Never starts.
    Advisory {
        /// Shown as NotBefore, but no deadline; an empty string if none.
        date: Option<Timestamp>,
    },
}

/// Who requested the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The provider, who runs the hosts.
    Platform,
    /// The owner of the VM.
    User,
}

impl Source {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Platform => "Platform",
            Source::User => "User",
        }
    }
}

/// One live event, with all fields of the newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The id that approvals use; never changes.
    pub id: Uuid,
    /// Scheduled, Started or Advisory.
    pub status: Status,
    /// What it does to its resources.
    pub event_type: EventType,
    /// Names of the affected VMs, in an order that never changes.
    pub resources: Vec<String>,
    /// Text for people; may be empty.
    pub description: String,
    /// Who requested it.
    pub source: Source,
    /// Expected length of the interruption; -1 if unknown.
    pub duration_in_seconds: i32,
}

/// The live events of a scope, at an incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Rises by one with each change of the newest version's document.
    pub incarnation: u64,
    /// In the order in which they are shown.
    pub events: Vec<Event>,
}

/// Options that change the rendered bytes besides the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderStyle {
    /// Prefix names with `_` at 2017-03-01: true except for cloud services.
    pub underscore_names: bool,
    /// Write NotBefore as RFC 1123 at 2017-03-01 too; the default there is ISO 8601.
    pub rfc1123_everywhere: bool,
}

impl Default for RenderStyle {
    fn default() -> Self {
        RenderStyle { underscore_names: true, rfc1123_everywhere: false }
    }
}

/// Upper bound for an event's bytes, without names and description.
const EVENT_BYTES: usize = 320;
/// Upper bound for a document's bytes without events, with the longest incarnation.
const DOCUMENT_BYTES: usize = 64;
/// Quotes, comma and prefix of each name in Resources.
const NAME_BYTES: usize = 4;

impl Document {
    /// The document's bytes at `version`.
    pub fn render(&self, version: EventsVersion, style: &RenderStyle) -> Bytes {
        let mut out = Vec::with_capacity(DOCUMENT_BYTES + self.events.iter().map(event_bytes).sum::<usize>());
        out.extend_from_slice(b"{\"DocumentIncarnation\":");
        put_number(&mut out, self.incarnation);
        out.extend_from_slice(b",\"Events\":[");
        let mut shown = self.events.iter().filter(|event| version.knows(event.event_type));
        if let Some(first) = shown.next() {
            put_event(&mut out, first, version, style);
        }
        for event in shown {
            out.push(b',');
            put_event(&mut out, event, version, style);
        }
        out.extend_from_slice(b"]}");
        out.into()
    }
}

fn event_bytes(event: &Event) -> usize {
    let names: usize = event.resources.iter().map(|name| name.len() + NAME_BYTES).sum();
    EVENT_BYTES + names + event.description.len()
}

fn put_event(out: &mut Vec<u8>, event: &Event, version: EventsVersion, style: &RenderStyle) {
    out.extend_from_slice(b"{\"EventId\":\"");
    out.extend_from_slice(event.id.hyphenated().encode_upper(&mut Uuid::encode_buffer()).as_bytes());
    out.extend_from_slice(b"\",\"EventStatus\":\"");
    out.extend_from_slice(match event.status {
        Status::Scheduled { .. } => b"Scheduled".as_slice(),
        Status::Started => b"Started",
        Status::Advisory { .. } => b"Advisory",
    });
    out.extend_from_slice(b"\",\"EventType\":\"");
    out.extend_from_slice(event.event_type.as_str().as_bytes());
    out.extend_from_slice(b"\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[");
    let underscore = style.underscore_names && version.has_underscore_names();
    for (index, name) in event.resources.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_string(out, if underscore { "_" } else { "" }, name);
    }
    out.extend_from_slice(b"],\"NotBefore\":\"");
    match event.status {
        Status::Scheduled { not_before: time } | Status::Advisory { date: Some(time) } => {
            put_time(out, time, version.has_iso_times() && !style.rfc1123_everywhere);
        }
        Status::Started | Status::Advisory { date: None } => {}
    }
    out.push(b'"');
    if version.has_description() {
        out.extend_from_slice(b",\"Description\":");
        put_string(out, "", &event.description);
    }
    if version.has_source() {
        out.extend_from_slice(b",\"EventSource\":\"");
        out.extend_from_slice(event.source.as_str().as_bytes());
        out.push(b'"');
    }
    if version.has_duration() {
        out.extend_from_slice(b",\"DurationInSeconds\":");
        put_number(out, event.duration_in_seconds);
    }
    out.push(b'}');
}

fn put_number(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{number}");
}

/// Writes `prefix` and `text` as one JSON string, escaped and quoted.
fn put_string(out: &mut Vec<u8>, prefix: &str, text: &str) {
    let mut serializer = serde_json::Serializer::new(out);
    // Writing a string to a vector cannot fail.
    let _ = if prefix.is_empty() {
        serializer.serialize_str(text)
    } else {
        serializer.collect_str(&format_args!("{prefix}{text}"))
    };
}

fn put_time(out: &mut Vec<u8>, time: Timestamp, iso: bool) {
    const ISO: temporal::DateTimePrinter = temporal::DateTimePrinter::new().precision(Some(0));
    const RFC: rfc2822::DateTimePrinter = rfc2822::DateTimePrinter::new();
    let start = out.len();
    // RFC 1123 has no years before 0; such a time is written as ISO 8601.
    if iso || RFC.print_timestamp_rfc9110(&time, &mut *out).is_err() {
        out.truncate(start);
        let _ = ISO.print_timestamp(&time, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, description: &str) -> Event {
        Event {
            id: Uuid::from_u128(0xabcdef),
            status: Status::Scheduled { not_before: "2016-09-19T18:29:47.999Z".parse().unwrap() },
            event_type: EventType::Freeze,
            resources: vec![name.to_owned()],
            description: description.to_owned(),
            source: Source::User,
            duration_in_seconds: i32::MIN,
        }
    }

    #[test]
    fn names_and_descriptions_are_escaped() {
        for text in ["", "\"", "\\", "a\nb\u{0}\u{1f}\u{7f}", "ünïcode \u{2028} \u{1f600}", "</script>"] {
            let document =
                Document { incarnation: u64::MAX, events: vec![event(text, text), event(text, text)] };
            for version in EventsVersion::ALL {
                let bytes = document.render(version, &RenderStyle::default());
                let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                assert_eq!(value["DocumentIncarnation"], u64::MAX);
                let name = value["Events"][1]["Resources"][0].as_str().unwrap();
                let prefix = if version.has_underscore_names() { "_" } else { "" };
                assert_eq!(name, format!("{prefix}{text}"));
                if version.has_description() {
                    assert_eq!(value["Events"][0]["Description"], text);
                }
            }
        }
    }

    #[test]
    fn times_have_whole_seconds_in_both_formats() {
        let document = Document { incarnation: 1, events: vec![event("a", "")] };
        let at = |version, rfc1123_everywhere| {
            let bytes = document.render(version, &RenderStyle { underscore_names: true, rfc1123_everywhere });
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            value["Events"][0]["NotBefore"].as_str().unwrap().to_owned()
        };
        assert_eq!(at(EventsVersion::V2017_03_01, false), "2016-09-19T18:29:47Z");
        assert_eq!(at(EventsVersion::V2017_03_01, true), "Mon, 19 Sep 2016 18:29:47 GMT");
        assert_eq!(at(EventsVersion::V2020_07_01, false), "Mon, 19 Sep 2016 18:29:47 GMT");
    }

    #[test]
    fn document_fits_reserved_capacity() {
        let document = Document { incarnation: u64::MAX, events: vec![event("web-0", "why"); 3] };
        let room = DOCUMENT_BYTES + document.events.iter().map(event_bytes).sum::<usize>();
        let bytes = document.render(EventsVersion::NEWEST, &RenderStyle::default());
        assert!(bytes.len() <= room, "{} in {room}", bytes.len());
    }
}
