//! `/v1/operations`.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use notbefore_core::{Operation, OperationId, Refusal};
use notbefore_engine::{OperationCommand, records};
use notbefore_wire::operator as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::{Change, CommandReasons};
use super::pages::{self, PageQuery, Params};
use super::path::Path;
use super::present::{self, PresentContext};
use super::problem::{ApiResult, Problem};
use super::visibility::{CallerView, Permit};
use super::{Operator, cursor, events};
use crate::view::{OperationTime, View};

/// Query of the list of operations.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only operations on this host.
    host: Option<String>,
    /// Only operations whose events have this type: `Freeze`, `Reboot`, `Redeploy`, `Preempt`, `Terminate` or
    /// `SpotRebalanceRecommendation`.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List open operations, sorted by NotBefore; those without one by the time of the request
#[utoipa::path(get, path = "/operations", tag = "operations", params(ListQuery), responses((status = 200, body = wire::Page<wire::Operation>)))]
pub async fn list(
    caller_view: CallerView,
    Params(query): Params<ListQuery>,
) -> ApiResult<wire::Page<wire::Operation>> {
    let ListQuery { host, event_type, limit, cursor } = query;
    caller_view.check_host_filter(host.as_deref())?;
    let page = PageQuery { limit, cursor };
    let limit = page.limit();
    // A cursor is the place of the last operation shown.
    let after = page.after()?.map(|text| text.parse::<OperationTime>().map_err(|_| pages::bad_cursor()));
    let after = after.transpose()?;
    let event_type = events::parse_type(event_type.as_deref())?;
    let is_meant = |operation: &Operation| {
        host.as_ref().is_none_or(|host| operation.host.as_ref() == Some(host))
            && event_type.is_none_or(|wanted| operation.cause.event_type() == wanted)
    };
    let context = caller_view.present_context(caller_view.now());
    let mut found = caller_view.operations(&context, after, is_meant);
    let mut last = None;
    let mut items = Vec::new();
    for (time, shown) in found.by_ref().take(limit) {
        last = Some(cursor::encode(&time.to_string()));
        items.push(shown);
    }
    if let (Some(host), true) = (&host, items.is_empty()) {
        caller_view.check_host(host)?;
    }
    Ok(Json(wire::Page { next: found.next().and(last), items, revision: caller_view.revision }))
}

/// Show an operation and its parts, open or closed
#[utoipa::path(get, path = "/operations/{operation}", tag = "operations", params(("operation" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Operation)))]
pub async fn show(caller_view: CallerView, Path(operation): Path<String>) -> ApiResult<wire::Operation> {
    let id = caller_view.find_operation(&operation).await?;
    Ok(Json(caller_view.show_operation(id).await?))
}

/// Cancel the events of an operation that have not started
#[utoipa::path(post, path = "/operations/{operation}/cancel", tag = "operations", params(("operation" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Operation)))]
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
#[utoipa::path(post, path = "/operations/{operation}/start", tag = "operations", params(("operation" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Operation)))]
pub async fn start(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_to_start_or_complete, OperationCommand::Start).await
}

/// Complete an operation as a whole; all its events must have started
#[utoipa::path(post, path = "/operations/{operation}/complete", tag = "operations", params(("operation" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Operation)))]
pub async fn complete(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_to_start_or_complete, OperationCommand::Complete).await
}

/// Retry the command of the exec driver for the operation's host, if it has failed or waits for a retry
///
/// Commands of VMs are retried with their events.
#[utoipa::path(post, path = "/operations/{operation}/retry", tag = "operations", params(("operation" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Operation)))]
pub async fn retry(
    caller_view: CallerView,
    Path(id): Path<String>,
    change: Change,
) -> ApiResult<wire::Operation> {
    acted(caller_view, change, &id, CallerView::permit_to_start_or_complete, OperationCommand::Retry).await
}

/// Sends a command about an operation, and shows the operation afterwards.
async fn acted(
    mut caller_view: CallerView,
    change: Change,
    operation: &str,
    permit: fn(&CallerView, OperationId) -> Result<Permit, Problem>,
    command: fn(OperationId) -> OperationCommand,
) -> ApiResult<wire::Operation> {
    let id = caller_view.find_operation(operation).await?;
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
pub async fn present(
    operator: &Operator,
    id: OperationId,
    reasons: CommandReasons,
) -> Result<wire::Operation, Problem> {
    let view = operator.views.newest();
    let operation = stored(operator, &view, id).await?;
    let context = PresentContext::new(&view, |_| true, operator.clock.now(), reasons);
    Ok(present::operation(&context, &operation, reasons))
}
