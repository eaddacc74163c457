//! The fleet file of `serve --fleet`, applied at every start before guests are answered.
//!
//! It adds and changes, and never removes: a start with an old or a shorter file must not delete VMs. A scope that is
//! refused does not stop the service, which has to serve the others. The log names it.

use std::collections::HashSet;
use std::ops::Bound;
use std::path::PathBuf;

use futures_util::{StreamExt, stream};
use notbefore_core::{Actor, Origin, Prefix, Refusal, ScopePath};
use notbefore_engine::{Failure, Progress, PutScope, Request, ScopeChange};
use notbefore_wire::operator::ScopeSpec;
use notbefore_wire::text::counted;

use crate::operator::scopes::from_fleet_file;
use crate::runtime::EngineHandle;
use crate::view::View;

/// Changes at a time: they share commits.
const CHANGES_AT_ONCE: usize = 16;
/// Most refused scopes that the log names.
const REFUSED_NAMED_MAX: usize = 20;

/// A fleet file without mistakes.
#[derive(Clone, Debug)]
pub struct FleetFile {
    /// Its name, for messages.
    pub name: PathBuf,
    /// Its scopes.
    pub scopes: Vec<FleetScope>,
}

/// A scope of the file.
#[derive(Clone, Debug)]
pub struct FleetScope {
    /// Subscription, group, scope.
    pub path: [String; 3],
    /// Its description.
    pub spec: ScopeSpec,
}

/// Counts of what was applied.
#[derive(Default)]
struct Applied {
    created: usize,
    changed: usize,
    unchanged: usize,
    vms_added: usize,
    vms_changed: usize,
    /// Paths of refused scopes, with the reason.
    refused: Vec<(String, String)>,
}

impl Applied {
    fn count(&mut self, progress: Progress) {
        let Progress { created, added, changed, removed: _, seen: _ } = progress;
        match (created, added + changed) {
            (true, _) => self.created += 1,
            (false, 0) => self.unchanged += 1,
            (false, _) => self.changed += 1,
        }
        self.vms_added += added;
        self.vms_changed += changed;
    }
}

/// Applies the file and logs the outcome. Fails only if the store does.
pub async fn apply(fleet: &FleetFile, engine: &EngineHandle) -> Result<(), Failure> {
    let mut applied = Applied::default();
    let mut pending = Vec::new();
    for FleetScope { path, spec } in &fleet.scopes {
        let path = path.join("/");
        let put = path.parse::<ScopePath>().map_err(|error| error.to_string());
        let put =
            put.and_then(|path| from_fleet_file(path, spec).map_err(|problem| problem.detail().to_owned()));
        match put {
            Ok(put) => pending.push(put),
            Err(why) => applied.refused.push((path, why)),
        }
    }
    // A VM may move between scopes of the file. Its address is free only after its old scope has changed, so scopes
    // refused for an address are tried again while that frees any.
    loop {
        let tried = pending.len();
        let taken = apply_once(pending, engine, &mut applied).await?;
        if taken.is_empty() || taken.len() == tried {
            let refused = taken.into_iter().map(|(put, why)| (put.path.to_string(), why.to_string()));
            applied.refused.extend(refused);
            break;
        }
        pending = taken.into_iter().map(|(put, _)| put).collect();
    }
    log(fleet, &applied);
    Ok(())
}

/// Applies scopes; returns those that need an address of another VM.
async fn apply_once(
    pending: Vec<PutScope>,
    engine: &EngineHandle,
    applied: &mut Applied,
) -> Result<Vec<(PutScope, Refusal)>, Failure> {
    let ask = |put: PutScope| async move {
        let request = Request::new(Actor::Service, ScopeChange::Put(put.clone()));
        (put, engine.ask(request).await)
    };
    let answers: Vec<_> = stream::iter(pending).map(ask).buffered(CHANGES_AT_ONCE).collect().await;
    let mut taken = Vec::new();
    for (put, answer) in answers {
        match answer {
            Ok(progress) => applied.count(progress),
            Err(Failure::Refused(why @ Refusal::AddressTaken { .. })) => taken.push((put, why)),
            Err(Failure::Refused(why)) => applied.refused.push((put.path.to_string(), why.to_string())),
            Err(failure @ (Failure::KeyReused | Failure::Unavailable(_) | Failure::OutcomeUnknown(_))) => {
                return Err(failure);
            }
        }
    }
    Ok(taken)
}

fn log(fleet: &FleetFile, applied: &Applied) {
    let file = fleet.name.display();
    let Applied { created, changed, unchanged, vms_added, vms_changed, refused } = applied;
    let refusals = refused.len();
    tracing::info!(
        "fleet file {file}: scopes: {created} created, {changed} changed, {unchanged} unchanged, {refusals} refused; VMs: {vms_added} added, {vms_changed} changed"
    );
    for (scope, why) in refused.iter().take(REFUSED_NAMED_MAX) {
        tracing::error!("fleet file {file}: scope {scope} was refused: {why}");
    }
    if let Some(more @ 1..) = refusals.checked_sub(REFUSED_NAMED_MAX) {
        tracing::error!(
            "fleet file {file}: {} refused; 'notbefore fleet diff {file}' lists all",
            counted(more, "more scope")
        );
    }
}

/// Logs which VMs and scopes of earlier files the file does not name, and the command that removes them.
pub fn log_leftovers(fleet: &FleetFile, view: &View) {
    let (scopes, vms) = leftovers(fleet, view);
    if scopes + vms > 0 {
        let file = fleet.name.display();
        tracing::warn!(
            "fleet file {file}: {} and {} of earlier files are not in it and stay; to remove them, run 'notbefore fleet apply {file} --prune', which shows them and asks first",
            counted(vms, "VM"),
            counted(scopes, "scope")
        );
    }
}

/// Numbers of scopes and VMs that a fleet file created and this one does not name.
fn leftovers(fleet: &FleetFile, view: &View) -> (usize, usize) {
    let folded = |path: &[String; 3]| path.join("/").to_ascii_lowercase();
    let scopes: HashSet<String> = fleet.scopes.iter().map(|scope| folded(&scope.path)).collect();
    let vms: HashSet<String> = fleet
        .scopes
        .iter()
        .flat_map(|scope| {
            let path = folded(&scope.path);
            scope.spec.vms.iter().map(move |vm| format!("{path}/{}", vm.name.to_ascii_lowercase()))
        })
        .collect();
    let (mut scopes_left, mut vms_left) = (0, 0);
    let root = Prefix::root();
    for (_, held) in view.scopes_below(&root, Bound::Unbounded) {
        let path = held.scope.path.to_string().to_ascii_lowercase();
        scopes_left += usize::from(held.scope.origin == Origin::Fleet && !scopes.contains(&path));
        let of_fleet = held.scope.members.iter().filter(|member| member.origin == Origin::Fleet);
        vms_left +=
            of_fleet.filter(|member| !vms.contains(&format!("{path}/{}", member.name.folded()))).count();
    }
    (scopes_left, vms_left)
}
