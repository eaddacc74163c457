//! Cache of parsed heads with CLOCK eviction, one for each worker.
//!
//! A client sends the same bytes every second, and so do all VMs with the same client. Parsing depends only on the
//! bytes. A worker keeps the last few plain polls and skips parsing when a request starts with the same bytes. Only the
//! parsing is cached: caller, rate limit, document and ETag are checked for every request.
//!
//! A head is cached when it comes for the second time among recent uncached heads. A head that changes with every
//! request therefore evicts nothing. After the first time only a hash is kept. An entry that was used since the hand
//! last passed is kept, so a few heads too many do not thrash.

use std::hash::{BuildHasher, RandomState};

use notbefore_wire::guest::version::EventsVersion;

use super::client::Client;
use super::head::{Head, Name};
use super::response::Persistence;

/// Number of cached heads: more than a fleet has different clients, few enough for a linear search.
const HEADS_MAX: usize = 8;
/// Longest cached head. Heads of published clients have under 500 bytes.
pub(super) const HEAD_BYTES_MAX: usize = 512;

/// Number of hashes kept of heads that were seen once.
const SEEN_MAX: usize = 16;

/// A plain poll: a GET of the document without body, preferences or proxy claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainPoll {
    pub version: EventsVersion,
    pub persistence: Persistence,
}

#[derive(Debug)]
pub(super) struct CachedHead {
    head: Box<[u8]>,
    /// The values of `If-None-Match`, joined.
    tags: Option<Box<[u8]>>,
    pub poll: PlainPoll,
    /// Used since the hand last passed.
    is_referenced: bool,
    /// The client's [`Client::number`] and `User-Agent`.
    client: (u16, Box<[u8]>),
}

impl CachedHead {
    pub(super) fn head_length(&self) -> usize {
        self.head.len()
    }

    pub(super) fn tags(&self) -> Option<&[u8]> {
        self.tags.as_deref()
    }

    pub(super) fn client(&self) -> Client<'_> {
        let (number, agent) = &self.client;
        Client { agent, version: self.poll.version, number: *number }
    }
}

#[derive(Debug, Default)]
pub(super) struct HeadCache {
    entries: Vec<CachedHead>,
    /// The entry that is checked next for eviction.
    hand: usize,
    /// Ring of hashes of heads that were seen once and are not cached. A collision only caches a head early.
    seen_hashes: [u64; SEEN_MAX],
    next_seen: usize,
    hasher: RandomState,
}

impl HeadCache {
    /// The cached head at the start of `bytes`.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<&CachedHead> {
        // A head ends with an empty line, so bytes after it do not matter.
        let entry = self.entries.iter_mut().find(|entry| bytes.starts_with(&entry.head))?;
        entry.is_referenced = true;
        Some(entry)
    }

    /// Reports a plain poll that was not cached; `bytes` is its head. The second report caches it.
    pub(super) fn observe(&mut self, bytes: &[u8], head: &Head<'_, '_>, poll: PlainPoll) {
        if bytes.len() > HEAD_BYTES_MAX {
            return;
        }
        let hash = self.hasher.hash_one(bytes);
        match self.seen_hashes.contains(&hash) {
            true => self.insert(bytes, head, poll),
            false => {
                self.seen_hashes[self.next_seen] = hash;
                self.next_seen = (self.next_seen + 1) % SEEN_MAX;
            }
        }
    }

    /// Caches a parsed head, if the entry under the hand is free or was not used lately.
    fn insert(&mut self, bytes: &[u8], head: &Head<'_, '_>, poll: PlainPoll) {
        let at = self.hand;
        self.hand = (at + 1) % HEADS_MAX;
        if let Some(entry) = self.entries.get_mut(at)
            && std::mem::take(&mut entry.is_referenced)
        {
            return;
        }
        let tags: Vec<&[u8]> = head.all(Name::IfNoneMatch).collect();
        let tags = head.has(Name::IfNoneMatch).then(|| tags.join(&b',').into());
        let client = Client::new(head.user_agent(), poll.version);
        let client = (client.number, client.agent.into());
        let entry = CachedHead { head: bytes.into(), tags, poll, is_referenced: true, client };
        match self.entries.get_mut(at) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::head;
    use super::*;

    const POLL: PlainPoll = PlainPoll { version: EventsVersion::NEWEST, persistence: Persistence::Open };

    fn head(about: &str) -> String {
        format!("GET /x HTTP/1.1\r\nHost: a\r\n{about}\r\n")
    }

    fn observe(head_cache: &mut HeadCache, text: &str) {
        let mut headers = head::header_slots();
        let (head, length) = head::parse(text.as_bytes(), &mut headers).unwrap().unwrap();
        head_cache.observe(&text.as_bytes()[..length], &head, POLL);
    }

    fn knows(head_cache: &mut HeadCache, head: &str) -> bool {
        head_cache.find(head.as_bytes()).is_some()
    }

    #[test]
    fn lookup_compares_whole_head() {
        let mut head_cache = HeadCache::default();
        let plain = head("User-Agent: curl/8\r\n");
        let tagged = head("if-none-match: 7\r\nIf-None-Match: \"8\"\r\n");
        for entry in [&plain, &tagged] {
            for _ in 0..2 {
                assert!(!knows(&mut head_cache, entry));
                observe(&mut head_cache, entry);
            }
        }
        let found = head_cache.find(plain.as_bytes()).unwrap();
        assert_eq!((found.head_length(), found.tags(), found.poll), (plain.len(), None, POLL));
        assert_eq!(found.client(), Client::new(b"curl/8", POLL.version));
        let more = tagged.clone() + &plain;
        let found = head_cache.find(more.as_bytes()).unwrap();
        assert_eq!((found.head_length(), found.tags()), (tagged.len(), Some(b"7,\"8\"".as_slice())));
        for other in [&plain[..plain.len() - 1], &plain.to_lowercase(), &head("A: b\r\n")] {
            assert!(head_cache.find(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn cache_size_is_bounded() {
        let mut head_cache = HeadCache::default();
        let heads: Vec<String> = (0..=HEADS_MAX).map(|n| head(&format!("N: {n}\r\n"))).collect();
        let (newer, older) = heads.split_last().unwrap();
        older.iter().for_each(|head| (0..2).for_each(|_| observe(&mut head_cache, head)));
        assert!(older.iter().all(|head| knows(&mut head_cache, head)));
        let long = head(&format!("A: {}\r\n", "b".repeat(HEAD_BYTES_MAX)));
        (0..2 * HEADS_MAX).for_each(|_| observe(&mut head_cache, &long));
        assert!(!knows(&mut head_cache, &long), "a head that is too long is not cached");
        // The older heads are not used any more.
        while !knows(&mut head_cache, newer) {
            observe(&mut head_cache, newer);
        }
        let found: Vec<bool> = heads.iter().map(|head| knows(&mut head_cache, head)).collect();
        assert_eq!(found, [vec![false], vec![true; HEADS_MAX]].concat());
        assert_eq!(head_cache.entries.len(), HEADS_MAX);
    }

    #[test]
    fn overflow_does_not_thrash() {
        let mut head_cache = HeadCache::default();
        let heads: Vec<String> = (0..=HEADS_MAX).map(|n| head(&format!("N: {n}\r\n"))).collect();
        let mut missed = Vec::new();
        for _ in 0..20 {
            missed.clear();
            for head in &heads {
                if !knows(&mut head_cache, head) {
                    observe(&mut head_cache, head);
                    missed.push(head);
                }
            }
        }
        assert_eq!(missed.len(), 1, "{missed:?}");
    }

    #[test]
    fn unique_heads_are_not_cached() {
        let mut head_cache = HeadCache::default();
        let usual = head("");
        observe(&mut head_cache, &usual);
        observe(&mut head_cache, &usual);
        for n in 0..100 {
            observe(&mut head_cache, &head(&format!("If-None-Match: {n}\r\n")));
        }
        assert!(knows(&mut head_cache, &usual) && head_cache.entries.len() == 1);
        // Two alternating heads are both cached.
        let both = ["7", "8"].map(|tag| head(&format!("If-None-Match: \"{tag}\"\r\n")));
        for _ in 0..2 {
            both.iter().for_each(|head| observe(&mut head_cache, head));
        }
        assert!(both.iter().all(|head| knows(&mut head_cache, head)));
    }
}
