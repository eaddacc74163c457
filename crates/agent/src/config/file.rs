//! The file as it is written: TOML, read so that every mistake has its line, and none hides another.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value as Toml};

use super::keys::{GROUPS, Group};
use super::value::{Said, Value};
#[cfg(unix)]
use crate::trust::{self, Rule};
use notbefore_settings::suggest;

/// The largest file: a hundred rules with ten steps each are some 200 KiB.
const BYTES_MAX: u64 = 1024 * 1024;

/// What a text in UTF-16 begins with, as Windows' editors and PowerShell write it: the lower byte first, or the upper.
const UTF16_LITTLE: [u8; 2] = [0xff, 0xfe];
const UTF16_BIG: [u8; 2] = [0xfe, 0xff];
/// What some programs begin UTF-8 with.
const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Reads a file's text: UTF-8, or UTF-16 that says so, which is what `>` makes in Windows' own PowerShell.
/// Links are followed, and the file at their end has to be one that the agent trusts.
pub fn read_text(path: &Path, is_named: bool) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    trust::check(if is_named { Rule::NamedConfig } else { Rule::UsualConfig }, &file, path)?;
    #[cfg(not(unix))]
    let _ = is_named;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {BYTES_MAX} bytes, too large for settings")));
    }
    text_of(bytes).ok_or_else(|| io::Error::other("it is neither UTF-8 nor UTF-16; save it as UTF-8"))
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks();
        let units: Vec<u16> = units.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    if let Some(rest) = bytes.strip_prefix(&UTF16_LITTLE) {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(&UTF16_BIG) {
        return utf16(rest, u16::from_be_bytes);
    }
    let text = bytes.strip_prefix(&UTF8_MARK).map(<[u8]>::to_vec).unwrap_or(bytes);
    String::from_utf8(text).ok()
}

/// A table of the file, and where it is.
#[derive(Clone)]
pub struct Table<'t, 'i> {
    /// What may be written in it.
    group: &'static Group,
    /// Its path, for messages: that of its group, but for `rule.after`.
    path: String,
    /// Where it begins in the text.
    pub at: usize,
    entries: &'t DeTable<'i>,
}

/// A text whose mistakes are being collected.
pub struct Reader<'a> {
    text: &'a str,
    mistakes: Vec<(usize, String)>,
}

impl<'a> Reader<'a> {
    /// Nothing is wrong with it so far.
    pub fn new(text: &'a str) -> Self {
        Reader { text, mistakes: Vec::new() }
    }

    /// What is wrong, from the top of the file, each with its line.
    pub fn into_mistakes(mut self) -> Vec<(usize, String)> {
        self.mistakes.sort_by_key(|(line, _)| *line);
        self.mistakes
    }

    /// Whether nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Notes what is wrong at a place.
    pub fn wrong(&mut self, at: usize, what: impl Into<String>) {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.mistakes.push((line, what.into()));
    }

    /// Begins with a table; keys that it may not have are mistakes.
    pub fn table<'t, 'i>(
        &mut self,
        group: &'static Group,
        path: String,
        at: usize,
        entries: &'t DeTable<'i>,
    ) -> Table<'t, 'i> {
        for (name, _) in entries.iter().filter(|(name, _)| !group.has(name.get_ref())) {
            let cure = cure(group, name.get_ref());
            let name_at = name.span().start;
            self.wrong(name_at, format!("unknown key {}; {cure}", within(&path, name.get_ref())));
        }
        Table { group, path, at, entries }
    }

    /// What a key says, if it is there and right.
    pub fn value<T: Value>(&mut self, table: &Table<'_, '_>, name: &str) -> Option<T> {
        debug_assert!(table.group.has(name), "{name} is no key of {}", table.group.path);
        let (at, value) = table.entry(name)?;
        let owned = match owned(value) {
            Ok(owned) => owned,
            Err(wrong) => {
                self.wrong(at, format!("{}: {wrong}", table.key(name)));
                return None;
            }
        };
        let read = Said::Toml(&owned).read();
        read.map_err(|wrong| self.wrong(at, format!("{}: {wrong}", table.key(name)))).ok()
    }

    /// The table that a key holds, if it is there and is one.
    pub fn inner<'t, 'i>(
        &mut self,
        table: &Table<'t, 'i>,
        name: &str,
        group: &'static Group,
    ) -> Option<Table<'t, 'i>> {
        let (at, value) = table.entry(name)?;
        let path = table.key(name);
        match value.get_ref() {
            DeValue::Table(entries) => Some(self.table(group, path, at, entries)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                let keys: Vec<&str> = group.names().collect();
                self.wrong(at, format!("{path}: expected a table with {}", keys.join(", ")));
                None
            }
        }
    }

    /// The tables that a key holds: `[[rule]]`, `[[rule.before]]`.
    pub fn many<'t, 'i>(
        &mut self,
        table: &Table<'t, 'i>,
        name: &str,
        group: &'static Group,
    ) -> Vec<Table<'t, 'i>> {
        let Some((at, value)) = table.entry(name) else { return Vec::new() };
        let path = table.key(name);
        let cure = format!("{path}: expected tables, each under a line [[{path}]]");
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(at, cure);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for one in list.iter() {
            match one.get_ref().as_table() {
                Some(entries) => {
                    // A table's span begins with its head.
                    tables.push(self.table(group, path.clone(), one.span().start, entries));
                }
                None => self.wrong(one.span().start, cure.clone()),
            }
        }
        tables
    }
}

impl<'t, 'i> Table<'t, 'i> {
    /// A key's path, for messages.
    pub fn key(&self, name: &str) -> String {
        within(&self.path, name)
    }

    /// Where a key is written, or the table if it is not.
    pub fn at(&self, name: &str) -> usize {
        self.entry(name).map_or(self.at, |(at, _)| at)
    }

    /// Whether a key is written.
    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn entry(&self, name: &str) -> Option<(usize, &'t Spanned<DeValue<'i>>)> {
        self.entries.get_key_value(name).map(|(key, value)| (key.span().start, value))
    }
}

fn within(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What to do about a key that a table does not have.
fn cure(group: &Group, unknown: &str) -> String {
    if let Some(meant) = suggest::nearest(unknown, group.names()) {
        return format!("did you mean {meant}?");
    }
    let place = |group: &&Group| match group.path {
        "" => "the top of the file, above the first [table]".to_owned(),
        path => path.to_owned(),
    };
    match GROUPS.into_iter().filter(|other| other.has(unknown)).map(|group| place(&group)).next() {
        Some(elsewhere) => format!("it belongs to {elsewhere}"),
        None => format!("there are {}", group.names().collect::<Vec<_>>().join(", ")),
    }
}

/// The value without its place in the text. A number may be too large for one.
fn owned(value: &Spanned<DeValue<'_>>) -> Result<Toml, String> {
    Toml::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| error.message().to_owned())
}
