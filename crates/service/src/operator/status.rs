//! `/v1/status`: what happens next, and what needs an operator.
//!
//! The work of a request is bounded at any fleet size: counts come from [`Counts`](crate::view::Counts), events from
//! the view's order of time up to `VMS_EXAMINED_MAX`, and listening VMs of a large fleet from a cache.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Json;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{CommandState, Event, EventType, Prefix};
use notbefore_wire::natural;
use notbefore_wire::operator::status as api;

use super::access::CommandReasons;
use super::problem::ApiResult;
use super::visibility::{CallerView, VisibleView};
use super::wire_names::WireName;
use super::{Operator, clock, commands};
use crate::view::{EventTime, ScopeView};

/// How far ahead events are shown.
const AHEAD: std::time::Duration = std::time::Duration::from_secs(3_600);
/// Events of a type whose NotBefore is within the same span of this length are one group: an hour fits a screen.
const GROUP_S: i64 = 300;
/// Most VMs of events that are examined for the groups: some milliseconds of work.
const VMS_EXAMINED_MAX: usize = 20_000;
/// Up to this many VMs, listening VMs are counted at each request.
const COUNTED_EACH_TIME_MAX: usize = 10_000;
/// How long the count of a larger fleet is used.
const COUNT_KEPT: SignedDuration = SignedDuration::from_secs(10);

/// Numbers of listening VMs below the same paths, for callers that see more than `COUNTED_EACH_TIME_MAX` VMs.
#[derive(Default)]
pub struct ListeningCache(Mutex<BTreeMap<Arc<[Prefix]>, api::ListeningCounts>>);

impl ListeningCache {
    fn get(
        &self,
        roots: &Arc<[Prefix]>,
        now: Timestamp,
        count: impl FnOnce() -> api::ListeningCounts,
    ) -> api::ListeningCounts {
        // Held while counting, so that concurrent requests count once.
        let mut known = crate::lock(&self.0);
        known.retain(|_, counts| now.duration_since(counts.counted_at).abs() < COUNT_KEPT);
        *known.entry(Arc::clone(roots)).or_insert_with(count)
    }
}

/// Show what happens in the next hour, what has failed, and the state of the service
///
/// A caller sees only its own scopes in it. `service` is present for operators on `/` only.
#[utoipa::path(get, path = "/status", tag = "service", responses((status = 200, body = api::Status)))]
pub async fn show(caller_view: CallerView) -> ApiResult<api::Status> {
    let service = match caller_view.as_full_operator() {
        Some(operator) => Some(service(operator, &caller_view).await),
        None => None,
    };
    let now = caller_view.now();
    let counts = caller_view.counts();
    let count = || caller_view.listening_counts(now);
    let listening = match counts.vms > COUNTED_EACH_TIME_MAX {
        true => caller_view.listening_cache().get(caller_view.roots(), now, count),
        false => count(),
    };
    let next = caller_view.with_unread(|is_unread| next_hour(&caller_view, now, is_unread));
    Ok(Json(api::Status {
        now,
        scopes: counts.scopes,
        vms: counts.vms,
        listening,
        events: api::EventCounts {
            scheduled: counts.scheduled,
            started: counts.started,
            advisory: counts.advisory,
            failed: counts.failed,
            waiting_for_operator: counts.waiting_for_operator,
        },
        next,
        failed: (caller_view.failed().take(api::FAILED_LISTED_MAX))
            .filter_map(|(scope, event)| failed(scope, event, caller_view.reasons))
            .collect(),
        failed_hosts: (caller_view.failed_hosts().take(api::FAILED_LISTED_MAX))
            .map(|operation| api::FailedHost {
                operation: operation.id.0,
                cause: operation.cause.wire_name(),
                host: caller_view.reasons.host(operation.host.as_deref()).unwrap_or_default(),
                why: commands::of_host(operation, caller_view.reasons).why,
            })
            .collect(),
        service,
    }))
}

fn failed(scope: &ScopeView, event: &Event, reasons: CommandReasons) -> Option<api::FailedEvent> {
    let mut commands = event.resources.iter().zip(&event.exec_run()?.commands);
    commands.find_map(|(resource, command)| match command {
        CommandState::Failed { why, .. } => Some(api::FailedEvent {
            event: event.id.0,
            event_type: event.cause.event_type().wire_name(),
            scope: scope.scope.path.to_string(),
            vm: resource.name.to_string(),
            why: reasons.show(why),
        }),
        CommandState::Waiting { .. }
        | CommandState::Running { .. }
        | CommandState::Done { .. }
        | CommandState::Gone => None,
    })
}

/// Scheduled events up to an hour from now, in groups.
fn next_hour(
    visible: &VisibleView,
    now: Timestamp,
    is_unread: impl Fn(&ScopeView, &Event) -> bool,
) -> api::NextHour {
    let until = after(now, AHEAD);
    let mut next = api::NextHour { until, groups: Vec::new(), partial: false, later_from: None };
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut examined = 0;
    let (events, is_cut) =
        visible.events_by_time(Bound::Included(EventTime::FIRST_SCHEDULED), VMS_EXAMINED_MAX);
    for (scope, event) in events {
        let Some(not_before) = event.not_before() else { continue };
        if not_before > until {
            next.later_from = Some(not_before);
            break;
        }
        examined += event.resources.len().max(1);
        if examined > VMS_EXAMINED_MAX {
            next.partial = true;
            break;
        }
        let of = GroupKey::of(event, not_before, now);
        let at = groups.iter().position(|group| group.key == of).unwrap_or_else(|| {
            groups.push(Group::new(of, not_before));
            groups.len() - 1
        });
        groups[at].add(scope, event, not_before, is_unread(scope, event));
    }
    next.partial |= is_cut;
    next.groups = groups.into_iter().map(|group| group.shown(visible.reasons)).collect();
    next
}

#[derive(PartialEq, Eq)]
struct GroupKey {
    event_type: EventType,
    is_due: bool,
    /// The number of the span since 1970; 0 for events that are due.
    span: i64,
}

impl GroupKey {
    fn of(event: &Event, not_before: Timestamp, now: Timestamp) -> Self {
        let is_due = not_before <= now;
        let span = if is_due { 0 } else { not_before.as_second().div_euclid(GROUP_S) };
        Self { event_type: event.cause.event_type(), is_due, span }
    }
}

/// A group while it is counted. Events come in the order of NotBefore.
struct Group<'a> {
    key: GroupKey,
    first: Timestamp,
    last: Timestamp,
    events: usize,
    approved: usize,
    unread: usize,
    vms: usize,
    hosts: BTreeSet<&'a str>,
    scopes: BTreeSet<String>,
}

impl<'a> Group<'a> {
    fn new(key: GroupKey, first: Timestamp) -> Self {
        let (hosts, scopes) = (BTreeSet::new(), BTreeSet::new());
        Self { key, first, last: first, events: 0, approved: 0, unread: 0, vms: 0, hosts, scopes }
    }

    fn add(&mut self, scope: &ScopeView, event: &'a Event, not_before: Timestamp, is_unread: bool) {
        self.last = not_before;
        self.events += 1;
        self.approved += usize::from(event.approved());
        self.unread += usize::from(is_unread);
        self.vms += event.resources.len();
        self.hosts.extend(event.resources.iter().filter_map(|one| one.host.as_deref()));
        self.scopes.insert(scope.scope.path.to_string());
    }

    fn shown(self, reasons: CommandReasons) -> api::EventGroup {
        let hosts: Vec<String> = self.hosts.into_iter().filter_map(|host| reasons.host(Some(host))).collect();
        let scopes = self.scopes.len();
        api::EventGroup {
            event_type: self.key.event_type.wire_name(),
            not_before: self.first,
            not_before_max: self.last,
            due: self.key.is_due,
            events: self.events,
            approved: self.approved,
            unread: self.unread,
            vms: self.vms,
            hosts: hosts.len(),
            host_names: first_names(hosts),
            scopes,
            scope_names: first_names(self.scopes.into_iter().collect()),
        }
    }
}

fn first_names(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|one, two| natural::compare(one, two));
    names.truncate(api::GROUP_NAMES_MAX);
    names
}

async fn service(operator: &Operator, visible: &VisibleView) -> api::ServiceStatus {
    let stats = operator.engine.stats();
    let directory = operator.token_file.parent().map(Path::to_owned).unwrap_or_default();
    // The call may block: the file system may be on a network.
    let disk = tokio::task::spawn_blocking(move || disk(&directory)).await;
    api::ServiceStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: visible.since(),
        operations: visible.operations_open(),
        host_operations_waiting: stats.host_operations_waiting.get(),
        clock: clock::now(operator),
        faults: operator.faults.as_ref().map_or(0, |faults| faults.list().len() as u64),
        store: api::StoreStatus {
            revision: stats.revision.get(),
            error: stats.store_error().map(|why| why.to_string()),
            damaged_records: operator.store.damaged(),
        },
        disk: disk.ok().flatten(),
    }
}

fn disk(directory: &Path) -> Option<api::DiskStatus> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(api::DiskStatus { bytes: bytes(found.f_blocks), bytes_free: bytes(found.f_bavail) })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use notbefore_core::samples::{approved, at, resource, vm};
    use notbefore_core::{Cause, Resource, Scope};

    use super::*;
    use crate::delivery::tests::{ViewFixture, event, scope};

    /// A scope with an event for a VM on a host.
    fn on_host(n: u128, cause: Cause, not_before: i64) -> Scope {
        let mut scope = scope(&format!("s{n:02}"), &[vm(n)]);
        let event = event(n, cause, &[vm(n)], at(0), at(not_before));
        let resources = vec![Resource { host: Some(format!("h{n}")), ..resource(vm(n)) }];
        scope.events.push(Event { resources, ..event });
        scope
    }

    fn next(fixture: &ViewFixture, roots: &[&str]) -> api::NextHour {
        let roots = roots.iter().map(|root| root.parse().unwrap()).collect();
        let visible = VisibleView::of(fixture.views.newest(), roots);
        next_hour(&visible, at(0), |_, event| event.resources[0].vm == vm(3))
    }

    #[test]
    fn events_of_the_hour_are_grouped_by_type_and_time() {
        let mut fixture = ViewFixture::default();
        // 12:00:00 begins a span of five minutes.
        for n in 1..=40 {
            fixture.publish(&on_host(n, Cause::HostReboot, 900 + 2 * n as i64), at(0));
        }
        fixture.publish(&on_host(41, Cause::HostFreeze, 900), at(0));
        fixture.publish(&on_host(42, Cause::HostReboot, -60), at(0));
        fixture.publish(&on_host(43, Cause::HostReboot, 3_600), at(0));
        fixture.publish(&on_host(44, Cause::HostReboot, 3_601), at(0));
        fixture.publish(&on_host(45, Cause::HostReboot, 7_000), at(0));
        let mut approved_scope = on_host(1, Cause::HostReboot, 902);
        approved_scope.events[0] = approved(approved_scope.events[0].clone());
        fixture.publish(&approved_scope, at(0));

        let found = next(&fixture, &[""]);
        assert_eq!((found.until, found.later_from, found.partial), (at(3_600), Some(at(3_601)), false));
        let shown = |group: &api::EventGroup| {
            (group.event_type.to_string(), group.due, group.not_before, group.not_before_max, group.events)
        };
        let groups: Vec<_> = found.groups.iter().map(shown).collect();
        let reboot = || "Reboot".to_owned();
        assert_eq!(
            groups,
            [
                (reboot(), true, at(-60), at(-60), 1),
                ("Freeze".to_owned(), false, at(900), at(900), 1),
                (reboot(), false, at(902), at(980), 40),
                (reboot(), false, at(3_600), at(3_600), 1),
            ]
        );
        let of_40 = &found.groups[2];
        assert_eq!((of_40.approved, of_40.unread, of_40.vms, of_40.hosts, of_40.scopes), (1, 1, 40, 40, 40));
        assert_eq!(of_40.host_names, ["h1", "h2", "h3"]);
        assert_eq!(of_40.scope_names, ["default/default/s01", "default/default/s02", "default/default/s03"]);
    }

    #[test]
    fn caller_sees_groups_of_its_own_scopes() {
        let mut fixture = ViewFixture::default();
        for n in 1..=4 {
            fixture.publish(&on_host(n, Cause::HostReboot, 900 - 100 * n as i64), at(0));
        }
        let found = next(&fixture, &["default/default/s01", "default/default/s02"]);
        let times: Vec<_> = found.groups.iter().map(|group| (group.not_before, group.events)).collect();
        assert_eq!(times, [(at(700), 2)], "sorted by time, not by scope");
        assert_eq!(found.groups[0].scope_names, ["default/default/s01", "default/default/s02"]);
        assert_eq!(next(&fixture, &["other"]).groups, []);
    }

    #[test]
    fn work_is_bounded() {
        let mut fixture = ViewFixture::default();
        let vms: Vec<_> = (0..1_000).map(vm).collect();
        for n in 0..25 {
            let mut scope = scope(&format!("s{n:02}"), &[]);
            scope.events.push(event(n, Cause::HostReboot, &vms, at(0), at(900)));
            fixture.publish(&scope, at(0));
        }
        let found = next(&fixture, &[""]);
        assert!(found.partial);
        assert_eq!(found.groups[0].vms, VMS_EXAMINED_MAX);
        assert!(next(&fixture, &["default"]).partial);
    }

    #[test]
    fn large_fleet_is_counted_once_in_ten_seconds() {
        let (cache, counted) = (ListeningCache::default(), Cell::new(0));
        let get = |roots: &[&str], seconds| {
            let roots: Arc<[Prefix]> = roots.iter().map(|root| root.parse().unwrap()).collect();
            let counts = cache.get(&roots, at(seconds), || {
                counted.set(counted.get() + 1);
                api::ListeningCounts { yes: counted.get(), counted_at: at(seconds), ..Default::default() }
            });
            (counts.yes, counts.counted_at)
        };
        assert_eq!(get(&[""], 0), (1, at(0)));
        assert_eq!(get(&[""], 9), (1, at(0)));
        assert_eq!(get(&["acme"], 9), (2, at(9)), "other paths have other VMs");
        assert_eq!(get(&[""], 10), (3, at(10)));
        assert_eq!(get(&[""], -60), (4, at(-60)), "the clock was set back");
    }
}
