//! Steps, carried out: each in a task of its own, whose end comes back to the machine.
//!
//! [`Runner`] keeps who runs; [`run_action`] does one attempt. `process/` runs programs, `webhook.rs` sends requests,
//! `files.rs` writes; [`variables`] is what all of them are told of the event.

mod files;
mod output;
pub(crate) mod process;
pub mod stop;
pub mod variables;
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
use crate::rules::StepAction;
use process::Program;
use stop::{STOP_GRACE, Stop, Stopper, TIMEOUT_GRACE};
use variables::HookVariables;
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
        let variables = HookVariables::new(&run, vm, self.dry_run);
        let (ends, dry_run) = (self.ends.clone(), self.dry_run);
        let id = run.id;
        let span =
            tracing::info_span!("hook", event = %run.event.id, rule = %run.rule, step = %run.step.name);
        let work = async move {
            let outcome = match dry_run {
                true => StepOutcome::Done,
                // Nothing is begun that could not even be stopped in time.
                false if run.budget.is_zero() => StepOutcome::TimedOut,
                false => run_action(&run.step.does, &variables, run.budget, &mut stop).await,
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
pub async fn run_action(
    action: &StepAction,
    variables: &HookVariables,
    budget: Duration,
    stop: &mut Stop,
) -> StepOutcome {
    match action {
        StepAction::Command { argv } => {
            process::run(&Program::Argv(argv.clone()), variables, budget, stop).await.logged()
        }
        StepAction::Shell { line } => {
            process::run(&Program::Shell(line.clone()), variables, budget, stop).await.logged()
        }
        StepAction::StartUnit { unit } => {
            process::run(&systemctl("start", unit), variables, budget, stop).await.logged()
        }
        StepAction::StopUnit { unit } => {
            process::run(&systemctl("stop", unit), variables, budget, stop).await.logged()
        }
        StepAction::Webhook(hook) => {
            let body = match &hook.body {
                None => variables.json.clone(),
                Some(body) if webhook::is_json(&hook.headers, body) => variables.fill_json(body),
                Some(body) => variables.fill(body),
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
        StepAction::WriteFile { path, content } => {
            let (path, content) = (path.clone(), variables.fill(content));
            let write = move |path: &Path, waiting: &WaiterHandle| files::write(path, &content, waiting);
            within(budget, stop, on_disk("write", path, write)).await
        }
        StepAction::RemoveFile { path } => {
            within(budget, stop, on_disk("remove", path.clone(), files::remove)).await
        }
        StepAction::Wait { time } => tokio::select! {
            biased;
            () = sleep(*time) => StepOutcome::Done,
            _ = stop.requested() => StepOutcome::Stopped,
            () = sleep(budget) => StepOutcome::TimedOut,
        },
        StepAction::WaitFor { argv, every } => wait_for(argv, *every, variables, budget, stop).await,
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
        grace = stop.requested() => (StepOutcome::Stopped, grace),
        () = sleep(budget) => (StepOutcome::TimedOut, TIMEOUT_GRACE),
    };
    let _ = timeout(grace, work).await;
    cut
}

async fn on_disk(
    verb: &str,
    path: PathBuf,
    work: impl FnOnce(&Path, &WaiterHandle) -> io::Result<()> + Send + 'static,
) -> Result<(), HookError> {
    let (waiting, _waiter) = WaiterHandle::new();
    let done = tokio::task::spawn_blocking({
        let path = path.clone();
        move || work(&path, &waiting)
    });
    let done = done.await.map_err(|panicked| HookError(panicked.to_string()))?;
    done.map_err(|error| HookError(format!("cannot {verb} {}: {error}", path.display())))
}

/// Whether somebody still waits for what a thread does that cannot be interrupted: a disk may hang for minutes.
struct WaiterHandle(Weak<()>);

impl WaiterHandle {
    /// It, and who waits.
    fn new() -> (WaiterHandle, Arc<()>) {
        let waiter = Arc::new(());
        (WaiterHandle(Arc::downgrade(&waiter)), waiter)
    }

    /// An error if nobody does.
    fn check(&self) -> io::Result<()> {
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
    variables: &HookVariables,
    budget: Duration,
    stop: &mut Stop,
) -> StepOutcome {
    let program = Program::Argv(argv.to_vec());
    let (stopper, mut inner) = stop::pair();
    let looking = async {
        loop {
            let ran = process::run(&program, variables, budget, &mut inner).await;
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
                _ = inner.requested() => return StepOutcome::Stopped,
            }
        }
    };
    tokio::pin!(looking);
    let (cut, grace) = tokio::select! {
        biased;
        ended = &mut looking => return ended,
        grace = stop.requested() => (StepOutcome::Stopped, grace),
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
