//! Entries of VMs' logs, bounded in number and bytes. Pure: the time is an argument.
//!
//! A VM has at most [`ENTRIES_MAX`] entries. An entry that is equal to an earlier one of its VM is merged with it. Of too
//! many, the oldest of the kind with most entries is dropped, so a flood of one kind does not drop the others. When all
//! bytes are in use, a VM with entries drops its own, so a noisy VM never drops those of another. A VM without entries
//! takes room from the VM that has most. For the begin of polls it does not: in a large fleet, first polls would drop
//! everything else.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::mem::{Discriminant, discriminant};

use jiff::Timestamp;
use notbefore_core::VmId;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;
use uuid::Uuid;

/// Maximum entries of one VM: about a screen.
pub const ENTRIES_MAX: usize = 32;
/// Maximum events in an entry; the others are counted.
pub const EVENTS_MAX: usize = 16;
/// Bytes of a VM besides its entries: its places in the hash table and in the index, when these are half full.
const VM_BYTES: usize = 256;
/// Bytes that the allocator needs for one allocation.
const ALLOCATION_BYTES: usize = 16;

/// What a VM did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A request was refused. `request` has method and target, `detail` what the error leaves out; both are escaped.
    Refused { error: GuestError, request: Box<str>, detail: Box<str> },
    /// An approval was stored.
    Approved(Events),
    /// A document with an event for the VM was sent to it for the first time. `events` are those that it shows.
    Read { incarnation: u64, version: EventsVersion, events: Events },
    /// Polls of a client begin. `client` is its `User-Agent`, escaped.
    Polled { client: Box<str>, version: EventsVersion },
    /// What another node of the cluster has noted, as the API shows it (JSON).
    AtOtherNode { kind: Kind, shown: Box<str> },
}

/// Kinds of entries in the order of worth: of two kinds with equally many entries, the later one drops an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Approved,
    Read,
    Polled,
    Refused,
}

/// Events of an entry: the first [`EVENTS_MAX`], and the number of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    pub listed: Box<[Uuid]>,
    pub more: usize,
}

impl FromIterator<Uuid> for Events {
    fn from_iter<I: IntoIterator<Item = Uuid>>(ids: I) -> Self {
        let mut ids = ids.into_iter();
        let listed = ids.by_ref().take(EVENTS_MAX).collect();
        Self { listed, more: ids.count() }
    }
}

impl Happened {
    /// Bytes outside of the entry itself.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Refused { request, detail, .. } => request.len() + detail.len() + 2 * ALLOCATION_BYTES,
            Self::Approved(events) | Self::Read { events, .. } => {
                size_of_val(&*events.listed) + ALLOCATION_BYTES
            }
            Self::Polled { client: text, .. } | Self::AtOtherNode { shown: text, .. } => {
                text.len() + ALLOCATION_BYTES
            }
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Approved(_) => Kind::Approved,
            Self::Read { .. } => Kind::Read,
            Self::Polled { .. } => Kind::Polled,
            Self::Refused { .. } => Kind::Refused,
            Self::AtOtherNode { kind, .. } => *kind,
        }
    }

    fn reason(&self) -> Option<Discriminant<GuestError>> {
        match self {
            Self::Refused { error, .. } => Some(discriminant(error)),
            Self::Approved(_) | Self::Read { .. } | Self::Polled { .. } | Self::AtOtherNode { .. } => None,
        }
    }
}

/// An entry: equal ones are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub count: u64,
    pub what: Happened,
}

/// The log of one VM, ordered by last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmEntries {
    pub entries: Vec<Entry>,
    /// Number of entries that were dropped.
    pub dropped: u64,
}

impl VmEntries {
    fn bytes(&self) -> usize {
        let heap: usize = self.entries.iter().map(|entry| entry.what.heap_bytes()).sum();
        VM_BYTES + ALLOCATION_BYTES + self.entries.capacity() * size_of::<Entry>() + heap
    }

    /// Merges an entry with an equal one; false if there is none.
    fn merge(&mut self, new: &Entry) -> bool {
        let Some(known) = self.entries.iter().position(|entry| entry.what == new.what) else { return false };
        let mut entry = self.entries.remove(known);
        entry.first_at = entry.first_at.min(new.first_at);
        entry.last_at = entry.last_at.max(new.last_at);
        entry.count = entry.count.saturating_add(new.count);
        self.insert(entry);
        true
    }

    fn add(&mut self, entry: Entry) {
        self.entries.reserve_exact(1);
        self.insert(entry);
    }

    /// These entries and those of another log of the same VM.
    pub fn joined(mut self, other: Self) -> Self {
        for entry in other.entries {
            self.insert(entry);
        }
        let excess = self.entries.len().saturating_sub(ENTRIES_MAX);
        self.entries.drain(..excess);
        self.dropped += other.dropped + excess as u64;
        self
    }

    /// Inserts in the order of last times. An entry may come late: a first read is recorded after it happened.
    fn insert(&mut self, entry: Entry) {
        let place = self.entries.partition_point(|other| other.last_at <= entry.last_at);
        self.entries.insert(place, entry);
    }

    /// Drops the oldest entry of the kind with most entries; among refusals, of the reason with most.
    fn drop_one(&mut self) {
        let rank = |at: &usize| {
            let what = &self.entries[*at].what;
            let of_kind = self.entries.iter().filter(|other| other.what.kind() == what.kind());
            let of_reason = of_kind.clone().filter(|other| other.what.reason() == what.reason());
            (of_kind.count(), what.kind(), of_reason.count())
        };
        // Of equals, the first is chosen, which is the oldest.
        if let Some(chosen) = (0..self.entries.len()).rev().max_by_key(rank) {
            self.entries.remove(chosen);
            self.entries.shrink_to_fit();
            self.dropped += 1;
        }
    }

    /// Position in the order in which VMs make room for others, the first last: by number of entries, then by age.
    fn rank(&self) -> (usize, Reverse<Option<Timestamp>>) {
        (self.entries.len(), Reverse(self.entries.last().map(|entry| entry.last_at)))
    }
}

/// The logs of many VMs.
#[derive(Debug)]
pub struct Entries {
    vms: HashMap<VmId, VmEntries>,
    ranks: BTreeSet<(usize, Reverse<Option<Timestamp>>, VmId)>,
    bytes: usize,
    bytes_max: usize,
}

impl Entries {
    pub fn new(bytes_max: usize) -> Self {
        Self { vms: HashMap::new(), ranks: BTreeSet::new(), bytes: 0, bytes_max }
    }

    /// The log of a VM.
    pub fn get(&self, vm: VmId) -> Option<&VmEntries> {
        self.vms.get(&vm)
    }

    /// Bytes in use.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn record(&mut self, vm: VmId, what: Happened, at: Timestamp) {
        self.record_entry(vm, Entry { first_at: at, last_at: at, count: 1, what });
    }

    /// Records something that happened several times.
    pub fn record_entry(&mut self, vm: VmId, entry: Entry) {
        let mut log = self.take(vm).unwrap_or_default();
        if !log.merge(&entry) && self.make_room(&mut log, &entry.what) {
            log.add(entry);
        }
        self.put(vm, log);
    }

    /// The entries of all VMs.
    pub fn iter(&self) -> impl Iterator<Item = (VmId, &Entry)> {
        self.vms.iter().flat_map(|(vm, log)| log.entries.iter().map(|entry| (*vm, entry)))
    }

    /// Removes the entries of all VMs and returns them.
    pub fn drain(&mut self) -> impl Iterator<Item = (VmId, Entry)> + use<> {
        self.ranks.clear();
        self.bytes = 0;
        let vms = std::mem::take(&mut self.vms);
        vms.into_iter().flat_map(|(vm, log)| log.entries.into_iter().map(move |entry| (vm, entry)))
    }

    /// Drops entries until one more fits into a VM's log, which was taken out; false if it does not fit.
    fn make_room(&mut self, log: &mut VmEntries, what: &Happened) -> bool {
        let is_poll = what.kind() == Kind::Polled;
        let entry_bytes = size_of::<Entry>() + what.heap_bytes();
        // Others make room only if the VM's own entries are not enough.
        while self.bytes + VmEntries::default().bytes() + entry_bytes > self.bytes_max {
            let fullest = self.ranks.last().map(|(.., vm)| *vm).filter(|_| !is_poll);
            let Some((other, mut fullest)) = fullest.and_then(|other| Some((other, self.take(other)?)))
            else {
                return false;
            };
            fullest.drop_one();
            self.put(other, fullest);
        }
        while log.entries.len() >= ENTRIES_MAX || self.bytes + log.bytes() + entry_bytes > self.bytes_max {
            log.drop_one();
        }
        true
    }

    fn take(&mut self, vm: VmId) -> Option<VmEntries> {
        let log = self.vms.remove(&vm)?;
        let (count, age) = log.rank();
        self.ranks.remove(&(count, age, vm));
        self.bytes -= log.bytes();
        Some(log)
    }

    fn put(&mut self, vm: VmId, log: VmEntries) {
        if log.entries.is_empty() {
            return;
        }
        let (count, age) = log.rank();
        self.bytes += log.bytes();
        self.ranks.insert((count, age, vm));
        self.vms.insert(vm, log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_core::samples::{at, vm};

    fn refused(request: &str) -> Happened {
        Happened::Refused { error: GuestError::NotFound, request: request.into(), detail: "".into() }
    }

    fn polled(client: &str) -> Happened {
        Happened::Polled { client: client.into(), version: EventsVersion::NEWEST }
    }

    fn approved(event: u128) -> Happened {
        Happened::Approved([Uuid::from_u128(event)].into_iter().collect())
    }

    /// The sum of all logs' bytes: what `bytes` must be.
    fn counted(entries: &Entries) -> usize {
        assert_eq!(entries.ranks.len(), entries.vms.len());
        entries.vms.values().map(VmEntries::bytes).sum()
    }

    #[test]
    fn equal_entries_are_merged_with_count_and_times() {
        let mut entries = Entries::new(1 << 20);
        for second in 0..100 {
            entries.record(vm(1), refused("GET /a"), at(second));
            entries.record(vm(1), refused("GET /b"), at(second));
        }
        entries.record(vm(1), approved(7), at(100));
        entries.record(vm(1), refused("GET /a"), at(200));
        let log = entries.get(vm(1)).unwrap();
        let shown: Vec<_> =
            log.entries.iter().map(|one| (&one.what, one.first_at, one.last_at, one.count)).collect();
        assert_eq!(
            shown,
            [
                (&refused("GET /b"), at(0), at(99), 100),
                (&approved(7), at(100), at(100), 1),
                (&refused("GET /a"), at(0), at(200), 101),
            ],
            "by last time"
        );
        assert_eq!((log.dropped, entries.bytes), (0, counted(&entries)));
    }

    #[test]
    fn vm_keeps_its_newest_entries() {
        let mut entries = Entries::new(1 << 20);
        for n in 0..1_000 {
            entries.record(vm(1), refused(&format!("GET /{n}")), at(n));
        }
        let log = entries.get(vm(1)).unwrap();
        assert_eq!((log.entries.len(), log.dropped), (ENTRIES_MAX, 1_000 - ENTRIES_MAX as u64));
        assert_eq!((log.entries[0].first_at, log.entries[31].first_at), (at(968), at(999)));
    }

    #[test]
    fn flood_of_one_kind_drops_only_that_kind() {
        let mut entries = Entries::new(1 << 20);
        let read = Happened::Read {
            incarnation: 7,
            version: EventsVersion::NEWEST,
            events: [Uuid::from_u128(7)].into_iter().collect(),
        };
        let unknown_event = Happened::Refused {
            error: GuestError::UnknownEvent,
            request: "POST /".into(),
            detail: "EventId 7".into(),
        };
        let kept = [polled("curl"), read, unknown_event, approved(7)];
        for (second, what) in kept.iter().enumerate() {
            entries.record(vm(1), what.clone(), at(second as i64));
        }
        let oldest = |entries: &Entries| -> Vec<Happened> {
            let log = entries.get(vm(1)).unwrap();
            assert_eq!(log.entries.len(), ENTRIES_MAX);
            log.entries[..kept.len()].iter().map(|entry| entry.what.clone()).collect()
        };
        for n in 10..1_000 {
            entries.record(vm(1), refused(&format!("GET /{n}")), at(n));
        }
        assert_eq!(oldest(&entries), kept, "refusals of one reason");
        for n in 1_000..2_000 {
            entries.record(vm(1), polled(&format!("client {n}")), at(n));
        }
        let log = entries.get(vm(1)).unwrap();
        let has = |what: &Happened| log.entries.iter().any(|entry| entry.what == *what);
        assert!(kept[1..].iter().all(has), "changes of the client: {log:?}");
        assert_eq!(entries.bytes, counted(&entries));
    }

    #[test]
    fn entry_that_comes_late_is_in_order() {
        let mut entries = Entries::new(1 << 20);
        entries.record(vm(1), approved(1), at(5));
        entries.record(vm(1), approved(2), at(3));
        entries.record(vm(1), approved(1), at(4));
        let log = entries.get(vm(1)).unwrap();
        let times: Vec<_> = log.entries.iter().map(|one| (one.first_at, one.last_at, one.count)).collect();
        assert_eq!(times, [(at(3), at(3), 1), (at(4), at(5), 2)]);
    }

    #[test]
    fn poll_without_room_keeps_the_log_of_its_vm() {
        let mut entries = Entries::new(4 << 10);
        entries.record(vm(1), approved(1), at(0));
        for n in 2..100 {
            entries.record(vm(n), polled("x"), at(0));
        }
        let before = entries.get(vm(1)).cloned();
        entries.record(vm(1), polled(&"long".repeat(200)), at(1));
        assert_eq!(entries.get(vm(1)).cloned(), before);
        assert_eq!(entries.bytes, counted(&entries));
    }

    #[test]
    fn noisy_vm_drops_only_its_own_entries() {
        let mut entries = Entries::new(1 << 20);
        let mut others = 1;
        // Fill up with VMs that have three entries each.
        while counted(&entries) < (1 << 20) - 2_048 {
            for n in 0..3 {
                entries.record(vm(others), approved(n), at(0));
            }
            others += 1;
        }
        assert!(others > 1_000, "{others}");
        for n in 0..100_000 {
            entries.record(vm(0), refused(&format!("GET /{n}?{}", "x".repeat(150))), at(n));
        }
        for other in 1..others {
            assert_eq!(entries.get(vm(other)).unwrap().entries.len(), 3, "{other}");
        }
        assert!(!entries.get(vm(0)).unwrap().entries.is_empty());
        assert_eq!(entries.bytes, counted(&entries));
        assert!(entries.bytes <= 1 << 20, "{}", entries.bytes);
    }

    #[test]
    fn vm_without_entries_takes_room_from_the_fullest() {
        let mut entries = Entries::new(64 << 10);
        for n in 0..32 {
            entries.record(vm(1), approved(n), at(0));
        }
        let mut others = 2;
        while entries.get(vm(1)).is_some_and(|log| log.entries.len() > 2) {
            entries.record(vm(others), refused("GET /"), at(1));
            others += 1;
        }
        assert!((2..others).all(|other| entries.get(vm(other)).is_some()), "the fullest VM has made room");
        let before = entries.vms.len();
        entries.record(vm(others), polled("curl"), at(2));
        assert_eq!(entries.get(vm(others)), None, "the begin of polls takes no room from others");
        assert_eq!(entries.vms.len(), before);
        for n in 0..10_000 {
            entries.record(vm(others + n), refused("GET /"), at(3));
            assert!(entries.bytes <= 64 << 10);
        }
        assert_eq!(entries.bytes, counted(&entries));
        assert!(entries.get(vm(others + 9_999)).is_some(), "of equals, the oldest go");
    }

    #[test]
    fn long_lists_of_events_are_cut() {
        let events: Events = (0..1_000).map(Uuid::from_u128).collect();
        assert_eq!((events.listed.len(), events.more), (EVENTS_MAX, 1_000 - EVENTS_MAX));
    }
}
