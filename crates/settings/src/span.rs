//! Time spans as people write them: `90s`, `20m`, `1h30m`, `7d`, `2w`. The command line uses the same syntax.

use std::time::Duration;

/// Limit: a hundred years. A longer span is no useful offset from a date.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// Parses `90s`, `20m`, `1h30m`, `7d`, `2w`; a number alone is seconds. A number after a unit needs a unit too: `1h30`
/// could mean minutes or seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time span; write 30s, 20m, 1h30m, 7d or 2w");
    let mut total = 0_u64;
    let mut digits = String::new();
    for c in text.trim().chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return Err(wrong()),
        };
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        digits.clear();
        total = count.checked_mul(unit).and_then(|seconds| total.checked_add(seconds)).ok_or_else(wrong)?;
    }
    if !digits.is_empty() {
        if digits != text.trim() {
            return Err(format!(
                "{text:?} is not a time span: {digits} has no unit; write {text}m or {text}s"
            ));
        }
        let seconds: u64 = digits.parse().map_err(|_| wrong())?;
        total = total.checked_add(seconds).ok_or_else(wrong)?;
    } else if text.trim().is_empty() {
        return Err(wrong());
    }
    if total > SECONDS_MAX {
        return Err(format!("{text:?} is longer than a hundred years"));
    }
    Ok(Duration::from_secs(total))
}

/// In the largest unit without a remainder: `90s`, `3m`, `7d`.
pub fn show(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let fitting = units.iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size));
    fitting.map_or_else(|| format!("{seconds}s"), |(size, unit)| format!("{}{unit}", seconds / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_parsed() {
        for (text, seconds) in [
            ("90", 90),
            ("30s", 30),
            ("20m", 1_200),
            ("1h30m", 5_400),
            ("7d", 604_800),
            ("2w1d", 1_296_000),
            (" 5m ", 300),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "5x", "-5m", "1.5h", "1h30", "99999999999999999999s", "200000d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn span_is_shown_in_largest_unit() {
        for (seconds, text) in [(0, "0s"), (90, "90s"), (180, "3m"), (7_200, "2h"), (604_800, "7d")] {
            assert_eq!(show(seconds), text);
        }
    }
}
