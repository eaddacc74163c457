//! Reads the expiry time of an X.509 certificate. The service warns before its certificate expires; the command line
//! refuses an expired one.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// When a DER certificate expires: `notAfter` of RFC 5280. The TLS library does not expose it, and one field does not
/// justify another dependency.
pub fn ends_at(certificate: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (outer, _) = element(certificate, Some(SEQUENCE))?;
    let (mut rest, _) = element(outer, Some(SEQUENCE))?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest, None)?.1;
    }
    // Skip serial number, signature algorithm and issuer.
    for _ in 0..3 {
        rest = element(rest, None)?.1;
    }
    let (validity, _) = element(rest, Some(SEQUENCE))?;
    let (_, end) = element(validity, None)?;
    let (text, _) = element(end, None)?;
    let text = std::str::from_utf8(text).ok()?;
    // UTCTime has a two-digit year: 50 to 99 are 1950 to 1999.
    let text = match text.len() {
        13 if *text.as_bytes().first()? >= b'5' => format!("19{text}"),
        13 => format!("20{text}"),
        _ => text.to_owned(),
    };
    let at = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    at.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// The content of the first DER element, and the rest. With `tag`, the element must have this tag.
fn element(der: &[u8], tag: Option<u8>) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    if tag.is_some_and(|tag| tag != found) {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_has_no_expiry() {
        let garbage: [&[u8]; 4] = [b"", b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x02\x30\x00"];
        for der in garbage {
            assert_eq!(ends_at(der), None);
        }
    }
}
