//! Steps, carried out: each in a task of its own, whose end comes back to the machine.
//!
//! [`Runner`] keeps who runs; [`carry_out`] does one attempt. `process/` runs programs, `webhook.rs` sends requests,
//! `files.rs` writes; [`facts`] is what all of them are told of the event.

pub mod facts;
mod files;
mod output;
pub(crate) mod process;
pub mod stop;
pub mod webhook;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::machine::io::{Run, RunId, StepOutcome};
use crate::rules::Deed;
use facts::Facts;
use process::Program;
use stop::{STOP_GRACE, Stop, Stopper, TIMEOUT_GRACE};
use webhook::Call;

/// How many ends of steps may wait to be taken in; each event has one step at a time.
const ENDS_MAX: usize = 64;
/// How long everything that runs has to end when the agent does: the grace of programs, and a little for their ends.
const STOP_ALL_MAX: Duration = STOP_GRACE.saturating_add(Duration::from_secs(1));

/// The steps that run.
#[derive(Debug)]
pub struct Runner {
    dry_run: bool,
    running: BTreeMap<RunId, (Stopper, JoinHandle<()>)>,
    ends: mpsc::Sender<Ended>,
}

/// Why something cannot be done, in a line for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// The end of an attempt.
#[derive(Debug)]
pub struct Ended {
    /// Which attempt.
    pub run: RunId,
    /// How it ended.
    pub outcome: StepOutcome,
}

impl Runner {
    /// Nothing runs. What ends comes out of the receiver.
    pub fn new(dry_run: bool) -> (Runner, mpsc::Receiver<Ended>) {
        let (ends, ended) = mpsc::channel(ENDS_MAX);
        (Runner { dry_run, running: BTreeMap::new(), ends }, ended)
    }

    /// Begins an attempt for this VM, in the background.
    pub fn start(&mut self, run: Run, vm: &str) {
        let (stopper, mut stop) = stop::pair();
        let facts = Facts::new(&run, vm, self.dry_run);
        let (ends, dry_run) = (self.ends.clone(), self.dry_run);
        let id = run.id;
        let span =
            tracing::info_span!("hook", event = %run.event.id, rule = %run.rule, step = %run.step.name);
        let work = async move {
            let outcome = match dry_run {
                true => StepOutcome::Done,
                // Nothing is begun that could not even be stopped in time.
                false if run.budget.is_zero() => StepOutcome::TimedOut,
                false => carry_out(&run.step.does, &facts, run.budget, &mut stop).await,
            };
            let _ = ends.send(Ended { run: id, outcome }).await;
        };
        self.running.insert(id, (stopper, tokio::spawn(work.instrument(span))));
    }

    /// Has an attempt end before its time. Its end comes like any other.
    pub fn stop(&self, run: RunId) {
        if let Some((stopper, _)) = self.running.get(&run) {
            stopper.stop(STOP_GRACE);
        }
    }

    /// Forgets an attempt that has ended.
    pub fn forget(&mut self, run: RunId) {
        self.running.remove(&run);
    }

    /// Has everything end. Nobody hears of it: the next agent finds these steps begun.
    pub async fn stop_all(&mut self) {
        let running = std::mem::take(&mut self.running);
        for (stopper, _) in running.values() {
            stopper.stop(STOP_GRACE);
        }
        let ends = async {
            for (_, task) in running.into_values() {
                let _ = task.await;
            }
        };
        let _ = timeout(STOP_ALL_MAX, ends).await;
    }
}

/// Does what a step says, within its budget, until it is told to stop.
pub async fn carry_out(deed: &Deed, facts: &Facts, budget: Duration, stop: &mut Stop) -> StepOutcome {
    match deed {
        Deed::Command { argv } => {
            process::run(&Program::Argv(argv.clone()), facts, budget, stop).await.logged()
        }
        Deed::Shell { line } => {
            process::run(&Program::Shell(line.clone()), facts, budget, stop).await.logged()
        }
        Deed::StartUnit { unit } => {
            process::run(&systemctl("start", unit), facts, budget, stop).await.logged()
        }
        Deed::StopUnit { unit } => process::run(&systemctl("stop", unit), facts, budget, stop).await.logged(),
        Deed::Webhook(hook) => {
            let body = match &hook.body {
                None => facts.json.clone(),
                Some(body) if webhook::is_json(&hook.headers, body) => facts.fill_json(body),
                Some(body) => facts.fill(body),
            };
            let call = Call {
                url: hook.url.clone(),
                method: hook.method.clone(),
                headers: hook.headers.clone(),
                body,
                timeout: budget.saturating_add(TIMEOUT_GRACE),
            };
            within(budget, stop, webhook::send(call)).await
        }
        Deed::WriteFile { path, content } => {
            let (path, content) = (path.clone(), facts.fill(content));
            let write = move |path: &Path, waiting: &Waiting| files::write(path, &content, waiting);
            within(budget, stop, on_disk("write", path, write)).await
        }
        Deed::RemoveFile { path } => {
            within(budget, stop, on_disk("remove", path.clone(), files::remove)).await
        }
        Deed::Wait { time } => tokio::select! {
            biased;
            () = sleep(*time) => StepOutcome::Done,
            _ = stop.told() => StepOutcome::Stopped,
            () = sleep(budget) => StepOutcome::TimedOut,
        },
        Deed::WaitFor { argv, every } => wait_for(argv, *every, facts, budget, stop).await,
    }
}

fn systemctl(verb: &str, unit: &str) -> Program {
    let words = ["systemctl", "--no-ask-password", verb, "--", unit];
    Program::Argv(words.map(str::to_owned).to_vec())
}

/// Something that takes effect elsewhere, and may do so while nobody waits. So it has a grace to come to its end when it is
/// told to stop or its time is up, and only then is dropped: else it could come after its own undoing.
async fn within(
    budget: Duration,
    stop: &mut Stop,
    work: impl Future<Output = Result<(), HookError>>,
) -> StepOutcome {
    tokio::pin!(work);
    let (cut, grace) = tokio::select! {
        biased;
        outcome = &mut work => return match outcome {
            Ok(()) => StepOutcome::Done,
            Err(HookError(reason)) => StepOutcome::Failed { reason },
        },
        grace = stop.told() => (StepOutcome::Stopped, grace),
        () = sleep(budget) => (StepOutcome::TimedOut, TIMEOUT_GRACE),
    };
    let _ = timeout(grace, work).await;
    cut
}

async fn on_disk(
    verb: &str,
    path: PathBuf,
    work: impl FnOnce(&Path, &Waiting) -> io::Result<()> + Send + 'static,
) -> Result<(), HookError> {
    let (waiting, _waiter) = Waiting::new();
    let done = tokio::task::spawn_blocking({
        let path = path.clone();
        move || work(&path, &waiting)
    });
    let done = done.await.map_err(|panicked| HookError(panicked.to_string()))?;
    done.map_err(|error| HookError(format!("cannot {verb} {}: {error}", path.display())))
}

/// Whether somebody still waits for what a thread does that cannot be interrupted: a disk may hang for minutes.
struct Waiting(Weak<()>);

impl Waiting {
    /// It, and who waits.
    fn new() -> (Waiting, Arc<()>) {
        let waiter = Arc::new(());
        (Waiting(Arc::downgrade(&waiter)), waiter)
    }

    /// An error if nobody does.
    fn still(&self) -> io::Result<()> {
        match self.0.strong_count() {
            0 => Err(io::Error::other("it was given up on")),
            _ => Ok(()),
        }
    }
}

/// Runs a program again and again until it succeeds. One that cannot be started never will.
async fn wait_for(
    argv: &[String],
    every: Duration,
    facts: &Facts,
    budget: Duration,
    stop: &mut Stop,
) -> StepOutcome {
    let program = Program::Argv(argv.to_vec());
    let (stopper, mut inner) = stop::pair();
    let looking = async {
        loop {
            let ran = process::run(&program, facts, budget, &mut inner).await;
            match ran.outcome {
                StepOutcome::Failed { reason } if ran.started => {
                    tracing::debug!(target: "notbefore_agent::hook", %reason, "not yet");
                }
                ended @ (StepOutcome::Done
                | StepOutcome::Failed { .. }
                | StepOutcome::TimedOut
                | StepOutcome::Stopped) => return ended,
            }
            tokio::select! {
                () = sleep(every) => {}
                _ = inner.told() => return StepOutcome::Stopped,
            }
        }
    };
    tokio::pin!(looking);
    let (cut, grace) = tokio::select! {
        biased;
        ended = &mut looking => return ended,
        grace = stop.told() => (StepOutcome::Stopped, grace),
        () = sleep(budget) => (StepOutcome::TimedOut, TIMEOUT_GRACE),
    };
    // A look that is under way is ended like any program.
    stopper.stop(grace);
    let _ = looking.await;
    cut
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
