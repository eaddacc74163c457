//! `/v1/scopes`.

use std::ops::Bound;

use axum::Json;
use axum::response::{IntoResponse, Response};
use notbefore_core::scope::{LOCATION_CHARS_MAX, is_location};
use notbefore_core::{Name, Origin, Policy, Role, ScopePath, VmId};
use notbefore_engine::{Address, EndedEvent, FieldChange, Progress, PutScope, ScopeChange, VmSpec};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::fleet::{self as api, ScopePlan};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::access::Change;
use super::pages::{self, PageQuery, Params};
use super::path::Path;
use super::problem::{ApiResult, Problem};
use super::visibility::CallerView;
use super::wire_names::WireName;
use super::{cursor, present};
use crate::names;

type ScopeParts = Path<(String, String, String)>;

/// A scope's path, for OpenAPI.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only the derive reads the fields")]
struct ScopeParams {
    /// The subscription in the scope's path; usually `default`.
    #[param(pattern = "^[A-Za-z0-9._-]{1,80}$")]
    subscription: String,
    /// The group in the scope's path; usually `default`.
    #[param(pattern = "^[A-Za-z0-9._-]{1,80}$")]
    group: String,
    /// The scope's name.
    #[param(pattern = "^[A-Za-z0-9._-]{1,80}$")]
    scope: String,
}

fn path(Path((subscription, group, name)): ScopeParts) -> Result<ScopePath, Problem> {
    let part = |text: String| {
        text.parse::<Name>().map_err(|error| Problem::from(notbefore_core::Refusal::Name(error)))
    };
    Ok(ScopePath { subscription: part(subscription)?, group: part(group)?, name: part(name)? })
}

/// List scopes, sorted by path
#[utoipa::path(get, path = "/scopes", tag = "scopes", params(PageQuery), responses((status = 200, body = wire::Page<wire::Scope>)))]
pub async fn list(
    caller_view: CallerView,
    Params(page): Params<PageQuery>,
) -> ApiResult<wire::Page<wire::Scope>> {
    let (limit, after) = (page.limit(), pages::scope(page.after()?.as_deref())?);
    let mut found =
        caller_view.scopes(after.as_ref().map_or(Bound::Unbounded, |id| Bound::Excluded(id.as_str())));
    let items: Vec<_> = found.by_ref().take(limit).map(|(_, scope)| present::scope(scope)).collect();
    let next = found.next().and(items.last()).map(|last| cursor::encode(&last.path));
    Ok(Json(wire::Page { items, next, revision: caller_view.revision }))
}

/// Show a scope
#[utoipa::path(get, path = "/scopes/{subscription}/{group}/{scope}", tag = "scopes", params(ScopeParams), responses((status = 200, body = wire::Scope)))]
pub async fn show(caller_view: CallerView, parts: ScopeParts) -> Result<Response, Problem> {
    let scope = caller_view.scope(&path(parts)?)?;
    Ok((super::vms::etag(scope.revision), Json(present::scope(scope))).into_response())
}

/// Query of `PUT`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PutQuery {
    /// Remove VMs that an earlier fleet file added and this one does not contain.
    #[serde(default)]
    prune: bool,
    /// The request comes from a fleet file: a later one may prune what it adds.
    #[serde(default)]
    fleet: bool,
}

/// Create or update a scope and its VMs
///
/// With `If-None-Match: *` the scope is only created, not updated.
#[utoipa::path(put, path = "/scopes/{subscription}/{group}/{scope}", tag = "scopes", params(ScopeParams, PutQuery), request_body = wire::ScopeSpec, responses((status = 200, body = wire::ScopeOutcome)))]
pub async fn put(
    mut caller_view: CallerView,
    parts: ScopeParts,
    Params(query): Params<PutQuery>,
    change: Change,
) -> ApiResult<wire::ScopeOutcome> {
    let path = path(parts)?;
    let permit = caller_view.permit_at(Role::Operator, &path)?;
    let command = ScopeChange::Put(described(path.clone(), &query, &change.body()?)?);
    Ok(outcome(path, caller_view.ask(change, Ok((permit, command))).await?))
}

/// The change that a scope of a fleet file asks for, which removes nothing.
pub fn from_fleet_file(path: ScopePath, spec: &wire::ScopeSpec) -> Result<PutScope, Problem> {
    described(path, &PutQuery { prune: false, fleet: true }, spec)
}

fn described(path: ScopePath, query: &PutQuery, spec: &wire::ScopeSpec) -> Result<PutScope, Problem> {
    Ok(PutScope {
        path,
        kind: present::kind(&spec.kind)?,
        policy: policy(&spec.policy),
        origin: if query.fleet { Origin::Fleet } else { Origin::Call },
        vms: spec.vms.iter().map(vm_spec).collect::<Result<_, _>>()?,
        prune: query.prune,
    })
}

/// Query of `DELETE`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RemoveQuery {
    /// Remove only VMs that a fleet file added. The scope stays if it has others.
    #[serde(default)]
    fleet: bool,
}

/// Remove a scope and its VMs immediately, without events
#[utoipa::path(delete, path = "/scopes/{subscription}/{group}/{scope}", tag = "scopes", params(ScopeParams, RemoveQuery), responses((status = 200, body = wire::ScopeOutcome)))]
pub async fn remove(
    mut caller_view: CallerView,
    parts: ScopeParts,
    Params(query): Params<RemoveQuery>,
    change: Change,
) -> ApiResult<wire::ScopeOutcome> {
    let path = path(parts)?;
    let permit = caller_view.permit_at(Role::Operator, &path)?;
    let command = ScopeChange::Remove { scope: path.id(), fleet_only: query.fleet };
    Ok(outcome(path, caller_view.ask(change, Ok((permit, command))).await?))
}

/// Plan a `PUT`, or a `DELETE` if there is no body, and change nothing
///
/// To apply exactly this plan, send its `revision` with the change (`If-Match`, or `If-None-Match: *` for 0).
#[utoipa::path(post, path = "/scopes/{subscription}/{group}/{scope}/plan", tag = "scopes", params(ScopeParams, PutQuery), request_body = Option<wire::ScopeSpec>, responses((status = 200, body = ScopePlan)))]
pub async fn plan(
    mut caller_view: CallerView,
    parts: ScopeParts,
    Params(query): Params<PutQuery>,
    change: Change,
) -> ApiResult<ScopePlan> {
    let path = path(parts)?;
    let permit = caller_view.permit_at(Role::Operator, &path)?;
    let planned = match change.has_body() {
        true => ScopeChange::Put(described(path, &query, &change.body()?)?),
        false => ScopeChange::Remove { scope: path.id(), fleet_only: query.fleet },
    };
    let (by, if_revision) = change.actor_and_revision();
    let plan = caller_view
        .query(permit, move |engine, now| engine.plan_scope(&by, &planned, if_revision, now))
        .await?;
    Ok(Json(shown_plan(&caller_view, &plan)))
}

fn shown_plan(caller_view: &CallerView, plan: &notbefore_engine::ScopePlan) -> ScopePlan {
    let fields = |fields: &[FieldChange]| fields.iter().map(field).collect();
    let names = |names: &[Name]| names.iter().map(Name::to_string).collect();
    ScopePlan {
        scope: plan.path.to_string(),
        revision: plan.revision.0,
        removed: plan.removed,
        policy: fields(&plan.policy),
        added_vms: names(&plan.added_vms),
        changed_vms: plan
            .changed_vms
            .iter()
            .map(|vm| api::VmChange { name: vm.name.to_string(), fields: fields(&vm.fields) })
            .collect(),
        removed_vms: names(&plan.removed_vms),
        vms: plan.vms,
        // The example VM may be in a scope that the caller does not see.
        ended: plan.ended.iter().filter(|event| caller_view.can_see(&event.scope.id())).map(ended).collect(),
        taken: plan
            .taken
            .iter()
            .map(|taken| api::TakenAddress {
                vm: taken.vm.to_string(),
                address: taken.address.to_string(),
                owner: caller_view.scope_of(taken.owner).ok().map(|scope| names::path(scope, taken.owner)),
            })
            .collect(),
    }
}

fn field(change: &FieldChange) -> api::FieldChange {
    let FieldChange { field, from, to } = change.clone();
    api::FieldChange { field, from, to }
}

fn ended(event: &EndedEvent) -> api::EndedEvent {
    api::EndedEvent {
        event: event.event.0,
        scope: event.scope.to_string(),
        event_type: event.cause.event_type().wire_name(),
        status: event.phase.wire_name(),
        vms: event.resources.iter().map(Name::to_string).collect(),
    }
}

fn outcome(path: ScopePath, done: Progress) -> Json<wire::ScopeOutcome> {
    let Progress { created, added, changed, removed, .. } = done;
    Json(wire::ScopeOutcome { scope: path.to_string(), created, added, changed, removed })
}

fn policy(policy: &wire::Policy) -> Policy {
    Policy {
        automatically_approve_reboot: policy.automatically_approve_reboot,
        automatically_approve_redeploy: policy.automatically_approve_redeploy,
        terminate_notice_s: policy.terminate_notification_seconds,
    }
}

/// Checks the name of a host or zone.
pub fn checked_location(text: &str) -> Result<String, Problem> {
    is_location(text).then(|| text.to_owned()).ok_or_else(|| {
        let limit = format!(
            "1 to {LOCATION_CHARS_MAX} characters, none of them a control character, does not begin with '-', and is not '.' or '..'"
        );
        Problem::bad_request("bad_place", format!("a host or zone has {limit}"))
    })
}

/// Checks the description of a VM and gives the VM an id, which is used if the VM is new.
pub fn vm_spec(spec: &wire::VmSpec) -> Result<VmSpec, Problem> {
    let instance = spec.instance.as_ref().map(serde_json::to_value).transpose();
    let instance = instance.map_err(|error| Problem::bad_request("bad_instance", error.to_string()))?;
    Ok(VmSpec {
        vm: VmId(Uuid::new_v4()),
        name: Name::parse_new(&spec.name).map_err(notbefore_core::Refusal::Name)?,
        update_domain: spec.update_domain,
        fault_domain: spec.fault_domain,
        zone: spec.zone.as_deref().map(checked_location).transpose()?,
        host: spec.host.as_deref().map(checked_location).transpose()?,
        spot: spec.spot,
        addresses: spec.addresses.iter().map(|text| address(text)).collect::<Result<_, _>>()?,
        instance: instance.unwrap_or_default(),
    })
}

fn address(text: &str) -> Result<Address, Problem> {
    let (network, ip) = text.rsplit_once('/').unwrap_or(("default", text));
    let network = network.parse::<Name>().map_err(notbefore_core::Refusal::Name)?;
    let ip = ip.parse::<std::net::IpAddr>().map_err(|_| {
        let detail = format!("{text:?} is no address; write 10.0.0.4, or network/10.0.0.4");
        Problem::bad_request("bad_address", detail)
    })?;
    Ok(Address { network, ip: ip.to_canonical() })
}
