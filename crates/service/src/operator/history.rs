//! `/v1/history`: events that have ended, in the order in which they did.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use notbefore_core::{EventId, Past};
use notbefore_engine::records::{self, prefix};
use notbefore_store::Key;
use notbefore_wire::operator as wire;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::Operator;
use super::pages::{self, PageQuery, Params};
use super::present;
use super::problem::Problem;

/// How many entries of the index are read at a time.
const CHUNK: usize = 256;
/// How many entries one request looks at; a rare kind of event is found page by page.
const LOOKED_AT_MAX: usize = 20_000;

/// What the history takes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only what ended at this time or later.
    since: Option<Timestamp>,
    /// Only of this scope.
    scope: Option<String>,
    /// Only what happened to a VM of this name.
    vm: Option<String>,
    /// How many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    cursor: Option<String>,
}

/// List events that have ended, oldest first
#[utoipa::path(get, path = "/history", tag = "events", params(ListQuery), responses((status = 200, body = wire::Page<wire::Event>)))]
pub async fn list(
    State(operator): State<Operator>,
    Params(query): Params<ListQuery>,
) -> Result<Json<wire::Page<wire::Event>>, Problem> {
    let ListQuery { since, scope, vm, limit, cursor } = query;
    let page = PageQuery { limit, cursor };
    let limit = page.limit()?;
    let scope = pages::scope(scope.as_deref())?;
    let wanted = |past: &Past| {
        let named =
            |vm: &String| past.event.resources.iter().any(|one| one.name.as_str().eq_ignore_ascii_case(vm));
        scope.as_ref().is_none_or(|scope| past.scope == *scope) && vm.as_ref().is_none_or(named)
    };
    let start = since.map(|at| format!("{}{:013}", prefix::ENDED, at.as_millisecond().max(0)));
    let mut after: Option<Key> = page.after()?.or(start).map(Into::into);

    let snapshot = operator.store.snapshot().await?;
    let mut items = Vec::new();
    let mut looked_at = 0;
    loop {
        let chunk = snapshot.scan(prefix::ENDED, after.as_deref(), CHUNK).await?;
        for (key, _) in &chunk.records {
            if items.len() == limit || looked_at == LOOKED_AT_MAX {
                let next = after.map(|key| pages::encode(&key));
                return Ok(Json(wire::Page { items, next }));
            }
            looked_at += 1;
            after = Some(key.clone());
            let Some(id) = key.rsplit('/').next().and_then(|text| Uuid::parse_str(text).ok()) else {
                continue;
            };
            let past_key = records::past(EventId(id));
            let Some(record) = snapshot.get(&past_key).await? else { continue };
            let Ok(past) = records::decode::<Past>(&past_key, &record.value) else { continue };
            if wanted(&past) {
                items.push(wire::Event { trail: Vec::new(), ..present::past(&past, record.revision.0) });
            }
        }
        if !chunk.more {
            return Ok(Json(wire::Page { items, next: None }));
        }
    }
}
