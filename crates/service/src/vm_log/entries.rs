//! Entries of VMs' logs, bounded in number and bytes. Pure: the time is an argument.
//!
//! A VM has at most [`ENTRIES_MAX`] entries. An entry that is equal to an earlier one of its VM is merged with it. When
//! all bytes are in use, a VM with entries drops its own oldest ones, so a noisy VM never drops those of another. A VM
//! without entries takes room from the VM that has most. For the begin of polls it does not: in a large fleet, first
//! polls would drop everything else.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

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
            Self::Polled { client, .. } => client.len() + ALLOCATION_BYTES,
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

    fn record(&mut self, what: Happened, at: Timestamp) {
        let known = self.entries.iter().position(|entry| entry.what == what);
        let entry = match known.map(|at| self.entries.remove(at)) {
            Some(entry) => Entry { last_at: at, count: entry.count + 1, ..entry },
            None => {
                if self.entries.len() == ENTRIES_MAX {
                    self.drop_oldest();
                }
                self.entries.reserve_exact(1);
                Entry { first_at: at, last_at: at, count: 1, what }
            }
        };
        self.entries.push(entry);
    }

    fn drop_oldest(&mut self) {
        if !self.entries.is_empty() {
            self.entries.remove(0);
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
        let is_poll = matches!(what, Happened::Polled { .. });
        let mut log = self.take(vm).unwrap_or_default();
        log.record(what, at);
        while log.entries.len() > 1 && self.bytes + log.bytes() > self.bytes_max {
            log.drop_oldest();
        }
        while self.bytes + log.bytes() > self.bytes_max {
            let fullest = self.ranks.last().map(|(.., other)| *other).filter(|_| !is_poll);
            let Some((other, mut fullest)) = fullest.and_then(|other| Some((other, self.take(other)?)))
            else {
                return;
            };
            fullest.drop_oldest();
            if !fullest.entries.is_empty() {
                self.put(other, fullest);
            }
        }
        self.put(vm, log);
    }

    fn take(&mut self, vm: VmId) -> Option<VmEntries> {
        let log = self.vms.remove(&vm)?;
        let (count, age) = log.rank();
        self.ranks.remove(&(count, age, vm));
        self.bytes -= log.bytes();
        Some(log)
    }

    fn put(&mut self, vm: VmId, log: VmEntries) {
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
