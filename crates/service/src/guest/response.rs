//! Responses as bytes.
//!
//! The head has Azure's header order and spelling: Content-Type, Server, x-ms-request-id, ETag, Date, Content-Length.
//! Additional headers (`Allow`, `Retry-After`, `Preference-Applied`, `Connection`) follow. A 304 has ETag and Date
//! only. Head and body are sent in one write; a large body is shared, not copied. Common parts are constants, and
//! writing a response makes no system call.

use std::cell::RefCell;
use std::io::Write;

use bytes::Bytes;
use fastrand::Rng;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use notbefore_wire::guest::error::GuestError;
use uuid::Uuid;

use super::prefer::Wait;

/// The `Server` header, whose first word clients check, and the next header's name.
macro_rules! named {
    () => {
        concat!("Server: IMDS/", env!("CARGO_PKG_VERSION"), " (notbefore)\r\nx-ms-request-id: ")
    };
}

/// The headers of a response with a body, up to the request id.
macro_rules! described {
    (JSON) => {
        concat!("Content-Type: application/json; charset=utf-8\r\n", named!())
    };
    (TEXT) => {
        concat!("Content-Type: text/plain; charset=utf-8\r\n", named!())
    };
}

/// Beginnings of frequent responses.
const DOCUMENT: &str = concat!("HTTP/1.1 200 OK\r\n", described!(JSON));
const TEXT: &str = concat!("HTTP/1.1 200 OK\r\n", described!(TEXT));
const APPROVED: &str = concat!("HTTP/1.1 200 OK\r\n", named!());
const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nETag: ";

pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bodies up to this size are copied behind their head: copying some KiB is cheaper than a vectored write.
pub(super) const INLINE_BODY_MAX: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub(super) enum Response {
    Document {
        incarnation: u64,
        body: Bytes,
    },
    NotModified {
        incarnation: u64,
    },
    /// The approval is stored.
    Approved,
    /// Instance metadata or the list of versions.
    Metadata {
        is_text: bool,
        body: Bytes,
    },
    Refused(GuestError),
    /// The answer of a fault.
    Fault(FaultResponse),
}

/// An answer that the service gives only with a fault.
#[derive(Clone, Debug)]
pub(super) struct FaultResponse {
    pub status: u16,
    pub is_text: bool,
    pub incarnation: Option<u64>,
    pub body: Bytes,
}

impl FaultResponse {
    /// An error in the form of the service's own errors.
    pub(super) fn error(status: u16) -> FaultResponse {
        let body = Bytes::from(format!(r#"{{"error":"{}"}}"#, reason(status)));
        FaultResponse { status, is_text: false, incarnation: None, body }
    }
}

/// The `Connection` header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// No header: HTTP/1.1 stays open by default.
    Open,
    /// `keep-alive`, which HTTP/1.0 requires.
    KeptAlive,
    /// `close`.
    Closing,
}

/// Properties of the request that the bytes of its response depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseMeta {
    pub now: Timestamp,
    pub persistence: Persistence,
    /// HEAD request: the response has no body, whatever its head says.
    pub head_only: bool,
    /// The wait that was granted, for `Preference-Applied`.
    pub wait: Option<Wait>,
}

impl Response {
    pub(super) fn status(&self) -> u16 {
        match self {
            Response::Document { .. } | Response::Approved | Response::Metadata { .. } => 200,
            Response::NotModified { .. } => 304,
            Response::Refused(error) => error.status(),
            Response::Fault(fault) => fault.status,
        }
    }

    /// The incarnation that the response shows.
    pub(super) fn incarnation(&self) -> Option<u64> {
        match self {
            Response::Document { incarnation, .. } | Response::NotModified { incarnation } => {
                Some(*incarnation)
            }
            Response::Fault(fault) => fault.incarnation,
            Response::Approved | Response::Metadata { .. } | Response::Refused(_) => None,
        }
    }

    /// The head and the body of the response, apart.
    pub(super) fn parts(self, meta: ResponseMeta) -> (Vec<u8>, Bytes) {
        let mut head = Vec::new();
        let body = self.write(meta, &mut head);
        if !body.is_empty() {
            return (head, body);
        }
        let end = head.windows(4).position(|window| window == b"\r\n\r\n").map_or(head.len(), |at| at + 4);
        let body = Bytes::from(head.split_off(end));
        (head, body)
    }

    /// Appends the response to `out`. Returns a body that is too large to copy.
    pub(super) fn write(self, meta: ResponseMeta, out: &mut Vec<u8>) -> Bytes {
        let body = match self {
            Response::NotModified { incarnation } => {
                out.extend_from_slice(NOT_MODIFIED.as_bytes());
                put_number(out, incarnation);
                put_date(out, meta.now);
                Bytes::new()
            }
            Response::Document { incarnation, body } => {
                out.extend_from_slice(DOCUMENT.as_bytes());
                put_common_headers(out, Some(incarnation), body.len(), meta.now);
                body
            }
            Response::Approved => {
                out.extend_from_slice(APPROVED.as_bytes());
                put_common_headers(out, None, 0, meta.now);
                Bytes::new()
            }
            Response::Metadata { is_text, body } => {
                out.extend_from_slice(if is_text { TEXT } else { DOCUMENT }.as_bytes());
                put_common_headers(out, None, body.len(), meta.now);
                body
            }
            Response::Refused(error) => {
                let body = match error.body() {
                    std::borrow::Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
                    std::borrow::Cow::Owned(text) => Bytes::from(text),
                };
                let status = error.status();
                put(out, format_args!("HTTP/1.1 {status} {}\r\n{}", reason(status), described!(JSON)));
                put_common_headers(out, None, body.len(), meta.now);
                if let GuestError::MethodNotAllowed(methods) = error {
                    put(out, format_args!("Allow: {}\r\n", methods.allow()));
                }
                if error == GuestError::TooManyRequests {
                    put(out, format_args!("Retry-After: {}\r\n", GuestError::RETRY_AFTER_S));
                }
                body
            }
            Response::Fault(FaultResponse { status, is_text, incarnation, body }) => {
                let described = if is_text { described!(TEXT) } else { described!(JSON) };
                put(out, format_args!("HTTP/1.1 {status} {}\r\n{described}", reason(status)));
                put_common_headers(out, incarnation, body.len(), meta.now);
                if status == GuestError::TooManyRequests.status() {
                    put(out, format_args!("Retry-After: {}\r\n", GuestError::RETRY_AFTER_S));
                }
                body
            }
        };
        if let Some(wait) = meta.wait {
            put(out, format_args!("Preference-Applied: wait={wait}\r\n"));
        }
        match meta.persistence {
            Persistence::Open => {}
            Persistence::KeptAlive => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            Persistence::Closing => out.extend_from_slice(b"Connection: close\r\n"),
        }
        out.extend_from_slice(b"\r\n");
        if meta.head_only {
            return Bytes::new();
        }
        if body.len() > INLINE_BODY_MAX {
            return body;
        }
        out.extend_from_slice(&body);
        Bytes::new()
    }
}

/// The headers after the request id's name.
fn put_common_headers(out: &mut Vec<u8>, etag: Option<u64>, length: usize, now: Timestamp) {
    let mut id = Uuid::encode_buffer();
    out.extend_from_slice(request_id().hyphenated().encode_lower(&mut id).as_bytes());
    if let Some(etag) = etag {
        out.extend_from_slice(b"\r\nETag: ");
        put_number(out, etag);
    }
    put_date(out, now);
    out.extend_from_slice(b"Content-Length: ");
    put_number(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

thread_local! {
    /// Generator of request ids, seeded from the system; without that, from the time and the thread.
    static REQUEST_IDS: RefCell<Rng> =
        RefCell::new(getrandom::u64().map_or_else(|_| Rng::new(), Rng::with_seed));
}

/// A unique request id. It is not secret, so each thread asks the system for randomness once.
fn request_id() -> Uuid {
    let random = REQUEST_IDS.with_borrow_mut(|ids| ids.u128(..));
    uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

thread_local! {
    /// Cache of what [`put_date`] last wrote, by second: many polls share a second.
    static DATE: RefCell<(i64, Vec<u8>)> = const { RefCell::new((i64::MIN, Vec::new())) };
}

/// Ends the line before, and adds `Date`.
fn put_date(head: &mut Vec<u8>, now: Timestamp) {
    DATE.with_borrow_mut(|(second, text)| {
        if *second != now.as_second() {
            *second = now.as_second();
            text.clear();
            text.extend_from_slice(b"\r\nDate: ");
            // A clock before year 0 has no date in this form; the header is then empty.
            let _ = DateTimePrinter::new().print_timestamp_rfc9110(&now, &mut *text);
            text.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(text);
    });
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_reason() {
        for status in GuestError::STATUSES {
            assert_ne!(reason(status), "Unknown", "{status}");
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 99, 358, 1_000_000, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    #[test]
    fn request_ids_differ_and_are_random_guids() {
        let ids: std::collections::HashSet<Uuid> = (0..1_000).map(|_| request_id()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.get_version() == Some(uuid::Version::Random)));
        let elsewhere = std::thread::spawn(request_id).join().unwrap();
        assert!(!ids.contains(&elsewhere));
    }

    #[test]
    fn date_header_follows_clock_forward_and_back() {
        let date = |now: &str| {
            let mut head = Vec::new();
            put_date(&mut head, now.parse().unwrap());
            String::from_utf8(head).unwrap()
        };
        assert_eq!(date("2016-09-19T18:29:47.1Z"), "\r\nDate: Mon, 19 Sep 2016 18:29:47 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:47.9Z"), "\r\nDate: Mon, 19 Sep 2016 18:29:47 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:48Z"), "\r\nDate: Mon, 19 Sep 2016 18:29:48 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:46Z"), "\r\nDate: Mon, 19 Sep 2016 18:29:46 GMT\r\n");
    }
}
