//! At a follower: forwards changes of operators and approvals of guests to the leader.
//!
//! **Operators.** Requests that are not safe go to the leader whole, also dry runs and sign-ins. The leader judges them:
//! token, role, rate limit, idempotency key, audit. This node keeps what belongs to the client's connection: the check of
//! `Host`, connection limits, the client's address, and how cookies are named. Signing out removes only a cookie and
//! stays here. So do requests without a token, or with one that does not exist (`unknown_callers`): this node
//! refuses them before it reads their bodies.
//!
//! Reads are answered here, except those of what only the leader knows: who listens, what was read, logs of VMs, and uses
//! of tokens. If the leader does not answer these, this node says what it knows itself.
//!
//! **Guests.** This node identifies the caller and reads the body. The leader looks the address up again and judges the
//! events.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use notbefore_engine::Failure;
use notbefore_engine::request::FailureCause;
use notbefore_store::Revision;
use tokio::time::timeout;

use super::messages::{Answer, Approval, ApprovalOutcome, ClientConnection, OperatorAnswer, OperatorRequest};
use super::signature::Kind;
use super::unknown_callers::{self, Verdict};
use super::{Deadline, ForwardError, Nodes, malformed};
use crate::guest::platform::ApproveError;
use crate::lock;
use crate::operator::access::{self, ConnectionInfo};
use crate::operator::problem::Problem;
use crate::operator::session::{self, Browser, SIGN_IN_BYTES_MAX, SignInSecret};
use crate::operator::{BODY_BYTES_MAX, Operator};

/// One of so many requests in flight is kept for operators: a flood of approvals must not lock them out.
const OPERATORS_SHARE: usize = 4;

/// Interval at which a caller with an unknown token is looked up again. The token of a caller that is right arrives within
/// milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is forwarded to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forwarded {
    /// It changes what the leader writes.
    Change,
    /// It reads what only the leader knows: who listens, what was read, logs of VMs, and uses of tokens.
    Read,
}

/// A layer of the operator API: forwards changes, and reads of the leader's memory, if another node leads.
pub async fn forward_to_leader(State(operator): State<Operator>, request: Request, next: Next) -> Response {
    let nodes = operator.nodes.as_ref().filter(|nodes| !nodes.leads());
    let (Some(nodes), Some(forwarded)) = (nodes, forwarded(&request)) else {
        return next.run(request).await;
    };
    // A message for the leader has arrived at a node that no longer leads: it goes no further.
    if request.extensions().get::<Browser>().is_some() {
        return Problem::from(Failure::Unavailable(FailureCause::NotLeader)).into_response();
    }
    if is_sign_in(&request) {
        return nodes.forward_sign_in(&operator, request).await;
    }
    let (head, body) = request.into_parts();
    let bare = Request::from_parts(head, ());
    let known = nodes.knows_caller(&operator, &bare).await;
    let request = Request::from_parts(bare.into_parts().0, body);
    match (forwarded, known) {
        // This node refuses the caller itself, and reports the refusal to the leader.
        (_, Ok(false)) => next.run(request).await,
        (Forwarded::Change, Err(error)) => nodes.problem(error).into_response(),
        (Forwarded::Change, Ok(true)) => {
            nodes.forward(&operator, request).await.unwrap_or_else(IntoResponse::into_response)
        }
        (Forwarded::Read, known) => {
            let (head, _) = request.into_parts();
            let request = Request::from_parts(head.clone(), Body::empty());
            let forwarded = match known {
                Ok(_) => nodes.forward(&operator, request).await.ok(),
                Err(_) => None,
            };
            match forwarded {
                Some(response) => response,
                // What this node knows itself is better than nothing.
                None => next.run(Request::from_parts(head, Body::empty())).await,
            }
        }
    }
}

fn is_sign_in(request: &Request) -> bool {
    request.method() == Method::POST && request.uri().path() == "/v1/sign-in"
}

fn forwarded(request: &Request) -> Option<Forwarded> {
    let path = request.uri().path().strip_prefix("/v1/")?;
    if !request.method().is_safe() {
        let is_sign_out = request.method() == Method::DELETE && path == "session";
        return (!is_sign_out).then_some(Forwarded::Change);
    }
    let mut parts = path.split('/');
    let is_leaders = match (parts.next(), parts.next(), parts.next()) {
        (Some("status" | "tokens"), None, None) => true,
        (Some("events" | "vms" | "hosts"), _, None) | (Some("vms"), Some(_), Some("log")) => true,
        (_, _, _) => false,
    };
    (request.method() == Method::GET && is_leaders).then_some(Forwarded::Read)
}

impl Nodes {
    /// Forwards the request of a known caller.
    async fn forward(&self, operator: &Operator, request: Request) -> Result<Response, Problem> {
        let head = self.head(operator, &request);
        let body = read_body(request, BODY_BYTES_MAX).await?;
        self.forward_whole(OperatorRequest { body, ..head }).await
    }

    /// Forwards a sign-in, unless its token does not exist. Reading its short body takes no place.
    async fn forward_sign_in(&self, operator: &Operator, request: Request) -> Response {
        let (from, uri) = (access::source(request.extensions()), request.uri().clone());
        let response = match self.try_sign_in(operator, request).await {
            Ok(response) => return response,
            Err(problem) => problem.into_response(),
        };
        access::record_if_refused(operator, from, None, &(Method::POST, uri), &response);
        response
    }

    async fn try_sign_in(&self, operator: &Operator, request: Request) -> Result<Response, Problem> {
        let browser = session::admit_sign_in(operator, &request)?;
        let head = self.head(operator, &request);
        let body = session::in_time(read_body(request, SIGN_IN_BYTES_MAX)).await??;
        let _place = match session::read_sign_in(&body)? {
            SignInSecret::Token(secret) => {
                let has_token = || operator.views.newest_guard().tokens.by_secret(&secret).is_some();
                match self.knows(|| has_token().then_some(true)).await {
                    Ok(true) => None,
                    Ok(false) => return Err(access::token_refused()),
                    Err(error) => return Err(self.problem(error)),
                }
            }
            SignInSecret::Code(_) => Some(self.place_for_sign_in(browser.client)?),
        };
        self.forward_whole(OperatorRequest { body, ..head }).await
    }

    fn place_for_sign_in(&self, from: Option<IpAddr>) -> Result<SignInPlace<'_>, Problem> {
        match lock(&self.sign_ins).acquire(from) {
            Ok(()) => Ok(SignInPlace { nodes: self, from }),
            Err(limit) => Err(self.problem(ForwardError::TooManySignIns(limit))),
        }
    }

    /// Whether this node knows the caller. The caller's token may be so new that it is not in the view; then this waits until it is,
    /// or until the view has everything before the request.
    async fn knows_caller(&self, operator: &Operator, request: &Request<()>) -> Result<bool, ForwardError> {
        let judged = || match access::authenticate(operator, request) {
            Ok(_) => Some(true),
            Err((None, problem)) if problem.is("token_refused") || problem.is("session_ended") => None,
            // No token, an expired one, or a reason that is not the token: nothing new can change it.
            Err(_) => Some(false),
        };
        self.knows(judged).await
    }

    /// `judged` looks into the newest view; it returns none for a token that is not there.
    async fn knows(&self, judged: impl Fn() -> Option<bool>) -> Result<bool, ForwardError> {
        let (came_at, deadline) = (self.clock.since_boot(), Deadline::new(self.limits.operator_timeout));
        let mut standings = self.standings();
        loop {
            // Before the view, which is then at least as new.
            let watched_at = standings.borrow_and_update().watched_at;
            let known = judged();
            if known == Some(false) {
                return Ok(false);
            }
            match unknown_callers::judge(known.is_some(), watched_at, came_at) {
                Verdict::Known => return Ok(true),
                Verdict::Unknown => return Ok(false),
                Verdict::Wait if deadline.rest().is_zero() => {
                    return Err(ForwardError::NotCurrent(deadline.within));
                }
                // The standing does not change for a new token.
                Verdict::Wait => _ = timeout(LOOK_EVERY, standings.changed()).await,
            }
        }
    }

    /// What the caller gets. The failure is a line of the log, at a limited rate: callers without a token cause it, too.
    fn problem(&self, error: ForwardError) -> Problem {
        Problem::unlogged(self.failed(Kind::Operator, error).into())
    }

    async fn forward_whole(&self, request: OperatorRequest) -> Result<Response, Problem> {
        let (deadline, content) = (Deadline::new(self.limits.operator_timeout), request.encode());
        // The message has a copy of its body.
        drop(request);
        let answered = async {
            let answer = self.send(Kind::Operator, content, deadline).await?;
            let response = OperatorAnswer::decode(answer.content).ok_or_else(malformed)?;
            // A refusal changed nothing, so it is true whatever this node shows.
            match self.shows(answer.revision, deadline).await || !response.status.is_success() {
                true => Ok(response),
                false => Err(ForwardError::NotSeen(deadline.within)),
            }
        };
        let OperatorAnswer { status, headers, body } = answered.await.map_err(|error| self.problem(error))?;
        self.count("answered");
        let mut response = (status, body).into_response();
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Forwards an approval. Resolves when this node's view has it.
    pub async fn approve(&self, approval: &Approval) -> Result<(), ApproveError> {
        let deadline = Deadline::new(self.limits.guest_timeout);
        let content = serde_json::to_vec(approval).ok().map(Bytes::from);
        let answered = async {
            let answer = self.send(Kind::Approval, content, deadline).await?;
            let outcome: ApprovalOutcome =
                serde_json::from_slice(&answer.content).map_err(|_| malformed())?;
            match self.shows(answer.revision, deadline).await || outcome != ApprovalOutcome::Approved {
                true => Ok(outcome),
                false => Err(ForwardError::NotSeen(deadline.within)),
            }
        };
        let outcome = answered.await.map_err(|error| self.failed(Kind::Approval, error));
        match outcome {
            Ok(outcome) => {
                self.count("answered");
                outcome.into()
            }
            Err(error) if error.is_outcome_unknown() => Err(ApproveError::OutcomeUnknown),
            Err(error) => Err(ApproveError::Unavailable(error.to_string())),
        }
    }

    async fn send(
        &self,
        kind: Kind,
        content: Option<Bytes>,
        deadline: Deadline,
    ) -> Result<Answer, ForwardError> {
        let too_many = |_| ForwardError::TooMany(self.limits.in_flight_max);
        let reserved = match kind {
            Kind::Approval => self.limits.in_flight_max / OPERATORS_SHARE,
            Kind::Hello | Kind::Operator | Kind::Digest | Kind::Audit => 0,
        };
        if self.in_flight.available_permits() <= reserved {
            return Err(ForwardError::TooMany(self.limits.in_flight_max - reserved));
        }
        let _permit = self.in_flight.try_acquire().map_err(too_many)?;
        self.exchange(kind, content.ok_or(ForwardError::TooLarge)?, deadline).await
    }

    /// Waits until this node's view has a revision; false if it does not in time.
    async fn shows(&self, revision: Revision, deadline: Deadline) -> bool {
        timeout(deadline.rest(), self.views.wait_for(revision)).await.is_ok()
    }

    fn count(&self, outcome: &str) {
        self.forwarded.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    /// Counts and logs the failure of a caller's request.
    fn failed(&self, kind: Kind, error: ForwardError) -> ForwardError {
        self.count(error.outcome());
        self.log(kind, &error);
        error
    }

    /// A request for the leader, without its body.
    fn head(&self, operator: &Operator, request: &Request) -> OperatorRequest {
        let client = ClientConnection {
            from: request.extensions().get::<ConnectionInfo>().map(|connection_info| connection_info.from),
            browser: operator.sessions.browser(request.extensions(), request.headers()),
            shown: self.views.shown_to(),
        };
        OperatorRequest {
            method: request.method().clone(),
            target: request.uri().clone(),
            client,
            headers: request.headers().clone(),
            body: Bytes::new(),
        }
    }
}

/// A place for a sign-in by a code, until it is answered.
struct SignInPlace<'a> {
    nodes: &'a Nodes,
    from: Option<IpAddr>,
}

impl Drop for SignInPlace<'_> {
    fn drop(&mut self) {
        lock(&self.nodes.sign_ins).release(self.from);
    }
}

async fn read_body(mut request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(bytes_max).apply(&mut request);
    access::read_body(request, &(), bytes_max).await
}
