//! `/v1/history/summary`: ended events, counted by day, type and outcome.
//!
//! A request reads a limited number of events, newest first, so its cost has a bound at any length of the history. If
//! there are more, the summary says so, and from when on it counts.

use std::collections::BTreeMap;

use axum::Json;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{EventFact, EventType, Outcome, Past};
use notbefore_engine::records::{self, prefix};
use notbefore_wire::operator::history::{ApprovalTimes, DayCount, HistorySummary};
use serde::Deserialize;
use utoipa::IntoParams;

use super::history::{EventFilter, VmFilter, parse_outcome};
use super::pages::{self, Params};
use super::problem::ApiResult;
use super::visibility::CallerView;
use super::wire_names::WireName;

/// Most index entries that one request reads: some hundred milliseconds of work.
const COUNTED_MAX: usize = 10_000;
/// Index entries per scan.
const CHUNK: usize = 256;
/// Default time span.
const DEFAULT_SPAN: SignedDuration = SignedDuration::from_hours(7 * 24);
const DAY_S: i64 = 86_400;

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
    /// Only events of this type: `Freeze`, `Reboot`, `Redeploy`, `Preempt` or `Terminate`.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Only events with this outcome: `Completed` or `Cancelled`.
    outcome: Option<String>,
}

/// Count ended events by day, type and outcome, and show how long approvals took
#[utoipa::path(get, path = "/history/summary", tag = "events", params(SummaryQuery), responses((status = 200, body = HistorySummary)))]
pub async fn show(caller_view: CallerView, Params(query): Params<SummaryQuery>) -> ApiResult<HistorySummary> {
    let until = query.until.unwrap_or_else(|| caller_view.now());
    let since = query.since.unwrap_or_else(|| until.checked_sub(DEFAULT_SPAN).unwrap_or(Timestamp::MIN));
    let filter = EventFilter {
        scope: pages::scope(query.scope.as_deref())?,
        vm: query.vm.as_deref().map(VmFilter::parse),
        host: query.host,
        event_type: super::events::parse_type(query.event_type.as_deref())?,
        outcome: query.outcome.as_deref().map(parse_outcome).transpose()?,
    };
    let snapshot = caller_view.snapshot().await?;
    let mut tally = Tally::default();
    let mut counted_from = since;
    let mut at = Some(records::ended_from(until));
    let mut scanned = 0;
    'scan: loop {
        let chunk = pages::scan_by_time(&*snapshot, true, prefix::ENDED, at.as_deref(), CHUNK).await?;
        for (key, _) in &chunk.records {
            if *key < records::ended_from(since) {
                break 'scan;
            }
            if scanned == COUNTED_MAX {
                counted_from = records::time_in_key(key).unwrap_or(since);
                break 'scan;
            }
            scanned += 1;
            at = Some(key.clone());
            let found = filter.load_if_matching(&*snapshot, key, &|scope| caller_view.can_see(scope)).await?;
            if let Some((past, _)) = found {
                tally.add(&past);
            }
        }
        if !chunk.more {
            break;
        }
    }
    Ok(Json(tally.summary(counted_from, until, counted_from > since)))
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
    fn add(&mut self, past: &Past) {
        let day = past.ended_at.as_second().div_euclid(DAY_S) * DAY_S;
        *self.days.entry((day, past.event.cause.event_type(), past.outcome)).or_default() += 1;
        let trail = &past.event.trail;
        let approved = trail.iter().find(|fact| matches!(fact.fact, EventFact::EventApproved));
        if let (Some(first), Some(approved)) = (trail.first(), approved) {
            let seconds = approved.at.duration_since(first.at).as_secs();
            self.approvals.push(u64::try_from(seconds).unwrap_or(0));
        }
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
    use notbefore_core::{Actor, Cause, Recorded, samples};

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

    #[test]
    fn events_are_counted_by_day_type_and_outcome() {
        let mut tally = Tally::default();
        for (n, after) in [None, Some(10), Some(20), Some(300)].into_iter().enumerate() {
            tally.add(&past(Cause::HostReboot, Outcome::Completed, DAY_S + n as i64, after));
        }
        tally.add(&past(Cause::Eviction, Outcome::Cancelled, 2 * DAY_S - 1, None));
        tally.add(&past(Cause::HostReboot, Outcome::Completed, 2 * DAY_S, None));
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
