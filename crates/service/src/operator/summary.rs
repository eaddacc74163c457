//! `/v1/history/summary`: ended events, counted by day, type and outcome.
//!
//! A request reads a limited number of events, newest first, so its cost has a bound at any length of the history. If
//! there are more, the summary says so, and from when on it counts.

use std::collections::BTreeMap;
use std::ops::Range;

use axum::Json;
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{EventFact, EventType, Outcome, Past, Recorded};
use notbefore_engine::records::{self, prefix};
use notbefore_store::Snapshot;
use notbefore_wire::operator::history::{ApprovalTimes, DayCount, HistorySummary};
use serde::Deserialize;
use utoipa::IntoParams;

use super::history::{EventFilter, ScopeFilter};
use super::pages::{self, Params};
use super::problem::{ApiResult, Problem};
use super::visibility::CallerView;
use super::wire_names::WireName;

/// Most index entries that one request reads: some hundred milliseconds of work.
const COUNTED_MAX: usize = 10_000;
/// Index entries per scan.
const CHUNK: usize = 256;
/// Default time span.
const DEFAULT_SPAN: SignedDuration = SignedDuration::from_hours(7 * 24);
const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

/// Query of the summary.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SummaryQuery {
    /// Only events that ended at this time or later. Default: a week before `until`.
    since: Option<Timestamp>,
    /// Only events that ended before this time. Default: now.
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
}

/// Count ended events by day, type and outcome, and show how long approvals took
#[utoipa::path(get, path = "/history/summary", tag = "events", params(SummaryQuery), responses((status = 200, body = HistorySummary)))]
pub async fn show(caller_view: CallerView, Params(query): Params<SummaryQuery>) -> ApiResult<HistorySummary> {
    caller_view.principal().count_costly_read()?;
    let SummaryQuery { since, until, scope, vm, host, event_type, outcome } = query;
    caller_view.check_host_filter(host.as_deref())?;
    let until = until.unwrap_or_else(|| caller_view.now());
    let since = since.unwrap_or_else(|| until.checked_sub(DEFAULT_SPAN).unwrap_or(Timestamp::MIN));
    let filter = EventFilter::parse(scope, vm, host, event_type, outcome)?;
    let snapshot = caller_view.snapshot().await?;
    let visible =
        VisibleEvents { filter, sees: &|scope| caller_view.can_see(scope), sees_all: caller_view.sees_all() };
    Ok(Json(visible.summary(&*snapshot, since..until, COUNTED_MAX).await?))
}

/// The events that are counted.
struct VisibleEvents<'a> {
    filter: EventFilter,
    sees: ScopeFilter<'a>,
    /// Nothing is hidden from the caller.
    sees_all: bool,
}

impl VisibleEvents<'_> {
    /// Counts events from the newest on, reading at most `most` index entries.
    async fn summary(
        &self,
        snapshot: &dyn Snapshot,
        Range { start: since, end: until }: Range<Timestamp>,
        most: usize,
    ) -> Result<HistorySummary, Problem> {
        let mut found_events = Vec::new();
        let mut counted_from = since;
        let mut at = Some(records::ended_from(until));
        let mut scanned = 0;
        'scan: loop {
            let chunk = pages::scan_by_time(snapshot, true, prefix::ENDED, at.as_deref(), CHUNK).await?;
            let mut loaded = self.filter.load_matching(snapshot, &chunk.records, self.sees);
            for (key, _) in &chunk.records {
                if *key < records::ended_from(since) {
                    break 'scan;
                }
                if scanned == most {
                    let reached = records::time_in_key(key).unwrap_or(since);
                    counted_from = if self.sees_all { reached } else { next_hour(reached).min(until) };
                    break 'scan;
                }
                scanned += 1;
                at = Some(key.clone());
                let found = loaded.next().await.transpose()?.flatten();
                found_events.extend(found.map(|(past, _)| Counted::of(&past)));
            }
            if !chunk.more {
                break;
            }
        }
        let mut tally = Tally::default();
        found_events.iter().filter(|one| one.ended_at >= counted_from).for_each(|one| tally.add(one));
        Ok(tally.summary(counted_from, until, counted_from > since))
    }
}

/// The next full hour. The event at which a scan ends may be one that the caller does not see; its time is rounded, so
/// that it is not revealed.
fn next_hour(at: Timestamp) -> Timestamp {
    let hour = at.as_second().div_euclid(HOUR_S) + 1;
    Timestamp::from_second(hour * HOUR_S).unwrap_or(Timestamp::MAX)
}

/// What is counted of an event.
struct Counted {
    ended_at: Timestamp,
    event_type: EventType,
    outcome: Outcome,
    /// Seconds from announcement to approval, if it was approved.
    approved_after_s: Option<u64>,
}

impl Counted {
    fn of(past: &Past) -> Self {
        let trail = &past.event.trail;
        let approved = trail.iter().find(|fact| matches!(fact.fact, EventFact::EventApproved));
        let seconds = |(first, approved): (&Recorded<EventFact>, &Recorded<EventFact>)| {
            u64::try_from(approved.at.duration_since(first.at).as_secs()).unwrap_or(0)
        };
        Self {
            ended_at: past.ended_at,
            event_type: past.event.cause.event_type(),
            outcome: past.outcome,
            approved_after_s: trail.first().zip(approved).map(seconds),
        }
    }
}

/// Counts of events.
#[derive(Default)]
struct Tally {
    /// By start of the day in seconds.
    days: BTreeMap<(i64, EventType, Outcome), usize>,
    /// Seconds from announcement to approval.
    approvals: Vec<u64>,
}

impl Tally {
    fn add(&mut self, event: &Counted) {
        let day = event.ended_at.as_second().div_euclid(DAY_S) * DAY_S;
        *self.days.entry((day, event.event_type, event.outcome)).or_default() += 1;
        self.approvals.extend(event.approved_after_s);
    }

    fn summary(mut self, since: Timestamp, until: Timestamp, partial: bool) -> HistorySummary {
        self.approvals.sort_unstable();
        let times = &self.approvals;
        let quantile = |tenths: usize| {
            let place = (times.len() * tenths).div_ceil(10).saturating_sub(1);
            times.get(place).copied().unwrap_or(0)
        };
        let approval = ApprovalTimes {
            events: times.len(),
            p50_seconds: quantile(5),
            p90_seconds: quantile(9),
            max_seconds: quantile(10),
        };
        let day = |((day, event_type, outcome), events): ((i64, EventType, Outcome), usize)| DayCount {
            day: Timestamp::from_second(day).unwrap_or(Timestamp::MIN),
            event_type: event_type.wire_name(),
            outcome: outcome.wire_name(),
            events,
        };
        let events = self.days.values().sum();
        let days = self.days.into_iter().map(day).collect();
        HistorySummary { since, until, events, days, approval, partial }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::{Actor, Cause, samples};
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Store, Txn};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// An event that was announced 1,000 seconds before its end.
    fn past(cause: Cause, outcome: Outcome, ended_s: i64, approved_after_s: Option<i64>) -> Past {
        let fact = |second, fact| Recorded { at: at(second), by: Actor::Service, fact };
        let announced_s = ended_s - 1_000;
        let mut trail = vec![fact(announced_s, EventFact::EventScheduled { not_before: None })];
        trail.extend(approved_after_s.map(|after| fact(announced_s + after, EventFact::EventApproved)));
        let event = notbefore_core::Event { trail, ..samples::event(1, cause, &[samples::vm(1)]) };
        Past { scope: samples::scope_id("web"), outcome, ended_at: at(ended_s), event }
    }

    #[tokio::test]
    async fn cut_summary_does_not_tell_when_a_hidden_event_ended() {
        let store = MemoryStore::new();
        let hidden = samples::scope_id("hidden");
        for (n, minute) in [10, 59, 70, 80].into_iter().enumerate() {
            let mut past = past(Cause::HostReboot, Outcome::Completed, DAY_S + 60 * minute, None);
            past.event.id = notbefore_core::EventId(uuid::Uuid::from_u128(n as u128));
            if minute == 10 {
                past.scope = hidden.clone();
            }
            let index = (records::ended(past.ended_at, past.event.id), bytes::Bytes::new());
            let put = vec![index, (records::past(past.event.id), records::encode(&past))];
            store.commit(Txn { put, ..Txn::default() }).await;
        }
        let snapshot = store.snapshot().await.unwrap();
        let all = at(DAY_S)..at(2 * DAY_S);
        for (sees_all, most, since_s, events) in [
            (true, 3, DAY_S + 600, 3),
            // The event of minute 59 is left out: the counts are of the time that the summary names.
            (false, 3, DAY_S + HOUR_S, 2),
            (false, 4, DAY_S, 3),
        ] {
            let filter = EventFilter::default();
            let visible = VisibleEvents { filter, sees: &|scope| *scope != hidden, sees_all };
            let summary = visible.summary(&*snapshot, all.clone(), most).await.unwrap();
            let found = (summary.since, summary.events, summary.partial);
            assert_eq!(found, (at(since_s), events, since_s > DAY_S), "{sees_all} {most}");
        }
    }

    #[test]
    fn events_are_counted_by_day_type_and_outcome() {
        let mut tally = Tally::default();
        for (n, after) in [None, Some(10), Some(20), Some(300)].into_iter().enumerate() {
            tally.add(&Counted::of(&past(Cause::HostReboot, Outcome::Completed, DAY_S + n as i64, after)));
        }
        tally.add(&Counted::of(&past(Cause::Eviction, Outcome::Cancelled, 2 * DAY_S - 1, None)));
        tally.add(&Counted::of(&past(Cause::HostReboot, Outcome::Completed, 2 * DAY_S, None)));
        let summary = tally.summary(at(0), at(3 * DAY_S), false);
        let days: Vec<_> = summary
            .days
            .iter()
            .map(|one| {
                (one.day.as_second() / DAY_S, one.event_type.as_str(), one.outcome.as_str(), one.events)
            })
            .collect();
        let expected =
            [(1, "Reboot", "Completed", 4), (1, "Preempt", "Cancelled", 1), (2, "Reboot", "Completed", 1)];
        assert_eq!(days, expected);
        assert_eq!(summary.events, 6);
        let times = ApprovalTimes { events: 3, p50_seconds: 20, p90_seconds: 300, max_seconds: 300 };
        assert_eq!(summary.approval, times);
        let none = Tally::default().summary(at(0), at(1), false);
        assert_eq!((none.events, none.approval), (0, ApprovalTimes::default()));
    }
}
