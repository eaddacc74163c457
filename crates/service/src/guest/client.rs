//! The client of a poll: its `User-Agent` and api-version, so that a change is noticed.
//!
//! A client is compared by a number. It is checked at the first request of a connection and at each request that is not
//! in the head cache. Later plain polls of a connection are not checked, which would cost instructions: a program does
//! not change its `User-Agent` on an open connection.

use notbefore_wire::guest::version::EventsVersion;

/// Bits of [`Client::number`]: as many as a VM's last poll leaves free ([`crate::delivery::VmPolls`]).
pub const CLIENT_BITS: u32 = 13;

/// The client of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// Its `User-Agent`; empty without one.
    pub agent: &'a [u8],
    /// The api-version of the poll.
    pub version: EventsVersion,
    /// A hash of both, below `1 << CLIENT_BITS` and never 0. A VM that makes two clients collide hides its own change.
    pub number: u16,
}

impl<'a> Client<'a> {
    pub fn new(agent: &'a [u8], version: EventsVersion) -> Client<'a> {
        Client { agent, version, number: number(agent, version) }
    }
}

/// FNV-1a, folded.
fn number(agent: &[u8], version: EventsVersion) -> u16 {
    let add = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let first = add(0x811c_9dc5, version.index() as u8);
    let hash = agent.iter().fold(first, |hash, byte| add(hash, *byte));
    let folded = (hash >> CLIENT_BITS ^ hash) & ((1 << CLIENT_BITS) - 1);
    u16::try_from(folded).unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_depends_on_agent_and_version() {
        let [old, new] = [EventsVersion::V2017_03_01, EventsVersion::NEWEST];
        let all = [(&b""[..], old), (b"", new), (b"curl/8", old), (b"curl/8", new), (b"curl/9", new)];
        let numbers: std::collections::HashSet<u16> =
            all.iter().map(|(agent, version)| Client::new(agent, *version).number).collect();
        assert_eq!(numbers.len(), all.len());
        assert!(numbers.iter().all(|number| (1..1 << CLIENT_BITS).contains(number)));
    }
}
