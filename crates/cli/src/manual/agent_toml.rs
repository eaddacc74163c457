//! notbefore-agent.toml(5): what may be written in the agent's configuration, and what hooks are told, from the same
//! lists that the agent reads by and that docs/reference/agent-file.md is written from.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use notbefore_agent::config::SAMPLE;
use notbefore_agent::config::keys::SCHEMA;
use notbefore_agent::hooks::variables::VARIABLES;
use notbefore_settings::schema::Key;

/// The page's file.
pub const FILE: &str = "notbefore-agent.toml.5";

const DESCRIPTION: [&str; 4] = [
    "The file is TOML. Its `[[rule]]` tables say what is done about events: they are tried in the file's order, and the \
     first that matches an event is its rule for good. A rule has steps before the event, says who approves, and has \
     steps after it, which also undo what was begun for an event that is cancelled. A step does exactly one thing.",
    "`notbefore agent sample` prints a file to begin with. `notbefore agent check` tells each rule in words, and every \
     mistake with its line and its cure; `notbefore agent check --run RULE` tries a rule's steps without an event.",
    "The settings above the first table can also be given by the environment, as `NOTBEFORE_AGENT_` and the key in \
     capitals, and by flags; a flag goes before the environment, and that before the file. `NOTBEFORE_AGENT_CONFIG` names \
     another file. On SIGHUP rules and `[notify]` are read anew, for events to come; a file with mistakes changes nothing.",
    "Spans of time are written as `30s`, `20m` or `1h30m`.",
];

const HOOKS: [&str; 3] = [
    "Programs that steps run start in `/` with the agent's environment and these variables. On stdin they have one JSON \
     object with the same and the event as the platform sent it. Files and webhooks may have them in their text as \
     `{EVENT_ID}` and so on.",
    "Exit code 0 is success. A program that has not ended when its time is up gets SIGTERM with all that it has started, \
     and a quarter of a second later SIGKILL.",
    "A hook should be able to run twice: after a restart of the agent in the middle of it, it is run again unless its step \
     says `on_interrupt = \"skip\"`.",
];

const EXIT_STATUS: [(&str, &str); 3] = [
    ("0", "the agent was told to stop, and has"),
    (
        "1",
        "it cannot run: the state directory or the address of the signals cannot be used, or another agent runs",
    ),
    ("2", "the configuration has mistakes, all of which are named"),
];

const FILES: [(&str, &str); 3] = [
    (
        "/etc/notbefore/agent.toml",
        "the configuration; it may hold secrets of webhooks, so only root should read it",
    ),
    ("/var/lib/notbefore-agent/journal.json", "what the agent remembers, over its own restart and the VM's"),
    (
        "/usr/share/doc/notbefore/docs/guide/agent.md",
        "how long steps have, what happens in every odd case, signals, metrics",
    ),
];

/// The page.
pub fn page() -> String {
    let mut page = Roff::new();
    let version = concat!("notbefore ", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["notbefore-agent.toml", "5", "", version, ""]);
    page.control("SH", ["NAME"]);
    page.text([roman("notbefore-agent.toml - what notbefore's agent does about events")]);
    page.control("SH", ["SYNOPSIS"]).text([bold("/etc/notbefore/agent.toml")]);
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, &DESCRIPTION);
    page.control("SH", ["KEYS"]);
    for group in SCHEMA.groups() {
        page.control("SS", [group.title.replace('`', "").as_str()]);
        group.keys.iter().for_each(|key| item(&mut page, key.name, &explained(key)));
    }
    page.control("SH", ["WHAT HOOKS ARE TOLD"]);
    paragraphs(&mut page, &HOOKS);
    VARIABLES.iter().for_each(|(name, what)| item(&mut page, &format!("NOTBEFORE_{name}"), what));
    page.control("SH", ["EXIT STATUS"]);
    paragraphs(&mut page, &["Of `notbefore agent run`:"]);
    EXIT_STATUS.iter().for_each(|(code, what)| item(&mut page, code, what));
    page.control("SH", ["FILES"]);
    FILES.iter().for_each(|(file, what)| item(&mut page, file, what));
    page.control("SH", ["EXAMPLE"]);
    paragraphs(&mut page, &["What `notbefore agent sample` prints:"]);
    page.control("EX", []);
    SAMPLE.lines().for_each(|line| {
        page.text([roman(line)]);
    });
    page.control("EE", []).control("SH", ["SEE ALSO"]);
    paragraphs(
        &mut page,
        &["`notbefore-agent-run`(1), `notbefore-agent-check`(1), `notbefore-agent-status`(1)"],
    );
    page.render()
}

/// What a key is for, and what holds without it.
fn explained(key: &Key) -> String {
    match key.default {
        "" => key.what.to_owned(),
        default => format!("{} (default: {default})", key.what),
    }
}

fn item(page: &mut Roff, name: &str, what: &str) {
    page.control("TP", []).text([bold(name)]).text(words(what));
}

fn paragraphs(page: &mut Roff, texts: &[&str]) {
    for text in texts {
        page.control("PP", []).text(words(text));
    }
}

/// Words, with what is typed, in backquotes, in bold.
fn words(text: &str) -> Vec<Inline> {
    let typed = |(place, part): (usize, &str)| if place % 2 == 1 { bold(part) } else { roman(part) };
    text.split('`').enumerate().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_key_and_every_variable() {
        let page = page().replace("\\-", "-");
        for key in SCHEMA.groups().flat_map(|group| group.keys).map(|key| key.name) {
            assert!(page.contains(&format!(".TP\n\\fB{key}\\fR\n")), "no {key} in {page}");
        }
        for (variable, _) in VARIABLES {
            assert!(page.contains(&format!("\\fBNOTBEFORE_{variable}\\fR\n")), "no {variable} in {page}");
        }
    }
}
