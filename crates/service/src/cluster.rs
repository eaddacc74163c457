//! A node of a cluster: drives the leadership machine and the watch follower for the engine's runtime.
//!
//! The machines decide ([`notbefore_engine::cluster`]); a [`Member`] carries out what they ask for. It opens watches,
//! loads snapshots and writes heartbeats in tasks of their own, and their results return as [`ClusterSignal`]s. The
//! runtime calls [`Member::tick`] before each pass: a process that stood still finds out first that it lost the lead.
//!
//! What the node knows of the cluster is in [`Standing`], for all other parts of the service.

pub mod etcd_status;
pub mod join;
pub mod joined;
pub mod monitor;
pub(crate) mod overview;
pub mod readiness;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use notbefore_engine::cluster::freshness::Freshness;
use notbefore_engine::cluster::leadership::{self, ClusterWrite, Leadership};
use notbefore_engine::cluster::{
    Action, CLUSTER, ClockOffset, ClusterReport, FenceNews, HandOverRefusal, Leader, NodeIdentity,
    ResyncReason, Role, StepDown, WatchEvent, WatchFollower,
};
use notbefore_engine::{ClockReading, Input, records};
use notbefore_listener::log_limit::LogRateLimit;
use notbefore_store::{Key, Outcome, ReadError, Revision, Store, Txn, Versioned, WatchLog, check};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use self::monitor::ClusterStats;
use crate::clock::Stopwatch;
use crate::exec::lease::LEASE;
use crate::follow::{Followed, follow_commits, snapshot_for_engine};
use crate::leveled_store::WriteLevel;

/// Interval of attempts to open a watch, and to load a snapshot.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// Interval of lines of the log about snapshots that cannot be loaded.
const LOG_LOADS_EVERY: Duration = Duration::from_secs(10);

/// What a node knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub me: NodeIdentity,
    pub role: Role,
    /// The revision at which this node took the lead, if it leads. The fence rises with each rewrite, this does not.
    pub term: Option<Revision>,
    /// By the newest record that this node has seen. It may be an earlier process of this node.
    pub leader: Option<Leader>,
    /// The other nodes that run, as `name~epoch`.
    pub living: Vec<String>,
    /// Whether this node's watch works, so that its views are up to date.
    pub is_ready: bool,
    /// This node has shown all commits before this time, by the monotonic clock.
    pub watched_at: Option<Duration>,
    /// The store is read and takes no heartbeats of this node: it has reached its quota, or the node may not write.
    pub is_read_only: bool,
    /// If another process has this node's name: the URL of its node listener. This process must end.
    pub name_taken_by: Option<String>,
    /// The records of the cluster were deleted from the store. This process must end.
    pub are_records_deleted: bool,
}

impl Standing {
    /// A node that follows, and knows nothing of the others yet.
    pub fn new(me: NodeIdentity) -> Self {
        Self {
            me,
            role: Role::Follow,
            term: None,
            leader: None,
            living: Vec::new(),
            is_ready: false,
            watched_at: None,
            is_read_only: false,
            name_taken_by: None,
            are_records_deleted: false,
        }
    }
}

/// Inputs from the tasks of a member.
pub enum ClusterSignal {
    /// Of the watch with this number.
    Watch(u64, WatchEvent),
    Loaded(Result<(Revision, Vec<(Key, Versioned)>), ReadError>),
    Wrote(ClusterWrite, Outcome),
    /// The newest revision of the store.
    Newest(Result<Revision, ReadError>),
    Fence(FenceNews),
    /// Asks what the node knows of all nodes.
    Report(oneshot::Sender<ClusterReport>),
    /// Asks whether the lead could be handed over.
    CheckHandOver(oneshot::Sender<Result<(), HandOverRefusal>>),
    /// An operator asks the node to give up the lead.
    HandOver(oneshot::Sender<Result<(), HandOverRefusal>>),
    /// The node stops: it hands the lead over.
    Close,
}

/// Sends signals to the runtime. Returns false when it has ended.
pub type SendSignal = Arc<dyn Fn(ClusterSignal) -> bool + Send + Sync>;

/// What the runtime needs to be a node of a cluster.
pub struct Membership {
    pub identity: NodeIdentity,
    /// The revision of the record under the node's name when it was found to be free.
    pub found: Option<Revision>,
    /// The records of the cluster in the snapshot with which the engine starts.
    pub records: Vec<(Key, Versioned)>,
    pub repair_every: Duration,
    /// For [`crate::fenced_store::FencedStore`].
    pub role: watch::Sender<Role>,
    pub standing: watch::Sender<Standing>,
    /// The end of the lease of commands.
    pub lease: watch::Sender<Duration>,
    /// Gets every commit that the node watches, for other readers.
    pub watch_log: WatchLog,
    pub stats: Arc<ClusterStats>,
    /// For [`crate::leveled_store::LeveledStore`].
    pub level: Arc<WriteLevel>,
}

/// See the module docs.
pub struct Member {
    leadership: Leadership,
    follower: WatchFollower,
    store: Arc<dyn Store>,
    send: SendSignal,
    role: watch::Sender<Role>,
    standing: watch::Sender<Standing>,
    lease: watch::Sender<Duration>,
    watch_log: WatchLog,
    stats: Arc<ClusterStats>,
    level: Arc<WriteLevel>,
    /// Why the snapshot was loaded that the engine gets next.
    installed: Option<ResyncReason>,
    /// See [`Standing::term`].
    term: Option<Revision>,
    /// The watch that is open or being opened, and its number.
    watching: Option<AbortHandle>,
    watches: u64,
    watch_retry_at: Duration,
    /// When the snapshot was requested that is being loaded.
    loading_since: Option<Duration>,
    load_retry_at: Duration,
    load_log_limit: LogRateLimit,
    freshness: Freshness,
    /// See [`Standing::watched_at`]. Of the pass before: what it has watched is published.
    watched_at: Option<Duration>,
    writes_in_flight: usize,
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
    }
}

impl Member {
    /// A node that has loaded the store at `revision`.
    pub fn new(
        membership: Membership,
        revision: Revision,
        store: Arc<dyn Store>,
        send: SendSignal,
        now: ClockReading,
    ) -> Self {
        let Membership {
            identity,
            found,
            records,
            repair_every,
            role,
            standing,
            lease,
            watch_log,
            stats,
            level,
        } = membership;
        watch_log.skip_to(revision);
        let leadership = Leadership::new(identity, found, revision, records, now);
        // Nothing is written before.
        level.begin(leadership.write_level());
        Self {
            leadership,
            follower: WatchFollower::new(revision, repair_every, now.since_boot),
            store,
            send,
            role,
            standing,
            lease,
            watch_log,
            stats,
            level,
            installed: None,
            term: None,
            watching: None,
            watches: 0,
            watch_retry_at: Duration::ZERO,
            loading_since: None,
            load_retry_at: Duration::ZERO,
            load_log_limit: LogRateLimit::every(LOG_LOADS_EVERY),
            freshness: Freshness::default(),
            watched_at: None,
            writes_in_flight: 0,
        }
    }

    /// The node has every commit up to this revision.
    pub fn seen(&self) -> Revision {
        self.follower.seen()
    }

    /// The format level at which the engine writes.
    pub fn write_level(&self) -> u32 {
        self.leadership.write_level()
    }

    /// How long the runtime may sleep.
    pub fn time_until_due(&self, now: ClockReading) -> Duration {
        self.leadership.next_due().saturating_sub(now.since_boot)
    }

    /// Sees the time. Returns inputs of the engine, as the other methods do.
    pub fn tick(&mut self, now: ClockReading) -> Vec<Input> {
        self.watched_at = self.leadership.watched_at().max(self.freshness.proven_at());
        let mut inputs = self.lead(leadership::Input::Tick, now);
        inputs.extend(self.watched(WatchEvent::Tick, now));
        self.open_watch(now);
        self.load_snapshot(now);
        if self.freshness.must_ask(self.leadership.watched_at(), now.since_boot) {
            let (store, send) = (Arc::clone(&self.store), Arc::clone(&self.send));
            tokio::spawn(async move {
                let newest = store.snapshot().await.map(|snapshot| snapshot.revision());
                send(ClusterSignal::Newest(newest));
            });
        }
        inputs
    }

    pub fn take(&mut self, signal: ClusterSignal, now: ClockReading) -> Vec<Input> {
        match signal {
            // An earlier watch has nothing to say any more.
            ClusterSignal::Watch(number, _) if number != self.watches => Vec::new(),
            ClusterSignal::Watch(_, event) => self.watched(event, now),
            ClusterSignal::Loaded(loaded) => self.loaded(loaded, now),
            ClusterSignal::Wrote(write, outcome) => {
                self.writes_in_flight = self.writes_in_flight.saturating_sub(1);
                self.lead(leadership::Input::Wrote(write, outcome), now)
            }
            ClusterSignal::Newest(newest) => {
                match self.freshness.answered(newest.ok(), self.follower.seen()) {
                    true => self.watched(WatchEvent::Incomplete, now),
                    false => Vec::new(),
                }
            }
            ClusterSignal::Fence(news) => self.fence_news(news, now),
            // Of these three, the caller may be gone.
            ClusterSignal::Report(reply) => {
                let _ = reply.send(self.leadership.report(now));
                Vec::new()
            }
            ClusterSignal::CheckHandOver(reply) => {
                let _ = reply.send(self.leadership.check_hand_over(now));
                Vec::new()
            }
            ClusterSignal::HandOver(reply) => {
                let checked = self.leadership.check_hand_over(now);
                let inputs = self.lead(leadership::Input::HandOver, now);
                let _ = reply.send(checked);
                inputs
            }
            ClusterSignal::Close => self.lead(leadership::Input::Close, now),
        }
    }

    /// The outcome of a transaction of the engine with this fence, which the engine already has.
    pub fn committed(&mut self, fence: Option<Revision>, outcome: &Outcome, now: ClockReading) -> Vec<Input> {
        match FenceNews::of(fence, outcome) {
            Some(news) => self.fence_news(news, now),
            None => Vec::new(),
        }
    }

    fn fence_news(&mut self, news: FenceNews, now: ClockReading) -> Vec<Input> {
        match news {
            FenceNews::Lost(_) => self.stats.fence_conflicts.add(),
            FenceNews::Unknown(_) => {}
        }
        self.lead(leadership::Input::Fence(news), now)
    }

    /// The engine has installed the last snapshot, and so many records were different.
    pub fn count_differences(&mut self, records: u64) {
        if let Some(reason) = self.installed.take() {
            self.stats.count_differences(reason, records);
        }
    }

    /// The engine found that its state is wrong.
    pub fn distrust(&mut self, now: ClockReading) {
        tracing::error!(
            "a commit conflicted with a record that only this node writes: reading all records again"
        );
        self.follower.handle(WatchEvent::Distrusted, now.since_boot);
    }

    fn lead(&mut self, input: leadership::Input, now: ClockReading) -> Vec<Input> {
        let mut inputs = Vec::new();
        for action in self.leadership.handle(input, now) {
            match action {
                Action::Write(write, txn) => self.write(write, txn),
                Action::Become(role) => {
                    match role.fence() {
                        Some(fence) if self.term.is_none() => {
                            tracing::info!("this node leads the cluster");
                            self.term = Some(fence);
                            // Guests may have polled other nodes, which have not said so yet.
                            inputs.push(Input::PollsComplete(false));
                        }
                        Some(_) => {}
                        None => self.term = self.term.filter(|_| role.leads()),
                    }
                    self.role.send_replace(role);
                    inputs.push(Input::Role(role));
                }
                Action::SteppedDown(reason) => {
                    self.stats.count_step_down(reason);
                    report_step_down(reason);
                }
                // The start and the end of the service wait for it in the standing.
                Action::NameTaken => {}
            }
        }
        // Before the engine gets it, which must find in the watch what it has sent.
        self.level.raise(self.leadership.write_level());
        if let Some(sent) = self.leadership.acknowledged().filter(|_| self.term.is_some()) {
            let end = sent + LEASE;
            self.lease.send_if_modified(|known| std::mem::replace(known, end) != end);
        }
        self.publish_standing(now);
        inputs
    }

    fn publish_standing(&self, now: ClockReading) {
        self.standing.send_if_modified(|standing| {
            let next = Standing {
                me: standing.me.clone(),
                role: self.leadership.role(),
                term: self.term,
                leader: self.leadership.leader().cloned(),
                living: self.leadership.living_peers(now),
                is_ready: self.leadership.is_ready(now),
                watched_at: self.watched_at,
                is_read_only: self.freshness.proven_at() > self.leadership.watched_at(),
                name_taken_by: self.leadership.name_taken_by().map(str::to_owned),
                are_records_deleted: self.leadership.are_records_deleted(),
            };
            let is_new = *standing != next;
            *standing = next;
            is_new
        });
    }

    /// Whether heartbeats and claims have no answer yet.
    pub fn is_writing(&self) -> bool {
        self.writes_in_flight > 0
    }

    fn write(&mut self, write: ClusterWrite, txn: Txn) {
        self.writes_in_flight += 1;
        let (store, send, stats) = (Arc::clone(&self.store), Arc::clone(&self.send), Arc::clone(&self.stats));
        tokio::spawn(async move {
            let sent = Stopwatch::start();
            let outcome = store.commit(txn).await;
            match (write, &outcome) {
                (ClusterWrite::Beat(_), Outcome::Committed(_)) => stats.beats.stored(sent.elapsed()),
                (ClusterWrite::Beat(_) | ClusterWrite::Leader(_), _) => {}
            }
            send(ClusterSignal::Wrote(write, outcome));
        });
    }

    /// The engine gets every batch before the leadership machine: a new leader's state is then complete.
    fn watched(&mut self, event: WatchEvent, now: ClockReading) -> Vec<Input> {
        let mut inputs = Vec::new();
        let before = self.follower.needs_snapshot();
        for batch in self.follower.handle(event, now.since_boot) {
            self.watch_log.append(batch.clone());
            inputs.push(Input::Watched(batch.clone()));
            inputs.extend(self.lead(leadership::Input::Watched(batch), now));
        }
        match self.follower.needs_snapshot().filter(|_| before.is_none()) {
            Some(ResyncReason::Compacted) => tracing::warn!("the watch fell behind the store's log"),
            Some(ResyncReason::WentBack) => tracing::error!("the watch showed a commit again"),
            Some(ResyncReason::Distrusted | ResyncReason::Repair) | None => {}
        }
        inputs
    }

    fn open_watch(&mut self, now: ClockReading) {
        if !self.follower.needs_watch() || now.since_boot < self.watch_retry_at {
            return;
        }
        self.watch_retry_at = now.since_boot + RETRY_EVERY;
        if let Some(earlier) = self.watching.take() {
            earlier.abort();
        }
        self.watches += 1;
        let (number, after) = (self.watches, self.follower.seen());
        let (store, send) = (Arc::clone(&self.store), Arc::clone(&self.send));
        let task = tokio::spawn(async move {
            let send_event = |event| send(ClusterSignal::Watch(number, event));
            let opened = || _ = send_event(WatchEvent::Opened);
            let pass = |batch: notbefore_store::Batch| {
                let changes = batch.changes.iter().map(|change| (batch.revision, change.clone())).collect();
                match send_event(WatchEvent::Changes { changes, is_fragment: false }) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            match follow_commits(&*store, after, opened, pass).await {
                Followed::Compacted { .. } => send_event(WatchEvent::Compacted),
                Followed::Ended => send_event(WatchEvent::Lost),
            };
        });
        self.watching = Some(task.abort_handle());
    }

    fn load_snapshot(&mut self, now: ClockReading) {
        let is_due = self.loading_since.is_none() && now.since_boot >= self.load_retry_at;
        if !is_due || self.follower.needs_snapshot().is_none() {
            return;
        }
        self.loading_since = Some(now.since_boot);
        let (store, send) = (Arc::clone(&self.store), Arc::clone(&self.send));
        tokio::spawn(async move { send(ClusterSignal::Loaded(snapshot_for_engine(&*store).await)) });
    }

    fn loaded(
        &mut self,
        loaded: Result<(Revision, Vec<(Key, Versioned)>), ReadError>,
        now: ClockReading,
    ) -> Vec<Input> {
        let begun = self.loading_since.take();
        self.load_retry_at = now.since_boot + RETRY_EVERY;
        let reason = self.follower.needs_snapshot();
        let installed = match loaded {
            Ok((revision, records)) => self.follower.install(revision, records, now.since_boot),
            Err(error) => {
                if self.load_log_limit.record(now.since_boot).is_some() {
                    tracing::warn!(%error, "cannot read the store: retrying");
                }
                None
            }
        };
        let Some((revision, records)) = installed else { return Vec::new() };
        begun.into_iter().for_each(|begun| self.freshness.loaded(begun));
        self.watch_log.skip_to(revision);
        if let Some(reason) = reason {
            self.stats.count_resync(reason);
            self.installed = Some(reason);
        }
        let (of_cluster, of_engine): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|(key, _)| key.starts_with(CLUSTER));
        check(
            || of_engine.iter().all(|(key, _)| records::is_loaded(key)),
            "the engine gets its records only",
        );
        let mut inputs = vec![Input::Resync(revision, of_engine)];
        inputs.extend(self.lead(leadership::Input::Synced(revision, of_cluster), now));
        inputs
    }
}

/// Where to look for a wrong clock: of two, either may be it.
fn ntp(offset: ClockOffset) -> &'static str {
    if offset.clocks == 2 { "NTP on both" } else { "its NTP" }
}

fn report_step_down(reason: StepDown) {
    match reason {
        StepDown::NotAcknowledged => {
            tracing::warn!("this node gives up the lead: the store has not answered for 2.5 s");
        }
        StepDown::WatchStalled => tracing::warn!("this node gives up the lead: its watch shows nothing"),
        StepDown::Clock(offset) => {
            tracing::error!("this node gives up the lead: its clock is {offset}; check {}", ntp(offset));
        }
        StepDown::Superseded => tracing::warn!("another node has taken the lead"),
        StepDown::NotConfirmed => {
            tracing::warn!("this node gives up the lead: the outcome of a commit could not be found out");
        }
        StepDown::Level(level) => tracing::error!(
            "this node gives up the lead: the cluster writes format level {level}, which this node does not write; upgrade it, or raise node.format_level"
        ),
        StepDown::NameTaken => {
            tracing::error!("this node gives up the lead: another process has its name");
        }
        StepDown::HandedOver => tracing::info!("this node hands over the lead: an operator asked for it"),
        StepDown::Closing => tracing::info!("this node hands over the lead"),
    }
}
