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
use super::present::{self, PresentContext};
use super::problem::{ApiResult, Problem};
use super::visibility::{CallerView, Permit};
use super::{Operator, cursor};
use crate::view::View;

fn parse(text: &str) -> Result<OperationId, Problem> {
    let unknown = || Problem::not_found("unknown_operation", format!("there is no operation {text}"));
    Uuid::parse_str(text).map(OperationId).map_err(|_| unknown())
}

/// List open operations
#[utoipa::path(get, path = "/operations", tag = "operations", params(PageQuery), responses((status = 200, body = wire::Page<wire::Operation>)))]
pub async fn list(
    caller_view: CallerView,
    Params(page): Params<PageQuery>,
) -> ApiResult<wire::Page<wire::Operation>> {
    let limit = page.limit();
    let after = page.after()?.map(|text| parse(&text)).transpose()?;
    let context = caller_view.present_context(caller_view.now());
    let mut found = caller_view.operations(&context, after);
    let items: Vec<_> = found.by_ref().take(limit).collect();
    let next = found.next().and(items.last()).map(|last| cursor::encode(&last.id.to_string()));
    Ok(Json(wire::Page { items, next, revision: caller_view.revision }))
}

/// Show an operation and its parts, open or closed
#[utoipa::path(get, path = "/operations/{operation}", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn show(caller_view: CallerView, Path(operation): Path<String>) -> ApiResult<wire::Operation> {
    Ok(Json(caller_view.show_operation(parse(&operation)?).await?))
}

/// Cancel the events of an operation that have not started
#[utoipa::path(post, path = "/operations/{operation}/cancel", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn cancel(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_on_operation, OperationCommand::Cancel).await
}

/// Start all events of an operation now
///
/// For the reboot or freeze of a host, in all its scopes at once. Other operations must have all events in one scope.
#[utoipa::path(post, path = "/operations/{operation}/start", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn start(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_to_start_or_complete, OperationCommand::Start).await
}

/// Complete an operation as a whole; all its events must have started
#[utoipa::path(post, path = "/operations/{operation}/complete", tag = "operations", params(("operation" = Uuid, Path)), responses((status = 200, body = wire::Operation)))]
pub async fn complete(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_to_start_or_complete, OperationCommand::Complete).await
}

/// Sends a command about an operation, and shows the operation afterwards.
async fn acted(
    mut caller_view: CallerView,
    change: Change,
    operation: &str,
    permit: fn(&CallerView, OperationId) -> Result<Permit, Problem>,
    command: fn(OperationId) -> OperationCommand,
) -> ApiResult<wire::Operation> {
    let id = parse(operation)?;
    // An operation that the caller does not see is 404, whatever else is wrong with the request.
    let permit = permit(&caller_view, id);
    let command = permit.and_then(|permit| change.reject_preconditions().map(|()| (permit, command(id))));
    let answer = caller_view.ask(change, command).await;
    if let Err(problem) = answer {
        // The engine drops closed operations; the store keeps them.
        return Err(match caller_view.show_operation(id).await {
            Ok(closed) if problem.is("unknown_operation") => {
                let how = if closed.cancelled { "cancelled" } else { "completed" };
                let detail = format!("operation {} is closed: {how}", id.0);
                Problem::new(StatusCode::CONFLICT, "operation_closed", detail)
            }
            Ok(_) | Err(_) => problem,
        });
    }
    Ok(Json(caller_view.show_operation(id).await?))
}

/// Loads an open or closed operation.
pub async fn stored(operator: &Operator, view: &View, id: OperationId) -> Result<Arc<Operation>, Problem> {
    if let Some(held) = view.operation(id) {
        return Ok(Arc::clone(&held.value));
    }
    let key = records::operation(id);
    let record = operator.store.snapshot().await?.get(&key).await?.ok_or(Refusal::UnknownOperation(id))?;
    Ok(Arc::new(records::decode::<Operation>(&key, &record.value)?))
}

/// An open or closed operation with all its parts, for callers that see everything.
pub async fn present(operator: &Operator, id: OperationId) -> Result<wire::Operation, Problem> {
    let view = operator.views.newest();
    let operation = stored(operator, &view, id).await?;
    Ok(present::operation(&PresentContext::new(&view, |_| true, operator.clock.now()), &operation))
}
