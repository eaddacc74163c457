//! Prints the effective settings, for `--print-config`.

use std::fmt::Write;

use crate::reader::Entry;

/// Comments are aligned after lines up to this width; a longer list does not push them to the right.
const WIDTH_MAX: usize = 60;

/// A file with the effective settings, each line with its source.
pub fn toml(entries: &[Entry]) -> String {
    let split = |entry: &Entry| {
        let (section, name) = entry.key.rsplit_once('.').unwrap_or(("", &entry.key));
        (section.to_owned(), format!("{name} = {}", entry.value))
    };
    let lines: Vec<(String, String)> = entries.iter().map(split).collect();
    let widths = lines.iter().map(|(_, line)| line.chars().count());
    let width = widths.filter(|width| *width <= WIDTH_MAX).max().unwrap_or(0);
    let (mut text, mut last) = (String::new(), "");
    for (entry, (section, line)) in entries.iter().zip(&lines) {
        if section != last {
            last = section;
            let _ = write!(text, "\n[{section}]\n");
        }
        let _ = writeln!(text, "{line:<width$}  # {}", entry.source);
    }
    text
}
