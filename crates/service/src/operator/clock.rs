//! `/v1/clock`: whether the clock is trusted, and how to trust it before its time.

use axum::Json;
use axum::extract::State;
use notbefore_engine::AcceptClock;
use notbefore_wire::operator::clock as api;

use super::Operator;
use super::access::Change;
use super::problem::ApiResult;

/// Show whether the service trusts its machine's clock
///
/// After a jump of more than a minute it does not, for five minutes: events that were there before do not start by time.
#[utoipa::path(get, path = "/clock", tag = "service", responses((status = 200, body = api::Clock)))]
pub async fn show(State(operator): State<Operator>) -> Json<api::Clock> {
    Json(now(&operator))
}

/// Trust the clock as it is: what is due by it happens
#[utoipa::path(post, path = "/clock/accept", tag = "service", responses((status = 200, body = api::Clock)))]
pub async fn accept(State(operator): State<Operator>, change: Change) -> ApiResult<api::Clock> {
    change.ask(&operator, Ok(AcceptClock)).await?;
    Ok(Json(now(&operator)))
}

fn now(operator: &Operator) -> api::Clock {
    let hold = operator.engine.stats().clock_hold().map(|hold| api::ClockHold {
        since: hold.since,
        reason: hold.reason(),
        events: hold.events as u64,
    });
    api::Clock { now: operator.clock.now(), hold }
}
