//! Roles in a cluster: what starts when this node takes the lead, and what ends when it loses it.
//!
//! A follower installs and publishes what the watch shows, and does nothing else: no timers, no operations, no driver.
//! Its records are complete when it takes the lead, so it starts like a process that has just loaded them.
//!
//! **An unknown outcome** does not fail a job of a leader. The job keeps its locks, and nothing is sent while the
//! leader's record is rewritten ([`Role::Confirm`]). The watch shows every transaction that landed before the rewrite,
//! and none lands after it. So a job whose transaction the watch has shown is durable; any other is planned again.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{Scope, ScopeId};
use notbefore_store::{Batch, Outcome, Revision, Txn};

use super::commands::CommandTarget;
use super::deadlines::Deadlines;
use super::hosts::HostStarts;
use super::poll_times::LastPoll;
use super::{CommandId, Effect, Engine, JobId, Node, Work};
use crate::cluster::Role;
use crate::request::{Failure, FailureCause};
use crate::state::Revisioned;

/// How long a job of a leader waits for the watch to show what it conflicts with.
pub(super) const WATCH_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// A transaction without an outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// None without a cluster.
    pub(super) fence: Option<Revision>,
    /// The store has answered that it does not know the outcome.
    pub(super) is_unknown: bool,
    /// The revision at which the watch has shown the transaction.
    pub(super) landed: Option<Revision>,
    /// A snapshot replaced batches of the watch, among which the transaction may have been.
    pub(super) may_be_missed: bool,
}

impl Engine {
    pub fn role(&self) -> Role {
        self.role
    }

    /// The owner of commands that start now. It differs for each time that a node takes the lead: the commands of the
    /// time before were stopped, and run again as another attempt.
    pub fn runner(&self) -> &str {
        &self.runner
    }

    /// Sets the format level at which this process writes, for a node of a cluster.
    pub fn set_level(&mut self, level: u32) {
        self.level = Some(level);
    }

    /// Conflicts on records that only the leader writes: its state was wrong.
    pub fn unexplained_conflicts(&self) -> u64 {
        self.unexplained_conflicts
    }

    /// Records that a snapshot had, and the watch had not shown, or the reverse.
    pub fn repaired_records(&self) -> u64 {
        self.repaired_records
    }

    pub(super) fn set_role(&mut self, role: Role, now: Timestamp, effects: &mut Vec<Effect>) {
        let before = std::mem::replace(&mut self.role, role);
        match (before.leads(), role) {
            (false, Role::Alone | Role::Lead(_)) => self.start_leading(now, effects),
            (true, Role::Alone | Role::Lead(_)) => self.resume(now, effects),
            (true, Role::Follow) => self.stop_leading(effects),
            (_, Role::Confirm) | (false, Role::Follow) => {}
        }
    }

    fn start_leading(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if let Role::Lead(fence) = self.role {
            self.runner = Node::from(format!("{}-{fence}", &*self.settings.node).as_str());
        }
        self.store_alive_at = now;
        self.load_last_polls(now);
        if !self.is_clock_held() {
            self.check_clock_at_start(now);
        }
        let unstored: Vec<ScopeId> =
            self.last_polls.keys().filter(|scope| self.is_poll_unstored(scope)).cloned().collect();
        if !unstored.is_empty() {
            self.store_polls_at = Some(now);
        }
        self.polls_to_store.extend(unstored);
        self.begin_work(now, effects);
    }

    /// Knows at least the stored poll times. The time without a service does not count against guests.
    pub(super) fn load_last_polls(&mut self, now: Timestamp) {
        let down = self.state.alive().map(|alive| now.duration_since(alive).max(SignedDuration::ZERO));
        for (scope, at) in self.state.all_last_polled() {
            let at = at.checked_add(down.unwrap_or_default()).unwrap_or(at);
            if self.last_polls.get(scope).is_none_or(|known| known.at < at) {
                self.last_polls.insert(scope.clone(), LastPoll { at, was_stored: true });
            }
        }
    }

    /// Starts timers, and continues interrupted operations and commands.
    pub(super) fn begin_work(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let due = |(id, held): (&ScopeId, &Revisioned<Scope>)| {
            Some((id.clone(), self.state.due_in(id, held, now)?))
        };
        let dues: Vec<_> = self.state.scopes_with_events().filter_map(due).collect();
        for (scope, due) in dues {
            self.deadlines.set(&scope, Some(due));
        }
        let mut unfinished: Vec<_> = self.state.operations().map(|(id, _)| *id).collect();
        // A stable order, so that a history can be replayed.
        unfinished.sort();
        for operation in unfinished {
            self.reconcile(operation, now, effects);
        }
        self.adopt_commands(now, effects);
        self.recheck_all_hosts();
        self.decide_hosts(now, effects);
    }

    /// Drops all work. The next leader finds it in the records.
    fn stop_leading(&mut self, effects: &mut Vec<Effect>) {
        let mut commands: Vec<CommandId> = Vec::new();
        for ((event, vm), one) in self.commands.drain().flat_map(|(_, commands)| commands) {
            if one.ending.is_none() {
                let target = CommandTarget::Vm { event, vm };
                commands.push(CommandId { target, fence: one.fence, attempt: one.attempt });
            }
        }
        commands.extend(self.host_commands.drain());
        commands.sort();
        effects.extend(commands.into_iter().map(Effect::Stop));
        let mut jobs: Vec<_> = self.jobs.drain().collect();
        jobs.sort_by_key(|(id, _)| *id);
        for (_, job) in jobs {
            let Some(request) = job.work.request() else { continue };
            let failure = match job.in_flight.is_some() || job.has_written {
                true => Failure::OutcomeUnknown(FailureCause::NotLeader),
                false => Failure::Unavailable(FailureCause::NotLeader),
            };
            effects.push(Effect::Answer(request, Err(failure)));
        }
        let mut fan_outs: Vec<_> = self.fan_outs.drain().collect();
        fan_outs.sort_by_key(|(id, _)| *id);
        // These operations are durable, and reach their scopes with the next leader.
        let unknown = || Err(Failure::OutcomeUnknown(FailureCause::NotLeader));
        for request in fan_outs.into_iter().flat_map(|(_, fan)| fan.waiting) {
            effects.push(Effect::Answer(request, unknown()));
        }
        self.locked.clear();
        self.waiting.clear();
        self.deadlines = Deadlines::default();
        self.retries.clear();
        self.stalled.clear();
        self.conflicted.clear();
        self.replays.clear();
        self.held.clear();
        self.waits.clear();
        self.hosts = HostStarts::default();
        self.polls_to_store.clear();
        self.poll_writes_in_flight = 0;
        self.store_polls_at = None;
        self.waits_for_polls = false;
    }

    /// The leader's record was rewritten, and the watch has shown everything before: decides unknown outcomes and
    /// continues.
    fn resume(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let is_unknown = |in_flight: InFlight| in_flight.is_unknown;
        let mut unknown: Vec<JobId> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.in_flight.is_some_and(is_unknown))
            .map(|(id, _)| *id)
            .collect();
        unknown.sort();
        for id in unknown {
            self.decide_unknown(id, now, effects);
        }
        for id in std::mem::take(&mut self.held) {
            match self.jobs.get(&id).is_some_and(|job| !job.txns.is_empty()) {
                true => self.send(id, effects),
                false => self.run(id, now, effects),
            }
        }
    }

    /// Sends the first transaction of a job that is left, with the fence of the role.
    pub(super) fn send(&mut self, id: JobId, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if !self.role.may_write() {
            self.held.push_back(id);
        } else if let Some(txn) = job.txns.front() {
            let fence = self.role.fence();
            job.in_flight = Some(InFlight { fence, is_unknown: false, landed: None, may_be_missed: false });
            effects.push(Effect::Commit(id, self.role.fenced(txn.clone())));
        }
    }

    /// The outcome of a fenced transaction is unknown.
    pub(super) fn on_unknown(
        &mut self,
        id: JobId,
        in_flight: InFlight,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.in_flight = Some(InFlight { is_unknown: true, ..in_flight });
        match self.role.fence().is_some_and(|fence| Some(fence) > in_flight.fence)
            || in_flight.landed.is_some()
        {
            // The rewrite that decides it is behind us.
            true => self.decide_unknown(id, now, effects),
            false => self.role = Role::Confirm,
        }
    }

    /// A transaction that the watch has shown is durable; another never will be, and its job is planned again.
    fn decide_unknown(&mut self, id: JobId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(in_flight) = job.in_flight.take() else { return };
        job.has_written |= in_flight.may_be_missed;
        // A request without a key cannot be repeated, nor one whose given revision the missed step has changed.
        let is_unrepeatable = matches!(
            &job.work,
            Work::Request { idempotency, if_revision, .. } if idempotency.is_none() || if_revision.is_some()
        );
        if let Some(revision) = in_flight.landed {
            self.on_committed(id, Outcome::Committed(revision), now, effects);
        } else if in_flight.may_be_missed && is_unrepeatable {
            let failure = Failure::OutcomeUnknown(FailureCause::NotLeader);
            self.finish(id, Err(failure), now, effects);
        } else {
            self.unlock(id, now, effects);
            self.run(id, now, effects);
        }
    }

    /// A transaction found another revision of the leader's record: it was not written. If the node still leads with
    /// the same fence, nothing more is sent until the runtime says who leads.
    pub(super) fn on_fenced(
        &mut self,
        id: JobId,
        in_flight: Option<InFlight>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if in_flight.is_some_and(|sent| sent.fence == self.role.fence()) {
            self.role = Role::Confirm;
        }
        self.unlock(id, now, effects);
        self.run(id, now, effects);
    }

    /// Marks the transaction in flight that a watched batch is. Returns its job if the store does not know the outcome.
    pub(super) fn find_landed(&mut self, batch: &Batch) -> Option<JobId> {
        if self.role == Role::Alone {
            return None;
        }
        let is_it = |txn: Option<&Txn>| txn.is_some_and(|txn| is_shown_by(txn, batch));
        let waiting = self.jobs.iter_mut().filter(|(_, job)| {
            job.in_flight.is_some_and(|sent| sent.landed.is_none()) && is_it(job.txns.front())
        });
        let (id, job) = waiting.min_by_key(|(id, _)| **id)?;
        let in_flight = job.in_flight.as_mut()?;
        in_flight.landed = Some(batch.revision);
        in_flight.is_unknown.then_some(*id)
    }

    /// The watch had a gap: whether transactions in flight were in it is not known.
    pub(super) fn watch_had_gap(&mut self) {
        for in_flight in self.jobs.values_mut().filter_map(|job| job.in_flight.as_mut()) {
            in_flight.may_be_missed = true;
        }
    }

    /// A job waits until the watch has shown what it conflicts with, but not for ever.
    pub(super) fn wait_for_watch(&mut self, id: JobId, now: Timestamp) {
        if self.role != Role::Alone {
            self.waits.insert((after(now, WATCH_WAIT_MAX), id));
        }
    }

    /// Fails the jobs that have waited too long for the watch.
    pub(super) fn end_waits(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        // Times further ahead were set by a wrong clock.
        let furthest = after(now, WATCH_WAIT_MAX);
        let is_over = |at: Timestamp| at <= now || at > furthest;
        let over: Vec<_> = self.waits.iter().copied().filter(|(at, _)| is_over(*at)).collect();
        for (at, id) in over {
            self.waits.remove(&(at, id));
            let conflicted = self.conflicted.iter().position(|(one, _)| *one == id);
            let replayed = self.replays.keys().find(|(_, one)| *one == id).copied();
            if let Some(index) = conflicted {
                self.conflicted.remove(index);
                self.on_failed(id, Failure::Unavailable(FailureCause::Busy), now, effects);
            } else if let Some(key) = replayed {
                self.replays.remove(&key);
                self.finish(id, Err(Failure::OutcomeUnknown(FailureCause::Busy)), now, effects);
            }
        }
    }
}

/// Whether a batch has the writes of a transaction: its puts, then those of its deletes that removed something.
fn is_shown_by(txn: &Txn, batch: &Batch) -> bool {
    let (puts, deletes) = batch.changes.split_at(txn.put.len().min(batch.changes.len()));
    txn.writes()
        && puts.len() == txn.put.len()
        && puts
            .iter()
            .zip(&txn.put)
            .all(|(change, (key, value))| change.key == *key && change.value.as_ref() == Some(value))
        && deletes.iter().all(|change| change.value.is_none() && txn.delete.contains(&change.key))
}
