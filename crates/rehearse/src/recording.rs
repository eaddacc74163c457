//! The record of a rehearsal: everything that happened, in order, with times since the rehearsal began.
//!
//! The stage writes it while a scenario is played. The judge reads nothing else, so a stored recording can be judged and
//! shown again.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_wire::operator::EventType;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::pace::Pace;

/// Limit of entries, so that a handler that polls in a loop does not fill the memory: an hour of ten VMs that poll ten
/// times a second.
pub const ENTRIES_MAX: usize = 360_000;

/// What one rehearsal recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario plays, in one line.
    pub summary: String,
    pub pace: Pace,
    /// VMs with a handler.
    pub handled_vms: Vec<String>,
    /// Events by their name in the scenario.
    pub events: BTreeMap<String, RecordedEvent>,
    /// Ordered by time.
    pub entries: Vec<Entry>,
    /// When the rehearsal ended.
    pub ended_at: Duration,
    /// Markers that the handler can report; expectations about others are not judged.
    pub markers: Vec<Marker>,
    /// VMs that the rehearsal polled itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<CrowdSummary>,
    /// Why the rehearsal ended before the scenario did: no handler read this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Steps that the platform refused, such as the cancellation of an event that a handler had approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_steps: Vec<RefusedStep>,
    /// Whether a test moved the clock, so that times say nothing of how often a handler polls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_hand: bool,
}

/// A step that did not take place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStep {
    /// What the step would have done, in words.
    pub step: String,
    pub why: String,
}

/// An event that a step waited for, and that no handler read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Its name in the scenario.
    pub event: String,
    /// The number of the step, from 1.
    pub step: usize,
    /// What the step would have done, in words.
    pub action: String,
}

/// The polls of the rehearsal itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdSummary {
    pub vms: usize,
    pub answers: u64,
    /// Polls that were refused or not answered.
    pub failures: u64,
    pub slowest: Duration,
    /// From the first poll to the end of the rehearsal.
    #[serde(default)]
    pub polled_for: Duration,
}

/// An announced event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// The EventId that guests see.
    pub id: Uuid,
    /// Reboot, Freeze, …
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Names of its VMs.
    pub resources: Vec<String>,
    pub scheduled_at: Duration,
    /// The last time at which an approval is in time: NotBefore, or when the rehearsal stopped waiting for it.
    pub not_before: Option<Duration>,
    pub approved_at: Option<Duration>,
    pub started_at: Option<Duration>,
    pub gone_at: Option<Duration>,
    /// Whether it is gone because it was cancelled.
    pub is_cancelled: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Since the rehearsal began.
    pub at: Duration,
    /// The VM, if it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// A request of the handler. The entry's time is that of its arrival.
    Request(Box<Request>),
    /// The handler reported that it has done something.
    Marker {
        marker: Marker,
    },
    /// A line that the handler printed.
    Output {
        line: String,
    },
    HandlerStarted,
    HandlerExited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The rehearsal stopped the handler; its exit is not the handler's own.
    HandlerStopped,
    /// A step of the scenario was carried out.
    Step {
        text: String,
    },
    /// An event changed its state.
    Event {
        event: String,
        state: State,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Scheduled,
    /// A handler was sent a document with it.
    Read,
    Approved,
    Started,
    Gone,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Read => "read",
            Self::Approved => "approved",
            Self::Started => "started",
            Self::Gone => "gone",
        }
    }
}

/// What a handler can report, by a file, a line of its output, or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marker {
    /// The VM is prepared for the event.
    Drained,
    /// The preparation is undone.
    Restored,
}

impl Marker {
    pub const ALL: [Marker; 2] = [Self::Drained, Self::Restored];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drained => "drained",
            Self::Restored => "restored",
        }
    }
}

/// A request to the guest listener and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The value of the header `Metadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The body of an approval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// None if the connection was reset.
    pub status: Option<u16>,
    pub answered_at: Duration,
    /// The DocumentIncarnation that the answer showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// EventIds of the document that was sent; none if the answer had no document that a client can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Vec<Uuid>>,
    /// EventIds that the request approves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approves: Vec<Uuid>,
    /// Faults that were applied to the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

impl Request {
    /// Whether it asks for the document.
    pub fn is_poll(&self) -> bool {
        self.method == "GET" && self.is_scheduled_events()
    }

    /// Whether it approves, or tries to.
    pub fn is_approval(&self) -> bool {
        self.method == "POST" && self.is_scheduled_events()
    }

    fn is_scheduled_events(&self) -> bool {
        let path = self.target.split('?').next().unwrap_or_default().to_ascii_lowercase();
        path.starts_with("/metadata/") && path.trim_end_matches('/').ends_with("scheduledevents")
    }
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The number of its entry.
    pub index: usize,
    pub at: Duration,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Recording {
    /// The requests of a VM, with the numbers of their entries.
    pub fn requests<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = (usize, Duration, &'a Request)> {
        self.entries.iter().enumerate().filter_map(move |(index, entry)| {
            let What::Request(request) = &entry.what else { return None };
            (entry.vm.as_deref() == Some(vm)).then_some((index, entry.at, &**request))
        })
    }

    /// Times at which a VM's handler reported a marker, with the numbers of their entries.
    pub fn markers<'a>(
        &'a self,
        vm: &'a str,
        marker: Marker,
    ) -> impl Iterator<Item = (usize, Duration)> + 'a {
        self.entries.iter().enumerate().filter_map(move |(index, entry)| {
            let is_it = entry.what == What::Marker { marker } && entry.vm.as_deref() == Some(vm);
            is_it.then_some((index, entry.at))
        })
    }

    /// The first time that a VM's handler ended by itself.
    pub fn exit(&self, vm: &str) -> Option<Exit> {
        self.entries.iter().enumerate().find_map(|(index, entry)| {
            let What::HandlerExited { code, signal } = entry.what else { return None };
            (entry.vm.as_deref() == Some(vm)).then_some(Exit { index, at: entry.at, code, signal })
        })
    }

    /// The name of an event in the scenario.
    pub fn event_name(&self, id: Uuid) -> Option<&str> {
        self.events.iter().find(|(_, event)| event.id == id).map(|(name, _)| name.as_str())
    }
}
