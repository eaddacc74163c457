//! Table of requests: modes, sources and expected responses.

use notbefore_service::guest::settings::Mode;

use super::harness::*;
use super::table_more::{approvals, framing, instance_metadata};
use super::table_proxy::proxies;

pub struct Row {
    pub name: &'static str,
    pub modes: &'static [Mode],
    pub from: From,
    pub request: String,
    pub status: u16,
    pub body: String,
    /// Headers after the ordered ones.
    pub extra: &'static [&'static str],
}

pub const ALL: &[Mode] = &[Mode::Normal, Mode::Strict, Mode::Lenient];
const STRICT: &[Mode] = &[Mode::Strict];
const LENIENT: &[Mode] = &[Mode::Lenient];
const FORGIVING: &[Mode] = &[Mode::Normal, Mode::Lenient];
const UNFORGIVING: &[Mode] = &[Mode::Normal, Mode::Strict];

const OLD: &str = "/metadata/scheduledevents?api-version=2017-03-01";
pub const NO_METADATA: &str = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
const NOT_TRUE: &str = r#"{"error":"Bad request. The Metadata header must read: Metadata: true"}"#;
const EVENTS_VERSIONS: &str = r#"{"error":"Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds","newest-versions":["2020-07-01","2019-08-01","2019-04-01"]}"#;
const NOT_SERVED: &str = r#"{ "error": "Not found. Invalid version requested" }"#;
pub const FORBIDDEN: &str = r#"{"error":"Forbidden"}"#;
pub const NOT_FOUND: &str = r#"{"error":"Not found"}"#;
pub const FORWARDED: &str = r#"{"error":"Bad request. X-Forwarded-For is not accepted: bypass proxies and ask this address directly"}"#;
const DUPLICATE: &str =
    r#"{"error":"Bad request. A query parameter is given more than once: give each one once"}"#;
const TAKES_BOTH: &str = r#"{"error":"Method not allowed. This path takes GET and POST"}"#;
const TAKES_GET: &str = r#"{"error":"Method not allowed. This path takes GET"}"#;

pub fn row(name: &'static str, modes: &'static [Mode], request: String, status: u16, body: &str) -> Row {
    Row { name, modes, from: From::A, request, status, body: body.to_owned(), extra: &[] }
}

impl Row {
    pub fn from(self, from: From) -> Row {
        Row { from, ..self }
    }

    pub fn extra(self, extra: &'static [&'static str]) -> Row {
        Row { extra, ..self }
    }
}

pub fn document(vm: &str, version: &str) -> String {
    format!(r#"{{"DocumentIncarnation":7,"Events":["{vm} at {version}"]}}"#)
}

fn callers() -> Vec<Row> {
    let shown = document("a", "2020-07-01");
    let close: &[&str] = &["Connection: close"];
    vec![
        row("a bound listener's VM", ALL, get(EVENTS), 200, &shown),
        row("the other listener's VM", ALL, get(EVENTS), 200, &document("b", "2020-07-01")).from(From::B),
        row("a VM by its address", ALL, get(EVENTS), 200, &shown).from(From::Address("127.0.0.2")),
        row("the other VM by its address", ALL, get(EVENTS), 200, &document("b", "2020-07-01"))
            .from(From::Address("127.0.0.3")),
        row("an unknown caller", ALL, get(EVENTS), 403, FORBIDDEN)
            .from(From::Address("127.0.0.4"))
            .extra(close),
        row(
            "an unknown caller with other errors",
            ALL,
            get_with("/", "X-Forwarded-For: a\r\n"),
            403,
            FORBIDDEN,
        )
        .from(From::Address("127.0.0.4"))
        .extra(close),
        row("an unknown caller without HTTP", ALL, "\u{16}\u{3}\u{1}".to_owned(), 403, FORBIDDEN)
            .from(From::Address("127.0.0.4"))
            .extra(close),
        row(
            "forwarded",
            ALL,
            get_with(EVENTS, "Metadata: true\r\nX-Forwarded-For: 10.0.0.4\r\n"),
            400,
            FORWARDED,
        ),
        row(
            "forwarded, empty",
            ALL,
            get_with(EVENTS, "Metadata: true\r\nx-forwarded-for:\r\n"),
            400,
            FORWARDED,
        ),
    ]
}

fn metadata_header() -> Vec<Row> {
    let shown = document("a", "2020-07-01");
    let body = approval(EVENT_A);
    vec![
        row("no Metadata", ALL, get_with(EVENTS, ""), 400, NO_METADATA),
        row("no Metadata at the root", ALL, get_with("/", ""), 400, NO_METADATA),
        row("no Metadata on HEAD", ALL, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400, ""),
        row("no Metadata on GET at 2017-03-01", ALL, get_with(OLD, ""), 400, NO_METADATA),
        row("any name, no space", ALL, get_with(EVENTS, "mEtAdAtA:true\r\n"), 200, &shown),
        row("spaces around", ALL, get_with(EVENTS, "Metadata: \t true \t \r\n"), 200, &shown),
        row("True", FORGIVING, get_with(EVENTS, "Metadata: True\r\n"), 200, &shown),
        row("TRUE", FORGIVING, get_with(EVENTS, "metadata: TRUE\r\n"), 200, &shown),
        row("True, strictly", STRICT, get_with(EVENTS, "Metadata: True\r\n"), 400, NOT_TRUE),
        row("false", ALL, get_with(EVENTS, "Metadata: false\r\n"), 400, NOT_TRUE),
        row("empty", ALL, get_with(EVENTS, "Metadata:\r\n"), 400, NOT_TRUE),
        row("true and false", ALL, get_with(EVENTS, "Metadata: true\r\nMetadata: false\r\n"), 400, NOT_TRUE),
        row("POST without at 2017-03-01", FORGIVING, post_with(OLD, "", &body), 200, ""),
        row("POST without at 2017-03-01, strictly", STRICT, post_with(OLD, "", &body), 400, NO_METADATA),
        row("POST without, later", UNFORGIVING, post_with(EVENTS, "", &body), 400, NO_METADATA),
        row("POST without, later, leniently", LENIENT, post_with(EVENTS, "", &body), 200, ""),
        row(
            "POST with false at 2017-03-01",
            ALL,
            post_with(OLD, "Metadata: false\r\n", &body),
            400,
            NOT_TRUE,
        ),
        row(
            "POST without, to another path",
            ALL,
            post_with("/metadata/instance?api-version=2017-03-01", "", &body),
            400,
            NO_METADATA,
        ),
    ]
}

fn paths_and_methods() -> Vec<Row> {
    let shown = document("a", "2020-07-01");
    let old = document("a", "2017-03-01");
    let latest = "/metadata/latest/scheduledevents";
    let dated = "/metadata/2017-08-01/scheduledEvents";
    let unserved = "/metadata/2018-01-01/scheduledevents";
    let with = |method: &str, target: &str| {
        format!("{method} {target} HTTP/1.1\r\nHost: a\r\nMetadata: true\r\n\r\n")
    };
    let both: &[&str] = &["Allow: GET, POST"];
    let only_get: &[&str] = &["Allow: GET"];
    vec![
        row("any case", ALL, get("/Metadata/scheduledEvents?api-version=2020-07-01"), 200, &shown),
        row("a slash at the end", ALL, get("/metadata/scheduledevents/?api-version=2020-07-01"), 200, &shown),
        row("a target with a server", ALL, get(&format!("http://169.254.169.254{EVENTS}")), 200, &shown),
        row("the root", ALL, get("/"), 404, NOT_FOUND),
        row("/metadata", ALL, get("/metadata"), 404, NOT_FOUND),
        row(
            "two slashes at the end",
            ALL,
            get("/metadata/scheduledevents//?api-version=2020-07-01"),
            404,
            NOT_FOUND,
        ),
        row(
            "below the events",
            ALL,
            get("/metadata/scheduledevents/x?api-version=2020-07-01"),
            404,
            NOT_FOUND,
        ),
        row(
            "another category",
            ALL,
            get("/metadata/attested/document?api-version=2020-09-01"),
            404,
            NOT_FOUND,
        ),
        row("latest in the path", UNFORGIVING, get(latest), 404, NOT_FOUND),
        row("latest in the path, leniently", LENIENT, get(latest), 200, &old),
        row("a version in the path", UNFORGIVING, get(dated), 404, NOT_FOUND),
        row("a version in the path, leniently", LENIENT, get(dated), 200, &document("a", "2017-08-01")),
        row("no version in the path", UNFORGIVING, get(unserved), 404, NOT_FOUND),
        row("an unserved version in the path, leniently", LENIENT, get(unserved), 404, NOT_SERVED),
        row(
            "POST to it without Metadata",
            LENIENT,
            post_with(unserved, "", &approval(EVENT_A)),
            404,
            NOT_SERVED,
        ),
        row("no date in the path", ALL, get("/metadata/2018-13-01/scheduledevents"), 404, NOT_FOUND),
        row("POST to latest", LENIENT, post_with(latest, "", &approval(EVENT_A)), 200, ""),
        row("PUT", ALL, with("PUT", EVENTS), 405, TAKES_BOTH).extra(both),
        row("DELETE, no version", ALL, with("DELETE", "/metadata/scheduledevents"), 405, TAKES_BOTH)
            .extra(both),
        row("lower-case get", ALL, with("get", EVENTS), 405, TAKES_BOTH).extra(both),
        row("HEAD", ALL, with("HEAD", EVENTS), 405, "").extra(both),
        row("POST to instance", ALL, post("/metadata/instance?api-version=2021-02-01", "{}"), 405, TAKES_GET)
            .extra(only_get),
        row("POST to versions", ALL, post("/metadata/versions", "{}"), 405, TAKES_GET).extra(only_get),
    ]
}

fn queries() -> Vec<Row> {
    let shown = document("a", "2020-07-01");
    let at = |query: &str| get(&format!("/metadata/scheduledevents{query}"));
    let approve =
        |version: &str| post(&format!("/metadata/scheduledevents?api-version={version}"), &approval(EVENT_A));
    let mut rows = vec![
        row("no query", ALL, at(""), 400, EVENTS_VERSIONS),
        row("an empty version", ALL, at("?api-version="), 400, EVENTS_VERSIONS),
        row("latest", ALL, at("?api-version=latest"), 400, EVENTS_VERSIONS),
        row("latest on POST", ALL, approve("latest"), 400, EVENTS_VERSIONS),
        row("a date without its zeros", ALL, at("?api-version=2024-7-9"), 400, EVENTS_VERSIONS),
        row("a date that the calendar lacks", ALL, at("?api-version=2024-13-45"), 400, EVENTS_VERSIONS),
        row("the same on POST", ALL, approve("2024-13-45"), 400, EVENTS_VERSIONS),
        row("a version of instance metadata", ALL, at("?api-version=2021-02-01"), 404, NOT_SERVED),
        row("a version newer than the newest served", ALL, at("?api-version=2024-07-10"), 404, NOT_SERVED),
        row("the newest version", ALL, at("?api-version=2024-07-09"), 200, &document("a", "2024-07-09")),
        row("an older one, encoded", ALL, at("?api-version=2016%2D01-01"), 404, NOT_SERVED),
        row("an unserved version on POST", ALL, approve("2024-07-10"), 404, NOT_SERVED),
        row("an unserved version twice", ALL, at("?api-version=2024-07-10&api-version=1"), 400, DUPLICATE),
        row("a version twice", ALL, at("?api-version=2020-07-01&api-version=2020-07-01"), 400, DUPLICATE),
        row("another twice", ALL, at("?a=1&api-version=2020-07-01&a=2"), 400, DUPLICATE),
        row("twice before the version is looked at", ALL, at("?a&a&api-version=latest"), 400, DUPLICATE),
        row("more parameters in any order", ALL, at("?x=1&api-version=2020-07-01&format=json"), 200, &shown),
        row("percent-encoded", ALL, at("?api%2Dversion=2020%2d07%2D01"), 200, &shown),
        row(
            "another format",
            ALL,
            at("?api-version=2020-07-01&format=text"),
            400,
            r#"{"error":"Bad request. The format of this path is json"}"#,
        ),
    ];
    let versions = ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01"];
    for version in versions {
        rows.push(row(
            "an older version",
            ALL,
            at(&format!("?api-version={version}")),
            200,
            &document("a", version),
        ));
    }
    rows
}

/// All rows.
pub fn table() -> impl Iterator<Item = Row> {
    let parts = [
        callers(),
        proxies(),
        metadata_header(),
        paths_and_methods(),
        queries(),
        approvals(),
        instance_metadata(),
        framing(),
    ];
    parts.into_iter().flatten()
}
