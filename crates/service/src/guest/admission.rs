//! Which connections are let in.
//!
//! There is one count for the whole door and one per source: an address at a listener's network, since two
//! tenants may have the same. A connection beyond either is closed at once, the newcomer rather than an older
//! one: to the guests already served nothing changes, and the newcomer learns it without waiting. The count per
//! source is what keeps one VM from using up the other; it does not hold for those who call for many.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::caller::{Caller, ListenerIdentity};
use super::settings::Limits;
use super::stats::GuestStats;

/// Whose connections are counted together.
type Source = (Arc<ListenerIdentity>, IpAddr);

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_source: HashMap<Source, usize>,
}

/// Counts the open connections of a door.
#[derive(Debug)]
pub(super) struct Admission {
    connections_max: usize,
    per_source_max: usize,
    open: Mutex<Open>,
    stats: Arc<GuestStats>,
}

/// A connection's place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    source: Source,
}

impl Admission {
    pub(super) fn new(limits: &Limits, stats: Arc<GuestStats>) -> Arc<Admission> {
        Arc::new(Admission {
            connections_max: limits.connections_max,
            per_source_max: limits.connections_per_source_max,
            open: Mutex::default(),
            stats,
        })
    }

    /// A place for a connection of this caller, or none.
    pub(super) fn admit(self: &Arc<Self>, caller: &Caller) -> Option<Permit> {
        self.stats.accepted();
        let source = (Arc::clone(&caller.listener), caller.source.ip());
        let calls_for_many = caller.is_proxy || caller.source.ip().is_loopback();
        let mut open = self.lock();
        let from_source = open.by_source.get(&source).copied().unwrap_or(0);
        let source_is_full = from_source >= self.per_source_max && !calls_for_many;
        if open.total >= self.connections_max || source_is_full {
            self.stats.turned_away();
            return None;
        }
        open.total += 1;
        open.by_source.insert(source.clone(), from_source + 1);
        self.stats.opened();
        Some(Permit { admission: Arc::clone(self), source })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Counts are whole after every step, so one that somebody panicked over is as good as any.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.admission.lock();
        open.total = open.total.saturating_sub(1);
        if let Entry::Occupied(mut count) = open.by_source.entry(self.source.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.admission.stats.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(network: &str, address: &str) -> Caller {
        let listener = Arc::new(ListenerIdentity::Network(network.to_owned()));
        Caller::new(listener, (address.parse::<IpAddr>().unwrap(), 5).into(), ([10, 0, 0, 254], 80).into())
    }

    #[test]
    fn one_source_cannot_take_the_places_of_the_others() {
        let limits = Limits { connections_max: 4, connections_per_source_max: 2, ..Limits::default() };
        let stats = Arc::new(GuestStats::default());
        let admission = Admission::new(&limits, Arc::clone(&stats));
        let [greedy, modest, third] =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| at("default", address));

        let first = admission.admit(&greedy).unwrap();
        let _second = admission.admit(&greedy).unwrap();
        assert!(admission.admit(&greedy).is_none());
        let _other = admission.admit(&modest).unwrap();
        let _last = admission.admit(&third).unwrap();
        assert!(admission.admit(&modest).is_none(), "the door is full");
        drop(first);
        let again = admission.admit(&greedy).unwrap();
        assert_eq!((stats.connections_open(), stats.connections_turned_away()), (4, 2));
        drop(again);
        assert_eq!(admission.lock().by_source.len(), 3);
    }

    #[test]
    fn loopback_counts_only_towards_the_whole() {
        let limits = Limits { connections_max: 3, connections_per_source_max: 1, ..Limits::default() };
        let admission = Admission::new(&limits, Arc::default());
        let local = at("default", "127.0.0.1");
        let held: Vec<_> = (0..5).map(|_| admission.admit(&local)).collect();
        assert_eq!(held.iter().flatten().count(), 3);
    }
    #[test]
    fn the_same_address_in_another_network_is_another_source() {
        let limits = Limits { connections_per_source_max: 1, ..Limits::default() };
        let admission = Admission::new(&limits, Arc::default());
        let _blue = admission.admit(&at("blue", "10.0.0.4")).unwrap();
        assert!(admission.admit(&at("blue", "10.0.0.4")).is_none());
        assert!(admission.admit(&at("green", "10.0.0.4")).is_some());
    }

    #[test]
    fn a_trusted_proxy_counts_only_towards_the_whole() {
        let limits = Limits { connections_max: 3, connections_per_source_max: 1, ..Limits::default() };
        let admission = Admission::new(&limits, Arc::default());
        let proxy = Caller { is_proxy: true, ..at("default", "10.9.0.2") };
        let held: Vec<_> = (0..5).map(|_| admission.admit(&proxy)).collect();
        assert_eq!(held.iter().flatten().count(), 3);
    }
}
