//! Heads that were read before.
//!
//! A client sends the same bytes every second, and so do all VMs with the same client. What a head says is a
//! function of its bytes and of nothing else, so a worker remembers how the last few plain polls were read and reads
//! one that begins with the very same bytes in the same way. Only the reading is remembered: who calls, how often
//! it may, what its document is and whether it has changed are found out for every request.
//!
//! A head is remembered when it comes for the second time within a few that are not known, so that one that changes
//! with every request takes no place from those that do not. Of the first time only a hash is kept. It takes the place
//! of one that has not come since its turn was last, so that a few heads too many do not drive each other out.

use std::hash::{BuildHasher, RandomState};

use notbefore_wire::guest::version::EventsVersion;

use super::answer::Persistence;
use super::head::{Head, Name};

/// How many heads are remembered: more than a fleet has different clients, few enough to compare with each.
const HEADS_MAX: usize = 8;
/// The longest head that is. Those of published clients have under 500 bytes.
pub(super) const HEAD_BYTES_MAX: usize = 512;

/// Of how many heads that were met and are not remembered it is known that they were met.
const MET_MAX: usize = 16;

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
    /// Whether it came since its place was last wanted.
    is_used: bool,
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
    /// Which one's place is wanted next.
    oldest: usize,
    /// Hashes of the last heads that were met and not remembered, and which one is forgotten next. Two that have the
    /// same do no harm: one is remembered a little early.
    met: [u64; MET_MAX],
    oldest_met: usize,
    hasher: RandomState,
}

impl Familiar {
    /// The head that the bytes begin with, if it was read before.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<Found<'_>> {
        // A head ends where it says it does: what comes after it changes nothing.
        let known = self.known.iter_mut().find(|known| bytes.starts_with(&known.head))?;
        known.is_used = true;
        Some(Found { head_length: known.head.len(), tags: known.tags.as_deref(), poll: known.poll })
    }

    /// A plain poll was read that was not known: `bytes` are its head's. The second time it is remembered.
    pub(super) fn meet(&mut self, bytes: &[u8], head: &Head<'_, '_>, poll: PlainPoll) {
        if bytes.len() > HEAD_BYTES_MAX {
            return;
        }
        let hash = self.hasher.hash_one(bytes);
        match self.met.contains(&hash) {
            true => self.remember(bytes, head, poll),
            false => {
                self.met[self.oldest_met] = hash;
                self.oldest_met = (self.oldest_met + 1) % MET_MAX;
            }
        }
    }

    /// Remembers how a head was read, if the next place is free or its head has not come lately.
    fn remember(&mut self, bytes: &[u8], head: &Head<'_, '_>, poll: PlainPoll) {
        let at = self.oldest;
        self.oldest = (at + 1) % HEADS_MAX;
        if let Some(known) = self.known.get_mut(at)
            && std::mem::take(&mut known.is_used)
        {
            return;
        }
        let tags: Vec<&[u8]> = head.all(Name::IfNoneMatch).collect();
        let tags = head.has(Name::IfNoneMatch).then(|| tags.join(&b',').into());
        let known = Known { head: bytes.into(), tags, poll, is_used: true };
        match self.known.get_mut(at) {
            Some(place) => *place = known,
            None => self.known.push(known),
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

    fn meet(familiar: &mut Familiar, text: &str) {
        let mut headers = head::room();
        let (head, length) = head::parse(text.as_bytes(), &mut headers).unwrap().unwrap();
        familiar.meet(&text.as_bytes()[..length], &head, POLL);
    }

    fn knows(familiar: &mut Familiar, head: &str) -> bool {
        familiar.find(head.as_bytes()).is_some()
    }

    #[test]
    fn a_head_is_found_by_all_of_its_bytes() {
        let mut familiar = Familiar::default();
        let (plain, tagged) = (head(""), head("if-none-match: 7\r\nIf-None-Match: \"8\"\r\n"));
        for known in [&plain, &tagged] {
            for _ in 0..2 {
                assert!(!knows(&mut familiar, known));
                meet(&mut familiar, known);
            }
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
        let heads: Vec<String> = (0..=HEADS_MAX).map(|n| head(&format!("N: {n}\r\n"))).collect();
        let (newer, older) = heads.split_last().unwrap();
        older.iter().for_each(|head| (0..2).for_each(|_| meet(&mut familiar, head)));
        assert!(older.iter().all(|head| knows(&mut familiar, head)));
        let long = head(&format!("A: {}\r\n", "b".repeat(HEAD_BYTES_MAX)));
        (0..2 * HEADS_MAX).for_each(|_| meet(&mut familiar, &long));
        assert!(!knows(&mut familiar, &long), "one that is too long takes no place");
        // As long as the older ones come no more.
        while !knows(&mut familiar, newer) {
            meet(&mut familiar, newer);
        }
        let found: Vec<bool> = heads.iter().map(|head| knows(&mut familiar, head)).collect();
        assert_eq!(found, [vec![false], vec![true; HEADS_MAX]].concat());
        assert_eq!(familiar.known.len(), HEADS_MAX);
    }

    #[test]
    fn one_too_many_does_not_drive_the_others_out() {
        let mut familiar = Familiar::default();
        let heads: Vec<String> = (0..=HEADS_MAX).map(|n| head(&format!("N: {n}\r\n"))).collect();
        let mut missed = Vec::new();
        for _ in 0..20 {
            missed.clear();
            for head in &heads {
                if !knows(&mut familiar, head) {
                    meet(&mut familiar, head);
                    missed.push(head);
                }
            }
        }
        assert_eq!(missed.len(), 1, "{missed:?}");
    }

    #[test]
    fn a_head_that_is_new_each_time_takes_no_place() {
        let mut familiar = Familiar::default();
        let usual = head("");
        meet(&mut familiar, &usual);
        meet(&mut familiar, &usual);
        for n in 0..100 {
            meet(&mut familiar, &head(&format!("If-None-Match: {n}\r\n")));
        }
        assert!(knows(&mut familiar, &usual) && familiar.known.len() == 1);
        // Two that take turns are both met again soon.
        let both = ["7", "8"].map(|tag| head(&format!("If-None-Match: \"{tag}\"\r\n")));
        for _ in 0..2 {
            both.iter().for_each(|head| meet(&mut familiar, head));
        }
        assert!(both.iter().all(|head| knows(&mut familiar, head)));
    }
}
