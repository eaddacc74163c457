//! Poll slot of one VM: its last poll and the last document it was sent. A poll costs one atomic store and one load.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jiff::{SignedDuration, Timestamp};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::Listening;

use crate::guest::client::CLIENT_BITS;
use crate::guest::rate::RateState;

/// How long after a poll a VM counts as listening. The slowest published client polls once a minute; five minutes allow
/// for its restart.
pub const LISTENING_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

const LISTENING_TIMEOUT_MS: u64 = LISTENING_TIMEOUT.as_secs() as u64 * 1_000;

/// Bits of a version's number.
const VERSION_BITS: u32 = 3;
const _: () = assert!(EventsVersion::ALL.len() <= 1 << VERSION_BITS);
/// Bits below the time of a poll. The time has 48, which are enough for all years of [`Timestamp`].
const BELOW_TIME_BITS: u32 = VERSION_BITS + CLIENT_BITS;
const _: () = assert!(BELOW_TIME_BITS == 16);
const CLIENT_MASK: u64 = (1 << BELOW_TIME_BITS) - (1 << VERSION_BITS);
/// Bits of a set of versions.
const VERSION_SET_BITS: usize = 8;
const _: () = assert!(EventsVersion::ALL.len() <= VERSION_SET_BITS);

/// The poll slot of a VM. The default is for a VM added after the start: it has not polled.
#[derive(Debug, Default)]
pub struct VmPolls {
    /// From the upper to the lower bits: milliseconds from 1970 to the last poll,
    /// [`Client::number`](crate::guest::client::Client::number) of the last client that was noticed, and the number of
    /// the poll's version. 0: none.
    polled: AtomicU64,
    /// The last document sent: its edition in the upper bits, the set of versions in the lower. 0: none. A set, because
    /// two clients of a VM may poll at different versions; each version is noted once.
    sent: AtomicU64,
    /// State of the VM's rate limit.
    rate_state: RateState,
}

/// Value of `polled` without a poll for a VM from before this process, which may have polled then. No poll has this
/// value.
const POLLED_BEFORE_START: u64 = 1;

/// A VM's last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// When it arrived.
    pub at: Timestamp,
    /// Its api-version.
    pub version: EventsVersion,
}

impl VmPolls {
    /// The slot of a VM from before this process.
    pub fn polled_before_start() -> Self {
        Self { polled: AtomicU64::new(POLLED_BEFORE_START), ..Self::default() }
    }

    /// A separate slot with the same values. A note made in the first at the same time is made again at the next poll.
    pub fn copy(&self) -> Self {
        Self {
            polled: AtomicU64::new(self.polled.load(Relaxed)),
            sent: AtomicU64::new(self.sent.load(Relaxed)),
            rate_state: self.rate_state.copy(),
        }
    }

    /// State of the VM's rate limit.
    pub fn rate_state(&self) -> &RateState {
        &self.rate_state
    }

    /// Whether polls of this client continue: it was the last to be noticed, and the VM listens at `now`. Call it before
    /// the poll is recorded.
    pub fn is_continued_by(&self, client: u16, now: Timestamp) -> bool {
        let polled = self.polled.load(Relaxed);
        let millis = u64::try_from(now.as_millisecond()).unwrap_or_default();
        // Threads take `now` at different times, so the last poll may be a little later.
        let gap = millis.abs_diff(polled >> BELOW_TIME_BITS);
        polled & CLIENT_MASK == u64::from(client) << VERSION_BITS && gap < LISTENING_TIMEOUT_MS
    }

    /// Records that polls of a client begin; call it before the first of them is recorded. Of two concurrent calls one
    /// may be lost: its client is noticed again, which is harmless.
    pub fn record_client(&self, client: u16) {
        let polled = self.polled.load(Relaxed);
        self.polled.store(polled & !CLIENT_MASK | u64::from(client) << VERSION_BITS, Relaxed);
    }

    /// Records a poll.
    pub fn record_poll(&self, at: Timestamp, version: EventsVersion) {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
        let client = self.polled.load(Relaxed) & CLIENT_MASK;
        self.polled.store(millis << BELOW_TIME_BITS | client | version.index() as u64, Relaxed);
    }

    /// Records a poll at another node, if it is later than those known.
    pub fn record_poll_elsewhere(&self, poll: Poll) {
        let millis = u64::try_from(poll.at.as_millisecond()).unwrap_or_default();
        let polled = self.polled.load(Relaxed);
        if millis > polled >> BELOW_TIME_BITS {
            let new = millis << BELOW_TIME_BITS | polled & CLIENT_MASK | poll.version.index() as u64;
            // Fails if the VM polls this node at the same time, which is later.
            let _ = self.polled.compare_exchange(polled, new, Relaxed, Relaxed);
        }
    }

    /// The last poll, if there was one.
    pub fn last_poll(&self) -> Option<Poll> {
        let polled = self.polled.load(Relaxed);
        let version = usize::try_from(polled & ((1 << VERSION_BITS) - 1)).ok();
        let version = version.and_then(|index| EventsVersion::ALL.get(index).copied());
        let at = i64::try_from(polled >> BELOW_TIME_BITS).ok().filter(|millis| *millis > 0);
        let at = at.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        at.zip(version).map(|(at, version)| Poll { at, version })
    }

    /// Whether the last document sent to the VM has this edition, and was sent at this version.
    pub fn has_sent(&self, edition: u64, version: EventsVersion) -> bool {
        let sent = self.sent.load(Relaxed);
        sent >> VERSION_SET_BITS == edition && sent >> version.index() & 1 == 1
    }

    /// Records that the VM was sent this edition at this version. Of two concurrent calls one may be lost: it is noted
    /// again, which is harmless.
    pub fn record_sent(&self, edition: u64, version: EventsVersion) {
        let sent = self.sent.load(Relaxed);
        let before = if sent >> VERSION_SET_BITS == edition { sent } else { edition << VERSION_SET_BITS };
        self.sent.store(before | 1 << version.index(), Relaxed);
    }

    /// Whether the VM is listening at `now`. A poll in the future was recorded before the clock was set back: slightly
    /// ahead counts as recent, far ahead is ignored. For a VM from before this process, the result is unknown until it
    /// had time to poll after `since`.
    pub fn listening(&self, now: Timestamp, since: Option<Timestamp>) -> Listening {
        let is_recent = |poll: Poll| now.duration_since(poll.at).abs() < LISTENING_TIMEOUT;
        let is_starting = || since.is_some_and(|since| now.duration_since(since) < LISTENING_TIMEOUT);
        if self.last_poll().is_some_and(is_recent) {
            Listening::Yes
        } else if self.polled.load(Relaxed) == POLLED_BEFORE_START && is_starting() {
            Listening::Unclear
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
            let last = "9999-12-30T22:00:00Z".parse().unwrap();
            for at in [last, at(0)] {
                vm_polls.record_poll(at, version);
                assert_eq!(vm_polls.last_poll(), Some(Poll { at, version }));
            }
        }
        assert_eq!(vm_polls.listening(at(0), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(299), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(300), Some(at(0))), Listening::No);
    }

    #[test]
    fn listening_is_unknown_for_five_minutes_after_start() {
        let vm_polls = VmPolls::polled_before_start();
        assert_eq!(vm_polls.listening(at(299), Some(at(0))), Listening::Unclear);
        assert_eq!(vm_polls.listening(at(300), Some(at(0))), Listening::No);
        vm_polls.record_poll(at(10), EventsVersion::NEWEST);
        assert_eq!(vm_polls.listening(at(11), Some(at(0))), Listening::Yes);
        assert_eq!(vm_polls.listening(at(310), Some(at(0))), Listening::No, "it polled, then stopped");
    }

    #[test]
    fn each_version_of_an_edition_is_recorded_once() {
        let vm_polls = VmPolls::default();
        let [old, new] = [EventsVersion::V2017_03_01, EventsVersion::NEWEST];
        assert!(!vm_polls.has_sent(0, old) && !vm_polls.has_sent(7, old));
        vm_polls.record_sent(7, old);
        assert!(vm_polls.has_sent(7, old) && !vm_polls.has_sent(7, new));
        vm_polls.record_sent(7, new);
        assert!(vm_polls.has_sent(7, old) && vm_polls.has_sent(7, new), "two clients of one VM alternate");
        vm_polls.record_sent(5, new);
        assert!(vm_polls.has_sent(5, new) && !vm_polls.has_sent(5, old) && !vm_polls.has_sent(7, new));
    }

    #[test]
    fn polls_of_a_client_begin_once_until_it_changes_or_pauses() {
        let vm_polls = VmPolls::polled_before_start();
        assert!(!vm_polls.is_continued_by(7, at(0)), "the first");
        vm_polls.record_client(7);
        vm_polls.record_poll(at(0), EventsVersion::NEWEST);
        assert!(vm_polls.is_continued_by(7, at(299)) && vm_polls.copy().is_continued_by(7, at(299)));
        assert!(!vm_polls.is_continued_by(8, at(1)), "another client");
        assert!(!vm_polls.is_continued_by(7, at(300)), "after five minutes");
        assert!(!vm_polls.is_continued_by(7, at(-300)), "the clock was set back far");
        assert!(vm_polls.is_continued_by(7, at(-1)), "another thread's clock");
    }

    #[test]
    fn poll_elsewhere_counts_if_it_is_later() {
        let vm_polls = VmPolls::polled_before_start();
        let [old, new] = [EventsVersion::V2017_03_01, EventsVersion::NEWEST];
        vm_polls.record_poll_elsewhere(Poll { at: at(5), version: old });
        assert_eq!(vm_polls.last_poll(), Some(Poll { at: at(5), version: old }));
        assert_eq!(vm_polls.listening(at(6), None), Listening::Yes);
        vm_polls.record_client(7);
        vm_polls.record_poll(at(9), new);
        vm_polls.record_poll_elsewhere(Poll { at: at(8), version: old });
        assert_eq!(vm_polls.last_poll(), Some(Poll { at: at(9), version: new }));
        vm_polls.record_poll_elsewhere(Poll { at: at(10), version: old });
        assert!(vm_polls.last_poll().unwrap().at == at(10) && vm_polls.is_continued_by(7, at(11)));
    }

    #[test]
    fn wrong_clock_does_not_extend_listening() {
        let vm_polls = VmPolls::default();
        vm_polls.record_poll(at(200), EventsVersion::NEWEST);
        assert_eq!(vm_polls.listening(at(0), Some(at(0))), Listening::Yes, "clock set back a little");
        assert_eq!(vm_polls.listening(at(-100), Some(at(0))), Listening::No, "clock set back far");
        vm_polls.record_poll("1960-01-01T00:00:00Z".parse().unwrap(), EventsVersion::NEWEST);
        assert_eq!(vm_polls.last_poll(), None, "an unrepresentable time is ignored");
    }
}
