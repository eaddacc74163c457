//! Reads a configuration: merges file, environment and flags by priority, and collects every error with its place.

use std::path::Path;

use serde::Serialize;
use toml::Value as Toml;
use toml::de::DeTable;

use crate::errors::ConfigErrors;
use crate::file::Table;
use crate::kind::{Kind, RawValue, ToToml};
use crate::schema::Schema;
use crate::sources::{STATE_DIRECTORY, Source, Sources};

pub struct Reader<'a> {
    pub(crate) schema: &'static Schema,
    path: &'a Path,
    text: &'a str,
    /// Values by key, lowest priority first.
    raw_values: Vec<(String, Source, RawValue)>,
    entries: Vec<Entry>,
    mistakes: Vec<(Source, String)>,
}

/// An effective setting.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub key: String,
    pub value: Toml,
    pub source: Source,
}

impl<'a> Reader<'a> {
    /// Starts with a file's text, which [`Reader::top`] reads, and with systemd's variables.
    pub fn new(schema: &'static Schema, path: &'a Path, text: &'a str, sources: &Sources) -> Self {
        let directory = sources.variable(STATE_DIRECTORY).map(|text| {
            let source = Source::Environment(STATE_DIRECTORY.to_owned());
            (schema.directory.to_owned(), source, RawValue::Text(text.to_owned()))
        });
        let raw_values = directory.into_iter().collect();
        Reader { schema, path, text, raw_values, entries: Vec::new(), mistakes: Vec::new() }
    }

    /// Adds the file's settings, and returns its top table for tables that only the file has.
    pub fn top<'t, 'i>(&mut self, entries: &'t DeTable<'i>) -> Table<'t, 'i> {
        let top = self.table(self.schema.settings[0], String::new(), 0, entries);
        self.add_table(&top);
        top
    }

    /// Adds the settings of a table and of the tables below it.
    fn add_table(&mut self, table: &Table<'_, '_>) {
        let schema = self.schema;
        for name in table.entries.keys().map(|name| name.get_ref()) {
            let key = table.key(name);
            if let Some(group) = schema.settings.iter().find(|group| group.path == key) {
                if let Some(inner) = self.inner(table, name, group) {
                    self.add_table(&inner);
                }
            } else if table.group.has(name)
                && !schema.is_table(&key)
                && let Some(raw) = self.written(table, name)
            {
                self.raw_values.push((key, self.source(table.at(name)), raw));
            }
        }
    }

    /// Adds what overrides the file: the environment, then the flags.
    pub fn add_sources(&mut self, sources: &Sources) {
        let schema = self.schema;
        let is_ours = |name: &&String| {
            [STATE_DIRECTORY, schema.file_variable].contains(&name.as_str())
                || name.starts_with(schema.prefix) && !schema.is_foreign(name)
        };
        for name in sources.not_text.iter().filter(is_ours) {
            self.mistakes.push((Source::Environment(name.clone()), "its value is not UTF-8".to_owned()));
        }
        for (name, text) in &sources.environment {
            if !name.starts_with(schema.prefix) || text.is_empty() || schema.is_foreign(name) {
                continue;
            }
            let source = Source::Environment(name.clone());
            let mut keys = schema.settings().map(|(group, key)| group.path_of(key));
            match keys.find(|key| schema.variable(key).eq_ignore_ascii_case(name)) {
                Some(key) => self.raw_values.push((key, source, RawValue::Text(text.clone()))),
                None => self.mistakes.extend(
                    schema
                        .variable_hint(name)
                        .map(|cure| (source, format!("there is no such setting; {cure}"))),
                ),
            }
        }
        for flag in &sources.flags {
            let source = Source::Flag(flag.flag.clone());
            self.raw_values.push((flag.key.clone(), source, RawValue::Text(flag.text.clone())));
        }
    }

    /// The value of a setting from the source with the highest priority.
    pub fn setting<K: Kind>(&mut self, key: &str, kind: &K) -> Option<K::Value> {
        self.strongest(key, kind).map(|(value, _)| value)
    }

    /// The value of a setting, recorded with its source for [`Reader::finish`].
    pub fn recorded_setting<K: ToToml>(&mut self, key: &str, kind: &K, default: K::Value) -> K::Value {
        let (value, source) = self.strongest(key, kind).unwrap_or((default, Source::Default));
        self.entries.push(Entry { key: key.to_owned(), value: kind.show(&value), source });
        value
    }

    fn strongest<K: Kind>(&mut self, key: &str, kind: &K) -> Option<(K::Value, Source)> {
        let is_setting = || self.schema.settings().any(|(group, known)| group.path_of(known) == key);
        debug_assert!(is_setting(), "{key} is not a setting");
        let mut strongest = None;
        for (_, source, raw) in self.raw_values.iter().filter(|(known, ..)| known == key) {
            match kind.check(raw) {
                Ok(value) => strongest = Some((value, source.clone())),
                Err(wrong) if matches!(source, Source::File { .. }) => {
                    self.mistakes.push((source.clone(), format!("{key}: {wrong}")));
                }
                Err(wrong) => self.mistakes.push((source.clone(), wrong)),
            }
        }
        strongest
    }

    /// Records an error at an offset of the file.
    pub fn wrong(&mut self, at: usize, what: impl Into<String>) {
        self.mistakes.push((self.source(at), what.into()));
    }

    /// Records that the file is not valid TOML.
    pub fn parse_error(&mut self, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        match self.text.get(span.clone()).filter(|_| error.message() == "duplicate key") {
            Some(key) => self.wrong(span.start, format!("{key} is set twice; remove one")),
            None => self.wrong(span.start, error.message()),
        }
    }

    fn source(&self, at: usize) -> Source {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Source::File { path: self.path.to_owned(), line }
    }

    /// Whether there are no errors so far.
    pub fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Drops the file's errors, for readers that use the valid part of it.
    pub fn ignore_file_errors(&mut self) {
        self.mistakes.retain(|(source, _)| !matches!(source, Source::File { .. }));
    }

    /// Returns the recorded settings, or all errors.
    pub fn finish(mut self) -> Result<Vec<Entry>, ConfigErrors> {
        if self.mistakes.is_empty() {
            return Ok(self.entries);
        }
        self.mistakes.sort_by_key(|(source, _)| source.rank());
        Err(ConfigErrors(self.mistakes.iter().map(|(source, what)| format!("{source}: {what}")).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{FileName, Integer, List, Switch, Text};
    use crate::schema::{Flag, Group, Key};
    use crate::sources::FlagValue;

    const fn key(name: &'static str, flag: Flag) -> Key {
        Key { name, default: "", what: "", flag }
    }

    static SCHEMA: Schema = Schema {
        settings: &[
            &Group { path: "", title: "", keys: &[key("data", Flag::None), key("rule", Flag::None)] },
            &Group { path: "guest", title: "", keys: &[key("listen", Flag::Value("at", "ADDR"))] },
            &Group { path: "guest.limits", title: "", keys: &[key("most", Flag::None)] },
        ],
        tables: &[&Group { path: "rule", title: "", keys: &[key("drain", Flag::None)] }],
        prefix: "NB_",
        not_settings: &["NB_TOKEN", "NB_GUEST_A_"],
        is_prefix_own: false,
        file_variable: "NB_CONFIG",
        directory: "data",
    };
    const NUMBERS: List<Integer<u8>> = List(Integer::between(1, 9));

    fn sources(environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let flag = |(key, text): &(&str, &str)| FlagValue::of_key(key, (*text).to_owned());
        Sources {
            environment: environment.iter().map(owned).collect(),
            flags: flags.iter().map(flag).collect(),
            ..Sources::default()
        }
    }

    /// Each setting with its value and source, or the errors.
    fn read(text: &str, sources: &Sources) -> Result<Vec<String>, Vec<String>> {
        let mut reader = Reader::new(&SCHEMA, Path::new("a.toml"), text, sources);
        match &DeTable::parse(text) {
            Ok(entries) => {
                let top = reader.top(entries.get_ref());
                for rule in reader.many(&top, "rule", SCHEMA.tables[0]) {
                    reader.needed(&rule, "drain", &Switch);
                }
            }
            Err(error) => reader.parse_error(error),
        }
        reader.add_sources(sources);
        reader.recorded_setting("data", &FileName, "here".into());
        reader.recorded_setting("guest.listen", &NUMBERS, vec![1]);
        reader.recorded_setting("guest.limits.most", &Text::<String>::parsed("text"), "x".to_owned());
        let show = |one: Entry| format!("{} = {} by {}", one.key, one.value, one.source);
        reader.finish().map(|all| all.into_iter().map(show).collect()).map_err(|wrong| wrong.0)
    }

    #[test]
    fn highest_priority_source_wins() {
        let text = "data = '/file'\n[guest]\nlisten = [2, 3]\nlimits.most = 'y'\n";
        let none = sources(&[], &[]);
        let systemd = sources(&[("STATE_DIRECTORY", "/state"), ("NB_GUEST_LISTEN", "")], &[]);
        let all = sources(&[("NB_DATA", "/variable"), ("NB_GUEST_LISTEN", "4, 5")], &[("guest.listen", "6")]);
        let first_two = |text, sources| read(text, sources).unwrap()[..2].to_vec();
        assert_eq!(first_two("", &none), ["data = \"here\" by default", "guest.listen = [1] by default"]);
        assert_eq!(first_two("", &systemd)[0], "data = \"/state\" by environment STATE_DIRECTORY");
        assert_eq!(
            read(text, &systemd).unwrap(),
            [
                "data = \"/file\" by a.toml:1",
                "guest.listen = [2, 3] by a.toml:3",
                "guest.limits.most = \"y\" by a.toml:4"
            ]
        );
        assert_eq!(
            first_two(text, &all),
            ["data = \"/variable\" by environment NB_DATA", "guest.listen = [6] by flag --guest.listen"]
        );
    }

    #[test]
    fn errors_are_ordered_file_environment_flags() {
        let text = "at = 1\nquux = 1\n[guest]\nlisten = [10]\ndata = 1\nlimits = 1\n[[rule]]\n";
        let said = sources(
            &[("NB_GUEST_LISTN", "1"), ("NB_GUEST_X", "1"), ("NB_PORT", "1"), ("NB_DATA", "\0")],
            &[("guest.listen", "0")],
        );
        assert_eq!(
            read(text, &said).unwrap_err(),
            [
                "a.toml:1: unknown key at; did you mean guest.listen?",
                "a.toml:2: unknown key quux; there are data, rule, guest",
                "a.toml:4: guest.listen: expected a whole number from 1 to 9, not 10",
                "a.toml:5: unknown key guest.data; did you mean data, at the top of the file, above the first [table]?",
                "a.toml:6: guest.limits: expected a table with most",
                "a.toml:7: rule.drain is missing; expected true or false",
                "environment NB_GUEST_LISTN: there is no such setting; did you mean NB_GUEST_LISTEN?",
                "environment NB_GUEST_X: there is no such setting; unset it",
                "environment NB_DATA: expected the name of a file or directory, not \"\\0\"",
                "flag --guest.listen: expected a whole number from 1 to 9, not \"0\"",
            ]
        );
        let others = [("NB_TOKEN", "x"), ("NB_GUEST_A_X", "x"), ("NB_CONFIG", "x"), ("GUEST", "x")];
        assert!(read("", &sources(&others, &[])).is_ok());
        let twice =
            read("data = \"a\"\n[guest]\nlisten = [1]\nlisten = [2]\n", &sources(&[], &[])).unwrap_err();
        assert_eq!(twice, ["a.toml:4: listen is set twice; remove one"]);
        let large = read("[guest.limits]\nmost = 99999999999999999999\n", &sources(&[], &[])).unwrap_err();
        assert_eq!(
            large,
            [
                "a.toml:2: guest.limits.most: the number is out of range; it may be -9223372036854775808 to 9223372036854775807"
            ]
        );
        let not_text = ["NB_DATA", "STATE_DIRECTORY", "NB_TOKEN", "HOME"].map(str::to_owned).to_vec();
        assert_eq!(
            read("", &Sources { not_text, ..sources(&[], &[]) }).unwrap_err(),
            [
                "environment NB_DATA: its value is not UTF-8",
                "environment STATE_DIRECTORY: its value is not UTF-8"
            ]
        );
        assert!(read("\n\nx = = 1", &sources(&[], &[])).unwrap_err()[0].starts_with("a.toml:3: "));
    }
}
