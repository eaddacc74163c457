//! `[[rule.before]]` and `[[rule.after]]`: what is written becomes validated steps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::file::{Reader, Table};
use super::keys::{DEEDS, STEP, WEBHOOK, WRITE_FILE};
use super::rules::name;
use super::value::{Argv, Content, FullPath, Headers, Method, Retries, Url};
use crate::hooks::facts::{VARIABLES, unknown_names};
use crate::machine::io::Stage;
use crate::rules::{Deed, OnFailure, OnInterrupt, Step, Webhook};
use notbefore_settings::{span, suggest};

/// The most steps of a list: they run one after the other, within a quarter of an hour as a rule.
const STEPS_MAX: usize = 100;
/// How long an attempt before an event may take where nobody says: NotBefore bounds it anyway.
const TIMEOUT_BEFORE: Duration = Duration::from_secs(3_600);
/// The same after an event, where nothing else bounds it.
const TIMEOUT_AFTER: Duration = Duration::from_secs(300);
/// How much longer than a wait its timeout is where nobody says.
const WAIT_MARGIN: Duration = Duration::from_secs(60);
/// How long a step rests between attempts, and `wait_for` between looks.
const REST: Duration = Duration::from_secs(1);

/// Reads a list of steps.
pub fn read(reader: &mut Reader<'_>, rule: &Table<'_, '_>, stage: Stage) -> Vec<Step> {
    let list = match stage {
        Stage::Before => "before",
        Stage::After => "after",
    };
    let tables = reader.many(rule, list, &STEP);
    if let Some(table) = tables.get(STEPS_MAX) {
        reader.wrong(
            table.at,
            format!("rule.{list} has more than {STEPS_MAX} steps; let a script do some of them"),
        );
    }
    let mut names = BTreeSet::new();
    let mut steps = Vec::new();
    for (place, table) in tables.iter().take(STEPS_MAX).enumerate() {
        let name = name(reader, table).unwrap_or_else(|| (place + 1).to_string());
        if !names.insert(name.clone()) {
            let key = table.key("name");
            reader.wrong(
                table.at("name"),
                format!("{key}: there are two steps {name:?} in this list; rename one"),
            );
        }
        steps.extend(step(reader, table, stage, name));
    }
    steps
}

fn step(reader: &mut Reader<'_>, table: &Table<'_, '_>, stage: Stage, name: String) -> Option<Step> {
    let does = deed(reader, table);
    let timeout = timeout(reader, table, stage, does.as_ref());
    let keep: Option<Duration> = reader.value(table, "keep");
    if stage == Stage::After && keep.is_some() {
        reader.wrong(
            table.at("keep"),
            format!(
                "{}: nothing bounds the steps after an event, so there is nothing to keep; leave it out",
                table.key("keep")
            ),
        );
    }
    let waits_for = does.as_ref().is_none_or(|deed| matches!(deed, Deed::WaitFor { .. }));
    if table.has("every") && !waits_for {
        reader.wrong(
            table.at("every"),
            format!("{}: only wait_for looks again and again; leave it out", table.key("every")),
        );
    }
    let on_failure = match stage {
        Stage::Before => OnFailure::Withhold,
        Stage::After => OnFailure::GoOn,
    };
    Some(Step {
        name,
        timeout,
        keep: keep.unwrap_or_default(),
        retries: reader.value(table, "retries").map_or(0, |Retries(retries)| retries),
        retry_delay: reader.value(table, "retry_delay").unwrap_or(REST),
        on_failure: reader.value(table, "on_failure").unwrap_or(on_failure),
        on_interrupt: reader.value(table, "on_interrupt").unwrap_or(OnInterrupt::Rerun),
        does: does?,
    })
}

fn timeout(reader: &mut Reader<'_>, table: &Table<'_, '_>, stage: Stage, does: Option<&Deed>) -> Duration {
    let usual = match stage {
        Stage::Before => TIMEOUT_BEFORE,
        Stage::After => TIMEOUT_AFTER,
    };
    let waits = does.and_then(|deed| if let Deed::Wait { time } = deed { Some(*time) } else { None });
    let written: Option<Duration> = reader.value(table, "timeout");
    if written.is_some_and(|timeout| timeout.is_zero()) {
        reader.wrong(table.at("timeout"), format!("{}: expected at least 1s", table.key("timeout")));
    }
    if let (Some(timeout), Some(time)) = (written, waits)
        && timeout < time
    {
        let time = span::show(time.as_secs());
        reader.wrong(
            table.at("timeout"),
            format!(
                "{}: a wait of {time} cannot end within it; leave it out, or write more",
                table.key("timeout")
            ),
        );
    }
    written.unwrap_or_else(|| usual.max(waits.map_or(Duration::ZERO, |time| time + WAIT_MARGIN)))
}

/// What a step does: exactly one thing.
fn deed(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> Option<Deed> {
    let written: Vec<&str> = DEEDS.into_iter().filter(|deed| table.has(deed)).collect();
    let [one] = written.as_slice() else {
        let what = match written.as_slice() {
            [] => format!("a step does nothing; give it one of {}", DEEDS.join(", ")),
            several => format!("a step does one thing, not {}; make several of it", several.join(" and ")),
        };
        reader.wrong(table.at, what);
        return None;
    };
    match *one {
        "command" => program(reader, table, "command").map(|argv| Deed::Command { argv }),
        "shell" => reader.value(table, "shell").map(|line| Deed::Shell { line }),
        "stop_unit" => unit(reader, table, "stop_unit").map(|unit| Deed::StopUnit { unit }),
        "start_unit" => unit(reader, table, "start_unit").map(|unit| Deed::StartUnit { unit }),
        "remove_file" => reader.value(table, "remove_file").map(|FullPath(path)| Deed::RemoveFile { path }),
        "wait" => reader.value(table, "wait").map(|time| Deed::Wait { time }),
        "wait_for" => {
            let every = reader.value(table, "every").unwrap_or(REST);
            if every.is_zero() {
                // A program would be started as fast as it ends.
                reader.wrong(table.at("every"), format!("{}: expected at least 1s", table.key("every")));
            }
            program(reader, table, "wait_for").map(|argv| Deed::WaitFor { argv, every })
        }
        "write_file" => {
            let inner = reader.inner(table, "write_file", &WRITE_FILE)?;
            let FullPath(path) = needed(reader, &inner, "path")?;
            let content = template(reader, &inner, "content").unwrap_or_default();
            Some(Deed::WriteFile { path, content })
        }
        _ => {
            let inner = reader.inner(table, "webhook", &WEBHOOK)?;
            let Url(url) = needed(reader, &inner, "url")?;
            let method =
                reader.value(&inner, "method").map_or_else(|| "POST".to_owned(), |Method(verb)| verb);
            let headers = reader.value(&inner, "headers").map_or_else(BTreeMap::new, |Headers(map)| map);
            let body = template(reader, &inner, "body");
            Some(Deed::Webhook(Webhook { url, method, headers, body }))
        }
    }
}

/// A program and its arguments. One that is named by where it is, is named from the root on: hooks start there, and not
/// where somebody has tried them.
fn program(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: &str) -> Option<Vec<String>> {
    let Argv(argv) = reader.value(table, name)?;
    let program = argv.first().map(Path::new)?;
    if program.components().count() > 1 && !program.has_root() {
        let key = table.key(name);
        reader.wrong(
            table.at(name),
            format!("{key}: hooks start in /, so {program:?} is not found; write its name from the root on"),
        );
    }
    Some(argv)
}

/// The name of a systemd unit: `systemctl` takes what begins with a dash for an option.
fn unit(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: &str) -> Option<String> {
    let unit: String = reader.value(table, name)?;
    if unit.starts_with('-') || unit.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let key = table.key(name);
        reader.wrong(
            table.at(name),
            format!("{key}: expected the name of a unit, as \"nginx.service\", not {unit:?}"),
        );
    }
    Some(unit)
}

/// A text with variables in it. One that looks like a variable and is none is a slip.
fn template(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: &str) -> Option<String> {
    let Content(text) = reader.value(table, name)?;
    for unknown in unknown_names(&text) {
        let meant = suggest::nearest(unknown, VARIABLES.iter().map(|(known, _)| *known));
        let cure = meant.map_or_else(String::new, |meant| format!("; did you mean {{{meant}}}?"));
        reader
            .wrong(table.at(name), format!("{}: there is no variable {{{unknown}}}{cure}", table.key(name)));
    }
    Some(text)
}

/// What a key says; that it is missing is a mistake.
pub fn needed<T: super::value::Value>(
    reader: &mut Reader<'_>,
    table: &Table<'_, '_>,
    name: &str,
) -> Option<T> {
    if !table.has(name) {
        reader.wrong(table.at, format!("{} is missing; expected {}", table.key(name), T::EXPECTED));
        return None;
    }
    reader.value(table, name)
}
