//! Pagination: page sizes and cursors.

use std::ops::Bound;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use notbefore_core::{Refusal, ScopeId, ScopePath};
use notbefore_wire::operator::{PAGE_DEFAULT, PAGE_MAX};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::cursor;
use super::problem::Problem;

/// Extractor for the query; answers with a problem if it is not valid.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|rejection| {
            let detail = format!("the query is not valid: {}", rejection.body_text());
            Problem::bad_request("bad_query", detail)
        })
    }
}

/// Query parameters of all lists.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

impl PageQuery {
    pub fn limit(&self) -> Result<usize, Problem> {
        match self.limit {
            None => Ok(PAGE_DEFAULT),
            Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
            Some(limit) => {
                let detail = format!("limit {limit} is out of range; it may be 1 to {PAGE_MAX}");
                Err(Problem::bad_request("bad_limit", detail))
            }
        }
    }

    /// The name of the previous page's last item.
    pub fn after(&self) -> Result<Option<String>, Problem> {
        self.cursor.as_deref().map(|text| cursor::decode(text).ok_or_else(bad_cursor)).transpose()
    }
}

/// Parses the scope in a query or a cursor.
pub fn scope(text: Option<&str>) -> Result<Option<ScopeId>, Problem> {
    let path = text.map(str::parse::<ScopePath>).transpose().map_err(Refusal::Name)?;
    Ok(path.map(|path| path.id()))
}

/// The scope and the name in the cursor of a list of VMs or events.
pub fn in_scope(after: Option<&str>) -> Result<Option<(&str, &str)>, Problem> {
    after.map(|name| cursor::in_scope(name).ok_or_else(bad_cursor)).transpose()
}

/// The lower bound of a list that starts with a scope.
pub fn from(scope: Option<&ScopeId>) -> Bound<&str> {
    scope.map_or(Bound::Unbounded, |id| Bound::Included(id.as_str()))
}

pub fn bad_cursor() -> Problem {
    Problem::bad_request("bad_cursor", "this cursor is not valid; start without one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_out_of_range_is_refused() {
        let limit = |limit| PageQuery { limit, cursor: None }.limit();
        assert_eq!(limit(None).unwrap(), PAGE_DEFAULT);
        assert_eq!(limit(Some(PAGE_MAX)).unwrap(), PAGE_MAX);
        assert!(limit(Some(0)).is_err());
        assert!(limit(Some(PAGE_MAX + 1)).is_err());
    }
}
