//! Connections grouped by source, oldest first.
//!
//! At the limit, the oldest connection of the source that has most is evicted. A source that opens many connections
//! thus evicts its own, at any number of sources, and a source with one connection keeps it the longest.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// Identifies a connection; later connections have larger ids.
pub type Id = u64;

/// Bits of an IPv6 address that identify a source: one machine may use every address of its /64.
const IPV6_SOURCE_BITS: u32 = 64;

/// The source of an address: itself in IPv4, its /64 in IPv6.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() >> IPV6_SOURCE_BITS << IPV6_SOURCE_BITS).into()
        }
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => address,
    }
}

/// Connections by source.
#[derive(Debug)]
pub struct BySource<S> {
    members: HashMap<S, BTreeSet<Id>>,
    sources: HashMap<Id, S>,
}

impl<S> Default for BySource<S> {
    fn default() -> Self {
        Self { members: HashMap::new(), sources: HashMap::new() }
    }
}

impl<S: Clone + Eq + Hash> BySource<S> {
    /// Adds a connection, or moves it to another source.
    pub fn insert(&mut self, id: Id, source: S) {
        self.remove(id);
        self.members.entry(source.clone()).or_default().insert(id);
        self.sources.insert(id, source);
    }

    /// Removes a connection; returns its source if it was present.
    pub fn remove(&mut self, id: Id) -> Option<S> {
        let source = self.sources.remove(&id)?;
        if let Some(members) = self.members.get_mut(&source) {
            members.remove(&id);
            if members.is_empty() {
                self.members.remove(&source);
            }
        }
        Some(source)
    }

    /// The source of a connection.
    pub fn source(&self, id: Id) -> Option<&S> {
        self.sources.get(&id)
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Number of connections of a source.
    pub fn count(&self, source: &S) -> usize {
        self.members.get(source).map_or(0, BTreeSet::len)
    }

    /// The oldest connection of the eligible source that has most, and that source's count. A newcomer counts toward
    /// its source. If counts are equal, the source with the oldest connection is chosen.
    pub fn oldest_of_largest(
        &self,
        newcomer: Option<&S>,
        is_eligible: impl Fn(&S) -> bool,
    ) -> Option<(Id, usize)> {
        let eligible = self.members.iter().filter(|(source, _)| is_eligible(source));
        let ranked = eligible.filter_map(|(source, members)| {
            let count = members.len() + usize::from(newcomer == Some(source));
            members.first().map(|oldest| (*oldest, count))
        });
        ranked.max_by_key(|(oldest, count)| (*count, std::cmp::Reverse(*oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_sources_are_prefixes_of_64_bits() {
        for (address, source) in [
            ("10.0.0.4", "10.0.0.4"),
            ("::ffff:10.0.0.4", "10.0.0.4"),
            ("fd00:1:2:3:4:5:6:7", "fd00:1:2:3::"),
            ("fd00:1:2:3::", "fd00:1:2:3::"),
            ("fd00:1:2:4::1", "fd00:1:2:4::"),
            ("::1", "::1"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(source_of(address.parse().unwrap()), source.parse::<IpAddr>().unwrap(), "{address}");
        }
    }

    #[test]
    fn oldest_of_largest_source_is_chosen() {
        // (sources in order of ids, source of the newcomer, the chosen id and its source's count)
        for (sources, newcomer, expected) in [
            ("", None, None),
            ("a", None, Some((0, 1))),
            ("ab", None, Some((0, 1))),
            ("abb", None, Some((1, 2))),
            ("abab", None, Some((0, 2))),
            ("abab", Some('b'), Some((1, 3))),
            ("ab", Some('c'), Some((0, 1))),
            ("xxxab", None, Some((3, 1))),
            ("xxx", Some('x'), None),
        ] {
            let mut all = BySource::default();
            sources.chars().enumerate().for_each(|(id, source)| all.insert(id as Id, source));
            let chosen = all.oldest_of_largest(newcomer.as_ref(), |source| *source != 'x');
            assert_eq!(chosen, expected, "{sources} {newcomer:?}");
        }
    }

    #[test]
    fn remove_leaves_no_state() {
        let mut all = BySource::default();
        all.insert(1, 'a');
        all.insert(2, 'a');
        all.insert(1, 'b');
        assert_eq!((all.count(&'a'), all.count(&'b'), all.len()), (1, 1, 2));
        assert_eq!((all.remove(1), all.remove(1), all.remove(2)), (Some('b'), None, Some('a')));
        assert!(all.is_empty() && all.members.is_empty());
    }
}
