//! Conformance check of each commit against the model.
//!
//! A commit does not say which command it carries out, and the checker does not ask the engine. It knows the requests
//! that were open when the commit was sent, and the service's own work: pulses; opening, releasing and cancelling
//! the parts of an operation; updating an operation's record. Each of these predicts records, and one of them must
//! predict exactly the written records. A commit with an idempotency record must be that very request.
//!
//! A large change is written in several transactions. Those sent ahead of the last one are not judged by themselves: they
//! belong to a plan that was made when the first of them was sent, and the last one must fit that plan.

use std::collections::BTreeMap;
use std::rc::Rc;

use notbefore_core::{
    Actor, DriverKind, Event, EventId, JointStart, Operation, OperationId, OperationState, Phase, Scope,
    ScopeId, Target, TargetState,
};
use notbefore_engine::records::{self, CommandRecord, prefix};
use notbefore_engine::{JobId, Request};
use notbefore_store::{Outcome, Revision, Txn};

use crate::host_command;
use crate::model::{At, Codes, ScopeRequest, bare};
use crate::predict::{self, Writes};
use crate::rules;
use crate::view::{Reads, Record, View};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's number in the design; none for a difference from the model.
    pub number: Option<u8>,
    pub words: &'static str,
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

/// A request that the world sent.
#[derive(Clone, Debug)]
pub struct SentRequest {
    pub id: u64,
    pub request: Request,
    /// Number of faults before it.
    pub faults: u32,
    /// Whether no commit was in flight when it was sent.
    pub is_quiet: bool,
}

/// A commit in flight.
#[derive(Clone, Debug)]
pub struct Flight {
    pub id: JobId,
    pub txn: Txn,
    /// What the same job has sent ahead of it.
    pub ahead: SentAhead,
    /// The circumstances of its plan.
    pub at: At,
    /// The requests that were open then.
    pub open_requests: Vec<Rc<SentRequest>>,
    /// Predicted writes of requests that compare no scope, from the engine's state when it sent the commit. An
    /// operation of several parts is created before its scopes are touched; they, and the VMs on a host, may have
    /// changed when the store applies it.
    pub planned: BTreeMap<u64, Writes>,
    /// Set once the store has applied it.
    pub outcome: Option<Outcome>,
    /// The index of the node that sent it.
    pub by: usize,
    /// The store's revision when it was sent.
    pub sent_at: Revision,
}

/// Transactions that a job has sent ahead of its last one, which alone compares and decides.
#[derive(Clone, Debug, Default)]
pub struct SentAhead {
    /// The first transaction of each plan with which the last one may have been made. After an unknown outcome the job
    /// goes on or is planned again.
    pub flights: Vec<Rc<Flight>>,
    /// Whether it certainly goes on.
    pub is_same_plan: bool,
    /// The ended events among their records.
    pub past: Vec<Record>,
}

impl Flight {
    /// This, as if it had been sent when it was planned: with the first of its plan's transactions.
    pub fn as_planned(self, view: &View, written: &Written) -> Flight {
        let with = |one: &Rc<Flight>| {
            let Flight { at, open_requests, planned, sent_at, .. } = Flight::clone(one);
            let at = At { chosen_hosts: Rc::clone(&self.at.chosen_hosts), ..at };
            Flight { at, open_requests, planned, sent_at, ..self.clone() }
        };
        let explained = |plan: &Flight| explain(view, plan, written).is_ok();
        let found = self.ahead.flights.iter().rev().map(with).find(explained);
        found.unwrap_or(self)
    }

    fn predicted(&self, view: &View, sent: &SentRequest) -> Result<Writes, Codes> {
        match self.planned.get(&sent.id) {
            Some(writes) => Ok(writes.clone()),
            None => predict::request(view, &sent.request, &self.at),
        }
    }
}

/// A decoded commit.
#[derive(Debug, Default)]
pub struct Written {
    pub scopes: BTreeMap<ScopeId, Option<Rc<Scope>>>,
    pub operations: BTreeMap<OperationId, Rc<Operation>>,
    /// All records, in order.
    pub records: Vec<Record>,
    /// The idempotency record: key and content.
    pub command: Option<(String, CommandRecord)>,
}

impl Written {
    /// Whether these are only records that accompany a change, and nothing that others wait for: history, facts, and
    /// the removal of VMs and claims.
    pub fn is_sent_ahead(&self) -> bool {
        let accompanies = |record: &Record| match record {
            Record::Vm(_, vm) => vm.is_none(),
            Record::Claim(_, vm) => vm.is_none(),
            Record::Past(_, past) => past.is_some(),
            Record::Host(_, host) => host.is_some(),
            Record::Scope(..) | Record::Operation(..) => false,
            Record::Other => true,
        };
        self.command.is_none() && self.records.iter().all(accompanies)
    }
}

/// The hosts to which the simulated driver has moved the VMs of the events that end with a transaction.
pub fn chosen_hosts(txn: &Txn, ahead: &SentAhead) -> Result<BTreeMap<EventId, String>, Violation> {
    let written = written(txn)?;
    let chosen = ahead.past.iter().chain(&written.records).filter_map(|record| {
        let Record::Past(id, Some(past)) = record else { return None };
        let is_simulated = past.event.driver == DriverKind::Simulated;
        Some((*id, past.event.target_host.clone().filter(|_| is_simulated)?))
    });
    Ok(chosen.collect())
}

/// Decodes a transaction.
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
            Record::Vm(..) | Record::Claim(..) | Record::Host(..) | Record::Past(..) | Record::Other => {}
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

/// The key of a request's idempotency record.
pub fn command_key(request: &Request) -> Option<String> {
    request.idempotency.as_ref().map(|one| records::command(&one.principal, &one.key).to_string())
}

/// The requests that a commit may carry out.
#[derive(Debug, Default)]
pub struct Carries {
    /// Requests with this effect; several may have the same.
    pub requests: Vec<Rc<SentRequest>>,
    /// Whether there is no other explanation.
    pub sure: bool,
}

/// Finds the open requests that a commit carries out; none if it is the service's own work.
pub fn explain(view: &View, flight: &Flight, written: &Written) -> Result<Carries, Violation> {
    if written.scopes.is_empty() && written.operations.is_empty() && written.records.iter().all(is_other) {
        // Poll times and the heartbeat.
        return Ok(Carries::default());
    }
    let of_key: Vec<Rc<SentRequest>> = match &written.command {
        Some((key, content)) => {
            let same = |sent: &&Rc<SentRequest>| {
                command_key(&sent.request).as_ref() == Some(key)
                    && sent.request.idempotency.as_ref().is_some_and(|one| one.hash == content.hash)
            };
            flight.open_requests.iter().filter(same).cloned().collect()
        }
        None => {
            flight.open_requests.iter().filter(|sent| sent.request.idempotency.is_none()).cloned().collect()
        }
    };
    let matching: Vec<Rc<SentRequest>> = of_key
        .iter()
        .filter(|sent| match flight.predicted(view, sent) {
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
    let predicted: Vec<String> =
        of_key.iter().map(|sent| format!("{:?}", flight.predicted(view, sent))).collect();
    Err(Violation {
        number: None,
        words: "every commit is what the model expects of some command",
        detail: format!(
            "at {} with scopes {}\n operations {:?}\n requests {:?}\n predicted {}\n free {:?}",
            flight.at.now,
            scopes.join("; "),
            written.operations.values().collect::<Vec<_>>(),
            of_key.iter().map(|sent| &sent.request).collect::<Vec<_>>(),
            predicted.join("; "),
            flight.at.free,
        ),
    })
}

fn is_other(record: &Record) -> bool {
    matches!(record, Record::Other)
}

/// Whether a commit writes the predicted records. A scope that exists neither before nor after is no difference, nor is
/// an unchanged one.
fn same(view: &View, predicted: &Writes, written: &Written) -> bool {
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
        | Record::Host(..)
        | Record::Past(..)
        | Record::Other => None,
    };
    changed(predicted.scopes.clone()) == changed(scopes.collect())
        && predicted.operation == operation
        && written.operations.len() <= 1
        && predicted.addresses == written.records.iter().filter_map(addresses).collect()
}

/// Whether a commit is the service's own work.
fn own_work(view: &View, flight: &Flight, written: &Written) -> bool {
    match (written.scopes.len(), written.operations.len()) {
        (1, 0) => written.scopes.keys().all(|id| {
            own_requests(view, id, &flight.at).into_iter().any(|scope_request| {
                let predicted = predict::on_scope(view, id, &[scope_request], &flight.at);
                predicted.is_ok_and(|writes| same(view, &writes, written))
            })
        }),
        (0, 1) => written.operations.values().all(|after| {
            view.operations.get(&after.id).is_some_and(|before| {
                record_follows(view, before, after)
                    || is_decided(before, after, &flight.at)
                    || host_command::follows(view, before, after, &flight.at)
            })
        }),
        (_, _) => false,
    }
}

fn own_requests(view: &View, id: &ScopeId, at: &At) -> Vec<ScopeRequest> {
    let mut scope_requests = vec![ScopeRequest::Pulse];
    if !at.reports.is_empty() {
        scope_requests.push(ScopeRequest::Ran(Rc::clone(&at.reports)));
    }
    let Some((_, scope)) = view.scope(id) else { return scope_requests };
    for operation in view.operations.values() {
        let parts = operation.targets.iter().filter(|target| target.scope == *id);
        for target in parts {
            if operation.state == OperationState::Opening && !view.past.contains_key(&target.event) {
                let opening = predict::late_opening(operation, target, scope, at);
                scope_requests.extend(opening.map(|opening| ScopeRequest::Open(vec![opening])));
            }
            if operation.cancelled_by.is_some() {
                scope_requests.push(ScopeRequest::Cancel(target.event));
            }
        }
        if operation.completed_by.is_some() {
            let parts = operation.targets.iter().filter(|target| target.scope == *id);
            scope_requests.extend(parts.map(|target| ScopeRequest::Complete(target.event, Vec::new())));
        }
        if host_command::is_done(operation) {
            scope_requests.push(ScopeRequest::HostDone(operation.id));
        }
        match operation.joint_start {
            Some(JointStart::Released { why, .. }) => {
                scope_requests.push(ScopeRequest::StartParts(operation.id, why));
                // The ready state may not have reached its scopes yet.
                scope_requests.push(ScopeRequest::ReadyParts(operation.id, why));
            }
            Some(JointStart::Ready { why }) => {
                scope_requests.push(ScopeRequest::ReadyParts(operation.id, why))
            }
            Some(JointStart::Waiting) => {}
            None => scope_requests.extend(operation.released.then_some(ScopeRequest::Release(operation.id))),
        }
    }
    scope_requests
}

/// The state of a part by the committed records.
fn committed_state(view: &View, target: &Target) -> TargetState {
    match view.live(target.event) {
        None => TargetState::Ended,
        Some(event) => match is_approved(event) {
            true => TargetState::Approved,
            false => TargetState::Waiting,
        },
    }
}

/// Whether an event was approved or started, which is the same for its operation.
pub fn is_approved(event: &Event) -> bool {
    match &event.phase {
        Phase::Started { .. } => true,
        Phase::Scheduled { approval, .. } => approval.is_some(),
        Phase::Advisory { .. } => false,
    }
}

/// Whether a commit is the decision of a host operation that was due and not blocked.
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

/// Whether an operation's record may change like this: it must be true of its parts, with the conclusions of the
/// design.
fn record_follows(view: &View, before: &Operation, after: &Operation) -> bool {
    let mut expected = before.clone();
    for (expected, after) in expected.targets.iter_mut().zip(&after.targets) {
        // What was true when it was planned is still true, since nothing goes back.
        let claimed = after.state;
        // For a host operation only the scopes hold the approvals.
        if before.joint_start.is_some() && claimed == TargetState::Approved {
            return false;
        }
        if claimed < expected.state || claimed > committed_state(view, after) {
            return false;
        }
        let never_was = claimed == TargetState::Ended && !view.past.contains_key(&after.event);
        // A part that was never opened, without a cancellation, was refused, and the record must say so.
        let newly_ended = claimed == TargetState::Ended && expected.state != TargetState::Ended;
        if newly_ended && never_was && before.cancelled_by.is_none() {
            if after.refused.is_none() || !may_be_refused(view, before, after) {
                return false;
            }
            expected.refused = after.refused.clone();
        }
        // The history has a part's outcome; a scope that has forgotten it leaves it open.
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
    let all_ended = expected.targets.iter().all(|target| target.state == TargetState::Ended);
    if all_ended && !host_command::goes_on(before) {
        expected.state = OperationState::Closed;
    }
    expected == *after
}

/// Whether there may have been a reason to refuse a part: all of its VMs were removed, evicted or moved, or the
/// scope had too many of its kind.
fn may_be_refused(view: &View, operation: &Operation, target: &Target) -> bool {
    let Some((_, scope)) = view.scope(&target.scope) else { return true };
    let gone = |one: &notbefore_core::Resource| !predict::is_still_target(operation, one.vm, scope);
    let evicted = |one: &notbefore_core::Resource| {
        view.past.values().any(|past| {
            past.event.cause == notbefore_core::Cause::Eviction
                && past.event.resources.iter().any(|resource| resource.vm == one.vm)
        })
    };
    rules::of(operation.cause).users || target.resources.iter().all(|one| gone(one) || evicted(one))
}
