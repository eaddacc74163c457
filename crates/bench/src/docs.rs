//! Writes the tables of docs/internals/benchmarks.md between two marks.

use std::path::Path;

use anyhow::Context;

use crate::report::Report;
use crate::scenario::ALL;

const BEGIN: &str = "<!-- results -->\n";
const END: &str = "<!-- end of results -->";

/// Replaces the tables of the page by those of a run.
pub fn write(page: &Path, report: &Report) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let text = replaced(&text, &tables(report)).context("the page has no place for results")?;
    std::fs::write(page, text).with_context(|| format!("writing {}", page.display()))
}

fn replaced(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{tables}{END}{after}"))
}

fn tables(report: &Report) -> String {
    let mut text = format!("{}.\n\n## Goals\n\n{}\n", report.machine, report.goals());
    for scenario in ALL {
        let of_scenario = report.of_scenario(scenario.name);
        if !of_scenario.is_empty() {
            text.push_str(&format!("## {}: {}\n\n{of_scenario}\n", scenario.name, scenario.about));
        }
    }
    for remark in report.notes.iter().chain(&report.failures) {
        text.push_str(&format!("- {remark}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- results -->\nold\n<!-- end of results -->\nb\n";
        let new = "a\n<!-- results -->\nnew\n<!-- end of results -->\nb\n";
        assert_eq!(replaced(page, "new\n").unwrap(), new);
        assert_eq!(replaced("a\n", "new\n"), None);
    }

    #[test]
    fn the_page_has_its_place() {
        let page = include_str!("../../../docs/internals/benchmarks.md");
        assert!(replaced(page, "").is_some());
        for scenario in ALL {
            assert!(page.contains(&format!("`{}`", scenario.name)), "{} is not described", scenario.name);
        }
    }
}
