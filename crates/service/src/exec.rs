//! The `exec` driver's hands: a command per VM of a started event, with the facts in its environment.
//!
//! The engine decides that a command runs, how often, and what its end means; this module runs it and says how
//! it ended. The road of one run:
//!
//! ```text
//!   Exec::run ─► waits for its turn ─► run::run_attempt ─► the keeper ─► the command
//!                                        │  output.rs: its words, to the log
//!                                        │  result.rs: what it wrote to NOTBEFORE_RESULT
//!                                        └► Ending: it succeeded, or it failed and why
//! ```
//!
//! Its turn comes when no command of another event runs for the same VM, and one of `concurrency` slots is free.
//! Events of one VM may well be under way at the same time; two commands that each look what state it is in and
//! then change it must not be.
//!
//! The command gets nothing of the service's environment but what it needs (`environment`): the
//! operators' token may be in there. Nothing of it outlives its run, however it tries and however the service
//! ends; how is in [`keeper`]. Where the keeper was killed as well, the next attempt begins when nothing of the one before
//! is left; how is in `earlier.rs`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_core::{Ending, VmId};
use notbefore_engine::{CommandId, DriverRun};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

pub mod keeper;
mod orphans;
mod output;
mod processes;
mod result;
mod run;

use crate::driver::{Driver, Report};
use crate::lock;

/// How long the keepers of an earlier service have to end. Their commands were killed when it ended, which takes
/// the kernel milliseconds, and the keepers as long as it takes to look through `/proc`.
const KEEPERS_GRACE: Duration = Duration::from_secs(10);

/// A variable of the environment: its name and value.
pub type Variable = (OsString, OsString);

/// What the driver is told.
#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// The command: an executable file, by its whole path.
    pub command: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
    /// How long it has between being asked to end and being killed.
    pub grace: Duration,
    /// How many run at once; others wait their turn.
    pub concurrency: usize,
    /// Variables of the service's own environment that it gets too.
    pub extra_environment: Vec<Variable>,
    /// The binary that is its keeper: this one. By the kernel's own link to it, which also holds when the file
    /// has been replaced by that of the next release.
    pub keeper: PathBuf,
}

impl ExecConfig {
    /// How long a command may take, unless said: a live migration of a large VM takes minutes.
    pub const TIMEOUT: Duration = Duration::from_secs(600);
    /// How many run at once, unless said: a host's VMs are soon done, and a region's do not melt the control
    /// plane that the commands call.
    pub const CONCURRENCY: usize = 16;
    /// How long a command has to end in good order; what it does by then is of no use to anyone.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// The usual settings for a command.
    pub fn new(command: PathBuf) -> Self {
        Self {
            command,
            timeout: Self::TIMEOUT,
            grace: Self::GRACE,
            concurrency: Self::CONCURRENCY,
            extra_environment: Vec::new(),
            keeper: "/proc/self/exe".into(),
        }
    }
}

/// Why a command cannot be used, found out at the start and not at the first event.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CommandError {
    /// There is none, or it cannot be looked at.
    #[error("--exec {path}: {error}; name an executable file")]
    Missing { path: PathBuf, error: io::Error },
    /// It is no file.
    #[error("--exec {0} is no file; name an executable file, such as a script")]
    NoFile(PathBuf),
    /// It is not executable.
    #[error("--exec {0} is not executable; chmod +x it")]
    NotExecutable(PathBuf),
}

/// A command's whole path, if it is an executable file. A link stays a link: what it leads to may change.
pub fn check_command(path: &Path) -> Result<PathBuf, CommandError> {
    let missing = |error| CommandError::Missing { path: path.to_owned(), error };
    let whole = std::path::absolute(path).map_err(missing)?;
    let found = std::fs::metadata(&whole).map_err(missing)?;
    if !found.is_file() {
        return Err(CommandError::NoFile(whole));
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(CommandError::NotExecutable(whole));
    }
    Ok(whole)
}

/// The whole environment of a command.
fn environment(run: &DriverRun, result: &Path, extra_environment: &[Variable]) -> Vec<Variable> {
    /// Without these most programs do not find their way; none of them holds a secret.
    const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
    let ours = INHERITED.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let facts = [
        ("EVENT_ID", run.id.event.to_string()),
        ("OPERATION_ID", run.operation.to_string()),
        ("EVENT_TYPE", run.event_type.to_string()),
        ("CAUSE", run.cause.to_string()),
        ("DURATION", run.duration_s.to_string()),
        ("SUBSCRIPTION", run.scope.subscription.to_string()),
        ("GROUP", run.scope.group.to_string()),
        ("SCOPE", run.scope.name.to_string()),
        ("VM", run.name.to_string()),
        ("VM_ID", run.id.vm.to_string()),
        ("HOST", run.host.clone().unwrap_or_default()),
        ("UPDATE_DOMAIN", run.update_domain.to_string()),
        ("ATTEMPT", run.id.attempt.to_string()),
        ("FENCE", run.id.fence.to_string()),
        ("OWNER", run.owner.clone()),
    ];
    let facts = facts.into_iter().map(|(name, value)| (format!("NOTBEFORE_{name}").into(), value.into()));
    let result = [("NOTBEFORE_RESULT".into(), result.as_os_str().to_owned())];
    ours.chain(extra_environment.iter().cloned()).chain(facts).chain(result).collect()
}

/// Runs commands, so many at once.
#[derive(Debug)]
pub struct Exec {
    config: Arc<ExecConfig>,
    /// Where commands leave their results.
    results: Arc<Path>,
    slots: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// Held by the one command of a VM that runs; others wait for it.
type VmLock = Arc<tokio::sync::Mutex<()>>;

#[derive(Debug, Default)]
struct State {
    /// Set when the service ends.
    closed: bool,
    tasks: JoinSet<()>,
    /// Those that run or wait, each with what stops it when it is dropped.
    runs: HashMap<CommandId, watch::Sender<()>>,
    /// For each VM that a command runs or waits for: whose turn it is.
    vm_locks: HashMap<VmId, VmLock>,
}

impl Exec {
    /// Prepares `results`, a directory that commands leave their results in, and waits until nothing is left of the
    /// commands of an earlier service that used it: what they began and what runs next must not overlap.
    pub async fn prepare(config: ExecConfig, results: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(results)?;
        // Commands do not run in the directory of the service.
        let results: Arc<Path> = std::path::absolute(results)?.into();
        // Keepers that live end what is theirs; the records name the rest.
        keeper::wait_for_keepers(&results, KEEPERS_GRACE).await?;
        if let Err(why) = orphans::kill(&results, |_| true, run::KILLED_GRACE).await {
            tracing::warn!(target: "notbefore::exec", "{why}; until then no command runs for that VM");
        }
        // What the earlier service did not come to remove; nobody will ask for it any more.
        for entry in std::fs::read_dir(&results)? {
            let path = entry?.path();
            if !orphans::is_record(&path) {
                run::remove(&path);
            }
        }
        let slots = Arc::new(Semaphore::new(config.concurrency));
        Ok(Self { config: Arc::new(config), results, slots, state: Arc::default() })
    }

    /// Stops everything, and waits until nothing runs any more. What is stopped has not failed: the next start of
    /// the service runs it again.
    pub async fn close(&self) {
        let mut tasks = {
            let mut state = lock(&self.state);
            state.closed = true;
            state.runs.clear();
            std::mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }
}

impl Driver for Exec {
    fn run(&self, run: DriverRun, report: Report) {
        let mut state = lock(&self.state);
        if state.closed {
            return;
        }
        while state.tasks.try_join_next().is_some() {}
        let (stop, mut stopped) = watch::channel(());
        let id = run.id;
        state.runs.insert(id, stop);
        let turn = Arc::clone(state.vm_locks.entry(id.vm).or_default());
        let (config, results) = (Arc::clone(&self.config), Arc::clone(&self.results));
        let (slots, runs) = (Arc::clone(&self.slots), Arc::clone(&self.state));
        state.tasks.spawn(async move {
            let run = Arc::new(run);
            // The turn before the slot: whoever waits for another command of its VM keeps no slot from others.
            let turn = async { (turn.lock_owned().await, slots.acquire_owned().await) };
            let turn = tokio::select! {
                biased;
                _ = stopped.changed() => None,
                turn = turn => Some(turn),
            };
            let ending = match &turn {
                Some((_turn, Ok(_slot))) => run::run_attempt(&config, &results, &run, &mut stopped).await,
                Some((_, Err(_))) | None => None,
            };
            drop(turn);
            lock(&runs).forget(id);
            log_ending(&config, &run, ending.as_ref());
            if let Some(ending) = ending {
                report.ended(ending);
            }
        });
    }

    fn stop(&self, command: CommandId) {
        lock(&self.state).runs.remove(&command);
    }
}

impl State {
    /// A run is over, and the last of a VM leaves no turn behind.
    fn forget(&mut self, id: CommandId) {
        self.runs.remove(&id);
        if self.vm_locks.get(&id.vm).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            self.vm_locks.remove(&id.vm);
        }
    }
}

/// Says in the log what became of a run.
fn log_ending(config: &ExecConfig, run: &DriverRun, ending: Option<&Ending>) {
    let (event, vm, attempt) = (run.id.event, &run.name, run.id.attempt);
    let command = config.command.display();
    match ending {
        Some(Ending::Succeeded { .. }) => {
            tracing::info!(target: "notbefore::exec", %event, %vm, attempt, "{command} is done");
        }
        Some(Ending::Failed { why } | Ending::Blocked { why }) => {
            tracing::warn!(target: "notbefore::exec", %event, %vm, attempt, "{why}");
        }
        None => tracing::info!(target: "notbefore::exec", %event, %vm, attempt, "{command} was stopped"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use notbefore_core::{Cause, EventId, EventType, OperationId, StartReason, VmId};
    use uuid::Uuid;

    use super::*;

    /// A run that nothing depends on.
    pub(super) fn some_run() -> DriverRun {
        DriverRun {
            id: CommandId { event: EventId(Uuid::nil()), vm: VmId(Uuid::nil()), fence: 7, attempt: 3 },
            operation: OperationId(Uuid::nil()),
            event_type: EventType::Reboot,
            cause: Cause::HostReboot,
            description: String::new(),
            duration_s: -1,
            scope: "shop/web".parse().unwrap(),
            name: "web-0".parse().unwrap(),
            host: Some("h1".to_owned()),
            update_domain: 2,
            owner: "n1".to_owned(),
            why: StartReason::Approved,
            started_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn command_environment_has_only_declared_variables() {
        let extra_environment = [("LIBVIRT_DEFAULT_URI".into(), "test:///default".into())];
        let environment = environment(&some_run(), Path::new("/r"), &extra_environment);
        let mut names: Vec<&str> = environment.iter().filter_map(|(name, _)| name.to_str()).collect();
        names.retain(|name| !["PATH", "HOME", "LANG"].contains(name));
        names.sort_unstable();
        let expected = [
            "LIBVIRT_DEFAULT_URI",
            "NOTBEFORE_ATTEMPT",
            "NOTBEFORE_CAUSE",
            "NOTBEFORE_DURATION",
            "NOTBEFORE_EVENT_ID",
            "NOTBEFORE_EVENT_TYPE",
            "NOTBEFORE_FENCE",
            "NOTBEFORE_GROUP",
            "NOTBEFORE_HOST",
            "NOTBEFORE_OPERATION_ID",
            "NOTBEFORE_OWNER",
            "NOTBEFORE_RESULT",
            "NOTBEFORE_SCOPE",
            "NOTBEFORE_SUBSCRIPTION",
            "NOTBEFORE_UPDATE_DOMAIN",
            "NOTBEFORE_VM",
            "NOTBEFORE_VM_ID",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn check_command_requires_executable_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("carry-out");
        let said = |path: &Path| check_command(path).unwrap_err().to_string();
        assert!(said(&file).contains("No such file or directory"), "{}", said(&file));
        assert!(said(dir.path()).contains("is no file"));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(said(&file).contains("chmod +x"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(check_command(&file).unwrap(), file);
    }
}
