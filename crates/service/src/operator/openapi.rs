//! The API's own description, in OpenAPI 3.1. It is put together from the very routes that the server serves and
//! from the types that cross the wire, so it cannot name a page that is not there; a copy is checked in as
//! `docs/openapi.json`, and a test says when the two differ.
//!
//! What every call shares is added here and not at each of them: the token, the headers that make a change
//! safe to repeat, and the one form in which anything can go wrong.

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

/// The name of the token among the ways to prove who one is.
const TOKEN: &str = "token";
/// The name under which answers refer to a problem.
const PROBLEM: &str = "Problem";

const DESCRIPTION: &str = "\
Scheduled Events for virtual machines: announce what is about to happen to a VM, see who has heard and approved, \
and carry it out.\n\n\
Every call wants a token. Every error is `application/problem+json` with a stable `code`. Lists take `limit` and \
answer `next`, to be given back as `cursor`. A change that carries an `Idempotency-Key` may be repeated: it takes \
effect once. Fields that a request does not have are refused.";

/// `GET /v1/openapi.json`
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, description = "This description", body = Object)))]
pub async fn show() -> Response {
    // Made once: it takes milliseconds, and any token may ask for it.
    static DESCRIPTION: LazyLock<Bytes> =
        LazyLock::new(|| serde_json::to_vec(&super::description()).unwrap_or_default().into());
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION.clone()).into_response()
}

/// Completes what the routes say of themselves.
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
        let repeat = "Makes the request safe to repeat for a day; a GUID does well";
        let compare = "The ETag that was read: refuses a change of what has changed since";
        let parameters = operation.parameters.get_or_insert_default();
        parameters.push(header_parameter(IDEMPOTENCY_KEY, &key, repeat));
        parameters.push(header_parameter("If-Match", r#"^"[0-9]{1,18}"$"#, compare));
    }
    if let Some(put) = &mut item.put {
        let absent = "`*` refuses a change of what exists; not together with If-Match";
        put.parameters.get_or_insert_default().push(header_parameter("If-None-Match", r"^\*$", absent));
    }
    let all = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
    for operation in all.into_iter().flatten() {
        add_problem(operation);
        operation.operation_id = operation.operation_id.take().map(|name| unique_id(path, &name));
    }
}

/// What a generated client calls a call: `list` of `/v1/events` is `events_list`. No two may have the same name.
fn unique_id(path: &str, name: &str) -> String {
    let noun = path.split(['/', '.']).find(|part| !part.is_empty() && *part != "v1").unwrap_or_default();
    if noun == name { name.to_owned() } else { format!("{noun}_{name}") }
}

fn add_problem(operation: &mut Operation) {
    let problem = ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name(PROBLEM)))).build();
    let response = ResponseBuilder::new()
        .description("It could not be done: the problem says why, and what to do")
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
