//! notbefore-agent.toml(5): keys of the agent's configuration and variables of hooks. It is generated from the same
//! schema as the agent's parser and docs/reference/agent-file.md.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use notbefore_agent::config::SAMPLE;
use notbefore_agent::config::keys::SCHEMA;
use notbefore_agent::hooks::variables::VARIABLES;
use notbefore_settings::schema::Key;

pub const FILE: &str = "notbefore-agent.toml.5";

const DESCRIPTION: [&str; 4] = [
    "The file is TOML. Its `[[rule]]` tables define how events are handled. Rules are tried in the file's order; the first \
     that matches an event handles it until it ends. A rule has steps before the event, an approval mode, and steps \
     after the event. The steps after also undo the preparation if the event is cancelled. A step has exactly one action.",
    "`notbefore agent sample` prints a sample file. `notbefore agent check` describes each rule and lists every error with \
     its line and fix. `notbefore agent check --run RULE` runs a rule's steps without an event.",
    "The settings above the first table can also be set by environment variables, `NOTBEFORE_AGENT_` and the key in \
     capitals, and by flags. Flags override the environment, which overrides the file. `NOTBEFORE_AGENT_CONFIG` names \
     another file. SIGHUP reloads rules and `[notify]` for new events; a file with errors changes nothing.",
    "Spans of time are written as `30s`, `20m` or `1h30m`.",
];

const HOOKS: [&str; 3] = [
    "Programs start in `/` with the agent's environment and these variables. Standard input has one JSON object with the \
     same values and the event as the platform sent it. Files and webhooks can use them in their text, for example as \
     `{EVENT_ID}`.",
    "Exit code 0 is success. At its timeout a program and its child processes receive SIGTERM, and SIGKILL 250 ms later.",
    "Hooks must be idempotent: if the agent restarts while a hook runs, it runs the hook again, except with \
     `on_interrupt = \"skip\"`.",
];

const EXIT_STATUS: [(&str, &str); 3] = [
    ("0", "the agent was stopped"),
    ("1", "the agent cannot run: the state directory or listen address is not usable, or another agent runs"),
    ("2", "the configuration has errors; all are listed"),
];

const FILES: [(&str, &str); 3] = [
    (
        "/etc/notbefore/agent.toml",
        "the configuration; it may contain webhook secrets, so only root should be able to read it",
    ),
    (
        "/var/lib/notbefore-agent/journal.json",
        "the journal: state kept across restarts of the agent and the VM",
    ),
    ("/usr/share/doc/notbefore/docs/guide/agent.md", "step timeouts, edge cases, signals, metrics"),
];

pub fn page() -> String {
    let mut page = Roff::new();
    let version = concat!("notbefore ", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["notbefore-agent.toml", "5", "", version, ""]);
    page.control("SH", ["NAME"]);
    page.text([roman("notbefore-agent.toml - configuration of the notbefore agent")]);
    page.control("SH", ["SYNOPSIS"]).text([bold("/etc/notbefore/agent.toml")]);
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, &DESCRIPTION);
    page.control("SH", ["KEYS"]);
    for group in SCHEMA.groups() {
        page.control("SS", [group.title.replace('`', "").as_str()]);
        group.keys.iter().for_each(|key| item(&mut page, key.name, &explained(key)));
    }
    page.control("SH", ["HOOK ENVIRONMENT"]);
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

/// The key's description and default.
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

/// Text with the parts in backquotes in bold.
fn words(text: &str) -> Vec<Inline> {
    let typed = |(place, part): (usize, &str)| if place % 2 == 1 { bold(part) } else { roman(part) };
    text.split('`').enumerate().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_every_key_and_variable() {
        let page = page().replace("\\-", "-");
        for key in SCHEMA.groups().flat_map(|group| group.keys).map(|key| key.name) {
            assert!(page.contains(&format!(".TP\n\\fB{key}\\fR\n")), "no {key} in {page}");
        }
        for (variable, _) in VARIABLES {
            assert!(page.contains(&format!("\\fBNOTBEFORE_{variable}\\fR\n")), "no {variable} in {page}");
        }
    }
}
