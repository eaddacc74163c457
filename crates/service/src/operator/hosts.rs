//! `/v1/hosts`: hosts, and operations on all VMs of a host.
//!
//! Counts come from the published view. The engine determines the VMs of an operation when it plans it, so a VM that
//! moves after the caller's last read is handled correctly.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use notbefore_core::joint_start::waits_for;
use notbefore_core::{
    Actor, Cause, HostState, Member, MemberState, Operation, OperationId, Outcome, Refusal, ScopeId, VmId,
};
use notbefore_engine::{Expected, HostChange, NewOperation, OperationCommand, TargetSelector};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::Listening;
use notbefore_wire::operator::hosts::{
    Host, HostAction, HostWait, HostsAction, HostsPlan, PLANNED_HOSTS_MAX, ScopeImpact,
};
use notbefore_wire::operator::plan::Plan;
use uuid::Uuid;

use super::access::{Change, CommandReasons};
use super::events::{checked_description, when};
use super::facts::actor;
use super::pages::{PageQuery, Params};
use super::path::Path;
use super::plan::plan;
use super::problem::{ApiResult, Problem};
use super::wire_names::WireName;
use super::{Operator, cursor};
use crate::hosts::HostEntry;
use crate::names;
use crate::view::View;

/// List hosts, sorted by name: digits compare by value
///
/// A host is listed from its first VM until an operator removes it.
#[utoipa::path(get, path = "/hosts", tag = "hosts", params(PageQuery), responses((status = 200, body = wire::Page<Host>)))]
pub async fn list(
    State(operator): State<Operator>,
    Params(page): Params<PageQuery>,
) -> ApiResult<wire::Page<Host>> {
    let (limit, after) = (page.limit(), page.after()?);
    let ((revision, view), now) = (operator.views.complete_to(), operator.clock.now());
    let operations = open_operations(&view);
    let mut found = view.hosts.after(after.as_deref());
    let one = |(name, entry): (&Arc<str>, _)| host_summary(&view, name, entry, &operations, now);
    let items: Vec<Host> = found.by_ref().take(limit).map(one).collect();
    let next = found.next().and(items.last()).map(|last| cursor::encode(&last.host));
    Ok(Json(wire::Page { items, next, revision }))
}

/// Show a host
#[utoipa::path(get, path = "/hosts/{host}", tag = "hosts", params(("host" = String, Path)), responses((status = 200, body = Host)))]
pub async fn show(State(operator): State<Operator>, Path(host): Path<String>) -> ApiResult<Host> {
    let (view, now) = (operator.views.newest(), operator.clock.now());
    shown(&view, &host, now).map(Json)
}

fn shown(view: &View, host: &str, now: Timestamp) -> Result<Host, Problem> {
    match view.hosts.get(host) {
        Some(entry) => Ok(host_summary(view, host, entry, &open_operations(view), now)),
        None => Err(unknown(view, host, Refusal::UnknownHost(host.to_owned()).into())),
    }
}

/// Remove a host that has no VMs and no open operation
#[utoipa::path(delete, path = "/hosts/{host}", tag = "hosts", params(("host" = String, Path)), responses((status = 204)))]
pub async fn forget(
    State(operator): State<Operator>,
    Path(host): Path<String>,
    change: Change,
) -> Result<StatusCode, Problem> {
    change.reject_preconditions()?;
    let forgotten = change.ask(&operator, Ok(HostChange::Forget(host.clone()))).await;
    forgotten.map_err(|problem| unknown(&operator.views.newest(), &host, problem))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Say that the hardware of a host works
///
/// VMs may move there again. Open operations on the host go on.
#[utoipa::path(post, path = "/hosts/{host}/ok", tag = "hosts", params(("host" = String, Path)), responses((status = 200, body = Host)))]
pub async fn set_ok(
    State(operator): State<Operator>,
    Path(host): Path<String>,
    change: Change,
) -> ApiResult<Host> {
    change.reject_preconditions()?;
    let set = change.ask(&operator, Ok(HostChange::Ok(host.clone()))).await;
    let view = operator.views.newest();
    set.map_err(|problem| unknown(&view, &host, problem))?;
    shown(&view, &host, operator.clock.now()).map(Json)
}

/// Schedule an operation on a host for all its VMs, or return its plan
///
/// `degraded` and `failed` also set the state of the host. For a host without VMs the operation has no events, and ends
/// at once.
#[utoipa::path(post, path = "/hosts/{host}/{verb}", tag = "hosts",
    params(("host" = String, Path), ("verb" = inline(wire::HostVerb), Path)),
    request_body = Option<HostAction>,
    responses((status = 201, description = "The new operation", body = wire::Operation), (status = 200, description = "For `dry_run`: the plan", body = Plan)))]
pub async fn act(
    State(operator): State<Operator>,
    Path((host, verb)): Path<(String, wire::HostVerb)>,
    change: Change,
) -> Result<Response, Problem> {
    change.reject_preconditions()?;
    let action: HostAction = change.body_or_default()?;
    let new = new_operation(&host, &verb, &action, operator.clock.now())?;
    if action.dry_run {
        return Ok(Json(preview(&operator, change.actor(), &host, new).await?.1).into_response());
    }
    let reasons = change.command_reasons();
    let id = change.ask(&operator, Ok(OperationCommand::Schedule(new))).await;
    let id = id.map_err(|problem| unknown(&operator.views.newest(), &host, problem))?;
    let shown = super::operations::present(&operator, id, reasons).await?;
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

/// Plans an operation on a host.
async fn preview(
    operator: &Operator,
    by: Actor,
    host: &str,
    new: NewOperation,
) -> Result<(Operation, Plan), Problem> {
    let found = operator.engine.query(move |engine, now| engine.preview(&by, &new, now)).await;
    let view = operator.views.newest();
    let preview = found.map_err(|failure| unknown(&view, host, failure.into()))?;
    let operations = open_operations(&view).remove(host).unwrap_or_default();
    let operations = operations.iter().map(|operation| operation.id.0).collect();
    let shown = Plan { operations, ..plan(&view, &preview, operator.clock.now(), CommandReasons::SHOWN) };
    Ok((preview.operation, shown))
}

/// Plan the same action on several hosts
///
/// Returns each host's plan, how many VMs of a scope are affected at the same time, and which host waits for which.
#[utoipa::path(post, path = "/hosts/plan", tag = "hosts", request_body = HostsAction, responses((status = 200, body = HostsPlan)))]
pub async fn plan_several(State(operator): State<Operator>, change: Change) -> ApiResult<HostsPlan> {
    change.reject_preconditions()?;
    let HostsAction { hosts, verb, action } = change.body()?;
    if !(1..=PLANNED_HOSTS_MAX).contains(&hosts.len()) {
        let detail = format!("{} hosts were named; name 1 to {PLANNED_HOSTS_MAX}", hosts.len());
        return Err(Problem::bad_request("bad_hosts", detail));
    }
    if let Some(twice) = hosts.iter().enumerate().find(|(n, host)| hosts[..*n].contains(host)) {
        return Err(Problem::bad_request("bad_hosts", format!("host {} is named twice", twice.1)));
    }
    let now = operator.clock.now();
    let mut plans = Vec::new();
    for host in &hosts {
        let new = new_operation(host, &verb, &action, now)?;
        plans.push(preview(&operator, Actor::Service, host, new).await?);
    }
    let view = operator.views.newest();
    let operations: Vec<&Operation> = plans.iter().map(|(operation, _)| operation).collect();
    let size = |scope: &ScopeId| view.scope(scope).map_or(0, |scope| scope.scope.members.len());
    let (scopes, waits) = impact(&operations, size);
    Ok(Json(HostsPlan { scopes, waits, hosts: plans.into_iter().map(|(_, plan)| plan).collect() }))
}

/// Compares operations on several hosts. Events in different update domains of a scope take turns, in the order of the
/// list; events in the same update domain do not.
fn impact(operations: &[&Operation], size: impl Fn(&ScopeId) -> usize) -> (Vec<ScopeImpact>, Vec<HostWait>) {
    let mut by_scope: BTreeMap<&ScopeId, Vec<OnHost>> = BTreeMap::new();
    for (place, operation) in operations.iter().enumerate() {
        for target in operation.targets.iter().filter(|target| target.refused.is_none()) {
            let here = by_scope.entry(&target.scope).or_default();
            if here.last().is_none_or(|last| last.place != place) {
                let as_a_whole = operation.joint_start.is_some();
                here.push(OnHost { place, as_a_whole, vms: BTreeMap::new() });
            }
            if let Some(last) = here.last_mut() {
                *last.vms.entry(target.update_domain).or_default() += target.resources.len();
            }
        }
    }
    let takes_turns = operations.first().is_some_and(|one| one.cause.waits_for_other_update_domains());
    let mut waits: BTreeMap<usize, (BTreeSet<usize>, BTreeSet<&ScopeId>)> = BTreeMap::new();
    let mut impacts = Vec::new();
    for (scope, hosts) in by_scope {
        let mut at_once: BTreeMap<u32, usize> = BTreeMap::new();
        let mut alone = 0;
        for (nth, one) in hosts.iter().enumerate() {
            match one.as_a_whole && one.vms.len() > 1 {
                true => alone = alone.max(one.vms.values().sum()),
                false => one.vms.iter().for_each(|(ud, vms)| *at_once.entry(*ud).or_default() += vms),
            }
            let behind = |first: &&OnHost| waits_for(one.as_a_whole, one.vms.keys(), first.vms.keys());
            for first in hosts[..nth].iter().filter(|first| takes_turns && behind(first)) {
                let (before, scopes) = waits.entry(one.place).or_default();
                before.insert(first.place);
                scopes.insert(scope);
            }
        }
        let hit = hosts.iter().flat_map(|one| one.vms.values()).sum();
        let most = at_once.into_values().max().unwrap_or(0).max(alone);
        impacts.push(ScopeImpact {
            scope: scope.to_string(),
            vms: size(scope),
            hit,
            at_once: if takes_turns { most } else { hit },
            hosts: hosts.len(),
        });
    }
    let host = |place: usize| operations[place].host.clone().unwrap_or_default();
    let waits = waits.into_iter().map(|(place, (before, scopes))| HostWait {
        host: host(place),
        waits_for: before.into_iter().map(host).collect(),
        scopes: scopes.into_iter().map(ToString::to_string).collect(),
    });
    (impacts, waits.collect())
}

/// One host's share of a scope.
struct OnHost {
    /// Index in the request.
    place: usize,
    /// Whether its events start together.
    as_a_whole: bool,
    /// Number of VMs by update domain.
    vms: BTreeMap<u32, usize>,
}

fn new_operation(
    host: &str,
    verb: &wire::HostVerb,
    action: &HostAction,
    now: Timestamp,
) -> Result<NewOperation, Problem> {
    let HostAction { maintenance, not_before, in_seconds, description, duration_seconds, vms, dry_run: _ } =
        action;
    let expected = vms.as_ref().map(|vms| Expected::Vms(vms.iter().copied().map(VmId).collect()));
    Ok(NewOperation {
        id: OperationId(Uuid::new_v4()),
        cause: cause(verb, maintenance.as_ref())?,
        selector: TargetSelector::Host(host.to_owned()),
        not_before: when(now, *not_before, *in_seconds)?,
        duration_s: *duration_seconds,
        description: checked_description(description.clone())?,
        force: false,
        expected: expected.unwrap_or_default(),
    })
}

fn cause(verb: &wire::HostVerb, maintenance: Option<&wire::Maintenance>) -> Result<Cause, Problem> {
    use wire::HostVerb as Verb;
    use wire::Maintenance::{self, Freeze, LiveMigration, Reboot, Redeploy};
    match (verb, maintenance) {
        (Verb::Maintain, Some(Freeze)) => Ok(Cause::HostFreeze),
        (Verb::Maintain, Some(Reboot)) => Ok(Cause::HostReboot),
        (Verb::Maintain, Some(Redeploy)) => Ok(Cause::HostRedeploy),
        (Verb::Maintain, Some(LiveMigration)) => Ok(Cause::LiveMigration),
        (Verb::Maintain, None | Some(Maintenance::Unknown(_))) => {
            let said = maintenance.map_or("no type was given".to_owned(), |said| {
                format!("type {:?} is unknown", said.as_str())
            });
            let detail =
                format!("{said}; a host is maintained by freeze, reboot, redeploy or live-migration");
            Err(Problem::bad_request("bad_type", detail))
        }
        (Verb::Degraded, None) => Ok(Cause::PredictedFailure),
        (Verb::Failed, None) => Ok(Cause::HostFailure),
        (Verb::Degraded | Verb::Failed, Some(_)) => {
            let detail = format!("a host that is {verb} takes no type; leave it out");
            Err(Problem::bad_request("bad_type", detail))
        }
        (Verb::Unknown(verb), _) => {
            let detail = format!("a host has no {verb:?}; there are maintain, degraded, failed and ok");
            Err(Problem::not_found("unknown_verb", detail))
        }
    }
}

/// Adds the most similar host names to the problem.
pub fn unknown(view: &View, host: &str, problem: Problem) -> Problem {
    let known = view.hosts.after(None).map(|(known, _)| known);
    problem.with_candidates("unknown_host", || names::similar(host, known))
}

/// Open operations by host.
fn open_operations(view: &View) -> HashMap<&str, Vec<&Operation>> {
    let mut open: HashMap<&str, Vec<&Operation>> = HashMap::new();
    for (_, held) in view.operations() {
        if let Some(host) = &held.value.host {
            open.entry(host).or_default().push(&held.value);
        }
    }
    open
}

/// Whether a host is in maintenance because of this open operation: one of its events has started.
fn is_maintenance(view: &View, operation: &Operation) -> bool {
    let maintains = match operation.cause {
        Cause::HostFreeze | Cause::HostReboot | Cause::HostRedeploy | Cause::LiveMigration => true,
        Cause::PredictedFailure
        | Cause::HostFailure
        | Cause::Eviction
        | Cause::Rebalance
        | Cause::Deletion
        | Cause::UserRestart
        | Cause::UserRedeploy => false,
    };
    let started = |event| view.scope_of_event(event).and_then(|scope| scope.scope.event(event));
    maintains
        && operation.targets.iter().any(|target| {
            target.outcome == Some(Outcome::Completed)
                || started(target.event).is_some_and(notbefore_core::Event::is_started)
        })
}

fn host_summary(
    view: &View,
    name: &str,
    entry: &HostEntry,
    operations: &HashMap<&str, Vec<&Operation>>,
    now: Timestamp,
) -> Host {
    let operations = operations.get(name).map(Vec::as_slice).unwrap_or_default();
    let record = entry.record.as_ref().map(|held| &held.value);
    let state = record.map_or(HostState::Ok, |record| record.state).wire_name();
    let (state, record) = match operations.iter().any(|operation| is_maintenance(view, operation)) {
        true => (wire::HostState::Maintenance, None),
        false => (state, record),
    };
    let mut host = Host {
        host: name.to_owned(),
        state,
        since: record.map(|record| record.since),
        by: record.map(|record| actor(&record.by)),
        vms: 0,
        deallocated: 0,
        scopes: entry.places.len(),
        listening: 0,
        listening_unknown: 0,
        events: 0,
        operations: operations.iter().map(|operation| operation.id.0).collect(),
    };
    for (scope, members) in view.members_on(&entry.places, None) {
        host.vms += members.len();
        let runs = |member: &&&Member| member.state == MemberState::Running;
        let running = members.iter().filter(runs);
        host.deallocated += members.len() - running.clone().count();
        for member in running {
            match view.listening(member.vm, now) {
                Listening::Yes => host.listening += 1,
                Listening::Unclear => host.listening_unknown += 1,
                Listening::No | Listening::Unknown(_) => {}
            }
        }
        if !scope.scope.events.is_empty() {
            let here: HashSet<VmId> = members.iter().map(|member| member.vm).collect();
            let touches = |event: &&notbefore_core::Event| {
                event.resources.iter().any(|resource| here.contains(&resource.vm))
            };
            host.events += scope.scope.events.iter().filter(touches).count();
        }
    }
    host
}
