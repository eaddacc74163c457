//! The timeline as rows: one for each happening with news. Requests that got the same answer as the one before, and
//! lines of output, are folded into a count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use notbefore_wire::text::counted;
use uuid::Uuid;

use super::describe::{self, Detail};
use crate::recording::{Entry, Recording, Request, What};

/// Rows at the beginning and at the end that are shown at most: a handler that never gets the same answer twice does not
/// push the verdict off the terminal.
const ROWS_FIRST_MAX: usize = 100;
const ROWS_LAST_MAX: usize = 50;

/// Lines of output that are shown before the handler fails: the end of a stack trace.
const OUTPUT_BEFORE_FAILURE: usize = 3;

/// Happenings of several VMs are one row if they are the same and no farther apart.
const JOINED_WITHIN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The scenario does something.
    Step,
    Event,
    Request,
    /// A request that was answered with an error, or not at all.
    FailedRequest,
    Approval,
    Marker,
    Output,
    Handler,
    /// The handler ended by itself, and not with code 0.
    HandlerFailed,
    /// Entries without news, and rows left out.
    Folded,
}

impl Kind {
    pub fn of(what: &What) -> Self {
        match what {
            What::Request(request) if request.status.is_none_or(|status| status >= 400) => {
                Self::FailedRequest
            }
            What::Request(request) if request.is_approval() => Self::Approval,
            What::Request(_) => Self::Request,
            What::Marker { .. } => Self::Marker,
            What::Output { .. } => Self::Output,
            What::HandlerExited { code: Some(0), .. } | What::HandlerStarted | What::HandlerStopped => {
                Self::Handler
            }
            What::HandlerExited { .. } => Self::HandlerFailed,
            What::Step { .. } => Self::Step,
            What::Event { .. } => Self::Event,
        }
    }

    pub fn symbol(self) -> char {
        match self {
            Self::Step => '▸',
            Self::Event => '●',
            Self::Request => '→',
            Self::FailedRequest => '!',
            Self::Approval | Self::Marker => '✓',
            Self::Output => '│',
            Self::Handler => '■',
            Self::HandlerFailed => '✗',
            Self::Folded => '…',
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// None if it stands for several entries.
    pub at: Option<Duration>,
    pub vms: Vec<&'a str>,
    pub kind: Kind,
    /// Printable.
    pub text: String,
    /// Whether a failure cites it.
    pub is_cited: bool,
}

pub fn rows<'a>(recording: &'a Recording, cited: &BTreeSet<usize>) -> Vec<Row<'a>> {
    let mut rows = Rows { shown: output_before_failures(recording), ..Rows::default() };
    for (index, entry) in recording.entries.iter().enumerate() {
        rows.add(recording, index, entry, cited.contains(&index));
    }
    rows.unfold();
    let mut rows = rows.rows;
    let left_out = rows.len().saturating_sub(ROWS_FIRST_MAX + ROWS_LAST_MAX);
    if left_out > 0 {
        let text = format!("{} left out; --output json has all", counted(left_out, "line"));
        let row = Row { at: None, vms: Vec::new(), kind: Kind::Folded, text, is_cited: false };
        rows.splice(ROWS_FIRST_MAX..ROWS_FIRST_MAX + left_out, [row]);
    }
    rows
}

/// Numbers of the last lines of output before each failure of a handler.
fn output_before_failures(recording: &Recording) -> BTreeSet<usize> {
    let mut last: BTreeMap<&Option<String>, VecDeque<usize>> = BTreeMap::new();
    let mut shown = BTreeSet::new();
    for (index, entry) in recording.entries.iter().enumerate() {
        let lines = last.entry(&entry.vm).or_default();
        match Kind::of(&entry.what) {
            Kind::Output => {
                lines.push_back(index);
                if lines.len() > OUTPUT_BEFORE_FAILURE {
                    lines.pop_front();
                }
            }
            Kind::HandlerFailed => shown.extend(std::mem::take(lines)),
            Kind::Step
            | Kind::Event
            | Kind::Request
            | Kind::FailedRequest
            | Kind::Approval
            | Kind::Marker
            | Kind::Handler
            | Kind::Folded => {}
        }
    }
    shown
}

/// What makes an answer different from the last one to the same request.
type Answer<'a> =
    (Option<u16>, Option<u64>, &'a Option<Vec<Uuid>>, &'a [String], &'a [Uuid], &'a str, &'a Option<String>);

/// Whether two requests of a VM are the same: VM, method and target.
type Key<'a> = (&'a str, &'a str, &'a str);

#[derive(Default)]
struct Rows<'a> {
    rows: Vec<Row<'a>>,
    folded: Folded<'a>,
    /// Entries that are not folded, by their numbers.
    shown: BTreeSet<usize>,
    answers: BTreeMap<Key<'a>, Answer<'a>>,
    polled: BTreeSet<&'a str>,
}

/// Entries since the last row.
#[derive(Default)]
struct Folded<'a> {
    polls: usize,
    others: usize,
    lines: usize,
    vms: BTreeSet<&'a str>,
    first_poll_at: Duration,
    last_poll_at: Duration,
}

impl<'a> Rows<'a> {
    fn add(&mut self, recording: &Recording, index: usize, entry: &'a Entry, is_cited: bool) {
        let vm = entry.vm.as_deref().unwrap_or_default();
        let mut is_first_poll = false;
        let has_news = match &entry.what {
            What::Request(request) => {
                is_first_poll = request.is_poll() && self.polled.insert(vm);
                is_first_poll | self.is_new_answer(vm, request)
            }
            What::Output { .. } => self.shown.contains(&index),
            What::Marker { .. }
            | What::HandlerStarted
            | What::HandlerExited { .. }
            | What::HandlerStopped
            | What::Step { .. }
            | What::Event { .. } => true,
        };
        if !has_news && !is_cited {
            return self.folded.add(vm, entry);
        }
        let first = if is_first_poll { "first " } else { "" };
        let text = format!("{first}{}", describe::entry(recording, entry, Detail::Short));
        let kind = Kind::of(&entry.what);
        if let Some(last) = self.rows.last_mut() {
            let is_near = last.at.is_some_and(|at| entry.at.saturating_sub(at) <= JOINED_WITHIN);
            if is_near && last.kind == kind && last.text == text && !vm.is_empty() && !last.vms.contains(&vm)
            {
                last.vms.push(vm);
                last.is_cited |= is_cited;
                return;
            }
        }
        self.unfold();
        let vms = entry.vm.as_deref().into_iter().collect();
        self.rows.push(Row { at: Some(entry.at), vms, kind, text, is_cited });
    }

    fn is_new_answer(&mut self, vm: &'a str, request: &'a Request) -> bool {
        let key = (vm, request.method.as_str(), request.target.as_str());
        let answer: Answer<'a> = (
            request.status,
            request.incarnation,
            &request.shows,
            &request.faults,
            &request.approves,
            &request.body,
            &request.metadata,
        );
        self.answers.insert(key, answer) != Some(answer)
    }

    fn unfold(&mut self) {
        let folded = std::mem::take(&mut self.folded);
        if let Some(text) = folded.text() {
            let vms = folded.vms.into_iter().collect();
            self.rows.push(Row { at: None, vms, kind: Kind::Folded, text, is_cited: false });
        }
    }
}

impl<'a> Folded<'a> {
    fn add(&mut self, vm: &'a str, entry: &Entry) {
        match &entry.what {
            What::Request(request) if request.is_poll() => {
                if self.polls == 0 {
                    self.first_poll_at = entry.at;
                }
                self.last_poll_at = entry.at;
                self.polls += 1;
            }
            What::Output { .. } => self.lines += 1,
            What::Request(_)
            | What::Marker { .. }
            | What::HandlerStarted
            | What::HandlerExited { .. }
            | What::HandlerStopped
            | What::Step { .. }
            | What::Event { .. } => self.others += 1,
        }
        self.vms.insert(vm);
    }

    fn text(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.polls > 0 {
            let mut part = counted(self.polls, "poll");
            let intervals = self.polls.saturating_sub(self.vms.len());
            if intervals > 0 {
                let length = self.last_poll_at.saturating_sub(self.first_poll_at).as_secs_f64();
                let every = Duration::try_from_secs_f64(length * self.vms.len() as f64 / intervals as f64);
                let each = if self.vms.len() > 1 { "each " } else { "" };
                part += &format!(", {each}every {}", describe::span(every.unwrap_or_default()));
            }
            parts.push(part);
        }
        if self.others > 0 {
            parts.push(counted(self.others, "repeated request"));
        }
        if self.lines > 0 {
            parts.push(format!("{} of output", counted(self.lines, "line")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
