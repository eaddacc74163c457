//! Which connections are let in.
//!
//! There is one count for the whole door and one per source: an address at a listener's network, since two
//! tenants may have the same. The count per source is what keeps one VM from using up the door: a connection
//! beyond it is closed at once, the newcomer rather than an older one. It does not hold for those who call for
//! many. Beyond the count of the whole door it is for the caller of [`Admission::admit`] to make room.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::caller::Caller;
use super::settings::Limits;
use super::stats::GuestStats;

/// Whose connections are counted together: the number of a listener's identity, and an address.
type Source = (usize, IpAddr);

/// Counts the open connections of a door.
#[derive(Debug)]
pub(super) struct Admission {
    connections_max: usize,
    per_source_max: Option<usize>,
    total: AtomicUsize,
    by_source: Mutex<HashMap<Source, usize>>,
    stats: Arc<GuestStats>,
}

/// Why a connection is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The door is full.
    Door,
    /// The source has its share.
    Source,
}

/// A connection's place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    /// Where the source is counted.
    source: Option<Source>,
}

impl Admission {
    pub(super) fn new(limits: &Limits, stats: Arc<GuestStats>) -> Arc<Admission> {
        Arc::new(Admission {
            connections_max: limits.connections_max,
            per_source_max: limits.connections_per_source_max,
            total: AtomicUsize::new(0),
            by_source: Mutex::default(),
            stats,
        })
    }

    /// A place for a connection of this caller, at a listener of this identity, or why there is none.
    pub(super) fn admit(self: &Arc<Self>, identity: usize, caller: &Caller) -> Result<Permit, Excess> {
        // This machine's own address is where forwarders call from; the rest of 127.0.0.0/8 is as good as any other.
        let own = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let calls_for_many = caller.is_proxy || own.contains(&caller.source.ip());
        let source = match self.per_source_max {
            Some(most) if !calls_for_many => {
                let source = (identity, caller.source.ip());
                let mut by_source = self.lock();
                let count = by_source.get(&source).copied().unwrap_or(0);
                // This comes first: nobody makes room for one that is turned away.
                if count >= most {
                    return Err(Excess::Source);
                }
                self.take_place()?;
                by_source.insert(source, count + 1);
                Some(source)
            }
            Some(_) | None => {
                self.take_place()?;
                None
            }
        };
        self.stats.opened();
        Ok(Permit { admission: Arc::clone(self), source })
    }

    /// Counts one more towards the whole, if there is room.
    fn take_place(&self) -> Result<(), Excess> {
        if self.total.fetch_add(1, Relaxed) >= self.connections_max {
            self.total.fetch_sub(1, Relaxed);
            return Err(Excess::Door);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Source, usize>> {
        // Counts are whole after every step, so one that somebody panicked over is as good as any.
        self.by_source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(source) = self.source
            && let Entry::Occupied(mut count) = self.admission.lock().entry(source)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.admission.total.fetch_sub(1, Relaxed);
        self.admission.stats.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::ListenerIdentity;
    use super::*;

    fn from(address: &str) -> Caller {
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        Caller::new(listener, (address.parse::<IpAddr>().unwrap(), 5).into(), ([10, 0, 0, 254], 80).into())
    }

    fn admission(connections_max: usize, per_source_max: usize) -> Arc<Admission> {
        let limits =
            Limits { connections_max, connections_per_source_max: Some(per_source_max), ..Limits::default() };
        Admission::new(&limits, Arc::default())
    }

    #[test]
    fn one_source_cannot_take_the_places_of_the_others() {
        let admission = admission(4, 2);
        let [greedy, modest, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(from);

        let first = admission.admit(0, &greedy).unwrap();
        let _second = admission.admit(0, &greedy).unwrap();
        assert_eq!(admission.admit(0, &greedy).unwrap_err(), Excess::Source);
        let _other = admission.admit(0, &modest).unwrap();
        let _last = admission.admit(0, &third).unwrap();
        assert_eq!(admission.admit(0, &modest).unwrap_err(), Excess::Door);
        drop(first);
        let again = admission.admit(0, &greedy).unwrap();
        assert_eq!(admission.stats.connections_open(), 4);
        drop(again);
        assert_eq!((admission.lock().len(), admission.stats.connections_open()), (3, 3));
    }

    #[test]
    fn a_source_that_has_its_share_asks_for_no_room() {
        let admission = admission(2, 1);
        let [greedy, modest, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(from);
        let _both = [&greedy, &modest].map(|caller| admission.admit(0, caller).unwrap());
        assert_eq!(admission.admit(0, &greedy).unwrap_err(), Excess::Source);
        assert_eq!(admission.admit(0, &third).unwrap_err(), Excess::Door);
        assert_eq!((admission.lock().len(), admission.total.load(Relaxed)), (2, 2), "nothing is left behind");
    }

    #[test]
    fn loopback_and_trusted_proxies_count_only_towards_the_whole() {
        let proxy = Caller { is_proxy: true, ..from("10.9.0.2") };
        for caller in [from("127.0.0.1"), proxy] {
            let admission = admission(3, 1);
            let held: Vec<_> = (0..5).map(|_| admission.admit(0, &caller)).collect();
            assert_eq!(held.iter().flatten().count(), 3);
        }
    }

    #[test]
    fn the_same_address_in_another_network_is_another_source() {
        let admission = admission(9, 1);
        let _blue = admission.admit(0, &from("10.0.0.4")).unwrap();
        assert!(admission.admit(0, &from("10.0.0.4")).is_err());
        assert!(admission.admit(1, &from("10.0.0.4")).is_ok());
    }

    #[test]
    fn without_a_limit_nobody_is_counted() {
        let limits = Limits { connections_per_source_max: None, ..Limits::default() };
        let admission = Admission::new(&limits, Arc::default());
        let held: Vec<_> = (0..1_000).map(|_| admission.admit(0, &from("10.0.0.4")).unwrap()).collect();
        assert!(admission.lock().is_empty());
        drop(held);
        assert_eq!(admission.total.load(Relaxed), 0);
    }
}
