//! The loop: inputs in, effects out, and in between jobs that wait for their records, their commit or their
//! time. See the crate's page for the life of a command.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{Actor, Command as ScopeCommand, EventId, OperationId, ScopeId, Settings, Target};
use notbefore_store::{Batch, Expect, Key, Outcome, Revision, Txn, Versioned};

use crate::draft::Drafted;
use crate::fleet::check_revision;
use crate::operations::remaining;
use crate::plan::{Plan, Planner};
use crate::records::{self, CommandRecord, DecodeError, LastAt};
use crate::request::{Answer, Command, Failure, Idempotency, Request};
use crate::state::{Published, State};

/// For how long a request of a guest keeps its scope enabled.
pub const ENABLED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How old the stored time of a scope's last request may grow before it is stored again. A write an hour
/// and scope is nothing, and an hour in twenty-four nobody notices.
const HEARD_STORED_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// How often the service stores that it runs, so that a guest is not blamed for our own downtime.
const ALIVE_STORED_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// How long work of our own waits after the store would not take it.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);
/// How often a command is planned again because somebody else was faster, before it gives up.
const CONFLICTS_MAX: u32 = 32;
/// How many scopes' last requests one transaction stores.
const HEARD_PER_TXN: usize = 90;

/// What the engine goes by besides the domain's own settings.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The domain's settings.
    pub domain: Settings,
    /// A name for this process, different at every start; it keeps the keys of facts apart.
    pub node: String,
}

/// A request, as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A commit under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(pub u64);

/// What comes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody asks for something.
    Request(RequestId, Box<Request>),
    /// What became of a commit.
    Committed(CommitId, Outcome),
    /// A commit, as the store's watch shows it: another node's, or one whose outcome was unknown.
    Watched(Batch),
    /// A guest of the scope has asked for its document.
    Heard(ScopeId, Timestamp),
    /// Time has passed.
    Tick,
}

/// What must be done, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Commit this, and come back with the outcome.
    Commit(CommitId, Txn),
    /// Let readers see these changes.
    Publish(Vec<Published>),
    /// Answer a request.
    Answer(RequestId, Result<Answer, Failure>),
}

/// What a job is about.
#[derive(Clone, Debug)]
enum Work {
    /// Somebody's request.
    Ask {
        request: RequestId,
        command: Command,
        idempotency: Option<Idempotency>,
        if_revision: Option<Revision>,
    },
    /// Confirms that a refused command has not taken effect at an earlier try.
    Confirm { request: RequestId, idempotency: Idempotency, refused: Failure },
    /// A scope has something due.
    Pulse(ScopeId),
    /// An operation's part is to be opened.
    Open(OperationId, Target),
    /// An operation wants something of a scope.
    Step(OperationId, ScopeId, ScopeCommand),
    /// An operation's record is to be brought up to date.
    Record(OperationId),
    /// Times to be stored: they need no comparing.
    Times,
}

struct Job {
    work: Work,
    by: Actor,
    conflicts: u32,
    /// What is planned and not yet durable; the front is under way.
    txns: VecDeque<Txn>,
    locks: Vec<Key>,
    answer: Option<Answer>,
    stirred: Vec<OperationId>,
    rest: Option<Box<Command>>,
}

/// An operation that is being reconciled.
#[derive(Default)]
struct Fan {
    pending: usize,
    tried: HashSet<EventId>,
    waiting: Vec<RequestId>,
}

/// The engine; see the crate's page.
pub struct Engine {
    settings: EngineSettings,
    state: State,
    jobs: HashMap<CommitId, Job>,
    next_job: u64,
    facts_written: u64,
    locked: HashSet<Key>,
    waiting: HashMap<Key, VecDeque<CommitId>>,
    deadlines: BTreeSet<(Timestamp, ScopeId)>,
    deadline_of: HashMap<ScopeId, Timestamp>,
    /// Work of our own that the store would not take, and when to try it again.
    retries: BTreeSet<(Timestamp, CommitId)>,
    fans: HashMap<OperationId, Fan>,
    /// Jobs that met a conflict, and the records that were not as they expected.
    behind: Vec<(CommitId, Vec<Expect>)>,
    /// Answers to those who asked twice, kept until the watch has shown what the first time did.
    replays: BTreeMap<(Revision, CommitId), Result<Answer, Failure>>,
    heard: HashMap<ScopeId, Timestamp>,
    heard_to_store: BTreeSet<ScopeId>,
    store_times_at: Timestamp,
    /// Revisions taken over when they were committed; the watch will show them once more.
    own: BTreeSet<Revision>,
    watched: Revision,
}

impl Engine {
    /// An engine over the records as the store has them at `revision`; the effects publish them and go on
    /// with whatever was cut short.
    pub fn new(
        settings: EngineSettings,
        records: impl IntoIterator<Item = (Key, Versioned)>,
        revision: Revision,
        now: Timestamp,
    ) -> Result<(Self, Vec<Effect>), DecodeError> {
        let mut state = State::default();
        for (key, record) in records {
            state.install(&key, record.revision, Some(&record.value))?;
        }
        let mut engine = Self {
            settings,
            state,
            jobs: HashMap::new(),
            next_job: 0,
            facts_written: 0,
            locked: HashSet::new(),
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            deadline_of: HashMap::new(),
            retries: BTreeSet::new(),
            fans: HashMap::new(),
            behind: Vec::new(),
            replays: BTreeMap::new(),
            heard: HashMap::new(),
            heard_to_store: BTreeSet::new(),
            store_times_at: now,
            own: BTreeSet::new(),
            watched: revision,
        };
        let down = engine.state.alive().map(|alive| now.duration_since(alive).max(SignedDuration::ZERO));
        for (scope, at) in engine.state.all_heard() {
            let at = at.checked_add(down.unwrap_or_default()).unwrap_or(at);
            engine.heard.insert(scope.clone(), at);
        }
        let dues: Vec<_> =
            engine.state.scopes().map(|(id, held)| (id.clone(), held.value.next_due())).collect();
        for (scope, due) in dues {
            engine.set_deadline(&scope, due);
        }
        let mut effects = vec![Effect::Publish(engine.state.everything())];
        let mut unfinished: Vec<_> = engine.state.operations().map(|(id, _)| *id).collect();
        // In an order that does not depend on the process, so that a history can be played again.
        unfinished.sort();
        for operation in unfinished {
            engine.reconcile(operation, now, &mut effects);
        }
        Ok((engine, effects))
    }

    /// The records as they are.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// When [`Input::Tick`] is wanted next.
    pub fn next_due(&self) -> Option<Timestamp> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let retry = self.retries.first().map(|(at, _)| *at);
        [deadline, retry, Some(self.store_times_at)].into_iter().flatten().min()
    }

    /// Whether everything asked for has been answered and everything due has been done.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes one input and says what must be done.
    pub fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Request(request, asked) => {
                let Request { by, idempotency, if_revision, command } = *asked;
                self.spawn(Work::Ask { request, command, idempotency, if_revision }, by, now, &mut effects);
            }
            Input::Committed(id, outcome) => self.committed(id, outcome, now, &mut effects),
            Input::Watched(batch) => self.take_over_watched(batch, now, &mut effects),
            Input::Heard(scope, at) => self.note_heard(scope, at),
            Input::Tick => {}
        }
        self.do_what_is_due(now, &mut effects);
        effects
    }

    fn do_what_is_due(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        while let Some((at, id)) = self.retries.first().copied().filter(|(at, _)| *at <= now) {
            self.retries.remove(&(at, id));
            self.run(id, now, effects);
        }
        // What lies further ahead than it can have been put was put there by a clock that was wrong.
        let furthest = after(now, RETRY_AFTER);
        while let Some((at, id)) = self.retries.last().copied().filter(|(at, _)| *at > furthest) {
            self.retries.remove(&(at, id));
            self.run(id, now, effects);
        }
        while let Some((_, scope)) = self.deadlines.first().filter(|(at, _)| *at <= now).cloned() {
            self.set_deadline(&scope, None);
            self.spawn(Work::Pulse(scope), Actor::Timer, now, effects);
        }
        if self.store_times_at <= now || self.store_times_at > after(now, ALIVE_STORED_EVERY) {
            self.store_times_at = after(now, ALIVE_STORED_EVERY);
            self.spawn(Work::Times, Actor::Service, now, effects);
        }
    }

    fn spawn(&mut self, work: Work, by: Actor, now: Timestamp, effects: &mut Vec<Effect>) {
        let id = CommitId(self.next_job);
        self.next_job += 1;
        let job = Job {
            work,
            by,
            conflicts: 0,
            txns: VecDeque::new(),
            locks: Vec::new(),
            answer: None,
            stirred: Vec::new(),
            rest: None,
        };
        self.jobs.insert(id, job);
        self.run(id, now, effects);
    }

    /// Plans a job and sets its first transaction going, unless a record that it compares is in use: then it
    /// waits for that record and is planned anew.
    fn run(&mut self, id: CommitId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let plan = self.plan(job, now);
        let (drafted, answer, rest) = match plan {
            Ok(Plan::Settled(answer)) => return self.finish_or_join(id, Ok(answer), now, effects),
            Ok(Plan::Write { drafted, answer, rest }) => (drafted, answer, rest),
            Err(failure) => return self.refused(id, failure, now, effects),
        };
        let Drafted { txns, stirred } = drafted;
        let locks: Vec<Key> =
            txns.last().map(|txn| txn.expect.iter().map(|one| one.key.clone()).collect()).unwrap_or_default();
        if let Some(busy) = locks.iter().find(|key| self.locked.contains(*key)) {
            self.waiting.entry(busy.clone()).or_default().push_back(id);
            return;
        }
        self.locked.extend(locks.iter().cloned());
        self.facts_written += 1_000;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.txns = txns.into();
        job.locks = locks;
        job.answer = Some(answer);
        job.stirred = stirred;
        job.rest = rest;
        if let Some(txn) = job.txns.front() {
            effects.push(Effect::Commit(id, txn.clone()));
        }
    }

    fn plan(&self, job: &Job, now: Timestamp) -> Result<Plan, Failure> {
        let enabled = |scope: &ScopeId| self.is_enabled(scope, now);
        let planner = Planner {
            state: &self.state,
            settings: &self.settings.domain,
            enabled: &enabled,
            now,
            by: &job.by,
            node: &self.settings.node,
            count: self.facts_written,
        };
        match &job.work {
            Work::Ask { command, idempotency, if_revision, .. } => {
                check_revision(*if_revision, self.compared_scope(command))?;
                let plan = planner.plan(command)?;
                Ok(with_command_record(plan, idempotency.as_ref(), now))
            }
            Work::Confirm { idempotency, .. } => {
                let key = records::command(&idempotency.principal, &idempotency.key);
                let txn = Txn { expect: vec![Expect { key, revision: None }], ..Txn::default() };
                let drafted = Drafted { txns: vec![txn], stirred: Vec::new() };
                Ok(Plan::Write { drafted, answer: Answer::Done, rest: None })
            }
            Work::Pulse(scope) => planner.on_scope(scope, ScopeCommand::Pulse),
            Work::Open(operation, target) => match self.state.operation(*operation) {
                Some(held) => planner.open_target(&held.value, target),
                None => Ok(Plan::Settled(Answer::Done)),
            },
            Work::Step(_, scope, command) => planner.on_scope(scope, command.clone()),
            Work::Record(operation) => {
                let Some(held) = self.state.operation(*operation) else {
                    return Ok(Plan::Settled(Answer::Done));
                };
                let tried = self.fans.get(operation).map(|fan| fan.tried.clone()).unwrap_or_default();
                let mut draft = planner.draft();
                if let Some(record) = remaining(&held.value, &self.state, &tried).record {
                    draft.operation(&record);
                }
                Ok(planner.write(draft, Answer::Done))
            }
            Work::Times => Ok(self.plan_times(now)),
        }
    }

    /// The scope whose revision a caller may name with its command.
    fn compared_scope(&self, command: &Command) -> Option<&crate::state::Held<notbefore_core::Scope>> {
        let scope = match command {
            Command::Approve { scope, .. } | Command::RemoveScope(scope) => scope.clone(),
            Command::ApproveFor(event)
            | Command::Cancel(event)
            | Command::Start(event)
            | Command::Complete { event, .. } => self.state.home(*event)?.clone(),
            Command::PutScope(put) => put.path.id(),
            Command::AddVm { path, .. } => path.id(),
            Command::RemoveVm(vm) | Command::StartVm(vm) => self.state.vm(*vm)?.value.scope.clone(),
            Command::Schedule(_) | Command::CancelOperation(_) | Command::MakeFirstRun { .. } => return None,
        };
        self.state.scope(&scope)
    }

    /// A refusal of a command with a key may only mean that it has taken effect already: the store is asked
    /// whether it has, before the caller is told that it has not.
    fn refused(&mut self, id: CommitId, failure: Failure, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match &job.work {
            Work::Ask { request, idempotency: Some(idempotency), .. } => {
                let (request, idempotency) = (*request, idempotency.clone());
                job.work = Work::Confirm { request, idempotency, refused: failure };
                self.run(id, now, effects);
            }
            Work::Ask { .. }
            | Work::Confirm { .. }
            | Work::Pulse(_)
            | Work::Open(..)
            | Work::Step(..)
            | Work::Record(_)
            | Work::Times => self.finish(id, Err(failure), now, effects),
        }
    }

    fn committed(&mut self, id: CommitId, outcome: Outcome, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match outcome {
            Outcome::Committed(revision) => {
                let Some(txn) = job.txns.pop_front() else { return };
                let next = job.txns.front().cloned();
                self.take_over_own(&txn, revision, effects);
                match next {
                    Some(next) => effects.push(Effect::Commit(id, next)),
                    None => self.durable(id, now, effects),
                }
            }
            Outcome::Conflict(found) => {
                job.conflicts += 1;
                let conflicts = job.conflicts;
                let replay = found.iter().find_map(|one| {
                    let is_command = one.key.starts_with(records::prefix::COMMAND);
                    one.current.clone().filter(|_| is_command).map(|current| (one.key.clone(), current))
                });
                let ended = found.iter().any(|one| one.key.starts_with(records::prefix::PAST));
                let failed = |expect: &&Expect| found.iter().any(|one| one.key == expect.key);
                let expect = job.txns.front().map(|txn| txn.expect.as_slice()).unwrap_or_default();
                let expected = expect.iter().filter(failed).cloned().collect();
                if let Some((key, record)) = replay {
                    let outcome = self.replayed(id, &key, &record);
                    let seen = record.revision <= self.watched || self.own.contains(&record.revision);
                    if seen || outcome.is_err() {
                        self.finish_or_join(id, outcome, now, effects);
                    } else {
                        // Its effect is durable and not yet published here; the watch is about to show it.
                        self.unlock(id, now, effects);
                        self.replays.insert((record.revision, id), outcome);
                    }
                } else if ended {
                    self.finish(id, Ok(Answer::Done), now, effects);
                } else if conflicts > CONFLICTS_MAX {
                    let busy = Failure::Unavailable("too many changes at once".to_owned());
                    self.failed(id, busy, now, effects);
                } else {
                    self.unlock(id, now, effects);
                    self.behind.push((id, expected));
                    self.run_who_caught_up(now, effects);
                }
            }
            Outcome::Refused(refusal) => {
                self.failed(id, Failure::Unavailable(refusal.to_string()), now, effects);
            }
            Outcome::Unknown(why) => self.failed(id, Failure::OutcomeUnknown(why), now, effects),
        }
    }

    /// All of a job is durable and published.
    fn durable(&mut self, id: CommitId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let stirred = std::mem::take(&mut job.stirred);
        if let (Some(rest), Work::Ask { command, .. }) = (job.rest.take(), &mut job.work) {
            *command = *rest;
            self.unlock(id, now, effects);
            self.run(id, now, effects);
        } else {
            let outcome = match &job.work {
                Work::Confirm { refused, .. } => Err(refused.clone()),
                Work::Ask { .. }
                | Work::Pulse(_)
                | Work::Open(..)
                | Work::Step(..)
                | Work::Record(_)
                | Work::Times => Ok(job.answer.take().unwrap_or(Answer::Done)),
            };
            self.finish_or_join(id, outcome, now, effects);
        }
        for operation in stirred {
            self.reconcile(operation, now, effects);
        }
    }

    /// The answer of the first time, if this is the same request.
    fn replayed(&self, id: CommitId, key: &str, record: &Versioned) -> Result<Answer, Failure> {
        let hash = match self.jobs.get(&id).map(|job| &job.work) {
            Some(Work::Ask { idempotency: Some(idempotency), .. } | Work::Confirm { idempotency, .. }) => {
                &idempotency.hash
            }
            _ => return Err(Failure::KeyReused),
        };
        match records::decode::<CommandRecord>(key, &record.value) {
            Ok(record) if record.hash == *hash => Ok(record.answer),
            Ok(_) => Err(Failure::KeyReused),
            Err(error) => Err(Failure::Unavailable(error.to_string())),
        }
    }

    /// Finishes a job, or lets its caller wait until the operation it made has reached every scope.
    fn finish_or_join(
        &mut self,
        id: CommitId,
        outcome: Result<Answer, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let request = match self.jobs.get(&id).map(|job| &job.work) {
            Some(Work::Ask { request, .. } | Work::Confirm { request, .. }) => Some(*request),
            Some(Work::Pulse(_) | Work::Open(..) | Work::Step(..) | Work::Record(_) | Work::Times) | None => {
                None
            }
        };
        match (outcome, request) {
            (Ok(Answer::Operation(operation)), Some(request))
                if self.state.operation(operation).is_some() =>
            {
                self.drop_job(id, now, effects);
                self.fans.entry(operation).or_default().waiting.push(request);
                self.reconcile(operation, now, effects);
            }
            (outcome, _) => self.finish(id, outcome, now, effects),
        }
    }

    /// The store would not take it, or nobody knows whether it did. A caller is told; work of our own is
    /// tried again.
    fn failed(&mut self, id: CommitId, failure: Failure, now: Timestamp, effects: &mut Vec<Effect>) {
        let operation = match self.jobs.get(&id).map(|job| &job.work) {
            // Times are stored again in a minute anyway.
            Some(Work::Ask { .. } | Work::Confirm { .. } | Work::Times) | None => {
                return self.finish(id, Err(failure), now, effects);
            }
            Some(Work::Open(operation, _) | Work::Step(operation, ..) | Work::Record(operation)) => {
                Some(*operation)
            }
            Some(Work::Pulse(_)) => None,
        };
        // Whoever waits for the operation is not kept waiting for the disk to come back; the record is
        // durable, so the rest will follow, and a retry finds it.
        let waiting =
            operation.and_then(|one| self.fans.get_mut(&one)).map(|fan| std::mem::take(&mut fan.waiting));
        for request in waiting.unwrap_or_default() {
            effects.push(Effect::Answer(request, Err(Failure::OutcomeUnknown(failure.to_string()))));
        }
        self.unlock(id, now, effects);
        self.retries.insert((after(now, RETRY_AFTER), id));
    }

    fn finish(
        &mut self,
        id: CommitId,
        outcome: Result<Answer, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let Some(work) = self.drop_job(id, now, effects) else { return };
        match work {
            Work::Ask { request, .. } | Work::Confirm { request, .. } => {
                effects.push(Effect::Answer(request, outcome));
            }
            Work::Open(operation, target) => {
                if let Some(fan) = self.fans.get_mut(&operation) {
                    fan.tried.insert(target.event);
                }
                self.step_done(operation, now, effects);
            }
            Work::Step(operation, ..) | Work::Record(operation) => self.step_done(operation, now, effects),
            Work::Pulse(scope) => {
                // What it wrote has set the next deadline, even where that has passed by now. A pulse that
                // found nothing to do leaves it as the scope says it is; one that was refused tries again.
                if !self.deadline_of.contains_key(&scope) {
                    let due = self.state.scope(&scope).and_then(|held| held.value.next_due());
                    let due = due.map(|due| if due > now { due } else { after(now, RETRY_AFTER) });
                    self.set_deadline(&scope, due);
                }
            }
            Work::Times => {
                let wanting = std::mem::take(&mut self.heard_to_store);
                self.heard_to_store = wanting.into_iter().filter(|scope| self.wants_storing(scope)).collect();
            }
        }
    }

    fn drop_job(&mut self, id: CommitId, now: Timestamp, effects: &mut Vec<Effect>) -> Option<Work> {
        self.unlock(id, now, effects);
        self.jobs.remove(&id).map(|job| job.work)
    }

    /// Gives a job's records back and lets those who wait for them have their turn, in order.
    fn unlock(&mut self, id: CommitId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.txns.clear();
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

    /// Works out what an operation still needs and sets it going.
    fn reconcile(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(held) = self.state.operation(operation).cloned() else {
            return self.settled(operation, effects);
        };
        let fan = self.fans.entry(operation).or_default();
        if fan.pending > 0 {
            // It is looked at again when the last of these is done.
            return;
        }
        let remaining = remaining(&held.value, &self.state, &fan.tried);
        let mut works = Vec::new();
        let by_whom = held.value.cancelled_by.clone().unwrap_or(Actor::Service);
        if remaining.wants_scopes() {
            works.extend(remaining.open.into_iter().map(|target| Work::Open(operation, target)));
            works.extend(
                remaining
                    .cancel
                    .into_iter()
                    .map(|(scope, event)| Work::Step(operation, scope, ScopeCommand::Cancel(event))),
            );
            works.extend(
                remaining
                    .release
                    .into_iter()
                    .map(|scope| Work::Step(operation, scope, ScopeCommand::Release(operation))),
            );
        } else {
            // Every scope is as it should be, so whoever asked can be told before the record says so too.
            let waiting = std::mem::take(&mut fan.waiting);
            effects
                .extend(waiting.into_iter().map(|one| Effect::Answer(one, Ok(Answer::Operation(operation)))));
            if remaining.record.is_some() {
                works.push(Work::Record(operation));
            } else {
                self.fans.remove(&operation);
                return;
            }
        }
        if let Some(fan) = self.fans.get_mut(&operation) {
            fan.pending = works.len();
        }
        for work in works {
            self.spawn(work, by_whom.clone(), now, effects);
        }
    }

    fn step_done(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(fan) = self.fans.get_mut(&operation) else { return };
        fan.pending = fan.pending.saturating_sub(1);
        if fan.pending == 0 {
            self.reconcile(operation, now, effects);
        }
    }

    /// An operation that is closed: nobody need wait for it any more.
    fn settled(&mut self, operation: OperationId, effects: &mut Vec<Effect>) {
        if let Some(fan) = self.fans.remove(&operation) {
            let answer = || Ok(Answer::Operation(operation));
            effects.extend(fan.waiting.into_iter().map(|one| Effect::Answer(one, answer())));
        }
    }

    fn take_over_own(&mut self, txn: &Txn, revision: Revision, effects: &mut Vec<Effect>) {
        if revision <= self.watched || (txn.put.is_empty() && txn.delete.is_empty()) {
            return;
        }
        self.own.insert(revision);
        let puts = txn.put.iter().map(|(key, value)| (key, Some(value)));
        let deletes = txn.delete.iter().map(|key| (key, None));
        let changes: Vec<_> = puts
            .chain(deletes)
            .filter_map(|(key, value)| self.state.install(key, revision, value).ok().flatten())
            .collect();
        self.publish(changes, effects);
    }

    /// Plans those anew whose commit was refused since records were not as they knew them, once they know
    /// better. They wait for the watch and do not take over the record that the conflict found: what is held
    /// is then always all that was committed up to some revision, and our own commits besides. A scope would
    /// otherwise be known before its VMs' records are.
    fn run_who_caught_up(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let behind = std::mem::take(&mut self.behind);
        for (id, expected) in behind {
            match expected.iter().any(|one| self.state.revision_of(&one.key) != one.revision) {
                true => self.run(id, now, effects),
                false => self.behind.push((id, expected)),
            }
        }
    }

    fn take_over_watched(&mut self, batch: Batch, now: Timestamp, effects: &mut Vec<Effect>) {
        self.watched = self.watched.max(batch.revision);
        let mut stirred = BTreeSet::new();
        if !self.own.remove(&batch.revision) {
            let mut published = Vec::new();
            for one in batch.changes.iter() {
                let before = self.state.scope_of_key(&one.key).cloned();
                let change = self.state.install(&one.key, batch.revision, one.value.as_ref());
                note_foreign(change, before, &mut published, &mut stirred);
            }
            self.publish(published, effects);
        }
        self.state.watched(self.watched);
        for operation in stirred {
            self.reconcile(operation, now, effects);
        }
        self.run_who_caught_up(now, effects);
        while let Some(entry) = self.replays.first_entry().filter(|one| one.key().0 <= self.watched) {
            let ((_, id), outcome) = entry.remove_entry();
            self.finish_or_join(id, outcome, now, effects);
        }
    }

    fn publish(&mut self, published: Vec<Published>, effects: &mut Vec<Effect>) {
        for change in &published {
            if let Published::Scope(scope, held) = change {
                let due = held.as_ref().and_then(|held| held.value.next_due());
                self.set_deadline(scope, due);
            }
        }
        if !published.is_empty() {
            effects.push(Effect::Publish(published));
        }
    }

    fn set_deadline(&mut self, scope: &ScopeId, due: Option<Timestamp>) {
        if let Some(at) = self.deadline_of.remove(scope) {
            self.deadlines.remove(&(at, scope.clone()));
        }
        if let Some(at) = due {
            self.deadline_of.insert(scope.clone(), at);
            self.deadlines.insert((at, scope.clone()));
        }
    }

    /// Whether a guest of the scope has asked within a day. The VM that stands in for a fleet is there to be
    /// tried out, so it counts as listening from the start.
    pub fn is_enabled(&self, scope: &ScopeId, now: Timestamp) -> bool {
        let first_run = self.state.scope(scope).is_some_and(|held| held.value.first_run);
        first_run || self.heard.get(scope).is_some_and(|at| now.duration_since(*at) < ENABLED_FOR)
    }

    fn note_heard(&mut self, scope: ScopeId, at: Timestamp) {
        let newest = self.heard.get(&scope).map_or(at, |known| at.max(*known));
        self.heard.insert(scope.clone(), newest);
        if self.wants_storing(&scope) {
            self.heard_to_store.insert(scope);
        }
    }

    /// Whether the stored time of a scope's last request is too old, or there is none.
    fn wants_storing(&self, scope: &ScopeId) -> bool {
        match (self.heard.get(scope), self.state.heard(scope)) {
            (Some(heard), Some(stored)) => heard.duration_since(stored) >= HEARD_STORED_EVERY,
            (Some(_), None) => self.state.scope(scope).is_some(),
            (None, _) => false,
        }
    }

    /// The times that are due to be stored: that we run, and which scopes have been heard of.
    fn plan_times(&self, now: Timestamp) -> Plan {
        let alive = (Key::from(records::ALIVE), records::encode(&LastAt { at: now }));
        let heard = self.heard_to_store.iter().filter_map(|scope| {
            let at = *self.heard.get(scope)?;
            self.state.scope(scope)?;
            Some((records::heard(scope), records::encode(&LastAt { at })))
        });
        let mut txns = Vec::new();
        let mut puts = heard.peekable();
        while puts.peek().is_some() {
            let put = puts.by_ref().take(HEARD_PER_TXN).collect();
            txns.push(Txn { put, ..Txn::default() });
        }
        txns.push(Txn { put: vec![alive], ..Txn::default() });
        Plan::Write { drafted: Drafted { txns, stirred: Vec::new() }, answer: Answer::Done, rest: None }
    }
}

/// Notes a record that no job of this process is known to have written, another node's or one whose commit had
/// an unknown outcome, and the operations that must be looked at because of it, since no job will.
fn note_foreign(
    change: Result<Option<Published>, DecodeError>,
    before: Option<crate::state::Held<notbefore_core::Scope>>,
    published: &mut Vec<Published>,
    stirred: &mut BTreeSet<OperationId>,
) {
    // A record that cannot be read was written by a newer release in the same cluster; what is held stays,
    // and commits that touch it keep conflicting, which is said to whoever asks.
    let Ok(Some(change)) = change else { return };
    match &change {
        Published::Scope(_, held) => {
            let after = held.as_ref().map(|held| &*held.value);
            stirred.extend(before.iter().flat_map(|before| crate::draft::stirred(&before.value, after)));
        }
        Published::Operation(id, Some(_)) => {
            stirred.insert(*id);
        }
        Published::Operation(_, None) | Published::Vm(..) | Published::Claim(..) => {}
    }
    published.push(change);
}

/// Lets the record of a command travel in the transaction that carries out its effect, so that the two are
/// durable together or not at all.
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
        // The steps of a command that takes several transactions are harmless to repeat; its last one
        // carries the record.
        (plan, _) => plan,
    }
}
