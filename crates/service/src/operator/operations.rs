//! `/v1/operations`.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use notbefore_core::{Operation, OperationId, Refusal};
use notbefore_engine::{OperationCommand, records};
use notbefore_wire::operator as wire;
use uuid::Uuid;

use super::access::Change;
use super::pages::{PageQuery, Params};
use super::path::Path;
use super::present::{self, Live};
use super::problem::{ApiResult, Problem};
use super::sight::{Permit, Sight};
use super::{Operator, cursor};
use crate::view::View;

fn parse(text: &str) -> Result<OperationId, Problem> {
    let unknown = || Problem::not_found("unknown_operation", format!("there is no operation {text}"));
    Uuid::parse_str(text).map(OperationId).map_err(|_| unknown())
}

/// List operations that are not closed
#[utoipa::path(get, path = "/operations", tag = "operations", params(PageQuery), responses((status = 200, body = wire::Page<wire::Operation>)))]
pub async fn list(sight: Sight, Params(page): Params<PageQuery>) -> ApiResult<wire::Page<wire::Operation>> {
    let limit = page.limit()?;
    let after = page.after()?.map(|text| parse(&text)).transpose()?;
    let live = sight.live(sight.now());
    let mut found = sight.operations(&live, after);
    let items: Vec<_> = found.by_ref().take(limit).collect();
    let next = found.next().and(items.last()).map(|last| cursor::encode(&last.id.to_string()));
    Ok(Json(wire::Page { items, next, revision: sight.revision }))
}

/// Show an operation and its parts, also when it is closed
#[utoipa::path(get, path = "/operations/{operation}", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn show(sight: Sight, Path(operation): Path<String>) -> ApiResult<wire::Operation> {
    Ok(Json(sight.show_operation(parse(&operation)?).await?))
}

/// Call off whatever of an operation has not begun
#[utoipa::path(post, path = "/operations/{operation}/cancel", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn cancel(sight: Sight, Path(id): Path<String>, change: Change) -> ApiResult<wire::Operation> {
    acted(sight, change, &id, Sight::permit_on_operation, OperationCommand::Cancel).await
}

/// Start all events of an operation now: those of a host's reboot or freeze in all scopes at once, those of any other
/// where they are in one scope
#[utoipa::path(post, path = "/operations/{operation}/start", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn start(sight: Sight, Path(id): Path<String>, change: Change) -> ApiResult<wire::Operation> {
    acted(sight, change, &id, Sight::permit_to_carry_out, OperationCommand::Start).await
}

/// Say that all of an operation was carried out; every event of it must have started
#[utoipa::path(post, path = "/operations/{operation}/complete", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn complete(sight: Sight, Path(id): Path<String>, change: Change) -> ApiResult<wire::Operation> {
    acted(sight, change, &id, Sight::permit_to_carry_out, OperationCommand::Complete).await
}

/// Sends a command about a whole operation, and shows what the operation is then.
async fn acted(
    mut sight: Sight,
    change: Change,
    operation: &str,
    permit: fn(&Sight, OperationId) -> Result<Permit, Problem>,
    command: fn(OperationId) -> OperationCommand,
) -> ApiResult<wire::Operation> {
    let id = parse(operation)?;
    // What does not exist for the caller is answered so whatever else is wrong with the request.
    let permit = permit(&sight, id);
    let command = permit.and_then(|permit| change.compares_nothing().map(|()| (permit, command(id))));
    let answer = sight.ask(change, command).await;
    if let Err(problem) = answer {
        // The engine forgets an operation that has closed; the store does not.
        return Err(match sight.show_operation(id).await {
            Ok(closed) if problem.is("unknown_operation") => {
                let how = if closed.cancelled { "called off" } else { "done" };
                let detail = format!("operation {} is closed: {how}", id.0);
                Problem::new(StatusCode::CONFLICT, "operation_closed", detail)
            }
            Ok(_) | Err(_) => problem,
        });
    }
    Ok(Json(sight.show_operation(id).await?))
}

/// An operation as it is stored, open or closed.
pub async fn stored(operator: &Operator, view: &View, id: OperationId) -> Result<Arc<Operation>, Problem> {
    if let Some(held) = view.operation(id) {
        return Ok(Arc::clone(&held.value));
    }
    let key = records::operation(id);
    let record = operator.store.snapshot().await?.get(&key).await?.ok_or(Refusal::UnknownOperation(id))?;
    Ok(Arc::new(records::decode::<Operation>(&key, &record.value)?))
}

/// An operation, open or closed, with all of its parts: for those who see everything.
pub async fn shown(operator: &Operator, id: OperationId) -> Result<wire::Operation, Problem> {
    let view = operator.views.newest();
    let operation = stored(operator, &view, id).await?;
    Ok(present::operation(&Live::new(&view, |_| true, operator.clock.now()), &operation))
}
