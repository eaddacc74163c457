//! Pagination: page sizes and cursors.

use std::ops::Bound;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use notbefore_core::{Refusal, ScopeId, ScopePath};
use notbefore_store::{Page, ReadError, Snapshot};
use notbefore_wire::operator::{Order, PAGE_DEFAULT, PAGE_MAX};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::problem::Problem;
use super::{cursor, reader};

/// Extractor for the query; answers with a problem if it is not valid.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + IntoParams, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        reader::query(&parts.uri).map(Self)
    }
}

/// Query parameters of all lists.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

impl PageQuery {
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(PAGE_DEFAULT).min(PAGE_MAX)
    }

    /// The name of the previous page's last item.
    pub fn after(&self) -> Result<Option<String>, Problem> {
        self.cursor.as_deref().map(|text| cursor::decode(text).ok_or_else(bad_cursor)).transpose()
    }
}

/// Whether a list with `order` has the newest items first.
pub fn is_newest_first(order: Option<String>) -> Result<bool, Problem> {
    match order.map(Order::from) {
        None | Some(Order::Oldest) => Ok(false),
        Some(Order::Newest) => Ok(true),
        Some(Order::Unknown(other)) => {
            let detail = format!("order {other:?} is not one of oldest, newest");
            Err(Problem::bad_request("bad_order", detail))
        }
    }
}

/// The next records of a prefix whose keys begin with their time, in either order.
pub async fn scan_by_time(
    snapshot: &dyn Snapshot,
    newest_first: bool,
    prefix: &str,
    at: Option<&str>,
    limit: usize,
) -> Result<Page, ReadError> {
    match newest_first {
        false => snapshot.scan(prefix, at, limit).await,
        true => snapshot.scan_back(prefix, at, limit).await,
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
