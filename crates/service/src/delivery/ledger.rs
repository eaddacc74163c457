//! Ledger of first reads by event and VM. Pure: notes and the time go in; records to write and warnings come out.
//!
//! It holds live events, and ended ones until their records are written. Only affected VMs are entered, so its size is
//! bounded by the live events. Unwritten reads of ended events have a bound of their own; the oldest are dropped first.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Event, EventId, MemberState, Name, Resource, ScopeId, VmId};
use notbefore_engine::records::{NewRead, Seen, SeenRead};
use notbefore_wire::guest::version::EventsVersion;

use super::SentDocument;
use super::warning::{self, Warning};
use crate::view::{ScopeView, View, shown_type};

/// How long an ended event stays in the ledger, so that late notes find it.
const ENDED_KEPT: SignedDuration = SignedDuration::from_secs(60);
/// Maximum unwritten reads of ended events while the store fails; about ten megabytes.
const UNWRITTEN_READS_MAX: usize = 100_000;

/// A VM's first read of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// When the request arrived.
    pub at: Timestamp,
    /// The api-version.
    pub version: EventsVersion,
}

/// First reads by event.
#[derive(Debug, Default)]
pub struct Ledger {
    events: HashMap<EventId, Entry>,
}

#[derive(Debug)]
struct Entry {
    scope: ScopeId,
    reads: BTreeMap<VmId, Read>,
    /// The VMs whose reads this process has noted; they make up its own record.
    own: BTreeSet<VmId>,
    /// Reads that no record has yet, each with its change number.
    fresh: Vec<(u64, NewRead)>,
    /// Number of changes of `own`, and how many of them are written.
    changes: u64,
    written: u64,
    warned: BTreeSet<VmId>,
    /// When the event ended.
    ended_at: Option<Timestamp>,
}

/// The event of a read that may be its first.
struct NewEntry {
    event: EventId,
    scope: ScopeId,
    is_live: bool,
}

/// A record to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenRecord {
    /// The event.
    pub event: EventId,
    /// Change number to pass to [`Ledger::mark_written`].
    pub changes: u64,
    /// The record.
    pub record: Seen,
}

impl Entry {
    fn new(scope: ScopeId) -> Self {
        Self {
            scope,
            reads: BTreeMap::new(),
            own: BTreeSet::new(),
            fresh: Vec::new(),
            changes: 0,
            written: 0,
            warned: BTreeSet::new(),
            ended_at: None,
        }
    }

    fn is_written(&self) -> bool {
        self.written == self.changes
    }

    fn record(&self) -> Seen {
        let own = self.own.iter().filter_map(|vm| Some((vm, self.reads.get(vm)?)));
        let reads =
            own.map(|(vm, read)| SeenRead { vm: *vm, at: read.at, version: read.version.to_string() });
        let added = self.fresh.iter().map(|(_, read)| read.clone()).collect();
        Seen { scope: self.scope.clone(), reads: reads.collect(), added }
    }
}

/// Keeps the earlier of two reads, in any order of arrival. Returns whether the new one was kept.
pub fn merge(reads: &mut BTreeMap<VmId, Read>, vm: VmId, read: Read) -> bool {
    let earlier = reads.get(&vm).is_none_or(|known| read.at < known.at);
    if earlier {
        reads.insert(vm, read);
    }
    earlier
}

/// The reads in a record. Versions that this release does not know are skipped.
pub fn reads_of(record: &Seen) -> impl Iterator<Item = (VmId, Read)> {
    record.reads.iter().filter_map(|read| {
        let version = EventsVersion::parse(&read.version)?;
        Some((read.vm, Read { at: read.at, version }))
    })
}

impl Ledger {
    /// Loads a record of an earlier process or another one.
    pub fn load(&mut self, event: EventId, record: &Seen) {
        let entry = self.events.entry(event).or_insert_with(|| Entry::new(record.scope.clone()));
        for (vm, read) in reads_of(record) {
            merge(&mut entry.reads, vm, read);
        }
    }

    /// Records a note; returns the seconds from publication to first read, for each event that the VM read first with
    /// it.
    pub fn record(&mut self, sent: &SentDocument, view: &View, now: Timestamp) -> Vec<f64> {
        let (scope, read) = (&sent.scope.scope, Read { at: sent.at, version: sent.version });
        let mut waited = Vec::new();
        for event in &scope.events {
            if !event.includes_vm(sent.vm) || !sent.version.knows(shown_type(event)) {
                continue;
            }
            let name = event.resources.iter().find(|one| one.vm == sent.vm).map(|one| &one.name);
            let new = NewEntry { event: event.id, scope: scope.id(), is_live: view.is_live(event.id) };
            let is_first = self.enter(new, sent.vm, name, read, now);
            let published = sent.scope.published_at(event.id).filter(|_| is_first);
            waited.extend(published.map(|at| sent.at.duration_since(at).as_secs_f64().max(0.0)));
        }
        waited
    }

    /// Records a read at another node; returns the seconds from publication to it, if it is the VM's first. Events that
    /// have ended and VMs that are gone are skipped.
    pub fn record_elsewhere(
        &mut self,
        event: EventId,
        vm: VmId,
        read: Read,
        view: &View,
        now: Timestamp,
    ) -> Option<f64> {
        let scope = view.scope_of_event(event)?;
        let live = scope.scope.event(event);
        if live.is_some_and(|event| !event.includes_vm(vm)) {
            return None;
        }
        let name = &scope.member(vm)?.name;
        let new = NewEntry { event, scope: scope.scope.id(), is_live: live.is_some() };
        let is_first = self.enter(new, vm, Some(name), read, now);
        let published = scope.published_at(event).filter(|_| is_first)?;
        Some(read.at.duration_since(published).as_secs_f64().max(0.0))
    }

    /// Enters a read; returns whether it is the VM's first that this process knows.
    fn enter(&mut self, new: NewEntry, vm: VmId, name: Option<&Name>, read: Read, now: Timestamp) -> bool {
        let entry = match self.events.entry(new.event) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(vacant) => {
                // The event has left the ledger and its record is final: a new record would replace all other reads.
                if !new.is_live && now.duration_since(read.at) >= ENDED_KEPT {
                    return false;
                }
                vacant.insert(Entry { ended_at: (!new.is_live).then_some(now), ..Entry::new(new.scope) })
            }
        };
        let is_first = !entry.reads.contains_key(&vm);
        if merge(&mut entry.reads, vm, read) {
            entry.own.insert(vm);
            entry.changes += 1;
        }
        if let Some(name) = name.filter(|_| is_first) {
            entry.fresh.push((entry.changes, NewRead { vm, name: name.clone() }));
        }
        is_first
    }

    /// The reads that this process has noted.
    pub fn own_reads(&self) -> impl Iterator<Item = (EventId, VmId, Read)> {
        self.events.iter().flat_map(|(event, entry)| {
            let own = entry.own.iter().filter_map(|vm| Some((*vm, *entry.reads.get(vm)?)));
            own.map(|(vm, read)| (*event, vm, read))
        })
    }

    /// The node takes the lead, and writes the reads that it noted before and no record has. `stored` has those of the
    /// records.
    pub fn take_lead(&mut self, stored: Ledger) {
        for entry in self.events.values_mut() {
            entry.changes += 1;
        }
        for (event, stored) in stored.events {
            let entry = self.events.entry(event).or_insert_with(|| Entry::new(stored.scope));
            for (vm, read) in stored.reads {
                merge(&mut entry.reads, vm, read);
                entry.own.remove(&vm);
                entry.fresh.retain(|(_, fresh)| fresh.vm != vm);
            }
        }
        for entry in self.events.values_mut().filter(|entry| entry.own.is_empty()) {
            entry.written = entry.changes;
        }
    }

    /// Removes events that ended a while ago, also those that are not written: the leader has them.
    pub fn prune_follower(&mut self, now: Timestamp) {
        self.events
            .retain(|_, entry| entry.ended_at.is_none_or(|at| now.duration_since(at).abs() < ENDED_KEPT));
    }

    /// The reads of an event that this process knows.
    pub fn reads(&self, event: EventId) -> impl Iterator<Item = (VmId, Read)> {
        let reads = self.events.get(&event).map(|entry| &entry.reads);
        reads.into_iter().flatten().map(|(vm, read)| (*vm, *read))
    }

    /// The affected VMs that have not read a live event. Removed and deallocated VMs are left out: they cannot read it.
    pub fn unread<'a>(&self, scope: &ScopeView, event: &'a Event) -> impl Iterator<Item = &'a Resource> {
        let reads = self.events.get(&event.id).map(|entry| &entry.reads);
        let can_read = |vm| scope.member(vm).is_some_and(|member| member.state == MemberState::Running);
        let has = move |vm: &VmId| reads.is_some_and(|reads| reads.contains_key(vm));
        event.resources.iter().filter(move |one| !has(&one.vm) && can_read(one.vm))
    }

    /// Whether an affected VM has not read a live event.
    pub fn is_unread(&self, scope: &ScopeView, event: &Event) -> bool {
        self.unread(scope, event).next().is_some()
    }

    /// Number of live events that an affected VM has not read. Advisories do not count: most clients cannot see them, and
    /// nothing depends on it.
    pub fn events_unread(&self, view: &View) -> usize {
        let unread = |scope: &ScopeView| {
            let events = scope.scope.events.iter().filter(|event| !event.is_advisory());
            events.filter(|event| self.is_unread(scope, event)).count()
        };
        view.busy_scopes().map(|scope| unread(scope)).sum()
    }

    /// The warnings due at `now`, and when to check again if nothing changes. Each warning is returned once per
    /// process.
    pub fn collect_warnings(&mut self, view: &View, now: Timestamp) -> (Vec<Warning>, Option<Timestamp>) {
        let since = view.since.unwrap_or(now);
        let mut warnings = Vec::new();
        let mut next: Option<Timestamp> = None;
        for scope in view.busy_scopes() {
            for event in &scope.scope.events {
                let Some(due) = warning::due_at(event, since) else { continue };
                if now < due {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    continue;
                }
                let mut unread: Vec<_> = self.unread(scope, event).collect();
                if unread.is_empty() {
                    continue;
                }
                let entry = self.events.entry(event.id).or_insert_with(|| Entry::new(scope.scope.id()));
                unread.retain(|one| entry.warned.insert(one.vm));
                if let (Some(not_before), false) = (event.not_before(), unread.is_empty()) {
                    let vms = unread.iter().map(|one| one.name.to_string()).collect();
                    let scope = scope.scope.path.clone();
                    let event_type = event.cause.event_type();
                    warnings.push(Warning { event: event.id, event_type, scope, not_before, vms });
                }
            }
        }
        (warnings, next)
    }

    /// Records which events have ended.
    pub fn mark_ended(&mut self, view: &View, now: Timestamp) {
        for (event, entry) in &mut self.events {
            if entry.ended_at.is_none() && !view.is_live(*event) {
                entry.ended_at = Some(now);
            }
        }
    }

    /// Removes ended events whose records are written, and the oldest others beyond the bound. Returns the number of
    /// lost reads.
    pub fn prune(&mut self, now: Timestamp) -> usize {
        self.events.retain(|_, entry| {
            let old = entry.ended_at.is_some_and(|at| now.duration_since(at).abs() >= ENDED_KEPT);
            !(old && entry.is_written())
        });
        let waits = |entry: &Entry| !entry.is_written() && entry.ended_at.is_some();
        let mut waiting: usize =
            self.events.values().filter(|entry| waits(entry)).map(|entry| entry.own.len()).sum();
        if waiting <= UNWRITTEN_READS_MAX {
            return 0;
        }
        let all = self.events.iter().filter(|(_, entry)| waits(entry));
        let mut oldest: Vec<_> =
            all.map(|(event, entry)| (entry.ended_at, *event, entry.own.len())).collect();
        oldest.sort();
        let before = waiting;
        for (_, event, reads) in oldest {
            if waiting <= UNWRITTEN_READS_MAX {
                break;
            }
            self.events.remove(&event);
            waiting -= reads;
        }
        before - waiting
    }

    /// Up to `limit` records to write.
    pub fn unwritten(&self, limit: usize) -> Vec<UnwrittenRecord> {
        let waiting = self.events.iter().filter(|(_, entry)| !entry.is_written());
        let draft = |(event, entry): (&EventId, &Entry)| UnwrittenRecord {
            event: *event,
            changes: entry.changes,
            record: entry.record(),
        };
        waiting.take(limit).map(draft).collect()
    }

    /// Marks a record as written up to a change number.
    pub fn mark_written(&mut self, event: EventId, changes: u64) {
        if let Some(entry) = self.events.get_mut(&event) {
            entry.written = entry.written.max(changes);
            entry.fresh.retain(|(change, _)| *change > changes);
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::{Cause, Scope};

    use super::super::tests::{ViewFixture, approved, at, event, scope, vm};
    use super::*;

    const NEW: EventsVersion = EventsVersion::NEWEST;

    fn fixture(scope: &Scope) -> ViewFixture {
        let mut fixture = ViewFixture::default();
        let empty = Scope { events: Vec::new(), incarnation: 1, ..scope.clone() };
        fixture.publish(&empty, at(-1_000));
        fixture.publish(scope, at(0));
        fixture
    }

    /// A VM reads its scope's document.
    fn read(
        ledger: &mut Ledger,
        fixture: &ViewFixture,
        reader: u128,
        version: EventsVersion,
        seconds: i64,
    ) -> Vec<f64> {
        let view = fixture.views.newest();
        let scope = view.guest(vm(reader)).unwrap().scope.clone();
        ledger.record(&SentDocument { vm: vm(reader), scope, version, at: at(seconds) }, &view, at(seconds))
    }

    fn who(ledger: &Ledger, event: &Event) -> Vec<(VmId, Timestamp, &'static str)> {
        ledger.reads(event.id).map(|(vm, read)| (vm, read.at, read.version.as_str())).collect()
    }

    fn one_event(cause: Cause, vms: &[VmId]) -> (Scope, Event) {
        let mut scope = scope("web", &[vm(1), vm(2), vm(3)]);
        let event = event(7, cause, vms, at(0), at(900));
        scope.events.push(event.clone());
        scope.incarnation = 2;
        (scope, event)
    }

    #[test]
    fn reads_are_recorded_per_vm() {
        let (scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (fixture, mut ledger) = (fixture(&scope), Ledger::default());
        let unread = |ledger: &Ledger| {
            let view = fixture.views.newest();
            let found = view.scope_of_event(event.id).unwrap();
            ledger.unread(found, &event).map(|one| one.vm).collect::<Vec<_>>()
        };
        assert_eq!(unread(&ledger), [vm(1), vm(2)]);
        assert_eq!(read(&mut ledger, &fixture, 2, NEW, 3), [3.0], "three seconds after publication");
        assert_eq!(
            read(&mut ledger, &fixture, 3, NEW, 4),
            Vec::<f64>::new(),
            "the event does not affect this VM"
        );
        assert_eq!(who(&ledger, &event), [(vm(2), at(3), NEW.as_str())]);
        assert_eq!((unread(&ledger), ledger.events_unread(&fixture.views.newest())), (vec![vm(1)], 1));
        assert_eq!(
            read(&mut ledger, &fixture, 2, EventsVersion::V2019_08_01, 9),
            Vec::<f64>::new(),
            "the VM has read it before"
        );
        assert_eq!(read(&mut ledger, &fixture, 1, NEW, 9), [9.0]);
        assert_eq!((unread(&ledger), ledger.events_unread(&fixture.views.newest())), (vec![], 0));
    }

    #[test]
    fn version_without_event_type_records_no_read() {
        for (cause, first) in [
            (Cause::HostFreeze, EventsVersion::V2017_03_01),
            (Cause::Eviction, EventsVersion::V2017_11_01),
            (Cause::Deletion, EventsVersion::V2019_01_01),
            (Cause::Rebalance, EventsVersion::V2024_07_09),
        ] {
            let (scope, event) = one_event(cause, &[vm(1)]);
            let fixture = fixture(&scope);
            for version in EventsVersion::ALL {
                let mut ledger = Ledger::default();
                read(&mut ledger, &fixture, 1, version, 1);
                assert_eq!(!who(&ledger, &event).is_empty(), version >= first, "{cause} at {version}");
            }
        }
    }

    #[test]
    fn earliest_read_wins_across_processes() {
        let (scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (fixture, mut ledger) = (fixture(&scope), Ledger::default());
        let stored = |vm, seconds| Seen {
            scope: scope.id(),
            reads: vec![SeenRead { vm, at: at(seconds), version: "2019-01-01".into() }],
            added: Vec::new(),
        };
        ledger.load(event.id, &stored(vm(1), 20));
        ledger.load(event.id, &stored(vm(1), 10));
        ledger.load(event.id, &stored(vm(1), 30));
        assert_eq!(read(&mut ledger, &fixture, 1, NEW, 40), Vec::<f64>::new(), "noted again after a restart");
        assert_eq!(who(&ledger, &event), [(vm(1), at(10), "2019-01-01")]);
        assert_eq!(ledger.unwritten(9), [], "nothing new to write");
        assert_eq!(read(&mut ledger, &fixture, 2, NEW, 40), [40.0]);
        let drafts = ledger.unwritten(9);
        let written: Vec<VmId> = drafts[0].record.reads.iter().map(|read| read.vm).collect();
        assert_eq!(written, [vm(2)], "a record has only the process's own reads");
        assert!(merge(
            &mut ledger.events.get_mut(&event.id).unwrap().reads,
            vm(2),
            Read { at: at(1), version: NEW }
        ));
    }

    #[test]
    fn read_at_another_node_is_an_own_read() {
        let (scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (fixture, mut ledger) = (fixture(&scope), Ledger::default());
        let view = fixture.views.newest();
        let mut record = |reader, event, seconds| {
            let read = Read { at: at(seconds), version: NEW };
            ledger.record_elsewhere(event, vm(reader), read, &view, at(60))
        };
        assert_eq!(record(1, event.id, 4), Some(4.0));
        assert_eq!(record(1, event.id, 3), None, "an earlier read, not another first one");
        assert_eq!(record(3, event.id, 3), None, "the event does not affect this VM");
        assert_eq!(record(9, event.id, 3), None, "a VM that is gone");
        assert_eq!(record(1, notbefore_core::samples::event_id(99), 3), None, "an event that is gone");
        assert_eq!(who(&ledger, &event), [(vm(1), at(3), NEW.as_str())]);
        let drafts = ledger.unwritten(9);
        assert_eq!((drafts.len(), drafts[0].record.reads.len(), drafts[0].record.added.len()), (1, 1, 1));
        assert_eq!(ledger.own_reads().count(), 1);
    }

    #[test]
    fn new_leader_writes_only_reads_that_no_record_has() {
        let (scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (fixture, mut ledger) = (fixture(&scope), Ledger::default());
        read(&mut ledger, &fixture, 1, NEW, 1);
        read(&mut ledger, &fixture, 2, NEW, 2);
        let stored = |vms: &[VmId]| {
            let reads = vms.iter().map(|vm| SeenRead { vm: *vm, at: at(5), version: "2020-07-01".into() });
            let mut stored = Ledger::default();
            let record = Seen { scope: scope.id(), reads: reads.collect(), added: Vec::new() };
            stored.load(event.id, &record);
            stored
        };
        ledger.take_lead(stored(&[vm(1)]));
        let record = &ledger.unwritten(9)[0].record;
        assert_eq!(record.reads.iter().map(|read| read.vm).collect::<Vec<_>>(), [vm(2)]);
        assert_eq!(record.added.iter().map(|read| read.vm).collect::<Vec<_>>(), [vm(2)]);
        assert_eq!(who(&ledger, &event)[0].1, at(1), "the earlier time is kept");
        ledger.take_lead(stored(&[vm(1), vm(2)]));
        assert_eq!(ledger.unwritten(9), []);
    }

    #[test]
    fn change_during_write_is_written_again() {
        let (scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (fixture, mut ledger) = (fixture(&scope), Ledger::default());
        read(&mut ledger, &fixture, 1, NEW, 1);
        let first = ledger.unwritten(9);
        read(&mut ledger, &fixture, 2, NEW, 2);
        ledger.mark_written(event.id, first[0].changes);
        let second = ledger.unwritten(9);
        assert_eq!(second[0].record.reads.len(), 2);
        ledger.mark_written(event.id, second[0].changes);
        assert_eq!(ledger.unwritten(9), []);
    }

    #[test]
    fn unread_event_warns_once_per_vm() {
        let (mut scope, _) = one_event(Cause::HostReboot, &[vm(1), vm(2), vm(3)]);
        scope.members[2].state = MemberState::Deallocated;
        let (mut fixture, mut ledger) = (fixture(&scope), Ledger::default());
        let mut review =
            |fixture: &ViewFixture, seconds| ledger.collect_warnings(&fixture.views.newest(), at(seconds));
        assert_eq!(review(&fixture, 449), (vec![], Some(at(450))));
        let (warnings, next) = review(&fixture, 450);
        assert_eq!((warnings.len(), next), (1, None));
        assert_eq!(
            (&*warnings[0].vms, warnings[0].not_before),
            (&["vm-1".into(), "vm-2".into()][..], at(900))
        );
        assert_eq!(review(&fixture, 451), (vec![], None), "a warning is returned once");

        scope.members[2].state = MemberState::Running;
        fixture.publish(&scope, at(460));
        assert_eq!(review(&fixture, 460).0[0].vms, ["vm-3"], "the VM runs again and has not read the event");
    }

    #[test]
    fn read_or_approved_event_does_not_warn() {
        let (mut scope, _) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (mut fixture, mut ledger) = (fixture(&scope), Ledger::default());
        read(&mut ledger, &fixture, 1, NEW, 1);
        assert_eq!(ledger.collect_warnings(&fixture.views.newest(), at(500)).0[0].vms, ["vm-2"]);
        let mut ledger = Ledger::default();
        scope.events[0] = approved(scope.events[0].clone());
        fixture.publish(&scope, at(400));
        assert_eq!(ledger.collect_warnings(&fixture.views.newest(), at(500)), (vec![], None));
    }

    #[test]
    fn ended_event_is_kept_until_written() {
        let (mut scope, event) = one_event(Cause::HostReboot, &[vm(1), vm(2)]);
        let (mut fixture, mut ledger) = (fixture(&scope), Ledger::default());
        let served = fixture.views.newest().guest(vm(2)).unwrap().scope.clone();
        read(&mut ledger, &fixture, 1, NEW, 1);
        scope.events.clear();
        scope.incarnation = 3;
        fixture.publish(&scope, at(10));
        ledger.mark_ended(&fixture.views.newest(), at(10));
        ledger.prune(at(100));
        let drafts = ledger.unwritten(9);
        assert_eq!(drafts.len(), 1, "the record is not written yet");
        ledger.mark_written(event.id, drafts[0].changes);
        ledger.prune(at(69));
        assert_eq!(ledger.events.len(), 1, "a note may still arrive");
        ledger.prune(at(70));
        assert_eq!(ledger.events.len(), 0);
        // A note that arrived too late, and one of an event that ended before its first note.
        let late = SentDocument { vm: vm(2), scope: served, version: NEW, at: at(5) };
        ledger.record(&late, &fixture.views.newest(), at(80));
        assert_eq!(ledger.unwritten(9), [], "a new record would replace the other reads");
        ledger.record(&late, &fixture.views.newest(), at(6));
        assert_eq!(ledger.unwritten(9).len(), 1);
    }

    #[test]
    fn unwritten_reads_are_bounded_and_oldest_dropped() {
        let mut ledger = Ledger::default();
        let readers: BTreeSet<VmId> = (0..1_000).map(vm).collect();
        for n in 0..102 {
            let mut entry = Entry::new(scope("web", &[]).id());
            entry.own.clone_from(&readers);
            entry.changes = 1;
            entry.ended_at = Some(at(n));
            ledger.events.insert(EventId(uuid::Uuid::from_u128(n.unsigned_abs().into())), entry);
        }
        assert_eq!(ledger.prune(at(200)), 2_000);
        assert_eq!(ledger.prune(at(200)), 0);
        let kept: BTreeSet<u128> = ledger.events.keys().map(|event| event.0.as_u128()).collect();
        assert_eq!(kept, (2..102).collect());
    }
}
