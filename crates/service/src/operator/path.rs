//! Extractor for path parameters.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// Like axum's, but answers with a problem instead of plain text if a decoded parameter is not UTF-8.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(read)) => Ok(Self(read)),
            Err(rejection) => {
                let detail = "a part of the path is not valid UTF-8 after decoding";
                Err(Problem::new(rejection.status(), "bad_path", detail))
            }
        }
    }
}
