//! `[[rule.before]]` and `[[rule.after]]`: parses and validates steps.

use std::collections::BTreeSet;
use std::time::Duration;

use notbefore_settings::{Reader, Table, span, suggest};

use super::keys::{ACTIONS, STEP, WEBHOOK, WRITE_FILE};
use super::kinds::{
    Argv, CONTENT, FULL_PATH, Headers, METHOD, NAME, ON_FAILURE, ON_INTERRUPT, RETRIES, SOME_TIME, SPAN,
    TEXT, UNIT, URL,
};
use crate::hooks::variables::{VARIABLES, unknown_names};
use crate::machine::io::Stage;
use crate::rules::{OnFailure, OnInterrupt, Step, StepAction, Webhook};

/// Most steps in a list: they run one after the other, usually within 15 minutes.
const STEPS_MAX: usize = 100;
/// Default timeout of an attempt before an event; NotBefore limits it anyway.
const TIMEOUT_BEFORE: Duration = Duration::from_secs(3_600);
/// Default timeout of an attempt after an event.
const TIMEOUT_AFTER: Duration = Duration::from_secs(300);
/// Default timeout of a `wait` step beyond its time.
const WAIT_MARGIN: Duration = Duration::from_secs(60);
/// Default pause between attempts, and between runs of `wait_for`.
const REST: Duration = Duration::from_secs(1);

pub fn read(reader: &mut Reader<'_>, rule: &Table<'_, '_>, stage: Stage) -> Vec<Step> {
    let list = stage.as_str();
    let tables = reader.many(rule, list, &STEP);
    if let Some(table) = tables.get(STEPS_MAX) {
        reader.wrong(
            table.at,
            format!("rule.{list} has more than {STEPS_MAX} steps; combine some in a script"),
        );
    }
    let mut names = BTreeSet::new();
    let mut steps = Vec::new();
    for (place, table) in tables.iter().take(STEPS_MAX).enumerate() {
        let name = reader.value(table, "name", &NAME).unwrap_or_else(|| (place + 1).to_string());
        if !names.insert(name.clone()) {
            let two = format!("there are two steps {name:?} in this list; rename one");
            reader.wrong_key(table, "name", &two);
        }
        steps.extend(step(reader, table, stage, name));
    }
    steps
}

fn step(reader: &mut Reader<'_>, table: &Table<'_, '_>, stage: Stage, name: String) -> Option<Step> {
    let does = action(reader, table);
    let timeout = timeout(reader, table, stage, does.as_ref());
    let keep = reader.value(table, "keep", &SPAN);
    if stage == Stage::After && keep.is_some() {
        let unbounded = "steps after an event have no deadline to reserve time from; leave it out";
        reader.wrong_key(table, "keep", unbounded);
    }
    let waits_for = does.as_ref().is_none_or(|action| matches!(action, StepAction::WaitFor { .. }));
    if table.has("every") && !waits_for {
        reader.wrong_key(table, "every", "only wait_for repeats; leave it out");
    }
    Some(Step {
        name,
        timeout,
        keep: keep.unwrap_or_default(),
        retries: reader.value(table, "retries", &RETRIES).unwrap_or(0),
        retry_delay: reader.value(table, "retry_delay", &SPAN).unwrap_or(REST),
        on_failure: reader.value(table, "on_failure", &ON_FAILURE).unwrap_or(OnFailure::Withhold),
        on_interrupt: reader.value(table, "on_interrupt", &ON_INTERRUPT).unwrap_or(OnInterrupt::Rerun),
        does: does?,
    })
}

fn timeout(
    reader: &mut Reader<'_>,
    table: &Table<'_, '_>,
    stage: Stage,
    does: Option<&StepAction>,
) -> Duration {
    let usual = match stage {
        Stage::Before => TIMEOUT_BEFORE,
        Stage::After => TIMEOUT_AFTER,
    };
    let waits =
        does.and_then(|action| if let StepAction::Wait { time } = action { Some(*time) } else { None });
    let written = reader.value(table, "timeout", &SOME_TIME);
    if let (Some(timeout), Some(time)) = (written, waits)
        && timeout < time
    {
        let time = span::show(time.as_secs());
        let short = format!("a wait of {time} exceeds it; leave it out, or increase it");
        reader.wrong_key(table, "timeout", &short);
    }
    written.unwrap_or_else(|| usual.max(waits.map_or(Duration::ZERO, |time| time + WAIT_MARGIN)))
}

/// The one action of a step.
fn action(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> Option<StepAction> {
    let written: Vec<&str> = ACTIONS.into_iter().filter(|action| table.has(action)).collect();
    let [one] = written.as_slice() else {
        let what = match written.as_slice() {
            [] => format!("a step has no action; give it one of {}", ACTIONS.join(", ")),
            several => format!("a step has one action, not {}; split it", several.join(" and ")),
        };
        reader.wrong(table.at, what);
        return None;
    };
    match *one {
        "command" => reader.value(table, "command", &Argv).map(|argv| StepAction::Command { argv }),
        "shell" => reader.value(table, "shell", &TEXT).map(|line| StepAction::Shell { line }),
        "stop_unit" => reader.value(table, "stop_unit", &UNIT).map(|unit| StepAction::StopUnit { unit }),
        "start_unit" => reader.value(table, "start_unit", &UNIT).map(|unit| StepAction::StartUnit { unit }),
        "remove_file" => {
            reader.value(table, "remove_file", &FULL_PATH).map(|path| StepAction::RemoveFile { path })
        }
        "wait" => reader.value(table, "wait", &SPAN).map(|time| StepAction::Wait { time }),
        "wait_for" => {
            // A zero pause would start the program in a busy loop.
            let every = reader.value(table, "every", &SOME_TIME).unwrap_or(REST);
            reader.value(table, "wait_for", &Argv).map(|argv| StepAction::WaitFor { argv, every })
        }
        "write_file" => {
            let inner = reader.inner(table, "write_file", &WRITE_FILE)?;
            let path = reader.needed(&inner, "path", &FULL_PATH)?;
            let content = template(reader, &inner, "content").unwrap_or_default();
            Some(StepAction::WriteFile { path, content })
        }
        _ => {
            let inner = reader.inner(table, "webhook", &WEBHOOK)?;
            let url = reader.needed(&inner, "url", &URL)?;
            let method = reader.value(&inner, "method", &METHOD).unwrap_or_else(|| "POST".to_owned());
            let headers = reader.value(&inner, "headers", &Headers).unwrap_or_default();
            let body = template(reader, &inner, "body");
            Some(StepAction::Webhook(Webhook { url, method, headers, body }))
        }
    }
}

/// Text with variables. An unknown name in the form of a variable is a typo.
fn template(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: &str) -> Option<String> {
    let text = reader.value(table, name, &CONTENT)?;
    for unknown in unknown_names(&text) {
        let meant = suggest::nearest(unknown, VARIABLES.iter().map(|(known, _)| *known));
        let cure = meant.map_or_else(String::new, |meant| format!("; did you mean {{{meant}}}?"));
        reader.wrong_key(table, name, &format!("there is no variable {{{unknown}}}{cure}"));
    }
    Some(text)
}
