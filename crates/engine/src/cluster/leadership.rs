//! Leader election by compare-and-swap of one record and local monotonic clocks, as in Kubernetes' client-go.
//!
//! Each node writes a heartbeat once a second. A node claims the lead if `cluster/leader` is empty, or if the leader's
//! heartbeat has not changed for [`ELECT_AFTER`] by this node's monotonic clock. It leads when its own watch shows the
//! claim: then its state has every commit of the leaders before it. The claim's revision is its fence.
//!
//! **Able to lead** is a node whose heartbeats are acknowledged and return through its own watch, and whose wall clock
//! is near the median of all nodes. A leader that is not able any more steps down before it does anything else; a
//! process that was stopped finds out when it goes on. If the record still names the node, it hands the lead over, or
//! claims it again once it is able. It never continues with an old fence: transactions of before may be on their way.
//!
//! **Unknown outcomes.** A transaction without an answer may land later. The leader then rewrites its record
//! ([`Role::Confirm`]). When the watch shows the new revision, older transactions have landed before it or never will.
//!
//! **Levels.** The first leader writes `cluster/format`, the level at which all nodes write: its own. A newer release writes
//! at that level, too, until an operator raises it ([`Leadership::write_level`]). A node that writes an older level at most
//! follows and never leads: it would misread, or drop, what the others have written.
//!
//! **Hand-over.** An operator may ask the leader to give up the lead ([`Input::HandOver`]), if another node is able to take
//! it. The node empties the record and does not claim the lead again until another node has led, or until the record
//! has stayed empty for [`ELECT_AFTER`].
//!
//! **Names.** No two processes have one name. A process starts if the heartbeat under its name stands still
//! ([`NameCheck`](super::name_check::NameCheck)), and its first heartbeats compare the record that it found. So of two
//! processes that start in the same moment one gets the name. A process whose record another one has replaced writes
//! nothing more ([`Action::NameTaken`]): it stood still for so long that its name was free. When it goes on, it may write
//! a heartbeat before its watch shows the other process. So heartbeats carry the revision at which their process took the
//! name ([`NodeRecord::claim`]), a fencing token: all nodes ignore heartbeats of a lower one than they know. The process
//! that took the name last keeps it, at any number of processes and in any order.
//!
//! **No leases.** etcd revokes leases in bulk after its own leader stood still, and shows expiry as deletions, which
//! some releases lose. The machine trusts only records that it sees in the watch. An acknowledged heartbeat says that
//! the node reaches the store; outcomes of claims say nothing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_store::{Batch, Expect, Key, Outcome, Revision, Txn, Versioned};

use super::{FORMAT, FenceNews, FormatRecord, LEADER, Leader, LeaderRecord, NODE, NodeRecord, Role};
use crate::clock_watch::ClockReading;
use crate::keys::RecordKey;
use crate::records;

/// Interval of heartbeats.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// A leader without an acknowledged heartbeat for this long steps down. Less than [`ELECT_AFTER`], so that there is
/// usually no second leader before the first one has noticed.
pub const STEP_DOWN_AFTER: Duration = Duration::from_millis(2_500);
/// Silence of the leader after which another node claims the lead.
pub const ELECT_AFTER: Duration = Duration::from_secs(4);
/// Time from a heartbeat of the leader to the end of the lease that it gives to commands of the exec driver. Less than
/// [`ELECT_AFTER`]: a command has ended when another leader runs it again.
pub const COMMAND_LEASE: Duration = Duration::from_secs(3);
/// A node whose own heartbeat did not return through its watch for this long cannot lead.
const WATCH_STALLED_AFTER: Duration = Duration::from_secs(3);
/// Interval of attempts to write the leader's record.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// How far a leader's clock may be from the median. The bound that the cluster promises is 2 s; the rest is for
/// heartbeats that travel at different speeds, and for a clock that drifts until the next one.
const CLOCK_KEEP_MAX: SignedDuration = SignedDuration::from_millis(1_500);
/// How far the clock of a node that claims the lead may be. Less, so that the lead does not go back and forth.
pub const CLOCK_TAKE_MAX: SignedDuration = SignedDuration::from_millis(1_000);
/// Readings of a node's clock that are compared; the one that travelled fastest counts.
const READINGS: usize = 3;
/// Heartbeats in flight that are remembered; more are lost.
const BEATS_IN_FLIGHT_MAX: usize = 8;

/// The names under which a node writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// From the configuration; no two running nodes have the same.
    pub name: String,
    /// The process, new at every start.
    pub epoch: String,
    /// Where the node takes forwarded changes when it leads.
    pub url: String,
    /// The newest format level that the node writes.
    pub level: u32,
}

impl NodeIdentity {
    /// `name~epoch`: the process, as other nodes address it.
    pub fn id(&self) -> String {
        node_id(&self.name, &self.epoch)
    }
}

/// `name~epoch`: a process of a node.
pub(super) fn node_id(name: &str, epoch: &str) -> String {
    format!("{name}~{epoch}")
}

/// A write of the machine, to match its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterWrite {
    Beat(u64),
    Leader(u64),
}

#[derive(Clone, Debug)]
pub enum Input {
    /// A batch of the node's own watch. The engine has it before this machine.
    Watched(Batch),
    /// A snapshot replaced the watch: the records under `cluster/` at this revision.
    Synced(Revision, Vec<(Key, Versioned)>),
    /// The outcome of a write that this machine asked for.
    Wrote(ClusterWrite, Outcome),
    /// The outcome of a transaction of this node.
    Fence(FenceNews),
    /// Time passed.
    Tick,
    /// An operator asks the node to give up the lead. Ignored if [`Leadership::check_hand_over`] refuses it.
    HandOver,
    /// The node stops: it hands the lead over and claims it no more.
    Close,
}

/// What the runtime carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Write(ClusterWrite, Txn),
    /// The node's role, for the engine and all writers. `Alone` never occurs.
    Become(Role),
    /// Why the node stopped leading, for the log; `Become(Follow)` follows.
    SteppedDown(StepDown),
    /// Another process has the node's name. The process must end.
    NameTaken,
}

/// How far a node's clock is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    pub from_median: SignedDuration,
    /// The clocks that were compared, with the node's own. The median of two is between them.
    pub clocks: usize,
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.from_median.as_secs_f64();
        match self.clocks {
            2 => write!(f, "{:+.1} s from that of the only other node", 2.0 * seconds),
            _ => write!(f, "{seconds:+.1} s from the median of all nodes"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDown {
    /// No heartbeat was acknowledged in time.
    NotAcknowledged,
    /// The watch shows nothing: neither what other nodes did nor their clocks are known.
    WatchStalled,
    Clock(ClockOffset),
    /// The record names another node, or none.
    Superseded,
    /// The record could not be rewritten in time.
    NotConfirmed,
    /// The cluster writes at this newer format level.
    Level(u32),
    /// An operator asked for it.
    HandedOver,
    Closing,
    NameTaken,
}

/// Why the lead is not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverRefusal {
    /// This node does not lead.
    NotLeading,
    /// No other node runs that could lead.
    NoOtherNode,
}

/// Whether a node runs, by its heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    Running,
    /// No heartbeat for [`ELECT_AFTER`], and the last one did not say that the node stops.
    Silent,
    /// It has stopped in an orderly way.
    Stopped,
}

/// A node as another one knows it by its heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    pub name: String,
    pub state: NodeState,
    pub leads: bool,
    /// Whether the node could take the lead now.
    pub is_able: bool,
    /// The last heartbeat.
    pub record: NodeRecord,
    /// How long ago the last heartbeat arrived; of a node that was silent before this process started, since the start.
    pub heard_ago: Duration,
    /// From the median of all nodes; none for a node that does not run.
    pub clock_offset: Option<SignedDuration>,
    /// Commits that the node had not shown when its last heartbeat was stored.
    pub lag_revisions: u64,
}

/// What a node knows of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterReport {
    pub me: NodeIdentity,
    pub role: Role,
    pub leader: Option<Leader>,
    /// The cluster's format level; none until the first leader has written it.
    pub level: Option<u32>,
    pub watched: Revision,
    /// How long ago the newest own heartbeat was sent that has returned through the watch.
    pub returned_ago: Option<Duration>,
    /// The clocks that were compared; see [`ClockOffset::clocks`].
    pub clocks: usize,
    /// By name.
    pub nodes: Vec<NodeReport>,
}

/// Whether this process has the node's name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NameClaim {
    /// Heartbeats compare the record under the name with this revision; none means that there must not be one.
    Free(Option<Revision>),
    /// A heartbeat of this process was acknowledged, or the watch has shown one. The first landed at this revision.
    Held(Revision),
    /// By a process whose node listener is at this URL.
    Taken { url: String },
}

/// A node as its heartbeats show it.
#[derive(Clone, Debug)]
struct Peer {
    /// The last heartbeat.
    record: NodeRecord,
    /// When its process took the name. Heartbeats of processes with a lower claim are late.
    claim: Revision,
    seen_at: Duration,
    /// See [`NodeReport::lag_revisions`].
    lag_revisions: u64,
    /// The peer's wall clock minus this node's monotonic clock when the heartbeat arrived.
    readings: VecDeque<SignedDuration>,
}

/// The machine; see the module docs. Times are the monotonic clock, which counts while the machine is suspended.
#[derive(Clone, Debug)]
pub struct Leadership {
    me: NodeIdentity,
    name_claim: NameClaim,
    role: Role,
    watched: Revision,
    /// The leader's record as watched, and its revision; none if there is none.
    leader: Option<(LeaderRecord, Revision)>,
    /// The newest commit that wrote or deleted the leader's record.
    leader_known_at: Revision,
    /// The format level of the cluster; none if it was never written.
    level: Option<u32>,
    /// `cluster/format` was deleted, which no node does.
    are_records_deleted: bool,
    /// When the leader's record or its heartbeat last changed.
    leader_heard_at: Duration,
    peers: BTreeMap<String, Peer>,
    beats: u64,
    beat_due: Duration,
    /// Heartbeats without an answer, and when they were sent.
    beats_in_flight: BTreeMap<u64, Duration>,
    /// When the newest acknowledged heartbeat was sent.
    acknowledged: Option<Duration>,
    /// When own heartbeats were sent that the watch has not shown.
    unseen: BTreeMap<u64, Duration>,
    /// When the watch last showed an own heartbeat.
    returned_at: Option<Duration>,
    /// Travel times of own heartbeats: sent, stored, shown by the watch.
    lags: VecDeque<Duration>,
    /// The node does not lead with this fence or an older one.
    given_up: Revision,
    confirming_since: Duration,
    leader_writes: u64,
    leader_write_due: Duration,
    /// The node has given up the lead for another node, and none has taken it yet.
    has_handed_over: bool,
    closing: bool,
}

impl Leadership {
    /// A node that has loaded the store at `revision`, with the records under `cluster/`. `found` is the revision of the
    /// record under its name when that was found to be free.
    pub fn new(
        me: NodeIdentity,
        found: Option<Revision>,
        revision: Revision,
        cluster: Vec<(Key, Versioned)>,
        now: ClockReading,
    ) -> Self {
        let mono = now.since_boot;
        let mut machine = Self {
            me,
            name_claim: NameClaim::Free(found),
            role: Role::Follow,
            watched: Revision(0),
            leader: None,
            leader_known_at: Revision(0),
            level: None,
            are_records_deleted: false,
            leader_heard_at: mono,
            peers: BTreeMap::new(),
            beats: 0,
            beat_due: mono,
            beats_in_flight: BTreeMap::new(),
            acknowledged: None,
            unseen: BTreeMap::new(),
            returned_at: None,
            lags: VecDeque::new(),
            given_up: Revision(0),
            confirming_since: mono,
            leader_writes: 0,
            leader_write_due: mono,
            has_handed_over: false,
            closing: false,
        };
        machine.synced(revision, cluster, mono);
        machine
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// The leader by the record that the watch has shown; it may be another process of this node's name.
    pub fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref().and_then(|(record, _)| record.leader.as_ref())
    }

    /// The other nodes that run, as `name~epoch`.
    pub fn living_peers(&self, now: ClockReading) -> Vec<String> {
        let is_living =
            |name: &str, peer: &Peer| name != self.me.name && peer.state(now) == NodeState::Running;
        let living = self.peers.iter().filter(|(name, peer)| is_living(name, peer));
        living.map(|(name, peer)| node_id(name, &peer.record.epoch)).collect()
    }

    /// The format level at which the cluster writes; none until the first leader has written it.
    pub fn level(&self) -> Option<u32> {
        self.level
    }

    /// The level at which this node writes: the cluster's, but not more than the node's own.
    pub fn write_level(&self) -> u32 {
        self.level.map_or(self.me.level, |level| level.min(self.me.level))
    }

    /// What this node knows of all nodes.
    pub fn report(&self, now: ClockReading) -> ClusterReport {
        let nodes = self.peers.iter().map(|(name, peer)| self.report_of(name, peer, now)).collect();
        ClusterReport {
            me: self.me.clone(),
            role: self.role,
            leader: self.leader().cloned(),
            level: self.level,
            watched: self.watched,
            returned_ago: self.returned_at.map(|at| now.since_boot.saturating_sub(at)),
            clocks: self.clocks(now).len(),
            nodes,
        }
    }

    fn report_of(&self, name: &str, peer: &Peer, now: ClockReading) -> NodeReport {
        let state = peer.state(now);
        let clock_offset = match (state, name == self.me.name) {
            (NodeState::Running, true) => Some(self.clock_offset(now)),
            (NodeState::Running, false) => self.clock_offset_of(peer, now),
            (NodeState::Silent | NodeState::Stopped, _) => None,
        };
        let is_near = clock_offset.is_some_and(|offset| offset.abs() <= CLOCK_TAKE_MAX);
        let is_able =
            is_near && peer.record.is_watching && self.level.is_none_or(|level| level <= peer.record.level);
        let is_leader = |leader: &Leader| leader.node == name && leader.epoch == peer.record.epoch;
        NodeReport {
            name: name.to_owned(),
            state,
            leads: self.leader().is_some_and(is_leader),
            is_able,
            record: peer.record.clone(),
            heard_ago: now.since_boot.saturating_sub(peer.seen_at),
            clock_offset,
            lag_revisions: peer.lag_revisions,
        }
    }

    /// Whether the node may hand the lead over: another node must be able to take it.
    pub fn check_hand_over(&self, now: ClockReading) -> Result<(), HandOverRefusal> {
        if !self.role.leads() {
            return Err(HandOverRefusal::NotLeading);
        }
        let mut others = self.peers.iter().filter(|(name, _)| **name != self.me.name);
        match others.any(|(name, peer)| self.report_of(name, peer, now).is_able) {
            true => Ok(()),
            false => Err(HandOverRefusal::NoOtherNode),
        }
    }

    /// Whether the watch works: the node's own heartbeat returns through it.
    pub fn is_ready(&self, now: ClockReading) -> bool {
        is_fresh(self.returned_at, now.since_boot, WATCH_STALLED_AFTER)
    }

    /// When the newest own heartbeat was sent that the watch has shown: the node knows all commits before that.
    pub fn watched_at(&self) -> Option<Duration> {
        self.returned_at
    }

    /// Whether the cluster's records were deleted from the store, as by `etcdctl del --prefix`. The node must end: what it
    /// would serve is an empty fleet.
    pub fn are_records_deleted(&self) -> bool {
        self.are_records_deleted
    }

    /// If another process has the node's name: the URL of its node listener.
    pub fn name_taken_by(&self) -> Option<&str> {
        match &self.name_claim {
            NameClaim::Taken { url } => Some(url),
            NameClaim::Free(_) | NameClaim::Held(_) => None,
        }
    }

    /// When the newest acknowledged heartbeat was sent.
    pub fn acknowledged(&self) -> Option<Duration> {
        self.acknowledged
    }

    /// When the next [`Input::Tick`] is due, by the monotonic clock.
    pub fn next_due(&self) -> Duration {
        let step_down = self.acknowledged.map(|at| at + STEP_DOWN_AFTER).filter(|_| self.role.leads());
        let election = self.leader_heard_at + ELECT_AFTER;
        let wants_record = !self.role.leads() || self.role == Role::Confirm;
        let record = wants_record.then(|| self.leader_write_due.max(election.min(self.beat_due)));
        [Some(self.beat_due), step_down, record].into_iter().flatten().min().unwrap_or(self.beat_due)
    }

    /// Handles one input. Call it with a tick before each pass of the engine: a node that may not lead any more must
    /// find out first.
    pub fn handle(&mut self, input: Input, now: ClockReading) -> Vec<Action> {
        let mono = now.since_boot;
        let mut actions = Vec::new();
        let had_name = self.name_taken_by().is_none();
        // First of all: a process that was stopped for a while may have lost the lead.
        self.check_able(now, &mut actions);
        match input {
            Input::Watched(batch) => {
                if batch.revision > self.watched {
                    self.watched = batch.revision;
                    for change in batch.changes.iter() {
                        self.changed(&change.key, batch.revision, change.value.as_deref(), mono);
                    }
                }
            }
            Input::Synced(revision, cluster) => self.synced(revision, cluster, mono),
            Input::Wrote(ClusterWrite::Beat(beat), outcome) => {
                let sent = self.beats_in_flight.remove(&beat);
                if let (Outcome::Committed(revision), Some(sent)) = (outcome, sent) {
                    self.acknowledged = self.acknowledged.max(Some(sent));
                    if let NameClaim::Free(_) = self.name_claim {
                        self.name_claim = NameClaim::Held(revision);
                    }
                }
            }
            // The watch shows whether it landed.
            Input::Wrote(ClusterWrite::Leader(_), _) => {}
            Input::Fence(FenceNews::Unknown(fence)) => {
                if self.role == Role::Lead(fence) {
                    self.role = Role::Confirm;
                    self.given_up = fence.max(self.given_up);
                    self.confirming_since = mono;
                    self.leader_write_due = mono;
                    actions.push(Action::Become(Role::Confirm));
                }
            }
            Input::Fence(FenceNews::Lost(fence)) => {
                if self.role == Role::Lead(fence) {
                    self.step_down(StepDown::Superseded, &mut actions);
                }
            }
            Input::Tick => {}
            Input::HandOver => {
                if self.check_hand_over(now).is_ok() {
                    self.has_handed_over = true;
                    self.leader_write_due = mono;
                    self.step_down(StepDown::HandedOver, &mut actions);
                }
            }
            Input::Close => {
                self.closing = true;
                self.leader_write_due = mono;
                // The last heartbeat says that the node stops.
                self.beat_due = mono;
            }
        }
        self.follow_record(now, &mut actions);
        self.check_able(now, &mut actions);
        if self.name_taken_by().is_none() {
            self.beat(now, &mut actions);
            self.write_record(now, &mut actions);
        } else if had_name {
            actions.push(Action::NameTaken);
        }
        actions
    }

    /// How far this node's clock is from the median of all nodes that were heard lately. Two living nodes whose clocks are
    /// far apart are both far from it, and neither leads: it is not known which clock is right.
    pub fn clock_offset(&self, now: ClockReading) -> SignedDuration {
        reading(now.wall, now.since_boot).saturating_sub(self.clock_median(now))
    }

    /// How far another node's clock is from the median.
    fn clock_offset_of(&self, peer: &Peer, now: ClockReading) -> Option<SignedDuration> {
        Some(self.clock_of(peer)?.saturating_sub(self.clock_median(now)))
    }

    /// Another node's clock, relative to this node's monotonic clock.
    fn clock_of(&self, peer: &Peer) -> Option<SignedDuration> {
        // A heartbeat travels about as long as an own one.
        let lag = self.lags.iter().min().copied().unwrap_or_default();
        let lag = SignedDuration::try_from(lag).unwrap_or_default();
        peer.readings.iter().max().map(|one| one.saturating_add(lag))
    }

    /// All clocks that are compared, sorted; at least this node's own.
    fn clocks(&self, now: ClockReading) -> Vec<SignedDuration> {
        let mono = now.since_boot;
        let others = self
            .peers
            .iter()
            .filter(|(name, peer)| **name != self.me.name && mono.saturating_sub(peer.seen_at) < ELECT_AFTER);
        let mut all: Vec<SignedDuration> = others.filter_map(|(_, peer)| self.clock_of(peer)).collect();
        all.push(reading(now.wall, mono));
        all.sort();
        all
    }

    fn clock_median(&self, now: ClockReading) -> SignedDuration {
        let all = self.clocks(now);
        let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
        low.saturating_add((high - low) / 2)
    }

    /// The level of the cluster, if this node does not write it.
    fn newer_level(&self) -> Option<u32> {
        self.level.filter(|level| *level > self.me.level)
    }

    fn names_me(&self) -> bool {
        self.leader().is_some_and(|leader| leader.node == self.me.name && leader.epoch == self.me.epoch)
    }

    fn is_able(&self, now: ClockReading, offset_max: SignedDuration) -> bool {
        !self.closing
            && self.name_taken_by().is_none()
            && self.newer_level().is_none()
            && is_fresh(self.acknowledged, now.since_boot, STEP_DOWN_AFTER)
            && self.is_ready(now)
            && self.clock_offset(now).abs() <= offset_max
    }

    fn synced(&mut self, revision: Revision, cluster: Vec<(Key, Versioned)>, now: Duration) {
        if revision < self.watched {
            return;
        }
        self.watched = revision;
        if !cluster.iter().any(|(key, _)| &**key == LEADER) {
            self.changed(LEADER, revision, None, now);
        }
        let is_stored = |name: &str| cluster.iter().any(|(key, _)| key.strip_prefix(NODE) == Some(name));
        let forgotten: Vec<String> = self.peers.keys().filter(|name| !is_stored(name)).cloned().collect();
        forgotten.iter().for_each(|name| self.forget(name));
        for (key, record) in cluster {
            self.changed(&key, record.revision, Some(&record.value), now);
        }
    }

    /// A record of the cluster was written or deleted. A heartbeat that cannot be decoded counts as silence.
    fn changed(&mut self, key: &str, revision: Revision, value: Option<&[u8]>, now: Duration) {
        if key == LEADER {
            // An operator may have deleted or damaged it. No node leads then, and the next claim repairs it.
            let record = value.map(|value| records::decode::<LeaderRecord>(key, value).unwrap_or_default());
            if self.leader_known_at < revision {
                self.leader_known_at = revision;
                self.leader = record.map(|record| (record, revision));
                self.leader_heard_at = now;
                // A vacancy is claimed at once. After its own write the node waits, or it would write again and again
                // while it may not lead.
                if !self.names_me() {
                    self.leader_write_due = now;
                }
                let is_other = |leader: &Leader| leader.node != self.me.name || leader.epoch != self.me.epoch;
                self.has_handed_over &= !self.leader().is_some_and(is_other);
            }
            return;
        }
        let Some(value) = value else {
            self.are_records_deleted |= key == FORMAT;
            key.strip_prefix(NODE).into_iter().for_each(|name| self.forget(name));
            return;
        };
        if key == FORMAT {
            // A record that cannot be read was written by a newer release.
            let level = records::decode::<FormatRecord>(key, value).map_or(u32::MAX, |record| record.level);
            self.level = Some(level);
        } else if let Some(name) = key.strip_prefix(NODE)
            && let Ok(record) = records::decode::<NodeRecord>(key, value)
        {
            if name == self.me.name {
                self.check_name(&record, revision);
            }
            self.heard(name, record, revision, now);
        }
    }

    /// The record of a node was removed: by an operator, if the node does not run any more. A node that runs returns with its
    /// next heartbeat.
    fn forget(&mut self, name: &str) {
        if name != self.me.name {
            self.peers.remove(name);
        } else if let NameClaim::Free(Some(_)) = self.name_claim {
            self.name_claim = NameClaim::Free(None);
        }
    }

    /// The watch shows a heartbeat under this node's name.
    fn check_name(&mut self, record: &NodeRecord, revision: Revision) {
        let is_mine = record.epoch == self.me.epoch;
        let claim = record.claim(revision);
        // Heartbeats of processes before may land late.
        let is_late = self.peers.get(&self.me.name).is_some_and(|me| me.has_replaced(record, claim));
        match &self.name_claim {
            NameClaim::Free(_) if is_mine => self.name_claim = NameClaim::Held(claim),
            NameClaim::Free(found) if *found == Some(revision) => {}
            // The process whose record was found does not run, and neither will the one that lost the name to it.
            NameClaim::Free(_) if is_late => self.name_claim = NameClaim::Free(Some(revision)),
            NameClaim::Held(own) if is_mine || is_late || claim < *own => {}
            NameClaim::Taken { .. } => {}
            NameClaim::Free(_) | NameClaim::Held(_) => {
                self.name_claim = NameClaim::Taken { url: record.url.clone() };
            }
        }
    }

    fn heard(&mut self, name: &str, record: NodeRecord, revision: Revision, now: Duration) {
        let before = self.peers.get(name);
        let claim = record.claim(revision);
        if before.is_some_and(|peer| peer.has_replaced(&record, claim)) {
            return;
        }
        let known = before.filter(|peer| peer.record.epoch == record.epoch);
        if known.is_some_and(|peer| peer.record.beat >= record.beat) {
            return;
        }
        let mut readings = known.map(|peer| peer.readings.clone()).unwrap_or_default();
        readings.push_back(reading(record.clock, now));
        if readings.len() > READINGS {
            readings.pop_front();
        }
        let is_leader = |leader: &Leader| leader.node == name && leader.epoch == record.epoch;
        if record.is_watching && self.leader().is_some_and(is_leader) {
            self.leader_heard_at = now;
        }
        if name == self.me.name
            && record.epoch == self.me.epoch
            && let Some(sent) = self.unseen.remove(&record.beat)
        {
            // The watch has shown everything up to then, and perhaps nothing later.
            self.returned_at = self.returned_at.max(Some(sent));
            self.lags.push_back(now.saturating_sub(sent));
            if self.lags.len() > READINGS {
                self.lags.pop_front();
            }
            self.unseen.retain(|beat, _| *beat > record.beat);
        }
        let lag_revisions = self.watched.0.saturating_sub(record.watched_revision.0);
        let peer = Peer { record, claim, seen_at: now, lag_revisions, readings };
        self.peers.insert(name.to_owned(), peer);
    }

    /// Takes or gives up the lead as the leader's record says.
    fn follow_record(&mut self, now: ClockReading, actions: &mut Vec<Action>) {
        let revision = self.leader.as_ref().map_or(Revision(0), |(_, revision)| *revision);
        if !self.names_me() {
            if self.role.leads() {
                self.step_down(StepDown::Superseded, actions);
            }
        } else if revision > self.given_up && self.role != Role::Lead(revision) {
            // Also a claim that landed late: if it is in force and the node is able, it may lead.
            if self.is_able(now, CLOCK_KEEP_MAX) && !self.has_handed_over {
                self.role = Role::Lead(revision);
                actions.push(Action::Become(self.role));
            } else {
                self.given_up = revision;
            }
        }
    }

    /// Steps down if the node may not lead any more.
    fn check_able(&mut self, now: ClockReading, actions: &mut Vec<Action>) {
        if !self.role.leads() {
            return;
        }
        let offset = self.clock_offset(now);
        let confirming = now.since_boot.saturating_sub(self.confirming_since);
        let reason = if self.closing {
            StepDown::Closing
        } else if self.name_taken_by().is_some() {
            StepDown::NameTaken
        } else if let Some(level) = self.newer_level() {
            StepDown::Level(level)
        } else if !is_fresh(self.acknowledged, now.since_boot, STEP_DOWN_AFTER) {
            StepDown::NotAcknowledged
        } else if !is_fresh(self.returned_at, now.since_boot, ELECT_AFTER) {
            StepDown::WatchStalled
        } else if offset.abs() > CLOCK_KEEP_MAX {
            StepDown::Clock(ClockOffset { from_median: offset, clocks: self.clocks(now).len() })
        } else if self.role == Role::Confirm && confirming >= STEP_DOWN_AFTER {
            StepDown::NotConfirmed
        } else {
            return;
        };
        self.step_down(reason, actions);
    }

    fn step_down(&mut self, reason: StepDown, actions: &mut Vec<Action>) {
        if let Role::Lead(fence) = self.role {
            self.given_up = self.given_up.max(fence);
        }
        self.role = Role::Follow;
        actions.push(Action::SteppedDown(reason));
        actions.push(Action::Become(Role::Follow));
    }

    fn beat(&mut self, now: ClockReading, actions: &mut Vec<Action>) {
        let mono = now.since_boot;
        if mono < self.beat_due {
            return;
        }
        self.beat_due = mono + BEAT_EVERY;
        self.beats += 1;
        for sent in [&mut self.beats_in_flight, &mut self.unseen] {
            sent.insert(self.beats, mono);
            if sent.len() > BEATS_IN_FLIGHT_MAX {
                sent.pop_first();
            }
        }
        let record = NodeRecord {
            epoch: self.me.epoch.clone(),
            beat: self.beats,
            clock: now.wall,
            url: self.me.url.clone(),
            level: self.me.level,
            is_watching: self.is_ready(now),
            has_stopped: self.closing,
            watched_revision: self.watched,
            claimed_at: match self.name_claim {
                NameClaim::Held(claim) => Some(claim),
                NameClaim::Free(_) | NameClaim::Taken { .. } => None,
            },
        };
        let key = RecordKey::ClusterNode(&self.me.name).encode();
        let expect = match self.name_claim {
            NameClaim::Free(found) => vec![Expect { key: key.clone(), revision: found }],
            NameClaim::Held(_) | NameClaim::Taken { .. } => Vec::new(),
        };
        let txn = Txn { expect, put: vec![(key, records::encode(&record))], ..Txn::default() };
        actions.push(Action::Write(ClusterWrite::Beat(self.beats), txn));
    }

    /// Claims the lead, rewrites the claim, or hands the lead over.
    fn write_record(&mut self, now: ClockReading, actions: &mut Vec<Action>) {
        let mono = now.since_boot;
        if mono < self.leader_write_due || self.role.fence().is_some() {
            return;
        }
        let (names_me, is_able) = (self.names_me(), self.is_able(now, CLOCK_TAKE_MAX));
        let is_silent = mono.saturating_sub(self.leader_heard_at) >= ELECT_AFTER;
        let is_vacant = self.leader().is_none();
        let may_claim = is_silent || (!self.has_handed_over && (names_me || is_vacant));
        let leader = if self.role == Role::Confirm || (may_claim && is_able) {
            self.has_handed_over = false;
            Some(self.claim())
        } else if names_me {
            // The record must not name a node that cannot lead: the others hear its heartbeats and would wait.
            None
        } else {
            return;
        };
        self.leader_writes += 1;
        self.leader_write_due = mono + RETRY_AFTER;
        let key: Key = RecordKey::Leader.encode();
        let revision = self.leader.as_ref().map(|(_, revision)| *revision);
        let mut txn = Txn {
            expect: vec![Expect { key: key.clone(), revision }],
            put: vec![(key, records::encode(&LeaderRecord { leader }))],
            ..Txn::default()
        };
        if self.level.is_none() {
            let (key, level) = (RecordKey::ClusterFormat.encode(), self.me.level);
            txn.expect.push(Expect { key: key.clone(), revision: None });
            txn.put.push((key, records::encode(&FormatRecord { level })));
        }
        actions.push(Action::Write(ClusterWrite::Leader(self.leader_writes), txn));
    }

    fn claim(&self) -> Leader {
        let NodeIdentity { name, epoch, url, level: _ } = self.me.clone();
        Leader { node: name, epoch, url }
    }
}

impl Peer {
    /// Whether a heartbeat, with its claim, is a late one of a process that had the name before this one.
    fn has_replaced(&self, record: &NodeRecord, claim: Revision) -> bool {
        record.epoch != self.record.epoch && claim < self.claim
    }

    fn state(&self, now: ClockReading) -> NodeState {
        if self.record.has_stopped {
            NodeState::Stopped
        } else if now.since_boot.saturating_sub(self.seen_at) < ELECT_AFTER {
            NodeState::Running
        } else {
            NodeState::Silent
        }
    }
}

fn is_fresh(at: Option<Duration>, now: Duration, within: Duration) -> bool {
    at.is_some_and(|at| now.saturating_sub(at) < within)
}

/// A wall clock relative to a monotonic one.
fn reading(wall: Timestamp, mono: Duration) -> SignedDuration {
    let mono = SignedDuration::try_from(mono).unwrap_or(SignedDuration::MAX);
    wall.duration_since(Timestamp::UNIX_EPOCH).saturating_sub(mono)
}

#[cfg(test)]
mod tests;
