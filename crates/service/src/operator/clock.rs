//! `/v1/clock`: shows and ends a clock hold.

use axum::Json;
use axum::extract::State;
use notbefore_engine::AcceptClock;
use notbefore_wire::operator::clock as api;

use super::Operator;
use super::access::Change;
use super::problem::ApiResult;

/// Show whether the service trusts the system clock
///
/// After a jump of more than a minute it does not, for five minutes: events from before the jump do not start by time.
#[utoipa::path(get, path = "/clock", tag = "service", responses((status = 200, body = api::Clock)))]
pub async fn show(State(operator): State<Operator>) -> Json<api::Clock> {
    Json(now(&operator))
}

/// Accept the clock after a jump: events that are due by it start
#[utoipa::path(post, path = "/clock/accept", tag = "service", responses((status = 200, body = api::Clock)))]
pub async fn accept(State(operator): State<Operator>, change: Change) -> ApiResult<api::Clock> {
    change.ask(&operator, Ok(AcceptClock)).await?;
    Ok(Json(now(&operator)))
}

pub fn now(operator: &Operator) -> api::Clock {
    let hold = operator.engine.stats().clock_hold().map(|hold| api::ClockHold {
        since: hold.since,
        reason: hold.reason(),
        events: hold.events as u64,
    });
    api::Clock { now: operator.clock.now(), hold }
}
