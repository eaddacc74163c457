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

/// Digits of a time in a key.
const TIME_DIGITS: usize = 13;

/// Extractor for the query; answers with a problem if it is not valid.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        reader::described(&parts.method, &parts.extensions).query(&parts.uri).map(Self)
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
        true => scan_newest_first(snapshot, prefix, at, limit).await,
    }
}

/// Up to `limit` records before `before`, newest first, by scans in key order only: a shared store reads all records to
/// sort them backwards. The digits of the time are a tree, in which a branch with too many records is split.
async fn scan_newest_first(
    snapshot: &dyn Snapshot,
    prefix: &str,
    before: Option<&str>,
    limit: usize,
) -> Result<Page, ReadError> {
    let mut found = Page::default();
    let mut branches = vec![prefix.to_owned()];
    while let Some(branch) = branches.pop() {
        if before.is_some_and(|before| !before.starts_with(&*branch) && *branch > *before) {
            continue;
        }
        let mut page = snapshot.scan(&branch, None, limit).await?;
        if page.more && branch.len() < prefix.len() + TIME_DIGITS {
            branches.extend((0..10).map(|digit| format!("{branch}{digit}")));
            continue;
        }
        // All records of one millisecond.
        while page.more {
            let after = page.records.last().map(|(key, _)| key.clone());
            let next = snapshot.scan(&branch, after.as_deref(), limit).await?;
            page.more = next.more;
            page.records.extend(next.records);
            page.damaged.extend(next.damaged);
        }
        found.damaged.extend(page.damaged);
        let records = page.records.into_iter().filter(|(key, _)| before.is_none_or(|before| **key < *before));
        found.records.extend(records.rev());
        if found.records.len() >= limit {
            found.more = found.records.len() > limit || !branches.is_empty();
            found.records.truncate(limit);
            break;
        }
    }
    Ok(found)
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
    use jiff::Timestamp;
    use notbefore_core::EventId;
    use notbefore_engine::records::{self, prefix};
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Key, Outcome, Store, Txn};
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn newest_first_is_the_index_reversed() {
        let store = MemoryStore::new();
        // One millisecond has more entries than a page, others have few or none.
        let times = [1_790_000_000_000_i64; 70].into_iter().chain([5, 1_700_000_000_000, 1_790_000_000_001]);
        let mut keys: Vec<Key> = Vec::new();
        for (n, at) in (0_u128..).zip(times.chain((0..90).map(|n| 1_790_000_000_900 + n * n * n))) {
            let id = EventId(Uuid::from_u128(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)));
            let key = records::ended(Timestamp::from_millisecond(at).unwrap(), id);
            let put = vec![(key.clone(), "1 null".into())];
            assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));
            keys.push(key);
        }
        keys.sort_unstable_by(|one, two| two.cmp(one));
        let snapshot = store.snapshot().await.unwrap();
        for limit in [1, 7, 64, 1_000] {
            let mut read: Vec<Key> = Vec::new();
            loop {
                let page = scan_newest_first(&*snapshot, prefix::ENDED, read.last().map(|key| &**key), limit)
                    .await
                    .unwrap();
                assert!(page.records.len() <= limit);
                read.extend(page.records.into_iter().map(|(key, _)| key));
                if !page.more {
                    break;
                }
            }
            assert_eq!(read, keys, "pages of {limit}");
        }
        let until = records::ended_from(Timestamp::from_millisecond(1_790_000_000_000).unwrap());
        let older = scan_newest_first(&*snapshot, prefix::ENDED, Some(&until), 10).await.unwrap();
        let older: Vec<Key> = older.records.into_iter().map(|(key, _)| key).collect();
        assert_eq!(older, keys[keys.len() - 2..]);
    }
}
