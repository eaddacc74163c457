//! A cluster of three members of etcd and three nodes, and the faults that it survives.
//!
//! Each fault lasts until a condition holds, such as "another node leads", and ends with all nodes working. After each
//! one, a change through every node succeeds, all nodes show it, and guests get one document from all nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use notbefore_wire::operator as wire;
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::history::{Command, EventState, History, Outcome, Record, Restore, State, TrailFact};
use super::load::{Change, Fleet, Shared, read_document};
use super::members::{self, Member};
use super::network::Network;
use super::nodes::{self, Node, NodeAddress};
use super::{addresses, eventually};
use crate::crash::random::Random;

/// Items of a list in one request. Each ended event costs the node a read of etcd.
const PAGE: usize = 250;
/// Heartbeats of other nodes that a paused node misses: then its watch counts as stalled.
const MISSED_HEARTBEATS: u64 = 4;
/// Its samples on the metrics page.
const COMPACTED_RESYNCS: &str = r#"notbefore_cluster_resyncs_total{reason="compacted"}"#;
/// Heartbeats for which a clock stays set if the lead does not change.
const BEATS_BY_A_CLOCK: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    KillNodeLeader,
    StopNodeLeader,
    CutOffNodeLeader,
    CutOffNodeLeaderOneWay,
    KillEtcdLeader,
    StopEtcdLeader,
    CompactUnderPausedNode,
    KillBothLeaders,
    ReachQuota,
    RestoreBackup,
    SetNodeClock,
    MoveAddresses,
}

/// The faults of the test, in this order. The last two disturb etcd itself.
pub const TEN_FAULTS: [Fault; 10] = [
    Fault::KillNodeLeader,
    Fault::StopNodeLeader,
    Fault::CutOffNodeLeader,
    Fault::CutOffNodeLeaderOneWay,
    Fault::KillEtcdLeader,
    Fault::StopEtcdLeader,
    Fault::CompactUnderPausedNode,
    Fault::KillBothLeaders,
    Fault::ReachQuota,
    Fault::RestoreBackup,
];
/// Faults in which nothing fails. The test inflicts them after the ten.
pub const FURTHER_FAULTS: [Fault; 2] = [Fault::SetNodeClock, Fault::MoveAddresses];

pub fn all() -> Vec<Fault> {
    TEN_FAULTS.into_iter().chain(FURTHER_FAULTS).collect()
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Self::KillNodeLeader => "node leader killed",
            Self::StopNodeLeader => "node leader stopped",
            Self::CutOffNodeLeader => "node leader cut off",
            Self::CutOffNodeLeaderOneWay => "node leader cut off one way",
            Self::KillEtcdLeader => "etcd leader killed",
            Self::StopEtcdLeader => "etcd leader stopped",
            Self::CompactUnderPausedNode => "compaction under a paused node",
            Self::KillBothLeaders => "both leaders killed",
            Self::ReachQuota => "quota of etcd reached",
            Self::RestoreBackup => "backup restored",
            Self::SetNodeClock => "clock of a node set",
            Self::MoveAddresses => "addresses moved",
        }
    }
}

/// The leader by its record: the index of the node, and its process.
pub type Leader = (usize, String);

/// Everything that runs. Fields are dropped in this order: processes before their machines.
pub struct Site {
    pub nodes: Vec<Node>,
    pub members: Vec<Member>,
    pub network: Network,
    dir: PathBuf,
    probes: usize,
    backups: usize,
}

impl Site {
    /// Starts etcd and three nodes, and waits until all take changes. Moves this thread to the machine of the clients.
    pub fn start(dir: &Path, members: usize, guests: usize, flags: &[&str]) -> Self {
        let network = Network::new(1 + members + 3, guests);
        network.enter();
        let on: Vec<usize> = (1..=members).collect();
        let members = members::start(&network, &on, dir);
        members::wait_until_healthy(&members);
        let etcd: Vec<String> = members.iter().map(Member::client_url).collect();
        let on: Vec<usize> = (1 + on.len()..4 + on.len()).collect();
        let nodes = nodes::start(&network, &on, &etcd.join(","), dir, flags);
        let mut site = Self { nodes, members, network, dir: dir.to_owned(), probes: 0, backups: 0 };
        site.wait_until_ready();
        site
    }

    /// Creates the fleet of clients and guests, and begins the history.
    pub fn create_fleet(
        &self,
        seed: u64,
        scopes: usize,
        vms_per_scope: usize,
        clients: usize,
    ) -> Arc<Shared> {
        let history = History::begin(&self.dir, seed);
        let fleet = Fleet::create(self.addresses()[0], &history, scopes, vms_per_scope, clients);
        Arc::new(Shared::new(self.addresses(), fleet, history))
    }

    pub fn addresses(&self) -> Vec<NodeAddress> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Waits until all nodes take changes. A node that ends by itself is a failure.
    pub fn wait_until_ready(&mut self) {
        for node in &mut self.nodes {
            let what = format!("node {} takes changes", node.name);
            eventually(&what, || {
                if let Some(status) = node.ended() {
                    panic!("node {} has ended with {status}:\n{}", node.name, last_lines(&node.log()));
                }
                node.address.takes_changes().then_some(())
            });
        }
    }

    pub fn leader(&self) -> Option<Leader> {
        let record = members::record(&self.members, "cluster/leader")?;
        let (name, epoch) = (record["leader"]["node"].as_str()?, record["leader"]["epoch"].as_str()?);
        Some((self.nodes.iter().position(|node| node.name == name)?, epoch.to_owned()))
    }

    pub fn wait_for_leader(&self) -> Leader {
        eventually("a node leads", || self.leader())
    }

    /// Waits until another process leads.
    pub fn wait_for_other_leader(&self, before: &Leader) -> Leader {
        eventually("another node leads", || self.leader().filter(|leader| leader != before))
    }

    pub fn start_node(&mut self, node: usize) {
        let machine = self.nodes[node].machine;
        self.nodes[node].start(&self.network.machines[machine]);
    }

    pub fn kill_and_start_node(&mut self, node: usize) {
        self.nodes[node].kill();
        self.start_node(node);
    }

    fn start_member(&mut self, member: usize) {
        let machine = self.members[member].machine;
        self.members[member].start(&self.network.machines[machine]);
    }

    /// Inflicts a fault, ends it, and waits until all nodes take changes again.
    pub fn inflict(&mut self, fault: Fault, shared: &Shared, random: &mut Random) {
        let begun = shared.history.now();
        let leader = self.wait_for_leader();
        let (node, machine) = (leader.0, self.nodes[leader.0].machine);
        match fault {
            Fault::KillNodeLeader => {
                self.kill_and_start_node(node);
                self.wait_for_other_leader(&leader);
            }
            Fault::StopNodeLeader => {
                self.nodes[node].signal(Signal::STOP);
                self.wait_for_other_leader(&leader);
                self.nodes[node].signal(Signal::CONT);
            }
            Fault::CutOffNodeLeader => {
                self.network.cut_off(machine);
                self.wait_for_other_leader(&leader);
                self.network.reconnect(machine);
            }
            Fault::CutOffNodeLeaderOneWay => {
                match random.chance(50) {
                    true => self.network.deafen(machine),
                    false => self.network.mute(machine),
                }
                self.wait_for_other_leader(&leader);
                self.network.reconnect(machine);
            }
            Fault::KillEtcdLeader => {
                let member = self.wait_for_etcd_leader(None);
                self.members[member].kill();
                self.wait_for_etcd_leader(Some(member));
                self.start_member(member);
                members::wait_until_healthy(&self.members);
            }
            Fault::StopEtcdLeader => {
                let member = self.wait_for_etcd_leader(None);
                self.members[member].signal(Signal::STOP);
                self.wait_for_etcd_leader(Some(member));
                self.members[member].signal(Signal::CONT);
                members::wait_until_healthy(&self.members);
            }
            Fault::CompactUnderPausedNode => self.compact_under_paused_node(&leader, shared),
            Fault::KillBothLeaders => {
                let member = self.wait_for_etcd_leader(None);
                self.nodes[node].kill();
                self.members[member].kill();
                self.start_node(node);
                self.wait_for_etcd_leader(Some(member));
                self.start_member(member);
                self.wait_for_other_leader(&leader);
                members::wait_until_healthy(&self.members);
            }
            Fault::ReachQuota => self.reach_quota(shared),
            Fault::RestoreBackup => self.restore_backup(shared),
            Fault::SetNodeClock => self.set_node_clock(&leader, random),
            Fault::MoveAddresses => addresses::exchange(shared, random),
        }
        self.wait_until_ready();
        let (name, ended) = (fault.name().to_owned(), shared.history.now());
        shared.history.record(Record::Fault { name, begun, ended });
    }

    /// Waits until etcd has a leader other than this member, which does not run.
    fn wait_for_etcd_leader(&self, except: Option<usize>) -> usize {
        eventually("etcd has a leader", || members::leader(&self.members, except))
    }

    fn compact_under_paused_node(&mut self, leader: &Leader, shared: &Shared) {
        let paused = (leader.0 + 1) % self.nodes.len();
        let before = self.nodes[paused].log().len();
        self.nodes[paused].signal(Signal::STOP);
        let beats = format!("cluster/node/{}", self.nodes[leader.0].name);
        let first = eventually("a heartbeat of the leader", || members::version(&self.members, &beats));
        self.change_through(leader.0, shared, "host-freeze");
        eventually("the paused node misses heartbeats", || {
            members::version(&self.members, &beats).filter(|version| *version > first + MISSED_HEARTBEATS)
        });
        members::compact(&self.members);
        self.nodes[paused].signal(Signal::CONT);
        let node = &self.nodes[paused];
        eventually("the paused node finds that its watch was compacted", || {
            node.log()[before..].contains("the watch fell behind the store's log").then_some(())
        });
        eventually("the paused node counts that it has read the store again", || {
            let page = node.address.get("/metrics")?.body;
            let count = |line: &str| line.strip_prefix(COMPACTED_RESYNCS)?.trim().parse::<u64>().ok();
            page.lines().find_map(count).filter(|count| *count >= 1)
        });
    }

    /// Sets the clock of a node, and sets it right again. A leader whose clock is far off gives up the lead; one whose clock
    /// is a little off plans by it for some seconds.
    fn set_node_clock(&mut self, leader: &Leader, random: &mut Random) {
        let is_leader = random.chance(75);
        let node = if is_leader { leader.0 } else { (leader.0 + 1) % self.nodes.len() };
        let offset = match random.within(0..=9) {
            0..=4 => random.within(2..=13) as f64 / 10.0,
            5..=8 => random.within(2..=50) as f64,
            _ => 3_600.0,
        };
        let sign = if random.chance(50) { 1.0 } else { -1.0 };
        let name = &self.nodes[node].name;
        println!("clock of {name}: {:+} s", offset * sign);
        self.nodes[node].set_clock(offset * sign);
        if is_leader && offset >= 2.0 {
            self.wait_for_other_leader(leader);
        } else {
            let beats = format!("cluster/node/{name}");
            let first = eventually("a heartbeat", || members::version(&self.members, &beats));
            eventually("the node sends heartbeats by its clock", || {
                members::version(&self.members, &beats).filter(|version| *version > first + BEATS_BY_A_CLOCK)
            });
        }
        self.nodes[node].set_clock(0.0);
    }

    fn reach_quota(&mut self, shared: &Shared) {
        members::fill(&self.members);
        // Changes are refused or without an answer; guests are answered by every node.
        eventually("the cluster takes no changes", || {
            self.nodes.iter().all(|node| !node.address.takes_changes()).then_some(())
        });
        for node in 0..self.nodes.len() {
            eventually("a guest is answered without the store", || read_document(shared, 0, node));
        }
        members::clear(&self.members);
        members::wait_until_healthy(&self.members);
    }

    fn restore_backup(&mut self, shared: &Shared) {
        self.backups += 1;
        let backup = self.dir.join(format!("backup-{}", self.backups));
        let backup_begun = shared.history.now();
        eventually("a backup", || self.members[0].etcdctl(&["snapshot", "save", backup.to_str().unwrap()]));
        let backup_ended = shared.history.now();
        let (lost, _) = self.change_through(0, shared, "host-reboot");
        self.members.iter_mut().for_each(Member::kill);
        let logs: Vec<usize> = self.nodes.iter().map(|node| node.log().len()).collect();
        self.members.iter().for_each(|member| member.restore(&backup));
        (0..self.members.len()).for_each(|member| self.start_member(member));
        for (node, before) in self.nodes.iter_mut().zip(logs) {
            let status = eventually(&format!("node {} ends after the restore", node.name), || node.ended());
            let log = node.log();
            let said = &log[before..];
            let says_why = said.contains("this node ends: start it again");
            assert!(!status.success() && says_why, "node {} ended with {status}: {said}", node.name);
        }
        let nodes_ended = shared.history.now();
        shared.history.record(Record::Restore(Restore { backup_begun, backup_ended, nodes_ended }));
        shared.restores.fetch_add(1, Ordering::SeqCst);
        members::wait_until_healthy(&self.members);
        (0..self.nodes.len()).for_each(|node| self.kill_and_start_node(node));
        self.wait_until_ready();
        for node in &self.nodes {
            let status = eventually("an answer", || node.address.get(&format!("/v1/events/{lost}"))).status;
            assert_eq!(status, 404, "{}: an event of after the backup is in the restored state", node.name);
        }
    }

    /// Schedules an event through one node, which must succeed; returns the event and its scope.
    fn change_through(&mut self, node: usize, shared: &Shared, cause: &str) -> (Uuid, usize) {
        self.probes += 1;
        let scope = self.probes % shared.fleet.scopes.len();
        let vms = shared.fleet.of(scope);
        let tag = format!("probe-{} {}", self.probes, shared.fleet.scopes[scope]);
        let (key, change) = (format!("probe-{}", self.probes), Change::schedule(cause, &vms[..1], &tag));
        let command = Command::Schedule { tag };
        let made = eventually(&format!("a change through node {node}"), || {
            match shared.attempt(node, &key, false, &command, &change) {
                Outcome::Acknowledged(made) => Some(made),
                Outcome::Refused { status, code } => panic!("a change through node {node}: {status} {code}"),
                Outcome::NotSent | Outcome::Unanswered | Outcome::Unavailable { .. } => None,
            }
        });
        (made.events[0], scope)
    }

    /// A change through every node succeeds, all nodes show it, and guests get one document from all nodes. Returns the
    /// time since when all nodes have what was acknowledged.
    pub fn check(&mut self, shared: &Shared) -> u64 {
        let complete_since = shared.history.now();
        for node in 0..self.nodes.len() {
            let (event, scope) = self.change_through(node, shared, "host-freeze");
            for other in &self.nodes {
                eventually(&format!("node {} shows the change through node {node}", other.name), || {
                    other.address.get(&format!("/v1/events/{event}")).filter(|answer| answer.status == 200)
                });
            }
            let guest = shared.fleet.guest_of(scope);
            eventually("guests get one document from all nodes, with the change", || {
                let read = |node| read_document(shared, guest, node);
                let documents: Vec<_> = (0..self.nodes.len()).map(read).collect::<Option<_>>()?;
                let is_shown = documents[0].events.iter().any(|one| one.id == event);
                // The event may have ended already.
                let has_ended = || self.has_ended(event);
                ((is_shown || has_ended()) && documents.iter().all(|one| *one == documents[0])).then_some(())
            });
        }
        complete_since
    }

    fn has_ended(&self, event: Uuid) -> bool {
        let answer = self.nodes[0].address.get(&format!("/v1/events/{event}"));
        let shown = answer.filter(|answer| answer.status == 200).map(|answer| answer.parsed::<wire::Event>());
        shown.is_some_and(|event| {
            matches!(event.status, wire::EventStatus::Completed | wire::EventStatus::Cancelled)
        })
    }

    /// Records the state that a node shows, with trails if they are wanted.
    pub fn record_state(&self, shared: &Shared, node: usize, complete_since: u64, with_trails: bool) {
        let address = self.nodes[node].address;
        let listed: Vec<wire::Event> = read_all(address, "/v1/events?");
        let ended: Vec<wire::Event> = read_all(address, "/v1/history?");
        let mut events: BTreeMap<Uuid, wire::Event> = BTreeMap::new();
        for event in listed.into_iter().chain(ended) {
            events.insert(event.id, event);
        }
        let events = events.into_values().map(|event| {
            let event = match with_trails {
                true => read(address, &format!("/v1/events/{}", event.id)),
                false => event,
            };
            event_state(&event)
        });
        let events = events.collect();
        let scopes: Vec<wire::Scope> = read_all(address, "/v1/scopes?");
        let notices =
            scopes.into_iter().map(|one| (one.path, one.policy.terminate_notification_seconds)).collect();
        let vms: Vec<wire::Vm> = read_all(address, "/v1/vms?");
        let vms = vms.into_iter().map(|vm| vm.name).collect();
        let ended = shared.history.now();
        shared.history.record(Record::State(State { node, complete_since, ended, events, notices, vms }));
    }

    /// How often a node has taken the lead.
    pub fn take_overs(&self) -> usize {
        self.nodes.iter().map(|node| node.log().matches("this node leads the cluster").count()).sum()
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

fn event_state(event: &wire::Event) -> EventState {
    let fact = |fact: &wire::Fact| {
        #[allow(clippy::wildcard_enum_match_arm, reason = "other facts have neither")]
        let (not_before, why) = match &fact.what {
            wire::FactDetail::EventScheduled { not_before, .. } => (*not_before, None),
            wire::FactDetail::EventStarted { why, .. } => (None, Some(why.clone())),
            _ => (None, None),
        };
        TrailFact { kind: fact.what.kind().to_string(), at: fact.at, not_before, why }
    };
    EventState {
        id: event.id,
        operation: event.operation,
        scope: event.scope.clone(),
        description: event.description.clone(),
        status: event.status.to_string(),
        cause: event.cause.to_string(),
        trail: event.trail.iter().map(fact).collect(),
    }
}

pub fn read<T: DeserializeOwned>(node: NodeAddress, target: &str) -> T {
    eventually(target, || node.get(target).filter(|answer| answer.status == 200)).parsed()
}

fn read_all<T: DeserializeOwned>(node: NodeAddress, target: &str) -> Vec<T> {
    let mut items = Vec::new();
    let mut page: wire::Page<T> = read(node, &format!("{target}limit={PAGE}"));
    loop {
        items.append(&mut page.items);
        let Some(next) = page.next else { return items };
        page = read(node, &format!("{target}limit={PAGE}&cursor={next}"));
    }
}

/// Notice of seconds and events of one second, so that events also start and end by time.
pub const FLAGS: [&str; 4] = ["--notice", "0.01", "--simulated-duration", "1s"];

/// What the fixed list of faults and the random ones share: a cluster with its fleet.
pub fn start(
    dir: &Path,
    seed: u64,
    scopes: usize,
    vms_per_scope: usize,
    clients: usize,
) -> (Site, Arc<Shared>) {
    let site = Site::start(dir, 3, scopes * vms_per_scope, &FLAGS);
    let shared = site.create_fleet(seed, scopes, vms_per_scope, clients);
    (site, shared)
}
