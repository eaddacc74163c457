//! Holds each commit against the model.
//!
//! A commit does not say which command it carries out, and the judge does not ask the engine. It knows which
//! requests were open when the commit was sent, and what the service does by itself: pulses, the opening,
//! releasing and calling off of an operation's parts, the bringing up to date of an operation's record. Each of
//! these foretells records; one of them must foretell exactly those that were written. A commit that carries
//! the record of an idempotency key must be that very request.

use std::collections::BTreeMap;
use std::rc::Rc;

use notbefore_core::{
    Actor, DriverKind, Event, JointStart, Operation, OperationId, OperationState, Phase, Scope, ScopeId,
    Target, TargetState,
};
use notbefore_engine::records::{self, CommandRecord, prefix};
use notbefore_engine::{JobId, Request};
use notbefore_store::{Outcome, Txn};

use crate::foretell::{self, Writes};
use crate::model::{At, Codes, Wish, bare};
use crate::rules;
use crate::view::{Reads, Record, View};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's number in the design; none for what the model says.
    pub number: Option<u8>,
    /// The invariant in words.
    pub words: &'static str,
    /// What was seen.
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(f, "invariant {number} ({}): {}", self.words, self.detail),
            None => write!(f, "{}: {}", self.words, self.detail),
        }
    }
}

/// A request as the world made it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its number.
    pub id: u64,
    /// What is asked.
    pub request: Request,
    /// How many faults there had been by then.
    pub faults: u32,
}

/// A commit under way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The engine's number for it.
    pub id: JobId,
    /// What it writes.
    pub txn: Txn,
    /// The circumstances in which it was planned.
    pub at: At,
    /// The requests that were open then.
    pub asked: Vec<Rc<Asked>>,
    /// What requests that compare no scope were foretold to write, from what the engine knew when it sent
    /// the commit: an operation of several parts is made before its scopes are touched, and they may have
    /// changed by the time the store has it. So may who is on a host.
    pub planned: BTreeMap<u64, Writes>,
    /// What the store made of it, once it has.
    pub outcome: Option<Outcome>,
}

impl Flight {
    fn foretold(&self, view: &View, asked: &Asked) -> Result<Writes, Codes> {
        match self.planned.get(&asked.id) {
            Some(writes) => Ok(writes.clone()),
            None => foretell::request(view, &asked.request, &self.at),
        }
    }
}

/// A commit, decoded.
#[derive(Debug, Default)]
pub struct Written {
    /// Scopes.
    pub scopes: BTreeMap<ScopeId, Option<Rc<Scope>>>,
    /// Operations.
    pub operations: BTreeMap<OperationId, Rc<Operation>>,
    /// All of it, in order.
    pub records: Vec<Record>,
    /// The command record in it: its key and its content.
    pub command: Option<(String, CommandRecord)>,
}

/// Reads what a transaction writes.
pub fn written(txn: &Txn) -> Result<Written, Violation> {
    let mut written = Written::default();
    let puts = txn.put.iter().map(|(key, value)| (key, Some(value)));
    for (key, value) in puts.chain(txn.delete.iter().map(|key| (key, None))) {
        let record = Record::read(key, value).map_err(|why| unreadable(&why))?;
        match &record {
            Record::Scope(id, scope) => {
                written.scopes.insert(id.clone(), scope.clone());
            }
            Record::Operation(id, Some(operation)) => {
                written.operations.insert(*id, Rc::clone(operation));
            }
            Record::Operation(_, None) => return Err(unreadable("an operation's record is removed")),
            Record::Vm(..) | Record::Claim(..) | Record::Past(..) | Record::Other => {}
        }
        if let (true, Some(value)) = (key.starts_with(prefix::COMMAND), value) {
            let content = records::decode(key, value).map_err(|error| unreadable(&error.to_string()))?;
            written.command = Some((key.to_string(), content));
        }
        written.records.push(record);
    }
    Ok(written)
}

fn unreadable(why: &str) -> Violation {
    Violation { number: None, words: "every record can be read", detail: why.to_owned() }
}

/// The key under which a request's answer is kept.
pub fn command_key(request: &Request) -> Option<String> {
    request.idempotency.as_ref().map(|one| records::command(&one.principal, &one.key).to_string())
}

/// The requests that a commit may carry out.
#[derive(Debug, Default)]
pub struct Carries {
    /// Those whose effect it is; several may have the same.
    pub requests: Vec<Rc<Asked>>,
    /// Whether it can only be that one.
    pub sure: bool,
}

/// Finds which of the open requests a commit carries out; none of them where it is the service's own work.
pub fn explain(view: &View, flight: &Flight, written: &Written) -> Result<Carries, Violation> {
    if written.scopes.is_empty() && written.operations.is_empty() && written.records.iter().all(is_other) {
        // Times and the like.
        return Ok(Carries::default());
    }
    let of_key: Vec<Rc<Asked>> = match &written.command {
        Some((key, content)) => {
            let same = |asked: &&Rc<Asked>| {
                command_key(&asked.request).as_ref() == Some(key)
                    && asked.request.idempotency.as_ref().is_some_and(|one| one.hash == content.hash)
            };
            flight.asked.iter().filter(same).cloned().collect()
        }
        None => flight.asked.iter().filter(|asked| asked.request.idempotency.is_none()).cloned().collect(),
    };
    let matching: Vec<Rc<Asked>> = of_key
        .iter()
        .filter(|asked| match flight.foretold(view, asked) {
            Ok(writes) => same(view, &writes, written),
            Err(_) => false,
        })
        .cloned()
        .collect();
    let own = written.command.is_none() && own_work(view, flight, written);
    if !matching.is_empty() || own {
        return Ok(Carries { sure: matching.len() == 1 && !own, requests: matching });
    }
    let before = |id: &ScopeId| view.scopes.get(id).map(|(_, scope)| bare(scope));
    let scopes: Vec<String> = written
        .scopes
        .iter()
        .map(|(id, after)| {
            format!("{id}\n  before {:?}\n  after  {:?}", before(id), after.as_ref().map(|s| bare(s)))
        })
        .collect();
    let foretold: Vec<String> =
        of_key.iter().map(|asked| format!("{:?}", flight.foretold(view, asked))).collect();
    Err(Violation {
        number: None,
        words: "every commit is what the model expects of some command",
        detail: format!(
            "at {} with scopes {}\n operations {:?}\n requests {:?}\n foretold {}\n free {:?}",
            flight.at.now,
            scopes.join("; "),
            written.operations.values().collect::<Vec<_>>(),
            of_key.iter().map(|asked| &asked.request).collect::<Vec<_>>(),
            foretold.join("; "),
            flight.at.free,
        ),
    })
}

fn is_other(record: &Record) -> bool {
    matches!(record, Record::Other)
}

/// Whether a commit writes what was foretold. A scope that is neither there before nor after is no difference,
/// nor is one that is written as it was.
fn same(view: &View, foretold: &Writes, written: &Written) -> bool {
    let before = |id: &ScopeId| view.scopes.get(id).map(|(_, scope)| bare(scope));
    let changed = |scopes: BTreeMap<ScopeId, Option<Scope>>| {
        scopes.into_iter().filter(|(id, after)| *after != before(id)).collect::<BTreeMap<_, _>>()
    };
    let scopes = written.scopes.iter().map(|(id, scope)| (id.clone(), scope.as_ref().map(|one| bare(one))));
    let operation = written.operations.values().next().map(|one| (**one).clone());
    let addresses = |record: &Record| match record {
        Record::Vm(vm, Some(record)) => Some((*vm, record.addresses.clone())),
        Record::Vm(_, None)
        | Record::Scope(..)
        | Record::Claim(..)
        | Record::Operation(..)
        | Record::Past(..)
        | Record::Other => None,
    };
    changed(foretold.scopes.clone()) == changed(scopes.collect())
        && foretold.operation == operation
        && written.operations.len() <= 1
        && foretold.addresses == written.records.iter().filter_map(addresses).collect()
}

/// Whether a commit is something that the service does without being asked.
fn own_work(view: &View, flight: &Flight, written: &Written) -> bool {
    match (written.scopes.len(), written.operations.len()) {
        (1, 0) => written.scopes.keys().all(|id| {
            own_wishes(view, id, &flight.at).into_iter().any(|wish| {
                let foretold = foretell::on_scope(view, id, &[wish], &flight.at);
                foretold.is_ok_and(|writes| same(view, &writes, written))
            })
        }),
        (0, 1) => written.operations.values().all(|after| {
            view.operations.get(&after.id).is_some_and(|before| {
                record_follows(view, before, after) || is_decided(before, after, &flight.at)
            })
        }),
        (_, _) => false,
    }
}

fn own_wishes(view: &View, id: &ScopeId, at: &At) -> Vec<Wish> {
    let mut wishes = vec![Wish::Pulse];
    if !at.reports.is_empty() {
        wishes.push(Wish::Ran(Rc::clone(&at.reports)));
    }
    let Some((_, scope)) = view.scope(id) else { return wishes };
    for operation in view.operations.values() {
        let parts = operation.targets.iter().filter(|target| target.scope == *id);
        for target in parts {
            if operation.state == OperationState::Opening && !view.past.contains_key(&target.event) {
                let opening = foretell::late_opening(operation, target, scope, at);
                wishes.extend(opening.map(|opening| Wish::Open(vec![opening])));
            }
            if operation.cancelled_by.is_some() {
                wishes.push(Wish::Cancel(target.event));
            }
        }
        if operation.completed_by.is_some() {
            let parts = operation.targets.iter().filter(|target| target.scope == *id);
            wishes.extend(parts.map(|target| Wish::Complete(target.event, Vec::new())));
        }
        match operation.joint_start {
            Some(JointStart::Released { why, .. }) => {
                wishes.push(Wish::StartParts(operation.id, why));
                // That it was ready may still be on its way to its scopes.
                wishes.push(Wish::ReadyParts(operation.id, why));
            }
            Some(JointStart::Ready { why }) => wishes.push(Wish::ReadyParts(operation.id, why)),
            Some(JointStart::Waiting) => {}
            None => wishes.extend(operation.released.then_some(Wish::Release(operation.id))),
        }
    }
    wishes
}

/// How far a part of an operation is, by the committed records.
fn truth(view: &View, target: &Target) -> TargetState {
    match view.live(target.event) {
        None => TargetState::Ended,
        Some(event) => match is_approved(event) {
            true => TargetState::Approved,
            false => TargetState::Waiting,
        },
    }
}

/// Whether an event was approved, or begun, which comes to the same for its operation.
pub fn is_approved(event: &Event) -> bool {
    match &event.phase {
        Phase::Started { .. } => true,
        Phase::Scheduled { approval, .. } => approval.is_some(),
    }
}

/// Whether a commit is the decision of a host operation that was due and free.
fn is_decided(before: &Operation, after: &Operation, at: &At) -> bool {
    at.free.iter().filter(|(id, _)| *id == before.id).any(|(_, why)| {
        let why = *why;
        let joint_start = Some(match before.driver {
            DriverKind::Manual => JointStart::Ready { why },
            DriverKind::Simulated | DriverKind::Exec => JointStart::Released { why, by: Actor::Timer },
        });
        *after == Operation { joint_start, ..before.clone() }
    })
}

/// Whether an operation's record may become so: it says nothing that is not true of its parts, and draws the
/// conclusions that the design draws.
fn record_follows(view: &View, before: &Operation, after: &Operation) -> bool {
    let mut expected = before.clone();
    for (expected, after) in expected.targets.iter_mut().zip(&after.targets) {
        // What was true when it was planned is still true, since nothing goes back.
        let claimed = after.state;
        // Of a host operation the scopes alone say who has approved.
        if before.joint_start.is_some() && claimed == TargetState::Approved {
            return false;
        }
        if claimed < expected.state || claimed > truth(view, after) {
            return false;
        }
        let never_was = claimed == TargetState::Ended && !view.past.contains_key(&after.event);
        // What was never opened, though nobody has called it off, was refused, and the record says so.
        let newly_ended = claimed == TargetState::Ended && expected.state != TargetState::Ended;
        if newly_ended && never_was && before.cancelled_by.is_none() {
            if after.refused.is_none() || !may_be_refused(view, before, after) {
                return false;
            }
            expected.refused = after.refused.clone();
        }
        // How a part ended is said by history; a scope that has forgotten it since leaves it open.
        if newly_ended {
            let past = view.past.get(&after.event).map(|past| past.outcome);
            if after.outcome.is_some() && after.outcome != past {
                return false;
            }
            expected.outcome = after.outcome;
        }
        expected.state = claimed;
    }
    expected.state = OperationState::Open;
    let none_waits = expected.targets.iter().all(|target| target.state != TargetState::Waiting);
    if none_waits && expected.joint_start.is_none() {
        expected.released = true;
    }
    if expected.targets.iter().all(|target| target.state == TargetState::Ended) {
        expected.state = OperationState::Closed;
    }
    expected == *after
}

/// Whether there can have been a reason not to open a part: none of its VMs was left, each having gone, been
/// evicted or moved, or the scope had too many of its kind.
fn may_be_refused(view: &View, operation: &Operation, target: &Target) -> bool {
    let Some((_, scope)) = view.scope(&target.scope) else { return true };
    let gone = |one: &notbefore_core::Resource| !foretell::still_reached(operation, one.vm, scope);
    let evicted = |one: &notbefore_core::Resource| {
        view.past.values().any(|past| {
            past.event.cause == notbefore_core::Cause::Eviction
                && past.event.resources.iter().any(|resource| resource.vm == one.vm)
        })
    };
    rules::of(operation.cause).users || target.resources.iter().all(|one| gone(one) || evicted(one))
}
