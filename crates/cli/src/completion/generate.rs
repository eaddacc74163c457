//! Writes completion scripts. `clap_complete` makes a script of commands and flags. [`script`] adds the positions of names,
//! found in the clap command, and a function that asks `notbefore complete-names`. For bash it also adds the positions of
//! files, which the generated script leaves out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Arg, Command, ValueEnum, ValueHint};
use clap_complete::Shell as Generator;

use crate::args::{NameKind, Shell, shown};

/// The script of a shell.
pub fn script(shell: Shell) -> String {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Elvish => Generator::Elvish,
        Shell::Fish => Generator::Fish,
        Shell::Power => Generator::PowerShell,
        Shell::Zsh => Generator::Zsh,
    };
    let (mut script, mut command) = (Vec::new(), shown::for_shells());
    clap_complete::generate(generator, &mut command, "notbefore", &mut script);
    with_names(shell, &command, &String::from_utf8_lossy(&script))
}

fn word(kind: NameKind) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The kind of names that an argument takes: its id is the kind, or one of it.
fn kind_of(arg: &Arg) -> Option<NameKind> {
    let id = arg.get_id().as_str();
    let kinds = NameKind::value_variants().iter();
    kinds.copied().find(|kind| word(*kind).strip_suffix('s') == Some(id.trim_end_matches('s')))
}

/// An argument of a command that takes names.
struct Position {
    /// `vm`
    noun: String,
    /// `show`
    verb: String,
    /// `--host`; none for a positional argument.
    flag: Option<String>,
    kind: String,
}

fn positions(command: &Command) -> Vec<Position> {
    let mut found = Vec::new();
    for noun in command.get_subcommands() {
        for verb in noun.get_subcommands() {
            for arg in verb.get_arguments() {
                // The value of `event complete --host` is a pair.
                let is_pair =
                    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains('=')));
                if let Some(kind) = kind_of(arg).filter(|_| !is_pair) {
                    found.push(Position {
                        noun: noun.get_name().to_owned(),
                        verb: verb.get_name().to_owned(),
                        flag: arg.get_long().map(str::to_owned),
                        kind: word(kind),
                    });
                }
            }
        }
    }
    found
}

/// The commands that take a file as an argument without a flag: `fleet apply`, `import`.
fn commands_with_file(command: &Command) -> Vec<String> {
    let takes_file = |command: &Command| {
        let mut files = command.get_positionals().map(Arg::get_value_hint);
        files.any(|hint| matches!(hint, ValueHint::AnyPath | ValueHint::FilePath))
    };
    let mut found = Vec::new();
    for noun in command.get_subcommands() {
        if takes_file(noun) {
            found.push(noun.get_name().to_owned());
        }
        let verbs = noun.get_subcommands().filter(|verb| takes_file(verb));
        found.extend(verbs.map(|verb| format!("{} {}", noun.get_name(), verb.get_name())));
    }
    found
}

/// All flags without a value, as they are typed.
fn switches(command: &Command) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = command.get_subcommands().flat_map(switches).collect();
    for arg in command.get_arguments().filter(|arg| !arg.get_action().takes_values()) {
        found.extend(arg.get_long().map(|long| format!("--{long}")));
        found.extend(arg.get_short().map(|short| format!("-{short}")));
    }
    found
}

/// A generated script, with completion of names.
fn with_names(shell: Shell, command: &Command, script: &str) -> String {
    let positions = positions(command);
    match shell {
        Shell::Bash => format!("{script}\n{}", bash(command, &positions)),
        Shell::Fish => format!("{script}{}", fish(&positions)),
        Shell::Zsh => zsh(script),
        // Other shells complete commands and flags.
        Shell::Elvish | Shell::Power => script.to_owned(),
    }
}

fn bash(command: &Command, positions: &[Position]) -> String {
    let switches = switches(command).into_iter().collect::<Vec<_>>().join("|");
    let (with_two_words, with_one): (Vec<String>, Vec<String>) =
        commands_with_file(command).into_iter().partition(|command| command.contains(' '));
    // Without such commands the pattern is a word that no command is.
    let with_one = if with_one.is_empty() { "''".to_owned() } else { with_one.join("|") };
    let mut cases: String =
        with_two_words.iter().map(|command| format!("            '{command} ') kind=files ;;\n")).collect();
    for Position { noun, verb, flag, kind } in positions {
        // Writing to a string cannot fail.
        let _ = match flag {
            Some(flag) => writeln!(cases, "            '{noun} {verb} --{flag}') kind={kind} ;;"),
            None => writeln!(cases, "            '{noun} {verb} ') kind={kind} ;;"),
        };
    }
    format!(
        r#"_notbefore_names() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" kind=''
    [ "${{before#-}}" != "$before" ] || before=''
    case "$before" in
        {switches}) before='' ;;
    esac
    if [ "$COMP_CWORD" -gt 1 ] && [ -z "$before" ]; then
        case "${{COMP_WORDS[1]}}" in
            {with_one}) kind=files ;;
        esac
    fi
    if [ "$COMP_CWORD" -gt 2 ]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} $before" in
{cases}        esac
    fi
    if [ "$kind" = files ] && [ "${{word#-}}" = "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        # Adds a slash to directories; only a completion in progress has options.
        compopt -o filenames 2>/dev/null
        return 0
    fi
    if [ -n "$kind" ] && [ "${{word#-}}" = "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${{COMP_WORDS[0]}}" complete-names "$kind" 2>/dev/null)" -- "$word")
        [ "${{#COMPREPLY[@]}}" -eq 0 ] || return 0
    fi
    _notbefore "$@"
}}
complete -F _notbefore_names -o bashdefault -o default notbefore
"#
    )
}

fn fish(positions: &[Position]) -> String {
    let mut lines = String::new();
    for Position { noun, verb, flag, kind } in positions {
        let flag = flag.as_ref().map(|flag| format!(" -l {flag} -r")).unwrap_or_default();
        let _ = writeln!(
            lines,
            "complete -c notbefore -n \"__fish_notbefore_using_subcommand {noun}; and __fish_seen_subcommand_from {verb}\"{flag} -f -a '(notbefore complete-names {kind} 2>/dev/null)'"
        );
    }
    lines
}

/// Replaces the default completion of arguments that take names.
fn zsh(script: &str) -> String {
    let kinds = NameKind::value_variants();
    let line = |line: &str| {
        let starts = |id: &str| {
            line.starts_with(&format!("':{id} -- "))
                || line.starts_with(&format!("':{id}:"))
                || line.starts_with(&format!("'::{id} -- "))
                || line.starts_with(&format!("'*::{id} -- "))
        };
        let is_of = |kind: &&NameKind| {
            let plural = word(**kind);
            let singular = plural.trim_end_matches('s');
            let value = format!(":{}:_default' ", singular.to_ascii_uppercase());
            starts(singular) || starts(&plural) || line.contains(&value)
        };
        match kinds.iter().find(is_of) {
            Some(kind) => line.replace(":_default'", &format!(":_notbefore_names {}'", word(*kind))),
            None => line.to_owned(),
        }
    };
    let script: String = script.lines().map(|text| line(text) + "\n").collect();
    let function = "_notbefore_names() {\n    local -a names\n    names=(${(f)\"$(notbefore complete-names $1 2>/dev/null)\"})\n    compadd -a names\n}\n\n";
    // The first line, `#compdef`, has to stay the first.
    let (first, rest) = script.split_once('\n').unwrap_or((&script, ""));
    format!("{first}\n\n{function}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_complete_names() {
        let bash = script(Shell::Bash);
        for line in [
            "'vm show ') kind=vms",
            "'event list --host') kind=hosts",
            "'operation wait ') kind=operations",
            "'agent retry ') kind=agent-events",
            "'agent history ') kind=agent-past-events",
            "'fleet apply ') kind=files",
        ] {
            assert!(bash.contains(line), "{line}");
        }
        assert!(!bash.contains("'event complete --host')"), "VM=HOST is not a host");
        let fish = script(Shell::Fish);
        assert!(fish.contains(
            "__fish_seen_subcommand_from show\" -f -a '(notbefore complete-names vms 2>/dev/null)'"
        ));
        let zsh = script(Shell::Zsh);
        assert!(zsh.starts_with("#compdef notbefore\n"), "{}", &zsh[..200]);
        for (argument, kind) in [
            (":vm -- ", "vms"),
            (":event -- ", "events"),
            ("*::hosts -- ", "hosts"),
            ("*::operations -- ", "operations"),
            ("--scope=[Only VMs of this scope]", "scopes"),
            (":agent-event -- ", "agent-events"),
            ("::agent-past-event -- ", "agent-past-events"),
        ] {
            let completion = format!(":_notbefore_names {kind}'");
            assert!(
                zsh.lines().any(|line| line.contains(argument) && line.contains(&completion)),
                "{argument}"
            );
        }
    }
}
