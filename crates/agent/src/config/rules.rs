//! `[[rule]]`: parses and validates rules.

use std::collections::BTreeSet;

use notbefore_client::document::{EventKind, EventSource};
use notbefore_settings::kind::{List, Switch};
use notbefore_settings::{Reader, Table, suggest};

use super::keys::{DURATION, RULE, TIME_LEFT};
use super::kinds::{APPROVE, NAME, RESOURCES, RESTORE, SPAN, WORD};
use super::steps;
use crate::machine::io::Stage;
use crate::rules::reach::{Unreachable, unreachable};
use crate::rules::{Approve, DurationMatch, DurationRange, Match, RULES_MAX, ResourceMatch, Rule};

/// Reads all rules. A rule that can never match is an error.
pub fn read(reader: &mut Reader<'_>, top: &Table<'_, '_>) -> Vec<Rule> {
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    let tables = reader.many(top, "rule", &RULE);
    if let Some(table) = tables.get(RULES_MAX) {
        reader.wrong(table.at, format!("there are more than {RULES_MAX} rules; combine some of them"));
    }
    for table in tables.iter().take(RULES_MAX) {
        let name = reader.value(table, "name", &NAME);
        if let Some(name) = &name
            && !names.insert(name.clone())
        {
            reader.wrong_key(table, "name", &format!("there are two rules {name:?}; rename one"));
        }
        if !table.has("name") {
            reader.wrong(table.at, "a rule has no name; write name = \"drain\" below its [[rule]]");
        }
        rules.push(rule(reader, table, name.unwrap_or_default()));
    }
    // A rule that was misread could only seem unreachable.
    let never = if reader.is_clean() { unreachable(&rules) } else { Vec::new() };
    for never in never {
        let (Unreachable::Contradiction { rule, .. } | Unreachable::Shadowed { rule, .. }) = &never;
        let at = rules.iter().position(|known| known.name == *rule).and_then(|place| tables.get(place));
        reader.wrong(at.map_or(0, |table| table.at), never.to_string());
    }
    rules
}

fn rule(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: String) -> Rule {
    let resources = reader.value(table, "resources", &RESOURCES).unwrap_or_default();
    let mine = resources == ResourceMatch::Mine;
    let approve = match reader.value(table, "approve", &APPROVE) {
        Some(approve) if resources == ResourceMatch::Others && approve != Approve::Never => {
            let own =
                "an agent approves for its own VM alone; write approve = \"never\", or resources = \"mine\"";
            reader.wrong_key(table, "approve", own);
            Approve::Never
        }
        Some(approve) => approve,
        None if mine => Approve::WhenDone,
        None => Approve::Never,
    };
    let before = steps::read(reader, table, Stage::Before);
    let after = steps::read(reader, table, Stage::After);
    let drain = reader.value(table, "drain", &Switch).unwrap_or(mine && !before.is_empty());
    let kinds = words(reader, table, "types", &EventKind::KNOWN.map(|kind| kind.as_str().to_owned()));
    let sources = words(reader, table, "sources", &["Platform".to_owned(), "User".to_owned()]);
    let kinds: Vec<EventKind> = kinds.into_iter().map(EventKind::from).collect();
    let names_advisories = kinds.contains(&EventKind::SpotRebalanceRecommendation);
    let matches = Match {
        advisory: reader.value(table, "advisory", &Switch).unwrap_or(names_advisories),
        kinds,
        sources: sources.into_iter().map(EventSource::from).collect(),
        resources,
        duration: duration(reader, table),
        time_left: reader
            .inner(table, "time_left", &TIME_LEFT)
            .map(|inner| within(reader, &inner))
            .unwrap_or_default(),
    };
    let restore = reader.value(table, "restore", &RESTORE).unwrap_or_default();
    Rule { name, matches, before, approve, after, restore, drain }
}

fn duration(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> DurationMatch {
    let Some(inner) = reader.inner(table, "duration", &DURATION) else { return DurationMatch::default() };
    let within = within(reader, &inner);
    // An event of unknown duration is not assumed to be short.
    let unknown = reader.value(&inner, "unknown", &Switch).unwrap_or(within.at_most.is_none());
    DurationMatch { within, unknown }
}

fn within(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> DurationRange {
    let mut bound = |name| reader.value(table, name, &SPAN);
    DurationRange { at_least: bound("at_least"), at_most: bound("at_most") }
}

/// Values that the platform defines. An unknown one may be newer than this release; one close to a known value is a
/// typo.
fn words(reader: &mut Reader<'_>, table: &Table<'_, '_>, name: &str, known: &[String]) -> Vec<String> {
    let Some(words) = reader.value(table, name, &List(WORD)) else { return Vec::new() };
    if words.is_empty() {
        let any = format!("an empty list matches nothing; leave it out for any of {}", known.join(", "));
        reader.wrong_key(table, name, &any);
    }
    for word in &words {
        let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(word));
        let meant = suggest::nearest(word, known.iter().map(String::as_str)).filter(|_| !is_known);
        if let Some(meant) = meant {
            reader.wrong_key(table, name, &format!("{word:?} is unknown; did you mean {meant:?}?"));
        }
    }
    words
}
