//! Runtime of the engine: one task that feeds inputs to the engine and carries out its effects in order.
//!
//! The task owns the engine; all other code holds an [`EngineHandle`] and awaits answers. Commits run beside the task
//! and return as inputs. Sleeps are short, so that a clock that is set forward is noticed within a second.
//!
//! Batching makes commands cheaper under load. All waiting inputs are handled in one pass, and the effects of a pass
//! are carried out together: its transactions go to the store in one call with one sync, and its changes become one
//! view. The order for a caller stays: durable, published, answered.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::ScopeId;
use notbefore_engine::cluster::{ClusterReport, FenceNews, HandOverRefusal, fence_of};
use notbefore_engine::{
    Answer, ClockNews, ClockReading, ClockWatch, CommandId, DriverRun, Effect, Engine, Failure, FailureCause,
    Input, JobId, Publication, Request, RequestId, TypedCommand,
};
use notbefore_store::{Batch, Key, Outcome, ReadError, Revision, Store, Txn, Versioned};
use tokio::sync::{mpsc, oneshot};

use crate::clock::{self, Clock, Stopwatch};
use crate::cluster::{ClusterSignal, Member, Membership};
use crate::driver::{Driver, Report};
use crate::engine_stats::{EngineStats, HeldClock};
use crate::follow::{Followed, follow_commits, snapshot_for_engine};
use crate::view::Views;

/// Maximum inputs of one pass; it bounds how long the first input waits for the last.
const PASS_INPUTS_MAX: usize = 512;
/// Capacity of the request queue; beyond it, callers wait.
const REQUESTS_MAX: usize = 4_096;
/// Longest sleep: the delay before a clock that was set forward is noticed.
const TICK_MAX: Duration = Duration::from_millis(500);
/// Interval of attempts to read the whole store after the watch fell behind.
const SNAPSHOT_RETRY: Duration = Duration::from_secs(1);
/// Time to finish started work at shutdown.
const CLOSING_GRACE: Duration = Duration::from_secs(10);

/// Time to hand the lead over at shutdown.
const HAND_OVER_GRACE: Duration = Duration::from_secs(1);

type Reply = oneshot::Sender<Result<Answer, Failure>>;
/// A query, which sends its own answer.
type Query = Box<dyn FnOnce(&Engine, Timestamp) + Send>;

/// Requests from callers.
enum EngineRequest {
    Change(Box<Request>, Reply),
    Query(Query),
}

/// Inputs from the runtime's own tasks.
enum Signal {
    Committed(Vec<Committed>),
    Watched(Batch),
    /// A snapshot of all records that the engine holds, instead of commits that the watch no longer has.
    Snapshot(Revision, Vec<(Key, Versioned)>),
    Input(Input),
    /// Of a node of a cluster.
    Cluster(ClusterSignal),
    Ping(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// The outcome of a transaction.
struct Committed {
    job: JobId,
    /// The revision of the leader's record that it compared.
    fence: Option<Revision>,
    outcome: Outcome,
}

/// Sends requests to the engine.
#[derive(Clone)]
pub struct EngineHandle {
    requests: mpsc::Sender<EngineRequest>,
    signals: mpsc::UnboundedSender<Signal>,
    stats: Arc<EngineStats>,
}

impl EngineHandle {
    /// Sends a request and waits for the answer.
    pub async fn ask<A: TypedCommand>(&self, request: Request<A>) -> Result<A::Answer, Failure> {
        let (reply, answer) = oneshot::channel();
        let closing = || Failure::Unavailable(FailureCause::Closing);
        self.requests
            .send(EngineRequest::Change(Box::new(request.erased()), reply))
            .await
            .map_err(|_| closing())?;
        // A request that was accepted and never answered may have taken effect.
        let answer = answer.await.unwrap_or(Err(Failure::OutcomeUnknown(FailureCause::Closing)));
        // Errors of the store are logged there.
        if let Err(Failure::Unavailable(FailureCause::Record(error))) = &answer {
            tracing::error!(%error, "cannot read the stored answer of a repeated request");
        }
        A::read(answer?).ok_or(Failure::KeyReused)
    }

    /// Runs a read-only query on the engine.
    pub async fn query<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Timestamp) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        let query = Box::new(move |engine: &Engine, now| {
            // Fails if the caller is gone.
            let _ = reply.send(question(engine, now));
        });
        let closing = || Failure::Unavailable(FailureCause::Closing);
        self.requests.send(EngineRequest::Query(query)).await.map_err(|_| closing())?;
        answer.await.unwrap_or_else(|_| Err(closing()))
    }

    /// Reports a poll of a scope to the engine.
    pub fn record_poll(&self, scope: ScopeId, at: Timestamp) {
        // Fails if the engine is closed; then it is not needed.
        let _ = self.signals.send(Signal::Input(Input::Polled(scope, at)));
    }

    /// Tells the engine that the polls of a scope do not count any more. Later requests find it not enabled.
    pub fn forget_polls(&self, scope: ScopeId) {
        // Fails if the engine is closed; then it is not needed.
        let _ = self.signals.send(Signal::Input(Input::PollsForgotten(scope)));
    }

    /// Tells the engine whether the polls of all nodes are known.
    pub fn set_polls_complete(&self, is_complete: bool) {
        // Fails if the engine is closed; then it is not needed.
        let _ = self.signals.send(Signal::Input(Input::PollsComplete(is_complete)));
    }

    /// Resolves when the engine's task handles it: a liveness check of the task that does not depend on the store.
    /// Returns false once the engine is closed.
    pub async fn ping(&self) -> bool {
        let (pong, answer) = oneshot::channel();
        self.signals.send(Signal::Ping(pong)).is_ok() && answer.await.is_ok()
    }

    /// Resolves when all that is due by the clock is committed and published. For a clock that was moved by hand.
    pub async fn settle(&self) {
        loop {
            if self.signals.send(Signal::Input(Input::Tick)).is_err() {
                return;
            }
            let is_settled = self
                .query(|engine, now| Ok(engine.is_idle() && engine.next_due().is_none_or(|due| due > now)));
            // An engine that is closed has nothing due.
            if is_settled.await.unwrap_or(true) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Counters of the runtime.
    pub fn stats(&self) -> &EngineStats {
        &self.stats
    }

    /// What an outcome says about the lead, for the leadership machine.
    pub fn report_fence(&self, news: FenceNews) {
        let _ = self.signals.send(Signal::Cluster(ClusterSignal::Fence(news)));
    }

    /// What this node knows of all nodes of its cluster; none for a single node, or if the engine is closed.
    pub async fn cluster_report(&self) -> Option<ClusterReport> {
        self.ask_member(ClusterSignal::Report).await
    }

    /// Whether this node could hand over the lead now; none as in [`Self::cluster_report`].
    pub async fn check_hand_over(&self) -> Option<Result<(), HandOverRefusal>> {
        self.ask_member(ClusterSignal::CheckHandOver).await
    }

    /// Gives up the lead for another node; none as in [`Self::cluster_report`].
    pub async fn hand_over(&self) -> Option<Result<(), HandOverRefusal>> {
        self.ask_member(ClusterSignal::HandOver).await
    }

    async fn ask_member<T>(&self, signal: impl FnOnce(oneshot::Sender<T>) -> ClusterSignal) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.signals.send(Signal::Cluster(signal(reply))).ok()?;
        answer.await.ok()
    }

    /// Finishes started work and stops the engine.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.signals.send(Signal::Close(done)).is_ok() {
            let _ = closed.await;
        }
    }
}

struct Runtime {
    engine: Engine,
    store: Arc<dyn Store>,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
    driver: Arc<dyn Driver>,
    signals: mpsc::UnboundedSender<Signal>,
    replies: HashMap<RequestId, Reply>,
    next_request: u64,
    stats: Arc<EngineStats>,
    /// Calls to the store in flight.
    calls: usize,
    /// The newest revision known to be committed by these calls.
    committed_to: Revision,
    /// Watched batches that may be this process's own commits.
    watched: VecDeque<Batch>,
    /// The engine has every commit up to this revision.
    complete_to: Revision,
    clock_watch: ClockWatch,
    /// In a cluster.
    member: Option<Member>,
}

/// Starts the engine's task and the task that follows the store's watch. `effects` are those of the engine's
/// construction; `driver` runs commands.
pub fn start(
    engine: Engine,
    effects: Vec<Effect>,
    store: Arc<dyn Store>,
    revision: Revision,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
    driver: Arc<dyn Driver>,
) -> EngineHandle {
    start_node((engine, effects), store, revision, views, clock, driver, None)
}

/// Like [`start`], for a node of a cluster if there is a membership.
pub fn start_node(
    (engine, effects): (Engine, Vec<Effect>),
    store: Arc<dyn Store>,
    revision: Revision,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
    driver: Arc<dyn Driver>,
    membership: Option<Membership>,
) -> EngineHandle {
    let (requests, take_requests) = mpsc::channel(REQUESTS_MAX);
    let (signals, take_signals) = mpsc::unbounded_channel();
    let stats = Arc::new(EngineStats::default());
    stats.revision.set(revision.0);
    let reading = ClockReading { wall: clock.now(), since_boot: clock.since_boot() };
    let member = membership.map(|membership| {
        let signals = signals.clone();
        let send = Arc::new(move |signal| signals.send(Signal::Cluster(signal)).is_ok());
        Member::new(membership, revision, Arc::clone(&store), send, reading)
    });
    if member.is_none() {
        tokio::spawn(watch_store(Arc::clone(&store), revision, signals.clone()));
    }
    let mut runtime = Runtime {
        engine,
        store,
        views,
        clock,
        driver,
        signals: signals.clone(),
        replies: HashMap::new(),
        next_request: 0,
        stats: Arc::clone(&stats),
        calls: 0,
        committed_to: revision,
        watched: VecDeque::new(),
        complete_to: revision,
        clock_watch: ClockWatch::new(reading),
        member,
    };
    runtime.report_clock_hold(SignedDuration::ZERO, reading.wall);
    let mut effect_batch = EffectBatch::default();
    effects.into_iter().for_each(|effect| effect_batch.add(effect));
    runtime.apply(effect_batch);
    tokio::spawn(runtime.run(take_requests, take_signals));
    EngineHandle { requests, signals, stats }
}

/// Inputs that are handled together.
#[derive(Default)]
struct Pass {
    /// Outcomes of commits.
    committed: Vec<Committed>,
    /// Number of store calls that returned these outcomes.
    calls: usize,
    /// Batches from the store's watch.
    watched: Vec<Batch>,
    /// A snapshot that replaces older batches.
    snapshot: Option<(Revision, Vec<(Key, Versioned)>)>,
    /// Signals of a node of a cluster, in order.
    cluster: Vec<ClusterSignal>,
    /// All other inputs, in order.
    others: Vec<Input>,
    /// Queries; they run after all inputs of the pass.
    queries: Vec<Query>,
    /// Answered when the engine has closed.
    close: Option<oneshot::Sender<()>>,
}

/// The effects of a pass, grouped by kind, in order.
#[derive(Default)]
struct EffectBatch {
    commits: Vec<(JobId, Txn)>,
    publication: Option<Publication>,
    driver_commands: Vec<DriverCommand>,
    answers: Vec<(RequestId, Result<Answer, Failure>)>,
    needs_snapshot: bool,
}

impl EffectBatch {
    fn add(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(id, txn) => self.commits.push((id, txn)),
            Effect::Publish(next) => match &mut self.publication {
                Some(publication) => publication.append(next),
                None => self.publication = Some(next),
            },
            Effect::Run(run) => self.driver_commands.push(DriverCommand::Run(run)),
            Effect::Stop(command) => self.driver_commands.push(DriverCommand::Stop(command)),
            Effect::Answer(id, answer) => self.answers.push((id, answer)),
            Effect::Resync => self.needs_snapshot = true,
        }
    }
}

/// Effects for the driver.
enum DriverCommand {
    Run(Box<DriverRun>),
    Stop(CommandId),
}

impl Pass {
    fn add(&mut self, signal: Signal) {
        match signal {
            Signal::Committed(outcomes) => {
                self.calls += 1;
                self.committed.extend(outcomes);
            }
            Signal::Watched(batch) => self.watched.push(batch),
            Signal::Snapshot(revision, records) => self.snapshot = Some((revision, records)),
            Signal::Input(input) => self.others.push(input),
            Signal::Cluster(signal) => self.cluster.push(signal),
            Signal::Ping(pong) => {
                // Fails if the caller is gone.
                let _ = pong.send(());
            }
            Signal::Close(done) => self.close = Some(done),
        }
    }

    fn len(&self) -> usize {
        self.committed.len()
            + self.watched.len()
            + self.cluster.len()
            + self.others.len()
            + self.queries.len()
    }
}

impl Runtime {
    async fn run(
        mut self,
        mut requests: mpsc::Receiver<EngineRequest>,
        mut signals: mpsc::UnboundedReceiver<Signal>,
    ) {
        let mut moves = self.clock.moves();
        loop {
            let wait = self.time_until_due();
            let mut pass = Pass::default();
            tokio::select! {
                biased;
                signal = signals.recv() => match signal {
                    Some(signal) => pass.add(signal),
                    None => return,
                },
                Some(request) = requests.recv() => self.accept(request, &mut pass),
                () = sleep(wait) => pass.others.push(Input::Tick),
                () = clock::moved(&mut moves) => pass.others.push(Input::Tick),
            }
            // A wake-up would run this task at once for a single input. Yield first, so that requests of other ready
            // tasks join the same pass.
            tokio::task::yield_now().await;
            while pass.len() < PASS_INPUTS_MAX && pass.close.is_none() {
                if let Ok(signal) = signals.try_recv() {
                    pass.add(signal);
                } else if let Ok(request) = requests.try_recv() {
                    self.accept(request, &mut pass);
                } else {
                    break;
                }
            }
            let close = pass.close.take();
            self.handle(pass);
            if let Some(done) = close {
                self.close(requests, signals).await;
                let _ = done.send(());
                return;
            }
        }
    }

    /// Refuses further requests and waits for commits in flight.
    async fn close(
        &mut self,
        mut requests: mpsc::Receiver<EngineRequest>,
        mut signals: mpsc::UnboundedReceiver<Signal>,
    ) {
        requests.close();
        let mut pass = Pass::default();
        while let Some(request) = requests.recv().await {
            self.accept(request, &mut pass);
        }
        // No more polls arrive: store the poll times recorded so far.
        pass.others.push(Input::Closing);
        self.handle(pass);
        let finished = tokio::time::timeout(CLOSING_GRACE, async {
            while !self.engine.is_idle() {
                let Some(signal) = signals.recv().await else { return };
                let mut pass = Pass::default();
                pass.add(signal);
                self.handle(pass);
            }
        });
        let is_finished = finished.await.is_ok();
        self.hand_over(&mut signals).await;
        if !is_finished {
            tracing::warn!(
                "commands did not finish within the grace period: their callers get outcome unknown"
            );
        }
    }

    /// Hands the lead of the cluster over, and says in the last heartbeat that this node stops.
    async fn hand_over(&mut self, signals: &mut mpsc::UnboundedReceiver<Signal>) {
        if self.member.is_none() {
            return;
        }
        let mut pass = Pass::default();
        pass.add(Signal::Cluster(ClusterSignal::Close));
        self.handle(pass);
        // Without it, others take the lead after 4 s.
        let _ = tokio::time::timeout(HAND_OVER_GRACE, async {
            while self.member.as_ref().is_some_and(Member::is_writing) {
                let Some(signal) = signals.recv().await else { return };
                let mut pass = Pass::default();
                pass.add(signal);
                self.handle(pass);
            }
        })
        .await;
    }

    fn accept(&mut self, request: EngineRequest, pass: &mut Pass) {
        match request {
            EngineRequest::Change(request, reply) => {
                let id = RequestId(self.next_request);
                self.next_request += 1;
                self.replies.insert(id, reply);
                pass.others.push(Input::Request(id, request));
            }
            EngineRequest::Query(query) => pass.queries.push(query),
        }
    }

    fn handle(&mut self, mut pass: Pass) {
        let now = self.clock.now();
        let queries = std::mem::take(&mut pass.queries);
        let reading = ClockReading { wall: now, since_boot: self.clock.since_boot() };
        let inputs: Vec<Input> = match self.member.take() {
            None => self.inputs(pass).collect(),
            Some(mut member) => {
                let inputs = self.inputs_of_member(&mut member, pass, reading);
                self.engine.set_level(member.write_level());
                self.member = Some(member);
                inputs
            }
        };
        let change = self.clock_watch.read(reading, self.engine.is_clock_held());
        if change.is_none() {
            self.engine.note_booted_at(reading.booted_at());
        }
        let inputs = change.map(Input::Clock).into_iter().chain(inputs);
        let mut effect_batch = EffectBatch::default();
        let repaired_before = self.engine.repaired_records();
        self.engine.handle_all(inputs, now).into_iter().for_each(|effect| effect_batch.add(effect));
        if let Some(member) = &mut self.member {
            member.count_differences(self.engine.repaired_records() - repaired_before);
        }
        let jumped_by = match change {
            Some(ClockNews::Jumped(by)) => by,
            Some(ClockNews::Settled) | None => SignedDuration::ZERO,
        };
        self.report_clock_hold(jumped_by, now);
        self.stats.report_unreadable(self.engine.unreadable());
        self.stats.host_operations_waiting.set(self.engine.host_operations_blocked() as u64);
        self.apply(effect_batch);
        queries.into_iter().for_each(|query| query(&self.engine, now));
    }

    /// Logs when a clock hold begins or ends, and when the clock jumps again.
    fn report_clock_hold(&self, jumped_by: SignedDuration, now: Timestamp) {
        let before = self.stats.clock_hold();
        let Some(events) = self.engine.events_held() else {
            if before.is_some() {
                self.stats.clock_hold.store(None);
                tracing::info!("clock is trusted again");
            }
            return;
        };
        if before.is_some() && jumped_by.is_zero() {
            return;
        }
        let total_before = before.as_ref().and_then(|hold| hold.jumped_by).unwrap_or_default();
        let since = before.as_ref().map_or(now, |hold| hold.since);
        let jumped_by = (!jumped_by.is_zero()).then(|| total_before.saturating_add(jumped_by));
        let hold = HeldClock { since, jumped_by, events };
        tracing::warn!(
            events,
            "the clock is not trusted: {}; existing events do not start or end by time for 5 min, or until 'notbefore clock accept'",
            hold.reason()
        );
        self.stats.clock_hold.store(Some(Arc::new(hold)));
    }

    /// The inputs of a pass in the engine's order. Watched batches follow the outcomes of commits: the store shows a
    /// commit before it answers it, and the engine must know its own commits first.
    fn inputs(&mut self, pass: Pass) -> impl Iterator<Item = Input> + use<> {
        let Pass { committed, calls, watched, snapshot, cluster: _, others, queries: _, close: _ } = pass;
        self.calls = self.calls.saturating_sub(calls);
        for one in &committed {
            if let Outcome::Committed(revision) = &one.outcome {
                self.committed_to = self.committed_to.max(*revision);
            }
        }
        self.watched.extend(watched);
        let known = match self.calls {
            0 => self.watched.len(),
            _ => self.watched.partition_point(|batch| batch.revision <= self.committed_to),
        };
        let known: Vec<Batch> = self.watched.drain(..known).collect();
        // The engine skips the batches that the snapshot has.
        let complete =
            known.last().map(|batch| batch.revision).max(snapshot.as_ref().map(|(revision, _)| *revision));
        self.complete_to = complete.unwrap_or_default().max(self.complete_to);
        let committed = committed.into_iter().map(|one| Input::Committed(one.job, one.outcome));
        let snapshot = snapshot.map(|(revision, records)| Input::Resync(revision, records));
        committed.chain(snapshot).chain(known.into_iter().map(Input::Watched)).chain(others)
    }

    /// The same for a node of a cluster. No batch waits for outcomes of commits: the engine recognises its own.
    fn inputs_of_member(&mut self, member: &mut Member, pass: Pass, now: ClockReading) -> Vec<Input> {
        let mut inputs = member.tick(now);
        for Committed { job, fence, outcome } in pass.committed {
            inputs.push(Input::Committed(job, outcome.clone()));
            inputs.extend(member.committed(fence, &outcome, now));
        }
        for signal in pass.cluster {
            inputs.extend(member.take(signal, now));
        }
        self.complete_to = member.seen();
        inputs.extend(pass.others);
        inputs
    }

    /// Carries out the effects of one pass. Commits start first; then durable changes are published; commands and
    /// answers, which rely on publication, come last.
    fn apply(&mut self, effect_batch: EffectBatch) {
        let EffectBatch { commits, publication, driver_commands, answers, needs_snapshot } = effect_batch;
        if needs_snapshot && let Some(member) = &mut self.member {
            let reading = ClockReading { wall: self.clock.now(), since_boot: self.clock.since_boot() };
            member.distrust(reading);
        }
        self.commit(commits);
        if let Some(publication) = publication {
            self.views.set_shown_to(self.complete_to);
            self.views.publish(publication, self.clock.now());
        }
        self.views.set_complete_to(self.complete_to);
        for command in driver_commands {
            self.dispatch(command);
        }
        for (id, answer) in answers {
            if let Some(reply) = self.replies.remove(&id) {
                // Fails if the caller is gone; the change stays.
                let _ = reply.send(answer);
            }
        }
    }

    /// Sends transactions to the store; their outcomes return as signals. Transactions of one call are committed in
    /// order, but calls may overtake each other. That is safe: the engine never has two in flight that compare the same
    /// record.
    fn commit(&mut self, commits: Vec<(JobId, Txn)>) {
        let mut commits = commits.into_iter().peekable();
        while commits.peek().is_some() {
            let (ids, txns): (Vec<_>, Vec<_>) = commits.by_ref().take(self.store.commit_batch_max()).unzip();
            let (store, signals) = (Arc::clone(&self.store), self.signals.clone());
            let stats = Arc::clone(&self.stats);
            self.calls += 1;
            tokio::spawn(async move {
                let writes: Vec<bool> = txns.iter().map(Txn::writes).collect();
                let fences: Vec<_> = txns.iter().map(fence_of).collect();
                let sent = Stopwatch::start();
                let outcomes = store.commit_all(txns).await;
                if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Committed(_))) {
                    stats.commit_seconds.observe(sent.elapsed());
                }
                outcomes.iter().zip(writes).for_each(|(outcome, writes)| stats.record(outcome, writes));
                let committed = ids.into_iter().zip(fences).zip(outcomes);
                let committed = committed.map(|((job, fence), outcome)| Committed { job, fence, outcome });
                let _ = signals.send(Signal::Committed(committed.collect()));
            });
        }
    }

    fn dispatch(&self, command: DriverCommand) {
        match command {
            DriverCommand::Run(run) => {
                let signals = self.signals.clone();
                let report = Report::new(run.id, move |report| {
                    // Fails if the engine is closed; the next process runs the command again.
                    let _ = signals.send(Signal::Input(Input::Ran(report)));
                });
                self.driver.run(*run, report);
            }
            DriverCommand::Stop(command) => self.driver.stop(command),
        }
    }

    fn time_until_due(&self) -> Duration {
        let now = self.clock.now();
        let due = self.engine.next_due().map(|due| due.duration_since(now));
        let wait = match due.map(Duration::try_from) {
            Some(Ok(wait)) => wait.min(TICK_MAX),
            // Already overdue.
            Some(Err(_)) => Duration::ZERO,
            None => TICK_MAX,
        };
        let reading = || ClockReading { wall: now, since_boot: self.clock.since_boot() };
        self.member.as_ref().map_or(wait, |member| wait.min(member.time_until_due(reading())))
    }
}

/// Sleeps; returns at once for a zero duration, which tokio's timer rounds up to a millisecond.
async fn sleep(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

/// Passes every commit to the engine. On one node these are its own, except those whose outcome was unknown. If the
/// watch has fallen behind the store's log, a snapshot replaces the commits that are missing.
async fn watch_store(store: Arc<dyn Store>, mut after: Revision, signals: mpsc::UnboundedSender<Signal>) {
    loop {
        let pass = |batch| match signals.send(Signal::Watched(batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let Followed::Compacted { seen, oldest } = follow_commits(&*store, after, || (), pass).await else {
            return;
        };
        tracing::warn!(after = %seen, %oldest, "fell behind the store: reading all records again");
        match snapshot_for_engine(&*store).await {
            Ok((revision, records)) => {
                after = revision;
                if signals.send(Signal::Snapshot(revision, records)).is_err() {
                    return;
                }
            }
            // A record that is missing because of damage must not count as removed.
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::error!(%error, "fell behind the store: commits in between were missed");
                after = oldest;
            }
            Err(error @ (ReadError::Unavailable(_) | ReadError::Compacted)) => {
                tracing::warn!(%error, "cannot read the store: retrying");
                after = seen;
                sleep(SNAPSHOT_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use notbefore_core::{Actor, Settings, samples};
    use notbefore_engine::{AddVm, EngineSettings, VmSpec};
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Snapshot, Watch, WatchError};

    use super::*;
    use crate::clock::SystemClock;
    use crate::driver::NoCommand;

    /// A store that counts calls.
    struct CountingStore {
        store: MemoryStore,
        calls: AtomicU64,
    }

    #[async_trait::async_trait]
    impl Store for CountingStore {
        async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
            self.store.snapshot().await
        }

        async fn commit(&self, txn: Txn) -> Outcome {
            self.store.commit(txn).await
        }

        async fn commit_all(&self, txns: Vec<Txn>) -> Vec<Outcome> {
            self.calls.fetch_add(1, Relaxed);
            self.store.commit_all(txns).await
        }

        fn commit_batch_max(&self) -> usize {
            self.store.commit_batch_max()
        }

        async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.store.watch(after).await
        }
    }

    fn engine() -> (Engine, Vec<Effect>) {
        let settings = EngineSettings { domain: Settings::default(), node: "n".into() };
        Engine::new(settings, Vec::new(), Revision(0), SystemClock.now()).unwrap()
    }

    #[test]
    fn watched_batches_wait_for_commits_in_flight() {
        let mut runtime = Runtime {
            engine: engine().0,
            store: Arc::new(MemoryStore::new()),
            views: Arc::new(Views::new(false)),
            clock: Arc::new(SystemClock),
            driver: Arc::new(NoCommand),
            signals: mpsc::unbounded_channel().0,
            replies: HashMap::new(),
            next_request: 0,
            stats: Arc::default(),
            calls: 2,
            committed_to: Revision(0),
            watched: VecDeque::new(),
            complete_to: Revision(0),
            clock_watch: ClockWatch::new(ClockReading {
                wall: Timestamp::UNIX_EPOCH,
                since_boot: Duration::ZERO,
            }),
            member: None,
        };
        let kinds = |inputs: Vec<Input>| -> Vec<String> {
            let kind = |input| match input {
                Input::Committed(_, outcome) => format!("{outcome:?}"),
                Input::Watched(batch) => format!("watched {}", batch.revision),
                Input::Request(..)
                | Input::Polled(..)
                | Input::PollsForgotten(_)
                | Input::PollsComplete(_)
                | Input::Ran(_)
                | Input::Tick
                | Input::Clock(_)
                | Input::Role(_)
                | Input::Resync(..)
                | Input::Closing => "other".to_owned(),
            };
            inputs.into_iter().map(kind).collect()
        };
        let mut pass = |watched: &[u64], committed: &[u64]| {
            let mut pass = Pass::default();
            for revision in watched {
                pass.add(Signal::Watched(Batch { revision: Revision(*revision), changes: [].into() }));
            }
            for revision in committed {
                let outcome = Outcome::Committed(Revision(*revision));
                pass.add(Signal::Committed(vec![Committed { job: JobId(0), fence: None, outcome }]));
            }
            kinds(runtime.inputs(pass).collect())
        };
        assert_eq!(pass(&[1, 2], &[]), Vec::<String>::new(), "they may be this process's own commits");
        assert_eq!(pass(&[], &[1]), ["Committed(Revision(1))", "watched 1"]);
        assert_eq!(pass(&[3], &[3]), ["Committed(Revision(3))", "watched 2", "watched 3"]);
        assert_eq!(pass(&[4], &[]), ["watched 4"], "no call is in flight: another process made it");
    }

    #[tokio::test]
    async fn concurrent_requests_share_commits_and_read_their_writes() {
        const MANY: u128 = 200;
        let store = Arc::new(CountingStore { store: MemoryStore::new(), calls: AtomicU64::new(0) });
        let clock = Arc::new(SystemClock);
        let (engine, effects) = engine();
        let views = Arc::new(Views::new(false));
        let kept = Arc::clone(&store) as Arc<dyn Store>;
        let driver = Arc::new(NoCommand);
        let handle = start(engine, effects, kept, Revision(0), Arc::clone(&views), clock, driver);

        let add = async |n: u128| {
            let vm = VmSpec::with_defaults(samples::vm(n), format!("vm-{n}").parse().unwrap());
            let path = format!("scope-{n}").parse().unwrap();
            let add = AddVm { path, kind: None, vm };
            handle.ask(Request::new(Actor::Service, add)).await.unwrap();
            assert!(views.newest().scope_of(samples::vm(n)).is_some(), "vm-{n} is not visible");
        };
        join_all((1..=MANY).map(add)).await;
        let calls = store.calls.load(Relaxed);
        assert!(calls < 20, "{MANY} concurrent commands took {calls} commits");
        handle.close().await;
        assert_eq!(handle.stats().commits.get(), store.snapshot().await.unwrap().revision().0);
    }

    #[test]
    fn ping_is_answered_by_engine_task() {
        let (requests, _) = mpsc::channel(1);
        let (signals, mut taken) = mpsc::unbounded_channel();
        let handle = EngineHandle { requests, signals, stats: Arc::default() };
        let mut ping = Box::pin(handle.ping());
        assert_eq!(ping.as_mut().now_or_never(), None, "the task has not handled it");
        let Ok(Signal::Ping(pong)) = taken.try_recv() else { panic!("no signal was sent") };
        pong.send(()).unwrap();
        assert_eq!(ping.now_or_never(), Some(true));
        drop(taken);
        assert_eq!(handle.ping().now_or_never(), Some(false), "a closed engine does not answer");
    }
}
