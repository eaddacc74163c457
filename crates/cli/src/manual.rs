//! Shell completions and manual pages, generated from the clap command so that they match it. `agent_toml` is the page
//! of the agent's configuration file, `names` completes names of the service.

mod agent_toml;
pub mod names;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::Shell;

use crate::args::shown;
use crate::output;

/// Prints the completion script of a shell.
pub fn completions(shell: Shell) -> Result<()> {
    let (mut script, mut command) = (Vec::new(), shown::for_shells());
    clap_complete::generate(shell, &mut command, "notbefore", &mut script);
    output::data(names::with_names(shell, &command, &String::from_utf8(script)?).as_bytes())
}

/// Writes a page for every command into a directory: `notbefore.1`, `notbefore-vm-list.1`, and so on; and
/// `notbefore-agent.toml.5`.
pub fn pages(dir: &Path) -> Result<()> {
    let cannot = || format!("cannot write manual pages into {}", dir.display());
    fs::create_dir_all(dir).with_context(cannot)?;
    clap_mangen::generate_to(shown::for_pages(), dir).with_context(cannot)?;
    fs::write(dir.join(agent_toml::FILE), agent_toml::page()).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::args::Args;

    /// The page names of all visible commands: command path joined with `-`.
    fn visible_commands(command: &Command, words: &[&str]) -> Vec<String> {
        let words: Vec<&str> = words.iter().copied().chain([command.get_name()]).collect();
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        let below = below.flat_map(|command| visible_commands(command, &words));
        std::iter::once(words.join("-")).chain(below).collect()
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let dir = tempfile::tempdir().unwrap();
        pages(dir.path()).unwrap();
        let mut expected: Vec<String> =
            visible_commands(&Args::command(), &[]).iter().map(|name| format!("{name}.1")).collect();
        expected.push(agent_toml::FILE.to_owned());
        let found = fs::read_dir(dir.path()).unwrap();
        let mut found: Vec<String> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        for page in found {
            let text = fs::read_to_string(dir.path().join(&page)).unwrap();
            let name = text.split_once(".SH NAME\n").and_then(|(_, rest)| rest.lines().next());
            // The page's name, a dash, and then a sentence.
            let said =
                name.and_then(|line| line.split_once(" \\- ")).unwrap_or_else(|| panic!("{page}: {text}"));
            assert!(said.1.contains(' '), "{page}: no sentence in {said:?}");
        }
    }

    #[test]
    fn completions_cover_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut shown::for_shells(), "notbefore", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in visible_commands(&Args::command(), &[]) {
                let last = name.rsplit('-').next().unwrap();
                assert!(script.contains(last), "{shell}: no {name}");
            }
            // Completions do not offer hidden commands.
            for name in ["manual-pages", "exec-keeper", "rehearse-keeper", "uninstall"] {
                assert!(cfg!(windows) || !script.contains(name), "{shell} offers {name}");
            }
        }
    }
}
