//! Sessions of the console: sign-in, cookies and sign-in links.

use std::net::Ipv4Addr;

use crate::support::{Answer, Service, exchange};

/// A sign-in as a browser sends it, with a body that may be shorter than its length.
fn sign_in_with(service: &Service, length: usize, body: &str) -> Answer {
    let request = format!(
        "POST /v1/sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(Ipv4Addr::LOCALHOST.into(), service.operator, request.as_bytes())
}

#[test]
fn sign_in_reads_little_and_not_for_long() {
    let service = Service::start(&[]);
    // The rest of the body never comes: only the limit ends the request.
    let large = sign_in_with(&service, 5_000_000, &"x".repeat(5_000));
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"), "{large:?}");
    assert!(large.body.contains("4096 bytes"), "{large:?}");
    let slow = sign_in_with(&service, 20, "");
    assert_eq!((slow.status, slow.code().as_str()), (408, "request_timeout"), "{slow:?}");
}
