//! Output of the program: tables, lines, JSON, YAML and logs. No other module writes to standard output or standard error,
//! except for `export -` and progress bars.
//!
//! Output may contain untrusted text from a platform, an operator or a hook. Control and bidirectional characters are
//! escaped in text and JSON. Raw output ([`data`]) is escaped at a terminal only.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use notbefore_wire::json::Ordered;
use notbefore_wire::text::{escape, is_unprintable, printable, printable_json};
use serde::Serialize;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use crate::args::Output;
use crate::table::{self, Column, Layout};

const INDENT: &str = "  ";

/// Context of an error after a change.
pub const CHANGED: &str = "the change is made, but its result is not printed; do not repeat it";
/// Context of an error of standard output.
const NOT_WRITTEN: &str = "cannot write to standard output";

impl Output {
    /// Whether people read the result.
    pub fn is_text(self) -> bool {
        match self {
            Output::Table | Output::Wide => true,
            Output::Json | Output::Yaml | Output::Name => false,
        }
    }

    /// Prints a result: in a format for programs, or with `show`.
    pub fn answer<T: Serialize>(self, value: &T, show: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        match self.for_programs(value)? {
            Some(text) => write(&text),
            None => show(value),
        }
    }

    /// Prints the result of a change. An error says that the change is made, so that it is not repeated.
    pub fn answer_change<T: Serialize>(self, value: &T, show: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        self.answer(value, show).context(CHANGED)
    }

    /// Prints one result of a stream: like [`Output::answer`], but JSON on one line, and YAML as a document.
    pub fn item<T: Serialize>(self, value: &T, show: impl FnOnce(&T) -> Result<()>) -> Result<()> {
        match self {
            Output::Json => raw_json(&serde_json::to_string(value)?),
            Output::Yaml => write(&format!("---\n{}", yaml_text(&Ordered::of(value)?)?)),
            Output::Name | Output::Table | Output::Wide => self.answer(value, show),
        }
    }

    /// The text of a result; `lines` if people read it.
    pub fn text<T: Serialize>(self, value: &T, lines: impl FnOnce(&T) -> Vec<String>) -> Result<String> {
        let shown = || lines(value).iter().map(|line| printable(line) + "\n").collect();
        Ok(self.for_programs(value)?.unwrap_or_else(shown))
    }

    /// The text of a list; `if_empty` if it is empty and people read it.
    pub fn list<T: Serialize>(
        self,
        items: &[T],
        columns: &[Column<'_, T>],
        if_empty: &str,
    ) -> Result<String> {
        Ok(self.for_programs(items)?.unwrap_or_else(|| self.table(items, columns, if_empty)))
    }

    /// The text of a table for people; `if_empty` if it has no rows.
    pub fn table<T>(self, items: &[T], columns: &[Column<'_, T>], if_empty: &str) -> String {
        let lines = match items {
            [] if if_empty.is_empty() => return String::new(),
            [] => vec![if_empty.to_owned()],
            items => self.table_lines(items, columns),
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The lines of a table for people, as parts of a longer text.
    pub fn table_lines<T>(self, items: &[T], columns: &[Column<'_, T>]) -> Vec<String> {
        table::lines(items, columns, Layout::of_stdout(self))
    }

    /// The same, below a line that names the whole.
    pub fn indented_table_lines<T>(self, items: &[T], columns: &[Column<'_, T>]) -> Vec<String> {
        let layout = Layout::of_stdout(self).narrower(INDENT.len());
        table::lines(items, columns, layout).iter().map(|line| format!("{INDENT}{line}")).collect()
    }

    fn for_programs<T: Serialize + ?Sized>(self, value: &T) -> Result<Option<String>> {
        if self.is_text() { Ok(None) } else { self.of_json(&Ordered::of(value)?) }
    }

    fn of_json(self, value: &Ordered) -> Result<Option<String>> {
        Ok(match self {
            Output::Json => Some(json_text(value)?),
            Output::Yaml => Some(yaml_text(value)?),
            Output::Name => Some(names(value)),
            Output::Table | Output::Wide => None,
        })
    }
}

/// The name of a value, or of each value in a list, a line each. A value without a name has no line.
fn names(value: &Ordered) -> String {
    match value {
        Ordered::List(values) => values.iter().map(names).collect(),
        Ordered::Map(fields) => {
            let text = |name: &str| match fields.iter().find(|(key, _)| key == name)? {
                (_, Ordered::Scalar(value)) => value.as_str(),
                (_, Ordered::List(_) | Ordered::Map(_)) => None,
            };
            let name = ["path", "id", "host", "name", "token"].into_iter().find_map(text);
            name.map(|name| printable(name) + "\n").unwrap_or_default()
        }
        Ordered::Scalar(_) => String::new(),
    }
}

/// Prints fields with their values in a column. Fields without a value are omitted.
pub fn fields<const WIDTH: usize>(fields: &[(&str, String)]) -> Result<()> {
    let mut said = fields.iter().filter(|(_, value)| !value.is_empty());
    said.try_for_each(|(name, value)| line(&format!("  {name:<WIDTH$}{value}")))
}

pub fn line(line: &str) -> Result<()> {
    write(&(printable(line) + "\n"))
}

/// Prints lines in one write.
pub fn lines(lines: &[String]) -> Result<()> {
    write(&lines.iter().map(|line| printable(line) + "\n").collect::<String>())
}

/// Prints an error or a notice on standard error; may have several lines.
pub fn eprint(text: &str) {
    let lines: String = text.split('\n').map(|line| printable(line) + "\n").collect();
    write_error(&mut io::stderr(), &lines);
}

/// Prints a value on standard error as one line of JSON.
pub fn eprint_json(value: &Value) {
    write_error(&mut io::stderr(), &(printable_json(&value.to_string()) + "\n"));
}

/// `eprintln!` panics if standard error is closed or its disk is full. Then the text has no reader, and the exit code says
/// what there is to say.
fn write_error(stderr: &mut impl Write, text: &str) {
    let _ = stderr.write_all(text.as_bytes());
}

/// Prints a question on standard error, without a line end.
pub fn ask(question: &str) -> Result<()> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{} ", printable(question))?;
    Ok(stderr.flush()?)
}

/// Prints text of [`Output::list`], [`Output::table`] or [`Output::text`].
pub fn text(text: &str) -> Result<()> {
    write(text)
}

/// Prints raw bytes. At a terminal, control characters other than line ends are escaped.
pub fn data(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        let shown = escape(&text, |char| is_unprintable(char) && char != '\n');
        return stdout.write_all(shown.as_bytes()).context(NOT_WRITTEN);
    }
    stdout.write_all(bytes).context(NOT_WRITTEN)
}

/// Prints a value as indented JSON.
#[cfg(unix)]
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    write(&json_text(&Ordered::of(value)?)?)
}

/// Prints JSON text as it is.
pub fn raw_json(json: &str) -> Result<()> {
    write(&(printable_json(json) + "\n"))
}

fn json_text(value: &Ordered) -> Result<String> {
    Ok(printable_json(&value.pretty()?) + "\n")
}

/// A value as YAML. A value with unprintable characters is written as JSON, which is YAML too and has escapes for all
/// of them.
fn yaml_text(value: &Ordered) -> Result<String> {
    let text = serde_saphyr::to_string(value)?;
    let is_plain = !text.chars().any(|char| is_unprintable(char) && char != '\n');
    if is_plain { Ok(text) } else { json_text(value) }
}

fn write(text: &str) -> Result<()> {
    io::stdout().lock().write_all(text.as_bytes()).context(NOT_WRITTEN)
}

/// Log writer for standard error, one line per event.
#[derive(Clone, Copy, Debug)]
pub enum Log {
    Plain,
    /// ESC is kept for the subscriber's colours; the subscriber escapes ESC in messages.
    Coloured,
    Json,
    /// Warnings of a command, with the prefix of its error messages.
    Warning,
}

impl Log {
    /// A text log, coloured at a terminal if `NO_COLOR` is not set.
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
            Self::Warning => format!("notbefore: {}", printable(event.trim())),
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
    /// Expects one whole event per call, as the subscriber writes.
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

/// A file name, escaped.
pub fn file_name(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// The value, or a dash if empty.
pub fn or_dash(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or("-").to_owned()
}

pub fn yes_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Whether the error is a broken pipe: the reader has closed it.
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
    fn closed_standard_error_is_no_panic() {
        struct Closed;

        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        write_error(&mut Closed, "not read\n");
    }

    #[test]
    fn names_are_paths_ids_or_names() {
        let list = serde_json::json!([{"id": "1", "path": "a/b", "name": "b"}, {"id": "2", "host": "h"}, {"host": "h"}, {"name": "n\u{1b}"}, {"token": "t", "grants": []}, {"x": 1}]);
        assert_eq!(names(&Ordered::of(&list).unwrap()), "a/b\n2\nh\nn\\u{1b}\nt\n");
    }

    #[test]
    fn yaml_has_the_same_value_as_json() {
        let plain = serde_json::json!([{"id": "1", "at": "2026-11-17T08:00:00Z", "list": [], "text": "yes\nno", "n": null}]);
        let odd = serde_json::json!({"text": "a\u{202e}b\u{1b}"});
        for value in [plain, odd] {
            let text = yaml_text(&Ordered::of(&value).unwrap()).unwrap();
            assert!(!text.chars().any(|char| is_unprintable(char) && char != '\n'), "{text}");
            assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn log_event_is_one_line_without_unprintable_characters() {
        let event = "\x1b[32m INFO\x1b[0m a\nb\u{202e}c";
        assert_eq!(Log::Plain.shown(event), "\\u{1b}[32m INFO\\u{1b}[0m a\\nb\\u{202e}c");
        assert_eq!(Log::Coloured.shown(event), "\x1b[32m INFO\x1b[0m a\\nb\\u{202e}c");
        assert_eq!(Log::Json.shown("{\"a\":\"\u{202e}\"}"), "{\"a\":\"\\u202e\"}");
    }
}
