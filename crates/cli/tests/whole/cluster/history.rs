//! The history of a run: what clients and guests sent and received, the faults, and the state that nodes showed.
//!
//! It is kept in memory for the [`judge`](super::judge) and written as JSON lines. Times are microseconds since the
//! history began.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

pub use crate::crash::ledger::Verb;
use jiff::{SignedDuration, Timestamp};
use notbefore_service::clock::{Clock, Stopwatch, SystemClock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Microseconds since the history began.
pub type Micros = u64;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Begin {
        wall: Timestamp,
        seed: u64,
    },
    /// Scopes and the names of their VMs.
    Fleet {
        scopes: BTreeMap<String, Vec<String>>,
    },
    Fault {
        name: String,
        begun: Micros,
        ended: Micros,
    },
    Attempt(Attempt),
    Poll(Poll),
    Move(Move),
    Restore(Restore),
    State(State),
}

/// A request for a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Of the command: all its attempts have this idempotency key.
    pub key: String,
    /// Whether the command was acknowledged before, so that it must not be applied again.
    pub is_repeat: bool,
    pub node: usize,
    pub command: Command,
    pub begun: Micros,
    pub ended: Micros,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The tag is the description of its events, and names the scope.
    Schedule {
        tag: String,
    },
    Event {
        event: Uuid,
        verb: Verb,
    },
    /// A StartRequest of a guest.
    GuestApproval {
        guest: usize,
        event: Uuid,
    },
    /// Only one client writes a scope, and no value soon again.
    SetNotice {
        scope: String,
        seconds: u32,
    },
    /// No name is used twice.
    AddVm {
        name: String,
    },
    RemoveVm {
        name: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No connection.
    NotSent,
    /// No response: the outcome is unknown.
    Unanswered,
    Acknowledged(Made),
    /// The change is not made, and will not be.
    Refused {
        status: u16,
        code: String,
    },
    /// The change is not made by this attempt (503 `unavailable`), or its outcome is unknown (`outcome_unknown`).
    Unavailable {
        code: String,
    },
}

/// What an acknowledged command has made; a repeat is answered with the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub id: Option<Uuid>,
    /// The events of an operation.
    pub events: Vec<Uuid>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Poll {
    pub guest: usize,
    /// The guest's scope when the poll began; while its address moves, the scope before.
    pub scope: String,
    pub node: usize,
    /// If-None-Match.
    pub tag: Option<u64>,
    pub begun: Micros,
    pub ended: Micros,
    /// 0 without a response.
    pub status: u16,
    /// Of a response with status 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Document>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub incarnation: u64,
    pub events: Vec<DocumentEvent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentEvent {
    pub id: Uuid,
    pub status: String,
    pub not_before: String,
    pub description: String,
    pub resources: Vec<String>,
}

/// An address that moved from a VM of one scope to a VM of another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Move {
    pub guest: usize,
    pub from: String,
    pub to: String,
    pub begun: Micros,
    /// The node that acknowledged the new owner, and when.
    pub node: usize,
    pub acknowledged: Micros,
    /// All nodes show the new owner.
    pub settled: Micros,
}

/// A backup that was taken, and replaced the state later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Restore {
    /// The backup has all changes that were acknowledged before this.
    pub backup_begun: Micros,
    /// It has no change that was requested after this.
    pub backup_ended: Micros,
    /// All nodes of before have ended.
    pub nodes_ended: Micros,
}

/// The state as one node showed it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    pub node: usize,
    /// The node has all changes that were acknowledged before this.
    pub complete_since: Micros,
    pub ended: Micros,
    pub events: Vec<EventState>,
    /// Scopes and their terminate notification in seconds.
    pub notices: BTreeMap<String, Option<u32>>,
    /// Names of VMs.
    pub vms: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventState {
    pub id: Uuid,
    pub operation: Uuid,
    pub scope: String,
    pub description: String,
    pub status: String,
    pub cause: String,
    /// Empty if it was not read.
    pub trail: Vec<TrailFact>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrailFact {
    pub kind: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A history that is being recorded.
pub struct History {
    clock: Stopwatch,
    parts: Mutex<(Vec<Record>, BufWriter<File>)>,
}

impl History {
    /// Records into `history.jsonl` of a directory, too.
    pub fn begin(dir: &Path, seed: u64) -> Self {
        let file = BufWriter::new(File::create(dir.join("history.jsonl")).unwrap());
        let history = Self { clock: Stopwatch::start(), parts: Mutex::new((Vec::new(), file)) };
        history.record(Record::Begin { wall: SystemClock.now(), seed });
        history
    }

    pub fn now(&self) -> Micros {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap()
    }

    pub fn record(&self, record: Record) {
        let line = serde_json::to_string(&record).unwrap();
        let mut parts = self.parts.lock().unwrap();
        writeln!(parts.1, "{line}").unwrap();
        parts.0.push(record);
    }

    /// The records until now.
    pub fn records(&self) -> Vec<Record> {
        let mut parts = self.parts.lock().unwrap();
        parts.1.flush().unwrap();
        parts.0.clone()
    }
}

/// The wall clock at a time of a history that began at `begin`.
pub fn wall(begin: Timestamp, at: Micros) -> Timestamp {
    begin + SignedDuration::from_micros(i64::try_from(at).unwrap())
}
