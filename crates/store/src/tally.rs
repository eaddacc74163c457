//! Tallies: how many records of a kind there are, and which.
//!
//! A checksum shows that a record is as it was written, not that it is the one written last: after a lost write, a page
//! of the file holds what an older commit wrote, and all of it is valid. So each commit also writes, for each kind, the
//! number of its records and the sum of a hash of each one's key and revision. A revision is used once, so key and
//! revision stand for the value.
//!
//! The sum wraps, so that a record can be taken out again. The hash is not linear: with CRCs or XOR, the change of one
//! record could cancel that of another.

use std::collections::{BTreeMap, BTreeSet};

use crate::Revision;

/// The number of records of a kind, and the wrapping sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub count: u64,
    pub sum: u64,
}

impl Tally {
    /// Adds a record.
    pub fn add(&mut self, key: &str, revision: Revision) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash(key, revision));
    }

    /// Takes a record out.
    fn remove(&mut self, key: &str, revision: Revision) {
        self.count = self.count.saturating_sub(1);
        self.sum = self.sum.wrapping_sub(hash(key, revision));
    }
}

/// A fixed hash of a record's key and revision; it is part of the file's format.
fn hash(key: &str, revision: Revision) -> u64 {
    mix(mix(crc32c::crc32c(key.as_bytes()).into()) ^ revision.0)
}

/// The finalizer of SplitMix64, after its increment: a bijection in which each bit changes about half of the others.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The tally of each kind that has records. The kind is the key up to its first slash, or empty for keys without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies(BTreeMap<String, Tally>);

impl Tallies {
    /// The tally of a kind; zero if it has no records.
    pub fn of(&self, kind: &str) -> Tally {
        self.0.get(kind).copied().unwrap_or_default()
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.0.iter().map(|(kind, tally)| (kind.as_str(), *tally))
    }

    /// The number of records of all kinds.
    pub(crate) fn records(&self) -> u64 {
        self.0.values().map(|tally| tally.count).sum()
    }

    /// Adds a record.
    pub fn add(&mut self, key: &str, revision: Revision) {
        self.change(key, |tally| tally.add(key, revision));
    }

    /// Takes a record out.
    pub(crate) fn remove(&mut self, key: &str, revision: Revision) {
        self.change(key, |tally| tally.remove(key, revision));
    }

    /// The kinds whose records are not those that were written.
    pub fn mismatches(&self, written: &Self) -> Vec<TallyMismatch> {
        let kinds: BTreeSet<&String> = self.0.keys().chain(written.0.keys()).collect();
        kinds
            .into_iter()
            .map(|kind| TallyMismatch { kind: kind.clone(), found: self.of(kind), written: written.of(kind) })
            .filter(|mismatch| mismatch.found != mismatch.written)
            .collect()
    }

    fn change(&mut self, key: &str, change: impl FnOnce(&mut Tally)) {
        let kind = kind_of(key);
        match self.0.get_mut(kind) {
            Some(tally) => {
                change(tally);
                // Without records there is nothing to compare.
                if tally.count == 0 {
                    self.0.remove(kind);
                }
            }
            None => change(self.0.entry(kind.to_owned()).or_default()),
        }
    }
}

/// A kind of record whose tally is not as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyMismatch {
    pub kind: String,
    pub found: Tally,
    pub written: Tally,
}

impl FromIterator<(String, Tally)> for Tallies {
    fn from_iter<I: IntoIterator<Item = (String, Tally)>>(tallies: I) -> Self {
        Self(tallies.into_iter().collect())
    }
}

fn kind_of(key: &str) -> &str {
    key.find('/').and_then(|slash| key.get(..=slash)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_record_is_fixed() {
        // The first outputs of SplitMix64 with seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(hash("scope/web", Revision(7)), mix(mix(u64::from(crc32c::crc32c(b"scope/web"))) ^ 7));
    }

    #[test]
    fn tallies_follow_records() {
        let mut tallies = Tallies::default();
        for (key, revision) in [("scope/a", 1), ("vm/a", 1), ("alive", 2), ("scope/b", 3)] {
            tallies.add(key, Revision(revision));
        }
        let before = tallies.clone();
        tallies.remove("scope/a", Revision(1));
        tallies.add("scope/a", Revision(4));
        assert_eq!(tallies.of("scope/").count, 2);
        assert_ne!(tallies.of("scope/").sum, before.of("scope/").sum);
        assert_eq!(tallies.of("vm/"), before.of("vm/"));
        tallies.remove("scope/a", Revision(4));
        tallies.add("scope/a", Revision(1));
        assert_eq!(tallies, before);
        tallies.remove("vm/a", Revision(1));
        assert_eq!(tallies.of("vm/"), Tally::default());
        let kinds: Vec<(&str, u64)> = tallies.kinds().map(|(kind, tally)| (kind, tally.count)).collect();
        assert_eq!(kinds, [("", 1), ("scope/", 2)]);
    }

    /// With a linear hash, two records that went back to older revisions could cancel each other.
    #[test]
    fn older_revisions_of_several_records_do_not_cancel() {
        let mut sums = BTreeSet::new();
        for [a, b, c] in (0..1_000).map(|n: u64| [n % 10, n / 10 % 10, n / 100]) {
            let mut tally = Tally::default();
            for (key, revision) in [("scope/a", a), ("scope/b", b), ("scope/c", c)] {
                tally.add(key, Revision(revision));
            }
            assert!(sums.insert(tally.sum), "{a} {b} {c}");
        }
    }
}
