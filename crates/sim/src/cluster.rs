//! Several nodes on one store: the production engine, leadership machine and watch follower of each, with the faults
//! between nodes and a store like etcd.
//!
//! Commits of engines stay in flight until the history decides their outcome, as with one node. Heartbeats and claims
//! of the lead are written at once, unless the node is cut off. A transaction whose outcome was reported as unknown
//! may reach the store at any later time. Watches are pulled by each node's follower as time passes, each with a lag
//! of its own. Requests go to the node that leads, if there is one, or to any node, which passes them on.
//!
//! | file | content |
//! |---|---|
//! | `processes` | how nodes start, crash, stop and start again |
//! | `leading` | a node's leadership machine and its role |
//! | `watch` | a node's watch and snapshots |
//! | `messages` | what nodes send each other |
//! | `faults` | counts of the faults |
//! | `judge` | what must hold |

mod faults;
mod judge;
mod leading;
mod messages;
mod processes;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::ScopeId;
use notbefore_engine::cluster::digest::{Receiver, Sender};
use notbefore_engine::cluster::leadership::ClusterWrite;
use notbefore_engine::cluster::{CLUSTER, LEADER, Leadership, NodeIdentity, WatchFollower};
use notbefore_engine::{CommandTarget, Input};
use notbefore_store::{Key, Outcome, Revision, Txn, Versioned};

pub use faults::ClusterFaults;
use messages::{Forwarded, Message, Process, Transit};

use crate::conformance::Flight;
use crate::history::{ReportedOutcome, RequestKind, Step};
use crate::invariants::Check;
use crate::rules;
use crate::world::{SimNode, World, broken};

/// Time passes in steps of this length.
const TICK: Duration = Duration::from_millis(200);
/// Limit on a step of time: all of it is simulated.
const PASSES_MAX: SignedDuration = SignedDuration::from_secs(20);
/// Interval of repairs, short enough to happen within a history.
const REPAIR_EVERY: Duration = Duration::from_secs(12);
/// A watch this late may cost a leader the lead.
const LAG_OF_A_FAULT: Duration = Duration::from_millis(800);
/// How long a snapshot usually takes to load.
const LOAD_TIME: Duration = Duration::from_millis(300);
/// How far the clock of a leader that writes may be from the median of all running nodes.
const CLOCK_MAX: SignedDuration = SignedDuration::from_secs(2);
/// After this long without faults every node knows the others' clocks.
const CALM_AFTER: Duration = Duration::from_secs(8);
/// Time between SIGTERM and SIGKILL of a command whose lease is over.
const TERMINATE_GRACE: Duration = Duration::from_millis(500);
/// How long two commands may run for one event and VM: the rest of a lease, and [`TERMINATE_GRACE`].
const SECOND_COMMAND_MAX: Duration = Duration::from_millis(3_500);
/// Time for an election once faults stop, with a repair of each watch.
pub(crate) const ELECTED_AFTER: SignedDuration = SignedDuration::from_secs(16);

/// What the nodes of a world share, besides the store.
pub struct SimCluster {
    /// All nodes; the place of the current one is empty.
    parked: Vec<Option<Box<SimNode>>>,
    current: usize,
    /// The true time since the beginning.
    time: Duration,
    begin: Timestamp,
    /// When each commit of the store's log was made.
    committed_at: Vec<Duration>,
    /// Transactions that may reach the store later.
    late: Vec<Late>,
    /// Messages between nodes on their way.
    messages: Vec<Message>,
    /// Since when all messages arrive.
    messages_calm_since: Duration,
    /// Since when two commands run for one event and VM.
    twice_since: BTreeMap<CommandTarget, Duration>,
    /// The process that led last.
    last_leader: Option<String>,
    /// Since when there was no fault.
    calm_since: Duration,
    /// Processes that were started.
    starts: u32,
}

/// A transaction whose outcome was reported as unknown before it reached the store.
enum Late {
    Commit(Box<Flight>),
    Cluster(Txn),
}

/// A node's part in the cluster.
pub(crate) struct Member {
    identity: NodeIdentity,
    leadership: Leadership,
    follower: WatchFollower,
    /// When the process starts again; none while it is up.
    down_until: Option<Duration>,
    is_paused: bool,
    is_cut: bool,
    is_stalled: bool,
    lag: Duration,
    drift_permille: i64,
    /// Batches whose deletions the watch will lose.
    drop_deletes: u8,
    stale_reads: u8,
    lose_answers: u8,
    /// How long a snapshot takes to load.
    load_time: Duration,
    loading: Option<Loading>,
    /// Outcomes of heartbeats and claims on their way, with the time of their arrival.
    answers: VecDeque<(Duration, ClusterWrite, Outcome)>,
    /// When heartbeats were sent.
    beats: BTreeMap<ClusterWrite, Duration>,
    /// When the newest acknowledged heartbeat was sent.
    acknowledged: Duration,
    /// What happens to the next messages.
    transit: Transit,
    /// Requests of this node's clients at the leader.
    forwarded: BTreeMap<u64, Forwarded>,
    /// Requests of other nodes' clients that this node executes.
    serving: BTreeMap<u64, (Process, u64)>,
    /// Digests of polls for the leader.
    digests: Sender,
    /// Digests of the other nodes, while this one leads.
    receiver: Option<Receiver>,
    /// The last poll of each scope at this node.
    polls: BTreeMap<ScopeId, Timestamp>,
    /// All requests that other nodes have sent.
    seen_messages: BTreeSet<u64>,
    /// Whether the watch has lost deletions since the last snapshot.
    has_lost_deletes: bool,
}

/// A snapshot that a node is loading.
struct Loading {
    revision: Revision,
    /// When it is complete, by the true time.
    complete_at: Duration,
}

impl Member {
    fn is_running(&self) -> bool {
        self.down_until.is_none() && !self.is_paused
    }
}

impl SimNode {
    fn is_running(&self) -> bool {
        self.member.as_ref().is_none_or(Member::is_running)
    }

    fn is_cut(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.is_cut)
    }
}

impl World {
    /// Replaces the only node by several, and waits until one leads.
    pub(crate) fn start_cluster(&mut self, now: Timestamp) -> Check {
        self.store.leave_gaps();
        let nodes = usize::from(self.setup.nodes);
        self.cluster = Some(SimCluster {
            parked: (0..nodes).map(|_| None).collect(),
            current: 0,
            time: Duration::ZERO,
            begin: now,
            committed_at: Vec::new(),
            late: Vec::new(),
            messages: Vec::new(),
            messages_calm_since: Duration::ZERO,
            twice_since: BTreeMap::new(),
            last_leader: None,
            calm_since: Duration::ZERO,
            starts: 0,
        });
        for index in (0..nodes).rev() {
            let node = Box::new(self.start_member(index, now, Duration::ZERO)?);
            match (index, &mut self.cluster) {
                (0, _) => self.node = node,
                (_, Some(cluster)) => cluster.parked[index] = Some(node),
                (_, None) => {}
            }
        }
        self.advance_cluster(SignedDuration::from_secs(3))
    }

    /// The index of the current node.
    pub(crate) fn index(&self) -> usize {
        self.cluster.as_ref().map_or(0, |cluster| cluster.current)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.cluster.as_ref().map_or(1, |cluster| cluster.parked.len())
    }

    /// Makes another node the current one.
    pub(crate) fn select(&mut self, index: usize) {
        let Some(cluster) = &mut self.cluster else { return };
        if let Some(next) = cluster.parked[index].take() {
            let before = std::mem::replace(&mut self.node, next);
            cluster.parked[cluster.current] = Some(before);
            cluster.current = index;
        }
    }

    /// Does something with every node that runs.
    fn for_each_running(&mut self, mut act: impl FnMut(&mut Self) -> Check) -> Check {
        let before = self.index();
        for index in 0..self.nodes() {
            self.select(index);
            if self.node.is_running() {
                act(self)?;
            }
        }
        self.select(before);
        Ok(())
    }

    fn node_at(&self, index: usize) -> &SimNode {
        let parked = self.cluster.as_ref().and_then(|cluster| cluster.parked[index].as_deref());
        parked.unwrap_or(&self.node)
    }

    /// The commits in flight of all nodes.
    pub(crate) fn all_flights(&self) -> impl Iterator<Item = &Flight> {
        let parked = self.cluster.iter().flat_map(|cluster| cluster.parked.iter().flatten());
        parked.flat_map(|node| &node.flights).chain(&self.node.flights)
    }

    /// The first node for which this holds.
    fn find_node(&self, holds: impl Fn(&SimNode) -> bool) -> Option<usize> {
        (0..self.nodes()).find(|index| holds(self.node_at(*index)))
    }

    /// A running node that leads by its own knowledge.
    pub(crate) fn leading(&self) -> Option<usize> {
        self.find_node(|node| node.is_running() && node.engine.role().leads())
    }

    fn at_node(&mut self, index: Option<usize>, act: impl FnOnce(&mut Self) -> Check) -> Check {
        let before = self.index();
        self.select(index.unwrap_or(before));
        let done = match self.node.is_running() {
            true => act(self),
            false => Ok(()),
        };
        self.select(before);
        done
    }

    pub(crate) fn cluster_step(&mut self, step: &Step) -> Check {
        self.step_of_cluster(step)?;
        self.exchange()
    }

    /// Passes on what watches and messages bring by now.
    fn exchange(&mut self) -> Check {
        self.deliver_messages()?;
        self.for_each_running(|world| {
            world.pump()?;
            world.answer_clients()
        })
    }

    fn step_of_cluster(&mut self, step: &Step) -> Check {
        let nodes = self.nodes();
        match step {
            // The first-run VM belongs to the start of the service, before any request.
            Step::Request { what: RequestKind::FirstRun, .. } => Ok(()),
            Step::Setup(_) | Step::Watch { .. } | Step::Foreign { .. } | Step::SetClock { .. } => Ok(()),
            Step::Request { at, .. } => {
                let index = at.map(|at| usize::from(at) % nodes).or_else(|| self.leading());
                self.at_node(index, |world| world.node_step(step))
            }
            Step::Retry { at, .. } => {
                let index = at.map(|at| usize::from(at) % nodes).or_else(|| self.leading());
                self.at_node(index, |world| world.node_step(step))
            }
            Step::Polled { at: Some(at), .. } => {
                self.at_node(Some(usize::from(*at) % nodes), |world| world.node_step(step))
            }
            Step::Polled { at: None, .. } => self.for_each_running(|world| world.node_step(step)),
            Step::Advance { ms } => self.advance_cluster(SignedDuration::from_millis(*ms)),
            Step::ToDue { plus_ms } => {
                let leader = self.leading();
                self.select(leader.unwrap_or(self.index()));
                let due = rules::plus(
                    self.next_due().unwrap_or(self.node.now),
                    SignedDuration::from_millis(*plus_ms),
                );
                self.wait_until(due)
            }
            Step::Apply { .. } => {
                let index = self.find_node(|node| !node.flights.is_empty() && !node.is_cut());
                self.at_node(index, |world| match world.node.is_cut() {
                    true => Ok(()),
                    false => world.node_step(step),
                })
            }
            Step::Deliver { which, how } => {
                let current = Some(self.index()).filter(|_| !self.node.flights.is_empty());
                let index = current.or_else(|| self.find_node(|node| !node.flights.is_empty()));
                self.at_node(index, |world| world.deliver_in_cluster(*which, *how))
            }
            Step::Ran { .. } => {
                let index = self.find_node(|node| node.is_running() && !node.running.is_empty());
                self.at_node(index, |world| world.node_step(step))
            }
            Step::Late { .. } => self.at_node(self.leading(), |world| world.node_step(step)),
            Step::Crash { lands, down_ms } => self.crash_member(*lands, *down_ms),
            Step::Settle | Step::Drain => self.node_step(step),
            Step::Node { which } => {
                self.select(usize::from(*which) % nodes);
                Ok(())
            }
            Step::HandOver => self.hand_over(),
            Step::Heal => {
                self.fault(|_| {});
                self.heal()
            }
            Step::Compact => {
                self.fault(|faults| faults.compactions += 1);
                self.store.compact();
                Ok(())
            }
            Step::LateLanding { which } => self.land_late(usize::from(*which)),
            Step::Offset { ms } => self.set_offset(SignedDuration::from_millis(i64::from(*ms))),
            Step::Drift { permille } => {
                self.stats.cluster_faults.drifts += 1;
                self.stats.faults += 1;
                if let Some(member) = &mut self.node.member {
                    member.drift_permille = i64::from(*permille);
                }
                Ok(())
            }
            Step::Cut => self.member_fault(|member, faults| {
                faults.cuts += u64::from(!member.is_cut);
                member.is_cut ^= true;
                member.loading = None;
            }),
            Step::Pause => self.member_fault(|member, faults| {
                faults.pauses += u64::from(!member.is_paused);
                member.is_paused ^= true;
            }),
            Step::Stall => self.member_fault(|member, faults| {
                faults.stalls += 1;
                member.is_stalled = true;
            }),
            Step::Lag { ms } => self.member_fault(|member, faults| {
                faults.lags += 1;
                member.lag = Duration::from_millis(u64::from(*ms));
            }),
            // No fault: a large fleet.
            Step::LoadTime { ms } => {
                if let Some(member) = &mut self.node.member {
                    member.load_time = Duration::from_millis(u64::from(*ms));
                }
                Ok(())
            }
            // These are counted when they happen.
            Step::DropDeletes { count } => self.member_fault(|member, _| member.drop_deletes = *count),
            Step::StaleReads { count } => self.member_fault(|member, _| member.stale_reads = *count),
            Step::LoseAnswers { count } => self.member_fault(|member, _| member.lose_answers = *count),
            Step::LoseMessages { count } => self.messages_fault(|transit| transit.lose = *count),
            Step::DelayMessages { count, ms } => {
                let by = Duration::from_millis(u64::from(*ms));
                self.messages_fault(|transit| transit.delay = (*count, by))
            }
            Step::DoubleMessages { count, ms } => {
                let by = Duration::from_millis(u64::from(*ms));
                self.messages_fault(|transit| transit.double = (*count, by))
            }
            Step::WatchBack { count } => {
                self.node.watched = self.node.watched.saturating_sub(usize::from(*count));
                self.member_fault(|_, faults| faults.watches_back += 1)
            }
        }
    }

    /// A fault of the current node's process or connections.
    fn member_fault(&mut self, change: impl FnOnce(&mut Member, &mut ClusterFaults)) -> Check {
        if let Some(member) = &mut self.node.member {
            change(member, &mut self.stats.cluster_faults);
        }
        self.fault(|_| {});
        Ok(())
    }

    /// A fault of the current node's next messages; it is counted when it happens, and disturbs no leader.
    fn messages_fault(&mut self, change: impl FnOnce(&mut Transit)) -> Check {
        if let Some(member) = &mut self.node.member {
            change(&mut member.transit);
        }
        Ok(())
    }

    /// Counts a fault.
    fn fault(&mut self, count: impl FnOnce(&mut ClusterFaults)) {
        self.faults += 1;
        self.stats.faults += 1;
        count(&mut self.stats.cluster_faults);
        if let Some(cluster) = &mut self.cluster {
            cluster.calm_since = cluster.time;
        }
    }

    fn deliver_in_cluster(&mut self, which: u8, how: ReportedOutcome) -> Check {
        let Some(index) = usize::from(which).checked_rem(self.node.flights.len()) else { return Ok(()) };
        // A node that is cut off gets no answer.
        let how = if self.node.is_cut() { ReportedOutcome::UnknownLost } else { how };
        match how {
            ReportedOutcome::Actual => {}
            ReportedOutcome::Unavailable => self.fault(|faults| faults.refused_commits += 1),
            ReportedOutcome::UnknownLanded | ReportedOutcome::UnknownLost => {
                self.fault(|faults| faults.unknown_outcomes += 1);
            }
        }
        self.deliver(index, how)
    }

    /// A commit that was reported as unknown may still reach the store.
    pub(crate) fn may_land_late(&mut self, flight: &Flight) {
        if let Some(cluster) = &mut self.cluster {
            cluster.late.push(Late::Commit(Box::new(flight.clone())));
        }
    }

    fn land_late(&mut self, which: usize) -> Check {
        let Some(cluster) = &mut self.cluster else { return Ok(()) };
        let Some(index) = which.checked_rem(cluster.late.len()) else { return Ok(()) };
        let late = cluster.late.remove(index);
        self.stats.late_landings += 1;
        self.fault(|_| {});
        let before = self.store.revision();
        match late {
            Late::Commit(flight) => drop(self.commit(&flight)?),
            Late::Cluster(txn) => drop(self.commit_cluster(&txn)),
        }
        self.stats.landed_late += u64::from(self.store.revision() > before);
        Ok(())
    }

    /// Records when a commit was made.
    pub(crate) fn committed_now(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.committed_at.push(cluster.time);
        }
    }

    pub(crate) fn advance_cluster(&mut self, by: SignedDuration) -> Check {
        let mut left = Duration::try_from(by.clamp(SignedDuration::ZERO, PASSES_MAX)).unwrap_or_default();
        loop {
            let step = left.min(TICK);
            left -= step;
            if let Some(cluster) = &mut self.cluster {
                cluster.time += step;
                let parked = cluster.parked.iter_mut().flatten();
                for node in parked.chain([&mut self.node]) {
                    let drift = node.member.as_ref().map_or(0, |member| member.drift_permille);
                    let step = SignedDuration::try_from(step).unwrap_or_default();
                    let drifted =
                        SignedDuration::from_micros(i64::try_from(step.as_millis()).unwrap_or(0) * drift);
                    node.now = rules::plus(node.now, step + drifted);
                    node.since_boot += step.unsigned_abs();
                }
            }
            self.restart_members()?;
            self.for_each_running(|world| {
                world.take_answers()?;
                world.feed(Input::Tick)?;
                world.digest_polls()
            })?;
            self.exchange()?;
            self.check_children()?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// A guest of the scope polled the current node.
    pub(crate) fn polled_here(&mut self, scope: &ScopeId) {
        let now = self.node.now;
        if let Some(member) = &mut self.node.member {
            member.polls.insert(scope.clone(), now);
            member.digests.add_scope(scope.clone(), now);
        }
    }

    /// Every commit in flight succeeds, unless its node is cut off, and those that follow.
    pub(crate) fn settle_cluster(&mut self) -> Check {
        for _ in 0..10_000 {
            self.exchange()?;
            let index = self.find_node(|node| node.is_running() && !node.flights.is_empty());
            let Some(index) = index else { return Ok(()) };
            let before = self.index();
            self.select(index);
            let how = if self.node.is_cut() { ReportedOutcome::UnknownLost } else { ReportedOutcome::Actual };
            self.deliver(0, how)?;
            self.select(before);
        }
        Err(broken("work comes to an end", "ten thousand commits and no end"))
    }

    fn true_now(&self) -> Timestamp {
        let Some(cluster) = &self.cluster else { return self.node.now };
        rules::plus(cluster.begin, SignedDuration::try_from(cluster.time).unwrap_or_default())
    }

    fn set_offset(&mut self, offset: SignedDuration) -> Check {
        let is_calm = self.is_calm();
        let leads = self.node.is_running() && self.node.engine.role().leads();
        self.fault(|faults| faults.offsets += 1);
        self.node.now = rules::plus(self.true_now(), offset);
        if !is_calm || !leads || self.setup.leaderless {
            return Ok(());
        }
        // A leader whose own clock is set knows the others': it notices before it does anything.
        self.feed(Input::Tick)?;
        match self.true_offset().abs() > CLOCK_MAX && self.node.engine.role().leads() {
            true => {
                Err(broken("a node more than 2 s off the median does not keep the lead", format!("{offset}")))
            }
            false => Ok(()),
        }
    }

    /// Ends all faults of nodes. Transactions on their way reach the store.
    fn heal(&mut self) -> Check {
        while self.cluster.as_ref().is_some_and(|cluster| !cluster.late.is_empty()) {
            self.land_late(0)?;
        }
        let true_now = self.true_now();
        let Some(cluster) = &mut self.cluster else { return Ok(()) };
        // Nodes find out only now what has happened meanwhile.
        cluster.calm_since = cluster.time;
        for node in cluster.parked.iter_mut().flatten().chain([&mut self.node]) {
            node.now = true_now;
            let Some(member) = &mut node.member else { continue };
            member.down_until = member.down_until.map(|_| cluster.time);
            (member.is_paused, member.is_cut, member.is_stalled) = (false, false, false);
            (member.lag, member.drift_permille, member.load_time) = (Duration::ZERO, 0, LOAD_TIME);
            (member.drop_deletes, member.stale_reads, member.lose_answers) = (0, 0, 0);
            member.transit = Transit::default();
            // The time for a repair after it begins once the snapshot is loaded.
            if let Some(loading) = &mut member.loading {
                loading.complete_at = loading.complete_at.min(cluster.time + LOAD_TIME);
            }
        }
        Ok(())
    }

    /// Ends all faults, waits for an election, and makes the leader the current node.
    pub(crate) fn calm_cluster(&mut self) -> Check {
        self.heal()?;
        let mut left = ELECTED_AFTER;
        while left > SignedDuration::ZERO {
            self.settle_cluster()?;
            self.advance_cluster(SignedDuration::from_secs(1))?;
            left -= SignedDuration::from_secs(1);
        }
        self.settle_cluster()?;
        if self.setup.leaderless {
            return Ok(());
        }
        let leading: Vec<usize> =
            (0..self.nodes()).filter(|index| self.node_at(*index).engine.role().leads()).collect();
        let [leader] = leading[..] else {
            let roles = (0..self.nodes()).map(|index| self.node_at(index).engine.role());
            let detail =
                format!("{:?}, record {:?}", roles.collect::<Vec<_>>(), self.store.records().get(LEADER));
            return Err(broken("once faults stop, there is one leader", detail));
        };
        self.select(leader);
        Ok(())
    }
}

/// The records of the cluster among these.
fn of_cluster<'a>(records: impl Iterator<Item = (&'a Key, &'a Versioned)>) -> Vec<(Key, Versioned)> {
    let of_cluster = records.filter(|(key, _)| key.starts_with(CLUSTER));
    of_cluster.map(|(key, record)| (key.clone(), record.clone())).collect()
}
