//! The schema of a configuration: its keys, by the tables of its file. It is used to find unknown keys and variables,
//! and to generate flags, sample files, tables of the documentation and manual pages.

use crate::suggest::{best, similarity};

/// Weight of a suggestion from another table, or of a flag: a key of the same table is slightly more likely.
const ELSEWHERE: f64 = 0.98;

#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    /// The default, for people; empty if the value itself is shown.
    pub default: &'static str,
    /// Its description.
    pub what: &'static str,
    /// Its flag on the command line of `serve`.
    pub flag: Flag,
}

/// The command-line form of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// File and environment only.
    None,
    /// `--name VALUE`.
    Value(&'static str, &'static str),
    /// `--name`, or `--name=false` to override the file.
    Switch(&'static str),
    /// Several flags, each for one value: (name, value, description).
    Choices(&'static [(&'static str, &'static str, &'static str)]),
    /// A flag of all commands.
    Everywhere(&'static str),
}

impl Flag {
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
    /// Empty for the top of the file.
    pub path: &'static str,
    /// Its title in the documentation.
    pub title: &'static str,
    pub keys: &'static [Key],
}

impl Group {
    pub fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    pub fn path_of(&self, key: &Key) -> String {
        within(self.path, key.name)
    }

    /// Whether a variable without its prefix is the end of a key's path, by whole names, or its flag: `NOTICE` or
    /// `EXEC_TIMEOUT`.
    fn is_end_of(&self, key: &Key, bare: &str) -> bool {
        let path = self.path_of(key);
        let is = |end: &str| end.replace(['.', '-'], "_").eq_ignore_ascii_case(bare);
        path.match_indices('.').any(|(at, _)| is(&path[at + 1..])) || key.flag.names().into_iter().any(is)
    }
}

/// Whether a variable has a form that Kubernetes gives the variables of a service: of one named notbefore-guest,
/// `NOTBEFORE_GUEST_PORT_80_TCP` and `NOTBEFORE_GUEST_SERVICE_HOST`. No setting has such a name.
fn is_of_kubernetes(variable: &str) -> bool {
    variable.ends_with("_PORT") || variable.contains("_PORT_") || variable.contains("_SERVICE_")
}

/// A key's path in a table.
pub(crate) fn within(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[derive(Debug)]
pub struct Schema {
    /// Tables of settings, which may come from the file, the environment or a flag. The first is the top of the file.
    pub settings: &'static [&'static Group],
    /// Tables that only the file has; other code reads them.
    pub tables: &'static [&'static Group],
    /// Prefix of its variables.
    pub prefix: &'static str,
    /// Variables with the prefix that are not settings. One that ends in `_` is itself a prefix.
    pub not_settings: &'static [&'static str],
    /// Whether the prefix is exclusive. If not, only variables that resemble settings are errors.
    pub is_prefix_own: bool,
    /// The variable with the file's path.
    pub file_variable: &'static str,
    /// The setting whose default is systemd's `STATE_DIRECTORY`.
    pub directory: &'static str,
}

impl Schema {
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> {
        self.settings.iter().chain(self.tables).copied()
    }

    /// Every setting, with its table.
    pub fn settings(&self) -> impl Iterator<Item = (&'static Group, &'static Key)> {
        let keys = self.settings.iter().flat_map(|group| group.keys.iter().map(move |key| (*group, key)));
        keys.filter(|(group, key)| !self.is_table(&group.path_of(key)))
    }

    /// The variable of a setting, or the prefix of a table's variables.
    pub fn variable(&self, path: &str) -> String {
        format!("{}{}", self.prefix, path.replace('.', "_").to_ascii_uppercase())
    }

    pub(crate) fn is_table(&self, path: &str) -> bool {
        self.groups().any(|group| group.path == path)
    }

    /// The valid names in a table at a path: its keys, and the tables of settings below it.
    pub(crate) fn names(&self, group: &Group, path: &str) -> Vec<&'static str> {
        let below = self.settings.iter().filter_map(|inner| match path {
            "" => Some(inner.path),
            path => inner.path.strip_prefix(path)?.strip_prefix('.'),
        });
        let below = below.filter(|name| !name.is_empty() && !name.contains('.'));
        group.keys.iter().map(|key| key.name).chain(below).collect()
    }

    /// What to do about an unknown key.
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

    /// What to do about a variable that is not a setting; none if another program may use it.
    pub(crate) fn variable_hint(&self, unknown: &str) -> Option<String> {
        if is_of_kubernetes(unknown) {
            return None;
        }
        // The common prefix would make all of them similar.
        let bare = |name: &str| name.strip_prefix(self.prefix).unwrap_or(name).to_owned();
        let ends = self.settings().filter(|(group, key)| group.is_end_of(key, &bare(unknown)));
        let ends: Vec<String> = ends.map(|(group, key)| self.variable(&group.path_of(key))).collect();
        if !ends.is_empty() {
            return Some(format!("did you mean {}?", ends.join(" or ")));
        }
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
