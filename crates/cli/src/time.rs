//! Parsing and formatting of times and spans: `20m`, `tomorrow 02:00`, `in 14 min`, `3 min ago`.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use notbefore_client::clock::Clock;

/// The current time, for relative times.
pub fn now() -> Timestamp {
    Clock::start().now().wall
}

pub use notbefore_settings::span::parse as parse_duration;

/// Parses a time: RFC 3339, a date with or without a time of day, or `today`, `tomorrow` or `yesterday` with or without
/// one. Without an offset it is UTC, as every time that is printed.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    time_at(text, now()).ok_or_else(|| match without_minus(text) {
        Some(example) => format!("{text:?} is in the past; type --in {example} for that long from now"),
        None => format!(
            "invalid time {text:?}; write 2026-11-20T08:00:00Z, 2026-11-20, '2026-11-20 08:00' or 'tomorrow 02:00' (UTC), or use --in 20m"
        ),
    })
}

fn time_at(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let (day, clock) = text.split_once(' ').unwrap_or((text, "00:00"));
    // `8:00` is 08:00.
    let hour_digits = clock.trim().find(':').unwrap_or_default();
    let clock = format!("{}{}", if hour_digits == 1 { "0" } else { "" }, clock.trim());
    let today = Offset::UTC.to_datetime(now).date();
    let date = match day.to_ascii_lowercase().as_str() {
        "today" => Some(today),
        "tomorrow" => today.tomorrow().ok(),
        "yesterday" => today.yesterday().ok(),
        _ => None,
    };
    let whole = match date {
        Some(date) => format!("{date}T{clock}"),
        None if day == text => text.to_owned(),
        None => format!("{day}T{clock}"),
    };
    if let Ok(at) = whole.parse() {
        return Some(at);
    }
    // An offset or zone that is not understood must not be ignored, as the parser of civil times does.
    let has_zone = whole.contains(['[', '+', 'Z']) || clock.contains('-');
    let at = whole.parse::<DateTime>().ok().filter(|_| !has_zone)?;
    Offset::UTC.to_timestamp(at).ok()
}

/// Parses an expected interruption in seconds, as guests read it: a span, or -1 if it is unknown.
pub fn parse_interruption(text: &str) -> Result<i32, String> {
    if ["-1", "unknown"].contains(&text) {
        return Ok(-1);
    }
    let seconds = parse_duration(text).ok().and_then(|span| i32::try_from(span.as_secs()).ok());
    seconds.ok_or_else(|| format!("{text:?} is not a duration; write 9s, 2m, or -1 if it is unknown"))
}

/// A time in the past, relative or absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ago {
    Span(Duration),
    At(Timestamp),
}

impl Ago {
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Span(span) => now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH),
            Self::At(at) => at,
        }
    }
}

pub fn parse_ago(text: &str) -> Result<Ago, String> {
    if let Some(example) = without_minus(text) {
        return Err(format!("{text:?} has a minus sign; type {example} for that long ago"));
    }
    let wrong =
        || format!("invalid span or time {text:?}; write 7d, 2026-11-20, yesterday or 2026-11-20T08:00:00Z");
    parse_duration(text).map(Ago::Span).or_else(|_| time_at(text, now()).map(Ago::At).ok_or_else(wrong))
}

/// How long from now. A span with a minus sign gets here, so that the error can say what to type.
pub fn parse_ahead(text: &str) -> Result<Duration, String> {
    let Some(example) = without_minus(text) else { return parse_duration(text) };
    Err(format!("{text:?} is in the past; type --in {example}, without a minus sign"))
}

/// A length of time, which has no direction.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let Some(example) = without_minus(text) else { return parse_duration(text) };
    Err(format!("{text:?} is negative; type {example}, without a minus sign"))
}

/// What to type in place of a span with a minus sign, or of a flag where a value is missing.
fn without_minus(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    Some(if parse_duration(rest).is_ok() { rest } else { "5m" })
}

/// A time relative to `now`: `in 14 min`, `2 h ago`, `now`.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.as_second() - now.as_second();
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {}", span(seconds.unsigned_abs())),
        _ => format!("{} ago", span(seconds.unsigned_abs())),
    }
}

/// The time zone of `--local-time`.
static LOCAL: OnceLock<TimeZone> = OnceLock::new();

/// Shows times in this machine's time zone from now on.
pub fn use_local() {
    LOCAL.get_or_init(TimeZone::system);
}

/// A time in a list: relative to `now`, or local time if that is requested.
pub fn from(at: Timestamp, now: Timestamp) -> String {
    LOCAL.get().map_or_else(|| relative(at, now), |zone| local(at, zone))
}

pub fn from_now(at: Timestamp) -> String {
    from(at, now())
}

/// Two times in a list; the second is not the earlier one.
pub fn range_from(first: Timestamp, last: Timestamp, now: Timestamp) -> String {
    let [first, last] = [first, last].map(|at| from(at, now));
    if first == last { first } else { format!("{first} to {}", last.trim_start_matches("in ")) }
}

/// An absolute time: UTC, or local time if that is requested.
pub fn absolute(at: Timestamp) -> String {
    LOCAL.get().map_or_else(|| at.to_string(), |zone| local(at, zone))
}

/// An absolute time, with the time relative to `now` in parentheses.
pub fn and_from(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", absolute(at), relative(at, now))
}

pub fn and_from_now(at: Timestamp) -> String {
    and_from(at, now())
}

/// An absolute time in whole seconds.
pub fn seconds(at: Timestamp) -> String {
    LOCAL.get().map_or_else(|| format!("{at:.0}"), |zone| local(at, zone))
}

/// An absolute time in milliseconds.
pub fn milliseconds(at: Timestamp) -> String {
    LOCAL.get().map_or_else(|| format!("{at:.3}"), |zone| local_milliseconds(at, zone))
}

/// Text of the service or the agent: its UTC times as local times, if that is requested.
pub fn in_text(text: &str) -> String {
    LOCAL.get().map_or_else(|| text.to_owned(), |zone| localised(text, zone))
}

fn localised(text: &str, zone: &TimeZone) -> String {
    let word = |word: &str| {
        let core = word.trim_matches([' ', ',', ';', '.', ':', '(', ')']);
        let at = core.parse::<Timestamp>().ok();
        at.map_or_else(|| word.to_owned(), |at| word.replace(core, &local(at, zone)))
    };
    text.split_inclusive(' ').map(word).collect()
}

/// A time in a zone, with the offset, in whole seconds.
fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
}

fn local_milliseconds(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f%:z").to_string()
}

/// A span with at most its two largest units: `45 s`, `14 min`, `2 h 5 min`, `6 d 23 h`.
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
        assert!(parse_ago("lately").unwrap_err().contains("write 7d"));
    }

    #[test]
    fn negative_span_or_time_says_what_to_type() {
        assert_eq!(parse_span("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_span("-5").unwrap_err(), "\"-5\" is negative; type 5, without a minus sign");
        assert_eq!(parse_ago("-5m").unwrap_err(), "\"-5m\" has a minus sign; type 5m for that long ago");
        assert_eq!(
            parse_time("-5m").unwrap_err(),
            "\"-5m\" is in the past; type --in 5m for that long from now"
        );
    }

    #[test]
    fn negative_span_ahead_says_what_to_type() {
        assert_eq!(parse_ahead("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(
            parse_ahead("-5m").unwrap_err(),
            "\"-5m\" is in the past; type --in 5m, without a minus sign"
        );
        assert!(parse_ahead("--yes").unwrap_err().contains("type --in 5m"));
    }

    #[test]
    fn times_are_parsed_as_people_write_them() {
        let now: Timestamp = "2026-11-17T23:30:00Z".parse().unwrap();
        for (text, at) in [
            ("2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z"),
            ("2026-11-20T08:00:00+02:00", "2026-11-20T06:00:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20 08:00", "2026-11-20T08:00:00Z"),
            ("2026-11-20T08:00", "2026-11-20T08:00:00Z"),
            ("2026-11-20 8:00", "2026-11-20T08:00:00Z"),
            ("tomorrow 2:00", "2026-11-18T02:00:00Z"),
            ("2026-11-20 08:00:09", "2026-11-20T08:00:09Z"),
            ("today 23:45", "2026-11-17T23:45:00Z"),
            ("tomorrow", "2026-11-18T00:00:00Z"),
            ("Tomorrow 02:00", "2026-11-18T02:00:00Z"),
            ("yesterday 02:00", "2026-11-16T02:00:00Z"),
            ("tomorrow 02:00-05:00", "2026-11-18T07:00:00Z"),
            ("tomorrow 2:00:30+02:00", "2026-11-18T00:00:30Z"),
            ("tomorrow 02:00Z", "2026-11-18T02:00:00Z"),
            ("2026-11-20 8:00-05:00", "2026-11-20T13:00:00Z"),
        ] {
            assert_eq!(time_at(text, now).unwrap().to_string(), at, "{text}");
        }
        for text in
            ["", "soon", "02:00", "tomorrow night", "tomorrow 25:00", "2026-13-01", "2026-11-31", "11/20"]
                .into_iter()
                .chain(["tomorrow 02:00[Europe/Berlin]", "2026-11-20T08:00[Europe/Berlin]"])
        {
            assert_eq!(time_at(text, now), None, "{text}");
        }
        assert_eq!(time_at("tomorrow", Timestamp::MAX), None, "there is no day after the last");
    }

    #[test]
    fn interruption_is_a_span_or_unknown() {
        for (text, seconds) in [("9", 9), ("9s", 9), ("2m", 120), ("0", 0), ("-1", -1), ("unknown", -1)] {
            assert_eq!(parse_interruption(text), Ok(seconds), "{text}");
        }
        for text in ["-2", "nine", "", "99999999999", "36000d"] {
            assert!(parse_interruption(text).unwrap_err().contains("write 9s"), "{text}");
        }
    }

    #[test]
    fn local_time_has_an_offset() {
        let at: Timestamp = "2026-11-20T23:30:00.5Z".parse().unwrap();
        assert_eq!(local(at, &TimeZone::fixed(jiff::tz::offset(1))), "2026-11-21 00:30:00+01:00");
        assert_eq!(local(at, &TimeZone::UTC), "2026-11-20 23:30:00+00:00");
        assert_eq!(local_milliseconds(at, &TimeZone::UTC), "2026-11-20 23:30:00.500+00:00");
    }

    #[test]
    fn times_in_text_become_local() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let text = "approval, or 2026-11-20T23:30:00Z; in 2 scopes (since 2026-11-20T08:00:00.5Z)";
        let expected =
            "approval, or 2026-11-21 00:30:00+01:00; in 2 scopes (since 2026-11-20 09:00:00+01:00)";
        assert_eq!(localised(text, &zone), expected);
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
