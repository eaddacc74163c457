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
pub enum What {
    /// `POST /v1/events`; the tag is the description of every event it makes.
    Schedule { tag: String },
    /// `POST /v1/vms/{vm}/restart` or `delete`: an operation without a tag, known by its VM.
    Act { vm: Uuid, cause: &'static str },
    /// `POST /v1/events/{event}/{verb}`.
    Event { event: Uuid, verb: Verb },
    /// A StartRequest; it has no key, and needs none: approving twice is approving.
    GuestApproval { event: Uuid, from: Ipv4Addr },
    /// `POST /v1/vms`; no name is used twice.
    AddVm { name: String, address: Ipv4Addr },
    /// `DELETE /v1/vms/{vm}`.
    RemoveVm { vm: Uuid },
    /// `PUT /v1/scopes/…` with another Terminate notification, in seconds; only one client writes a scope.
    SetNotice { scope: String, seconds: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Approve,
    Cancel,
    Start,
    Complete,
}

impl Verb {
    pub fn word(self) -> &'static str {
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
pub enum Standing {
    /// Sent, and cut off before the answer.
    InDoubt,
    /// Acknowledged, in these words, at this time of the service's clock.
    Acknowledged { at: Timestamp, answer: Answer },
    /// Refused: it must not have had an effect.
    Refused,
}

/// The part of a response that must be equal when the request is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The operation, VM or event that the answer names.
    pub id: Option<Uuid>,
    /// What an operation was said to consist of, by event.
    pub targets: Vec<Uuid>,
}

/// A command with its attempts and outcome.
#[derive(Clone, Debug)]
pub struct Command {
    pub what: What,
    pub key: String,
    pub method: &'static str,
    pub target: String,
    pub body: String,
    pub standing: Standing,
    /// What the judge found of it in the service while it was in doubt.
    pub found: Found,
    /// Whether the judge has looked since it was last sent.
    pub looked_for: bool,
    /// Requests and responses, for debugging.
    pub log: Vec<String>,
}

/// Whether a command in doubt took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// It had; and this is the operation or VM that it made, if it makes one.
    Landed(Option<Uuid>),
}

impl Command {
    pub fn note(&mut self, round: usize, line: &str) {
        let line: String = line.chars().take(220).collect();
        self.log.push(format!("    round {round}: {line}"));
    }

    /// Whether the command's story has to do with this id, tag or name.
    pub fn concerns(&self, about: &str) -> bool {
        let mentions = |text: &String| text.contains(about);
        let made = match &self.standing {
            Standing::Acknowledged { answer, .. } => {
                answer.targets.iter().any(|one| one.to_string() == about)
            }
            Standing::InDoubt | Standing::Refused => false,
        };
        made || mentions(&self.target)
            || mentions(&self.body)
            || mentions(&self.key)
            || self.log.iter().any(mentions)
    }

    pub fn story(&self) -> String {
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
            wire::EventStatus::Scheduled => Self::Scheduled,
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
    /// Answered, in order.
    pub settled: Vec<Command>,
    /// The one that was cut off; a client sends nothing else before it knows.
    pub doubt: Option<Command>,
    /// How far events were when the client read of them, since the judge last looked.
    pub seen: HashMap<Uuid, Rank>,
    /// The newest document read, by scope.
    pub documents: HashMap<String, Document>,
    /// What the client itself found to be wrong.
    pub violations: Vec<Violation>,
    pub reads: usize,
    pub repeats: usize,
}

/// A violation, and the id, tag or name to find its commands by.
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
    pub fn saw(&mut self, event: Uuid, rank: Rank) {
        self.reads += 1;
        let known = self.seen.entry(event).or_insert(rank);
        *known = rank.max(*known);
    }

    pub fn report_violation(&mut self, about: impl ToString, text: impl Into<String>) {
        self.violations.push(Violation::new(about, text));
    }
}
