//! `/v1/operations`.

use axum::Json;
use axum::extract::{Path, State};
use notbefore_core::{Operation, OperationId, Refusal};
use notbefore_engine::{Command, records};
use notbefore_wire::operator as wire;
use uuid::Uuid;

use super::Operator;
use super::access::Change;
use super::pages::{self, PageQuery, Params};
use super::present;
use super::problem::Problem;

fn parse(text: &str) -> Result<OperationId, Problem> {
    let unknown = || Problem::not_found("unknown_operation", format!("there is no operation {text}"));
    Uuid::parse_str(text).map(OperationId).map_err(|_| unknown())
}

/// `GET /v1/operations`: those that are not closed.
pub async fn list(
    State(operator): State<Operator>,
    Params(page): Params<PageQuery>,
) -> Result<Json<wire::Page<wire::Operation>>, Problem> {
    let limit = page.limit()?;
    let after = page.after()?.map(|text| parse(&text)).transpose()?;
    let view = operator.views.newest();
    let mut found = view.operations_after(after);
    let items: Vec<_> =
        found.by_ref().take(limit).map(|(_, held)| present::operation(&view, &held.value)).collect();
    let next = found.next().and(items.last()).map(|last| pages::encode(&last.id.to_string()));
    Ok(Json(wire::Page { items, next }))
}

/// `GET /v1/operations/{operation}`
pub async fn show(
    State(operator): State<Operator>,
    Path(operation): Path<String>,
) -> Result<Json<wire::Operation>, Problem> {
    Ok(Json(shown(&operator, parse(&operation)?).await?))
}

/// `POST /v1/operations/{operation}/cancel`: calls off whatever of it has not begun.
pub async fn cancel(
    State(operator): State<Operator>,
    Path(operation): Path<String>,
    change: Change,
) -> Result<Json<wire::Operation>, Problem> {
    let id = parse(&operation)?;
    change.ask(&operator, Ok(Command::CancelOperation(id))).await?;
    Ok(Json(shown(&operator, id).await?))
}

/// An operation, open or closed.
pub async fn shown(operator: &Operator, id: OperationId) -> Result<wire::Operation, Problem> {
    let view = operator.views.newest();
    if let Some(held) = view.operation(id) {
        return Ok(present::operation(&view, &held.value));
    }
    let key = records::operation(id);
    let record = operator.store.snapshot().await?.get(&key).await?.ok_or(Refusal::UnknownOperation(id))?;
    let operation = records::decode::<Operation>(&key, &record.value)?;
    Ok(present::operation(&view, &operation))
}
