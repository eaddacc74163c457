//! At a follower: forwards changes of operators and approvals of guests to the leader.
//!
//! **Operators.** Requests that are not safe go to the leader whole, also dry runs and sign-ins. The leader judges them:
//! token, role, rate limit, idempotency key, audit. This node keeps what belongs to the client's connection: the check of
//! `Host`, connection limits, the client's address, and how cookies are named. Signing out removes only a cookie and
//! stays here.
//!
//! Reads are answered here, except those of what only the leader knows: who listens, what was read, logs of VMs, and uses
//! of tokens. If the leader does not answer these, this node says what it knows itself.
//!
//! **Guests.** This node identifies the caller and reads the body. The leader looks the address up again and judges the
//! events.

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use notbefore_engine::Failure;
use notbefore_engine::request::FailureCause;
use notbefore_store::Revision;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::messages::{Answer, Approval, ApprovalOutcome, ClientConnection, OperatorAnswer, OperatorRequest};
use super::signature::Kind;
use super::{Deadline, ForwardError, Nodes, malformed};
use crate::guest::platform::ApproveError;
use crate::operator::access::{self, ConnectionInfo};
use crate::operator::problem::Problem;
use crate::operator::session::{self, Browser, SIGN_IN_BYTES_MAX};
use crate::operator::{BODY_BYTES_MAX, Operator};

/// One of so many requests in flight is kept for operators: a flood of approvals must not lock them out.
const OPERATORS_SHARE: usize = 4;

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
    match forwarded {
        Forwarded::Change => {
            nodes.forward(&operator, request).await.unwrap_or_else(IntoResponse::into_response)
        }
        Forwarded::Read => {
            let (head, _) = request.into_parts();
            let request = Request::from_parts(head.clone(), Body::empty());
            match nodes.forward(&operator, request).await {
                Ok(response) => response,
                // What this node knows itself is better than nothing.
                Err(_) => next.run(Request::from_parts(head, Body::empty())).await,
            }
        }
    }
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
    async fn forward(&self, operator: &Operator, request: Request) -> Result<Response, Problem> {
        let (request, _place) = self.whole_request(operator, request).await?;
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
        let OperatorAnswer { status, headers, body } = self.counted(answered.await).map_err(Failure::from)?;
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
        match self.counted(answered.await) {
            Ok(outcome) => outcome.into(),
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

    fn counted<T>(&self, answered: Result<T, ForwardError>) -> Result<T, ForwardError> {
        let outcome = answered.as_ref().map_or_else(ForwardError::outcome, |_| "answered");
        self.forwarded.get_or_create(&[("outcome", outcome.to_owned())]).inc();
        answered
    }

    /// Reads the request. Callers whose token this node does not know share a few places until they are answered: a token may be new, and only
    /// the leader can tell, but the bodies of strangers must not fill the memory.
    async fn whole_request(
        &self,
        operator: &Operator,
        request: Request,
    ) -> Result<(OperatorRequest, Option<SemaphorePermit<'_>>), Problem> {
        let is_known = match access::authenticate(operator, &request) {
            Ok(_) => true,
            Err((_, problem)) if problem.is("too_many_connections") => return Err(problem),
            Err(_) => false,
        };
        let has_credentials =
            [header::AUTHORIZATION, header::COOKIE].iter().any(|name| request.headers().contains_key(name));
        let bytes_max = if has_credentials { BODY_BYTES_MAX } else { SIGN_IN_BYTES_MAX };
        let client = ClientConnection {
            from: request.extensions().get::<ConnectionInfo>().map(|connection_info| connection_info.from),
            browser: operator.sessions.browser(request.extensions(), request.headers()),
        };
        let (method, target, headers) =
            (request.method().clone(), request.uri().clone(), request.headers().clone());
        let (body, place) = match is_known {
            true => (read_body(request, bytes_max).await?, None),
            false => {
                let too_many = |_| ForwardError::TooMany(self.limits.unknown_callers_max);
                let place = self.unknown_callers.try_acquire().map_err(too_many);
                let place = place.or_else(|error| self.counted(Err(error))).map_err(Failure::from)?;
                (session::in_time(read_body(request, bytes_max)).await??, Some(place))
            }
        };
        Ok((OperatorRequest { method, target, client, headers, body }, place))
    }
}

async fn read_body(mut request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(bytes_max).apply(&mut request);
    access::read_body(request, &(), bytes_max).await
}
