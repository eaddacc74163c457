//! Writes `docs/openapi.json` from the handlers and wire types, and checks that it is current.
//!
//! utoipa describes each handler. This module adds what all calls have in common: the token, the headers for safe
//! retries, and the error response.

use std::collections::BTreeSet;
use std::path::Path;

use notbefore_wire::operator::{IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MAX};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    InfoBuilder, License, OpenApi, Ref, RefOr, Required, ResponseBuilder, SecurityRequirement,
};
use utoipa::{OpenApi as _, PartialSchema, ToSchema};

use super::super::*;
use super::*;

/// The name of the security scheme.
const TOKEN: &str = "token";
/// The name of the error schema.
const PROBLEM: &str = "Problem";
/// If set, the test writes the file.
const WRITE: &str = "NOTBEFORE_WRITE";

const TITLE_PAGE: &str = "\
Scheduled Events for virtual machines: announce maintenance to VMs, see which VMs have read and approved an event, \
and carry it out.\n\n\
Every call needs a token. Every error is `application/problem+json` with a stable `code`. Lists take `limit` and \
return `next`; pass it as `cursor` to get the next page. A change with an `Idempotency-Key` can be repeated and takes \
effect once. Requests with unknown fields are refused.";

/// All handlers of the tables of routes.
#[derive(utoipa::OpenApi)]
#[openapi(paths(
    scopes::list,
    scopes::show,
    scopes::put,
    scopes::remove,
    scopes::plan,
    vms::list,
    vms::add,
    vms::show,
    vms::remove,
    vms::act,
    vms::log,
    vms::document,
    events::list,
    events::schedule,
    events::show,
    events::act,
    operations::list,
    operations::show,
    operations::cancel,
    operations::start,
    operations::complete,
    operations::retry,
    history::list,
    summary::show,
    stream::follow,
    status::show,
    session::show,
    session::sign_out,
    session::create_link,
    openapi::show,
    openapi::index,
    tokens::list,
    tokens::create,
    tokens::revoke,
    audit::list,
    hosts::list,
    hosts::plan_several,
    hosts::show,
    hosts::forget,
    hosts::set_ok,
    hosts::act,
    export::export,
    faults::list,
    faults::add,
    faults::clear,
    faults::clear_one,
    clock::show,
    clock::accept,
    cluster::show,
    cluster::hand_over,
    cluster::finish_upgrade,
    cluster::forget,
    session::sign_in,
))]
struct Handlers;

/// The description of the handlers.
fn description() -> OpenApi {
    let mut api = Handlers::openapi();
    api.paths.paths = api.paths.paths.into_iter().map(|(path, item)| (full_path(&path), item)).collect();
    complete(&mut api);
    api
}

#[test]
fn description_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let mut described = description().to_pretty_json().unwrap();
    described.push('\n');
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(file, described).unwrap();
    }
    let is_current = std::fs::read_to_string(file).unwrap() == described;
    assert!(
        is_current,
        "docs/openapi.json is not as the API is: run './dev openapi' and look at the difference"
    );
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let described: BTreeSet<_> =
        description().paths.paths.iter().flat_map(|(path, item)| methods(path, item)).collect();
    let (shared, public, operator_only) = (shared_routes(), public_routes(), operator_routes());
    let routes = [shared.paths, public.paths, operator_only.paths].concat();
    let routes: BTreeSet<_> =
        routes.iter().map(|(method, path)| format!("{method} {}", full_path(path))).collect();
    assert_eq!(described, routes);
}

fn methods(path: &str, item: &PathItem) -> Vec<String> {
    let all = [("GET", &item.get), ("PUT", &item.put), ("POST", &item.post), ("DELETE", &item.delete)];
    all.iter()
        .filter(|(_, operation)| operation.is_some())
        .map(|(method, _)| format!("{method} {path}"))
        .collect()
}

/// Adds what all calls have in common.
fn complete(api: &mut OpenApi) {
    api.info = InfoBuilder::new()
        .title("notbefore")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(TITLE_PAGE))
        .license(Some(License::new("MIT OR Apache-2.0")))
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
