//! Verdicts: what the judge found, expectation by expectation.

use serde::{Deserialize, Serialize};

/// The verdict on one rehearsal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub scenario: String,
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether no expectation failed.
    pub fn is_passed(&self) -> bool {
        !self.findings.iter().any(Finding::is_failed)
    }
}

/// One expectation, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The expectation as a sentence: `web-0 approves restart before it starts`.
    pub expectation: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Finding {
    pub fn is_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    Passed {
        /// What shows it, in a few words: `after 2.1 s`.
        note: String,
    },
    Failed {
        /// What happened instead.
        why: String,
        /// What to change in the handler.
        cure: String,
        /// Numbers of the entries of the recording that prove it; a few.
        evidence: Vec<usize>,
    },
    /// It could not be judged, and why.
    NotJudged { why: String },
}
