//! The OpenAPI 3.1 description of the API. It is generated from the server's routes and the wire types, so it lists
//! exactly the routes that exist. A copy is in `docs/openapi.json`; a test fails if the two differ.
//!
//! This module adds what all calls have in common: the token, the headers for safe retries, and the error response.

use std::sync::LazyLock;

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

/// `GET /v1/openapi.json`
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, description = "This description", body = Object)))]
pub async fn show() -> Response {
    // Generated once: it takes milliseconds.
    static DESCRIPTION: LazyLock<Bytes> =
        LazyLock::new(|| serde_json::to_vec(&super::description()).unwrap_or_default().into());
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION.clone()).into_response()
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
    let changes = [&mut item.post, &mut item.put, &mut item.delete];
    for operation in changes.into_iter().flatten() {
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
    if noun == name { name.to_owned() } else { format!("{noun}_{name}") }
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
