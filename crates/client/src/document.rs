//! The document of scheduled events and its parser.
//!
//! `read` builds these types from bytes. Unknown types, statuses and sources are kept as text, so that rules and
//! people can still name them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::Timestamp;
use notbefore_wire::guest::document::EventType;
use notbefore_wire::text::shorten;
use serde::{Deserialize, Serialize};

pub use notbefore_wire::guest::version::EventsVersion;

mod read;
mod repair;
pub(crate) mod time;

pub(crate) use read::excerpt;
pub use read::{BODY_BYTES_MAX, EVENTS_MAX, ReadError, ReadWarning};

/// The active events, and the version number of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Number or text, verbatim. Equal incarnations do not order documents: the value may skip or decrease.
    pub incarnation: String,
    /// In document order. Ids are unique: if the platform repeats one, the first event counts.
    pub events: Vec<Event>,
}

/// A planned or running interruption of some VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Stable for the event's lifetime.
    pub id: EventId,
    /// What happens to the resources.
    pub kind: EventKind,
    /// Scheduled or started.
    pub status: EventStatus,
    /// Names of the affected VMs, in the platform's order; without the leading `_` of 2017-03-01.
    pub resources: Vec<String>,
    /// Earliest start without approval. None once it has started, and if the platform does not report it. None for an
    /// advisory: a date there is no deadline, and only in [`Event::raw`].
    pub not_before: Option<Timestamp>,
    /// One sentence; often empty. From 2019-04-01 on.
    #[serde(default)]
    pub description: String,
    /// Who initiated it. From 2019-08-01 on.
    pub source: Option<EventSource>,
    /// Expected duration of the interruption. None if unknown (−1), and before 2020-07-01.
    pub duration_seconds: Option<u64>,
    /// The event as the platform sent it, including unknown fields.
    pub raw: serde_json::Value,
}

impl Event {
    /// The first resource; by convention the VM that approves for all.
    pub fn leader(&self) -> Option<&str> {
        self.resources.first().map(String::as_str)
    }

    /// Whether it is a hint that never starts by itself and needs no approval.
    pub fn is_advisory(&self) -> bool {
        self.status == EventStatus::Advisory || self.kind == EventKind::SpotRebalanceRecommendation
    }
}

/// Prefix of the synthetic id of an event without one. No GUID starts like this.
const SYNTHETIC_PREFIX: &str = "no-id:";

/// Id of an event: a GUID, compared case-insensitively and sent back verbatim.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// Wraps an id as the platform spells it.
    pub fn new(text: impl Into<String>) -> Self {
        EventId(text.into())
    }

    /// The id as the platform spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A synthetic id for an event without one: stable while its type and resources are. Good for tracking, not for
    /// approval.
    pub(crate) fn synthetic(kind: &EventKind, resources: &[String]) -> Self {
        EventId(format!("{SYNTHETIC_PREFIX}{kind}:{}", resources.join(",")))
    }

    /// Whether the platform gave the event no id. Such an event cannot be approved.
    pub fn is_synthetic(&self) -> bool {
        self.0.starts_with(SYNTHETIC_PREFIX)
    }

    fn folded(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.bytes().map(|byte| byte.to_ascii_uppercase())
    }
}

impl PartialEq for EventId {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for EventId {}

impl PartialOrd for EventId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl Hash for EventId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.folded() {
            state.write_u8(byte);
        }
    }
}

/// Longest id in messages. Real ones have 36 characters; longer ones could fill a log.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// Shortened for messages; [`EventId::as_str`] is complete.
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shorten(&self.0, SHOWN_CHARACTERS_MAX))
    }
}

/// Maps an enum to the platform's spelling, case-insensitive when parsing. Unknown words are kept.
macro_rules! words {
    ($type:ident: $($known:ident),+) => {
        impl $type {
            /// The platform's spelling.
            pub fn as_str(&self) -> &str {
                match self {
                    $($type::$known => stringify!($known),)+
                    $type::Other(word) => word,
                }
            }
        }

        impl From<String> for $type {
            fn from(word: String) -> Self {
                let known = [$($type::$known),+].into_iter().find(|one| one.as_str().eq_ignore_ascii_case(&word));
                known.unwrap_or($type::Other(word))
            }
        }

        impl From<$type> for String {
            fn from(word: $type) -> Self {
                word.as_str().to_owned()
            }
        }
    };
}

/// Type of an event: what happens to its resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventKind {
    /// Pause of some seconds; memory and connections are kept.
    Freeze,
    /// Restart on the same host; memory is lost.
    Reboot,
    /// Move to another host; memory and ephemeral disks are lost.
    Redeploy,
    /// Eviction of a Spot VM.
    Preempt,
    /// Deletion of the VM.
    Terminate,
    /// Nothing: a Spot VM may be evicted soon, or never. From 2024-07-09 on.
    SpotRebalanceRecommendation,
    /// A newer type, as the platform spells it.
    Other(String),
}

impl EventKind {
    /// The known types.
    pub const KNOWN: [EventKind; 6] = [
        EventKind::Freeze,
        EventKind::Reboot,
        EventKind::Redeploy,
        EventKind::Preempt,
        EventKind::Terminate,
        EventKind::SpotRebalanceRecommendation,
    ];

    /// Whether documents of this version list events of this type.
    pub fn is_shown_at(&self, version: EventsVersion) -> bool {
        match self {
            EventKind::Freeze => version.knows(EventType::Freeze),
            EventKind::Reboot => version.knows(EventType::Reboot),
            EventKind::Redeploy => version.knows(EventType::Redeploy),
            EventKind::Preempt => version.knows(EventType::Preempt),
            EventKind::Terminate => version.knows(EventType::Terminate),
            EventKind::SpotRebalanceRecommendation => version.knows(EventType::SpotRebalanceRecommendation),
            EventKind::Other(_) => true,
        }
    }

    /// The types that documents of this version do not list. Advisories do not count: many platforms have none, and none
    /// has to be seen.
    pub fn hidden_at(version: EventsVersion) -> Vec<EventKind> {
        let documented = |kind: &EventKind| kind.is_shown_at(EventsVersion::DOCUMENTED);
        let known = EventKind::KNOWN.into_iter().filter(documented);
        known.filter(|kind| !kind.is_shown_at(version)).collect()
    }
}

words!(EventKind: Freeze, Reboot, Redeploy, Preempt, Terminate, SpotRebalanceRecommendation);

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Status of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventStatus {
    /// Starts on approval or at NotBefore.
    Scheduled,
    /// Has started. It is over when it disappears from the document.
    Started,
    /// A hint: it never starts. It disappears if it no longer holds, or when what it warns of is scheduled.
    Advisory,
    /// A newer status, as the platform spells it.
    Other(String),
}

words!(EventStatus: Scheduled, Started, Advisory);

/// Initiator of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventSource {
    /// The operator of the platform.
    Platform,
    /// The owner of the VM.
    User,
    /// A newer source, as the platform spells it.
    Other(String),
}

words!(EventSource: Platform, User);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_hide_preempt() {
        assert_eq!(EventKind::hidden_at(EventsVersion::NEWEST), []);
        assert_eq!(EventKind::hidden_at(EventsVersion::DOCUMENTED), [], "only advisories are");
        assert_eq!(EventKind::hidden_at(EventsVersion::V2017_11_01), [EventKind::Terminate]);
        let hidden = [EventKind::Preempt, EventKind::Terminate];
        assert_eq!(EventKind::hidden_at(EventsVersion::V2017_08_01), hidden);
    }
}
