//! `notbefore agent history`: the last events, from the file in the state directory.

use std::io;

use anyhow::{Result, anyhow, bail};
use notbefore_agent::history::{self, PastEvent, StepEnd};

use super::state_dir;
use crate::args::{AgentHistory, Output};
use crate::output::{self, Rows, or_dash};
use crate::time;

pub fn run(args: &AgentHistory, output: Output) -> Result<()> {
    let state = state_dir(&args.dir)?;
    let shown = state.display();
    let mut events = history::read(&state).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            anyhow!("no agent has used {shown}; name its state directory with --state")
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            anyhow!(
                "this user may not read the history: run this as root, or as the agent's user, who owns {shown}"
            )
        } else {
            anyhow!("cannot read the history in {shown}: {error}")
        }
    })?;
    let Some(wanted) = &args.event else {
        return output.answer(&events, |events| list(events));
    };
    let wanted = wanted.to_lowercase();
    events.retain(|event| event.id.to_lowercase().starts_with(&wanted));
    let exact = events.iter().find(|event| event.id.len() == wanted.len());
    match (exact, events.as_slice()) {
        (Some(event), _) | (None, [event]) => output.answer(event, show),
        (None, []) => bail!("the history has no event {wanted}; 'notbefore agent history' lists them"),
        (None, several) => bail!("{} events begin with {wanted}; give more of the id", several.len()),
    }
}

fn list(events: &[PastEvent]) -> Result<()> {
    let table = Rows(events).columns(&[
        ("EVENT", &|event| event.id.clone()),
        ("TYPE", &|event| event.r#type.clone()),
        ("SEEN", &|event| time::from_now(event.first_at)),
        ("RULE", &|event| or_dash(event.rule.as_deref())),
        ("STEPS", &steps),
        ("OUTCOME", &outcome),
        ("CHANGED", &|event| time::from_now(event.last_at)),
    ]);
    table.print("no events")
}

/// `3 done, 1 failed`: attempts by their end.
fn steps(event: &PastEvent) -> String {
    let ends = [StepEnd::Done, StepEnd::Failed, StepEnd::Stopped, StepEnd::Interrupted, StepEnd::Running];
    let counts = ends.map(|end| (end, event.steps.iter().filter(|step| step.outcome == end).count()));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = counts.map(|(end, count)| format!("{count} {}", end.as_str())).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn outcome(event: &PastEvent) -> String {
    event.outcome.replace('_', " ")
}

fn show(event: &PastEvent) -> Result<()> {
    let rule = event.rule.as_ref().map_or("no rule".to_owned(), |rule| format!("rule {rule}"));
    output::line(&format!("{} {}: {rule}, {}", event.r#type, event.id, outcome(event)))?;
    let table = Rows(&event.facts)
        .columns(&[("AT", &|fact| fact.at.to_string()), ("WHAT", &|fact| fact.text.clone())]);
    table.print("no facts")
}
