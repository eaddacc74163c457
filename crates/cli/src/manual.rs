//! Manual pages, for packages: `tools/dist` runs the test that writes them, so that the program does without `clap_mangen`.
//! `agent_toml` is the page of the agent's configuration file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_toml;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use crate::args::{Args, shown};

/// If set, the directory that the pages are written to; created if missing.
const PAGES: &str = "NOTBEFORE_PAGES";

/// Writes a page for every command into a directory: `notbefore.1`, `notbefore-vm-list.1`, and so on; and
/// `notbefore-agent.toml.5`.
fn write(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    clap_mangen::generate_to(shown::for_pages(), dir).unwrap();
    fs::write(dir.join(agent_toml::FILE), agent_toml::page()).unwrap();
}

/// The page names of all visible commands: command path joined with `-`.
pub fn visible_commands(command: &Command, words: &[&str]) -> Vec<String> {
    let words: Vec<&str> = words.iter().copied().chain([command.get_name()]).collect();
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    let below = below.flat_map(|command| visible_commands(command, &words));
    std::iter::once(words.join("-")).chain(below).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = std::env::var_os(PAGES).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    write(&dir);
    let mut expected: Vec<String> =
        visible_commands(&Args::command(), &[]).iter().map(|name| format!("{name}.1")).collect();
    expected.push(agent_toml::FILE.to_owned());
    let found = fs::read_dir(&dir).unwrap();
    let mut found: Vec<String> =
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    for page in found {
        let text = fs::read_to_string(dir.join(&page)).unwrap();
        let name = text.split_once(".SH NAME\n").and_then(|(_, rest)| rest.lines().next());
        // The page's name, a dash, and then a sentence.
        let said = name.and_then(|line| line.split_once(" \\- ")).unwrap_or_else(|| panic!("{page}: {text}"));
        assert!(said.1.contains(' '), "{page}: no sentence in {said:?}");
    }
}
