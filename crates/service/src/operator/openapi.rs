//! The OpenAPI 3.1 description of the API. It is generated from the server's routes and the wire types, so it lists
//! exactly the routes that exist. A copy is in `docs/openapi.json`; a test fails if the two differ.
//!
//! This module adds what all calls have in common: the token, the headers for safe retries, and the error response.

use std::sync::LazyLock;

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use notbefore_wire::operator::{self as wire, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MAX};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, SecurityRequirement};
use utoipa::{PartialSchema, ToSchema};

/// The name of the security scheme.
const TOKEN: &str = "token";
/// The name of the error schema.
const PROBLEM: &str = "Problem";

const DESCRIPTION: &str = "\
Scheduled Events for virtual machines: announce maintenance to VMs, see which VMs have read and approved an event, \
and carry it out.\n\n\
Every call needs a token. Every error is `application/problem+json` with a stable `code`. Lists take `limit` and \
return `next`; pass it as `cursor` to get the next page. A change with an `Idempotency-Key` can be repeated and takes \
effect once. Requests with unknown fields are refused.";

/// Describe the API (OpenAPI 3.1)
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, description = "This description", body = Object)))]
pub async fn show() -> Response {
    // Generated once: it takes milliseconds.
    static DESCRIPTION: LazyLock<Bytes> =
        LazyLock::new(|| serde_json::to_vec(&super::description()).unwrap_or_default().into());
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION.clone()).into_response()
}

/// List the routes of the API
#[utoipa::path(get, path = "/", tag = "service", responses((status = 200, body = wire::ApiIndex)))]
pub async fn index() -> Json<wire::ApiIndex> {
    static INDEX: LazyLock<wire::ApiIndex> = LazyLock::new(make_index);
    Json(INDEX.clone())
}

fn make_index() -> wire::ApiIndex {
    let (shared, operator_only) = super::bare_descriptions();
    let pages = [
        ("/", "The console, for browsers"),
        ("/healthz", "Whether the process answers"),
        ("/readyz", "Whether the store accepts changes"),
        ("/metrics", "Metrics in OpenMetrics format"),
    ];
    let page = |(path, summary): (&str, &str)| route("GET", path, summary, false);
    let mut routes: Vec<wire::ApiRoute> = pages.map(page).into();
    routes.extend(routes_of(&shared, false));
    routes.extend(routes_of(&operator_only, true));
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

fn routes_of(api: &OpenApi, operator_only: bool) -> impl Iterator<Item = wire::ApiRoute> + '_ {
    api.paths.paths.iter().flat_map(move |(path, item)| {
        let all = [("GET", &item.get), ("PUT", &item.put), ("POST", &item.post), ("DELETE", &item.delete)];
        all.into_iter().filter_map(move |(method, operation)| {
            let summary = operation.as_ref()?.summary.as_deref().unwrap_or_default();
            Some(route(method, path, summary, operator_only))
        })
    })
}

/// Adds what all calls have in common.
pub fn complete(api: &mut OpenApi) {
    api.info = InfoBuilder::new()
        .title("notbefore")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(utoipa::openapi::License::new("MIT OR Apache-2.0")))
        .build();
    let components = api.components.get_or_insert_default();
    components.schemas.insert(PROBLEM.to_owned(), wire::Problem::schema());
    let mut nested = Vec::new();
    wire::Problem::schemas(&mut nested);
    components.schemas.extend(nested);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer));
    api.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    for (path, item) in &mut api.paths.paths {
        complete_item(path, item);
    }
}

fn complete_item(path: &str, item: &mut PathItem) {
    // A session is not a record: signing in or out has no revision, and no answer to repeat.
    let is_record = !path.starts_with("/v1/session") && path != "/v1/sign-in";
    let changes = [&mut item.post, &mut item.put, &mut item.delete];
    for operation in changes.into_iter().flatten().filter(|_| is_record) {
        let key = format!("^[A-Za-z0-9._-]{{1,{IDEMPOTENCY_KEY_MAX}}}$");
        let repeat = "Makes a repeated request happen once, for a day; use for example a GUID";
        let compare = "The ETag that was read: the change is refused if the resource has changed since";
        let parameters = operation.parameters.get_or_insert_default();
        parameters.push(header_parameter(IDEMPOTENCY_KEY, &key, repeat));
        parameters.push(header_parameter("If-Match", r#"^"[0-9]{1,18}"$"#, compare));
    }
    if let Some(put) = &mut item.put {
        let absent = "`*`: the change is refused if the resource exists; not together with If-Match";
        put.parameters.get_or_insert_default().push(header_parameter("If-None-Match", r"^\*$", absent));
    }
    let all = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
    for operation in all.into_iter().flatten() {
        add_problem(operation);
        operation.operation_id = operation.operation_id.take().map(|name| unique_id(path, &name));
    }
}

/// A unique operation id: `list` of `/v1/events` is `events_list`. Generated clients name their methods by it.
fn unique_id(path: &str, name: &str) -> String {
    let noun = path.split(['/', '.']).find(|part| !part.is_empty() && *part != "v1").unwrap_or_default();
    if noun == name || noun.is_empty() { name.to_owned() } else { format!("{noun}_{name}") }
}

fn add_problem(operation: &mut Operation) {
    let problem = ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name(PROBLEM)))).build();
    let response = ResponseBuilder::new()
        .description("The request failed: the problem says why, and what to do")
        .content("application/problem+json", problem)
        .build();
    operation.responses.responses.insert("default".to_owned(), RefOr::T(response));
}

fn header_parameter(name: &str, pattern: &str, description: &str) -> RefOr<Parameter> {
    let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema));
    RefOr::T(parameter.build())
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
        let api = serde_json::to_value(super::super::description()).unwrap();
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
        let described: usize = super::super::description().paths.paths.values().map(operations).sum();
        assert_eq!(index.routes.iter().filter(|route| route.path.starts_with("/v1")).count(), described);
        let unsaid: Vec<_> = index.routes.iter().filter(|route| route.summary.is_empty()).collect();
        assert!(unsaid.is_empty(), "{unsaid:?}");
        let find = |method: &str, path: &str| {
            index.routes.iter().find(|route| route.method == method && route.path == path).unwrap()
        };
        assert!(!find("GET", "/v1").operator_only && !find("GET", "/readyz").operator_only);
        assert!(find("POST", "/v1/tokens").operator_only);
    }

    fn operations(item: &PathItem) -> usize {
        [&item.get, &item.put, &item.post, &item.delete].into_iter().flatten().count()
    }
}
