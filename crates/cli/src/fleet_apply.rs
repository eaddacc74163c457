//! `notbefore fleet apply`: applies the scopes of a file in parallel, one request per scope.
//!
//! - Apply is idempotent: after an interruption, applying the file again finishes it.
//! - A refused scope does not stop the others. An error that affects all scopes does, such as an unreachable service or
//!   a full disk.
//! - A VM may move between scopes of the file. Its address is free only after its old scope is applied, so scopes
//!   refused with `address_taken` are retried at the end.
//! - With `--prune` it carries out a plan ([`crate::fleet_plan`]). Each write carries the planned revision of its
//!   scope.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use hyper::StatusCode;
use notbefore_wire::operator::ScopeOutcome;
use notbefore_wire::operator::fleet::ScopePlan;
use notbefore_wire::text::counted;
use serde::Serialize;

use crate::args::Output;
use crate::client::{Client, Refused, has_code};
use crate::fleet_file::FileScope;
use crate::fleet_plan::{self, FleetPlan, RefusedScope};
use crate::http::REQUESTS_AT_ONCE;
use crate::output;
use crate::progress::Progress;

/// Up to this many scopes get a line each; for more, only refusals and the totals are printed.
pub const REPORTED_MAX: usize = 200;

/// Interval of progress lines without a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions {
    /// Whether to remove VMs that an earlier file created and this one does not name.
    pub prune: bool,
    pub report_progress: bool,
    pub output: Output,
}

impl ApplyOptions {
    pub fn progress_interval(&self) -> Option<Duration> {
        self.report_progress.then_some(PROGRESS_INTERVAL)
    }
}

/// Results so far, by the scope's index in the file.
#[derive(Default)]
struct ApplyState {
    outcomes: BTreeMap<usize, ScopeOutcome>,
    refused: BTreeMap<usize, Error>,
    /// Index of the next scope to report: reports are in the file's order, results are not.
    next: usize,
    /// Whether scopes refused with `address_taken` have been retried.
    has_retried: bool,
}

/// Applies all scopes and the plan's removals. Without a plan nothing is
/// removed and every scope is sent. With a plan, unchanged scopes are skipped, and a scope that changed since the plan
/// is refused. If a scope is refused, prints the result and fails.
pub fn apply(
    client: &Client,
    scopes: &[FileScope],
    plan: FleetPlan,
    options: ApplyOptions,
) -> Result<Applied> {
    let report = options.output.is_text() && scopes.len() <= REPORTED_MAX;
    let FleetPlan { named, unnamed, refused } = plan;
    let mut state = ApplyState { refused, ..ApplyState::default() };
    let unchanged = named.iter().filter(|(_, plan)| plan.is_empty());
    state.outcomes.extend(unchanged.map(|(index, plan)| (*index, fleet_plan::outcome(plan))));
    let put = |index: usize| {
        let revision = named.get(&index).map(|plan| plan.revision);
        let path = fleet_plan::at(&scopes[index].display(), &format!("?fleet=true&prune={}", options.prune));
        client.put_at(&path, &scopes[index].spec, revision).map_err(explain_conflict)
    };
    let to_do: Vec<usize> = (0..scopes.len()).filter(|index| !state.is_settled(*index)).collect();
    let vms = |index: usize| scopes.get(index).map_or(0, |scope| scope.spec.vms.len()) as u64;
    let progress = Progress::for_fleet(to_do.len() as u64, options.progress_interval());
    in_parallel(
        &to_do,
        |index| put(*index),
        |nth, outcome| {
            let index = to_do.get(nth).copied().unwrap_or_default();
            state.keep(index, outcome)?;
            progress.add(vms(index));
            if report { progress.suspend(|| state.report(scopes, &named)) } else { Ok(()) }
        },
    )
    .map_err(|error| {
        let (done, all) = (state.outcomes.len(), scopes.len());
        let all = counted(all, "scope");
        error.context(format!("{done} of {all} applied; apply the file again for the rest"))
    })?;
    state.retry_taken_addresses(&put);
    // A pruned scope may free an address that a refused scope needs.
    let mut pruned = ApplyState::default();
    if state.refused.values().all(is_address_taken) {
        pruned = prune(client, &unnamed)?;
        state.retry_taken_addresses(&put);
    }
    state.has_retried = true;
    drop(progress);
    if report {
        state.report(scopes, &named)?;
    }
    let mut totals = Totals::default();
    totals.scopes.refused = state.refused.len() + pruned.refused.len();
    state.outcomes.values().for_each(|outcome| totals.add(outcome, false));
    pruned.outcomes.iter().for_each(|(index, outcome)| totals.add(outcome, unnamed[*index].removed));
    if options.output.is_text() {
        pruned.report_pruned(&unnamed)?;
        output::line(&totals.to_string())?;
    }
    let of_file = state.refused.iter().map(|(index, error)| (scopes[*index].display(), error));
    let of_prune = pruned.refused.iter().map(|(index, error)| (unnamed[*index].scope.clone(), error));
    let refusal = |(scope, error): (String, &Error)| RefusedScope { scope, reason: format!("{error:#}") };
    let refused: Vec<RefusedScope> = of_file.chain(of_prune).map(refusal).collect();
    for RefusedScope { scope, reason } in &refused {
        output::eprint(&format!("{scope}: {reason}"));
    }
    let errors: Vec<&Error> = state.refused.values().chain(pruned.refused.values()).collect();
    let all = counted(scopes.len() + unnamed.len(), "scope");
    let outcomes = state.outcomes.into_values().chain(pruned.outcomes.into_values()).collect();
    let applied = Applied { scopes: outcomes, refused, totals };
    let are_all = |is: fn(&Error) -> bool| errors.iter().all(|error| is(error));
    let why = match errors.len() {
        0 => return Ok(applied),
        some if are_all(|error| has_code(error, REVISION_DIFFERS)) => {
            format!("{some} of {all} changed since the plan was made; run it again")
        }
        some if are_all(is_role_missing) => {
            let refused = state.refused.keys().map(|index| &scopes[*index].path);
            let on = common_path(refused);
            format!(
                "{some} of {all} refused: this token may not change them; use one with the role operator there (an operator creates it with 'notbefore token create NAME --role operator --on {on}')"
            )
        }
        some => format!("{some} of {all} refused; fix the file and apply it again"),
    };
    options.output.answer_change(&applied, |_| Ok(()))?;
    bail!(why)
}

/// Removes the VMs that files created, and each scope without other VMs.
fn prune(client: &Client, unnamed: &[ScopePlan]) -> Result<ApplyState> {
    let mut pruned = ApplyState::default();
    let remove = |plan: &ScopePlan| {
        let removed = client.delete_at(&fleet_plan::at(&plan.scope, "?fleet=true"), Some(plan.revision));
        removed.map_err(explain_conflict)
    };
    in_parallel(unnamed, remove, |index, outcome| pruned.keep(index, outcome))?;
    Ok(pruned)
}

/// Error code of a scope that changed since its plan was made.
const REVISION_DIFFERS: &str = "revision_differs";
const PLAN_DIFFERS: &str = "plan_differs";

/// Rewords a revision conflict for a user who has seen a plan.
pub fn explain_conflict(error: Error) -> Error {
    match error.downcast::<Refused>() {
        Ok(refused) if [REVISION_DIFFERS, PLAN_DIFFERS].contains(&refused.code.as_str()) => {
            refused.with_detail("it has changed since the plan was made; run it again").into()
        }
        Ok(refused) => refused.into(),
        Err(error) => error,
    }
}

impl ApplyState {
    /// Records the result of a scope. An error that is not about this scope is returned and ends the apply.
    fn keep(&mut self, index: usize, outcome: Result<ScopeOutcome>) -> Result<()> {
        match outcome {
            Ok(outcome) => drop(self.outcomes.insert(index, outcome)),
            Err(error) if is_scope_error(&error) => drop(self.refused.insert(index, error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reports the pruned scopes.
    fn report_pruned(&self, unnamed: &[ScopePlan]) -> Result<()> {
        if self.outcomes.len() > REPORTED_MAX {
            let vms: usize = self.outcomes.values().map(|outcome| outcome.removed).sum();
            let (scopes, vms) = (counted(self.outcomes.len(), "scope"), counted(vms, "VM"));
            return output::line(&format!("{scopes} not in the file: {vms} removed"));
        }
        for (index, outcome) in &self.outcomes {
            let plan = &unnamed[*index];
            let what = match (plan.removed, outcome.removed, plan.vms) {
                (true, _, _) => "removed".to_owned(),
                (false, removed, left) => {
                    format!("{removed} removed, {left} kept (not created by a file)")
                }
            };
            output::line(&format!("{}: {what}{}", outcome.scope, ended(plan)))?;
        }
        Ok(())
    }

    /// Whether a scope needs no request.
    fn is_settled(&self, index: usize) -> bool {
        self.outcomes.contains_key(&index) || self.refused.contains_key(&index)
    }

    /// Retries scopes refused with `address_taken` until a round frees no address.
    fn retry_taken_addresses(&mut self, put: &dyn Fn(usize) -> Result<ScopeOutcome>) {
        let mut freed = true;
        while freed {
            freed = false;
            for index in self.refused_for_address() {
                match put(index) {
                    Ok(outcome) => {
                        self.refused.remove(&index);
                        self.outcomes.insert(index, outcome);
                        freed = true;
                    }
                    Err(error) => drop(self.refused.insert(index, error)),
                }
            }
        }
    }

    /// Reports results in order, up to the first scope still in progress.
    fn report(&mut self, scopes: &[FileScope], plans: &BTreeMap<usize, ScopePlan>) -> Result<()> {
        while self.next < scopes.len() {
            match self.outcomes.get(&self.next) {
                Some(outcome) => {
                    let ended = plans.get(&self.next).map_or_else(String::new, ended);
                    output::line(&format!("{}{ended}", line(outcome)))?;
                }
                None => match self.refused.get(&self.next) {
                    // Refusals are printed at the end.
                    Some(error) if self.has_retried || !is_address_taken(error) => {}
                    Some(_) | None => return Ok(()),
                },
            }
            self.next += 1;
        }
        Ok(())
    }

    fn refused_for_address(&self) -> Vec<usize> {
        let taken = self.refused.iter().filter(|(_, error)| is_address_taken(error));
        taken.map(|(index, _)| *index).collect()
    }
}

/// Suffix with the number of live events that the plan ended.
fn ended(plan: &ScopePlan) -> String {
    match plan.ended.len() {
        0 => String::new(),
        some => format!("; {} ended", counted(some, "live event")),
    }
}

/// Whether the token lacks a role: it sees the scope, or it does not even see it.
fn is_role_missing(error: &Error) -> bool {
    has_code(error, "not_permitted") || has_code(error, "unknown_scope")
}

/// The longest path that contains all scopes; `PATH` if there is none below `/`.
fn common_path<'a>(mut paths: impl Iterator<Item = &'a [String; 3]>) -> String {
    let mut common: Vec<&String> = paths.next().into_iter().flatten().collect();
    for path in paths {
        let same = common.iter().zip(path).take_while(|(one, two)| one.eq_ignore_ascii_case(two)).count();
        common.truncate(same);
    }
    match common.is_empty() {
        true => "PATH".to_owned(),
        false => common.iter().map(|part| part.as_str()).collect::<Vec<_>>().join("/"),
    }
}

fn is_address_taken(error: &Error) -> bool {
    has_code(error, "address_taken")
}

/// Whether an error is about one scope only; other errors would affect every scope.
pub fn is_scope_error(error: &Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    refused.is_some_and(|one| one.status.is_client_error() && one.status != StatusCode::UNAUTHORIZED)
}

/// Runs `work` for each item on [`REQUESTS_AT_ONCE`] threads and passes results to `see`; stops when `see` fails.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut see: impl FnMut(usize, R) -> Result<()>,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, outcomes) = mpsc::channel();
    std::thread::scope(|threads| {
        for _ in 0..REQUESTS_AT_ONCE.min(items.len()) {
            let (done, next, stop, work) = (done.clone(), &next, &stop, &work);
            threads.spawn(move || {
                while !stop.load(Relaxed) {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if done.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let seen = outcomes.iter().try_for_each(|(index, outcome)| see(index, outcome));
        stop.store(true, Relaxed);
        seen
    })
}

fn line(outcome: &ScopeOutcome) -> String {
    let ScopeOutcome { scope, created, added, changed, removed } = outcome;
    let parts = parts(&[(*added, "added"), (*changed, "changed"), (*removed, "removed")]);
    match (created, parts.is_empty()) {
        (true, _) => format!("{scope}: created, {}", counted(*added, "VM")),
        (false, true) => format!("{scope}: unchanged"),
        (false, false) => format!("{scope}: {parts}"),
    }
}

/// What an apply did; its JSON output.
#[derive(Serialize)]
pub struct Applied {
    /// In the file's order, then scopes that are not in it.
    scopes: Vec<ScopeOutcome>,
    refused: Vec<RefusedScope>,
    totals: Totals,
}

/// All outcomes in one line.
#[derive(Default, Serialize)]
struct Totals {
    scopes: ScopeTotals,
    vms: VmTotals,
}

#[derive(Default, Serialize)]
struct ScopeTotals {
    created: usize,
    changed: usize,
    removed: usize,
    unchanged: usize,
    refused: usize,
}

#[derive(Default, Serialize)]
struct VmTotals {
    added: usize,
    changed: usize,
    removed: usize,
}

impl Totals {
    fn add(&mut self, outcome: &ScopeOutcome, is_removed: bool) {
        let ScopeOutcome { created, added, changed, removed, .. } = outcome;
        let count = match (created, is_removed, added + changed + removed) {
            (true, _, _) => &mut self.scopes.created,
            (false, true, _) => &mut self.scopes.removed,
            (false, false, 0) => &mut self.scopes.unchanged,
            (false, false, _) => &mut self.scopes.changed,
        };
        *count += 1;
        self.vms.added += added;
        self.vms.changed += changed;
        self.vms.removed += removed;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScopeTotals { created, changed, removed, unchanged, refused } = self.scopes;
        let scopes = counted(created + changed + removed + unchanged + refused, "scope");
        let of_scopes = parts(&[
            (created, "created"),
            (changed, "changed"),
            (removed, "removed"),
            (unchanged, "unchanged"),
            (refused, "refused"),
        ]);
        let of_scopes = if of_scopes.is_empty() { "nothing to do".to_owned() } else { of_scopes };
        let VmTotals { added, changed, removed } = self.vms;
        let of_vms = parts(&[(added, "added"), (changed, "changed"), (removed, "removed")]);
        let of_vms = if of_vms.is_empty() { of_vms } else { format!("; VMs: {of_vms}") };
        write!(f, "{scopes}: {of_scopes}{of_vms}")
    }
}

pub fn parts(counts: &[(usize, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_outcomes_are_summarised() {
        let one = |created, added, changed| ScopeOutcome {
            scope: "s".to_owned(),
            created,
            added,
            changed,
            removed: 0,
        };
        let outcomes = [one(true, 3, 0), one(false, 0, 2), one(false, 0, 0), one(false, 0, 0)];
        let totals = |outcomes: &[ScopeOutcome], refused| {
            let mut totals = Totals::default();
            totals.scopes.refused = refused;
            outcomes.iter().for_each(|outcome| totals.add(outcome, false));
            totals.to_string()
        };
        assert_eq!(
            totals(&outcomes, 0),
            "4 scopes: 1 created, 1 changed, 2 unchanged; VMs: 3 added, 2 changed"
        );
        assert_eq!(totals(&outcomes[2..], 1), "3 scopes: 2 unchanged, 1 refused");
        assert_eq!(totals(&outcomes[2..3], 0), "1 scope: 1 unchanged");
        assert_eq!(totals(&[], 0), "0 scopes: nothing to do");
        let mut pruned = Totals::default();
        pruned.add(&ScopeOutcome { removed: 2, ..one(false, 0, 0) }, true);
        assert_eq!(pruned.to_string(), "1 scope: 1 removed; VMs: 2 removed");
        assert_eq!(line(&outcomes[1]), "s: 2 changed");
    }

    #[test]
    fn common_path_of_scopes_is_suggested_for_a_role() {
        let path = |text: &str| {
            let mut parts = text.split('/').map(str::to_owned);
            std::array::from_fn(|_| parts.next().unwrap())
        };
        let common =
            |texts: &[&str]| common_path(texts.iter().map(|text| path(text)).collect::<Vec<_>>().iter());
        assert_eq!(common(&["acme/shop/web"]), "acme/shop/web");
        assert_eq!(common(&["acme/shop/web", "ACME/shop/db"]), "acme/shop");
        assert_eq!(common(&["acme/shop/web", "acme/shop/db", "acme/blog/web"]), "acme");
        assert_eq!(common(&["acme/shop/web", "other/shop/web"]), "PATH");
    }
}
