//! The report for a terminal: the timeline, one row for each happening, then the verdict. Failures come with their cause,
//! their cure and the entries that prove them.

use std::collections::BTreeSet;

use notbefore_wire::text::{counted, printable};

use super::describe::{self, Detail};
use super::rows::{Kind, Row, rows};
use super::{Tally, cited};
use crate::recording::Recording;
use crate::verdict::{Outcome, Verdict};

/// Narrower than this, lines are cut or broken as if the terminal had this width.
const WIDTH_MIN: usize = 50;

/// Widest column of VMs.
const VM_WIDTH_MAX: usize = 20;

/// Width of the column of scenarios in [`line`]: the longest name in the library fits.
const SCENARIO_WIDTH: usize = 28;

/// Width of the column of outcomes: `not judged` and two spaces.
const OUTCOME_WIDTH: usize = 12;

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const BOLD_RED: &str = "1;31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// Timeline and verdict. Rows of the timeline are cut at `width`, sentences are wrapped. `>` marks what a failure cites.
pub fn timeline(recording: &Recording, verdict: &Verdict, width: usize, color: bool) -> String {
    let page = Page { width: width.max(WIDTH_MIN), color, vm_width: vm_width(recording) };
    let mut text = page.head(recording);
    for row in rows(recording, &cited(verdict)) {
        text += &page.row(&row);
    }
    text.push('\n');
    for finding in &verdict.findings {
        text += &page.finding(recording, &finding.expectation, &finding.outcome);
    }
    let tally = Tally::of(verdict);
    let style = if tally.failed > 0 { BOLD_RED } else { GREEN };
    text + &format!("\n{}\n", page.paint(style, &format!("{}: {}", tally.word(), tally.numbers())))
}

/// One line for each scenario, for a report card. It names the failed expectations.
pub fn line(verdict: &Verdict) -> String {
    let tally = Tally::of(verdict);
    let name = printable(&verdict.scenario);
    let mut text = format!("{}  {name:<SCENARIO_WIDTH$}  {}", tally.word(), tally.numbers());
    let failed = verdict.findings.iter().filter(|one| matches!(one.outcome, Outcome::Failed { .. }));
    let failed: Vec<String> = failed.map(|one| printable(&one.expectation)).collect();
    if !failed.is_empty() {
        text += &format!(": {}", failed.join("; "));
    }
    text
}

/// The failed expectations of a report card: why, what to do, and the entries that prove it, without the timeline.
pub fn failures(recording: &Recording, verdict: &Verdict) -> String {
    let mut text = String::new();
    let has_vms = vm_width(recording) > 0;
    for finding in &verdict.findings {
        let Outcome::Failed { why, cure, evidence } = &finding.outcome else { continue };
        text += &format!("    {}: {}\n", printable(&finding.expectation), printable(why));
        text += &format!("      to do: {}\n", printable(cure));
        for entry in evidence.iter().filter_map(|index| recording.entries.get(*index)) {
            let vm = entry.vm.as_deref().filter(|_| has_vms).map(|vm| printable(vm) + "  ");
            let said = describe::entry(recording, entry, Detail::Short);
            text += &format!("      {:>9}  {}{said}\n", describe::instant(entry.at), vm.unwrap_or_default());
        }
    }
    text
}

/// Width of the column of VMs: none if all is about one VM.
fn vm_width(recording: &Recording) -> usize {
    let vms: BTreeSet<&str> = recording.entries.iter().filter_map(|entry| entry.vm.as_deref()).collect();
    if vms.len() < 2 {
        return 0;
    }
    let all = counted(vms.len(), "VM").len();
    let longest = vms.iter().map(|vm| printable(vm).chars().count()).max().unwrap_or(0);
    (longest.max(all) + 2).min(VM_WIDTH_MAX)
}

struct Page {
    width: usize,
    color: bool,
    vm_width: usize,
}

impl Page {
    fn head(&self, recording: &Recording) -> String {
        let pace = if recording.pace.compress > 1.0 {
            format!(", waits divided by {}", recording.pace.compress)
        } else {
            String::new()
        };
        let about = format!(
            "{} with a handler{pace}, {}",
            counted(recording.handled_vms.len(), "VM"),
            describe::span(recording.ended_at)
        );
        format!(
            "{}: {}\n{}\n\n",
            self.paint(BOLD, &printable(&recording.scenario)),
            printable(&recording.summary),
            self.paint(DIM, &about)
        )
    }

    fn row(&self, row: &Row<'_>) -> String {
        let time = row.at.map(describe::instant).unwrap_or_default();
        let vms = match (self.vm_width, row.vms.as_slice()) {
            (0, _) | (_, []) => String::new(),
            (width, [vm]) => cut(&printable(vm), width - 2),
            (_, vms) => counted(vms.len(), "VM"),
        };
        let mark = if row.is_cited { '>' } else { ' ' };
        let start = format!("{mark}{time:>9}  {vms:<0$}{1} ", self.vm_width, row.kind.symbol());
        let line = cut(&(start + &row.text), self.width);
        let style = match row.kind {
            _ if row.is_cited => RED,
            Kind::Event | Kind::FailedRequest => YELLOW,
            Kind::Approval | Kind::Marker => GREEN,
            Kind::Step => CYAN,
            Kind::HandlerFailed => RED,
            Kind::Folded | Kind::Output => DIM,
            Kind::Request | Kind::Handler => "",
        };
        self.paint(style, &line) + "\n"
    }

    fn finding(&self, recording: &Recording, expectation: &str, outcome: &Outcome) -> String {
        let expectation = printable(expectation);
        match outcome {
            Outcome::Passed { note } if note.is_empty() => self.outcome("pass", GREEN, &expectation),
            Outcome::Passed { note } => {
                self.outcome("pass", GREEN, &format!("{expectation} ({})", printable(note)))
            }
            Outcome::NotJudged { why } => {
                self.outcome("not judged", YELLOW, &format!("{expectation}: {}", printable(why)))
            }
            Outcome::Failed { why, cure, evidence } => {
                let mut text = self.outcome("FAIL", BOLD_RED, &expectation);
                text += &self.wrap("  why:   ", &printable(why));
                text += &self.wrap("  to do: ", &printable(cure));
                for entry in evidence.iter().filter_map(|index| recording.entries.get(*index)) {
                    let vm = match self.vm_width {
                        0 => String::new(),
                        _ => entry.vm.as_deref().map(|vm| printable(vm) + "  ").unwrap_or_default(),
                    };
                    let line = describe::entry(recording, entry, Detail::Full);
                    text += &self.wrap(&format!("{:>10}  {vm}", describe::instant(entry.at)), &line);
                }
                text
            }
        }
    }

    fn outcome(&self, word: &str, style: &str, sentence: &str) -> String {
        let plain = wrap(&format!("{word:<OUTCOME_WIDTH$}"), sentence, self.width);
        plain.replacen(word, &self.paint(style, word), 1)
    }

    fn wrap(&self, start: &str, sentence: &str) -> String {
        wrap(start, sentence, self.width)
    }

    fn paint(&self, style: &str, text: &str) -> String {
        match self.color && !style.is_empty() {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// The first `width` characters; the last one is `…` if something is missing.
fn cut(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// Breaks a sentence between words; lines after the first are indented by the width of `start`. Words that are too long
/// for a line are broken.
fn wrap(start: &str, sentence: &str, width: usize) -> String {
    let indent = start.chars().count();
    let room = width.saturating_sub(indent).max(WIDTH_MIN / 2);
    let mut text = start.to_owned();
    let mut used = 0;
    for word in sentence.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let gap = usize::from(used > 0);
            if used + gap + word.len() <= room {
                text.extend(std::iter::repeat_n(' ', gap).chain(word.iter().copied()));
                used += gap + word.len();
                break;
            }
            if used == 0 {
                text.extend(word.drain(..room));
            }
            text += "\n";
            text += &" ".repeat(indent);
            used = 0;
        }
    }
    text + "\n"
}
