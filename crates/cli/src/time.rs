//! Times and spans as people write and read them: `20m`, `in 14 min`, `3 min ago`.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::clock::Clock;

/// What time it is, for showing how far away things are.
pub fn now() -> Timestamp {
    Clock::start().now().wall
}

pub use notbefore_settings::span::parse as parse_duration;

/// Reads a time with its zone.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("{text:?} is no time; write 2026-11-20T08:00:00Z, or say --in 20m"))
}

/// A time in the past: so long ago, or the time itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ago {
    /// So long before now.
    Span(Duration),
    /// Then.
    At(Timestamp),
}

impl Ago {
    /// The time that is meant.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Span(span) => now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH),
            Self::At(at) => at,
        }
    }
}

/// Reads a span or a time.
pub fn parse_ago(text: &str) -> Result<Ago, String> {
    let wrong = || format!("{text:?} is neither a span nor a time; write 7d, or 2026-11-20T08:00:00Z");
    let at = || text.parse().map(Ago::At).map_err(|_| wrong());
    parse_duration(text).map(Ago::Span).or_else(|_| at())
}

/// How far away a time is: `in 14 min`, `2 h ago`, `now`.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.as_second() - now.as_second();
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {}", span(seconds.unsigned_abs())),
        _ => format!("{} ago", span(seconds.unsigned_abs())),
    }
}

/// How far a time is from now.
pub fn from_now(at: Timestamp) -> String {
    relative(at, now())
}

/// A time, and how far it is from now.
pub fn and_from_now(at: Timestamp) -> String {
    format!("{at} ({})", from_now(at))
}

/// A span, to its two largest units at most: `45 s`, `14 min`, `2 h 5 min`, `6 d 23 h`.
pub fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, m) if m < 5 && !seconds.is_multiple_of(60) => format!("{m} min {} s", seconds % 60),
        (0, 0, m) => format!("{m} min"),
        (0, h, 0) => format!("{h} h"),
        (0, h, m) => format!("{h} h {m} min"),
        (d, 0, _) => format!("{d} d"),
        (d, h, _) => format!("{d} d {h} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ago_parses_span_or_time() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        assert_eq!(parse_ago("1m").map(|ago| ago.at(now).as_second()), Ok(999_940));
        assert_eq!(parse_ago("1970-01-01T00:00:09Z").map(|ago| ago.at(now).as_second()), Ok(9));
        assert!(parse_ago("yesterday").unwrap_err().contains("write 7d"));
    }

    #[test]
    fn relative_times() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let at = |seconds: i64| relative(Timestamp::from_second(1_000_000 + seconds).unwrap(), now);
        assert_eq!(at(0), "now");
        assert_eq!(at(45), "in 45 s");
        assert_eq!(at(899), "in 14 min");
        assert_eq!(at(-130), "2 min 10 s ago");
        assert_eq!(at(7_500), "in 2 h 5 min");
        assert_eq!(at(604_799), "in 6 d 23 h");
    }
}
