//! Heads that were read before.
//!
//! A client sends the same bytes every second, and so do all VMs with the same client. What a head says is a
//! function of its bytes and of nothing else, so a worker remembers how the last few plain polls were read and reads
//! one that begins with the very same bytes in the same way. Only the reading is remembered: who calls, how often
//! it may, what its document is and whether it has changed are found out for every request.

use notbefore_wire::guest::version::EventsVersion;

use super::answer::Persistence;
use super::head::{self, Name};

/// How many heads are remembered: more than a fleet has different clients, few enough to compare with each.
const HEADS_MAX: usize = 8;
/// The longest head that is. Those of published clients have under 500 bytes.
const HEAD_BYTES_MAX: usize = 512;

/// A plain poll: a GET of the document with no body and no preferences, by a caller that speaks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainPoll {
    pub version: EventsVersion,
    pub persistence: Persistence,
}

#[derive(Debug)]
struct Known {
    head: Box<[u8]>,
    /// The values of `If-None-Match`, one after the other.
    tags: Option<Box<[u8]>>,
    poll: PlainPoll,
}

/// A head that was found again.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub head_length: usize,
    pub tags: Option<&'a [u8]>,
    pub poll: PlainPoll,
}

/// The heads that a worker remembers.
#[derive(Debug, Default)]
pub(super) struct Familiar {
    known: Vec<Known>,
    /// Which one is forgotten next.
    oldest: usize,
}

impl Familiar {
    /// The head that the bytes begin with, if it was read before.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<Found<'_>> {
        // A head ends where it says it does: what comes after it changes nothing.
        let known = self.known.iter().find(|known| bytes.starts_with(&known.head))?;
        Some(Found { head_length: known.head.len(), tags: known.tags.as_deref(), poll: known.poll })
    }

    /// Remembers how a head was read, in the place of the one that was remembered first.
    pub(super) fn remember(&mut self, bytes: &[u8], poll: PlainPoll) {
        if bytes.len() > HEAD_BYTES_MAX {
            return;
        }
        let mut headers = head::room();
        let Ok(Some((head, _))) = head::parse(bytes, &mut headers) else { return };
        let tags: Vec<&[u8]> = head.all(Name::IfNoneMatch).collect();
        let tags = head.has(Name::IfNoneMatch).then(|| tags.join(&b',').into());
        let known = Known { head: bytes.into(), tags, poll };
        match self.known.get_mut(self.oldest) {
            Some(place) => *place = known,
            None => self.known.push(known),
        }
        self.oldest = (self.oldest + 1) % HEADS_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: PlainPoll = PlainPoll { version: EventsVersion::NEWEST, persistence: Persistence::Open };

    fn head(about: &str) -> String {
        format!("GET /x HTTP/1.1\r\nHost: a\r\n{about}\r\n")
    }

    #[test]
    fn a_head_is_found_by_all_of_its_bytes() {
        let mut familiar = Familiar::default();
        let (plain, tagged) = (head(""), head("if-none-match: 7\r\nIf-None-Match: \"8\"\r\n"));
        for known in [&plain, &tagged] {
            assert!(familiar.find(known.as_bytes()).is_none());
            familiar.remember(known.as_bytes(), POLL);
        }
        let found = familiar.find(plain.as_bytes()).unwrap();
        assert_eq!((found.head_length, found.tags, found.poll), (plain.len(), None, POLL));
        let more = tagged.clone() + &plain;
        let found = familiar.find(more.as_bytes()).unwrap();
        assert_eq!((found.head_length, found.tags), (tagged.len(), Some(b"7,\"8\"".as_slice())));
        for other in [&plain[..plain.len() - 1], &plain.to_lowercase(), &head("A: b\r\n")] {
            assert!(familiar.find(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn as_few_are_remembered_as_can_be_compared() {
        let mut familiar = Familiar::default();
        let heads: Vec<String> = (0..HEADS_MAX + 2).map(|n| head(&format!("N: {n}\r\n"))).collect();
        heads.iter().for_each(|head| familiar.remember(head.as_bytes(), POLL));
        let found: Vec<bool> = heads.iter().map(|head| familiar.find(head.as_bytes()).is_some()).collect();
        assert_eq!(found, [vec![false; 2], vec![true; HEADS_MAX]].concat());
        familiar.remember(head(&"A: b\r\n".repeat(HEAD_BYTES_MAX)).as_bytes(), POLL);
        assert_eq!(familiar.known.len(), HEADS_MAX);
        assert!(familiar.find(heads[2].as_bytes()).is_some(), "one that is too long takes no place");
    }
}
