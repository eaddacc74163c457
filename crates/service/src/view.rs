//! Views: immutable snapshots of the published state, for guests and operators.
//!
//! A [`View`] never changes. The engine's runtime builds the next one copy-on-write and swaps it in atomically; readers
//! take the newest one without a lock. A poll therefore costs the same at any load, and two reads of one view are
//! consistent.

mod counts;
mod scope;
mod slots;

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::ops::{Bound, RangeInclusive};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use arc_swap::ArcSwap;
use imbl::{HashMap, OrdMap, OrdSet};
use jiff::Timestamp;
use notbefore_core::{Event, EventId, Member, Operation, OperationId, Phase, Prefix, Scope, ScopeId, VmId};
use notbefore_engine::{Address, Inventory, Publication, PublishedChange, Revisioned, ScopeSlot};
use notbefore_store::Revision;
use notbefore_wire::operator::Listening;
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::counts::Counts;
use self::counts::CountsByPath;
use self::scope::PublishContext;
pub use self::scope::{ScopePolls, ScopeView, shown_type};
use self::slots::Slots;
use crate::delivery::VmPolls;
use crate::hosts::{Hosts, Placements};
use crate::tokens::TokenTable;
use crate::wait_queues::WaitQueues;

/// The newest view. Only the engine's runtime replaces it.
#[derive(Default)]
pub struct Views {
    newest: ArcSwap<View>,
    /// The newest view shows every commit up to this revision.
    complete_to: AtomicU64,
    /// No guest was shown a commit after this revision.
    shown_to: AtomicU64,
    /// Notified when `complete_to` rises.
    completed: Notify,
    /// Waiters for the next change.
    wait_queues: WaitQueues<ScopeId>,
    rfc1123_everywhere: bool,
}

/// The published state at one moment.
#[derive(Clone, Default)]
pub struct View {
    /// VMs and their addresses; shared with the engine's tables.
    inventory: Inventory,
    /// Slot numbers by scope id, and scopes by slot number. A poll finds its scope by slot number, and a changed scope
    /// replaces only its own slot.
    ids: OrdMap<ScopeId, ScopeSlot>,
    scopes: Slots<Arc<ScopeView>>,
    operations: OrdMap<OperationId, Revisioned<Operation>>,
    /// Open operations in order of time.
    operations_by_time: OrdSet<OperationTime>,
    /// Open operations whose host's command has begun.
    operations_with_host_run: OrdSet<OperationId>,
    /// The scopes with live events: listing events visits only these.
    pub busy: OrdSet<ScopeId>,
    /// The scopes with a started event whose command has no attempts left.
    failed: OrdSet<ScopeId>,
    /// Live events in order of time.
    by_time: OrdSet<EventTime>,
    counts: CountsByPath,
    /// The scope of each live or recently ended event.
    events: HashMap<EventId, ScopeSlot>,
    /// The VMs on each host.
    pub hosts: Hosts,
    /// The scopes with a VM of a name, by hash of the case-folded name. Lookups by name are rare, so the scope itself
    /// confirms the match and the index stays small.
    names: OrdSet<(u32, ScopeSlot)>,
    /// The VM that represents any caller while no fleet exists.
    pub first_run: Option<VmId>,
    /// When the first records were published: this process counts polls since then.
    pub since: Option<Timestamp>,
    /// Number of documents published.
    editions: u64,
    /// The tokens of the operator API.
    pub tokens: TokenTable,
}

/// A live event's place in the order of time: started events by their start, then scheduled events by NotBefore, then
/// advisories by their announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTime {
    rank: Rank,
    pub at: Timestamp,
    pub event: EventId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Started,
    Scheduled,
    Advisory,
}

impl Rank {
    const ALL: [Self; 3] = [Self::Started, Self::Scheduled, Self::Advisory];
}

impl EventTime {
    pub fn of(event: &Event) -> Self {
        let (rank, at) = match event.phase {
            Phase::Started { at, .. } => (Rank::Started, at),
            Phase::Scheduled { not_before, .. } => (Rank::Scheduled, not_before),
            Phase::Advisory { .. } => (Rank::Advisory, event.announced_at().unwrap_or_default()),
        };
        Self { rank, at, event: event.id }
    }

    /// Before all scheduled events, after the started ones.
    pub const FIRST_SCHEDULED: Self =
        Self { rank: Rank::Scheduled, at: Timestamp::MIN, event: EventId(Uuid::nil()) };
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, at, event } = self;
        write!(f, "{}|{at}|{event}", *rank as u8)
    }
}

impl FromStr for EventTime {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let (rank, rest) = text.split_once('|').ok_or(InvalidTime)?;
        let rank =
            rank.parse().ok().and_then(|rank: usize| Rank::ALL.get(rank).copied()).ok_or(InvalidTime)?;
        let OperationTime(at, OperationId(id)) = rest.parse()?;
        Ok(Self { rank, at, event: EventId(id) })
    }
}

/// An operation's place in the order of time: its NotBefore, or when it was requested if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationTime(pub Timestamp, pub OperationId);

impl OperationTime {
    pub fn of(operation: &Operation) -> Self {
        Self(operation.not_before.unwrap_or(operation.requested_at), operation.id)
    }
}

impl fmt::Display for OperationTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}", self.0, self.1)
    }
}

impl FromStr for OperationTime {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let (at, id) = text.split_once('|').ok_or(InvalidTime)?;
        let (at, id) = (at.parse().map_err(|_| InvalidTime)?, Uuid::parse_str(id).map_err(|_| InvalidTime)?);
        Ok(Self(at, OperationId(id)))
    }
}

/// A text is not a place in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTime;

/// A VM that polls: its scope, and its position among the members.
#[derive(Clone, Copy)]
pub struct Guest<'a> {
    /// The VM's scope.
    pub scope: &'a Arc<ScopeView>,
    /// The VM's index among the scope's members.
    pub position: usize,
}

impl<'a> Guest<'a> {
    /// The VM's poll slot.
    pub fn vm_polls(&self) -> Option<&'a VmPolls> {
        self.scope.vm_polls(self.position)
    }
}

impl Views {
    /// An empty view.
    pub fn new(rfc1123_everywhere: bool) -> Self {
        Self { rfc1123_everywhere, ..Self::default() }
    }

    /// Records that the newest view shows every commit up to a revision.
    pub fn set_complete_to(&self, revision: Revision) {
        if self.complete_to.fetch_max(revision.0, Release) < revision.0 {
            self.completed.notify_waiters();
        }
    }

    /// Records that guests may be shown commits up to a revision. Called before they are.
    pub fn set_shown_to(&self, revision: Revision) {
        self.shown_to.fetch_max(revision.0, Release);
    }

    /// No guest was shown a commit after this revision; for nodes of a cluster that follow.
    pub fn shown_to(&self) -> Revision {
        Revision(self.shown_to.load(Acquire))
    }

    /// Resolves when the newest view shows every commit up to a revision.
    pub async fn wait_for(&self, revision: Revision) {
        loop {
            let completed = self.completed.notified();
            // `completed` counts from its creation, so a rise after this check resolves it.
            if self.complete_to.load(Acquire) >= revision.0 {
                return;
            }
            completed.await;
        }
    }

    /// A revision up to which every commit is shown, and the newest view, which may show later commits.
    pub fn complete_to(&self) -> (u64, Arc<View>) {
        // In this order: the view is at least as new as the revision.
        (self.complete_to.load(Acquire), self.newest())
    }

    /// The newest view, as an owned reference.
    pub fn newest(&self) -> Arc<View> {
        self.newest.load_full()
    }

    /// The newest view, borrowed briefly: cheaper than [`Views::newest`]. Polls use this.
    pub fn newest_guard(&self) -> arc_swap::Guard<Arc<View>> {
        self.newest.load()
    }

    /// The wait queues for changes.
    pub fn wait_queues(&self) -> &WaitQueues<ScopeId> {
        &self.wait_queues
    }

    /// Publishes changes as a new view. The engine's runtime is the only caller, so no update is lost between reading
    /// the last view and storing the next.
    pub fn publish(&self, publication: Publication, now: Timestamp) {
        let mut view = View::clone(&self.newest.load());
        let affected = self.wait_queues.affected(&view, &publication.changes);
        let is_first = view.since.is_none();
        view.since.get_or_insert(now);
        view.inventory = publication.inventory;
        for change in publication.changes {
            view.apply(change, self.rfc1123_everywhere, now, is_first);
        }
        if is_first {
            view.index_names();
        }
        self.newest.store(Arc::new(view));
        self.wait_queues.notify(affected);
    }
}

impl View {
    /// The VM that has an address in a network.
    pub fn caller(&self, network: &str, address: IpAddr) -> Option<VmId> {
        self.inventory.caller(network, address)
    }

    /// The addresses of a VM.
    pub fn addresses(&self, vm: VmId) -> Vec<Address> {
        self.inventory.vm(vm).map(|row| self.inventory.addresses(row)).unwrap_or_default()
    }

    /// Whether instance metadata is stored for a VM.
    pub fn has_instance(&self, vm: VmId) -> bool {
        self.inventory.vm(vm).is_some_and(|row| self.inventory.has_instance(row))
    }

    /// The VM's scope and position, if the VM is a member: all that a poll needs.
    pub fn guest(&self, vm: VmId) -> Option<Guest<'_>> {
        let row = self.inventory.vm(vm)?;
        let scope = self.in_slot(row.scope)?;
        let position = row.position(&scope.scope.members)?;
        Some(Guest { scope, position })
    }

    /// [`Self::guest`] for the VM at an address. Usually the claim's position is correct, and then only the claim and
    /// the scope are read.
    pub fn guest_at(&self, network: &str, address: IpAddr) -> Option<(VmId, Option<Guest<'_>>)> {
        let (vm, slot) = self.inventory.caller_with_slot(network, address)?;
        let position = usize::from(slot.position);
        let at_slot = self
            .in_slot(slot.scope)
            .filter(|scope| scope.scope.members.get(position).is_some_and(|member| member.vm == vm));
        Some((vm, at_slot.map(|scope| Guest { scope, position }).or_else(|| self.guest(vm))))
    }

    /// The poll slot of a VM.
    pub fn vm_polls(&self, vm: VmId) -> Option<&VmPolls> {
        self.guest(vm).and_then(|guest| guest.vm_polls())
    }

    /// Whether a VM is listening; no for an unknown VM.
    pub fn listening(&self, vm: VmId, now: Timestamp) -> Listening {
        self.vm_polls(vm).map_or(Listening::No, |vm_polls| vm_polls.listening(now, self.since))
    }

    /// Number of VMs for each value of [`Listening::ALL`], in that order.
    pub fn listening_counts(&self, now: Timestamp) -> Vec<(Listening, usize)> {
        let mut counts: Vec<_> = Listening::ALL.iter().map(|listening| (listening.clone(), 0)).collect();
        for vm_polls in self.scopes.iter().flat_map(|(_, scope)| scope.all_vm_polls()) {
            let answer = vm_polls.listening(now, self.since);
            if let Some((_, count)) = counts.iter_mut().find(|(listening, _)| *listening == answer) {
                *count += 1;
            }
        }
        counts
    }

    /// A VM's scope, if the VM is one of its members.
    pub fn scope_of(&self, vm: VmId) -> Option<&Arc<ScopeView>> {
        self.guest(vm).map(|guest| guest.scope)
    }

    /// A scope by id.
    pub fn scope(&self, id: &ScopeId) -> Option<&Arc<ScopeView>> {
        self.in_slot(*self.ids.get(id)?)
    }

    /// The VM at a full path, `subscription/group/scope/name`. Other VMs may have the same name.
    pub fn at_path(&self, path: &str) -> Option<VmId> {
        let (scope, name) = path.rsplit_once('/')?;
        let slot = match scope.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => self.ids.get(scope.to_ascii_lowercase().as_str()),
            false => self.ids.get(scope),
        };
        let mut members = self.in_slot(*slot?)?.scope.members.iter();
        members.find(|member| member.name.as_str().eq_ignore_ascii_case(name)).map(|member| member.vm)
    }

    /// All slots of scopes are below this number.
    pub fn scope_slots(&self) -> usize {
        self.scopes.len()
    }

    /// The scope in a slot; a slot may be empty.
    pub fn scope_in_slot(&self, slot: usize) -> Option<&Arc<ScopeView>> {
        self.scopes.get(slot)
    }

    fn in_slot(&self, slot: ScopeSlot) -> Option<&Arc<ScopeView>> {
        self.scopes.get(slot.0 as usize)
    }

    /// Scopes below a path in order, from a position on.
    pub fn scopes_below(
        &self,
        path: &Prefix,
        from: Bound<&str>,
    ) -> impl Iterator<Item = (&ScopeId, &Arc<ScopeView>)> {
        let from = later(path.start(), from);
        let below = self.ids.range::<_, str>((from, Bound::Unbounded)).take_while(|(id, _)| path.covers(id));
        below.filter_map(|(id, slot)| Some((id, self.in_slot(*slot)?)))
    }

    /// Scopes with live events below a path, in order, from a position on.
    pub fn busy_below(&self, path: &Prefix, from: Bound<&str>) -> impl Iterator<Item = &Arc<ScopeView>> {
        self.listed_below(&self.busy, path, from)
    }

    /// Scopes below a path with a started event whose command has no attempts left.
    pub fn failed_below(&self, path: &Prefix) -> impl Iterator<Item = &Arc<ScopeView>> {
        self.listed_below(&self.failed, path, Bound::Unbounded)
    }

    fn listed_below(
        &self,
        ids: &OrdSet<ScopeId>,
        path: &Prefix,
        from: Bound<&str>,
    ) -> impl Iterator<Item = &Arc<ScopeView>> {
        let from = later(path.start(), from);
        let ids = ids.range::<_, str>((from, Bound::Unbounded)).take_while(|id| path.covers(id));
        ids.filter_map(|id| self.scope(id))
    }

    /// Live events in order of time, from a position on.
    pub fn events_by_time(&self, from: Bound<EventTime>) -> impl Iterator<Item = (&Arc<ScopeView>, &Event)> {
        let events = self.by_time.range((from, Bound::Unbounded));
        events.filter_map(|time| {
            let scope = self.scope_of_event(time.event)?;
            Some((scope, scope.scope.event(time.event)?))
        })
    }

    /// Scopes with live events, in order.
    pub fn busy_scopes(&self) -> impl Iterator<Item = &Arc<ScopeView>> {
        self.busy.iter().filter_map(|id| self.scope(id))
    }

    /// The scope of a live or recently ended event.
    pub fn scope_of_event(&self, event: EventId) -> Option<&Arc<ScopeView>> {
        self.in_slot(*self.events.get(&event)?)
    }

    /// All live and recently ended events.
    pub fn event_ids(&self) -> impl Iterator<Item = EventId> {
        self.events.keys().copied()
    }

    /// An open operation.
    pub fn operation(&self, id: OperationId) -> Option<&Revisioned<Operation>> {
        self.operations.get(&id)
    }

    /// Open operations, by id.
    pub fn operations(&self) -> impl Iterator<Item = (&OperationId, &Revisioned<Operation>)> {
        self.operations.iter()
    }

    /// Open operations whose ids are in a range.
    pub fn operations_between(&self, ids: RangeInclusive<OperationId>) -> impl Iterator<Item = &Operation> {
        self.operations.range(ids).map(|(_, held)| &*held.value)
    }

    /// Open operations after one, in order of time.
    pub fn operations_after(&self, after: Option<OperationTime>) -> impl Iterator<Item = &Operation> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let times = self.operations_by_time.range((from, Bound::Unbounded));
        times.filter_map(|time| Some(&*self.operations.get(&time.1)?.value))
    }

    /// Whether an event is scheduled or started.
    pub fn is_live(&self, event: EventId) -> bool {
        self.scope_of_event(event).is_some_and(|scope| scope.scope.event(event).is_some())
    }

    /// VMs with this name in any scope.
    pub fn named(&self, folded: &str) -> impl Iterator<Item = VmId> {
        let hash = hash(folded);
        let scopes = self.names.range((hash, ScopeSlot(0))..=(hash, ScopeSlot(u32::MAX)));
        let members = scopes.filter_map(|(_, slot)| self.in_slot(*slot)).flat_map(|view| &view.scope.members);
        members.filter(move |one| one.name.as_str().eq_ignore_ascii_case(folded)).map(|one| one.vm)
    }

    /// The VMs of these placements, by scope in order, from one scope on.
    pub fn members_on<'a>(
        &'a self,
        placements: &'a Placements,
        from: Option<&ScopeId>,
    ) -> impl Iterator<Item = (&'a Arc<ScopeView>, Vec<&'a Member>)> {
        let from = from.map_or(Bound::Unbounded, |id| Bound::Included(id.clone()));
        placements.range((from, Bound::Unbounded)).filter_map(|(id, positions)| {
            let scope = self.scope(id)?;
            Some((scope, positions.iter().filter_map(|at| scope.scope.members.get(*at)).collect()))
        })
    }

    /// The counts below a path.
    pub fn counts_below(&self, path: &Prefix) -> Counts {
        let scope = || Some(Counts::of(&self.in_slot(*self.ids.get(path.start())?)?.scope));
        self.counts.below(path).or_else(scope).unwrap_or_default()
    }

    /// Open operations whose host's command has begun.
    pub fn operations_with_host_run(&self) -> impl Iterator<Item = &Operation> {
        let held = self.operations_with_host_run.iter().filter_map(|id| self.operations.get(id));
        held.map(|held| &*held.value)
    }

    /// Number of open operations.
    pub fn operations_open(&self) -> usize {
        self.operations.len()
    }

    /// Applies one change; `is_first`: the change is part of the state that the process loaded at start.
    fn apply(&mut self, change: PublishedChange, rfc1123_everywhere: bool, now: Timestamp, is_first: bool) {
        match change {
            PublishedChange::Scope(id, slot, held) => {
                let context =
                    PublishContext { now, is_first, rfc1123_everywhere, edition: self.editions + 1 };
                self.apply_scope(id, slot, held, context);
            }
            // These are in the inventory.
            PublishedChange::Vm(..) | PublishedChange::Claim(..) => {}
            PublishedChange::Operation(id, held) => {
                match held.as_ref().is_some_and(|held| held.value.host_run().is_some()) {
                    true => drop(self.operations_with_host_run.insert(id)),
                    false => drop(self.operations_with_host_run.remove(&id)),
                }
                let before = match held {
                    Some(held) => {
                        self.operations_by_time.insert(OperationTime::of(&held.value));
                        self.operations.insert(id, held)
                    }
                    None => self.operations.remove(&id),
                };
                // The time of an operation never changes.
                if let Some(before) = before.filter(|_| !self.operations.contains_key(&id)) {
                    self.operations_by_time.remove(&OperationTime::of(&before.value));
                }
            }
            PublishedChange::Token(name, held) => self.tokens.apply(&name, held),
            PublishedChange::Host(name, held) => self.hosts.set_record(&name, held),
        }
    }

    fn apply_scope(
        &mut self,
        id: ScopeId,
        slot: ScopeSlot,
        held: Option<Revisioned<Scope>>,
        context: PublishContext,
    ) {
        let before = self.in_slot(slot).cloned();
        let after = held.as_ref().map(|held| &*held.value);
        for event in before.iter().flat_map(|view| view.scope.event_ids()) {
            self.events.remove(&event);
        }
        for event in after.iter().flat_map(|scope| scope.event_ids()) {
            self.events.insert(event, slot);
        }
        if !context.is_first {
            self.reindex_names(slot, before.as_ref().map(|view| &*view.scope), after);
        }
        self.hosts.change(&id, before.as_ref().map(|view| &*view.scope), after);
        if before.as_ref().is_some_and(|view| view.scope.first_run) {
            self.first_run = None;
        }
        if let Some(scope) = after.filter(|scope| scope.first_run) {
            self.first_run = scope.members.first().map(|member| member.vm);
        }
        match after.is_some_and(|scope| !scope.events.is_empty()) {
            true => self.busy.insert(id.clone()),
            false => self.busy.remove(&id),
        };
        match after.is_some_and(|scope| scope.events.iter().any(Event::has_failed)) {
            true => self.failed.insert(id.clone()),
            false => self.failed.remove(&id),
        };
        self.reindex_times(before.as_ref().map(|view| &*view.scope), after);
        self.counts.change(&id, before.as_ref().map(|view| &*view.scope), after);
        let Some(Revisioned { revision, value: scope }) = held else {
            self.ids.remove(&id);
            self.scopes.set(slot.0 as usize, None);
            return;
        };
        let view = ScopeView::new(scope, revision.0, before.as_deref(), context);
        self.editions = self.editions.max(view.edition);
        self.scopes.set(slot.0 as usize, Some(Arc::new(view)));
        if before.is_none() {
            self.ids.insert(id, slot);
        }
    }

    /// Updates the order of time for one scope.
    fn reindex_times(&mut self, before: Option<&Scope>, after: Option<&Scope>) {
        let times = |scope: Option<&Scope>| -> BTreeSet<EventTime> {
            scope.into_iter().flat_map(|scope| &scope.events).map(EventTime::of).collect()
        };
        let (before, after) = (times(before), times(after));
        for removed in before.difference(&after) {
            self.by_time.remove(removed);
        }
        for added in after.difference(&before) {
            self.by_time.insert(*added);
        }
    }

    /// Builds the index of names for all scopes.
    fn index_names(&mut self) {
        let names = self.scopes.iter().flat_map(|(at, view)| {
            // Indexes come from slot numbers, so they fit.
            let slot = ScopeSlot(u32::try_from(at).unwrap_or(u32::MAX));
            view.scope.members.iter().map(move |member| (hash(&member.name.folded()), slot))
        });
        let mut names: Vec<_> = names.collect();
        // Inserting in order is faster.
        names.sort_unstable();
        self.names = names.into_iter().collect();
    }

    /// Updates the index of names for one scope.
    fn reindex_names(&mut self, slot: ScopeSlot, before: Option<&Scope>, after: Option<&Scope>) {
        let names = |scope: Option<&Scope>| -> BTreeSet<u32> {
            let members = scope.into_iter().flat_map(|scope| &scope.members);
            members.map(|member| hash(&member.name.folded())).collect()
        };
        let ids = |scope: Option<&Scope>| {
            scope.map(|scope| scope.members.iter().map(|member| member.vm).collect::<Vec<_>>())
        };
        // A VM never changes its name.
        if ids(before) == ids(after) {
            return;
        }
        let (before, after) = (names(before), names(after));
        for removed in before.difference(&after) {
            self.names.remove(&(*removed, slot));
        }
        for added in after.difference(&before) {
            self.names.insert((*added, slot));
        }
    }
}

/// Hash of a case-folded name.
fn hash(folded: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    folded.hash(&mut hasher);
    // 32 bits are enough: each match is verified.
    hasher.finish() as u32
}

/// The later of a path's start and a list's continuation.
fn later<'a>(start: &'a str, from: Bound<&'a str>) -> Bound<&'a str> {
    match from {
        Bound::Included(at) | Bound::Excluded(at) if at >= start => from,
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => Bound::Included(start),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use notbefore_core::Cause;
    use notbefore_wire::guest::version::EventsVersion;

    use super::*;
    use crate::delivery::tests::{ViewFixture, at, event, scope, vm};

    #[test]
    fn vm_polls_survive_scope_changes_and_end_with_vm() {
        let (old, new) = (vm(1), vm(2));
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope("a", &[old]), at(0));
        fixture.publish(&scope("a", &[new, old]), at(1));
        let listening = |fixture: &ViewFixture, vm, now| fixture.views.newest().listening(vm, now);
        assert_eq!(listening(&fixture, old, at(2)), Listening::Unclear, "a VM from before the start");
        assert_eq!(listening(&fixture, new, at(2)), Listening::No, "a VM added after the start");

        fixture.views.newest().vm_polls(old).unwrap().record_poll(at(3), EventsVersion::NEWEST);
        fixture.publish(&scope("a", &[old]), at(4));
        assert_eq!(listening(&fixture, old, at(5)), Listening::Yes, "its position changed, the VM did not");
        fixture.publish(&scope("a", &[old, new]), at(4));
        assert_eq!(
            fixture.views.newest().listening_counts(at(5)),
            [(Listening::Yes, 1), (Listening::No, 1), (Listening::Unclear, 0)]
        );

        fixture.publish(&scope("a", &[new]), at(6));
        assert_eq!(listening(&fixture, old, at(6)), Listening::No);
        assert!(fixture.views.newest().vm_polls(old).is_none());
    }

    #[test]
    fn wait_for_a_revision_ends_when_the_view_has_it() {
        let views = Views::default();
        let mut wait = pin!(views.wait_for(Revision(2)));
        assert!(wait.as_mut().now_or_never().is_none());
        views.set_complete_to(Revision(1));
        assert!(wait.as_mut().now_or_never().is_none());
        views.set_complete_to(Revision(3));
        assert!(wait.now_or_never().is_some());
        assert!(views.wait_for(Revision(3)).now_or_never().is_some());
    }

    #[test]
    fn at_path_requires_full_path() {
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope("A", &[vm(1), vm(2)]), at(0));
        fixture.publish(&scope("b", &[vm(3)]), at(0));
        let found = |path| fixture.views.newest().at_path(path);
        assert_eq!(found("default/default/A/vm-2"), Some(vm(2)));
        assert_eq!(found("default/Default/a/VM-1"), Some(vm(1)));
        assert_eq!(found("default/default/b/vm-3"), Some(vm(3)));
        let id = vm(3).to_string();
        for other in
            ["default/default/b/vm-1", "default/b/vm-3", "b/vm-3", "vm-3", "", "/", "x/default/b/vm-3", &id]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn edition_identifies_one_document() {
        let mut fixture = ViewFixture::default();
        let edition = |fixture: &ViewFixture, vm| fixture.views.newest().guest(vm).unwrap().scope.edition;
        let (mut a, b) = (scope("a", &[vm(1)]), scope("b", &[vm(2)]));
        fixture.publish(&a, at(0));
        fixture.publish(&b, at(0));
        assert_ne!(
            edition(&fixture, vm(1)),
            edition(&fixture, vm(2)),
            "editions differ although both are incarnation 1"
        );
        let first = edition(&fixture, vm(1));
        fixture.publish(&a, at(1));
        assert_eq!(edition(&fixture, vm(1)), first, "the scope has changed, its document has not");
        a.incarnation = 2;
        fixture.publish(&a, at(2));
        assert!(edition(&fixture, vm(1)) > first.max(edition(&fixture, vm(2))));
    }

    #[test]
    fn published_at_is_first_publication_or_announcement() {
        let mut fixture = ViewFixture::default();
        let mut scope = scope("a", &[vm(1)]);
        let [old, new] = [7, 8].map(|id| event(id, Cause::HostReboot, &[vm(1)], at(-50), at(900)));
        scope.events.push(old.clone());
        fixture.publish(&scope, at(0));
        scope.events.push(new.clone());
        fixture.publish(&scope, at(5));
        fixture.publish(&scope, at(9));
        let view = fixture.views.newest();
        let published = |event: &Event| view.scope_of_event(event.id).unwrap().published_at(event.id);
        assert_eq!((published(&old), published(&new)), (Some(at(-50)), Some(at(5))));
    }

    #[test]
    fn started_events_come_before_scheduled_ones_in_order_of_time() {
        let mut fixture = ViewFixture::default();
        let mut scope = scope("a", &[vm(1)]);
        let due = |id, seconds| event(id, Cause::HostReboot, &[vm(1)], at(-99), at(seconds));
        let started = notbefore_core::samples::started(due(1, 900));
        scope.events = vec![due(3, 60), due(2, -60), started];
        fixture.publish(&scope, at(0));
        let order = |from| -> Vec<u128> {
            let view = fixture.views.newest();
            view.events_by_time(from).map(|(_, event)| event.id.0.as_u128()).collect()
        };
        assert_eq!(order(Bound::Unbounded), [1, 2, 3], "an overdue event is still scheduled");
        assert_eq!(order(Bound::Included(EventTime::FIRST_SCHEDULED)), [2, 3]);
        let place = EventTime::of(&scope.events[1]);
        assert_eq!(place.to_string().parse(), Ok(place));
        assert_eq!(order(Bound::Excluded(place)), [3]);
    }

    #[test]
    fn named_finds_vms_in_every_scope() {
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope("a", &[vm(1), vm(2)]), at(0));
        fixture.publish(&scope("b", &[vm(3)]), at(0));
        let before = fixture.views.newest();
        let mut same = scope("b", &[vm(3), vm(4)]);
        same.members[1].name = "VM-2".parse().unwrap();
        fixture.publish(&same, at(1));
        let named = |view: &View, name: &str| {
            let mut found: Vec<_> = view.named(name).collect();
            found.sort();
            found
        };
        assert_eq!(named(&before, "vm-2"), [vm(2)], "a view is immutable");
        assert_eq!(named(&fixture.views.newest(), "vm-2"), [vm(2), vm(4)]);
        fixture.publish(&scope("a", &[vm(1)]), at(2));
        assert_eq!(named(&fixture.views.newest(), "vm-2"), [vm(4)]);
        assert_eq!(named(&fixture.views.newest(), "vm-9"), []);
    }
}
