//! Messages between nodes: a follower sends its clients' requests to the leader, and digests of its guests' polls. Messages
//! are lost, late and doubled.
//!
//! A request names the process that its sender takes for the leader. That process executes it if it leads, and once:
//! it remembers every message, also those that it refused. The answer has the revision that the leader knows then. The
//! follower answers its client once its own view has that revision, or that the outcome is unknown when the request's
//! time is over. It never sends a request twice.

use std::rc::Rc;
use std::time::Duration;

use notbefore_core::ScopeId;
use notbefore_engine::cluster::digest::{Ack, Notes, Receiver};
use notbefore_engine::{Answer, Command, Failure, FailureCause, Input, RequestId};
use notbefore_store::Revision;

use super::CALM_AFTER;
use super::faults::ClusterFaults;
use crate::conformance::SentRequest;
use crate::invariants::{self, Check};
use crate::view::Reads;
use crate::world::{World, broken};

/// How long an operator's request may take.
const OPERATOR_DEADLINE: Duration = Duration::from_secs(5);
/// How long a guest's request may take.
const GUEST_DEADLINE: Duration = Duration::from_secs(2);
/// Interval at which a leader compares its view with that of a request's sender.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The view of the sender of a digest. Nodes note only polls of scopes, which wait for no view.
const SHOWN: Revision = Revision(0);

/// A process: the index of its node and its epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    node: usize,
    epoch: String,
}

impl Process {
    fn name(&self) -> String {
        format!("node-{}~{}", self.node, self.epoch)
    }
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The request that it is about.
    number: u64,
    from: Process,
    to: Process,
    arrives_at: Duration,
    body: Body,
    /// No sender waits for the answer to a copy.
    is_copy: bool,
}

#[derive(Clone, Debug)]
enum Body {
    Request(ForwardedRequest),
    Digest(Vec<u8>),
    DigestTaken(Ack),
    Answer(Result<Answer, Failure>, Revision),
    /// The process does not lead, is another one, or its view is behind the sender's: it has executed nothing.
    NotLeader,
}

/// A client's request on its way to the leader.
#[derive(Clone, Debug)]
struct ForwardedRequest {
    sent: Rc<SentRequest>,
    /// Polls before it.
    notes: Option<Vec<u8>>,
    /// The sender has shown nothing newer.
    shown: Revision,
    /// The leader waits for its own view until then.
    wait_until: Duration,
}

/// A client's request that was sent to the leader.
#[derive(Debug)]
pub(super) struct Forwarded {
    sent: Rc<SentRequest>,
    deadline: Duration,
    answer: Option<(Result<Answer, Failure>, Revision)>,
}

/// What happens to the next messages of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transit {
    pub(super) lose: u8,
    pub(super) delay: (u8, Duration),
    /// A second one comes this much later.
    pub(super) double: (u8, Duration),
}

impl World {
    fn time(&self) -> Duration {
        self.cluster.as_ref().map_or(Duration::ZERO, |cluster| cluster.time)
    }

    fn process(&self) -> Process {
        self.process_at(self.index())
    }

    fn process_at(&self, node: usize) -> Process {
        let epoch = self.node_at(node).member.as_ref().map(|member| member.identity.epoch.clone());
        Process { node, epoch: epoch.unwrap_or_default() }
    }

    /// The process that the current node takes for the leader, if it is another node.
    fn leader_to_ask(&self) -> Option<Process> {
        let leader = self.node.member.as_ref()?.leadership.leader()?;
        let node = leader.node.strip_prefix("node-")?.parse().ok()?;
        Some(Process { node, epoch: leader.epoch.clone() }).filter(|leader| leader.node != self.index())
    }

    /// Sends a client's request to the leader, if the current node does not lead. Returns whether it does not.
    pub(crate) fn forward(&mut self, sent: &Rc<SentRequest>) -> Result<bool, crate::Violation> {
        if self.cluster.is_none() || self.setup.leaderless {
            return Ok(false);
        }
        self.check_lead()?;
        if self.node.engine.role().leads() {
            return Ok(false);
        }
        self.stats.forwarded += 1;
        // Without a leader the client gets 503 at once.
        let Some(to) = self.leader_to_ask() else { return Ok(true) };
        let deadline = self.time()
            + match sent.request.command {
                Command::Guest(_) => GUEST_DEADLINE,
                Command::Event(_)
                | Command::Operation(_)
                | Command::Inventory(_)
                | Command::Token(_)
                | Command::Clock(_)
                | Command::Cluster(_) => OPERATOR_DEADLINE,
            };
        if let Some(member) = &mut self.node.member {
            let forwarded = Forwarded { sent: Rc::clone(sent), deadline, answer: None };
            member.forwarded.insert(sent.id, forwarded);
        }
        let now = self.node.now;
        let notes = self.node.member.as_ref().and_then(|member| member.digests.notes_for_request(now, SHOWN));
        let (shown, time) = (self.node.known, self.time());
        let wait_until = time + (deadline - time) / 2;
        let request = ForwardedRequest { sent: Rc::clone(sent), notes, shown, wait_until };
        self.send_message(sent.id, to, Body::Request(request));
        Ok(true)
    }

    fn send_message(&mut self, number: u64, to: Process, body: Body) {
        let from = self.process();
        let time = self.time();
        let (Some(cluster), Some(member)) = (&mut self.cluster, &mut self.node.member) else { return };
        let mut count = |change: fn(&mut ClusterFaults)| {
            self.faults += 1;
            self.stats.faults += 1;
            change(&mut self.stats.cluster_faults);
        };
        let transit = &mut member.transit;
        if transit.lose > 0 {
            transit.lose -= 1;
            cluster.messages_calm_since = time;
            return count(|faults| faults.lost_messages += 1);
        }
        let mut arrives_at = time;
        if transit.delay.0 > 0 {
            transit.delay.0 -= 1;
            arrives_at += transit.delay.1;
            cluster.messages_calm_since = arrives_at;
            count(|faults| faults.late_messages += 1);
        }
        let message = Message { number, from, to, arrives_at, body, is_copy: false };
        cluster.messages.push(message.clone());
        if transit.double.0 > 0 {
            transit.double.0 -= 1;
            let arrives_at = arrives_at + transit.double.1;
            count(|faults| faults.doubled_messages += 1);
            cluster.messages.push(Message { arrives_at, is_copy: true, ..message });
        }
    }

    /// Sends a digest if one is due, or decides at the leader whether the polls of all nodes are known.
    pub(super) fn digest_polls(&mut self) -> Check {
        if self.setup.leaderless {
            return Ok(());
        }
        if self.node.engine.role().leads() {
            return self.review_polls();
        }
        let leader = self.leader_to_ask();
        let (since_boot, now) = (self.node.since_boot, self.node.now);
        let Some(member) = &mut self.node.member else { return Ok(()) };
        member.digests.set_leader(leader.as_ref().map(Process::name).as_deref());
        if member.digests.start_everything() {
            let scopes = member.polls.clone();
            member.digests.add_everything(Notes { scopes, ..Notes::default() });
        }
        if let (Some(to), Some(digest)) = (leader, member.digests.next(since_boot, now, SHOWN)) {
            self.stats.digests += 1;
            self.send_message(0, to, Body::Digest(digest));
        }
        Ok(())
    }

    fn review_polls(&mut self) -> Check {
        if !self.node.waits_for_polls {
            return Ok(());
        }
        let others = (0..self.nodes()).filter(|index| *index != self.index());
        let others = others.filter(|index| self.node_at(*index).is_running());
        let living: Vec<String> = others.map(|index| self.process_at(index).name()).collect();
        let receiver = self.node.member.as_ref().and_then(|member| member.receiver.as_ref());
        let living = living.iter().map(String::as_str);
        match receiver.is_some_and(|receiver| receiver.may_judge(living, self.node.since_boot)) {
            true => {
                self.node.waits_for_polls = false;
                self.feed(Input::PollsComplete(true))
            }
            false => Ok(()),
        }
    }

    /// The leader learns of polls at another node.
    fn take_notes(&mut self, notes: Notes) -> Check {
        notes.scopes.into_iter().try_for_each(|(scope, at)| self.polled(scope, at))
    }

    /// **A guest that polls a node, and then asks for something through it, has its notice**: the leader takes the scope
    /// for enabled. Judged while all messages arrive.
    fn check_polls_known(&self, from: &Process) -> Check {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let is_calm =
            self.is_calm() && cluster.time.saturating_sub(cluster.messages_calm_since) >= CALM_AFTER;
        let Some(member) = self.node_at(from.node).member.as_ref().filter(|_| is_calm) else { return Ok(()) };
        let (state, now) = (self.node.engine.state(), self.node.now);
        let unknown = |scope: &&ScopeId| {
            Reads::scope(state, scope).is_some() && !self.node.engine.is_enabled(scope, now)
        };
        match member.polls.keys().find(unknown) {
            Some(scope) => Err(broken("a poll before a request enables its scope", scope.to_string())),
            None => Ok(()),
        }
    }

    /// **A refusal through a node is never older than what that node has shown.** The engine plans by a state that is at
    /// least as new as what the process knows.
    fn check_not_older(&self, shown: Revision) -> Check {
        match self.node.known < shown {
            true => {
                Err(broken("a request is not judged by an older state than was shown", format!("{shown}")))
            }
            false => Ok(()),
        }
    }

    /// Hands over the messages that have arrived. A process that stands still gets them when it goes on; those for a
    /// process that has ended are lost, unless the next one of its node takes them.
    pub(super) fn deliver_messages(&mut self) -> Check {
        let before = self.index();
        loop {
            let time = self.time();
            let Some(cluster) = &self.cluster else { return Ok(()) };
            let is_paused = |message: &Message| {
                let member = self.node_at(message.to.node).member.as_ref();
                member.is_some_and(|member| member.is_paused)
            };
            let arrived = |message: &Message| message.arrives_at <= time && !is_paused(message);
            let Some(index) = cluster.messages.iter().position(arrived) else { break };
            let Some(cluster) = &mut self.cluster else { return Ok(()) };
            let message = cluster.messages.remove(index);
            self.select(message.to.node);
            if self.node.is_running() {
                self.take_message(message)?;
            }
        }
        self.select(before);
        Ok(())
    }

    fn take_message(&mut self, message: Message) -> Check {
        let me = self.process();
        let Message { number, from, to, body, is_copy, .. } = message;
        match body {
            Body::Request(request) => {
                self.check_lead()?;
                let time = self.time();
                let is_behind = self.node.known < request.shown;
                if is_behind && time < request.wait_until && self.node.engine.role().leads() {
                    let Some(cluster) = &mut self.cluster else { return Ok(()) };
                    let (arrives_at, body) = (time + LOOK_EVERY, Body::Request(request));
                    cluster.messages.push(Message { number, from, to, arrives_at, body, is_copy });
                    return Ok(());
                }
                let ForwardedRequest { sent, notes, shown, .. } = request;
                let Some(member) = &mut self.node.member else { return Ok(()) };
                let is_new = member.seen_messages.insert(number);
                let is_for_me = to == me;
                let leads = self.node.engine.role().leads();
                if !is_new {
                    return Ok(());
                }
                if !is_for_me || !leads || is_behind {
                    if !is_copy {
                        self.send_message(number, from, Body::NotLeader);
                    }
                    return Ok(());
                }
                let now = self.node.now;
                if let Some(notes) = notes.and_then(|notes| Receiver::notes_of_request(&notes, now).ok()) {
                    self.take_notes(notes.notes)?;
                }
                self.check_polls_known(&from)?;
                self.check_not_older(shown)?;
                self.execute_forwarded(number, from, &to, &sent)
            }
            Body::Digest(bytes) => {
                self.check_lead()?;
                let (name, now, since_boot) = (from.name(), self.node.now, self.node.since_boot);
                let receiver = self.node.member.as_mut().and_then(|member| member.receiver.as_mut());
                let Some(receiver) = receiver.filter(|_| to == me) else { return Ok(()) };
                let taken = receiver.take(&name, &bytes, now, since_boot);
                let taken = taken.map_err(|error| broken("every digest can be read", error.to_string()))?;
                self.take_notes(taken.notes.map(|of_node| of_node.notes).unwrap_or_default())?;
                self.send_message(number, from, Body::DigestTaken(taken.ack));
                self.review_polls()
            }
            Body::DigestTaken(ack) => {
                if let Some(member) = self.node.member.as_mut().filter(|_| to == me) {
                    member.digests.acknowledge(ack);
                }
                Ok(())
            }
            Body::Answer(result, revision) => {
                let Some(member) = &mut self.node.member else { return Ok(()) };
                if let Some(forwarded) = member.forwarded.get_mut(&number).filter(|_| to == me) {
                    forwarded.answer.get_or_insert((result, revision));
                }
                self.answer_clients()
            }
            Body::NotLeader => {
                let Some(member) = &mut self.node.member else { return Ok(()) };
                // It waits for nothing.
                match member.forwarded.remove(&number).filter(|_| to == me) {
                    Some(_) => self.not_executed(number),
                    None => Ok(()),
                }
            }
        }
    }

    /// **A request takes effect at most once through a follower**, also without an idempotency key: it is executed at
    /// most once, by the process that its sender took for the leader, and not after its client was told that nothing
    /// happens.
    fn execute_forwarded(&mut self, number: u64, from: Process, to: &Process, sent: &SentRequest) -> Check {
        const WORDS: &str = "a request takes effect at most once through a follower";
        let detail = || format!("{:?}", sent.request);
        if *to != self.process() {
            return Err(broken("a request is executed by the process that it names", detail()));
        }
        let id = self.next_request_id();
        if self.ledger.executed.insert(number, id).is_some() {
            return Err(broken(WORDS, detail()));
        }
        if self.ledger.not_executed.contains(&number) {
            return Err(broken("a request that was refused is not executed later", detail()));
        }
        if let Some(member) = &mut self.node.member {
            member.serving.insert(id, (from, number));
        }
        let is_quiet = self.all_flights().next().is_none();
        let executed = SentRequest { id, request: sent.request.clone(), faults: sent.faults, is_quiet };
        self.execute(Rc::new(executed))
    }

    /// A client is told that nothing happens.
    fn not_executed(&mut self, number: u64) -> Check {
        self.ledger.not_executed.insert(number);
        match self.ledger.executed.contains_key(&number) {
            true => Err(broken("a request that was refused was not executed", format!("{number}"))),
            false => Ok(()),
        }
    }

    /// Sends the answer to a request of another node's client back.
    pub(crate) fn answer_forwarded(&mut self, id: RequestId, result: &Result<Answer, Failure>) {
        let serving = self.node.member.as_mut().and_then(|member| member.serving.remove(&id.0));
        if let Some((from, number)) = serving {
            self.send_message(number, from, Body::Answer(result.clone(), self.node.known));
        }
    }

    /// Answers the clients of the current node whose answers it can give now, or has to.
    pub(super) fn answer_clients(&mut self) -> Check {
        let time = self.time();
        let known = self.node.known;
        let Some(member) = &mut self.node.member else { return Ok(()) };
        let is_shown = |revision: Revision| revision <= known;
        // A refusal changed nothing, so it is true whatever this node shows.
        let can_answer = |one: &Forwarded| {
            one.answer.as_ref().is_some_and(|(result, revision)| result.is_err() || is_shown(*revision))
        };
        let ready = |_: &u64, one: &mut Forwarded| can_answer(one) || one.deadline <= time;
        let ready: Vec<(u64, Forwarded)> = member.forwarded.extract_if(.., ready).collect();
        for (number, forwarded) in ready {
            let unknown = Failure::OutcomeUnknown(FailureCause::NotLeader);
            let is_known = can_answer(&forwarded);
            let answer = forwarded.answer.map(|(result, _)| result).filter(|_| is_known);
            self.client_answered(number, &forwarded.sent, answer.unwrap_or(Err(unknown)))?;
        }
        Ok(())
    }

    /// Whether a client of the current node waits for an answer of the leader.
    pub(crate) fn has_waiting_clients(&self) -> bool {
        self.node.member.as_ref().is_some_and(|member| !member.forwarded.is_empty())
    }

    /// **After an answer every later poll at that node shows its effect.** What a node publishes never goes back, so it
    /// is enough to look at the answer.
    fn client_answered(&mut self, number: u64, sent: &SentRequest, result: Result<Answer, Failure>) -> Check {
        match result {
            Ok(answer) => {
                self.stats.granted_by_followers += 1;
                let executed = self.ledger.executed.get(&number).copied().unwrap_or(number);
                let sent = SentRequest { id: executed, ..sent.clone() };
                let lost = self.node.member.as_ref().is_some_and(|member| member.has_lost_deletes);
                let (view, store, ledger) = (&self.view, &self.store, &self.ledger);
                invariants::shown_before_answer(&sent, &answer, view, store, ledger, &self.node.shown, lost)
            }
            Err(Failure::Unavailable(_) | Failure::Refused(_) | Failure::KeyReused) => Ok(()),
            Err(Failure::OutcomeUnknown(_)) => {
                self.stats.unknown_by_followers += 1;
                Ok(())
            }
        }
    }
}
