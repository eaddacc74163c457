//! The operator listener: the HTTP API under `/v1`, and the pages that need no token.
//!
//! | file | content |
//! |---|---|
//! | `server` | connections and their limits |
//! | `access` | authentication, check of `Host`, idempotency keys and preconditions |
//! | `visibility` | authorization: what a caller sees and may do |
//! | `change_rate`, `read_pace` | rate limits of changes and of costly reads |
//! | `audit` | the audit trail |
//! | `tls` | the certificate |
//! | `problem` | errors, as problem+json |
//! | `reader`, `path` | bodies, queries and path parameters of requests |
//! | `pages`, `cursor` | lists: limits and cursors |
//! | `present`, `plan`, `seen`, `vm_log`, `commands`, `facts`, `wire_names` | from the domain's types to the API's |
//! | `scopes`, `vms`, `hosts`, `events`, `operations`, `history`, `summary`, `stream` | one resource each |
//! | `export`, `tokens`, `clock`, `cluster`, `status` | one resource each |
//! | `routes` | tables of methods and paths |
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
pub(crate) mod health;
mod history;
mod hosts;
mod openapi;
mod operations;
mod pages;
mod path;
mod plan;
mod present;
pub(crate) mod problem;
mod read_pace;
pub(crate) mod reader;
mod routes;
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
pub use openapi::DESCRIPTION;
use problem::Problem;
use routes::Routes;
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
    /// Whether tenants see names of hosts.
    pub hosts_shown: bool,
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
    let operator_only = operator_routes()
        .router
        .route_layer(known_parameters.clone())
        .route_layer(middleware::from_fn(access::require_full_access));
    let api = shared_routes()
        .router
        .route_layer(known_parameters.clone())
        .with_state(SharedState::new(operator.clone()))
        .merge(operator_only)
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        // The layer covers the fallbacks too: without a token, existing and missing routes get the same response.
        .layer(middleware::from_fn_with_state(operator.clone(), access::require_token));
    let public = public_routes()
        .router
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
fn shared_routes() -> Routes<SharedState> {
    Routes::new()
        .get("/scopes", scopes::list)
        .get("/scopes/{subscription}/{group}/{scope}", scopes::show)
        .put("/scopes/{subscription}/{group}/{scope}", scopes::put)
        .delete("/scopes/{subscription}/{group}/{scope}", scopes::remove)
        .post("/scopes/{subscription}/{group}/{scope}/plan", scopes::plan)
        .get("/vms", vms::list)
        .post("/vms", vms::add)
        .get("/vms/{vm}", vms::show)
        .delete("/vms/{vm}", vms::remove)
        .post("/vms/{vm}/{verb}", vms::act)
        .get("/vms/{vm}/log", vms::log)
        .get("/vms/{vm}/document", vms::document)
        .get("/events", events::list)
        .post("/events", events::schedule)
        .get("/events/{event}", events::show)
        .post("/events/{event}/{verb}", events::act)
        .get("/operations", operations::list)
        .get("/operations/{operation}", operations::show)
        .post("/operations/{operation}/cancel", operations::cancel)
        .post("/operations/{operation}/start", operations::start)
        .post("/operations/{operation}/complete", operations::complete)
        .post("/operations/{operation}/retry", operations::retry)
        .get("/history", history::list)
        .get("/history/summary", summary::show)
        .get("/stream", stream::follow)
        .get("/status", status::show)
        .get("/session", session::show)
        .delete("/session", session::sign_out)
        .post("/session/link", session::create_link)
        .get("/openapi.json", openapi::show)
        .get("/", openapi::index)
}

/// Routes under `/v1` that need no token.
fn public_routes() -> Routes<Operator> {
    Routes::new().post("/sign-in", session::sign_in)
}

/// Routes under `/v1` that need operator on `/`. Their handlers see all state, so a route that does not filter by role
/// belongs here.
fn operator_routes() -> Routes<Operator> {
    Routes::new()
        .get("/tokens", tokens::list)
        .post("/tokens", tokens::create)
        .delete("/tokens/{token}", tokens::revoke)
        .get("/audit", audit::list)
        .get("/hosts", hosts::list)
        .post("/hosts/plan", hosts::plan_several)
        .get("/hosts/{host}", hosts::show)
        .delete("/hosts/{host}", hosts::forget)
        .post("/hosts/{host}/ok", hosts::set_ok)
        .post("/hosts/{host}/{verb}", hosts::act)
        .get("/export", export::export)
        .get("/faults", faults::list)
        .post("/faults", faults::add)
        .delete("/faults", faults::clear)
        .delete("/faults/{fault}", faults::clear_one)
        .get("/clock", clock::show)
        .post("/clock/accept", clock::accept)
        .get("/cluster", cluster::show)
        .post("/cluster/hand-over", cluster::hand_over)
        .post("/cluster/upgrade/finish", cluster::finish_upgrade)
        .post("/cluster/forget", cluster::forget)
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
