//! Runs steps: each attempt in a task of its own, which reports its end to the machine.
//!
//! [`Runner`] tracks running attempts; [`run_action`] executes one. `process/` runs programs, `webhook.rs` sends
//! requests, `files.rs` writes files; [`variables`] describes the event to all of them.

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

/// Capacity of the channel of ended attempts. Each event runs one step at a time.
const ENDS_MAX: usize = 64;
/// How long running steps have to end at shutdown: the grace of programs, plus a margin.
const STOP_ALL_MAX: Duration = STOP_GRACE.saturating_add(Duration::from_secs(1));

#[derive(Debug)]
pub struct Runner {
    dry_run: bool,
    running: BTreeMap<RunId, (Stopper, JoinHandle<()>)>,
    ends: mpsc::Sender<Ended>,
}

/// Why an action failed, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

#[derive(Debug)]
pub struct Ended {
    pub run: RunId,
    pub outcome: StepOutcome,
}

impl Runner {
    /// A runner without attempts, and the receiver of ended ones.
    pub fn new(dry_run: bool) -> (Runner, mpsc::Receiver<Ended>) {
        let (ends, ended) = mpsc::channel(ENDS_MAX);
        (Runner { dry_run, running: BTreeMap::new(), ends }, ended)
    }

    /// Starts an attempt in the background.
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
                // Do not start an attempt that has no time to run.
                false if run.budget.is_zero() => StepOutcome::TimedOut,
                false => run_action(&run.step.does, &variables, run.budget, &mut stop).await,
            };
            let _ = ends.send(Ended { run: id, outcome }).await;
        };
        self.running.insert(id, (stopper, tokio::spawn(work.instrument(span))));
    }

    /// Stops an attempt early. It ends like any other.
    pub fn stop(&self, run: RunId) {
        if let Some((stopper, _)) = self.running.get(&run) {
            stopper.stop(STOP_GRACE);
        }
    }

    /// Drops an attempt that has ended.
    pub fn forget(&mut self, run: RunId) {
        self.running.remove(&run);
    }

    /// Stops all attempts without reporting them: the next agent finds these steps begun.
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

/// Executes an action within its budget, until it is stopped.
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

/// Runs an action with remote effects, which may complete after the agent stops waiting. After a stop or a timeout it
/// gets a grace period to finish before it is dropped; otherwise its effect could arrive after its own undo.
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

/// Tells a blocking thread whether a task still waits for it: a disk may hang for minutes.
struct WaiterHandle(Weak<()>);

impl WaiterHandle {
    fn new() -> (WaiterHandle, Arc<()>) {
        let waiter = Arc::new(());
        (WaiterHandle(Arc::downgrade(&waiter)), waiter)
    }

    /// Fails if no task waits any more.
    fn check(&self) -> io::Result<()> {
        match self.0.strong_count() {
            0 => Err(io::Error::other("the step was abandoned")),
            _ => Ok(()),
        }
    }
}

/// Runs a program until it succeeds. One that cannot be started fails at once.
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
    // Stop the current run like any program.
    stopper.stop(grace);
    let _ = looking.await;
    cut
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
