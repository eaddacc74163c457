//! Who is asking, and whether a change was asked for before.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use notbefore_core::Actor;
use notbefore_engine::records::{self, CommandRecord};
use notbefore_engine::{Answer, Command, Idempotency};
use notbefore_store::Revision;
use notbefore_wire::operator::{IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MAX};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::Operator;
use super::problem::Problem;
use crate::tokens::hex;

/// Whose token came with the request.
#[derive(Clone, Debug)]
pub struct Principal(pub String);

/// Lets only those through who hold a token.
pub async fn require_token(
    State(operator): State<Operator>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = given.and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let Some(secret) = secret else {
        let cure =
            "send 'Authorization: Bearer TOKEN'; the first token is in operator.token of the data directory";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "token_missing", cure));
    };
    let Some(token) = operator.tokens.holder(secret, operator.clock.now()) else {
        tracing::warn!(path = super::path(&request), "refused a request with an unknown or expired token");
        let detail = "this token is unknown or has expired";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "token_refused", detail));
    };
    request.extensions_mut().insert(Principal(token.name.clone()));
    Ok(next.run(request).await)
}

/// A request that changes something: who asks, the body, and what makes a retry safe.
pub struct Change {
    principal: String,
    idempotency: Option<Idempotency>,
    if_revision: Option<Revision>,
    body: Bytes,
}

impl FromRequest<Operator> for Change {
    type Rejection = Problem;

    async fn from_request(request: Request, operator: &Operator) -> Result<Self, Problem> {
        let principal = request.extensions().get::<Principal>().map(|principal| principal.0.clone());
        let principal =
            principal.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "token_missing", ""))?;
        let key = text(&request, IDEMPOTENCY_KEY)?;
        let if_revision = match text(&request, header::IF_MATCH.as_str())? {
            None => None,
            Some(text) => Some(revision(&text)?),
        };
        let target = format!("{} {}", request.method(), request.uri());
        let body = Bytes::from_request(request, operator).await.map_err(|rejection| {
            let status = rejection.status();
            let code = if status == StatusCode::PAYLOAD_TOO_LARGE { "body_too_large" } else { "bad_body" };
            Problem::new(status, code, rejection.body_text())
        })?;
        let idempotency = match key {
            None => None,
            Some(key) => Some(Idempotency {
                hash: hash(&target, &body),
                key: checked(key)?,
                principal: principal.clone(),
            }),
        };
        Ok(Self { principal, idempotency, if_revision, body })
    }
}

impl Change {
    /// The body as JSON; an empty one is the type's default, where leaving it out makes sense.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::bad_request("bad_body", format!("the body is not as it should be: {error}"))
        })
    }

    /// The body as JSON, or the default where there is none.
    pub fn body_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        match self.body.is_empty() {
            true => Ok(T::default()),
            false => self.body(),
        }
    }

    /// Sends a command in this request's name. A request that can no longer be made a command, since what it
    /// names has gone, may be the retry of the very one that made it go: then it gets that one's answer.
    pub async fn ask(
        self,
        operator: &Operator,
        command: Result<Command, Problem>,
    ) -> Result<Answer, Problem> {
        let command = match command {
            Ok(command) => command,
            Err(problem) => return self.answered_before(operator).await?.ok_or(problem),
        };
        let Self { principal, idempotency, if_revision, .. } = self;
        let by = Actor::Token(principal);
        let request = notbefore_engine::Request { by, idempotency, if_revision, command };
        Ok(operator.engine.ask(request).await?)
    }

    /// What this very request was answered, if it was carried out before.
    async fn answered_before(&self, operator: &Operator) -> Result<Option<Answer>, Problem> {
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

/// The key becomes part of a record's name, so it is kept to what is harmless there.
fn checked(key: String) -> Result<String, Problem> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_MAX || !key.chars().all(harmless) {
        let limits =
            format!("1 to {IDEMPOTENCY_KEY_MAX} letters, digits, '-', '_' and '.'; a GUID does well");
        return Err(Problem::bad_request(
            "bad_idempotency_key",
            format!("an {IDEMPOTENCY_KEY} has {limits}"),
        ));
    }
    Ok(key)
}

fn revision(text: &str) -> Result<Revision, Problem> {
    let digits = text.trim_start_matches("W/").trim_matches('"');
    digits.parse().map(Revision).map_err(|_| {
        Problem::bad_request(
            "bad_if_match",
            format!("If-Match {text:?} is not a revision; give the ETag that you read"),
        )
    })
}

fn hash(target: &str, body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(target.as_bytes());
    hasher.update([0]);
    hasher.update(body);
    hex(&hasher.finalize())
}
