//! `notbefore agent history`: the last events, from the file in the state directory.

use std::collections::BTreeMap;
use std::io;

use anyhow::{Result, anyhow, bail};
use notbefore_agent::history::{self, PastEvent, PastFact, StepEnd};
use notbefore_agent::machine::io::Stage;
use notbefore_agent::trust::Untrusted;

use super::{check_id, state_dir};
use crate::args::{AgentHistory, Output};
use crate::output::{self, or_dash};
use crate::table::Column;
use crate::time;

pub fn run(args: &AgentHistory, output: Output) -> Result<()> {
    let state = state_dir(&args.dir)?;
    let shown = state.display();
    let mut events = history::read(&state).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            anyhow!("no agent has used {shown}; name its state directory with --state")
        } else if Untrusted::is_for_all_users(&error) {
            anyhow!("{error}")
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            anyhow!(
                "this user may not read the history: run this as root, or as the agent's user, who owns {shown}"
            )
        } else {
            anyhow!("cannot read the history in {shown}: {error}")
        }
    })?;
    let Some(wanted) = &args.event else {
        return output.answer(&events, |events| list(events, output));
    };
    check_id(wanted)?;
    let wanted = wanted.to_lowercase();
    events.retain(|event| event.id.to_lowercase().starts_with(&wanted));
    let exact = events.iter().find(|event| event.id.len() == wanted.len());
    match (exact, events.as_slice()) {
        (Some(event), _) | (None, [event]) => output.answer(event, |event| show(event, output)),
        (None, []) => bail!("the history has no event {wanted}; 'notbefore agent history' lists them"),
        (None, several) => bail!("{} events begin with {wanted}; give more of the id", several.len()),
    }
}

fn list(events: &[PastEvent], output: Output) -> Result<()> {
    let columns = [
        Column::id("EVENT", &|event: &PastEvent| event.id.clone()),
        Column::new("TYPE", &|event| event.r#type.clone()),
        Column::optional("SEEN", &|event| time::from_now(event.first_at)),
        Column::text("RULE", &|event| or_dash(event.rule.as_deref())),
        Column::text("STEPS", &steps),
        Column::new("OUTCOME", &outcome),
        Column::optional("CHANGED", &|event| time::from_now(event.last_at)),
    ];
    output::text(&output.table(events, &columns, "no events"))
}

/// `3 done, 1 failed`: steps by the end of their newest attempt.
fn steps(event: &PastEvent) -> String {
    let newest: BTreeMap<(Stage, &str), StepEnd> =
        event.steps.iter().map(|attempt| ((attempt.stage, attempt.step.as_str()), attempt.outcome)).collect();
    let ends = [StepEnd::Done, StepEnd::Failed, StepEnd::Stopped, StepEnd::Interrupted, StepEnd::Running];
    let counts = ends.map(|end| (end, newest.values().filter(|outcome| **outcome == end).count()));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = counts.map(|(end, count)| format!("{count} {}", end.as_str())).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn outcome(event: &PastEvent) -> String {
    event.outcome.replace('_', " ")
}

fn show(event: &PastEvent, output: Output) -> Result<()> {
    let rule = event.rule.as_ref().map_or("no rule".to_owned(), |rule| format!("rule {rule}"));
    output::line(&format!("{} {}: {rule}, {}", event.r#type, event.id, outcome(event)))?;
    let columns = [
        Column::new("AT", &|fact: &PastFact| time::milliseconds(fact.at)),
        Column::text("WHAT", &|fact| time::in_text(&fact.text)),
    ];
    output::text(&output.table(&event.facts, &columns, "no facts"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use notbefore_agent::history::PastStep;

    use super::*;

    #[test]
    fn steps_count_by_their_newest_attempt() {
        let attempt = |stage, step: &str, outcome| PastStep {
            stage,
            step: step.to_owned(),
            attempt: None,
            begun_at: None,
            ended_at: None,
            outcome,
            reason: None,
        };
        let event = |steps| PastEvent {
            id: "A".to_owned(),
            r#type: "Reboot".to_owned(),
            rule: None,
            not_before: None,
            first_at: Timestamp::UNIX_EPOCH,
            last_at: Timestamp::UNIX_EPOCH,
            outcome: "restored".to_owned(),
            steps,
            facts: Vec::new(),
        };
        let attempts = vec![
            attempt(Stage::Before, "drain", StepEnd::Failed),
            attempt(Stage::Before, "drain", StepEnd::Interrupted),
            attempt(Stage::Before, "drain", StepEnd::Done),
            attempt(Stage::After, "drain", StepEnd::Failed),
        ];
        assert_eq!(steps(&event(attempts)), "1 done, 1 failed");
        assert_eq!(steps(&event(Vec::new())), "-");
    }
}
