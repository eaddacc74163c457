//! `If-None-Match`: whether a client has the current document already.
//!
//! The ETag is the incarnation in bare digits, as Azure sends it. Clients send it back as it came, or quoted
//! as the standard wants it, or weak, or several in a list; all of these are understood.

/// Whether one of the headers' tags is this incarnation's.
pub(super) fn client_has<'a>(values: impl Iterator<Item = &'a [u8]>, incarnation: u64) -> bool {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return false;
    }
    values
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|tag| opaque(tag.trim_ascii()))
        .any(|tag| tag == b"*" || spells(tag, incarnation))
}

/// Whether a text is a number in digits, without zeros before it.
fn spells(text: &[u8], mut number: u64) -> bool {
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

/// A tag without its weakness and its quotes.
fn opaque(tag: &[u8]) -> &[u8] {
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
    fn a_tag_is_known_however_it_is_written() {
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
            assert_eq!(client_has([value.as_bytes()].into_iter(), 7), expected, "{value}");
        }
        for number in [0, 9, 10, 100, 1_234_567_890, u64::MAX] {
            assert!(spells(number.to_string().as_bytes(), number));
            assert!(!spells(format!("{number}0").as_bytes(), number) && !spells(b"", number));
        }
        assert!(client_has([b"1".as_slice(), b"7"].into_iter(), 7));
        assert!(!client_has(std::iter::empty(), 7));
    }
}
