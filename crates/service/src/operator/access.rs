//! Authentication, check of `Host`, idempotency keys and preconditions.
//!
//! - [`require_host`] refuses unknown values of `Host` on loopback.
//! - [`require_token`] refuses requests without a valid token or session and adds a [`Principal`] to the others.
//! - [`require_full_access`] guards the routes that do not use `visibility` for authorization.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{Extensions, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use notbefore_core::{Actor, Role, Token};
use notbefore_engine::records::{self, CommandRecord, RefusedRequest};
use notbefore_engine::{Answer, Failure, Idempotency, TypedCommand};
use notbefore_listener::slots::AdmissionSlot;
use notbefore_listener::token_quotas::QuotaExceeded;
use notbefore_store::Revision;
use notbefore_wire::operator::{IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MAX};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::problem::{Problem, Refused};
use super::reader::Described;
use super::{BODY_BYTES_MAX, Operator, read_pace, reader};
use crate::clock::UPTIME;
use crate::nodes::signature::Sequence;
use crate::tokens::KnownToken;

/// The revision of a record that does not exist.
const ABSENT: Revision = Revision(0);

/// The connection of a request; the server adds it to each request's extensions.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The peer's address.
    pub from: SocketAddr,
    /// Whether the local address is a loopback address.
    pub is_loopback: bool,
    /// None for a request that another node has forwarded: its connection is there.
    pub slot: Option<Arc<AdmissionSlot>>,
    /// For the node listener: none before the hello.
    pub sequence: Arc<Mutex<Option<Sequence>>>,
}

/// The address of a request's peer, if known.
pub fn source(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectionInfo>().map(|connection_info| connection_info.from.ip().to_canonical())
}

/// The token, the session and the peer's address of a request.
#[derive(Clone)]
pub struct Principal {
    pub known: Arc<KnownToken>,
    pub from: Option<IpAddr>,
    /// None for a request with a token.
    pub session_expires_at: Option<Timestamp>,
    /// Whether the caller reads names of hosts.
    pub sees_hosts: bool,
}

impl Principal {
    /// The principal that [`require_token`] added to a request.
    pub fn of(extensions: &Extensions) -> Result<Self, Problem> {
        let principal = extensions.get::<Self>().cloned();
        principal.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "token_missing", ""))
    }

    pub fn token(&self) -> &Token {
        &self.known.token
    }

    /// Whether the caller reads why a command of the exec driver failed: operators on `/` do.
    pub fn command_reasons(&self) -> CommandReasons {
        CommandReasons { shown: self.token().is_full_operator(), has_hosts: self.sees_hosts }
    }

    /// The revision of the token's record.
    pub fn revision(&self) -> Revision {
        Revision(self.known.revision)
    }

    /// The token's name, for facts and the audit trail.
    pub fn name(&self) -> &str {
        self.known.token.name.as_str()
    }

    /// Applies the rate limit of changes, except to tokens that are operator on `/`.
    pub fn count_change(&self, operator: &Operator) -> Result<(), Problem> {
        if self.token().is_full_operator() {
            return Ok(());
        }
        let limit = operator.change_rate_limit;
        limit.try_acquire(&self.known.changes, UPTIME.elapsed()).map_err(|wait| {
            let detail = format!(
                "token {} has made {} changes at once and may make {} a second; repeat the request after the time that Retry-After gives",
                self.name(), limit.burst, limit.per_second
            );
            Problem::too_many("too_many_changes", detail, wait)
        })
    }

    /// Applies the rate limit of costly reads.
    pub fn count_costly_read(&self) -> Result<(), Problem> {
        read_pace::try_acquire(&self.known.costly_reads, UPTIME.elapsed()).map_err(|wait| {
            let detail = format!(
                "token {} has asked for {} exports and summaries of the history at once and may ask for {} a second; repeat the request after the time that Retry-After gives",
                self.name(), read_pace::BURST, read_pace::PER_SECOND
            );
            Problem::too_many("too_many_costly_reads", detail, wait)
        })
    }

    /// Key for quotas of connections and streams. Differs for a later token of the same name.
    pub fn quota_key(&self) -> &str {
        &self.known.token.hash
    }

    /// Namespace of the token's idempotency keys. Differs for a later token of the same name, which must not get stored
    /// answers of this one.
    fn idempotency_scope(&self) -> String {
        let hash = &self.known.token.hash;
        format!("{}~{}", self.known.token.name.folded(), hash.get(..16).unwrap_or(hash))
    }
}

/// What of the platform's inside to show: why a command failed (its path and its last line of error output), and names of
/// hosts. For a caller, only [`Principal::command_reasons`] creates it. Each presentation of a command or a host takes
/// one, so none can omit the check.
#[derive(Clone, Copy, Debug)]
pub struct CommandReasons {
    shown: bool,
    has_hosts: bool,
}

impl CommandReasons {
    /// For the service's own log, which callers do not read.
    pub const SHOWN: Self = Self { shown: true, has_hosts: true };
    /// As a tenant reads it.
    #[cfg(test)]
    pub const HIDDEN: Self = Self { shown: false, has_hosts: false };

    /// The reason, if there is one and the caller reads it.
    pub fn show(self, why: &str) -> Option<String> {
        (self.shown && !why.is_empty()).then(|| why.to_owned())
    }

    /// The name of a host, if there is one and the caller reads it.
    pub fn host(self, host: Option<&str>) -> Option<String> {
        host.filter(|_| self.has_hosts).map(str::to_owned)
    }

    /// The same in a field that every fact has; empty if the caller does not read it.
    pub fn host_or_empty(self, host: &str) -> String {
        self.host(Some(host)).unwrap_or_default()
    }
}

/// Refuses requests on loopback with an unknown `Host`. Protects against DNS rebinding: a web page in a browser on
/// this machine sends its own host name.
pub async fn require_host(
    State(operator): State<Operator>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let is_loopback = request
        .extensions()
        .get::<ConnectionInfo>()
        .is_some_and(|connection_info| connection_info.is_loopback);
    let is_certified =
        |name: &str| operator.certificate.as_ref().is_some_and(|certificate| certificate.names(name));
    let given = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut given = given.chain(request.uri().authority().map(|authority| authority.as_str()));
    let refused = given.find(|host| is_loopback && !operator.hosts.is_allowed(host, is_certified));
    let Some(host) = refused else { return Ok(next.run(request).await) };
    let detail = format!(
        "the operator listener does not accept the host name {host:?}; use its address or localhost, or add the name to operator.hosts"
    );
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", detail))
}

/// Refuses requests without a valid token. Records all refusals, also those of later layers and handlers.
pub async fn require_token(State(operator): State<Operator>, mut request: Request, next: Next) -> Response {
    let from = source(request.extensions());
    let asked = (request.method().clone(), super::uri(&request).clone());
    let (known, response) = match authenticate(&operator, &request) {
        Ok(principal) => {
            let known = Arc::clone(&principal.known);
            request.extensions_mut().insert(principal);
            (Some(known), next.run(request).await)
        }
        Err((known, problem)) => (known, problem.into_response()),
    };
    record_if_refused(&operator, from, known, &asked, &response);
    response
}

/// Records the refusals of routes that need no token.
pub async fn record_refusals(State(operator): State<Operator>, request: Request, next: Next) -> Response {
    let from = source(request.extensions());
    let asked = (request.method().clone(), super::uri(&request).clone());
    let response = next.run(request).await;
    record_if_refused(&operator, from, None, &asked, &response);
    response
}

/// Records a response that is a refusal.
pub fn record_if_refused(
    operator: &Operator,
    from: Option<IpAddr>,
    known: Option<Arc<KnownToken>>,
    (method, uri): &(Method, Uri),
    response: &Response,
) {
    if let Some(Refused { code }) = response.extensions().get::<Refused>() {
        let token = known.map(|known| known.token.name.to_string());
        let request = format!("{method} {}", uri.path());
        let at = operator.clock.now();
        operator.refusals.record(RefusedRequest { at, from, token, code: code.clone(), request });
    }
}

/// The principal of a request; or why the token is refused, and the token if it is known.
pub fn authenticate<B>(
    operator: &Operator,
    request: &Request<B>,
) -> Result<Principal, (Option<Arc<KnownToken>>, Problem)> {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = given.and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let now = operator.clock.now();
    let view = operator.views.newest_guard();
    let found = match secret {
        Some(secret) => {
            let known = view.tokens.by_secret(secret).cloned().ok_or_else(token_refused);
            Some(known.map(|known| (known, None)))
        }
        None => operator.sessions.find(request, &view, now),
    };
    let Some(found) = found else {
        let cure =
            "send 'Authorization: Bearer TOKEN'; the first token is in operator.token of the data directory";
        return Err((None, Problem::new(StatusCode::UNAUTHORIZED, "token_missing", cure)));
    };
    let (known, session_expires_at) = found.map_err(|problem| (None, problem))?;
    let sees_hosts = operator.hosts_shown || sees_hosts(&known.token);
    let principal = Principal { known, from: source(request.extensions()), session_expires_at, sees_hosts };
    if principal.token().is_expired(now) {
        return Err((Some(principal.known), token_refused()));
    }
    let slot = request.extensions().get::<ConnectionInfo>().and_then(|info| info.slot.as_ref());
    if let Some(slot) = slot
        && let Err(exceeded) = slot.authenticate(principal.quota_key())
    {
        return Err((Some(principal.known), too_many("connections", exceeded)));
    }
    principal.known.mark_used(now);
    Ok(principal)
}

/// Whether a token reads names of hosts in any case: it belongs to those who run the platform, if it is operator
/// somewhere (it places VMs) or sees everything. A tenant's does not: hosts tell where other tenants are.
fn sees_hosts(token: &Token) -> bool {
    token.grants.iter().any(|grant| grant.path.is_root() || grant.role == Role::Operator)
}

/// The problem for a token that has reached its limit of connections or streams.
pub fn too_many(what: &str, exceeded: QuotaExceeded) -> Problem {
    let detail = format!(
        "{exceeded} are open, which is the limit (operator.limits); close some of these {what}, then repeat this"
    );
    Problem::new(StatusCode::TOO_MANY_REQUESTS, &format!("too_many_{what}"), detail)
}

pub fn token_refused() -> Problem {
    let detail = "this token is unknown, was revoked or has expired; ask an operator for another";
    Problem::new(StatusCode::UNAUTHORIZED, "token_refused", detail)
}

/// Refuses tokens that are not operator on `/`. For routes that do not filter by what the caller may see.
pub async fn require_full_access(request: Request, next: Next) -> Result<Response, Problem> {
    let principal = request.extensions().get::<Principal>();
    if principal.is_some_and(|principal| principal.token().is_full_operator()) {
        return Ok(next.run(request).await);
    }
    let (method, path) = (request.method(), super::path(&request));
    Err(Problem::not_permitted(format!("{method} {path} needs the role operator everywhere")))
}

/// A request for a change: principal, body, idempotency key and precondition.
pub struct Change {
    principal: Principal,
    idempotency: Option<Idempotency>,
    if_revision: Option<Revision>,
    target: String,
    /// What the API's description says of the request.
    described: &'static Described,
    body: Bytes,
}

/// Reads a request's body. `bytes_max` is the limit of the route's layer, for the message.
pub async fn read_body<S: Send + Sync>(
    request: Request,
    state: &S,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let status = rejection.status();
        let (code, detail) = match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                ("body_too_large", format!("the body exceeds {bytes_max} bytes"))
            }
            _ => ("bad_body", "the body did not arrive completely; repeat the request".to_owned()),
        };
        Problem::new(status, code, detail)
    })
}

impl<S: Send + Sync> FromRequest<S> for Change {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let principal = Principal::of(request.extensions())?;
        let key = text(&request, IDEMPOTENCY_KEY)?;
        let if_match = text(&request, header::IF_MATCH.as_str())?;
        let if_revision = match (if_match, text(&request, header::IF_NONE_MATCH.as_str())?.as_deref()) {
            (None, None) => None,
            (Some(text), None) => Some(revision(&text)?),
            (None, Some("*")) => Some(ABSENT),
            (_, Some(given)) => {
                let detail = format!(
                    "If-None-Match {given:?} is not valid; a change takes either If-None-Match: * or If-Match"
                );
                return Err(Problem::bad_request("bad_if_none_match", detail));
            }
        };
        let hashed = format!("{} {}", request.method(), request.uri());
        let target = format!("{} {}", request.method(), super::path(&request));
        let described = reader::described(request.method(), request.extensions());
        let body = read_body(request, state, BODY_BYTES_MAX).await?;
        let unique =
            |key| Idempotency { hash: hash(&hashed, &body), key, principal: principal.idempotency_scope() };
        let idempotency = key.map(checked_key).transpose()?.map(unique);
        Ok(Self { principal, idempotency, if_revision, target, described, body })
    }
}

impl Change {
    /// Whether the caller reads why a command failed.
    pub fn command_reasons(&self) -> CommandReasons {
        self.principal.command_reasons()
    }

    pub fn has_body(&self) -> bool {
        !self.body.is_empty()
    }

    /// The body, parsed as JSON.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        self.described.body(&self.body)
    }

    /// The body, parsed as JSON; the default if there is none.
    pub fn body_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        if self.has_body() { self.body() } else { Ok(T::default()) }
    }

    /// Refuses If-Match and If-None-Match for hosts and operations, which have no revision.
    pub fn reject_preconditions(&self) -> Result<(), Problem> {
        if self.if_revision.is_none() {
            return Ok(());
        }
        let detail = "hosts and operations have no revision to compare; leave If-Match and If-None-Match out";
        Err(Problem::bad_request("no_revision", detail))
    }

    pub fn actor(&self) -> Actor {
        Actor::Token(self.principal.name().to_owned())
    }

    /// Logs a change that is not a command of the engine.
    pub fn log(&self) {
        super::audit::log_change(self.principal.name(), self.principal.from, &self.target);
    }

    pub fn actor_and_revision(&self) -> (Actor, Option<Revision>) {
        (self.actor(), self.if_revision)
    }

    /// Sends a command for this request. If the command cannot be built, the request may be a retry of one that already
    /// succeeded (and removed what it names); then its stored answer is returned.
    pub async fn ask<A: TypedCommand>(
        self,
        operator: &Operator,
        command: Result<A, Problem>,
    ) -> Result<A::Answer, Problem> {
        self.ask_with(operator, command, Problem::from).await
    }

    /// Like [`Change::ask`], with another conversion of failures.
    pub async fn ask_with<A: TypedCommand>(
        self,
        operator: &Operator,
        command: Result<A, Problem>,
        to_problem: impl FnOnce(Failure) -> Problem,
    ) -> Result<A::Answer, Problem> {
        let read = |answer| A::read(answer).ok_or_else(|| Problem::from(Failure::KeyReused));
        let command = match command {
            Ok(command) => command,
            Err(problem) => return self.stored_answer(operator).await?.ok_or(problem).and_then(read),
        };
        if let Some(answer) = self.check_change_rate(operator).await? {
            return read(answer);
        }
        let by = self.actor();
        let Self { principal, idempotency, if_revision, target, .. } = self;
        let from = principal.from;
        let request = notbefore_engine::Request { by, from, idempotency, if_revision, command };
        let answer = operator.engine.ask(request).await.map_err(to_problem)?;
        super::audit::log_change(principal.name(), from, &target);
        Ok(answer)
    }

    /// Applies the rate limit of changes, except to tokens that are operator on `/`. A retry of a completed request is
    /// not counted and gets its stored answer.
    async fn check_change_rate(&self, operator: &Operator) -> Result<Option<Answer>, Problem> {
        if self.principal.token().is_full_operator() {
            return Ok(None);
        }
        if let Some(answer) = self.stored_answer(operator).await? {
            return Ok(Some(answer));
        }
        self.principal.count_change(operator).map(|()| None)
    }

    /// Whether the same request with the same key was carried out before.
    pub async fn was_carried_out(&self, operator: &Operator) -> Result<bool, Problem> {
        Ok(self.stored_answer(operator).await?.is_some())
    }

    /// The stored answer, if the same request with the same key was carried out before.
    async fn stored_answer(&self, operator: &Operator) -> Result<Option<Answer>, Problem> {
        let Some(Idempotency { principal, key, hash }) = &self.idempotency else { return Ok(None) };
        let key = records::command(principal, key);
        let Some(record) = operator.store.snapshot().await?.get(&key).await? else { return Ok(None) };
        let record = records::decode::<CommandRecord>(&key, &record.value)?;
        Ok(Some(record.answer).filter(|_| record.hash == *hash))
    }
}

fn text(request: &Request, name: &str) -> Result<Option<String>, Problem> {
    match request.headers().get(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_owned())),
        Some(Err(_)) => Err(Problem::bad_request("bad_header", format!("{name} is not plain text"))),
    }
}

/// Checks the characters of the key, which becomes part of a record's key.
fn checked_key(key: String) -> Result<String, Problem> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_MAX || !key.chars().all(harmless) {
        let detail = format!(
            "an {IDEMPOTENCY_KEY} has 1 to {IDEMPOTENCY_KEY_MAX} letters, digits, '-', '_' and '.'; use for example a GUID"
        );
        return Err(Problem::bad_request("bad_idempotency_key", detail));
    }
    Ok(key)
}

fn revision(text: &str) -> Result<Revision, Problem> {
    let digits = text.trim_start_matches("W/").trim_matches('"');
    digits.parse().map(Revision).map_err(|_| {
        let detail = format!("If-Match {text:?} is not a revision; give the ETag that you read");
        Problem::bad_request("bad_if_match", detail)
    })
}

fn hash(target: &str, body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(target.as_bytes());
    hasher.update([0]);
    hasher.update(body);
    HEXLOWER.encode(&hasher.finalize())
}
