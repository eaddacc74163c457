//! The clap command as shown in help, manual pages and completions. Global flags are hidden for commands that ignore
//! them, and completions leave out hidden commands.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, Error};

use super::Args;

/// Ids of the connection flags.
const REACH: &[&str] = &["data", "operator_url", "operator_ca", "operator-without-tls"];
const REACH_AND_TIME: &[&str] =
    &["data", "operator_url", "operator_ca", "operator-without-tls", "local_time"];
const ALL: &[&str] = &["data", "operator_url", "operator_ca", "operator-without-tls", "output", "local_time"];
/// Connection flags for remote services; `--data` still applies.
const ELSEWHERE: &[&str] = &["operator_url", "operator_ca", "operator-without-tls"];

/// Commands and the global flags that they accept but ignore.
const IDLE: &[(&[&str], &[&str])] = &[
    (&["get", "agent"], REACH),
    (&["approve", "rehearse"], REACH_AND_TIME),
    (&["completions", "openapi"], ALL),
    // `serve` has its own `--operator-without-tls` setting.
    (&["serve"], &["operator_url", "operator_ca", "local_time"]),
    (&["export"], &["local_time"]),
    (&["import"], ELSEWHERE),
    (&["check"], &["operator_url", "operator_ca", "operator-without-tls", "local_time"]),
    // It sends no token.
    (&["healthy"], &["operator-without-tls", "local_time"]),
];

/// The command that parses arguments and prints help.
pub fn command() -> Command {
    without_idle_flags(Args::command())
}

/// The command for manual pages, without the `help` subcommand: it would repeat every page.
#[cfg(all(test, unix))]
pub fn for_pages() -> Command {
    without_idle_flags(Args::command().disable_help_subcommand(true))
}

/// The command for shell completions, without hidden subcommands.
#[cfg(any(test, windows))]
pub fn for_shells() -> Command {
    without_idle_flags(without_hidden(&Args::command()))
}

/// Leaves hidden commands out of what an error suggests for a misspelt one: they are not for people.
pub fn without_hidden_suggestions(mut error: Error, command: &Command) -> Error {
    let suggested = error.get(ContextKind::SuggestedSubcommand);
    let Some(ContextValue::Strings(suggested)) = suggested.cloned() else { return error };
    let hidden = hidden_names(command);
    let shown: Vec<String> = suggested.into_iter().filter(|name| !hidden.contains(&name.as_str())).collect();
    match shown.is_empty() {
        true => _ = error.remove(ContextKind::SuggestedSubcommand),
        false => _ = error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown)),
    }
    error
}

/// The names of hidden commands, at any depth.
fn hidden_names(command: &Command) -> Vec<&str> {
    let own = command.get_subcommands().filter(|below| below.is_hide_set()).map(Command::get_name);
    own.chain(command.get_subcommands().flat_map(hidden_names)).collect()
}

fn without_idle_flags(mut command: Command) -> Command {
    // `build` propagates global flags to subcommands; before it they cannot be hidden there.
    command.build();
    command.mut_subcommands(|below| {
        let idle = IDLE.iter().find(|(names, _)| names.contains(&below.get_name()));
        hidden(below, idle.map_or(&[], |(_, flags)| flags))
    })
}

fn hidden(command: Command, flags: &'static [&'static str]) -> Command {
    let hide = |flag: clap::Arg| {
        let is_idle = flags.contains(&flag.get_id().as_str());
        if is_idle { flag.hide(true) } else { flag }
    };
    command.mut_args(hide).mut_subcommands(|below| hidden(below, flags))
}

/// A copy of the command with its flags and its visible subcommands only.
#[cfg(any(test, windows))]
fn without_hidden(command: &Command) -> Command {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set()).map(without_hidden);
    // clap requires a `'static` name. The leak is bounded: the program exits after printing completions.
    let name: &'static str = command.get_name().to_owned().leak();
    let shown = Command::new(name).args(command.get_arguments()).subcommands(below);
    let shown = shown.about(command.get_about().cloned().unwrap_or_default());
    let has_version = command.get_version().is_some();
    if has_version { shown.version(env!("CARGO_PKG_VERSION")) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        let mut found = command();
        for word in words {
            found = found.find_subcommand(word).unwrap_or_else(|| panic!("{word}")).clone();
        }
        found.render_long_help().to_string()
    }

    #[test]
    fn flags_are_shown_where_they_apply() {
        for words in [&["get"][..], &["approve"], &["agent", "check"], &["agent", "status"]] {
            let help = help(words);
            assert!(!help.contains("--data") && help.contains("--output"), "{words:?}: {help}");
        }
        assert!(!help(&["completions"]).contains("Global options"));
        for words in [&["vm", "list"][..], &["event", "show"], &["fleet", "apply"]] {
            assert!(help(words).contains("--operator-url"), "{words:?}");
        }
        #[cfg(unix)]
        assert!(help(&["serve"]).contains("--data") && !help(&["serve"]).contains("--operator-url"));
    }

    #[cfg(unix)]
    #[test]
    fn misspelt_command_never_suggests_a_hidden_one() {
        let said = |typed: &[&str]| {
            let mut command = command();
            let error = command.try_get_matches_from_mut(typed).unwrap_err();
            without_hidden_suggestions(error, &command).render().to_string()
        };
        let reherse = said(&["notbefore", "reherse"]);
        assert!(reherse.contains("'rehearse'") && !reherse.contains("keeper"), "{reherse}");
        for typed in ["exec-keper", "rehearse-keper", "complete-nams"] {
            let said = said(&["notbefore", typed]);
            assert!(!said.contains("-keeper") && !said.contains("complete-names"), "{said}");
        }
        assert!(said(&["notbefore", "evnt"]).contains("'event'"));
    }

    #[test]
    fn hidden_flags_are_still_accepted() {
        let typed = ["notbefore", "get", "--data", "d", "--endpoint", "127.0.0.1"];
        let matches = command().try_get_matches_from(typed).unwrap();
        assert!(matches.get_one::<std::path::PathBuf>("data").is_some());
    }
}
