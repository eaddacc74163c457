//! The file: TOML, read so that every mistake has its line.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value as Toml};

use super::settings::SETTINGS;
use super::{Source, Written, suggest};

/// The largest file: a thousand listeners are some 40 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a file; adds what is wrong with it to `mistakes`.
pub fn read(path: &Path, mistakes: &mut Vec<String>) -> Vec<Written> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(error) => {
            mistakes.push(format!("cannot read {}: {error}", path.display()));
            return Vec::new();
        }
    };
    let mut reader = Reader { path, text: &text, found: Vec::new() };
    match DeTable::parse(&text) {
        Ok(table) => reader.table("", table.get_ref()),
        Err(error) => reader.wrong(error.span().map_or(0, |span| span.start), error.message()),
    }
    // The parser has its own order; people read from the top.
    reader.found.sort_by_key(|(line, _)| *line);
    let mut written = Vec::new();
    for (line, one) in reader.found {
        match one {
            Ok(one) => written.push(one),
            Err(what) => mistakes.push(format!("{}:{line}: {what}", path.display())),
        }
    }
    written
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it is larger than {FILE_BYTES_MAX} bytes, too large for settings"
        )));
    }
    Ok(text)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    /// What each line says, or what is wrong with it.
    found: Vec<(usize, Result<Written, String>)>,
}

impl Reader<'_> {
    /// Reads a table; `section` is its path, empty for the whole file.
    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = match section {
                "" => name.get_ref().to_string(),
                section => format!("{section}.{}", name.get_ref()),
            };
            self.entry(&path, name.span().start, value);
        }
    }

    fn entry(&mut self, path: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        let setting = SETTINGS.iter().find(|setting| setting.key() == path);
        let within = format!("{path}.");
        let is_section =
            SETTINGS.iter().any(|setting| setting.section == path || setting.section.starts_with(&within));
        match (setting, value.get_ref()) {
            (Some(setting), DeValue::Table(_)) => {
                let expected = (setting.expected)();
                self.wrong(at, &format!("{path}: expected {expected}, not a table"));
            }
            (Some(setting), _) => match owned(value).and_then(|value| (setting.from_toml)(&value)) {
                Ok(value) => {
                    let line = self.line(at);
                    let source = Source::File { path: self.path.to_owned(), line };
                    self.found.push((line, Ok(Written { setting, value, source })));
                }
                Err(wrong) => self.wrong(at, &format!("{path}: {wrong}")),
            },
            (None, DeValue::Table(table)) if is_section => self.table(path, table),
            (None, _) if is_section => {
                self.wrong(
                    at,
                    &format!("{path} is a section, not a value: write [{path}] and its keys below"),
                );
            }
            (None, _) => self.unknown(path, at),
        }
    }

    fn unknown(&mut self, path: &str, at: usize) {
        let cure = match suggest::key(path) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "'notbefore serve --print-config' shows all that there are".to_owned(),
        };
        self.wrong(at, &format!("unknown key {path}; {cure}"));
    }

    fn wrong(&mut self, at: usize, what: &str) {
        self.found.push((self.line(at), Err(what.to_owned())));
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The value without its place in the text. A number may be too large for one.
fn owned(value: &Spanned<DeValue<'_>>) -> Result<Toml, String> {
    Toml::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| error.message().to_owned())
}
