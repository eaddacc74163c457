//! The pages without a token: `/healthz`, `/readyz` and `/metrics`.

use std::path::Path;

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use notbefore_wire::text::counted;

use super::Operator;
use crate::cluster::readiness::{ChangesRefused, Readiness};
use crate::engine_stats::HeldClock;
use crate::metrics::Metrics;

/// `GET /healthz`: the process is alive.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the store accepts writes. A clock hold is reported, but the service stays ready.
///
/// A node of a cluster is ready while it answers guests: a load balancer must not withdraw all nodes because no change can
/// be made. `GET /readyz?changes` asks whether changes are taken.
pub async fn readyz(State(operator): State<Operator>, RawQuery(query): RawQuery) -> Response {
    if let Some(readiness) = operator.readiness.as_ref().map(|readiness| *readiness.borrow()) {
        return readyz_of_node(&operator, readiness, query.as_deref() == Some("changes"));
    }
    match (operator.engine.stats().store_error(), operator.engine.stats().clock_hold()) {
        (None, hold) => {
            let faults = operator.faults.as_ref().map_or(0, |faults| faults.list().len());
            let faults = match faults {
                0 => String::new(),
                some => format!("{}\n", active_faults(some)),
            };
            format!("ready\n{faults}{}", hold.map(|hold| held_clock(&hold)).unwrap_or_default())
                .into_response()
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

fn readyz_of_node(operator: &Operator, readiness: Readiness, asks_for_changes: bool) -> Response {
    let Readiness { trusts_addresses, refused } = readiness;
    let mut text = String::new();
    if let Some(ChangesRefused { since, why }) = refused {
        let why = why.text();
        text = format!("changes are refused since {since:.0}: {why}; the node retries by itself\n");
    }
    let database = operator.cluster.as_ref().and_then(|cluster| cluster.database_text());
    text += &database.map(|database| format!("{database}\n")).unwrap_or_default();
    text += &operator.engine.stats().clock_hold().map(|hold| held_clock(&hold)).unwrap_or_default();
    if let Some(unreadable) = operator.engine.stats().unreadable() {
        // The caller has no token, so the records are not named.
        text += &format!(
            "{} in the store cannot be read, and a node that starts now ends: see 'notbefore cluster status'\n",
            counted(unreadable.len(), "record")
        );
    }
    match (trusts_addresses, asks_for_changes && refused.is_some()) {
        (true, false) => format!("ready\n{text}").into_response(),
        (true, true) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        (false, _) => {
            let guests = "this node has not reached the store for too long to say which VM has an address: guests get 503\n";
            (StatusCode::SERVICE_UNAVAILABLE, format!("{guests}{text}")).into_response()
        }
    }
}

fn active_faults(count: usize) -> String {
    let are = if count == 1 { "is" } else { "are" };
    format!(
        "{} of the guest listener {are} active: answers to guests are wrong on purpose",
        counted(count, "fault")
    )
}

fn held_clock(hold: &HeldClock) -> String {
    let (why, since, events) = (hold.reason(), hold.since, hold.events);
    format!(
        "the clock is not trusted since {since:.0}: {why}; {events} live events wait for an approval, a command, or the clock\n"
    )
}

/// A message without the path of the directory that holds `file`: the caller has no token.
fn without_directory(message: &str, file: &Path) -> String {
    match file.parent().map(|directory| directory.join("").display().to_string()) {
        Some(directory) if !directory.is_empty() => message.replace(&directory, ""),
        Some(_) | None => message.to_owned(),
    }
}

/// `GET /metrics`: aggregates in OpenMetrics text format; nothing per VM or event.
pub async fn metrics(operator: &Operator, metrics: &Metrics) -> Response {
    if let Some(cluster) = &operator.cluster {
        cluster.refresh().await;
    }
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
