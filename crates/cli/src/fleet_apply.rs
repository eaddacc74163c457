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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use hyper::StatusCode;
use notbefore_wire::operator::ScopeOutcome;
use notbefore_wire::operator::fleet::ScopePlan;

use crate::args::Output;
use crate::client::{Client, Refused, has_code};
use crate::fleet_file::FileScope;
use crate::fleet_plan::{self, FleetPlan};
use crate::http::REQUESTS_AT_ONCE;
use crate::output;
use crate::progress::Progress;

/// Up to this many scopes get a line each; for more, only refusals and a summary are printed.
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

/// Applies all scopes and the plan's removals; returns the outcomes in the file's order. Without a plan nothing is
/// removed and every scope is sent. With a plan, unchanged scopes are skipped, and a scope that changed since the plan
/// is refused.
pub fn apply(
    client: &Client,
    scopes: &[FileScope],
    plan: FleetPlan,
    options: ApplyOptions,
) -> Result<Vec<ScopeOutcome>> {
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
    let mut progress = Progress::for_fleet(to_do.len() as u64, options.progress_interval());
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
        error.context(format!("{done} of {all} scopes are applied; apply the file again for the rest"))
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
    if options.output.is_text() {
        if !report {
            output::line(&summary(state.outcomes.values()))?;
        }
        pruned.report_pruned(&unnamed)?;
    }
    for (index, error) in &state.refused {
        output::eprint(&format!("{}: {error:#}", scopes[*index].display()));
    }
    for (index, error) in &pruned.refused {
        output::eprint(&format!("{}: {error:#}", unnamed[*index].scope));
    }
    let errors: Vec<&Error> = state.refused.values().chain(pruned.refused.values()).collect();
    let all = scopes.len() + unnamed.len();
    let outcomes = state.outcomes.into_values().chain(pruned.outcomes.into_values()).collect();
    let why = match (errors.len(), errors.iter().all(|error| has_code(error, REVISION_DIFFERS))) {
        (0, _) => return Ok(outcomes),
        (some, true) => format!("{some} of {all} scopes have changed since the plan was made; run it again"),
        (some, false) => format!("{some} of {all} scopes were refused; fix the file and apply it again"),
    };
    options.output.answer(&outcomes, |_| Ok(()))?;
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
            let scopes = self.outcomes.len();
            return output::line(&format!("{scopes} scopes not in the file: {vms} VMs removed"));
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
        1 => "; 1 live event ended".to_owned(),
        some => format!("; {some} live events ended"),
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
        (true, _) => format!("{scope}: created, {}", fleet_plan::of_vms(*added)),
        (false, true) => format!("{scope}: unchanged"),
        (false, false) => format!("{scope}: {parts}"),
    }
}

/// All outcomes in one line.
fn summary<'a>(outcomes: impl Iterator<Item = &'a ScopeOutcome>) -> String {
    let outcomes: Vec<&ScopeOutcome> = outcomes.collect();
    let vms = |of: fn(&ScopeOutcome) -> usize| outcomes.iter().map(|one| of(one)).sum::<usize>();
    let of_vms = [vms(|one| one.added), vms(|one| one.changed), vms(|one| one.removed)];
    let created = outcomes.iter().filter(|one| one.created).count();
    let is_same = |one: &&&ScopeOutcome| !one.created && one.added + one.changed + one.removed == 0;
    let (scopes, unchanged) = (outcomes.len(), outcomes.iter().filter(is_same).count());
    let changed = scopes - created - unchanged;
    let of_scopes = parts(&[(created, "created"), (changed, "changed"), (unchanged, "unchanged")]);
    match parts(&[(of_vms[0], "added"), (of_vms[1], "changed"), (of_vms[2], "removed")]) {
        none if none.is_empty() => format!("{scopes} scopes: {of_scopes}"),
        of_vms => format!("{scopes} scopes: {of_scopes}; VMs: {of_vms}"),
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
        assert_eq!(
            summary(outcomes.iter()),
            "4 scopes: 1 created, 1 changed, 2 unchanged; VMs: 3 added, 2 changed"
        );
        assert_eq!(summary(outcomes[2..].iter()), "2 scopes: 2 unchanged");
        assert_eq!(line(&outcomes[1]), "s: 2 changed");
    }
}
