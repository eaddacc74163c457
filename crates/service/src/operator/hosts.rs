//! `/v1/hosts`: the machines that VMs run on, and what is done to all the VMs of one.
//!
//! Counts come from the published view. Which VMs an operation reaches, and what it would come to, the engine
//! says: it looks when it plans, so nobody is missed, or hit, who has moved since somebody looked here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use notbefore_core::{Cause, Member, MemberState, Operation, OperationId, Refusal, Target, VmId};
use notbefore_engine::{Answer, Command, NewOperation, Preview, Whom};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::delivery::Listening;
use notbefore_wire::operator::hosts::{Host, HostAction, HostPlan, PlannedEvent, SILENT_NAMED_MAX};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Operator;
use super::access::Change;
use super::events::{checked_description, checked_duration, when};
use super::pages::{self, PageQuery, Params};
use super::present;
use super::problem::Problem;
use crate::hosts::Places;
use crate::names;
use crate::view::{ScopeView, View};

/// What can be done to a host, for the API's description.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "the variants are read by the derive alone")]
enum Verb {
    Maintain,
    Degraded,
    Failed,
}

/// How many hosts' names are compared with one that does not exist; enough for a person's region, and some
/// milliseconds at most.
const COMPARED_MAX: usize = 20_000;
/// How many names are offered instead.
const OFFERED_MAX: usize = 3;
/// How like a name must be to be offered, from 0 to 1.
const LIKE_ENOUGH: f64 = 0.75;

/// List the hosts that VMs are on, in the order of their names
#[utoipa::path(get, path = "/hosts", tag = "hosts", params(PageQuery), responses((status = 200, body = wire::Page<Host>)))]
pub async fn list(
    State(operator): State<Operator>,
    Params(page): Params<PageQuery>,
) -> Result<Json<wire::Page<Host>>, Problem> {
    let (limit, after) = (page.limit()?, page.after()?);
    let (view, now) = (operator.views.newest(), operator.clock.now());
    let operations = open_operations(&view);
    let mut found = view.hosts().after(after.as_deref());
    let one = |(name, places): (&Arc<str>, _)| counted(&view, name, places, &operations, now);
    let items: Vec<Host> = found.by_ref().take(limit).map(one).collect();
    let next = found.next().and(items.last()).map(|last| pages::encode(&last.host));
    Ok(Json(wire::Page { items, next }))
}

/// Show one host
#[utoipa::path(get, path = "/hosts/{host}", tag = "hosts", params(("host" = String, Path)), responses((status = 200, body = Host)))]
pub async fn show(State(operator): State<Operator>, Path(host): Path<String>) -> Result<Json<Host>, Problem> {
    let (view, now) = (operator.views.newest(), operator.clock.now());
    match view.hosts().get(&host) {
        Some(places) => Ok(Json(counted(&view, &host, places, &open_operations(&view), now))),
        None => Err(unknown(&view, &host, Refusal::UnknownHost(host.clone()).into())),
    }
}

/// Announce to all VMs of a host what is about to happen to it, or say what that would come to
#[utoipa::path(post, path = "/hosts/{host}/{verb}", tag = "hosts",
    params(("host" = String, Path), ("verb" = inline(Verb), Path)),
    request_body = Option<HostAction>,
    responses((status = 201, description = "The operation that was made", body = wire::Operation), (status = 200, description = "For `dry_run`: what it would come to", body = HostPlan)))]
pub async fn act(
    State(operator): State<Operator>,
    Path((host, verb)): Path<(String, String)>,
    change: Change,
) -> Result<Response, Problem> {
    let HostAction { maintenance, not_before, in_seconds, description, duration_seconds, dry_run } =
        change.body_or_default()?;
    let new = NewOperation {
        id: OperationId(Uuid::new_v4()),
        cause: cause(&verb, maintenance.as_deref())?,
        whom: Whom::Host(host.clone()),
        not_before: when(operator.clock.now(), not_before, in_seconds)?,
        duration_s: checked_duration(duration_seconds)?,
        description: checked_description(description)?,
    };
    let command = if dry_run { Command::Preview(new) } else { Command::Schedule(new) };
    let answer = change.ask(&operator, Ok(command)).await;
    let view = operator.views.newest();
    match answer.map_err(|problem| unknown(&view, &host, problem))? {
        Answer::Operation(id) => {
            let shown = super::operations::shown(&operator, id).await?;
            Ok((StatusCode::CREATED, Json(shown)).into_response())
        }
        Answer::Preview(preview) => {
            Ok(Json(plan(&view, &host, &preview, operator.clock.now())).into_response())
        }
        Answer::Done | Answer::Vm(_) | Answer::Scope { .. } => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn cause(verb: &str, maintenance: Option<&str>) -> Result<Cause, Problem> {
    match (verb, maintenance) {
        ("maintain", Some("freeze")) => Ok(Cause::HostFreeze),
        ("maintain", Some("reboot")) => Ok(Cause::HostReboot),
        ("maintain", Some("redeploy")) => Ok(Cause::HostRedeploy),
        ("maintain", Some("live-migration")) => Ok(Cause::LiveMigration),
        ("maintain", said) => {
            let said =
                said.map_or("no type was given".to_owned(), |said| format!("type {said:?} is unknown"));
            let detail =
                format!("{said}; a host is maintained by freeze, reboot, redeploy or live-migration");
            Err(Problem::bad_request("bad_type", detail))
        }
        ("degraded", None) => Ok(Cause::PredictedFailure),
        ("failed", None) => Ok(Cause::HostFailure),
        ("degraded" | "failed", Some(_)) => Err(Problem::bad_request(
            "bad_type",
            format!("a host that is {verb} takes no type; leave it out"),
        )),
        (_, _) => {
            let detail = format!("a host has no {verb:?}; there are maintain, degraded and failed");
            Err(Problem::not_found("unknown_verb", detail))
        }
    }
}

/// A problem with a host that does not exist, with the names that are most like it.
fn unknown(view: &View, host: &str, problem: Problem) -> Problem {
    problem.meaning("unknown_host", || {
        let folded = host.to_lowercase();
        let known = view.hosts().after(None).take(COMPARED_MAX);
        let mut like: Vec<(f64, &str)> = known
            .map(|(known, _)| (strsim::jaro_winkler(&folded, &known.to_lowercase()), &**known))
            .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
            .collect();
        like.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(two.1)));
        like.into_iter().take(OFFERED_MAX).map(|(_, known)| known.to_owned()).collect()
    })
}

/// The operations on hosts that are not closed.
fn open_operations(view: &View) -> HashMap<&str, Vec<Uuid>> {
    let mut open: HashMap<&str, Vec<Uuid>> = HashMap::new();
    for (id, held) in view.operations_after(None) {
        if let Some(host) = &held.value.host {
            open.entry(host).or_default().push(id.0);
        }
    }
    open
}

fn counted(
    view: &View,
    name: &str,
    places: &Places,
    operations: &HashMap<&str, Vec<Uuid>>,
    now: Timestamp,
) -> Host {
    let mut host = Host {
        host: name.to_owned(),
        vms: 0,
        deallocated: 0,
        scopes: places.len(),
        listening: 0,
        listening_unknown: 0,
        events: 0,
        operations: operations.get(name).cloned().unwrap_or_default(),
    };
    for (scope, members) in view.placed(places, None) {
        host.vms += members.len();
        let runs = |member: &&&Member| member.state == MemberState::Running;
        let running = members.iter().filter(runs);
        host.deallocated += members.len() - running.clone().count();
        for member in running {
            match view.listening(member.vm, now) {
                Listening::Yes => host.listening += 1,
                Listening::Unknown => host.listening_unknown += 1,
                Listening::No => {}
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

/// What an operation that was worked out would come to, in the words of the API.
fn plan(view: &View, host: &str, preview: &Preview, now: Timestamp) -> HostPlan {
    let Preview { operation, deallocated, refused } = preview;
    let why: HashMap<_, _> = refused.iter().map(|(event, why)| (*event, why)).collect();
    let mut plan = HostPlan {
        host: host.to_owned(),
        event_type: operation.cause.event_type().to_string(),
        cause: operation.cause.to_string(),
        release: present::release(operation.release).to_owned(),
        not_before: operation.not_before,
        notice_seconds: operation
            .not_before
            .and_then(|at| u64::try_from(at.duration_since(now).as_secs()).ok()),
        vms: 0,
        scopes: 0,
        deallocated: deallocated.len(),
        listening: 0,
        listening_unknown: 0,
        silent: Vec::new(),
        events: Vec::new(),
        operations: open_operations(view).get(host).cloned().unwrap_or_default(),
    };
    // Parts are in the order of their scopes.
    for parts in operation.targets.chunk_by(|one, two| one.scope == two.scope) {
        plan.scopes += 1;
        let scope = parts.first().and_then(|part| view.scope(&part.scope));
        for part in parts {
            let mut listening = 0;
            for one in &part.resources {
                match view.listening(one.vm, now) {
                    Listening::Yes if part.refused.is_none() => listening += 1,
                    Listening::Unknown if part.refused.is_none() => plan.listening_unknown += 1,
                    Listening::Yes | Listening::Unknown | Listening::No => {
                        let room = SILENT_NAMED_MAX - plan.silent.len().min(SILENT_NAMED_MAX);
                        plan.silent
                            .extend(scope.map(|scope| names::path(scope, one.vm)).into_iter().take(room));
                    }
                }
            }
            plan.vms += part.resources.len();
            plan.listening += listening;
            plan.events.push(PlannedEvent {
                scope: part.scope.to_string(),
                update_domain: part.update_domain,
                resources: part.resources.iter().map(present::resource).collect(),
                listening,
                waits_for: scope.and_then(|scope| will_wait(scope, operation, part, parts)),
                refused: part.refused.clone(),
                refused_because: why.get(&part.event).map(|why| (*why).clone()),
            });
        }
    }
    plan
}

/// What the gate between update domains will make an event wait for, as far as can be told beforehand.
fn will_wait(scope: &ScopeView, operation: &Operation, part: &Target, parts: &[Target]) -> Option<String> {
    if !operation.cause.waits_for_other_update_domains() || part.refused.is_some() {
        return None;
    }
    let busy = scope.scope.events.iter().find(|event| {
        event.is_started() && event.is_platforms() && event.update_domain != part.update_domain
    });
    if let Some(busy) = busy {
        return Some(format!("the end of event {} in update domain {}", busy.id, busy.update_domain));
    }
    let mut others: Vec<u32> = parts
        .iter()
        .filter(|other| other.refused.is_none() && other.update_domain != part.update_domain)
        .map(|other| other.update_domain)
        .collect();
    others.dedup();
    match others.as_slice() {
        [] => None,
        [one] => Some(format!("its turn with update domain {one} of the scope: they go one after the other")),
        _ => {
            let list = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Some(format!("its turn with update domains {list} of the scope: they go one after the other"))
        }
    }
}
