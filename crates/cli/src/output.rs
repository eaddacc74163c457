//! Tables for people and JSON for programs. Much of what is shown was written by others: a platform, an operator, a hook.
//! What people see has everything spelled out that would move their terminal's cursor or turn its words around; programs get
//! JSON, where it cannot.

use std::io::{self, Write};

use anyhow::Result;
use notbefore_wire::text::printable;
use serde::Serialize;

/// Columns of text, each as wide as its widest cell.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it has as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Prints it, or a sentence if there is nothing in it.
    pub fn print(&self, if_empty: &str) -> Result<()> {
        if self.rows.is_empty() {
            return line(if_empty);
        }
        self.lines().iter().try_for_each(|text| line(text))
    }

    /// It, as lines.
    pub fn lines(&self) -> Vec<String> {
        let head: Vec<String> = self.head.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = std::iter::once(&head).chain(&self.rows);
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| rows.clone().map(|row| width(row, column)).max().unwrap_or(0))
            .collect();
        let one = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        rows.map(one).collect()
    }
}

fn width(row: &[String], column: usize) -> usize {
    row.get(column).map_or(0, |cell| cell.chars().count())
}

/// Prints one line.
pub fn line(line: &str) -> Result<()> {
    text(&(printable(line) + "\n"))
}

/// Says on standard error what went wrong, or what is waited for, in however many lines.
pub fn complain(words: &str) {
    words.split('\n').for_each(|line| eprintln!("{}", printable(line)));
}

/// Prints a text as it is, with its line ends.
pub fn text(text: &str) -> Result<()> {
    Ok(write!(io::stdout().lock(), "{text}")?)
}

/// Prints a value as JSON, for a person's eyes too.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    text(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Prints a value as JSON in one line, one of many.
pub fn json_line<T: Serialize>(value: &T) -> Result<()> {
    text(&(serde_json::to_string(value)? + "\n"))
}

/// A value, or a dash where there is none.
pub fn or_dash(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or("-").to_owned()
}

/// Whether an error only means that nobody reads any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(io_error)
}
