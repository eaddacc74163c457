//! The simulated world: the production engine over a simulated store, with virtual time and fault injection.
//!
//! The world replaces the runtime and the store. Commits stay in flight until the history decides their outcome.
//! Outcomes come late, in any order, as conflicts, refusals or unknown. The watch lags. The process crashes with
//! commits in flight and restarts from the store. Every commit, publication and answer is checked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{
    Actor, Ending, EventId, ExecSettings, HostRan, Operation, OperationId, Ran, Scope, ScopeId, Settings,
    StartReason, WhenNotEnabled,
};
use notbefore_engine::records::{self, LastAt, prefix};
use notbefore_engine::{
    ClockNews, ClockReading, ClockWatch, CommandId, CommandTarget, DriverReport, Effect, Engine,
    EngineSettings, Failure, Idempotency, Input, JobId, Request, RequestId,
};
use notbefore_store::{Key, Outcome, Refusal, Revision, Txn};

use crate::conformance::{self, Flight, SentRequest, Violation};
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
use crate::view::{Reads, View};

/// The start time: not a whole second, so that rounding shows.
const BEGIN: i64 = 1_767_225_600_250;

/// Statistics, to verify that histories are eventful.
#[derive(Clone, Copy, Debug, Default)]
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
}

impl std::ops::Add for Stats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            commits: self.commits + other.commits,
            events: self.events + other.events,
            granted: self.granted + other.granted,
            refused: self.refused + other.refused,
            faults: self.faults + other.faults,
            commands: self.commands + other.commands,
            host_commands: self.host_commands + other.host_commands,
            host_starts: self.host_starts + other.host_starts,
            host_waits: self.host_waits + other.host_waits,
            clock_jumps: self.clock_jumps + other.clock_jumps,
            clock_holds: self.clock_holds + other.clock_holds,
        }
    }
}

/// The knowledge when a commit was sent: due and unblocked host operations, and predicted writes of requests.
type Known = (Rc<Vec<(OperationId, StartReason)>>, BTreeMap<u64, predict::Writes>);

/// A code among the refusals for a request with nothing to do.
pub(crate) const NOTHING_TO_DO: &str = "nothing to do";

pub struct World {
    pub(crate) setup: Setup,
    pub(crate) engine: Engine,
    pub(crate) store: SimStore,
    pub(crate) view: View,
    pub(crate) ledger: Ledger,
    pub(crate) now: Timestamp,
    pub(crate) flights: Vec<Flight>,
    pub(crate) open: BTreeMap<u64, Rc<SentRequest>>,
    pub(crate) predicted: BTreeMap<u64, Codes>,
    keyed: Vec<Rc<SentRequest>>,
    /// The knowledge when commits that only compare were sent.
    comparing: BTreeMap<JobId, Known>,
    /// The running commands, children of this process.
    pub(crate) running: BTreeSet<CommandId>,
    /// All commands that this process has spawned.
    spawned_here: BTreeSet<CommandId>,
    /// All reports of them that it received.
    reports: Rc<Vec<Ran>>,
    /// The same of commands for hosts.
    host_reports: Rc<Vec<(OperationId, HostRan)>>,
    /// The last poll of each scope, and whether the process read it from the store.
    last_polls: BTreeMap<ScopeId, (Timestamp, bool)>,
    /// The boot-time clock, which cannot be set.
    since_boot: Duration,
    watch: ClockWatch,
    /// The wall clock's total jump since it was last trusted.
    jumped_by: SignedDuration,
    /// The committed events from before the jump.
    before_jump: Rc<BTreeSet<EventId>>,
    watched: usize,
    starts: u32,
    requests: u64,
    fresh: IdSource,
    pub(crate) faults: u32,
    pub(crate) stats: Stats,
}

fn domain(setup: &Setup) -> Settings {
    Settings {
        notice_scale: f64::from(setup.scale_permille) / 1_000.0,
        simulated_duration: Duration::from_secs(60),
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
        Ok(Self {
            setup,
            engine,
            store,
            view: View::default(),
            ledger: Ledger::default(),
            now,
            flights: Vec::new(),
            open: BTreeMap::new(),
            predicted: BTreeMap::new(),
            keyed: Vec::new(),
            comparing: BTreeMap::new(),
            running: BTreeSet::new(),
            spawned_here: BTreeSet::new(),
            reports: Rc::default(),
            host_reports: Rc::default(),
            last_polls: BTreeMap::new(),
            since_boot: Duration::ZERO,
            watch: ClockWatch::new(ClockReading { wall: now, since_boot: Duration::ZERO }),
            jumped_by: SignedDuration::ZERO,
            before_jump: Rc::default(),
            watched: 0,
            starts: 0,
            requests: 0,
            fresh: IdSource::default(),
            faults: 0,
            stats: Stats::default(),
        })
    }

    pub fn step(&mut self, step: &Step) -> Check {
        match step {
            Step::Setup(_) => Ok(()),
            Step::Request { what: RequestKind::FirstRun, .. } => {
                // The service creates it before it accepts requests, so nothing else is in flight.
                self.settle()?;
                self.send_request(&RequestKind::FirstRun, false, None)?;
                self.settle()
            }
            Step::Request { what, key, revision } => self.send_request(what, *key, *revision),
            Step::Retry { which, other } => self.retry(*which, *other),
            Step::Polled { scope } => {
                let id = requests::path(*scope).id();
                if Reads::scope(self.engine.state(), &id).is_none() {
                    return Ok(());
                }
                let last = self.last_polls.entry(id.clone()).or_insert((self.now, false));
                if self.now >= last.0 {
                    *last = (self.now, false);
                }
                self.feed(Input::Polled(id, self.now))
            }
            Step::Advance { ms } => self.advance(SignedDuration::from_millis(*ms)),
            Step::SetClock { ms } => {
                self.now = rules::plus(self.now, SignedDuration::from_millis(*ms));
                self.feed(Input::Tick)
            }
            Step::ToDue { plus_ms } => {
                let due = self.next_due();
                let to = rules::plus(due.unwrap_or(self.now), SignedDuration::from_millis(*plus_ms));
                self.wait_until(to)
            }
            Step::Apply { which } => match usize::from(*which).checked_rem(self.flights.len()) {
                Some(index) => self.apply(index),
                None => Ok(()),
            },
            Step::Deliver { which, how } => match usize::from(*which).checked_rem(self.flights.len()) {
                Some(index) => self.deliver(index, *how),
                None => Ok(()),
            },
            Step::Watch { count } => (0..*count).try_for_each(|_| self.watch_one()),
            Step::Foreign { which } => self.rewrite_by_other_node(*which),
            Step::Ran { which, how } => match usize::from(*which).checked_rem(self.running.len()) {
                Some(nth) => self.ran(self.running.iter().nth(nth).copied(), *how),
                None => Ok(()),
            },
            Step::Late { which, how } => match usize::from(*which).checked_rem(self.ledger.spawned.len()) {
                Some(nth) => self.ran(self.ledger.spawned.iter().nth(nth).copied(), *how),
                None => Ok(()),
            },
            Step::Crash { lands, down_ms } => self.crash(*lands, *down_ms),
            Step::Settle => self.settle(),
            Step::Drain => self.drain(),
        }
    }

    fn send_request(&mut self, what: &RequestKind, key: bool, revision: Option<bool>) -> Check {
        let naming = Naming { view: &self.view, ledger: &self.ledger, now: self.now, setup: &self.setup };
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
            DryRun::Preview(new) => self.engine.preview(by, new, self.now).map(drop),
            DryRun::ScopePlan(change) => self.engine.plan_scope(by, change, if_revision, self.now).map(drop),
        };
        let predicted = predict::dry_run(self.engine.state(), by, dry_run, if_revision, &self.at());
        let fits = match (&found, &predicted) {
            (Ok(()), Ok(())) => true,
            (Err(Failure::Refused(refusal)), Err(codes)) => codes.contains(refusal.code()),
            (_, _) => false,
        };
        match fits {
            true => Ok(()),
            false => {
                let detail = format!("{dry_run:?} at {}: {found:?}, predicted {predicted:?}", self.now);
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
        let id = self.requests;
        self.requests += 1;
        let sent = Rc::new(SentRequest { id, request: request.clone(), faults: self.faults });
        if request.idempotency.is_some() {
            self.keyed.push(Rc::clone(&sent));
        }
        self.open.insert(id, sent);
        self.feed(Input::Request(RequestId(id), Box::new(request)))
    }

    /// A command ends, or a report says so.
    pub(crate) fn ran(&mut self, command: Option<CommandId>, how: CommandEnd) -> Check {
        let Some(id) = command else { return Ok(()) };
        let ending = match how {
            CommandEnd::Well => Ending::Succeeded { host: None },
            CommandEnd::Elsewhere => Ending::Succeeded { host: Some("h8".to_owned()) },
            CommandEnd::Badly => Ending::Failed { why: "exit status 1".to_owned() },
            CommandEnd::Absurdly => Ending::Succeeded { host: Some(String::new()) },
            CommandEnd::Blocked => Ending::Blocked { why: invariants::BLOCKED.to_owned() },
        };
        self.running.remove(&id);
        if self.spawned_here.contains(&id) {
            let (CommandId { target, fence, attempt }, ending) = (id, ending.clone());
            match target {
                CommandTarget::Vm { event, vm } => {
                    Rc::make_mut(&mut self.reports).push(Ran { event, vm, fence, attempt, ending });
                }
                CommandTarget::Host(operation) => {
                    let report = HostRan { fence, attempt, ending };
                    Rc::make_mut(&mut self.host_reports).push((operation, report));
                }
            }
        }
        self.feed(Input::Ran(DriverReport { id, ending }))
    }

    /// The id of the current process.
    pub(crate) fn node(&self) -> String {
        node(self.starts)
    }

    /// Advances both clocks.
    pub(crate) fn advance(&mut self, by: SignedDuration) -> Check {
        self.now = rules::plus(self.now, by);
        self.since_boot += Duration::try_from(by).unwrap_or_default();
        self.feed(Input::Tick)
    }

    /// Advances to `then`, if it is in the future.
    pub(crate) fn wait_until(&mut self, then: Timestamp) -> Check {
        self.advance(then.duration_since(self.now).max(SignedDuration::ZERO))
    }

    fn reading(&self) -> ClockReading {
        ClockReading { wall: self.now, since_boot: self.since_boot }
    }

    /// The next automatic change by the committed records.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let hold = self.engine.state().clock_hold();
        let gates = hosts::gates(&self.view, hold);
        let scopes = self.view.scopes.iter().filter_map(|(id, (_, scope))| {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            model::next_due(scope, here, hold, self.now)
        });
        let commands = self.view.operations.values().filter_map(|one| host_command::next_due(one));
        scopes.chain(hosts::next_due(&self.view, hold, self.now)).chain(commands).min()
    }

    fn at(&self) -> At {
        let fresh = |(at, was_stored): (Timestamp, bool)| {
            let longer = if was_stored { rules::STORED_EXTRA } else { SignedDuration::ZERO };
            // During a hold, a clock jump disables no scope.
            let nows = [self.now, rules::plus(self.now, -self.jumped_by)];
            nows.iter().any(|now| now.duration_since(at) < rules::ENABLED_FOR + longer)
        };
        let enabled =
            self.last_polls.iter().filter(|(_, last_polls)| fresh(**last_polls)).map(|(id, _)| id.clone());
        let state = self.engine.state();
        let hold = state.clock_hold();
        At {
            now: self.now,
            enabled: enabled.collect(),
            setup: self.setup.clone(),
            node: self.node().into(),
            reports: Rc::clone(&self.reports),
            host_reports: Rc::clone(&self.host_reports),
            gates: Rc::new(hosts::gates(state, hold)),
            free: Rc::new(hosts::free(state, hold, self.now)),
            clock_hold: hold.cloned().map(Rc::new),
            before_jump: Rc::clone(&self.before_jump),
        }
    }

    /// Gives the engine an input and carries out the effects. A clock jump is reported first.
    pub(crate) fn feed(&mut self, input: Input) -> Check {
        if let Some(news) = self.watch.read(self.reading(), self.engine.is_clock_held()) {
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
                self.jumped_by += by;
                let events = self.view.scopes.values().flat_map(|(_, scope)| &scope.events);
                self.before_jump = Rc::new(events.map(|event| event.id).collect());
            }
            ClockNews::Settled => {
                self.jumped_by = SignedDuration::ZERO;
                self.last_polls.values_mut().for_each(|(at, _)| *at = (*at).min(self.now));
                self.before_jump = Rc::default();
            }
        }
    }

    fn feed_one(&mut self, input: Input) -> Check {
        let effects = self.engine.handle(input, self.now);
        self.carry_out(effects)?;
        self.stats.host_waits += self.engine.host_operations_blocked() as u64;
        let due = self.engine.next_due();
        if due.is_some_and(|due| due <= self.now) {
            return Err(Violation {
                number: Some(10),
                words: "next_due > now after handle",
                detail: format!("{due:?} at {}", self.now),
            });
        }
        Ok(())
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Check {
        let at = self.at();
        for effect in effects {
            match effect {
                Effect::Commit(id, txn) => {
                    self.check_exclusive_compare(&txn)?;
                    let open_requests: Vec<_> = self.open.values().cloned().collect();
                    let (mut planned, mut at) = (self.planned(&txn, &open_requests, &at), at.clone());
                    // The start of a host operation compares its scopes in separate commits before the one that records
                    // it; it is decided when the first of them is sent.
                    if let Some((free, earlier)) = self.comparing.remove(&id) {
                        Rc::make_mut(&mut at.free).extend(free.iter());
                        planned.extend(earlier);
                    }
                    if !txn.writes() {
                        self.comparing.insert(id, (Rc::clone(&at.free), planned.clone()));
                    }
                    self.flights.push(Flight { id, txn, at, open_requests, planned, outcome: None });
                }
                Effect::Publish(published) => {
                    for one in &published.changes {
                        invariants::published_is_committed(one, &self.store, &mut self.ledger)?;
                    }
                }
                Effect::Run(run) => {
                    invariants::spawned_as_committed(&run, &at.node, &self.running, &mut self.ledger)?;
                    self.stats.commands += 1;
                    self.stats.host_commands += u64::from(host_command::operation_of(run.id).is_some());
                    self.running.insert(run.id);
                    self.spawned_here.insert(run.id);
                }
                Effect::Stop(id) => {
                    // A command without a report is running until it is stopped.
                    if !self.running.remove(&id) {
                        return Err(broken("only running commands are stopped", format!("{id:?}")));
                    }
                }
                Effect::Answer(RequestId(id), result) => self.answered(id, &result, &at)?,
                // The only node of a store has no conflicts that it cannot explain.
                Effect::Resync => {}
            }
        }
        // Before a request with a key is refused, or answered without a change, the store confirms it. So the
        // possible answers are recorded when they can have been decided.
        for (id, sent) in &self.open {
            let Some(key) = conformance::command_key(&sent.request) else { continue };
            let writes = |flight: &Flight| flight.txn.put.iter().any(|(put, _)| **put == *key);
            if self.flights.iter().any(writes) {
                continue;
            }
            let noted = self.predicted.entry(*id).or_default();
            match predict::request(self.engine.state(), &sent.request, &at) {
                Err(codes) => noted.extend(codes),
                Ok(writes) if writes.is_empty() => drop(noted.insert(NOTHING_TO_DO)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// At most one commit in flight compares a record: a process does not conflict with itself.
    fn check_exclusive_compare(&self, txn: &Txn) -> Check {
        for flight in &self.flights {
            let same = txn.expect.iter().find(|one| flight.txn.expect.iter().any(|two| one.key == two.key));
            if let Some(expect) = same {
                let detail = format!("{} is compared by two commits in flight", expect.key);
                return Err(broken("the records that a commit compares are locked", detail));
            }
        }
        Ok(())
    }

    /// The store applies a commit in flight.
    pub(crate) fn apply(&mut self, index: usize) -> Check {
        if self.flights[index].outcome.is_some() {
            return Ok(());
        }
        let flight = self.flights[index].clone();
        let outcome = self.commit(&flight)?;
        self.flights[index].outcome = Some(outcome);
        Ok(())
    }

    fn deliver(&mut self, index: usize, how: ReportedOutcome) -> Check {
        match how {
            ReportedOutcome::Actual | ReportedOutcome::UnknownLanded => self.apply(index)?,
            ReportedOutcome::Unavailable | ReportedOutcome::UnknownLost => {}
        }
        let flight = self.flights.remove(index);
        if how != ReportedOutcome::Actual {
            self.faults += 1;
            self.stats.faults += 1;
        }
        let outcome = match (how, flight.outcome) {
            (ReportedOutcome::Actual, Some(outcome)) => outcome,
            (ReportedOutcome::Unavailable, None) => {
                Outcome::Refused(Refusal::Unavailable("no space left".to_owned()))
            }
            (_, _) => Outcome::Unknown("connection lost".to_owned()),
        };
        self.feed(Input::Committed(flight.id, outcome))
    }

    fn watch_one(&mut self) -> Check {
        match self.store.log().get(self.watched).cloned() {
            Some(batch) => {
                self.watched += 1;
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

    fn crash(&mut self, lands: u16, down_ms: i64) -> Check {
        for index in 0..self.flights.len() {
            if lands >> (index % 16) & 1 == 1 {
                self.apply(index)?;
            }
        }
        self.flights.clear();
        self.comparing.clear();
        self.running.clear();
        self.spawned_here.clear();
        self.reports = Rc::default();
        self.host_reports = Rc::default();
        self.open.clear();
        self.predicted.clear();
        self.faults += 1;
        self.stats.faults += 1;
        self.starts += 1;
        self.now = rules::plus(self.now, SignedDuration::from_millis(down_ms));
        self.since_boot = Duration::ZERO;
        self.watch = ClockWatch::new(self.reading());
        self.jumped_by = SignedDuration::ZERO;
        self.before_jump = Rc::default();
        self.load_poll_times();
        let (engine, effects) = start(&self.setup, &self.store, self.starts, self.now)?;
        self.engine = engine;
        self.check_clock()?;
        // Readers of the new process start with the store's newest versions.
        self.ledger.shown = self.store.newest();
        self.watched = self.store.log().len();
        self.carry_out(effects)
    }

    /// Whether something would be due if the clock were trusted.
    fn is_due_without_hold(&self) -> bool {
        let gates = hosts::gates(&self.view, None);
        let is_due = |(id, (_, scope)): (&ScopeId, &(Revision, Rc<Scope>))| {
            let here = gates.get(id).map(Vec::as_slice).unwrap_or_default();
            model::next_due(scope, here, None, self.now).is_some_and(|due| due <= self.now)
        };
        let host_is_due =
            |one: &Operation| hosts::due(&self.view, None, one).is_some_and(|(at, _)| at <= self.now);
        self.view.scopes.iter().any(is_due) || self.view.operations.values().any(|one| host_is_due(one))
    }

    /// A new process trusts its clock, unless it is behind the stored time, or far ahead of it and something would be
    /// due by it.
    fn check_clock(&mut self) -> Check {
        let alive = self.store.records().get(records::ALIVE);
        let alive = alive.and_then(|record| records::decode::<LastAt>(records::ALIVE, &record.value).ok());
        let ahead = alive.map_or(SignedDuration::ZERO, |alive| self.now.duration_since(alive.at));
        let is_due = self.is_due_without_hold();
        let distrusts = -ahead > SignedDuration::from_secs(60) || (ahead > rules::DAY && is_due);
        if distrusts {
            self.record_clock(ClockNews::Jumped(SignedDuration::ZERO));
        }
        match self.engine.is_clock_held() == distrusts {
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
        let down = last(records::ALIVE)
            .map_or(SignedDuration::ZERO, |alive| self.now.duration_since(alive).max(SignedDuration::ZERO));
        self.last_polls = (0..requests::SCOPES)
            .map(|scope| requests::path(scope).id())
            .filter_map(|id| last(&records::heard(&id)).map(|at| (id, (rules::plus(at, down), true))))
            .collect();
    }

    /// Lets everything in flight succeed, and the watch catch up.
    pub(crate) fn settle(&mut self) -> Check {
        let mut patience = 10_000;
        while !self.flights.is_empty() {
            self.deliver(0, ReportedOutcome::Actual)?;
            patience -= 1;
            if patience == 0 {
                return Err(broken("work comes to an end", "ten thousand commits and no end"));
            }
        }
        while self.watched < self.store.log().len() {
            self.watch_one()?;
        }
        // Commits from the watch may start work.
        match self.flights.is_empty() {
            true => Ok(()),
            false => self.settle(),
        }
    }
}

/// The id of a process, new at every start.
fn node(starts: u32) -> String {
    format!("n{starts}")
}

fn start(
    setup: &Setup,
    store: &SimStore,
    starts: u32,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>), Violation> {
    let settings = EngineSettings { domain: domain(setup), node: node(starts).as_str().into() };
    let loaded =
        |key: &Key| &**key == records::ALIVE || records::LOADED.iter().any(|one| key.starts_with(one));
    let all = store.records().iter().filter(|(key, _)| loaded(key));
    let all = all.map(|(key, record)| (key.clone(), record.clone()));
    Engine::new(settings, all, store.revision(), now)
        .map_err(|error| broken("every record can be read", error.to_string()))
}
