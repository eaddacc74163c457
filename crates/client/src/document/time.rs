//! Parser of times: RFC 1123 with any weekday, and ISO 8601.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// Parses a time. The weekday is ignored, because published samples have wrong ones. Without an offset it is UTC.
/// None for unknown formats.
pub fn read(text: &str) -> Option<Timestamp> {
    const RFC: DateTimeParser = DateTimeParser::new();
    let text = text.trim();
    let dateless_of_weekday = text.split_once(',').map_or(text, |(_, date)| date.trim_start());
    let utc = |local: DateTime| local.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse()
        .ok()
        .or_else(|| RFC.parse_timestamp(dateless_of_weekday).ok())
        .or_else(|| text.parse().ok().and_then(utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read_and_the_weekday_says_nothing() {
        let at: Timestamp = "2016-09-19T18:29:47Z".parse().unwrap();
        for text in [
            "Mon, 19 Sep 2016 18:29:47 GMT",
            "Fri, 19 Sep 2016 18:29:47 GMT",
            "lunes, 19 Sep 2016 18:29:47 GMT",
            "19 Sep 2016 18:29:47 GMT",
            " Mon, 19 Sep 2016 18:29:47 +0000 ",
            "Mon, 19 Sep 2016 20:29:47 +0200",
            "2016-09-19T18:29:47Z",
            "2016-09-19T18:29:47",
            "2016-09-19 18:29:47Z",
            "2016-09-19T18:29:47.000Z",
            "2016-09-19T20:29:47+02:00",
        ] {
            assert_eq!(read(text), Some(at), "{text}");
        }
        assert_eq!(read("2016-09-19T18:29:47.25Z").map(|at| at.subsec_millisecond()), Some(250));
    }

    #[test]
    fn invalid_time_is_none() {
        for text in
            ["", " ", "soon", "Mon, 31 Feb 2016 18:29:47 GMT", "1474309787", "2016-13-01T00:00:00Z", ","]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
