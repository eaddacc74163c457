//! Tables for one machine, and a property test of several over a small store.

use bytes::Bytes;
use notbefore_store::Change;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// One compared map with its log, enough for the records of the cluster.
#[derive(Default)]
struct TinyStore {
    records: BTreeMap<Key, (Revision, Bytes)>,
    log: Vec<Batch>,
}

impl TinyStore {
    fn commit(&mut self, txn: &Txn) -> Outcome {
        let revision_of = |key: &Key| self.records.get(key).map(|(revision, _)| *revision);
        if txn.expect.iter().any(|one| revision_of(&one.key) != one.revision) {
            return Outcome::Conflict(Vec::new());
        }
        // Every second revision belongs to another user of the store.
        let revision = Revision(2 * (self.log.len() as u64 + 1));
        for (key, value) in &txn.put {
            self.records.insert(key.clone(), (revision, value.clone()));
        }
        let changes =
            txn.put.iter().map(|(key, value)| Change { key: key.clone(), value: Some(value.clone()) });
        self.log.push(Batch { revision, changes: changes.collect() });
        Outcome::Committed(revision)
    }

    fn leader(&self) -> Option<(Option<String>, Revision)> {
        let (revision, value) = self.records.get(LEADER)?;
        let record: LeaderRecord = records::decode(LEADER, value).unwrap();
        Some((record.leader.map(|leader| leader.node), *revision))
    }
}

struct TestNode {
    machine: Leadership,
    /// Difference of its wall clock from the true time.
    offset: SignedDuration,
    /// Position in the store's log.
    watched: usize,
    writes: Vec<(ClusterWrite, Txn)>,
    /// Whether it reaches the store.
    is_cut: bool,
    /// Whether its watch yields nothing.
    is_stalled: bool,
    /// Whether the process stands still.
    is_stopped: bool,
    stepped_down: Vec<StepDown>,
    /// How often it was told that another process has its name.
    lost_name: usize,
    fences: Vec<Revision>,
}

struct TestCluster {
    store: TinyStore,
    nodes: Vec<TestNode>,
    now: Duration,
}

fn wall(now: Duration, offset: SignedDuration) -> ClockReading {
    let begin: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
    ClockReading { wall: begin + SignedDuration::try_from(now).unwrap() + offset, since_boot: now }
}

fn identity(name: &str) -> NodeIdentity {
    NodeIdentity {
        name: name.into(),
        epoch: format!("{name}-1"),
        url: format!("https://{name}"),
        level: records::FORMAT_LEVEL,
    }
}

impl TestNode {
    fn new(machine: Leadership) -> Self {
        Self {
            machine,
            offset: SignedDuration::ZERO,
            watched: 0,
            writes: Vec::new(),
            is_cut: false,
            is_stalled: false,
            is_stopped: false,
            stepped_down: Vec::new(),
            lost_name: 0,
            fences: Vec::new(),
        }
    }
}

impl TestCluster {
    fn new(count: usize) -> Self {
        let now = 100 * SECOND;
        let machine = |name: &&str| {
            let reading = wall(now, SignedDuration::ZERO);
            Leadership::new(identity(name), None, Revision(0), Vec::new(), reading)
        };
        let node = |name: &&str| TestNode::new(machine(name));
        Self { store: TinyStore::default(), nodes: ["a", "b", "c"][..count].iter().map(node).collect(), now }
    }

    fn feed(&mut self, node: usize, input: Input) {
        let one = &mut self.nodes[node];
        let actions = one.machine.handle(input, wall(self.now, one.offset));
        for action in actions {
            match action {
                Action::Write(id, txn) => one.writes.push((id, txn)),
                Action::Become(Role::Lead(fence)) => one.fences.push(fence),
                Action::Become(_) => {}
                Action::SteppedDown(reason) => one.stepped_down.push(reason),
                Action::NameTaken => one.lost_name += 1,
            }
        }
    }

    /// Writes and watches until nothing is left.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            let mut idle = true;
            for node in 0..self.nodes.len() {
                if self.nodes[node].is_stopped {
                    continue;
                }
                for (id, txn) in std::mem::take(&mut self.nodes[node].writes) {
                    idle = false;
                    let outcome = match self.nodes[node].is_cut {
                        true => Outcome::Unknown("cut".into()),
                        false => self.store.commit(&txn),
                    };
                    self.feed(node, Input::Wrote(id, outcome));
                }
                let can_watch = !self.nodes[node].is_cut && !self.nodes[node].is_stalled;
                while can_watch && let Some(batch) = self.store.log.get(self.nodes[node].watched).cloned() {
                    idle = false;
                    self.nodes[node].watched += 1;
                    self.feed(node, Input::Watched(batch));
                }
            }
            if idle {
                return;
            }
        }
        panic!("the nodes write without end");
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(100).min(end - self.now);
            for node in 0..self.nodes.len() {
                if !self.nodes[node].is_stopped {
                    self.feed(node, Input::Tick);
                }
            }
            self.settle();
        }
    }

    fn role(&self, node: usize) -> Role {
        self.nodes[node].machine.role()
    }

    fn leads(&self, node: usize) -> bool {
        self.role(node).leads()
    }

    /// The node that leads, by all machines and the record.
    fn only_leader(&self) -> usize {
        let leading: Vec<usize> = (0..self.nodes.len()).filter(|node| self.leads(*node)).collect();
        let [leader] = leading[..] else { panic!("{leading:?} lead; record {:?}", self.store.leader()) };
        let fence = self.role(leader).fence();
        assert_eq!(
            self.store.leader().map(|(_, revision)| revision),
            fence,
            "its fence is its record's revision"
        );
        leader
    }
}

/// Three nodes, of which `a` leads.
fn three() -> TestCluster {
    let mut cluster = TestCluster::new(3);
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.only_leader(), 0);
    cluster
}

#[test]
fn first_node_leads_once_its_heartbeat_has_returned() {
    let mut cluster = TestCluster::new(1);
    cluster.nodes[0].is_stalled = true;
    cluster.pass(10 * SECOND);
    assert!(!cluster.leads(0), "its own watch has shown nothing");
    cluster.nodes[0].is_stalled = false;
    cluster.pass(SECOND);
    assert_eq!(cluster.only_leader(), 0);
}

#[test]
fn silent_leader_is_replaced_after_four_seconds() {
    let mut cluster = three();
    cluster.nodes[0].is_stopped = true;
    // Its last heartbeat was up to a second ago.
    cluster.pass(3 * SECOND);
    assert!(!cluster.leads(1) && !cluster.leads(2));
    cluster.pass(Duration::from_millis(1_100));
    assert!(cluster.leads(1) != cluster.leads(2), "exactly one of the others leads");
    assert!(cluster.leads(0), "the stopped process does not know yet");
    cluster.nodes[0].is_stopped = false;
    cluster.feed(0, Input::Tick);
    assert!(!cluster.leads(0), "it finds out before it does anything");
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::NotAcknowledged]);
    cluster.pass(5 * SECOND);
    assert!([1, 2].contains(&cluster.only_leader()), "the lead does not return");
}

#[test]
fn leader_that_is_cut_off_steps_down_before_another_leads() {
    let mut cluster = three();
    cluster.nodes[0].is_cut = true;
    cluster.pass(Duration::from_millis(2_600));
    assert!(!cluster.leads(0));
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::NotAcknowledged]);
    assert!(!cluster.leads(1) && !cluster.leads(2));
    cluster.pass(2 * SECOND);
    assert!(cluster.leads(1) || cluster.leads(2));
}

#[test]
fn leader_whose_heartbeats_go_on_claims_the_lead_again_with_a_new_fence() {
    let mut cluster = three();
    let before = cluster.role(0);
    cluster.nodes[0].is_cut = true;
    cluster.pass(Duration::from_millis(2_600));
    cluster.nodes[0].is_cut = false;
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.only_leader(), 0, "no other node saw it silent for long enough");
    assert_ne!(cluster.role(0), before, "transactions with the old fence may still be on their way");
}

#[test]
fn hand_over_takes_no_time() {
    let mut cluster = three();
    cluster.feed(0, Input::Close);
    assert!(!cluster.leads(0));
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::Closing]);
    cluster.settle();
    assert!(cluster.leads(1) || cluster.leads(2), "the next node leads without waiting for any time to pass");
    cluster.pass(10 * SECOND);
    assert!(!cluster.leads(0), "a node that stops does not claim the lead");
}

#[test]
fn hand_over_by_an_operator_takes_no_time_and_the_lead_stays_with_the_other_node() {
    let mut cluster = three();
    cluster.feed(0, Input::HandOver);
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::HandedOver]);
    cluster.settle();
    let next = cluster.only_leader();
    assert_ne!(next, 0, "the next node leads without waiting for any time to pass");
    cluster.pass(20 * SECOND);
    assert_eq!(cluster.only_leader(), next);
    cluster.feed(next, Input::HandOver);
    cluster.settle();
    assert_ne!(cluster.only_leader(), next);
}

#[test]
fn lead_that_is_handed_back_is_taken_at_once() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(2 * SECOND);
    cluster.feed(0, Input::HandOver);
    cluster.settle();
    assert_eq!(cluster.only_leader(), 1);
    cluster.feed(1, Input::HandOver);
    cluster.settle();
    assert_eq!(cluster.only_leader(), 0, "the earlier hand-over is over");
}

#[test]
fn hand_over_that_no_node_takes_returns_after_four_seconds() {
    let mut cluster = three();
    cluster.feed(0, Input::HandOver);
    for node in &mut cluster.nodes[1..] {
        node.is_stopped = true;
    }
    cluster.pass(3 * SECOND);
    assert!(!cluster.leads(0), "the others get the chance first");
    cluster.pass(3 * SECOND);
    assert!(cluster.leads(0));
    assert_eq!(cluster.store.leader().unwrap().0, Some("a".into()));
}

#[test]
fn hand_over_during_an_unknown_outcome_is_final() {
    let mut cluster = three();
    let Role::Lead(fence) = cluster.role(0) else { panic!("a does not lead") };
    // The rewrite is on its way when the operator asks.
    cluster.feed(0, Input::Fence(FenceNews::Unknown(fence)));
    cluster.feed(0, Input::HandOver);
    cluster.settle();
    cluster.pass(SECOND);
    assert_ne!(cluster.only_leader(), 0, "a claim that lands late is not taken");
}

#[test]
fn hand_over_needs_a_node_that_can_lead() {
    let now = |cluster: &TestCluster| wall(cluster.now, SignedDuration::ZERO);
    let check = |cluster: &mut TestCluster| {
        let checked = cluster.nodes[0].machine.check_hand_over(now(cluster));
        cluster.feed(0, Input::HandOver);
        assert_eq!(cluster.leads(0), checked != Ok(()), "the machine keeps to it");
        checked
    };
    let mut alone = TestCluster::new(1);
    alone.pass(2 * SECOND);
    assert_eq!(check(&mut alone), Err(HandOverRefusal::NoOtherNode));

    let mut silent = three();
    silent.nodes[1].is_stopped = true;
    silent.nodes[2].is_stopped = true;
    silent.pass(5 * SECOND);
    assert_eq!(check(&mut silent), Err(HandOverRefusal::NoOtherNode));

    let mut stalled = three();
    for node in &mut stalled.nodes[1..] {
        node.is_stalled = true;
    }
    stalled.pass(5 * SECOND);
    assert_eq!(check(&mut stalled), Err(HandOverRefusal::NoOtherNode), "their watches show nothing");

    let mut early = TestCluster::new(2);
    early.pass(2 * SECOND);
    // Half of it is this node's distance from the median, so this one still leads.
    early.nodes[1].offset = SignedDuration::from_millis(2_400);
    early.pass(4 * SECOND);
    assert_eq!(check(&mut early), Err(HandOverRefusal::NoOtherNode), "its clock is off");

    let mut stopped = TestCluster::new(2);
    stopped.pass(2 * SECOND);
    stopped.feed(1, Input::Close);
    stopped.settle();
    assert_eq!(check(&mut stopped), Err(HandOverRefusal::NoOtherNode));

    let mut cluster = three();
    assert_eq!(cluster.nodes[1].machine.check_hand_over(now(&cluster)), Err(HandOverRefusal::NotLeading));
    assert_eq!(check(&mut cluster), Ok(()));
}

#[test]
fn report_shows_every_node_by_its_heartbeats() {
    let mut cluster = three();
    cluster.nodes[1].is_stopped = true;
    cluster.nodes[2].offset = SignedDuration::from_millis(-300);
    cluster.pass(5 * SECOND);
    let report = cluster.nodes[0].machine.report(wall(cluster.now, SignedDuration::ZERO));
    assert_eq!((report.me.name.as_str(), report.role.leads(), report.level), ("a", true, Some(2)));
    let shown = |node: &NodeReport| (node.name.clone(), node.state, node.leads, node.is_able);
    let nodes: Vec<_> = report.nodes.iter().map(shown).collect();
    assert_eq!(
        nodes,
        [
            ("a".into(), NodeState::Running, true, true),
            ("b".into(), NodeState::Silent, false, false),
            ("c".into(), NodeState::Running, false, true)
        ]
    );
    let offsets: Vec<_> =
        report.nodes.iter().map(|node| node.clock_offset.map(|one| one.as_millis())).collect();
    assert_eq!(offsets, [Some(150), None, Some(-150)], "from the median of the two that run");
    assert!(report.nodes[1].heard_ago >= ELECT_AFTER && report.nodes[2].heard_ago < SECOND);
    assert!(report.returned_ago.is_some_and(|ago| ago <= SECOND));
    let lags: Vec<u64> = report.nodes.iter().map(|node| node.lag_revisions).collect();
    assert!(
        lags.iter().all(|lag| (1..20).contains(lag)),
        "each has shown all but the last seconds: {lags:?}"
    );
    cluster.feed(2, Input::Close);
    cluster.settle();
    let report = cluster.nodes[0].machine.report(wall(cluster.now, SignedDuration::ZERO));
    assert_eq!((report.nodes[2].state, report.nodes[2].clock_offset), (NodeState::Stopped, None));
}

#[test]
fn unknown_outcome_rewrites_the_record_before_anything_else() {
    let mut cluster = three();
    let Role::Lead(fence) = cluster.role(0) else { panic!("a does not lead") };
    cluster.feed(0, Input::Fence(FenceNews::Unknown(Revision(fence.0 - 1))));
    assert_eq!(cluster.role(0), Role::Lead(fence), "a transaction with an older fence is decided already");
    cluster.feed(0, Input::Fence(FenceNews::Unknown(fence)));
    assert_eq!(cluster.role(0), Role::Confirm);
    assert_eq!(cluster.nodes[0].writes.len(), 1, "the rewrite is sent at once");
    cluster.settle();
    let Role::Lead(next) = cluster.role(0) else { panic!("a does not lead again") };
    assert!(next > fence);
    cluster.feed(0, Input::Fence(FenceNews::Lost(fence)));
    assert_eq!(cluster.role(0), Role::Lead(next), "its own rewrite fenced the older transaction");
    assert_eq!(cluster.nodes[0].stepped_down, []);
}

#[test]
fn rewrite_that_is_never_seen_ends_the_lead() {
    let mut cluster = three();
    let Role::Lead(fence) = cluster.role(0) else { panic!("a does not lead") };
    cluster.nodes[0].is_stalled = true;
    cluster.feed(0, Input::Fence(FenceNews::Unknown(fence)));
    cluster.pass(3 * SECOND);
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::NotConfirmed]);
    cluster.pass(6 * SECOND);
    let leader = cluster.store.leader().unwrap().0;
    assert!(leader != Some("a".into()), "the heartbeats of a node without a watch do not count: {leader:?}");
}

#[test]
fn transaction_that_finds_another_leader_ends_the_lead() {
    let mut cluster = three();
    let Role::Lead(fence) = cluster.role(0) else { panic!("a does not lead") };
    cluster.feed(0, Input::Fence(FenceNews::Lost(fence)));
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::Superseded]);
}

#[test]
fn clock_far_from_the_median_gives_up_the_lead_and_does_not_take_it() {
    let mut cluster = three();
    cluster.nodes[0].offset = SignedDuration::from_secs(5);
    cluster.feed(0, Input::Tick);
    let [StepDown::Clock(offset)] = cluster.nodes[0].stepped_down[..] else { panic!("it still leads") };
    assert!(offset.from_median > SignedDuration::from_secs(4), "{offset}");
    assert!(offset.to_string().ends_with(" s from the median of all nodes"), "{offset}");
    cluster.pass(SECOND);
    assert!([1, 2].contains(&cluster.only_leader()), "it hands the lead over");
    let next = cluster.only_leader();
    cluster.nodes[3 - next].is_stopped = true;
    cluster.nodes[next].is_stopped = true;
    cluster.pass(3 * SECOND);
    assert!(!cluster.leads(0), "the heartbeats of the others are recent enough to compare with");
}

#[test]
fn clocks_of_two_nodes_are_compared_with_each_other() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(2 * SECOND);
    let leader = cluster.only_leader();
    cluster.nodes[1 - leader].offset = SignedDuration::from_millis(-3_200);
    cluster.pass(4 * SECOND);
    let [StepDown::Clock(offset)] = cluster.nodes[leader].stepped_down[..] else { panic!("it still leads") };
    assert_eq!(offset.to_string(), "+3.2 s from that of the only other node");
    let report = cluster.nodes[leader].machine.report(wall(cluster.now, SignedDuration::ZERO));
    assert_eq!(report.clocks, 2);
}

#[test]
fn drifting_clock_gives_up_the_lead_before_it_is_two_seconds_off() {
    let mut cluster = three();
    let mut drifted = SignedDuration::ZERO;
    while cluster.leads(0) {
        drifted += SignedDuration::from_millis(20);
        assert!(drifted < SignedDuration::from_secs(2), "it leads with a clock {drifted} off");
        cluster.nodes[0].offset = drifted;
        cluster.pass(Duration::from_millis(100));
    }
    assert!(drifted > SignedDuration::from_secs(1), "small differences are normal: {drifted}");
}

#[test]
fn node_whose_watch_catches_up_does_not_take_the_lead_of_a_node_that_lives() {
    let mut cluster = three();
    cluster.nodes[0].is_cut = true;
    cluster.pass(10 * SECOND);
    cluster.nodes[0].is_cut = false;
    cluster.pass(5 * SECOND);
    let leader = cluster.only_leader();
    let fence = cluster.role(leader).fence();
    let follower = (0..3).find(|node| *node != leader).unwrap();
    cluster.nodes[follower].is_stalled = true;
    cluster.pass(5 * SECOND);
    cluster.nodes[follower].is_stalled = false;
    cluster.pass(5 * SECOND);
    assert_eq!((cluster.only_leader(), cluster.role(leader).fence()), (leader, fence));
}

#[test]
fn late_heartbeat_of_the_process_before_a_restart_is_ignored() {
    let mut cluster = three();
    let beat = |epoch: &str, beat, offset: i64| NodeRecord {
        epoch: epoch.to_owned(),
        beat,
        clock: wall(cluster.now, SignedDuration::from_secs(offset)).wall,
        url: String::new(),
        level: 2,
        is_watching: true,
        has_stopped: false,
        watched_revision: Revision(1),
        claimed_at: None,
    };
    let now = cluster.now;
    let old = NodeRecord { claimed_at: Some(Revision(900)), ..beat("b-1", 90, -60) };
    let new = beat("b-2", 1, 0);
    let machine = &mut cluster.nodes[0].machine;
    machine.heard("b", new, Revision(1_000), now);
    machine.heard("b", old, Revision(1_001), now);
    assert_eq!(machine.peers["b"].record.epoch, "b-2");
    assert_eq!(machine.clock_offset(wall(now, SignedDuration::ZERO)).abs().as_secs(), 0);
}

#[test]
fn heartbeat_that_arrives_late_does_not_count() {
    let mut cluster = three();
    cluster.nodes[0].is_stopped = true;
    cluster.pass(3 * SECOND);
    let late =
        cluster.store.log.iter().find(|batch| &*batch.changes[0].key == "cluster/node/a").cloned().unwrap();
    let (key, value) = (late.changes[0].key.clone(), late.changes[0].value.clone().unwrap());
    cluster.store.commit(&Txn { put: vec![(key, value)], ..Txn::default() });
    cluster.pass(Duration::from_millis(1_500));
    assert!(cluster.leads(1) || cluster.leads(2), "an old heartbeat does not keep a silent leader");
}

impl TestCluster {
    /// A process with the name of this node, which has just loaded the store.
    fn new_process(&self, node: usize, epoch: &str) -> TestNode {
        let name = &self.nodes[node].machine.me.name;
        let records = self.store.records.iter().map(|(key, (revision, value))| {
            (key.clone(), Versioned { revision: *revision, value: value.clone() })
        });
        let found = self.store.records.get(&*format!("cluster/node/{name}")).map(|(revision, _)| *revision);
        let newest = self.store.log.last().map_or(Revision(0), |batch| batch.revision);
        let now = wall(self.now, SignedDuration::ZERO);
        let identity = NodeIdentity { epoch: epoch.into(), ..identity(name) };
        let machine = Leadership::new(identity, found, newest, records.collect(), now);
        TestNode { watched: self.store.log.len(), ..TestNode::new(machine) }
    }
}

#[test]
fn restarted_leader_waits_like_the_others() {
    let mut cluster = three();
    cluster.nodes[0] = cluster.new_process(0, "a-2");
    cluster.pass(2 * SECOND);
    assert!(!cluster.leads(0), "the record names the process before it");
    cluster.pass(3 * SECOND);
    cluster.only_leader();
    assert_eq!(cluster.nodes[0].lost_name, 0);
}

#[test]
fn of_two_processes_that_start_at_once_one_gets_the_name() {
    for has_record in [false, true] {
        let mut cluster = three();
        match has_record {
            true => cluster.nodes[0].is_stopped = true,
            false => cluster = TestCluster::new(1),
        }
        for epoch in ["a-2", "a-3"] {
            let process = cluster.new_process(0, epoch);
            cluster.nodes.push(process);
        }
        let (first, second) = (cluster.nodes.len() - 2, cluster.nodes.len() - 1);
        if !has_record {
            cluster.nodes[0].is_stopped = true;
        }
        cluster.pass(3 * SECOND);
        assert_eq!(cluster.nodes[first].lost_name, 0);
        assert_eq!(cluster.nodes[second].lost_name, 1, "it was told once");
        assert_eq!(cluster.nodes[second].machine.name_taken_by(), Some("https://a"));
        let beats = |epoch: &str| {
            let epoch = format!("\"epoch\":\"{epoch}\"").into_bytes();
            let holds = |value: &Bytes| value.windows(epoch.len()).any(|part| part == epoch);
            let of_name = |change: &Change| {
                &*change.key == "cluster/node/a" && change.value.as_ref().is_some_and(holds)
            };
            cluster.store.log.iter().filter(|batch| batch.changes.iter().any(of_name)).count()
        };
        assert!(beats("a-2") >= 3);
        assert_eq!(beats("a-3"), 0, "it wrote nothing");
    }
}

#[test]
fn process_that_stood_still_gives_its_name_up() {
    let mut cluster = three();
    cluster.nodes[0].is_stopped = true;
    cluster.pass(5 * SECOND);
    let next = cluster.new_process(0, "a-2");
    cluster.nodes.push(next);
    cluster.pass(2 * SECOND);
    cluster.nodes[0].is_stopped = false;
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.nodes[0].lost_name, 1);
    assert_eq!(cluster.nodes[0].stepped_down.len(), 1, "{:?}", cluster.nodes[0].stepped_down);
    // What the former process wrote when it went on does not confuse the new one.
    assert_eq!(cluster.nodes[3].lost_name, 0);
    cluster.only_leader();
}

/// Three processes of one name that stand still in turn. Each that goes on may write a heartbeat before its watch shows the
/// processes after it.
#[test]
fn of_three_processes_that_stood_still_the_last_keeps_the_name() {
    for order in [[0, 3, 4], [0, 4, 3], [3, 0, 4], [3, 4, 0], [4, 0, 3], [4, 3, 0]] {
        let mut cluster = three();
        for (stopped, epoch) in [(0, "a-2"), (3, "a-3")] {
            cluster.nodes[stopped].is_stopped = true;
            cluster.pass(5 * SECOND);
            let next = cluster.new_process(0, epoch);
            cluster.nodes.push(next);
            cluster.pass(2 * SECOND);
        }
        cluster.nodes[4].is_stopped = true;
        cluster.pass(5 * SECOND);
        for node in order {
            cluster.nodes[node].is_stopped = false;
            cluster.pass(2 * SECOND);
        }
        let lost: Vec<usize> = [0, 3, 4].map(|node| cluster.nodes[node].lost_name).into();
        assert_eq!(lost, [1, 1, 0], "{order:?}");
        cluster.pass(2 * SECOND);
        for other in [1, 2] {
            let report = cluster.nodes[other].machine.report(wall(cluster.now, SignedDuration::ZERO));
            let shown = (&*report.nodes[0].record.epoch, report.nodes[0].state);
            assert_eq!(shown, ("a-3", NodeState::Running), "{order:?}");
        }
    }
}

/// A late heartbeat between the check of the name and the first heartbeat of the process that starts.
#[test]
fn late_heartbeat_of_a_process_that_lost_the_name_does_not_stop_a_start() {
    let mut cluster = three();
    cluster.nodes[0].is_stopped = true;
    cluster.pass(5 * SECOND);
    let second = cluster.new_process(0, "a-2");
    cluster.nodes.push(second);
    cluster.pass(2 * SECOND);
    cluster.nodes[3].is_stopped = true;
    cluster.pass(5 * SECOND);
    let third = cluster.new_process(0, "a-3");
    cluster.nodes.push(third);
    cluster.nodes[4].is_stopped = true;
    cluster.nodes[0].is_stopped = false;
    cluster.pass(SECOND);
    cluster.nodes[4].is_stopped = false;
    cluster.pass(3 * SECOND);
    let lost: Vec<usize> = [0, 4].map(|node| cluster.nodes[node].lost_name).into();
    assert_eq!(lost, [1, 0]);
    assert_eq!(cluster.nodes[1].machine.peers["a"].record.epoch, "a-3");
}

/// A restored store may have lower revisions than a claim in it.
#[test]
fn claim_of_another_store_does_not_hide_the_next_process() {
    let mut cluster = three();
    cluster.nodes[0].is_stopped = true;
    cluster.pass(5 * SECOND);
    let key = RecordKey::ClusterNode("a").encode();
    let record: NodeRecord = records::decode(&key, &cluster.store.records[&key].1).unwrap();
    let record = NodeRecord { beat: record.beat + 1, claimed_at: Some(Revision(1_000_000)), ..record };
    cluster.store.commit(&Txn { put: vec![(key, records::encode(&record))], ..Txn::default() });
    cluster.pass(5 * SECOND);
    let next = cluster.new_process(0, "a-2");
    cluster.nodes.push(next);
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.nodes[3].lost_name, 0);
    assert_eq!(cluster.nodes[1].machine.peers["a"].record.epoch, "a-2");
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Pass(u64),
    Cut(usize),
    Stall(usize),
    Stop(usize),
    SetClock(usize, i64),
    Unknown(usize),
    HandOver(usize),
    Close(usize),
}

fn fault() -> impl Strategy<Value = Fault> {
    let node = || 0usize..3;
    prop_oneof![
        6 => (1u64..6_000).prop_map(Fault::Pass),
        2 => node().prop_map(Fault::Cut),
        2 => node().prop_map(Fault::Stall),
        2 => node().prop_map(Fault::Stop),
        1 => (node(), -4_000i64..4_000).prop_map(|(node, ms)| Fault::SetClock(node, ms)),
        3 => node().prop_map(Fault::Unknown),
        2 => node().prop_map(Fault::HandOver),
        1 => node().prop_map(Fault::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn fences_rise_and_one_node_leads_once_faults_stop(faults in vec(fault(), 0..40)) {
        let mut cluster = TestCluster::new(3);
        let mut closed = [false; 3];
        for fault in faults {
            match fault {
                Fault::Pass(ms) => cluster.pass(Duration::from_millis(ms)),
                Fault::Cut(node) => cluster.nodes[node].is_cut ^= true,
                Fault::Stall(node) => cluster.nodes[node].is_stalled ^= true,
                Fault::Stop(node) => cluster.nodes[node].is_stopped ^= true,
                Fault::SetClock(node, ms) => cluster.nodes[node].offset = SignedDuration::from_millis(ms),
                Fault::Unknown(node) => {
                    if let Some(fence) = cluster.role(node).fence() {
                        cluster.feed(node, Input::Fence(FenceNews::Unknown(fence)));
                    }
                }
                Fault::HandOver(node) if !cluster.nodes[node].is_stopped => cluster.feed(node, Input::HandOver),
                Fault::HandOver(_) => {}
                // One node stays, so that there can be a leader.
                Fault::Close(node) if node > 0 && !cluster.nodes[node].is_stopped => {
                    closed[node] = true;
                    cluster.feed(node, Input::Close);
                }
                Fault::Close(_) => {}
            }
            let current = cluster.store.leader().map(|(_, revision)| revision);
            let in_force = cluster.nodes.iter().filter(|node| {
                !node.is_stopped && node.machine.role().fence().is_some_and(|fence| Some(fence) == current)
            });
            prop_assert!(in_force.count() <= 1);
        }
        for node in &mut cluster.nodes {
            (node.is_cut, node.is_stalled, node.is_stopped) = (false, false, false);
            node.offset = SignedDuration::ZERO;
        }
        // Silence is noticed, readings of wrong clocks are forgotten, then there is an election.
        cluster.pass(15 * SECOND);
        let leader = cluster.only_leader();
        prop_assert!(!closed[leader]);
        let fences: Vec<_> = cluster.nodes.iter().map(|node| node.fences.clone()).collect();
        for fences in &fences {
            prop_assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
        }
        cluster.pass(10 * SECOND);
        prop_assert_eq!(cluster.only_leader(), leader, "the lead stays");
        let after: Vec<_> = cluster.nodes.iter().map(|node| node.fences.clone()).collect();
        prop_assert_eq!(after, fences);
    }
}

#[test]
fn node_of_an_older_level_follows_and_never_leads() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(3 * SECOND);
    let leads = |cluster: &TestCluster| cluster.nodes.iter().any(|node| node.machine.role().leads());
    assert!(leads(&cluster));
    let newer = FormatRecord { level: records::FORMAT_LEVEL + 1 };
    let put = vec![(FORMAT.into(), records::encode(&newer))];
    cluster.store.commit(&Txn { put, ..Txn::default() });
    cluster.pass(20 * SECOND);
    assert!(!leads(&cluster), "these releases would misread what is written");
    let reasons: Vec<_> = cluster.nodes.iter().flat_map(|node| node.stepped_down.clone()).collect();
    assert_eq!(reasons, [StepDown::Level(records::FORMAT_LEVEL + 1)]);
}

#[test]
fn first_leader_writes_the_level_of_the_cluster() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(3 * SECOND);
    let (_, value) = &cluster.store.records[FORMAT];
    let record: FormatRecord = records::decode(FORMAT, value).unwrap();
    assert_eq!(record.level, records::FORMAT_LEVEL);
}

/// A cluster whose nodes write these levels at most.
fn of_levels(levels: &[u32]) -> TestCluster {
    let mut cluster = TestCluster::new(levels.len());
    for (node, level) in cluster.nodes.iter_mut().zip(levels) {
        node.machine.me.level = *level;
    }
    cluster
}

#[test]
fn newer_node_writes_at_the_level_of_the_cluster_until_it_is_raised() {
    let mut cluster = of_levels(&[1, 2]);
    assert_eq!(cluster.nodes[1].machine.write_level(), 2, "there is no cluster yet");
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.only_leader(), 0);
    assert_eq!(cluster.nodes[1].machine.write_level(), 1, "the first leader's level");
    let levels = |cluster: &TestCluster| {
        let report = cluster.nodes[1].machine.report(wall(cluster.now, SignedDuration::ZERO));
        (report.level, report.nodes.iter().map(|node| node.record.level).collect::<Vec<_>>())
    };
    assert_eq!(levels(&cluster), (Some(1), vec![1, 2]));
    let put = vec![(FORMAT.into(), records::encode(&FormatRecord { level: 2 }))];
    cluster.store.commit(&Txn { put, ..Txn::default() });
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.only_leader(), 1, "the older node gives up the lead");
    assert_eq!(cluster.nodes[0].stepped_down, [StepDown::Level(2)]);
    let written: Vec<u32> = cluster.nodes.iter().map(|node| node.machine.write_level()).collect();
    assert_eq!(written, [1, 2]);
}

#[test]
fn node_that_stops_is_not_living_any_more() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(3 * SECOND);
    let now = wall(cluster.now, SignedDuration::ZERO);
    assert_eq!(cluster.nodes[1].machine.living_peers(now), ["a~a-1"]);
    cluster.feed(0, Input::Close);
    cluster.settle();
    assert!(cluster.nodes[1].machine.living_peers(now).is_empty());
}

#[test]
fn leader_that_cannot_confirm_rewrites_at_intervals() {
    let mut cluster = three();
    let Role::Lead(fence) = cluster.role(0) else { panic!("a does not lead") };
    // Its own heartbeats do not return, and everything else does: it may not lead, and does not step down yet.
    cluster.nodes[0].machine.returned_at = Some(cluster.now - WATCH_STALLED_AFTER);
    cluster.nodes[0].machine.unseen.clear();
    cluster.nodes[0].machine.beat_due = cluster.now + 10 * SECOND;
    let before = cluster.store.log.len();
    cluster.feed(0, Input::Fence(FenceNews::Unknown(fence)));
    cluster.settle();
    assert!(cluster.store.log.len() - before <= 2, "{} writes", cluster.store.log.len() - before);
}

#[test]
fn leader_record_that_was_deleted_or_damaged_is_claimed_again() {
    for garbage in [None, Some(Bytes::from_static(b"garbage"))] {
        let mut cluster = three();
        let revision = Revision(cluster.store.log.last().unwrap().revision.0 + 2);
        match &garbage {
            Some(value) => drop(cluster.store.records.insert(LEADER.into(), (revision, value.clone()))),
            None => drop(cluster.store.records.remove(LEADER)),
        }
        let change = Change { key: LEADER.into(), value: garbage };
        cluster.store.log.push(Batch { revision, changes: [change].into() });
        cluster.settle();
        cluster.pass(SECOND);
        cluster.only_leader();
    }
}

/// An operator may remove the record between the check of the name and the first heartbeat.
#[test]
fn node_whose_record_is_removed_while_it_starts_gets_its_name() {
    let key = RecordKey::ClusterNode("a").encode();
    let at = |seconds: u64| wall(Duration::from_secs(seconds), SignedDuration::ZERO);
    let mut machine = Leadership::new(identity("a"), Some(Revision(4)), Revision(5), Vec::new(), at(100));
    let expected = |actions: &[Action]| {
        let beat = actions.iter().find_map(|action| match action {
            Action::Write(ClusterWrite::Beat(_), txn) => Some(txn.expect.clone()),
            Action::Write(ClusterWrite::Leader(_), _)
            | Action::Become(_)
            | Action::SteppedDown(_)
            | Action::NameTaken => None,
        });
        beat.unwrap()[0].revision
    };
    assert_eq!(expected(&machine.handle(Input::Tick, at(100))), Some(Revision(4)));
    let removed = Batch { revision: Revision(6), changes: [Change { key, value: None }].into() };
    machine.handle(Input::Watched(removed), at(100));
    assert_eq!(expected(&machine.handle(Input::Tick, at(101))), None);
}

#[test]
fn node_whose_record_is_removed_is_not_reported() {
    let mut cluster = TestCluster::new(2);
    cluster.pass(10 * SECOND);
    let names = |cluster: &TestCluster| {
        let report = cluster.nodes[0].machine.report(wall(cluster.now, SignedDuration::ZERO));
        report.nodes.into_iter().map(|node| node.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&cluster), ["a", "b"]);
    let (key, revision) = (RecordKey::ClusterNode("b").encode(), Revision(1_000));
    let change = Batch { revision, changes: [Change { key, value: None }].into() };
    cluster.feed(0, Input::Watched(change));
    assert_eq!(names(&cluster), ["a"]);
    cluster.feed(0, Input::Synced(Revision(2_000), Vec::new()));
    assert_eq!(names(&cluster), ["a"], "its own record returns with the next heartbeat");
}
