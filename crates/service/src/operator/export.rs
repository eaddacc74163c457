//! `/v1/export`: all records of the store at one revision, as JSON lines. The service keeps running meanwhile.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::Operator;
use super::access::Principal;
use super::pages::Params;
use super::problem::Problem;
use crate::transfer::export::{self, ExportOptions, SEND_TIMEOUT};

/// Most concurrent exports. Each keeps pages of the store from being reused.
pub const EXPORTS_MAX: usize = 2;

/// Query of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// Whether operator tokens (hashes and grants) are included.
    #[serde(default = "yes")]
    tokens: bool,
}

fn yes() -> bool {
    true
}

/// Export all records
#[utoipa::path(get, path = "/export", tag = "service", params(ExportQuery), responses((status = 200, description = "A header, one record a line, a trailer with count and SHA-256", body = String, content_type = "application/jsonl")))]
pub async fn export(
    State(operator): State<Operator>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, Problem> {
    principal.count_costly_read()?;
    let Ok(place) = operator.exports.clone().try_acquire_owned() else {
        let detail =
            format!("{EXPORTS_MAX} exports are running, which is the limit; retry when one has ended");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_exports", detail));
    };
    let snapshot = operator.store.snapshot().await?;
    let (pieces, taken) = mpsc::channel(1);
    let mut shutdown = operator.shutdown.clone();
    let now = operator.clock.now();
    tokio::spawn(async move {
        let revision = snapshot.revision();
        let options = ExportOptions { tokens: query.tokens, send_timeout: SEND_TIMEOUT };
        let ended = tokio::select! {
            ended = export::export(snapshot, options, now, pieces) => ended,
            _ = shutdown.wait_for(|closing| *closing) => return,
        };
        match ended {
            Ok(records) => tracing::info!(%revision, records, "exported"),
            Err(error) => tracing::warn!(%revision, %error, "export failed"),
        }
        drop(place);
    });
    // The last piece is empty. Without it the response is aborted, so that no client takes it for complete.
    let body = stream::unfold(Some(taken), |taken| async move {
        let mut taken: mpsc::Receiver<Bytes> = taken?;
        match taken.recv().await {
            Some(piece) if piece.is_empty() => None,
            Some(piece) => Some((Ok(piece), Some(taken))),
            None => Some((Err(io::Error::other("the export ended early")), None)),
        }
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
