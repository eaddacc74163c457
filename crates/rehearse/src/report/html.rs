//! One HTML page for any number of reports: a report card, then each scenario with its timeline, its findings and its
//! record. The page has no script and loads nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use notbefore_wire::text::{counted, shorten};

use super::describe::{self, Detail};
use super::markup::escape;
use super::rows::Kind;
use super::{Report, Tally, cited, svg};
use crate::recording::{Recording, What};
use crate::verdict::{Finding, Outcome};

/// Entries of a record that are shown at most: a browser opens a page with some ten such records quickly. JSON has all.
const RECORD_MAX: usize = 5_000;

/// Longest name of a VM in a table; its column does not wrap.
const VM_CHARS_MAX: usize = 32;

/// The style sheet is part of the page. It is constant and the policy allows no URL, so it can load nothing.
const STYLE: &str = include_str!("html.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub fn page(reports: &[Report]) -> String {
    let failed = reports.iter().filter(|report| !report.verdict.is_passed()).count();
    let passed = reports.len() - failed;
    let verdict = match failed {
        0 => format!("passed: {} of {}", passed, counted(reports.len(), "scenario")),
        _ => format!("FAILED: {} of {}", failed, counted(reports.len(), "scenario")),
    };
    let class = if failed > 0 { "bad" } else { "good" };
    let rows: String = reports.iter().enumerate().map(|(number, report)| card_row(number, report)).collect();
    let scenarios: String =
        reports.iter().enumerate().map(|(number, report)| scenario(number, report)).collect();
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="notbefore rehearse">
<title>Rehearsal: {verdict}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>Rehearsal <strong class="{class}">{verdict}</strong></h1>
<table class="card">
<thead><tr><th>Verdict</th><th>Scenario</th><th>Expectations</th><th>Failed</th></tr></thead>
<tbody>
{rows}</tbody>
</table>
{LEGEND}{scenarios}</main>
</body>
</html>
"#
    )
}

const LEGEND: &str = r#"<p class="legend">
<span><svg class="key"><rect class="bar scheduled" x="1" y="2" width="22" height="12" rx="4"/></svg>Scheduled</span>
<span><svg class="key"><rect class="bar approved" x="1" y="2" width="22" height="12" rx="4"/></svg>approved</span>
<span><svg class="key"><rect class="bar started" x="1" y="2" width="22" height="12" rx="4"/></svg>Started</span>
<span><svg class="key"><rect class="due" x="11" y="1" width="3" height="14"/></svg>NotBefore</span>
<span><svg class="key"><path class="poll" d="M6 5V11M12 5V11M18 5V11"/></svg>polls</span>
<span><svg class="key"><path class="poll changed" d="M12 1V15"/></svg>new document</span>
<span><svg class="key"><path class="poll failed" d="M12 1V15"/></svg>error or no answer</span>
<span><svg class="key"><path class="approval" d="M12 1L19 8L12 15L5 8Z"/></svg>approval</span>
<span><svg class="key"><path class="marker" d="M6 3H18L12 14Z"/></svg>drained</span>
<span><svg class="key"><path class="marker" d="M6 14H18L12 3Z"/></svg>restored</span>
<span><svg class="key"><path class="crash" d="M7 3L17 13M17 3L7 13"/></svg>handler fails</span>
<span><svg class="key"><path class="handler" d="M8 4H16V12H8Z"/></svg>handler ends or is stopped</span>
<span><svg class="key"><path class="step" d="M8 4H16L12 12Z"/></svg>step of the scenario</span>
<span><svg class="key"><circle class="cited" cx="12" cy="8" r="7"/></svg>cited below</span>
</p>
"#;

fn card_row(number: usize, Report { recording, verdict, .. }: &Report) -> String {
    let tally = Tally::of(verdict);
    let failed = verdict.findings.iter().filter(|finding| matches!(finding.outcome, Outcome::Failed { .. }));
    let failed: String =
        failed.map(|finding| format!("<div>{}</div>", escape(&finding.expectation))).collect();
    format!(
        "<tr><td>{}</td><td><a href=\"#s{number}\">{}</a><div class=\"quiet\">{}</div></td><td>{}</td><td>{failed}</td></tr>\n",
        badge(tally),
        escape(&verdict.scenario),
        escape(&recording.summary),
        numbers(tally),
    )
}

fn badge(tally: Tally) -> String {
    let class = if tally.failed > 0 { "failed" } else { "passed" };
    format!("<span class=\"badge {class}\">{}</span>", tally.word())
}

fn numbers(tally: Tally) -> String {
    let mut text = format!("{} passed", tally.passed);
    for (count, word) in [(tally.failed, "failed"), (tally.not_judged, "not judged")] {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    text
}

fn scenario(number: usize, Report { recording, verdict, .. }: &Report) -> String {
    let cited = cited(verdict);
    let findings: String = verdict.findings.iter().map(|one| finding(recording, one)).collect();
    format!(
        "<section id=\"s{number}\">\n<h2>{} {}</h2>\n<p>{}</p>\n<p class=\"quiet\">{} with a handler, {}</p>\n{}<ul class=\"findings\">\n{findings}</ul>\n{}</section>\n",
        escape(&verdict.scenario),
        badge(Tally::of(verdict)),
        escape(&recording.summary),
        counted(recording.handled_vms.len(), "VM"),
        describe::span(recording.ended_at),
        svg::timeline(recording, &cited),
        record(recording, &cited)
    )
}

fn finding(recording: &Recording, finding: &Finding) -> String {
    let expectation = escape(&finding.expectation);
    match &finding.outcome {
        Outcome::Passed { note } => format!(
            "<li><span class=\"badge passed\">pass</span><div>{expectation} <span class=\"quiet\">{}</span></div></li>\n",
            escape(note)
        ),
        Outcome::NotJudged { why } => format!(
            "<li><span class=\"badge skipped\">not judged</span><div>{expectation} <span class=\"quiet\">{}</span></div></li>\n",
            escape(why)
        ),
        Outcome::Failed { why, cure, evidence } => {
            let rows: String = evidence.iter().filter_map(|index| entry(recording, *index, "")).collect();
            let table = if rows.is_empty() { String::new() } else { format!("<table>{rows}</table>") };
            format!(
                "<li class=\"failure\"><span class=\"badge failed\">FAIL</span><div><strong>{expectation}</strong><p>{}</p><p><b>To do:</b> {}</p>{table}</div></li>\n",
                escape(why),
                escape(cure)
            )
        }
    }
}

/// A row of a table of entries; none if there is no such entry.
fn entry(recording: &Recording, index: usize, class: &str) -> Option<String> {
    let entry = recording.entries.get(index)?;
    Some(format!(
        "<tr class=\"{class}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        describe::instant(entry.at),
        escape(&shorten(entry.vm.as_deref().unwrap_or_default(), VM_CHARS_MAX)),
        escape(&describe::entry(recording, entry, Detail::Full))
    ))
}

/// The class of an entry in the record.
fn class(what: &What) -> &'static str {
    match Kind::of(what) {
        Kind::FailedRequest | Kind::HandlerFailed => "bad",
        Kind::Step | Kind::Event => "main",
        Kind::Approval | Kind::Marker => "good",
        Kind::Output | Kind::Request | Kind::Handler | Kind::Folded => "",
    }
}

fn record(recording: &Recording, cited: &BTreeSet<usize>) -> String {
    let all = recording.entries.len();
    let shown = recording.entries.iter().enumerate().take(RECORD_MAX);
    let rows: String = shown
        .filter_map(|(index, one)| {
            let class = if cited.contains(&index) { "cites" } else { class(&one.what) };
            entry(recording, index, class)
        })
        .collect();
    let more = match all.saturating_sub(RECORD_MAX) {
        0 => String::new(),
        more => format!("<p class=\"quiet\">{more} more; --output json has all.</p>"),
    };
    let count = if all == 1 { "1 entry".to_owned() } else { format!("{all} entries") };
    format!("<details><summary>Record: {count}</summary>\n<table>{rows}</table>{more}</details>\n")
}
