//! Plan of a fleet file, computed by the service per scope: shown by `notbefore fleet diff`, carried out by
//! `fleet apply --prune`.
//!
//! Each scope's plan has the scope's revision. A scope that changes before its plan is carried out is refused.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Error, Result, anyhow, bail};
use notbefore_settings::suggest::nearest;
use notbefore_wire::operator::fleet::{EndedEvent, FieldChange, ScopePlan, TakenAddress};
use notbefore_wire::operator::{EventStatus, Scope, ScopeOutcome};
use notbefore_wire::text::counted;
use serde::Serialize;

use crate::client::{Client, encode, has_code};
use crate::fleet_apply::{ApplyOptions, REPORTED_MAX, in_parallel, is_scope_error, parts};
use crate::fleet_file::FileScope;
use crate::progress::Progress;

/// Limit of VMs listed per scope and kind of change.
const VMS_NAMED_MAX: usize = 20;
/// Most scopes compared with an unknown one, for a suggestion.
const COMPARED_MAX: usize = 10_000;

#[derive(Default)]
pub struct FleetPlan {
    /// Scopes of the file, by index.
    pub named: BTreeMap<usize, ScopePlan>,
    /// With `--prune`: scopes that an earlier file created and this one does not name.
    pub unnamed: Vec<ScopePlan>,
    /// Scopes of the file that the service would refuse, by index.
    pub refused: BTreeMap<usize, Error>,
}

/// JSON output of a plan.
#[derive(Serialize)]
pub struct Shown<'a> {
    differs: bool,
    /// Only scopes that change.
    scopes: Vec<&'a ScopePlan>,
    unchanged: usize,
    refused: Vec<RefusedScope>,
}

#[derive(Serialize)]
pub struct RefusedScope {
    pub scope: String,
    pub reason: String,
}

/// The API path of a scope.
pub fn at(path: &str, rest: &str) -> String {
    let path: Vec<String> = path.split('/').map(encode).collect();
    format!("/v1/scopes/{}{rest}", path.join("/"))
}

/// The list of a scope; if it was refused because there is no such scope, the error names a similar one.
pub fn or_unknown_scope<T>(client: &Client, scope: Option<&str>, list: Result<T>) -> Result<T> {
    let (Some(scope), Err(error)) = (scope, &list) else { return list };
    let prefix = "default/".repeat(2_usize.saturating_sub(scope.matches('/').count()));
    if client.get::<Scope>(&at(&format!("{prefix}{scope}"), "")).is_ok() {
        return list;
    }
    let known: Vec<Scope> = client.list_first("/v1/scopes", &[], COMPARED_MAX)?;
    match similar_scope(scope, &prefix, known.iter().map(|scope| scope.path.as_str())) {
        Some(meant) => bail!("{error:#}; did you mean {meant}?"),
        None => list,
    }
}

/// The known path that was most likely meant: one that ends like the text, or almost. Written as short as it may be.
fn similar_scope<'a>(
    text: &str,
    default: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let parts = text.matches('/').count() + 1;
    let end = |path: &'a str| path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..]);
    let nearest = nearest(text, known.clone().map(end))?;
    let mut same = known.filter(|path| end(path).eq_ignore_ascii_case(&nearest));
    // A scope of the default group is the nearest of several.
    let found = same.clone().find(|path| path.starts_with(default)).or_else(|| same.next())?;
    Some(found.strip_prefix(default).unwrap_or(found).to_owned())
}

/// Requests the plan of every scope from the service.
pub fn make(client: &Client, scopes: &[FileScope], options: ApplyOptions) -> Result<FleetPlan> {
    let mut plan = FleetPlan::default();
    let progress = Progress::for_fleet(scopes.len() as u64, options.progress_interval());
    let query = format!("/plan?fleet=true&prune={}", options.prune);
    in_parallel(
        scopes,
        |scope| client.post::<ScopePlan>(&at(&scope.display(), &query), &scope.spec),
        |index, planned| {
            match planned {
                Ok(planned) => drop(plan.named.insert(index, planned)),
                Err(error) if is_scope_error(&error) => drop(plan.refused.insert(index, error)),
                Err(error) => return Err(error),
            }
            progress.add(scopes.get(index).map_or(0, |scope| scope.spec.vms.len()) as u64);
            Ok(())
        },
    )?;
    if options.prune {
        plan.unnamed = unnamed(client, scopes)?;
    }
    plan.refuse_taken_addresses();
    Ok(plan)
}

/// Plans of the scopes that an earlier file created and this one does not name.
fn unnamed(client: &Client, scopes: &[FileScope]) -> Result<Vec<ScopePlan>> {
    let named: HashSet<String> = scopes.iter().map(|scope| scope.display().to_ascii_lowercase()).collect();
    let mut there: Vec<Scope> = client.list("/v1/scopes", &[])?;
    there.retain(|scope| scope.from_fleet && !named.contains(&scope.path.to_ascii_lowercase()));
    let mut plans = BTreeMap::new();
    in_parallel(
        &there,
        |scope| client.post_empty::<ScopePlan>(&at(&scope.path, "/plan?fleet=true")),
        |index, plan| match plan {
            Ok(plan) => {
                plans.insert(index, plan);
                Ok(())
            }
            // Removed since it was listed.
            Err(error) if has_code(&error, "unknown_scope") => Ok(()),
            Err(error) => Err(error.context(there[index].path.clone())),
        },
    )?;
    Ok(plans.into_values().filter(|plan| !plan.is_empty()).collect())
}

impl FleetPlan {
    fn all(&self) -> impl Iterator<Item = &ScopePlan> {
        self.named.values().chain(&self.unnamed)
    }

    /// Whether VMs or scopes are removed.
    pub fn removes(&self) -> bool {
        self.all().any(ScopePlan::removes)
    }

    /// Refuses scopes that need an address which this plan does not free in another scope.
    fn refuse_taken_addresses(&mut self) {
        let mut given_up = HashSet::new();
        for plan in self.all().filter(|plan| !plan.is_empty()) {
            let changed = plan.changed_vms.iter();
            let moved = changed.filter(|vm| vm.fields.iter().any(|change| change.field == "addresses"));
            let names = plan.removed_vms.iter().chain(moved.map(|vm| &vm.name));
            given_up.extend(names.map(|name| format!("{}/{name}", plan.scope).to_ascii_lowercase()));
        }
        let stays = |taken: &&TakenAddress| {
            let owner = taken.owner.as_ref().map(|owner| owner.to_ascii_lowercase());
            owner.is_none_or(|owner| !given_up.contains(&owner))
        };
        let refused = self.named.iter().filter_map(|(index, plan)| {
            let TakenAddress { vm, address, owner } = plan.taken.iter().find(stays)?;
            let by = owner.as_ref().map_or_else(String::new, |owner| format!(" by {owner}"));
            Some((*index, anyhow!("address {address} of {vm} is taken{by}; choose another (address_taken)")))
        });
        let refused: BTreeMap<usize, Error> = refused.collect();
        self.named.retain(|index, _| !refused.contains_key(index));
        self.refused.extend(refused);
    }

    pub fn shown<'a>(&'a self, scopes: &[FileScope]) -> Shown<'a> {
        let changed: Vec<&ScopePlan> = self.all().filter(|plan| !plan.is_empty()).collect();
        Shown {
            differs: !changed.is_empty(),
            unchanged: self.all().count() - changed.len(),
            scopes: changed,
            refused: self.refusals(scopes).collect(),
        }
    }

    fn refusals(&self, scopes: &[FileScope]) -> impl Iterator<Item = RefusedScope> {
        self.refused.iter().map(|(index, error)| {
            let scope = scopes.get(*index).map_or_else(String::new, FileScope::display);
            RefusedScope { scope, reason: format!("{error:#}") }
        })
    }

    /// The plan as text, scopes with removals first, limited to [`REPORTED_MAX`] scopes.
    pub fn lines(&self, scopes: &[FileScope]) -> Vec<String> {
        let mut changed: Vec<&ScopePlan> = self.all().filter(|plan| !plan.is_empty()).collect();
        changed.sort_by_key(|plan| !plan.removes());
        let mut lines: Vec<String> =
            changed.iter().take(REPORTED_MAX).flat_map(|plan| scope_lines(plan)).collect();
        if changed.len() > REPORTED_MAX {
            let more = counted(changed.len() - REPORTED_MAX, "more scope");
            lines.push(format!("and {more}; --dry-run --output json shows all"));
        }
        // Several scopes' plans may remove the first-run VM; list its events once.
        let mut listed = HashSet::new();
        let ended = changed.iter().flat_map(|plan| &plan.ended).filter(|event| listed.insert(event.event));
        let ended: Vec<&EndedEvent> = ended.collect();
        lines.extend(ended.iter().take(REPORTED_MAX).map(|event| event_line(event)));
        if ended.len() > REPORTED_MAX {
            lines.push(format!("and {}", counted(ended.len() - REPORTED_MAX, "more live event")));
        }
        let refusal = |RefusedScope { scope, reason }| format!("! {scope}: refused: {reason}");
        lines.extend(self.refusals(scopes).map(refusal));
        lines.push(match (changed.is_empty(), self.refused.is_empty()) {
            (true, true) => format!("no differences in {}", counted(self.all().count(), "scope")),
            (_, _) => self.sum(ended.len()),
        });
        lines
    }

    /// One-line summary.
    fn sum(&self, events: usize) -> String {
        let scopes = |is: fn(&ScopePlan) -> bool| self.all().filter(|plan| is(plan)).count();
        let scopes = parts(&[
            (scopes(ScopePlan::creates), "created"),
            (scopes(|plan| !plan.creates() && !plan.removed && !plan.is_empty()), "changed"),
            (scopes(|plan| !plan.creates() && plan.removed), "removed"),
            (scopes(ScopePlan::is_empty), "unchanged"),
            (self.refused.len(), "refused"),
        ]);
        let vms = |of: fn(&ScopePlan) -> usize| self.all().map(of).sum();
        let vms = parts(&[
            (vms(|plan| plan.added_vms.len()), "added"),
            (vms(|plan| plan.changed_vms.len()), "changed"),
            (vms(|plan| plan.removed_vms.len()), "removed"),
        ]);
        let vms = if vms.is_empty() { vms } else { format!("; VMs: {vms}") };
        let events = if events == 0 { String::new() } else { format!("; live events: {events} ended") };
        format!("scopes: {scopes}{vms}{events}")
    }
}

/// The outcome that the service returns when the plan is carried out.
pub fn outcome(plan: &ScopePlan) -> ScopeOutcome {
    ScopeOutcome {
        scope: plan.scope.clone(),
        created: plan.creates(),
        added: plan.added_vms.len(),
        changed: plan.changed_vms.len(),
        removed: plan.removed_vms.len(),
    }
}

fn scope_lines(plan: &ScopePlan) -> Vec<String> {
    let ScopePlan { scope, removed, policy, added_vms, changed_vms, removed_vms, .. } = plan;
    let counts =
        parts(&[(added_vms.len(), "added"), (changed_vms.len(), "changed"), (removed_vms.len(), "removed")]);
    let counts = if counts.is_empty() { "settings changed".to_owned() } else { counts };
    let mut lines = vec![match (plan.creates(), removed) {
        (true, _) => format!("+ {scope}: created, {}", counted(added_vms.len(), "VM")),
        (false, true) => format!("- {scope}: removed, {}", counted(removed_vms.len(), "VM")),
        (false, false) => format!("~ {scope}: {counts}"),
    }];
    lines.extend(policy.iter().map(|change| format!("    ~ {}", field(change))));
    some(&mut lines, '-', removed_vms, Clone::clone);
    some(&mut lines, '~', changed_vms, |vm| {
        format!("{}: {}", vm.name, vm.fields.iter().map(field).collect::<Vec<_>>().join(", "))
    });
    some(&mut lines, '+', added_vms, Clone::clone);
    lines
}

fn some<T>(lines: &mut Vec<String>, mark: char, items: &[T], text: impl Fn(&T) -> String) {
    lines.extend(items.iter().take(VMS_NAMED_MAX).map(|item| format!("    {mark} {}", text(item))));
    if items.len() > VMS_NAMED_MAX {
        lines.push(format!("    {mark} and {} more", items.len() - VMS_NAMED_MAX));
    }
}

fn field(change: &FieldChange) -> String {
    match (&change.from, &change.to) {
        (None, None) => change.field.clone(),
        (from, to) => {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            format!("{} {} -> {}", change.field, value(from), value(to))
        }
    }
}

fn event_line(event: &EndedEvent) -> String {
    let what =
        if event.status == EventStatus::Started { "ends: all its VMs are removed" } else { "is cancelled" };
    let EndedEvent { event: id, scope, event_type, vms, .. } = event;
    let named = vms.iter().take(VMS_NAMED_MAX).cloned().collect::<Vec<_>>().join(",");
    format!("! event {id} ({event_type} of {named} in {scope}) {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_that_ends_like_the_text_is_suggested() {
        let known = ["acme/shop/front", "default/blog/api", "default/default/cache", "other/default/cache"];
        for (text, default, meant) in [
            ("frotn", "default/default/", Some("acme/shop/front")),
            ("front", "default/default/", Some("acme/shop/front")),
            ("shop/fornt", "default/", Some("acme/shop/front")),
            ("bolg/api", "default/", Some("blog/api")),
            ("cahce", "default/default/", Some("cache")),
            ("acme/shpo/front", "", Some("acme/shop/front")),
            ("something", "default/default/", None),
        ] {
            assert_eq!(similar_scope(text, default, known.into_iter()).as_deref(), meant, "{text}");
        }
    }
}
