//! `Prefer: wait=N` (RFC 7240): how long a client lets its answer be held back.
//!
//! Invalid and unknown preferences are ignored, as the RFC requires. Several headers form one list. If a preference is
//! repeated, the first counts, even if it is invalid.

use std::num::NonZeroU16;

/// Longest wait; a longer one is reduced to this.
const SECONDS_MAX: u16 = 300;

/// A wait in seconds.
pub(super) type Wait = NonZeroU16;

/// The wait in these headers, if there is a valid one.
pub(super) fn wait<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Wait> {
    let preference = values.flat_map(|value| unquoted_split(value, b',')).find_map(|preference| {
        // Parameters after a semicolon have no meaning for `wait`.
        let own = unquoted_split(preference, b';').next()?;
        let mut parts = own.splitn(2, |byte| *byte == b'=');
        let name = parts.next()?.trim_ascii();
        name.eq_ignore_ascii_case(b"wait").then(|| parts.next().unwrap_or_default().trim_ascii())
    })?;
    let digits = match preference {
        [b'"', inner @ .., b'"'] => inner,
        bare => bare,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = digits.iter().fold(0_u16, |seconds, digit| {
        (seconds.saturating_mul(10)).saturating_add(u16::from(digit - b'0')).min(SECONDS_MAX + 1)
    });
    NonZeroU16::new(seconds.min(SECONDS_MAX))
}

/// Splits a text at separators outside of quotes.
fn unquoted_split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |byte| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        match byte {
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        !is_quoted && *byte == separator
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_parsed_among_other_preferences() {
        for (value, expected) in [
            ("wait=10", Some(10)),
            ("Wait = 10", Some(10)),
            ("wait=\"10\"", Some(10)),
            ("respond-async, wait=10", Some(10)),
            ("respond-async,wait=10;a=b; c", Some(10)),
            ("a=\"x, wait=5\", wait=10", Some(10)),
            ("a=\"\\\", wait=5\", wait=10", Some(10)),
            ("a;wait=5, wait=10", Some(10)),
            ("wait=300", Some(300)),
            ("wait=301", Some(300)),
            ("wait=0000000000000000000000000000000000010", Some(10)),
            ("wait=99999999999999999999999999999999999999", Some(300)),
            ("wait=10, wait=20", Some(10)),
            ("wait=x, wait=20", None),
            ("wait=0", None),
            ("wait=-1", None),
            ("wait=+1", None),
            ("wait=1.5", None),
            ("wait=1 0", None),
            ("wait=\"10", None),
            ("wait", None),
            ("wait=", None),
            ("waits=10", None),
            ("handling=lenient", None),
            ("", None),
        ] {
            assert_eq!(wait([value.as_bytes()].into_iter()).map(NonZeroU16::get), expected, "{value}");
        }
        let several = [b"respond-async".as_slice(), b"wait=7", b"wait=9"];
        assert_eq!(wait(several.into_iter()).map(NonZeroU16::get), Some(7));
        assert_eq!(wait(std::iter::empty()), None);
    }
}
