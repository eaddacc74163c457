//! JUnit XML, as CI systems read it: a testsuite for each scenario, a testcase for each expectation.

use super::describe::{self, Detail};
use super::markup::escape;
use super::{Report, Tally};
use crate::recording::Recording;
use crate::verdict::Outcome;

pub fn document(reports: &[Report]) -> String {
    let mut all = Tally::default();
    let mut suites = String::new();
    for report in reports {
        let tally = Tally::of(&report.verdict);
        all.passed += tally.passed;
        all.failed += tally.failed;
        all.not_judged += tally.not_judged;
        suites += &suite(report, tally);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"notbefore rehearse\" {}>\n{suites}</testsuites>\n",
        counts(all)
    )
}

fn counts(tally: Tally) -> String {
    let Tally { failed, not_judged, .. } = tally;
    format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{not_judged}\"", tally.total())
}

fn suite(Report { recording, verdict, .. }: &Report, tally: Tally) -> String {
    let name = escape(&verdict.scenario);
    let mut text = format!(
        "  <testsuite name=\"{name}\" {} time=\"{:.3}\">\n",
        counts(tally),
        recording.ended_at.as_secs_f64()
    );
    for finding in &verdict.findings {
        let expectation = escape(&finding.expectation);
        text += &format!("    <testcase classname=\"rehearse.{name}\" name=\"{expectation}\"");
        text += &match &finding.outcome {
            Outcome::Passed { .. } => "/>\n".to_owned(),
            Outcome::Failed { why, cure, evidence } => format!(
                ">\n      <failure type=\"expectation\" message=\"{}\">{}</failure>\n    </testcase>\n",
                escape(why),
                failure(recording, why, cure, evidence)
            ),
            Outcome::NotJudged { why } => {
                format!(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", escape(why))
            }
        };
    }
    text + "  </testsuite>\n"
}

fn failure(recording: &Recording, why: &str, cure: &str, evidence: &[usize]) -> String {
    let mut text = format!("{}\nTo do: {}", escape(why), escape(cure));
    for entry in evidence.iter().filter_map(|index| recording.entries.get(*index)) {
        let vm = entry.vm.as_deref().map(|vm| format!("{vm}: ")).unwrap_or_default();
        let line = describe::entry(recording, entry, Detail::Full);
        text += &format!("\n{}", escape(&format!("{}  {vm}{line}", describe::instant(entry.at))));
    }
    text
}
