//! Reports: a recording and its verdict as text for a terminal, JUnit XML, one HTML page, and JSON. No IO, no clock.
//!
//! Output of handlers, their headers and bodies are untrusted. Every text goes through [`notbefore_wire::text::printable`],
//! and through `markup` where it becomes XML or HTML. A stored report may have been changed: numbers of entries need not
//! exist, and entries need not be in order.
//!
//! | module | what is in it |
//! |---|---|
//! | [`text`] | timeline and verdict for a terminal |
//! | [`junit`] | JUnit XML |
//! | [`html`] | one page for any number of reports; `svg` draws the timelines |
//! | `describe` | an entry of the recording as one line |
//! | `rows` | the timeline as lines; entries without news are folded |

mod describe;
pub mod html;
pub mod junit;
mod markup;
mod rows;
mod svg;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::BTreeSet;

use notbefore_wire::json::Ordered;
use notbefore_wire::text::{counted, printable, printable_json};
use serde::{Deserialize, Serialize};

use crate::recording::Recording;
use crate::verdict::{Outcome, Verdict};

/// Format of stored reports. Raise it when a file of the last release cannot be read any more.
pub const FORMAT: u32 = 1;

/// Width of the timeline of a failed test.
const TIMELINE_WIDTH: usize = 100;

/// A recording and the verdict on it: `--output json` and `--record FILE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    format: u32,
    pub recording: Recording,
    pub verdict: Verdict,
}

/// Why a file is not a report. The caller names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("is not a recording of 'notbefore rehearse': {0}; record the rehearsal again with --record")]
    Broken(String),
    #[error(
        "has format {0}, and this release reads format {FORMAT}; read it with the release that wrote it, or record the rehearsal again with --record"
    )]
    OtherFormat(u64),
}

impl Report {
    pub fn new(recording: Recording, verdict: Verdict) -> Self {
        Self { format: FORMAT, recording, verdict }
    }

    /// For tests.
    ///
    /// # Panics
    ///
    /// If an expectation failed, with the timeline and the verdict.
    #[track_caller]
    pub fn assert_passed(&self) {
        let timeline = || text::timeline(&self.recording, &self.verdict, TIMELINE_WIDTH, false);
        assert!(self.verdict.is_passed(), "\n{}", timeline());
    }

    /// Indented JSON with a line end. Unprintable characters are escaped, so it can go to a terminal.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(printable_json(&Ordered::of(self)?.pretty()?) + "\n")
    }

    /// Reads what [`Self::to_json`] wrote.
    pub fn from_json(json: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            format: u64,
        }
        let broken = |error: serde_json::Error| ReadError::Broken(printable(&error.to_string()));
        let Head { format } = serde_json::from_slice(json.as_bytes()).map_err(broken)?;
        if format != u64::from(FORMAT) {
            return Err(ReadError::OtherFormat(format));
        }
        serde_json::from_slice(json.as_bytes()).map_err(broken)
    }
}

/// Numbers of the entries that prove failures.
fn cited(verdict: &Verdict) -> BTreeSet<usize> {
    let evidence = verdict.findings.iter().filter_map(|finding| match &finding.outcome {
        Outcome::Failed { evidence, .. } => Some(evidence),
        Outcome::Passed { .. } | Outcome::NotJudged { .. } => None,
    });
    evidence.flatten().copied().collect()
}

/// Findings of a verdict, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    not_judged: usize,
}

impl Tally {
    fn of(verdict: &Verdict) -> Self {
        let mut tally = Self::default();
        for finding in &verdict.findings {
            match finding.outcome {
                Outcome::Passed { .. } => tally.passed += 1,
                Outcome::Failed { .. } => tally.failed += 1,
                Outcome::NotJudged { .. } => tally.not_judged += 1,
            }
        }
        tally
    }

    fn total(self) -> usize {
        self.passed + self.failed + self.not_judged
    }

    fn word(self) -> &'static str {
        if self.failed > 0 { "FAILED" } else { "passed" }
    }

    /// `2 of 6 expectations, 1 not judged`: how many failed, or else how many passed.
    fn numbers(self) -> String {
        let number = if self.failed > 0 { self.failed } else { self.passed };
        let mut text = format!("{number} of {}", counted(self.total(), "expectation"));
        if self.not_judged > 0 {
            text += &format!(", {} not judged", self.not_judged);
        }
        text
    }
}
