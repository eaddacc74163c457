//! Admission policy of a listener: which connection is evicted for a new one.
//!
//! A new connection is always admitted, since it may be the operator's. If the listener is full, the oldest connection
//! without a valid token is evicted, of the source that has most. A connection whose request had a valid token counts
//! toward its token and is never evicted for one without. To guarantee both, [`UNAUTHENTICATED_RESERVE`] slots are
//! never held by connections with tokens.
//!
//! Some slots are for loopback only, so that a remote flood does not lock out the administrator on this machine.
//! Reverse proxies call for many clients and have no source limit: their connections are evicted last.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::by_source::{BySource, Id, source_of};
use crate::token_quotas::{QuotaExceeded, TokenQuotaLimits, TokenQuotas};

/// Slots that connections with a token never hold, so that a new connection can always be admitted and authenticate.
pub const UNAUTHENTICATED_RESERVE: usize = 16;
/// Slots for connections from loopback only.
pub const LOOPBACK_RESERVE: usize = 16;

/// Connection limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All connections; more than [`UNAUTHENTICATED_RESERVE`] and [`LOOPBACK_RESERVE`] together.
    pub connections: usize,
    /// Connections of one token.
    pub per_token: usize,
}

/// The source that a connection counts toward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A loopback address.
    Loopback(IpAddr),
    /// Another address; in IPv6 a /64 prefix.
    Remote(IpAddr),
    /// A reverse proxy.
    Proxy,
}

impl Source {
    /// The source of a connection from an address.
    pub fn of(address: IpAddr, is_proxy: bool) -> Self {
        let address = source_of(address);
        match (is_proxy, address.is_loopback()) {
            (true, _) => Source::Proxy,
            (false, true) => Source::Loopback(address),
            (false, false) => Source::Remote(address),
        }
    }

    fn is_loopback(self) -> bool {
        matches!(self, Source::Loopback(_))
    }
}

/// The open connections of a listener.
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    open: HashMap<Id, Source>,
    /// Number of connections that are not from loopback.
    remote: usize,
    /// Connections without a valid token so far.
    unauthenticated: BySource<Source>,
    /// Connections with a valid token.
    authenticated: TokenQuotas,
}

impl Admission {
    /// No connections.
    pub fn new(limits: Limits) -> Self {
        let total = limits.connections.saturating_sub(UNAUTHENTICATED_RESERVE + LOOPBACK_RESERVE);
        let authenticated = TokenQuotas::new(TokenQuotaLimits { per_token: limits.per_token, total });
        Self { limits, open: HashMap::new(), remote: 0, unauthenticated: BySource::default(), authenticated }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Admits a connection; returns the one evicted for it, if any.
    pub fn admit(&mut self, id: Id, source: Source) -> Option<Id> {
        let for_all = self.limits.connections.saturating_sub(LOOPBACK_RESERVE);
        let must_be_remote = !source.is_loopback() && self.remote >= for_all;
        let is_full = must_be_remote || self.open.len() >= self.limits.connections;
        let closed = is_full.then(|| self.choose_evicted(source, must_be_remote)).flatten();
        if let Some(closed) = closed {
            self.remove(closed);
        }
        self.open.insert(id, source);
        self.remote += usize::from(!source.is_loopback());
        self.unauthenticated.insert(id, source);
        closed
    }

    /// The connection to evict for a newcomer of this source.
    fn choose_evicted(&self, newcomer: Source, must_be_remote: bool) -> Option<Id> {
        let fits = |other: &Source| !must_be_remote || !other.is_loopback();
        let has_limit = |other: &Source| fits(other) && *other != Source::Proxy;
        let chosen = self.unauthenticated.oldest_of_largest(Some(&newcomer), has_limit);
        chosen.or_else(|| self.unauthenticated.oldest_of_largest(None, fits)).map(|(id, _)| id)
    }

    /// Counts a connection toward a valid token; returns the connection evicted for it, if any. A closed connection is
    /// ignored.
    pub fn authenticate(&mut self, id: Id, token: &str) -> Result<Option<Id>, QuotaExceeded> {
        if !self.open.contains_key(&id) {
            return Ok(None);
        }
        let closed = self.authenticated.acquire(id, token)?;
        self.unauthenticated.remove(id);
        if let Some(closed) = closed {
            self.remove(closed);
        }
        Ok(closed)
    }

    /// Removes a connection that has ended.
    pub fn remove(&mut self, id: Id) {
        let Some(source) = self.open.remove(&id) else { return };
        self.remote -= usize::from(!source.is_loopback());
        self.unauthenticated.remove(id);
        self.authenticated.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { connections: 36, per_token: 3 };
    /// Slots that are not reserved for loopback.
    const FOR_ALL: usize = 20;

    fn remote(last: u8) -> Source {
        Source::of([10, 0, 0, last].into(), false)
    }

    fn local(last: u8) -> Source {
        Source::of([127, 0, 0, last].into(), false)
    }

    /// A listener with connections of these sources, in this order, without evictions.
    fn open(sources: impl IntoIterator<Item = Source>) -> Admission {
        let mut admission = Admission::new(LIMITS);
        for (id, source) in sources.into_iter().enumerate() {
            assert_eq!(admission.admit(id as Id, source), None, "{id}");
        }
        admission
    }

    fn some(count: usize, source: Source) -> impl Iterator<Item = Source> {
        std::iter::repeat_n(source, count)
    }

    #[test]
    fn full_listener_evicts_oldest_of_largest_source() {
        // (sources of the open connections, source of the newcomer, evicted)
        let full_of_one = || some(20, remote(1)).collect::<Vec<_>>();
        let quiet_first: Vec<_> = some(1, remote(2)).chain(some(19, remote(1))).collect();
        let two_each: Vec<_> = (1..=10).flat_map(|last| some(2, remote(last))).collect();
        let all_local: Vec<_> = some(36, local(2)).collect();
        let mixed: Vec<_> = some(16, local(2)).chain(some(20, remote(1))).collect();
        let proxied: Vec<_> = some(19, Source::Proxy).chain(some(1, remote(2))).collect();
        let only_proxied: Vec<_> = some(20, Source::Proxy).collect();
        let cases: [(&str, Vec<Source>, Source, Option<Id>); 13] = [
            ("not full", some(19, remote(1)).collect(), remote(1), None),
            ("its own oldest", full_of_one(), remote(1), Some(0)),
            ("another source's oldest", full_of_one(), remote(2), Some(0)),
            ("a source with one keeps it", quiet_first.clone(), remote(3), Some(1)),
            ("also for its own second", quiet_first, remote(2), Some(1)),
            ("the newcomer counts for its source", two_each.clone(), remote(7), Some(12)),
            ("the oldest of equal counts", two_each, remote(11), Some(0)),
            ("slots for loopback are free", full_of_one(), local(1), None),
            ("loopback may use all slots", all_local.clone(), local(1), Some(0)),
            ("loopback is evicted down to its reserve", all_local, remote(1), Some(0)),
            ("remote sources do not use loopback's reserve", mixed, remote(2), Some(16)),
            ("a proxy has no source limit", proxied, remote(3), Some(19)),
            ("proxies are evicted last", only_proxied, remote(3), Some(0)),
        ];
        for (case, there, newcomer, expected) in cases {
            let mut admission = open(there);
            assert_eq!(admission.admit(99, newcomer), expected, "{case}");
        }
    }

    #[test]
    fn ipv6_is_counted_by_prefix() {
        let in_one =
            |low: u16| Source::of(std::net::Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, low).into(), false);
        let other = Source::of("fd00:0:0:2::1".parse().unwrap(), false);
        let mut admission = open(std::iter::once(other).chain((1..20).map(in_one)));
        assert_eq!(admission.admit(99, remote(1)), Some(1));
    }

    #[test]
    fn authenticated_connection_is_not_evicted_for_unauthenticated() {
        let mut admission = open(some(20, remote(1)));
        for (id, token) in [(0, "a"), (1, "a"), (2, "b")] {
            assert_eq!(admission.authenticate(id, token), Ok(None));
        }
        for id in 20..100 {
            let closed = admission.admit(id, remote(2));
            assert!(closed.is_some_and(|closed| closed > 2), "{id} closes {closed:?}");
        }
        assert!([0, 1, 2].iter().all(|id| admission.open.contains_key(id)));
        assert_eq!(admission.open.len(), FOR_ALL);
    }

    #[test]
    fn tokens_leave_slots_for_unauthenticated_connections() {
        let mut admission = Admission::new(LIMITS);
        let mut next = 0;
        let mut connect = |admission: &mut Admission, token: Option<&str>| {
            next += 1;
            let closed = admission.admit(next, local(1));
            (closed, token.map(|token| admission.authenticate(next, token)))
        };
        assert_eq!(connect(&mut admission, Some("a")), (None, Some(Ok(None))));
        assert_eq!(connect(&mut admission, Some("a")), (None, Some(Ok(None))));
        assert_eq!(connect(&mut admission, Some("a")), (None, Some(Ok(None))));
        assert_eq!(connect(&mut admission, Some("a")), (None, Some(Err(QuotaExceeded::Token(3)))));
        // Four of 36 slots are for tokens: 16 are for newcomers and 16 for loopback.
        assert_eq!(connect(&mut admission, Some("b")), (None, Some(Ok(None))));
        assert_eq!(
            connect(&mut admission, Some("c")),
            (None, Some(Ok(Some(1)))),
            "evicted from the token with most"
        );
        assert_eq!(connect(&mut admission, Some("d")), (None, Some(Ok(Some(2)))));
        assert_eq!(connect(&mut admission, Some("e")), (None, Some(Err(QuotaExceeded::All(4)))));
        // Every newcomer is admitted, and no connection with a token is evicted.
        for _ in 0..200 {
            connect(&mut admission, None);
        }
        let is_held = |id: &Id| admission.authenticated.held.source(*id).is_some();
        assert!([3, 5, 6, 7].iter().all(|id| is_held(id) && admission.open.contains_key(id)));
        assert_eq!(admission.open.len(), LIMITS.connections);
    }

    #[test]
    fn removed_connections_leave_no_state() {
        let mut admission = open([remote(1), local(1), Source::Proxy]);
        assert_eq!(admission.authenticate(1, "a"), Ok(None));
        (0..3).for_each(|id| admission.remove(id));
        assert_eq!(admission.authenticate(1, "a"), Ok(None), "the connection is closed already");
        assert!(
            admission.open.is_empty()
                && admission.unauthenticated.is_empty()
                && admission.authenticated.held.is_empty()
        );
        assert_eq!(admission.remote, 0);
    }
}
