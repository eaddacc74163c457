//! clap flags, generated from the table of settings.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use notbefore_settings::FlagValue;
use notbefore_settings::schema::{Flag, Group, Key};
use toml::Value as Toml;

use super::{SCHEMA, defaults, help};

/// Values of the flags on the command line, not yet checked.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub Vec<FlagValue>);

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        let settings = SCHEMA.settings().zip(defaults());
        settings.flat_map(|((group, key), entry)| flags(group, key, &entry.value)).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flags of a setting. Their values are checked later, together with the file and the environment.
fn flags(group: &'static Group, key: &'static Key, default: &Toml) -> Vec<Arg> {
    let new = |name: &'static str| Arg::new(name).long(name).help_heading(group.title.trim());
    match key.flag {
        Flag::None | Flag::Everywhere(_) => Vec::new(),
        Flag::Value(name, value) => {
            let (action, repeated) = match default.is_array() {
                true => (ArgAction::Append, "; may be repeated"),
                false => (ArgAction::Set, ""),
            };
            let help = format!("{}{repeated}{}", help(key), shown(default));
            vec![new(name).value_name(value).action(action).help(help)]
        }
        Flag::Switch(name) => {
            let switch = new(name).num_args(0..=1).require_equals(true).default_missing_value("true");
            vec![switch.value_name("true|false").help(help(key))]
        }
        Flag::Choices(choices) => {
            let names = choices.iter().map(|(name, ..)| *name);
            let choice = |(name, _, help): &(&'static str, &'static str, &'static str)| {
                let others = names.clone().filter(|other| other != name);
                new(name).action(ArgAction::SetTrue).help(*help).conflicts_with_all(others)
            };
            choices.iter().map(choice).collect()
        }
    }
}

fn shown(default: &Toml) -> String {
    let text = |value: &Toml| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match default.as_array() {
        Some(list) if list.is_empty() => String::new(),
        Some(list) => format!(" [default: {}]", list.iter().map(text).collect::<Vec<_>>().join(", ")),
        None => format!(" [default: {}]", text(default)),
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let said = SCHEMA.settings().flat_map(|(group, key)| {
            let value = move |(flag, text): (&str, String)| FlagValue {
                key: group.path_of(key),
                flag: flag.to_owned(),
                text,
            };
            flag_texts(key.flag, matches).into_iter().map(value)
        });
        Ok(Self(said.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of a setting on the command line with their values. Values of a repeated flag are joined with commas.
fn flag_texts(flag: Flag, matches: &ArgMatches) -> Vec<(&'static str, String)> {
    let typed = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    match flag {
        Flag::Value(name, _) | Flag::Switch(name) if typed(name) => {
            let texts: Vec<String> =
                matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
            vec![(name, texts.join(","))]
        }
        Flag::Everywhere(name) if typed(name) => {
            let path = matches.get_one::<PathBuf>(name);
            path.map(|path| (name, path.to_string_lossy().into_owned())).into_iter().collect()
        }
        Flag::Choices(choices) => {
            let chosen = choices.iter().filter(|(name, ..)| typed(name));
            chosen.map(|(name, value, _)| (*name, (*value).to_owned())).collect()
        }
        Flag::None | Flag::Value(..) | Flag::Switch(_) | Flag::Everywhere(_) => Vec::new(),
    }
}
