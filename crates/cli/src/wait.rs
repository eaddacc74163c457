//! `event wait`, `operation wait` and `host … --wait`: one list request, then the stream of facts from the list's revision
//! on, so that no change is missed. Events that have ended are not in a list: each takes a request of its own.

mod waited;

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use notbefore_client::clock::Clock;
use notbefore_wire::operator::{Event, Operation, TargetState};
use notbefore_wire::text::counted;
use uuid::Uuid;

use crate::args::{Output, Stage, UntilArgs};
use crate::block::{self, Block};
use crate::client::{Client, Next, encode};
use crate::each::SHORT_ID_MIN;
use crate::exit::TimedOut;
use crate::pause::pause;
use crate::{many, output, time};
use waited::{Details, Subject, Verdict, Waited};

/// Interval of lists while an operation is opening.
const OPENING_INTERVAL: Duration = Duration::from_millis(500);

/// What the ids name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Events,
    Operations,
}

/// Waits until all reach the stage, and shows progress on standard error: bars at a terminal, else a line for each change.
/// Fails as soon as one can no longer reach it, or at the timeout.
pub fn wait(client: &Client, kind: Kind, ids: &[String], until: &UntilArgs, output: Output) -> Result<()> {
    let UntilArgs { stage, timeout } = *until;
    let clock = Clock::start();
    let left = || timeout.map(|timeout| timeout.saturating_sub(clock.now().tick));
    let mut progress = Progress::new(output);
    loop {
        let (revision, mut waited) = list(client, kind, ids, stage)?;
        let mut facts = client.facts(Some(revision.to_string()));
        loop {
            progress.show(&waited, stage);
            let is_over = left().is_some_and(|left| left.is_zero());
            let over = || Err(out_of_time(&waited, stage, timeout.unwrap_or_default()));
            if let Some(end) = outcome(&waited, stage).or_else(|| is_over.then(over)) {
                progress.close();
                return finish(&waited, stage, output, end);
            }
            if waited.iter().any(Waited::is_opening) {
                pause(OPENING_INTERVAL, "an operation is opening");
                break;
            }
            match facts.next_within(left())? {
                Next::Fact(fact) => waited.iter_mut().for_each(|one| one.apply(&fact)),
                Next::Nothing => {}
                Next::Gap => break,
            }
        }
    }
}

/// The revision of the list, and what the ids name, without repetitions.
fn list(client: &Client, kind: Kind, ids: &[String], stage: Stage) -> Result<(u64, Vec<Waited>)> {
    let show = |event: &str| client.get::<Event>(&format!("/v1/events/{}", encode(event)));
    let (revision, mut waited) = match kind {
        Kind::Events => {
            let (events, revision) = client.list_at_revision::<Event>("/v1/events")?;
            let one = |id: &String| match find(&events, |event| event.id, id) {
                Some(event) => Ok(Waited::event(event.clone())),
                None => show(id).map(Waited::event),
            };
            (revision, ids.iter().map(one).collect::<Result<Vec<_>>>()?)
        }
        Kind::Operations => {
            let (all, revision) = client.list_at_revision::<Operation>("/v1/operations")?;
            let one = |id: &String| match find(&all, |operation| operation.id, id) {
                Some(operation) => Ok(operation.clone()),
                None => client.get(&format!("/v1/operations/{}", encode(id))),
            };
            let operations = ids.iter().map(one).collect::<Result<Vec<Operation>>>()?;
            let details = details(client, &operations, stage)?;
            (revision, operations.into_iter().map(|one| Waited::operation(one, &details)).collect())
        }
    };
    let mut seen = HashSet::new();
    waited.retain(|one: &Waited| seen.insert(one.id()));
    Ok((revision, waited))
}

/// The only item whose id begins with the text. Others are left to the service: it also knows what has ended.
fn find<'a, T>(items: &'a [T], id: impl Fn(&T) -> Uuid, text: &str) -> Option<&'a T> {
    let wanted = text.to_ascii_lowercase();
    let is_meant = |one: &&T| wanted.len() >= SHORT_ID_MIN && id(one).to_string().starts_with(&wanted);
    let mut found = items.iter().filter(is_meant);
    found.next().filter(|_| found.next().is_none())
}

/// Details of the operations' events that an operation does not have: which were read or approved, and why a command
/// failed.
fn details(client: &Client, operations: &[Operation], stage: Stage) -> Result<Details> {
    let targets = || operations.iter().flat_map(|operation| &operation.targets);
    let needs = match stage {
        Stage::Read | Stage::Approved => true,
        Stage::Started => false,
        Stage::Ended => targets().any(|target| target.failed),
    };
    if !needs {
        return Ok(Details::new());
    }
    let events = client.list::<Event>("/v1/events", &[])?;
    let mut details: Details = events.into_iter().map(|event| (event.id, event)).collect();
    if stage != Stage::Ended {
        for target in targets() {
            let is_stored = match target.state {
                TargetState::Completed | TargetState::Cancelled | TargetState::Started => true,
                TargetState::Opening
                | TargetState::Waiting
                | TargetState::Approved
                | TargetState::Advisory
                | TargetState::Refused
                | TargetState::Ended
                | TargetState::Unknown(_) => false,
            };
            if is_stored && !details.contains_key(&target.event) {
                details.insert(target.event, client.get(&format!("/v1/events/{}", target.event))?);
            }
        }
    }
    Ok(details)
}

/// The end of the wait, if it has come.
fn outcome(waited: &[Waited], stage: Stage) -> Option<Result<()>> {
    let mut all_reached = true;
    let mut never = Vec::new();
    for one in waited {
        match one.verdict(stage) {
            Verdict::Never(why) => never.push(why),
            Verdict::Waits => all_reached = false,
            Verdict::Reached => {}
        }
    }
    if never.is_empty() {
        return all_reached.then_some(Ok(()));
    }
    let cure = match stage {
        Stage::Ended => {
            let what = if waited.iter().any(Waited::has_failed_host) {
                "operation retry OPERATION' to try again, or 'notbefore operation complete OPERATION"
            } else {
                "event retry EVENT' to try again, or 'notbefore event complete EVENT"
            };
            format!("\nuse 'notbefore {what}' if the work was done by hand")
        }
        Stage::Read | Stage::Approved | Stage::Started => String::new(),
    };
    let never = many::first_lines(never, "'notbefore status' counts all that failed").join("\n");
    Some(Err(anyhow!("{never}{cure}")))
}

fn out_of_time(waited: &[Waited], stage: Stage, timeout: Duration) -> Error {
    let open = waited.iter().filter(|one| one.verdict(stage) != Verdict::Reached);
    let open = many::first_lines(open.map(Waited::state).collect(), "each can be waited for by itself");
    let open = open.join("\n  ");
    let span = time::span(timeout.as_secs());
    TimedOut(format!("not {stage} within {span}; still in progress\n  {open}")).into()
}

fn finish(waited: &[Waited], stage: Stage, output: Output, end: Result<()>) -> Result<()> {
    output.answer(&waited, |waited| {
        if many::shows_totals(waited.len(), output) {
            return output::line(&totals(waited, stage));
        }
        let mut reached = waited.iter().filter(|one| one.verdict(stage) == Verdict::Reached);
        reached.try_for_each(|one| output::line(&one.reached(stage)))
    })?;
    end
}

/// What all have reached together, as one line.
fn totals(waited: &[Waited], stage: Stage) -> String {
    let reached = waited.iter().filter(|one| one.verdict(stage) == Verdict::Reached).count();
    let whole = format!("{reached} of {} {stage}", counted(waited.len(), noun(waited)));
    let (done, all) = count(waited, stage);
    if all == waited.len() { whole } else { format!("{whole}, {done} of {}", counted(all, "event")) }
}

fn noun(waited: &[Waited]) -> &'static str {
    match waited.first().map(|one| &one.subject) {
        Some(Subject::Operation(_)) => "operation",
        Some(Subject::Event(_)) | None => "event",
    }
}

/// Number of events that are no longer waited for, and of all.
fn count(waited: &[Waited], stage: Stage) -> (usize, usize) {
    let counts = waited.iter().map(|one| one.count(stage));
    counts.fold((0, 0), |(done, all), (some, of)| (done + some, all + of))
}

/// Steps in which the progress of many is printed: lines of a log, also for hundreds of operations.
const STEPS: usize = 20;

/// Progress on standard error; none with JSON output.
struct Progress {
    output: Output,
    /// At a terminal.
    bars: Option<Block>,
    /// The last state of each event or operation, and its bar.
    shown: Vec<(String, String)>,
    /// Of many: the last step that was printed.
    step: Option<usize>,
    /// Of many: the failures that were printed.
    failures: HashSet<Uuid>,
}

impl Progress {
    fn new(output: Output) -> Self {
        let bars = output.is_text().then(Block::at_terminal).flatten();
        Self { output, bars, shown: Vec::new(), step: None, failures: HashSet::new() }
    }

    fn show(&mut self, waited: &[Waited], stage: Stage) {
        if many::shows_totals(waited.len(), self.output) {
            return self.show_totals(waited, stage);
        }
        let mut has_changed = false;
        for (index, one) in waited.iter().enumerate() {
            let (state, (done, all)) = (one.state(), one.count(stage));
            if self.shown.get(index).is_some_and(|(last, _)| *last == state) {
                continue;
            }
            has_changed = true;
            if self.bars.is_none() && self.output.is_text() {
                output::eprint(&state);
            }
            let line = format!("{} {state}", block::bar(done as u64, all as u64));
            match self.shown.get_mut(index) {
                Some(shown) => *shown = (state, line),
                None => self.shown.push((state, line)),
            }
        }
        if let Some(bars) = self.bars.as_mut().filter(|_| has_changed) {
            bars.draw(&self.shown.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>());
        }
    }

    /// Shows totals, and each that cannot reach the stage any more.
    fn show_totals(&mut self, waited: &[Waited], stage: Stage) {
        let (done, all) = count(waited, stage);
        let failed = waited.iter().filter(|one| matches!(one.verdict(stage), Verdict::Never(_)));
        match &mut self.bars {
            Some(bars) => {
                let first = format!("{} {}", block::bar(done as u64, all as u64), totals(waited, stage));
                let lines: Vec<String> = [first].into_iter().chain(failed.map(Waited::state)).collect();
                if self.shown.first().is_none_or(|(_, last)| *last != lines.join("\n")) {
                    self.shown = vec![(String::new(), lines.join("\n"))];
                    bars.draw(&lines);
                }
            }
            None => {
                let new: Vec<&Waited> = failed.filter(|one| self.failures.insert(one.id())).collect();
                new.into_iter().for_each(|one| output::eprint(&one.state()));
                let step = Some((done * STEPS).checked_div(all).unwrap_or(STEPS));
                if self.step != step {
                    self.step = step;
                    output::eprint(&totals(waited, stage));
                }
            }
        }
    }

    /// Leaves the bars as they are.
    fn close(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.keep();
        }
    }
}

/// A wait that fails removes its bars.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bars) = &mut self.bars {
            bars.draw(&[]);
        }
    }
}
