//! The words that can be typed, as people are shown them. Flags that are taken everywhere are told of only where they do
//! something, and shells are not offered what help hides.

use clap::{Command, CommandFactory};

use super::Args;

/// How to reach a service, and how results are shown.
const REACH: &[&str] = &["data", "operator_url", "operator_ca", "operator-without-tls"];
const ALL: &[&str] = &["data", "operator_url", "operator_ca", "operator-without-tls", "output"];
/// The directory is theirs, and there is no service elsewhere.
const ELSEWHERE: &[&str] = &["operator_url", "operator_ca", "operator-without-tls"];

/// Commands, and the flags that they take like any other and do nothing with.
const IDLE: &[(&[&str], &[&str])] = &[
    (&["get", "approve", "agent"], REACH),
    (&["completions", "openapi"], ALL),
    // Its --operator-without-tls is a setting of its own.
    (&["serve"], &["operator_url", "operator_ca"]),
    (&["import", "check"], ELSEWHERE),
];

/// All of it, ready to read what was typed.
pub fn command() -> Command {
    without_idle_flags(Args::command())
}

/// The same for manual pages: `help` says of every command what its page says.
pub fn for_pages() -> Command {
    without_idle_flags(Args::command().disable_help_subcommand(true))
}

/// The same for shells.
pub fn for_shells() -> Command {
    without_idle_flags(without_hidden(&Args::command()))
}

fn without_idle_flags(mut command: Command) -> Command {
    // Only now has every command the flags of those above it.
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

/// A command with all that shells ask of it: its flags, and the commands below it that people are shown.
fn without_hidden(command: &Command) -> Command {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set()).map(without_hidden);
    // clap wants names that last, and the program ends with what is made of these.
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
        assert!(!help(&["completions"]).contains("Everywhere"));
        for words in [&["vm", "list"][..], &["event", "show"], &["fleet", "apply"]] {
            assert!(help(words).contains("--operator-url"), "{words:?}");
        }
        #[cfg(unix)]
        assert!(help(&["serve"]).contains("--data") && !help(&["serve"]).contains("--operator-url"));
    }

    #[test]
    fn hidden_flags_are_still_accepted() {
        let typed = ["notbefore", "get", "--data", "d", "--endpoint", "127.0.0.1"];
        let matches = command().try_get_matches_from(typed).unwrap();
        assert!(matches.get_one::<std::path::PathBuf>("data").is_some());
    }
}
