//! What the endpoint answers, read tolerantly.
//!
//! These are the words that the rest of client and agent speak; `read` makes them from bytes. Words that came later than
//! this program are kept as they are, so that a rule or a person can still name them.

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

/// The events that are live, and the number that tells one document from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// As it came, number or text. Documents with the same incarnation are the same; nothing else can be told
    /// from it: it may skip, and it may fall.
    pub incarnation: String,
    /// In the document's order. No two have the same id: where the platform says one twice, the first counts.
    pub events: Vec<Event>,
}

/// Something that is about to happen, or happens, to some VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What it is called, all its life.
    pub id: EventId,
    /// What it does to its resources.
    pub kind: EventKind,
    /// Whether it waits or runs.
    pub status: EventStatus,
    /// The names of the VMs it happens to, in the platform's order; the leading `_` of 2017-03-01 is gone.
    pub resources: Vec<String>,
    /// It will not start before this without approval. None once it has started, and where the platform does not say.
    pub not_before: Option<Timestamp>,
    /// Why, in a sentence; often empty, and from 2019-04-01 on only.
    #[serde(default)]
    pub description: String,
    /// Who asked for it; from 2019-08-01 on only.
    pub source: Option<EventSource>,
    /// How long the interruption is expected to last. None where nobody can tell (−1), and before 2020-07-01.
    pub duration_seconds: Option<u64>,
    /// The event as the platform sent it, fields that nobody here knows included.
    pub raw: serde_json::Value,
}

impl Event {
    /// The VM that speaks for all of them where one is to: the first.
    pub fn leader(&self) -> Option<&str> {
        self.resources.first().map(String::as_str)
    }
}

/// How the name of an event begins to which the platform gave none. No GUID does.
const SYNTHETIC_PREFIX: &str = "no-id:";

/// What an event is called. A GUID, compared without regard to case and sent back as it came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// An id as the platform spells it.
    pub fn new(text: impl Into<String>) -> Self {
        EventId(text.into())
    }

    /// As the platform spelt it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that an event goes by to which the platform gave none: the same for as long as its kind and its
    /// resources are. It can be followed by it, not approved.
    pub(crate) fn synthetic(kind: &EventKind, resources: &[String]) -> Self {
        EventId(format!("{SYNTHETIC_PREFIX}{kind}:{}", resources.join(",")))
    }

    /// Whether the platform gave the event no id. Nobody can approve it then.
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

/// How much of an id is shown. Real ones have 36 characters; a platform could fill a log with longer ones.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// For people; [`EventId::as_str`] is the whole of it.
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shorten(&self.0, SHOWN_CHARACTERS_MAX))
    }
}

/// Spells an enum as the platform does, in any case when it is read. A word that came later than this program is kept.
macro_rules! words {
    ($type:ident: $($known:ident),+) => {
        impl $type {
            /// The word on the wire.
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

/// What an event does to its resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventKind {
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
    /// A kind that came later than this program, as the platform spells it.
    Other(String),
}

impl EventKind {
    /// Those that are known.
    pub const KNOWN: [EventKind; 5] =
        [EventKind::Freeze, EventKind::Reboot, EventKind::Redeploy, EventKind::Preempt, EventKind::Terminate];

    /// Whether documents of this version speak of events of this kind; of others they say nothing.
    pub fn is_shown_at(&self, version: EventsVersion) -> bool {
        match self {
            EventKind::Freeze => version.knows(EventType::Freeze),
            EventKind::Reboot => version.knows(EventType::Reboot),
            EventKind::Redeploy => version.knows(EventType::Redeploy),
            EventKind::Preempt => version.knows(EventType::Preempt),
            EventKind::Terminate => version.knows(EventType::Terminate),
            EventKind::Other(_) => true,
        }
    }

    /// The kinds of events that documents of this version say nothing of.
    pub fn hidden_at(version: EventsVersion) -> Vec<EventKind> {
        EventKind::KNOWN.into_iter().filter(|kind| !kind.is_shown_at(version)).collect()
    }
}

words!(EventKind: Freeze, Reboot, Redeploy, Preempt, Terminate);

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an event waits or runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventStatus {
    /// It starts when it is approved, or at its time.
    Scheduled,
    /// It has started. It is over when it is gone from the document.
    Started,
    /// A status that came later than this program, as the platform spells it.
    Other(String),
}

words!(EventStatus: Scheduled, Started);

/// Who asked for an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventSource {
    /// Those who run the platform.
    Platform,
    /// The VM's owner.
    User,
    /// A source that came later than this program, as the platform spells it.
    Other(String),
}

words!(EventSource: Platform, User);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_hide_preempt() {
        assert_eq!(EventKind::hidden_at(EventsVersion::NEWEST), []);
        assert_eq!(EventKind::hidden_at(EventsVersion::V2017_11_01), [EventKind::Terminate]);
        let hidden = [EventKind::Preempt, EventKind::Terminate];
        assert_eq!(EventKind::hidden_at(EventsVersion::V2017_08_01), hidden);
    }
}
