//! Timestamp arithmetic. This module does not read the clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Rounds up to whole seconds. Guests see NotBefore in whole seconds; rounding up never shows an earlier time than
/// the promised notice.
pub fn round_up(at: Timestamp) -> Timestamp {
    let whole = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second(whole).unwrap_or(Timestamp::MAX)
}

/// `at + span`, saturating.
pub fn after(at: Timestamp, span: Duration) -> Timestamp {
    SignedDuration::try_from(span).ok().and_then(|span| at.checked_add(span).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_keeps_whole_seconds_and_never_goes_back() {
        let whole: Timestamp = "2016-09-19T18:29:47Z".parse().unwrap();
        assert_eq!(round_up(whole), whole);
        assert_eq!(round_up("2016-09-19T18:29:46.000000001Z".parse().unwrap()), whole);
        assert_eq!(round_up("1969-12-31T23:59:58.5Z".parse().unwrap()).as_second(), -1);
        assert_eq!(round_up(Timestamp::MAX), Timestamp::MAX);
    }

    #[test]
    fn adding_stops_at_the_end_of_time() {
        assert_eq!(after(Timestamp::MAX, Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(after(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(after(Timestamp::UNIX_EPOCH, Duration::from_secs(2)).as_second(), 2);
    }
}
