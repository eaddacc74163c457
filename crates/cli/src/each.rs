//! One change for each of several ids, as in `event start ID…`. A refused id does not stop the others.

use std::collections::HashSet;

use anyhow::{Context, Error, Result, anyhow};
use serde::Serialize;

use crate::args::Output;
use crate::client::Refused;
use crate::{many, output};

/// Fewest digits of a shortened id. A shorter or empty one may be a mistake in a script.
pub const SHORT_ID_MIN: usize = 4;

/// Names in their order, each once; upper and lower case are the same.
pub fn unique(names: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    names.iter().filter(|name| seen.insert(name.to_ascii_lowercase())).cloned().collect()
}

/// Ids in their order, each once. An id that begins with another one is the same; the service refuses a beginning that
/// several ids have.
pub fn unique_ids(ids: &[String]) -> Vec<String> {
    let ids = unique(ids);
    let begins = |id: &str, short: &str| {
        let start = id.get(..short.len()).filter(|_| short.len() >= SHORT_ID_MIN && short.len() < id.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(short))
    };
    ids.iter().filter(|id| !ids.iter().any(|short| begins(id, short))).cloned().collect()
}

/// Makes the change for each id in order and shows each result; as JSON, all results in one array. Fails at the end, with
/// the reason of each refused id. An error that is not a refusal, such as a lost connection, would be the same for the
/// ids that follow: they are left out, and the error says so.
pub fn each<T: Serialize>(
    ids: &[String],
    output: Output,
    change: impl Fn(&str) -> Result<T>,
    show: impl Fn(&T) -> Result<()>,
) -> Result<()> {
    each_or_totals(ids, output, change, show, None)
}

/// Lines about all results.
pub type Totals<T> = fn(&[T]) -> Vec<String>;

/// The same; for many ids, `totals` of all results in place of each.
pub fn each_or_totals<T: Serialize>(
    ids: &[String],
    output: Output,
    change: impl Fn(&str) -> Result<T>,
    show: impl Fn(&T) -> Result<()>,
    totals: Option<Totals<T>>,
) -> Result<()> {
    each_name(&unique_ids(ids), output, change, show, totals)
}

/// The same for exact names, without those that are given again.
pub fn each_name<T: Serialize>(
    names: &[String],
    output: Output,
    change: impl Fn(&str) -> Result<T>,
    show: impl Fn(&T) -> Result<()>,
    totals: Option<Totals<T>>,
) -> Result<()> {
    let totals = totals.filter(|_| many::shows_totals(names.len(), output));
    let (mut done, mut failed): (Vec<T>, Vec<Failure<'_>>) = (Vec::new(), Vec::new());
    for name in names {
        match change(name) {
            Ok(one) => {
                if output.is_text() && totals.is_none() {
                    show(&one).with_context(|| {
                        format!("{name} and those before it are done, those after it are not")
                    })?;
                }
                done.push(one);
            }
            Err(error) => {
                let is_refused = error.is::<Refused>();
                failed.push((name, error));
                if !is_refused {
                    break;
                }
            }
        }
    }
    let shown = output.answer(&done, |done| match totals {
        Some(totals) if !done.is_empty() => output::lines(&totals(done)),
        Some(_) | None => Ok(()),
    });
    if done.is_empty() {
        shown?
    } else {
        shown.context(output::CHANGED)?
    }
    summary(names.len(), done.len(), failed)
}

/// What several ids name, for a plan. An id that cannot be shown is reported and left out; the change refuses it again.
/// Fails if no id is left.
pub fn planned<T>(ids: &[String], get: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    planned_names(&unique_ids(ids), get)
}

/// The same for exact names, without those that are given again.
pub fn planned_names<T>(names: &[String], get: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let (mut found, mut failed): (Vec<T>, Vec<Failure<'_>>) = (Vec::new(), Vec::new());
    for name in names {
        match get(name) {
            Ok(one) => found.push(one),
            Err(error) if names.len() == 1 => return Err(error),
            Err(error) => failed.push((name, error)),
        }
    }
    reasons(&failed).iter().for_each(|line| output::eprint(&format!("notbefore: {line}")));
    match found.is_empty() {
        true => Err(anyhow!("none of the {} can be changed", names.len())),
        false => Ok(found),
    }
}

/// A name or id, and why it is not changed.
type Failure<'a> = (&'a String, Error);

fn summary(all: usize, done: usize, mut failed: Vec<Failure<'_>>) -> Result<()> {
    if all == 1 {
        return failed.pop().map_or(Ok(()), |(_, error)| Err(error));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let reasons: String = reasons(&failed).iter().map(|line| format!("\n  {line}")).collect();
    let untried = match all - done - failed.len() {
        0 => String::new(),
        some => format!(", {some} not tried"),
    };
    Err(anyhow!("{} of {all} failed, {done} done{untried}:{reasons}", failed.len()))
}

/// A line for each failure. If there are many: the first of each code, and the number of the others with that code.
fn reasons(failed: &[Failure<'_>]) -> Vec<String> {
    let line = |(name, error): &Failure<'_>| format!("{name}: {error:#}");
    if failed.len() <= many::SHOWN_MAX {
        return failed.iter().map(line).collect();
    }
    let mut by_code: Vec<(&str, Vec<&Failure<'_>>)> = Vec::new();
    for failure in failed {
        let code = failure.1.downcast_ref::<Refused>().map_or("", |refused| refused.code.as_str());
        match by_code.iter_mut().find(|(known, _)| *known == code) {
            Some((_, failures)) => failures.push(failure),
            None => by_code.push((code, vec![failure])),
        }
    }
    let share = (many::SHOWN_MAX / by_code.len()).max(1);
    let lines = |(code, failures): &(&str, Vec<&Failure<'_>>)| {
        let more = failures.len().saturating_sub(share);
        let more = (more > 0).then(|| format!("and {more} more ({code})"));
        failures.iter().take(share).map(|failure| line(failure)).chain(more).collect::<Vec<_>>()
    };
    by_code.iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn run(ids: &[&str]) -> (Vec<String>, String) {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        let shown = RefCell::new(Vec::new());
        let change = |id: &str| match id {
            "refused" => Err(Refused::sample("it has ended").into()),
            "lost" => Err(anyhow!("no connection")),
            id => Ok(id.to_owned()),
        };
        let show = |id: &String| {
            shown.borrow_mut().push(id.clone());
            Ok(())
        };
        let result = each(&ids, Output::Table, change, show);
        (shown.into_inner(), result.err().map_or_else(String::new, |error| error.to_string()))
    }

    #[test]
    fn id_and_its_beginning_count_once() {
        let unique = |ids: &[&str]| unique_ids(&ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>());
        assert_eq!(unique(&["abcd-1", "x", "ABCD"]), ["x", "ABCD"]);
        assert_eq!(unique(&["abcd-1", "abcd-2", "abcd-1"]), ["abcd-1", "abcd-2"]);
        // These are refused, and take no other id with them.
        assert_eq!(unique(&["", "abc", "abcd-1"]), ["", "abc", "abcd-1"]);
    }

    #[test]
    fn refused_id_does_not_stop_others() {
        let rows: [(&[&str], &[&str], &str); 7] = [
            (&["a", "b"], &["a", "b"], ""),
            (&["a", "A", "a"], &["a"], ""),
            (&["refused", "refused"], &[], "it has ended (sample)"),
            (&["refused"], &[], "it has ended (sample)"),
            (&["a", "refused", "b"], &["a", "b"], "1 of 3 failed, 2 done:\n  refused: it has ended (sample)"),
            (&["lost"], &[], "no connection"),
            (&["a", "lost", "b"], &["a"], "1 of 3 failed, 1 done, 1 not tried:\n  lost: no connection"),
        ];
        for (ids, shown, error) in rows {
            let shown: Vec<String> = shown.iter().map(|&id| id.to_owned()).collect();
            assert_eq!(run(ids), (shown, error.to_owned()), "{ids:?}");
        }
    }

    #[test]
    fn many_refusals_are_grouped_by_code() {
        let ids: Vec<String> = (0..400).map(|number| format!("id-{number:04}")).collect();
        let change = |id: &str| -> Result<()> {
            match id.ends_with('7') {
                true => Err(Error::from(Refused::sample("it has ended")).context("step")),
                false => {
                    let mut refused = Refused::sample("it has started");
                    refused.code = "started".to_owned();
                    Err(refused.into())
                }
            }
        };
        let text = each(&ids, Output::Table, change, |()| Ok(())).unwrap_err().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "400 of 400 failed, 0 done:");
        assert_eq!(lines[1], "  id-0000: it has started (started)");
        assert_eq!(lines[11], "  and 350 more (started)");
        assert_eq!(lines[12], "  id-0007: step: it has ended (sample)");
        assert_eq!((lines[22], lines.len()), ("  and 30 more (sample)", 23), "{text}");
    }
}
