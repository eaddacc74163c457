//! The state of a wait. Pure: [`Waited`] takes facts and says whether its stage is reached, or can no longer be.
//!
//! An operation has a part for each of its events; an event is its own only part.
//!
//! | part | counts as |
//! |---|---|
//! | has reached the stage | reached |
//! | was cancelled or refused before | gone: it does not count, unless all parts are |
//! | has passed the stage without it, or needs an operator | missed: the whole can no longer reach the stage |

use std::collections::HashMap;

use notbefore_wire::operator::{
    Cause, CommandState, Event, EventStatus, Fact, FactDetail, HostCommand, Operation, OperationProgress,
    OperationState, OperationTarget, TargetState, TargetStatus,
};
use notbefore_wire::text::printable;
use serde::Serialize;
use uuid::Uuid;

use crate::args::Stage;
use crate::operation;

/// Details of an operation's events, by id.
pub type Details = HashMap<Uuid, Event>;

/// An event or operation that is waited for, kept up to date by facts.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Waited {
    pub subject: Subject,
    /// In the order of the operation's targets.
    #[serde(skip)]
    parts: Vec<Part>,
    /// The command for the operation's host, as far as it is known.
    #[serde(skip)]
    host_command: Option<HostCommand>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Subject {
    Event(Box<Event>),
    Operation(Box<Operation>),
}

/// Whether a stage is reached.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Waits,
    Reached,
    /// The stage can no longer be reached, with the reason.
    Never(String),
}

#[derive(Debug)]
struct Part {
    event: Uuid,
    scope: String,
    state: TargetState,
    was_approved: bool,
    /// VMs that have not read the event.
    unread: Vec<String>,
    /// The commands that failed their last attempt, a line each.
    failure: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum PartVerdict {
    Waits,
    Reached,
    Gone(String),
    Missed(String),
}

/// The rank of final states.
const OVER: u8 = 4;

/// The order of states; a list may show a later state than the facts that follow it.
fn rank(state: &TargetState) -> u8 {
    match state {
        TargetState::Opening | TargetState::Unknown(_) => 0,
        TargetState::Waiting | TargetState::Advisory => 1,
        TargetState::Approved => 2,
        TargetState::Started => 3,
        TargetState::Completed | TargetState::Cancelled | TargetState::Refused | TargetState::Ended => OVER,
    }
}

fn failed(event: Uuid, vm: &str, attempt: Option<u32>, why: Option<&str>) -> String {
    format!("event {event}: the command for {} failed{}", printable(vm), at_attempt(attempt, why))
}

fn host_failed(operation: Uuid, command: &HostCommand) -> String {
    let how = at_attempt(command.attempt, command.why.as_deref());
    format!("the command for the host failed{how} (operation {operation})")
}

fn at_attempt(attempt: Option<u32>, why: Option<&str>) -> String {
    let attempt = attempt.map_or_else(String::new, |attempt| format!(" at attempt {attempt}"));
    let why = why.map_or_else(String::new, |why| format!(": {}", printable(why)));
    format!("{attempt}{why}")
}

impl Part {
    fn of_event(event: &Event) -> Self {
        let state = match &event.status {
            EventStatus::Scheduled if event.approved => TargetState::Approved,
            EventStatus::Scheduled => TargetState::Waiting,
            EventStatus::Started => TargetState::Started,
            EventStatus::Advisory => TargetState::Advisory,
            EventStatus::Completed => TargetState::Completed,
            EventStatus::Cancelled => TargetState::Cancelled,
            EventStatus::Unknown(word) => TargetState::Unknown(word.clone()),
        };
        // Only a live event lists the VMs that have not read it; one that has ended lists the reads.
        let unread = match rank(&state) == OVER {
            true => {
                let unread = event.seen.iter().filter(|seen| seen.first_read_at.is_none());
                unread.map(|seen| seen.name.clone()).collect()
            }
            false => event.unread_by.clone(),
        };
        let commands = event.exec.iter().flat_map(|exec| &exec.commands);
        let failures = commands.filter(|command| command.state == CommandState::Failed);
        let lines: Vec<String> =
            failures.map(|one| failed(event.id, &one.name, one.attempt, one.why.as_deref())).collect();
        Self {
            event: event.id,
            scope: event.scope.clone(),
            state,
            was_approved: event.approved,
            unread,
            failure: (!lines.is_empty()).then(|| lines.join("\n")),
        }
    }

    fn of_target(target: &OperationTarget, details: &Details) -> Self {
        let without = || Self {
            event: target.event,
            scope: target.scope.clone(),
            state: target.state.clone(),
            was_approved: target.state == TargetState::Approved,
            unread: target.resources.iter().map(|resource| resource.name.clone()).collect(),
            failure: target.failed.then(|| format!("event {}: a command failed", target.event)),
        };
        details.get(&target.event).map_or_else(without, Self::of_event)
    }

    fn apply(&mut self, fact: &Fact) {
        let is_mine = fact.event == Some(self.event);
        let is_here = fact.scope.as_deref() == Some(&*self.scope);
        let reads = |unread: &mut Vec<String>| unread.retain(|vm| !fact.vms.contains(vm));
        match &fact.what {
            // A VM that does not run is not waited for.
            FactDetail::VmRemoved | FactDetail::VmDeallocated if is_here => reads(&mut self.unread),
            FactDetail::EventRead { .. } if is_mine => reads(&mut self.unread),
            FactDetail::EventScheduled { cause: Cause::Rebalance, .. } if is_mine => {
                self.raise(TargetState::Advisory);
            }
            FactDetail::EventScheduled { .. } if is_mine => self.raise(TargetState::Waiting),
            FactDetail::EventApproved { .. } if is_mine => {
                self.was_approved = true;
                self.raise(TargetState::Approved);
            }
            FactDetail::EventStarted { .. } if is_mine => self.raise(TargetState::Started),
            FactDetail::EventCompleted { .. } if is_mine => self.raise(TargetState::Completed),
            FactDetail::EventCancelled { .. } if is_mine => self.raise(TargetState::Cancelled),
            FactDetail::DriverFailed { vm, attempts, why, .. } if is_mine => {
                self.failure = Some(failed(self.event, vm, Some(*attempts), why.as_deref()));
            }
            FactDetail::DriverRetried { .. } if is_mine => self.failure = None,
            FactDetail::EventScheduled { .. }
            | FactDetail::EventRead { .. }
            | FactDetail::EventApproved { .. }
            | FactDetail::EventReleased { .. }
            | FactDetail::EventReady { .. }
            | FactDetail::EventStarted { .. }
            | FactDetail::EventCompleted { .. }
            | FactDetail::EventCancelled { .. }
            | FactDetail::DriverTookOver { .. }
            | FactDetail::DriverAttemptFailed { .. }
            | FactDetail::DriverFailed { .. }
            | FactDetail::DriverRetried { .. }
            | FactDetail::OperationRequested { .. }
            | FactDetail::OperationStarted { .. }
            | FactDetail::HostCommandTookOver { .. }
            | FactDetail::HostCommandAttemptFailed { .. }
            | FactDetail::HostCommandFailed { .. }
            | FactDetail::HostCommandRetried { .. }
            | FactDetail::HostCommandStarted { .. }
            | FactDetail::HostCommandSucceeded { .. }
            | FactDetail::OperationCompleted
            | FactDetail::OperationCancelled
            | FactDetail::ScopeCreated
            | FactDetail::PolicyChanged
            | FactDetail::ScopeRemoved
            | FactDetail::VmAdded
            | FactDetail::VmChanged
            | FactDetail::VmRemoved
            | FactDetail::VmMoved { .. }
            | FactDetail::HostStateChanged { .. }
            | FactDetail::HostForgotten { .. }
            | FactDetail::VmDeallocated
            | FactDetail::VmStarted
            | FactDetail::TokenCreated { .. }
            | FactDetail::TokenRevoked { .. }
            | FactDetail::SignedIn { .. }
            | FactDetail::SignInLinkCreated
            | FactDetail::ClockAccepted
            | FactDetail::HandOverRequested { .. }
            | FactDetail::UpgradeFinished { .. }
            | FactDetail::NodeForgotten { .. }
            | FactDetail::RequestRefused { .. }
            | FactDetail::FurtherRefusals { .. }
            | FactDetail::Unknown { .. } => {}
        }
    }

    fn raise(&mut self, to: TargetState) {
        if rank(&self.state) < rank(&to) {
            self.state = to;
        }
    }

    fn verdict(&self, stage: Stage) -> PartVerdict {
        use TargetState::{
            Advisory, Approved, Cancelled, Completed, Ended, Opening, Refused, Started, Unknown, Waiting,
        };
        let event = self.event;
        let missed = |why: String| PartVerdict::Missed(format!("event {event} {why}"));
        match (stage, &self.state) {
            (Stage::Read, state) if self.unread.is_empty() && *state != Opening => PartVerdict::Reached,
            (Stage::Approved, _) if self.was_approved => PartVerdict::Reached,
            (Stage::Started, Started | Completed) => PartVerdict::Reached,
            (Stage::Ended, Completed | Cancelled | Refused | Ended) => PartVerdict::Reached,
            (Stage::Ended, Started) if self.failure.is_some() => {
                PartVerdict::Missed(self.failure.clone().unwrap_or_default())
            }
            (Stage::Read | Stage::Approved | Stage::Started, Cancelled) => {
                let what = match stage {
                    Stage::Read => "was read",
                    Stage::Approved => "was approved",
                    Stage::Started | Stage::Ended => "started",
                };
                PartVerdict::Gone(format!("event {event} was cancelled before it {what}"))
            }
            (Stage::Read | Stage::Approved | Stage::Started, Refused) => {
                PartVerdict::Gone(format!("event {event} was refused by its scope"))
            }
            (Stage::Read, Completed | Ended) => {
                missed(format!("has ended, not read by {}", self.unread.join(", ")))
            }
            (Stage::Approved, Started | Completed | Ended) => {
                missed("started without an approval".to_owned())
            }
            (Stage::Started, Ended) => missed("has ended; how is no longer known".to_owned()),
            (Stage::Approved | Stage::Started, Advisory) => {
                missed("is an advisory, which is never approved and never starts".to_owned())
            }
            (Stage::Read | Stage::Ended, Advisory) => PartVerdict::Waits,
            (
                Stage::Read | Stage::Approved | Stage::Started | Stage::Ended,
                Opening | Waiting | Approved | Started | Unknown(_),
            ) => PartVerdict::Waits,
        }
    }
}

impl Waited {
    pub fn event(event: Event) -> Self {
        let parts = vec![Part::of_event(&event)];
        let host_command = event.exec.as_ref().and_then(|exec| exec.host_command.clone());
        Self { parts, host_command, subject: Subject::Event(Box::new(event)) }
    }

    /// `details` of the operation's events say which were read and approved, and why a command failed.
    pub fn operation(operation: Operation, details: &Details) -> Self {
        let parts = operation.targets.iter().map(|target| Part::of_target(target, details)).collect();
        let host_command = operation.host_command.clone();
        Self { parts, host_command, subject: Subject::Operation(Box::new(operation)) }
    }

    fn operation_id(&self) -> Uuid {
        match &self.subject {
            Subject::Event(event) => event.operation,
            Subject::Operation(operation) => operation.id,
        }
    }

    pub fn id(&self) -> Uuid {
        match &self.subject {
            Subject::Event(event) => event.id,
            Subject::Operation(operation) => operation.id,
        }
    }

    /// Whether some of its scopes may not have their event yet. No fact says that a scope has refused it.
    pub fn is_opening(&self) -> bool {
        match &self.subject {
            Subject::Event(_) => false,
            Subject::Operation(operation) => operation.state == OperationState::Opening,
        }
    }

    /// Takes in one fact.
    pub fn apply(&mut self, fact: &Fact) {
        self.parts.iter_mut().for_each(|part| part.apply(fact));
        if fact.operation == Some(self.operation_id()) {
            follow_host_command(&mut self.host_command, &fact.what);
        }
        let (host_has_failed, host_goes_on) = (self.has_failed_host(), self.host_goes_on());
        match &mut self.subject {
            Subject::Event(event) => {
                let [part] = self.parts.as_slice() else { return };
                event.approved = part.was_approved;
                event.unread_by.clone_from(&part.unread);
                let status = match &part.state {
                    TargetState::Started => EventStatus::Started,
                    TargetState::Completed => EventStatus::Completed,
                    TargetState::Cancelled => EventStatus::Cancelled,
                    TargetState::Opening
                    | TargetState::Waiting
                    | TargetState::Approved
                    | TargetState::Advisory
                    | TargetState::Refused
                    | TargetState::Ended
                    | TargetState::Unknown(_) => return,
                };
                if event.status != status {
                    (event.not_before, event.waits_for) = (None, None);
                    match status == EventStatus::Started {
                        true => event.started_at = Some(fact.at),
                        false => event.ended_at = Some(fact.at),
                    }
                    event.status = status;
                }
            }
            Subject::Operation(operation) => {
                if fact.operation == Some(operation.id) {
                    operation.cancelled |= fact.what == FactDetail::OperationCancelled;
                    operation.completed |= fact.what == FactDetail::OperationCompleted;
                }
                operation.host_command.clone_from(&self.host_command);
                for (target, part) in operation.targets.iter_mut().zip(&self.parts) {
                    if target.state != part.state {
                        target.status = status(&part.state);
                        target.state.clone_from(&part.state);
                    }
                    let waits_for_host = host_has_failed && part.state == TargetState::Started;
                    target.failed = part.failure.is_some() || waits_for_host;
                }
                operation.progress = OperationProgress::of(&operation.targets);
                let all_over = self.parts.iter().all(|part| rank(&part.state) == OVER);
                if all_over && (operation.completed || !host_goes_on) {
                    operation.state = OperationState::Closed;
                }
            }
        }
    }

    pub fn verdict(&self, stage: Stage) -> Verdict {
        let waits_for_host = stage == Stage::Ended && self.waits_for_host();
        if let Some(command) = self.host_command.as_ref().filter(|_| waits_for_host && self.has_failed_host())
        {
            return Verdict::Never(host_failed(self.operation_id(), command));
        }
        let (mut waits, mut reached, mut gone) = (waits_for_host, false, None);
        for part in &self.parts {
            match part.verdict(stage) {
                PartVerdict::Missed(why) => return Verdict::Never(self.named(&why)),
                PartVerdict::Waits => waits = true,
                PartVerdict::Reached => reached = true,
                PartVerdict::Gone(why) => gone = Some(why),
            }
        }
        match (waits, reached, gone) {
            (true, _, _) => Verdict::Waits,
            (false, false, Some(why)) => Verdict::Never(self.named(&why)),
            (false, _, _) => Verdict::Reached,
        }
    }

    /// Whether its end waits for the command of the host. An operation ends after that command even if all its events
    /// are gone, unless an operator completed it.
    fn waits_for_host(&self) -> bool {
        self.host_goes_on()
            && match &self.subject {
                Subject::Event(_) => self.parts.iter().any(|part| rank(&part.state) < OVER),
                Subject::Operation(operation) => !operation.completed,
            }
    }

    /// Whether the command for the host has begun and is not done.
    fn host_goes_on(&self) -> bool {
        self.host_command.as_ref().is_some_and(|command| match command.state {
            CommandState::Waiting | CommandState::Running | CommandState::Failed => true,
            CommandState::Pending
            | CommandState::Done
            | CommandState::Gone
            | CommandState::Stopped
            | CommandState::Unknown(_) => false,
        })
    }

    /// Whether the command for the host failed its last attempt.
    pub fn has_failed_host(&self) -> bool {
        self.host_command.as_ref().is_some_and(|command| command.state == CommandState::Failed)
    }

    /// Lines about events, each with the operation that is waited for.
    fn named(&self, why: &str) -> String {
        match &self.subject {
            Subject::Event(_) => why.to_owned(),
            Subject::Operation(operation) => {
                let lines = why.lines().map(|line| format!("operation {}, {line}", operation.id));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Number of parts that are no longer waited for, and of all parts.
    pub fn count(&self, stage: Stage) -> (usize, usize) {
        let waits = self.parts.iter().filter(|part| part.verdict(stage) == PartVerdict::Waits).count();
        (self.parts.len() - waits, self.parts.len())
    }

    /// Its state as one line.
    pub fn state(&self) -> String {
        match &self.subject {
            Subject::Operation(operation) => {
                let (id, state) = (operation.id, &operation.state);
                format!("operation {id} is {state}: {}", operation::progress(&operation.progress))
            }
            Subject::Event(event) => {
                let approved = match (event.status == EventStatus::Scheduled, event.approved) {
                    (true, true) => ", approved",
                    (true, false) => ", not approved",
                    (false, _) => "",
                };
                let unread = match event.unread_by.is_empty() {
                    true => String::new(),
                    false => format!(", not read by {}", event.unread_by.join(", ")),
                };
                format!("event {} is {}{approved}{unread}", event.id, event.status)
            }
        }
    }

    /// The reached stage as one line.
    pub fn reached(&self, stage: Stage) -> String {
        match (&self.subject, stage) {
            (Subject::Event(event), Stage::Read) => format!("event {} was read by its VMs", event.id),
            (Subject::Event(event), Stage::Approved) => format!("event {} is approved", event.id),
            (Subject::Event(event), Stage::Started) => format!("event {} has started", event.id),
            (Subject::Event(event), Stage::Ended) => format!("event {} is {}", event.id, event.status),
            (Subject::Operation(one), Stage::Read) => format!("operation {}: all events were read", one.id),
            (Subject::Operation(one), Stage::Approved) => {
                format!("operation {}: all events are approved", one.id)
            }
            (Subject::Operation(one), Stage::Started) => {
                format!("operation {}: all events have started", one.id)
            }
            (Subject::Operation(one), Stage::Ended) => {
                let all_cancelled = one.progress.cancelled == one.progress.events;
                let how = if one.cancelled || all_cancelled { "cancelled" } else { "completed" };
                format!("operation {} is closed: {how}", one.id)
            }
        }
    }
}

/// Takes in a fact about the command for the host. A list shows the command of an event only once it has started.
fn follow_host_command(command: &mut Option<HostCommand>, fact: &FactDetail) {
    let (state, attempt, why) =
        if let FactDetail::HostCommandStarted { .. } | FactDetail::HostCommandRetried { .. } = fact {
            (CommandState::Running, None, None)
        } else if let FactDetail::HostCommandSucceeded { .. } = fact {
            (CommandState::Done, None, None)
        } else if let FactDetail::HostCommandFailed { attempts, why, .. } = fact {
            (CommandState::Failed, Some(*attempts), why.clone())
        } else {
            return;
        };
    let (owner, fence) = command.take().map_or((None, None), |before| (before.owner, before.fence));
    *command = Some(HostCommand { state, owner, fence, attempt, attempts_left: None, due_at: None, why });
}

fn status(state: &TargetState) -> TargetStatus {
    match state {
        TargetState::Opening => TargetStatus::Opening,
        TargetState::Waiting | TargetState::Approved => TargetStatus::Scheduled,
        TargetState::Started => TargetStatus::Started,
        TargetState::Advisory => TargetStatus::Advisory,
        TargetState::Completed => TargetStatus::Completed,
        TargetState::Cancelled => TargetStatus::Cancelled,
        TargetState::Refused => TargetStatus::Refused,
        TargetState::Ended => TargetStatus::Ended,
        TargetState::Unknown(word) => TargetStatus::Unknown(word.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TIME: &str = "2026-11-17T10:00:00Z";

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    /// An event of web-0 and web-1, which have not read it.
    fn event(status: &str) -> Event {
        let made = json!({
            "id": id(1), "operation": id(9), "type": "Reboot", "status": status, "cause": "host-reboot",
            "source": "Platform", "scope": "d/d/web", "update_domain": 0, "resources": [], "not_before": TIME,
            "approved": false, "started_at": null, "ended_at": null, "description": "", "duration_seconds": -1,
            "driver": "exec", "unread_by": ["web-0", "web-1"], "revision": 1,
        });
        serde_json::from_value(made).unwrap()
    }

    /// An operation with events 1 and 2 in these states.
    fn operation(states: [&str; 2]) -> Operation {
        let target = |(n, state): (u128, &str)| {
            json!({
                "event": id(n), "scope": "d/d/web", "update_domain": n, "state": state, "status": "Scheduled",
                "resources": [{ "vm": id(n + 100), "name": format!("web-{}", n - 1) }],
            })
        };
        let targets: Vec<Value> = (1..).zip(states).map(target).collect();
        let made = json!({
            "id": id(9), "cause": "host-reboot", "by": "token root", "requested_at": TIME, "state": "open",
            "release": "together", "not_before": TIME, "cancelled": false, "targets": targets,
            "progress": {
                "scopes": 1, "scopes_told": 1, "events": 2, "waiting": 2, "approved": 0, "started": 0, "ended": 0,
                "refused": 0,
            },
        });
        serde_json::from_value(made).unwrap()
    }

    /// A fact from text such as `EventRead 1 web-0`: its type, its event, its VMs.
    fn fact(text: &str) -> Fact {
        let words: Vec<&str> = text.split(' ').collect();
        let detail = match words[0] {
            "EventRead" => json!({ "api_version": "2020-07-01" }),
            "EventStarted" => json!({ "cause": "host-reboot", "why": "approved" }),
            "DriverFailed" => {
                json!({ "cause": "host-reboot", "vm": words[2], "attempts": 5, "why": "no\x1b" })
            }
            "DriverRetried" => json!({ "cause": "host-reboot", "commands": 1 }),
            "OperationCancelled" | "VmRemoved" => Value::Null,
            _ => json!({ "cause": "host-reboot" }),
        };
        let event = words[1].parse().ok().map(id);
        let mut made = json!({
            "id": "5.0", "at": TIME, "type": words[0], "scope": "d/d/web", "operation": id(9), "event": event,
            "vms": words[2..], "by": { "kind": "timer", "name": "timer" },
        });
        if !detail.is_null() {
            made["detail"] = detail;
        }
        let fact: Fact = serde_json::from_value(made).unwrap();
        assert!(!matches!(fact.what, FactDetail::Unknown { .. }), "{text}");
        fact
    }

    fn text(verdict: Verdict) -> String {
        match verdict {
            Verdict::Waits => "waits".to_owned(),
            Verdict::Reached => "reached".to_owned(),
            Verdict::Never(why) => why
                .replace(&id(9).to_string(), "9")
                .replace(&id(1).to_string(), "1")
                .replace(&id(2).to_string(), "2"),
        }
    }

    #[test]
    fn event_reaches_its_stage_or_never_can() {
        use Stage::{Approved, Ended, Read, Started};
        type Row<'a> = (Stage, &'a str, &'a [&'a str], &'a str);
        let failed = "event 1: the command for web-0 failed at attempt 5: no\\u{1b}";
        let rows: [Row<'_>; 22] = [
            (Read, "Scheduled", &[], "waits"),
            (Read, "Scheduled", &["EventRead 1 web-0"], "waits"),
            (Read, "Scheduled", &["EventRead 1 web-0", "EventRead 2 web-1"], "waits"),
            (Read, "Scheduled", &["EventRead 1 web-0", "EventRead 1 web-1"], "reached"),
            (Read, "Scheduled", &["EventRead 1 web-0", "VmRemoved - web-1"], "reached"),
            (Read, "Started", &["EventRead 1 web-0", "EventRead 1 web-1", "EventCompleted 1"], "reached"),
            (
                Read,
                "Started",
                &["EventRead 1 web-0", "EventCompleted 1"],
                "event 1 has ended, not read by web-1",
            ),
            (Read, "Scheduled", &["EventCancelled 1"], "event 1 was cancelled before it was read"),
            (Approved, "Scheduled", &["EventApproved 2"], "waits"),
            (Approved, "Scheduled", &["EventApproved 1"], "reached"),
            (Approved, "Scheduled", &["EventApproved 1", "EventCancelled 1"], "reached"),
            (Approved, "Scheduled", &["EventStarted 1"], "event 1 started without an approval"),
            (Approved, "Scheduled", &["EventCancelled 1"], "event 1 was cancelled before it was approved"),
            (Started, "Scheduled", &["EventApproved 1"], "waits"),
            (Started, "Scheduled", &["EventStarted 1"], "reached"),
            (Started, "Completed", &["EventStarted 1"], "reached"),
            (Started, "Scheduled", &["EventCancelled 1"], "event 1 was cancelled before it started"),
            (Ended, "Started", &[], "waits"),
            (Ended, "Started", &["EventCompleted 1"], "reached"),
            (Ended, "Scheduled", &["EventCancelled 1"], "reached"),
            (Ended, "Started", &["DriverFailed 1 web-0"], failed),
            (Ended, "Started", &["DriverFailed 1 web-0", "DriverRetried 1"], "waits"),
        ];
        for (stage, status, facts, expected) in rows {
            let mut waited = Waited::event(event(status));
            facts.iter().for_each(|one| waited.apply(&fact(one)));
            assert_eq!(text(waited.verdict(stage)), expected, "{stage} of {status}, then {facts:?}");
        }
    }

    #[test]
    fn operation_reaches_its_stage_with_the_parts_that_are_left() {
        use Stage::{Approved, Ended, Read, Started};
        type Row<'a> = (Stage, [&'a str; 2], &'a [&'a str], &'a str);
        let rows: [Row<'_>; 13] = [
            (Read, ["waiting", "waiting"], &["EventRead 1 web-0"], "waits"),
            (Read, ["waiting", "waiting"], &["EventRead 1 web-0", "EventRead 2 web-1"], "reached"),
            (Read, ["waiting", "refused"], &["EventRead 1 web-0"], "reached"),
            (Approved, ["approved", "waiting"], &[], "waits"),
            (Approved, ["approved", "waiting"], &["EventApproved 2"], "reached"),
            (
                Approved,
                ["approved", "waiting"],
                &["EventStarted 2"],
                "operation 9, event 2 started without an approval",
            ),
            (Started, ["waiting", "waiting"], &["EventStarted 1"], "waits"),
            (Started, ["waiting", "waiting"], &["EventStarted 1", "EventCancelled 2"], "reached"),
            (
                Started,
                ["refused", "waiting"],
                &["EventCancelled 2"],
                "operation 9, event 2 was cancelled before it started",
            ),
            (Started, ["completed", "ended"], &[], "operation 9, event 2 has ended; how is no longer known"),
            (Ended, ["completed", "started"], &[], "waits"),
            (Ended, ["completed", "started"], &["EventCompleted 2"], "reached"),
            (Ended, ["refused", "waiting"], &["EventCancelled 2"], "reached"),
        ];
        for (stage, states, facts, expected) in rows {
            let mut waited = Waited::operation(operation(states), &Details::new());
            facts.iter().for_each(|one| waited.apply(&fact(one)));
            assert_eq!(text(waited.verdict(stage)), expected, "{stage} of {states:?}, then {facts:?}");
        }
    }

    #[test]
    fn facts_update_what_is_shown() {
        let mut waited = Waited::event(event("Scheduled"));
        for one in ["EventApproved 1", "EventRead 1 web-0", "EventStarted 1"] {
            waited.apply(&fact(one));
        }
        let Subject::Event(event) = &waited.subject else { panic!("an event") };
        assert_eq!((&event.status, event.approved), (&EventStatus::Started, true));
        assert_eq!((event.started_at, event.not_before), (Some(TIME.parse().unwrap()), None));
        assert_eq!(event.unread_by, ["web-1"]);

        let mut waited = Waited::operation(operation(["waiting", "waiting"]), &Details::new());
        for one in ["OperationCancelled -", "EventStarted 1", "DriverFailed 1 web-0", "EventCancelled 2"] {
            waited.apply(&fact(one));
        }
        let Subject::Operation(operation) = &waited.subject else { panic!("an operation") };
        let progress = &operation.progress;
        assert_eq!((progress.started, progress.failed, progress.ended, progress.cancelled), (1, 1, 1, 1));
        assert_eq!((&operation.state, operation.cancelled), (&OperationState::Open, true));
        waited.apply(&fact("EventCompleted 1"));
        assert_eq!(waited.count(Stage::Ended), (2, 2));
        assert_eq!(waited.reached(Stage::Ended), format!("operation {} is closed: cancelled", id(9)));
        assert!(waited.state().contains("is closed: 1 of 1 scope "), "{}", waited.state());
    }
}
