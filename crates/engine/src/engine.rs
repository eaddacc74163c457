//! The engine's loop: inputs in, effects out, and jobs that wait for their records, their commit or their time. The
//! crate docs describe the life of a command.
//!
//! This file has inputs, effects, the engine's data and its deadlines. The submodules:
//!
//! - `jobs`: from a request or due work to a commit;
//! - `fan_out`: an operation over all of its scopes;
//! - `hosts`: joint starts;
//! - `apply_commits`: installs and publishes durable commits;
//! - `commands`: runs the exec driver's commands;
//! - `host_commands`: runs those of hosts;
//! - `poll_times`: last polls and the heartbeat;
//! - `clock`: the clock hold;
//! - `deadlines`: one deadline for each scope or operation;
//! - `queries`: dry runs;
//! - `roles`: what starts and ends with the lead in a cluster;
//! - `resync`: replaces the state by a snapshot.

mod apply_commits;
mod clock;
mod commands;
mod deadlines;
mod fan_out;
mod host_commands;
mod hosts;
mod jobs;
mod poll_times;
mod queries;
mod resync;
mod roles;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{Actor, Command as ScopeCommand, EventId, OperationId, ScopeId, Settings, Target, VmId};
use notbefore_store::{Batch, Expect, Key, Outcome, Revision, Txn, Versioned};

use crate::clock_watch::ClockNews;
use crate::cluster::Role;
use crate::draft::SplitAt;
use crate::operations::OpenAttempts;
use crate::records::DecodeError;
use crate::request::{Answer, Command, Failure, FailureCause, Idempotency, Progress, Request};
use crate::state::load::{Loader, prepare};
use crate::state::{OwnRecord, Publication, State};
use commands::RunningCommand;
use deadlines::Deadlines;
use host_commands::HostCommands;
use hosts::HostStarts;
use poll_times::LastPoll;
use roles::InFlight;

pub use commands::{CommandId, CommandTarget, DriverReport, DriverRun, RunTarget};
pub use poll_times::ENABLED_FOR;

/// Interval of the heartbeat; with it the service's own downtime is not counted against guests.
const ALIVE_STORED_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// Back-off of internal work after the store refused it.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// Limit on due scopes per pass. The store starts with them while the next ones are planned, and requests that
/// arrive meanwhile are handled in between.
const DUE_AT_ONCE_MAX: usize = 128;

/// The engine's settings.
#[derive(Clone, Debug, Default)]
pub struct EngineSettings {
    pub domain: Settings,
    pub node: Node,
}

/// The id of this process, new at every start. It owns the commands that it runs, and is part of the keys of records
/// that several processes write concurrently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// A request, as numbered by the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A job: a request or due work, until its commit is durable. It has at most one commit in flight, with the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// An input of the engine.
#[derive(Clone, Debug)]
pub enum Input {
    Request(RequestId, Box<Request>),
    /// The outcome of a commit.
    Committed(JobId, Outcome),
    /// A commit from the store's watch: another node's, or one with an unknown outcome.
    Watched(Batch),
    /// A guest of the scope polled.
    Polled(ScopeId, Timestamp),
    /// The polls of the scope do not count any more: a fault of a test. The next poll enables it.
    PollsForgotten(ScopeId),
    /// Whether the node knows the polls of all nodes, or has waited for them long enough. A node that takes the lead does
    /// not: false comes before its role. Until true comes, no scope counts as not enabled.
    PollsComplete(bool),
    /// A command of the exec driver ended.
    Ran(DriverReport),
    /// Time passed.
    Tick,
    /// The clock jumped, or can be trusted again. It comes before other inputs at the new time.
    Clock(ClockNews),
    /// The node of a cluster has another role. It leads only after the watch has shown the leader's record.
    Role(Role),
    /// A snapshot of all records that the engine holds. It replaces what the watch did not show.
    Resync(Revision, Vec<(Key, Versioned)>),
    /// The service is about to stop: no more polls.
    Closing,
}

/// An output of the engine. The runtime carries effects out in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Commit, and return the outcome.
    Commit(JobId, Txn),
    /// Make these changes visible to readers.
    Publish(Publication),
    /// Run a command of the exec driver, and return its end. The attempt is durable, and is requested only once.
    Run(Box<DriverRun>),
    /// Stop a command that is no longer wanted. Its report is ignored.
    Stop(CommandId),
    Answer(RequestId, Result<Answer, Failure>),
    /// Load a snapshot and return it: the state is wrong, since a record that only the leader writes has changed.
    Resync,
}

/// What a job does.
#[derive(Clone, Debug)]
enum Work {
    Request {
        request: RequestId,
        command: Command,
        /// The progress before the transaction in flight.
        progress: Progress,
        idempotency: Option<Idempotency>,
        if_revision: Option<Revision>,
    },
    /// Confirms that a command that is refused, or changes nothing, did not take effect in an earlier attempt.
    Confirm { request: RequestId, idempotency: Idempotency, otherwise: Result<Answer, Failure> },
    /// A scope has something due, or its commands have ended.
    Pulse(ScopeId),
    /// Open a part of an operation.
    Open(OperationId, Target),
    /// Confirms that a refused part was not opened, ended and forgotten by an earlier process.
    ConfirmUnopened { operation: OperationId, target: Target, refused: Failure },
    /// A step of an operation in a scope.
    Step(OperationId, ScopeId, ScopeCommand),
    /// Update an operation's record.
    Record(OperationId),
    /// Store the heartbeat, without comparing.
    StoreAlive,
    /// Store the last polls of these scopes, without comparing.
    StorePolls(Vec<ScopeId>),
    /// Decide a host operation that may be due.
    DecideHost(OperationId),
    /// The command of an operation's host begins, is due, has ended or has another owner.
    HostCommand(OperationId),
    /// Finds out whether the start of a host operation with an unknown outcome took effect. It keeps the locks of
    /// the operation's scopes, so that nothing starts there before. `revision` is the operation's before the start.
    ConfirmHostStart { operation: OperationId, revision: Revision },
}

impl Work {
    /// The request that waits for the job.
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
            | Work::HostCommand(_)
            | Work::ConfirmHostStart { .. } => None,
        }
    }
}

struct Job {
    work: Work,
    by: Actor,
    from: Option<IpAddr>,
    conflicts: u32,
    /// Planned and not yet durable; the front is in flight, or about to be.
    txns: VecDeque<Txn>,
    in_flight: Option<InFlight>,
    /// Whether an earlier transaction of it is durable, or may be.
    has_written: bool,
    /// Records of the last transaction, as values.
    own_records: Vec<(Key, OwnRecord)>,
    locks: Vec<Key>,
    /// Jobs that were in flight when an approval was first to be refused; it waits for them.
    to_await: Option<Vec<JobId>>,
    answer: Option<Answer>,
    to_reconcile: Vec<OperationId>,
    /// The progress after these transactions, for a command that needs more.
    rest: Option<Progress>,
}

/// An operation that is being reconciled.
#[derive(Default)]
struct FanOut {
    pending: usize,
    tried: OpenAttempts,
    /// Scopes that refused a step; they are retried after a delay.
    refused: HashMap<ScopeId, Failure>,
    waiting: Vec<RequestId>,
}

/// The engine; see the crate docs.
#[derive(Default)]
pub struct Engine {
    settings: EngineSettings,
    state: State,
    jobs: HashMap<JobId, Job>,
    next_job: JobId,
    facts_written: u64,
    locked: HashSet<Key>,
    waiting: HashMap<Key, VecDeque<JobId>>,
    deadlines: Deadlines<ScopeId>,
    /// Internal work that the store refused, and when to retry it.
    retries: BTreeSet<(Timestamp, JobId)>,
    fan_outs: HashMap<OperationId, FanOut>,
    /// Operations with a refused step, and when to retry it.
    stalled: BTreeSet<(Timestamp, OperationId)>,
    /// Jobs with a conflict, and the records that differed.
    conflicted: Vec<(JobId, Vec<Expect>)>,
    /// Answers to repeated requests, kept until the watch has shown the effect of the first one.
    replays: BTreeMap<(Revision, JobId), Result<Answer, Failure>>,
    /// The commands that this process requested and the records still want.
    commands: HashMap<ScopeId, BTreeMap<(EventId, VmId), RunningCommand>>,
    host_commands: HostCommands,
    hosts: HostStarts,
    last_polls: HashMap<ScopeId, LastPoll>,
    /// This node has taken the lead, and guests may have polled other nodes that have not told it yet.
    waits_for_polls: bool,
    polls_to_store: BTreeSet<ScopeId>,
    /// Number of transactions in flight that store poll times.
    poll_writes_in_flight: usize,
    /// When to store the first polls of scopes.
    store_polls_at: Option<Timestamp>,
    store_alive_at: Timestamp,
    /// The total jump since the hold began.
    clock_jumped_by: SignedDuration,
    /// Own commits that are already installed, until the watch has shown or skipped them.
    own_revisions: BTreeSet<Revision>,
    watched: Revision,
    role: Role,
    /// The format level at which this process writes; none for that of the release.
    level: Option<u32>,
    /// The owner of commands that this process starts.
    runner: Node,
    /// Jobs that wait until the role allows writes.
    held: VecDeque<JobId>,
    /// When jobs that wait for the watch fail.
    waits: BTreeSet<(Timestamp, JobId)>,
    /// The last installed snapshot.
    synced_to: Revision,
    /// A snapshot was requested and has not arrived.
    resync_requested: bool,
    unexplained_conflicts: u64,
    repaired_records: u64,
    /// Records that cannot be read, and why; at most [`UNREADABLE_MAX`](apply_commits::UNREADABLE_MAX).
    unreadable: BTreeMap<Key, String>,
    split_own_work_at: SplitAt,
}

impl Engine {
    /// An engine over the store's records at `revision`. The effects publish them and continue interrupted work.
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

    /// Like [`Self::new`], over a state that already has all records: a caller with a million of them need not hold
    /// them all at once.
    pub fn from_state(
        settings: EngineSettings,
        state: State,
        revision: Revision,
        now: Timestamp,
    ) -> (Self, Vec<Effect>) {
        let (mut engine, mut effects) = Self::follower(settings, state, revision);
        engine.role = Role::Alone;
        engine.store_alive_at = now;
        engine.load_last_polls(now);
        engine.check_clock_at_start(now);
        engine.begin_work(now, &mut effects);
        (engine, effects)
    }

    /// A node of a cluster, over the records at `revision`. It follows until [`Input::Role`] makes it the leader.
    pub fn follower(settings: EngineSettings, state: State, revision: Revision) -> (Self, Vec<Effect>) {
        let runner = settings.node.clone();
        let role = Role::Follow;
        let engine = Self { settings, state, watched: revision, role, runner, ..Self::default() };
        let effects = vec![Effect::Publish(engine.state.full_publication())];
        (engine, effects)
    }

    /// Splits the transactions of timers and operations at this many operations, not only at the store's limit, so that
    /// the simulator can interrupt them anywhere. The removals of a request go with the change itself: after a crash
    /// nothing repeats the rest of it.
    pub fn split_own_work_at(&mut self, operations: usize) {
        self.split_own_work_at = SplitAt(operations);
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// When the next [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        if !self.role.leads() {
            return None;
        }
        let deadline = self.deadlines.next();
        let retry = self.retries.first().map(|(at, _)| *at);
        let stalled = self.stalled.first().map(|(at, _)| *at);
        let (host, host_command) = (self.hosts.next_due(), self.host_commands.next_due());
        let heard = self.store_polls_at;
        let wait = self.waits.first().map(|(at, _)| *at);
        let all = [deadline, retry, stalled, host, host_command, heard, wait, Some(self.store_alive_at)];
        all.into_iter().flatten().min()
    }

    /// Whether all requests are answered and no job is left.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Handles one input and due work, and returns the effects.
    pub fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.handle_all([input], now)
    }

    /// Handles several inputs of the same time, one after the other. Due work is started once, after the last one, so a
    /// large pass starts no more of it than a small one.
    pub fn handle_all(&mut self, inputs: impl IntoIterator<Item = Input>, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for input in inputs {
            self.handle_one(input, now, &mut effects);
        }
        if self.role.leads() {
            self.decide_hosts(now, &mut effects);
            self.run_due(now, &mut effects);
            // Due work may have shown that a host operation need not be decided.
            self.decide_hosts(now, &mut effects);
        }
        effects
    }

    fn handle_one(&mut self, input: Input, now: Timestamp, effects: &mut Vec<Effect>) {
        match input {
            Input::Request(request, _) if !self.role.leads() => {
                let failure = Failure::Unavailable(FailureCause::NotLeader);
                effects.push(Effect::Answer(request, Err(failure)));
            }
            Input::Request(request, asked) => {
                let Request { by, from, idempotency, if_revision, command } = *asked;
                let progress = Progress::default();
                let work = Work::Request { request, command, progress, idempotency, if_revision };
                self.spawn_from(work, by, from, now, effects);
            }
            Input::Committed(id, outcome) => self.on_committed(id, outcome, now, effects),
            Input::Watched(batch) => self.apply_watched(batch, now, effects),
            Input::Polled(scope, at) => self.record_poll(scope, at, now),
            Input::PollsForgotten(scope) => _ = self.last_polls.remove(&scope),
            Input::PollsComplete(is_complete) => self.waits_for_polls = !is_complete,
            Input::Ran(report) => self.on_command_ended(report, now, effects),
            Input::Tick => {}
            Input::Clock(ClockNews::Jumped(by)) => {
                self.hold_clock(by);
                self.renew_all_deadlines(now);
            }
            Input::Clock(ClockNews::Settled) => self.trust_clock(now),
            Input::Role(role) => self.set_role(role, now, effects),
            Input::Resync(revision, records) => self.apply_snapshot(revision, records, now, effects),
            Input::Closing => self.store_polls(now, effects),
        }
    }

    fn run_due(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.end_waits(now, effects);
        while let Some((at, id)) = self.retries.first().copied().filter(|(at, _)| *at <= now) {
            self.retries.remove(&(at, id));
            self.run(id, now, effects);
        }
        // Retry times further ahead were set by a wrong clock.
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
        self.run_due_host_commands(now, effects);
        for _ in 0..DUE_AT_ONCE_MAX {
            let Some(scope) = self.deadlines.pop_due(now) else { break };
            self.spawn(Work::Pulse(scope), Actor::Timer, now, effects);
        }
        if self.store_alive_at <= now || self.store_alive_at > after(now, ALIVE_STORED_EVERY) {
            self.store_alive_at = after(now, ALIVE_STORED_EVERY);
            // Removed scopes are forgotten after a while. Existing ones are kept, however old: the clock may be wrong
            // for a moment.
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

    /// Computes when the next automatic change of a scope is due.
    fn renew_deadline(&mut self, scope: &ScopeId, now: Timestamp) {
        let due = self.state.scope(scope).and_then(|held| self.state.due_in(scope, held, now));
        self.deadlines.set(scope, due);
        self.retry_commands(scope, now);
    }
}
