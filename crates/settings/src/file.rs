//! The configuration file: TOML, parsed so that every error has its line and one error does not hide another.

use std::io::{self, Read};

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value as Toml};

use crate::kind::{Kind, RawValue};
use crate::reader::Reader;
use crate::schema::{Group, within};

/// Limit on the file's size: a thousand listeners are about 40 KiB, a hundred rules with ten steps each about 200 KiB.
const BYTES_MAX: u64 = 1024 * 1024;

/// Byte order marks of UTF-16, as written by Windows editors and PowerShell.
const UTF16_LITTLE: [u8; 2] = [0xff, 0xfe];
const UTF16_BIG: [u8; 2] = [0xfe, 0xff];
/// Byte order mark of UTF-8.
const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Reads a file's text: UTF-8, or UTF-16 with a byte order mark, as `>` writes in Windows PowerShell.
pub fn read_text(file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("larger than {BYTES_MAX} bytes, the limit for settings")));
    }
    text_of(bytes).ok_or_else(|| io::Error::other("neither UTF-8 nor UTF-16; save it as UTF-8"))
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

/// A table of the file and its place.
#[derive(Clone)]
pub struct Table<'t, 'i> {
    /// The keys that it may have.
    pub(crate) group: &'static Group,
    /// Its path, for messages: that of its group, except for tables that share a group.
    path: String,
    /// Its offset in the text.
    pub at: usize,
    pub(crate) entries: &'t DeTable<'i>,
}

impl<'t, 'i> Table<'t, 'i> {
    /// A key's path, for messages.
    pub fn key(&self, name: &str) -> String {
        within(&self.path, name)
    }

    /// The offset of a key, or of the table if the key is missing.
    pub fn at(&self, name: &str) -> usize {
        self.entry(name).map_or(self.at, |(at, _)| at)
    }

    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn entry(&self, name: &str) -> Option<(usize, &'t Spanned<DeValue<'i>>)> {
        self.entries.get_key_value(name).map(|(key, value)| (key.span().start, value))
    }
}

impl Reader<'_> {
    /// Opens a table; unknown keys are errors.
    pub(crate) fn table<'t, 'i>(
        &mut self,
        group: &'static Group,
        path: String,
        at: usize,
        entries: &'t DeTable<'i>,
    ) -> Table<'t, 'i> {
        let names = self.schema.names(group, &path);
        for (name, _) in entries.iter().filter(|(name, _)| !names.contains(&&**name.get_ref())) {
            let cure = self.schema.key_hint(group, &path, name.get_ref());
            self.wrong(name.span().start, format!("unknown key {}; {cure}", within(&path, name.get_ref())));
        }
        Table { group, path, at, entries }
    }

    /// Records an error about a key, or about its absence.
    pub fn wrong_key(&mut self, table: &Table<'_, '_>, name: &str, what: &str) {
        self.wrong(table.at(name), format!("{}: {what}", table.key(name)));
    }

    /// A key's value without its place in the text. A number may be out of range for that.
    pub(crate) fn written(&mut self, table: &Table<'_, '_>, name: &str) -> Option<RawValue> {
        let (_, value) = table.entry(name)?;
        let read = Toml::deserialize(ValueDeserializer::from(value.clone()));
        let wrong = |error: toml::de::Error| match value.get_ref().is_integer() {
            true => format!("the number is out of range; it may be {} to {}", i64::MIN, i64::MAX),
            false => error.message().to_owned(),
        };
        read.map(RawValue::Toml).map_err(|error| self.wrong_key(table, name, &wrong(error))).ok()
    }

    /// The value of a key that only the file has; none if it is missing or wrong.
    pub fn value<K: Kind>(&mut self, table: &Table<'_, '_>, name: &str, kind: &K) -> Option<K::Value> {
        debug_assert!(table.group.has(name), "{name} is not a key of {}", table.group.path);
        let raw = self.written(table, name)?;
        kind.check(&raw).map_err(|wrong| self.wrong_key(table, name, &wrong)).ok()
    }

    /// The value of a required key; its absence is an error.
    pub fn needed<K: Kind>(&mut self, table: &Table<'_, '_>, name: &str, kind: &K) -> Option<K::Value> {
        if !table.has(name) {
            self.wrong(table.at, format!("{} is missing; expected {}", table.key(name), kind.expected()));
        }
        self.value(table, name, kind)
    }

    /// The table under a key; none if it is missing or not a table.
    pub fn inner<'t, 'i>(
        &mut self,
        table: &Table<'t, 'i>,
        name: &str,
        group: &'static Group,
    ) -> Option<Table<'t, 'i>> {
        let (at, value) = table.entry(name)?;
        let path = table.key(name);
        match value.get_ref().as_table() {
            Some(entries) => Some(self.table(group, path, at, entries)),
            None => {
                let names = self.schema.names(group, &path).join(", ");
                self.wrong_key(table, name, &format!("expected a table with {names}"));
                None
            }
        }
    }

    /// The array of tables under a key: `[[rule]]`, `[[rule.before]]`.
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
                // A table's span starts with its header.
                Some(entries) => tables.push(self.table(group, path.clone(), one.span().start, entries)),
                None => self.wrong(one.span().start, cure.clone()),
            }
        }
        tables
    }
}
