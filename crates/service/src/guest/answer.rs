//! Answers, as they go out.
//!
//! The head is written in the order and the spelling seen on Azure's wire: Content-Type, Server,
//! x-ms-request-id, ETag, Date, Content-Length; what we add (`Allow`, `Connection`) comes after. A 304 has
//! ETag and Date only. Head and body leave in one write; the body is shared, not copied.

use std::cell::RefCell;
use std::io::Write;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use notbefore_wire::guest::error::GuestError;
use uuid::Uuid;

/// What the `Server` header says: the first word is what clients look for.
const SERVER: &str = concat!("IMDS/", env!("CARGO_PKG_VERSION"), " (notbefore)");
const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Leave to send a body that was held back.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Room for a head with every header.
const HEAD_BYTES: usize = 384;

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The document, whole.
    Document { incarnation: u64, body: Bytes },
    /// The client has this document.
    NotModified { incarnation: u64 },
    /// The approval is kept.
    Approved,
    /// Instance metadata or the list of versions.
    Metadata { is_text: bool, body: Bytes },
    /// No.
    Refused(GuestError),
}

/// What the `Connection` header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Nothing: HTTP/1.1 stays open by itself.
    Open,
    /// `keep-alive`: HTTP/1.0 needs to be told.
    KeptAlive,
    /// `close`.
    Closing,
}

/// An answer in bytes.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub head: Vec<u8>,
    pub body: Bytes,
}

/// What an answer's bytes depend on beside the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub now: Timestamp,
    pub persistence: Persistence,
    /// The request was a HEAD: the answer has no body, whatever its head says.
    pub head_only: bool,
}

impl Answer {
    /// The answer's bytes.
    pub(super) fn write(self, manner: Manner) -> Outgoing {
        let status = self.status();
        let mut head = Vec::with_capacity(HEAD_BYTES);
        put(&mut head, format_args!("HTTP/1.1 {status} {}\r\n", reason(status)));
        let body = match self {
            Answer::NotModified { incarnation } => {
                put(&mut head, format_args!("ETag: {incarnation}\r\n"));
                put_date(&mut head, manner.now);
                Bytes::new()
            }
            Answer::Document { incarnation, body } => {
                put_ordered(&mut head, Some(JSON), Some(incarnation), body.len(), manner.now);
                body
            }
            Answer::Approved => {
                put_ordered(&mut head, None, None, 0, manner.now);
                Bytes::new()
            }
            Answer::Metadata { is_text, body } => {
                put_ordered(&mut head, Some(if is_text { TEXT } else { JSON }), None, body.len(), manner.now);
                body
            }
            Answer::Refused(error) => {
                let body = match error.body() {
                    std::borrow::Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
                    std::borrow::Cow::Owned(text) => Bytes::from(text),
                };
                put_ordered(&mut head, Some(JSON), None, body.len(), manner.now);
                if let GuestError::MethodNotAllowed(methods) = error {
                    put(&mut head, format_args!("Allow: {}\r\n", methods.allow()));
                }
                body
            }
        };
        match manner.persistence {
            Persistence::Open => {}
            Persistence::KeptAlive => head.extend_from_slice(b"Connection: keep-alive\r\n"),
            Persistence::Closing => head.extend_from_slice(b"Connection: close\r\n"),
        }
        head.extend_from_slice(b"\r\n");
        Outgoing { head, body: if manner.head_only { Bytes::new() } else { body } }
    }

    fn status(&self) -> u16 {
        match self {
            Answer::Document { .. } | Answer::Approved | Answer::Metadata { .. } => 200,
            Answer::NotModified { .. } => 304,
            Answer::Refused(error) => error.status(),
        }
    }
}

fn put_ordered(
    head: &mut Vec<u8>,
    content_type: Option<&str>,
    etag: Option<u64>,
    length: usize,
    now: Timestamp,
) {
    if let Some(content_type) = content_type {
        put(head, format_args!("Content-Type: {content_type}\r\n"));
    }
    put(head, format_args!("Server: {SERVER}\r\nx-ms-request-id: {}\r\n", Uuid::new_v4()));
    if let Some(etag) = etag {
        put(head, format_args!("ETag: {etag}\r\n"));
    }
    put_date(head, now);
    put(head, format_args!("Content-Length: {length}\r\n"));
}

fn put(head: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = head.write_fmt(text);
}

thread_local! {
    /// The last second that was written as a date, and that date: polls come many to a second.
    static DATE: RefCell<(i64, Vec<u8>)> = const { RefCell::new((i64::MIN, Vec::new())) };
}

fn put_date(head: &mut Vec<u8>, now: Timestamp) {
    DATE.with_borrow_mut(|(second, text)| {
        if *second != now.as_second() {
            *second = now.as_second();
            text.clear();
            // A clock before year 0 has no date in this form, and the header is then empty.
            let _ = DateTimePrinter::new().print_timestamp_rfc9110(&now, &mut *text);
        }
        head.extend_from_slice(b"Date: ");
        head.extend_from_slice(text);
        head.extend_from_slice(b"\r\n");
    });
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
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
    fn the_date_follows_the_clock_in_both_directions() {
        let date = |now: &str| {
            let mut head = Vec::new();
            put_date(&mut head, now.parse().unwrap());
            String::from_utf8(head).unwrap()
        };
        assert_eq!(date("2016-09-19T18:29:47.1Z"), "Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:47.9Z"), "Date: Mon, 19 Sep 2016 18:29:47 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:48Z"), "Date: Mon, 19 Sep 2016 18:29:48 GMT\r\n");
        assert_eq!(date("2016-09-19T18:29:46Z"), "Date: Mon, 19 Sep 2016 18:29:46 GMT\r\n");
    }
}
