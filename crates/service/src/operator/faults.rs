//! `/v1/faults`: faults of the guest listener. Needs operator on `/`, and a service that allows them (`serve --faults`).
//!
//! Faults are not stored: they end with the service, and the log has them instead of the audit trail.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use notbefore_wire::operator::faults as api;

use super::Operator;
use super::access::Change;
use super::path::Path;
use super::problem::{ApiResult, Problem};
use crate::faults::{AddFaultError, Faults};

/// List the active faults of the guest listener
#[utoipa::path(get, path = "/faults", tag = "service", responses((status = 200, body = api::FaultList)))]
pub async fn list(State(operator): State<Operator>) -> ApiResult<api::FaultList> {
    Ok(Json(api::FaultList { items: allowed(&operator)?.list() }))
}

/// Add a fault to the guest listener: guests get wrong, late or no answers
///
/// A repeated request adds another fault.
#[utoipa::path(post, path = "/faults", tag = "service", request_body = api::NewFault, responses((status = 201, body = api::Fault)))]
pub async fn add(State(operator): State<Operator>, change: Change) -> Result<Response, Problem> {
    let faults = allowed(&operator)?;
    let added = faults.add(change.body()?).map_err(|error| match error {
        AddFaultError::Fault(error) => Problem::bad_request("bad_fault", error.to_string()),
        AddFaultError::Vm(error) => error.into(),
        AddFaultError::TooMany => Problem::new(StatusCode::CONFLICT, "too_many_faults", error.to_string()),
    })?;
    change.log();
    Ok((StatusCode::CREATED, Json(added)).into_response())
}

/// End all faults
#[utoipa::path(delete, path = "/faults", tag = "service", responses((status = 200, body = api::ClearedFaults)))]
pub async fn clear(State(operator): State<Operator>, change: Change) -> ApiResult<api::ClearedFaults> {
    let cleared = allowed(&operator)?.clear(None) as u64;
    change.log();
    Ok(Json(api::ClearedFaults { cleared }))
}

/// End a fault
#[utoipa::path(delete, path = "/faults/{fault}", tag = "service", params(("fault" = u64, Path, description = "Its number")), responses((status = 200, body = api::ClearedFaults)))]
pub async fn clear_one(
    State(operator): State<Operator>,
    Path(fault): Path<String>,
    change: Change,
) -> ApiResult<api::ClearedFaults> {
    let faults = allowed(&operator)?;
    let cleared = fault.parse().map_or(0, |id| faults.clear(Some(id)));
    if cleared == 0 {
        let detail =
            format!("there is no active fault {fault}; 'notbefore fault list' lists the active faults");
        return Err(Problem::not_found("unknown_fault", detail));
    }
    change.log();
    Ok(Json(api::ClearedFaults { cleared: cleared as u64 }))
}

fn allowed(operator: &Operator) -> Result<&Faults, Problem> {
    operator.faults.as_deref().ok_or_else(|| {
        let detail =
            "this service does not allow faults; start one for tests with 'notbefore serve --faults'";
        Problem::new(StatusCode::CONFLICT, "faults_off", detail)
    })
}
