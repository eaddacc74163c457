//! The operator listener: the HTTP API under `/v1`, and the pages that need no token.
//!
//! | file | content |
//! |---|---|
//! | `server` | connections and their limits |
//! | `access` | authentication, check of `Host`, idempotency keys and preconditions |
//! | `visibility` | authorization: what a caller sees and may do |
//! | `change_rate` | rate limit of changes |
//! | `audit` | the audit trail |
//! | `tls` | the certificate |
//! | `problem` | errors, as problem+json |
//! | `reader`, `path` | bodies, queries and path parameters of requests |
//! | `pages`, `cursor` | lists: limits and cursors |
//! | `present`, `plan`, `seen`, `vm_log`, `commands`, `facts`, `wire_names` | from the domain's types to the API's |
//! | `scopes`, `vms`, `hosts`, `events`, `operations`, `history`, `summary`, `stream` | one resource each |
//! | `export`, `tokens`, `clock`, `cluster`, `status` | one resource each |
//! | `openapi` | the OpenAPI description |
//! | `session` | sessions of the console: sign-in, cookies, protection against other sites |
//! | `console` | the console's files |
//! | `health` | `/healthz`, `/readyz`, `/metrics` |
//!
//! Reads use the published view and do not reach the engine. Changes are commands to the engine.

pub mod access;
mod audit;
pub mod change_rate;
mod clock;
mod cluster;
mod commands;
mod console;
mod cursor;
mod events;
mod export;
pub(crate) mod facts;
mod faults;
mod health;
mod history;
mod hosts;
mod openapi;
mod operations;
mod pages;
mod path;
mod plan;
mod present;
pub(crate) mod problem;
pub(crate) mod reader;
pub(crate) mod scopes;
mod seen;
pub mod server;
pub mod session;
pub mod status;
mod stream;
mod summary;
pub mod tls;
mod tokens;
mod visibility;
pub(crate) mod vm_log;
mod vms;
mod wire_names;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use notbefore_engine::{Failure, FailureCause};
use notbefore_listener::host::AllowedHosts;
use notbefore_listener::slots::AdmissionSlots;
use notbefore_store::Store;
use tokio::sync::{Semaphore, watch};

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::clock::Clock;
use crate::cluster::monitor::ClusterMonitor;
use crate::cluster::readiness::Readiness;
use crate::delivery::Delivery;
use crate::faults::Faults;
use crate::guest::stats::GuestStats;
use crate::janitor::HistoryStats;
use crate::metrics::Metrics;
use crate::nodes::{Nodes, forward};
use crate::refusals::Refusals;
use crate::runtime::EngineHandle;
use crate::view::Views;
use crate::vm_log::VmLog;
use change_rate::ChangeRateLimit;
pub use export::EXPORTS_MAX;
use problem::Problem;
use visibility::SharedState;

/// Largest body, enough for a scope of a thousand VMs with metadata.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Time limit of a request, from its head to the head of its response. A stream may continue after that.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Shared state of the handlers. One pointer, because every request and every layer clones it.
pub type Operator = Arc<Parts>;

pub struct Parts {
    pub views: Arc<Views>,
    pub engine: EngineHandle,
    pub store: Arc<dyn Store>,
    pub refusals: Arc<Refusals>,
    pub history: Arc<HistoryStats>,
    /// None without TLS.
    pub certificate: Option<Arc<tls::Certificate>>,
    /// The file with the secret of the first token.
    pub token_file: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub delivery: Arc<Delivery>,
    pub vm_log: Arc<VmLog>,
    /// The faults of the guest listener; none if the service does not allow them.
    pub faults: Option<Arc<Faults>>,
    pub guest_stats: Arc<GuestStats>,
    /// Listening VMs of large fleets.
    pub listening: status::ListeningCache,
    /// For tokens that are not operator on `/`.
    pub change_rate_limit: ChangeRateLimit,
    /// Limits connections and streams.
    pub slots: Arc<AdmissionSlots>,
    /// Accepted values of `Host` on loopback, besides the certificate's names.
    pub hosts: AllowedHosts,
    /// Sessions of the console.
    pub sessions: session::Sessions,
    /// Limits concurrent exports to [`EXPORTS_MAX`].
    pub exports: Arc<Semaphore>,
    /// The node's place in a cluster; none for a service with one node.
    pub nodes: Option<Arc<Nodes>>,
    /// What operators see of the cluster; none for a service with one node.
    pub cluster: Option<Arc<ClusterMonitor>>,
    /// What the node can do in its cluster; none for a service with one node.
    pub readiness: Option<watch::Receiver<Readiness>>,
    /// Becomes true when the service stops; streams end then.
    pub shutdown: watch::Receiver<bool>,
}

pub fn router(operator: Operator) -> Router {
    let metrics = Arc::new(Metrics::new(operator.clone()));
    let known_parameters = middleware::from_fn(reader::require_known_parameters);
    let (shared, _) = shared_routes().split_for_parts();
    let (operator_only, _) = operator_routes().split_for_parts();
    let operator_only = operator_only
        .route_layer(known_parameters.clone())
        .route_layer(middleware::from_fn(access::require_full_access));
    let api = shared
        .route_layer(known_parameters.clone())
        .with_state(SharedState::new(operator.clone()))
        .merge(operator_only)
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        // The layer covers the fallbacks too: without a token, existing and missing routes get the same response.
        .layer(middleware::from_fn_with_state(operator.clone(), access::require_token));
    let (public, _) = public_routes().split_for_parts();
    let public = public
        .route_layer(known_parameters)
        .layer(DefaultBodyLimit::max(session::SIGN_IN_BYTES_MAX))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(operator.clone(), access::record_refusals));
    let router = Router::new()
        .nest("/v1", api.merge(public))
        .merge(console::routes())
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route(
            "/metrics",
            get(async move |State(operator): State<Operator>| health::metrics(&operator, &metrics).await),
        )
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    // A service with one node has no such layer.
    let router = match &operator.nodes {
        Some(_) => router.layer(middleware::from_fn_with_state(operator.clone(), forward::forward_to_leader)),
        None => router,
    };
    router
        .layer(middleware::from_fn_with_state(operator.clone(), access::require_host))
        .layer(middleware::from_fn(with_timeout))
        .layer(middleware::from_fn(with_security_headers))
        .with_state(operator)
}

/// Routes under `/v1` for all tokens. Their handlers take a [`visibility::CallerView`], which hides everything outside
/// the caller's paths, and have no access to the other state.
fn shared_routes() -> OpenApiRouter<SharedState> {
    OpenApiRouter::new()
        .routes(routes!(scopes::list))
        .routes(routes!(scopes::show, scopes::put, scopes::remove))
        .routes(routes!(scopes::plan))
        .routes(routes!(vms::list, vms::add))
        .routes(routes!(vms::show, vms::remove))
        .routes(routes!(vms::act))
        .routes(routes!(vms::log))
        .routes(routes!(vms::document))
        .routes(routes!(events::list, events::schedule))
        .routes(routes!(events::show))
        .routes(routes!(events::act))
        .routes(routes!(operations::list))
        .routes(routes!(operations::show))
        .routes(routes!(operations::cancel))
        .routes(routes!(operations::start))
        .routes(routes!(operations::complete))
        .routes(routes!(operations::retry))
        .routes(routes!(history::list))
        .routes(routes!(summary::show))
        .routes(routes!(stream::follow))
        .routes(routes!(status::show))
        .routes(routes!(session::show, session::sign_out))
        .routes(routes!(session::create_link))
        .routes(routes!(openapi::show))
        .routes(routes!(openapi::index))
}

/// Routes under `/v1` that need no token.
fn public_routes() -> OpenApiRouter<Operator> {
    OpenApiRouter::new().routes(routes!(session::sign_in))
}

/// Routes under `/v1` that need operator on `/`. Their handlers see all state, so a route that does not filter by role
/// belongs here.
fn operator_routes() -> OpenApiRouter<Operator> {
    OpenApiRouter::new()
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(hosts::list))
        .routes(routes!(hosts::plan_several))
        .routes(routes!(hosts::show))
        .routes(routes!(hosts::act))
        .routes(routes!(export::export))
        .routes(routes!(faults::list, faults::add, faults::clear))
        .routes(routes!(faults::clear_one))
        .routes(routes!(clock::show))
        .routes(routes!(clock::accept))
        .routes(routes!(cluster::show))
        .routes(routes!(cluster::hand_over))
        .routes(routes!(cluster::finish_upgrade))
        .routes(routes!(cluster::forget))
}

/// The OpenAPI description of all routes under `/v1`, as in `GET /v1/openapi.json`.
pub fn description() -> utoipa::openapi::OpenApi {
    let (mut description, operator_only) = bare_descriptions();
    description.merge(operator_only);
    openapi::complete(&mut description);
    description
}

/// The routes for all tokens, and those that need operator on `/`.
fn bare_descriptions() -> (utoipa::openapi::OpenApi, utoipa::openapi::OpenApi) {
    let mut shared = OpenApiRouter::new().nest("/v1", shared_routes()).into_openapi();
    shared.merge(OpenApiRouter::new().nest("/v1", public_routes()).into_openapi());
    (shared, OpenApiRouter::new().nest("/v1", operator_routes()).into_openapi())
}

async fn route_not_found(State(_): State<Operator>, request: Request) -> Problem {
    let detail = format!("there is nothing at {}; GET /v1 lists all routes", path(&request));
    Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
}

async fn method_not_allowed(request: Request) -> Problem {
    let detail = format!("{} does not take {}", path(&request), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

/// The full request URI; nested routes see only the end of it.
fn uri(request: &Request) -> &Uri {
    request.extensions().get::<OriginalUri>().map_or(request.uri(), |original| &original.0)
}

fn path(request: &Request) -> &str {
    uri(request).path()
}

/// Applies [`REQUEST_TIMEOUT`] and sets the header `Server`.
async fn with_timeout(request: Request, next: Next) -> Response {
    let is_safe = request.method().is_safe();
    let with_timeout = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    let mut response = with_timeout.unwrap_or_else(|_| timed_out(is_safe).into_response());
    let value = HeaderValue::from_static(concat!("notbefore/", env!("CARGO_PKG_VERSION")));
    response.headers_mut().insert(header::SERVER, value);
    response
}

/// What a browser must not do with a response: guess its type, show it in a frame, let other sites embed it or hold its window, tell other
/// sites its URL, or, for the API, store it. The console's files have a policy of their own.
async fn with_security_headers(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/v1");
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    if is_api {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}

fn timed_out(is_safe: bool) -> Problem {
    let seconds = REQUEST_TIMEOUT.as_secs();
    if !is_safe {
        return Failure::OutcomeUnknown(FailureCause::Late(seconds)).into();
    }
    let detail = format!("the request took longer than {seconds} s; repeat it");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
}
