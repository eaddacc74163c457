//! `/v1/tokens`. Needs operator on `/`, so that no token can grant more than it has.

use std::ops::Bound;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use notbefore_core::access::{GRANTS_MAX, PrefixError};
use notbefore_core::{Actor, Grant, Name, Prefix, Refusal, Token};
use notbefore_engine::TokenCommand;
use notbefore_wire::operator as wire;
use notbefore_wire::operator::tokens as api;

use super::access::Change;
use super::pages::{PageQuery, Params};
use super::path::Path;
use super::problem::{ApiResult, Problem};
use super::wire_names::WireName;
use super::{Operator, cursor};
use crate::tokens::{self, KnownToken, ROOT};
use crate::view::View;

/// List tokens, sorted by name, without secrets
#[utoipa::path(get, path = "/tokens", tag = "tokens", params(PageQuery), responses((status = 200, body = wire::Page<api::Token>)))]
pub async fn list(
    State(operator): State<Operator>,
    Params(page): Params<PageQuery>,
) -> ApiResult<wire::Page<api::Token>> {
    let (limit, after) = (page.limit(), page.after()?);
    let (revision, view) = operator.views.complete_to();
    let now = operator.clock.now();
    let mut found = view.tokens.after(after.as_deref());
    let page = found.by_ref().take(limit);
    let items: Vec<_> = page.map(|known| shown(known, now)).collect();
    let next = found.next().and(items.last()).map(|last| cursor::encode(&last.name.to_ascii_lowercase()));
    Ok(Json(wire::Page { items, next, revision }))
}

fn shown(known: &KnownToken, now: Timestamp) -> api::Token {
    let token = &known.token;
    api::Token {
        name: token.name.to_string(),
        grants: token.grants.iter().map(grant).collect(),
        created_at: token.created_at,
        created_by: token.created_by.as_ref().map(Actor::to_string),
        expires_at: token.expires_at,
        expired: token.is_expired(now),
        last_used_at: known.last_used_at(),
        revision: known.revision,
    }
}

pub fn grant(Grant { role, path }: &Grant) -> api::Grant {
    let path = if path.is_root() { "/".to_owned() } else { path.to_string() };
    api::Grant { role: role.wire_name(), path }
}

/// Create a token; its secret is shown only once
///
/// The service stores only a hash, so a repeated request cannot return the secret; it fails with `secret_lost`.
#[utoipa::path(post, path = "/tokens", tag = "tokens", request_body = api::CreateToken, responses((status = 201, body = api::NewToken)))]
pub async fn create(State(operator): State<Operator>, change: Change) -> Result<Response, Problem> {
    let api::CreateToken { name, grants, expires_at } = change.body()?;
    let now = operator.clock.now();
    let name = Name::parse_new(&name).map_err(Refusal::Name)?;
    if expires_at.is_some_and(|at| at <= now) {
        let detail = format!("expires_at lies in the past; it is {now:.0} now");
        return Err(Problem::bad_request("bad_expiry", detail));
    }
    let secret = tokens::new_secret().map_err(|error| {
        let detail = format!("cannot get random bytes for a secret: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    })?;
    let token = Token {
        name,
        hash: tokens::hash(&secret),
        grants: checked(&grants)?,
        created_at: now,
        created_by: Some(change.actor()),
        expires_at,
    };
    change.ask(&operator, Ok(TokenCommand::Create(token.clone()))).await?;
    let view = operator.views.newest();
    let Some(known) = view.tokens.named(&token.name).filter(|known| known.token == token) else {
        let name = &token.name;
        let detail = format!(
            "an earlier attempt of this request created token {name}, and its secret cannot be shown again; revoke it (notbefore token revoke {name}) and create another"
        );
        return Err(Problem::new(StatusCode::CONFLICT, "secret_lost", detail));
    };
    let made = api::NewToken { secret, token: shown(known, now), empty_paths: empty_paths(&view, &token) };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Paths of the token's grants below which there is no scope.
fn empty_paths(view: &View, token: &Token) -> Vec<String> {
    let paths = token.grants.iter().map(|grant| &grant.path).filter(|path| !path.is_root());
    let empty = paths.filter(|path| view.scopes_below(path, Bound::Unbounded).next().is_none());
    empty.map(Prefix::to_string).collect()
}

fn checked(grants: &[api::Grant]) -> Result<Vec<Grant>, Problem> {
    if grants.is_empty() || grants.len() > GRANTS_MAX {
        let detail = format!("a token has 1 to {GRANTS_MAX} grants, this one has {}", grants.len());
        return Err(Problem::bad_request("bad_grants", detail));
    }
    let one = |grant: &api::Grant| {
        let bad = |detail: String| Problem::bad_request("bad_grants", detail);
        // An empty path is not `/`: it may be an unset variable.
        if grant.path != "/" && grant.path.trim_matches('/').is_empty() {
            let cure = "name a subscription, subscription/group or subscription/group/scope; / is everywhere";
            return Err(bad(format!("the path of the role {} is empty: {cure}", grant.role)));
        }
        let role = grant.role.as_str().parse().map_err(|error| bad(format!("role {error}")))?;
        let path = grant.path.parse().map_err(|error: PrefixError| bad(error.to_string()))?;
        Ok(Grant { role, path })
    };
    grants.iter().map(one).collect()
}

/// Revoke a token
///
/// After the response the token is refused, also on open connections, and its streams end. `If-Match` takes the
/// token's `revision`.
#[utoipa::path(delete, path = "/tokens/{token}", tag = "tokens", params(("token" = String, Path, description = "Its name")), responses((status = 204)))]
pub async fn revoke(
    State(operator): State<Operator>,
    Path(token): Path<String>,
    change: Change,
) -> Result<StatusCode, Problem> {
    let unknown = |_| {
        let detail = format!("there is no token {token}; 'notbefore token list' lists the existing tokens");
        Problem::not_found("unknown_token", detail)
    };
    let name = token.parse::<Name>().map_err(unknown)?;
    change.ask(&operator, Ok(TokenCommand::Revoke(name.clone()))).await?;
    if name.folded() == ROOT {
        // Otherwise the command line on this machine would use the revoked secret.
        let _ = std::fs::remove_file(&operator.token_file);
    }
    Ok(StatusCode::NO_CONTENT)
}
