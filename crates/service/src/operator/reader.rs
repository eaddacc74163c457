//! Reads bodies and queries of requests into API types. Checks them against the OpenAPI description first.
//!
//! The check refuses unknown fields in all types, because serde must accept them in those that are also in responses.
//! It refuses a list in place of an object, which serde accepts. Its messages name the field, the value and the allowed
//! values. It does not check words: the handlers do, ignoring case.
//!
//! [`require_known_parameters`] refuses unknown query parameters for all routes, also for those that have none.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Query, Request};
use axum::http::{Extensions, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use notbefore_wire::text::shorten;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::openapi::PARSED;
use super::problem::Problem;

/// Longest part of a value that a message quotes.
const QUOTED_CHARS_MAX: usize = 60;
const TIME: &str = "a time such as 2026-01-31T12:00:00Z, no later than 9999-12-30T22:00:00Z";

/// What the description says of a request.
pub struct Described {
    /// The schema of its body; null if it takes none.
    body: &'static Value,
    /// Names and schemas of its query parameters.
    query: Vec<(&'static str, &'static Value)>,
}

/// The requests of each path, by method.
static REQUESTS: LazyLock<HashMap<&str, HashMap<Method, Described>>> = LazyLock::new(|| {
    let by_method = |(method, operation): (&String, &'static Value)| {
        Some((Method::from_bytes(method.to_uppercase().as_bytes()).ok()?, describe(operation)))
    };
    let paths = PARSED["paths"].as_object().into_iter().flatten();
    paths
        .map(|(path, item)| {
            (path.as_str(), item.as_object().into_iter().flatten().filter_map(by_method).collect())
        })
        .collect()
});

fn describe(operation: &'static Value) -> Described {
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let in_query =
        operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query");
    Described {
        // Of an optional body: no body is null.
        body: body["oneOf"].get(0).unwrap_or(body),
        query: in_query.filter_map(|one| Some((one["name"].as_str()?, &one["schema"]))).collect(),
    }
}

/// What the description says of a request to the route that axum has found.
pub fn described(method: &Method, extensions: &Extensions) -> &'static Described {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    described_at(method, extensions.get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default())
}

/// What the description says of a request to a route.
pub fn described_at(method: &Method, path: &str) -> &'static Described {
    static NOTHING: Described = Described { body: &Value::Null, query: Vec::new() };
    REQUESTS.get(path).and_then(|methods| methods.get(method)).unwrap_or(&NOTHING)
}

/// Makes what the first request would make, in milliseconds.
pub fn prepare() {
    LazyLock::force(&REQUESTS);
}

fn bad_query(why: &str) -> Problem {
    Problem::bad_request("bad_query", format!("the query is not valid: {why}"))
}

/// Refuses requests with a query parameter that their route does not have.
pub async fn require_known_parameters(request: Request, next: Next) -> Result<Response, Problem> {
    described(request.method(), request.extensions()).check_names(request.uri())?;
    Ok(next.run(request).await)
}

fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    Query::try_from_uri(uri).map(|Query(read)| read).map_err(|_| bad_query("it is not name=value&name=value"))
}

impl Described {
    fn check_names(&self, uri: &Uri) -> Result<(), Problem> {
        let is_known = |name: &String| self.query.iter().any(|(known, _)| known == name);
        let unknown_name = parameters(uri)?.into_iter().map(|(name, _)| name).find(|name| !is_known(name));
        let known = self.query.iter().map(|(name, _)| *name);
        let describe = |name: String| format!("{}{}", shorten(&name, QUOTED_CHARS_MAX), unknown(known));
        unknown_name.map_or(Ok(()), |name| Err(bad_query(&describe(name))))
    }

    /// Reads a body.
    pub fn body<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Problem> {
        let bad = |why: &str| Problem::bad_request("bad_body", format!("the body is not valid: {why}"));
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            bad(&format!("it is not JSON (line {}, column {})", error.line(), error.column()))
        })?;
        check(self.body, &value).map_err(|why| match why.strip_prefix('.') {
            Some(field_and_why) => bad(field_and_why),
            None => bad(&format!("it{why}")),
        })?;
        // Refuses what the check does not see.
        let rest = "a field is given twice, has an unknown word or a list of the wrong length";
        serde_json::from_slice(bytes).map_err(|_| bad(rest))
    }

    /// Reads a query.
    pub fn query<T: DeserializeOwned>(&self, uri: &Uri) -> Result<T, Problem> {
        for (name, text) in parameters(uri)? {
            // Unknown ones have been refused.
            let Some((_, schema)) = self.query.iter().find(|(known, _)| *known == name) else { continue };
            let kind = schema["type"].as_str().or(schema["type"][0].as_str());
            let text = match kind {
                // JSON allows white space around a value.
                Some("integer" | "boolean") if text.trim() == text => {
                    serde_json::from_str(&text).unwrap_or(Value::String(text))
                }
                _ => Value::String(text),
            };
            check(schema, &text).map_err(|why| bad_query(&format!("{name}{why}")))?;
        }
        Query::try_from_uri(uri).map(|Query(read)| read).map_err(|_| bad_query("a parameter is given twice"))
    }
}

fn unknown<'a>(known: impl Iterator<Item = &'a str>) -> String {
    let known = known.collect::<Vec<_>>().join(", ");
    format!(" is unknown; known: {}", if known.is_empty() { "none" } else { &known })
}

/// Checks a value. An error begins with the path of the wrong part, as `.vms[3].name`.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return check(&PARSED["components"]["schemas"][name], value);
    }
    // An optional reference: the other one is null.
    if let Some(one) = schema["oneOf"].get(0) {
        return if value.is_null() { Ok(()) } else { check(one, value) };
    }
    let (types, text) = (&schema["type"], value.as_str());
    if value.is_null() && types[1] == "null" {
        return Ok(());
    }
    let kind = types.as_str().or(types[0].as_str()).unwrap_or_default();
    let widest = if schema["format"] == "int32" { i64::from(i32::MAX) } else { i64::MAX };
    let range = schema["minimum"].as_i64().unwrap_or(-widest)..=schema["maximum"].as_i64().unwrap_or(widest);
    let (is_allowed, allowed) = match (kind, schema["format"].as_str()) {
        ("object", _) => match value.as_object() {
            Some(fields) => return check_fields(schema, fields),
            None => (false, "an object"),
        },
        ("array", _) => match value.as_array() {
            Some(items) if schema["items"].is_object() => {
                let one = |(n, item)| check(&schema["items"], item).map_err(|why| format!("[{n}]{why}"));
                return items.iter().enumerate().try_for_each(one);
            }
            items => (items.is_some(), "a list"),
        },
        ("integer", _) => (value.as_i64().is_some_and(|number| range.contains(&number)), ""),
        ("boolean", _) => (value.is_boolean(), "true or false"),
        ("string", Some("date-time")) => (text.is_some_and(|text| text.parse::<Timestamp>().is_ok()), TIME),
        ("string", Some("uuid")) => (text.is_some_and(|text| text.parse::<Uuid>().is_ok()), "a GUID"),
        ("string", _) => (text.is_some(), "text"),
        _ => (false, "left out"),
    };
    let value = match value {
        _ if is_allowed => return Ok(()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", shorten(text, QUOTED_CHARS_MAX)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    match kind {
        "integer" => {
            Err(format!(" is {value}; it must be a whole number from {} to {}", range.start(), range.end()))
        }
        _ => Err(format!(" is {value}; it must be {allowed}")),
    }
}

fn check_fields(schema: &Value, fields: &Map<String, Value>) -> Result<(), String> {
    let known = schema["properties"].as_object();
    let other = schema.get("additionalProperties").filter(|other| other.is_object());
    for (name, value) in fields {
        let checked = match known.and_then(|known| known.get(name)).or(other) {
            Some(schema) => check(schema, value),
            None => Err(unknown(known.into_iter().flat_map(Map::keys).map(String::as_str))),
        };
        checked.map_err(|why| format!(".{}{why}", shorten(name, QUOTED_CHARS_MAX)))?;
    }
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.find(|name| !fields.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(format!(".{name} is missing")))
}

#[cfg(test)]
mod tests {
    use notbefore_wire::operator::tokens::CreateToken;
    use notbefore_wire::operator::{CompleteEvent, ScheduleEvents, ScopeSpec};

    use super::super::history::ListQuery;
    use super::super::scopes::PutQuery;
    use super::*;

    fn why<T: DeserializeOwned>(path: &str, method: Method, text: &str) -> String {
        let detail = described_at(&method, path)
            .body::<T>(text.as_bytes())
            .err()
            .map(|problem| problem.detail().to_owned());
        detail.map_or_else(String::new, |said| said.replace("the body is not valid: ", ""))
    }

    #[test]
    fn mistake_in_body_names_field_value_and_allowed_values() {
        for (text, said) in [
            ("", "it is not JSON (line 1, column 0)"),
            ("{\"vms\":[}", "it is not JSON (line 1, column 9)"),
            ("[\"Reboot\"]", "it is a list; it must be an object"),
            ("null", "it is null; it must be an object"),
            ("{\"in_seconds\":-1}", "in_seconds is -1; it must be a whole number from 0 to 2147483647"),
            (
                "{\"in_seconds\":18446744073709551615}",
                "in_seconds is 18446744073709551615; it must be a whole number from 0 to 2147483647",
            ),
            ("{\"in_seconds\":1.5}", "in_seconds is 1.5; it must be a whole number from 0 to 2147483647"),
            ("{\"in_seconds\":\"7\"}", "in_seconds is \"7\"; it must be a whole number from 0 to 2147483647"),
            (
                "{\"duration_seconds\":-2}",
                "duration_seconds is -2; it must be a whole number from -1 to 2592000",
            ),
            (
                "{\"not_before\":\"9999-12-31T00:00:00Z\"}",
                "not_before is \"9999-12-31T00:00:00Z\"; it must be a time such as 2026-01-31T12:00:00Z, no later than 9999-12-30T22:00:00Z",
            ),
            ("{\"not_before\":{}}", &format!("not_before is an object; it must be {TIME}")),
            ("{\"force\":1}", "force is 1; it must be true or false"),
            ("{\"vms\":\"web-0\"}", "vms is \"web-0\"; it must be a list"),
            ("{\"vms\":[\"a\",2]}", "vms[1] is 2; it must be text"),
            (
                "{\"typ\":\"Reboot\"}",
                "typ is unknown; known: cause, description, dry_run, duration_seconds, force, in_seconds, not_before, revisions, type, vms",
            ),
            (
                "{\"vms\":[],\"vms\":[]}",
                "a field is given twice, has an unknown word or a list of the wrong length",
            ),
            ("{\"type\":null,\"not_before\":\"9999-12-30T22:00:00Z\",\"in_seconds\":0}", ""),
        ] {
            assert_eq!(why::<ScheduleEvents>("/v1/events", Method::POST, text), said, "{text}");
        }
        assert_eq!(
            why::<CompleteEvent>(
                "/v1/events/{event}/{verb}",
                Method::POST,
                "{\"hosts\":{\"a\":\"h1\",\"b\":\"h2\"}}"
            ),
            ""
        );
        assert_eq!(
            why::<CompleteEvent>("/v1/events/{event}/{verb}", Method::POST, "{\"hosts\":{\"a\":1}}"),
            "hosts.a is 1; it must be text"
        );
    }

    #[test]
    fn mistake_deep_in_body_is_found() {
        let policy =
            "automatically_approve_reboot, automatically_approve_redeploy, terminate_notification_seconds";
        let instance = |text: &str| format!("{{\"kind\":\"x\",\"vms\":[{{}},{{\"instance\":{{{text}}}}}]}}");
        for (text, said) in [
            ("{}".to_owned(), "kind is missing"),
            (
                "{\"kind\":\"x\",\"policy\":{\"auto\":true}}".to_owned(),
                &format!("policy.auto is unknown; known: {policy}"),
            ),
            ("{\"kind\":\"x\",\"policy\":[true]}".to_owned(), "policy is a list; it must be an object"),
            (instance("\"vm_id\":\"7\""), "vms[1].instance.vm_id is \"7\"; it must be a GUID"),
            (
                instance("\"interfaces\":[[]]"),
                "vms[1].instance.interfaces[0] is a list; it must be an object",
            ),
            (
                instance("\"tags\":[[\"a\"]]"),
                "a field is given twice, has an unknown word or a list of the wrong length",
            ),
            (instance("\"priority\":\"spot\",\"tags\":[[\"a\",\"b\"]]"), ""),
        ] {
            assert_eq!(
                why::<ScopeSpec>("/v1/scopes/{subscription}/{group}/{scope}", Method::PUT, &text),
                said,
                "{text}"
            );
        }
        let grant = "{\"name\":\"a\",\"grants\":[{\"role\":\"viewer\",\"path\":\"/\",\"until\":1}]}";
        assert_eq!(
            why::<CreateToken>("/v1/tokens", Method::POST, grant),
            "grants[0].until is unknown; known: path, role"
        );
    }

    #[test]
    fn mistake_in_query_names_parameter_and_value() {
        fn why<T: DeserializeOwned>(method: Method, path: &str, text: &str) -> String {
            let read = described_at(&method, path).query::<T>(&format!("/v1/x?{text}").parse().unwrap());
            let said = read.err().map(|problem| problem.detail().to_owned()).unwrap_or_default();
            said.replace("the query is not valid: ", "")
        }
        let limit = "it must be a whole number from 1 to 1000";
        for (text, said) in [
            ("", ""),
            ("scope=true&vm=7&limit=1000&since=2026-01-31T12:00:00Z", ""),
            ("limit=abc", &format!("limit is \"abc\"; {limit}")),
            ("limit=0", &format!("limit is 0; {limit}")),
            ("limit=1001", &format!("limit is 1001; {limit}")),
            ("limit=", &format!("limit is \"\"; {limit}")),
            ("limit=%205", &format!("limit is \" 5\"; {limit}")),
            ("limit=5%0a", &format!("limit is \"5\\n\"; {limit}")),
            ("since=yesterday", &format!("since is \"yesterday\"; it must be {TIME}")),
            ("vm=a&vm=b", "a parameter is given twice"),
        ] {
            assert_eq!(why::<ListQuery>(Method::GET, "/v1/history", text), said, "{text}");
        }
        assert_eq!(
            why::<PutQuery>(
                Method::PUT,
                "/v1/scopes/{subscription}/{group}/{scope}",
                "prune=true&fleet=false"
            ),
            ""
        );
        assert_eq!(
            why::<PutQuery>(Method::PUT, "/v1/scopes/{subscription}/{group}/{scope}", "prune=1"),
            "prune is 1; it must be true or false"
        );
    }
}
