//! The leadership machine of a node: its inputs, what it writes, and what its role means.

use std::rc::Rc;
use std::time::Duration;

use jiff::SignedDuration;
use notbefore_engine::Input;
use notbefore_engine::cluster::digest::Receiver;
use notbefore_engine::cluster::leadership::{self, ClusterWrite};
use notbefore_engine::cluster::{Action, FenceNews, Role, fence_of};
use notbefore_store::{Outcome, Txn};

use super::Late;
use crate::conformance::Flight;
use crate::invariants::Check;
use crate::rules;
use crate::world::{World, broken};

impl World {
    /// Lets the leadership machine see the time, as the runtime does before each pass.
    pub(crate) fn check_lead(&mut self) -> Check {
        match self.node.member {
            Some(_) => self.lead(leadership::Input::Tick),
            None => Ok(()),
        }
    }

    /// Gives the leadership machine the outcomes that have arrived.
    pub(super) fn take_answers(&mut self) -> Check {
        match self.next_answer() {
            Some(answer) => self.lead(answer),
            None => Ok(()),
        }
    }

    /// Gives the leadership machine an input and carries out its actions.
    pub(super) fn lead(&mut self, input: leadership::Input) -> Check {
        if self.setup.leaderless {
            return Ok(());
        }
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let reading = self.node.reading();
            let Some(member) = &mut self.node.member else { return Ok(()) };
            for action in member.leadership.handle(input, reading) {
                match action {
                    Action::Write(write, txn) => self.write_cluster(write, txn),
                    Action::Become(role) => self.become_role(role)?,
                    Action::SteppedDown(reason) => {
                        self.faults += 1;
                        self.check_step_down(reason)?;
                    }
                    // A heartbeat of a process before the last landed late. The process is started again.
                    Action::NameTaken => self.stop_process(Duration::from_secs(1)),
                }
            }
            next = self.next_answer();
        }
        Ok(())
    }

    /// The outcome of a heartbeat or a claim that has arrived by now.
    pub(super) fn next_answer(&mut self) -> Option<leadership::Input> {
        let time = self.cluster.as_ref()?.time;
        let answers = &mut self.node.member.as_mut()?.answers;
        let (_, write, outcome) = answers.pop_front_if(|(at, ..)| *at <= time)?;
        let sent = self.node.member.as_mut()?.beats.remove(&write);
        if let (Some(sent), Outcome::Committed(_), Some(member)) = (sent, &outcome, &mut self.node.member) {
            member.acknowledged = member.acknowledged.max(sent);
        }
        Some(leadership::Input::Wrote(write, outcome))
    }

    /// Writes a record of the cluster. Its outcome takes as long as the watch.
    pub(super) fn write_cluster(&mut self, write: ClusterWrite, txn: Txn) {
        let unknown = Outcome::Unknown("connection lost".to_owned());
        let Some(cluster) = &mut self.cluster else { return };
        let time = cluster.time;
        let mut outcome = match self.node.is_cut() {
            true => {
                cluster.late.push(Late::Cluster(txn));
                unknown.clone()
            }
            false => self.commit_cluster(&txn),
        };
        let Some(member) = &mut self.node.member else { return };
        if member.lose_answers > 0 {
            member.lose_answers -= 1;
            self.stats.cluster_faults.lost_answers += 1;
            outcome = unknown;
        }
        if matches!(write, ClusterWrite::Beat(_)) {
            member.beats.insert(write, time);
        }
        member.answers.push_back((time + member.lag, write, outcome));
    }

    /// Writes a record of the cluster.
    pub(super) fn commit_cluster(&mut self, txn: &Txn) -> Outcome {
        let before = self.store.revision();
        let outcome = self.store.commit(txn);
        if self.store.revision() > before {
            self.committed_now();
        }
        outcome
    }

    /// Tells the leadership machine what the outcome of a commit says about the lead.
    pub(crate) fn report_to_leadership(&mut self, flight: &Flight, outcome: &Outcome) -> Check {
        match FenceNews::of(fence_of(&flight.txn), outcome) {
            Some(news) => self.lead(leadership::Input::Fence(news)),
            None => Ok(()),
        }
    }

    pub(super) fn become_role(&mut self, role: Role) -> Check {
        let before = self.node.engine.role();
        match role {
            Role::Lead(_) if before.leads() => self.stats.rewrites += 1,
            Role::Lead(fence) => {
                let epoch = self.node.member.as_ref().map(|member| member.identity.epoch.clone());
                if let Some(cluster) = &mut self.cluster
                    && cluster.last_leader != epoch
                {
                    self.stats.take_overs += u64::from(cluster.last_leader.is_some());
                    cluster.last_leader = epoch;
                }
                self.take_stored_polls();
                if let Some(member) = &mut self.node.member {
                    member.receiver = Some(Receiver::new(fence));
                }
                self.node.waits_for_polls = true;
                self.feed_engine(Input::PollsComplete(false))?;
                self.node.reports = Rc::default();
                self.node.host_reports = Rc::default();
            }
            Role::Follow => {
                self.node.waits_for_polls = false;
                self.feed_engine(Input::PollsComplete(true))?;
                if let Some(member) = &mut self.node.member {
                    member.receiver = None;
                }
            }
            Role::Alone | Role::Confirm => {}
        }
        self.feed_engine(Input::Role(role))?;
        if !role.leads() && !self.node.running.is_empty() {
            let detail = format!("{:?}", self.node.running);
            return Err(broken("a node that does not lead runs no command", detail));
        }
        Ok(())
    }

    /// A new leader knows at least the stored poll times.
    pub(super) fn take_stored_polls(&mut self) {
        let state = self.node.engine.state();
        let down = state.alive().map_or(SignedDuration::ZERO, |alive| {
            self.node.now.duration_since(alive).max(SignedDuration::ZERO)
        });
        for (scope, at) in state.all_last_polled() {
            let at = rules::plus(at, down);
            if self.node.last_polls.get(scope).is_none_or(|(known, _)| *known < at) {
                self.node.last_polls.insert(scope.clone(), (at, true));
            }
        }
    }
}
