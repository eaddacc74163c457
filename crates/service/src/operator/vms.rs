//! `/v1/vms`.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use notbefore_core::{Cause, Member, Refusal, Role, ScopePath, VmId};
use notbefore_engine::{AddVm, VmCommand};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::natural;
use notbefore_wire::operator as wire;
use notbefore_wire::operator::vm_log::VmLog;
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::Change;
use super::events::announce;
use super::pages::{self, PageQuery, Params};
use super::path::Path;
use super::problem::{ApiResult, Problem};
use super::visibility::CallerView;
use super::{cursor, present};
use crate::view::ScopeView;

/// A revision as an ETag.
pub fn etag(revision: u64) -> [(HeaderName, String); 1] {
    [(header::ETAG, format!("\"{revision}\""))]
}

/// Query of the list of VMs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only VMs of this scope.
    scope: Option<String>,
    /// Only VMs on this host.
    host: Option<String>,
    /// Items per page; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List VMs, sorted by scope and name: digits compare by value
#[utoipa::path(get, path = "/vms", tag = "vms", params(ListQuery), responses((status = 200, body = wire::Page<wire::Vm>)))]
pub async fn list(
    caller_view: CallerView,
    Params(query): Params<ListQuery>,
) -> ApiResult<wire::Page<wire::Vm>> {
    let ListQuery { scope, host, limit, cursor } = query;
    caller_view.check_host_filter(host.as_deref())?;
    let page = PageQuery { limit, cursor };
    let (limit, after) = (page.limit(), page.after()?);
    let only = caller_view.only_scope(scope.as_deref())?;
    // A cursor is `scope|name`, both in lower case: the last VM shown.
    let after = pages::in_scope(after.as_deref())?;
    let from = only.clone().or(pages::scope(after.map(|(scope, _)| scope))?);

    // VMs of a host come from an index; otherwise scan the scopes.
    let found: Box<dyn Iterator<Item = (&Arc<ScopeView>, Vec<&Member>)> + Send> = match &host {
        Some(host) => Box::new(caller_view.on_host(host, from.as_ref())),
        None => {
            let scopes = caller_view.scopes(pages::from(from.as_ref()));
            Box::new(scopes.map(|(_, scope)| (scope, scope.scope.members.iter().collect())))
        }
    };
    let revision = caller_view.revision;
    let mut items = Vec::new();
    let mut last = None;
    for (scope, members) in found {
        let id = scope.scope.id();
        if only.as_ref().is_some_and(|only| *only != id) {
            break;
        }
        let mut members: Vec<_> = members.into_iter().map(|member| (member.name.folded(), member)).collect();
        members.sort_by(|(one, _), (two, _)| natural::compare(one, two));
        for (folded, member) in members {
            let is_shown = |name| natural::compare(&folded, name).is_le();
            if after.is_some_and(|(scope, name)| id.as_str() == scope && is_shown(name)) {
                continue;
            }
            if items.len() == limit {
                return Ok(Json(wire::Page { items, next: last, revision }));
            }
            items.extend(caller_view.show_vm(scope, member.vm));
            last = Some(cursor::encode(&format!("{id}|{folded}")));
        }
    }
    if let (Some(host), true) = (&host, items.is_empty()) {
        caller_view.check_host(host)?;
    }
    Ok(Json(wire::Page { items, next: None, revision }))
}

/// Show a VM
#[utoipa::path(get, path = "/vms/{vm}", tag = "vms", params(("vm" = String, Path, description = "Its id, or the end of its path")), responses((status = 200, body = wire::Vm)))]
pub async fn show(caller_view: CallerView, Path(vm): Path<String>) -> Result<Response, Problem> {
    shown(&caller_view, caller_view.vm(&vm)?)
}

fn shown(caller_view: &CallerView, vm: VmId) -> Result<Response, Problem> {
    let scope = caller_view.scope_of(vm)?;
    let shown = caller_view.show_vm(scope, vm).ok_or(Refusal::UnknownVm(vm))?;
    Ok((etag(scope.revision), Json(shown)).into_response())
}

/// Show what a VM asked for lately: refused requests, approvals, first reads, and which clients poll
///
/// The log is in memory and begins with the start of the service. It has at most 32 entries a VM.
#[utoipa::path(get, path = "/vms/{vm}/log", tag = "vms", params(("vm" = String, Path, description = "Its id, or the end of its path")), responses((status = 200, body = VmLog)))]
pub async fn log(caller_view: CallerView, Path(vm): Path<String>) -> ApiResult<VmLog> {
    let vm = caller_view.vm(&vm)?;
    Ok(Json(caller_view.vm_log(caller_view.scope_of(vm)?, vm)))
}

/// Query of a VM's document.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DocumentQuery {
    /// The api-version; the newest by default.
    #[serde(rename = "api-version")]
    #[param(rename = "api-version")]
    api_version: Option<String>,
}

/// Show the document of scheduled events that a VM reads
///
/// The same bytes that the guest listener sends, at any of the api-versions. It does not count as a read.
#[utoipa::path(get, path = "/vms/{vm}/document", tag = "vms", params(("vm" = String, Path, description = "Its id, or the end of its path"), DocumentQuery), responses((status = 200, description = "The document", body = Object)))]
pub async fn document(
    caller_view: CallerView,
    Path(vm): Path<String>,
    Params(DocumentQuery { api_version }): Params<DocumentQuery>,
) -> Result<Response, Problem> {
    let vm = caller_view.vm(&vm)?;
    let version = match &api_version {
        None => EventsVersion::NEWEST,
        Some(text) => EventsVersion::parse(text).ok_or_else(|| {
            let known = EventsVersion::ALL.map(|version| version.to_string()).join(", ");
            let detail = format!("api-version {text:?} is not one of {known}");
            Problem::bad_request("bad_api_version", detail)
        })?,
    };
    let document = caller_view.scope_of(vm)?.document(version);
    Ok(([(header::CONTENT_TYPE, "application/json; charset=utf-8")], document).into_response())
}

/// Add a VM
#[utoipa::path(post, path = "/vms", tag = "vms", request_body = wire::AddVm, responses((status = 201, body = wire::Vm)))]
pub async fn add(mut caller_view: CallerView, change: Change) -> Result<Response, Problem> {
    let wire::AddVm { scope, kind, vm } = change.body()?;
    let path = scope.as_deref().unwrap_or(&vm.name).parse::<ScopePath>().map_err(Refusal::Name)?;
    let permit = caller_view.permit_at(Role::Operator, &path)?;
    let kind = kind.as_ref().map(present::kind).transpose()?;
    let add = AddVm { path, kind, vm: super::scopes::vm_spec(&vm)? };
    let vm = caller_view.ask(change, Ok((permit, add))).await?;
    // The VM may have been removed between the first request and its retry.
    let gone = |_| {
        Problem::new(StatusCode::GONE, "vm_gone", format!("VM {vm} was added and has been removed since"))
    };
    let shown = shown(&caller_view, vm).map_err(gone)?;
    Ok((StatusCode::CREATED, shown).into_response())
}

/// Remove a VM from the inventory immediately, without an event
#[utoipa::path(delete, path = "/vms/{vm}", tag = "vms", params(("vm" = String, Path, description = "Its id, or the end of its path")), responses((status = 204)))]
pub async fn remove(
    mut caller_view: CallerView,
    Path(vm): Path<String>,
    change: Change,
) -> Result<StatusCode, Problem> {
    let vm = caller_view.vm(&vm);
    let command =
        vm.and_then(|vm| Ok((caller_view.permit_on_vm(Role::Operator, vm)?, VmCommand::Remove(vm))));
    caller_view.ask(change, command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Act on a VM as its owner
///
/// `start` returns the VM; the other actions schedule an event and return the operation. `POST /v1/events` with
/// `dry_run` and a cause returns the plan of such an action.
#[utoipa::path(post, path = "/vms/{vm}/{verb}", tag = "vms", params(("vm" = String, Path, description = "Its id, or the end of its path"), ("verb" = inline(wire::VmVerb), Path)), request_body = Option<wire::VmAction>, responses((status = 200, description = "For `start`: the VM", body = wire::Vm), (status = 201, description = "For other actions: the new operation", body = wire::Operation)))]
pub async fn act(
    mut caller_view: CallerView,
    Path((vm, verb)): Path<(String, wire::VmVerb)>,
    change: Change,
) -> Result<Response, Problem> {
    let cause = match verb {
        wire::VmVerb::Restart => Cause::UserRestart,
        wire::VmVerb::Redeploy => Cause::UserRedeploy,
        wire::VmVerb::Evict => Cause::Eviction,
        wire::VmVerb::Delete => Cause::Deletion,
        wire::VmVerb::Start => {
            let vm = caller_view.vm(&vm)?;
            let permit = caller_view.permit_on_vm(Role::Operator, vm)?;
            caller_view.ask(change, Ok((permit, VmCommand::Start(vm)))).await?;
            return shown(&caller_view, vm);
        }
        wire::VmVerb::Unknown(verb) => {
            let detail =
                format!("a VM has no {verb:?}; there are restart, redeploy, evict, delete and start");
            return Err(Problem::not_found("unknown_verb", detail));
        }
    };
    let wire::VmAction { not_before, force } = change.body_or_default()?;
    let request =
        wire::ScheduleEvents { vms: vec![vm], not_before, force, ..wire::ScheduleEvents::default() };
    announce(caller_view, Ok(cause), request, change).await
}
