//! The OpenAPI 3.1 description of the API: the file `docs/openapi.json`, which the program contains.
//!
//! Its source is the handlers' and wire types' own descriptions. [`describe`] writes the file from them, and checks that it
//! is current and has exactly the routes of the tables; only that needs utoipa (feature `describe`).

#[cfg(all(test, feature = "describe"))]
mod describe;

use std::sync::LazyLock;

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use notbefore_wire::operator as wire;
use serde_json::Value;

use super::routes::Routes;

/// The description, as in `GET /v1/openapi.json`.
pub const DESCRIPTION: &str = include_str!("../../../../docs/openapi.json");

/// The description, parsed.
pub static PARSED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(DESCRIPTION).unwrap_or_default());

/// Describe the API (OpenAPI 3.1)
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, description = "This description", body = Object)))]
pub async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}

/// List the routes of the API
#[utoipa::path(get, path = "/", tag = "service", responses((status = 200, body = wire::ApiIndex)))]
pub async fn index() -> Json<wire::ApiIndex> {
    static INDEX: LazyLock<wire::ApiIndex> = LazyLock::new(make_index);
    Json(INDEX.clone())
}

fn make_index() -> wire::ApiIndex {
    let pages = [
        ("/", "The console, for browsers"),
        ("/healthz", "Whether the process answers"),
        ("/readyz", "Whether the store accepts changes"),
        ("/metrics", "Metrics in OpenMetrics format"),
    ];
    let page = |(path, summary): (&str, &str)| route("GET", path, summary, false);
    let mut routes: Vec<wire::ApiRoute> = pages.map(page).into();
    add(&mut routes, &super::shared_routes(), false);
    add(&mut routes, &super::public_routes(), false);
    add(&mut routes, &super::operator_routes(), true);
    // By path, the methods of one path in the order of the tables.
    routes.sort_by(|one, two| one.path.cmp(&two.path));
    wire::ApiIndex {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        openapi: "/v1/openapi.json".to_owned(),
        documentation: "docs/reference/operator-api.md".to_owned(),
        routes,
    }
}

fn route(method: &str, path: &str, summary: &str, operator_only: bool) -> wire::ApiRoute {
    let (method, path, summary) = (method.to_owned(), path.to_owned(), summary.to_owned());
    wire::ApiRoute { method, path, summary, operator_only }
}

fn add<S>(index: &mut Vec<wire::ApiRoute>, routes: &Routes<S>, operator_only: bool) {
    index.extend(routes.paths.iter().map(|(method, path)| {
        let path = full_path(path);
        let summary = &PARSED["paths"][&path][method.as_str().to_lowercase()]["summary"];
        route(method.as_str(), &path, summary.as_str().unwrap_or_default(), operator_only)
    }));
}

/// The path of a route in the tables, as clients and the description have it.
fn full_path(path: &str) -> String {
    format!("/v1{}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use notbefore_wire::operator::clock::Clock;
    use notbefore_wire::operator::cluster::{Cluster, HandOver, Upgrade};
    use notbefore_wire::operator::fleet::ScopePlan;
    use notbefore_wire::operator::history::HistorySummary;
    use notbefore_wire::operator::hosts::{Host, HostsPlan};
    use notbefore_wire::operator::plan::Plan;
    use notbefore_wire::operator::session::{Session, SignInLink};
    use notbefore_wire::operator::status::Status;
    use notbefore_wire::operator::tokens::{NewToken, Token};
    use notbefore_wire::operator::vm_log::VmLog;
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value, json};
    use wire::audit::AuditEntry;
    use wire::{ApiIndex, Event, Fact, Operation, Page, Problem, Scope, ScopeOutcome, Vm};

    use super::*;

    /// A value of a schema as a later release may write it: each object has a further field, and, if `is_reworded`,
    /// each word is another.
    fn later(all: &Value, schema: &Value, is_reworded: bool) -> Value {
        let next = |schema: &Value| later(all, schema, is_reworded);
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return next(&all[name]);
        }
        if let Some(one) = schema["oneOf"].get(0) {
            return next(one);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let objects = parts.iter().map(next).map(|part| part.as_object().unwrap().clone());
            return Value::Object(objects.flatten().collect());
        }
        if let Some(words) = schema["enum"].as_array() {
            return if is_reworded { json!("a-later-word") } else { words[0].clone() };
        }
        let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        match (types[0].as_str().unwrap(), schema["format"].as_str()) {
            ("object", _) => {
                let fields = schema["properties"].as_object().unwrap().iter();
                let mut object: Map<_, _> = fields.map(|(name, field)| (name.clone(), next(field))).collect();
                object.insert("a_later_field".to_owned(), json!({}));
                Value::Object(object)
            }
            ("array", _) => json!([next(&schema["items"])]),
            ("boolean", _) => json!(true),
            ("integer", _) => json!(1),
            ("string", Some("date-time")) => json!("2026-01-31T12:00:00Z"),
            ("string", Some("uuid")) => json!(uuid::Uuid::nil()),
            // Text that is also an address; a fact's id has an example.
            ("string", None) => schema.get("example").cloned().unwrap_or_else(|| json!("10.0.0.4")),
            other => panic!("{other:?} in {schema}"),
        }
    }

    fn reads<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
        serde_json::from_value::<T>(value.clone()).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn responses_of_a_later_release_can_be_read() {
        type Read = fn(&Value) -> Result<(), String>;
        let readers: [(&str, Read); 33] = [
            ("ApiIndex", reads::<ApiIndex>),
            ("ClearedFaults", reads::<notbefore_wire::operator::faults::ClearedFaults>),
            ("Fault", reads::<notbefore_wire::operator::faults::Fault>),
            ("FaultList", reads::<notbefore_wire::operator::faults::FaultList>),
            ("ForgottenNode", reads::<notbefore_wire::operator::cluster::ForgottenNode>),
            ("Clock", reads::<Clock>),
            ("Cluster", reads::<Cluster>),
            ("Event", reads::<Event>),
            ("Fact", reads::<Fact>),
            ("HandOver", reads::<HandOver>),
            ("Host", reads::<Host>),
            ("HistorySummary", reads::<HistorySummary>),
            ("HostsPlan", reads::<HostsPlan>),
            ("NewToken", reads::<NewToken>),
            ("Operation", reads::<Operation>),
            ("Page_AuditEntry", reads::<Page<AuditEntry>>),
            ("Page_Event", reads::<Page<Event>>),
            ("Page_Host", reads::<Page<Host>>),
            ("Page_Operation", reads::<Page<Operation>>),
            ("Page_Scope", reads::<Page<Scope>>),
            ("Page_Token", reads::<Page<Token>>),
            ("Page_Vm", reads::<Page<Vm>>),
            ("Plan", reads::<Plan>),
            ("Problem", reads::<Problem>),
            ("Scope", reads::<Scope>),
            ("ScopeOutcome", reads::<ScopeOutcome>),
            ("ScopePlan", reads::<ScopePlan>),
            ("Session", reads::<Session>),
            ("SignInLink", reads::<SignInLink>),
            ("Status", reads::<Status>),
            ("Upgrade", reads::<Upgrade>),
            ("Vm", reads::<Vm>),
            ("VmLog", reads::<VmLog>),
        ];
        let api = &*PARSED;
        let calls =
            api["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
        let responses = calls.flat_map(|call| call["responses"].as_object().unwrap().values());
        let contents = responses.filter_map(|one| one["content"].as_object()).flat_map(Map::values);
        let answered: BTreeSet<&str> =
            contents.filter_map(|one| one["schema"]["$ref"].as_str()?.rsplit('/').next()).collect();
        assert_eq!(answered, readers.iter().map(|(name, _)| *name).collect(), "all responses are tested");
        let schemas = &api["components"]["schemas"];
        for (name, read) in readers {
            for is_reworded in [false, true] {
                let value = later(schemas, &schemas[name], is_reworded);
                assert_eq!(read(&value), Ok(()), "{name}: {value:#}");
            }
        }
        // All types of facts, each with a detail that has a further field.
        for (name, schema) in schemas.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("Fact"))
        {
            let value = later(schemas, schema, false);
            let fact: Fact = serde_json::from_value(value.clone()).unwrap();
            assert!(!matches!(fact.what, wire::FactDetail::Unknown { .. }), "{name}: {value:#}");
        }
    }

    #[test]
    fn index_lists_every_route_with_a_summary() {
        let index = make_index();
        let described = PARSED["paths"].as_object().unwrap().values();
        let described: usize = described.map(|item| item.as_object().unwrap().len()).sum();
        assert_eq!(index.routes.iter().filter(|route| route.path.starts_with("/v1")).count(), described);
        let unsaid: Vec<_> = index.routes.iter().filter(|route| route.summary.is_empty()).collect();
        assert!(unsaid.is_empty(), "{unsaid:?}");
        let find = |method: &str, path: &str| {
            index.routes.iter().find(|route| route.method == method && route.path == path).unwrap()
        };
        assert!(!find("GET", "/v1").operator_only && !find("GET", "/readyz").operator_only);
        assert!(find("POST", "/v1/tokens").operator_only);
    }
}
