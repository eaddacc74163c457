//! Connection admission: a limit for the whole server and a limit per source.
//!
//! A source is an address in a listener's network, since two tenants may use the same address. The source limit keeps
//! one VM from using up the server: a connection beyond it is closed at once, and older ones stay. Loopback addresses
//! and trusted proxies are exempt. At the limit of the whole server, the caller of [`Admission::admit`] evicts a
//! connection.
//!
//! Connections of unknown callers and incomplete heads are also in [`super::eviction_pool`], each while a [`WaitGuard`]
//! is held. A caller is looked up before admission only while the server is nearly full: a plain poll would pay for the
//! lookup.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_listener::by_source::Id;
use notbefore_listener::log_limit::LogRateLimit;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::caller::Caller;
use super::eviction_pool::{CallerStatus, EvictionPool, UNKNOWN_CALLERS_MAX};
use super::settings::Limits;
use super::stats::GuestStats;
use crate::clock::Stopwatch;
use crate::lock;

/// A server with less than this fraction of its connections free is nearly full: callers are looked up when they
/// connect.
const NEARLY_FULL_DIVISOR: usize = 4;

/// The unit of the source limit: the number of a listener's identity, and an address.
type Source = (u32, IpAddr);

#[derive(Debug)]
pub(super) struct Admission {
    connections_max: usize,
    per_source_max: Option<u32>,
    total: AtomicUsize,
    by_source: Mutex<HashMap<Source, u32>>,
    /// Number of connections from which the server is nearly full.
    nearly_full_at: usize,
    waiting: Mutex<WaitingConnections>,
    stopwatch: Stopwatch,
    stats: Arc<GuestStats>,
}

#[derive(Debug, Default)]
struct WaitingConnections {
    eviction_pool: EvictionPool<Arc<Notify>>,
    log: LogRateLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitExceeded {
    Total,
    Source,
}

#[derive(Debug)]
pub(super) struct Admitted {
    pub permit: Permit,
    /// The server is nearly full: look the caller up at once.
    pub is_nearly_full: bool,
}

/// One admitted connection; dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    /// The source that this connection counts toward; none if exempt.
    source: Option<Source>,
}

impl Admission {
    pub(super) fn new(limits: &Limits, stats: Arc<GuestStats>) -> Arc<Admission> {
        Arc::new(Admission {
            connections_max: limits.connections_max,
            per_source_max: (limits.connections_per_source_max)
                .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            total: AtomicUsize::new(0),
            by_source: Mutex::default(),
            nearly_full_at: limits.connections_max - limits.connections_max / NEARLY_FULL_DIVISOR,
            waiting: Mutex::default(),
            stopwatch: Stopwatch::start(),
            stats,
        })
    }

    /// Admits a connection of this caller at a listener of this identity, or returns the limit that it exceeds.
    pub(super) fn admit(self: &Arc<Self>, identity: u32, caller: &Caller) -> Result<Admitted, LimitExceeded> {
        self.admit_up_to(self.connections_max, identity, caller)
    }

    /// [`Admission::admit`] with another total limit: none after [`Admission::evict_one`], since the evicted connection
    /// counts until it has closed.
    pub(super) fn admit_up_to(
        self: &Arc<Self>,
        connections_max: usize,
        identity: u32,
        caller: &Caller,
    ) -> Result<Admitted, LimitExceeded> {
        // Forwarders call from these two addresses. The rest of 127.0.0.0/8 is limited like any other address.
        let own = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let is_exempt = caller.is_proxy || own.contains(&caller.source);
        let (source, before) = match self.per_source_max {
            Some(most) if !is_exempt => {
                let source = (identity, caller.source);
                let mut by_source = lock(&self.by_source);
                let count = by_source.get(&source).copied().unwrap_or(0);
                // Check the source first: a connection that exceeds it must not evict another.
                if count >= most {
                    return Err(LimitExceeded::Source);
                }
                let before = self.reserve(connections_max)?;
                by_source.insert(source, count + 1);
                (Some(source), before)
            }
            Some(_) | None => (None, self.reserve(connections_max)?),
        };
        self.stats.connections_open.add();
        let permit = Permit { admission: Arc::clone(self), source };
        Ok(Admitted { permit, is_nearly_full: before >= self.nearly_full_at })
    }

    /// Counts one more connection toward the total, if there is room; returns the count before.
    fn reserve(&self, connections_max: usize) -> Result<usize, LimitExceeded> {
        let before = self.total.fetch_add(1, Relaxed);
        if before >= connections_max {
            self.total.fetch_sub(1, Relaxed);
            return Err(LimitExceeded::Total);
        }
        Ok(before)
    }

    /// Evicts a connection for a newcomer to a full server, if one may be evicted; see [`super::eviction_pool`].
    pub(super) fn evict_one(&self, newcomer: CallerStatus) -> bool {
        let mut waiting = lock(&self.waiting);
        let closed = waiting.eviction_pool.evict_one(newcomer);
        self.close(&mut waiting, closed)
    }

    /// Adds a connection to the eviction pool as unknown caller or incomplete head, for at most `limit`.
    pub(super) fn wait(
        self: &Arc<Self>,
        caller: &Caller,
        caller_status: CallerStatus,
        limit: Duration,
    ) -> WaitGuard {
        let evicted = Arc::new(Notify::new());
        let mut waiting = lock(&self.waiting);
        let (id, closed) = waiting.eviction_pool.add(caller, caller_status, Arc::clone(&evicted));
        self.close(&mut waiting, closed);
        drop(waiting);
        let expires = Box::pin(sleep(limit));
        WaitGuard { admission: Arc::clone(self), id, caller_status, evicted, expires }
    }

    /// Notifies a connection to close; returns whether there was one.
    fn close(&self, waiting: &mut WaitingConnections, closed: Option<Arc<Notify>>) -> bool {
        let Some(closed) = closed else { return false };
        // `notify_one` stores a permit for a connection that does not wait yet.
        closed.notify_one();
        self.stats.connections_evicted.add();
        if let Some(closed) = waiting.log.record(self.stopwatch.elapsed()) {
            tracing::warn!(
                closed,
                open = self.total.load(Relaxed),
                unknown_callers_max = UNKNOWN_CALLERS_MAX,
                "too many connections of unknown callers or with incomplete requests: closed the oldest"
            );
        }
        true
    }
}

/// Membership of a connection in the eviction pool; dropping it ends the membership.
#[derive(Debug)]
pub(super) struct WaitGuard {
    admission: Arc<Admission>,
    id: Id,
    pub caller_status: CallerStatus,
    evicted: Arc<Notify>,
    expires: Pin<Box<Sleep>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Evicted for another connection.
    Evicted,
    /// Its timeout has passed.
    Expired,
}

impl WaitGuard {
    /// Resolves when the connection has to close.
    pub(super) async fn ended(&mut self) -> WaitEnd {
        tokio::select! {
            biased;
            () = self.evicted.notified() => WaitEnd::Evicted,
            () = self.expires.as_mut() => WaitEnd::Expired,
        }
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        lock(&self.admission.waiting).eviction_pool.remove(self.id);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(source) = self.source
            && let Entry::Occupied(mut count) = lock(&self.admission.by_source).entry(source)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.admission.total.fetch_sub(1, Relaxed);
        self.admission.stats.connections_open.sub();
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::ListenerIdentity;
    use super::*;

    fn from(address: &str) -> Caller {
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        Caller::new(listener, address.parse().unwrap(), [10, 0, 0, 254].into())
    }

    fn admission(connections_max: usize, per_source_max: usize) -> Arc<Admission> {
        let limits =
            Limits { connections_max, connections_per_source_max: Some(per_source_max), ..Limits::default() };
        Admission::new(&limits, Arc::default())
    }

    #[test]
    fn source_limit_protects_other_sources() {
        let admission = admission(4, 2);
        let [greedy, modest, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(from);

        let first = admission.admit(0, &greedy).unwrap();
        let _second = admission.admit(0, &greedy).unwrap();
        assert_eq!(admission.admit(0, &greedy).unwrap_err(), LimitExceeded::Source);
        let _other = admission.admit(0, &modest).unwrap();
        let _last = admission.admit(0, &third).unwrap();
        assert_eq!(admission.admit(0, &modest).unwrap_err(), LimitExceeded::Total);
        drop(first);
        let again = admission.admit(0, &greedy).unwrap();
        assert_eq!(admission.stats.connections_open.get(), 4);
        drop(again);
        assert_eq!((lock(&admission.by_source).len(), admission.stats.connections_open.get()), (3, 3));
    }

    #[test]
    fn source_at_limit_evicts_nothing() {
        let admission = admission(2, 1);
        let [greedy, modest, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(from);
        let _both = [&greedy, &modest].map(|caller| admission.admit(0, caller).unwrap());
        assert_eq!(admission.admit(0, &greedy).unwrap_err(), LimitExceeded::Source);
        assert_eq!(admission.admit(0, &third).unwrap_err(), LimitExceeded::Total);
        assert_eq!(
            (lock(&admission.by_source).len(), admission.total.load(Relaxed)),
            (2, 2),
            "all counts are released"
        );
    }

    #[test]
    fn loopback_and_proxies_count_only_toward_total() {
        let proxy = Caller { is_proxy: true, ..from("10.9.0.2") };
        for caller in [from("127.0.0.1"), proxy] {
            let admission = admission(3, 1);
            let held: Vec<_> = (0..5).map(|_| admission.admit(0, &caller)).collect();
            assert_eq!(held.iter().flatten().count(), 3);
        }
    }

    #[test]
    fn same_address_in_other_network_is_other_source() {
        let admission = admission(9, 1);
        let _blue = admission.admit(0, &from("10.0.0.4")).unwrap();
        assert!(admission.admit(0, &from("10.0.0.4")).is_err());
        assert!(admission.admit(1, &from("10.0.0.4")).is_ok());
    }

    #[test]
    fn no_source_limit_keeps_no_counts() {
        let limits = Limits { connections_per_source_max: None, ..Limits::default() };
        let admission = Admission::new(&limits, Arc::default());
        let held: Vec<_> = (0..1_000).map(|_| admission.admit(0, &from("10.0.0.4")).unwrap()).collect();
        assert!(lock(&admission.by_source).is_empty());
        drop(held);
        assert_eq!(admission.total.load(Relaxed), 0);
    }
}
