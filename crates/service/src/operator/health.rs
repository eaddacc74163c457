//! The pages that need no token: whether the service lives, whether it can do its work, what it has counted.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Operator;
use crate::metrics::Metrics;

/// `GET /healthz`: the process answers.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: and its store takes what it is given. A clock that is not trusted keeps it from little.
pub async fn readyz(State(operator): State<Operator>) -> Response {
    match (operator.engine.stats().store_error(), operator.engine.stats().clock_hold()) {
        (None, None) => "ready\n".into_response(),
        (None, Some(hold)) => {
            let (why, since, events) = (hold.reason(), hold.since, hold.events);
            format!("ready\nthe clock is not trusted since {since:.0}: {why}; {events} live events wait for an approval, a command, or the clock\n").into_response()
        }
        (Some(why), _) => {
            let text = format!(
                "the store does not write: {why}; guests go on polling, changes are refused, and it is tried again every second\n"
            );
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

/// `GET /metrics`: aggregates, in Prometheus' text form; nothing per VM or event.
pub fn metrics(metrics: &Metrics) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.page()).into_response()
}
