//! The loop: inputs in, effects out, and in between jobs that wait for their records, their commit or their
//! time. See the crate's page for the life of a command.
//!
//! Here is what goes in and comes out, what the engine holds, and what is due when. `jobs` brings what is asked
//! for to a commit, `fan_out` an operation to all of its scopes, `hosts` starts a host's events together, `apply_commits` takes
//! over what is durable, `commands` sees to it that the exec driver's commands run, `poll_times` remembers who was
//! heard of, `clock` does not trust a clock that has jumped, and `queries` answers what would come of something.

mod apply_commits;
mod clock;
mod commands;
mod fan_out;
mod hosts;
mod jobs;
mod poll_times;
mod queries;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{
    Actor, Command as ScopeCommand, EventId, OperationId, Scope, ScopeId, Settings, Target, VmId,
};
use notbefore_store::{Batch, Expect, Key, Outcome, Revision, Txn, Versioned};

use crate::clock_watch::ClockNews;
use crate::operations::OpenAttempts;
use crate::records::DecodeError;
use crate::request::{Answer, Command, Failure, Idempotency, Progress, Request};
use crate::state::load::{Loader, prepare};
use crate::state::{OwnRecord, Publication, Revisioned, State};
use commands::RunningCommand;
use hosts::HostStarts;
use poll_times::LastPoll;

pub use commands::{CommandId, DriverReport, DriverRun};
pub use poll_times::ENABLED_FOR;

/// How often the service stores that it runs, so that a guest is not blamed for our own downtime.
const ALIVE_STORED_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// How long work of our own waits after the store would not take it.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// How many scopes that are due are seen to in one go, after one input or many. The store begins with them while the next ones are worked
/// out, and whoever asks for something meanwhile is heard in between.
const DUE_AT_ONCE_MAX: usize = 128;

/// What the engine goes by besides the domain's own settings.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The domain's settings.
    pub domain: Settings,
    /// This process.
    pub node: Node,
}

/// A name for this process, different at every start: commands that it runs are its own, and records that several
/// processes write side by side have it in their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node(Arc<str>);

impl From<&str> for Node {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl std::ops::Deref for Node {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A request, as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A job: something that was asked for or is due, on its way to a durable commit. It has one commit under way at a time,
/// which goes by the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// What comes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody asks for something.
    Request(RequestId, Box<Request>),
    /// What became of a commit.
    Committed(JobId, Outcome),
    /// A commit, as the store's watch shows it: another node's, or one whose outcome was unknown.
    Watched(Batch),
    /// A guest of the scope has asked for its document.
    Polled(ScopeId, Timestamp),
    /// A command of the exec driver has ended.
    Ran(DriverReport),
    /// Time has passed.
    Tick,
    /// The clock has jumped, or may be trusted again. It comes ahead of what was to be done at the new time.
    Clock(ClockNews),
    /// The service is about to stop: no guest asks any more.
    Closing,
}

/// What must be done, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Commit this, and come back with the outcome.
    Commit(JobId, Txn),
    /// Let readers see these changes.
    Publish(Publication),
    /// Run a command of the exec driver, and come back with how it ended. That it runs is durable by now; the
    /// same one is never asked for twice.
    Run(Box<DriverRun>),
    /// End a command that was asked for: what it does is no longer wanted. Nobody waits for its report.
    Stop(CommandId),
    /// Answer a request.
    Answer(RequestId, Result<Answer, Failure>),
}

/// What a job is about.
#[derive(Clone, Debug)]
enum Work {
    /// Somebody's request.
    Request {
        request: RequestId,
        command: Command,
        /// What transactions before the one under way have done of it.
        progress: Progress,
        idempotency: Option<Idempotency>,
        if_revision: Option<Revision>,
    },
    /// Confirms that a command that is refused, or changes nothing, has not taken effect at an earlier try.
    Confirm { request: RequestId, idempotency: Idempotency, otherwise: Result<Answer, Failure> },
    /// A scope has something due, or commands of it have ended.
    Pulse(ScopeId),
    /// An operation's part is to be opened.
    Open(OperationId, Target),
    /// Confirms that a part that was refused has not been opened, and ended and forgotten, by an earlier
    /// process.
    ConfirmUnopened { operation: OperationId, target: Target, refused: Failure },
    /// An operation wants something of a scope.
    Step(OperationId, ScopeId, ScopeCommand),
    /// An operation's record is to be brought up to date.
    Record(OperationId),
    /// That the service runs is to be stored; it needs no comparing.
    StoreAlive,
    /// When guests of these scopes last asked is to be stored; it needs no comparing.
    StorePolls(Vec<ScopeId>),
    /// A host operation that may be due is to be decided.
    DecideHost(OperationId),
    /// Finds out whether the start of a host operation took effect whose outcome was unknown. It keeps the
    /// locks of the operation's scopes: nothing may start there before that is known. `revision` is the
    /// operation's before the start.
    ConfirmHostStart { operation: OperationId, revision: Revision },
}

impl Work {
    /// The request that waits for it, if one does.
    fn request(&self) -> Option<RequestId> {
        match self {
            Work::Request { request, .. } | Work::Confirm { request, .. } => Some(*request),
            Work::Pulse(_)
            | Work::Open(..)
            | Work::ConfirmUnopened { .. }
            | Work::Step(..)
            | Work::Record(_)
            | Work::StoreAlive
            | Work::StorePolls(_)
            | Work::DecideHost(_)
            | Work::ConfirmHostStart { .. } => None,
        }
    }
}

struct Job {
    work: Work,
    by: Actor,
    from: Option<IpAddr>,
    conflicts: u32,
    /// What is planned and not yet durable; the front is under way.
    txns: VecDeque<Txn>,
    /// Records of the last of them, as values.
    own_records: Vec<(Key, OwnRecord)>,
    locks: Vec<Key>,
    answer: Option<Answer>,
    to_reconcile: Vec<OperationId>,
    /// How far a command will have come that takes further transactions.
    rest: Option<Progress>,
}

/// An operation that is being reconciled.
#[derive(Default)]
struct FanOut {
    pending: usize,
    tried: OpenAttempts,
    /// Scopes that have refused a step; they are asked again after a while, not at once.
    refused: HashMap<ScopeId, Failure>,
    waiting: Vec<RequestId>,
}

/// The engine; see the crate's page.
pub struct Engine {
    settings: EngineSettings,
    state: State,
    jobs: HashMap<JobId, Job>,
    next_job: JobId,
    facts_written: u64,
    locked: HashSet<Key>,
    waiting: HashMap<Key, VecDeque<JobId>>,
    deadlines: BTreeSet<(Timestamp, ScopeId)>,
    deadline_of: HashMap<ScopeId, Timestamp>,
    /// Work of our own that the store would not take, and when to try it again.
    retries: BTreeSet<(Timestamp, JobId)>,
    fan_outs: HashMap<OperationId, FanOut>,
    /// Operations of which a scope has refused a step, and when it is asked again.
    stalled: BTreeSet<(Timestamp, OperationId)>,
    /// Jobs that met a conflict, and the records that were not as they expected.
    conflicted: Vec<(JobId, Vec<Expect>)>,
    /// Answers to those who asked twice, kept until the watch has shown what the first time did.
    replays: BTreeMap<(Revision, JobId), Result<Answer, Failure>>,
    /// The commands that this process has asked for and the records still want.
    commands: HashMap<ScopeId, BTreeMap<(EventId, VmId), RunningCommand>>,
    hosts: HostStarts,
    last_polls: HashMap<ScopeId, LastPoll>,
    polls_to_store: BTreeSet<ScopeId>,
    /// How many transactions that store such times are under way.
    poll_writes_in_flight: usize,
    /// When scopes that were heard of for the first time are stored, if there are any.
    store_polls_at: Option<Timestamp>,
    store_alive_at: Timestamp,
    /// By how much the clock has jumped since the hold began.
    clock_jumped_by: SignedDuration,
    /// Revisions taken over when they were committed, which the watch has yet to show once more or to pass over.
    own_revisions: BTreeSet<Revision>,
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
        let mut loader = Loader::default();
        for (key, record) in records {
            loader.take(prepare(key, record)?)?;
        }
        Ok(Self::from_state(settings, loader.finish(), revision, now))
    }

    /// The same, over a state that has taken in all records already: whoever has a million of them need not hold
    /// them all at once.
    pub fn from_state(
        settings: EngineSettings,
        state: State,
        revision: Revision,
        now: Timestamp,
    ) -> (Self, Vec<Effect>) {
        let mut engine = Self {
            settings,
            state,
            jobs: HashMap::new(),
            next_job: JobId(0),
            facts_written: 0,
            locked: HashSet::new(),
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            deadline_of: HashMap::new(),
            retries: BTreeSet::new(),
            fan_outs: HashMap::new(),
            stalled: BTreeSet::new(),
            conflicted: Vec::new(),
            replays: BTreeMap::new(),
            commands: HashMap::new(),
            hosts: HostStarts::default(),
            last_polls: HashMap::new(),
            polls_to_store: BTreeSet::new(),
            poll_writes_in_flight: 0,
            store_polls_at: None,
            store_alive_at: now,
            clock_jumped_by: SignedDuration::ZERO,
            own_revisions: BTreeSet::new(),
            watched: revision,
        };
        let down = engine.state.alive().map(|alive| now.duration_since(alive).max(SignedDuration::ZERO));
        for (scope, at) in engine.state.all_last_polled() {
            let at = at.checked_add(down.unwrap_or_default()).unwrap_or(at);
            engine.last_polls.insert(scope.clone(), LastPoll { at, was_stored: true });
        }
        engine.check_clock_at_start(now);
        let due = |(id, held): (&ScopeId, &Revisioned<Scope>)| {
            Some((id.clone(), engine.state.due_in(id, held, now)?))
        };
        let dues: Vec<_> = engine.state.scopes().filter_map(due).collect();
        for (scope, due) in dues {
            engine.set_deadline(&scope, Some(due));
        }
        let mut effects = vec![Effect::Publish(engine.state.full_publication())];
        let mut unfinished: Vec<_> = engine.state.operations().map(|(id, _)| *id).collect();
        // In an order that does not depend on the process, so that a history can be played again.
        unfinished.sort();
        for operation in unfinished {
            engine.reconcile(operation, now, &mut effects);
        }
        engine.adopt_commands(now, &mut effects);
        engine.recheck_all_hosts();
        engine.decide_hosts(now, &mut effects);
        (engine, effects)
    }

    /// The records as they are.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// When [`Input::Tick`] is wanted next.
    pub fn next_due(&self) -> Option<Timestamp> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let retry = self.retries.first().map(|(at, _)| *at);
        let stalled = self.stalled.first().map(|(at, _)| *at);
        let host = self.hosts.next_due();
        let heard = self.store_polls_at;
        [deadline, retry, stalled, host, heard, Some(self.store_alive_at)].into_iter().flatten().min()
    }

    /// Whether everything asked for has been answered and everything due has been done.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes one input, does what is due, and says what must be done.
    pub fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.handle_all([input], now)
    }

    /// Takes inputs that have come by the same time, one after the other. What is due is done once, after the last:
    /// however many they are, no more begins at once than after one.
    pub fn handle_all(&mut self, inputs: impl IntoIterator<Item = Input>, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for input in inputs {
            self.handle_one(input, now, &mut effects);
        }
        self.decide_hosts(now, &mut effects);
        self.run_due(now, &mut effects);
        // What was due may have shown that a host operation need not be decided after all.
        self.decide_hosts(now, &mut effects);
        effects
    }

    fn handle_one(&mut self, input: Input, now: Timestamp, effects: &mut Vec<Effect>) {
        match input {
            Input::Request(request, asked) => {
                let Request { by, from, idempotency, if_revision, command } = *asked;
                let progress = Progress::default();
                let work = Work::Request { request, command, progress, idempotency, if_revision };
                self.spawn_from(work, by, from, now, effects);
            }
            Input::Committed(id, outcome) => self.on_committed(id, outcome, now, effects),
            Input::Watched(batch) => self.apply_watched(batch, now, effects),
            Input::Polled(scope, at) => self.record_poll(scope, at, now),
            Input::Ran(report) => self.on_command_ended(report, now, effects),
            Input::Tick => {}
            Input::Clock(ClockNews::Jumped(by)) => {
                self.hold_clock(by);
                self.renew_all_deadlines(now);
            }
            Input::Clock(ClockNews::Settled) => self.trust_clock(now),
            Input::Closing => self.store_polls(now, effects),
        }
    }

    fn run_due(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
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
        let due = |(at, _): &(Timestamp, OperationId)| *at <= now || *at > furthest;
        let stalled: Vec<_> = self.stalled.iter().copied().filter(due).collect();
        for (at, operation) in stalled {
            self.stalled.remove(&(at, operation));
            if let Some(fan) = self.fan_outs.get_mut(&operation) {
                fan.refused.clear();
            }
            self.reconcile(operation, now, effects);
        }
        for _ in 0..DUE_AT_ONCE_MAX {
            let Some((_, scope)) = self.deadlines.first().filter(|(at, _)| *at <= now).cloned() else {
                break;
            };
            self.set_deadline(&scope, None);
            self.spawn(Work::Pulse(scope), Actor::Timer, now, effects);
        }
        if self.store_alive_at <= now || self.store_alive_at > after(now, ALIVE_STORED_EVERY) {
            self.store_alive_at = after(now, ALIVE_STORED_EVERY);
            // Scopes that are gone are forgotten in time. Those that are there are not, however long ago it was: it
            // may be the clock that was wrong for a moment.
            let state = &self.state;
            let long = ENABLED_FOR * 2;
            self.last_polls
                .retain(|scope, heard| state.scope(scope).is_some() || now.duration_since(heard.at) < long);
            self.store_polls(now, effects);
            if !self.is_clock_held() {
                self.spawn(Work::StoreAlive, Actor::Service, now, effects);
            }
        }
        if self.store_polls_at.is_some_and(|at| at <= now || at > furthest) {
            self.store_polls(now, effects);
        }
    }

    /// Works out when something is due in a scope by itself.
    fn renew_deadline(&mut self, scope: &ScopeId, now: Timestamp) {
        let due = self.state.scope(scope).and_then(|held| self.state.due_in(scope, held, now));
        self.set_deadline(scope, due);
        self.retry_commands(scope, now);
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
}
