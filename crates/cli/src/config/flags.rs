//! The flags, made from the table of settings.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use toml::Value as Toml;

use super::settings::SETTINGS;
use super::table::{Flag, Setting};
use super::{Source, Written};

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub(super) written: Vec<Written>,
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().flat_map(flags).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flags of a setting.
fn flags(setting: &'static Setting) -> Vec<Arg> {
    let new = |name: &'static str| Arg::new(name).long(name).help_heading(setting.title.trim());
    let checked = move |text: &str| (setting.from_text)(text).map(|_| text.to_owned());
    match setting.flag {
        Flag::None | Flag::Everywhere(_) => Vec::new(),
        Flag::Value(name, value) => {
            let action = if setting.many { ArgAction::Append } else { ArgAction::Set };
            let repeated = if setting.many { "; may be repeated" } else { "" };
            let help = format!("{}{repeated}{}", setting.help(), default(setting));
            vec![new(name).value_name(value).action(action).value_parser(checked).help(help)]
        }
        Flag::Switch(name) => {
            let switch = new(name).num_args(0..=1).require_equals(true).default_missing_value("true");
            vec![switch.value_name("true|false").value_parser(checked).help(setting.help())]
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

fn default(setting: &Setting) -> String {
    match (setting.default)() {
        Toml::String(text) => format!(" [default: {text}]"),
        Toml::Array(list) if list.is_empty() => String::new(),
        Toml::Array(list) => {
            let texts = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            format!(" [default: {}]", texts.collect::<Vec<_>>().join(", "))
        }
        value @ (Toml::Integer(_)
        | Toml::Float(_)
        | Toml::Boolean(_)
        | Toml::Datetime(_)
        | Toml::Table(_)) => {
            format!(" [default: {value}]")
        }
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut written = Vec::new();
        for setting in SETTINGS {
            for (flag, texts) in said(setting, matches) {
                let values =
                    texts.iter().map(|text| (setting.from_text)(text)).collect::<Result<Vec<_>, _>>();
                let values = values.map_err(|wrong| {
                    clap::Error::raw(clap::error::ErrorKind::InvalidValue, format!("--{flag}: {wrong}\n"))
                })?;
                written.extend(joined(setting, values).map(|value| Written {
                    setting,
                    value,
                    source: Source::Flag(flag.to_owned()),
                }));
            }
        }
        Ok(Self { written })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of a setting that were typed, each with its values.
fn said(setting: &Setting, matches: &ArgMatches) -> Vec<(&'static str, Vec<String>)> {
    let typed = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    match setting.flag {
        Flag::Value(name, _) | Flag::Switch(name) if typed(name) => {
            let texts = matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
            vec![(name, texts)]
        }
        Flag::Everywhere(name) if typed(name) => {
            let paths = matches.get_many::<std::path::PathBuf>(name).into_iter().flatten();
            vec![(name, paths.map(|path| path.to_string_lossy().into_owned()).collect())]
        }
        Flag::Choices(choices) => {
            let chosen = choices.iter().filter(|(name, ..)| typed(name));
            chosen.map(|(name, value, _)| (*name, vec![(*value).to_owned()])).collect()
        }
        Flag::None | Flag::Value(..) | Flag::Switch(_) | Flag::Everywhere(_) => Vec::new(),
    }
}

/// A flag that was repeated adds to a list; of others the last counts.
fn joined(setting: &Setting, values: Vec<Toml>) -> Option<Toml> {
    if !setting.many {
        return values.into_iter().next_back();
    }
    let each = |value| if let Toml::Array(list) = value { list } else { vec![value] };
    Some(Toml::Array(values.into_iter().flat_map(each).collect()))
}
