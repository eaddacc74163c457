//! `/v1/events`.

use std::collections::HashSet;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use notbefore_core::time::after;
use notbefore_core::{Cause, Event, EventId, EventType, OperationId, Role, ScopeId, VmId};
use notbefore_engine::{EventCommand, Expected, NewOperation, OperationCommand, TargetSelector};
use notbefore_store::Revision;
use notbefore_wire::operator as wire;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::access::Change;
use super::pages::{self, PageQuery, Params};
use super::path::Path;
use super::problem::{ApiResult, Problem};
use super::visibility::{CallerView, LiveEvents, Permit, VisibleView, role_for};
use super::wire_names::WireName;
use super::{cursor, present};
use crate::view::{EventTime, ScopeView};

/// Longest description in bytes. Every poll of the scope's guests returns it.
const DESCRIPTION_MAX: usize = 512;
/// Most VMs in one request.
const VMS_MAX: usize = 1_000;

/// Furthest NotBefore from now: a hundred years, as for spans. A later one is a mistyped year.
const NOT_BEFORE_DAYS_MAX: u64 = 100 * 366;

/// Query of the list of events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only events of this scope.
    scope: Option<String>,
    /// Only events that affect this VM.
    vm: Option<String>,
    /// Only events that affect VMs that were on this host when the event was announced.
    host: Option<String>,
    /// Only events of this type: `Freeze`, `Reboot`, `Redeploy`, `Preempt`, `Terminate` or
    /// `SpotRebalanceRecommendation`.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// `Scheduled`, `Started` or `Advisory`.
    status: Option<String>,
    /// The order; `scope` by default.
    #[param(inline)]
    sort: Option<wire::EventSort>,
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List live events
#[utoipa::path(get, path = "/events", tag = "events", params(ListQuery), responses((status = 200, body = wire::Page<wire::Event>)))]
pub async fn list(
    caller_view: CallerView,
    Params(query): Params<ListQuery>,
) -> ApiResult<wire::Page<wire::Event>> {
    page(&caller_view, caller_view.now(), query, |scope, event| caller_view.unread_by(scope, event)).map(Json)
}

fn page(
    visible: &VisibleView,
    now: Timestamp,
    query: ListQuery,
    unread_by: impl Fn(&ScopeView, &Event) -> Vec<String>,
) -> Result<wire::Page<wire::Event>, Problem> {
    let revision = visible.revision;
    let ListQuery { scope, vm, host, event_type, status, sort, limit, cursor } = query;
    visible.check_host_filter(host.as_deref())?;
    let page = PageQuery { limit, cursor };
    let (limit, cursor) = (page.limit(), page.after()?);
    let event_type = parse_type(event_type.as_deref())?;
    let status = match status.as_deref().map(wire::EventStatus::parse_ignoring_case) {
        live @ (None
        | Some(
            wire::EventStatus::Scheduled | wire::EventStatus::Started | wire::EventStatus::Advisory,
        )) => live,
        Some(
            other @ (wire::EventStatus::Completed
            | wire::EventStatus::Cancelled
            | wire::EventStatus::Unknown(_)),
        ) => {
            let detail = format!("status {:?} is not one of Scheduled, Started, Advisory", other.as_str());
            return Err(Problem::bad_request("bad_status", detail));
        }
    };
    let vm = vm.map(|text| visible.vm(&text)).transpose()?;
    let home = vm.and_then(|vm| visible.scope_of(vm).ok()).map(|scope| scope.scope.id());
    let only = visible.only_scope(scope.as_deref())?;
    if only.is_some() && home.is_some() && only != home {
        return Ok(wire::Page { items: Vec::new(), next: None, revision });
    }
    // Events of a VM are in its scope.
    let only = only.or(home);
    let from;
    let (events, position): (LiveEvents<'_>, fn(&ScopeView, &Event) -> String) = match sort {
        None | Some(wire::EventSort::Scope) => {
            // A cursor is `scope|event`, the last event shown.
            let last = pages::in_scope(cursor.as_deref())?;
            from = only.clone().or(pages::scope(last.map(|(scope, _)| scope))?);
            let position = |scope: &ScopeView, event: &Event| format!("{}|{}", scope.scope.id(), event.id);
            (by_scope(visible, only.as_ref(), from.as_ref(), last), position)
        }
        Some(wire::EventSort::Time) => {
            let last = cursor.as_deref().map(str::parse::<EventTime>).transpose();
            let last = last.map_err(|_| pages::bad_cursor())?;
            (by_time(visible, only.as_ref(), last), |_, event| EventTime::of(event).to_string())
        }
        Some(wire::EventSort::Unknown(word)) => {
            let known =
                wire::EventSort::ALL.iter().map(wire::EventSort::as_str).collect::<Vec<_>>().join(", ");
            return Err(Problem::bad_request("bad_sort", format!("sort {word:?} is not one of {known}")));
        }
    };
    let on_host =
        |event: &Event, host: &str| event.resources.iter().any(|one| one.host.as_deref() == Some(host));
    let is_meant = |event: &Event| {
        vm.is_none_or(|vm| event.includes_vm(vm))
            && status.as_ref().is_none_or(|status| event.phase.wire_name() == *status)
            && event_type.is_none_or(|wanted| event.cause.event_type() == wanted)
            && host.as_deref().is_none_or(|host| on_host(event, host))
    };
    let mut events = events.filter(|(_, event)| is_meant(event));
    let context = visible.present_context(now);
    let mut last = None;
    let present = |(scope, event): (&Arc<ScopeView>, &Event)| {
        last = Some(cursor::encode(&position(scope, event)));
        let unread_by = unread_by(scope, event);
        wire::Event {
            trail: Vec::new(),
            unread_by,
            ..present::event(&context, scope, event, visible.reasons)
        }
    };
    let items: Vec<wire::Event> = events.by_ref().take(limit).map(present).collect();
    if let (Some(host), true) = (&host, items.is_empty()) {
        visible.check_host(host)?;
    }
    Ok(wire::Page { next: events.next().and(last), items, revision })
}

/// Events by scope, and by id in a scope. Ids never change, so events that start or end between two requests do not
/// shift the pages.
fn by_scope<'a>(
    visible: &'a VisibleView,
    only: Option<&'a ScopeId>,
    from: Option<&'a ScopeId>,
    last: Option<(&'a str, &'a str)>,
) -> LiveEvents<'a> {
    let scopes = visible.busy(pages::from(from));
    let scopes = scopes.take_while(move |scope| only.is_none_or(|only| *only == scope.scope.id()));
    Box::new(scopes.flat_map(move |scope| {
        let id = scope.scope.id();
        let shown = last.filter(|(scope, _)| *scope == id.as_str()).map(|(_, event)| event);
        let is_left = |event: &&Event| shown.is_none_or(|shown| event.id.to_string().as_str() > shown);
        let mut events: Vec<_> =
            scope.scope.events.iter().filter(is_left).map(|event| (scope, event)).collect();
        events.sort_by_key(|(_, event)| event.id);
        events
    }))
}

/// Events in order of time, after one.
fn by_time<'a>(
    visible: &'a VisibleView,
    only: Option<&'a ScopeId>,
    last: Option<EventTime>,
) -> LiveEvents<'a> {
    let from = last.map_or(Bound::Unbounded, Bound::Excluded);
    let Some(only) = only else { return visible.events_by_time(from, usize::MAX).0 };
    let scopes = visible.busy(pages::from(Some(only))).take_while(|scope| scope.scope.id() == *only);
    let events = scopes.flat_map(|scope| scope.scope.events.iter().map(move |event| (scope, event)));
    let left = events.filter(|(_, event)| (from, Bound::Unbounded).contains(&EventTime::of(event)));
    let mut events: Vec<_> = left.collect();
    events.sort_by_key(|(_, event)| EventTime::of(event));
    Box::new(events.into_iter())
}

/// Parses the type in a query.
pub fn parse_type(text: Option<&str>) -> Result<Option<EventType>, Problem> {
    let parsed = text.map(str::parse::<EventType>).transpose();
    parsed.map_err(|error| Problem::bad_request("bad_type", format!("type {error}")))
}

/// Show an event with its trail, live or ended
#[utoipa::path(get, path = "/events/{event}", tag = "events", params(("event" = String, Path, description = "Its id, or the first four or more digits of it")), responses((status = 200, body = wire::Event)))]
pub async fn show(caller_view: CallerView, Path(event): Path<String>) -> Result<Response, Problem> {
    let shown = caller_view.show_event(caller_view.find_event(&event).await?).await?;
    Ok((super::vms::etag(shown.revision), Json(shown)).into_response())
}

/// Schedule events for VMs, or return the plan
#[utoipa::path(post, path = "/events", tag = "events", request_body = wire::ScheduleEvents, responses((status = 201, description = "The new operation", body = wire::Operation), (status = 200, description = "For `dry_run`: the plan", body = notbefore_wire::operator::plan::Plan)))]
pub async fn schedule(caller_view: CallerView, change: Change) -> Result<Response, Problem> {
    let request = change.body()?;
    announce(caller_view, cause(&request), request, change).await
}

/// Schedules events and responds with the operation; for `dry_run`, with the plan. Uses `cause`, not the type or cause in `request`.
pub async fn announce(
    mut caller_view: CallerView,
    cause: Result<Cause, Problem>,
    request: wire::ScheduleEvents,
    change: Change,
) -> Result<Response, Problem> {
    let dry_run = request.dry_run;
    let command = new_operation(&caller_view, cause, request);
    if dry_run {
        let (permit, new) = command?;
        return Ok(Json(caller_view.plan(permit, change.actor(), new).await?).into_response());
    }
    let command = command.map(|(permit, new)| (permit, OperationCommand::Schedule(new)));
    let id = caller_view.ask(change, command).await?;
    let shown = caller_view.show_operation(id).await?;
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

fn new_operation(
    caller_view: &CallerView,
    cause: Result<Cause, Problem>,
    request: wire::ScheduleEvents,
) -> Result<(Permit, NewOperation), Problem> {
    let not_before = when(caller_view.now(), request.not_before, request.in_seconds)?;
    let cause = cause?;
    let named = distinct_vms(request.vms, request.revisions)?;
    let vms = named.iter().map(|(name, _)| caller_view.vm(name)).collect::<Result<Vec<VmId>, _>>()?;
    let scopes = vms
        .iter()
        .map(|vm| Ok(caller_view.scope_of(*vm)?.scope.id()))
        .collect::<Result<Vec<_>, Problem>>()?;
    let permit = caller_view.permit_all(role_for(cause.source()), &scopes)?;
    let revisions: Option<Vec<Revision>> = named.iter().map(|(_, revision)| revision.map(Revision)).collect();
    let expected = revisions.filter(|_| !vms.is_empty()).map_or(Expected::Anything, Expected::Revisions);
    let new = NewOperation {
        id: OperationId(Uuid::new_v4()),
        cause,
        selector: TargetSelector::Vms(vms),
        not_before,
        duration_s: request.duration_seconds,
        description: checked_description(request.description)?,
        force: request.force,
        expected,
    };
    Ok((permit, new))
}

/// The VMs of a request, each once, with the revision that the caller expects. Checked before names are resolved, which
/// costs more.
fn distinct_vms(
    vms: Vec<String>,
    revisions: Option<Vec<u64>>,
) -> Result<Vec<(String, Option<u64>)>, Problem> {
    let revisions = match revisions {
        None => vec![None; vms.len()],
        Some(revisions) if revisions.len() == vms.len() => revisions.into_iter().map(Some).collect(),
        Some(revisions) => {
            let detail = format!("{} revisions for {} VMs; give one for each", revisions.len(), vms.len());
            return Err(Problem::bad_request("bad_revisions", detail));
        }
    };
    let mut known = HashSet::new();
    let mut named: Vec<_> = vms.into_iter().zip(revisions).collect();
    named.retain(|one| known.insert(one.clone()));
    if named.len() > VMS_MAX {
        let detail = format!(
            "vms names {} VMs, the limit is {VMS_MAX}; schedule their events in several requests",
            named.len()
        );
        return Err(Problem::bad_request("too_many_vms", detail));
    }
    Ok(named)
}

/// NotBefore from `not_before` or `in_seconds`, [`NOT_BEFORE_DAYS_MAX`] ahead at most. The core checks the notice.
pub fn when(
    now: Timestamp,
    not_before: Option<Timestamp>,
    in_seconds: Option<u64>,
) -> Result<Option<Timestamp>, Problem> {
    let at = match (not_before, in_seconds) {
        (Some(_), Some(_)) => {
            return Err(Problem::bad_request("bad_body", "give not_before or in_seconds, not both"));
        }
        (at, None) => at,
        (None, Some(seconds)) => Some(after(now, Duration::from_secs(seconds))),
    };
    let latest = after(now, Duration::from_secs(NOT_BEFORE_DAYS_MAX * 86_400));
    match at.filter(|at| *at > latest) {
        None => Ok(at),
        Some(at) => {
            let detail = format!(
                "NotBefore {at:.0} is too far ahead: the limit is a hundred years, so the latest is {latest:.0}"
            );
            Err(Problem::bad_request("not_before_too_far", detail))
        }
    }
}

fn cause(request: &wire::ScheduleEvents) -> Result<Cause, Problem> {
    match (&request.cause, &request.event_type) {
        (Some(cause), None) => cause
            .as_str()
            .parse()
            .map_err(|error| Problem::bad_request("bad_cause", format!("cause {error}"))),
        (None, Some(event_type)) => {
            let event_type = parse_type(Some(event_type.as_str()))?;
            event_type
                .map(Cause::of_type)
                .ok_or_else(|| Problem::bad_request("bad_type", "no type was given"))
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(Problem::bad_request("bad_body", "give a type or a cause, one of them"))
        }
    }
}

/// Checks the description's length and characters: handlers write it to logs and terminals.
pub fn checked_description(description: Option<String>) -> Result<Option<String>, Problem> {
    match description {
        Some(text) if text.len() > DESCRIPTION_MAX => {
            let detail = format!("the description has {} bytes, the limit is {DESCRIPTION_MAX}", text.len());
            Err(Problem::bad_request("bad_description", detail))
        }
        Some(text) if text.contains(char::is_control) => {
            let place = text.chars().take_while(|char| !char.is_control()).count() + 1;
            let found = text.chars().find(|char| char.is_control()).unwrap_or_default();
            let detail = format!(
                "character {place} of the description is the control character {found:?}; write one line of plain text"
            );
            Err(Problem::bad_request("bad_description", detail))
        }
        description => Ok(description),
    }
}

/// Act on an event; only `complete` takes a body
#[utoipa::path(post, path = "/events/{event}/{verb}", tag = "events", params(("event" = String, Path, description = "Its id, or the first four or more digits of it"), ("verb" = inline(wire::EventVerb), Path)), request_body = Option<wire::CompleteEvent>, responses((status = 200, body = wire::Event)))]
pub async fn act(
    mut caller_view: CallerView,
    Path((event, verb)): Path<(String, wire::EventVerb)>,
    change: Change,
) -> ApiResult<wire::Event> {
    let id = caller_view.find_event(&event).await?;
    let permit = caller_view.permit_on_event(role_to(&verb, caller_view.live_event(id)), id);
    let command = match verb {
        wire::EventVerb::Approve => Ok(EventCommand::Approve(id)),
        wire::EventVerb::Cancel => Ok(EventCommand::Cancel(id)),
        wire::EventVerb::Start => Ok(EventCommand::Start(id)),
        wire::EventVerb::Retry => Ok(EventCommand::Retry(id)),
        wire::EventVerb::Complete => {
            let wire::CompleteEvent { hosts } = change.body_or_default()?;
            let hosts = hosts.into_iter().map(|(name, host)| {
                Ok((in_event(&caller_view, id, &name)?, super::scopes::checked_location(&host)?))
            });
            hosts.collect::<Result<_, Problem>>().map(|hosts| EventCommand::Complete { event: id, hosts })
        }
        wire::EventVerb::Unknown(verb) => {
            let detail =
                format!("an event has no {verb:?}; there are approve, cancel, start, complete and retry");
            return Err(Problem::not_found("unknown_verb", detail));
        }
    };
    // Check the role before the rest of the request.
    let command = permit.and_then(|permit| Ok((permit, command?)));
    caller_view.ask(change, command).await?;
    Ok(Json(caller_view.show_event(id).await?))
}

/// The role that an action on an event needs.
fn role_to(verb: &wire::EventVerb, event: Option<&Event>) -> Role {
    use wire::EventVerb as Verb;
    match (verb, event) {
        (Verb::Approve, _) => Role::Tenant,
        // Owners can cancel what owners requested.
        (Verb::Cancel, Some(event)) => role_for(event.cause.source()),
        // The event has ended. Every caller that sees it gets that answer.
        (Verb::Cancel, None) => Role::Tenant,
        (Verb::Start | Verb::Complete | Verb::Retry | Verb::Unknown(_), _) => Role::Operator,
    }
}

/// Resolves a VM of an event: by its name in the event, or like any VM.
fn in_event(caller_view: &CallerView, event: EventId, name: &str) -> Result<VmId, Problem> {
    let named = caller_view.live_event(event).and_then(|event| {
        event.resources.iter().find(|one| one.name.as_str().eq_ignore_ascii_case(name)).map(|one| one.vm)
    });
    match named {
        Some(vm) => Ok(vm),
        None => caller_view.vm(name),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use notbefore_core::Scope;
    use notbefore_core::samples;

    use super::*;
    use crate::delivery::tests::ViewFixture;

    #[test]
    fn not_before_is_at_most_a_hundred_years_ahead() {
        let (now, day) = (Timestamp::UNIX_EPOCH, 86_400);
        let limit = 36_600 * day;
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        assert_eq!(when(now, None, Some(36_600 * 86_400)).unwrap(), Some(at(limit)));
        assert_eq!(when(now, Some(at(-day)), None).unwrap(), Some(at(-day)), "the core refuses the past");
        for far in [when(now, None, Some(u64::MAX)), when(now, Some(at(limit + 1)), None)] {
            let problem = far.unwrap_err();
            assert!(problem.is("not_before_too_far"), "{problem:?}");
            assert!(format!("{problem:?}").contains("the latest is 2070-03-17T00:00:00Z"), "{problem:?}");
        }
    }

    #[test]
    fn description_with_control_characters_is_refused() {
        let plain = Some("Wartung: Gerät 4 — \"web\"".to_owned());
        assert_eq!(checked_description(plain.clone()).unwrap(), plain);
        for (text, said) in [
            ("a\x1b[2Jb", "character 2 of the description is the control character '\\u{1b}'"),
            ("a\nb", "'\\n'"),
        ] {
            let problem = checked_description(Some(text.to_owned())).unwrap_err();
            assert!(problem.is("bad_description"), "{problem:?}");
            assert!(format!("{problem:?}").replace("\\\\", "\\").contains(said), "{problem:?}");
        }
    }

    const SCOPES: u64 = 100;
    const EVENTS: u64 = 200;

    fn event(scope: u64, n: u64, vm: VmId) -> Event {
        let id = u128::from(scope * EVENTS + n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        samples::event(id, Cause::HostReboot, &[vm])
    }

    fn scope(number: u64) -> Scope {
        let vm = samples::vm(u128::from(number));
        let events = (0..EVENTS).map(|n| event(number, n, vm)).collect();
        Scope { events, ..samples::scope(&format!("s{number:03}"), &[vm]) }
    }

    #[test]
    fn event_pages_are_stable_while_events_change() {
        let mut fixture = ViewFixture::default();
        (0..SCOPES).for_each(|number| fixture.publish(&scope(number), Timestamp::UNIX_EPOCH));
        let (mut seen, mut cursor, mut turn) = (Vec::new(), None, 0);
        loop {
            let query = ListQuery { limit: Some(197), cursor: cursor.take(), ..ListQuery::default() };
            let page = page(
                &VisibleView::everything(fixture.views.newest()),
                Timestamp::UNIX_EPOCH,
                query,
                |_, _| Vec::new(),
            )
            .unwrap();
            seen.extend(page.items.iter().map(|event| event.id));
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
            // A scope on an earlier or later page loses every other event and gets new ones.
            let number = (turn * 37) % SCOPES;
            let mut changed = scope(number);
            let vm = changed.members[0].vm;
            changed.events = changed.events.into_iter().skip(1).step_by(2).collect();
            changed.events.extend((0..10).map(|n| event(number + SCOPES, n, vm)));
            fixture.publish(&changed, Timestamp::UNIX_EPOCH);
            turn += 1;
        }
        let unique: BTreeSet<Uuid> = seen.iter().copied().collect();
        assert_eq!(unique.len(), seen.len(), "no event is shown twice");
        for number in 0..SCOPES {
            let all = scope(number);
            let stayed = all.events.iter().skip(1).step_by(2);
            let missing = stayed.filter(|event| !unique.contains(&event.id.0)).count();
            assert_eq!(missing, 0, "events that stayed live are all shown: {number}");
        }
    }
}
