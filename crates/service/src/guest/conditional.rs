//! `If-None-Match`: whether the client already has the current document.
//!
//! The ETag is the incarnation in bare digits, as Azure sends it. Clients return it bare, quoted as the standard
//! requires, weak, or in a list; all of these match.

/// Whether one of the tags in these headers is this incarnation.
pub(super) fn matches_etag<'a>(values: impl Iterator<Item = &'a [u8]>, incarnation: u64) -> bool {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return false;
    }
    values
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|tag| strip_quotes(tag.trim_ascii()))
        .any(|tag| tag == b"*" || is_decimal_of(tag, incarnation))
}

/// The highest of the tags in these headers, if it is higher than this incarnation: another node may have sent it.
pub(super) fn newer_tag<'a>(values: impl Iterator<Item = &'a [u8]>, incarnation: u64) -> Option<u64> {
    let tags = values.flat_map(|value| value.split(|byte| *byte == b','));
    let numbers = tags.filter_map(|tag| decimal(strip_quotes(tag.trim_ascii())));
    numbers.max().filter(|tag| *tag > incarnation)
}

/// A number as [`is_decimal_of`] takes it; none for anything else.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_digits = text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_digits)?.parse().ok()?;
    is_decimal_of(text, number).then_some(number)
}

/// Whether `text` is `number` in decimal, without leading zeros.
fn is_decimal_of(text: &[u8], mut number: u64) -> bool {
    let mut digits = text.iter().rev();
    loop {
        if digits.next() != Some(&(b'0' + (number % 10) as u8)) {
            return false;
        }
        number /= 10;
        if number == 0 {
            return digits.next().is_none();
        }
    }
}

/// Removes the weak prefix and the quotes of a tag.
fn strip_quotes(tag: &[u8]) -> &[u8] {
    let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
    match tag {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_matches_in_any_spelling() {
        for (value, expected) in [
            ("7", true),
            ("\"7\"", true),
            ("W/\"7\"", true),
            ("W/7", true),
            ("1, \"7\" ,9", true),
            ("*", true),
            ("0", false),
            ("07", false),
            ("77", false),
            ("\"7", false),
            ("", false),
            ("\"", false),
        ] {
            assert_eq!(matches_etag([value.as_bytes()].into_iter(), 7), expected, "{value}");
        }
        for number in [0, 9, 10, 100, 1_234_567_890, u64::MAX] {
            assert!(is_decimal_of(number.to_string().as_bytes(), number));
            assert!(!is_decimal_of(format!("{number}0").as_bytes(), number) && !is_decimal_of(b"", number));
        }
        assert!(matches_etag([b"1".as_slice(), b"7"].into_iter(), 7));
        for (value, newer) in [
            ("8", Some(8)),
            ("1, W/\"9\" ,8", Some(9)),
            ("7", None),
            ("6", None),
            ("08", None),
            ("+8", None),
            ("99999999999999999999", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(newer_tag([value.as_bytes()].into_iter(), 7), newer, "{value}");
        }
        assert!(!matches_etag(std::iter::empty(), 7));
    }
}
