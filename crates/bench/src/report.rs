//! Results of a run, for people and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Machine;
use crate::stats::Estimate;

/// Goal of a number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Goal {
    /// Required limit, if any.
    pub required: Option<f64>,
    /// Desired value.
    pub desired: f64,
    /// Which side is good.
    pub better: Better,
}

/// Which side of a goal is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// At most.
    Lower,
    /// At least.
    Higher,
}

impl Goal {
    /// Required to be at most this.
    pub fn at_most(required: f64, desired: f64) -> Option<Self> {
        Some(Self { required: Some(required), desired, better: Better::Lower })
    }

    /// Desired to be at most this; not required.
    pub fn desired_at_most(desired: f64) -> Option<Self> {
        Some(Self { required: None, desired, better: Better::Lower })
    }

    /// Required to be at least this.
    pub fn at_least(required: f64, desired: f64) -> Option<Self> {
        Some(Self { required: Some(required), desired, better: Better::Higher })
    }

    fn holds(self, bound: f64, value: f64) -> bool {
        match self.better {
            Better::Lower => value <= bound,
            Better::Higher => value >= bound,
        }
    }
}

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// Its scenario.
    pub scenario: &'static str,
    /// Name of the number.
    pub what: String,
    /// Unit; empty for a ratio.
    pub unit: &'static str,
    /// Value.
    #[serde(flatten)]
    pub value: Estimate,
    /// Number of rounds.
    pub rounds: usize,
    /// Goal, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

impl Measure {
    /// Whether the required limit holds.
    pub fn reached(&self) -> bool {
        let Some(Goal { required: Some(required), .. }) = self.goal else { return true };
        self.goal.is_none_or(|goal| goal.holds(required, self.value.median))
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            None => "",
            Some(goal) if goal.holds(goal.desired, self.value.median) => "desired",
            Some(_) if !self.reached() => "MISSED",
            Some(goal) if goal.required.is_some() => "required",
            Some(_) => "no",
        }
    }
}

/// Table of a scenario that measures growth.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The scenario.
    pub scenario: &'static str,
    /// Title.
    pub title: String,
    /// Header row.
    pub columns: Vec<String>,
    /// Other rows.
    pub rows: Vec<Vec<String>>,
}

/// All results of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// Whether it was a short run.
    pub quick: bool,
    /// The numbers.
    pub measures: Vec<Measure>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Notes on the numbers.
    pub notes: Vec<String>,
    /// Scenarios that failed, and why.
    pub failures: Vec<String>,
}

impl Report {
    /// Whether all required limits hold.
    pub fn reached(&self) -> bool {
        self.failures.is_empty() && self.measures.iter().all(Measure::reached)
    }

    /// Results of a scenario, as text.
    pub fn of_scenario(&self, scenario: &str) -> String {
        let mut text =
            measures(&self.measures.iter().filter(|it| it.scenario == scenario).collect::<Vec<_>>());
        for table in self.tables.iter().filter(|table| table.scenario == scenario) {
            let _ = write!(text, "\n{}\n\n{}", table.title, markdown(&table.columns, &table.rows));
        }
        text
    }

    /// Numbers with goals, as text.
    pub fn goals(&self) -> String {
        measures(&self.measures.iter().filter(|it| it.goal.is_some()).collect::<Vec<_>>())
    }

    /// Summary of the run, as text.
    pub fn summary(&self) -> String {
        let mut text = format!("{}\n\n{}", self.machine, self.goals());
        for note in self.notes.iter().chain(&self.failures) {
            let _ = writeln!(text, "{note}");
        }
        text
    }
}

fn measures(measures: &[&Measure]) -> String {
    if measures.is_empty() {
        return String::new();
    }
    let columns = ["number", "median", "90 % interval", "required", "desired", "met"].map(str::to_owned);
    let rows: Vec<Vec<String>> = measures
        .iter()
        .map(|measure| {
            let value = measure.value;
            let interval = match measure.rounds {
                1 => String::new(),
                _ => format!("{}–{}", digits(value.low), digits(value.high)),
            };
            let bound = |bound: fn(Goal) -> Option<f64>| {
                let sign = |goal: Goal| if goal.better == Better::Lower { "≤" } else { "≥" };
                let goal = measure.goal.and_then(|goal| Some((goal, bound(goal)?)));
                goal.map_or(String::new(), |(goal, bound)| format!("{} {}", sign(goal), digits(bound)))
            };
            let median = format!("{} {}", digits(value.median), measure.unit).trim_end().to_owned();
            let (required, desired) = (bound(|goal| goal.required), bound(|goal| Some(goal.desired)));
            vec![measure.what.clone(), median, interval, required, desired, measure.verdict().to_owned()]
        })
        .collect();
    markdown(&columns, &rows)
}

/// A number with a suitable precision.
pub fn digits(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ if number == 0.0 => "0".to_owned(),
        _ => format!("{number:.2}"),
    }
}

/// A table that is readable in a terminal and as Markdown.
pub fn markdown(columns: &[String], rows: &[Vec<String>]) -> String {
    let wide = |at: usize| {
        let cells = rows.iter().map(|row| &row[at]).chain([&columns[at]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(wide).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, "| {cell}{} ", " ".repeat(width - cell.chars().count()));
        }
        text.push_str("|\n");
    };
    line(columns);
    line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
    for row in rows {
        line(row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(value: f64, goal: Option<Goal>) -> Measure {
        let value = Estimate { median: value, low: value, high: value };
        Measure { scenario: "poll", what: "x".to_owned(), unit: "", value, rounds: 1, goal }
    }

    #[test]
    fn a_goal_holds_on_its_side() {
        for (value, goal, verdict, reached) in [
            (0.8, Goal::at_most(1.0, 0.85), "desired", true),
            (0.9, Goal::at_most(1.0, 0.85), "required", true),
            (1.1, Goal::at_most(1.0, 0.85), "MISSED", false),
            (5.5, Goal::at_least(2.0, 5.0), "desired", true),
            (1.9, Goal::at_least(2.0, 5.0), "MISSED", false),
            (499.0, Goal::desired_at_most(500.0), "desired", true),
            (501.0, Goal::desired_at_most(500.0), "no", true),
            (9.0, None, "", true),
        ] {
            let measure = measure(value, goal);
            assert_eq!((measure.verdict(), measure.reached()), (verdict, reached), "{value}");
        }
    }

    #[test]
    fn a_table_is_straight() {
        let rows = [vec!["µs".to_owned(), "1".to_owned()]];
        assert_eq!(
            markdown(&["unit".to_owned(), "n".to_owned()], &rows),
            "| unit | n |\n| ---- | - |\n| µs   | 1 |\n"
        );
    }
}
