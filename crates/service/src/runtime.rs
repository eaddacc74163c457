//! The runtime around the engine: one task that feeds it inputs and carries out its effects, in order.
//!
//! The engine decides, this task does. It owns the engine; everybody else holds an [`EngineHandle`] and
//! waits for an answer. Commits run beside it and come back as inputs. Sleeping is cut into short pieces, so
//! that a clock that is set forward is noticed within a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use notbefore_core::ScopeId;
use notbefore_engine::{Answer, CommitId, DriverReport, Effect, Engine, Failure, Input, Request, RequestId};
use notbefore_store::{Batch, Outcome, Refusal, Revision, Store, WatchError};
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::driver::{Driver, Report};
use crate::view::Views;

/// How many requests may wait to be taken up; beyond that, whoever asks waits to be heard.
const REQUESTS_MAX: usize = 4_096;
/// The longest sleep: how late a clock that was set forward is noticed.
const NAP_MAX: Duration = Duration::from_millis(500);
/// How long a closing engine has to finish what it has begun.
const CLOSING_GRACE: Duration = Duration::from_secs(10);

type Reply = oneshot::Sender<Result<Answer, Failure>>;

/// What reaches the engine from within.
enum Signal {
    Committed(CommitId, Outcome),
    Watched(Batch),
    Heard(ScopeId, Timestamp),
    Ran(DriverReport),
    Ping(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// How to reach the engine.
#[derive(Clone)]
pub struct EngineHandle {
    requests: mpsc::Sender<(Box<Request>, Reply)>,
    signals: mpsc::UnboundedSender<Signal>,
    stats: Arc<EngineStats>,
}

/// What the runtime counts.
#[derive(Debug, Default)]
pub struct EngineStats {
    commits: AtomicU64,
    conflicts: AtomicU64,
    failures: AtomicU64,
    trouble: ArcSwapOption<String>,
    revision: AtomicU64,
}

impl EngineStats {
    /// Transactions that became durable.
    pub fn commits(&self) -> u64 {
        self.commits.load(Relaxed)
    }

    /// Transactions that found something else than they expected.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Relaxed)
    }

    /// Transactions that the store refused or whose outcome is unknown.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Whether the store took the last transaction that it was given.
    pub fn store_is_well(&self) -> bool {
        self.trouble.load().is_none()
    }

    /// Why the store did not take the last transaction that it was given, if it did not.
    pub fn store_trouble(&self) -> Option<Arc<String>> {
        self.trouble.load_full()
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision.load(Relaxed)
    }

    /// Notes what became of a transaction. One that writes nothing says nothing about whether the store can.
    fn note(&self, outcome: &Outcome, writes: bool) {
        match outcome {
            Outcome::Committed(revision) if writes => {
                self.commits.fetch_add(1, Relaxed);
                self.revision.fetch_max(revision.0, Relaxed);
                if self.trouble.swap(None).is_some() {
                    tracing::info!("the store writes again");
                }
            }
            Outcome::Committed(_) => {}
            Outcome::Conflict(_) => {
                self.conflicts.fetch_add(1, Relaxed);
            }
            Outcome::Refused(Refusal::Unavailable(why)) | Outcome::Unknown(why) => {
                self.failures.fetch_add(1, Relaxed);
                // It is tried every second while it lasts; once is enough to say.
                let before = self.trouble.swap(Some(Arc::new(why.clone())));
                if before.is_none_or(|before| *before != *why) {
                    tracing::error!(%why, "the store does not write; guests go on polling, changes are refused");
                }
            }
            Outcome::Refused(
                refusal @ (Refusal::TooManyOperations { .. }
                | Refusal::ValueTooLarge { .. }
                | Refusal::TxnTooLarge { .. }),
            ) => {
                self.failures.fetch_add(1, Relaxed);
                tracing::error!(%refusal, "the store refused a transaction; nothing was written");
            }
        }
    }
}

impl EngineHandle {
    /// Asks for something and waits for the answer.
    pub async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        let (reply, answer) = oneshot::channel();
        let closing = || Failure::Unavailable("the service is shutting down".to_owned());
        self.requests.send((Box::new(request), reply)).await.map_err(|_| closing())?;
        // A request that was taken up and never answered may have taken effect.
        answer.await.unwrap_or_else(|_| Err(Failure::OutcomeUnknown("the service was shut down".to_owned())))
    }

    /// Tells the engine that a guest of a scope has asked for its document.
    pub fn heard(&self, scope: ScopeId, at: Timestamp) {
        // A closed engine has no use for it.
        let _ = self.signals.send(Signal::Heard(scope, at));
    }

    /// Comes back when the engine's task has come round to it: a sign of life of the task itself, whatever the
    /// store does. Answers false once the engine is closed.
    pub async fn ping(&self) -> bool {
        let (pong, answer) = oneshot::channel();
        self.signals.send(Signal::Ping(pong)).is_ok() && answer.await.is_ok()
    }

    /// What the runtime counts.
    pub fn stats(&self) -> &EngineStats {
        &self.stats
    }

    /// Lets the engine finish what it has begun, and stops it.
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
}

/// Starts the engine's task and the one that follows the store; `effects` are what the engine's making
/// asked for, `driver` runs commands.
pub fn start(
    engine: Engine,
    effects: Vec<Effect>,
    store: Arc<dyn Store>,
    revision: Revision,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
    driver: Arc<dyn Driver>,
) -> EngineHandle {
    let (requests, take_requests) = mpsc::channel(REQUESTS_MAX);
    let (signals, take_signals) = mpsc::unbounded_channel();
    let stats = Arc::new(EngineStats::default());
    stats.revision.store(revision.0, Relaxed);
    tokio::spawn(follow(Arc::clone(&store), revision, signals.clone()));
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
    };
    runtime.carry_out(effects);
    tokio::spawn(runtime.run(take_requests, take_signals));
    EngineHandle { requests, signals, stats }
}

impl Runtime {
    async fn run(
        mut self,
        mut requests: mpsc::Receiver<(Box<Request>, Reply)>,
        mut signals: mpsc::UnboundedReceiver<Signal>,
    ) {
        loop {
            let nap = self.until_due();
            let input = tokio::select! {
                biased;
                signal = signals.recv() => match signal {
                    Some(Signal::Committed(id, outcome)) => Input::Committed(id, outcome),
                    Some(Signal::Watched(batch)) => Input::Watched(batch),
                    Some(Signal::Heard(scope, at)) => Input::Heard(scope, at),
                    Some(Signal::Ran(report)) => Input::Ran(report),
                    Some(Signal::Ping(pong)) => {
                        let _ = pong.send(());
                        continue;
                    }
                    Some(Signal::Close(done)) => {
                        self.close(requests, signals).await;
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                Some((request, reply)) = requests.recv() => self.take_up(request, reply),
                () = tokio::time::sleep(nap) => Input::Tick,
            };
            self.handle(input);
        }
    }

    /// Takes no further requests and waits for the commits of those there are.
    async fn close(
        &mut self,
        mut requests: mpsc::Receiver<(Box<Request>, Reply)>,
        mut signals: mpsc::UnboundedReceiver<Signal>,
    ) {
        requests.close();
        while let Some((request, reply)) = requests.recv().await {
            let input = self.take_up(request, reply);
            self.handle(input);
        }
        let finished = tokio::time::timeout(CLOSING_GRACE, async {
            while !self.engine.is_idle() {
                match signals.recv().await {
                    Some(Signal::Committed(id, outcome)) => self.handle(Input::Committed(id, outcome)),
                    Some(Signal::Watched(batch)) => self.handle(Input::Watched(batch)),
                    Some(Signal::Ran(report)) => self.handle(Input::Ran(report)),
                    Some(Signal::Ping(pong)) => {
                        let _ = pong.send(());
                    }
                    Some(Signal::Heard(..) | Signal::Close(_)) => {}
                    None => return,
                }
            }
        });
        if finished.await.is_err() {
            tracing::warn!(
                "some commands did not finish in time; their callers are told that the outcome is unknown"
            );
        }
    }

    fn take_up(&mut self, request: Box<Request>, reply: Reply) -> Input {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        self.replies.insert(id, reply);
        Input::Request(id, request)
    }

    fn handle(&mut self, input: Input) {
        let effects = self.engine.handle(input, self.clock.now());
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(id, txn) => {
                    let (store, signals) = (Arc::clone(&self.store), self.signals.clone());
                    let stats = Arc::clone(&self.stats);
                    tokio::spawn(async move {
                        let writes = !(txn.put.is_empty() && txn.delete.is_empty());
                        let outcome = store.commit(txn).await;
                        stats.note(&outcome, writes);
                        let _ = signals.send(Signal::Committed(id, outcome));
                    });
                }
                Effect::Publish(publication) => self.views.publish(publication, self.clock.now()),
                Effect::Run(run) => {
                    let signals = self.signals.clone();
                    let report = Report::new(run.id, move |report| {
                        // A closed engine has no use for it; the next one runs the command again.
                        let _ = signals.send(Signal::Ran(report));
                    });
                    self.driver.run(*run, report);
                }
                Effect::Stop(command) => self.driver.stop(command),
                Effect::Answer(id, answer) => {
                    if let Some(reply) = self.replies.remove(&id) {
                        // Whoever asked may have gone; what was done stays done.
                        let _ = reply.send(answer);
                    }
                }
            }
        }
    }

    fn until_due(&self) -> Duration {
        let due = self.engine.next_due().map(|due| due.duration_since(self.clock.now()));
        match due.map(Duration::try_from) {
            Some(Ok(wait)) => wait.min(NAP_MAX),
            // Overdue already.
            Some(Err(_)) => Duration::ZERO,
            None => NAP_MAX,
        }
    }
}

/// Shows the engine every commit. On one node they are its own, but for those whose outcome was unknown.
async fn follow(store: Arc<dyn Store>, mut after: Revision, signals: mpsc::UnboundedSender<Signal>) {
    loop {
        let mut watch = match store.watch(after).await {
            Ok(watch) => watch,
            Err(WatchError::Compacted { oldest }) => {
                tracing::error!(%after, %oldest, "fell behind the store; commits in between were not seen");
                after = oldest;
                continue;
            }
            Err(WatchError::Closed) => return,
        };
        loop {
            match watch.next().await {
                Ok(batch) => {
                    after = batch.revision;
                    if signals.send(Signal::Watched(batch)).is_err() {
                        return;
                    }
                }
                Err(WatchError::Compacted { .. }) => break,
                Err(WatchError::Closed) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_sign_of_life_comes_from_the_task_alone() {
        let (requests, _) = mpsc::channel(1);
        let (signals, mut taken) = mpsc::unbounded_channel();
        let handle = EngineHandle { requests, signals, stats: Arc::default() };
        let mut ping = Box::pin(handle.ping());
        assert_eq!(ping.as_mut().now_or_never(), None, "the task has not come round to it");
        let Ok(Signal::Ping(pong)) = taken.try_recv() else { panic!("nothing was asked of the task") };
        pong.send(()).unwrap();
        assert_eq!(ping.now_or_never(), Some(true));
        drop(taken);
        assert_eq!(handle.ping().now_or_never(), Some(false), "a closed engine gives none");
    }
}
