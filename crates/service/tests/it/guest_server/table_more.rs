//! More of the table: approvals, instance metadata, and malformed requests.

use super::harness::*;
use super::table::{ALL, FORBIDDEN, NO_METADATA, NOT_FOUND, Row, document, row};

pub const UNKNOWN_EVENT: &str = r#"{"error":"Bad request. An EventId names no event of this scope: approve events of the current document"}"#;
const TOO_LARGE: &str = r#"{"error":"Payload too large. A body has at most 65536 bytes"}"#;
const INSTANCE_VERSIONS: &str = r#"{"error":"Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds","newest-versions":["2025-04-07","2024-07-17","2024-03-15"]}"#;

fn bad_body(what: &str) -> String {
    format!(r#"{{"error":"Bad request. {what}; send {{\"StartRequests\":[{{\"EventId\":\"...\"}}]}}"}}"#)
}

fn malformed(what: &str) -> String {
    format!(r#"{{"error":"Bad request. Not a valid HTTP/1.1 request: {what}"}}"#)
}

pub fn approvals() -> Vec<Row> {
    let target = EVENTS;
    let both = format!(r#"{{"StartRequests":[{{"EventId":"{EVENT_A}"}},{{"EventId":"{EVENT_B}"}}]}}"#);
    let many = format!(
        r#"{{"StartRequests":[{}]}}"#,
        vec![format!(r#"{{"EventId":"{EVENT_A}"}}"#); 1_001].join(",")
    );
    let unavailable = r#"{"error":"Service unavailable. The approval was not kept: send it again"}"#;
    let unknown =
        r#"{"error":"Service unavailable. The approval may or may not have been kept: send it again"}"#;
    let close: &[&str] = &["Connection: close"];
    let form = "Metadata: true\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let tagged = "Metadata: true\r\nIf-None-Match: 7\r\nIf-Match: 1\r\n";
    vec![
        row("an approval", ALL, post(target, &approval(EVENT_A)), 200, ""),
        row("in lower case", ALL, post(target, &approval(&EVENT_A.to_lowercase())), 200, ""),
        row(
            "at another version than was read",
            ALL,
            post("/metadata/scheduledevents?api-version=2019-08-01", &approval(EVENT_A)),
            200,
            "",
        ),
        row("as a form", ALL, post_with(target, form, &approval(EVENT_A)), 200, ""),
        row(
            "with ETags, which an approval ignores",
            ALL,
            post_with(target, tagged, &approval(EVENT_A)),
            200,
            "",
        ),
        row(
            "with a mark and an old incarnation",
            ALL,
            post(
                target,
                &format!(
                    "\u{feff}{{\"DocumentIncarnation\":\"5\",\"StartRequests\":[{{\"EventId\":\"{EVENT_A}\"}}]}}"
                ),
            ),
            200,
            "",
        ),
        row(
            "an unknown event",
            ALL,
            post(target, &approval("11111111-1111-1111-1111-111111111111")),
            400,
            UNKNOWN_EVENT,
        ),
        row("another scope's event", ALL, post(target, &approval(EVENT_B)), 400, UNKNOWN_EVENT),
        row("no GUID", ALL, post(target, &approval("x")), 400, UNKNOWN_EVENT),
        row("a GUID in braces", ALL, post(target, &approval(&format!("{{{EVENT_A}}}"))), 400, UNKNOWN_EVENT),
        row("one known, one not", ALL, post(target, &both), 400, UNKNOWN_EVENT),
        row("no body", ALL, post(target, ""), 400, &bad_body("the body is not JSON (line 1, column 0)")),
        row("no JSON", ALL, post(target, "{x"), 400, &bad_body("the body is not JSON (line 1, column 2)")),
        row("no object", ALL, post(target, "[]"), 400, &bad_body("the body is not a JSON object")),
        row("no StartRequests", ALL, post(target, "{}"), 400, &bad_body("the body has no StartRequests")),
        row(
            "no list",
            ALL,
            post(target, r#"{"StartRequests":{}}"#),
            400,
            &bad_body("StartRequests is not a list"),
        ),
        row(
            "an empty list",
            ALL,
            post(target, r#"{"StartRequests":[]}"#),
            400,
            &bad_body("StartRequests is empty"),
        ),
        row(
            "no EventId",
            ALL,
            post(target, r#"{"StartRequests":[{}]}"#),
            400,
            &bad_body("StartRequests[0] has no EventId"),
        ),
        row(
            "a number",
            ALL,
            post(target, r#"{"StartRequests":[{"EventId":1}]}"#),
            400,
            &bad_body("StartRequests[0].EventId is not a string"),
        ),
        row(
            "too many",
            ALL,
            post(target, &many),
            400,
            &bad_body("StartRequests has 1001 entries, more than the limit of 1000"),
        ),
        row("too large", ALL, post(target, &" ".repeat(65_537)), 413, TOO_LARGE).extra(close),
        row(
            "a large body on GET",
            ALL,
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nMetadata: true\r\nContent-Length: 65537\r\n\r\n"),
            413,
            TOO_LARGE,
        )
        .extra(close),
        row("too large and without Metadata", ALL, post_with("/", "", &" ".repeat(65_537)), 400, NO_METADATA)
            .extra(close),
        row("the outcome is unknown", ALL, post(target, &approval(EVENT_LOST)), 503, unknown),
        row("the store is down", ALL, post(target, &approval(EVENT_DOWN)), 503, unavailable),
        row(
            "the caller's address is another's now",
            ALL,
            post(target, &approval(EVENT_MOVED)),
            403,
            FORBIDDEN,
        ),
    ]
}

pub fn instance_metadata() -> Vec<Row> {
    let at = |rest: &str| get(&format!("/metadata/instance{rest}"));
    let needs_text =
        r#"{"error":"Bad request. A single value is served as text: add format=text to the query"}"#;
    let no_format = r#"{"error":"Bad request. The format is json or text"}"#;
    let network = r#"{"interface":[{"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.10","publicIpAddress":""}],"subnet":[]},"ipv6":{"ipAddress":[]},"macAddress":""}]}"#;
    let compute = r#"{"location":"","name":"a","offer":"","osType":"","platformFaultDomain":"","platformUpdateDomain":"","publisher":"","sku":"","version":"","vmId":"","vmSize":""}"#;
    let whole = format!(r#"{{"compute":{compute},"network":{network}}}"#);
    let address = "/network/interface/0/ipv4/ipAddress/0/privateIpAddress";
    vec![
        row("the whole", ALL, at("?api-version=2017-04-02"), 200, &whole),
        row("a part", ALL, at("/network/?api-version=2021-12-13"), 200, network),
        row("a value", ALL, at("/compute/name?api-version=2021-05-01&format=text"), 200, "a"),
        row(
            "a value in a list",
            ALL,
            at(&format!("{address}?api-version=2021-02-01&format=text")),
            200,
            "10.0.0.10",
        ),
        row("a listing", ALL, at("?api-version=2021-02-01&format=text"), 200, "compute/\nnetwork/"),
        row("a value as JSON", ALL, at("/compute/name?api-version=2021-05-01"), 400, needs_text),
        row(
            "a value as JSON, requested",
            ALL,
            at("/compute/name?api-version=2021-05-01&format=json"),
            400,
            needs_text,
        ),
        row("no such element", ALL, at("/compute/nme?api-version=2021-05-01&format=text"), 404, NOT_FOUND),
        row("no such format", ALL, at("?api-version=2021-05-01&format=xml"), 400, no_format),
        row("no version", ALL, at(""), 400, INSTANCE_VERSIONS),
        row("a version of the events", ALL, at("?api-version=2020-07-01"), 400, INSTANCE_VERSIONS),
        row("a version that is not served", ALL, at("?api-version=2024-07-09"), 400, INSTANCE_VERSIONS),
        row("a version before the first", ALL, at("?api-version=2017-03-01"), 400, INSTANCE_VERSIONS),
    ]
}

pub fn framing() -> Vec<Row> {
    let close: &[&str] = &["Connection: close"];
    let shown = document("a", "2020-07-01");
    let line = format!("GET {EVENTS} HTTP/1.1\r\n");
    let flood = format!("{line}Host: a\r\n{}\r\n", "a: b\r\n".repeat(64));
    let large =
        r#"{"error":"Request header fields too large. A head has at most 16384 bytes and 64 headers"}"#;
    let long = r#"{"error":"URI too long. A request target has at most 8192 bytes"}"#;
    let unparsable = malformed("the head cannot be parsed");
    let one_host = malformed("there must be one Host header");
    let rows = vec![
        row(
            "Connection: close",
            ALL,
            get_with(EVENTS, "Metadata: true\r\nConnection: Close\r\n"),
            200,
            &shown,
        ),
        row("HTTP/1.0", ALL, format!("GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n\r\n"), 200, &shown),
        row("no Host", ALL, format!("{line}Metadata: true\r\n\r\n"), 400, &one_host),
        row("two Hosts", ALL, format!("{line}Host: a\r\nHost: a\r\nMetadata: true\r\n\r\n"), 400, &one_host),
        row("a folded header", ALL, get_with(EVENTS, "Metadata: true\r\nA: b\r\n c\r\n"), 400, &unparsable),
        row("a space before a colon", ALL, get_with(EVENTS, "Metadata : true\r\n"), 400, &unparsable),
        row("no HTTP", ALL, "\u{16}\u{3}\u{1}\u{2}hello".to_owned(), 400, &unparsable),
        row(
            "HTTP/2",
            ALL,
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            400,
            &malformed("the version is not HTTP/1.0 or HTTP/1.1"),
        ),
        row(
            "two lengths",
            ALL,
            post_with(EVENTS, "Metadata: true\r\nContent-Length: 5\r\n", "{}"),
            400,
            &malformed("Content-Length is given twice and differs"),
        ),
        row(
            "a length and chunks",
            ALL,
            post_with(EVENTS, "Metadata: true\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            400,
            &malformed("Content-Length and Transfer-Encoding exclude each other"),
        ),
        row(
            "another coding",
            ALL,
            get_with(EVENTS, "Metadata: true\r\nTransfer-Encoding: gzip\r\n"),
            400,
            &malformed("Transfer-Encoding must be chunked, once"),
        ),
        row(
            "no chunk",
            ALL,
            get_with(EVENTS, "Metadata: true\r\nTransfer-Encoding: chunked\r\n") + "xyz\r\n",
            400,
            &malformed("the chunked body cannot be parsed"),
        ),
        row("too many headers", ALL, flood, 431, large),
        row("too large a head", ALL, get_with(EVENTS, &format!("A: {}\r\n", "x".repeat(16_384))), 431, large),
        row("too long a target", ALL, get(&format!("/{}", "x".repeat(8_192))), 414, long),
        row("an endless target", ALL, format!("GET /{}", "x".repeat(20_000)), 414, long),
    ];
    let mut rows: Vec<Row> = rows.into_iter().map(|row| row.extra(close)).collect();
    rows.push(
        row(
            "HTTP/1.0 kept alive",
            ALL,
            format!("GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\nConnection: keep-alive\r\n\r\n"),
            200,
            &shown,
        )
        .extra(&["Connection: keep-alive"]),
    );
    rows
}
