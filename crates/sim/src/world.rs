//! The simulated world: the production engine over a simulated store, with virtual time and fault injection.
//!
//! A world has one node, or several with a shared store; [`crate::cluster`] has what concerns several. The steps of a
//! history act on the current node.
//!
//! The world replaces the runtime and the store. Commits stay in flight until the history decides their outcome.
//! Outcomes come late, in any order, as conflicts, refusals or unknown. The watch lags. The process crashes with
//! commits in flight and restarts from the store. Every commit, publication and answer is checked at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{
    Actor, Ending, EventId, ExecSettings, HostRan, Operation, OperationId, Ran, Scope, ScopeId, Settings,
    StartReason, WhenNotEnabled,
};
use notbefore_engine::cluster::{fence_of, is_leader_key};
use notbefore_engine::records::{self, LastAt, prefix};
use notbefore_engine::{
    ClockNews, ClockReading, ClockWatch, CommandId, CommandTarget, DriverReport, Effect, Engine,
    EngineSettings, Failure, Idempotency, Input, JobId, Request, RequestId,
};
use notbefore_store::{Key, Outcome, Refusal, Revision, Txn};

use crate::cluster::{ClusterFaults, Member, SimCluster};
use crate::conformance::{self, Flight, SentAhead, SentRequest, Violation};
use crate::counts::counts;
use crate::history::{CommandEnd, History, ReportedOutcome, RequestKind, Setup, Step};
use crate::host_command;
use crate::hosts;
use crate::invariants::{self, Check};
use crate::ledger::Ledger;
use crate::model::{self, At, Codes};
use crate::predict;
use crate::requests::{self, DryRun, IdSource, Naming, RequestOrDryRun};
use crate::rules;
use crate::store::SimStore;
use crate::view::{Reads, Record, View};

/// The start time: not a whole second, so that rounding shows.
const BEGIN: i64 = 1_767_225_600_250;

counts! {
    /// Statistics, to verify that histories are eventful.
    pub struct Stats {
        pub commits: u64,
        pub events: u64,
        pub granted: u64,
        pub refused: u64,
        pub faults: u64,
        pub commands: u64,
        /// Commands for hosts among them.
        pub host_commands: u64,
        /// Host operations that started.
        pub host_starts: u64,
        /// Times at which a host operation was due and blocked.
        pub host_waits: u64,
        /// Detected clock jumps.
        pub clock_jumps: u64,
        /// Times at which something was due by an untrusted clock.
        pub clock_holds: u64,
        /// Times at which a node took the lead from another node or process.
        pub take_overs: u64,
        /// Transactions that reached the store after their outcome was reported as unknown.
        pub late_landings: u64,
        /// Of these, the ones that the store wrote.
        pub landed_late: u64,
        /// Snapshots that replaced a watch.
        pub resyncs: u64,
        /// Unknown outcomes that a rewrite of the leader's record decided.
        pub rewrites: u64,
        /// Requests to nodes that did not lead.
        pub forwarded: u64,
        /// Of these, the ones that were answered well.
        pub granted_by_followers: u64,
        /// Of these, the ones whose outcome the client did not learn.
        pub unknown_by_followers: u64,
        /// Digests of polls that followers sent.
        pub digests: u64,
        /// Times at which two commands ran for one event and VM.
        pub second_commands: u64,
        /// Commits in which a job wrote a part of its change ahead of the rest.
        pub sent_ahead: u64,
        /// Faults of a cluster, by kind.
        pub cluster_faults: ClusterFaults,
    }
}

/// The knowledge when a commit was sent: due and unblocked host operations, and predicted writes of requests.
type Known = (Rc<Vec<(OperationId, StartReason)>>, BTreeMap<u64, predict::Writes>);

/// A code among the refusals for a request with nothing to do.
pub(crate) const NOTHING_TO_DO: &str = "nothing to do";

pub struct World {
    pub(crate) setup: Setup,
    pub(crate) store: SimStore,
    pub(crate) view: View,
    pub(crate) ledger: Ledger,
    /// The current node.
    pub(crate) node: Box<SimNode>,
    /// Several nodes; none if there is one.
    pub(crate) cluster: Option<SimCluster>,
    keyed: Vec<Rc<SentRequest>>,
    requests: u64,
    fresh: IdSource,
    pub(crate) faults: u32,
    pub(crate) stats: Stats,
}

/// One process: its engine, its clocks, and what is between it and the store.
pub(crate) struct SimNode {
    pub(crate) engine: Engine,
    /// The wall clock.
    pub(crate) now: Timestamp,
    pub(crate) flights: Vec<Flight>,
    pub(crate) open: BTreeMap<u64, Rc<SentRequest>>,
    pub(crate) predicted: BTreeMap<u64, Codes>,
    /// The knowledge when commits that only compare were sent.
    comparing: BTreeMap<JobId, Known>,
    /// What jobs have sent ahead.
    ahead: BTreeMap<JobId, SentAhead>,
    /// The running commands, children of this process.
    pub(crate) running: BTreeSet<CommandId>,
    /// All commands that this process has spawned.
    spawned_here: BTreeSet<CommandId>,
    /// All reports of them that it received.
    pub(crate) reports: Rc<Vec<Ran>>,
    /// The same of commands for hosts.
    pub(crate) host_reports: Rc<Vec<(OperationId, HostRan)>>,
    /// The last poll of each scope, and whether the process read it from the store.
    pub(crate) last_polls: BTreeMap<ScopeId, (Timestamp, bool)>,
    /// The boot-time clock, which cannot be set.
    pub(crate) since_boot: Duration,
    watch: ClockWatch,
    /// The wall clock's total jump since it was last trusted.
    jumped_by: SignedDuration,
    /// The committed events from before the jump.
    before_jump: Rc<BTreeSet<EventId>>,
    /// Position in the store's log.
    pub(crate) watched: usize,
    starts: u32,
    /// As a new leader, whether polls of other nodes may be unknown.
    pub(crate) waits_for_polls: bool,
    /// The newest revision that the engine has been told.
    pub(crate) known: Revision,
    /// Published versions: the index of each record's version.
    pub(crate) shown: HashMap<Key, usize>,
    /// As a node of a cluster.
    pub(crate) member: Option<Member>,
}

impl SimNode {
    pub(crate) fn new(engine: Engine, reading: ClockReading, starts: u32) -> Self {
        Self {
            engine,
            now: reading.wall,
            flights: Vec::new(),
            open: BTreeMap::new(),
            predicted: BTreeMap::new(),
            comparing: BTreeMap::new(),
            ahead: BTreeMap::new(),
            running: BTreeSet::new(),
            spawned_here: BTreeSet::new(),
            reports: Rc::default(),
            host_reports: Rc::default(),
            last_polls: BTreeMap::new(),
            since_boot: reading.since_boot,
            watch: ClockWatch::new(reading),
            jumped_by: SignedDuration::ZERO,
            before_jump: Rc::default(),
            watched: 0,
            starts,
            waits_for_polls: false,
            known: Revision(0),
            shown: HashMap::new(),
            member: None,
        }
    }

    pub(crate) fn reading(&self) -> ClockReading {
        ClockReading { wall: self.now, since_boot: self.since_boot }
    }
}

pub(crate) fn domain(setup: &Setup) -> Settings {
    Settings {
        notice_scale: f64::from(setup.scale_permille) / 1_000.0,
        simulated_duration: Duration::from_secs(60),
        ignores_announced_duration: false,
        user_operations_max: setup.user_operations_max,
        stored_user_operations_max: Settings::default().stored_user_operations_max,
        when_not_enabled: match setup.run_at_once {
            true => WhenNotEnabled::RunAtOnce,
            false => WhenNotEnabled::GiveNotice,
        },
        driver: setup.driver(),
        exec: ExecSettings {
            attempts_max: setup.attempts,
            has_host_command: setup.exec_host,
            ..ExecSettings::default()
        },
    }
}

pub(crate) fn broken(words: &'static str, detail: impl Into<String>) -> Violation {
    Violation { number: None, words, detail: detail.into() }
}

/// Plays a history to its end and lets everything settle.
pub fn play(history: &History) -> Result<Stats, Violation> {
    let mut world = World::new(history.setup.clone())?;
    for step in &history.steps {
        world.step(step)?;
    }
    world.drain()?;
    world.run_to_end()?;
    Ok(world.stats)
}

impl World {
    /// An empty world.
    pub fn new(setup: Setup) -> Result<Self, Violation> {
        let now = Timestamp::from_millisecond(BEGIN).unwrap_or(Timestamp::UNIX_EPOCH);
        let store = SimStore::default();
        let (engine, _) = start(&setup, &store, 0, now)?;
        let mut world = Self {
            setup,
            store,
            view: View::default(),
            ledger: Ledger::default(),
            node: Box::new(SimNode::new(engine, ClockReading { wall: now, since_boot: Duration::ZERO }, 0)),
            cluster: None,
            keyed: Vec::new(),
            requests: 0,
            fresh: IdSource::default(),
            faults: 0,
            stats: Stats::default(),
        };
        if world.setup.nodes > 1 {
            world.start_cluster(now)?;
        }
        Ok(world)
    }

    pub fn step(&mut self, step: &Step) -> Check {
        if self.cluster.is_some() {
            return self.cluster_step(step);
        }
        self.node_step(step)
    }

    /// A step of the current node.
    pub(crate) fn node_step(&mut self, step: &Step) -> Check {
        match step {
            Step::Setup(_) => Ok(()),
            Step::Request { what: RequestKind::FirstRun, .. } => {
                // The service creates it before it accepts requests, so nothing else is in flight.
                self.settle()?;
                self.send_request(&RequestKind::FirstRun, false, None)?;
                self.settle()
            }
            Step::Request { what, key, revision, at: _ } => self.send_request(what, *key, *revision),
            Step::Retry { which, other, at: _ } => self.retry(*which, *other),
            Step::Polled { scope, at: _ } => {
                let id = requests::path(*scope).id();
                if Reads::scope(self.node.engine.state(), &id).is_none() {
                    return Ok(());
                }
                self.polled_here(&id);
                self.polled(id, self.node.now)
            }
            Step::Advance { ms } => self.advance(SignedDuration::from_millis(*ms)),
            Step::SetClock { ms } => {
                self.node.now = rules::plus(self.node.now, SignedDuration::from_millis(*ms));
                self.feed(Input::Tick)
            }
            Step::ToDue { plus_ms } => {
                let due = self.next_due();
                let to = rules::plus(due.unwrap_or(self.node.now), SignedDuration::from_millis(*plus_ms));
                self.wait_until(to)
            }
            Step::Apply { which } => match usize::from(*which).checked_rem(self.node.flights.len()) {
                Some(index) => self.apply(index),
                None => Ok(()),
            },
            Step::Deliver { which, how } => match usize::from(*which).checked_rem(self.node.flights.len()) {
                Some(index) => self.deliver(index, *how),
                None => Ok(()),
            },
            Step::Watch { count } => (0..*count).try_for_each(|_| self.watch_one()),
            Step::Foreign { which } => self.rewrite_by_other_node(*which),
            Step::Ran { which, how } => match usize::from(*which).checked_rem(self.node.running.len()) {
                Some(nth) => self.ran(self.node.running.iter().nth(nth).copied(), *how),
                None => Ok(()),
            },
            Step::Late { which, how } => match usize::from(*which).checked_rem(self.ledger.spawned.len()) {
                Some(nth) => self.ran(self.ledger.spawned.iter().nth(nth).copied(), *how),
                None => Ok(()),
            },
            Step::Crash { lands, down_ms } => self.crash(*lands, *down_ms),
            Step::Settle => self.settle(),
            Step::Drain => self.drain(),
            // Faults of a cluster; there is only one node.
            Step::Node { .. }
            | Step::Cut
            | Step::Pause
            | Step::Stall
            | Step::WatchBack { .. }
            | Step::DropDeletes { .. }
            | Step::Compact
            | Step::StaleReads { .. }
            | Step::LoadTime { .. }
            | Step::LoseAnswers { .. }
            | Step::LoseMessages { .. }
            | Step::DelayMessages { .. }
            | Step::DoubleMessages { .. }
            | Step::LateLanding { .. }
            | Step::Lag { .. }
            | Step::Offset { .. }
            | Step::Drift { .. }
            | Step::HandOver
            | Step::Heal => Ok(()),
        }
    }

    /// The current node learns of a poll.
    pub(crate) fn polled(&mut self, scope: ScopeId, at: Timestamp) -> Check {
        let last = self.node.last_polls.entry(scope.clone()).or_insert((at, false));
        if at >= last.0 {
            *last = (at, false);
        }
        self.feed(Input::Polled(scope, at))
    }

    fn send_request(&mut self, what: &RequestKind, key: bool, revision: Option<bool>) -> Check {
        let naming =
            Naming { view: &self.view, ledger: &self.ledger, now: self.node.now, setup: &self.setup };
        let (by, request) = naming.request(what, &mut self.fresh);
        // A guest's approval has neither key nor revision.
        let guests = matches!(what, RequestKind::GuestApprove { .. });
        let idempotency = (key && !guests).then(|| Idempotency {
            principal: "operator".to_owned(),
            key: format!("k{}", self.requests),
            hash: "one".to_owned(),
        });
        let if_revision = revision.filter(|_| !guests).map(|right| {
            let newest = self.view.scopes.values().map(|(revision, _)| *revision).max();
            match right {
                // The caller expects that it does not exist.
                true => newest.unwrap_or(Revision(0)),
                false => Revision(1),
            }
        });
        match request {
            RequestOrDryRun::Change(command) => {
                self.request(Request { by, from: None, idempotency, if_revision, command })
            }
            RequestOrDryRun::DryRun(dry_run) => self.dry_run(&by, &dry_run, if_revision),
        }
    }

    /// Runs a dry run and compares it with the model at once.
    fn dry_run(&mut self, by: &Actor, dry_run: &DryRun, if_revision: Option<Revision>) -> Check {
        self.feed(Input::Tick)?;
        let found = match dry_run {
            DryRun::Preview(new) => self.node.engine.preview(by, new, self.node.now).map(drop),
            DryRun::ScopePlan(change) => {
                self.node.engine.plan_scope(by, change, if_revision, self.node.now).map(drop)
            }
        };
        let predicted = predict::dry_run(self.node.engine.state(), by, dry_run, if_revision, &self.at());
        let fits = match (&found, &predicted) {
            (Ok(()), Ok(())) => true,
            (Err(Failure::Refused(refusal)), Err(codes)) => codes.contains(refusal.code()),
            (_, _) => false,
        };
        match fits {
            true => Ok(()),
            false => {
                let detail = format!("{dry_run:?} at {}: {found:?}, predicted {predicted:?}", self.node.now);
                Err(broken("a dry run has the result that the model predicts", detail))
            }
        }
    }

    fn retry(&mut self, which: u8, other: bool) -> Check {
        // The newest first: a client repeats its latest request.
        let Some(index) = usize::from(which).checked_rem(self.keyed.len()) else { return Ok(()) };
        let mut request = self.keyed[self.keyed.len() - 1 - index].request.clone();
        request.command = requests::again(&request.command, &mut self.fresh);
        if let (true, Some(idempotency)) = (other, &mut request.idempotency) {
            idempotency.hash = "other".to_owned();
        }
        self.request(request)
    }

    pub(crate) fn request(&mut self, request: Request) -> Check {
        let id = self.next_request_id();
        let is_quiet = self.all_flights().next().is_none();
        let has_key = request.idempotency.is_some();
        let sent = Rc::new(SentRequest { id, request, faults: self.faults, is_quiet });
        if has_key {
            self.keyed.push(Rc::clone(&sent));
        }
        match self.forward(&sent)? {
            true => Ok(()),
            false => self.execute(sent),
        }
    }

    pub(crate) fn next_request_id(&mut self) -> u64 {
        let id = self.requests;
        self.requests += 1;
        id
    }

    /// Gives the current node's engine a request.
    pub(crate) fn execute(&mut self, sent: Rc<SentRequest>) -> Check {
        let (id, request) = (RequestId(sent.id), Box::new(sent.request.clone()));
        self.node.open.insert(sent.id, sent);
        self.feed(Input::Request(id, request))
    }

    /// A command ends, or a report says so.
    pub(crate) fn ran(&mut self, command: Option<CommandId>, how: CommandEnd) -> Check {
        let Some(id) = command else { return Ok(()) };
        // A node that may not lead any more stops its commands first.
        self.check_lead()?;
        let ending = match how {
            CommandEnd::Well => Ending::Succeeded { host: None },
            CommandEnd::Elsewhere => Ending::Succeeded { host: Some("h8".to_owned()) },
            CommandEnd::Badly => Ending::Failed { why: "exit status 1".to_owned() },
            CommandEnd::Absurdly => Ending::Succeeded { host: Some(String::new()) },
            CommandEnd::Blocked => Ending::Blocked { why: invariants::BLOCKED.to_owned() },
        };
        self.node.running.remove(&id);
        if self.node.spawned_here.contains(&id) {
            let (CommandId { target, fence, attempt }, ending) = (id, ending.clone());
            match target {
                CommandTarget::Vm { event, vm } => {
                    Rc::make_mut(&mut self.node.reports).push(Ran { event, vm, fence, attempt, ending });
                }
                CommandTarget::Host(operation) => {
                    let report = HostRan { fence, attempt, ending };
                    Rc::make_mut(&mut self.node.host_reports).push((operation, report));
                }
            }
        }
        self.feed(Input::Ran(DriverReport { id, ending }))
    }

    /// The owner of commands that the current process starts.
    pub(crate) fn runner(&self) -> String {
        self.node.engine.runner().to_owned()
    }

    /// Advances both clocks.
    pub(crate) fn advance(&mut self, by: SignedDuration) -> Check {
        if self.cluster.is_some() {
            return self.advance_cluster(by);
        }
        self.node.now = rules::plus(self.node.now, by);
        self.node.since_boot += Duration::try_from(by).unwrap_or_default();
        self.feed(Input::Tick)
    }

    /// Advances to `then`, if it is in the future.
    pub(crate) fn wait_until(&mut self, then: Timestamp) -> Check {
        self.advance(then.duration_since(self.node.now).max(SignedDuration::ZERO))
    }

    /// The next automatic change by the committed records.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let hold = self.node.engine.state().clock_hold();
        let gates = hosts::gates(&self.view, hold);
        let scopes = self.view.scopes.iter().filter_map(|(id, (_, scope))| {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            model::next_due(scope, here, hold, self.node.now)
        });
        let commands = self.view.operations.values().filter_map(|one| host_command::next_due(one));
        scopes.chain(hosts::next_due(&self.view, hold, self.node.now)).chain(commands).min()
    }

    pub(crate) fn at(&self) -> At {
        let fresh = |(at, was_stored): (Timestamp, bool)| {
            let longer = if was_stored { rules::STORED_EXTRA } else { SignedDuration::ZERO };
            // During a hold, a clock jump disables no scope.
            let nows = [self.node.now, rules::plus(self.node.now, -self.node.jumped_by)];
            nows.iter().any(|now| now.duration_since(at) < rules::ENABLED_FOR + longer)
        };
        let enabled = self
            .node
            .last_polls
            .iter()
            .filter(|(_, last_polls)| fresh(**last_polls))
            .map(|(id, _)| id.clone());
        // A new leader judges no scope before it knows the polls of all nodes.
        let state = self.node.engine.state();
        let all = self.node.waits_for_polls.then(|| state.scope_ids());
        let enabled = enabled.chain(all.into_iter().flatten());
        let hold = state.clock_hold();
        At {
            now: self.node.now,
            enabled: enabled.collect(),
            setup: self.setup.clone(),
            node: self.runner().into(),
            reports: Rc::clone(&self.node.reports),
            host_reports: Rc::clone(&self.node.host_reports),
            gates: Rc::new(hosts::gates(state, hold)),
            free: Rc::new(hosts::free(state, hold, self.node.now)),
            free_hosts: Rc::new(hosts::free_hosts(state)),
            chosen_hosts: Rc::default(),
            clock_hold: hold.cloned().map(Rc::new),
            before_jump: Rc::clone(&self.node.before_jump),
        }
    }

    /// Gives the engine an input and carries out the effects. A clock jump is reported first.
    pub(crate) fn feed(&mut self, input: Input) -> Check {
        self.check_lead()?;
        self.feed_engine(input)
    }

    /// Like [`Self::feed`], without a check of the lead before it.
    pub(crate) fn feed_engine(&mut self, input: Input) -> Check {
        if let Some(news) = self.node.watch.read(self.node.reading(), self.node.engine.is_clock_held()) {
            self.record_clock(news);
            self.feed_one(Input::Clock(news))?;
        }
        self.feed_one(input)
    }

    fn record_clock(&mut self, news: ClockNews) {
        match news {
            ClockNews::Jumped(by) => {
                self.stats.clock_jumps += 1;
                self.stats.clock_holds += u64::from(self.is_due_without_hold());
                self.node.jumped_by += by;
                let events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
                self.node.before_jump = Rc::new(events.map(|event| event.id).collect());
            }
            ClockNews::Settled => {
                self.node.jumped_by = SignedDuration::ZERO;
                self.node.last_polls.values_mut().for_each(|(at, _)| *at = (*at).min(self.node.now));
                self.node.before_jump = Rc::default();
            }
        }
    }

    fn feed_one(&mut self, input: Input) -> Check {
        let shows = match &input {
            Input::Watched(batch) => batch.revision,
            Input::Resync(revision, _) | Input::Committed(_, Outcome::Committed(revision)) => *revision,
            Input::Committed(..)
            | Input::Request(..)
            | Input::Polled(..)
            | Input::PollsForgotten(_)
            | Input::PollsComplete(_)
            | Input::Ran(_)
            | Input::Tick
            | Input::Clock(_)
            | Input::Role(_)
            | Input::Closing => Revision(0),
        };
        self.node.known = self.node.known.max(shows);
        let effects = self.node.engine.handle(input, self.node.now);
        // Mostly time passes and nothing happens.
        if !effects.is_empty() || !self.node.open.is_empty() {
            self.carry_out(effects)?;
        }
        self.stats.host_waits += self.node.engine.host_operations_blocked() as u64;
        let due = self.node.engine.next_due();
        if due.is_some_and(|due| due <= self.node.now) {
            return Err(Violation {
                number: Some(10),
                words: "next_due > now after handle",
                detail: format!("{due:?} at {}", self.node.now),
            });
        }
        Ok(())
    }

    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) -> Check {
        let at = self.at();
        for effect in effects {
            match effect {
                Effect::Commit(id, txn) => {
                    self.check_exclusive_compare(&txn)?;
                    let open_requests: Vec<_> = self.node.open.values().cloned().collect();
                    let ahead = self.node.ahead.remove(&id).unwrap_or_default();
                    let chosen_hosts = Rc::new(conformance::chosen_hosts(&txn, &ahead)?);
                    let mut at = At { chosen_hosts, ..at.clone() };
                    let mut planned = self.planned(&txn, &open_requests, &at);
                    // The start of a host operation compares its scopes in separate commits before the one that records
                    // it; it is decided when the first of them is sent.
                    if let Some((free, earlier)) = self.node.comparing.remove(&id) {
                        Rc::make_mut(&mut at.free).extend(free.iter());
                        planned.extend(earlier);
                    }
                    if !txn.writes() {
                        self.node.comparing.insert(id, (Rc::clone(&at.free), planned.clone()));
                    }
                    self.check_has_fence(&txn)?;
                    self.check_clock_of_writer()?;
                    let by = self.index();
                    let (outcome, sent_at) = (None, self.store.revision());
                    let flight = Flight { id, txn, ahead, at, open_requests, planned, outcome, by, sent_at };
                    self.node.flights.push(flight);
                }
                Effect::Publish(published) => {
                    for one in &published.changes {
                        invariants::published_is_committed(one, &self.store, &mut self.node.shown)?;
                    }
                }
                Effect::Run(run) => {
                    invariants::spawned_as_committed(&run, &at.node, &self.node.running, &mut self.ledger)?;
                    self.stats.commands += 1;
                    self.stats.host_commands += u64::from(host_command::operation_of(run.id).is_some());
                    self.node.running.insert(run.id);
                    self.node.spawned_here.insert(run.id);
                }
                Effect::Stop(id) => {
                    // A command without a report is running until it is stopped.
                    if !self.node.running.remove(&id) {
                        return Err(broken("only running commands are stopped", format!("{id:?}")));
                    }
                }
                Effect::Answer(id, result) => {
                    self.answered(id.0, &result, &at)?;
                    self.answer_forwarded(id, &result);
                }
                Effect::Resync => self.snapshot_requested(),
            }
        }
        // Before a request with a key is refused, or answered without a change, the store confirms it. So the
        // possible answers are recorded when they can have been decided.
        for (id, sent) in &self.node.open {
            let Some(key) = conformance::command_key(&sent.request) else { continue };
            let writes = |flight: &Flight| flight.txn.put.iter().any(|(put, _)| **put == *key);
            if self.node.flights.iter().any(writes) {
                continue;
            }
            let noted = self.node.predicted.entry(*id).or_default();
            match predict::request(self.node.engine.state(), &sent.request, &at) {
                Err(codes) => noted.extend(codes),
                Ok(writes) if writes.is_empty() => drop(noted.insert(NOTHING_TO_DO)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// At most one commit in flight compares a record: a process does not conflict with itself, and only one plans.
    fn check_exclusive_compare(&self, txn: &Txn) -> Check {
        // Commits of an earlier time as the leader are fenced.
        let same_fence = |flight: &&Flight| fence_of(&flight.txn) == fence_of(txn);
        for flight in self.all_flights().filter(same_fence) {
            let mut compared = txn.expect.iter().filter(|one| !is_leader_key(&one.key));
            let same = compared.find(|one| flight.txn.expect.iter().any(|two| one.key == two.key));
            if let Some(expect) = same {
                let detail = format!("{} is compared by two commits in flight", expect.key);
                return Err(broken("the records that a commit compares are locked", detail));
            }
        }
        Ok(())
    }

    /// The store applies a commit in flight.
    pub(crate) fn apply(&mut self, index: usize) -> Check {
        if self.node.flights[index].outcome.is_some() {
            return Ok(());
        }
        let flight = self.node.flights[index].clone();
        let outcome = self.commit(&flight)?;
        self.node.flights[index].outcome = Some(outcome);
        Ok(())
    }

    pub(crate) fn deliver(&mut self, index: usize, how: ReportedOutcome) -> Check {
        match how {
            ReportedOutcome::Actual | ReportedOutcome::UnknownLanded => self.apply(index)?,
            ReportedOutcome::Unavailable | ReportedOutcome::UnknownLost => {}
        }
        let flight = self.node.flights.remove(index);
        if how == ReportedOutcome::UnknownLost && flight.outcome.is_none() {
            self.may_land_late(&flight);
        }
        if how != ReportedOutcome::Actual {
            self.faults += 1;
            self.stats.faults += 1;
        }
        let outcome = match (how, flight.outcome.clone()) {
            (ReportedOutcome::Actual, Some(outcome)) => outcome,
            (ReportedOutcome::Unavailable, None) => {
                Outcome::Refused(Refusal::Unavailable("no space left".to_owned()))
            }
            (_, _) => Outcome::Unknown("connection lost".to_owned()),
        };
        self.check_lead()?;
        if !matches!(outcome, Outcome::Committed(_)) {
            // What comes next is another plan.
            self.node.comparing.remove(&flight.id);
        }
        self.sent_ahead(&flight, &outcome)?;
        self.feed_engine(Input::Committed(flight.id, outcome.clone()))?;
        self.report_to_leadership(&flight, &outcome)
    }

    /// Remembers a transaction whose job goes on after it.
    fn sent_ahead(&mut self, flight: &Flight, outcome: &Outcome) -> Check {
        let is_same_plan = match outcome {
            Outcome::Committed(_) => true,
            // The watch may show it; then the job goes on, otherwise it is planned again.
            Outcome::Unknown(_) => false,
            Outcome::Conflict(_) | Outcome::Refused(_) => return Ok(()),
        };
        let written = conformance::written(&flight.txn)?;
        if self.setup.split_at.is_none() || !flight.txn.writes() || !written.is_sent_ahead() {
            return Ok(());
        }
        let mut ahead = flight.ahead.clone();
        // The first transaction of a plan says when the plan was made.
        if !ahead.is_same_plan {
            ahead.flights.push(Rc::new(Flight { ahead: SentAhead::default(), ..flight.clone() }));
        }
        ahead.is_same_plan = is_same_plan;
        ahead.past.extend(written.records.into_iter().filter(|record| matches!(record, Record::Past(..))));
        self.node.ahead.insert(flight.id, ahead);
        Ok(())
    }

    fn watch_one(&mut self) -> Check {
        match self.store.log().get(self.node.watched).cloned() {
            Some(batch) => {
                self.node.watched += 1;
                self.feed(Input::Watched(batch))
            }
            None => Ok(()),
        }
    }

    /// Another node rewrites a record unchanged.
    fn rewrite_by_other_node(&mut self, which: u8) -> Check {
        let kinds = [prefix::SCOPE, prefix::OPERATION, prefix::VM];
        let records: Vec<(Key, bytes::Bytes)> = self
            .store
            .records()
            .iter()
            .filter(|(key, _)| kinds.iter().any(|kind| key.starts_with(kind)))
            .map(|(key, record)| (key.clone(), record.value.clone()))
            .collect();
        let Some(index) = usize::from(which).checked_rem(records.len()) else { return Ok(()) };
        let txn = Txn { put: vec![records[index].clone()], ..Txn::default() };
        self.store.commit(&txn);
        for record in conformance::written(&txn)?.records {
            self.view.take(self.store.revision(), record);
        }
        self.stats.faults += 1;
        Ok(())
    }

    pub(crate) fn crash(&mut self, lands: u16, down_ms: i64) -> Check {
        for index in 0..self.node.flights.len() {
            if lands >> (index % 16) & 1 == 1 {
                self.apply(index)?;
            }
        }
        self.node.flights.clear();
        self.node.comparing.clear();
        self.node.running.clear();
        self.node.spawned_here.clear();
        self.node.reports = Rc::default();
        self.node.host_reports = Rc::default();
        self.node.open.clear();
        self.node.predicted.clear();
        self.faults += 1;
        self.stats.faults += 1;
        self.node.starts += 1;
        self.node.now = rules::plus(self.node.now, SignedDuration::from_millis(down_ms));
        self.node.since_boot = Duration::ZERO;
        self.node.watch = ClockWatch::new(self.node.reading());
        self.node.jumped_by = SignedDuration::ZERO;
        self.node.before_jump = Rc::default();
        self.load_poll_times();
        let (engine, effects) = start(&self.setup, &self.store, self.node.starts, self.node.now)?;
        self.node.engine = engine;
        self.check_clock()?;
        // Readers of the new process start with the store's newest versions.
        self.node.shown = self.store.newest();
        self.node.watched = self.store.log().len();
        self.carry_out(effects)
    }

    /// Whether something would be due if the clock were trusted.
    fn is_due_without_hold(&self) -> bool {
        let gates = hosts::gates(&self.view, None);
        let is_due = |(id, (_, scope)): (&ScopeId, &(Revision, Rc<Scope>))| {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            model::next_due(scope, here, None, self.node.now).is_some_and(|due| due <= self.node.now)
        };
        let host_is_due =
            |one: &Operation| hosts::due(&self.view, None, one).is_some_and(|(at, _)| at <= self.node.now);
        self.view.scopes.iter().any(is_due) || self.view.operations.values().any(|one| host_is_due(one))
    }

    /// A new process trusts its clock, unless it is behind the stored time, or far ahead of it and something would be
    /// due by it.
    fn check_clock(&mut self) -> Check {
        let alive = self.store.records().get(records::ALIVE);
        let alive = alive.and_then(|record| records::decode::<LastAt>(records::ALIVE, &record.value).ok());
        let ahead = alive.map_or(SignedDuration::ZERO, |alive| self.node.now.duration_since(alive.at));
        let is_due = self.is_due_without_hold();
        let distrusts = -ahead > SignedDuration::from_secs(60) || (ahead > rules::DAY && is_due);
        if distrusts {
            self.record_clock(ClockNews::Jumped(SignedDuration::ZERO));
        }
        match self.node.engine.is_clock_held() == distrusts {
            true => Ok(()),
            false => Err(broken("a clock that contradicts the store is held", format!("{ahead}, {is_due}"))),
        }
    }

    /// Poll times known to a new process: the stored ones; its own downtime does not count.
    fn load_poll_times(&mut self) {
        let last = |key: &str| {
            let record = self.store.records().get(key)?;
            records::decode::<LastAt>(key, &record.value).ok().map(|last| last.at)
        };
        let down = last(records::ALIVE).map_or(SignedDuration::ZERO, |alive| {
            self.node.now.duration_since(alive).max(SignedDuration::ZERO)
        });
        self.node.last_polls = (0..requests::SCOPES)
            .map(|scope| requests::path(scope).id())
            .filter_map(|id| last(&records::heard(&id)).map(|at| (id, (rules::plus(at, down), true))))
            .collect();
    }

    /// Lets everything in flight succeed, and the watch catch up.
    pub(crate) fn settle(&mut self) -> Check {
        if self.cluster.is_some() {
            return self.settle_cluster();
        }
        let mut patience = 10_000;
        while !self.node.flights.is_empty() {
            self.deliver(0, ReportedOutcome::Actual)?;
            patience -= 1;
            if patience == 0 {
                return Err(broken("work comes to an end", "ten thousand commits and no end"));
            }
        }
        while self.node.watched < self.store.log().len() {
            self.watch_one()?;
        }
        // Commits from the watch may start work.
        match self.node.flights.is_empty() {
            true => Ok(()),
            false => self.settle(),
        }
    }
}

/// The id of a process, new at every start.
fn node(starts: u32) -> String {
    format!("n{starts}")
}

pub(crate) fn start(
    setup: &Setup,
    store: &SimStore,
    starts: u32,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>), Violation> {
    let settings = EngineSettings { domain: domain(setup), node: node(starts).as_str().into() };
    let all = store.records().iter().filter(|(key, _)| records::is_loaded(key));
    let all = all.map(|(key, record)| (key.clone(), record.clone()));
    Engine::new(settings, all, store.revision(), now)
        .map_err(|error| broken("every record can be read", error.to_string()))
}
