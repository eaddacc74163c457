//! Rate limit of the log lines that guests and events cause. Pure: the time is an argument.
//!
//! | lines | limit |
//! |---|---|
//! | all | [`LINES_PER_SECOND`], of which the last two are for the numbers of hidden lines |
//! | refused requests | `REFUSALS_PER_SECOND`, so that guests do not hide what happens to events |
//! | refused requests of callers that are no VM | `UNKNOWN_CALLERS_PER_SECOND`, so that they do not hide those of VMs |
//! | one source and one reason | `LINES_PER_SOURCE` in a minute |
//!
//! Hidden lines are counted: those of events are reported after each second, refused requests after each minute. A
//! client that is refused at every poll therefore causes a few lines a minute.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::VmId;

pub const LINES_PER_SECOND: u32 = 50;
const REFUSALS_PER_SECOND: u32 = 20;
const UNKNOWN_CALLERS_PER_SECOND: u32 = 10;
const LINES_PER_SOURCE: u32 = 3;
/// Lines with numbers of hidden lines, at most one of each kind in a second.
const SUMMARIES: u32 = 2;
/// Seconds. A clock that is set back by more begins a new second; a request is never that late.
const SET_BACK_MIN: i64 = 300;

/// The source of a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Vm(VmId),
    /// A caller that is no VM. Addresses of one IPv6 /64 are one source.
    UnknownCaller(IpAddr),
}

impl Source {
    pub fn unknown_caller(address: IpAddr) -> Self {
        Self::UnknownCaller(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let prefix = u128::from(address) >> 64 << 64;
                IpAddr::V6(prefix.into())
            }
        })
    }
}

/// Numbers of hidden lines that are due to be reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    pub events: u64,
    pub refusals: u64,
}

#[derive(Debug, Default)]
pub struct LineLimit {
    second: i64,
    written: u32,
    refusals: u32,
    unknown_callers: u32,
    minute: i64,
    /// Lines of this minute by source and reason. It has an entry for a written line only, so its size is bounded.
    by_source: HashMap<(Source, &'static str), u32>,
    hidden_events: u64,
    hidden_refusals: u64,
    due: Hidden,
}

impl LineLimit {
    /// Whether to write a line about an event; if not, it is counted.
    pub fn admit_event(&mut self, now: Timestamp) -> bool {
        self.advance(now);
        let is_admitted = self.written < LINES_PER_SECOND - SUMMARIES;
        match is_admitted {
            true => self.written += 1,
            false => self.hidden_events += 1,
        }
        is_admitted
    }

    /// Whether to write a line about a refused request; if not, it is counted.
    pub fn admit_refusal(&mut self, source: Source, reason: &'static str, now: Timestamp) -> bool {
        self.advance(now);
        let is_unknown = matches!(source, Source::UnknownCaller(_));
        let has_room = self.written < LINES_PER_SECOND - SUMMARIES
            && self.refusals < REFUSALS_PER_SECOND
            && !(is_unknown && self.unknown_callers == UNKNOWN_CALLERS_PER_SECOND);
        if has_room {
            let lines = self.by_source.entry((source, reason)).or_default();
            if *lines < LINES_PER_SOURCE {
                *lines += 1;
                self.written += 1;
                self.refusals += 1;
                self.unknown_callers += u32::from(is_unknown);
                return true;
            }
        }
        self.hidden_refusals += 1;
        false
    }

    /// Counts a refused request whose line could not be written.
    pub fn hide_refusal(&mut self) {
        self.hidden_refusals += 1;
    }

    /// The numbers of hidden lines to report now. Call it once a second.
    pub fn take_hidden(&mut self, now: Timestamp) -> Hidden {
        self.advance(now);
        std::mem::take(&mut self.due)
    }

    /// The numbers of all hidden lines, for the end of the process.
    pub fn take_all_hidden(&mut self) -> Hidden {
        let due = std::mem::take(&mut self.due);
        Hidden {
            events: due.events + std::mem::take(&mut self.hidden_events),
            refusals: due.refusals + std::mem::take(&mut self.hidden_refusals),
        }
    }

    /// Begins a new second or minute. Threads may be out of order, and a request has the time of its head, which a guest
    /// can choose by a slow body; so an earlier second counts as the present one, unless the clock was set back.
    fn advance(&mut self, now: Timestamp) {
        let is_late = |second: i64| (1..=SET_BACK_MIN).contains(&(self.second - second));
        let second = Some(now.as_second()).filter(|second| !is_late(*second)).unwrap_or(self.second);
        if second != self.second {
            (self.second, self.written, self.refusals, self.unknown_callers) = (second, 0, 0, 0);
            self.due.events += std::mem::take(&mut self.hidden_events);
        }
        let minute = second.div_euclid(60);
        if minute != self.minute {
            self.minute = minute;
            self.by_source.clear();
            self.due.refusals += std::mem::take(&mut self.hidden_refusals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use notbefore_core::samples::vm;

    /// Ten milliseconds each, from the beginning of a minute.
    fn at(hundredths: i64) -> Timestamp {
        Timestamp::from_second(60_000_000).unwrap() + SignedDuration::from_millis(hundredths * 10)
    }

    fn unknown_caller(n: u32) -> Source {
        Source::unknown_caller(IpAddr::V4(n.into()))
    }

    #[test]
    fn any_flood_writes_at_most_fifty_lines_a_second() {
        let mut limit = LineLimit::default();
        let (mut written, mut hidden) = (0, 0);
        for second in 0..180 {
            let mut lines = 0;
            for hundredth in 0..100 {
                let now = at(second * 100 + hundredth);
                for n in 0..20 {
                    let source = u32::try_from(second * 2_000 + hundredth * 20 + n).unwrap();
                    lines += u64::from(limit.admit_refusal(unknown_caller(source), "unknown_caller", now));
                    lines += u64::from(limit.admit_refusal(Source::Vm(vm(n as u128)), "not_found", now));
                    lines += u64::from(limit.admit_event(now));
                }
                if hundredth == 50 {
                    let due = limit.take_hidden(now);
                    hidden += due.events + due.refusals;
                    lines += u64::from(due.events > 0) + u64::from(due.refusals > 0);
                    written -= i64::from(due.events > 0) + i64::from(due.refusals > 0);
                }
            }
            assert!(lines <= u64::from(LINES_PER_SECOND), "{lines} lines in second {second}");
            written += i64::try_from(lines).unwrap();
            assert!(limit.by_source.len() <= 60 * REFUSALS_PER_SECOND as usize);
        }
        let rest = limit.take_all_hidden();
        let all = u64::try_from(written).unwrap() + hidden + rest.events + rest.refusals;
        assert_eq!(all, 180 * 100 * 60, "every line is written or counted");
    }

    #[test]
    fn source_has_three_lines_a_minute_for_each_reason() {
        let mut limit = LineLimit::default();
        let mut lines = |source, reason, from: i64, to: i64| {
            (from..to).filter(|second| limit.admit_refusal(source, reason, at(second * 100))).count()
        };
        assert_eq!(lines(Source::Vm(vm(1)), "not_found", 0, 50), 3);
        assert_eq!(lines(Source::Vm(vm(1)), "unknown_event", 50, 51), 1, "another reason");
        assert_eq!(lines(Source::Vm(vm(2)), "not_found", 51, 52), 1, "another source");
        assert_eq!(lines(Source::Vm(vm(1)), "not_found", 52, 60), 0);
        assert_eq!(lines(Source::Vm(vm(1)), "not_found", 60, 120), 3, "the next minute");
        assert_eq!(limit.take_hidden(at(11_900)), Hidden { events: 0, refusals: 55 }, "of the first minute");
        assert_eq!(limit.take_hidden(at(11_900)), Hidden::default());
        assert_eq!(limit.take_hidden(at(12_000)), Hidden { events: 0, refusals: 57 });
    }

    #[test]
    fn refusals_leave_room_for_events_and_unknown_callers_for_vms() {
        let mut limit = LineLimit::default();
        let unknown = (0..100).filter(|n| limit.admit_refusal(unknown_caller(*n), "unknown_caller", at(0)));
        assert_eq!(unknown.count(), 10);
        let vms = (0..100).filter(|n| limit.admit_refusal(Source::Vm(vm(*n)), "not_found", at(0)));
        assert_eq!(vms.count(), 10);
        assert_eq!((0..100).filter(|_| limit.admit_event(at(0))).count(), 28);
        assert_eq!(limit.take_hidden(at(99)), Hidden::default(), "the second is not over");
        assert_eq!(limit.take_hidden(at(100)), Hidden { events: 72, refusals: 0 });
    }

    #[test]
    fn late_requests_do_not_reset_the_limit() {
        let mut limit = LineLimit::default();
        let times = [60_000, 59_900].into_iter().cycle().take(200);
        let written = times.filter(|time| limit.admit_refusal(Source::Vm(vm(1)), "not_found", at(*time)));
        assert_eq!(written.count(), 3);
        assert!(limit.admit_refusal(Source::Vm(vm(1)), "not_found", at(20_000)), "the clock was set back");
    }

    #[test]
    fn addresses_of_one_ipv6_prefix_are_one_source() {
        let source = |text: &str| Source::unknown_caller(text.parse().unwrap());
        assert_eq!(source("fd00:7::1"), source("fd00:7::ffff:1"));
        assert_ne!(source("fd00:7::1"), source("fd00:7:0:1::1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    }
}
