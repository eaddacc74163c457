//! `notbefore fleet apply`: makes scope after scope as a file describes it, several at a time.
//!
//! A scope is one request, and each is whole by itself, so an apply that was cut short is finished by applying
//! the file again: what is as described is only looked at. One scope that is refused does not keep the others
//! from being made. What is not an answer, though, a service that has gone or whose disk is full, ends the
//! apply, since all others would meet the same.
//!
//! A VM may move from one scope to another in the same file. Then its address is free only when the scope it
//! leaves has been seen to, so whoever finds an address taken is asked again at the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use notbefore_wire::operator::ScopeOutcome;
use ureq::http::StatusCode;

use crate::args::Output;
use crate::client::{Client, Refused, encode};
use crate::fleet_file::FileScope;
use crate::output;
use crate::progress::Progress;

/// How many requests are under way at a time. The service commits what comes together with one sync, so more
/// of them make better use of each; past a dozen or so there is nothing left to gain.
pub const REQUESTS_AT_ONCE: usize = 16;

/// Up to so many scopes each one is reported by itself; of more, only what was refused and a sum.
pub const REPORTED_MAX: usize = 200;

/// How often a line says how far it has come where there is no terminal to show it at.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// How to apply.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether VMs that an earlier file made and this one does not name are removed.
    pub prune: bool,
    /// Whether to say now and then how far it has come.
    pub tell: bool,
    /// How the outcome is shown.
    pub output: Output,
}

/// What has come of the scopes, by their place in the file.
#[derive(Default)]
struct Ledger {
    outcomes: BTreeMap<usize, ScopeOutcome>,
    refused: BTreeMap<usize, Error>,
    /// The next to be reported, so that the report is in the file's order whoever is done first.
    next: usize,
    /// Whether those that found an address taken have been asked again.
    asked_again: bool,
}

/// Makes all scopes as described. Answers what was done to each, in the file's order.
pub fn apply(client: &Client, scopes: &[FileScope], manner: Manner) -> Result<Vec<ScopeOutcome>> {
    let report = manner.output == Output::Table && scopes.len() <= REPORTED_MAX;
    let mut ledger = Ledger::default();
    let mut progress = Progress::of_a_fleet(scopes.len() as u64, manner.tell.then_some(TOLD_EVERY));
    several_at_a_time(
        scopes,
        |scope| put(client, scope, manner.prune),
        |index, outcome| {
            let vms = scopes.get(index).map_or(0, |scope| scope.spec.vms.len());
            match outcome {
                Ok(outcome) => drop(ledger.outcomes.insert(index, outcome)),
                Err(error) if concerns_one(&error) => drop(ledger.refused.insert(index, error)),
                Err(error) => return Err(error),
            }
            progress.add(vms as u64);
            if report { progress.aside(|| ledger.report(scopes)) } else { Ok(()) }
        },
    )
    .map_err(|error| {
        let (done, all) = (ledger.outcomes.len(), scopes.len());
        error.context(format!("{done} of {all} scopes are as described; apply the file again for the others"))
    })?;
    for index in ledger.with_addresses_taken() {
        if let Ok(outcome) = put(client, &scopes[index], manner.prune) {
            ledger.refused.remove(&index);
            ledger.outcomes.insert(index, outcome);
        }
    }
    ledger.asked_again = true;
    drop(progress);
    if report {
        ledger.report(scopes)?;
    }
    for (index, error) in &ledger.refused {
        eprintln!("{}: {error:#}", scopes[*index].display());
    }
    if manner.output == Output::Table && !report {
        output::line(&sum(ledger.outcomes.values()))?;
    }
    if !ledger.refused.is_empty() {
        if manner.output == Output::Json {
            output::json(&ledger.outcomes.into_values().collect::<Vec<_>>())?;
        }
        bail!(
            "{} of {} scopes were refused; mend the file and apply it again",
            ledger.refused.len(),
            scopes.len()
        );
    }
    Ok(ledger.outcomes.into_values().collect())
}

impl Ledger {
    /// Reports what has come of the scopes up to the first that is still under way.
    fn report(&mut self, scopes: &[FileScope]) -> Result<()> {
        while self.next < scopes.len() {
            match self.outcomes.get(&self.next) {
                Some(outcome) => output::line(&line(outcome))?,
                None => match self.refused.get(&self.next) {
                    // What is refused is told at the end.
                    Some(error) if self.asked_again || !found_an_address_taken(error) => {}
                    Some(_) | None => return Ok(()),
                },
            }
            self.next += 1;
        }
        Ok(())
    }

    fn with_addresses_taken(&self) -> Vec<usize> {
        let taken = self.refused.iter().filter(|(_, error)| found_an_address_taken(error));
        taken.map(|(index, _)| *index).collect()
    }
}

fn found_an_address_taken(error: &Error) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == "address_taken")
}

/// Whether an error is about this scope; any other would be met by all the others too.
fn concerns_one(error: &Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    refused.is_some_and(|one| one.status.is_client_error() && one.status != StatusCode::UNAUTHORIZED)
}

/// Does the work for each item, several at a time, and shows what came of it to `see`, until that fails.
pub fn several_at_a_time<T: Sync, R: Send>(
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

fn put(client: &Client, scope: &FileScope, prune: bool) -> Result<ScopeOutcome> {
    let [subscription, group, name] = scope.path.each_ref().map(|part| encode(part));
    let path = format!("/v1/scopes/{subscription}/{group}/{name}?fleet=true&prune={prune}");
    client.put(&path, &scope.spec)
}

fn line(outcome: &ScopeOutcome) -> String {
    let ScopeOutcome { scope, created, added, changed, removed } = outcome;
    let parts = parts(&[(*added, "added"), (*changed, "changed"), (*removed, "removed")]);
    match (created, parts.is_empty()) {
        (true, _) if *added == 1 => format!("{scope}: created, 1 VM"),
        (true, _) => format!("{scope}: created, {added} VMs"),
        (false, true) => format!("{scope}: unchanged"),
        (false, false) => format!("{scope}: {parts}"),
    }
}

/// Many outcomes in one line.
fn sum<'a>(outcomes: impl Iterator<Item = &'a ScopeOutcome>) -> String {
    let (mut scopes, mut created, mut unchanged, mut changed_scopes) = (0, 0, 0, 0);
    let (mut added, mut changed, mut removed) = (0, 0, 0);
    for one in outcomes {
        scopes += 1;
        match (one.created, one.added + one.changed + one.removed) {
            (true, _) => created += 1,
            (false, 0) => unchanged += 1,
            (false, _) => changed_scopes += 1,
        }
        added += one.added;
        changed += one.changed;
        removed += one.removed;
    }
    let of_scopes = parts(&[(created, "created"), (changed_scopes, "changed"), (unchanged, "unchanged")]);
    let of_vms = parts(&[(added, "added"), (changed, "changed"), (removed, "removed")]);
    match of_vms.is_empty() {
        true => format!("{scopes} scopes: {of_scopes}"),
        false => format!("{scopes} scopes: {of_scopes}; VMs: {of_vms}"),
    }
}

fn parts(counts: &[(usize, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_outcomes_are_summed_up() {
        let one = |created, added, changed| ScopeOutcome {
            scope: "s".to_owned(),
            created,
            added,
            changed,
            removed: 0,
        };
        let outcomes = [one(true, 3, 0), one(false, 0, 2), one(false, 0, 0), one(false, 0, 0)];
        assert_eq!(
            sum(outcomes.iter()),
            "4 scopes: 1 created, 1 changed, 2 unchanged; VMs: 3 added, 2 changed"
        );
        assert_eq!(sum(outcomes[2..].iter()), "2 scopes: 2 unchanged");
        assert_eq!(line(&outcomes[1]), "s: 2 changed");
    }
}
