//! Parser for the head of a request.
//!
//! `httparse` splits the head. This module decides what the parts mean for the connection: body framing, keep-alive,
//! and `Expect: 100-continue`. Ambiguous heads (two lengths, a length and chunks, a folded header) are refused against
//! request smuggling. The connection closes, because the start of the next request is unknown.

use std::mem::MaybeUninit;

use httparse::{Header, Status};
use notbefore_wire::guest::error::GuestError;

use super::settings::{HEAD_BYTES_MAX, HEADERS_MAX, TARGET_BYTES_MAX};

/// The head of a request, borrowed from its bytes.
#[derive(Debug)]
pub(super) struct Head<'h, 'b> {
    pub method: &'b str,
    pub target: &'b str,
    /// HTTP/1.0: the connection closes unless both sides ask for keep-alive.
    pub is_http10: bool,
    headers: &'h [Header<'b>],
    /// Bit set of the [`Name`]s in this head.
    seen: u16,
}

/// The headers that the server reads. One pass over the head finds which of them it has. Most heads have two or three;
/// the others are then not searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Host,
    Metadata,
    Connection,
    IfNoneMatch,
    ContentLength,
    TransferEncoding,
    Expect,
    XForwardedFor,
    XInstanceId,
    XInstanceIdSignature,
    Prefer,
    UserAgent,
}

impl Name {
    /// Matches by length and first letter, which are unique among these names, then by text.
    fn of(header: &Header<'_>) -> Option<Name> {
        let first = header.name.as_bytes().first()?.to_ascii_lowercase();
        let name = match (header.name.len(), first) {
            (4, b'h') => Name::Host,
            (6, b'e') => Name::Expect,
            (6, b'p') => Name::Prefer,
            (8, b'm') => Name::Metadata,
            (10, b'c') => Name::Connection,
            (10, b'u') => Name::UserAgent,
            (13, b'i') => Name::IfNoneMatch,
            (13, b'x') => Name::XInstanceId,
            (14, b'c') => Name::ContentLength,
            (15, b'x') => Name::XForwardedFor,
            (17, b't') => Name::TransferEncoding,
            (23, b'x') => Name::XInstanceIdSignature,
            _ => return None,
        };
        name.is(header).then_some(name)
    }

    const fn spelling(self) -> &'static str {
        match self {
            Name::Host => "Host",
            Name::Metadata => "Metadata",
            Name::Connection => "Connection",
            Name::IfNoneMatch => "If-None-Match",
            Name::ContentLength => "Content-Length",
            Name::TransferEncoding => "Transfer-Encoding",
            Name::Expect => "Expect",
            Name::XForwardedFor => "X-Forwarded-For",
            Name::XInstanceId => "X-Instance-ID",
            Name::XInstanceIdSignature => "X-Instance-ID-Signature",
            Name::Prefer => "Prefer",
            Name::UserAgent => "User-Agent",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }

    fn is(self, header: &Header<'_>) -> bool {
        header.name.eq_ignore_ascii_case(self.spelling())
    }
}

pub(super) type HeaderSlots<'b> = [MaybeUninit<Header<'b>>; HEADERS_MAX];

pub(super) const fn header_slots<'b>() -> HeaderSlots<'b> {
    [const { MaybeUninit::uninit() }; HEADERS_MAX]
}

/// How a request's body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Empty,
    Length(u64),
    Chunked,
}

/// A head and its length; none if the head is incomplete.
pub(super) type Parsed<'h, 'b> = Result<Option<(Head<'h, 'b>, usize)>, GuestError>;

const HEAD_TOO_LARGE: GuestError = GuestError::HeadTooLarge { bytes: HEAD_BYTES_MAX, headers: HEADERS_MAX };
const TARGET_TOO_LONG: GuestError = GuestError::TargetTooLong { limit: TARGET_BYTES_MAX };

/// Parses a head at the start of `bytes`.
pub(super) fn parse<'h, 'b>(bytes: &'b [u8], headers: &'h mut HeaderSlots<'b>) -> Parsed<'h, 'b> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, headers) {
        Ok(Status::Complete(length)) => {
            let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version)
            else {
                return Err(GuestError::Malformed("the request line is incomplete"));
            };
            if target.len() > TARGET_BYTES_MAX {
                return Err(TARGET_TOO_LONG);
            }
            let headers: &[Header<'b>] = request.headers;
            let seen = headers.iter().filter_map(Name::of).fold(0, |seen, name| seen | name.bit());
            Ok(Some((Head { method, target, is_http10: version == 0, headers, seen }, length)))
        }
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => Ok(None),
        Ok(Status::Partial) if bytes.contains(&b'\n') => Err(HEAD_TOO_LARGE),
        Ok(Status::Partial) => Err(TARGET_TOO_LONG),
        Err(httparse::Error::TooManyHeaders) => Err(HEAD_TOO_LARGE),
        Err(httparse::Error::Version) => {
            Err(GuestError::Malformed("the version is not HTTP/1.0 or HTTP/1.1"))
        }
        Err(_) => Err(GuestError::Malformed("the head cannot be parsed")),
    }
}

impl<'b> Head<'_, 'b> {
    /// All values of a header, in order.
    pub(super) fn all(&self, name: Name) -> impl Iterator<Item = &'b [u8]> + Clone {
        let headers = if self.has(name) { self.headers } else { &[] };
        headers.iter().filter(move |header| name.is(header)).map(|header| header.value.trim_ascii())
    }

    pub(super) fn has(&self, name: Name) -> bool {
        self.seen & name.bit() != 0
    }

    /// The value of a header that occurs once and is text.
    pub(super) fn one(&self, name: Name) -> Option<&'b str> {
        let mut values = self.all(name);
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        std::str::from_utf8(value).ok()
    }

    /// The client's name; empty if it sends none.
    pub(super) fn user_agent(&self) -> &'b [u8] {
        self.all(Name::UserAgent).next().unwrap_or_default()
    }

    /// Whether a header's comma-separated list contains `word`.
    fn has_list_item(&self, name: Name, word: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    pub(super) fn keeps_alive(&self) -> bool {
        let has = |word| self.has_list_item(Name::Connection, word);
        !has("close") && (!self.is_http10 || has("keep-alive"))
    }

    /// Whether the client holds its body back until 100 Continue.
    pub(super) fn expects_continue(&self) -> bool {
        !self.is_http10 && self.has_list_item(Name::Expect, "100-continue")
    }

    /// The body's framing, if the head is unambiguous.
    pub(super) fn framing(&self) -> Result<Framing, GuestError> {
        if !self.is_http10 && self.all(Name::Host).count() != 1 {
            return Err(GuestError::Malformed("there must be one Host header"));
        }
        let length = self.content_length()?;
        if self.has(Name::TransferEncoding) {
            if length.is_some() {
                return Err(GuestError::Malformed("Content-Length and Transfer-Encoding exclude each other"));
            }
            let chunked =
                self.one(Name::TransferEncoding).is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
            if self.is_http10 || !chunked {
                return Err(GuestError::Malformed("Transfer-Encoding must be chunked, once"));
            }
            return Ok(Framing::Chunked);
        }
        match length {
            None | Some(0) => Ok(Framing::Empty),
            Some(length) => Ok(Framing::Length(length)),
        }
    }

    /// The length, given once or repeated with the same value. A list in one header is refused: proxies read it in
    /// different ways.
    fn content_length(&self) -> Result<Option<u64>, GuestError> {
        let mut length = None;
        for value in self.all(Name::ContentLength) {
            let this = number(value).ok_or(GuestError::Malformed("Content-Length is not a number"))?;
            if length.is_some_and(|other| other != this) {
                return Err(GuestError::Malformed("Content-Length is given twice and differs"));
            }
            length = Some(this);
        }
        Ok(length)
    }
}

/// Digits only: a sign, which the standard parser accepts, is refused.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<R>(rest: &str, look: impl FnOnce(&Head<'_, '_>) -> R) -> R {
        let text = format!("POST /x HTTP/1.1\r\n{rest}\r\n\r\n");
        let mut headers = header_slots();
        let (head, length) = parse(text.as_bytes(), &mut headers).unwrap().unwrap();
        assert_eq!(length, text.len());
        look(&head)
    }

    #[test]
    fn header_names_are_case_insensitive() {
        for name in [
            Name::Host,
            Name::Metadata,
            Name::Connection,
            Name::IfNoneMatch,
            Name::ContentLength,
            Name::TransferEncoding,
            Name::Expect,
            Name::XForwardedFor,
            Name::XInstanceId,
            Name::XInstanceIdSignature,
            Name::Prefer,
            Name::UserAgent,
        ] {
            let spelling = name.spelling();
            for text in [spelling.to_owned(), spelling.to_lowercase(), spelling.to_uppercase()] {
                assert_eq!(Name::of(&Header { name: &text, value: b"" }), Some(name), "{text}");
            }
            let other = spelling.replacen(['e', 'o'], "0", 1);
            assert_eq!(Name::of(&Header { name: &other, value: b"" }), None, "{other}");
        }
        assert_eq!(Name::of(&Header { name: "", value: b"" }), None);
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        for (rest, expected) in [
            ("Host: a", Ok(Framing::Empty)),
            ("Host: a\r\nContent-Length: 0", Ok(Framing::Empty)),
            ("Host: a\r\ncontent-length:  7 ", Ok(Framing::Length(7))),
            ("Host: a\r\nContent-Length: 7\r\nContent-Length: 7", Ok(Framing::Length(7))),
            ("Host: a\r\nContent-Length: 7, 7", Err("Content-Length is not a number")),
            ("Host: a\r\nTransfer-Encoding: Chunked", Ok(Framing::Chunked)),
            ("Content-Length: 0", Err("there must be one Host header")),
            ("Host: a\r\nHost: a", Err("there must be one Host header")),
            ("Host: a\r\nContent-Length: 7, 8", Err("Content-Length is not a number")),
            (
                "Host: a\r\nContent-Length: 7\r\nContent-Length: 8",
                Err("Content-Length is given twice and differs"),
            ),
            ("Host: a\r\nContent-Length: +7", Err("Content-Length is not a number")),
            ("Host: a\r\nContent-Length:", Err("Content-Length is not a number")),
            ("Host: a\r\nContent-Length: 99999999999999999999", Err("Content-Length is not a number")),
            (
                "Host: a\r\nContent-Length: 7\r\nTransfer-Encoding: chunked",
                Err("Content-Length and Transfer-Encoding exclude each other"),
            ),
            ("Host: a\r\nTransfer-Encoding: gzip, chunked", Err("Transfer-Encoding must be chunked, once")),
        ] {
            let framing = with(rest, |head| head.framing());
            assert_eq!(framing, expected.map_err(GuestError::Malformed), "{rest}");
        }
    }

    #[test]
    fn malformed_head_is_refused_with_reason() {
        let unparsable = GuestError::Malformed("the head cannot be parsed");
        let version = GuestError::Malformed("the version is not HTTP/1.0 or HTTP/1.1");
        let flood = "GET / HTTP/1.1\r\n".to_owned() + &"a: b\r\n".repeat(HEADERS_MAX + 1) + "\r\n";
        for (bytes, expected) in [
            (String::new(), Ok(())),
            ("GET / HTTP/1.1\r\nHost: a\r\n".to_owned(), Ok(())),
            ("\u{16}\u{3}\u{1}".to_owned(), Err(unparsable)),
            ("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n".to_owned(), Err(unparsable)),
            ("GET / HTTP/1.1\r\nA : b\r\n\r\n".to_owned(), Err(unparsable)),
            ("PRI * HTTP/2.0\r\n\r\n".to_owned(), Err(version)),
            (flood, Err(HEAD_TOO_LARGE)),
            (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(TARGET_BYTES_MAX)), Err(TARGET_TOO_LONG)),
            (format!("GET /{}", "x".repeat(HEAD_BYTES_MAX)), Err(TARGET_TOO_LONG)),
            (format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(HEAD_BYTES_MAX)), Err(HEAD_TOO_LARGE)),
        ] {
            let mut headers = header_slots();
            let parsed = parse(bytes.as_bytes(), &mut headers).map(|parsed| assert!(parsed.is_none()));
            assert_eq!(parsed, expected, "{:.40}", bytes);
        }
    }
}
