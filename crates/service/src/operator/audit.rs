//! The audit trail: all changes and all refused requests, each with its actor and address.
//!
//! Changes are facts, which the engine commits together with the change. Refusals do not reach the engine;
//! [`require_token`](super::access::require_token) sees them in responses and records them with [`crate::refusals`].
//! `/v1/audit` merges both by time. Each is also a line in the log, with the target `notbefore::audit`.

use std::collections::VecDeque;
use std::net::IpAddr;

use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;
use notbefore_engine::records::{self, FactBatch, FurtherRefusals, RefusalBatch, RefusedRequest, prefix};
use notbefore_store::{Key, Snapshot, Versioned};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::audit::AuditEntry;
use notbefore_wire::operator::{Actor, ActorKind, AuditOutcome, Fact, FactDetail, FactId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::{CommandReasons, Principal};
use super::cursor::CursorPosition;
use super::pages::{self, PageQuery, Params};
use super::problem::{ApiResult, Problem};
use super::{Operator, facts};

/// Records per scan.
const CHUNK: usize = 256;
/// Most records that one request reads; rare entries are found page by page.
const SCANNED_MAX: usize = 20_000;

/// Logs a change.
pub fn log_change(token: &str, from: Option<IpAddr>, request: &str) {
    let from = from.map(tracing::field::display);
    tracing::info!(target: "notbefore::audit", token, from, request, "done");
}

/// Query of the audit trail.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only entries at this time or later.
    since: Option<Timestamp>,
    /// Only entries before this time.
    until: Option<Timestamp>,
    /// Only entries of this actor: `root`, `token root`, `timer`, …
    actor: Option<String>,
    /// `changed` or `refused`.
    outcome: Option<String>,
    /// `oldest` first (default) or `newest` first.
    #[param(pattern = "^(oldest|newest)$")]
    order: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

/// List changes and refused requests
#[utoipa::path(get, path = "/audit", tag = "audit", params(ListQuery), responses((status = 200, body = wire::Page<AuditEntry>)))]
pub async fn list(
    State(operator): State<Operator>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<ListQuery>,
) -> ApiResult<wire::Page<AuditEntry>> {
    let ListQuery { since, until, actor, outcome, order, limit, cursor } = query;
    let newest_first = pages::is_newest_first(order)?;
    let page = PageQuery { limit, cursor };
    let limit = page.limit();
    let prefixes: &[&'static str] = match outcome.map(AuditOutcome::from) {
        None => &[prefix::FACT, prefix::REFUSED],
        Some(AuditOutcome::Changed) => &[prefix::FACT],
        Some(AuditOutcome::Refused) => &[prefix::REFUSED],
        Some(AuditOutcome::Unknown(other)) => {
            let detail = format!("outcome {other:?} is not one of changed, refused");
            return Err(Problem::bad_request("bad_outcome", detail));
        }
    };
    let cursor =
        page.after()?.map(|name| CursorPosition::parse(&name).ok_or_else(pages::bad_cursor)).transpose()?;
    let (first, last) = if newest_first { (until, since) } else { (since, until) };
    // All records of the cursor's millisecond are read again; their keys continue with '-'.
    let of_cursor = |cursor: &CursorPosition| {
        let time = cursor.key.split('-').next().unwrap_or_default();
        if newest_first { format!("{time}~") } else { time.to_owned() }
    };
    let start = cursor.as_ref().map(of_cursor).or(first.map(millis));
    let end = last.map(millis);
    let is_past_the_end =
        |key: &str| end.as_deref().is_some_and(|end| if newest_first { key < end } else { key >= end });
    let was_shown = |position: &CursorPosition| match &cursor {
        None => false,
        Some(cursor) if newest_first => position >= cursor,
        Some(cursor) => position <= cursor,
    };
    let wanted = |entry: &AuditEntry| {
        since.is_none_or(|since| entry.fact.at >= since)
            && until.is_none_or(|until| entry.fact.at < until)
            && actor.as_deref().is_none_or(|actor| is_actor(&entry.fact.by.to_string(), actor))
    };

    let snapshot = operator.store.snapshot().await?;
    let revision = snapshot.revision().0;
    let mut sources: Vec<MergeSource> = prefixes
        .iter()
        .map(|&prefix| MergeSource::new(prefix, start.as_deref(), newest_first, principal.command_reasons()))
        .collect();
    let mut items = Vec::new();
    let mut last_shown = None;
    for scanned in 0.. {
        let Some((key, entries)) = next_entry(&mut sources, newest_first, &*snapshot).await? else { break };
        if is_past_the_end(&key) {
            break;
        }
        let mut entries: Vec<_> = entries.into_iter().enumerate().collect();
        if newest_first {
            entries.reverse();
        }
        for (index, entry) in entries {
            let position = CursorPosition { key: key.clone(), index };
            if was_shown(&position) || !wanted(&entry) {
                continue;
            }
            if items.len() == limit {
                return Ok(Json(wire::Page { items, next: last_shown, revision }));
            }
            items.push(entry);
            last_shown = Some(position.encode());
        }
        if scanned == SCANNED_MAX {
            let index = if newest_first { 0 } else { usize::MAX };
            let next = Some(CursorPosition { key, index }.encode());
            return Ok(Json(wire::Page { items, next, revision }));
        }
    }
    Ok(Json(wire::Page { items, next: None, revision }))
}

fn millis(at: Timestamp) -> String {
    format!("{:013}", at.as_millisecond().max(0))
}

/// Whether the filter matches an actor: `token bob` or `bob`; `vm web-0 at 10.0.0.4` or `web-0`.
fn is_actor(actor: &str, wanted: &str) -> bool {
    let mut words = actor.split(' ');
    let name = words.nth(1).unwrap_or(actor);
    actor.eq_ignore_ascii_case(wanted) || name.eq_ignore_ascii_case(wanted)
}

/// The end of a record's key, and the record's entries.
type KeyedEntries = (String, Vec<AuditEntry>);

/// Reads the records of one prefix in order.
struct MergeSource {
    prefix: &'static str,
    newest_first: bool,
    /// The last key read, or where to start.
    at: Option<Key>,
    buffered: VecDeque<KeyedEntries>,
    more: bool,
    reasons: CommandReasons,
}

impl MergeSource {
    /// Starts at a time. Keys begin with their time, so they sort after the time alone.
    fn new(prefix: &'static str, start: Option<&str>, newest_first: bool, reasons: CommandReasons) -> Self {
        let at = start.map(|start| format!("{prefix}{start}").into());
        Self { prefix, newest_first, at, buffered: VecDeque::new(), more: true, reasons }
    }

    async fn fill(&mut self, snapshot: &dyn Snapshot) -> Result<(), Problem> {
        while self.buffered.is_empty() && self.more {
            let at = self.at.as_deref();
            let page = pages::scan_by_time(snapshot, self.newest_first, self.prefix, at, CHUNK).await?;
            self.more = page.more;
            for (key, record) in page.records {
                let rest = key.strip_prefix(self.prefix).unwrap_or(&key).to_owned();
                self.buffered.push_back((rest, entries(self.prefix, &key, &record, self.reasons)));
                self.at = Some(key);
            }
        }
        Ok(())
    }
}

/// The next record of all sources, by time (a merge).
async fn next_entry(
    sources: &mut [MergeSource],
    newest_first: bool,
    snapshot: &dyn Snapshot,
) -> Result<Option<KeyedEntries>, Problem> {
    for source in sources.iter_mut() {
        source.fill(snapshot).await?;
    }
    let buffered = sources.iter_mut().filter(|source| !source.buffered.is_empty());
    let key = |source: &&mut MergeSource| source.buffered.front().map(|(key, _)| key.clone());
    let first = if newest_first { buffered.max_by_key(key) } else { buffered.min_by_key(key) };
    Ok(first.and_then(|source| source.buffered.pop_front()))
}

/// The entries of a record. None if another release wrote it in a form that cannot be decoded.
fn entries(kind: &str, key: &str, record: &Versioned, reasons: CommandReasons) -> Vec<AuditEntry> {
    if kind == prefix::FACT {
        let Ok(batch) = records::decode::<FactBatch>(key, &record.value) else { return Vec::new() };
        let entry = |(id, recorded)| AuditEntry {
            outcome: AuditOutcome::Changed,
            from: batch.from,
            count: 1,
            fact: facts::present(id, batch.scope.as_ref(), recorded, reasons),
        };
        return facts::numbered(record.revision, &batch).map(entry).collect();
    }
    let Ok(RefusalBatch { at, requests, further }) = records::decode(key, &record.value) else {
        return Vec::new();
    };
    let one = |at, from, token: Option<String>, count, what| {
        let kind = if token.is_some() { ActorKind::Token } else { ActorKind::Unauthenticated };
        let by = Actor { name: token.unwrap_or_else(|| kind.to_string()), kind, address: None };
        let fact =
            Fact { id: None, at, what, scope: None, operation: None, event: None, vms: Vec::new(), by };
        AuditEntry { outcome: AuditOutcome::Refused, from, count, fact }
    };
    let kept = requests.into_iter().map(|RefusedRequest { at, from, token, code, request }| {
        one(at, from, token, 1, FactDetail::RequestRefused { code, request })
    });
    let counted = further.into_iter().map(|FurtherRefusals { from, count }| {
        one(at, from, None, count, FactDetail::FurtherRefusals { count })
    });
    let mut entries: Vec<AuditEntry> = kept.chain(counted).collect();
    for (n, entry) in (0..).zip(&mut entries) {
        entry.fact.id = Some(FactId { revision: record.revision.0, n });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_filter_matches_kind_and_name_or_name() {
        for (actor, wanted, fits) in [
            ("token bob", "bob", true),
            ("token bob", "token BOB", true),
            ("token bob", "bo", false),
            ("vm web-0 at 10.0.0.4", "web-0", true),
            ("timer", "timer", true),
            ("token at", "token", false),
        ] {
            assert_eq!(is_actor(actor, wanted), fits, "{actor} / {wanted}");
        }
    }
}
