//! Processes of nodes: how they start, crash, stop and start again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use notbefore_engine::cluster::digest::Sender;
use notbefore_engine::cluster::leadership;
use notbefore_engine::cluster::{Leadership, NODE, NodeIdentity, WatchFollower};
use notbefore_engine::{ClockReading, Engine, EngineSettings, Loader, prepare, records};

use super::messages::Transit;
use super::{LOAD_TIME, Late, Member, REPAIR_EVERY, of_cluster};
use crate::conformance::Violation;
use crate::history::ReportedOutcome;
use crate::invariants::Check;
use crate::world::{SimNode, World, broken, domain};

impl World {
    /// A process that has just loaded the store.
    pub(super) fn start_member(
        &mut self,
        index: usize,
        now: Timestamp,
        since_boot: Duration,
    ) -> Result<SimNode, Violation> {
        let Some(cluster) = &mut self.cluster else { return Err(broken("there is a cluster", "")) };
        cluster.starts += 1;
        let epoch = format!("n{}", cluster.starts);
        let identity = NodeIdentity {
            name: format!("node-{index}"),
            epoch,
            url: String::new(),
            level: records::FORMAT_LEVEL,
        };
        let settings = EngineSettings { domain: domain(&self.setup), node: identity.epoch.as_str().into() };
        let mut loader = Loader::default();
        let unreadable =
            |error: notbefore_engine::DecodeError| broken("every record can be read", error.to_string());
        for (key, record) in self.store.records().iter().filter(|(key, _)| records::is_loaded(key)) {
            let prepared = prepare(key.clone(), record.clone()).map_err(unreadable)?;
            loader.take(prepared).map_err(unreadable)?;
        }
        let revision = self.store.revision();
        // Without leaders, histories start no process later, so there is nothing to continue.
        let (mut engine, _) = match self.setup.leaderless {
            true => Engine::from_state(settings, loader.finish(), revision, now),
            false => Engine::follower(settings, loader.finish(), revision),
        };
        if let Some(operations) = self.setup.split_at {
            engine.split_own_work_at(usize::from(operations));
        }
        let reading = ClockReading { wall: now, since_boot };
        let mut node = SimNode::new(engine, reading, cluster.starts);
        (node.shown, node.known) = (self.store.newest(), revision);
        let of_cluster = of_cluster(self.store.records().iter());
        let found =
            self.store.records().get(&*format!("{NODE}{}", identity.name)).map(|record| record.revision);
        node.member = Some(Member {
            leadership: Leadership::new(identity.clone(), found, revision, of_cluster, reading),
            identity,
            follower: WatchFollower::new(revision, REPAIR_EVERY, since_boot),
            down_until: None,
            is_paused: false,
            is_cut: false,
            is_stalled: false,
            lag: Duration::ZERO,
            drift_permille: 0,
            drop_deletes: 0,
            stale_reads: 0,
            lose_answers: 0,
            load_time: LOAD_TIME,
            loading: None,
            answers: VecDeque::new(),
            beats: BTreeMap::new(),
            acknowledged: cluster.time,
            transit: Transit::default(),
            forwarded: BTreeMap::new(),
            serving: BTreeMap::new(),
            digests: Sender::default(),
            receiver: None,
            polls: BTreeMap::new(),
            seen_messages: BTreeSet::new(),
            has_lost_deletes: false,
        });
        Ok(node)
    }

    pub(super) fn crash_member(&mut self, lands: u16, down_ms: i64) -> Check {
        let is_up = self.node.member.as_ref().is_some_and(|member| member.down_until.is_none());
        if !is_up {
            return Ok(());
        }
        self.fault(|faults| faults.crashes += 1);
        for index in 0..self.node.flights.len() {
            if lands >> (index % 16) & 1 == 1 && !self.node.is_cut() {
                self.apply(index)?;
            }
        }
        let down = Duration::from_millis(u64::try_from(down_ms.clamp(0, 8_000)).unwrap_or(0));
        self.stop_process(down);
        Ok(())
    }

    /// The process ends; what it has sent is on its way.
    pub(super) fn stop_process(&mut self, down: Duration) {
        let Some(cluster) = &mut self.cluster else { return };
        for flight in std::mem::take(&mut self.node.flights) {
            if flight.outcome.is_none() {
                cluster.late.push(Late::Commit(Box::new(flight)));
            }
        }
        self.node.open.clear();
        self.node.predicted.clear();
        self.node.running.clear();
        if let Some(member) = &mut self.node.member {
            member.down_until = Some(cluster.time + down);
            member.is_paused = false;
        }
    }

    /// The process stops in an orderly way: it finishes its commits, hands the lead over and starts again.
    pub(super) fn hand_over(&mut self) -> Check {
        if !self.node.is_running() {
            return Ok(());
        }
        self.fault(|faults| faults.hand_overs += 1);
        let how = if self.node.is_cut() { ReportedOutcome::UnknownLost } else { ReportedOutcome::Actual };
        for _ in 0..100 {
            if self.node.flights.is_empty() {
                break;
            }
            self.deliver(0, how)?;
        }
        self.lead(leadership::Input::Close)?;
        self.stop_process(Duration::from_secs(1));
        Ok(())
    }

    /// Starts processes again whose downtime is over.
    pub(super) fn restart_members(&mut self) -> Check {
        let before = self.index();
        for index in 0..self.nodes() {
            self.select(index);
            let time = self.cluster.as_ref().map_or(Duration::ZERO, |cluster| cluster.time);
            let down_until = self.node.member.as_ref().and_then(|member| member.down_until);
            if down_until.is_some_and(|until| until <= time) {
                let (now, since_boot) = (self.node.now, self.node.since_boot);
                let is_cut = self.node.is_cut();
                // It cannot load the store while it is cut off.
                if !is_cut {
                    *self.node = self.start_member(index, now, since_boot)?;
                    self.fault(|_| {});
                }
            }
        }
        self.select(before);
        Ok(())
    }
}
