//! Rows about proxies: valid claims and refused ones.

use super::harness::*;
use super::table::{ALL, FORBIDDEN, FORWARDED, Row, document, row};
use super::table_more::UNKNOWN_EVENT;

/// Address of the trusted proxy; the fleet has VM b there too.
const PROXY: From = From::Address("127.0.0.9");
/// VM a, by its address.
const A: From = From::Address("127.0.0.2");
/// An unknown caller.
const UNKNOWN: From = From::Address("127.0.0.4");

/// A request for the document with these claim headers.
fn poll_with(about: &str) -> String {
    get_with(EVENTS, &format!("Metadata: true\r\n{about}"))
}

fn claim(id: &str, signature: &str) -> String {
    format!("X-Instance-ID: {id}\r\nX-Instance-ID-Signature: {signature}\r\n")
}

pub fn proxies() -> Vec<Row> {
    let [a, b, no_vm] = ["a", "b", "no_vm"].map(|name| vm_id(name).to_string());
    let signed = |id: &str| claim(id, &signature(SECRET, id));
    let (for_a, for_b) = (signed(&a), signed(&b));
    let (shown_a, shown_b) = (document("a", "2020-07-01"), document("b", "2020-07-01"));
    let forwarded = "X-Forwarded-For: 10.0.0.4, 10.0.0.1\r\n";
    let good = signature(SECRET, &a);

    let mut rows = vec![
        row("a proxy for a VM", ALL, poll_with(&for_a), 200, &shown_a).from(PROXY),
        row("a proxy for another", ALL, poll_with(&for_b), 200, &shown_b).from(PROXY),
        row("a proxy with X-Forwarded-For", ALL, poll_with(&format!("{for_a}{forwarded}")), 200, &shown_a)
            .from(PROXY),
        row("any case of the names", ALL, poll_with(&for_a.to_lowercase()), 200, &shown_a).from(PROXY),
        row("an id in capitals, signed so", ALL, poll_with(&signed(&a.to_uppercase())), 200, &shown_a)
            .from(PROXY),
        row("a proxy's approval", ALL, approve_with(&for_a, EVENT_A), 200, "").from(PROXY),
        row("a proxy's approval for another", ALL, approve_with(&for_b, EVENT_A), 400, UNKNOWN_EVENT)
            .from(PROXY),
        // A claim counts only from a proxy's address.
        row("a VM with a valid claim for another", ALL, poll_with(&for_b), 200, &shown_a).from(A),
        row(
            "a VM with a claim and X-Forwarded-For",
            ALL,
            poll_with(&format!("{for_b}{forwarded}")),
            400,
            FORWARDED,
        )
        .from(A),
        row("at a bound listener", ALL, poll_with(&for_b), 200, &shown_a),
    ];
    for (name, about) in [
        ("no id and no signature", String::new()),
        ("X-Forwarded-For only", forwarded.to_owned()),
        ("no signature", format!("X-Instance-ID: {a}\r\n")),
        ("no id", format!("X-Instance-ID-Signature: {good}\r\n")),
        ("an empty id, signed", signed("")),
        ("a signature of zeros", claim(&a, &"0".repeat(64))),
        ("a signature with another secret", claim(&a, &signature("another", &a))),
        ("a signature of another id", claim(&a, &signature(SECRET, &b))),
        ("a signature in capitals", claim(&a, &good.to_uppercase())),
        ("a signature cut short", claim(&a, &good[..62])),
        ("a signature and more", claim(&a, &format!("{good}00"))),
        ("an invalid signature", claim(&a, "good")),
        ("an id spelt in another way than signed", claim(&a.to_uppercase(), &good)),
        ("a VM that does not exist, signed", signed(&no_vm)),
        ("a name, signed", signed("a")),
        ("a GUID without hyphens, signed", signed(&a.replace('-', ""))),
        ("a GUID in braces, signed", signed(&format!("{{{a}}}"))),
        ("the id twice", format!("{for_a}X-Instance-ID: {a}\r\n")),
        ("two ids", format!("{for_a}X-Instance-ID: {b}\r\n")),
        ("two ids with their signatures", format!("{for_a}{for_b}")),
        ("the signature twice", format!("{for_a}X-Instance-ID-Signature: {good}\r\n")),
        ("two ids in one", signed(&format!("{a},{b}"))),
        ("another header of the kind", format!("X-Instance-ID: {a}\r\nX-Tenant-ID: t\r\n")),
    ] {
        rows.push(row(name, ALL, poll_with(&about), 403, FORBIDDEN).from(PROXY).extra(CLOSE));
    }
    rows.push(
        row("an unknown caller with a valid claim", ALL, poll_with(&for_a), 403, FORBIDDEN)
            .from(UNKNOWN)
            .extra(CLOSE),
    );
    rows.push(
        row("a proxy without HTTP", ALL, "\u{16}\u{3}\u{1}".to_owned(), 403, FORBIDDEN)
            .from(PROXY)
            .extra(CLOSE),
    );
    rows
}

const CLOSE: &[&str] = &["Connection: close"];

fn approve_with(about: &str, event: &str) -> String {
    post_with(EVENTS, &format!("Metadata: true\r\n{about}"), &approval(event))
}
