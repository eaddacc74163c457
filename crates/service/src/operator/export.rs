//! `/v1/export`: everything the store holds, as lines, at one revision and while the service goes on.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::Operator;
use super::pages::Params;
use super::problem::Problem;
use crate::transfer::export::{self, ExportOptions, SEND_TIMEOUT};

/// How many exports may be under way: each holds pages of the store that would otherwise be used again.
pub const EXPORTS_MAX: usize = 2;

/// What an export takes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExportQuery {
    /// Whether the operators' tokens are included: their hashes and what they may do.
    #[serde(default = "yes")]
    tokens: bool,
}

fn yes() -> bool {
    true
}

/// `GET /v1/export`
#[utoipa::path(get, path = "/export", tag = "service", params(ExportQuery), responses((status = 200, description = "A header, one record a line, a trailer with count and SHA-256", body = String, content_type = "application/jsonl")))]
pub async fn export(
    State(operator): State<Operator>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, Problem> {
    let Ok(place) = operator.exports.clone().try_acquire_owned() else {
        let detail =
            format!("{EXPORTS_MAX} exports are under way, which is the limit; try again when one has ended");
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
            Err(error) => tracing::warn!(%revision, %error, "an export ended early"),
        }
        drop(place);
    });
    // The last piece is empty. Without it the answer breaks off, so that no client takes it for whole.
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
