//! What may be written: the keys of a configuration, by the tables of its file. Unknown keys and variables are told by
//! it; flags, sample files, tables of the documentation and manual pages are made from it.

use crate::suggest::{best, similarity};

/// A key that is known in another table, or by its flag, is a little less likely to be meant than one of its own table.
const ELSEWHERE: f64 = 0.98;

/// A key of the file.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What holds where it is not written, for people; empty where the value itself is shown.
    pub default: &'static str,
    /// What it is for.
    pub what: &'static str,
    /// How it is said on the command line of `serve`.
    pub flag: Flag,
}

/// How a setting is said on the command line.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// It is not; file and environment only.
    None,
    /// `--name VALUE`.
    Value(&'static str, &'static str),
    /// `--name`, or `--name=false` to take back what the file says.
    Switch(&'static str),
    /// Several flags, each of which stands for a value: (name, value, what it does).
    Choices(&'static [(&'static str, &'static str, &'static str)]),
    /// One that all commands have.
    Everywhere(&'static str),
}

impl Flag {
    /// The flags' names.
    pub fn names(self) -> Vec<&'static str> {
        match self {
            Flag::None => Vec::new(),
            Flag::Value(name, _) | Flag::Switch(name) | Flag::Everywhere(name) => vec![name],
            Flag::Choices(choices) => choices.iter().map(|(name, ..)| *name).collect(),
        }
    }
}

/// A table of the file.
#[derive(Debug)]
pub struct Group {
    /// Its path, empty for the top of the file.
    pub path: &'static str,
    /// How people call it.
    pub title: &'static str,
    /// What may be written in it.
    pub keys: &'static [Key],
}

impl Group {
    /// Whether it has such a key.
    pub fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// The path of a key of it.
    pub fn path_of(&self, key: &Key) -> String {
        within(self.path, key.name)
    }
}

/// A key's path in a table.
pub(crate) fn within(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A configuration.
#[derive(Debug)]
pub struct Schema {
    /// Tables of settings, each of which may come from the file, the environment or a flag. The first is the top of the file.
    pub settings: &'static [&'static Group],
    /// Tables that only the file has, and that are read by code of their own.
    pub tables: &'static [&'static Group],
    /// What its variables begin with.
    pub prefix: &'static str,
    /// Variables that begin so and are for others. One that ends in `_` stands for all that begin with it.
    pub not_settings: &'static [&'static str],
    /// Whether nobody else has variables that begin so. If others may, only those are refused that look like settings.
    pub is_prefix_own: bool,
    /// The variable that names the file.
    pub file_variable: &'static str,
    /// The setting whose default systemd gives, by `STATE_DIRECTORY`.
    pub directory: &'static str,
}

impl Schema {
    /// Every table.
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> {
        self.settings.iter().chain(self.tables).copied()
    }

    /// Every setting, with its table.
    pub fn settings(&self) -> impl Iterator<Item = (&'static Group, &'static Key)> {
        let keys = self.settings.iter().flat_map(|group| group.keys.iter().map(move |key| (*group, key)));
        keys.filter(|(group, key)| !self.is_table(&group.path_of(key)))
    }

    /// The variable of a setting, or what the variables of a table begin with.
    pub fn variable(&self, path: &str) -> String {
        format!("{}{}", self.prefix, path.replace('.', "_").to_ascii_uppercase())
    }

    pub(crate) fn is_table(&self, path: &str) -> bool {
        self.groups().any(|group| group.path == path)
    }

    /// What can be written in a table at a path: its keys, and the tables of settings below it.
    pub(crate) fn names(&self, group: &Group, path: &str) -> Vec<&'static str> {
        let below = self.settings.iter().filter_map(|inner| match path {
            "" => Some(inner.path),
            path => inner.path.strip_prefix(path)?.strip_prefix('.'),
        });
        let below = below.filter(|name| !name.is_empty() && !name.contains('.'));
        group.keys.iter().map(|key| key.name).chain(below).collect()
    }

    /// What to do about a key that a table does not have.
    pub(crate) fn key_hint(&self, group: &Group, path: &str, unknown: &str) -> String {
        let names = self.names(group, path);
        let here = names.iter().map(|name| (similarity(unknown, name), within(path, name)));
        let others = self.groups().filter(|other| other.path != group.path);
        let elsewhere = others.flat_map(|other| other.keys.iter().map(move |key| (other.path_of(key), key)));
        let scored = elsewhere.map(|(path, key)| {
            let names = key.flag.names().into_iter().chain([key.name, path.as_str()]);
            (ELSEWHERE * names.map(|name| similarity(unknown, name)).fold(0.0, f64::max), path)
        });
        match best(scored.chain(here)) {
            Some(meant) if !path.is_empty() && !meant.contains('.') => {
                format!("did you mean {meant}, at the top of the file, above the first [table]?")
            }
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("there are {}", names.join(", ")),
        }
    }

    /// What to do about a variable that is no setting; none where it may be for others. Kubernetes, for one, sets
    /// `NOTBEFORE_PORT` where a service is called notbefore.
    pub(crate) fn variable_hint(&self, unknown: &str) -> Option<String> {
        // What they all begin with makes no two of them alike.
        let bare = |name: &str| name.strip_prefix(self.prefix).unwrap_or(name).to_owned();
        let variables = self.settings().map(|(group, key)| self.variable(&group.path_of(key)));
        let meant = best(variables.map(|name| (similarity(&bare(unknown), &bare(&name)), name)));
        let is_of_table = |group: &&Group| {
            !group.path.is_empty() && unknown.starts_with(&format!("{}_", self.variable(group.path)))
        };
        match meant {
            Some(meant) => Some(format!("did you mean {meant}?")),
            None if self.is_prefix_own || self.settings.iter().any(is_of_table) => {
                Some("unset it".to_owned())
            }
            None => None,
        }
    }

    pub(crate) fn is_foreign(&self, variable: &str) -> bool {
        let is = |other: &&str| *other == variable || (other.ends_with('_') && variable.starts_with(other));
        self.not_settings.iter().any(is) || variable == self.file_variable
    }
}
