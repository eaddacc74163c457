//! The pages without a token: `/healthz`, `/readyz` and `/metrics`.

use std::path::Path;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Operator;
use crate::metrics::Metrics;

/// `GET /healthz`: the process is alive.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the store accepts writes. A clock hold is reported, but the service stays ready.
pub async fn readyz(State(operator): State<Operator>) -> Response {
    match (operator.engine.stats().store_error(), operator.engine.stats().clock_hold()) {
        (None, None) => "ready\n".into_response(),
        (None, Some(hold)) => {
            let (why, since, events) = (hold.reason(), hold.since, hold.events);
            format!("ready\nthe clock is not trusted since {since:.0}: {why}; {events} live events wait for an approval, a command, or the clock\n").into_response()
        }
        (Some(why), _) => {
            let why = without_directory(&why, &operator.token_file);
            let text = format!(
                "store is read-only: {why}; polls are still served, changes are refused; the service retries each second\n"
            );
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

/// A message without the path of the directory that holds `file`: the caller has no token.
fn without_directory(message: &str, file: &Path) -> String {
    match file.parent().map(|directory| directory.join("").display().to_string()) {
        Some(directory) if !directory.is_empty() => message.replace(&directory, ""),
        Some(_) | None => message.to_owned(),
    }
}

/// `GET /metrics`: aggregates in OpenMetrics text format; nothing per VM or event.
pub fn metrics(metrics: &Metrics) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.page()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_store_is_removed() {
        let shown = |message: &str, file: &str| without_directory(message, Path::new(file));
        let full = "/var/lib/nb/store.redb was removed while it was open; restore /var/lib/nb/store.redb";
        let brief = "store.redb was removed while it was open; restore store.redb";
        assert_eq!(shown(full, "/var/lib/nb/operator.token"), brief);
        assert_eq!(shown("No space left on device", "/operator.token"), "No space left on device");
        assert_eq!(shown("read/write", "operator.token"), "read/write");
    }
}
