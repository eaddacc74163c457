//! `/v1/history`: ended events, sorted by end time.
//!
//! An index by time leads to the events. A request reads a limited number of index entries and checks each event
//! against the filter. If it reaches the limit, it returns a cursor, so rare events are found page by page. A cursor is
//! a position in the index. Events that end later sort after it, so a client that reads all pages gets each event that
//! had ended at the first request exactly once.

use axum::Json;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use notbefore_core::{EventType, Outcome, Past, ScopeId};
use notbefore_engine::records::{self, prefix};
use notbefore_store::{Key, ReadError, Snapshot, Versioned};
use notbefore_wire::operator as wire;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::access::CommandReasons;
use super::pages::{self, PageQuery, Params};
use super::problem::{ApiResult, Problem};
use super::visibility::CallerView;
use super::{cursor, present};

/// Index entries per scan.
const CHUNK: usize = 256;
/// Most index entries that one request reads: some tens of milliseconds of work.
const SCANNED_MAX: usize = 5_000;

/// Events that are read at once: a shared store answers each read after a round trip.
const READS_AT_ONCE: usize = 32;

/// Query of the history.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only events that ended at this time or later.
    since: Option<Timestamp>,
    /// Only events that ended before this time.
    until: Option<Timestamp>,
    /// Only events of this scope.
    scope: Option<String>,
    /// Only events that affected this VM: its id, its name, or the end of its path.
    vm: Option<String>,
    /// Only events that affected VMs on this host.
    host: Option<String>,
    /// Only events of this type: `Freeze`, `Reboot`, `Redeploy`, `Preempt`, `Terminate` or
    /// `SpotRebalanceRecommendation`.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Only events with this outcome: `Completed` or `Cancelled`.
    outcome: Option<String>,
    /// `oldest` first (default) or `newest` first.
    #[param(pattern = "^(oldest|newest)$")]
    order: Option<String>,
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List ended events
///
/// A page may be short or empty and still have a `next`.
#[utoipa::path(get, path = "/history", tag = "events", params(ListQuery), responses((status = 200, body = wire::Page<wire::Event>)))]
pub async fn list(
    caller_view: CallerView,
    Params(query): Params<ListQuery>,
) -> ApiResult<wire::Page<wire::Event>> {
    caller_view.check_host_filter(query.host.as_deref())?;
    let search = Search::new(query, caller_view.reasons)?;
    let snapshot = caller_view.snapshot().await?;
    Ok(Json(search.page(&*snapshot, &|scope| caller_view.can_see(scope)).await?))
}

/// A parsed query.
struct Search {
    filter: EventFilter,
    newest_first: bool,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: usize,
    cursor: Option<Key>,
    reasons: CommandReasons,
}

/// Whether the caller sees a scope.
pub type ScopeFilter<'a> = &'a (dyn Fn(&ScopeId) -> bool + Sync);

#[derive(Default)]
pub struct EventFilter {
    scope: Option<ScopeId>,
    vm: Option<VmFilter>,
    host: Option<String>,
    event_type: Option<EventType>,
    outcome: Option<Outcome>,
}

enum VmFilter {
    Id(Uuid),
    /// The end of a path, in lower case.
    Named(String),
}

impl VmFilter {
    fn parse(text: &str) -> Self {
        match Uuid::parse_str(text) {
            Ok(id) => Self::Id(id),
            Err(_) => Self::Named(text.to_ascii_lowercase()),
        }
    }
}

impl Search {
    fn new(query: ListQuery, reasons: CommandReasons) -> Result<Self, Problem> {
        let ListQuery { since, until, scope, vm, host, event_type, outcome, order, limit, cursor } = query;
        let page = PageQuery { limit, cursor };
        let after = page.after()?;
        if after.as_ref().is_some_and(|key| !key.starts_with(prefix::ENDED)) {
            return Err(pages::bad_cursor());
        }
        let newest_first = pages::is_newest_first(order)?;
        Ok(Self {
            filter: EventFilter::parse(scope, vm, host, event_type, outcome)?,
            newest_first,
            since,
            until,
            limit: page.limit(),
            cursor: after.map(Into::into),
            reasons,
        })
    }

    async fn page(
        self,
        snapshot: &dyn Snapshot,
        sees: ScopeFilter<'_>,
    ) -> Result<wire::Page<wire::Event>, Problem> {
        let revision = snapshot.revision().0;
        let begin = if self.newest_first { self.until } else { self.since }.map(records::ended_from);
        let mut at = self.cursor.clone().or(begin);
        let mut items = Vec::new();
        let mut last_shown: Option<Key> = None;
        let mut scanned = 0;
        loop {
            let chunk =
                pages::scan_by_time(snapshot, self.newest_first, prefix::ENDED, at.as_deref(), CHUNK).await?;
            let mut loaded = self.filter.load_matching(snapshot, &chunk.records, sees);
            for (key, _) in &chunk.records {
                if self.is_past_the_end(key) {
                    return Ok(wire::Page { items, next: None, revision });
                }
                // A cursor must not reveal an event that the caller does not see, so a page that ends at the scan limit
                // ends at a millisecond and not at an event.
                let before = at.as_deref().and_then(millisecond);
                if scanned >= SCANNED_MAX && before != millisecond(key) {
                    return Ok(wire::Page {
                        items,
                        next: before.map(|time| self.cursor_after(time)),
                        revision,
                    });
                }
                scanned += 1;
                at = Some(key.clone());
                let Some((past, revision)) = loaded.next().await.transpose()?.flatten() else { continue };
                let found = wire::Event { trail: Vec::new(), ..present::past(&past, revision, self.reasons) };
                if items.len() == self.limit {
                    return Ok(wire::Page {
                        items,
                        next: last_shown.map(|key| cursor::encode(&key)),
                        revision,
                    });
                }
                items.push(found);
                last_shown = Some(key.clone());
            }
            if !chunk.more {
                return Ok(wire::Page { items, next: None, revision });
            }
        }
    }

    /// A cursor after all events that ended in a millisecond.
    fn cursor_after(&self, time: &str) -> String {
        if self.newest_first { cursor::encode(time) } else { cursor::encode(&format!("{time}/~")) }
    }

    fn is_past_the_end(&self, key: &str) -> bool {
        let end = if self.newest_first { self.since } else { self.until }.map(records::ended_from);
        end.is_some_and(|end| (key < &*end) == self.newest_first)
    }
}

impl EventFilter {
    /// Parses the filters of a query.
    pub fn parse(
        scope: Option<String>,
        vm: Option<String>,
        host: Option<String>,
        event_type: Option<String>,
        outcome: Option<String>,
    ) -> Result<Self, Problem> {
        Ok(Self {
            scope: pages::scope(scope.as_deref())?,
            vm: vm.as_deref().map(VmFilter::parse),
            host,
            event_type: super::events::parse_type(event_type.as_deref())?,
            outcome: outcome.as_deref().map(parse_outcome).transpose()?,
        })
    }

    /// Loads the events of index entries and their revisions, in order. An entry gives none if the event does not match
    /// the filter or the caller does not see it.
    pub fn load_matching<'a>(
        &'a self,
        snapshot: &'a dyn Snapshot,
        entries: &'a [(Key, Versioned)],
        sees: ScopeFilter<'a>,
    ) -> BoxStream<'a, Result<Option<(Past, u64)>, Problem>> {
        let loads = entries.iter().map(move |(key, _)| self.load_if_matching(snapshot, key, sees));
        stream::iter(loads).buffered(READS_AT_ONCE).boxed()
    }

    async fn load_if_matching(
        &self,
        snapshot: &dyn Snapshot,
        key: &str,
        sees: ScopeFilter<'_>,
    ) -> Result<Option<(Past, u64)>, Problem> {
        let Some(id) = records::event_in_key(key) else { return Ok(None) };
        let past_key = records::past(id);
        let record = match snapshot.get(&past_key).await {
            // The store has logged and counted the damage.
            Err(ReadError::Damaged { .. }) => None,
            record => record?,
        };
        let Some(record) = record else { return Ok(None) };
        let past = records::decode::<Past>(&past_key, &record.value)?;
        // A process may write the entry and crash before the event ends; the event then ends later, with another entry.
        let stale = records::ended(past.ended_at, id) != key.into();
        if stale || !sees(&past.scope) || !self.matches(&past) {
            return Ok(None);
        }
        Ok(Some((past, record.revision.0)))
    }

    fn matches(&self, past: &Past) -> bool {
        let resources = &past.event.resources;
        let is_vm = |wanted: &VmFilter| match wanted {
            VmFilter::Id(id) => resources.iter().any(|one| one.vm.0 == *id),
            VmFilter::Named(end) => resources.iter().any(|one| {
                let path = format!("/{}/{}", past.scope, one.name.folded());
                path.strip_suffix(end.as_str()).is_some_and(|rest| rest.ends_with('/'))
            }),
        };
        let on_host = |host: &String| resources.iter().any(|one| one.host.as_ref() == Some(host));
        self.scope.as_ref().is_none_or(|scope| past.scope == *scope)
            && self.vm.as_ref().is_none_or(is_vm)
            && self.host.as_ref().is_none_or(on_host)
            && self.event_type.is_none_or(|wanted| past.event.cause.event_type() == wanted)
            && self.outcome.is_none_or(|wanted| past.outcome == wanted)
    }
}

/// The key of an index entry up to its time: `ended/1474309787000`.
fn millisecond(key: &str) -> Option<&str> {
    key.strip_prefix(prefix::ENDED)?.split_once('/').map(|(time, _)| &key[..prefix::ENDED.len() + time.len()])
}

fn parse_outcome(text: &str) -> Result<Outcome, Problem> {
    let all = [Outcome::Completed, Outcome::Cancelled];
    all.into_iter().find(|one| one.to_string().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let detail = format!("outcome {text:?} is not one of Completed, Cancelled");
        Problem::bad_request("bad_outcome", detail)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::SignedDuration;
    use notbefore_core::{
        Cause, DriverKind, Event, EventId, OperationId, Phase, Release, Resource, Run, StartReason, VmId,
    };
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Page, Revision, Store, Txn};

    use super::*;

    const BEGIN: i64 = 1_790_000_000_000;

    /// The nth ended event: one every 10 ms, of VM n % 1,000 on host n % 97, a thousandth of them cancelled.
    fn past(n: u64) -> Past {
        let (name, cause) =
            (format!("vm-{}", n % 1_000), [Cause::HostReboot, Cause::Eviction][(n % 2) as usize]);
        let at = Timestamp::from_millisecond(BEGIN + 10 * n as i64).unwrap();
        let resource = Resource {
            vm: VmId(Uuid::from_u128(u128::from(n % 1_000))),
            name: name.parse().unwrap(),
            host: Some(format!("h{}", n % 97)),
        };
        Past {
            scope: format!("s{}", n % 50).parse::<notbefore_core::ScopePath>().unwrap().id(),
            outcome: if n.is_multiple_of(1_000) { Outcome::Cancelled } else { Outcome::Completed },
            ended_at: at,
            event: Event {
                // Ids are not in the order of time.
                id: EventId(Uuid::from_u128(
                    u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
                )),
                operation: OperationId(Uuid::nil()),
                cause,
                update_domain: 0,
                resources: vec![resource],
                duration_s: -1,
                description: String::new(),
                driver: DriverKind::Manual,
                release: Release::Each,
                time_given: false,
                joint_start: false,
                waits_for_host: false,
                target_host: None,
                phase: Phase::Started { at, why: StartReason::NotBefore, run: Run::Manual },
                trail: Vec::new(),
            },
        }
    }

    async fn end(store: &MemoryStore, numbers: std::ops::Range<u64>) {
        let all: Vec<Past> = numbers.map(past).collect();
        for some in all.chunks(50) {
            let puts = some.iter().flat_map(|one| {
                let index = (records::ended(one.ended_at, one.event.id), bytes::Bytes::new());
                [index, (records::past(one.event.id), records::encode(one))]
            });
            store.commit(Txn { put: puts.collect(), ..Txn::default() }).await;
        }
    }

    /// All items of a query and the number of pages; calls `between` after each page.
    async fn pages(
        store: &MemoryStore,
        query: impl Fn() -> ListQuery,
        mut between: impl AsyncFnMut(),
    ) -> (Vec<wire::Event>, usize) {
        let (mut items, mut count, mut cursor) = (Vec::new(), 0, None);
        loop {
            let query = ListQuery { limit: Some(1_000), cursor: cursor.take(), ..query() };
            let search = Search::new(query, CommandReasons::SHOWN).unwrap();
            let snapshot = store.snapshot().await.unwrap();
            let page = search.page(&*snapshot, &|_| true).await.unwrap();
            drop(snapshot);
            items.extend(page.items);
            count += 1;
            match page.next {
                Some(next) => cursor = Some(next),
                None => return (items, count),
            }
            between().await;
        }
    }

    fn ids(events: &[wire::Event]) -> Vec<Uuid> {
        events.iter().map(|event| event.id).collect()
    }

    #[tokio::test]
    async fn history_pages_are_stable_while_events_end() {
        const MANY: u64 = 100_000;
        let store = MemoryStore::new();
        end(&store, 0..MANY).await;

        let mut ended = MANY;
        let (all, _) = pages(&store, ListQuery::default, async || {
            end(&store, ended..ended + 3).await;
            ended += 3;
        })
        .await;
        let expected: Vec<Uuid> = (0..all.len() as u64).map(|n| past(n).event.id.0).collect();
        assert!(all.len() as u64 >= MANY, "no event is missing: {}", all.len());
        assert!(ids(&all) == expected, "each event once, sorted by end time");

        let newest = || ListQuery { order: Some("newest".into()), ..ListQuery::default() };
        let known = ended;
        let (back, _) = pages(&store, newest, async || {
            end(&store, ended..ended + 3).await;
            ended += 3;
        })
        .await;
        let expected: Vec<Uuid> = (0..known).rev().map(|n| past(n).event.id.0).collect();
        assert!(ids(&back) == expected, "events that end between pages do not shift them");

        // Rare events: no request reads the whole index.
        let rare = || ListQuery { outcome: Some("cancelled".into()), ..ListQuery::default() };
        let (found, count) = pages(&store, rare, async || {}).await;
        let expected: Vec<Uuid> = (0..ended).step_by(1_000).map(|n| past(n).event.id.0).collect();
        assert!(ids(&found) == expected, "{} found", found.len());
        assert!(count >= (ended as usize) / SCANNED_MAX, "{count} pages");

        // Filters are combined with AND.
        let at = |n: u64| Some(past(n).ended_at);
        let some = || ListQuery {
            since: at(10_000),
            until: at(90_000),
            scope: Some("s7".into()),
            vm: Some("default/s7/VM-407".into()),
            event_type: Some("preempt".into()),
            ..ListQuery::default()
        };
        let (found, _) = pages(&store, some, async || {}).await;
        let expected: Vec<Uuid> =
            (10_000..90_000).filter(|n| n % 1_000 == 407).map(|n| past(n).event.id.0).collect();
        assert!(!expected.is_empty() && ids(&found) == expected, "{} found", found.len());
        let hosts = || ListQuery { host: Some("h96".into()), until: at(1_000), ..ListQuery::default() };
        assert_eq!(pages(&store, hosts, async || {}).await.0.len(), 10);
        let by_id = || ListQuery { vm: Some(Uuid::from_u128(5).to_string()), ..ListQuery::default() };
        assert_eq!(
            pages(&store, by_id, async || {}).await.0.len(),
            (0..ended).filter(|n| n % 1_000 == 5).count()
        );
    }

    #[tokio::test]
    async fn cursor_reveals_no_hidden_event() {
        let store = MemoryStore::new();
        end(&store, 0..20_000).await;
        let snapshot = store.snapshot().await.unwrap();
        let own = |scope: &ScopeId| scope.as_str() == "default/default/s7";
        let theirs: BTreeSet<String> =
            (0..20_000).filter(|n| n % 50 != 7).map(|n| past(n).event.id.to_string()).collect();
        for (order, limit) in [("oldest", 30), ("newest", 30), ("oldest", 1_000), ("newest", 1_000)] {
            let (mut found, mut cursor, mut count) = (0, None, 0);
            loop {
                let (order, limit) = (Some(order.to_owned()), Some(limit));
                let query = ListQuery { order, limit, cursor: cursor.take(), ..ListQuery::default() };
                let page =
                    Search::new(query, CommandReasons::SHOWN).unwrap().page(&*snapshot, &own).await.unwrap();
                found += page.items.len();
                count += 1;
                let Some(next) = page.next else { break };
                let hidden = PageQuery { cursor: Some(next.clone()), limit: None }.after().unwrap().unwrap();
                let id = hidden.rsplit('/').next().unwrap();
                assert!(!theirs.contains(id), "{hidden}");
                cursor = Some(next);
            }
            assert_eq!(found, 400, "each visible event once, {order}");
            assert!(count >= 4, "{count} pages");
        }
    }

    #[tokio::test]
    async fn stale_index_entry_is_skipped() {
        let store = MemoryStore::new();
        end(&store, 0..3).await;
        let early = past(1).ended_at.checked_sub(SignedDuration::from_millis(5)).unwrap();
        let stale = (records::ended(early, past(1).event.id), bytes::Bytes::new());
        store.commit(Txn { put: vec![stale], ..Txn::default() }).await;
        let (all, _) = pages(&store, ListQuery::default, async || {}).await;
        assert_eq!(all.iter().map(|one| one.id).collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(all.len(), 3);
    }

    /// A store that answers a read once a number of reads wait.
    struct Together {
        snapshot: Box<dyn Snapshot>,
        waiting: tokio::sync::Barrier,
    }

    #[async_trait::async_trait]
    impl Snapshot for Together {
        fn revision(&self) -> Revision {
            self.snapshot.revision()
        }

        async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
            self.waiting.wait().await;
            self.snapshot.get(key).await
        }

        async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
            self.snapshot.scan(prefix, after, limit).await
        }

        async fn scan_back(
            &self,
            prefix: &str,
            before: Option<&str>,
            limit: usize,
        ) -> Result<Page, ReadError> {
            self.snapshot.scan_back(prefix, before, limit).await
        }
    }

    #[tokio::test]
    async fn events_are_read_at_once() {
        let store = MemoryStore::new();
        end(&store, 0..2 * READS_AT_ONCE as u64).await;
        let snapshot = store.snapshot().await.unwrap();
        let together = Together { snapshot, waiting: tokio::sync::Barrier::new(READS_AT_ONCE) };
        let search = Search::new(ListQuery::default(), CommandReasons::SHOWN).unwrap();
        // One read after the other would wait for ever.
        let page =
            tokio::time::timeout(std::time::Duration::from_secs(20), search.page(&together, &|_| true));
        let items = page.await.unwrap().unwrap().items;
        let (expected, _) = pages(&store, ListQuery::default, async || {}).await;
        assert_eq!(ids(&items), ids(&expected));
    }

    #[tokio::test]
    async fn record_without_hosts_is_still_read() {
        let store = MemoryStore::new();
        let mut old = past(1);
        old.event.resources[0].host = None;
        let text = String::from_utf8(records::encode(&old).to_vec()).unwrap();
        assert!(!text.contains("host\":\"h"), "{text}");
        let put = vec![
            (records::ended(old.ended_at, old.event.id), bytes::Bytes::new()),
            (records::past(old.event.id), text.into()),
        ];
        store.commit(Txn { put, ..Txn::default() }).await;
        assert_eq!(pages(&store, ListQuery::default, async || {}).await.0.len(), 1);
    }
}
