//! Ledger of a client: its requests and the responses, which the service must not contradict.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use jiff::Timestamp;
use notbefore_wire::operator as wire;
use uuid::Uuid;

/// Tag that identifies an event's command.
pub const TAG: &str = "crash-";

/// The kind of a command, with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `POST /v1/events`; the tag is the description of every event it makes.
    Schedule { tag: String },
    /// `POST /v1/vms/{vm}/restart` or `delete`: an operation without a tag, known by its VM.
    Act { vm: Uuid, cause: &'static str },
    /// `POST /v1/events/{event}/{verb}`.
    Event { event: Uuid, verb: Verb },
    /// A StartRequest; it needs no key, because an approval is idempotent.
    GuestApproval { event: Uuid, from: Ipv4Addr },
    /// `POST /v1/vms`; no name is used twice.
    AddVm { name: String, address: Ipv4Addr },
    /// `DELETE /v1/vms/{vm}`.
    RemoveVm { vm: Uuid },
    /// `PUT /v1/scopes/…` with another Terminate notification, in seconds; only one client writes a scope.
    SetNotice { scope: String, seconds: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Approve,
    Cancel,
    Start,
    Complete,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Cancel => "cancel",
            Self::Start => "start",
            Self::Complete => "complete",
        }
    }
}

/// Outcome of a command as the client knows it.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Sent; the connection was cut before the response.
    InDoubt,
    /// Acknowledged with this response, at this time of the service's clock.
    Acknowledged { at: Timestamp, answer: Answer },
    /// Refused: it must have no effect.
    Refused,
}

/// The part of a response that must be equal when the request is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The operation, VM or event in the response.
    pub id: Option<Uuid>,
    /// The events of the operation in the response.
    pub targets: Vec<Uuid>,
}

/// A command with its attempts and outcome.
#[derive(Clone, Debug)]
pub struct Command {
    pub what: CommandKind,
    pub key: String,
    pub method: &'static str,
    pub target: String,
    pub body: String,
    pub outcome: Outcome,
    /// The effect that the judge found while it was in doubt.
    pub found: Found,
    /// Whether the judge has checked for an effect since it was last sent.
    pub is_checked: bool,
    /// Requests and responses, for debugging.
    pub log: Vec<String>,
}

/// Whether a command in doubt took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// It took effect, and created this operation or VM, if it creates one.
    Landed(Option<Uuid>),
}

impl Command {
    pub fn log_line(&mut self, round: usize, line: &str) {
        let line: String = line.chars().take(220).collect();
        self.log.push(format!("    round {round}: {line}"));
    }

    /// Whether the command or its log mentions this id, tag or name.
    pub fn mentions(&self, about: &str) -> bool {
        let mentions = |text: &String| text.contains(about);
        let made = match &self.outcome {
            Outcome::Acknowledged { answer, .. } => answer.targets.iter().any(|one| one.to_string() == about),
            Outcome::InDoubt | Outcome::Refused => false,
        };
        made || mentions(&self.target)
            || mentions(&self.body)
            || mentions(&self.key)
            || self.log.iter().any(mentions)
    }

    pub fn log_text(&self) -> String {
        let Self { method, target, key, body, log, .. } = self;
        format!("  {method} {target} [{key}] {body}\n{}", log.join("\n"))
    }
}

/// Progress of an event; never decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Scheduled,
    Approved,
    Started,
    Ended,
}

impl Rank {
    pub fn of(event: &wire::Event) -> Self {
        match &event.status {
            wire::EventStatus::Scheduled if event.approved => Self::Approved,
            wire::EventStatus::Scheduled | wire::EventStatus::Advisory => Self::Scheduled,
            wire::EventStatus::Started => Self::Started,
            wire::EventStatus::Completed | wire::EventStatus::Cancelled => Self::Ended,
            wire::EventStatus::Unknown(other) => panic!("no event has the status {other}"),
        }
    }
}

/// A document as a guest read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub incarnation: u64,
    pub body: String,
}

/// The ledger of one client.
#[derive(Default)]
pub struct Ledger {
    /// Answered commands, in order.
    pub settled: Vec<Command>,
    /// The command without a response; the client sends nothing else before it is resolved.
    pub in_doubt: Option<Command>,
    /// Progress of events that the client read since the judge's last check.
    pub seen: HashMap<Uuid, Rank>,
    /// The newest document read, by scope.
    pub documents: HashMap<String, Document>,
    /// Violations that the client itself found.
    pub violations: Vec<Violation>,
    pub reads: usize,
    pub repeats: usize,
}

/// A violation, and the id, tag or name that selects its commands.
#[derive(Clone, Debug)]
pub struct Violation {
    pub text: String,
    pub about: String,
}

impl Violation {
    pub fn new(about: impl ToString, text: impl Into<String>) -> Self {
        Self { text: text.into(), about: about.to_string() }
    }
}

impl Ledger {
    pub fn record_read(&mut self, event: Uuid, rank: Rank) {
        self.reads += 1;
        let known = self.seen.entry(event).or_insert(rank);
        *known = rank.max(*known);
    }

    pub fn report_violation(&mut self, about: impl ToString, text: impl Into<String>) {
        self.violations.push(Violation::new(about, text));
    }
}
