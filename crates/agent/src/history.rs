//! History of events: what the agent saw and did, for `notbefore agent history`.
//!
//! `history.jsonl` in the state directory, beside the journal: one line per fact about an event of this VM, or about an
//! event with a rule. Lines are appended and synced by a task of its own, so no step waits for the disk. A line that a
//! crash cut short is skipped by readers, and the next one starts on a new line. At `BYTES_MAX` the file is replaced
//! by its newest events. Nothing depends on the history: a failed write is logged and repeated with the next fact.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_wire::text::shorten;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::fact_text;
use crate::journal::StateFile;
use crate::machine::io::{Fact, FactKind, Stage};

/// Events that readers get.
pub const EVENTS_MAX: usize = 100;
/// Size at which the file is replaced by its newest events. A usual event takes 3 KiB.
const BYTES_MAX: usize = 512 * 1024;
/// Size after that. Half, so that it is not replaced for every line.
const BYTES_KEPT: usize = BYTES_MAX / 2;
/// Lines of one event that are kept: its newest, after its first one.
const LINES_MAX: usize = 100;
/// Longest text of a line; the platform chooses names and types.
const TEXT_CHARACTERS_MAX: usize = 300;
/// Longest id or event type.
const WORD_CHARACTERS_MAX: usize = 100;
/// Lines waiting for the disk: several events with all their facts.
const QUEUE_MAX: usize = 256;
/// Time for waiting lines at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// One fact, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    event: String,
    r#type: String,
    /// Name of the fact, as in the metrics.
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<LineStep>,
    text: String,
}

/// The step of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LineStep {
    name: String,
    stage: Stage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// An event of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastEvent {
    pub id: String,
    pub r#type: String,
    pub rule: Option<String>,
    pub not_before: Option<Timestamp>,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// Name of the newest fact that is not about a step.
    pub outcome: String,
    pub steps: Vec<PastStep>,
    pub facts: Vec<PastFact>,
}

/// One attempt at a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastStep {
    pub stage: Stage,
    pub step: String,
    pub attempt: Option<u32>,
    /// None if it never began: NotBefore left no time for it.
    pub begun_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub outcome: StepEnd,
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepEnd {
    Running,
    Done,
    Failed,
    /// Stopped, because the event changed or ended.
    Stopped,
    /// The agent ended while it ran.
    Interrupted,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastFact {
    pub at: Timestamp,
    pub what: String,
    pub text: String,
}

impl StepEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            StepEnd::Running => "running",
            StepEnd::Done => "done",
            StepEnd::Failed => "failed",
            StepEnd::Stopped => "stopped",
            StepEnd::Interrupted => "interrupted",
        }
    }
}

/// Writes the history of this agent.
#[derive(Debug)]
pub struct History {
    queue: mpsc::Sender<Line>,
    writing: JoinHandle<()>,
    /// The newest fact, if it repeats: a refused approval is reported every few seconds.
    repeated: Option<(String, &'static str)>,
}

impl History {
    /// Starts the writing task; it ends with the history.
    pub fn start(state: &Path) -> History {
        let (queue, mut lines) = mpsc::channel(QUEUE_MAX);
        let file = StateFile::history(state);
        let writing = tokio::spawn(async move {
            let (mut pending, mut has_failed) = (Vec::new(), false);
            while lines.recv_many(&mut pending, QUEUE_MAX).await > 0 {
                let (file, batch) = (file.clone(), pending.clone());
                let outcome = tokio::task::spawn_blocking(move || append(&file, &batch)).await;
                match outcome.unwrap_or_else(|panicked| Err(io::Error::other(panicked))) {
                    Ok(()) => {
                        pending.clear();
                        has_failed = false;
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut has_failed, true) {
                            tracing::warn!(
                                "cannot write the history: {error}; tried again with the next fact"
                            );
                        }
                        pending.drain(..pending.len().saturating_sub(QUEUE_MAX));
                    }
                }
            }
        });
        History { queue, writing, repeated: None }
    }

    /// Queues a fact. Facts about events of other VMs without a rule are left out: they would displace the others.
    pub fn record(&mut self, fact: &Fact, at: Timestamp) {
        if !fact.mine && fact.rule.is_none() {
            return;
        }
        let line = Line::of(fact, at);
        let what = fact_text::name(fact);
        let repeats = matches!(fact.kind, FactKind::ApprovalFailed { .. } | FactKind::Changed);
        let repeated = repeats.then(|| (line.event.clone(), what));
        if repeated.is_some() && repeated == self.repeated {
            return;
        }
        self.repeated = repeated;
        if self.queue.try_send(line).is_err() {
            tracing::debug!("{QUEUE_MAX} facts wait for the history; a new one is dropped");
        }
    }

    /// Writes what waits, within `FLUSH_TIMEOUT`.
    pub async fn finish(self) {
        let History { queue, writing, .. } = self;
        drop(queue);
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, writing).await;
    }
}

impl Line {
    fn of(fact: &Fact, at: Timestamp) -> Line {
        let step = |name: &str, stage, attempt, reason: Option<&String>| {
            let (name, reason) = (name.to_owned(), reason.map(|reason| shorten(reason, TEXT_CHARACTERS_MAX)));
            Some(LineStep { name, stage, attempt, reason })
        };
        let step = match &fact.kind {
            FactKind::StepBegun { step: name, stage, attempt, .. } => {
                step(name, *stage, Some(*attempt), None)
            }
            FactKind::StepFailed { step: name, stage, reason, .. } => step(name, *stage, None, Some(reason)),
            FactKind::StepDone { step: name, stage }
            | FactKind::StepInterrupted { step: name, stage, .. }
            | FactKind::TriedAgain { step: name, stage }
            | FactKind::StepDropped { step: name, stage } => step(name, *stage, None, None),
            FactKind::Appeared { .. }
            | FactKind::Matched
            | FactKind::Unmatched
            | FactKind::RuleUnmatched
            | FactKind::Prepared
            | FactKind::NotApproving { .. }
            | FactKind::Withheld { .. }
            | FactKind::Approved
            | FactKind::ApprovalMoot
            | FactKind::ApprovalFailed { .. }
            | FactKind::Started { .. }
            | FactKind::WentBack
            | FactKind::Changed
            | FactKind::Booted
            | FactKind::Cancelled
            | FactKind::Ended
            | FactKind::TookOver { .. }
            | FactKind::RestoreHeld { .. }
            | FactKind::Stranded { .. }
            | FactKind::Restored { .. } => None,
        };
        Line {
            at: at.round(jiff::Unit::Millisecond).unwrap_or(at),
            event: shorten(fact.event.id.as_str(), WORD_CHARACTERS_MAX),
            r#type: shorten(fact.event.kind.as_str(), WORD_CHARACTERS_MAX),
            what: fact_text::name(fact).to_owned(),
            rule: fact.rule.clone(),
            not_before: fact.event.not_before,
            step,
            text: shorten(&fact_text::sentence(fact), TEXT_CHARACTERS_MAX),
        }
    }
}

/// Reads the history, running agent or not: at most `EVENTS_MAX` events, oldest first.
pub fn read(state: &Path) -> io::Result<Vec<PastEvent>> {
    let lines = match StateFile::history(state).read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && state.is_dir() => Vec::new(),
        read => lines(&read?),
    };
    Ok(grouped(lines).iter().map(|lines| PastEvent::of(lines)).collect())
}

/// Appends lines; at `BYTES_MAX`, replaces the file by its newest events and these lines.
fn append(file: &StateFile, new: &[Line]) -> io::Result<()> {
    let text = encode(new)?;
    let mut opened = file.open()?;
    let length = opened.metadata()?.len();
    if length.saturating_add(text.len() as u64) <= BYTES_MAX as u64 {
        opened.seek(SeekFrom::End(0))?;
        // An empty line first: the last one may be cut short.
        opened.write_all(format!("\n{text}").as_bytes())?;
        return opened.sync_data();
    }
    drop(opened);
    let mut all = lines(&file.read()?);
    all.extend_from_slice(new);
    let mut events = grouped(all);
    let mut kept: Vec<String> = Vec::new();
    let mut bytes = 0;
    // Newest first, until the room is used; one event always fits.
    while let Some(event) = events.pop() {
        let text = encode(&event)?;
        bytes += text.len();
        if bytes > BYTES_KEPT && !kept.is_empty() {
            break;
        }
        kept.push(text);
    }
    kept.reverse();
    file.replace(kept.concat().as_bytes())
}

fn encode(lines: &[Line]) -> io::Result<String> {
    let line = |line: &Line| serde_json::to_string(line).map(|text| text + "\n");
    lines.iter().map(line).collect::<serde_json::Result<String>>().map_err(io::Error::other)
}

/// The readable lines.
fn lines(bytes: &[u8]) -> Vec<Line> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The lines of each event, events in order of first sight; the newest `EVENTS_MAX` events, and of each its first
/// line and its newest.
fn grouped(lines: Vec<Line>) -> Vec<Vec<Line>> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut events: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        let place = *places.entry(line.event.clone()).or_insert(events.len());
        match events.get_mut(place) {
            Some(event) => event.push(line),
            None => events.push(vec![line]),
        }
    }
    events.drain(..events.len().saturating_sub(EVENTS_MAX));
    for event in &mut events {
        let excess = event.len().saturating_sub(LINES_MAX);
        event.drain(1..1 + excess);
    }
    events
}

impl PastEvent {
    /// `lines` has at least one line, and all are of one event.
    fn of(lines: &[Line]) -> PastEvent {
        let (first, last) = (&lines[0], &lines[lines.len() - 1]);
        let is_outcome = |line: &&Line| {
            let aside = ["changed", "booted", "restore_held", "went_back", "approval_moot"];
            line.step.is_none() && !aside.contains(&line.what.as_str())
        };
        PastEvent {
            id: last.event.clone(),
            r#type: last.r#type.clone(),
            rule: last.rule.clone(),
            not_before: lines.iter().rev().find_map(|line| line.not_before),
            first_at: first.at,
            last_at: last.at,
            outcome: lines.iter().rev().find(is_outcome).unwrap_or(last).what.clone(),
            steps: steps(lines),
            facts: lines
                .iter()
                .map(|line| PastFact { at: line.at, what: line.what.clone(), text: line.text.clone() })
                .collect(),
        }
    }
}

/// Attempts at steps: the fact of the start with that of the end.
fn steps(lines: &[Line]) -> Vec<PastStep> {
    let mut steps: Vec<PastStep> = Vec::new();
    for line in lines {
        let Some(LineStep { name, stage, attempt, reason }) = &line.step else {
            // The end of an event stops its running step.
            if ["cancelled", "ended"].contains(&line.what.as_str()) {
                stop_open(&mut steps);
            }
            continue;
        };
        let outcome = match line.what.as_str() {
            "step_begun" => StepEnd::Running,
            "step_done" => StepEnd::Done,
            "step_failed" | "step_retried" => StepEnd::Failed,
            "step_interrupted" => StepEnd::Interrupted,
            _ => continue,
        };
        let (begun_at, ended_at) = match outcome {
            StepEnd::Running => (Some(line.at), None),
            StepEnd::Done | StepEnd::Failed | StepEnd::Stopped | StepEnd::Interrupted => {
                (None, Some(line.at))
            }
        };
        let is_same =
            |open: &PastStep| open.outcome == StepEnd::Running && open.stage == *stage && open.step == *name;
        match steps.last_mut().filter(|open| ended_at.is_some() && is_same(open)) {
            Some(open) => (open.ended_at, open.outcome, open.reason) = (ended_at, outcome, reason.clone()),
            None => {
                // An event has one running step at a time.
                stop_open(&mut steps);
                steps.push(PastStep {
                    stage: *stage,
                    step: name.clone(),
                    attempt: *attempt,
                    begun_at,
                    ended_at,
                    outcome,
                    reason: reason.clone(),
                });
            }
        }
    }
    steps
}

fn stop_open(steps: &mut [PastStep]) {
    for open in steps.iter_mut().filter(|step| step.outcome == StepEnd::Running) {
        open.outcome = StepEnd::Stopped;
    }
}

#[cfg(test)]
mod tests;
