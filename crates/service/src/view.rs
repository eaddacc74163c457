//! What everyone may read without asking the engine: guests their documents, operators their lists.
//!
//! A [`View`] never changes. The engine's runtime makes the next one from the last (the maps share all that
//! is the same) and puts it in its place; readers take whichever is there and hold no lock. So a poll costs
//! the same whatever else goes on, and two questions asked of one view never contradict each other.

use std::net::IpAddr;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use imbl::{HashMap, OrdMap, OrdSet};
use jiff::Timestamp;
use notbefore_core::{
    CommandState, Event, EventId, EventType, Member, Operation, OperationId, Phase, Prefix, Scope, ScopeId,
    ScopeKind, Source, VmId,
};
use notbefore_engine::{Held, Published, Vm};
use notbefore_wire::guest::document::{self, Document, RenderStyle};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::delivery::Listening;

use crate::delivery::Hearing;
use crate::tokens::TokenTable;

use crate::hosts::{Hosts, Places};

/// How many api-versions there are to render for.
const VERSIONS: usize = EventsVersion::ALL.len();

/// The newest view, and the one way to replace it.
pub struct Views {
    newest: ArcSwap<View>,
    rfc1123_everywhere: bool,
}

/// All that is published, at one moment.
#[derive(Clone, Default)]
pub struct View {
    networks: HashMap<String, HashMap<IpAddr, VmId>>,
    vms: HashMap<VmId, VmView>,
    scopes: OrdMap<ScopeId, Arc<ScopeView>>,
    operations: OrdMap<OperationId, Held<Operation>>,
    /// The scopes that have live events, so that listing events does not visit all the others.
    busy: OrdSet<ScopeId>,
    /// Where an event lives, or has ended lately.
    events: HashMap<EventId, ScopeId>,
    /// Which VMs are on which host.
    hosts: Hosts,
    /// VMs by their folded name.
    names: HashMap<String, OrdSet<VmId>>,
    first_run: Option<VmId>,
    /// When the first records were published: when this process began to hear.
    since: Option<Timestamp>,
    /// How many documents were published.
    editions: u64,
    /// Who may use the operator API.
    tokens: TokenTable,
}

/// A VM's record, and what outlives its changes.
#[derive(Clone)]
struct VmView {
    record: Held<Vm>,
    hearing: Arc<Hearing>,
}

/// A scope with its documents.
pub struct ScopeView {
    /// The scope.
    pub scope: Arc<Scope>,
    /// When it was written.
    pub revision: u64,
    /// What outlives a change of the scope.
    pub activity: Arc<Activity>,
    /// A number that only this document has, of all that this process has published: incarnations of two scopes
    /// may be the same.
    pub edition: u64,
    /// When each live event was first published.
    published: std::collections::HashMap<EventId, Timestamp>,
    style: RenderStyle,
    documents: [OnceLock<Bytes>; VERSIONS],
}

/// When a scope's guests were last heard of.
#[derive(Default)]
pub struct Activity {
    noted_at_s: AtomicI64,
}

impl Activity {
    /// Whether this poll is worth telling the engine: it is told once a minute at most.
    pub fn is_news(&self, now_s: i64) -> bool {
        const NEWS_EVERY_S: i64 = 60;
        let noted = self.noted_at_s.load(Relaxed);
        let old = noted == 0 || now_s - noted >= NEWS_EVERY_S || now_s < noted;
        old && self.noted_at_s.compare_exchange(noted, now_s, Relaxed, Relaxed).is_ok()
    }
}

impl ScopeView {
    /// The document's bytes at a version; rendered by the first who asks after a change.
    pub fn document(&self, version: EventsVersion) -> Bytes {
        self.documents[version.index()]
            .get_or_init(|| document(&self.scope).render(version, &self.style))
            .clone()
    }

    /// When a live event was first published. Of one that is older than this process, it is when it was announced.
    pub fn published_at(&self, event: EventId) -> Option<Timestamp> {
        self.published.get(&event).copied()
    }

    /// A member by its id.
    pub fn member(&self, vm: VmId) -> Option<&Member> {
        self.scope.member(vm)
    }
}

impl Views {
    /// Nothing yet.
    pub fn new(rfc1123_everywhere: bool) -> Self {
        Self { newest: ArcSwap::default(), rfc1123_everywhere }
    }

    /// The newest view.
    pub fn newest(&self) -> Arc<View> {
        self.newest.load_full()
    }

    /// The newest view, for a moment: cheaper than [`Views::newest`], and what a poll uses.
    pub fn glance(&self) -> arc_swap::Guard<Arc<View>> {
        self.newest.load()
    }

    /// Takes changes over. There is one caller, the engine's runtime, so nothing is lost between reading
    /// the last view and placing the next.
    pub fn publish(&self, changes: Vec<Published>, now: Timestamp) {
        let mut view = View::clone(&self.newest.load());
        let is_first = view.since.is_none();
        view.since.get_or_insert(now);
        for change in changes {
            view.apply(change, self.rfc1123_everywhere, now, is_first);
        }
        self.newest.store(Arc::new(view));
    }
}

impl View {
    /// The VM that calls from an address of a network.
    pub fn caller(&self, network: &str, address: IpAddr) -> Option<VmId> {
        self.networks.get(network)?.get(&address).copied()
    }

    /// The VM that stands in for a fleet.
    pub fn first_run(&self) -> Option<VmId> {
        self.first_run
    }

    /// A VM.
    pub fn vm(&self, vm: VmId) -> Option<&Held<Vm>> {
        self.vms.get(&vm).map(|found| &found.record)
    }

    /// All that a poll of a VM needs, found at once: its scope, if the VM is one of its members, and its hearing.
    pub fn guest(&self, vm: VmId) -> Option<(&Arc<ScopeView>, &Arc<Hearing>)> {
        let found = self.vms.get(&vm)?;
        let scope = self.scopes.get(&found.record.value.scope).filter(|scope| scope.member(vm).is_some())?;
        Some((scope, &found.hearing))
    }

    /// What is known of a VM as a listener.
    pub fn hearing(&self, vm: VmId) -> Option<&Hearing> {
        self.vms.get(&vm).map(|found| &*found.hearing)
    }

    /// Whether a VM listens; one that is not there does not.
    pub fn listening(&self, vm: VmId, now: Timestamp) -> Listening {
        self.hearing(vm).map_or(Listening::No, |hearing| hearing.listening(now))
    }

    /// How many VMs there are of each answer to whether they listen, in the order of [`Listening::ALL`].
    pub fn listening_counts(&self, now: Timestamp) -> [(Listening, usize); 3] {
        let mut counts = Listening::ALL.map(|listening| (listening, 0));
        for found in self.vms.values() {
            let answer = found.hearing.listening(now);
            if let Some((_, count)) = counts.iter_mut().find(|(listening, _)| *listening == answer) {
                *count += 1;
            }
        }
        counts
    }

    /// A VM's scope, if the VM is one of its members.
    pub fn scope_of(&self, vm: VmId) -> Option<&Arc<ScopeView>> {
        self.guest(vm).map(|(scope, _)| scope)
    }

    /// A scope.
    pub fn scope(&self, id: &ScopeId) -> Option<&Arc<ScopeView>> {
        self.scopes.get(id)
    }

    /// Scopes below a path in order, from a place in it on.
    pub fn scopes_below(
        &self,
        path: &Prefix,
        from: Bound<&str>,
    ) -> impl Iterator<Item = (&ScopeId, &Arc<ScopeView>)> {
        let from = later(path.start(), from);
        self.scopes.range::<_, str>((from, Bound::Unbounded)).take_while(|(id, _)| path.covers(id))
    }

    /// Scopes with live events below a path, in order, from a place in it on.
    pub fn busy_below(&self, path: &Prefix, from: Bound<&str>) -> impl Iterator<Item = &Arc<ScopeView>> {
        let from = later(path.start(), from);
        let busy = self.busy.range::<_, str>((from, Bound::Unbounded)).take_while(|id| path.covers(id));
        busy.filter_map(|id| self.scopes.get(id))
    }

    /// Who may use the operator API.
    pub fn tokens(&self) -> &TokenTable {
        &self.tokens
    }

    /// Scopes with live events, in order, from one.
    pub fn busy_from<'a>(&'a self, from: Option<&ScopeId>) -> impl Iterator<Item = &'a Arc<ScopeView>> {
        let from = from.map_or(Bound::Unbounded, |id| Bound::Included(id.clone()));
        let busy = self.busy.range((from, Bound::Unbounded));
        busy.filter_map(|id| self.scopes.get(id))
    }

    /// The scope an event lives in, or has ended in lately.
    pub fn scope_of_event(&self, event: EventId) -> Option<&Arc<ScopeView>> {
        self.scopes.get(self.events.get(&event)?)
    }

    /// Every event that lives or has ended lately.
    pub fn event_ids(&self) -> impl Iterator<Item = EventId> {
        self.events.keys().copied()
    }

    /// An operation that is not closed.
    pub fn operation(&self, id: OperationId) -> Option<&Held<Operation>> {
        self.operations.get(&id)
    }

    /// Operations that are not closed, after one.
    pub fn operations_after(
        &self,
        after: Option<OperationId>,
    ) -> impl Iterator<Item = (&OperationId, &Held<Operation>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.operations.range((from, Bound::Unbounded))
    }

    /// Whether an event is announced or under way.
    pub fn is_live(&self, event: EventId) -> bool {
        self.scope_of_event(event).is_some_and(|scope| scope.scope.event(event).is_some())
    }

    /// When this process began to hear.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// VMs of this name, in whichever scope.
    pub fn named(&self, folded: &str) -> impl Iterator<Item = VmId> {
        self.names.get(folded).into_iter().flatten().copied()
    }

    /// Which VMs are on which host.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The VMs of these places, by their scopes in order, from one.
    pub fn placed<'a>(
        &'a self,
        places: &'a Places,
        from: Option<&ScopeId>,
    ) -> impl Iterator<Item = (&'a Arc<ScopeView>, Vec<&'a Member>)> {
        let from = from.map_or(Bound::Unbounded, |id| Bound::Included(id.clone()));
        places.range((from, Bound::Unbounded)).filter_map(|(id, positions)| {
            let scope = self.scopes.get(id)?;
            Some((scope, positions.iter().filter_map(|at| scope.scope.members.get(*at)).collect()))
        })
    }

    /// How many scopes, VMs, scopes with live events and open operations there are.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            scopes: self.scopes.len(),
            vms: self.vms.len(),
            operations: self.operations.len(),
            ..Counts::default()
        };
        for scope in self.busy_from(None) {
            let started = scope.scope.events.iter().filter(|event| event.is_started()).count();
            counts.started += started;
            counts.scheduled += scope.scope.events.len() - started;
            for command in scope.scope.events.iter().filter_map(Event::exec_run).flat_map(|run| &run.commands)
            {
                match command {
                    CommandState::Waiting { .. } => counts.commands_waiting += 1,
                    CommandState::Running { .. } => counts.commands_running += 1,
                    CommandState::Failed { .. } => counts.commands_failed += 1,
                    CommandState::Done { .. } | CommandState::Gone => {}
                }
            }
        }
        counts
    }

    /// Takes one change over; `is_first` says that it is part of what the process began with.
    fn apply(&mut self, change: Published, rfc1123_everywhere: bool, now: Timestamp, is_first: bool) {
        match change {
            Published::Scope(id, held) => self.apply_scope(id, held, rfc1123_everywhere, now),
            Published::Vm(id, Some(record)) => {
                let hearing = match self.vms.get(&id) {
                    Some(known) => Arc::clone(&known.hearing),
                    None => Arc::new(if is_first { Hearing::of_known(now) } else { Hearing::of_new() }),
                };
                self.vms.insert(id, VmView { record, hearing });
            }
            Published::Vm(id, None) => {
                self.vms.remove(&id);
            }
            Published::Claim((network, address), Some(vm)) => {
                self.networks.entry(network).or_default().insert(address, vm);
            }
            Published::Claim((network, address), None) => {
                if let Some(addresses) = self.networks.get_mut(&network) {
                    addresses.remove(&address);
                }
            }
            Published::Operation(id, Some(held)) => {
                self.operations.insert(id, held);
            }
            Published::Operation(id, None) => {
                self.operations.remove(&id);
            }
            Published::Token(name, held) => self.tokens.apply(&name, held),
        }
    }

    fn apply_scope(
        &mut self,
        id: ScopeId,
        held: Option<Held<Scope>>,
        rfc1123_everywhere: bool,
        now: Timestamp,
    ) {
        let before = self.scopes.remove(&id);
        for event in before.iter().flat_map(|view| view.scope.event_ids()) {
            self.events.remove(&event);
        }
        let after = held.as_ref().map(|held| &held.value);
        for (old, member) in
            before.iter().flat_map(|view| view.scope.members.iter().map(move |one| (view, one)))
        {
            if after.and_then(|after| after.member(member.vm)).is_some() {
                continue;
            }
            if old.scope.first_run {
                self.first_run = None;
            }
            if let Some(named) = self.names.get_mut(&member.name.folded()) {
                named.remove(&member.vm);
                if named.is_empty() {
                    self.names.remove(&member.name.folded());
                }
            }
        }
        self.hosts.change(&id, before.as_ref().map(|view| &*view.scope), after.map(|scope| &**scope));
        let Some(Held { revision, value: scope }) = held else {
            self.busy.remove(&id);
            return;
        };
        for member in &scope.members {
            if before.as_ref().is_none_or(|view| view.scope.member(member.vm).is_none()) {
                self.names.entry(member.name.folded()).or_default().insert(member.vm);
            }
            if scope.first_run {
                self.first_run = Some(member.vm);
            }
        }
        for event in scope.event_ids() {
            self.events.insert(event, id.clone());
        }
        match scope.events.is_empty() {
            true => self.busy.remove(&id),
            false => self.busy.insert(id.clone()),
        };
        let style =
            RenderStyle { underscore_names: scope.kind != ScopeKind::CloudService, rfc1123_everywhere };
        let published = scope.events.iter().map(|event| {
            let known = before.as_ref().map(|view| view.published_at(event.id).unwrap_or(now));
            let announced = || event.announced_at().unwrap_or(now);
            (event.id, known.unwrap_or_else(announced))
        });
        let published = published.collect();
        let same = before.as_ref().filter(|view| view.scope.incarnation == scope.incarnation);
        let edition = same.map_or(self.editions + 1, |view| view.edition);
        self.editions = self.editions.max(edition);
        let activity = before.map(|view| Arc::clone(&view.activity)).unwrap_or_default();
        let documents = Default::default();
        let view = ScopeView { scope, revision: revision.0, activity, edition, published, style, documents };
        self.scopes.insert(id, Arc::new(view));
    }
}

/// The later of where a path begins and where a list is to go on.
fn later<'a>(start: &'a str, from: Bound<&'a str>) -> Bound<&'a str> {
    match from {
        Bound::Included(at) | Bound::Excluded(at) if at >= start => from,
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => Bound::Included(start),
    }
}

/// How many there are of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scopes.
    pub scopes: usize,
    /// VMs.
    pub vms: usize,
    /// Events that are announced.
    pub scheduled: usize,
    /// Events that are under way.
    pub started: usize,
    /// Operations that are not closed.
    pub operations: usize,
    /// Commands of the exec driver that wait for their next attempt.
    pub commands_waiting: usize,
    /// Commands that run, or wait for their turn to.
    pub commands_running: usize,
    /// Commands whose attempts are used up.
    pub commands_failed: usize,
}

/// A scope in the words of the wire.
fn document(scope: &Scope) -> Document {
    Document { incarnation: scope.incarnation, events: scope.events.iter().map(event).collect() }
}

/// An event's type in the words of the wire: whether a version shows the event is asked of it.
pub fn shown_type(event: &Event) -> document::EventType {
    match event.cause.event_type() {
        EventType::Freeze => document::EventType::Freeze,
        EventType::Reboot => document::EventType::Reboot,
        EventType::Redeploy => document::EventType::Redeploy,
        EventType::Preempt => document::EventType::Preempt,
        EventType::Terminate => document::EventType::Terminate,
    }
}

fn event(event: &Event) -> document::Event {
    document::Event {
        id: event.id.0,
        status: match event.phase {
            Phase::Scheduled { not_before, .. } => document::Status::Scheduled { not_before },
            Phase::Started { .. } => document::Status::Started,
        },
        event_type: shown_type(event),
        resources: event.resources.iter().map(|resource| resource.name.as_str().to_owned()).collect(),
        description: event.description.clone(),
        source: match event.cause.source() {
            Source::Platform => document::Source::Platform,
            Source::User => document::Source::User,
        },
        duration_in_seconds: event.duration_s,
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::Cause;

    use super::*;
    use crate::delivery::samples::{at, event, publish, scope, vm};

    #[test]
    fn what_a_vm_has_heard_outlives_changes_and_moves_and_ends_with_the_vm() {
        let (old, new) = (vm(1), vm(2));
        let views = Views::new(false);
        publish(&views, &scope("a", &[old]), at(0));
        publish(&views, &scope("a", &[old, new]), at(1));
        let listening = |vm, now| views.newest().listening(vm, now);
        assert_eq!(listening(old, at(2)), Listening::Unknown, "it was there at the start");
        assert_eq!(listening(new, at(2)), Listening::No, "it came later");

        views.newest().guest(old).unwrap().1.note_poll(at(3), EventsVersion::NEWEST);
        publish(&views, &scope("a", &[new]), at(4));
        publish(&views, &scope("b", &[old]), at(4));
        assert_eq!(views.newest().guest(old).unwrap().0.scope.path.name.as_str(), "b");
        assert_eq!(listening(old, at(5)), Listening::Yes, "it has moved, and is still the same VM");
        assert_eq!(
            views.newest().listening_counts(at(5)),
            [(Listening::Yes, 1), (Listening::No, 1), (Listening::Unknown, 0)]
        );

        views.publish(vec![Published::Vm(old, None)], at(6));
        assert_eq!(listening(old, at(6)), Listening::No);
        assert!(views.newest().hearing(old).is_none());
    }

    #[test]
    fn an_edition_is_one_document_of_one_scope() {
        let views = Views::new(false);
        let edition = |vm| views.newest().guest(vm).unwrap().0.edition;
        let (mut a, b) = (scope("a", &[vm(1)]), scope("b", &[vm(2)]));
        publish(&views, &a, at(0));
        publish(&views, &b, at(0));
        assert_ne!(edition(vm(1)), edition(vm(2)), "although both are incarnation 1");
        let first = edition(vm(1));
        publish(&views, &a, at(1));
        assert_eq!(edition(vm(1)), first, "the scope has changed, its document has not");
        a.incarnation = 2;
        publish(&views, &a, at(2));
        assert!(edition(vm(1)) > first.max(edition(vm(2))));
    }

    #[test]
    fn an_event_is_published_once_and_one_from_before_the_start_when_it_was_announced() {
        let views = Views::new(false);
        let mut scope = scope("a", &[vm(1)]);
        let [old, new] = [7, 8].map(|id| event(id, Cause::HostReboot, &[vm(1)], at(-50), at(900)));
        scope.events.push(old.clone());
        publish(&views, &scope, at(0));
        scope.events.push(new.clone());
        publish(&views, &scope, at(5));
        publish(&views, &scope, at(9));
        let view = views.newest();
        let published = |event: &Event| view.scope_of_event(event.id).unwrap().published_at(event.id);
        assert_eq!((published(&old), published(&new)), (Some(at(-50)), Some(at(5))));
    }
}
