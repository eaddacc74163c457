//! What holds for several nodes, judged from the committed records and the true time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Event, Phase, Refusal, StartReason};
use notbefore_engine::cluster::leadership::COMMAND_LEASE;
use notbefore_engine::cluster::{LEADER, LeaderRecord, StepDown, fence_of};
use notbefore_engine::records::LastAt;
use notbefore_engine::{Command, CommandTarget, records};
use notbefore_store::Txn;

use super::{CALM_AFTER, CLOCK_MAX, LAG_OF_A_FAULT, Member, SECOND_COMMAND_MAX, TERMINATE_GRACE};
use crate::conformance::{Flight, SentRequest, Written, command_key};
use crate::invariants::{Check, Transition};
use crate::rules;
use crate::world::{World, broken};

impl World {
    pub(super) fn is_calm(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.time - cluster.calm_since >= CALM_AFTER)
    }

    /// How far the current node's clock is from the median of all nodes that run and reach the store.
    pub(super) fn true_offset(&self) -> SignedDuration {
        let own = self.node.now;
        let nodes = (0..self.nodes()).map(|index| self.node_at(index));
        let mut clocks: Vec<Timestamp> =
            nodes.filter(|node| node.is_running() && !node.is_cut()).map(|node| node.now).collect();
        clocks.sort();
        let Some(last) = clocks.len().checked_sub(1) else { return SignedDuration::ZERO };
        let (low, high) = (clocks[last / 2], clocks[clocks.len() / 2]);
        own.duration_since(rules::plus(low, high.duration_since(low) / 2))
    }

    /// **A leader keeps the lead while nothing fails**, also while it loads a snapshot.
    pub(super) fn check_step_down(&self, reason: StepDown) -> Check {
        let is_well = |index| {
            self.node_at(index).member.as_ref().is_some_and(|member| {
                member.is_running()
                    && !member.is_cut
                    && !member.is_stalled
                    && member.lose_answers == 0
                    && member.lag < LAG_OF_A_FAULT
            })
        };
        let is_expected = match reason {
            // A clock that drifts, or an operator.
            StepDown::Clock(_) | StepDown::HandedOver => true,
            StepDown::NotAcknowledged
            | StepDown::WatchStalled
            | StepDown::Superseded
            | StepDown::NotConfirmed
            | StepDown::Level(_)
            | StepDown::NameTaken
            | StepDown::Closing => false,
        };
        match is_expected || !self.is_calm() || !(0..self.nodes()).all(is_well) {
            true => Ok(()),
            false => {
                let detail = format!("node {} stepped down: {reason:?}", self.index());
                Err(broken("a leader keeps the lead while nothing fails", detail))
            }
        }
    }

    /// **A node more than 2 s off the median neither takes nor keeps the lead.** Checked at every commit that is sent,
    /// once the nodes have had time to hear each other.
    pub(crate) fn check_clock_of_writer(&self) -> Check {
        if !self.is_calm() || self.node.is_cut() || self.setup.leaderless {
            return Ok(());
        }
        let offset = self.true_offset();
        match offset.abs() <= CLOCK_MAX {
            true => Ok(()),
            false => {
                let detail = format!("node {} is {offset} off", self.index());
                Err(broken("a node more than 2 s off the median does not lead", detail))
            }
        }
    }

    /// **No second command for one event and VM, or one host, beyond the grace.** A node that stands still or is cut off
    /// cannot stop its commands; their keeper ends them a while after the last heartbeat that the store acknowledged.
    pub(super) fn check_children(&mut self) -> Check {
        let Some(cluster) = self.cluster.as_ref().filter(|_| !self.setup.leaderless) else { return Ok(()) };
        let time = cluster.time;
        let mut running: BTreeMap<CommandTarget, usize> = BTreeMap::new();
        for node in (0..self.nodes()).map(|index| self.node_at(index)) {
            let is_kept = |member: &Member| time < member.acknowledged + COMMAND_LEASE + TERMINATE_GRACE;
            if node.member.as_ref().is_some_and(is_kept) {
                node.running.iter().for_each(|id| *running.entry(id.target).or_default() += 1);
            }
        }
        running.retain(|_, commands| *commands > 1);
        let Some(cluster) = &mut self.cluster else { return Ok(()) };
        cluster.twice_since.retain(|target, _| running.contains_key(target));
        for target in running.into_keys() {
            let since = *cluster.twice_since.entry(target).or_insert_with(|| {
                self.stats.second_commands += 1;
                time
            });
            if time - since > SECOND_COMMAND_MAX {
                let detail = format!("{target:?} since {since:?}, it is {time:?}");
                return Err(broken("no second command for one event and VM beyond the grace", detail));
            }
        }
        Ok(())
    }

    /// **Every transaction carries a fence**, also one that only compares.
    pub(crate) fn check_has_fence(&self, txn: &Txn) -> Check {
        match self.cluster.is_some() && !self.setup.leaderless && fence_of(txn).is_none() {
            true => Err(broken("every transaction carries a fence", format!("{txn:?}"))),
            false => Ok(()),
        }
    }

    /// **Every commit carries the fence of a node that was leader then, and commits of two leaders never interleave.**
    pub(crate) fn check_fence(&mut self, flight: &Flight) -> Check {
        if self.cluster.is_none() || self.setup.leaderless || !flight.txn.writes() {
            return Ok(());
        }
        let Some(fence) = fence_of(&flight.txn) else {
            return Err(broken("every commit carries the fence of the leader", format!("{:?}", flight.txn)));
        };
        let record = self.store.records().get(LEADER);
        let leader = record.filter(|record| record.revision == fence);
        let leader = leader.and_then(|record| records::decode::<LeaderRecord>(LEADER, &record.value).ok());
        let leader = leader.and_then(|record| record.leader);
        let name = format!("node-{}", flight.by);
        let sent_by = leader.filter(|leader| {
            leader.node == name
                && flight.at.node.strip_prefix(&leader.epoch).is_some_and(|rest| rest.starts_with('-'))
        });
        if sent_by.is_none() {
            let detail = format!("{} at fence {fence}, the record is {record:?}", flight.at.node);
            return Err(broken("every commit is made by the node that leads then", detail));
        }
        if fence < self.ledger.fence {
            let detail = format!("fence {fence} after {}", self.ledger.fence);
            return Err(broken("commits of two leaders never interleave", detail));
        }
        self.ledger.fence = fence;
        Ok(())
    }

    /// **A scope whose poll is stored is enabled**, whichever node leads: its user operations get their notice.
    pub(crate) fn check_enabled(&self, change: &Transition<'_>) -> Check {
        let key = records::heard(change.id);
        let stored = self.store.records().get(&key).filter(|_| self.cluster.is_some());
        let stored = stored.filter(|record| record.revision <= change.flight.sent_at);
        let Some(stored) = stored.and_then(|record| records::decode::<LastAt>(&key, &record.value).ok())
        else {
            return Ok(());
        };
        let is_fresh = change.flight.at.now.duration_since(stored.at) < rules::ENABLED_FOR;
        let at_once = |event: &&Event| match &event.phase {
            Phase::Started { why, .. } => *why == StartReason::NotEnabled && change.was(event).is_none(),
            Phase::Scheduled { .. } | Phase::Advisory { .. } => false,
        };
        match change.live_after().iter().find(at_once).filter(|_| is_fresh) {
            Some(event) => Err(broken("a scope whose poll is stored is enabled", format!("{event:?}"))),
            None => Ok(()),
        }
    }

    /// **A refused command changes nothing**, also later: no transaction of an earlier attempt lands after the answer to
    /// a repetition.
    pub(crate) fn check_not_refused(&self, flight: &Flight, written: &Written) -> Check {
        let Some((key, record)) = &written.command else { return Ok(()) };
        let refused = self.ledger.refused.get(&(key.clone(), record.hash.clone()));
        let attempts =
            flight.open_requests.iter().filter(|sent| command_key(&sent.request).as_ref() == Some(key));
        let newest = attempts.map(|sent| sent.id).max();
        match refused.is_some_and(|refused| newest < Some(*refused)) {
            true => Err(broken("a refused command changes nothing later", key.clone())),
            false => Ok(()),
        }
    }

    /// **An approval of a live event is not refused as unknown**, if nothing was in flight when it was sent.
    pub(crate) fn check_known(&self, sent: &SentRequest, refusal: &Refusal) -> Check {
        let (Command::Guest(approval), Refusal::UnknownEvent(id)) = (&sent.request.command, refusal) else {
            return Ok(());
        };
        let is_live = self.view.live(*id).is_some()
            && self.ledger.first.get(id).is_some_and(|first| first.scope == approval.scope);
        match is_live && sent.is_quiet && self.cluster.is_some() {
            true => Err(broken("an approval of a live event is not refused as unknown", format!("{sent:?}"))),
            false => Ok(()),
        }
    }
}
