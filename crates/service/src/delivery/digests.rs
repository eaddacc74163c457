//! Digests between nodes: a follower sends what its guests did, the leader takes it in.
//!
//! [`notbefore_engine::cluster::digest`] decides what is sent and when. This module finds the notes, and puts them
//! where the leader's own guests leave theirs:
//!
//! | note | at the follower | at the leader |
//! |---|---|---|
//! | poll of a scope | [`Delivery::record_scope_poll`], once a minute | the engine: the scope is enabled |
//! | poll of a VM | when polls begin; else its slot, see [`rounds`] | the VM's slot: it listens |
//! | first read | the recorder | the ledger, and with it `seen/` and warnings |
//! | entry of a VM's log | [`VmLog::take_unsent`] | [`VmLog::record_of_other_node`] |
//!
//! A poll costs nothing more: what it leaves in its slot is read here, a sixtieth of the fleet each second. So the leader
//! knows within a second that a VM begins to poll, and later ones within two minutes. A VM listens for five.
//!
//! **Reads at a follower.** Only the leader knows who listens, what was read, and the log of a VM. A follower's own
//! slots and ledger show its own guests. So a follower passes these requests to the leader, like changes: `GET
//! /v1/vms`, `/v1/vms/{vm}`, `/v1/vms/{vm}/log`, `/v1/events`, `/v1/events/{id}`, `/v1/hosts`, `/v1/hosts/{host}`,
//! `/v1/status`, and every plan. The metrics `vms_listening` and `events_unread` of a follower count its
//! own guests; those of the leader count all.
//!
//! **A new leader** knows its own guests. Until all that live have told it of theirs, no scope
//! counts as not enabled, and it warns of no unread event ([`Digests::take_lead`], [`Digests::review`]).
//!
//! **Who calls what.** [`Digests::follow_cluster`] follows the node's role. The engine hears from the runtime that polls
//! are not complete, before it hears that it leads. [`Digests::run`] sends. The listener for nodes calls [`Digests::take`], and
//! [`Digests::take_notes_of_request`] before it executes a forwarded request. The sender of such a request gets the
//! notes from [`Digests::notes_for_request`].

pub mod rounds;

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{ScopeId, VmId};
use notbefore_engine::cluster::digest::{
    Ack, DigestError, FirstRead, Heard, HeldNotes, LogNote, Notes, ReceivedNotes, Receiver, Sender, Taken,
};
use notbefore_store::Revision;
use notbefore_wire::guest::version::EventsVersion;
use tokio::sync::{Notify, watch};

use self::rounds::Rounds;
use super::vm_polls::Poll;
use super::{Delivery, Read};
use crate::clock::Clock;
use crate::nodes::{GuestNotes, Nodes};
use crate::operator::vm_log;
use crate::runtime::EngineHandle;
use crate::view::{ScopeView, View, Views};
use crate::vm_log::VmLog;
use crate::vm_log::entries::Entry;
use crate::{cluster, lock};

/// How long the sender waits for an answer. The leader only merges, so an answer takes milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which a new leader looks whether all nodes have sent their digests.
const REVIEW_EVERY: Duration = Duration::from_millis(200);
/// Longest sleep of the sender, so that it notices when the clock is set.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// Log target.
const TARGET: &str = "notbefore::delivery";

/// Carries digests to the leader.
#[async_trait]
pub trait DigestTransport: Send + Sync + 'static {
    /// Sends a digest to a node, named `name~epoch`, and returns its answer. The transport does not repeat it, and gives up
    /// after a time limit.
    async fn send(&self, leader: &str, digest: Vec<u8>) -> Result<Vec<u8>, String>;
}

#[async_trait]
impl DigestTransport for Nodes {
    async fn send(&self, leader: &str, digest: Vec<u8>) -> Result<Vec<u8>, String> {
        let sent = self.send_digest(leader, digest.into(), ANSWER_TIMEOUT).await;
        sent.map(Vec::from).map_err(|error| error.to_string())
    }
}

/// What this node does with notes of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryRole {
    /// The only node: it knows all guests.
    Alone,
    /// Another node leads, or none: notes go to the leader.
    Following,
    /// This node leads, and does not know the guests of all nodes yet.
    Collecting,
    /// This node leads and knows the guests of all nodes.
    Leading,
}

/// Notes for the leader, made by the guest listener and the recorder. Unused by a single node.
#[derive(Default)]
pub struct NodeNotes {
    role: AtomicU8,
    /// The revision at which this node took the lead last.
    term: AtomicU64,
    sender: Mutex<Sender>,
    /// A note that does not wait for the next second.
    has_urgent: Notify,
}

impl NodeNotes {
    pub fn role(&self) -> DeliveryRole {
        match self.role.load(Acquire) {
            0 => DeliveryRole::Alone,
            1 => DeliveryRole::Following,
            2 => DeliveryRole::Collecting,
            _ => DeliveryRole::Leading,
        }
    }

    /// The revision at which this node took the lead last.
    pub fn term(&self) -> u64 {
        self.term.load(Acquire)
    }

    fn set_role(&self, role: DeliveryRole) {
        let number = match role {
            DeliveryRole::Alone => 0,
            DeliveryRole::Following => 1,
            DeliveryRole::Collecting => 2,
            DeliveryRole::Leading => 3,
        };
        self.role.store(number, Release);
    }

    fn is_following(&self) -> bool {
        self.role() == DeliveryRole::Following
    }

    /// A VM of the scope polled; called at most once a minute.
    pub(super) fn add_scope(&self, scope: &ScopeId, at: Timestamp) {
        if self.is_following() {
            lock(&self.sender).add_scope(scope.clone(), at);
            self.has_urgent.notify_one();
        }
    }

    /// Polls of a VM begin.
    pub(super) fn add_heard(&self, vm: VmId, version: EventsVersion, at: Timestamp) {
        if self.is_following() {
            lock(&self.sender).add_heard(vm, Heard { at, version: number(version) });
        }
    }

    /// VMs were sent events for the first time.
    pub(super) fn add_reads(&self, reads: impl Iterator<Item = (notbefore_core::EventId, VmId, Read)>) {
        if self.is_following() {
            let mut sender = lock(&self.sender);
            for (event, vm, Read { at, version }) in reads {
                sender.add_read(event, vm, FirstRead { at, version: number(version) });
            }
            self.has_urgent.notify_one();
        }
    }
}

/// Number of an api-version in digests.
fn number(version: EventsVersion) -> u8 {
    u8::try_from(version.index()).unwrap_or(u8::MAX)
}

fn version(number: u8) -> Option<EventsVersion> {
    EventsVersion::ALL.get(usize::from(number)).copied()
}

/// Both sides of digests at a node of a cluster.
pub struct Digests {
    views: Arc<Views>,
    engine: EngineHandle,
    delivery: Arc<Delivery>,
    vm_log: Arc<VmLog>,
    clock: Arc<dyn Clock>,
    rounds: Mutex<Rounds>,
    receiver: Mutex<Option<Receiver>>,
    /// Notes of other nodes that this leader's view is not ready for.
    held: Mutex<HeldNotes>,
}

impl Digests {
    /// The digests of a node that follows.
    pub fn new(
        views: Arc<Views>,
        engine: EngineHandle,
        delivery: Arc<Delivery>,
        vm_log: Arc<VmLog>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (rounds, receiver, held) = (Mutex::default(), Mutex::default(), Mutex::default());
        let digests = Self { views, engine, delivery, vm_log, clock, rounds, receiver, held };
        digests.follow();
        digests
    }

    fn notes(&self) -> &NodeNotes {
        &self.delivery.node_notes
    }

    /// The node follows, from now on.
    pub fn follow(&self) {
        *lock(&self.receiver) = None;
        *lock(&self.held) = HeldNotes::default();
        self.vm_log.set_following(true);
        self.notes().set_role(DeliveryRole::Following);
    }

    /// The node takes the lead with this revision of the leader's record.
    pub fn take_lead(&self, took_lead_at: Revision) {
        self.engine.set_polls_complete(false);
        self.set_leader(None);
        self.vm_log.set_following(false);
        *lock(&self.receiver) = Some(Receiver::new(took_lead_at));
        self.notes().term.store(took_lead_at.0, Release);
        self.notes().set_role(DeliveryRole::Collecting);
    }

    /// The node that leads, as `name~epoch`; none if it is this one, or no node leads.
    pub fn set_leader(&self, leader: Option<&str>) {
        lock(&self.notes().sender).set_leader(leader);
        self.notes().has_urgent.notify_one();
    }

    /// Takes notes whose time has come, and decides whether the leader knows the guests of all nodes. `living` are the
    /// other nodes, as `name~epoch`.
    pub fn review<'n>(&self, living: impl IntoIterator<Item = &'n str>) {
        let (shown, _) = self.views.complete_to();
        let due = lock(&self.held).take_due(Revision(shown), self.clock.since_boot());
        if !due.is_empty() {
            self.take_notes(due, self.clock.now());
        }
        let now = self.clock.since_boot();
        let may_judge = lock(&self.receiver).as_ref().is_some_and(|one| one.may_judge(living, now));
        match self.notes().role() {
            DeliveryRole::Collecting if may_judge && lock(&self.held).is_empty() => {
                self.notes().set_role(DeliveryRole::Leading);
                self.engine.set_polls_complete(true);
            }
            DeliveryRole::Leading if !may_judge => {
                tracing::warn!(
                    target: TARGET,
                    "a node lives, and this leader does not hear of its guests: every scope gets notice until it does; check that nodes reach each other's --node-listen"
                );
                self.notes().set_role(DeliveryRole::Collecting);
                self.engine.set_polls_complete(false);
            }
            DeliveryRole::Alone
            | DeliveryRole::Following
            | DeliveryRole::Collecting
            | DeliveryRole::Leading => {}
        }
    }

    /// Takes a digest of an authenticated node, `name~epoch`, and returns the answer. None if this node does not lead.
    pub fn take(&self, from: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, DigestError> {
        let now = self.clock.now();
        let Some(receiver) = &mut *lock(&self.receiver) else { return Ok(None) };
        let Taken { ack, notes } = receiver.take(from, bytes, now, self.clock.since_boot())?;
        // With the lock: the answer to a repetition must not overtake the notes.
        if let Some(notes) = notes {
            self.take_or_hold(notes, now);
        }
        Ok(Some(ack.encode()))
    }

    /// Takes the notes that came along with a forwarded request, before it is executed.
    pub fn take_notes_of_request(&self, bytes: &[u8]) -> Result<(), DigestError> {
        let now = self.clock.now();
        self.take_or_hold(Receiver::notes_of_request(bytes, now)?, now);
        Ok(())
    }

    /// Takes the notes of another node. Those that this node's view may not be ready for wait for [`Digests::review`].
    fn take_or_hold(&self, ReceivedNotes { revision, notes }: ReceivedNotes, now: Timestamp) {
        let ((shown, _), since_boot) = (self.views.complete_to(), self.clock.since_boot());
        let ready = lock(&self.held).add(notes, revision, Revision(shown), since_boot);
        self.take_notes(ready, now);
    }

    /// The notes that must go along with a request that is forwarded now, if there are any.
    pub fn notes_for_request(&self) -> Option<Vec<u8>> {
        let sender = lock(&self.notes().sender);
        sender.notes_for_request(self.clock.now(), self.views.shown_to())
    }

    /// Puts notes where this node's own guests leave theirs. VMs and events that are gone are skipped.
    fn take_notes(&self, notes: Notes, now: Timestamp) {
        let Notes { scopes, reads, heard, log } = notes;
        for (scope, at) in scopes {
            self.engine.record_poll(scope, at);
        }
        let view = self.views.newest();
        for (vm, heard) in heard {
            if let (Some(vm_polls), Some(version)) = (view.vm_polls(vm), version(heard.version)) {
                vm_polls.record_poll_elsewhere(Poll { at: heard.at, version });
            }
        }
        if !reads.is_empty() {
            let mut ledger = self.delivery.ledger();
            for ((event, vm), read) in reads {
                let Some(version) = version(read.version) else { continue };
                let waited = ledger.record_elsewhere(event, vm, Read { at: read.at, version }, &view, now);
                waited.into_iter().for_each(|waited| self.delivery.first_reads.observe(waited));
            }
        }
        for LogNote { vm, first_at, last_at, count, what } in log {
            if let Some(what) = vm_log::decode(&what) {
                let entry = Entry { first_at, last_at, count: count.into(), what };
                self.vm_log.record_of_other_node(vm, entry);
            }
        }
    }

    /// Follows what the node knows of its cluster, until the service stops.
    pub async fn follow_cluster(self: Arc<Self>, mut standings: watch::Receiver<cluster::Standing>) {
        let mut term = None;
        loop {
            let standing = standings.borrow_and_update().clone();
            match standing.term.filter(|_| standing.role.leads()) {
                Some(revision) if term != Some(revision) => self.take_lead(revision),
                Some(_) => {}
                None => {
                    if term.is_some() {
                        self.follow();
                    }
                    let leader = standing.leader.filter(|leader| leader.epoch != standing.me.epoch);
                    let leader = leader.map(|leader| leader.id());
                    self.set_leader(leader.as_deref());
                }
            }
            term = standing.term.filter(|_| standing.role.leads());
            if term.is_some() {
                self.review(standing.living.iter().map(String::as_str));
            }
            // While it leads, the digests of the others arrive meanwhile.
            if let Ok(Err(_)) = tokio::time::timeout(REVIEW_EVERY, standings.changed()).await {
                return;
            }
        }
    }

    /// Sends digests while another node leads, forever.
    pub async fn run(self: Arc<Self>, transport: Arc<dyn DigestTransport>) {
        let mut is_failing = false;
        loop {
            let Some((leader, digest)) = self.next() else {
                self.sleep().await;
                continue;
            };
            let sent = transport.send(&leader, digest).await;
            let answer = sent.and_then(|answer| self.acknowledge(&answer).map_err(|error| error.to_string()));
            match (&answer, std::mem::replace(&mut is_failing, answer.is_err())) {
                (Err(why), false) => {
                    tracing::warn!(target: TARGET, leader, why, "leader does not take this node's polls: retrying");
                }
                (Ok(()), true) => {
                    tracing::info!(target: TARGET, leader, "leader takes this node's polls again");
                }
                (Err(_), true) | (Ok(()), false) => {}
            }
        }
    }

    /// Handles the leader's answer to a digest.
    pub fn acknowledge(&self, answer: &[u8]) -> Result<(), DigestError> {
        lock(&self.notes().sender).acknowledge(Ack::decode(answer)?);
        Ok(())
    }

    /// The leader, and the digest to send to it now.
    pub fn next(&self) -> Option<(String, Vec<u8>)> {
        let (now, at) = (self.clock.since_boot(), self.clock.now());
        if !self.notes().is_following() {
            return None;
        }
        // Collecting takes longer than guests may wait for the lock.
        let (wants_everything, is_ready) = {
            let mut sender = lock(&self.notes().sender);
            (sender.start_everything(), sender.is_ready(now))
        };
        let everything = wants_everything.then(|| self.everything());
        let heard = if is_ready && !wants_everything { self.heard_in_round(now, at) } else { Vec::new() };
        let mut sender = lock(&self.notes().sender);
        if let Some(everything) = everything {
            sender.add_everything(everything);
        } else if is_ready {
            heard.into_iter().for_each(|(vm, heard)| sender.add_heard(vm, heard));
            self.vm_log.take_unsent().for_each(|(vm, entry)| sender.add_log(log_note(vm, entry)));
        }
        let leader = sender.leader()?.to_owned();
        Some((leader, sender.next(now, at, self.views.shown_to())?))
    }

    async fn sleep(&self) {
        let due = lock(&self.notes().sender).due_at();
        let left = due.map_or(SLEEP_MAX, |due| due.saturating_sub(self.clock.since_boot()));
        // At least a moment, which notes share.
        let left = left.clamp(Duration::from_millis(10), SLEEP_MAX);
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = self.notes().has_urgent.notified() => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }

    /// The VMs of the next scopes that polled since the round before.
    fn heard_in_round(&self, now: Duration, at: Timestamp) -> Vec<(VmId, Heard)> {
        let view = self.views.newest();
        let Some(slice) = lock(&self.rounds).next(view.scope_slots(), now, at) else { return Vec::new() };
        let scopes = slice.slots.filter_map(|slot| view.scope_in_slot(slot));
        scopes.flat_map(|scope| polls_of(scope)).filter(|(_, heard)| heard.at >= slice.since).collect()
    }

    /// All that this node knows of its guests.
    fn everything(&self) -> Notes {
        let mut notes = Notes::default();
        let view: Arc<View> = self.views.newest();
        for scope in (0..view.scope_slots()).filter_map(|slot| view.scope_in_slot(slot)) {
            let mut last = None;
            for (vm, heard) in polls_of(scope) {
                last = last.max(Some(heard.at));
                notes.add_heard(vm, heard);
            }
            if let Some(at) = last {
                notes.add_scope(scope.scope.id(), at);
            }
        }
        for (event, vm, Read { at, version }) in self.delivery.ledger().own_reads() {
            notes.add_read(event, vm, FirstRead { at, version: number(version) });
        }
        let entries = self.vm_log.all_entries().into_iter();
        notes.log = entries.map(|(vm, entry)| log_note(vm, entry)).collect();
        notes
    }
}

impl GuestNotes for Digests {
    fn notes_for_request(&self) -> Bytes {
        Digests::notes_for_request(self).unwrap_or_default().into()
    }

    fn take_notes_of_request(&self, notes: &[u8]) {
        if let Err(error) = Digests::take_notes_of_request(self, notes) {
            tracing::warn!(target: TARGET, %error, "notes of a forwarded request are malformed: they are dropped");
        }
    }

    fn take_digest(&self, sender: &str, digest: &[u8]) -> Option<Bytes> {
        match self.take(sender, digest) {
            Ok(answer) => answer.map(Bytes::from),
            Err(error) => {
                tracing::warn!(target: TARGET, node = sender, %error, "digest of a node is malformed");
                None
            }
        }
    }
}

/// The VMs of a scope that have polled.
fn polls_of(scope: &ScopeView) -> impl Iterator<Item = (VmId, Heard)> {
    let members = scope.scope.members.iter().zip(scope.all_vm_polls());
    members.filter_map(|(member, vm_polls)| {
        let Poll { at, version } = vm_polls.last_poll()?;
        Some((member.vm, Heard { at, version: number(version) }))
    })
}

fn log_note(vm: VmId, entry: Entry) -> LogNote {
    let Entry { first_at, last_at, count, what } = entry;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    LogNote { vm, first_at, last_at, count, what: vm_log::encode(what).into() }
}
