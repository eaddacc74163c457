//! One VM's polls: when it last polled, and which document it was last sent. What a poll does here is one
//! atomic store and one load.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jiff::{SignedDuration, Timestamp};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::delivery::Listening;

use crate::guest::rate::RateState;

/// For how long after a poll a VM counts as listening. The slowest published client polls once a minute; five
/// leave it room to be restarted.
pub const LISTENING_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Bits that hold a version's number.
const VERSION_BITS: u32 = 3;
const _: () = assert!(EventsVersion::ALL.len() <= 1 << VERSION_BITS);
/// Bits that hold a set of versions.
const VERSION_SET_BITS: usize = 8;
const _: () = assert!(EventsVersion::ALL.len() <= VERSION_SET_BITS);

/// What is known of a VM as a listener; by default that of a new VM: had it polled, we would know.
#[derive(Debug, Default)]
pub struct VmPolls {
    /// The last poll: milliseconds since 1970 over the version's number. 0 while there was none.
    polled: AtomicU64,
    /// The document it was last sent: its edition over the set of versions it was sent at. A VM may have two
    /// clients that ask at different versions; with a set, each is news once. 0 while there was none.
    sent: AtomicU64,
    /// How fast it has asked lately.
    rate_state: RateState,
}

/// In the place of the last poll: there was none, and there is a VM from before this process, which may have polled
/// then. No poll looks like it.
const POLLED_BEFORE_START: u64 = 1;

/// A VM's last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// When.
    pub at: Timestamp,
    /// At which version.
    pub version: EventsVersion,
}

impl VmPolls {
    /// Of a VM that was there before this process.
    pub fn polled_before_start() -> Self {
        Self { polled: AtomicU64::new(POLLED_BEFORE_START), ..Self::default() }
    }

    /// The same, in another place. What is noted in the first at this very moment is noted again at the next poll.
    pub fn copy(&self) -> Self {
        Self {
            polled: AtomicU64::new(self.polled.load(Relaxed)),
            sent: AtomicU64::new(self.sent.load(Relaxed)),
            rate_state: self.rate_state.copy(),
        }
    }

    /// How fast the VM has asked lately; limits are kept by it.
    pub fn rate_state(&self) -> &RateState {
        &self.rate_state
    }

    /// The VM polls.
    pub fn record_poll(&self, at: Timestamp, version: EventsVersion) {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
        self.polled.store(millis << VERSION_BITS | version.index() as u64, Relaxed);
    }

    /// The last poll, if there was one.
    pub fn last_poll(&self) -> Option<Poll> {
        let polled = self.polled.load(Relaxed);
        let version = usize::try_from(polled & ((1 << VERSION_BITS) - 1)).ok();
        let version = version.and_then(|index| EventsVersion::ALL.get(index).copied());
        let at = i64::try_from(polled >> VERSION_BITS).ok().filter(|millis| *millis > 0);
        let at = at.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        at.zip(version).map(|(at, version)| Poll { at, version })
    }

    /// Whether the VM was last sent this edition, and at this version too.
    pub fn has_sent(&self, edition: u64, version: EventsVersion) -> bool {
        let sent = self.sent.load(Relaxed);
        sent >> VERSION_SET_BITS == edition && sent >> version.index() & 1 == 1
    }

    /// The VM was sent this edition at this version. Of two polls at the same time one may be forgotten: it is
    /// noted once more then, which changes nothing.
    pub fn record_sent(&self, edition: u64, version: EventsVersion) {
        let sent = self.sent.load(Relaxed);
        let before = if sent >> VERSION_SET_BITS == edition { sent } else { edition << VERSION_SET_BITS };
        self.sent.store(before | 1 << version.index(), Relaxed);
    }

    /// Whether the VM listens at `now`. A poll that lies ahead was noted under a clock that was set back since:
    /// a little ahead is lately, far ahead is nothing to go by. The silence of a VM from before this process says
    /// nothing for a while: only `since` has there been anybody to hear it.
    pub fn listening(&self, now: Timestamp, since: Option<Timestamp>) -> Listening {
        let is_recent = |poll: Poll| now.duration_since(poll.at).abs() < LISTENING_TIMEOUT;
        let is_starting = || since.is_some_and(|since| now.duration_since(since) < LISTENING_TIMEOUT);
        if self.last_poll().is_some_and(is_recent) {
            Listening::Yes
        } else if self.polled.load(Relaxed) == POLLED_BEFORE_START && is_starting() {
            Listening::Unknown
        } else {
            Listening::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    #[test]
    fn vm_listens_for_five_minutes_after_poll() {
        let vm_polls = VmPolls::default();
        assert_eq!((vm_polls.last_poll(), vm_polls.listening(at(0), Some(at(0)))), (None, Listening::No));
        for version in EventsVersion::ALL {
            vm_polls.record_poll(at(0), version);
            assert_eq!(vm_polls.last_poll(), Some(Poll { at: at(0), version }));
        }
        assert_eq!(vm_polls.listening(at(0), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(299), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(300), Some(at(0))), Listening::No);
    }

    #[test]
    fn listening_is_unknown_for_five_minutes_after_start() {
        let vm_polls = VmPolls::polled_before_start();
        assert_eq!(vm_polls.listening(at(299), Some(at(0))), Listening::Unknown);
        assert_eq!(vm_polls.listening(at(300), Some(at(0))), Listening::No);
        vm_polls.record_poll(at(10), EventsVersion::NEWEST);
        assert_eq!(vm_polls.listening(at(11), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(310), Some(at(0))), Listening::No, "it was heard, and then no more");
    }

    #[test]
    fn each_version_of_an_edition_is_recorded_once() {
        let vm_polls = VmPolls::default();
        let [old, new] = [EventsVersion::V2017_03_01, EventsVersion::NEWEST];
        assert!(!vm_polls.has_sent(0, old) && !vm_polls.has_sent(7, old));
        vm_polls.record_sent(7, old);
        assert!(vm_polls.has_sent(7, old) && !vm_polls.has_sent(7, new));
        vm_polls.record_sent(7, new);
        assert!(vm_polls.has_sent(7, old) && vm_polls.has_sent(7, new), "two clients of one VM take turns");
        vm_polls.record_sent(5, new);
        assert!(vm_polls.has_sent(5, new) && !vm_polls.has_sent(5, old) && !vm_polls.has_sent(7, new));
    }

    #[test]
    fn wrong_clock_does_not_extend_listening() {
        let vm_polls = VmPolls::default();
        vm_polls.record_poll(at(200), EventsVersion::NEWEST);
        assert_eq!(vm_polls.listening(at(0), Some(at(0))), Listening::Yes, "set back a little");
        assert_eq!(vm_polls.listening(at(-100), Some(at(0))), Listening::No, "it was a year ahead, say");
        vm_polls.record_poll("1960-01-01T00:00:00Z".parse().unwrap(), EventsVersion::NEWEST);
        assert_eq!(vm_polls.last_poll(), None, "no such time in the slot, and no panic");
    }
}
