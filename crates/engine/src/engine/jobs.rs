//! Jobs: requests and due work, until a durable commit and an answer. Per-record locks with FIFO queues; optimistic
//! concurrency towards other nodes.
//!
//! A job is planned from the current state. Its transactions are committed one after the other. On a conflict or a
//! locked record it is planned again. The crate docs describe the life of a command.

use std::collections::VecDeque;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::time::after;
use notbefore_core::{Actor, Command as ScopeCommand, ScopeId};
use notbefore_store::{Expect, Key, Outcome, Revision, Txn, Versioned};

use super::{Effect, Engine, Job, JobId, RETRY_AFTER, Work};
use crate::cluster::is_leader_key;
use crate::draft::DraftedTxns;
use crate::fleet::check_revision;
use crate::keys::RecordKey;
use crate::operations::{OpenAttempts, remaining};
use crate::plan::Plan;
use crate::records::{self, CommandRecord};
use crate::request::{
    AcceptClock, Answer, Command, Failure, FailureCause, Idempotency, InventoryCommand, OperationCommand,
    StoreError, TargetSelector, TokenCommand, VmCommand,
};

/// Limit on new plans after conflicts; then the command fails.
const CONFLICTS_MAX: u32 = 32;

impl Engine {
    pub(super) fn spawn(&mut self, work: Work, by: Actor, now: Timestamp, effects: &mut Vec<Effect>) {
        self.spawn_from(work, by, None, now, effects);
    }

    pub(super) fn spawn_from(
        &mut self,
        work: Work,
        by: Actor,
        from: Option<IpAddr>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let id = self.next_job;
        self.next_job.0 += 1;
        let job = Job {
            work,
            by,
            from,
            conflicts: 0,
            txns: VecDeque::new(),
            in_flight: None,
            has_written: false,
            own_records: Vec::new(),
            locks: Vec::new(),
            to_await: None,
            answer: None,
            to_reconcile: Vec::new(),
            rest: None,
        };
        self.jobs.insert(id, job);
        self.run(id, now, effects);
    }

    /// Plans a job and sends its first transaction. If a record that it compares is locked, the job waits for that
    /// record and is planned again.
    pub(super) fn run(&mut self, id: JobId, now: Timestamp, effects: &mut Vec<Effect>) {
        if !self.role.may_write() {
            self.held.push_back(id);
            return;
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let plan = self.plan(job, now);
        let (mut drafted, answer, rest) = match plan {
            Ok(Plan::Settled(answer)) => return self.finish_unwritten(id, Ok(answer), now, effects),
            Ok(Plan::Write { drafted, answer, rest }) => (drafted, answer, rest),
            Err(failure) => {
                if let Some(busy) = self.commit_to_await(id) {
                    self.waiting.entry(busy).or_default().push_back(id);
                    return;
                }
                return self.finish_unwritten(id, Err(failure), now, effects);
            }
        };
        if let Some(level) = self.level {
            drafted.downgrade(level);
        }
        let DraftedTxns { txns, own_records, to_reconcile, locks } = drafted;
        let compared = txns.last().map(|txn| txn.expect.as_slice()).unwrap_or_default();
        let mut locks: Vec<Key> = compared.iter().map(|one| one.key.clone()).chain(locks).collect();
        // A job that confirms a start still has its locks.
        locks.retain(|key| !job.locks.contains(key));
        if let Some(busy) = locks.iter().find(|key| self.locked.contains(*key)) {
            self.waiting.entry(busy.clone()).or_default().push_back(id);
            return;
        }
        self.locked.extend(locks.iter().cloned());
        self.facts_written += 1_000;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.txns = txns.into();
        job.own_records = own_records;
        job.locks.append(&mut locks);
        job.answer = Some(answer);
        job.to_reconcile = to_reconcile;
        job.rest = rest;
        self.send(id, effects);
    }

    /// A lock for which an approval waits before it is refused. The leader of a cluster may be the last to learn of its own
    /// commit: other nodes show an event when their watch does, and guests approve it. So the approval is planned again
    /// when the commits in flight have their outcomes.
    fn commit_to_await(&mut self, id: JobId) -> Option<Key> {
        self.role.fence()?;
        let job = self.jobs.get_mut(&id)?;
        if !matches!(job.work, Work::Request { command: Command::Guest(_), .. }) {
            return None;
        }
        let mut to_await = job.to_await.take().unwrap_or_else(|| {
            let in_flight = self.jobs.iter().filter(|(_, job)| job.in_flight.is_some());
            let mut in_flight: Vec<JobId> = in_flight.map(|(id, _)| *id).collect();
            in_flight.sort_unstable_by_key(|id| id.0);
            in_flight
        });
        let mut lock = None;
        while let (None, Some(other)) = (&lock, to_await.pop()) {
            let job = self.jobs.get(&other).filter(|job| job.in_flight.is_some());
            lock = job.and_then(|job| job.locks.first()).cloned();
        }
        self.jobs.get_mut(&id)?.to_await = Some(to_await);
        lock
    }

    pub(super) fn plan(&self, job: &Job, now: Timestamp) -> Result<Plan, Failure> {
        let enabled = |scope: &ScopeId| self.is_enabled(scope, now);
        let mut planner = self.planner(&job.by, job.from, &enabled, now);
        if job.work.request().is_none() {
            planner.split_at = self.split_own_work_at;
        }
        match &job.work {
            Work::Request { command, progress, idempotency, if_revision, .. } => {
                if let (Some(seen), Command::Token(TokenCommand::Revoke(name))) = (if_revision, command) {
                    check_revision(*seen, self.state.token(name))?;
                } else if let (Some(seen), Some(scope)) = (if_revision, self.compared_scope(command)) {
                    check_revision(*seen, self.state.scope(&scope))?;
                }
                let plan = planner.plan(command, *progress)?;
                Ok(with_command_record(plan, idempotency.as_ref(), now))
            }
            Work::Confirm { idempotency, .. } => {
                Ok(compare(records::command(&idempotency.principal, &idempotency.key), None))
            }
            Work::Pulse(scope) => match self.reports(scope) {
                reports if reports.is_empty() => planner.on_scope(scope, ScopeCommand::Pulse),
                reports => planner.on_scope(scope, ScopeCommand::Ran(reports)),
            },
            Work::ConfirmUnopened { target, .. } => Ok(compare(records::past(target.event), None)),
            Work::Open(operation, target) => match self.state.operation(*operation) {
                Some(held) => planner.open_target(&held.value, target),
                None => Ok(Plan::Settled(Answer::Done)),
            },
            Work::Step(_, scope, command) => planner.on_scope(scope, command.clone()),
            Work::Record(operation) => {
                let Some(held) = self.state.operation(*operation) else {
                    return Ok(Plan::Settled(Answer::Done));
                };
                let tried = self.fan_outs.get(operation).map(|fan| fan.tried.clone()).unwrap_or_default();
                let mut draft = planner.draft();
                if let Some(record) = remaining(&held.value, &self.state, &tried).record {
                    planner.close_host_operation(&mut draft, &record);
                    draft.operation(record);
                }
                Ok(planner.write(draft, Answer::Done))
            }
            Work::StoreAlive => Ok(self.plan_alive(now)),
            Work::StorePolls(scopes) => Ok(self.plan_polls(scopes)),
            Work::DecideHost(operation) => planner.decide_host_operation(*operation),
            Work::HostCommand(operation) => {
                let Some(held) = self.state.operation(*operation) else {
                    return Ok(Plan::Settled(Answer::Done));
                };
                let are_parts_ready =
                    remaining(&held.value, &self.state, &OpenAttempts::default()).are_parts_ready;
                Ok(planner.drive_host_command(held, are_parts_ready, self.host_report(*operation)))
            }
            Work::ConfirmHostStart { operation, revision } => match self.state.operation(*operation) {
                Some(held) if held.revision == *revision => {
                    Ok(compare(records::operation(*operation), Some(*revision)))
                }
                Some(_) | None => Ok(Plan::Settled(Answer::Done)),
            },
        }
    }

    /// The scope whose revision a caller may give with its command; it need not exist.
    pub(super) fn compared_scope(&self, command: &Command) -> Option<ScopeId> {
        Some(match command {
            Command::Guest(approval) => approval.scope.clone(),
            Command::Event(command) => self.state.scope_of_event(command.event())?.clone(),
            Command::Operation(OperationCommand::Schedule(new)) => match &new.selector {
                TargetSelector::Vms(vms) => self.state.vm(*vms.first()?)?.scope.clone(),
                TargetSelector::Host(_) => return None,
            },
            Command::Inventory(InventoryCommand::Scope(change)) => change.scope(),
            Command::Inventory(InventoryCommand::AddVm(add)) => add.path.id(),
            Command::Inventory(InventoryCommand::Vm(VmCommand::Remove(vm) | VmCommand::Start(vm))) => {
                self.state.vm(*vm)?.scope.clone()
            }
            Command::Operation(
                OperationCommand::Cancel(_)
                | OperationCommand::Start(_)
                | OperationCommand::Complete(_)
                | OperationCommand::Retry(_),
            )
            | Command::Inventory(InventoryCommand::FirstRun(_) | InventoryCommand::Host(_))
            | Command::Token(_)
            | Command::Clock(_)
            | Command::Cluster(_) => return None,
        })
    }

    /// Finishes a job that writes nothing. A command with an idempotency key that is refused, or finds nothing to do,
    /// may have taken effect already, and that may be the reason: the store is checked for its record first. The same
    /// holds for a refused part of an operation: its VMs may be gone because it was opened before, and has ended.
    pub(super) fn finish_unwritten(
        &mut self,
        id: JobId,
        outcome: Result<Answer, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Work::Request { request, idempotency: Some(idempotency), .. } = &job.work {
            let (request, idempotency) = (*request, idempotency.clone());
            job.work = Work::Confirm { request, idempotency, otherwise: outcome };
            self.run(id, now, effects);
        } else if let (Work::Open(operation, target), Err(refused)) = (&job.work, &outcome) {
            let (operation, target, refused) = (*operation, target.clone(), refused.clone());
            job.work = Work::ConfirmUnopened { operation, target, refused };
            self.run(id, now, effects);
        } else {
            self.finish_or_join(id, outcome, now, effects);
        }
    }

    pub(super) fn on_committed(
        &mut self,
        id: JobId,
        outcome: Outcome,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let in_flight = job.in_flight.take();
        if let (Outcome::Unknown(_), Some(sent)) = (&outcome, in_flight.filter(|sent| sent.fence.is_some())) {
            return self.on_unknown(id, sent, now, effects);
        }
        match outcome {
            Outcome::Committed(revision) => {
                let Some(txn) = job.txns.pop_front() else { return };
                job.has_written |= txn.writes();
                let is_last = job.txns.is_empty();
                let own_records = if is_last { std::mem::take(&mut job.own_records) } else { Vec::new() };
                self.apply_own_commit(&txn, &own_records, revision, now, effects);
                match is_last {
                    false => self.send(id, effects),
                    true => self.on_durable(id, now, effects),
                }
            }
            Outcome::Conflict(found) if found.iter().any(|one| is_leader_key(&one.key)) => {
                self.on_fenced(id, in_flight, now, effects);
            }
            Outcome::Conflict(found) => {
                job.conflicts += 1;
                let conflicts = job.conflicts;
                let replay = found.iter().find_map(|one| {
                    let is_command = matches!(RecordKey::parse(&one.key), Ok(RecordKey::Command { .. }));
                    one.record().filter(|_| is_command).map(|record| (one.key.clone(), record))
                });
                let is_past = |key| matches!(RecordKey::parse(key), Ok(RecordKey::Past(_)));
                let ended = found.iter().any(|one| is_past(&one.key));
                let failed = |expect: &&Expect| found.iter().any(|one| one.key == expect.key);
                let expect = job.txns.front().map(|txn| txn.expect.as_slice()).unwrap_or_default();
                let expected = expect.iter().filter(failed).cloned().collect();
                if let Some((key, record)) = replay {
                    let outcome = self.replay_answer(id, &key, &record);
                    let seen =
                        record.revision <= self.watched || self.own_revisions.contains(&record.revision);
                    if seen || outcome.is_err() {
                        self.finish_or_join(id, outcome, now, effects);
                    } else {
                        // Its effect is durable and not yet published here; the watch is about to show it.
                        self.unlock(id, now, effects);
                        self.replays.insert((record.revision, id), outcome);
                        self.wait_for_watch(id, now);
                    }
                } else if ended {
                    self.finish(id, Ok(Answer::Done), now, effects);
                } else if conflicts > CONFLICTS_MAX {
                    self.on_failed(id, Failure::Unavailable(FailureCause::Busy), now, effects);
                } else {
                    let undecided = matches!(job.work, Work::ConfirmHostStart { .. });
                    if !undecided {
                        self.unlock(id, now, effects);
                    }
                    self.conflicted.push((id, expected));
                    self.wait_for_watch(id, now);
                    self.request_snapshot(effects);
                    self.retry_conflicted(now, effects);
                }
            }
            Outcome::Refused(refusal) => {
                let trouble = FailureCause::Store(StoreError(refusal.to_string()));
                self.on_failed(id, Failure::Unavailable(trouble), now, effects);
            }
            Outcome::Unknown(why) => {
                let trouble = FailureCause::Store(StoreError(why));
                self.on_failed(id, Failure::OutcomeUnknown(trouble), now, effects);
            }
        }
    }

    /// All transactions of a job are durable and published.
    pub(super) fn on_durable(&mut self, id: JobId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let to_reconcile = std::mem::take(&mut job.to_reconcile);
        if let (Some(so_far), Work::Request { progress, if_revision, .. }) = (job.rest.take(), &mut job.work)
        {
            *progress = so_far;
            // The revision was compared in the first step, which changed it.
            *if_revision = None;
            self.unlock(id, now, effects);
            self.run(id, now, effects);
        } else {
            let outcome = match &job.work {
                Work::Confirm { otherwise, .. } => otherwise.clone(),
                Work::ConfirmUnopened { refused, .. } => Err(refused.clone()),
                Work::Request { .. }
                | Work::Pulse(_)
                | Work::Open(..)
                | Work::Step(..)
                | Work::Record(_)
                | Work::StoreAlive
                | Work::StorePolls(_)
                | Work::DecideHost(_)
                | Work::HostCommand(_)
                | Work::ConfirmHostStart { .. } => Ok(job.answer.take().unwrap_or(Answer::Done)),
            };
            self.finish_or_join(id, outcome, now, effects);
        }
        for operation in to_reconcile {
            self.reconcile(operation, now, effects);
        }
    }

    /// The stored answer of the first attempt, if this is the same request.
    pub(super) fn replay_answer(&self, id: JobId, key: &str, record: &Versioned) -> Result<Answer, Failure> {
        let hash = match self.jobs.get(&id).map(|job| &job.work) {
            Some(
                Work::Request { idempotency: Some(idempotency), .. } | Work::Confirm { idempotency, .. },
            ) => &idempotency.hash,
            _ => return Err(Failure::KeyReused),
        };
        match records::decode::<CommandRecord>(key, &record.value) {
            Ok(record) if record.hash == *hash => Ok(record.answer),
            Ok(_) => Err(Failure::KeyReused),
            Err(error) => Err(Failure::Unavailable(FailureCause::Record(error))),
        }
    }

    /// Finishes a job, or lets its caller wait until its operation has reached every scope.
    pub(super) fn finish_or_join(
        &mut self,
        id: JobId,
        outcome: Result<Answer, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let request = self.jobs.get(&id).and_then(|job| job.work.request());
        match (outcome, request) {
            (Ok(Answer::Operation(operation)), Some(request))
                if self.state.operation(operation).is_some() =>
            {
                self.drop_job(id, now, effects);
                self.fan_outs.entry(operation).or_default().waiting.push(request);
                self.reconcile(operation, now, effects);
            }
            (outcome, _) => self.finish(id, outcome, now, effects),
        }
    }

    /// The store refused the commit, or its outcome is unknown. A caller gets the failure; internal work is retried.
    pub(super) fn on_failed(
        &mut self,
        id: JobId,
        failure: Failure,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        // A write follows soon in any case, so that a recovered store is noticed.
        self.store_alive_at = self.store_alive_at.min(after(now, RETRY_AFTER));
        if matches!(failure, Failure::OutcomeUnknown(_))
            && self.confirm_host_start(id, &failure, now, effects)
        {
            return;
        }
        let operation = match self.jobs.get(&id).map(|job| &job.work) {
            // These are written again soon anyway.
            Some(Work::Request { .. } | Work::Confirm { .. } | Work::StoreAlive | Work::StorePolls(_))
            | None => {
                return self.finish(id, Err(failure), now, effects);
            }
            Some(Work::ConfirmHostStart { .. }) => {
                self.retries.insert((after(now, RETRY_AFTER), id));
                return;
            }
            Some(
                Work::Open(operation, _)
                | Work::ConfirmUnopened { operation, .. }
                | Work::Step(operation, ..)
                | Work::Record(operation)
                | Work::HostCommand(operation),
            ) => Some(*operation),
            Some(Work::Pulse(_) | Work::DecideHost(_)) => None,
        };
        // Callers that wait for the operation do not wait for the disk: the record is durable, so the rest follows,
        // and a retry finds it.
        let waiting =
            operation.and_then(|one| self.fan_outs.get_mut(&one)).map(|fan| std::mem::take(&mut fan.waiting));
        let unknown = match failure {
            Failure::Unavailable(trouble) | Failure::OutcomeUnknown(trouble) => {
                Failure::OutcomeUnknown(trouble)
            }
            Failure::Refused(_) | Failure::KeyReused => failure,
        };
        for request in waiting.unwrap_or_default() {
            effects.push(Effect::Answer(request, Err(unknown.clone())));
        }
        self.unlock(id, now, effects);
        self.retries.insert((after(now, RETRY_AFTER), id));
    }

    /// The start of a host operation has an unknown outcome: the job keeps its locks and finds out. Returns whether
    /// this is such a job.
    fn confirm_host_start(
        &mut self,
        id: JobId,
        failure: &Failure,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let (Work::DecideHost(operation)
        | Work::Request { command: Command::Operation(OperationCommand::Start(operation)), .. }) = job.work
        else {
            return false;
        };
        let held = self.state.operation(operation).filter(|held| held.value.joint_start.is_some());
        let Some(revision) = held.map(|held| held.revision) else { return false };
        if let Some(request) = job.work.request() {
            effects.push(Effect::Answer(request, Err(failure.clone())));
        }
        job.work = Work::ConfirmHostStart { operation, revision };
        job.txns.clear();
        job.own_records.clear();
        job.to_reconcile.clear();
        self.retries.insert((after(now, RETRY_AFTER), id));
        true
    }

    pub(super) fn finish(
        &mut self,
        id: JobId,
        outcome: Result<Answer, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let has_written = self.jobs.get(&id).is_some_and(|job| job.has_written);
        let Some(work) = self.drop_job(id, now, effects) else { return };
        let outcome = match outcome {
            // A part of the command is durable, or may be.
            Err(Failure::Unavailable(why)) if has_written => Err(Failure::OutcomeUnknown(why)),
            outcome => outcome,
        };
        match work {
            Work::Request { request, command, .. } => {
                if matches!(command, Command::Clock(AcceptClock)) && outcome.is_ok() {
                    self.trust_clock(now);
                }
                effects.push(Effect::Answer(request, outcome));
            }
            Work::Confirm { request, .. } => {
                effects.push(Effect::Answer(request, outcome));
            }
            Work::Open(operation, target) | Work::ConfirmUnopened { operation, target, .. } => {
                if let Some(fan) = self.fan_outs.get_mut(&operation) {
                    fan.tried.insert(target.event, outcome.err().map(|refused| refused.code()));
                }
                self.on_step_done(operation, now, effects);
            }
            Work::Step(operation, scope, _) => {
                if let (Err(refusal), Some(fan)) = (outcome, self.fan_outs.get_mut(&operation)) {
                    fan.refused.insert(scope, refusal);
                }
                self.on_step_done(operation, now, effects);
            }
            Work::Record(operation) => self.on_step_done(operation, now, effects),
            Work::HostCommand(operation) => {
                self.renew_host_command_deadline(operation);
                self.on_step_done(operation, now, effects);
            }
            Work::Pulse(scope) => {
                // Its write set the next deadline, even if that has passed by now. A pulse without changes restores the
                // scope's deadline; a refused one is retried.
                if self.deadlines.get(&scope).is_none() {
                    let due = self.state.scope(&scope).and_then(|held| self.state.due_in(&scope, held, now));
                    let due = due.map(|due| if due > now { due } else { after(now, RETRY_AFTER) });
                    self.deadlines.set(&scope, due);
                }
                self.retry_commands(&scope, now);
            }
            Work::StoreAlive => {}
            Work::StorePolls(scopes) => self.on_polls_stored(scopes, outcome.is_ok(), now, effects),
            Work::DecideHost(operation) | Work::ConfirmHostStart { operation, .. } => {
                self.host_decided(operation)
            }
        }
    }

    pub(super) fn drop_job(&mut self, id: JobId, now: Timestamp, effects: &mut Vec<Effect>) -> Option<Work> {
        self.unlock(id, now, effects);
        self.jobs.remove(&id).map(|job| job.work)
    }

    /// Releases a job's locks and runs the jobs that wait for them, in order.
    pub(super) fn unlock(&mut self, id: JobId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.txns.clear();
        job.own_records.clear();
        let locks = std::mem::take(&mut job.locks);
        for key in &locks {
            self.locked.remove(key);
        }
        for key in locks {
            while !self.locked.contains(&key) {
                let Some(next) = self.waiting.get_mut(&key).and_then(VecDeque::pop_front) else {
                    self.waiting.remove(&key);
                    break;
                };
                self.run(next, now, effects);
            }
        }
    }
}

/// A plan that only compares a record's revision.
fn compare(key: Key, revision: Option<Revision>) -> Plan {
    let txn = Txn { expect: vec![Expect { key, revision }], ..Txn::default() };
    let drafted = DraftedTxns { txns: vec![txn], ..DraftedTxns::default() };
    Plan::Write { drafted, answer: Answer::Done, rest: None }
}

/// Adds the idempotency record to the transaction with the command's effect, so that both are durable together.
fn with_command_record(plan: Plan, idempotency: Option<&Idempotency>, now: Timestamp) -> Plan {
    match (plan, idempotency) {
        (Plan::Write { mut drafted, answer, rest: None }, Some(idempotency)) => {
            let Idempotency { principal, key, hash } = idempotency;
            let key = records::command(principal, key);
            let record = CommandRecord { hash: hash.clone(), at: now, answer: answer.clone() };
            if let Some(txn) = drafted.txns.last_mut() {
                txn.expect.push(Expect { key: key.clone(), revision: None });
                txn.put.push((key, records::encode(&record)));
            }
            Plan::Write { drafted, answer, rest: None }
        }
        // The last of several steps may find nothing to do; the earlier ones took effect.
        (Plan::Settled(answer), Some(idempotency)) if has_effect(&answer) => {
            let drafted = DraftedTxns { txns: vec![Txn::default()], ..DraftedTxns::default() };
            with_command_record(Plan::Write { drafted, answer, rest: None }, Some(idempotency), now)
        }
        // Earlier steps of a command with several transactions are idempotent; the last one has the record.
        (plan, _) => plan,
    }
}

/// Whether steps before the last one changed something.
fn has_effect(answer: &Answer) -> bool {
    match answer {
        Answer::Scope { progress, .. } => {
            progress.created || progress.added + progress.changed + progress.removed > 0
        }
        Answer::Done | Answer::Operation(_) | Answer::Vm(_) => false,
    }
}
