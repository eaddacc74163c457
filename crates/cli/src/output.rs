//! All that the program prints: tables and lines for people, JSON for programs, logs. Nothing else in this crate writes to
//! standard output or standard error, but for `export -` and progress bars.
//!
//! Much of what is shown was written by others: a platform, an operator, a hook. People see everything spelled out that
//! would move their terminal's cursor or turn its words around, and JSON has an escape for it. What was asked for as data
//! ([`data`]) is spelled out at a terminal only.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Result;
use notbefore_wire::text::{escape, is_unprintable, printable, printable_json};
use serde::Serialize;
use tracing_subscriber::fmt::MakeWriter;

use crate::args::Output;

impl Output {
    /// Prints what a command came to: JSON for programs, and for people what `show` prints.
    pub fn answer<T: Serialize>(self, value: &T, show: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        match self {
            Output::Json => json(value),
            Output::Table => show(value),
        }
    }
}

/// A column of a table: its head, and its cell for an item.
pub type Column<'a, T> = (&'static str, &'a dyn Fn(&T) -> String);

/// The items of a table, one row each.
pub struct Rows<'a, T>(pub &'a [T]);

impl<T> Rows<'_, T> {
    /// The table of these columns.
    pub fn columns(&self, columns: &[Column<'_, T>]) -> Table {
        let head: Vec<String> = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        let row = |item: &T| columns.iter().map(|(_, cell)| printable(&cell(item))).collect();
        Table(std::iter::once(head).chain(self.0.iter().map(row)).collect())
    }
}

/// Rows of cells, the head first. Each column is as wide as its widest cell.
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// Prints it, or a sentence if it has no rows below its head.
    pub fn print(&self, if_empty: &str) -> Result<()> {
        match self.0.len() {
            1 => line(if_empty),
            _ => self.lines().iter().try_for_each(|text| line(text)),
        }
    }

    /// It, as lines.
    pub fn lines(&self) -> Vec<String> {
        let widest = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.0[0].len()).map(widest).collect();
        let one = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.0.iter().map(one).collect()
    }
}

/// Prints the fields of one thing below its head line, with their values in a column. Those without a value are left out.
pub fn fields<const WIDTH: usize>(fields: &[(&str, String)]) -> Result<()> {
    let mut said = fields.iter().filter(|(_, value)| !value.is_empty());
    said.try_for_each(|(name, value)| line(&format!("  {name:<WIDTH$}{value}")))
}

/// Prints one line.
pub fn line(line: &str) -> Result<()> {
    write(&(printable(line) + "\n"))
}

/// Prints lines at once.
pub fn lines(lines: &[String]) -> Result<()> {
    write(&lines.iter().map(|line| printable(line) + "\n").collect::<String>())
}

/// Says on standard error what went wrong, or what is waited for, in however many lines.
#[allow(clippy::print_stderr, reason = "this is the place for it")]
pub fn eprint(text: &str) {
    text.split('\n').for_each(|line| eprintln!("{}", printable(line)));
}

/// Asks on standard error; the answer comes in the same line.
pub fn ask(question: &str) -> Result<()> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{} ", printable(question))?;
    Ok(stderr.flush()?)
}

/// Prints what was asked for as it is: to a file or a program byte by byte, at a terminal with everything spelled out but
/// line ends.
pub fn data(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        return Ok(write!(stdout, "{}", escape(&text, |char| is_unprintable(char) && char != '\n'))?);
    }
    Ok(stdout.write_all(bytes)?)
}

/// Prints a value as JSON, for a person's eyes too.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    write(&(printable_json(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Prints a value as JSON in one line, one of many.
pub fn json_line<T: Serialize>(value: &T) -> Result<()> {
    write(&(printable_json(&serde_json::to_string(value)?) + "\n"))
}

fn write(text: &str) -> Result<()> {
    Ok(write!(io::stdout().lock(), "{text}")?)
}

/// Writes a log to standard error, an event a line.
#[derive(Clone, Copy, Debug)]
pub enum Log {
    Plain,
    /// The subscriber's own colours stay: it spells the character out that begins one wherever else it comes from.
    Coloured,
    Json,
    /// What a command complains of, as it does of all else.
    Complaint,
}

impl Log {
    /// A log in words. Colours are for people; a file or a journal keeps the words.
    pub fn in_words() -> Self {
        match io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
            true => Self::Coloured,
            false => Self::Plain,
        }
    }

    pub fn has_colours(self) -> bool {
        matches!(self, Self::Coloured)
    }

    fn shown(self, event: &str) -> String {
        match self {
            Self::Plain => printable(event),
            Self::Coloured => escape(event, |char| is_unprintable(char) && char != '\x1b'),
            Self::Json => printable_json(event),
            Self::Complaint => format!("notbefore: {}", printable(event.trim())),
        }
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for Log {
    /// Takes an event of the log at a time, which is how a subscriber writes.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let shown = self.shown(text.strip_suffix('\n').unwrap_or(&text)) + "\n";
        io::stderr().lock().write_all(shown.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A file's name within one line.
pub fn file_name(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// A value, or a dash where there is none.
pub fn or_dash(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or("-").to_owned()
}

/// Whether something is so.
pub fn yes_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Whether an error only means that nobody reads any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(io_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_event_is_one_line_without_unprintable_characters() {
        let event = "\x1b[32m INFO\x1b[0m a\nb\u{202e}c";
        assert_eq!(Log::Plain.shown(event), "\\u{1b}[32m INFO\\u{1b}[0m a\\nb\\u{202e}c");
        assert_eq!(Log::Coloured.shown(event), "\x1b[32m INFO\x1b[0m a\\nb\\u{202e}c");
        assert_eq!(Log::Json.shown("{\"a\":\"\u{202e}\"}"), "{\"a\":\"\\u202e\"}");
    }
}
